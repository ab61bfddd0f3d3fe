"""Paper 003: profit, energy and makespan of bags with task types, by linear programs."""

from importlib import import_module
from typing import Any

from gridsched.plugins import Command, Plugin, WorkloadKind, of_class

_plans = of_class("gridsched.systems.profit.linear_programmes", ("typed",))
_rolls = of_class("gridsched.systems.profit.lp_rolling", ("typed", "arrivals"))

plugin = Plugin(
    "profit",
    schedulers=(
        _plans("lp_max_profit", "LPMaxProfit", "paper 003, section IV"),
        _plans("lp_pareto", "LPPareto", "paper 003, section III"),
        _plans("lp_pareto_profit", "LPParetoProfit", "paper 003, section IV"),
        _rolls("lp_rolling", "LPRolling", "paper 003, section IV, for varying prices: our own"),
    ),
    workloads=(
        WorkloadKind(
            "profit",
            "gridsched.systems.profit.profit_system:ProfitBag",
            "gridsched.systems.profit.profit_system:generate_profit_bag",
            makes_system=True,
            document="docs/profit.md",
        ),
    ),
    figures=("gridsched.systems.profit.front_figure",),
    studies="gridsched.systems.profit.studies",
    commands=(
        Command(
            "optimize",
            "gridsched.systems.profit.commands",
            "Compute the best possible profit, energy and makespan by linear programming.",
        ),
    ),
)

#: Public names, each imported when first used.
_HOME = {"landscape": "answers", "most_profit": "profit_lp"}

__all__ = ["landscape", "most_profit"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
