"""What every host draws now, by the power model, and a cap on the sum."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gridsched.arrays import Floats
from gridsched.engine.decision_validator import Refusal
from gridsched.engine.execution import Command, Execution, TurnOn
from gridsched.engine.run_state import RunState
from gridsched.errors import InputError, counted
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.platform import Platform
from gridsched.model.room_on_nodes import partition_members
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler
from gridsched.policy.state import PowerState
from gridsched.power import host_power


class HostPowers:
    """What each host draws and the sum of all, kept up to date.

    Parameters
    ----------
    platform : Platform
    run : RunState

    Attributes
    ----------
    total_w : float
        What all hosts draw now [W].
    """

    exists = True

    def __init__(self, platform: Platform, run: RunState) -> None:
        self._platform = platform
        self._run = run
        self._off_w = [host.off_w for host in platform.hosts]
        #: power [W] by (host, P-state, cores that compute at its full speed), filled when first asked for
        self._power: dict[tuple[int, int, float], float] = {}
        #: share of its P-state's speed that a host has, where it is another than the whole
        self._share: dict[int, float] = {}
        self._computing: Any = [0] * len(platform)
        for execution in run.executing():
            if execution.has_begun and not execution.rests:
                for host, cores in zip(execution.all_hosts, execution.cores.tolist(), strict=True):
                    self._computing[host] += cores
        self._watts: Any = [self._power_of(host) for host in range(len(platform))]
        self.total_w = math.fsum(self._watts)
        #: power of hosts of one core that computes, shape (hosts, P-states); None where hosts have more
        self._computing_w: Floats | None = None
        if run.resources.has_sets and int(platform.cores.max(initial=1)) == 1:
            self._computing_w = host_power(1, 1, platform.idle_w, platform.epsilon_w, platform.busy_w)
        if run.resources.has_sets:  # then blocks of them change, else one number at a time
            self._computing = np.array(self._computing, dtype=np.int64)
            self._watts = np.array(self._watts)

    @property
    def watts(self) -> Floats:
        """What each host draws now [W], shape (hosts,)."""
        return np.asarray(self._watts)

    def _power_of(self, host: int) -> float:
        run = self._run
        if host in run.switching_w:
            return run.switching_w[host]
        if not run.is_on[host]:
            return self._off_w[host]
        place = host, run.pstate[host], self._load_of(host)
        watts = self._power.get(place)
        if watts is None:
            platform, at = self._platform, place[:2]
            powers = platform.idle_w[at], platform.epsilon_w[at], platform.busy_w[at]
            watts = self._power[place] = float(host_power(place[2], platform.cores[host], *powers))
        return watts

    def _load_of(self, host: int) -> float:
        """Return how many cores compute on a host, each by the share of speed at which it does."""
        if not self._share:
            return float(self._computing[host])
        return math.fsum(
            self._share_of(each) * cores
            for each in self._run.resources.on_host(host)
            if each.has_begun and not each.rests
            for other, cores in zip(each.all_hosts, each.cores.tolist(), strict=True)
            if other == host
        )

    def _share_of(self, execution: Execution) -> float:
        """Return the share of speed of an execution: that of the slowest of its hosts."""
        return min(self._share.get(host, 1.0) for host in execution.all_hosts)

    def changed(self, host: int) -> None:
        """Follow a host that began or ended something, changed its P-state, or was switched."""
        watts = self._power_of(host)
        self.total_w += watts - float(self._watts[host])
        self._watts[host] = watts

    def began(self, execution: Execution) -> None:
        """Follow an execution that computes from now on."""
        self._follow(execution, 1)

    def ended(self, execution: Execution) -> None:
        """Follow an execution that computes no more, or never did: it may have waited for its input files."""
        self._follow(execution, -1 if execution.has_begun and not execution.rests else 0)

    def _follow(self, execution: Execution, sign: int) -> None:
        hosts = execution.hosts
        if hosts is None:
            self._computing[execution.host] += sign
            self.changed(execution.host)
            return
        self._computing[hosts] += sign * (1 if self._computing_w is not None else execution.cores)
        if self._share or (len(hosts) == 1 and self._computing_w is None):
            for host in hosts.tolist():
                self.changed(host)
            return
        platform, pstates = self._platform, self._run.pstates[hosts]
        if self._computing_w is not None and sign:  # a host of one core computes something, or nothing
            watts = (self._computing_w if sign > 0 else platform.idle_w)[hosts, pstates]
        else:
            powers = (each[hosts, pstates] for each in (platform.idle_w, platform.epsilon_w, platform.busy_w))
            watts = host_power(self._computing[hosts], platform.cores[hosts], *powers)
        self.total_w += float(watts.sum() - self._watts[hosts].sum())
        self._watts[hosts] = watts

    def set_speed(self, host: int, share: float) -> None:
        """Follow a host that has another share of its P-state's speed from now on."""
        self._share[host] = share
        together = {host}.union(*(each.all_hosts for each in self._run.resources.on_host(host)))
        for each in sorted(together):
            self.changed(each)

    def sum_anew(self) -> None:
        """Forget what rounding has added up."""
        self.total_w = math.fsum(self._watts)


