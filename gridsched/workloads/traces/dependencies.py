"""What the jobs of a log wait for: by names while it is read, by lines then, at last by their ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Integers
from gridsched.model.jobs import After, Dependencies

#: A pair of jobs by their lines: who waits, for whom, for what (`After`), and how long from then on [s].
PAIR = np.dtype([("line", np.int64), ("on", np.int64), ("kind", np.int64), ("delay_s", np.float64)])
NO_PAIRS = np.zeros(0, dtype=PAIR)
#: Slurm's words. Of ``aftercorr`` an array's task waits for the task of the same number.
KINDS = {
    "after": After.START,
    "afterany": After.END,
    "afterok": After.SUCCESS,
    "afternotok": After.FAILURE,
    "aftercorr": After.SUCCESS,
}
_MINUTE = 60.0
_OPTION = re.compile(r"(?:^|\s)(?:--dependency[=\s]+|-d\s*)(\S+)")
_ON = re.compile(r"(?P<job>\d{1,18}(?:_\d{1,9})?)(?:\+(?P<minutes>\d{1,9}(?:\.\d{1,20})?))?(?:\(\w+\))?")
#: Name of a job of an array: ``17_3``.
_OF_ARRAY = re.compile(r"(?P<array>\d{1,18})_(?P<task>\d{1,9})")
#: Name of a part of a heterogeneous job: ``17+0``.
PART = re.compile(r"(?P<whole>\d{1,18})\+\d{1,9}")


def option_of(submit_line: str) -> str:
    """Return what the option ``--dependency`` of a command line says; empty without it."""
    match = _OPTION.search(submit_line)
    return match[1] if match else ""


class DependencyRows:
    """Who waits for whom in a log, as it is read.

    Attributes
    ----------
    others : int
        Conditions of other kinds, which nobody waits for.
    """

    def __init__(self) -> None:
        self.others = 0
        self._needs: list[tuple[int, After, str, float]] = []
        self._lines: dict[str, list[int]] = {}

    def name(self, line: int, job: str) -> None:
        """Let the job of a line be known by its name: ``17``, of an array ``17_3``, of parts ``17+0``."""
        self._lines.setdefault(job, []).append(line)
        if match := _OF_ARRAY.fullmatch(job):
            self._lines.setdefault(match["array"], []).append(line)
        elif match := PART.fullmatch(job):
            self._lines.setdefault(match["whole"], []).append(line)

    def need(self, line: int, on: str, kind: After = After.END, delay_s: float = 0.0) -> None:
        """Let the job of a line wait for another one, by its name."""
        self._needs.append((line, kind, on, delay_s))

    def read(self, line: int, text: str, job: str = "") -> None:
        """Let the job of a line, named `job`, wait as Slurm's ``--dependency`` says.

        ``?`` between two conditions, where one of them is enough, counts as ``,``, where all are
        needed. Conditions of other kinds, as ``singleton``, are counted and passed over.
        """
        for condition in re.split(r"[,?]", text):
            word, *jobs = condition.split(":")
            kind, matches = KINDS.get(word), [_ON.fullmatch(each) for each in jobs]
            if kind is None or not jobs or not all(matches):
                self.others += bool(condition)
                continue
            own = _OF_ARRAY.fullmatch(job) if word == "aftercorr" else None
            for match in filter(None, matches):
                on = match["job"] if own is None else f"{match['job']}_{own['task']}"
                self.need(line, on, kind, _MINUTE * float(match["minutes"] or 0))

    def pairs(self, numbers: Iterable[tuple[str, int]]) -> NDArray[np.void]:
        """Return all pairs by lines; of another job that is not in the log the line is -1.

        Parameters
        ----------
        numbers : iterable of (str, int)
            Number and line of jobs that have no other name.
        """
        if not self._needs:
            return NO_PAIRS
        needed = {on for _, _, on, _ in self._needs}
        lines = {job: [line] for job, line in numbers if job in needed} | self._lines
        rows = [
            (line, on, int(kind), delay_s)
            for line, kind, name, delay_s in self._needs
            for on in lines.get(name, [-1])
            if on != line
        ]
        return np.array(rows, dtype=PAIR)

    def notes(self) -> tuple[str, ...]:
        """Say what nobody waits for."""
        if not self.others:
            return ()
        return (f"{self.others:,} conditions of --dependency of other kinds than {', '.join(KINDS)}: passed over",)


def dependencies_of(pairs: NDArray[np.void], lines: Integers) -> tuple[Dependencies | None, int]:
    """Return who waits for whom by ids, and how many pairs name a job that is not there before.

    Parameters
    ----------
    pairs : ndarray of `PAIR`
    lines : ndarray of int64, shape (jobs,)
        Line of each job; its id is its position.
    """
    place: Mapping[int, int] = {line: k for k, line in enumerate(lines.tolist())}
    rows: list[tuple[Any, ...]] = [
        (place[line], place.get(on, len(lines)), kind, delay_s)
        for line, on, kind, delay_s in pairs.tolist()
        if line in place
    ]
    kept = [row for row in rows if row[1] < row[0]]
    if not kept:
        return None, len(rows)
    task, on, kind, delay_s = map(np.array, zip(*kept, strict=True))
    return Dependencies(task, on, kind, delay_s), len(rows) - len(kept)
