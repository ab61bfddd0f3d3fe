"""Run what a store lacks of a study, on this machine or wherever a pool of workers is."""

from __future__ import annotations

import contextlib
import queue
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from typing import Any, Protocol

from gridsched.campaign.greater_budgets import least_budgets_first
from gridsched.campaign.kept_studies import check_programs, not_trusted
from gridsched.campaign.local_pool import LocalPool, usable_cpus
from gridsched.campaign.messages import ATTEMPTS, Answer, AnswerKind, WorkerConfig
from gridsched.campaign.row_table import FAILED, FINISHED
from gridsched.campaign.segments import Line, SegmentWriter, is_growing, read_segment
from gridsched.campaign.store import Store
from gridsched.errors import InputError, counted
from gridsched.files.output_files import temporary_folder
from gridsched.runs.study import Study, StudyRun

#: How often a listener receives the progress, and rows of other campaigns are looked for [s].
TICK_S = 0.5
#: A machine that cannot do a run is given so long to recover [s].
_PAUSE_S = 0.2
_CONTINUES = "Runs stored so far are safe; the same command continues once this is mended."


@dataclass(frozen=True)
class Options:
    """How a campaign is run.

    Attributes
    ----------
    workers : int or None
        Processes; None: one for each CPU.
    is_meant : callable or None
        Called with the axis values of a run; returns whether to do it.
    timeout_s : float or None
        Wall time after which a run is ended [s]; None: the study's.
    retry_failed : bool
        Do runs again that are stored as failed.
    records : bool
        Keep task and host records.
    """

    workers: int | None = None
    is_meant: Callable[[Mapping[str, Any]], bool] | None = None
    timeout_s: float | None = None
    retry_failed: bool = False
    records: bool = False


