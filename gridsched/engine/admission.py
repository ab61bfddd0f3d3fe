"""Whether a policy can serve a workload at all, told before the run."""

from __future__ import annotations

from gridsched.errors import InputError
from gridsched.model.stochastic import StochasticEstimates
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler


def check_policy(scheduler: Scheduler, system: System, tasks: Tasks) -> None:
    """Raise `InputError` where the scenario lacks what the policy needs, or asks what it cannot.

    Parameters
    ----------
    scheduler : Scheduler
    system : System
    tasks : Tasks
    """
    traits = scheduler.traits
    if traits.needs_utility and tasks.utility is None:
        raise InputError(
            f"{scheduler!r} accepts workloads with utility functions; {tasks.name} has none. Use "
            "a generator of kind 'utility', or another scheduler."
        )
    times = tasks.submit_time_s
    if traits.asked == "start" and not traits.delegates and len(tasks) and times[0] != times[-1]:
        raise InputError(
            f"{scheduler!r} plans once, at the first submission, and {tasks.name} has tasks that "
            f"arrive until {times[-1]:g} s. Submit all at one time, or use another scheduler."
        )
    if traits.needs_distributions and not isinstance(system.estimates, StochasticEstimates):
        raise InputError(
            f"{scheduler!r} accepts workloads whose run times are distributions; those of "
            f"{tasks.name} are not. Use a generator of kind 'robust', or another scheduler."
        )
