"""Batsim's protocol: messages, and the peer that they are exchanged with.

A scheduler receives what a policy may know: a job's profile lasts as long as its requested time.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shlex
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from gridsched.errors import SimulationError, shorten
from gridsched.extras import load
from gridsched.model.platform import Host
from gridsched.model.system import System

#: Name of the one workload, with which the id of every job begins.
WORKLOAD = "w0"
#: The first event.
BEGIN = "SIMULATION_BEGINS"
#: Attributes of Batsim's configuration that schedulers read.
_CONFIG = {
    "redis-enabled": False,
    "redis-hostname": "127.0.0.1",
    "redis-port": 6379,
    "redis-prefix": "default",
    "profiles-forwarded-on-submission": True,
    "dynamic-jobs-enabled": False,
    "dynamic-jobs-acknowledged": False,
    "forward-unknown-events": False,
}
_INTERVAL = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")

Event = dict[str, Any]


class ProtocolError(Exception):
    """A message, or something in it, that the protocol does not know."""


@dataclass(frozen=True)
class Request:
    """Something that the scheduler asks for.

    Attributes
    ----------
    time : float
        When it is to happen [s].
    kind : str
        Its type, as ``EXECUTE_JOB``.
    data : dict
    """

    time: float
    kind: str
    data: dict[str, Any]

    def text(self, key: str) -> str:
        """Return a text that `data` has, or raise `ProtocolError`."""
        value = self.data.get(key)
        if not isinstance(value, str):
            raise self.protocol_error(f"{key} is {_shown(value)}; a text is allowed")
        return value

    def protocol_error(self, why: str) -> ProtocolError:
        """Return the error about the request."""
        return ProtocolError(f"{self.kind}: {why}")

    def hosts(self, key: str, n_hosts: int) -> list[int]:
        """Return the hosts of an interval set that `data` has, as ``0-3 7``, ascending."""
        text, hosts = self.text(key), set[int]()
        for part in text.split():
            match = _INTERVAL.fullmatch(part)
            first = n_hosts if match is None else int(match[1])
            last = first if match is None or match[2] is None else int(match[2])
            if not first <= last < n_hosts:
                raise self.protocol_error(f"{key} is {_shown(text)}; an interval set of 0 to {n_hosts - 1} is allowed")
            hosts.update(range(first, last + 1))
        if not hosts:
            raise self.protocol_error(f"{key} is empty")
        return sorted(hosts)


def event(now: float, kind: str, **data: Any) -> Event:
    """Return an event at `now` [s] as the protocol has it."""
    return {"timestamp": now, "type": kind, "data": data}


def message(now: float, events: list[Event]) -> str:
    """Return the text of what happened until `now` [s]."""
    return json.dumps({"now": now, "events": events})


def read_reply(text: bytes, now: float) -> tuple[float, list[Request]]:
    """Return until when the scheduler has thought [s], and what it asks for, in order.

    Parameters
    ----------
    text : bytes
    now : float
        When the scheduler received the events [s].

    Raises
    ------
    ProtocolError
        If the text is not a message of the protocol, or would change the past.
    """
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        raise ProtocolError(f"{_shown(text[:200].decode(errors='replace'))} is not JSON") from None
    if not isinstance(reply, dict) or not isinstance(reply.get("events"), list):
        raise ProtocolError(f"{_shown(reply)} is not a message; an object with 'now' and 'events' is allowed")
    until = _time(reply.get("now"), now, math.inf, "now")
    requests, before = [], now
    for each in reply["events"]:
        data = each.get("data", {}) if isinstance(each, dict) else None
        if not isinstance(data, dict) or not isinstance(each.get("type"), str):
            raise ProtocolError(
                f"{_shown(each)} is not an event; an object with 'timestamp', 'type' and 'data' is allowed"
            )
        before = _time(each.get("timestamp"), before, until, f"timestamp of {each['type'][:40]}")
        requests.append(Request(before, each["type"][:40], data))
    return until, requests


def time_of(request: Request) -> float:
    """Return the time [s] that a ``CALL_ME_LATER`` names."""
    return _time(request.data.get("timestamp"), 0.0, math.inf, f"time of {request.kind}")


def _time(value: object, least: float, most: float, what: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        time = float(value) if is_number else math.nan  # type: ignore[arg-type]
    except OverflowError:
        time = math.inf
    if not (least <= time <= most and time < math.inf):
        legal = f"at least {least!r} s" if most == math.inf else f"from {least!r} s to {most!r} s"
        raise ProtocolError(f"{what} is {_shown(value)}; a time {legal} is allowed")
    return time


def _shown(value: object) -> str:
    return shorten(repr(value))[:120]


def beginning(system: System, is_on: list[bool]) -> Event:
    """Return the event with which a simulation begins, at 0 s."""
    hosts = system.platform.hosts
    return event(
        0.0,
        BEGIN,
        nb_resources=len(hosts),
        nb_compute_resources=len(hosts),
        nb_storage_resources=0,
        allow_compute_sharing=False,
        allow_storage_sharing=False,
        allow_time_sharing_on_compute=False,
        allow_time_sharing_on_storage=False,
        config=_CONFIG,
        compute_resources=[_resource(h, host, is_on[h]) for h, host in enumerate(hosts)],
        storage_resources=[],
        workloads={WORKLOAD: system.platform.name},
        profiles={WORKLOAD: {}},
    )


def _resource(number: int, host: Host, is_on: bool) -> dict[str, Any]:
    """Return a host as Batsim describes it; the state after the last P-state switches it off."""
    first = len(host.pstates)
    return {
        "id": number,
        "name": host.name,
        "state": "idle" if is_on else "sleeping",
        "core_count": host.cores,
        "properties": {"role": "compute_node", "sleep_pstates": f"{first}:{first + 1}:{first + 2}"},
        "zone_properties": {},
    }


def job_description(id: str, submitted: float, width: int, requested_s: float) -> dict[str, Any]:
    """Return the description of a job that a scheduler receives.

    Parameters
    ----------
    id : str
    submitted : float
        When [s].
    width : int
        Nodes that it takes.
    requested_s : float
        Its walltime [s].
    """
    return {"id": id, "subtime": submitted, "walltime": requested_s, "res": width, "profile": f"delay_{requested_s!r}"}


HOW_TO_START = "Start it, or give the command that does (--batsim-start CMD; parameter 'start')."
#: What represents the address in the command that starts the scheduler.
PLACE = "{address}"
#: A message may be so long [byte]; of what the scheduler prints so much is kept.
_MOST_BYTES, _KEPT_BYTES = 1 << 26, 1 << 12
#: A scheduler that was started here may take so long to end by itself [s].
_ENDING_S = 5.0
#: Another machine may take so long to say whether something listens there [s].
_KNOCKING_S = 1.0


def load_zmq() -> Any:
    """Return the module ``zmq``, which is loaded only where Batsim's protocol is spoken."""
    return load("zmq", "Schedulers of Batsim's protocol")


