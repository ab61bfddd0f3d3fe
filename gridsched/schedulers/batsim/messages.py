"""The JSON of Batsim 4's protocol: what a scheduler is told, and what it may ask for.

A scheduler is told what a policy may know: a job's profile lasts as long as its requested time.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from gridsched.errors import shorten
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


class Nonsense(Exception):
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
        """Return a text that `data` has, or raise `Nonsense`."""
        value = self.data.get(key)
        if not isinstance(value, str):
            raise self.nonsense(f"{key} is {_shown(value)}; a text is legal")
        return value

    def nonsense(self, why: str) -> Nonsense:
        """Return the complaint about the request."""
        return Nonsense(f"{self.kind}: {why}")

    def hosts(self, key: str, n_hosts: int) -> list[int]:
        """Return the hosts of an interval set that `data` has, as ``0-3 7``, ascending."""
        text, hosts = self.text(key), set[int]()
        for part in text.split():
            match = _INTERVAL.fullmatch(part)
            first = n_hosts if match is None else int(match[1])
            last = first if match is None or match[2] is None else int(match[2])
            if not first <= last < n_hosts:
                raise self.nonsense(f"{key} is {_shown(text)}; an interval set of 0 to {n_hosts - 1} is legal")
            hosts.update(range(first, last + 1))
        if not hosts:
            raise self.nonsense(f"{key} is empty")
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
        When it was told what happened [s].

    Raises
    ------
    Nonsense
        If the text is no message of the protocol, or would change the past.
    """
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        raise Nonsense(f"{_shown(text[:200].decode(errors='replace'))} is no JSON") from None
    if not isinstance(reply, dict) or not isinstance(reply.get("events"), list):
        raise Nonsense(f"{_shown(reply)} is no message; an object with 'now' and 'events' is legal")
    until = _time(reply.get("now"), now, math.inf, "now")
    requests, before = [], now
    for each in reply["events"]:
        data = each.get("data", {}) if isinstance(each, dict) else None
        if not isinstance(data, dict) or not isinstance(each.get("type"), str):
            raise Nonsense(f"{_shown(each)} is no event; an object with 'timestamp', 'type' and 'data' is legal")
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
        raise Nonsense(f"{what} is {_shown(value)}; a time {legal} is legal")
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
    """Return a host as Batsim tells of it; the state after the last P-state switches it off."""
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
    """Return what a scheduler is told of a job.

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
