"""Power of the grid over time with the energy, the money or the grams that it adds up to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from gridsched.analysis.texts import prefixed
from gridsched.errors import InputError
from gridsched.figures.axes import hours_axis, quantity_axis, time_axis, write_at
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.figure_style import legend_below, new_figure
from gridsched.figures.marks import MANY_STEPS
from gridsched.figures.series_styles import BOOT, BUSY, IDLE, OFF, SHUTDOWN, series_styles
from gridsched.metrics.varying_prices import bags_of, payments, prices_of
from gridsched.model.series import site_names
from gridsched.model.signals import J_PER_KWH, Signal, begins_of_lines
from gridsched.model.tariff import Tariff
from gridsched.model.trace import Trace
from gridsched.power import GridPower, grid_power, trace_power

if TYPE_CHECKING:
    from matplotlib.typing import LineStyleType

#: More changes of a price than this are not marked in the other panels.
MOST_MARKS = 60
PARTS = {"busy_w": BUSY, "idle_w": IDLE, "boot_w": BOOT, "shutdown_w": SHUTDOWN, "off_w": OFF}


class Curve(NamedTuple):
    """A quantity over time: its values, its name in the legend, and how it is drawn."""

    values: ArrayLike
    name: str
    color: str = "black"
    line: LineStyleType = "-"
    is_steps: bool = False


def stacked_panels(height: float, *ratios: float) -> tuple[Figure | SubFigure, Sequence[Axes]]:
    """Return a figure with panels one below the other, of such heights, over one time."""
    figure = new_figure(9.0, height)
    panels = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)
    return figure, panels[:, 0].tolist()


def finish_panels(figure: Figure | SubFigure, panels: Sequence[Axes], end_s: float, legend: Sequence[Artist]) -> None:
    """Give stacked panels their time axis, and a legend below them."""
    hours_axis(panels[-1], end_s)
    figure.align_ylabels(panels)
    legend_below(figure, legend)


def draw_curves(
    axes: Axes, time: ArrayLike, label: str, unit: str, curves: Iterable[Curve], most: float = 0.0
) -> tuple[float, str]:
    """Draw quantities over time on an axis from 0, which has room for all of them.

    Parameters
    ----------
    axes : Axes
    time : array_like
        [s].
    label : str
        Of the axis, without the unit.
    unit : str
        Of the values; empty: none.
    curves : iterable of Curve
    most : float
        A value for which there is room, too.

    Returns
    -------
    (float, str)
        What they are divided by, and the unit that they then have.
    """
    curves = list(curves)
    most = max([most, *(float(np.nanmax(curve.values, initial=0.0)) for curve in curves)])
    factor, unit = prefixed(unit, most) if unit else (1.0, "")
    for curve in curves:
        axes.plot(
            time,
            np.asarray(curve.values) / factor,
            label=curve.name,
            color=curve.color,
            linestyle=curve.line,
            linewidth=1.4,
            drawstyle="steps-post" if curve.is_steps else "default",
            rasterized=np.size(time) > MANY_STEPS,
        )
    quantity_axis(axes, f"{label}\n[{unit}]" if unit else label, 1.13 * most / factor)
    if len(curves) > 1:
        axes.legend(loc="upper left", ncols=min(len(curves), 4))
    return factor, unit


@register_figure("power", "run", "Power of all computing hosts over time, and its energy.")
def power(trace: Trace) -> PlottedFigure:
    """Draw the power of all computing hosts [W] by what they do, and their energy so far [J].

    Power is exact: it is drawn as the steps in which it changes.

    Parameters
    ----------
    trace : Trace
    """
    series = grid_power(trace)
    figure, (upper, lower) = stacked_panels(5.0, 3, 2)
    legend = draw_power(upper, series)
    _draw_energy(lower, series)
    time_axis(lower, trace.horizon_s)
    legend_below(figure, legend)
    parts = {name: getattr(series, name) for name in PARTS}
    return PlottedFigure(
        figure, {"time_s": series.time, **parts, "total_w": series.total_w, "energy_j": series.energy_j}
    )


def _to_the_end(series: GridPower, *names: str) -> list[Any]:
    """Return the times, with the end of the run as the last, and what holds from each of them on."""
    rows = series.time < series.horizon_s  # what comes after the end lasts for no time
    rows |= not rows.any()
    columns = [getattr(series, name)[rows] for name in names]
    return [np.append(series.time[rows], series.horizon_s), *(np.append(each, each[-1:]) for each in columns)]


def draw_power(axes: Axes, series: GridPower) -> list[Patch]:
    """Draw power over time, its parts stacked; return what to say in the legend."""
    time, *parts = _to_the_end(series, *PARTS)
    factor, unit = prefixed("W", float(series.total_w.max(initial=0.0)))
    below = np.zeros(len(time))
    many, legend = len(time) > MANY_STEPS, []
    for values, series_style in zip(parts, PARTS.values(), strict=True):
        if values.any():
            area = axes.fill_between(
                time,
                below,
                below + values / factor,
                step="post",
                facecolor=series_style.face,
                linewidth=0,
                edgecolor="#6a6a6a",
                hatch=series_style.hatch,
                rasterized=many,
            )
            area.set_hatch_linewidth(0.5)
            below = below + values / factor
            legend.append(Patch(label=series_style.label, **series_style.patch()))
    axes.step(time, below, where="post", color="black", linewidth=0.8, rasterized=many)
    quantity_axis(axes, f"Power [{unit}]", 1.08 * float(below.max(initial=0.0)))
    return legend


def _draw_energy(axes: Axes, series: GridPower) -> None:
    """Draw the energy so far, all of it and that of busy hosts."""
    time, *watts = _to_the_end(series, "total_w", "busy_w")
    total, busy = (_so_far(each, time) for each in watts)
    curves = [Curve(total, "all"), Curve(busy, "busy", BUSY.face, "--")]
    factor, unit = draw_curves(axes, time, "Energy so far", "J", curves)
    if series.horizon_s > 0:
        text, at = f"{total[-1] / factor:,.4g} {unit}", (time[-1], total[-1] / factor)
        write_at(axes, text, at, (-4, 4), "right", va="bottom", fontweight="bold")
    axes.grid(axis="x")


@register_figure("prices", "run", "Prices that vary, power meanwhile, and the money so far.")
def prices(trace: Trace, *, tariff: Tariff | None) -> PlottedFigure:
    """Draw the price of a kWh, the power of all computing hosts, and cost and income so far.

    Under a budget in money no bag pays, and there is no income.

    What a bag pays that waits alone is drawn, too, where it varies.

    Parameters
    ----------
    trace : Trace
    tariff : Tariff or None
        With prices that vary.

    Raises
    ------
    InputError
        If there is no such tariff.
    """
    if tariff is None or tariff.prices is None:
        raise InputError("This run has no prices that vary; run it with --prices FILE, or --money-budget.")
    if prices_of(tariff).sites is not None:
        raise InputError("The prices of this run differ by site; the figure is of one place. Draw 'power' instead.")
    steps = money_steps(trace, tariff)
    time, price_panels = steps["time_s"], {"energy_price_per_kwh": ("Energy price", "money/kWh")}
    if steps["bag_price"].nunique() > 1:
        price_panels["bag_price"] = "A bag pays", "money"
    figure, panels = stacked_panels(4.0 + 1.2 * len(price_panels), *[2] * len(price_panels), 3, 2)
    for axes, (name, words) in zip(panels, price_panels.items(), strict=False):
        draw_curves(axes, time, *words, [Curve(steps[name], name, is_steps=True)])
    legend = draw_power(panels[-2], grid_power(trace))
    money = [Curve(steps["energy_cost"], "cost of the energy", "#a5371b", "--")]
    if steps["income"].any() or steps["bag_price"].any():
        money.append(Curve(steps["income"], "income of bags", BUSY.face, is_steps=True))
    draw_curves(panels[-1], time, "So far", "money", money)
    panels[-1].legend(loc="upper left")
    changes = steps.loc[steps["price_line"].diff().fillna(0) != 0, "time_s"]
    if len(changes) <= MOST_MARKS:
        for axes in panels:
            for change in changes:
                axes.axvline(change, color="#a0a0a0", linewidth=0.7, linestyle=(0, (4, 3)), zorder=0)
    finish_panels(figure, panels, trace.horizon_s, legend)
    return PlottedFigure(figure, steps)


def money_steps(trace: Trace, tariff: Tariff) -> pd.DataFrame:
    """Return prices, power and money at each instant at which one of them changes.

    Parameters
    ----------
    trace : Trace
    tariff : Tariff
        With prices that vary.

    Returns
    -------
    pandas.DataFrame
        From ``time_s`` until the next row: ``price_line`` (of the table of prices),
        ``energy_price_per_kwh`` and ``bag_price`` [money], ``total_w``; and up to ``time_s``
        ``energy_cost`` (PUE included) and ``income`` [money]. The last row is the run's end.
    """
    series, grid, end = prices_of(tariff), grid_power(trace), float(trace.horizon_s)
    begins = series.begins(tariff.prices_cycle_s, end)
    paid_s, paid = payments(trace, bags_of(trace), tariff)
    time = _instants(grid, end, begins, paid_s)
    line = (np.searchsorted(begins, time, side="right") - 1) % len(series.time_s)
    watts = _held(grid, time)
    cost = np.array(series.energy_cost_per_j)[line]
    order = np.argsort(paid_s, kind="stable")
    so_far = np.append(0.0, np.cumsum(paid[order]))
    return pd.DataFrame(
        {
            "time_s": time,
            "price_line": line,
            "energy_price_per_kwh": np.round(cost * J_PER_KWH, 12),
            "bag_price": np.array(series.price)[line],
            "total_w": watts,
            "energy_cost": _so_far(tariff.pue * (watts * cost), time),
            "income": so_far[np.searchsorted(paid_s[order], time, side="right")],
        }
    )


def _instants(grid: GridPower, end: float, *others: ArrayLike) -> np.ndarray:
    """Return when the power or something else changes [s], and the end of the run."""
    time = np.unique(np.concatenate([grid.time, *others, [end]]))
    return time[time <= end]


def _held(grid: GridPower, time: np.ndarray) -> np.ndarray:
    """Return the power of all hosts from some times on [W]."""
    return np.asarray(grid.total_w[np.searchsorted(grid.time, time, side="right") - 1])


def _so_far(rate: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return what something adds up to until each time, of so much a second from each on."""
    return np.append(0.0, np.cumsum(rate[:-1] * np.diff(time)))


