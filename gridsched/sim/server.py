"""The fork server: a single-threaded process with everything imported and no engine made.

SimGrid allows one engine a process, so each run gets a process of its own: a fork of this one,
which costs milliseconds where a fresh interpreter costs more than a second. The server lives on
its standard input and output and ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib
import os
import pickle
import select
import signal
import time
from os import _exit  # a policy may put something else in its place
from typing import Any

import cloudpickle

from gridsched import compiled
from gridsched.errors import GridschedError, SimulationError, error_of_policy, text_of
from gridsched.schedulers.kernels import warm_up
from gridsched.sim import wire
from gridsched.sim.pinning import pin_to_free_cpu
from gridsched.sim.process_log import ProcessLog

#: A run may spend so long on compiling, beside its time-out [s].
COMPILING_S = 900.0
_PAUSE, _GO = b"(", b")"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def serve(requests: int, answers: int) -> None:
    """Answer requests until the other side closes.

    Parameters
    ----------
    requests, answers : int
        File descriptors. A request is a pickled (time-out in s or None, working folder, names of
        modules to import before forking, pickled function without arguments). `wire.BEGUN` is said
        when all is ready for it, `wire.COMPILING` and `wire.BEGUN` again where it compiles
        something, then the answer, a pickled dict (see `_run_child`).
    """
    while (message := wire.receive(requests)) is not None:
        timeout_s, folder, modules, function = pickle.loads(message)
        try:
            for module in modules:  # in each run's own process it could take longer than the run
                importlib.import_module(module)
            warm_up()
            os.chdir(folder)  # the child inherits it: relative paths in --cfg are the asker's
            wire.send(answers, wire.BEGUN)
            answer = _run_child(function, timeout_s, requests, answers)
        except OSError as error:
            fault = ("error", "EnvironmentFault", f"No process can be made: {error}.")
            answer = _answer(pickle.dumps(fault))
        if answer is None:  # the asking process has gone
            return
        wire.send(answers, pickle.dumps(answer))


def _run_child(
    function: bytes, timeout_s: float | None, requests: int, answers: int
) -> dict[str, Any] | None:
    """Fork, wait for the child's result; return what became of it.

    An answer is what `_answer` returns; None says that the asking process has gone.
    """
    (reader, writer), (said, log), (paused, pauses) = os.pipe(), os.pipe(), os.pipe()
    try:
        child = os.fork()
    except OSError:
        for file in (reader, writer, said, log, paused, pauses):
            os.close(file)
        raise
    if child == 0:
        _child(function, writer, log, pauses)
    with contextlib.suppress(OSError):  # the child does it, too: whoever comes first
        os.setpgid(child, child)
    for file in (writer, log, pauses):
        os.close(file)
    ended = os.pidfd_open(child)
    listener = _Listener(reader, said, ended, requests, paused, answers)
    try:
        listener.listen(timeout_s)
    finally:
        with contextlib.suppress(ProcessLookupError):  # what it has started ends with it
            os.killpg(child, signal.SIGKILL)
        if listener.timed_out or listener.abandoned:
            with contextlib.suppress(ProcessLookupError):  # it may not have its group yet
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        _end_orphans()
        listener.take_the_rest()
        for file in (reader, said, ended, paused):
            os.close(file)
    if listener.abandoned:
        return None
    payload = bytes(listener.payload) or None
    return _answer(payload, listener.log.text, status, listener.timed_out)


def _end_orphans() -> None:
    """End what a run has started outside of its group: with its end they are this process's."""
    spared: set[int] = set()
    while children := _children() - spared:
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except PermissionError:  # another user's by now
                spared.add(child)
        for child in children - spared:
            os.waitpid(child, 0)


def _children() -> set[int]:
    try:
        with open("/proc/thread-self/children") as stream:
            return {int(each) for each in stream.read().split()}
    except FileNotFoundError:  # a kernel without this list
        return set()


def _answer(
    payload: bytes | None, log: str = "", status: int = 0, timed_out: bool = False
) -> dict[str, Any]:
    """Return what became of a child.

    ``payload`` is what it sent, or None, ``log`` its stderr; ``signal`` and ``status`` tell how it
    ended.
    """
    return {
        "payload": payload,
        "log": log,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "status": os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
        "timed_out": timed_out,
    }


