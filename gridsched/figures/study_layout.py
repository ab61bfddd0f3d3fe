"""How a study's axes become panels, x axis and series of its figures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from gridsched.analysis.statistics import group_intervals
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_text, is_number, value_text
from gridsched.errors import InputError
from gridsched.figures.chart import Panel
from gridsched.figures.looks import Look, series_looks

#: More panels than this would be unreadable; further combinations stand in the tables only.
MAX_COLUMNS, MAX_ROWS, MAX_PAGES, MAX_METRICS = 4, 4, 2, 4


@dataclass(frozen=True)
class Layout:
    """Which axis is what.

    Attributes
    ----------
    x : str or None
        Axis along x; None if nothing varies but the scheduler.
    rows, columns : str or None
        Axes of the panels.
    pages : tuple of str
        Further axes: one figure for each of their combinations, up to `MAX_PAGES`.
    looks : dict
        Label of a scheduler -> how it is drawn in every figure.
    values : dict
        Values of the varying axes, in order.
    metrics : tuple of str
        What is drawn.
    results : StudyResults
    """

    x: str | None
    rows: str | None
    columns: str | None
    pages: tuple[str, ...]
    looks: dict[str, Look]
    values: dict[str, tuple[Any, ...]]
    metrics: tuple[str, ...]
    results: StudyResults

    def means(self, metric: str) -> pd.DataFrame:
        """Return mean and interval of a metric for each cell and scheduler."""
        if metric not in self._means:
            group = [*self.results.cell_axes, "scheduler"]
            self._means[metric] = group_intervals(self.results.shown, group, metric)
        return self._means[metric]

    @cached_property
    def _means(self) -> dict[str, pd.DataFrame]:
        return {}

    @property
    def x_values(self) -> tuple[Any, ...]:
        """Values along x; one empty one if there is no such axis."""
        return self.values[self.x] if self.x else ("",)

    @property
    def is_sweep(self) -> bool:
        """Whether x is an axis of three numbers or more."""
        return self.x is not None and _is_numeric(self.x_values) and len(self.x_values) >= 3

    @property
    def n_pages(self) -> int:
        """Number of figures that would hold everything."""
        return len(list(itertools.product(*(self.values[axis] for axis in self.pages))))

    def numbered_pages(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the axis values of each page that is drawn, and the end of its figures' names."""
        combinations = itertools.product(*(self.values[axis] for axis in self.pages))
        for number, values in enumerate(itertools.islice(combinations, MAX_PAGES), start=1):
            suffix = f"-{number}" if self.n_pages > 1 else ""
            yield dict(zip(self.pages, values, strict=True)), suffix

    def panels(self, page: dict[str, Any]) -> list[Panel]:
        """Return the panels of a page."""
        panels = []
        for r, row in enumerate(self._few(self.rows, MAX_ROWS)):
            for c, column in enumerate(self._few(self.columns, MAX_COLUMNS)):
                values = dict(page)
                if self.rows:
                    values[self.rows] = row
                if self.columns:
                    values[self.columns] = column
                panels.append(Panel(r, c, axis_text(values), values))
        return panels

    def _few(self, axis: str | None, most: int) -> tuple[Any, ...]:
        return self.values[axis][:most] if axis else (None,)


def layout_of(
    results: StudyResults, *, metrics: Sequence[str] | None = None, where: Mapping[str, Sequence[Any]] | None = None
) -> Layout:
    """Choose x (the longest axis of numbers, else the longest), columns, rows, pages by length.

    Parameters
    ----------
    results : StudyResults
    metrics : sequence of str, optional
        What is drawn; by default the first `MAX_METRICS` of those that vary.
    where : mapping, optional
        Axis -> values that are drawn; by default those that the report is of.

    Raises
    ------
    InputError
        If there is no such axis, value or metric.
    """
    if metrics is None:
        metrics = list(results.distinct_metrics)[:MAX_METRICS]
    for metric in metrics:
        _check("metric", metric, results.metrics)
    values = {axis: results.shown_values(axis) for axis in results.varying_axes}
    for axis, wanted in (where or {}).items():
        _check("varying axis", axis, list(values))
        for value in wanted:
            _check(f"value of {axis}", value, values[axis])
        values[axis] = tuple(value for value in values[axis] if value in wanted)
    fixed = [axis for axis in values if len(values[axis]) == 1]
    free = [axis for axis in values if axis not in fixed]
    by_length = sorted(free, key=lambda axis: -len(values[axis]))
    numeric = [axis for axis in by_length if _is_numeric(values[axis])]
    x = next(iter(numeric or by_length), None)
    others = [axis for axis in by_length if axis != x]
    columns, rows = [*others, None, None][:2]
    pages = (*fixed, *others[2:])
    looks = series_looks(results.labels, baseline=results.baseline)
    return Layout(x, rows, columns, pages, looks, values, tuple(metrics), results)


def _check(what: str, found: Any, known: Sequence[Any]) -> None:
    """Refuse what the study has not."""
    if found not in known:
        legal = ", ".join(map(value_text, known))
        raise InputError(f"The study has no {what} {value_text(found)}. Legal: {legal}.")


def _is_numeric(values: tuple[Any, ...]) -> bool:
    return all(map(is_number, values))
