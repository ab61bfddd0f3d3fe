"""The run as a policy sees it: read-only, made valid again for each call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.energy_account import EnergyAccount
from gridsched.engine.host_powers import HostPowers
from gridsched.engine.miss_probability import GridMissProbabilities, ReadyPmfs
from gridsched.engine.ready_times import ReadyTimes, Staging
from gridsched.engine.run_state import RunState
from gridsched.engine.task_states import VIRTUAL, WAITING
from gridsched.engine.transfers import Transfers
from gridsched.model.estimates import Reveal
from gridsched.model.pmf import Pmf
from gridsched.model.stochastic import StochasticEstimates
from gridsched.model.system import System
from gridsched.model.tasks import ArrivedTasks, Parts, Tasks
from gridsched.policy.state import RUNNING_COPY, EnergyState, NodesState, PowerState, State

_NO_BUDGET = EnergyState(math.inf, 0.0, 0.0, math.inf, 0.0, 0.0, math.inf)


if TYPE_CHECKING:
    _view = property
else:

    def _view(make):
        """Return a property that is made once for each call of the policy, and is read-only."""
        name = make.__name__

        def view(state):
            array = state._views.get(name)
            if array is None:
                array = state._views[name] = make(state)
                array.setflags(write=False)
            return array

        return property(view, doc=make.__doc__)


class LiveState(State):
    """The `State` that a controller shows to its policy.

    Parameters
    ----------
    system : System
        Its estimates are concealed; tasks are revealed as they arrive.
    tasks : Tasks
        All of the run.
    run : RunState
    ready_times : ReadyTimes
    staging : Staging
    account : EnergyAccount
    powers : HostPowers
        Where they are kept up to date.
    consumed_j : callable
        What returns `consumed_j` at a time [s], if somebody asks.
    transfers : Transfers
    """

    def __init__(
        self,
        system: System,
        tasks: Tasks,
        run: RunState,
        ready_times: ReadyTimes,
        staging: Staging,
        account: EnergyAccount,
        powers: HostPowers,
        consumed_j: Callable[[float], float],
        transfers: Transfers,
    ) -> None:
        self._transfers = transfers
        self.estimates = system.estimates
        self.now = 0.0
        self.tasks_to_arrive = run.n_tasks
        self._arrived = ArrivedTasks(tasks)
        self._submitted = 0
        self._tasks = self._arrived.first(0)
        self._run = run
        self._staging = staging
        self._account = account
        self._platform = system.platform
        self._powers = powers
        self._consumed_j = consumed_j
        cap_w = system.rules.power_cap_w
        self.power_cap_w = math.inf if cap_w is None else cap_w
        self._ready_times = ready_times
        estimates = system.estimates
        self._ready_pmfs = ReadyPmfs(run, estimates) if isinstance(estimates, StochasticEstimates) else None
        self._probabilities: ReadyPmfs | GridMissProbabilities | None = None
        self._only: int | None = None
        self._views: dict[str, NDArray[Any]] = {}

    @property
    def tasks(self) -> Tasks:
        """The tasks submitted so far; the same object until further tasks are submitted."""
        if len(self._tasks) != self._submitted:
            self._tasks = self._arrived.first(self._submitted)
        return self._tasks

    @property
    def parts(self) -> Parts:
        """What parts of the tasks submitted so far take, and where: the same arrays during the whole run."""
        return self._arrived.parts(self._submitted)

    def waiting(self) -> Iterator[int]:
        """Iterate over the ids of `mappable`; cheap where only the first few are wanted."""
        return iter(self._those_asked_for()) if self._only is not None else self._run.waiting()

    def next_waiting(self, count: int) -> list[int]:
        """Return the first `count` ids of `mappable`, or as many as there are."""
        return self._those_asked_for()[:count] if self._only is not None else self._run.next_waiting(count)

    def _those_asked_for(self) -> list[int]:
        """Return the one task to map, as long as it may be mapped."""
        return [self._only] if self._run.state_of[self._only] in (WAITING, VIRTUAL) else []  # type: ignore[index,list-item]

    @_view
    def mappable(self) -> Integers:
        """Ids of tasks that may be mapped (waiting or virtually queued), ascending."""
        return self._run.mappable() if self._only is None else np.array(self._those_asked_for(), dtype=np.int64)

    @_view
    def blocked(self) -> Integers:
        """Ids of submitted tasks that wait for others and are in no queue or plan, ascending."""
        return self._run.blocked()

    def idle_cores(self) -> list[int]:
        """Return the hosts that could start a task of one core now, ascending, once for each free core."""
        idle, queued = self._run.resources.idle_cores(), self._run.queued_hosts
        return [host for host in idle if host not in queued] if queued else idle

    @_view
    def running(self) -> NDArray[np.void]:
        """All running copies in order of start: fields of `RUNNING_COPY`, times in [s].

        The host of a parallel task is the first of its nodes.
        """
        copies = self._run.executing()
        copies.sort(key=lambda e: (e.start, e.task, e.host))
        pstate = self.estimates.scheduler_pstate
        rows = [(e.task, e.host, pstate(e.task, e.pstate), e.start, e.estimated_end, e.width) for e in copies]
        return np.array(rows, dtype=RUNNING_COPY)

    @_view
    def freed(self) -> Integers:
        """Hosts that each running copy leaves to others when it ends, in the order of `running`, shape (copies,)."""
        drained, copies = self._run.resources.drained, self.running
        if not drained:
            return copies["width"].copy()
        of_task = {(each.task, each.host): each.all_hosts for each in self._run.executing()}
        places = zip(copies["task"].tolist(), copies["host"].tolist(), strict=True)
        return np.array([len(set(of_task[place]) - drained) for place in places], dtype=np.int64)

    @property
    def nodes(self) -> NodesState:
        """Hosts as nodes: which are free, what runs on sets of them and what is reserved."""
        return self._run.resources.state(self.now, self._run.reservations)

    def copies_of(self, task: int) -> list[tuple[int, float]]:
        """Return host and start [s] of each running copy of a task, the earliest first."""
        return sorted(
            ((e.host, e.start) for e in self._run.copies.get(task, ())), key=lambda place: (place[1], place[0])
        )

    @_view
    def core_ready_time(self) -> Floats:
        """When each core could take a newly appended task [s], shape (hosts, most cores).

        Running work and fixed queues count, with the data that tasks there wait for as far as they are made;
        virtual queues do not. Rows ascend; they are padded with infinity, and a host that is off has nothing else.
        """
        return self._ready_times.table(self.now)

    def data_ready(self, task: int) -> Floats:
        """Return when the data that a task needs of others could be at each host [s], shape (hosts,)."""
        n_hosts = len(self._platform.hosts)
        if not self._transfers.exists:
            return np.full(n_hosts, self.now)
        return self._transfers.expected_anywhere(task, self.now, n_hosts)

    @_view
    def ready_time(self) -> Floats:
        """When each host could take a newly appended task [s], shape (hosts,)."""
        return self.core_ready_time[:, 0]

    def ready_pmf(self, host: int) -> Pmf:
        """Return when a one-core host could take a newly appended task [s], as a distribution.

        Raises
        ------
        AttributeError
            If run times are not known as distributions, or the host has several cores.
        """
        return self._pmfs_for("ready_pmf").of(host, self.now)

    def late_probabilities(self, task: int) -> Floats:
        """Return the probability of a newly appended task to end late, shape (hosts, P-states).

        Raises
        ------
        AttributeError
            If run times are not known as distributions, or a host has several cores.
        """
        deadline_s, estimates = self.tasks.deadline_s, self.estimates
        if deadline_s is None or deadline_s[task] == math.inf:
            self._pmfs_for("late_probabilities")
            assert isinstance(estimates, StochasticEstimates)
            in_time = np.isfinite(estimates.etc_matrix[estimates.task_type[task]])
            in_time = in_time[estimates.host_type] & self.is_on[:, None]
            return np.where(in_time, 0.0, 1.0)
        probabilities = self._probabilities_for("late_probabilities")
        return probabilities.late_probabilities(task, float(deadline_s[task]), self.now)

    def queued_late_probabilities(self) -> Floats:
        """Return the probability of each queued task to end late, in the order of `queue_tasks`.

        Raises
        ------
        AttributeError
            If run times are not known as distributions, or a host has several cores.
        """
        probabilities = self._probabilities_for("queued_late_probabilities")
        deadline_s = self.tasks.deadline_s
        if deadline_s is None:
            return np.zeros(len(self.queue_tasks))
        return probabilities.queued_late_probabilities(deadline_s, self.now)

    def mean_ready_time(self) -> Floats:
        """Return when each host could take a new task on average [s], shape (hosts,).

        Raises
        ------
        AttributeError
            If run times are not known as distributions, or a host has several cores.
        """
        return self._probabilities_for("mean_ready_time").mean_ready(self.now)

    def _pmfs_for(self, name: str) -> ReadyPmfs:
        if self._ready_pmfs is None:
            raise AttributeError(f"state.{name}: the run times of this run are not distributions.")
        return self._ready_pmfs

    def _probabilities_for(self, name: str) -> ReadyPmfs | GridMissProbabilities:
        if self._probabilities is None:
            self._probabilities = self._pmfs_for(name).fastest()
        return self._probabilities

    @property
    def energy(self) -> EnergyState:
        """The energy budget of the present period and what is left of it."""
        if not self._account.exists:
            return _NO_BUDGET
        return self._account.state(self.now)

    @property
    def power(self) -> PowerState:
        """What all hosts draw now, and the cap on it."""
        powers = self._powers if self._powers.exists else HostPowers(self._platform, self._run)
        return PowerState(powers.total_w, self.power_cap_w)

    def consumed_j(self) -> float:
        """Return what all computing hosts have drawn from time 0 until now [J], by the model."""
        return self._consumed_j(self.now)

    @_view
    def free_cores(self) -> Integers:
        """Cores of each host that run nothing, shape (hosts,)."""
        return self._run.resources.free_cores()

    @_view
    def pstate(self) -> Integers:
        """P-state of each host, shape (hosts,)."""
        return self._run.pstates.copy()

    @_view
    def is_on(self) -> Booleans:
        """Whether each host is switched on (booting included) and not drained, shape (hosts,)."""
        return self._run.opened.copy()

    @_view
    def idle_since(self) -> Floats:
        """Since when each host is on, has booted and runs nothing [s], shape (hosts,).

        Infinite where it runs something, boots or is off, and where data of tasks go from or to it, or are kept there.
        """
        since = self._run.resources.idle_since()
        if self._transfers.exists:
            since[list(self._transfers.hosts_in_use)] = np.inf
        return since

    @_view
    def is_down(self) -> Booleans:
        """Whether each host went down by itself, or is drained, and will come back so, shape (hosts,)."""
        is_down = np.array(self._run.is_down, dtype=np.bool_)
        is_down[list(self._run.resources.drained)] = True
        return is_down

    @_view
    def queue_length(self) -> Integers:
        """Tasks in each host's fixed queue, shape (hosts,)."""
        length = np.zeros(len(self._run.fixed), dtype=np.int64)
        for host in self._run.queued_hosts:
            length[host] = len(self._run.fixed[host])
        return length

    @_view
    def queue_offsets(self) -> Integers:
        """Start of each host's part of `queue_tasks`, shape (hosts + 1,)."""
        return np.cumsum([0, *self.queue_length])

    @_view
    def queue_tasks(self) -> Integers:
        """Tasks of all fixed queues, host after host, in their order."""
        run = self._run
        queued = [task for h in sorted(run.queued_hosts) for task, _ in run.fixed[h]]
        return np.array(queued, dtype=np.int64)

    @_view
    def background_load(self) -> Floats:
        """Share of each host that others use, in [0, 1), shape (hosts,).

        Both drivers simulate dedicated hosts: it is 0. Dynamic FPLTF's formula knows it.
        """
        return np.zeros(len(self._run.is_on))

    @_view
    def file_available(self) -> Floats:
        """When each input file is in each cluster [s], shape (files, clusters); inf: missing.

        Only transfers that have begun (or belong to a fixed assignment) count.
        """
        return self._staged("file_available")[0]

    @_view
    def uplink_free(self) -> Floats:
        """When the transfers into each cluster that count above end [s], shape (clusters,)."""
        return self._staged("uplink_free")[1]

    def _staged(self, name: str) -> tuple[Floats, Floats]:
        if not self._staging.exists:
            raise AttributeError(f"state.{name}: the tasks of this run have no input files.")
        return self._staging.begun(self.now)


def renewed(state: LiveState, reveal: Reveal, now: float, submitted: int, only: int | None = None) -> LiveState:
    """Make the one `LiveState` of a run valid for an instant; no policy gets this.

    Parameters
    ----------
    state : LiveState
    reveal : callable
        Lets the state's estimates know of tasks (`Estimates.concealed`).
    now : float
        The instant [s].
    submitted : int
        So many tasks are submitted.
    only : int, optional
        The one task to map.
    """
    state.now = now
    state._only = only
    followed(state)
    state.tasks_to_arrive = state._run.n_tasks - submitted
    if submitted != state._submitted:
        state._submitted = submitted
        reveal(submitted)
    return state


def capped(state: LiveState, cap_w: float) -> None:
    """Let a state show another cap on the power of hosts [W]; no policy gets this."""
    state.power_cap_w = cap_w


def followed(state: LiveState) -> None:
    """Have a state made again where it is read, after something has happened; no policy gets this."""
    if state._views:
        state._views = {}
    state._account.forget_state()