@dataclass
class Progress:
    """The progress of a campaign.

    Attributes
    ----------
    total : int
        Runs that the command asks for.
    found : int
        Of these, stored before it began, or since by another campaign.
    done, failed : int
        Runs that have ended since, and how many of them failed.
    followed : int
        Of those that have ended, how many were not made: `gridsched.campaign.greater_budgets`.
    running : int
    began : float
        Clock at the begin (`time.monotonic`) [s].
    damage : list of str
        What was found damaged in the store at the begin; its runs are repeated.
    """

    total: int = 0
    found: int = 0
    done: int = 0
    failed: int = 0
    followed: int = 0
    running: int = 0
    began: float = field(default_factory=time.monotonic)
    damage: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Runs that are still to be done."""
        return max(0, self.total - self.found - self.done)

    @property
    def elapsed_s(self) -> float:
        """Wall time since the begin [s]."""
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """Runs ended in a second."""
        return self.done / max(self.elapsed_s, 1e-9)

    @property
    def time_left_s(self) -> float | None:
        """Estimated wall time to the end [s]; None before the first run has ended."""
        return self.left / self.rate if self.done else None


@dataclass(frozen=True)
class Ended:
    """One run that has ended."""

    run: StudyRun
    status: str
    error: str | None


#: Called with the progress, and with the run that has just ended, if there is one.
Listener = Callable[[Progress, Ended | None], None]


class Pool(Protocol):
    """Workers that do runs: on this machine (`LocalPool`) or on a Dask cluster (`DaskPool`).

    Attributes
    ----------
    together : int
        Largest number of runs that one worker is given at once.
    """

    together: int

    @property
    def size(self) -> int:
        """Runs that are done at the same time."""

    def is_hungry(self) -> bool:
        """Whether another packet of runs should wait for the workers."""

    def send(self, packet: Sequence[StudyRun]) -> None:
        """Have runs done that share a platform and tasks."""

    def next(self, timeout_s: float) -> tuple[StudyRun, Answer]:
        """Return a run that has ended; raise `queue.Empty` if there is none in time."""


def run_campaign(
    study: Study, store: Store, options: Options | None = None, listen: Listener | None = None
) -> Progress:
    """Do all runs of a study that are not in the store yet, on this machine.

    Parameters
    ----------
    study : Study
    store : Store
    options : Options, optional
    listen : callable, optional
        Called for every run that ends, and at least twice a second.

    Returns
    -------
    Progress
        The state at the end.

    Raises
    ------
    InputError
        If a row cannot be kept, SimGrid is needed and not installed, or the machine has no room
        for workers.
    KeyboardInterrupt
        Passed on; runs that have ended are stored.
    """
    options = options or Options()
    timeout_s = study.timeout_s if options.timeout_s is None else options.timeout_s

    @contextlib.contextmanager
    def pool(number: int) -> Iterator[Pool]:
        inputs = {digest: path.resolve() for digest, path in store.inputs().items()}
        with temporary_folder() as folder:
            config = WorkerConfig(store.root.resolve(), inputs, folder, timeout_s, options.records)
            with LocalPool(min(options.workers or usable_cpus(), number), config) as pool:
                yield pool

    return coordinate_campaign(study, store, options, pool, listen)


def coordinate_campaign(
    study: Study,
    store: Store,
    options: Options,
    pool: Callable[[int], AbstractContextManager[Pool]],
    listen: Listener | None,
) -> Progress:
    """Do all runs of a study that are not in the store yet, in a pool made for their number.

    Raises
    ------
    NotTrusted
        If the store is not trusted, and a study that comes from it has policies, or any study has
        a scheduler that is another program.
    """
    if not study.is_imported:
        policies = [study.inputs[name] for name in study.document.content.policies]
        raise not_trusted("A study that the store keeps", policies)
    check_programs(f"Study {study.name!r}", study.programs(), trust=store.trust)
    segment = store.writer()
    try:
        store.add(study)
        others = (path for path in store.segments() if path != segment.path)
        plan = Plan(
            study, store, options.is_meant, retry_failed=options.retry_failed, is_first=not any(map(is_growing, others))
        )
        campaign = _Campaign(plan, segment, listen or (lambda progress, ended: None))
        if campaign.progress.left:
            with pool(campaign.progress.left) as workers:
                store.is_used = True
                campaign.run(workers)
    finally:
        segment.close()
    store.compact()
    campaign.check_all_done()
    return campaign.progress


class _Campaign:
    """Hands runs to a pool and takes note of what it answers."""

    def __init__(self, plan: Plan, segment: SegmentWriter, listen: Listener) -> None:
        self._plan, self._segment, self._listen = plan, segment, listen
        self.progress = Progress(plan.total, plan.found, damage=plan.damage)
        self._at_work: dict[str, StudyRun] = {}
        self._faults: Counter[str] = Counter()
        self._faulty_in_a_row: set[str] = set()
        self._not_done: list[str] = []
        listen(self.progress, None)

    def run(self, pool: Pool) -> None:
        """Run to the end."""
        next_tick = time.monotonic() + TICK_S
        self._feed(pool)
        while self._at_work:
            with contextlib.suppress(queue.Empty):
                self._hear(*pool.next(max(0.0, next_tick - time.monotonic())), pool)
            if time.monotonic() >= next_tick:
                self.progress.found += self._plan.look_at_others()
                self.progress.running = min(pool.size, len(self._at_work))
                self._listen(self.progress, None)
                next_tick = time.monotonic() + TICK_S
            self._feed(pool)
        self.progress.running = 0
        self._listen(self.progress, None)

    def _feed(self, pool: Pool) -> None:
        """Keep the workers busy, towards the end with small packets: none waits for another."""
        while pool.is_hungry():
            left = self.progress.left - len(self._at_work)
            packet = self._plan.next_packet(max(1, min(pool.together, left // (4 * pool.size))))
            if not packet:
                return
            self._at_work.update((run.run_id, run) for run in packet)
            pool.send(packet)

    def _hear(self, run: StudyRun, answer: Answer, pool: Pool) -> None:
        del self._at_work[run.run_id]
        if answer.kind is AnswerKind.FATAL:
            raise InputError(answer.error)
        if answer.kind is AnswerKind.FAULT:
            self._leave_undone(run, answer.error or "", pool)
            return
        self._faulty_in_a_row.clear()
        if answer.row is not None:
            self._segment.write(answer.row)
        self.progress.done += 1
        self.progress.failed += answer.status == FAILED
        self.progress.followed += answer.follows
        self._listen(self.progress, Ended(run, answer.status, answer.error))

    def _leave_undone(self, run: StudyRun, fault: str, pool: Pool) -> None:
        """Try a run again that the machine could not do; end where it can do none."""
        self._faulty_in_a_row.add(run.run_id)
        if len(self._faulty_in_a_row) >= ATTEMPTS * pool.size:
            raise InputError(f"No run can be done: {fault} {_CONTINUES}")
        self._faults[run.run_id] += 1
        if self._faults[run.run_id] < ATTEMPTS:
            self._plan.again(run)
        else:
            self._not_done.append(fault)
        time.sleep(_PAUSE_S)

    def check_all_done(self) -> None:
        """Raise `InputError` if the machine could not do some runs."""
        if self._not_done:
            raise InputError(
                f"{counted(len(self._not_done), 'run')} could not be done, the last one for: "
                f"{self._not_done[-1]} {_CONTINUES}"
            )


#: Longest series of runs that is kept on one worker, for the platform and tasks they share.
_SERIES = 64
#: So many runs of a replicate are put into order at a time.
_PLANNED_AHEAD = 4096


class Plan:
    """The runs that are still to be done, handed out in series that share a platform.

    Parameters
    ----------
    study : Study
    store : Store
    is_meant : callable or None
        Called with the axis values of a run; returns whether to do it.
    retry_failed : bool
        Whether runs are to do that are stored as failed.
    is_first : bool
        Whether no other campaign works on this store; the others begin elsewhere, so that
        campaigns that run side by side meet rarely.
    """

    def __init__(
        self,
        study: Study,
        store: Store,
        is_meant: Callable[[Mapping[str, Any]], bool] | None = None,
        *,
        retry_failed: bool = False,
        is_first: bool = True,
    ) -> None:
        self._store = store
        stored = store.stored()
        self.damage = list(store.damage)
        done = {FINISHED} if retry_failed else {FINISHED, FAILED}
        self._known = {run_id for run_id, status in stored.items() if status in done}
        self._offsets = {path: path.stat().st_size for path in store.segments() if path.exists()}
        self._planned = {run.run_id for run in study.scenarios(is_meant)}
        self.total = len(self._planned)
        self.found = len(self._planned & self._known)
        begin = 0 if is_first else random.randrange(max(1, self.total))
        runs = study.scenarios(is_meant)
        if begin:
            runs = chain(islice(study.scenarios(is_meant), begin, None), islice(runs, begin))
        self._all = _series(runs)
        self._series: deque[StudyRun] = deque()
        self._again: deque[StudyRun] = deque()

    def next_packet(self, most: int) -> list[StudyRun]:
        """Return at most so many runs that share platform and tasks; none at the end."""
        packet: list[StudyRun] = []
        while not packet:
            self._series.extend(() if self._series else next(self._all, ()))
            if not self._series:
                return [self._again.popleft()] if self._again else []
            while self._series and len(packet) < most:
                run = self._series.popleft()
                if run.run_id not in self._known:
                    self._known.add(run.run_id)
                    packet.append(run)
        return packet

    def again(self, run: StudyRun) -> None:
        """Put a run back; it is done after all others."""
        self._again.append(run)

    def look_at_others(self) -> int:
        """Take note of what others have stored since; return how many runs less that leaves us."""
        number = 0
        for path in self._store.segments():
            for line, end in read_segment(path, self._offsets.get(path, 0)):
                if isinstance(line, Line):
                    self._offsets[path] = end
                    if line.run_id not in self._known:  # our own were noted when handed out
                        self._known.add(line.run_id)
                        number += line.run_id in self._planned
        return number


def _series(runs: Iterator[StudyRun]) -> Iterator[list[StudyRun]]:
    """Cut runs into series of one platform and replicate, none longer than `_SERIES`; the least budgets come first."""

    def shared(run: StudyRun) -> tuple[Any, int]:
        return run.spec.platform, run.spec.replicate

    for _, group in groupby(runs, key=shared):
        while part := least_budgets_first(islice(group, _PLANNED_AHEAD)):
            for begin in range(0, len(part), _SERIES):
                yield part[begin : begin + _SERIES]
