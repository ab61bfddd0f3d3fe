"""The same campaign on an existing Dask cluster.

The cluster's workers do the runs, each in worker processes of its own as on this machine; this
process writes every row. A worker may die at any time: Dask gives its runs to another.
"""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gridsched import __version__
from gridsched.campaign.campaign import (
    TICK_S,
    Ended,
    Listener,
    Options,
    Plan,
    Progress,
    lead,
    silent,
)
from gridsched.campaign.local_workers import LocalWorker, temporary_folder
from gridsched.campaign.segments import SegmentWriter
from gridsched.campaign.store import Store
from gridsched.campaign.worker import ATTEMPTS, Job, Orders, failed_row, versions
from gridsched.errors import InputError, MissingDependency
from gridsched.spec.canonical import RESULTS_VERSION
from gridsched.spec.study import Study, StudyRun

#: Runs that are sent together, because they share a platform and tasks.
_TOGETHER = 8
#: So many packets wait for each thread of the cluster.
_PER_THREAD = 3
_CONNECT_S = 15


def run_dask_campaign(
    study: Study,
    store: Store,
    address: str,
    options: Options | None = None,
    listen: Listener | None = None,
) -> Progress:
    """Do all runs of a study that are not in the store yet, on a Dask cluster.

    Parameters
    ----------
    study : Study
    store : Store
    address : str
        Of the Dask scheduler, as ``tcp://host:8786``.
    options : Options, optional
        `Options.records` is not possible here.
    listen : callable, optional
        As for `run_campaign`.

    Raises
    ------
    InputError
        If the cluster cannot be reached or has another gridsched, or a row cannot be kept.
    """
    options = options or Options()
    if options.records:
        raise InputError("--records keeps files on this machine; it does not go with --dask.")
    client = _connect(address)
    try:
        _check_versions(client)
        with lead(store) as is_first:
            store.add(study)
            plan = Plan(study, store, options, is_first=is_first)
            timeout_s = options.timeout_s or study.timeout_s
            campaign = _DaskCampaign(client, plan, store, timeout_s, listen or silent)
            progress = campaign.run()
    finally:
        client.close(timeout=5)
    store.compact()
    return progress


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise MissingDependency(
            "--dask needs Dask; install it: pip install 'gridsched[cluster]'."
        ) from None
    try:
        return Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"--dask {address}: no Dask scheduler answers: {' '.join(str(error).split())}."
        ) from None


def _check_versions(client: Any) -> None:
    """Refuse a cluster whose workers would give other results."""
    mine = (__version__, RESULTS_VERSION)
    try:
        theirs = client.run(worker_versions, on_error="return")
    except ImportError as error:
        theirs = {"a worker": error}
    for name, found in theirs.items():
        if isinstance(found, BaseException):
            raise InputError(
                f"Dask worker {name}: gridsched {__version__} cannot be used there: {found}."
            )
        if (found["gridsched"], found["results_version"]) != mine:
            raise InputError(
                f"Dask worker {name}: has gridsched {found['gridsched']}, this is {__version__}; "
                "install the same version everywhere."
            )


def worker_versions() -> dict[str, Any]:
    """Return the versions on a worker of the cluster."""
    return versions()


