"""Attributes of jobs that a log names: users, partitions, qualities of service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Integers


@dataclass(frozen=True)
class Attribute:
    """What a log calls each job's user, partition or quality of service.

    Attributes
    ----------
    names : tuple of str
        In order of first appearance: those of later tasks come later.
    codes : ndarray of int64, shape (tasks,)
        Place of each task's name in `names`; -1 where the log does not name it.
    known : tuple of str
        All names of the log in alphabetical order, an empty one before them where the log does not
        name for some job. A machine knows its accounts before their first job: so does a policy.
    """

    names: tuple[str, ...]
    codes: Integers
    known: tuple[str, ...]

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Attribute:
        """Return the attribute of tasks in this order; an empty text means unknown."""
        places: dict[str, int] = {"": -1}
        codes = [places.setdefault(text, len(places) - 1) for text in texts]
        return cls(tuple(places)[1:], np.array(codes, dtype=np.int64), tuple(sorted(set(texts))))

    @property
    def texts(self) -> list[str]:
        """Name of each task, empty if it is unknown."""
        return [self.names[code] if code >= 0 else "" for code in self.codes.tolist()]

    def taken(self, ids: Integers) -> Attribute:
        """Return the attribute of some of the tasks."""
        return Attribute(self.names, self.codes[ids], self.known)
