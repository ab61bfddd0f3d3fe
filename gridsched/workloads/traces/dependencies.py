"""What the jobs of a log wait for: by names while it is read, by lines then, at last by their ids."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Integers
from gridsched.model.dependencies import After, Block, Dependencies

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
#: Jobs that wait for all tasks of an array are a block, and no pairs, if there are more pairs than this.
MOST_PAIRS = 1000
_OPTION = re.compile(r"(?:^|\s)(?:--dependency[=\s]+|-d\s*)(\S+)")
_ON = re.compile(r"(?P<job>\d{1,18}(?:_\d{1,9})?)(?:\+(?P<minutes>\d{1,9}(?:\.\d{1,20})?))?(?:\(\w+\))?")
#: Name of a job of an array: ``17_3``.
_OF_ARRAY = re.compile(r"(?P<array>\d{1,18})_(?P<task>\d{1,9})")
#: Name of a part of a heterogeneous job: ``17+0``.
PART = re.compile(r"(?P<whole>\d{1,18})\+\d{1,9}")


def option_of(submit_line: str) -> str:
    """Return the value of the option ``--dependency`` of a command line; empty without it."""
    match = _OPTION.search(submit_line)
    return match[1] if match else ""


class LineBlock(NamedTuple):
    """Jobs that all wait for all of some others, by lines, for what (`After`), and how long from then on [s]."""

    line: Integers
    on: Integers
    kind: int
    delay_s: float


class DependencyRows:
    """Who waits for whom in a log, as it is read.

    Attributes
    ----------
    others : int
        Conditions of other kinds, which have no effect.
    lines_of_others : set of int
        Lines of the jobs that have such.
    """

    def __init__(self) -> None:
        self.others = 0
        self.lines_of_others: set[int] = set()
        self._needs: list[tuple[int, After, str, float]] = []
        self._lines: dict[str, list[int]] = {}
        self._failed: set[int] = set()
        self._by_state: Counter[After] = Counter()

    def name(self, line: int, job: str) -> None:
        """Let the job of a line be known by its name: ``17``, of an array ``17_3``, of parts ``17+0``."""
        self._lines.setdefault(job, []).append(line)
        if match := _OF_ARRAY.fullmatch(job):
            self._lines.setdefault(match["array"], []).append(line)
        elif match := PART.fullmatch(job):
            self._lines.setdefault(match["whole"], []).append(line)

    def fail(self, line: int) -> None:
        """Let the job of a line be one that ended without success in the log."""
        self._failed.add(line)

    def forget(self, lines: Collection[int]) -> None:
        """Let the jobs of some lines have no names: others of their names count."""
        if lines:
            self._lines = {name: [line for line in all if line not in lines] for name, all in self._lines.items()}
            self._needs = [need for need in self._needs if need[0] not in lines]

    def need(self, line: int, on: str, kind: After = After.END, delay_s: float = 0.0) -> None:
        """Let the job of a line wait for another one, by its name."""
        self._needs.append((line, kind, on, delay_s))

    def read(self, line: int, text: str, job: str = "") -> None:
        """Let the job of a line, named `job`, wait as Slurm's ``--dependency`` specifies.

        ``?`` between two conditions, where one of them is enough, counts as ``,``, where all are
        needed. Conditions of other kinds, as ``singleton``, are counted and passed over.
        """
        for condition in re.split(r"[,?]", text):
            word, *jobs = condition.split(":")
            kind, matches = KINDS.get(word), [_ON.fullmatch(each) for each in jobs]
            if kind is None or not jobs or not all(matches):
                if condition:
                    self.others += 1
                    self.lines_of_others.add(line)
                continue
            own = _OF_ARRAY.fullmatch(job) if word == "aftercorr" else None
            for match in filter(None, matches):
                on = match["job"] if own is None else f"{match['job']}_{own['task']}"
                self.need(line, on, kind, _MINUTE * float(match["minutes"] or 0))

    def pairs(
        self, numbers: Iterable[tuple[str, int]], kept: Collection[int]
    ) -> tuple[NDArray[np.void], tuple[LineBlock, ...]]:
        """Return all pairs by lines, and blocks of them; of another job that is not in the log the line is -1.

        Parameters
        ----------
        numbers : iterable of (str, int)
            Number and line of jobs that have no other name.
        kept : collection of int
            Lines of the jobs that are not left out: the notes count these.
        """
        if not self._needs:
            return NO_PAIRS, ()
        needed = {on for _, _, on, _ in self._needs}
        lines = {job: [line] for job, line in numbers if job in needed} | self._lines
        members = {name: set(lines.get(name, ())) for name in needed}
        failed_of = {name: self._failed.intersection(each) for name, each in members.items()}
        waiting = Counter(need[1:] for need in self._needs)
        all_kept, rows = set(kept), []
        blocks: dict[tuple[str, After, float, bool], list[int]] = {}
        for line, kind, name, delay_s in self._needs:
            others, failed = lines.get(name) or [-1], failed_of[name]
            if line in members[name]:  # a task does not wait for itself
                others, failed = [on for on in others if on != line], failed - {line}
            decisive = others if failed and kind is After.FAILURE else failed  # a failed task ends the wait for all
            self._by_state[kind] += line in all_kept and not all_kept.isdisjoint(decisive)
            is_here = bool(lines.get(name)) and line not in members[name]
            if is_here and len(others) * waiting[kind, name, delay_s] > MOST_PAIRS:
                of_all = After.END if kind is After.FAILURE and failed else kind
                blocks.setdefault((name, of_all, delay_s, False), []).append(line)
                if kind is After.SUCCESS and failed:
                    blocks.setdefault((name, After.FAILURE, delay_s, True), []).append(line)
                continue
            rows += [
                (line, on, int(each), delay_s) for on in others for each in _by_state(kind, bool(failed), on in failed)
            ]
        found = (
            LineBlock(np.array(own), np.array(sorted(failed_of[name] if of_failed else lines[name])), kind, delay_s)
            for (name, kind, delay_s, of_failed), own in blocks.items()
        )
        return np.array(rows, dtype=PAIR) if rows else NO_PAIRS, tuple(found)

    def notes(self) -> tuple[str, ...]:
        """Report which conditions have no effect, and what was taken from the states of the log."""
        notes = []
        if self.others:
            notes.append(
                f"{self.others:,} conditions of --dependency of other kinds than {', '.join(KINDS)}: passed over"
            )
        met, never = self._by_state[After.FAILURE], self._by_state[After.SUCCESS]
        if met or never:
            notes.append(
                "dependencies on jobs whose State in the log is not a success: "
                f"{met:,} afternotok, met when the job ends, and {never:,} afterok, whose jobs are rejected "
                "(--outcomes-from run: by how jobs end in the run)"
            )
        return tuple(notes)


def _by_state(kind: After, any_failed: bool, failed: bool) -> tuple[After, ...]:
    """Return what to wait for of a job, which has failed in the log or is of an array of which any has."""
    if kind is After.FAILURE and any_failed:
        return (After.END,)
    if kind is After.SUCCESS and failed:
        return After.SUCCESS, After.FAILURE  # never: no job ends both ways
    return (kind,)


def dependencies_of(
    pairs: NDArray[np.void], blocks: Sequence[LineBlock], lines: Integers
) -> tuple[Dependencies | None, int, Booleans]:
    """Return who waits for whom by ids, how many pairs name a job that is not there before, and whose are all there.

    Parameters
    ----------
    pairs : ndarray of `PAIR`
    blocks : sequence of LineBlock
    lines : ndarray of int64, shape (jobs,)
        Line of each job; its id is its position.
    """
    place: Mapping[int, int] = {line: k for k, line in enumerate(lines.tolist())}
    kept, missing, unknown = list[tuple[Any, ...]](), set[tuple[int, int]](), 0
    waits, lacks = np.zeros(len(lines), dtype=np.bool_), np.zeros(len(lines), dtype=np.bool_)
    for line, on, kind, delay_s in pairs.tolist():
        if line not in place:
            continue
        if place.get(on, len(lines)) < place[line]:
            kept.append((place[line], place[on], kind, delay_s))
            waits[place[line]] = True
            continue
        lacks[place[line]] = True
        if on < 0:
            unknown += 1
        else:
            missing.add((line, on))
    found, n_missing = list[Block](), len(missing) + unknown
    for block in blocks:
        own, on = (np.sort(_places(each, place)) for each in (block.line, block.on))
        own, on = own[own >= 0], on[on >= 0]
        # those in front of some of the others wait for the ones in front of them, and there are few
        n_before = np.searchsorted(on, own)
        n_missing += int((len(block.on) - n_before).sum())
        lacks[own[n_before < len(block.on)]] = True
        for count in np.unique(n_before[n_before > 0]).tolist():
            found.append(Block(own[n_before == count], on[:count], block.kind, block.delay_s))
            waits[own[n_before == count]] = True
    if not kept and not found:
        return None, n_missing, waits
    rows = np.array(kept, dtype=PAIR)
    return (
        Dependencies(rows["line"], rows["on"], rows["kind"], rows["delay_s"], blocks=tuple(found)),
        n_missing,
        waits & ~lacks,
    )


def _places(lines: Integers, place: Mapping[int, int]) -> Integers:
    """Return where lines are among the jobs; -1 of those that are left out."""
    return np.array([place.get(line, -1) for line in lines.tolist()], dtype=np.int64)
