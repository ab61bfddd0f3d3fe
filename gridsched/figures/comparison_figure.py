"""Energy and makespan of several schedulers side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gridsched.analysis.texts import prefixed
from gridsched.errors import InputError
from gridsched.figures.axes import decimals, is_steep, log_bottom, plain_numbers
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.figure_style import legend_below, new_figure
from gridsched.figures.series_styles import BOOT, BUSY, IDLE, OFF, PLAIN, SHUTDOWN, WASTED, SeriesStyle
from gridsched.metrics import Metric, compared_metrics
from gridsched.metrics.places import PLOTTED

#: (column of the data, look) of the stacked parts of the energy.
PARTS = (
    ("energy_useful_j", replace(BUSY, label="useful work")),
    ("energy_wasted_j", replace(WASTED, label="wasted (cancelled copies)")),
    ("energy_idle_j", replace(IDLE, label="idle")),
    ("energy_boot_j", BOOT),
    ("energy_shutdown_j", SHUTDOWN),
    ("energy_off_j", OFF),
)

#: What parallel jobs are judged by beside energy and makespan.
PARALLEL = ("mean_waiting_time_s", "mean_bounded_slowdown", "utilisation")
#: Drawn beside the energy wherever the runs have it.
ALSO = ("carbon_g",)
#: Parts smaller than this share of the largest bar are left out of the legend.
LEAST_SEEN = 0.002
Best = Callable[..., float]


def _table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return what is drawn: totals and parts, nan where a run failed."""
    frame = pd.DataFrame([dict(row) for row in rows])
    parts = [name for name, _ in PARTS if name != "energy_useful_j"]
    beside = PARALLEL if "mean_bounded_slowdown" in frame else ()
    others = ["utility", "window_utility", "window_energy_j", *ALSO, *beside]
    names = ["makespan_s", "energy_model_j", *parts, *(each for each in others if each in frame)]
    table = frame.reindex(columns=names).astype(np.float64)
    total = table["energy_model_j"]
    for name in parts:  # a part that was not reported is 0 where there is a total
        table[name] = table[name].mask(table[name].isna() & total.notna(), 0.0)
    table["energy_useful_j"] = (total - table[parts].sum(axis=1)).clip(lower=0.0)
    table.insert(0, "scheduler", frame["scheduler"].astype(str))
    return table


@register_figure("bars", "comparison", "Energy and makespan, utility, or waiting of several schedulers.")
def comparison_bars(rows: Sequence[Mapping[str, Any]]) -> PlottedFigure:
    """Draw energy [J], divided into its parts, and makespan [s] or utility of each scheduler.

    Where the rows have a utility it takes the makespan's place; where they have those of a window
    (``window_utility``, ``window_energy_j``), utility and energy are the window's. Rows of parallel
    jobs show mean waiting time [s] and mean bounded slowdown in the makespan's place.

    Parameters
    ----------
    rows : sequence of mappings
        One for each scheduler, in the order of the figure: ``scheduler``, ``makespan_s``,
        ``energy_model_j`` and its parts ``energy_wasted_j``, ``energy_idle_j``,
        ``energy_boot_j``, ``energy_shutdown_j``, ``energy_off_j``, as `metrics.summary` names them.
        A run without makespan or energy is shown as failed.

    Raises
    ------
    InputError
        If there are no rows.
    """
    if not rows:
        raise InputError("There is nothing to compare; give at least one scheduler.")
    table = _table(rows)
    idled = [row.get("tasks_finished") == 0 < row.get("tasks", 0) for row in rows]
    others = _others(table)
    has_energy = bool(table["energy_model_j"].notna().any())
    figure = new_figure(9.0 + 2.0 * (len(others) - 1), 1.5 + 0.34 * len(rows))
    axes = figure.subplots(1, len(others) + has_energy, sharey=True, squeeze=False)[0]
    energy, panels = axes[0], axes[has_energy:]
    if has_energy and "window_energy_j" in table:
        _draw_bars(energy, table["window_energy_j"], idled, "Energy in the window", "J")
    elif has_energy:
        _draw_bars(energy, table["energy_model_j"], idled, "Energy", "J", parts=_parts(table))
    for axes, metric in zip(panels, others, strict=True):
        label = metric.row_name.capitalize() + f" [{metric.unit}]" * bool(metric.unit)
        _draw_bars(axes, table[metric.id], idled, label, best=max if metric.better == "more" else min)
    energy.set_yticks(range(len(rows)), table["scheduler"])
    energy.invert_yaxis()
    handles = energy.get_legend_handles_labels()[0]
    legend_below(figure, handles if len(handles) > 1 else [])
    return PlottedFigure(figure, table)


