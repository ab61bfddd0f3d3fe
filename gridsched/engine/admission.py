"""Whether a policy can serve a workload at all, told before the run."""

from __future__ import annotations

from gridsched.errors import InputError
from gridsched.model.estimates import TypedEstimates
from gridsched.model.parallel_estimates import ParallelEstimates
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
    if traits.parallel and tasks.width is None:
        raise InputError(
            f"{scheduler!r} accepts parallel jobs; the tasks of {tasks.name} are serial. Use a "
            "trace or tasks with a width, or another scheduler."
        )
    if tasks.width is not None:
        if not traits.parallel:
            raise InputError(
                f"{scheduler!r} accepts serial tasks; {tasks.name} has parallel jobs, of up to "
                f"{tasks.width.max(initial=1)} nodes. Use fcfs, easy_backfilling or "
                "conservative_backfilling."
            )
        check_nodes(system, tasks)
        speeds = system.platform.profiles.speeds
        if speeds and (traits.needs_utility or traits.reserves):
            raise InputError(
                f"{scheduler!r} plans later starts by estimates, and host {speeds[0][0]!r} has a "
                "speed profile, by which parallel jobs may last longer. Take the profile out, or "
                "use fcfs, easy_backfilling or conservative_backfilling without permanent "
                "reservations."
            )
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


def check_nodes(system: System, tasks: Tasks) -> None:
    """Raise `InputError` where parallel tasks meet what node sets do not have.

    Parameters
    ----------
    system : System
    tasks : Tasks
        Parallel ones.
    """
    platform = system.platform
    for host in platform.hosts:
        if host.cores != 1:
            raise InputError(
                f"{tasks.name}: parallel jobs need hosts of one core; host {host.name!r} of "
                f"{platform.name} has {host.cores}. Give each core, or each whole node, as a host."
            )
    for cluster in platform.clusters:
        first = platform.hosts[cluster.hosts[0]]
        for h in cluster.hosts:
            if platform.hosts[h].pstates is first.pstates:
                continue
            if [p.speed for p in platform.hosts[h].pstates] != [p.speed for p in first.pstates]:
                raise InputError(
                    f"{tasks.name}: parallel jobs need clusters of equal hosts; in "
                    f"{cluster.name!r} of {platform.name} hosts {first.name!r} and "
                    f"{platform.hosts[h].name!r} have other speeds. Put them into clusters of "
                    "their own."
                )
    estimates = system.estimates
    if isinstance(estimates, TypedEstimates):
        raise InputError(
            f"{tasks.name}: parallel jobs with task types need estimates by cluster "
            "(ParallelEstimates), not by host type."
        )
    if isinstance(estimates, ParallelEstimates) and len(estimates.task_type) != len(tasks):
        raise InputError(
            f"{tasks.name}: {len(tasks)} tasks, and estimates of {len(estimates.task_type)}; each "
            "task needs its own."
        )
    if tasks.files is not None:
        raise InputError(
            f"{tasks.name}: parallel jobs have no input files; leave them out (--files)."
        )
