"""Run what a store lacks of a study, on this machine or on a Dask cluster."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import selectors
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

from gridsched.campaign.local_workers import (
    LocalWorker,
    Workers,
    temporary_folder,
    usable_cpus,
)
from gridsched.campaign.row_table import FAILED, FINISHED
from gridsched.campaign.segments import Line, SegmentWriter, read_segment
from gridsched.campaign.store import Store
from gridsched.campaign.worker import ATTEMPTS, Job, Orders, failed_row
from gridsched.errors import InputError
from gridsched.spec.study import Study, StudyRun

#: Each worker has one run at work and one waiting, so that it never waits for us.
_PER_WORKER = 2
#: Longest series of runs that is kept on one worker, for the platform and tasks they share.
_SERIES = 64
#: How often a listener is told of the progress, and other campaigns' rows are looked at [s].
TICK_S = 0.5
_GRACE_S = 3.0


@dataclass(frozen=True)
class Options:
    """How a campaign is run.

    Attributes
    ----------
    workers : int or None
        Processes; None: one for each CPU.
    is_meant : callable or None
        Told the axis values of a run; says whether to do it.
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
    """Where a campaign stands.

    Attributes
    ----------
    total : int
        Runs that the command asks for.
    found : int
        Of these, stored before it began, or since by another campaign.
    done, failed : int
        Runs that have ended since, and how many of them failed.
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


#: Told the progress, and the run that has just ended, if it is one.
Listener = Callable[[Progress, Ended | None], None]


class Plan:
    """The runs that are still to be done, handed out in series that share a platform.

    Parameters
    ----------
    study : Study
    store : Store
    options : Options
    is_first : bool
        Whether no other campaign leads on this store; the others begin elsewhere, so that
        campaigns that run side by side meet rarely.
    """

    def __init__(self, study: Study, store: Store, options: Options, *, is_first: bool) -> None:
        self._store = store
        stored = store.stored()
        self.damage = list(store.damage)
        done = {FINISHED} if options.retry_failed else {FINISHED, FAILED}
        self._known = {run_id for run_id, status in stored.items() if status in done}
        self._offsets = {path: path.stat().st_size for path in store.segments() if path.exists()}
        self._planned = {run.run_id for run in study.scenarios(options.is_meant)}
        self.total = len(self._planned)
        self.found = len(self._planned & self._known)
        begin = 0 if is_first else random.randrange(max(1, self.total))
        runs = study.scenarios(options.is_meant)
        if begin:
            runs = chain(
                islice(study.scenarios(options.is_meant), begin, None), islice(runs, begin)
            )
        self._series = _series(runs)
        self._again: deque[StudyRun] = deque()

    def next_series(self) -> deque[StudyRun]:
        """Return the next runs, empty at the end."""
        if self._again:
            return deque([self._again.popleft()])
        for runs in self._series:
            todo = deque(run for run in runs if run.run_id not in self._known)
            if todo:
                self._known.update(run.run_id for run in todo)
                return todo
        return deque()

    def again(self, run: StudyRun) -> None:
        """Put a run back."""
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
    """Cut runs into series of one platform and replicate, none longer than `_SERIES`."""

    def shared(run: StudyRun) -> str:
        return run.canonical[: run.canonical.index(',"scheduler":')]

    for _, group in groupby(runs, key=shared):
        while part := list(islice(group, _SERIES)):
            yield part


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
        Told of every run that ends, and at least twice a second.

    Returns
    -------
    Progress
        As it stands at the end.

    Raises
    ------
    InputError
        If a row cannot be kept, or SimGrid is needed and not installed.
    KeyboardInterrupt
        Passed on; runs that have ended are stored.
    """
    options = options or Options()
    if options.timeout_s is None:
        options = replace(options, timeout_s=study.timeout_s)
    with lead(store) as is_first:
        store.add(study)
        plan = Plan(study, store, options, is_first=is_first)
        progress = _LocalCampaign(plan, store, options, listen or silent).run()
    store.compact()
    return progress


def silent(_progress: Progress, _ended: Ended | None) -> None:
    """Listen without a word."""


@contextlib.contextmanager
def lead(store: Store) -> Iterator[bool]:
    """Say whether this is the first campaign on the store; it stays so within the context.

    Raises
    ------
    InputError
        If the store cannot be written.
    """
    path = store.root / "campaign.lock"
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}.") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_first = True
    except OSError:
        is_first = False
    try:
        yield is_first
    finally:
        os.close(file)


