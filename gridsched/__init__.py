"""Simulate grids on SimGrid and compare schedulers by energy and makespan."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gridsched.version import __version__ as __version__

if TYPE_CHECKING:
    from gridsched.analysis.comparison import Comparison, compare
    from gridsched.analysis.study_results import read_results
    from gridsched.campaign.store import Store
    from gridsched.figures.plots import (
        plot_carbon,
        plot_comparison,
        plot_front,
        plot_gantt,
        plot_power,
        plot_prices,
        plot_study,
        plot_trace,
        plot_workload,
    )
    from gridsched.metrics import Metric, RunFacts, register_metric
    from gridsched.model.platform import Cluster, Host, Platform, PState
    from gridsched.model.system import System
    from gridsched.model.tasks import Tasks, make_tasks
    from gridsched.platform_io.xml_reader import read_platform
    from gridsched.policy.base import Delegate, Scheduler, Traits
    from gridsched.policy.decisions import (
        Allocate,
        Assign,
        Cancel,
        Drop,
        Note,
        Plan,
        Postpone,
        PowerOff,
        PowerOn,
        WakeAt,
    )
    from gridsched.policy.registry import make_scheduler, register
    from gridsched.runs.energy_agreement import energy_check
    from gridsched.runs.run import RunResult, run
    from gridsched.runs.run_many import run_many
    from gridsched.runs.scenario import Scenario
    from gridsched.runs.study import Study
    from gridsched.workloads.bag import BagOfTasks, generate_bag
    from gridsched.workloads.load import read_workload

#: Public names and the modules they live in; imported when first used.
_HOME = {
    "runs.energy_agreement": ("energy_check",),
    "runs.run": ("RunResult", "run"),
    "runs.run_many": ("run_many",),
    "runs.scenario": ("Scenario",),
    "analysis.comparison": ("Comparison", "compare"),
    "figures.plots": (
        "plot_carbon",
        "plot_comparison",
        "plot_front",
        "plot_gantt",
        "plot_power",
        "plot_prices",
        "plot_study",
        "plot_trace",
        "plot_workload",
    ),
    "analysis.study_results": ("read_results",),
    "campaign.store": ("Store",),
    "metrics": ("Metric", "RunFacts", "register_metric"),
    "runs.study": ("Study",),
    "model.platform": ("Cluster", "Host", "PState", "Platform"),
    "model.system": ("System",),
    "model.tasks": ("Tasks", "make_tasks"),
    "platform_io.xml_reader": ("read_platform",),
    "policy.base": ("Delegate", "Scheduler", "Traits"),
    "policy.decisions": (
        "Allocate",
        "Assign",
        "Cancel",
        "Drop",
        "Note",
        "Plan",
        "Postpone",
        "PowerOff",
        "PowerOn",
        "WakeAt",
    ),
    "policy.registry": ("make_scheduler", "register"),
    "workloads.bag": ("BagOfTasks", "generate_bag"),
    "workloads.load": ("read_workload",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Allocate",
    "Assign",
    "BagOfTasks",
    "Cancel",
    "Cluster",
    "Comparison",
    "Delegate",
    "Drop",
    "Host",
    "Metric",
    "Note",
    "PState",
    "Plan",
    "Platform",
    "Postpone",
    "PowerOff",
    "PowerOn",
    "RunFacts",
    "RunResult",
    "Scenario",
    "Scheduler",
    "Store",
    "Study",
    "System",
    "Tasks",
    "Traits",
    "WakeAt",
    "compare",
    "energy_check",
    "generate_bag",
    "make_scheduler",
    "make_tasks",
    "plot_carbon",
    "plot_comparison",
    "plot_front",
    "plot_gantt",
    "plot_power",
    "plot_prices",
    "plot_study",
    "plot_trace",
    "plot_workload",
    "read_platform",
    "read_results",
    "read_workload",
    "register",
    "register_metric",
    "run",
    "run_many",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gridsched' has no attribute {name!r}")
    return getattr(importlib.import_module(f"gridsched.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
