"""Papers 000 and 001: tasks whose value falls with time, serial and parallel, under a day's energy budget."""

from importlib import import_module
from typing import Any

from gridsched.plugins import Plugin, Variant, WorkloadKind, of_class

_serial = of_class("gridsched.systems.utility.serial_heuristics", ("utility",))
_greedy = of_class("gridsched.systems.utility.parallel_heuristics", ("parallel_utility",))
_aware = of_class("gridsched.systems.utility.arrival_aware", ("parallel_utility",))
_permanent = of_class("gridsched.systems.utility.permanent", ("parallel_utility",))

plugin = Plugin(
    "utility",
    schedulers=(
        _serial("max_max_upe", "MaxMaxUtilityPerEnergy", "paper 000, section III-B"),
        _serial("max_max_upt", "MaxMaxUtilityPerTime", "paper 000, section III-B"),
        _serial("max_max_util", "MaxMaxUtility", "paper 000, section III-B"),
        _serial("min_min_completion_time", "MinMinCompletionTime", "paper 000, section III-B"),
        _serial("random_mapping", "RandomMapping", "paper 000, section III-B"),
        _greedy("max_util", "MaxUtility", "paper 001, section 3.5"),
        _greedy("max_upt", "MaxUtilityPerTime", "paper 001, section 3.5"),
        _greedy("max_upr", "MaxUtilityPerResource", "paper 001, section 3.5"),
        _greedy("max_upe", "MaxUtilityPerEnergy", "paper 001, section 3.5"),
        _greedy("event_based", "EventBased", "paper 001, section 3.6"),
        _greedy("task_based", "TaskBased", "paper 001, section 3.6"),
        _aware("arrival_aware", "ArrivalAware", "paper 001, section 3.6, and beyond it: our own"),
        _permanent("fcfs_multiple_queues", "MultipleQueues", "paper 001, section 3.4"),
        _permanent("random_parallel", "RandomParallel", "paper 001, section 3.4"),
    ),
    workloads=(
        WorkloadKind(
            "utility",
            "gridsched.systems.utility.utility_day:UtilityDay",
            "gridsched.systems.utility.utility_day:generate_utility_day",
            makes_system=True,
            has_utility=True,
            document="docs/utility_workloads.md",
        ),
        WorkloadKind(
            "parallel",
            "gridsched.systems.utility.parallel_day:ParallelDay",
            "gridsched.systems.utility.parallel_tasks:generate_parallel_day",
            makes_system=True,
            has_utility=True,
            is_parallel=True,
            document="docs/parallel_workloads.md",
        ),
    ),
    studies="gridsched.systems.utility.studies",
    variants=(Variant("reservations", "permanent", "gridsched.systems.utility.permanent:permanent_backfilling"),),
    kernels=("gridsched.systems.utility.kernels.parallel_greedy", "gridsched.systems.utility.kernels.random_mapping"),
)

#: Public names, each imported when first used.
_HOME = {"ParallelDay": "parallel_day", "generate_parallel_day": "parallel_tasks"}

__all__ = ["ParallelDay", "generate_parallel_day"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
