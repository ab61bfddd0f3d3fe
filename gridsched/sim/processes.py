"""A process that answers one question after the other, seen from both of its sides.

It is a fresh interpreter, which lives on its standard input and output and ends with the process
that asks. Before an answer it may say, as often as need be, how long it may take from then on.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import secrets
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gridsched.compiled import report_compiling
from gridsched.errors import EnvironmentFault

#: So much is kept of the begin and of the end of what a process prints [byte].
_HEAD, _TAIL = 1 << 16, 1 << 20
_START = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"
_MARK = b"\x93gs\n"
_HEADER = struct.Struct("<4sQ")
#: `select.poll` waits no longer at once than 2**31 ms, 25 days: a day.
_LONGEST_POLL_MS = 86_400e3


@dataclass(frozen=True)
class Begun:
    """Sent before an answer: the work begins, or goes on.

    Attributes
    ----------
    limit_s : float or None
        Wall time from now on after which the process is to be ended [s].
    is_compiling : bool
        Whether it compiles something first.
    """

    limit_s: float | None = None
    is_compiling: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a run's own process.

    Attributes
    ----------
    payload : bytes or None
        What it sent.
    log : str
        What it printed.
    signal, status : int
        How it ended.
    timed_out : bool
    """

    payload: bytes | None
    log: str = ""
    signal: int = 0
    status: int = 0
    timed_out: bool = False


class Garbled(Exception):
    """What has come is not a message: somebody else has written between them."""


def send(descriptor: int, message: bytes) -> None:
    """Write one message to a file descriptor."""
    write(descriptor, _HEADER.pack(_MARK, len(message)) + message)


