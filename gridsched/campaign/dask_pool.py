"""The same campaign on an existing Dask cluster.

The cluster's workers do the runs, each in worker processes of its own as on this machine; this
process writes every row. A worker may die at any time: Dask gives its runs to another. Where the
scheduler is started again, all that it was asked for is sent again.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from gridsched.campaign.campaign import Listener, Options, Progress, coordinate_campaign
from gridsched.campaign.local_pool import JobExecutor
from gridsched.campaign.messages import ATTEMPTS, Answer, Job, WorkerConfig, ended_row, versions
from gridsched.campaign.store import Store
from gridsched.errors import InputError
from gridsched.extras import load
from gridsched.files.output_files import temporary_folder
from gridsched.runs.run_spec import RESULTS_VERSION
from gridsched.runs.study import Study, StudyRun
from gridsched.version import __version__

#: So many packets wait for each thread of the cluster.
_PER_THREAD = 3
#: A scheduler may take so long to answer [s].
_CONNECT_S = 15.0
#: How long a scheduler or workers may be missing before this is reported, and by default at all [s].
_REPORTED_AFTER_S = 30.0
DEFAULT_WAIT_S = 600.0
#: The number of threads is asked for at most so often [s].
_ASK_S = 0.5


class Patience:
    """Waits for a cluster that does not respond at the moment: reports this once, then gives up.

    Parameters
    ----------
    limit_s : float
        Time without a scheduler, or without workers, after which it is an error [s].
    report : callable
        Called with one line when it waits.

    Attributes
    ----------
    rest_s : float
        After this time `wait` has something to report, or raises [s].
    """

    def __init__(self, limit_s: float, report: Callable[[str], None]) -> None:
        self._limit_s, self._report = limit_s, report
        self._reported_after_s = min(_REPORTED_AFTER_S, limit_s / 2)
        self.end()

    def end(self) -> None:
        """Forget the waiting: the cluster is there."""
        self._since: float | None = None
        self._is_reported = False
        self.rest_s = self._reported_after_s

    def wait(self, what: str) -> None:
        """Take note that something is missing.

        Raises
        ------
        InputError
            If that has lasted too long.
        """
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        waited_s = now - self._since
        if waited_s >= self._limit_s:
            raise InputError(
                f"{what} for {self._limit_s:g} s (--dask-wait-s). Runs stored so far are safe; the same command "
                "continues."
            )
        if waited_s >= self._reported_after_s and not self._is_reported:
            self._report(f"{what} for {waited_s:.0f} s; waiting up to {self._limit_s:g} s (--dask-wait-s)")
            self._is_reported = True
        self.rest_s = (self._limit_s if self._is_reported else self._reported_after_s) - waited_s


def run_dask_campaign(
    study: Study,
    store: Store,
    address: str,
    options: Options | None = None,
    listen: Listener | None = None,
    *,
    wait_s: float = DEFAULT_WAIT_S,
    report: Callable[[str], None] = lambda what: None,
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
    wait_s : float
        How long the cluster may be without a scheduler, or without workers [s].
    report : callable, optional
        Called with one line when it waits for one of them.

    Raises
    ------
    InputError
        If the cluster cannot be reached, has no scheduler or no worker for too long, again and
        again loses its scheduler, or has another gridsched, or a row cannot be kept.
    """
    options = options or Options()
    if options.records:
        raise InputError("--records keeps files on this machine; it does not go with --dask.")
    timeout_s = study.timeout_s if options.timeout_s is None else options.timeout_s

    patience = Patience(wait_s, report)
    return coordinate_campaign(
        study, store, options, lambda number: DaskPool(address, store.inputs(), timeout_s, patience), listen
    )


