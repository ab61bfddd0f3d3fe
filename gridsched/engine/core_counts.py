"""Free cores of each host, in plain lists: for tasks of one core whose policy names one host."""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import chain

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.execution import Execution
from gridsched.engine.plans import Reservations
from gridsched.engine.resources import Resources
from gridsched.model.signals import Signal
from gridsched.model.system import System
from gridsched.policy.state import NodesState


class CoreCounts(Resources):
    """Free cores of each host, for tasks of one core each.

    Parameters
    ----------
    system : System
    is_on : list of bool
        Of each host at the start.

    Attributes
    ----------
    free : list of int
        Free cores of each host, whether it is on or not.
    idle : list of int
        Hosts that are on, not booting, and have a free core; ascending.
    by_host : dict of int to list of Execution
        On each host where something runs, in order of start.
    """

    has_sets = False

    def __init__(self, system: System, is_on: list[bool]) -> None:
        super().__init__(system)
        self.free = list(self.cores)
        self.idle = [host for host, on in enumerate(is_on) if on]
        self._ready = list(is_on)
        #: when the last execution on each host ended, or it had booted [s]
        self._since = [0.0] * len(is_on)

    @property
    def running(self) -> list[Execution]:
        """Executions that have a core, host by host."""
        return list(chain.from_iterable(self.by_host.values()))

    def on_host(self, host: int) -> list[Execution]:
        """Return the executions on a host, in order of start."""
        return self.by_host.get(host, [])

    def place(self, execution: Execution, hosts: Integers | None = None, parts: Integers | None = None) -> None:
        """Leave an execution as it is: its host gives it a core."""

    def take(self, execution: Execution) -> None:
        """Put an execution on a core; a full host is no longer idle."""
        host = execution.host
        self.by_host.setdefault(host, []).append(execution)
        self.free[host] -= 1
        if not self.free[host]:
            del self.idle[bisect_left(self.idle, host)]

    def release(self, execution: Execution) -> None:
        """Take an execution off its core; the host becomes idle if it was full."""
        host = execution.host
        here = self.by_host[host]
        here.remove(execution)
        if not here:
            del self.by_host[host]
            self._since[host] = execution.end
        self.free[host] += 1
        if self.free[host] == 1 and host not in self.drained:
            insort(self.idle, host)

    def misfit_alone(self, task: int, host: int) -> str | None:
        """Return None: each task takes one core of one host."""
        return None

    def misfit_of_plan(self, tasks: Integers, hosts: Integers) -> tuple[str, int, int] | None:
        """Return None: each task takes one core of one host."""
        return None

    def set_watts(self, execution: Execution) -> None:
        """Leave it to the execution."""

    def committed_j(self, now: float, period_end: float, weights: Signal) -> float:
        """Return what executions will count from `now` to a period's end, as estimated [J]."""
        total = 0.0
        for host in sorted(self.by_host):
            signal = weights.at_host(host)
            for each in self.by_host[host]:
                begin, until = max(each.start, now), min(each.estimated_end, period_end)
                if until > begin:
                    total += each.watts * (until - begin) * float(signal.mean(begin, until - begin))
        return total

    def has_free_core(self, host: int) -> bool:
        """Whether the host has a free core, be it on or not."""
        return self.free[host] > 0

    def has_room(self, task: int, host: int) -> bool:
        """Whether the host has a free core."""
        return self.free[host] > 0

    def idle_hosts(self) -> list[int]:
        """Return the hosts that could start a task now, ascending."""
        return self.idle.copy()

    def is_busy(self, host: int) -> bool:
        """Whether anything runs on the host."""
        return host in self.by_host

    def is_ready(self, host: int) -> bool:
        """Whether the host is on and has booted."""
        return self._ready[host]

    def idle_cores(self) -> list[int]:
        """Return the hosts with free cores, ascending, once for each."""
        if self.one_core:
            return self.idle.copy()
        return [host for host in self.idle for _ in range(self.free[host])]

    def free_cores(self) -> Integers:
        """Return the cores of each host that run nothing, shape (hosts,)."""
        return np.array(self.free, dtype=np.int64)

    def idle_since(self) -> Floats:
        """Since when each host runs nothing [s], shape (hosts,); infinite where it runs something or is not ready."""
        return np.where(self._run_nothing(), self._since, np.inf)

    def core_ends(self, host: int) -> list[float]:
        """Return the estimated end of what runs on each busy core of a host [s]."""
        return [each.estimated_end for each in self.by_host.get(host, ())]

    def state(self, now: float, reservations: Reservations) -> NodesState:
        """Return hosts as nodes: free is one that runs nothing at all."""
        running = self.running
        ends = np.array([each.estimated_end for each in running], dtype=np.float64)
        width = np.array([each.host not in self.drained for each in running], dtype=np.int64)
        arrays = self._run_nothing(), ends, width
        for array in arrays:
            array.setflags(write=False)
        return NodesState(arrays[0], int(arrays[0].sum()), *arrays[1:], now, self._free_at, reservations.view)

    def _run_nothing(self) -> Booleans:
        """Whether each host runs nothing and could start something now, shape (hosts,)."""
        free = np.array(self._ready, dtype=np.bool_) & (self.free_cores() == self.cores)
        free[list(self.drained)] = False
        return free

    def _free_at(self, now: float) -> Floats:
        """When all that runs on each host has ended [s], shape (hosts,); inf where it is off or boots."""
        at = np.where(self._ready, now, np.inf)
        for host, here in self.by_host.items():
            at[host] = max(now, *(each.estimated_end for each in here))
        at[list(self.drained)] = np.inf
        return at

    def set_ready(self, host: int, *, ready: bool) -> None:
        """Add the host to, or take it out of, those that can take a task."""
        if ready != self._ready[host]:
            self._ready[host] = ready
            if host not in self.drained:
                self._offer(host, has_room=ready)

    def _offer(self, host: int, *, has_room: bool) -> None:
        """Add a host to those that can take a task, or take it out."""
        if has_room:
            insort(self.idle, host)
        else:
            del self.idle[bisect_left(self.idle, host)]

    def drain(self, host: int) -> None:
        """Take a host out of those that can take a task."""
        self.drained.add(host)
        if self._ready[host] and self.free[host]:
            self._offer(host, has_room=False)

    def resume(self, host: int) -> None:
        """Let a drained host take tasks again."""
        self.drained.discard(host)
        if self._ready[host] and self.free[host]:
            self._offer(host, has_room=True)

    def boots(self, host: int, until: float) -> None:
        """Note that a host boots until a time [s]."""
        self._since[host] = max(self._since[host], until)