def write(descriptor: int, data: bytes) -> None:
    """Write all of some data to a file descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def readable(poll: select.poll, deadline: float | None) -> set[int]:
    """Wait for what can be read; return nothing once the deadline has passed (`time.monotonic`)."""
    while True:
        rest_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1e3
        wait_ms = None if rest_ms is None else min(rest_ms, _LONGEST_POLL_MS)
        ready = {source for source, _ in poll.poll(wait_ms)}
        if ready or rest_ms == 0.0:
            return ready


def receive(descriptor: int, deadline: float | None = None, ended: int | None = None) -> bytes | None:
    """Read one message; None if the other side has closed before or within it.

    Parameters
    ----------
    descriptor : int
    deadline : float, optional
        Clock (`time.monotonic`) until which the whole message must have come [s].
    ended : int, optional
        Can be read once the other side has ended: others may hold the pipe open.

    Raises
    ------
    TimeoutError
        If it has not come until then.
    Garbled
        If no message begins here.
    """
    poll = select.poll()
    for source in {descriptor, descriptor if ended is None else ended}:
        poll.register(source, select.POLLIN)

    def read(size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            ready = readable(poll, deadline)
            if not ready:
                raise TimeoutError
            part = b""
            if descriptor in ready:
                part = os.read(descriptor, min(size - len(parts), 1 << 20))
            if not part:
                return None
            parts += part
        return bytes(parts)

    header = read(_HEADER.size)
    if header is None:
        return None
    mark, size = _HEADER.unpack(header)
    if mark != _MARK:
        raise Garbled
    return read(size)


class ProcessLog:
    """The begin and the end of what a process prints, however much that is."""

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), bytearray()

    def add(self, part: bytes) -> None:
        """Take what comes next."""
        room = _HEAD - len(self._head)
        self._head += part[:room]
        self._tail = (self._tail + part[max(0, room) :])[-_TAIL:]

    @property
    def text(self) -> str:
        """What is kept."""
        return (self._head + self._tail).decode(errors="replace")


class Channel:
    """The asking process, seen from the one that answers.

    What is printed from now on goes to the standard error stream, and Ctrl-C is left to the asking
    process.

    Attributes
    ----------
    questions : int
        File descriptor; nothing comes in there while an answer is awaited.
    """

    def __init__(self) -> None:
        self.questions, self._answers = os.dup(0), os.dup(1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def receive(self) -> Any:
        """Return the next question; None once the asking process has closed."""
        message = receive(self.questions)
        return None if message is None else pickle.loads(message)

    def send(self, answer: object) -> None:
        """Say something: `Begun`, or the answer."""
        send(self._answers, pickle.dumps(answer))


class AnsweringProcess:
    """A process of our own, seen from the one that asks.

    What is started in it ends with it at the latest: it has the process's mark in its environment.

    Parameters
    ----------
    module : str
        Its function ``main`` is called there; it makes a `Channel`.
    name : str
        What the process is called in messages.
    order : object
        The first question, which is answered once it is ready for others.
    has_log : bool
        Whether what it prints is kept, to report how it ended; otherwise it is shown.
    variables : mapping, optional
        What is added to the environment.

    Raises
    ------
    EnvironmentFault
        If it cannot be made, or ends before it is ready.
    """

    def __init__(
        self,
        module: str,
        name: str,
        order: object = (),
        *,
        has_log: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._mark = f"GRIDSCHED_{secrets.token_hex(16)}"
        #: whether something that it has started may outlive it
        self.may_leave_processes = False
        self._is_garbled, self._log = False, ProcessLog()
        self._worked_s, self._begun_s = 0.0, math.inf
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(path=sys.path, module=module)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if has_log else None,
                process_group=0,  # Ctrl-C is for the asking process
                env={**os.environ, **(variables or {}), self._mark: ""},
            )
            self._ended = os.pidfd_open(self._process.pid)
        except OSError as error:
            raise EnvironmentFault(f"{name} cannot be made: {error.strerror}.") from None
        self._stdin, self._stdout = _pipe(self._process.stdin), _pipe(self._process.stdout)
        self._stderr = self._process.stderr
        if self._stderr is not None:
            os.set_blocking(self._stderr.fileno(), False)
        if self.ask(order) is None:
            hint = "" if has_log else "; standard error has its messages"
            raise EnvironmentFault(f"{name} did not start: {self.end()}{hint}.")

    def ask(self, question: object) -> Any:
        """Return the answer to a question; None if the process ends over it.

        Raises
        ------
        TimeoutError
            If it takes longer than it announced; it is then ended.
        """
        deadline, limit_s, is_compiling = None, None, False
        try:
            with contextlib.suppress(BrokenPipeError):  # its end is noticed where it is read
                send(self._stdin.fileno(), pickle.dumps(question))
            while isinstance(answer := self._receive(deadline), Begun):
                limit_s = answer.limit_s
                deadline = None if limit_s is None else time.monotonic() + limit_s
                self._count_work(math.inf if answer.is_compiling else time.monotonic())
                if answer.is_compiling != is_compiling:
                    is_compiling = answer.is_compiling
                    report_compiling(is_compiling)
        except BaseException as raised:  # whatever is on its way no longer belongs to a question
            self.may_leave_processes = True
            self.kill()
            if isinstance(raised, TimeoutError) and is_compiling:
                raise TimeoutError(f"compiling for {limit_s:g} s") from None
            raise
        finally:
            self._count_work(math.inf)
        return answer

    @property
    def worked_s(self) -> float:
        """Wall time that its work has taken, without what it imports and compiles before [s]."""
        return self._worked_s + max(0.0, time.monotonic() - self._begun_s)

    def _count_work(self, begun_s: float) -> None:
        """Count the work until now; what follows begins at an instant, or never."""
        self._worked_s, self._begun_s = self.worked_s, begun_s

    def _receive(self, deadline: float | None) -> Any:
        """Return its next message, None at its end; raise `TimeoutError` after the deadline."""
        answers = self._stdout.fileno()
        if answers not in self._await(deadline, answers, self._ended):
            return None  # what it has started may hold its pipes open
        try:
            message = receive(answers, deadline, self._ended)
        except Garbled:
            self._is_garbled = True
            return None
        return None if message is None else pickle.loads(message)

    def _await(self, deadline: float | None, *sources: int) -> set[int]:
        """Wait until a source can be read, taking what is printed; return what can be.

        Raises
        ------
        TimeoutError
            If none can until the deadline.
        """
        said = -1 if self._stderr is None else self._stderr.fileno()
        poll = select.poll()
        for source in (*sources, said):
            if source >= 0:
                poll.register(source, select.POLLIN)
        while True:
            ready = readable(poll, deadline)
            if said in ready and not self._hear():
                poll.unregister(said)
            if not ready.isdisjoint(sources):
                return ready
            if not ready or (deadline is not None and time.monotonic() >= deadline):
                raise TimeoutError

    def _hear(self) -> bool:
        """Take what has been printed; return whether there may be more."""
        part = b"" if self._stderr is None else os.read(self._stderr.fileno(), 1 << 20)
        self._log.add(part)
        return bool(part)

    @property
    def is_alive(self) -> bool:
        """Whether it can take a question."""
        if self._stdin.closed:
            return False
        try:
            self._await(time.monotonic(), self._ended)
        except TimeoutError:
            return True
        return False

    def kill(self) -> None:
        """End it at once, with all that it has started; a reader waiting for an answer gets none."""
        if self._process.returncode is None:  # until then its group is no other's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()  # a policy may have taken it out of its group
            self._process.wait()
            if self.may_leave_processes:
                _end_marked(self._mark)

    def end(self, timeout_s: float | None = None) -> str:
        """Wait for its end, kill it after `timeout_s`; say how it ended."""
        if not self._stdin.closed:
            if self._is_garbled:
                self.kill()
            with contextlib.suppress(OSError):
                self._stdin.close()
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            with contextlib.suppress(TimeoutError):
                self._await(deadline, self._ended)
            self.kill()
            with contextlib.suppress(BlockingIOError):
                self._hear()
            for stream in filter(None, (self._stdout, self._stderr)):
                stream.close()
            os.close(self._ended)
        if self._is_garbled:
            return "its output, which was not a message: does a policy write to its files?"
        status, lines = self._process.returncode, self._log.text.strip().splitlines()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"{how}{f': {lines[-1]}' if lines and status > 0 else ''}"


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # Popen was asked to make it
    return stream


def _end_marked(mark: str) -> None:
    """End the processes that have a variable of the environment, whoever their parent is."""
    variable = f"{mark}=".encode()
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