class _DaskCampaign:
    def __init__(
        self, client: Any, plan: Plan, store: Store, timeout_s: float | None, listen: Listener
    ) -> None:
        self._client, self._plan, self._listen = client, plan, listen
        self._timeout_s = timeout_s
        self._progress = Progress(plan.total, plan.found, damage=plan.damage)
        self._segment = SegmentWriter(store.root / "segments")
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._sent: dict[str, tuple[Any, list[StudyRun]]] = {}
        self._todo: deque[StudyRun] = deque()
        self._alone: deque[StudyRun] = deque()
        self._inputs = client.submit(
            _unchanged, {digest: (path.name, path.read_bytes())
                         for digest, path in store.inputs().items()},
            pure=False,
        )  # fmt: skip  # a computed value survives the loss of the worker that held it

    def run(self) -> Progress:
        """Run to the end."""
        try:
            self._loop()
        finally:
            self._client.cancel([future for future, _ in self._sent.values()], force=True)
            self._segment.close()
        return self._progress

    def _loop(self) -> None:
        next_tick = time.monotonic()
        self._send()
        while self._sent:
            try:
                self._hear(self._ended.get(timeout=max(0.0, next_tick - time.monotonic())))
            except queue.Empty:
                self._progress.found += self._plan.look_at_others()
                self._progress.running = min(self._threads(), len(self._sent))
                self._listen(self._progress, None)
                next_tick = time.monotonic() + TICK_S
            self._send()
        self._progress.running = 0
        self._listen(self._progress, None)

    def _threads(self) -> int:
        return sum(self._client.nthreads().values())

    def _send(self) -> None:
        while len(self._sent) < _PER_THREAD * max(1, self._n_threads()):
            runs = self._next_packet()
            if not runs:
                return
            jobs = [Job(run.run_id, run.scenario) for run in runs]
            future = self._client.submit(
                do_runs, jobs, self._inputs, self._timeout_s, pure=False, retries=0
            )
            self._sent[future.key] = future, runs
            future.add_done_callback(self._ended.put)

    def _n_threads(self) -> int:
        """Threads of the cluster; asked for at most once a tick."""
        now = time.monotonic()
        if now - getattr(self, "_asked", -1e9) > TICK_S:
            self._asked, self._known_threads = now, self._threads()
        return self._known_threads

    def _next_packet(self) -> list[StudyRun]:
        if self._alone:
            return [self._alone.popleft()]
        if not self._todo:
            self._todo.extend(self._plan.next_series())
        return [self._todo.popleft() for _ in range(min(_TOGETHER, len(self._todo)))]

    def _hear(self, future: Any) -> None:
        _, runs = self._sent.pop(future.key)
        if future.status == "finished":
            for run, row in zip(runs, future.result(), strict=True):
                self._keep(run, row)
        elif len(runs) > 1:  # one of them may kill its worker: find out which
            self._alone.extend(runs)
        else:
            error = f"its Dask workers died again and again: {future.exception()}"
            if future.status == "cancelled":
                error = "the Dask cluster has cancelled it."
            job = Job(runs[0].run_id, runs[0].scenario)
            self._keep(runs[0], failed_row(job, " ".join(error.split())))

    def _keep(self, run: StudyRun, row: Mapping[str, Any]) -> None:
        if row.get("fatal"):
            raise InputError(row["fatal"])
        self._segment.write(row)
        self._progress.done += 1
        if row["status"] == "failed":
            self._progress.failed += 1
        self._listen(self._progress, Ended(run, row["status"], row["error"]))


def _unchanged(value: Any) -> Any:
    return value


# ---------------------------------------------------------------------- on the cluster

_of_thread = threading.local()


def do_runs(
    jobs: Sequence[Job], inputs: Mapping[str, tuple[str, bytes]], timeout_s: float | None
) -> list[dict[str, Any]]:
    """Do runs on a worker of the cluster; return their rows.

    Each thread of the worker has a process of its own for them, which outlives the call.
    """
    return [_do(job, inputs, timeout_s) for job in jobs]


def _do(
    job: Job, inputs: Mapping[str, tuple[str, bytes]], timeout_s: float | None
) -> dict[str, Any]:
    how = ""
    for _ in range(ATTEMPTS):
        worker = _worker(inputs, timeout_s)
        worker.send(job)
        answer = worker.answer()
        if answer is not None and answer.fatal is not None:
            return {"fatal": answer.fatal}
        if answer is not None:
            return answer.row
        how = worker.end()
        _of_thread.worker = None
    return failed_row(job, f"its worker process died {ATTEMPTS} times, the last time by {how}.")


def _worker(inputs: Mapping[str, tuple[str, bytes]], timeout_s: float | None) -> LocalWorker:
    """Return this thread's worker process, started where there is none that fits."""
    wanted = (frozenset(inputs), timeout_s)
    worker = getattr(_of_thread, "worker", None)
    if worker is not None and _of_thread.fits == wanted:
        return worker
    if worker is not None:
        worker.end()
    folder = temporary_folder()
    paths = {}
    for digest, (name, content) in inputs.items():
        path = Path(folder.name) / "inputs" / digest / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        paths[digest] = path
    worker = LocalWorker(Orders(None, paths, Path(folder.name), timeout_s), 0)
    worker.answer()  # it reports ready
    atexit.register(worker.end, 1.0)
    _of_thread.worker, _of_thread.fits, _of_thread.folder = worker, wanted, folder
    return worker
