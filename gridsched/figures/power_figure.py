"""Power of the grid over time, and the energy it adds up to."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from gridsched.figures.axes import plain_numbers
from gridsched.figures.figure_file import (
    BOOT,
    BUSY,
    IDLE,
    MANY_STEPS,
    OFF,
    SHUTDOWN,
    new_figure,
    prefixed,
    time_axis,
)
from gridsched.figures.table import Drawn, register_figure
from gridsched.model.trace import Trace
from gridsched.power import GridPower, grid_power

PARTS = (
    ("busy_w", BUSY), ("idle_w", IDLE), ("boot_w", BOOT), ("shutdown_w", SHUTDOWN), ("off_w", OFF)
)  # fmt: skip


@register_figure("power", "run", "Power of all computing hosts over time, and its energy.")
def power(trace: Trace, *, title: str = "") -> Drawn:
    """Draw the power of all computing hosts [W] by what they do, and their energy so far [J].

    Power is exact: it is drawn as the steps in which it changes.

    Parameters
    ----------
    trace : Trace
    title : str
    """
    series = grid_power(trace)
    figure = new_figure(9.0, 5.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    legend = draw_power(upper, series)
    _draw_energy(lower, _with_length(series))
    time_axis(lower, trace.horizon_s)
    if title:
        upper.set_title(title, loc="left")
    if legend:
        figure.legend(handles=legend, loc="outside lower center", ncols=len(legend))
    data = {
        "time_s": series.time, "busy_w": series.busy_w, "idle_w": series.idle_w,
        "boot_w": series.boot_w, "shutdown_w": series.shutdown_w, "off_w": series.off_w,
        "total_w": series.total_w, "energy_j": series.energy_j,
    }  # fmt: skip
    return Drawn(figure, data)


def _with_length(series: GridPower) -> GridPower:
    """Leave out the state after the end of the run, which lasts for no time."""
    kept = series.time < series.horizon_s
    if not kept.any():
        return series
    return series.taken(kept)


def draw_power(axes: Axes, series: GridPower) -> list[Patch]:
    """Draw power over time, its parts stacked; return what to say in the legend."""
    series = _with_length(series)
    time = np.append(series.time, series.horizon_s)
    factor, unit = prefixed("W", float(series.total_w.max(initial=0.0)))
    below = np.zeros(len(time))
    many, legend = len(time) > MANY_STEPS, []
    for name, look in PARTS:
        values = getattr(series, name)
        if values.any():
            values = np.append(values, values[-1:]) / factor
            area = axes.fill_between(
                time, below, below + values, step="post", facecolor=look.face, linewidth=0,
                edgecolor="#6a6a6a", hatch=look.hatch, rasterized=many,
            )  # fmt: skip
            area.set_hatch_linewidth(0.5)
            below = below + values
            legend.append(Patch(label=look.label, **look.style()))
    axes.step(time, below, where="post", color="black", linewidth=0.8, rasterized=many)
    axes.set_ylim(0.0, 1.08 * float(below.max(initial=0.0)) or 1.0)
    axes.set_ylabel(f"Power [{unit}]")
    axes.grid(axis="y")
    plain_numbers(axes.yaxis)
    return legend


def _draw_energy(axes: Axes, series: GridPower) -> None:
    """Draw the energy so far, all of it and that of busy hosts."""
    time = np.append(series.time, series.horizon_s)
    spans = np.diff(time)
    total = np.append(0.0, np.cumsum(series.total_w * spans))
    busy = np.append(0.0, np.cumsum(series.busy_w * spans))
    factor, unit = prefixed("J", float(total[-1]))
    axes.plot(time, total / factor, color="black", linewidth=1.3, label="all")
    axes.plot(time, busy / factor, color=BUSY.face, linewidth=1.3, linestyle="--", label="busy")
    axes.set_ylim(0.0, 1.12 * float(total[-1]) / factor or 1.0)
    axes.set_ylabel(f"Energy so far [{unit}]")
    if series.horizon_s > 0:
        axes.annotate(
            f"{total[-1] / factor:,.4g} {unit}", (time[-1], total[-1] / factor), xytext=(-4, 4),
        textcoords="offset points", ha="right", va="bottom", fontsize=8, fontweight="bold",
    )  # fmt: skip
    axes.legend(loc="upper left")
    axes.grid()
    plain_numbers(axes.yaxis)
