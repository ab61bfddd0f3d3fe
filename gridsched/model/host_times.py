"""Times of tasks on single hosts, as papers print them: a row for each task, a column for each host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError, counted, did_you_mean
from gridsched.model.estimates import Estimates, PStates, energy_matrix
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.platform import Platform
from gridsched.model.tasks import Tasks


@dataclass(frozen=True, eq=False)
class HostTimes:
    """How long each task takes on each host.

    Attributes
    ----------
    hosts : tuple of str
        Names of the hosts.
    time_s : ndarray of float64, shape (tasks, hosts)
        Run time in P-state 0 [s]; infinite where a task cannot run.

    Raises
    ------
    InputError
        If a host has two columns, or a time is out of range.
    """

    hosts: tuple[str, ...]
    time_s: Floats

    def __post_init__(self) -> None:
        if self.time_s.ndim != 2 or self.time_s.shape[1] != len(set(self.hosts)) or len(set(self.hosts)) < 1:
            raise InputError(
                f"Times have the shape {self.time_s.shape}, and {counted(len(self.hosts), 'host')} are named; each "
                "host needs one column, of its own name."
            )
        allowed = (self.time_s >= SMALLEST) & (self.time_s <= LARGEST) | np.isposinf(self.time_s)
        if not allowed.all():
            task, host = np.argwhere(~allowed)[0].tolist()
            raise InputError(
                f"Task {task + 1} takes {self.time_s[task, host]:g} s on host {self.hosts[host]!r}; allowed: a time "
                f"> 0, at most {LARGEST:g}, or inf where it cannot run."
            )

    def on(self, platform: Platform, name: str) -> Floats:
        """Return the times with a column for each host of a platform [s]; see `HostTimesEstimates`.

        Raises
        ------
        InputError
            Naming a host of the platform that has no column, or a column that is of no host.
        """
        columns = {host: k for k, host in enumerate(self.hosts)}
        names = [host.name for host in platform.hosts]
        for host in names:
            if host not in columns:
                raise InputError(
                    f"{name}: no times for host {host!r} of {platform.name}; each host needs a column of its name. "
                    f"{did_you_mean(host, columns)}".rstrip()
                )
        for host in columns:
            if host not in names:
                raise InputError(
                    f"{name}: column {host!r} is of no host of {platform.name}. {did_you_mean(host, names)}".rstrip()
                )
        times: Floats = self.time_s[:, [columns[host] for host in names]]
        return times

    def taken(self, rows: Integers) -> HostTimes:
        """Return the times of some of the tasks."""
        return HostTimes(self.hosts, self.time_s[rows])


class HostTimesEstimates(Estimates):
    """Run time by task and host; power by host.

    In a slower P-state a task takes longer as the speed is lower: its times are those of P-state 0.

    Parameters
    ----------
    platform : Platform
    tasks : Tasks
        With `Tasks.host_times`.

    Raises
    ------
    InputError
        If the tasks have no such times, or times and platform are of other hosts.
    """

    _of_tasks = ("_time_s",)
    _lists: ClassVar[Mapping[str, str]] = {"_time_list": "_time_s"}

    def __init__(self, platform: Platform, tasks: Tasks) -> None:
        if tasks.host_times is None:
            raise InputError(f"{tasks.name}: the tasks have no times by host.")
        self._platform = platform
        self._time_s = tasks.host_times.on(platform, tasks.name)
        self._time_list: list[list[float]] = self._time_s.tolist()
        self._slower = platform.speed[:, :1] / platform.speed
        self._slower_list: list[list[float]] = self._slower.tolist()
        self._power = platform.busy_w / platform.cores[:, None]

    def of(self, tasks: Tasks) -> HostTimesEstimates:
        """Return the other tasks' times on the same hosts."""
        return HostTimesEstimates(self._platform, tasks)

    def etc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Estimated time to compute [s], shape (tasks, hosts)."""
        hosts = np.asarray(hosts)
        times: Floats = self._time_s[np.asarray(tasks)[:, None], hosts[None, :]] * self._slower[hosts, pstate]
        return times

    def apc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Power of a core of the fully loaded host [W], shape (tasks, hosts)."""
        hosts = np.asarray(hosts)
        return np.broadcast_to(self._power[hosts, pstate], (len(np.asarray(tasks)), len(hosts)))

    def eec(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Estimated energy consumption [J], infinite where a task cannot run."""
        return energy_matrix(self.etc(tasks, hosts, pstate), self.apc(tasks, hosts, pstate))

    def shortest_times(self) -> Floats:
        """Run time of each task where it is shortest [s], shape (tasks,)."""
        times: Floats = (self._time_s * np.nanmin(self._slower, axis=1)).min(axis=1)
        return times

    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Estimated run time [s]."""
        return self._time_list[task][host] * self._slower_list[host][pstate]


def with_flops(platform: Platform, tasks: Tasks) -> Tasks:
    """Return tasks that have times by host with the most work that no host does faster than by its speed [flop].

    What is bounded by flops and speeds is then bounded for these times, too.
    """
    if tasks.host_times is None:
        return tasks
    work = tasks.host_times.on(platform, tasks.name) * platform.speed[:, 0]
    return replace(tasks, flops=np.minimum(work.min(axis=1, initial=LARGEST), LARGEST))
