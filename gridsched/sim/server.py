"""The fork server: a single-threaded process with what is asked for imported, and no engine made.

SimGrid allows one engine a process, so each run gets a process of its own: a fork of this one,
which costs milliseconds where a fresh interpreter costs more than a second. The server lives on
its standard input and output and ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import importlib
import os
import pickle
import select
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from os import _exit  # a policy may put something else in its place
from pathlib import Path
from typing import Any

import cloudpickle

from gridsched import compiled
from gridsched.errors import GridschedError, SimulationError, error_of_policy, text_of
from gridsched.loop_library import has_library
from gridsched.schedulers.kernels import warm_up
from gridsched.sim import processes
from gridsched.sim.processes import Begun, Channel, Outcome, ProcessLog

#: A run may spend so long on compiling, beside its time-out [s].
COMPILING_S = 900.0
#: The result of a run is sent so long after its time-out, or the server is considered stopped [s].
_GRACE_S = 10.0
#: Packages that take as long to load as a small run takes, or longer.
_SLOW_TO_LOAD = ("numba", "numpy.ma", "scipy.optimize")
_PAUSE, _GO = b"(", b")"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def serve(channel: Channel) -> None:
    """Answer questions until the other side closes.

    A question is (time-out in s or None, working folder, names of modules to import before
    forking, of those to import only if nothing is compiled for them, pickled function without
    arguments), its answer an `Outcome`.
    """
    while (question := channel.receive()) is not None:
        timeout_s, folder, modules, if_compiled, function = question
        try:
            with compiled.watched_compiling(partial(_say_compiling, channel)):
                _import_for_all(modules, if_compiled)
            os.chdir(folder)  # the child inherits it: relative paths in --cfg are the asker's
            channel.send(_begun(timeout_s))
            outcome = _run_child(function, timeout_s, channel)
        except OSError as error:
            fault = ("error", "EnvironmentFault", f"No process can be made: {error}.")
            outcome = Outcome(pickle.dumps(fault))
        if outcome is None:  # the asking process has gone
            return
        channel.send(outcome)


def _import_for_all(modules: Iterable[str], if_compiled: Iterable[str]) -> None:
    """Import what in each run's own process could take longer than the run."""
    gc.disable()  # what is imported stays, and would be scanned again and again
    try:
        for module in modules:
            importlib.import_module(module)
        if if_compiled and has_library():
            for module in if_compiled:
                importlib.import_module(module)
        warm_up()
    finally:
        gc.freeze()
        gc.enable()


def _say_compiling(channel: Channel, begins: bool) -> None:
    """Report that the run waits for what is compiled first; its begin is reported in any case."""
    if begins:
        channel.send(Begun(is_compiling=True))


def _begun(timeout_s: float | None) -> Begun:
    return Begun(None if timeout_s is None else timeout_s + _GRACE_S)


def _run_child(function: bytes, timeout_s: float | None, channel: Channel) -> Outcome | None:
    """Fork, wait for the child's result; return what became of it.

    None means that the asking process has gone.
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
    with contextlib.suppress(OSError):  # the child does it, too, in either order
        os.setpgid(child, child)
    for file in (writer, log, pauses):
        os.close(file)
    ended = os.pidfd_open(child)
    listener = _Listener(reader, said, ended, paused, channel)
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
    return Outcome(
        bytes(listener.payload) or None,
        listener.log.text,
        os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
        listener.timed_out,
    )


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


class _Listener:
    """Receives the messages and data of a child, until it has ended.

    That its pipes are closed would not show it: what it has started may hold them open.
    """

    def __init__(self, reader: int, said: int, ended: int, paused: int, channel: Channel) -> None:
        self._reader, self._said, self._ended, self._paused = reader, said, ended, paused
        self._channel = channel
        self.payload, self.log = bytearray(), ProcessLog()
        self.timed_out = self.abandoned = False

    def listen(self, timeout_s: float | None) -> None:
        """Return when the child has ended, at the time-out, or when the asking process has gone."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        questions = self._channel.questions
        sources = [self._reader, self._said, self._ended, questions, self._paused]
        rest_s = 0.0
        while True:
            rest = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select(sources, [], [], rest)
            self.timed_out = not ready or rest == 0.0
            # the protocol sends nothing while a run is on
            self.abandoned = questions in ready and not os.read(questions, 1)
            if self._ended in ready:
                self.timed_out = False
                return
            if self.timed_out or self.abandoned:
                return
            if self._paused in ready:
                word, now = os.read(self._paused, 1), time.monotonic()
                if not word:
                    sources.remove(self._paused)
                elif deadline is not None and word == _PAUSE:
                    rest_s, deadline = deadline - now, now + COMPILING_S
                    self._channel.send(Begun(is_compiling=True))
                elif rest_s:
                    deadline, rest_s = now + rest_s, 0.0
                    self._channel.send(_begun(timeout_s))
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
        kept = sorted((2, writer, pauses))  # the run must not disturb the server's messages
        for begin, end in zip(kept, (*kept[1:], os.sysconf("SC_OPEN_MAX")), strict=True):
            os.closerange(begin + 1, end)
        compiled.watchers.append(lambda begins: processes.write(pauses, _PAUSE if begins else _GO))
        _pin_to_free_cpu()
        processes.write(writer, _outcome(function))
        status = 0
    finally:  # actors that are still alive abort the process at a normal exit
        _exit(status)


def _pin_to_free_cpu() -> None:
    """Pin this process to a CPU that no other run of this user holds.

    SimGrid's Python actors are threads that run one at a time; on one CPU the hand-over between
    them costs a half to a tenth. The lock is held until the process ends. Where all CPUs are taken,
    one is shared.
    """
    cpus = sorted(os.sched_getaffinity(0))
    chosen = cpus[os.getpid() % len(cpus)]
    folder = Path(tempfile.gettempdir())
    for cpu in cpus:
        lock = folder / f"gridsched-{os.getuid()}-cpu{cpu}.lock"
        with contextlib.suppress(OSError):
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                continue
            chosen = cpu
            break
    os.sched_setaffinity(0, {chosen})


def _outcome(function: bytes) -> bytes:
    """Return ("result", what it returned, what it had to load), ("error", class name, line) or ("raised", line).

    The user's own policy may raise anything, and give back what cannot be sent.
    """
    outcome: tuple[Any, ...]
    try:
        result = cloudpickle.loads(function)()
        loaded = [name for name in _SLOW_TO_LOAD if name in sys.modules]
        return pickle.dumps(("result", result, loaded), pickle.HIGHEST_PROTOCOL)
    except BaseException as raised:  # noqa: BLE001
        error = error_of_policy(raised)
        is_ours = isinstance(raised, GridschedError) or not isinstance(error, SimulationError)
        outcome = ("error", type(error).__name__) if is_ours else ("raised",)
        return pickle.dumps((*outcome, text_of(error)))


def main() -> None:
    """Load SimGrid, then serve the process that asks."""
    channel = Channel()
    channel.receive()
    # what a run has started in a group of its own becomes a child of this process
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    from gridsched.drivers.simgrid_library import is_installed, load_simgrid

    if is_installed():  # runs of the reference driver do without
        load_simgrid()
    with contextlib.suppress(BrokenPipeError):  # the asking process has gone
        channel.send(True)
        serve(channel)
