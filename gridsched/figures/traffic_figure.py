"""Bytes over links of the network over time: all of them together, and the busiest ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from gridsched.analysis.texts import prefixed
from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.figures.axes import hours_axis, quantity_axis
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.figure_style import new_figure
from gridsched.figures.series_styles import BUSY
from gridsched.model.trace import Trace

#: So many links have a row, so many steps a column; more steps are drawn together.
MOST_LINKS, MOST_COLUMNS = 20, 400
#: Runs that fit side by side.
MOST_RUNS = 4
#: Characters of a link's name, whose middle is left out where it is longer: of one run, and of several.
_LONGEST_NAME, _LONGEST_OF_SEVERAL = 46, 34


class _Traffic(NamedTuple):
    """What is drawn of a run: edges of the steps [s], rates of all links and of the busiest ones [byte/s]."""

    names: list[str]
    edges: Floats
    total: Floats
    busiest: Floats


@register_figure("traffic", "run", "Bytes over all links and over the busiest ones, over time.")
def traffic(trace: Trace, *, beside: Sequence[Trace] = (), titles: Sequence[str] = ()) -> PlottedFigure:
    """Draw the rate of bytes over all links together, and over the busiest links, over time.

    A message counts on each link that it crosses. The links with the most bytes in the whole run have a row each, the
    busiest at the top.

    Parameters
    ----------
    trace : Trace
    beside : sequence of Trace
        Further runs, drawn on its right, on the same scales.
    titles : sequence of str
        Of all runs, where there are several.

    Raises
    ------
    InputError
        If a run has no record of this, or there are too many runs.
    """
    traces = (trace, *beside)
    if len(traces) > MOST_RUNS:
        raise InputError(f"{len(traces)} runs do not fit side by side; at most {MOST_RUNS} do.")
    step_s = max(each.traffic_step_s * _steps_together(each) for each in traces)
    drawn = [_traffic(each) for each in traces]
    end_s = max(each.horizon_s for each in traces)
    figure = new_figure(9.0 if len(traces) == 1 else 10.0, 5.2)
    panels = figure.subplots(2, len(traces), sharex=True, squeeze=False, height_ratios=(1, 3))
    factor, unit = prefixed("byte", max(float(each.total.max()) for each in drawn))
    link_factor, link_unit = prefixed("byte", most := max(float(each.busiest.max()) for each in drawn))
    top = 1.08 * max(float(each.total.max()) for each in drawn) / factor
    for k, (each, (upper, lower)) in enumerate(zip(drawn, panels.T, strict=True)):
        upper.stairs(each.total / factor, each.edges, fill=True, facecolor=BUSY.face, edgecolor="black", linewidth=0.6)
        quantity_axis(upper, f"All links [{unit}/s]" if k == 0 else "", top)
        upper.set_title(titles[k] if titles else "", loc="left")
        mesh = _draw_links(lower, each, link_factor, most, _LONGEST_NAME if len(drawn) == 1 else _LONGEST_OF_SEVERAL)
        hours_axis(lower, end_s)
    figure.colorbar(
        mesh,
        ax=panels.ravel().tolist(),
        label=f"Busiest links, mean of {step_s:,.4g} s [{link_unit}/s]",
        aspect=40,
        pad=0.01,
    )
    return PlottedFigure(figure, _table(drawn, titles))


def _steps_together(trace: Trace) -> int:
    """Return how many steps are drawn as one."""
    if not trace.traffic_bytes.size:
        raise InputError("This run has no record of bytes over links; run jobs that send some with --traffic-step-s S.")
    return -(-trace.traffic_bytes.shape[1] // MOST_COLUMNS)


def _traffic(trace: Trace) -> _Traffic:
    """Return what is drawn of a run."""
    several, sent = _steps_together(trace), trace.traffic_bytes
    first = np.arange(0, sent.shape[1], several)
    edges = trace.traffic_step_s * np.append(first, sent.shape[1])
    edges[-1] = max(min(edges[-1], trace.horizon_s), edges[-2] * (1 + 1e-9))  # the last step ends with the run
    rates = np.add.reduceat(sent, first, axis=1) / np.diff(edges)
    order = busiest_links(trace)[:MOST_LINKS]
    names = list(trace.link_bytes)
    return _Traffic([names[k] for k in order.tolist()], edges, rates.sum(axis=0), rates[order])


def busiest_links(trace: Trace) -> Integers:
    """Return the places in `Trace.link_bytes` of all links, of which those with the most bytes are first."""
    return np.argsort(-np.array(list(trace.link_bytes.values())), kind="stable")


def _draw_links(axes: Axes, shown: _Traffic, factor: float, most: float, longest: int) -> QuadMesh:
    """Draw a row for each link, the darker the more it carries; return what the color bar is of."""
    rows = np.arange(len(shown.names) + 1) - 0.5
    mesh = axes.pcolormesh(
        shown.edges, rows, shown.busiest / factor, cmap="YlGnBu", vmin=0.0, vmax=most / factor, rasterized=True
    )
    axes.set_ylim(rows[-1], rows[0])
    axes.set_yticks(np.arange(len(shown.names)), [_short(name, longest) for name in shown.names], fontsize=6.5)
    axes.tick_params(axis="y", length=0)
    return mesh


def _short(name: str, longest: int) -> str:
    """Return a name without its middle where it is long: ends distinguish links of one kind."""
    if len(name) <= longest:
        return name
    end = 2 * longest // 3
    return f"{name[: longest - end - 1]}\N{HORIZONTAL ELLIPSIS}{name[-end:]}"


def _table(drawn: Sequence[_Traffic], titles: Sequence[str]) -> pd.DataFrame:
    """Return the rates of each run, link and step; those of all links together come first."""
    parts = []
    for k, each in enumerate(drawn):
        for name, rates in zip(["all links", *each.names], [each.total, *each.busiest], strict=True):
            columns = {"from_s": each.edges[:-1], "until_s": each.edges[1:], "link": name, "bytes_per_s": rates}
            parts.append(pd.DataFrame({"run": titles[k], **columns} if titles else columns))
    return pd.concat(parts, ignore_index=True)
