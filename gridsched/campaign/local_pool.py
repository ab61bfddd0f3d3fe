"""Worker processes on this machine, seen from the process that starts them."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Sequence

from gridsched.campaign.messages import ATTEMPTS, Answer, AnswerKind, Job, WorkerConfig, ended_row
from gridsched.campaign.segments import RunRow
from gridsched.errors import EnvironmentFault, InputError
from gridsched.runs.study import StudyRun
from gridsched.sim.processes import AnsweringProcess

#: A worker that is replaced may take so long to put its rows on the disk [s].
_CLOSING_S = 60.0


class WorkerProcess(AnsweringProcess):
    """A process that does one job after the other; see `gridsched.campaign.worker`."""

    def __init__(self, config: WorkerConfig) -> None:
        self._timeout_s = config.timeout_s
        super().__init__("gridsched.campaign.worker", "A worker process", config, has_log=True)

    def do(self, job: Job) -> Answer | None:
        """Have a job done; None if the process ends over it.

        A run that exceeds its time-out is ended with this process.
        """
        began = time.monotonic()
        self.may_leave_processes |= bool(job.policies)
        try:
            answer: Answer | None = self.ask(job)
        except TimeoutError as late:
            error = f"ended after {str(late) or f'the time-out of {self._timeout_s:g} s'}."
            return Answer.of(ended_row(job, time.monotonic() - began, error))
        return answer


class JobExecutor:
    """Does jobs in a worker process, which is made when needed and replaced when it dies."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._worker: WorkerProcess | None = None
        self._is_stopped = False

    def do(self, job: Job) -> Answer:
        """Do a run, again where its worker dies; nothing that goes wrong is raised."""
        how = ""
        for _ in range(ATTEMPTS):
            try:
                worker = self._living_worker()
            except EnvironmentFault as fault:
                return Answer(AnswerKind.FAULT, error=str(fault))
            answer = worker.do(job)
            is_done = answer is not None and answer.kind is not AnswerKind.SPOILT
            if answer is not None and is_done and not answer.is_last:
                return answer
            how = worker.end(_CLOSING_S)
            self._worker = None
            if answer is not None and is_done:
                return answer
            if answer is not None:
                how = f"the loss of its own files: {answer.error}"
            if self._is_stopped:
                return Answer(AnswerKind.FAULT, error="stopped.")
        error = f"its worker process was lost {ATTEMPTS} times, the last time by {how}."
        return Answer.of(ended_row(job, error=error))

    def row(self, job: Job) -> RunRow:
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
            raise (EnvironmentFault if answer.kind is AnswerKind.FAULT else InputError)(answer.error)
        return answer.row

    def _living_worker(self) -> WorkerProcess:
        if self._worker is not None and not self._worker.is_alive:
            self._worker.end()
            self._worker = None
        if self._worker is None:
            self._worker = WorkerProcess(self._config)
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
    config : WorkerConfig

    Attributes
    ----------
    size : int
        Runs that are done at the same time.
    together : int
        Largest number of runs that one worker is given at once.
    """

    together = 64
    _GRACE_S = 3.0

    def __init__(self, number: int, config: WorkerConfig) -> None:
        self.size = number
        self._packets: queue.SimpleQueue[Sequence[StudyRun] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[StudyRun, Answer]] = queue.SimpleQueue()
        self._is_ending = False
        self._executors = [JobExecutor(config) for _ in range(number)]
        self._threads = [
            threading.Thread(target=self._coordinate, args=(each,), daemon=True) for each in self._executors
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
        for thread, executor in zip(self._threads, self._executors, strict=True):
            if thread.ident is not None:
                thread.join(None if kind is None else max(0.0, deadline - time.monotonic()))
                executor.stop()
                thread.join()

    def _coordinate(self, executor: JobExecutor) -> None:
        while (packet := self._packets.get()) is not None:
            for run in packet:
                if not self._is_ending:
                    self._ended.put((run, self._answer(executor, run)))
        executor.end()  # here, not elsewhere: a worker ends with the thread that started it

    def _answer(self, executor: JobExecutor, run: StudyRun) -> Answer:
        try:
            return executor.do(Job(run.run_id, run.scenario, run.policies))
        except Exception as error:  # noqa: BLE001 - the campaign would wait for ever for its thread
            return Answer(AnswerKind.FATAL, error=f"{type(error).__name__}: {error}.")

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
