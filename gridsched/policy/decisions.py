"""What a scheduler may ask for. Decisions are requests; the controller checks each of them."""

from __future__ import annotations

from dataclasses import dataclass

from gridsched.arrays import Floats, Integers


class Decision:
    """Base of all decisions."""

    __slots__ = ()


@dataclass(slots=True)
class Assign(Decision):
    """Append a task to a host's fixed queue (first in, first out); all its parts lie on that host.

    A task that waits for others may be in it: at the head it holds up what is behind it.
    `pstate` None means the scenario's P-state. Of a running task: queue a further copy
    (needs the trait `replicates`).
    """

    task: int
    host: int
    pstate: int | None = None


@dataclass(slots=True)
class Allocate(Decision):
    """Start a task on a set of hosts, now or at `start` [s] (`parallel`).

    A host is named as often as it gives parts of the task (`Tasks.width`). Whole nodes are as many
    as the task takes there (`Estimates.width`), distinct and of one cluster; nodes that are shared
    lie in the task's partition. `pstate` None means the scenario's P-state. Now, hosts must be on,
    booted, with room for the parts, and what they give may not be reserved before the task's
    estimated end. A later start is a permanent reservation: it cannot be withdrawn, there must be
    room by then as estimated (``state.nodes.free_at``), and if there is none, the run ends with an
    error. Of a running task: start a further copy now (needs the trait `replicates`).
    """

    task: int
    hosts: Integers
    pstate: int | None = None
    start: float | None = None


@dataclass(slots=True)
class Plan(Decision):
    """Replace all virtual queues: task k of the arrays goes to the end of its host's queue.

    Tasks left out are waiting again. `pstates` None means the scenario's P-state for all.

    `hosts` None makes one common queue of tasks that one host can hold: any host with room takes the
    next one, hosts in order of their ids; tasks that wait for others are passed over. While it lasts,
    finishes are no reason to ask the policy. It has no P-states of its own, and is refused where a
    budget refuses.

    With `offsets` and `starts` (`parallel`) it makes place-holders: task k takes
    ``hosts[offsets[k]:offsets[k + 1]]`` from ``starts[k]`` [s] on. One whose start comes before
    the policy is asked again simply starts, those that start now do so at once; all others are
    withdrawn before it is asked. A plan is judged by its energy when it is made, and by its hosts
    when a task starts, as an `Allocate` is.
    """

    tasks: Integers
    hosts: Integers | None
    pstates: Integers | None = None
    offsets: Integers | None = None
    starts: Floats | None = None


@dataclass(slots=True)
class Cancel(Decision):
    """Withdraw a queued task (`may_cancel`), or end a running copy as wasted (`replicates`).

    A task that runs is killed, for good (`may_cancel`); or it waits again, to start from its begin
    (`requeue`). After either the policy is asked again in the same instant. What `Assign` or `Plan` has
    started in this instant, or what waits on its host for data, has not computed yet: without the trait
    `parallel` it is withdrawn as if it were queued.
    """

    task: int
    host: int | None = None
    requeue: bool = False


@dataclass(slots=True)
class Drop(Decision):
    """Give a mappable task up for good (`may_drop`)."""

    task: int


@dataclass(slots=True)
class Postpone(Decision):
    """Take a mappable task out of `mappable` until the next budget period (`may_drop`)."""

    task: int


@dataclass(slots=True)
class PowerOff(Decision):
    """Switch a host off, which shuts down; not allowed while anything runs or is fixed there, or data are in use.

    Data are in use that tasks make for each other while they go from or to the host, or are kept there for tasks that
    have no host so far (`State.idle_since`).

    Needs the trait `powers_hosts`.
    """

    host: int


@dataclass(slots=True)
class PowerOn(Decision):
    """Switch a host on, which boots, when it has shut down, and then takes tasks.

    Needs the trait `powers_hosts`.
    """

    host: int


@dataclass(slots=True)
class Note(Decision):
    """Keep a finite number beside a task, in a column that `Traits.notes` names; the last counts.

    It changes nothing in the run: it goes into the trace, and from there into exports and metrics.
    """

    task: int
    column: str
    value: float


@dataclass(slots=True)
class WakeAt(Decision):
    """Ask again at `time` [s], or with `mapping_interval_s` at the first event from then on.

    Events come anyway; there it states that the wait is intended, however many pass with nothing to do.
    Wakes in a row that lead to nothing end the run after a while (`Rules.max_idle_wakeups`), even while tasks run
    if no wake is later than the one before by more than the clock resolves: 1e-9 s, or 1e-12 of a time after 1,000 s.
    """

    time: float
