"""Schedulers that learn: a run as a Gymnasium environment, and an agent as a scheduler.

Examples
--------
>>> from gridsched import Scenario, learning
>>> env = learning.make(Scenario("platforms/ex_a.xml", "examples/ex_a.csv"), reward="joules")
>>> options, info = env.reset(seed=1)
>>> options.shape  # of each host: completion, run time, energy
(3, 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gridsched.extras import check_installed
from gridsched.systems.learning.agent_scheduler import (
    AgentScheduler,
    Choice,
    HostChoice,
    JobChoice,
    PStateChoice,
    Question,
)

if TYPE_CHECKING:
    from gridsched.systems.learning.environment import Episodes, SchedulingEnvironment

__all__ = ["AgentScheduler", "Choice", "HostChoice", "JobChoice", "PStateChoice", "Question", "make"]


def make(scenario: Episodes, **options: Any) -> SchedulingEnvironment:
    """Return runs of a scenario as a Gymnasium environment.

    Parameters
    ----------
    scenario : Scenario, or callable
        Of each episode; ``scenario(seed)`` may make another workload of every seed.
    **options
        See `gridsched.systems.learning.environment.SchedulingEnvironment`.

    Raises
    ------
    MissingDependency
        If Gymnasium is not installed.
    InputError
        As the run of the scenario would.
    """
    check_installed("gymnasium", "Learning environments")
    from gridsched.systems.learning.environment import SchedulingEnvironment

    return SchedulingEnvironment(scenario, **options)
