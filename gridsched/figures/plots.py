"""Figures for a notebook: each function returns the figure that it has drawn.

All take ``ax``, where to draw: axes, in whose place among subplots the figure is drawn; or an empty
figure, or an empty part of one. Without it they make a figure of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gridsched.analysis.study_results import StudyResults
from gridsched.errors import InputError, did_you_mean
from gridsched.figures.figure_file import Subject, kind_of
from gridsched.figures.figure_style import Place, plotting_in, set_title, style
from gridsched.figures.study_figure import layout_of
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import SystemWorkload
from gridsched.model.tasks import Tasks
from gridsched.model.trace import Trace
from gridsched.runs.figure_kinds import figure_kinds
from gridsched.workloads.traces.job_table import JobTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from gridsched.analysis.comparison import Comparison
    from gridsched.runs.run import RunResult


def plot_gantt(result: RunResult | Trace, ax: Place | None = None, *, title: str = "") -> Figure | SubFigure:
    """Draw who executed what when.

    Parameters
    ----------
    result : RunResult or Trace
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    title : str
        A line above.
    """
    return _plotted("gantt", "run", result, ax, title)


def plot_graph(result: RunResult | Trace, ax: Place | None = None, *, title: str = "") -> Figure | SubFigure:
    """Draw tasks that wait for each other in layers, with their hosts and the longest path.

    Parameters
    ----------
    result : RunResult or Trace
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    title : str
        A line above.
    """
    return _plotted("graph", "run", result, ax, title)


def plot_power(result: RunResult | Trace, ax: Place | None = None, *, title: str = "") -> Figure | SubFigure:
    """Draw the power of all computing hosts [W] and their energy so far [J].

    Parameters
    ----------
    result : RunResult or Trace
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    title : str
        A line above.
    """
    return _plotted("power", "run", result, ax, title)


def plot_trace(
    result: RunResult | Trace, ax: Place | None = None, *, step_s: float | None = None, title: str = ""
) -> Figure | SubFigure:
    """Draw energy and utility so far, mean power, and tasks over time, step by step.

    Parameters
    ----------
    result : RunResult or Trace
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    step_s : float, optional
        Length of a step [s]; default 20 min, or a 72nd of a run of less than a day.
    title : str
        A line above.
    """
    return _plotted("trace", "run", result, ax, step_s=step_s, title=title)


def plot_prices(
    result: RunResult | Trace, ax: Place | None = None, *, tariff: Tariff | None = None, title: str = ""
) -> Figure | SubFigure:
    """Draw prices that vary, the power meanwhile [W], and what was paid so far [money].

    Parameters
    ----------
    result : RunResult or Trace
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    tariff : Tariff, optional
        The prices; by default those of the run, of its tariff or of its budget in money.
    title : str
        A line above.

    Raises
    ------
    InputError
        If there are no prices that vary.
    """
    if tariff is None and not isinstance(result, Trace):
        scenario = result.scenario
        tariff = scenario.tariff or Tariff.of_budget(scenario.budget)
    return _plotted("prices", "run", result, ax, tariff=tariff, title=title)


def plot_carbon(result: RunResult | Trace, ax: Place | None = None, *, title: str = "") -> Figure | SubFigure:
    """Draw power [W], its carbon intensity at each site [g/kWh], and energy and carbon so far [J, g].

    Parameters
    ----------
    result : RunResult or Trace
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    title : str
        A line above.

    Raises
    ------
    InputError
        If no source gives the carbon intensity.
    """
    return _plotted("carbon", "run", result, ax, title)


def plot_traffic(result: RunResult | Trace, ax: Place | None = None, *, title: str = "") -> Figure | SubFigure:
    """Draw the bytes over all links together and over the busiest links [byte/s], of a run with `traffic_step_s`.

    Parameters
    ----------
    result : RunResult or Trace
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    title : str
        A line above.

    Raises
    ------
    InputError
        If the run has no record of this.
    """
    return _plotted("traffic", "run", result, ax, title)


def plot_comparison(comparison: Comparison, ax: Place | None = None, *, title: str = "") -> Figure | SubFigure:
    """Draw energy [J] and makespan [s], or utility, of several schedulers.

    Parameters
    ----------
    comparison : Comparison
        As `compare` gives it.
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    title : str
        A line above.
    """
    return _plotted("bars", "comparison", comparison.rows, ax, title)


def plot_workload(
    workload: Tasks | SystemWorkload | JobTable, ax: Place | None = None, *, title: str = ""
) -> Figure | SubFigure:
    """Draw the sizes of tasks and their arrivals.

    Parameters
    ----------
    workload : Tasks, SystemWorkload or JobTable
        Of a system with task types, its times, energies and utility classes are drawn, too; of
        parallel jobs, widths, run times and the work so far.
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    title : str
        A line above.

    Raises
    ------
    InputError
        If the tasks of a system have no utility functions.
    """
    if isinstance(workload, SystemWorkload):
        return _plotted("overview", "system", workload, ax, title)
    if isinstance(workload, JobTable):
        return _plotted("jobs", "jobs", workload, ax, title)
    return _plotted("sizes", "tasks", workload, ax, title)


def plot_front(landscape: Any, ax: Place | None = None, *, title: str = "") -> Figure | SubFigure:
    """Draw makespan over energy: what is possible, the front, and what its places earn.

    Parameters
    ----------
    landscape : Landscape
        What is possible of a bag; docs/profit.md shows how to get it.
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    title : str
        A line above.
    """
    return _plotted("front", "landscape", landscape, ax, title)


def plot_study(
    results: StudyResults,
    figure: str,
    ax: Place | None = None,
    *,
    metric: str = "",
    where: Mapping[str, Sequence[Any]] | None = None,
) -> Figure | SubFigure:
    """Draw a figure of a study's report.

    Parameters
    ----------
    results : StudyResults
        As `gridsched.analysis.study_results.read_results` gives it.
    figure : str
        The name of one of the study's own ``[[figures]]``; or ``bars``, ``sweep``, ``boxes``,
        ``pareto`` or ``trace``, of which the first is drawn that the report would hold.
    ax : Axes, SubFigure or Figure, optional
        Where it is drawn; by default in a figure of its own.
    metric : str
        What ``bars``, ``sweep`` and ``boxes`` draw; by default the study's first metric.
    where : mapping, optional
        Axis -> values that those figures show; by default the report's.

    Raises
    ------
    InputError
        If there is no such figure, or the study has nothing to draw in it.
    """
    declared = {each.name: each for each in results.study.figures}
    kinds = figure_kinds("study")
    legal = [*declared, *kinds]
    if figure not in legal:
        raise InputError(
            f"Study {results.study.name!r} has no figure {figure!r}. {did_you_mean(figure, legal)}"
            f"Allowed: {', '.join(legal)}."
        )
    with style(), plotting_in(ax):
        if figure in declared:
            chosen = declared[figure]
            return figure_kinds("declared")[chosen.kind].draw(results, chosen).figure
        layout = layout_of(results, metrics=[metric] if metric else None, where=where)
        for plotted in kinds[figure].draw(results, layout):
            return plotted.figure
    raise InputError(f"Study {results.study.name!r} has nothing to draw as {figure!r}.")


def _plotted(kind: str, of: Subject, subject: Any, ax: Place | None, title: str, **options: Any) -> Figure | SubFigure:
    if of == "run" and not isinstance(subject, Trace):
        subject = subject.trace
    with style(), plotting_in(ax):
        figure: Figure | SubFigure = kind_of(kind, of).draw(subject, **options).figure
        set_title(figure, title)
    return figure
