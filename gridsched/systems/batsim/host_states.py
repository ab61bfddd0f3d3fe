"""Hosts that Batsim's scheduler switches and sets into P-states, and when that is done."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gridsched.model.limits import time_tolerance
from gridsched.model.system import System
from gridsched.policy.decisions import Decision, PowerOff, PowerOn
from gridsched.policy.state import State
from gridsched.systems.batsim.protocol import Event, Request, event


@dataclass
class _Change:
    """A ``SET_RESOURCE_STATE`` that is not done yet: on some hosts, or until a time [s]."""

    resources: str
    state: str
    booting: set[int]
    until: float


class HostStates:
    """What was asked of the hosts.

    State k of a host is its P-state k, the one after the last is off.

    Parameters
    ----------
    system : System
    is_on : list of bool
        Of each host at the begin.

    Attributes
    ----------
    pstate : list of int
        In which each host computes from now on.
    """

    def __init__(self, system: System, is_on: list[bool]) -> None:
        self._hosts = system.platform.hosts
        self._is_on, self._is_down = is_on, [False] * len(is_on)
        self._off_at = [-math.inf] * len(is_on)
        self._changes: list[_Change] = []
        self.pstate: list[int] = system.pstates.tolist()

    @property
    def next_time(self) -> float:
        """When the next host is off that shuts down [s]; infinite where none does."""
        return min((each.until for each in self._changes if each.until > -math.inf), default=math.inf)

    def set(self, request: Request, now: float) -> Iterator[Decision]:
        """Yield the decisions that bring hosts into a state at `now` [s]."""
        hosts = request.hosts("resources", len(self._hosts))
        text = request.text("state")
        change = _Change(request.text("resources"), text, set(), -math.inf)
        for host in hosts:
            each = self._hosts[host]
            n = len(each.pstates)
            if not text.isascii() or not text.isdigit() or int(text[:9]) > n:
                raise request.protocol_error(
                    f"state is {text[:40]!r}; host {each.name!r} has P-states 0 to {n - 1}, and {n} is off"
                )
            if int(text) == n:
                if self._is_on[host]:
                    yield PowerOff(host)
                    self._is_on[host], self._off_at[host] = False, now + each.shutdown_time_s
                change.until = max(change.until, self._off_at[host])
                continue
            self.pstate[host] = int(text)
            if not self._is_on[host]:
                yield PowerOn(host)
                self._is_on[host] = True
                if each.boot_time_s or self._off_at[host] > now:
                    change.booting.add(host)
        self._changes.append(change)

    def done(self, state: State) -> list[Event]:
        """Return the events of changes that are done."""
        now, limit = state.now, state.now + time_tolerance(state.now)
        events = []
        for change in list(self._changes):
            change.booting = {host for host in change.booting if not state.nodes.free[host]}
            if change.booting or change.until > limit:
                continue
            self._changes.remove(change)
            events.append(event(now, "RESOURCE_STATE_CHANGED", resources=change.resources, state=change.state))
        return events

    def failed(self, state: State) -> Iterator[tuple[str, list[int]]]:
        """Yield which hosts went down by themselves, and which came back, since the last call."""
        before, self._is_down = self._is_down, state.is_down.tolist()
        self._is_on = state.is_on.tolist()
        for is_down, kind in ((True, "unavailable"), (False, "available")):
            hosts = [h for h, each in enumerate(self._is_down) if each is is_down and before[h] is not is_down]
            if hosts:
                yield kind, hosts
