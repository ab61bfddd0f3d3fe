"""Figures for a notebook: each function returns the figure, or draws in the place of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gridsched.figures.figure_file import drawn_in, style
from gridsched.figures.table import Subject, figures
from gridsched.model.tasks import Tasks
from gridsched.model.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from gridsched.analysis.comparison import Comparison
    from gridsched.spec.run import RunResult


def plot_gantt(
    result: RunResult | Trace, ax: Axes | None = None, *, title: str = ""
) -> Figure | SubFigure:
    """Draw who executed what when.

    Parameters
    ----------
    result : RunResult or Trace
    ax : Axes, optional
        Axes in whose place it is drawn; by default a figure of its own.
    title : str
        A line above.
    """
    return _drawn("gantt", "run", _trace(result), ax, title=title)


def plot_power(
    result: RunResult | Trace, ax: Axes | None = None, *, title: str = ""
) -> Figure | SubFigure:
    """Draw the power of all computing hosts [W] and their energy so far [J].

    Parameters
    ----------
    result : RunResult or Trace
    ax : Axes, optional
        Axes in whose place it is drawn; by default a figure of its own.
    title : str
        A line above.
    """
    return _drawn("power", "run", _trace(result), ax, title=title)


def plot_comparison(
    comparison: Comparison, ax: Axes | None = None, *, title: str = ""
) -> Figure | SubFigure:
    """Draw energy [J] and makespan [s], or utility, of several schedulers.

    Parameters
    ----------
    comparison : Comparison
        As `compare` gives it.
    ax : Axes, optional
        Axes in whose place it is drawn; by default a figure of its own.
    title : str
        A line above.
    """
    return _drawn("bars", "comparison", comparison.rows, ax, title=title)


def plot_workload(tasks: Tasks, ax: Axes | None = None, *, title: str = "") -> Figure | SubFigure:
    """Draw the sizes of tasks and their arrivals.

    Parameters
    ----------
    tasks : Tasks
    ax : Axes, optional
        Axes in whose place it is drawn; by default a figure of its own.
    title : str
        A line above.
    """
    return _drawn("sizes", "tasks", tasks, ax, title=title)


def _trace(result: RunResult | Trace) -> Trace:
    return result if isinstance(result, Trace) else result.trace


def _drawn(
    kind: str, of: Subject, subject: Any, ax: Axes | None, **options: Any
) -> Figure | SubFigure:
    draw = figures(of)[kind].draw
    with style(), drawn_in(ax):
        return draw(subject, **options).figure
