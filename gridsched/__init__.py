"""Simulate grids on SimGrid and compare schedulers by energy and makespan."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gridsched.renamed import named_now
from gridsched.version import __version__ as __version__

if TYPE_CHECKING:
    from gridsched.analysis.comparison import Comparison as Comparison
    from gridsched.analysis.comparison import compare as compare
    from gridsched.analysis.statistics import Interval as Interval
    from gridsched.analysis.statistics import t_interval as t_interval
    from gridsched.analysis.study_results import read_results as read_results
    from gridsched.campaign.run_records import read_records as read_records
    from gridsched.campaign.store import Store as Store
    from gridsched.export.export import read_export as read_export
    from gridsched.figures.figure_file import PlottedFigure as PlottedFigure
    from gridsched.figures.figure_file import register_figure as register_figure
    from gridsched.figures.figure_style import new_figure as new_figure
    from gridsched.figures.plots import plot_carbon as plot_carbon
    from gridsched.figures.plots import plot_comparison as plot_comparison
    from gridsched.figures.plots import plot_front as plot_front
    from gridsched.figures.plots import plot_gantt as plot_gantt
    from gridsched.figures.plots import plot_graph as plot_graph
    from gridsched.figures.plots import plot_power as plot_power
    from gridsched.figures.plots import plot_prices as plot_prices
    from gridsched.figures.plots import plot_study as plot_study
    from gridsched.figures.plots import plot_trace as plot_trace
    from gridsched.figures.plots import plot_traffic as plot_traffic
    from gridsched.figures.plots import plot_workload as plot_workload
    from gridsched.metrics import Metric as Metric
    from gridsched.metrics import RunFacts as RunFacts
    from gridsched.metrics import register_metric as register_metric
    from gridsched.model.carbon import Carbon as Carbon
    from gridsched.model.parallel_estimates import ParallelEstimates as ParallelEstimates
    from gridsched.model.parallel_estimates import node_platform as node_platform
    from gridsched.model.platform import Cluster as Cluster
    from gridsched.model.platform import Host as Host
    from gridsched.model.platform import Platform as Platform
    from gridsched.model.platform import PState as PState
    from gridsched.model.run_times import LoggedRunTimes as LoggedRunTimes
    from gridsched.model.seeds import random_stream as random_stream
    from gridsched.model.system import System as System
    from gridsched.model.tariff import Tariff as Tariff
    from gridsched.model.tasks import Tasks as Tasks
    from gridsched.model.tasks import make_tasks as make_tasks
    from gridsched.model.utility import UtilityClasses as UtilityClasses
    from gridsched.model.utility import UtilityFunctions as UtilityFunctions
    from gridsched.optimize.bag_bounds import bag_bounds as bag_bounds
    from gridsched.platform_io.xml_reader import read_platform as read_platform
    from gridsched.policy.base import Delegate as Delegate
    from gridsched.policy.base import Scheduler as Scheduler
    from gridsched.policy.base import Traits as Traits
    from gridsched.policy.base import TraitsWith as TraitsWith
    from gridsched.policy.decisions import Allocate as Allocate
    from gridsched.policy.decisions import Assign as Assign
    from gridsched.policy.decisions import Cancel as Cancel
    from gridsched.policy.decisions import Drop as Drop
    from gridsched.policy.decisions import Note as Note
    from gridsched.policy.decisions import Plan as Plan
    from gridsched.policy.decisions import Postpone as Postpone
    from gridsched.policy.decisions import PowerOff as PowerOff
    from gridsched.policy.decisions import PowerOn as PowerOn
    from gridsched.policy.decisions import WakeAt as WakeAt
    from gridsched.policy.registry import make_scheduler as make_scheduler
    from gridsched.policy.registry import register as register
    from gridsched.runs.plugin_agreement import energy_check as energy_check
    from gridsched.runs.run import RunResult as RunResult
    from gridsched.runs.run import run as run
    from gridsched.runs.run_many import run_many as run_many
    from gridsched.runs.simulation import Simulation as Simulation
    from gridsched.runs.study import Study as Study
    from gridsched.runs.study import study_text as study_text
    from gridsched.scenario import Scenario as Scenario
    from gridsched.schedulers.parallel.backfilling import EasyBackfilling as EasyBackfilling
    from gridsched.schedulers.parallel.predictors import Predictor as Predictor
    from gridsched.schedulers.parallel.queue_orders import QueueOrder as QueueOrder
    from gridsched.workloads.bag import BagOfTasks as BagOfTasks
    from gridsched.workloads.bag import generate_bag as generate_bag
    from gridsched.workloads.generator_keys import GeneratorKeys as GeneratorKeys
    from gridsched.workloads.load import read_system_workload as read_system_workload
    from gridsched.workloads.load import read_workload as read_workload

#: Modules and the public names that live there today, each imported when first used. Users rely on the names, not on
#: where they live.
_HOME = {
    "analysis.comparison": ("Comparison", "compare"),
    "analysis.statistics": ("Interval", "t_interval"),
    "analysis.study_results": ("read_results",),
    "campaign.run_records": ("read_records",),
    "campaign.store": ("Store",),
    "export.export": ("read_export",),
    "figures.figure_file": ("PlottedFigure", "register_figure"),
    "figures.figure_style": ("new_figure",),
    "figures.plots": (
        "plot_carbon",
        "plot_comparison",
        "plot_front",
        "plot_gantt",
        "plot_graph",
        "plot_power",
        "plot_prices",
        "plot_study",
        "plot_trace",
        "plot_traffic",
        "plot_workload",
    ),
    "metrics": ("Metric", "RunFacts", "register_metric"),
    "model.carbon": ("Carbon",),
    "model.parallel_estimates": ("ParallelEstimates", "node_platform"),
    "model.platform": ("Cluster", "Host", "PState", "Platform"),
    "model.run_times": ("LoggedRunTimes",),
    "model.seeds": ("random_stream",),
    "model.system": ("System",),
    "model.tariff": ("Tariff",),
    "model.tasks": ("Tasks", "make_tasks"),
    "model.utility": ("UtilityClasses", "UtilityFunctions"),
    "optimize.bag_bounds": ("bag_bounds",),
    "platform_io.xml_reader": ("read_platform",),
    "policy.base": ("Delegate", "Scheduler", "Traits", "TraitsWith"),
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
    "runs.run": ("RunResult", "run"),
    "runs.plugin_agreement": ("energy_check",),
    "runs.run_many": ("run_many",),
    "runs.simulation": ("Simulation",),
    "runs.study": ("Study", "study_text"),
    "schedulers.parallel.backfilling": ("EasyBackfilling",),
    "schedulers.parallel.predictors": ("Predictor",),
    "schedulers.parallel.queue_orders": ("QueueOrder",),
    "scenario": ("Scenario",),
    "workloads.bag": ("BagOfTasks", "generate_bag"),
    "workloads.generator_keys": ("GeneratorKeys",),
    "workloads.load": ("read_system_workload", "read_workload"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(named_now(f"module 'gridsched' has no attribute {name!r}"))
    return getattr(importlib.import_module(f"gridsched.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
