"""Jobs of a log, whatever its format: when submitted, how wide, how long, and the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

#: Lines that are named for each reason to drop jobs.
MAX_LINES_NAMED = 5


@dataclass(frozen=True)
class Dropped:
    """Jobs that were left out for one reason.

    Attributes
    ----------
    reason : str
    count : int
    lines : tuple of int
        Line numbers of the first of them; empty where the jobs come from no file.
    """

    reason: str
    count: int
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        where = ""
        if self.lines:
            shown = ", ".join(map(str, self.lines))
            more = ", ..." if self.count > len(self.lines) else ""
            where = f" (line{'s' if self.count > 1 else ''} {shown}{more})"
        return f"{self.count:,} job{'s' if self.count > 1 else ''} left out: {self.reason}{where}"


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
    lines: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.job)

    @property
    def estimate_s(self) -> NDArray[np.float64]:
        """What a scheduler may know of the run times [s] (algorithms I).

        The requested time, or the run time where that is longer or no time was requested.
        """
        return np.fmax(self.requested_time_s, self.run_time_s)

    @property
    def nodes_of_header(self) -> int | None:
        """Size of the machine by the log's header: ``MaxProcs``, else ``MaxNodes``."""
        for key in ("MaxProcs", "MaxNodes"):
            text = self.header.get(key, "").split()
            if text and text[0].isdigit() and int(text[0]) > 0:
                return int(text[0])
        return None

    def that_fit(self, n_nodes: int) -> JobTable:
        """Return the jobs that a machine of `n_nodes` can run at all; the others are dropped."""
        return self.without(self.width > n_nodes, f"wider than the machine's {n_nodes:,} nodes")

    def runnable(self) -> JobTable:
        """Return the jobs that ran for some time on some nodes; the others are dropped."""
        table = self.without(~(self.run_time_s > 0), "no run time greater than 0 s")
        return table.without(table.width <= 0, "no number of nodes greater than 0")

    def in_order(self) -> JobTable:
        """Return the jobs in order of submission, then of their numbers."""
        order = np.lexsort((self.job, self.submit_time_s))
        return self._taken(order)

    def without(self, rows: NDArray[np.bool_], reason: str) -> JobTable:
        """Return the table without some rows, and why they went in `dropped`."""
        if not rows.any():
            return self
        named = self.lines[rows][:MAX_LINES_NAMED].tolist() if len(self.lines) else []
        gone = Dropped(reason, int(rows.sum()), tuple(named))
        return replace(self._taken(np.flatnonzero(~rows)), dropped=(*self.dropped, gone))

    def _taken(self, rows: NDArray[np.intp]) -> JobTable:
        return replace(
            self, job=self.job[rows], submit_time_s=self.submit_time_s[rows],
            run_time_s=self.run_time_s[rows], width=self.width[rows],
            requested_time_s=self.requested_time_s[rows],
            lines=self.lines[rows] if len(self.lines) else self.lines,
        )  # fmt: skip


def dropped_lines(reasons: Mapping[str, Sequence[int]]) -> tuple[Dropped, ...]:
    """Return what was left out of a file, from all line numbers by reason."""
    return tuple(
        Dropped(reason, len(lines), tuple(lines[:MAX_LINES_NAMED]))
        for reason, lines in reasons.items()
        if lines
    )
