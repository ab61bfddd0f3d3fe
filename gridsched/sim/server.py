"""The fork server: a single-threaded process with everything imported and no engine made.

SimGrid allows one engine a process, so each run gets a process of its own: a fork of this one,
which costs milliseconds where a fresh interpreter costs more than a second. The server lives on
its standard input and output and ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback
from typing import Any

import cloudpickle

from gridsched import errors
from gridsched.errors import GridschedError, blames_environment
from gridsched.schedulers.kernels import warm_up
from gridsched.sim import wire
from gridsched.sim.pinning import pin_to_free_cpu

_PR_SET_PDEATHSIG = 1
_LOG_LIMIT = 1 << 20


def serve(requests: int, answers: int) -> None:
    """Answer requests until the other side closes.

    Parameters
    ----------
    requests, answers : int
        File descriptors. A request is a pickled (time-out in s or None, working folder, names of
        modules to import before forking, pickled function without arguments); an answer a
        pickled dict (see `_run_child`).
    """
    while (message := wire.receive(requests)) is not None:
        timeout_s, folder, modules, function = pickle.loads(message)
        try:
            for module in modules:  # in each run's own process it could take longer than the run
                importlib.import_module(module)
            warm_up()
            os.chdir(folder)  # the child inherits it: relative paths in --cfg are the asker's
            answer = _run_child(function, timeout_s, requests)
        except OSError as error:
            fault = ("error", "EnvironmentFault", f"No process can be made: {error}.")
            answer = _answer(pickle.dumps(fault))
        if answer is None:  # the asking process has gone
            return
        wire.send(answers, pickle.dumps(answer))


def _run_child(function: bytes, timeout_s: float | None, requests: int) -> dict[str, Any] | None:
    """Fork, wait for the child's result; return what became of it.

    An answer is what `_answer` returns; None says that the asking process has gone.
    """
    with tempfile.TemporaryFile() as log:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _child(function, writer, log.fileno())
        os.close(writer)
        try:
            payload, timed_out, abandoned = _collect(reader, requests, timeout_s)
        finally:
            os.close(reader)
        if timed_out or abandoned:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if abandoned:
            return None
        log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_LIMIT))
        return _answer(payload, log.read().decode(errors="replace"), status, timed_out)


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


def _collect(
    reader: int, requests: int, timeout_s: float | None
) -> tuple[bytes | None, bool, bool]:
    """Read the child's message: (message or None, timed out, asking process gone)."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    parts = bytearray()
    while True:
        rest = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([reader, requests], [], [], rest)
        if not ready:
            return None, True, False
        if reader in ready:
            part = os.read(reader, 1 << 20)
            if not part:
                return (bytes(parts) or None), False, False
            parts += part
        elif not os.read(requests, 1):  # the protocol sends nothing while a run is on
            return None, False, True


def _child(function: bytes, writer: int, log: int) -> None:
    """In the forked process: run, send the result, leave without any clean-up."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        pin_to_free_cpu()
        _write(writer, pickle.dumps(_outcome(function), protocol=pickle.HIGHEST_PROTOCOL))
        status = 0
    finally:  # actors that are still alive abort the process at a normal exit
        sys.stderr.flush()
        os._exit(status)


def _write(writer: int, message: bytes) -> None:
    view = memoryview(message)
    while view:
        view = view[os.write(writer, view) :]


def _outcome(function: bytes) -> tuple[Any, ...]:
    """Return ("result", what it returned), ("error", class name, line) or ("raised", line)."""
    try:
        return "result", cloudpickle.loads(function)()
    except GridschedError as error:
        known = next(cls for cls in type(error).__mro__ if cls.__module__ == errors.__name__)
        return "error", known.__name__, str(error)
    except Exception as error:  # noqa: BLE001 - a user's policy may raise anything
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"
        traceback.print_exc()
        said = next(iter(str(error).strip().splitlines()), "")
        line = f"{type(error).__name__}: {said} ({place})."
        if blames_environment(error):
            return "error", "EnvironmentFault", f"The machine is at its limit. {line}"
        return "raised", line


def main() -> None:
    """Import everything a run needs, then serve on standard input and output."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the asking process's to handle
    from gridsched.sim import child  # noqa: F401
    from gridsched.sim.library import is_installed, load_simgrid

    if is_installed():  # runs of the reference driver do without
        load_simgrid()
    with contextlib.suppress(BrokenPipeError):  # the asking process has gone
        wire.send(answers, b"ready")
        serve(requests, answers)


if __name__ == "__main__":
    main()
