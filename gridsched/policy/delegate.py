"""The decision to let another policy decide."""

from __future__ import annotations

from dataclasses import dataclass

from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Decision


@dataclass(slots=True)
class Delegate(Decision):
    """Let another policy decide from now on, beginning in this instant (`delegates`).

    It is prepared with the run's random stream and asked as its own traits say; tasks that wait
    count as newly submitted. Its traits must be among those of the policy that delegates.
    """

    scheduler: Scheduler
