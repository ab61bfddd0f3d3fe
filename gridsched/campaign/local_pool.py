"""Worker processes on this machine, seen from the process that starts them."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from gridsched.campaign.messages import ATTEMPTS, Answer, Job, Orders, Said, failed_row
from gridsched.errors import EnvironmentFault, InputError
from gridsched.sim import wire
from gridsched.sim.process_log import ProcessLog
from gridsched.spec.study import StudyRun

#: A worker that is replaced may take so long to put its rows on the disk [s].
_CLOSING_S = 60.0
#: Variable of the environment that tells whose child a process is.
_MARK = "GRIDSCHED_WORKER"
_START = "import sys; sys.path[:] = {path!r}; from gridsched.campaign.worker import main; main()"


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # Popen was told to make it
    return stream


class WorkerProcess:
    """A process that does one job after the other.

    What policies have started in it ends with it: it has the worker's mark in its environment.

    Raises
    ------
    EnvironmentFault
        If it cannot be made, or ends before it has said a word.
    """

    def __init__(self, orders: Orders) -> None:
        self._timeout_s = orders.timeout_s
        self._mark = secrets.token_hex(16)
        self._is_garbled = False
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(path=sys.path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                process_group=0,  # Ctrl-C is the leading process's to handle
                env={**os.environ, _MARK: self._mark},
            )  # fmt: skip
            self._ended = os.pidfd_open(self._process.pid)
        except OSError as error:
            raise EnvironmentFault(f"A worker process cannot be made: {error.strerror}.") from None
        self._stdin = _pipe(self._process.stdin)
        self._stdout = _pipe(self._process.stdout)
        self._stderr = _pipe(self._process.stderr)
        os.set_blocking(self._stderr.fileno(), False)
        self._log = ProcessLog()
        self._send(orders)
        if self._receive(None) is None:
            raise EnvironmentFault(f"A worker process did not start: {self.end()}.")

    def _send(self, message: object) -> None:
        with contextlib.suppress(BrokenPipeError):  # its end is noticed where it is read
            wire.send(self._stdin.fileno(), pickle.dumps(message))

    def _receive(self, deadline: float | None) -> Answer | None:
        """Return what it says next, None at its end.

        Raises
        ------
        TimeoutError
            If it says nothing until the deadline.
        """
        answers = self._stdout.fileno()
        if answers not in self._await(deadline, answers, self._ended):
            return None  # what it has started may hold its pipes open
        try:
            message = wire.receive(answers, deadline, self._ended)
        except wire.Garbled:
            self._is_garbled = True
            return None
        return None if message is None else pickle.loads(message)

    def _await(self, deadline: float | None, *sources: int) -> set[int]:
        """Wait until a source can be read, taking what the worker prints; return what can be.

        Raises
        ------
        TimeoutError
            If none can until the deadline.
        """
        said = self._stderr.fileno()
        poll = select.poll()
        for source in (*sources, said):
            poll.register(source, select.POLLIN)
        while True:
            ready = wire.readable(poll, deadline)
            if said in ready and not self._hear():
                poll.unregister(said)
            if not ready.isdisjoint(sources):
                return ready
            if not ready or (deadline is not None and time.monotonic() >= deadline):
                raise TimeoutError

    def _hear(self) -> bool:
        """Take what the worker has printed; return whether there may be more."""
        part = os.read(self._stderr.fileno(), 1 << 20)
        self._log.add(part)
        return bool(part)

    def do(self, job: Job) -> Answer | None:
        """Have a job done; None if the process ends over it.

        A run that exceeds its time-out is ended with this process.
        """
        began, deadline = time.monotonic(), None
        self._send(job)
        try:
            while (answer := self._receive(deadline)) is not None and answer.said is Said.BEGUN:
                limit_s = answer.limit_s
                deadline = None if limit_s is None else time.monotonic() + limit_s
        except TimeoutError:
            self.kill()
            error = f"ended after the time-out of {self._timeout_s:g} s."
            return Answer.of(failed_row(job, error, time.monotonic() - began))
        return answer

    @property
    def is_alive(self) -> bool:
        """Whether it can take a job."""
        try:
            self._await(time.monotonic(), self._ended)
        except TimeoutError:
            return True
        return False

    def kill(self) -> None:
        """End it at once, with all that it has started."""
        if self._process.returncode is None:  # until then its group is no other's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()  # a policy may have taken it out of its group
            self._process.wait()
            end_marked(_MARK, self._mark)

    def end(self, timeout_s: float | None = None) -> str:
        """Wait for its end, kill it after `timeout_s`; say how it ended."""
        if self._is_garbled:
            self.kill()
        with contextlib.suppress(OSError):
            self._stdin.close()
        with contextlib.suppress(TimeoutError):
            self._await(None if timeout_s is None else time.monotonic() + timeout_s, self._ended)
        self.kill()
        with contextlib.suppress(BlockingIOError):
            self._hear()
        status, said = self._process.returncode, self._log.text.strip().splitlines()
        self._stdout.close()
        self._stderr.close()
        os.close(self._ended)
        if self._is_garbled:
            return "what it said, which was no message: does a policy write to its files?"
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"{how}{f': {said[-1]}' if said and status > 0 else ''}"


def end_marked(name: str, value: str) -> None:
    """End the processes that have a variable of the environment, whoever their parent is."""
    variable = f"{name}={value}".encode()
    ended: set[int] = set()
    is_new = True
    while is_new:
        is_new = False
        for pid in {int(each.name) for each in Path("/proc").glob("[1-9]*")} - ended:
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                if variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
                    ended.add(pid)
                    is_new = True


class Performer:
    """Does jobs in a worker process, which is made when needed and replaced when it dies."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._worker: WorkerProcess | None = None
        self._is_stopped = False

    def do(self, job: Job) -> Answer:
        """Do a run, again where its worker dies; nothing that goes wrong is raised."""
        how = ""
        for _ in range(ATTEMPTS):
            try:
                worker = self._living_worker()
            except EnvironmentFault as fault:
                return Answer(Said.FAULT, error=str(fault))
            answer = worker.do(job)
            is_done = answer is not None and answer.said is not Said.SPOILT
            if answer is not None and is_done and not answer.is_last:
                return answer
            how = worker.end(_CLOSING_S)
            self._worker = None
            if answer is not None and is_done:
                return answer
            if answer is not None:
                how = f"the loss of its own files: {answer.error}"
            if self._is_stopped:
                return Answer(Said.FAULT, error="stopped.")
        error = f"its worker process was lost {ATTEMPTS} times, the last time by {how}."
        return Answer.of(failed_row(job, error))

    def row(self, job: Job) -> dict[str, Any]:
        """Return the row of a run.

        Raises
        ------
        EnvironmentFault
            If the machine is at fault, not the run.
        InputError
            If SimGrid is needed and not installed.
        """
        answer = self.do(job)
        if answer.row is None:
            raise (EnvironmentFault if answer.said is Said.FAULT else InputError)(answer.error)
        return answer.row

    def _living_worker(self) -> WorkerProcess:
        if self._worker is not None and not self._worker.is_alive:
            self._worker.end()
            self._worker = None
        if self._worker is None:
            self._worker = WorkerProcess(self._orders)
        if self._is_stopped:
            self._worker.kill()
        return self._worker

    def stop(self) -> None:
        """End the run at work, from another thread."""
        self._is_stopped = True
        if self._worker is not None:
            self._worker.kill()

    def end(self, timeout_s: float | None = None) -> None:
        """Let the worker process end, or kill it after `timeout_s`."""
        if self._worker is not None:
            self._worker.end(timeout_s)
            self._worker = None