class _LocalCampaign:
    """Hands runs to worker processes and takes note of what they answer."""

    def __init__(self, plan: Plan, store: Store, options: Options, listen: Listener) -> None:
        self._plan, self._store, self._options = plan, store, options
        self._listen = listen
        self._progress = Progress(plan.total, plan.found, damage=plan.damage)
        self._queues: dict[LocalWorker, deque[StudyRun]] = {}
        self._losses: Counter[str] = Counter()
        self._own: SegmentWriter | None = None
        self._selector = selectors.DefaultSelector()

    def run(self) -> Progress:
        """Run to the end."""
        progress = self._progress
        self._listen(progress, None)
        if not progress.left:
            return progress
        number = min(self._options.workers or usable_cpus(), progress.left)
        with temporary_folder() as folder:
            orders = Orders(
                self._store.root.resolve(), _absolute(self._store.inputs()), Path(folder),
                self._options.timeout_s, self._options.records,
            )  # fmt: skip
            workers = Workers(number, orders)
            grace_s: float | None = _GRACE_S
            try:
                for worker in workers.all:
                    self._welcome(worker)
                self._loop(workers)
                grace_s = None
            finally:
                workers.end(grace_s)
                self._selector.close()
                if self._own is not None:
                    self._own.close()
        return progress

    def _welcome(self, worker: LocalWorker) -> None:
        self._selector.register(worker.fileno(), selectors.EVENT_READ, worker)
        self._queues[worker] = deque()
        self._feed(worker)

    def _loop(self, workers: Workers) -> None:
        next_tick = time.monotonic() + TICK_S
        while any(worker.pending for worker in workers.all):
            for key, _ in self._selector.select(max(0.0, next_tick - time.monotonic())):
                self._hear(workers, key.data)
            self._progress.running = sum(bool(worker.pending) for worker in workers.all)
            if time.monotonic() >= next_tick:
                self._progress.found += self._plan.look_at_others()
                self._listen(self._progress, None)
                next_tick = time.monotonic() + TICK_S
        self._progress.running = 0
        self._listen(self._progress, None)

    def _hear(self, workers: Workers, worker: LocalWorker) -> None:
        answer = worker.answer()
        if answer is None:
            self._lost(workers, worker)
        elif answer.fatal is not None:
            raise InputError(answer.fatal)
        elif answer.run_id:
            run = worker.pending.popleft()
            self._ended(Ended(run, answer.status, answer.error))
            self._feed(worker)

    def _feed(self, worker: LocalWorker) -> None:
        """See to it that a worker has enough to do; at the end it helps the others."""
        queue = self._queues[worker]
        while len(worker.pending) < _PER_WORKER:
            if not queue:
                queue.extend(self._plan.next_series())
            if not queue:
                longest = max(self._queues.values(), key=len)
                if not longest:
                    return
                queue.append(longest.pop())
            worker.give(queue.popleft())

    def _ended(self, ended: Ended) -> None:
        self._progress.done += 1
        if ended.status == FAILED:
            self._progress.failed += 1
        self._listen(self._progress, ended)

    def _lost(self, workers: Workers, worker: LocalWorker) -> None:
        """Replace a worker that has died; its runs are done again, unless one kills them all."""
        self._selector.unregister(worker.fileno())
        left = [*worker.pending, *self._queues.pop(worker)]
        was_ready = worker.is_ready
        other, how = workers.replace(worker)
        if was_ready and left:
            self._losses[left[0].run_id] += 1
            if self._losses[left[0].run_id] >= ATTEMPTS:
                self._give_up(left.pop(0), how)
        for run in left:
            self._plan.again(run)
        self._welcome(other)

    def _give_up(self, run: StudyRun, how: str) -> None:
        error = f"its worker process died {ATTEMPTS} times, the last time by {how}."
        if self._own is None:
            self._own = self._store.writer()
        self._own.write(failed_row(Job(run.run_id, run.scenario), error))
        self._ended(Ended(run, FAILED, error))


def _absolute(files: Mapping[str, Path]) -> dict[str, Path]:
    return {digest: path.resolve() for digest, path in files.items()}