class NoPowers(HostPowers):
    """A run of which it is not asked what hosts draw."""

    exists = False

    def __init__(self) -> None:
        self.total_w = math.nan

    def changed(self, host: int) -> None:
        """Follow nothing."""

    def began(self, execution: Execution) -> None:
        """Follow nothing."""

    def ended(self, execution: Execution) -> None:
        """Follow nothing."""


class BoundedPowers(HostPowers):
    """Powers of hosts whose executions have programs: no more than this, as if all cores computed all the time.

    Parameters
    ----------
    platform : Platform
    run : RunState

    Attributes
    ----------
    at_rest : HostPowers
        The same if nothing computed.
    """

    def __init__(self, platform: Platform, run: RunState) -> None:
        self.at_rest = _PowersAtRest(platform, run)
        super().__init__(platform, run)

    def changed(self, host: int) -> None:
        """Follow a host that began or ended something, changed its P-state, or was switched."""
        super().changed(host)
        self.at_rest.changed(host)

    def _follow(self, execution: Execution, sign: int) -> None:
        super()._follow(execution, sign)
        for host in execution.all_hosts:  # whose P-state may be another one
            self.at_rest.changed(host)

    def sum_anew(self) -> None:
        """Forget what rounding has added up."""
        super().sum_anew()
        self.at_rest.sum_anew()


class _PowersAtRest(HostPowers):
    """Powers of hosts on which nothing computes."""

    def _load_of(self, host: int) -> float:
        return 0.0


