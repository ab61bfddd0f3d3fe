"""Input files of tasks: their names, sizes, and where they are from the start."""

from __future__ import annotations

from dataclasses import dataclass

from gridsched.arrays import Floats


@dataclass(frozen=True)
class DataFiles:
    """Input files of the tasks (XSufferage's data, algorithms A4).

    Attributes
    ----------
    names : tuple of str
    size_bytes : ndarray of float64, shape (files,)
    locations : tuple of tuple of str
        For each file the names of the clusters, or of hosts in them, that hold it from the start.
    """

    names: tuple[str, ...]
    size_bytes: Floats
    locations: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.names)
