"""Simulate grids on SimGrid and compare schedulers by energy and makespan."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gridsched.experiment.run import RunResult, energy_check, run
    from gridsched.experiment.scenario import Scenario
    from gridsched.experiment.store import Store
    from gridsched.experiment.study import Study
    from gridsched.model.platform import Cluster, Host, Platform, PState
    from gridsched.model.system import System
    from gridsched.model.tasks import Tasks, make_tasks
    from gridsched.platform_io.xml_reader import read_platform
    from gridsched.schedulers.base import Scheduler, Traits
    from gridsched.schedulers.decisions import (
        Assign,
        Cancel,
        Drop,
        Plan,
        PowerOff,
        PowerOn,
        WakeAt,
    )
    from gridsched.schedulers.registry import make_scheduler, register
    from gridsched.workloads.bag import BagOfTasks, generate_bag
    from gridsched.workloads.load import read_workload

#: Public names and the modules they live in; imported when first used.
_HOME = {
    "experiment.run": ("RunResult", "energy_check", "run"),
    "experiment.scenario": ("Scenario",),
    "experiment.store": ("Store",),
    "experiment.study": ("Study",),
    "model.platform": ("Cluster", "Host", "PState", "Platform"),
    "model.system": ("System",),
    "model.tasks": ("Tasks", "make_tasks"),
    "platform_io.xml_reader": ("read_platform",),
    "schedulers.base": ("Scheduler", "Traits"),
    "schedulers.decisions": (
        "Assign", "Cancel", "Drop", "Plan", "PowerOff", "PowerOn", "WakeAt",
    ),
    "schedulers.registry": ("make_scheduler", "register"),
    "workloads.bag": ("BagOfTasks", "generate_bag"),
    "workloads.load": ("read_workload",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Assign",
    "BagOfTasks",
    "Cancel",
    "Cluster",
    "Drop",
    "Host",
    "PState",
    "Plan",
    "Platform",
    "PowerOff",
    "PowerOn",
    "RunResult",
    "Scenario",
    "Scheduler",
    "Store",
    "Study",
    "System",
    "Tasks",
    "Traits",
    "WakeAt",
    "energy_check",
    "generate_bag",
    "make_scheduler",
    "make_tasks",
    "read_platform",
    "read_workload",
    "register",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gridsched' has no attribute {name!r}")
    return getattr(importlib.import_module(f"gridsched.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