def _connect(address: str, timeout_s: float) -> Any:
    distributed = load("distributed", "Runs on Dask (--dask)")
    if address.startswith("tls:") and not distributed.Security().get_connection_args("client").get("ssl_context"):
        raise InputError(
            f"--dask {address}: Dask's configuration names no certificate of this client; set "
            "distributed.comm.tls.ca-file, .client.cert and .client.key (docs/clusters.md)."
        )
    # one line of ours replaces its own reports of a missing scheduler
    for name in [each for each in logging.root.manager.loggerDict if each.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        return distributed.Client(address, timeout=timeout_s, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"--dask {address}: no Dask scheduler answers: {' '.join(str(error).split())}.") from None


def _reconnected(address: str, patience: Patience) -> Any:
    """Return a client of a scheduler that may be about to start again."""
    while True:
        patience.wait(f"--dask {address}: no Dask scheduler answers")
        next_s = time.monotonic() + min(1.0, patience.rest_s)
        try:
            client = _connect(address, min(_CONNECT_S, patience.rest_s))
        except InputError:  # it may have refused at once
            time.sleep(max(0.0, next_s - time.monotonic()))
        else:
            patience.end()
            return client


def _check_versions(client: Any) -> None:
    """Refuse a cluster whose workers would give other results."""
    mine = (__version__, RESULTS_VERSION)
    try:
        theirs = client.run(versions, on_error="return")
    except ImportError as error:
        theirs = {"a worker": error}
    for name, found in theirs.items():
        if isinstance(found, BaseException):
            raise InputError(f"Dask worker {name}: gridsched {__version__} cannot be used there: {found}.")
        if (found["gridsched"], found["results_version"]) != mine:
            raise InputError(
                f"Dask worker {name}: has gridsched {found['gridsched']}, this is {__version__}; "
                "install the same version everywhere."
            )


class DaskPool:
    """A Dask cluster; see `gridsched.campaign.campaign.Pool`.

    Parameters
    ----------
    address : str
    inputs : mapping
        SHA-256 -> file.
    timeout_s : float or None
    patience : Patience

    Raises
    ------
    InputError
        If the cluster cannot be reached or has another gridsched.
    """

    together = 8

    def __init__(self, address: str, inputs: Mapping[str, Path], timeout_s: float | None, patience: Patience) -> None:
        self._address, self._timeout_s, self._patience = address, timeout_s, patience
        self._contents = {digest: (path.name, path.read_bytes()) for digest, path in inputs.items()}
        self._ended: deque[tuple[StudyRun, Answer]] = deque()
        self._restarts = 0
        self._begin(_connect(address, _CONNECT_S))

    def _begin(self, client: Any) -> None:
        self._client = client
        _check_versions(client)
        self._futures: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._sent: dict[str, tuple[Any, Sequence[StudyRun]]] = {}
        self._asked_at = -_ASK_S
        self._inputs = client.submit(_unchanged, self._contents, pure=False)
        # a computed value survives the loss of the worker that held it

    def __enter__(self) -> DaskPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client.status == "closed":  # its scheduler is gone
            return
        self._client.cancel([future for future, _ in self._sent.values()], force=True)
        self._client.close(timeout=5)

    @property
    def size(self) -> int:
        """Threads of the cluster."""
        if time.monotonic() - self._asked_at >= _ASK_S:
            try:
                threads = sum(self._client.nthreads().values())
            except (OSError, TimeoutError):
                self._begin_again()
                return self.size
            if threads:
                self._patience.end()
            else:
                self._patience.wait(f"--dask {self._address}: the cluster has no worker")
            self._threads = max(1, threads)
            self._asked_at = time.monotonic()
        return self._threads

    def is_hungry(self) -> bool:
        """Whether another packet of runs should wait for the workers."""
        return len(self._sent) < _PER_THREAD * self.size

    def send(self, packet: Sequence[StudyRun]) -> None:
        """Have runs done by one worker."""
        jobs = [Job(run.run_id, run.scenario, run.policies) for run in packet]
        future = self._client.submit(do_runs, jobs, self._inputs, self._timeout_s, pure=False, retries=0)
        self._sent[future.key] = future, packet
        future.add_done_callback(self._futures.put)

    def next(self, timeout_s: float) -> tuple[StudyRun, Answer]:
        """Return a run that has ended; raise `queue.Empty` if there is none in time."""
        if not self._ended:
            self._take(self._futures.get(timeout=timeout_s))
        if not self._ended:
            raise queue.Empty
        return self._ended.popleft()

    def _take(self, future: Any) -> None:
        if future.status in ("cancelled", "lost"):
            self._begin_again()
            return
        _, packet = self._sent.pop(future.key)
        if future.status == "finished":
            try:
                answers = future.result()
            except (OSError, TimeoutError, CancelledError):  # the scheduler is gone meanwhile
                self._sent[future.key] = future, packet
                self._begin_again()
                return
            self._restarts = 0
            self._ended.extend(zip(packet, answers, strict=True))
        elif len(packet) > 1:  # one of them may kill its worker: find out which
            for run in packet:
                self.send([run])
        else:
            error = f"its Dask workers died again and again: {future.exception()}"
            row = ended_row(Job(packet[0].run_id, packet[0].scenario), error=error)
            self._ended.append((packet[0], Answer.of(row)))

    def _begin_again(self) -> None:
        """Ask the scheduler, which was started again, for all that it has not answered."""
        self._restarts += 1
        if self._restarts > ATTEMPTS:
            raise InputError(
                f"--dask {self._address}: the scheduler was lost {self._restarts} times and no "
                "run came to its end. Runs stored so far are safe; the same command continues."
            )
        packets = [packet for _, packet in self._sent.values()]
        self._client.close(timeout=5)
        self._begin(_reconnected(self._address, self._patience))
        for packet in packets:
            self.send(packet)


def _unchanged(value: Any) -> Any:
    return value


_of_thread = threading.local()


def do_runs(jobs: Sequence[Job], inputs: Mapping[str, tuple[str, bytes]], timeout_s: float | None) -> list[Answer]:
    """Do runs on a worker of the cluster; return their answers.

    Each thread of the worker has a process of its own for them, which outlives the call.
    """
    executor = _executor(inputs, timeout_s)
    return [executor.do(job) for job in jobs]


def _executor(inputs: Mapping[str, tuple[str, bytes]], timeout_s: float | None) -> JobExecutor:
    """Return this thread's executor, made where there is none that fits."""
    wanted = (frozenset(inputs), timeout_s)
    executor = getattr(_of_thread, "executor", None)
    if executor is not None and _of_thread.fits == wanted:
        return executor
    if executor is not None:
        executor.end()
        _of_thread.folder.close()
    _of_thread.folder = contextlib.ExitStack()
    folder = _of_thread.folder.enter_context(temporary_folder())
    paths = {}
    for digest, (name, content) in inputs.items():
        path = folder / "inputs" / digest / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        paths[digest] = path
    executor = JobExecutor(WorkerConfig(None, paths, folder, timeout_s))
    atexit.register(executor.end, 1.0)
    _of_thread.executor, _of_thread.fits = executor, wanted
    return executor
