"""The other side: a program at the end of a socket, which is perhaps started and ended here."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import time
from typing import IO, Any, NoReturn

from gridsched.errors import MissingDependency, SimulationError, shorten
from gridsched.schedulers.batsim.messages import Event, Nonsense, Request, message, read_reply

HOW_TO_INSTALL = "Batsim's protocol needs pyzmq; install it: pip install 'gridsched[batsim]'."
#: What stands for the address in the command that starts the scheduler.
PLACE = "{address}"
#: A message may be so long [byte]; of what the scheduler prints so much is kept.
_MOST_BYTES, _KEPT_BYTES = 1 << 26, 1 << 12
#: A scheduler that was started here may take so long to end by itself [s].
_ENDING_S = 5.0


def load_zmq() -> Any:
    """Return the module ``zmq``, which is loaded only where Batsim's protocol is spoken."""
    try:
        import zmq
    except ImportError:
        raise MissingDependency(HOW_TO_INSTALL) from None
    return zmq


class Peer:
    """A scheduler that answers what it is told.

    Parameters
    ----------
    address : str
        Where it listens, as ``tcp://127.0.0.1:28000``; for port 0 a free one is taken.
    start : str
        The command that starts it, in which `PLACE` stands for the address; empty: it runs.
    timeout_s : float
        It may take so long to answer [s].

    Raises
    ------
    SimulationError
        If it cannot be reached or started.
    """

    def __init__(self, address: str, start: str, timeout_s: float) -> None:
        self._zmq = zmq = load_zmq()
        self._timeout_s = timeout_s
        self._said = b""
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = -1
        self.address = _with_free_port(address)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, _MOST_BYTES)
        self._lost = self._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            self._socket.connect(self.address)
        except zmq.ZMQError as error:
            self.kill()
            raise SimulationError(f"{self}: {error}.") from None
        if start:
            self._start(start)

    def __str__(self) -> str:
        return f"The scheduler at {self.address}"

    def _start(self, command: str) -> None:
        try:
            words = shlex.split(command.replace(PLACE, self.address))
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            self._ended = os.pidfd_open(self._process.pid)
            os.set_blocking(self._stderr.fileno(), False)
        except (OSError, ValueError) as error:
            self.kill()
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise SimulationError(f"{self} cannot be started by {shorten(command)!r}: {why}.") from None

    @property
    def _stderr(self) -> IO[bytes]:
        assert self._process is not None
        assert self._process.stderr is not None
        return self._process.stderr

    def ask(self, now: float, events: list[Event]) -> tuple[float, list[Request]]:
        """Tell it what happened until `now` [s]; return as `read_reply` does.

        Raises
        ------
        SimulationError
            If it ends, is silent, or answers nonsense.
        """
        self._socket.send_string(message(now, events))
        answer = self._answer()
        try:
            return read_reply(answer, now)
        except Nonsense as error:
            raise self.complaint(error) from None

    def complaint(self, error: Nonsense) -> SimulationError:
        """Return the error about something that it has said."""
        return SimulationError(f"{self} answers what Batsim's protocol does not know: {error}.")

    def _answer(self) -> bytes:
        """Wait for an answer; raise `SimulationError` if none comes."""
        poller = self._zmq.Poller()
        poller.register(self._lost, self._zmq.POLLIN)
        poller.register(self._socket, self._zmq.POLLIN)
        if self._process is not None:
            poller.register(self._stderr.fileno(), self._zmq.POLLIN)
            poller.register(self._ended, self._zmq.POLLIN)
        deadline = time.monotonic() + self._timeout_s
        while (left_s := deadline - time.monotonic()) > 0:
            ready = dict(poller.poll(1e3 * min(left_s, 86_400.0)))
            if self._socket in ready:
                answer: bytes = self._socket.recv()
                return answer
            if self._ended in ready:
                self._tell_end()
            if self._process is not None and self._stderr.fileno() in ready and not self._hear():
                poller.unregister(self._stderr.fileno())
            if self._lost in ready:
                if self._process is None:
                    raise SimulationError(f"{self} has closed the connection before it answered.")
                poller.unregister(self._lost)
                deadline = min(deadline, time.monotonic() + _ENDING_S)
        raise SimulationError(f"{self} has not answered for {self._timeout_s:g} s.")

    def _hear(self) -> bool:
        """Take what it prints; return whether there may be more."""
        with contextlib.suppress(BlockingIOError):
            part = os.read(self._stderr.fileno(), 1 << 16)
            self._said = (self._said + part)[-_KEPT_BYTES:]
            return bool(part)
        return True

    def _tell_end(self) -> NoReturn:
        assert self._process is not None
        self._hear()
        status = self._process.wait()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        lines = self._said.decode(errors="replace").strip().splitlines()
        said = f": {shorten(lines[-1].strip())}" if lines else ""
        raise SimulationError(f"{self} has ended by {how}{said}")

    def end(self) -> None:
        """Let it end by itself, after its last answer; if it does not in time, kill it."""
        if self._process is not None:
            deadline = time.monotonic() + _ENDING_S
            while self._process.poll() is None and time.monotonic() < deadline:
                self._hear()
                time.sleep(0.005)
        self.kill()

    def kill(self) -> None:
        """End it at once, if it was started here, and let go of the socket."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._stderr.close()
            if self._ended >= 0:
                os.close(self._ended)
            self._process, self._ended = None, -1
        self._socket.disable_monitor()
        self._context.destroy(linger=0)


def _with_free_port(address: str) -> str:
    """Return a TCP address with a free port in the place of 0."""
    host, colon, port = address.rpartition(":")
    if not address.startswith("tcp://") or port != "0":
        return address
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"{host}{colon}{listener.getsockname()[1]}"
