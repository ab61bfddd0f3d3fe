"""Worker processes on this machine, seen from the process that leads the campaign."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections import deque
from dataclasses import replace

from gridsched.campaign.worker import Answer, Job, Orders
from gridsched.errors import SimulationError
from gridsched.sim import wire
from gridsched.spec.study import StudyRun


class LocalWorker:
    """A worker process with the runs it has been given.

    Attributes
    ----------
    pending : deque of StudyRun
        Runs sent and not yet answered; the first one is running.
    is_ready : bool
        Whether it has reported.
    """

    def __init__(self, orders: Orders, number: int) -> None:
        start = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            "from gridsched.campaign.worker import main; main()"
        )
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the worker
        self._process = subprocess.Popen(
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            process_group=0,  # Ctrl-C is the leading process's to handle
        )  # fmt: skip
        self.pending: deque[StudyRun] = deque()
        self.is_ready = False
        orders = replace(orders, folder=orders.folder / f"worker{number}")
        with contextlib.suppress(BrokenPipeError):
            wire.send(self._process.stdin.fileno(), pickle.dumps(orders))

    def fileno(self) -> int:
        """Return the descriptor on which its answers come."""
        return self._process.stdout.fileno()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def give(self, run: StudyRun) -> None:
        """Send it a run, and remember that."""
        self.pending.append(run)
        self.send(Job(run.run_id, run.scenario))

    def send(self, job: Job) -> None:
        """Send it a job."""
        message = pickle.dumps(job)
        with contextlib.suppress(BrokenPipeError):  # its end is noticed where it is read
            wire.send(self._process.stdin.fileno(), message)

    def answer(self) -> Answer | None:
        """Read what it says: an answer, an empty one when it reports ready, None at its end."""
        message = wire.receive(self.fileno())
        if message is None:
            return None
        if not self.is_ready and message == b"ready":
            self.is_ready = True
            return Answer()
        return pickle.loads(message)

    def dismiss(self) -> None:
        """Tell it that no more runs will come."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def end(self, timeout_s: float | None = None) -> str:
        """Wait for its end, kill it after `timeout_s`; say how it ended."""
        self.dismiss()
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self._process.wait()
        self._process.stdout.close()
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - 4096))
        said = self._log.read().decode(errors="replace").strip().splitlines()
        self._log.close()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"{how}{f': {said[-1]}' if said and status > 0 else ''}"


class Workers:
    """The workers of a campaign; those that die are replaced."""

    def __init__(self, number: int, orders: Orders) -> None:
        self._orders = orders
        self._made = 0
        self._failed_starts = 0
        self.all: list[LocalWorker] = []
        for _ in range(number):
            self._add()

    def _add(self) -> LocalWorker:
        self._made += 1
        worker = LocalWorker(self._orders, self._made)
        self.all.append(worker)
        return worker

    def replace(self, worker: LocalWorker) -> tuple[LocalWorker, str]:
        """Start another one for a worker that has ended; return it and how the old one ended.

        Raises
        ------
        SimulationError
            If workers do not even start.
        """
        self.all.remove(worker)
        how = worker.end()
        self._failed_starts = 0 if worker.is_ready else self._failed_starts + 1
        if self._failed_starts >= 3:
            raise SimulationError(f"Worker processes do not start: {how}.")
        return self._add(), how

    def end(self, timeout_s: float | None = None) -> None:
        """End all of them; those that take longer than `timeout_s` are killed."""
        for worker in self.all:
            worker.dismiss()
        for worker in self.all:
            worker.end(timeout_s)
        self.all.clear()


def usable_cpus() -> int:
    """Return the number of CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def temporary_folder() -> tempfile.TemporaryDirectory:
    """Return a folder for the workers' temporary files; it goes with the campaign."""
    return tempfile.TemporaryDirectory(prefix="gridsched-campaign-", ignore_cleanup_errors=True)
