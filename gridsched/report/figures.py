"""The figures, in one place; each is saved with its data."""

from gridsched.report.comparison_figure import comparison_bars
from gridsched.report.figure_file import check_figure_path, check_target
from gridsched.report.gantt_figure import gantt
from gridsched.report.power_figure import power
from gridsched.report.run_trace_figure import run_trace
from gridsched.report.workload_figure import workload_overview

__all__ = [
    "check_figure_path",
    "check_target",
    "comparison_bars",
    "gantt",
    "power",
    "run_trace",
    "workload_overview",
]