class PowerCap:
    """Holds a run to a limit on the power of all its hosts together.

    Parameters
    ----------
    cap_w : float
        [W].
    powers : HostPowers
        What the hosts draw; only read.
    platform : Platform

    Attributes
    ----------
    holds_back : bool
        Whether nothing more starts: the cap was lowered to less than the hosts drew, and they have drawn more since.

    Raises
    ------
    InputError
        If the hosts draw more than the cap before anything runs.
    """

    exists = True

    def __init__(self, cap_w: float, powers: HostPowers, platform: Platform) -> None:
        self._cap_w = cap_w
        self._powers = powers
        self.holds_back = False
        if self._is_exceeded():
            raise InputError(
                f"power_cap_w is {cap_w:g} W, but the hosts of {platform.name} draw "
                f"{powers.total_w:g} W before anything runs. Raise the cap, or switch hosts off "
                "(--hosts-off)."
            )

    def set(self, cap_w: float) -> None:
        """Limit the hosts to another power from now on [W]; what draws more already may go on."""
        self._cap_w = cap_w
        self.holds_back |= self._is_exceeded()

    def excuse(self) -> None:
        """Let hosts that come up by themselves draw more; nothing else begins until all draw less."""
        self.holds_back |= self._is_exceeded()

    def releases(self) -> bool:
        """Whether the hosts draw no more than the cap for the first time since it was lowered."""
        if not self.holds_back or self._is_exceeded():
            return False
        self.holds_back = False
        return True

    def check_jobs(self, system: System, tasks: Tasks, *, powers_hosts: bool) -> None:
        """Raise `InputError` if a job exceeds the cap although nothing else runs: others would wait for it for ever.

        Parameters
        ----------
        system : System
        tasks : Tasks
        powers_hosts : bool
            Whether the scheduler may switch hosts off.
        """
        platform, hosts = system.platform, np.arange(system.n_hosts)
        if not isinstance(system.estimates, FlopsEstimates) or not len(tasks):
            return
        rows = hosts, system.pstates
        idle_w, epsilon_w, busy_w = platform.idle_w[rows], platform.epsilon_w[rows], platform.busy_w[rows]
        off_w = np.array([host.off_w for host in platform.hosts])
        draw_w = float(np.minimum(idle_w, off_w).sum()) if powers_hosts else self._powers.total_w
        inside = partition_members(platform)
        if tasks.take_whole_nodes:
            least_w = tasks.width * float((busy_w - idle_w).min(initial=np.inf))
        else:
            # no less than this: the cores where they add least, and as few nodes begin to work as can, if that adds any
            of_core = np.array([((busy_w - epsilon_w) / platform.cores)[some].min() for some in inside])
            of_node = np.array([(epsilon_w - idle_w)[some].min() for some in inside])
            most = np.array([platform.cores[some].max() for some in inside])
            of_node, of_core, most = (each[tasks.partition] for each in (of_node, of_core, most))
            nodes = np.where(tasks.anywhere & (of_node >= 0), -(-tasks.size // most), tasks.width)
            least_w = tasks.size * of_core + nodes * of_node
        fits = PowerState(draw_w, self._cap_w).allows(least_w)
        fits |= ~system.estimates.runnable(np.arange(len(tasks)), hosts)  # rejected anyway
        if not fits.all():
            k = int(np.argmin(fits))
            raise InputError(
                f"{tasks.name}: with task {tasks.labels[k]} alone the hosts of {platform.name} would draw "
                f"{draw_w + float(least_w[k]):.6g} W, and the cap (power_cap_w) is {self._cap_w:.6g} W "
                f"({counted(int((~fits).sum()), 'such task')}). Raise the cap, leave these tasks out, or switch hosts "
                "off (--hosts-off)."
            )

    def refusal(self, commands: Iterable[Command], scheduler: Scheduler) -> Refusal | None:
        """Say why what happened in an instant draws too much.

        Parameters
        ----------
        commands : iterable of Command
            What began in it; the message names the last execution.
        scheduler : Scheduler
        """
        if not self._is_exceeded():
            return None
        self._powers.sum_anew()
        if not self._is_exceeded():
            return None
        if self.holds_back and not any(isinstance(each, Execution | TurnOn) for each in commands):
            return None
        why = f"the hosts would draw {self._powers.total_w:.6g} W, and the cap (power_cap_w) is {self._cap_w:.6g} W"
        if not scheduler.traits.respects_power_cap:
            others = "power_capped_mct does"
            if scheduler.traits.parallel:
                others = "fcfs, easy_backfilling, conservative_backfilling and slurm do"
            why += f"; this scheduler respects no cap, {others}"
        begun = [each for each in commands if isinstance(each, Execution)]
        return (why, begun[-1].task, begun[-1].host) if begun else (why, None, None)

    def _is_exceeded(self) -> bool:
        return not PowerState(self._powers.total_w, self._cap_w).allows(0.0).item()


class NoCap(PowerCap):
    """A run whose hosts may draw what they want."""

    exists = False

    def __init__(self) -> None:
        self._cap_w = math.inf
        self.holds_back = False

    def excuse(self) -> None:
        """Hold nothing back."""

    def releases(self) -> bool:
        """Return False: nothing is held back."""
        return False

    def check_jobs(self, system: System, tasks: Tasks, *, powers_hosts: bool) -> None:
        """Refuse nothing."""

    def refusal(self, commands: Iterable[Command], scheduler: Scheduler) -> Refusal | None:
        """Refuse nothing."""
        return None
