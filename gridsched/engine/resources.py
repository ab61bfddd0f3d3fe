"""What each host has left, and what runs where: one interface, however it is counted."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.execution import Execution
from gridsched.engine.plans import Reservations
from gridsched.errors import counted
from gridsched.model.signals import Signal
from gridsched.model.system import System
from gridsched.policy.state import NodesState


class Resources(ABC):
    """The hosts of a run: what they have left, and the executions on them.

    Attributes
    ----------
    cores : list of int
        Of each host.
    one_core : bool
        Whether no host has more than one.
    """

    #: whether executions have sets of hosts; else each has one core of one host
    has_sets = True

    def __init__(self, system: System) -> None:
        #: what runs on each host, where executions have a core of one host each
        self.by_host: dict[int, list[Execution]] = {}
        self.cores: list[int] = system.platform.cores.tolist()
        self.one_core = max(self.cores, default=1) == 1
        self._estimates = system.estimates
        #: hosts that are drained: whatever runs there goes on, and nothing starts
        self.drained: set[int] = set()

    # ------------------------------------------------------------------ what runs

    @property
    @abstractmethod
    def running(self) -> list[Execution]:
        """Executions that have their hosts."""

    @abstractmethod
    def on_host(self, host: int) -> list[Execution]:
        """Return the executions that have a part of the host, in order of start."""

    @abstractmethod
    def place(self, execution: Execution, hosts: Integers | None = None, parts: Integers | None = None) -> None:
        """Note on an execution which hosts it takes, and how many parts of its task on each.

        Without `hosts` all parts lie on its one host.
        """

    @abstractmethod
    def take(self, execution: Execution) -> None:
        """Let an execution have its hosts."""

    @abstractmethod
    def release(self, execution: Execution) -> None:
        """Take the hosts of an execution back."""

    @abstractmethod
    def set_watts(self, execution: Execution) -> None:
        """Take over the average power of an execution [W]."""

    @abstractmethod
    def committed_j(self, now: float, period_end: float, weights: Signal) -> float:
        """Return what executions will count from `now` to a period's end, as estimated [J]."""

    # ------------------------------------------------------------------ where a task may lie

    def misfit(self, task: int, hosts: Integers, parts: Integers | None) -> tuple[str, int | None] | None:
        """Say why the task can never lie so, and which host is to blame; None if it can.

        Parameters
        ----------
        task : int
        hosts : ndarray of int64
            Ascending.
        parts : ndarray of int64, or None
            How many of its parts lie on each; None: one.
        """
        if parts is not None or len(hosts) != 1:
            return f"the task takes one core of one host, not {counted(len(hosts), 'host')}", None
        return None

    def misfit_alone(self, task: int, host: int) -> str | None:
        """Say why the whole task can never lie on the one host; None if it can."""
        one = np.array([host])
        n_parts = self.widths(np.array([task]), one)
        if self.parts_apart(task) and n_parts[0] > 1:
            return f"the task takes {counted(n_parts[0], 'node')}, not 1; Allocate gives a task several hosts"
        misfit = self.misfit(task, one, n_parts if n_parts[0] > 1 else None)
        return None if misfit is None else f"{misfit[0]}; Allocate gives a task several hosts"

    def misfit_of_plan(self, tasks: Integers, hosts: Integers) -> tuple[str, int, int] | None:
        """Find a task that can never lie on its host alone, and the host: why, task, host; None if all can."""
        for task, host in zip(tasks.tolist(), hosts.tolist(), strict=True):
            if (why := self.misfit_alone(task, host)) is not None:
                return why, task, host
        return None

    def takes_now(self, task: int, hosts: Integers, parts: Integers | None, pstate: int) -> bool:
        """Whether the task may lie so and could start now: quick, and never wrongly yes.

        The reason for a refusal is looked up afterwards.
        """
        return False

    def parts_apart(self, task: int) -> bool:
        """Whether each part of the task needs a host of its own."""
        return True

    def widths(self, tasks: Integers, hosts: Integers) -> Integers:
        """Return how many places task k takes in a list of hosts that begins with host k, shape (tasks,)."""
        return np.ones(len(tasks), dtype=np.int64)

    def fits_one_host(self, tasks: Integers) -> Booleans:
        """Whether there is a host that could hold each task alone, shape (tasks,)."""
        return np.ones(len(tasks), dtype=np.bool_)

    def disagreeing(self, hosts: Integers, pstate: int) -> tuple[int, int] | None:
        """Find a host whose other work has another P-state, and that one; None if there is none."""
        return None

    # ------------------------------------------------------------------ what is left

    @abstractmethod
    def has_free_core(self, host: int) -> bool:
        """Whether the host has a free core, as far as that depends on what runs there."""

    @abstractmethod
    def has_room(self, task: int, host: int) -> bool:
        """Whether the task could start on the one host now, as far as others leave it room."""

    def lacking(self, task: int, hosts: Integers, parts: Integers | None) -> int | None:
        """Find the place, in `hosts`, of one that cannot give its parts of the task now; None: all can."""
        return next((k for k, host in enumerate(hosts.tolist()) if not self.has_room(task, host)), None)

    def conflict(
        self, task: int, hosts: Integers, parts: Integers | None, start: float, end: float, planned: Reservations
    ) -> tuple[int, Execution] | None:
        """Find a host that is not left to a task from `start` to `end` [s], and what takes it then."""
        return planned.found(hosts, start, end)

    def too_early(self, hosts: Integers, start: float, now: float) -> tuple[int, float] | None:
        """Find a host that is free from a later time on than `start` [s], as estimated, and that time."""
        return None

    @abstractmethod
    def is_busy(self, host: int) -> bool:
        """Whether anything runs on the host."""

    @abstractmethod
    def is_ready(self, host: int) -> bool:
        """Whether the host is on and has booted."""

    @abstractmethod
    def idle_cores(self) -> list[int]:
        """Return the hosts that could start a task of one core now, ascending, once for each free core."""

    @abstractmethod
    def idle_hosts(self) -> list[int]:
        """Return the hosts that could start a task of one core now, ascending."""

    @abstractmethod
    def free_cores(self) -> Integers:
        """Return the cores of each host that run nothing, shape (hosts,)."""

    @abstractmethod
    def idle_since(self) -> Floats:
        """Since when each host runs nothing [s], shape (hosts,); infinite where it runs something or is not ready."""

    @abstractmethod
    def core_ends(self, host: int) -> list[float]:
        """Return the estimated end of what runs on each busy core of a host [s], in no particular order."""

    def core_ready(self, now: float) -> Floats | None:
        """When each core gets free of what runs or boots there [s], shape (hosts, most cores).

        Rows ascend and end with infinity. None where `core_ends` of the hosts on which something has
        happened is quicker.
        """
        return None

    @abstractmethod
    def state(self, now: float, reservations: Reservations) -> NodesState:
        """Return what a policy may know `now` [s] of hosts as nodes, as arrays that cannot be written to."""

    # ------------------------------------------------------------------ hosts that come and go

    @abstractmethod
    def set_ready(self, host: int, *, ready: bool) -> None:
        """Note that a host on which nothing runs has booted, or was switched off."""

    @abstractmethod
    def drain(self, host: int) -> None:
        """Let a host that is not drained have room for nothing from now on; whatever runs there goes on."""

    @abstractmethod
    def resume(self, host: int) -> None:
        """Let a drained host have room again for what it can hold beside what still runs there."""

    @abstractmethod
    def boots(self, host: int, until: float) -> None:
        """Note that a host boots until a time [s]."""
