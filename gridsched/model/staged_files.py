"""Files that no task makes: they lie on one host from the start, and are sent to the hosts of tasks that read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Platform


@dataclass(frozen=True, eq=False)
class StagedFiles:
    """Pairs of a task and a file that it reads.

    Attributes
    ----------
    host : str
        Name of the host on which all files lie.
    task : ndarray of int64, shape (pairs,)
        Who reads, ascending.
    file : ndarray of int64, shape (pairs,)
        Number of the file; a file is sent once to a host.
    size_bytes : ndarray of float64, shape (pairs,)
        Size of the file [byte].

    Raises
    ------
    InputError
        If sizes are out of range, or the tasks are in another order.
    """

    host: str
    task: Integers
    file: Integers
    size_bytes: Floats

    def __post_init__(self) -> None:
        in_order = bool((np.diff(self.task) >= 0).all()) and int(self.task.min(initial=0)) >= 0
        if not in_order or not ((self.size_bytes >= 0) & (self.size_bytes <= LARGEST)).all():
            raise InputError(
                f"Files on host {self.host!r}: tasks must ascend from 0 on, and sizes lie from 0 to {LARGEST:g} bytes."
            )

    def __len__(self) -> int:
        return len(self.task)

    def first(self, count: int) -> StagedFiles:
        """Return the pairs of the first `count` tasks."""
        end = int(np.searchsorted(self.task, count))
        return StagedFiles(self.host, self.task[:end], self.file[:end], self.size_bytes[:end])

    def source(self, platform: Platform) -> int:
        """Return the id of their host; `InputError` if it computes nothing there."""
        names = [host.name for host in platform.hosts]
        if self.host not in names:
            shown = ", ".join(names[:5]) + ", ..." * (len(names) > 5)
            raise InputError(
                f"{platform.name}: files that no task makes are sent from host {self.host!r}, which computes nothing "
                f"there. Name one of its computing hosts (inputs_from): {shown}."
            )
        return names.index(self.host)