class _Listener:
    """Takes what a child sends and says, until it has ended.

    That its pipes are closed would not tell: what it has started may hold them open.
    """

    def __init__(
        self, reader: int, said: int, ended: int, requests: int, paused: int, answers: int
    ) -> None:
        self._reader, self._said, self._ended, self._requests = reader, said, ended, requests
        self._paused, self._answers = paused, answers
        self.payload, self.log = bytearray(), ProcessLog()
        self.timed_out = self.abandoned = False

    def listen(self, timeout_s: float | None) -> None:
        """Return when the child has ended, at the time-out, or when the asking process has gone."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        sources = [self._reader, self._said, self._ended, self._requests, self._paused]
        rest_s = 0.0
        while True:
            rest = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select(sources, [], [], rest)
            self.timed_out = not ready or rest == 0.0
            # the protocol sends nothing while a run is on
            self.abandoned = self._requests in ready and not os.read(self._requests, 1)
            if self._ended in ready:
                self.timed_out = False
                return
            if self.timed_out or self.abandoned:
                return
            if self._paused in ready and deadline is not None:
                word = os.read(self._paused, 1)
                if not word:
                    sources.remove(self._paused)
                elif word == _PAUSE:
                    rest_s, deadline = deadline - time.monotonic(), time.monotonic() + COMPILING_S
                    wire.send(self._answers, wire.COMPILING)
                elif rest_s:
                    deadline, rest_s = time.monotonic() + rest_s, 0.0
                    wire.send(self._answers, wire.BEGUN)
            for source in (self._reader, self._said):
                if source in ready and not self._take(source):
                    sources.remove(source)

    def _take(self, source: int) -> int:
        """Take a part; return its number of bytes, 0 where nothing more can come."""
        part = os.read(source, 1 << 20)
        if source == self._reader:
            self.payload += part
        else:
            self.log.add(part)
        return len(part)

    def take_the_rest(self) -> None:
        """Take what the pipes hold, and no more: where somebody has them still, he may write on."""
        for source in (self._reader, self._said):
            os.set_blocking(source, False)
            left = fcntl.fcntl(source, fcntl.F_GETPIPE_SZ)
            with contextlib.suppress(BlockingIOError):
                while left > 0 and (taken := self._take(source)):
                    left -= taken


def _child(function: bytes, writer: int, log: int, pauses: int) -> None:
    """In the forked process: run, send the result, leave without any clean-up."""
    status = 1
    try:
        os.setpgid(0, 0)  # a group of its own, to be ended with all that it starts
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        kept = sorted((2, writer, pauses))  # what the server says is not the run's to disturb
        for begin, end in zip(kept, (*kept[1:], os.sysconf("SC_OPEN_MAX")), strict=True):
            os.closerange(begin + 1, end)
        compiled.watchers.append(lambda begins: wire.write(pauses, _PAUSE if begins else _GO))
        pin_to_free_cpu()
        wire.write(writer, _outcome(function))
        status = 0
    finally:  # actors that are still alive abort the process at a normal exit
        _exit(status)


def _outcome(function: bytes) -> bytes:
    """Return ("result", what it returned), ("error", class name, line) or ("raised", line).

    The user's own policy may raise anything, and give back what cannot be sent.
    """
    outcome: tuple[Any, ...]
    try:
        return pickle.dumps(("result", cloudpickle.loads(function)()), pickle.HIGHEST_PROTOCOL)
    except BaseException as raised:  # noqa: BLE001
        error = error_of_policy(raised)
        is_ours = isinstance(raised, GridschedError) or not isinstance(error, SimulationError)
        outcome = ("error", type(error).__name__) if is_ours else ("raised",)
        return pickle.dumps((*outcome, text_of(error)))


def main() -> None:
    """Import everything a run needs, then serve on standard input and output."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # what a run has started in a group of its own becomes a child of this process
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the asking process's to handle
    import numpy.random  # noqa: F401 - numpy alone would load it anew in each run's own process

    from gridsched.sim import child  # noqa: F401
    from gridsched.sim.library import is_installed, load_simgrid

    if is_installed():  # runs of the reference driver do without
        load_simgrid()
    with contextlib.suppress(BrokenPipeError):  # the asking process has gone
        wire.send(answers, b"ready")
        serve(requests, answers)


if __name__ == "__main__":
    main()