def _others(table: pd.DataFrame) -> list[Metric]:
    """Return what is drawn beside the energy."""
    place, metrics = compared_metrics([table.to_dict("list")])
    return [each for each in metrics if each.id in (*PLOTTED[place], *ALSO)]


def _parts(table: pd.DataFrame) -> list[tuple[pd.Series, SeriesStyle]]:
    """Return the parts of the energy, of which the legend leaves out what is hardly seen."""
    least = LEAST_SEEN * table["energy_model_j"].max()
    return [
        (table[name], series_style if table[name].max() >= least else replace(series_style, label="_unseen"))
        for name, series_style in PARTS
        if table[name].any() or name == "energy_useful_j"
    ]


def _draw_bars(
    axes: Axes,
    totals: pd.Series,
    idled: Sequence[bool],
    label: str,
    unit: str = "",
    best: Best = min,
    parts: Sequence[tuple[pd.Series, SeriesStyle]] = (),
) -> None:
    """Draw one bar for each scheduler, of parts if there are some; `unit` gets a prefix, `best` marks the best."""
    values = totals.to_numpy()
    factor, unit = prefixed(unit, float(np.nanmax(values, initial=0.0))) if unit else (1.0, "")
    label += f" [{unit}]" * bool(unit)
    if is_steep(values):  # parts that are stacked mean nothing on a logarithmic axis
        axes.set_xscale("log", nonpositive="clip")
        label, parts = f"{label}, logarithmic", ()
    left = np.zeros(len(values))
    for part, series_style in parts or [(totals, PLAIN)]:
        widths = np.nan_to_num(part.to_numpy()) / factor
        axes.barh(
            range(len(left)),
            widths,
            left=left,
            height=0.68,
            linewidth=0.6,
            label=series_style.label,
            **series_style.patch(),
        )
        left += widths
    _finish(axes, values / factor, idled, label, best)


def _written(values: Sequence[float]) -> list[str]:
    """Return numbers with four digits, or whole where they have more of them.

    All have the decimals that one of them needs, as far as these are among its four digits.
    """
    plain = [each for each in values if each == 0 or 1e-4 <= abs(each) < 1e9]
    needed = decimals(float(f"{each:.4g}") for each in plain)

    def text(value: float) -> str:
        if value not in plain:
            return f"{value:,.4g}"
        own = 3 - math.floor(math.log10(abs(value))) if value else needed
        return f"{value:,.{max(min(needed, own), 0)}f}"

    return [text(each) for each in values]


def _finish(axes: Axes, values: np.ndarray, idled: Sequence[bool], label: str, best: Best) -> None:
    """Write each value beside its bar, the best one in bold; name failed runs.

    Of runs that `idled`, which finished no task, none is the best.
    """
    largest = float(np.nanmax(values, initial=0.0)) or 1.0
    is_log = axes.get_xscale() == "log"
    left = log_bottom(values) if is_log else 0.0
    best_value = best(values[~np.isnan(values) & ~np.array(idled)], default=math.nan)
    written = _written(values.tolist())
    for place, value in enumerate(values):
        failed = math.isnan(value)
        end = left if failed else max(value, left)
        is_best = value == best_value and len(values) > 1 and not idled[place]
        axes.text(
            end * 1.06 if is_log else end + 0.012 * largest,
            place,
            "failed"
            if failed
            else written[place] + (" (best)" if is_best else "") + (" (nothing finished)" if idled[place] else ""),
            va="center",
            fontsize=8,
            fontstyle="italic" if failed else "normal",
            fontweight="bold" if is_best else "normal",
        )
    axes.set_xlim(left, largest * (largest / left) ** 0.3 if is_log else 1.24 * largest)
    axes.set_xlabel(label)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    plain_numbers(axes.xaxis)
