"""What a policy sees of a run: a read-only view, valid during one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.model.estimates import Estimates
from gridsched.model.pmf import Pmf
from gridsched.model.signals import EVEN, Signal
from gridsched.model.tasks import Parts, Tasks

#: A power cap may be exceeded by this share: sums of rounded numbers are compared.
CAP_TOLERANCE = 1e-9
#: Fields of `State.running`.
RUNNING_COPY = np.dtype(
    [
        ("task", np.int64),
        ("host", np.int64),
        ("pstate", np.int64),
        ("start", np.float64),
        ("estimated_end", np.float64),
        ("width", np.int64),
    ]
)


@dataclass(frozen=True, slots=True)
class ReservedNodes:
    """Permanent reservations that have not started, in order of start.

    Attributes
    ----------
    task : ndarray of int64, shape (reservations,)
    start, end : ndarray of float64, shape (reservations,)
        From when to when, by the estimated run time [s].
    offsets : ndarray of int64, shape (reservations + 1,)
        Reservation k has the nodes ``hosts[offsets[k]:offsets[k + 1]]``.
    hosts : ndarray of int64
    """

    task: Integers
    start: Floats
    end: Floats
    offsets: Integers
    hosts: Integers

    def __post_init__(self) -> None:
        for array in (self.task, self.start, self.end, self.offsets, self.hosts):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.task)


@dataclass(eq=False, slots=True)
class NodesState:
    """Nodes and what runs on sets of them, as a policy of parallel tasks sees it.

    Its arrays are views: they hold for one call, and cannot be written to.

    Parameters
    ----------
    _get_free_at, _get_reserved : callable
        What returns `free_at` and `reserved`, if somebody asks.

    Attributes
    ----------
    free : ndarray of bool, shape (hosts,)
        Whether each node could start something now: it is on, has booted and runs nothing.
    n_free : int
        Number of free nodes.
    estimated_end : ndarray of float64, shape (running,)
        Estimated end of each running execution [s], in no particular order.
    width : ndarray of int64, shape (running,)
        Nodes that each of them leaves to others when it ends: all that it has, but for those that are drained.
    now : float
        Simulated time [s].
    """

    free: Booleans
    n_free: int
    estimated_end: Floats
    width: Integers
    now: float
    _get_free_at: Callable[[float], Floats]
    _get_reserved: Callable[[], ReservedNodes]
    _free_at: Floats | None = field(default=None, init=False)

    @property
    def free_at(self) -> Floats:
        """When each node gets free of what runs there [s], shape (hosts,), as estimated.

        Now where it is free, infinite where it is off or drained. Reservations do not count.
        """
        if self._free_at is None:
            self._free_at = self._get_free_at(self.now)
            self._free_at.setflags(write=False)
        return self._free_at

    @property
    def reserved(self) -> ReservedNodes:
        """The permanent reservations that have not started."""
        return self._get_reserved()


@dataclass(eq=False, slots=True)
class SharedNodesState(NodesState):
    """Nodes that executions share, as a policy sees them; `State.tasks` contains what each takes.

    Parameters
    ----------
    free, n_free, estimated_end, width, now, free_at, reserved
        As of `NodesState`; free is a node that runs nothing at all.
    left, rows, pool
        As the attributes.

    Attributes
    ----------
    left : ndarray of int64, shape (hosts, resources)
        What each node could give now, nothing where it is drained, in the order of ``state.tasks.resources``.
    rows : ndarray of int64, shape (3, running)
        Of each running execution its task, and from where on how many columns of `pool` it has.
    pool : ndarray of int64, shape (2, any)
        Nodes of executions, and how many parts of its job each gives; 0 where the node is drained.
    """

    left: Integers
    rows: Integers
    pool: Integers


@dataclass(frozen=True, slots=True)
class EnergyState:
    """The energy budget as a policy sees it; without a budget all limits are infinite.

    Attributes
    ----------
    budget_j : float
        Budget of the present period [J].
    consumed_j : float
        Drawn in the present period until now [J].
    committed_j : float
        What running tasks and fixed queues will draw until the period's end above the idle
        power of their cores [J].
    remaining_j : float
        ``budget_j - consumed_j - committed_j - idle_j`` (paper 000, eq. 1, whose hosts draw
        nothing when idle) [J].
    assigned_j : float
        Estimated energy of all tasks that were ever started or fixed [J] (paper 002's zeta); of
        what a `Cancel` withdrew, only the part that had been computed.
    period_start, period_end : float
        The present period [s].
    weights : Signal
        What a joule counts, by the time at which it is drawn: 1, or under a budget in money its
        price over the mean price. Everything but `assigned_j` is counted so.
    idle_j : float
        What all hosts would draw from now to the period's end if nothing ran [J]: the greatest
        idle power of each host's P-states, or what it draws while it is off. In a period without
        end until the last task ends that is committed.
    """

    budget_j: float
    consumed_j: float
    committed_j: float
    remaining_j: float
    assigned_j: float
    period_start: float
    period_end: float
    weights: Signal = EVEN
    idle_j: float = 0.0


@dataclass(frozen=True, slots=True)
class PowerState:
    """What the computing hosts draw together, by the model, and what they may draw.

    Attributes
    ----------
    draw_w : float
        Present power of all computing hosts [W]; nan where no power is known.
    cap_w : float
        The rule `power_cap_w` [W]; infinite without it.
    """

    draw_w: float
    cap_w: float

    @property
    def remaining_w(self) -> float:
        """What the hosts may draw more than now [W]."""
        return self.cap_w - self.draw_w

    def allows(self, more_w: ArrayLike) -> Booleans:
        """Whether the hosts may draw `more_w` more than now [W], up to rounding; each of some.

        An unknown power is allowed: there is no cap on it.
        """
        return np.asarray(~(self.draw_w + np.asarray(more_w) > self.cap_w * (1 + CAP_TOLERANCE)))


class State(ABC):
    """Present situation of a run. Arrays are fresh copies that cannot be written to.

    It follows each decision that `Scheduler.schedule` yields: read it again after the ``yield``.
    An array that was read before stays as it was, but for those of `nodes`.

    It contains nothing about tasks that are not yet submitted, but their number and, if a log
    names users and the like, which names there are (`Attribute.known`).

    Attributes
    ----------
    now : float
        Simulated time [s].
    estimates : Estimates
        Of the tasks submitted so far; the same object during the whole run.
    tasks_to_arrive : int
        Tasks that are not yet submitted. Their number is all that is known of them.
    power_cap_w : float
        The cap on `power` [W], which costs nothing to ask for; infinite without one. It may change during a run.
    """

    now: float
    estimates: Estimates
    tasks_to_arrive: int
    power_cap_w: float

    @property
    @abstractmethod
    def tasks(self) -> Tasks:
        """The tasks submitted so far; the same object until further tasks are submitted."""

    @property
    @abstractmethod
    def parts(self) -> Parts:
        """What parts of the tasks submitted so far take, and where: columns of `tasks`, cheap at each arrival.

        They are the same arrays during the whole run. They have a row for each of its tasks, which holds 0 until
        the task is submitted; but a column with one value for all tasks has that value in each row.
        """

    @abstractmethod
    def waiting(self) -> Iterator[int]:
        """Iterate over the ids of `mappable`; cheap where only the first few are wanted."""

    @abstractmethod
    def next_waiting(self, count: int) -> list[int]:
        """Return the first `count` ids of `mappable`, or as many as there are."""

    @property
    @abstractmethod
    def mappable(self) -> Integers:
        """Ids of tasks that may be mapped (waiting or virtually queued), ascending."""

    @property
    @abstractmethod
    def blocked(self) -> Integers:
        """Ids of submitted tasks that wait for others (`Tasks.dependencies`) or are held back, ascending.

        They may be assigned and planned, and start no earlier than what they wait for lets them; then they
        are mappable, unless they are in a queue or a plan. Times and limits of arrays hold tasks of logs back.
        """

    @abstractmethod
    def idle_cores(self) -> list[int]:
        """Return the hosts that could start a task now, ascending, once for each free core."""

    @property
    @abstractmethod
    def running(self) -> NDArray[np.void]:
        """All running copies in order of start: fields of `RUNNING_COPY`, times in [s].

        The host of a parallel task is the first of its nodes. A copy runs from the moment it takes
        its core; one that waits for its input files, too.
        """

    @property
    @abstractmethod
    def freed(self) -> Integers:
        """Hosts that each running copy leaves to others when it ends, in the order of `running`, shape (copies,).

        They are its width, but for hosts that are drained.
        """

    @abstractmethod
    def copies_of(self, task: int) -> list[tuple[int, float]]:
        """Return host and start [s] of each running copy of a task, the earliest first.

        For policies that replicate; for others it is empty.
        """

    @property
    @abstractmethod
    def nodes(self) -> NodesState:
        """Hosts as nodes: which are free, and estimated ends and widths of what runs."""

    @property
    @abstractmethod
    def core_ready_time(self) -> Floats:
        """When each core could take a newly appended task [s], shape (hosts, most cores).

        Running work and fixed queues count, with the data that tasks there wait for as far as they are made;
        virtual queues do not. Rows ascend; they are padded with infinity, and a host that is off has nothing else.
        """

    @abstractmethod
    def data_ready(self, task: int) -> Floats:
        """Return when the data that a task needs of others could be at each host [s], shape (hosts,).

        On their way from now on, but for what is there or under way, and as a transfer takes that shares no link
        (`System.network`). Files that no task makes count, too; data of tasks that have not ended do not. Now,
        where tasks need none.
        """

    @property
    @abstractmethod
    def ready_time(self) -> Floats:
        """When each host could take a newly appended task [s], shape (hosts,)."""

    @abstractmethod
    def ready_pmf(self, host: int) -> Pmf:
        """Return when a one-core host could take a newly appended task [s], as a distribution.

        Where run times are known as distributions (`StochasticEstimates`): of what runs there,
        knowing that it has not ended yet, and of its fixed queue. It is certain where the host
        runs nothing, and infinite where it is off.
        """

    @abstractmethod
    def late_probabilities(self, task: int) -> Floats:
        """Return the chance of a newly appended task to end late, shape (hosts, P-states).

        Where run times are known as distributions: the probability that the end of what
        `ready_pmf` returns and the task's own run time end after its deadline. It is 1 where the
        host is off or the task cannot run; chances closer than 1e-12 to 0 or 1 are 0 or 1.
        """

    @abstractmethod
    def queued_late_probabilities(self) -> Floats:
        """Return the chance of each queued task to end late, in the order of `queue_tasks`.

        As `late_probabilities`, but where the task is now.
        """

    @abstractmethod
    def mean_ready_time(self) -> Floats:
        """Return when each host could take a new task on average [s], shape (hosts,).

        The means of all `ready_pmf`, infinite where a host is off.
        """

    @property
    @abstractmethod
    def energy(self) -> EnergyState:
        """The energy budget of the present period and what is left of it."""

    @property
    @abstractmethod
    def power(self) -> PowerState:
        """What all hosts draw now, and the cap on it."""

    @abstractmethod
    def consumed_j(self) -> float:
        """Return what all computing hosts have drawn from time 0 until now [J], by the model.

        Each call adds what was drawn since the last one. It is nan where no power is known.
        """

    @property
    @abstractmethod
    def free_cores(self) -> Integers:
        """Cores of each host that run nothing, shape (hosts,)."""

    @property
    @abstractmethod
    def pstate(self) -> Integers:
        """P-state of each host, shape (hosts,)."""

    @property
    @abstractmethod
    def is_on(self) -> Booleans:
        """Whether each host is switched on (booting included) and not drained, shape (hosts,)."""

    @property
    @abstractmethod
    def idle_since(self) -> Floats:
        """Since when each host is on, has booted and runs nothing [s], shape (hosts,).

        Infinite where it runs something, boots or is off, and where data that tasks make for each other go from or to
        it, or are kept there until a task that needs them has its host.
        """

    @property
    @abstractmethod
    def is_down(self) -> Booleans:
        """Whether each host went down by itself or was drained, and will come back so, shape (hosts,).

        Such a host takes no task, and `PowerOn` cannot help it. What runs on one that is drained goes on.
        """

    @property
    @abstractmethod
    def queue_length(self) -> Integers:
        """Tasks in each host's fixed queue, shape (hosts,)."""

    @property
    @abstractmethod
    def queue_offsets(self) -> Integers:
        """Start of each host's part of `queue_tasks`, shape (hosts + 1,)."""

    @property
    @abstractmethod
    def queue_tasks(self) -> Integers:
        """Tasks of all fixed queues, host after host, in their order."""

    @property
    @abstractmethod
    def background_load(self) -> Floats:
        """Share of each host that others use, in [0, 1), shape (hosts,).

        Both drivers simulate dedicated hosts: it is 0. Dynamic FPLTF's formula knows it.
        """

    @property
    @abstractmethod
    def file_available(self) -> Floats:
        """When each input file is in each cluster [s], shape (files, clusters); inf: missing.

        Only transfers that have begun (or belong to a fixed assignment) count.
        """

    @property
    @abstractmethod
    def uplink_free(self) -> Floats:
        """When the transfers into each cluster that count above end [s], shape (clusters,)."""
