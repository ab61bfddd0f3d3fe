"""Finished tasks over time, from the task records of single runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_text
from gridsched.campaign.run_records import read_records, records_file
from gridsched.figures.axes import plain_numbers
from gridsched.figures.figure_file import new_figure
from gridsched.figures.study_layout import Layout
from gridsched.figures.table import Drawn, register_figure

#: So many combinations of axes get a figure.
MAX_FIGURES = 4


@register_figure(
    "trace", "study", "Finished tasks over time, of the runs whose records are kept.",
    heading="Finished tasks over time", place=50,
)  # fmt: skip
def finished_tasks(results: StudyResults, layout: Layout) -> Iterator[Drawn]:
    """Yield a figure for each of the first combinations of which records are stored."""
    store = Path(results.place)
    runs = restricted(results.shown, layout.values)
    kept = runs[[records_file(store, run_id).exists() for run_id in runs["run_id"]]]
    if not len(kept):
        return
    keys = [*results.varying_axes, "replicate"]
    groups = itertools.islice(kept.groupby(keys, sort=False), MAX_FIGURES)
    for number, (key, group) in enumerate(groups, start=1):
        values = dict(zip(keys, key, strict=True))
        ids = dict(zip(group["scheduler"], group["run_id"], strict=True))
        yield _trace(store, layout, values, ids, f"trace-{number}")


def _trace(
    store: Path, layout: Layout, values: dict[str, Any], ids: dict[str, str], name: str
) -> Drawn:
    figure = new_figure(7.0, 4.0)
    axes = figure.subplots()
    tables = []
    for look in layout.looks:
        if look.label not in ids:
            continue
        curve = finished_over_time(read_records(store, ids[look.label]))
        axes.step(
            curve["time_s"], curve["tasks_finished"], where="post", color=look.dark,
            linestyle=look.line, linewidth=1.8 if look.is_baseline else 1.2, label=look.label,
        )  # fmt: skip
        tables.append(curve.assign(scheduler=look.label, run_id=ids[look.label]))
    axes.set_xlabel("Time [s]")
    axes.set_ylabel("Finished tasks")
    axes.grid()
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    axes.legend(loc="lower right")
    caption = f"Finished tasks over time: {axis_text(values)}."
    return Drawn(figure, pd.concat(tables, ignore_index=True), name, caption)


def finished_over_time(records: pd.DataFrame) -> pd.DataFrame:
    """Return ``time_s`` and ``tasks_finished`` at each instant at which tasks finish, from 0 s."""
    is_end = (records["record"] == "execution") & (records["outcome"] == "finished")
    times, counts = np.unique(records.loc[is_end, "end_s"].to_numpy(), return_counts=True)
    return pd.DataFrame({
        "time_s": np.concatenate([[0.0], times]),
        "tasks_finished": np.concatenate([[0], np.cumsum(counts)]),
    })  # fmt: skip