def is_heard(address: str) -> bool:
    """Whether something listens at an address of ZeroMQ; it notices no more than a visitor who leaves at once."""
    kind, _, place = address.partition("://")
    try:
        if kind == "tcp":
            host, _, port = place.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), _KNOCKING_S).close()
        else:
            with socket.socket(socket.AF_UNIX) as visitor:
                visitor.settimeout(_KNOCKING_S)
                visitor.connect(f"\0{place[1:]}" if place.startswith("@") else place)
    except (OSError, OverflowError, UnicodeError):  # UnicodeError: no name of a host
        return False
    return True


class Peer:
    """A scheduler that answers messages.

    Parameters
    ----------
    address : str
        Where it listens, as ``tcp://127.0.0.1:28000``; for port 0 a free one is taken.
    start : str
        The command that starts it, in which `PLACE` represents the address; empty: it runs.
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
            If it ends, is silent, or answers what the protocol does not know.
        """
        self._socket.send_string(message(now, events))
        answer = self._answer()
        try:
            return read_reply(answer, now)
        except ProtocolError as error:
            raise self.simulation_error(error) from None

    def simulation_error(self, error: ProtocolError) -> SimulationError:
        """Return the error about a message of the scheduler."""
        return SimulationError(f"{self} sends an answer that Batsim's protocol does not know: {error}.")

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
        hint = "" if self._process is not None else f" Does it run? {HOW_TO_START}"
        raise SimulationError(f"{self} has not answered for {self._timeout_s:g} s.{hint}")

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
        reason = f": {shorten(lines[-1].strip())}" if lines else ""
        raise SimulationError(f"{self} has ended by {how}{reason}")

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