class LocalPool:
    """Worker processes on this machine, each led by a thread.

    Parameters
    ----------
    number : int
    orders : Orders

    Attributes
    ----------
    size : int
        Runs that are done at the same time.
    together : int
        Largest number of runs that one worker is given at once.
    """

    together = 64
    _GRACE_S = 3.0

    def __init__(self, number: int, orders: Orders) -> None:
        self.size = number
        self._packets: queue.SimpleQueue[Sequence[StudyRun] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[StudyRun, Answer]] = queue.SimpleQueue()
        self._is_ending = False
        self._performers = [Performer(orders) for _ in range(number)]
        self._threads = [
            threading.Thread(target=self._lead, args=(each,), daemon=True)
            for each in self._performers
        ]

    def __enter__(self) -> LocalPool:
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as error:
            raise InputError(f"{self.size} workers: {error}. Use fewer: --workers.") from None
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        self._is_ending = True
        for _thread in self._threads:
            self._packets.put(None)
        deadline = time.monotonic() + self._GRACE_S
        for thread, performer in zip(self._threads, self._performers, strict=True):
            if thread.ident is not None:
                thread.join(None if kind is None else max(0.0, deadline - time.monotonic()))
                performer.stop()
                thread.join()

    def _lead(self, performer: Performer) -> None:
        while (packet := self._packets.get()) is not None:
            for run in packet:
                if not self._is_ending:
                    self._ended.put((run, self._answer(performer, run)))
        performer.end()  # here, not elsewhere: a worker ends with the thread that started it

    def _answer(self, performer: Performer, run: StudyRun) -> Answer:
        try:
            return performer.do(Job(run.run_id, run.scenario, run.policies))
        except Exception as error:  # noqa: BLE001 - the campaign would wait for ever for its thread
            return Answer(Said.FATAL, error=f"{type(error).__name__}: {error}.")

    def is_hungry(self) -> bool:
        """Whether another packet of runs should wait for the workers."""
        return self._packets.qsize() < self.size

    def send(self, packet: Sequence[StudyRun]) -> None:
        """Have runs done by one worker, which keeps what they share."""
        self._packets.put(packet)

    def next(self, timeout_s: float) -> tuple[StudyRun, Answer]:
        """Return a run that has ended; raise `queue.Empty` if there is none in time."""
        return self._ended.get(timeout=timeout_s)


def usable_cpus() -> int:
    """Return the number of CPUs this process may use."""
    return len(os.sched_getaffinity(0))
