"""What a scheduler may ask for. Decisions are requests; the controller checks each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gridsched.policy.base import Scheduler


@dataclass(slots=True)
class Assign:
    """Append a task to a host's fixed queue (first in, first out).

    `pstate` None means the scenario's P-state. Of a running task: queue a further copy
    (needs the trait `replicates`).
    """

    task: int
    host: int
    pstate: int | None = None


@dataclass(slots=True)
class Plan:
    """Replace all virtual queues: task k of the arrays goes to the end of its host's queue.

    Tasks left out are waiting again. `pstates` None means the scenario's P-state for all.
    """

    tasks: NDArray[np.int64]
    hosts: NDArray[np.int64]
    pstates: NDArray[np.int64] | None = None


@dataclass(slots=True)
class Cancel:
    """Withdraw a queued task (`may_cancel`), or end a running copy as wasted (`replicates`)."""

    task: int
    host: int | None = None


@dataclass(slots=True)
class Drop:
    """Give a mappable task up for good (`may_drop`)."""

    task: int


@dataclass(slots=True)
class Postpone:
    """Take a mappable task out of `mappable` until the next budget period (`may_drop`)."""

    task: int


@dataclass(slots=True)
class PowerOff:
    """Switch a host off; illegal while anything runs or is fixed there (`powers_hosts`)."""

    host: int


@dataclass(slots=True)
class PowerOn:
    """Switch a host on; it takes tasks after its boot time (`powers_hosts`)."""

    host: int


@dataclass(slots=True)
class WakeAt:
    """Ask again at `time` [s]; illegal with `mapping_interval_s`."""

    time: float


@dataclass(slots=True)
class Delegate:
    """Let another policy decide from now on, beginning in this instant (`delegates`).

    It is prepared with the run's random stream and asked as its own traits say; tasks that wait
    count as newly submitted. Its traits must be among those of the policy that delegates.
    """

    scheduler: Scheduler


Decision = Assign | Plan | Cancel | Drop | Postpone | PowerOff | PowerOn | WakeAt | Delegate
