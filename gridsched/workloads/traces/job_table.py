"""Jobs of a log, whatever its format: when submitted, how wide, how long, and the request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gridsched.files.csv_files import interval_set

#: Longer numbers do not fit 64 bits.
MOST_DIGITS = 18
#: Lines that people are told for each reason to drop jobs.
MAX_LINES_NAMED = 5


def plain_number(value: float) -> float | int:
    """Return a number as logs are written: whole ones without a decimal point."""
    return int(value) if value == math.floor(value) else value


@dataclass(frozen=True)
class Dropped:
    """Jobs that were left out for one reason.

    Attributes
    ----------
    reason : str
    count : int
    lines : tuple of int
        Line numbers of all of them; empty where the jobs come from no file of lines.
    """

    reason: str
    count: int
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        where = ""
        if self.lines:
            shown = ", ".join(map(str, self.lines[:MAX_LINES_NAMED]))
            more = ", ..." if self.count > MAX_LINES_NAMED else ""
            where = f" (line{'s' if self.count > 1 else ''} {shown}{more})"
        return f"{self.count:,} job{'s' if self.count > 1 else ''} left out: {self.reason}{where}"

    def as_json(self) -> dict[str, str | int]:
        """Return reason, count and all lines, as an interval set: ``3-5 9``."""
        lines = interval_set(np.array(self.lines, dtype=np.int64)) if self.lines else ""
        return {"reason": self.reason, "count": self.count, "lines": lines}


@dataclass(frozen=True)
class JobTable:
    """Rigid jobs in order of submission, then of their numbers.

    Attributes
    ----------
    job : ndarray of int64, shape (jobs,)
        Numbers in the log.
    submit_time_s : ndarray of float64, shape (jobs,)
        Since the begin of the log [s].
    run_time_s : ndarray of float64, shape (jobs,)
        True run times [s].
    width : ndarray of int64, shape (jobs,)
        Nodes (or processors) that each job needs at once.
    requested_time_s : ndarray of float64, shape (jobs,)
        What the user asked for [s]; nan where the log does not tell.
    name : str
        Where the jobs come from.
    header : mapping
        What the log says of its machine: ``MaxProcs``, ``Computer``, ...
    dropped : tuple of Dropped
    notes : tuple of str
        What else of the log is not told by these columns, in words.
    lines : ndarray of int64, shape (jobs,)
        Line of each job in the log; empty where there is none.
    """

    job: NDArray[np.int64]
    submit_time_s: NDArray[np.float64]
    run_time_s: NDArray[np.float64]
    width: NDArray[np.int64]
    requested_time_s: NDArray[np.float64]
    name: str = "jobs"
    header: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()
    lines: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.job)

    @property
    def estimate_s(self) -> NDArray[np.float64]:
        """What a scheduler may know of the run times [s] (algorithms I).

        The requested time, or the run time where that is longer or no time was requested.
        """
        return np.fmax(self.requested_time_s, self.run_time_s)

    def size_of_machine(self, *keys: str) -> int | None:
        """Return how large the machine is by the log's header.

        Parameters
        ----------
        *keys : str
            Keys of the header; the first that tells a number counts. By default ``MaxProcs``, then
            ``MaxNodes``.
        """
        for key in keys or ("MaxProcs", "MaxNodes"):
            text = self.header.get(key, "").split()
            if text and text[0].isdecimal() and len(text[0]) <= MOST_DIGITS and int(text[0]) > 0:
                return int(text[0])
        return None

    @property
    def nodes_of_header(self) -> int | None:
        """Size of the machine by the log's header: ``MaxProcs``, else ``MaxNodes``."""
        return self.size_of_machine()

    def that_fit(self, n_nodes: int) -> JobTable:
        """Return the jobs that a machine of `n_nodes` can run at all; the others are dropped."""
        return self.without(self.width > n_nodes, f"wider than the machine's {n_nodes:,} nodes")

    def runnable(self) -> JobTable:
        """Return the jobs that ran for some time on some nodes; the others are dropped."""
        table = self.without(~(self.run_time_s > 0), "no run time greater than 0 s")
        return table.without(table.width <= 0, "no number of nodes greater than 0")

    def distinct(self) -> JobTable:
        """Return the first job of each number; later ones are dropped."""
        _, first = np.unique(self.job, return_index=True)
        again = np.ones(len(self), dtype=bool)
        again[first] = False
        return self.without(again, "a job number that an earlier one has")

    def from_zero(self) -> JobTable:
        """Return the jobs with the first submission at 0 s."""
        begin = float(self.submit_time_s.min(initial=np.inf))
        return self if not len(self) else replace(self, submit_time_s=self.submit_time_s - begin)

    def on_nodes(self, procs_per_node: int, n_nodes: int | None) -> JobTable:
        """Return the jobs with widths in nodes of so many processors, whole nodes each.

        Parameters
        ----------
        procs_per_node : int
        n_nodes : int or None
            Size of the machine, which the header then tells; None: it tells none.
        """
        keys = ("MaxNodes", "MaxProcs")
        header = {key: text for key, text in self.header.items() if key not in keys}
        if n_nodes is not None:
            header |= dict.fromkeys(keys, str(n_nodes))
        width = self.width if procs_per_node == 1 else -(-self.width // procs_per_node)
        return replace(self, width=width, header=header)

    def in_order(self) -> JobTable:
        """Return the jobs in order of submission, then of their numbers."""
        order = np.lexsort((self.job, self.submit_time_s))
        return self._taken(order)

    def without(self, rows: NDArray[np.bool_], reason: str) -> JobTable:
        """Return the table without some rows, and why they went in `dropped`."""
        if not rows.any():
            return self
        named = np.sort(self.lines[rows]).tolist() if len(self.lines) else []
        gone = Dropped(reason, int(rows.sum()), tuple(named))
        return replace(self._taken(np.flatnonzero(~rows)), dropped=(*self.dropped, gone))

    def _taken(self, rows: NDArray[np.intp]) -> JobTable:
        return replace(
            self, job=self.job[rows], submit_time_s=self.submit_time_s[rows],
            run_time_s=self.run_time_s[rows], width=self.width[rows],
            requested_time_s=self.requested_time_s[rows],
            lines=self.lines[rows] if len(self.lines) else self.lines,
        )  # fmt: skip
