"""Bags with few very long tasks, and what they do to the balance of a grid."""

from gridsched.plugins import Plugin, SchedulerEntry, WorkloadKind

plugin = Plugin(
    "heavy-tails",
    schedulers=(SchedulerEntry("two_choices", "heavy_tails.two_choices:TwoChoices", source="Mitzenmacher 2001"),),
    workloads=(WorkloadKind("pareto", "heavy_tails.pareto:ParetoBag", "heavy_tails.pareto:generate"),),
    metrics=("heavy_tails.balance",),
    figures=("heavy_tails.busy_figure",),
)