@register_figure("carbon", "run", "Power, its carbon intensity at each site, and the grams so far.")
def carbon(trace: Trace) -> PlottedFigure:
    """Draw the power of all computing hosts, the intensity at their sites, and energy and carbon so far.

    Parameters
    ----------
    trace : Trace

    Raises
    ------
    InputError
        If the run has no carbon intensity.
    """
    if trace.carbon is None or not trace.platform.has_energy:
        raise InputError("This run has no carbon intensity; run it with --carbon FILE.")
    steps, styles = carbon_steps(trace), series_styles(dict(enumerate(site_names(trace.carbon, trace.platform))))
    figure, panels = stacked_panels(6.4, 3, 2, 2)
    legend = draw_power(panels[0], grid_power(trace))
    sites = [
        Curve(steps[f"g_per_kwh_{k}"], series_style.label, series_style.dark, series_style.line, True)
        for k, series_style in styles.items()
    ]
    draw_curves(panels[1], steps["time_s"], "Intensity", "g/kWh", sites)
    if len(sites) > 1:
        panels[1].set_ylim(0.0, 1.4 * panels[1].get_ylim()[1])  # room for the names of the sites above the curves
    beside = panels[2].twinx()
    draw_curves(panels[2], steps["time_s"], "Energy so far", "J", [Curve(steps["energy_j"], "energy")])
    grams = Curve(steps["carbon_g"], "carbon", "#3f7f3a", "--")
    draw_curves(beside, steps["time_s"], "Carbon so far", "g", [grams])
    beside.grid(visible=False)
    panels[2].legend(handles=[*panels[2].get_lines(), *beside.get_lines()], loc="upper left")
    finish_panels(figure, panels, trace.horizon_s, legend)
    return PlottedFigure(figure, steps)


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
    time = _instants(grid, end, *(begins_of_lines(each.begin_s, each.cycle_s, 0.0, end) for each in sites))
    # in the middle of each step: a row that begins again after a period may be a rounding off its own begin
    inside = (time[:-1] + time[1:]) / 2 if len(time) > 1 else time
    weights = [each.at(np.append(inside, inside[-1])[: len(time)]) for each in sites]
    site_of = np.array(signal.site or [0] * len(trace.platform))[power.timeline.host]
    emitted = np.zeros(len(time) - 1)
    for k, weight in enumerate(weights):
        own = grid_power(trace, replace(power, watts=np.where(site_of == k, power.watts, 0.0)))
        emitted += (_held(own, time) * weight)[:-1] * np.diff(time)
    watts = _held(grid, time)
    return pd.DataFrame(
        {
            "time_s": time,
            "total_w": watts,
            **{f"g_per_kwh_{k}": np.round(weight * J_PER_KWH, 9) for k, weight in enumerate(weights)},
            "energy_j": _so_far(watts, time),
            "carbon_g": np.append(0.0, np.cumsum(emitted)),
        }
    )
