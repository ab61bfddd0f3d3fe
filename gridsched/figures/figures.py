"""The figures, in one place; each is saved with its data."""

from gridsched.figures.comparison_figure import comparison_bars
from gridsched.figures.figure_file import check_figure_path, check_target
from gridsched.figures.gantt_figure import gantt
from gridsched.figures.power_figure import power
from gridsched.figures.run_trace_figure import run_trace
from gridsched.figures.workload_figure import workload_overview

__all__ = [
    "check_figure_path",
    "check_target",
    "comparison_bars",
    "gantt",
    "power",
    "run_trace",
    "workload_overview",
]
