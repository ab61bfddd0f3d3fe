"""Power of the grid over time with the energy it adds up to; prices, and money meanwhile."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from gridsched.analysis.texts import prefixed
from gridsched.errors import InputError
from gridsched.figures.axes import hours_axis, quantity_axis, time_axis
from gridsched.figures.figure_file import new_figure
from gridsched.figures.looks import BOOT, BUSY, IDLE, MANY_STEPS, OFF, SHUTDOWN
from gridsched.figures.table import Drawn, register_figure
from gridsched.metrics.run_metrics import bags_of, payments, prices_of
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tariff import Tariff
from gridsched.model.trace import Trace
from gridsched.power import GridPower, grid_power

#: More changes of a price than this are not marked in the other panels.
MOST_MARKS = 60
_PAID = "#a5371b"
PARTS = (("busy_w", BUSY), ("idle_w", IDLE), ("boot_w", BOOT), ("shutdown_w", SHUTDOWN), ("off_w", OFF))


@register_figure("power", "run", "Power of all computing hosts over time, and its energy.")
def power(trace: Trace) -> Drawn:
    """Draw the power of all computing hosts [W] by what they do, and their energy so far [J].

    Power is exact: it is drawn as the steps in which it changes.

    Parameters
    ----------
    trace : Trace
    """
    series = grid_power(trace)
    figure = new_figure(9.0, 5.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    legend = draw_power(upper, series)
    _draw_energy(lower, _with_length(series))
    time_axis(lower, trace.horizon_s)
    if legend:
        figure.legend(handles=legend, loc="outside lower center", ncols=len(legend))
    data = {
        "time_s": series.time,
        "busy_w": series.busy_w,
        "idle_w": series.idle_w,
        "boot_w": series.boot_w,
        "shutdown_w": series.shutdown_w,
        "off_w": series.off_w,
        "total_w": series.total_w,
        "energy_j": series.energy_j,
    }
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
                time,
                below,
                below + values,
                step="post",
                facecolor=look.face,
                linewidth=0,
                edgecolor="#6a6a6a",
                hatch=look.hatch,
                rasterized=many,
            )
            area.set_hatch_linewidth(0.5)
            below = below + values
            legend.append(Patch(label=look.label, **look.patch()))
    axes.step(time, below, where="post", color="black", linewidth=0.8, rasterized=many)
    quantity_axis(axes, f"Power [{unit}]", 1.08 * float(below.max(initial=0.0)))
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
    quantity_axis(axes, f"Energy so far [{unit}]", 1.12 * float(total[-1]) / factor)
    if series.horizon_s > 0:
        axes.annotate(
            f"{total[-1] / factor:,.4g} {unit}",
            (time[-1], total[-1] / factor),
            xytext=(-4, 4),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=8,
            fontweight="bold",
        )
    axes.legend(loc="upper left")
    axes.grid(axis="x")


@register_figure("prices", "run", "Prices that vary, power meanwhile, and the money so far.")
def prices(trace: Trace, *, tariff: Tariff | None) -> Drawn:
    """Draw what a kWh costs, the power of all computing hosts, and cost and income so far.

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
    pays = [name for name in ("bag_price",) if steps[name].nunique() > 1]
    figure = new_figure(9.0, 5.2 + 1.2 * len(pays))
    ratios = (*[2] * (1 + len(pays)), 3, 2)
    panels = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios)
    _draw_price(panels[0], steps, "energy_price_per_kwh", "Energy price\n[money/kWh]")
    for axes, name in zip(panels[1:-2], pays, strict=True):
        _draw_price(axes, steps, name, "A bag pays\n[money]")
    legend = draw_power(panels[-2], grid_power(trace))
    _draw_money(panels[-1], steps)
    changes = steps.loc[steps["price_line"].diff().fillna(0) != 0, "time_s"]
    if len(changes) <= MOST_MARKS:
        for axes in panels:
            for time in changes:
                axes.axvline(time, color="#a0a0a0", linewidth=0.7, linestyle=(0, (4, 3)), zorder=0)
    hours_axis(panels[-1], 0.0, trace.horizon_s or 1.0)
    figure.align_ylabels(panels)
    if legend:
        figure.legend(handles=legend, loc="outside lower center", ncols=len(legend))
    return Drawn(figure, steps)


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
    series, power, end = prices_of(tariff), grid_power(trace), float(trace.horizon_s)
    begins = series.begins(tariff.prices_period_s, end)
    paid_s, paid = payments(trace, bags_of(trace), tariff)
    time = np.unique(np.concatenate([power.time, begins, paid_s, [end]]))
    time = time[time <= end]
    line = (np.searchsorted(begins, time, side="right") - 1) % len(series.time_s)
    watts = power.total_w[np.searchsorted(power.time, time, side="right") - 1]
    cost = np.array(series.energy_cost_per_j)[line]
    spent = tariff.pue * (watts * cost)[:-1] * np.diff(time)
    order = np.argsort(paid_s, kind="stable")
    so_far = np.append(0.0, np.cumsum(paid[order]))
    return pd.DataFrame(
        {
            "time_s": time,
            "price_line": line,
            "energy_price_per_kwh": np.round(cost * J_PER_KWH, 12),
            "bag_price": np.array(series.price)[line],
            "total_w": watts,
            "energy_cost": np.append(0.0, np.cumsum(spent)),
            "income": so_far[np.searchsorted(paid_s[order], time, side="right")],
        }
    )


def _draw_price(axes: Axes, steps: pd.DataFrame, name: str, label: str) -> None:
    axes.step(steps["time_s"], steps[name], where="post", color="black", linewidth=1.3)
    quantity_axis(axes, label, 1.15 * float(steps[name].max()))


def _draw_money(axes: Axes, steps: pd.DataFrame) -> None:
    """Draw what the energy has cost, and what finished bags have paid."""
    axes.plot(
        steps["time_s"], steps["energy_cost"], color=_PAID, linewidth=1.4, linestyle="--", label="cost of the energy"
    )
    if steps["income"].any() or steps["bag_price"].any():
        axes.step(
            steps["time_s"], steps["income"], where="post", color=BUSY.face, linewidth=1.4, label="income of bags"
        )
    most = float(steps[["energy_cost", "income"]].to_numpy().max(initial=0.0))
    quantity_axis(axes, "So far\n[money]", 1.12 * most)
    axes.legend(loc="upper left")
