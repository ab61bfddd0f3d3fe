"""Power over time, its carbon intensity at each site, and grams beside joules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gridsched.analysis.texts import prefixed
from gridsched.errors import InputError
from gridsched.figures.axes import hours_axis, quantity_axis
from gridsched.figures.figure_file import new_figure
from gridsched.figures.looks import series_looks
from gridsched.figures.power_figure import draw_power
from gridsched.figures.table import Drawn, register_figure
from gridsched.model.signals import J_PER_KWH, Signal, begins_of_lines
from gridsched.model.site_signals import site_names
from gridsched.model.trace import Trace
from gridsched.power import grid_power, trace_power


@register_figure("carbon", "run", "Power, its carbon intensity at each site, and the grams so far.")
def carbon(trace: Trace) -> Drawn:
    """Draw the power of all computing hosts, the intensity at their sites, and energy and carbon so far.

    Parameters
    ----------
    trace : Trace

    Raises
    ------
    InputError
        If nobody said the carbon intensity.
    """
    if trace.carbon is None or not trace.platform.has_energy:
        raise InputError("This run has no carbon intensity; run it with --carbon FILE.")
    sites = site_names(trace.carbon, trace.platform)
    steps = carbon_steps(trace)
    figure = new_figure(9.0, 6.4)
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
    legend = draw_power(panels[0], grid_power(trace))
    for k, look in series_looks(dict(enumerate(sites))).items():
        values = steps[f"g_per_kwh_{k}"]
        panels[1].step(
            steps["time_s"], values, where="post", linewidth=1.5, label=look.label, color=look.dark, linestyle=look.line
        )
    most = float(steps[[f"g_per_kwh_{k}" for k in range(len(sites))]].to_numpy().max())
    quantity_axis(panels[1], "Intensity\n[g/kWh]", 1.15 * most)
    if len(sites) > 1:
        panels[1].legend(loc="upper left", ncols=min(len(sites), 4))
    _draw_so_far(panels[2], steps)
    hours_axis(panels[2], 0.0, trace.horizon_s or 1.0)
    figure.align_ylabels(panels)
    if legend:
        figure.legend(handles=legend, loc="outside lower center", ncols=len(legend))
    return Drawn(figure, steps)


def carbon_steps(trace: Trace) -> pd.DataFrame:
    """Return power, intensities, and what was drawn and emitted, wherever one of them changes.

    Parameters
    ----------
    trace : Trace
        With a carbon intensity.

    Returns
    -------
    pandas.DataFrame
        From ``time_s`` until the next row: ``total_w``, and ``g_per_kwh_K`` of site K (PUE
        included); and up to ``time_s`` ``energy_j`` and ``carbon_g``. The last row is the end.
    """
    signal, power, end = trace.carbon, trace_power(trace), float(trace.horizon_s)
    assert signal is not None
    grid = grid_power(trace, power)
    sites: tuple[Signal, ...] = signal.sites or (signal,)
    changes = [begins_of_lines(each.begin_s, each.cycle_s, 0.0, end) for each in sites]
    time = np.unique(np.concatenate([grid.time, *changes, [end]]))
    time = time[time <= end]
    lasts, held = np.diff(time), np.append(time[:-1], time[-2:-1] if len(time) > 1 else time)
    weights = [each.at(held) for each in sites]
    site_of = np.array(signal.site or [0] * len(trace.platform))[power.timeline.host]
    emitted = np.zeros(len(lasts))
    for k, weight in enumerate(weights):
        own = grid_power(trace, replace(power, watts=np.where(site_of == k, power.watts, 0.0)))
        emitted += (_at(own.total_w, own.time, time) * weight)[:-1] * lasts
    watts = _at(grid.total_w, grid.time, time)
    return pd.DataFrame(
        {
            "time_s": time,
            "total_w": watts,
            **{f"g_per_kwh_{k}": np.round(weight * J_PER_KWH, 9) for k, weight in enumerate(weights)},
            "energy_j": np.append(0.0, np.cumsum(watts[:-1] * lasts)),
            "carbon_g": np.append(0.0, np.cumsum(emitted)),
        }
    )


def _at(values: np.ndarray, since: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return values that hold from some times on, at other times."""
    return np.asarray(values[np.searchsorted(since, time, side="right") - 1])


def _draw_so_far(axes: Axes, steps: pd.DataFrame) -> None:
    """Draw energy and carbon so far, each on its own axis."""
    beside = axes.twinx()
    beside.grid(visible=False)
    for place, column, unit, label, look in (
        (axes, "energy_j", "J", "energy", ("black", "-")),
        (beside, "carbon_g", "g", "carbon", ("#3f7f3a", "--")),
    ):
        most = float(steps[column].max())
        factor, prefixed_unit = prefixed(unit, most)
        place.plot(
            steps["time_s"], steps[column] / factor, label=label, color=look[0], linestyle=look[1], linewidth=1.4
        )
        quantity_axis(place, f"{label.capitalize()} so far\n[{prefixed_unit}]", 1.12 * most / factor)
    lines = [*axes.get_lines(), *beside.get_lines()]
    axes.legend(lines, ["energy", "carbon"], loc="upper left")
