"""Schedulers on one platform and workload, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.analysis.bounds import COMPUTING_BOUNDS, ScenarioBounds, bound_fields, bounds_for, have_bounds
from gridsched.errors import InputError
from gridsched.long_work import long_work
from gridsched.metrics import METRICS
from gridsched.metrics.columns import Column, written_columns
from gridsched.metrics.table import ALWAYS, shown_metrics, value_of_row
from gridsched.model.platform import Platform
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler
from gridsched.runs.result_frames import arrow_stream
from gridsched.runs.run import RunResult
from gridsched.runs.run_many import run_many
from gridsched.runs.scenario_maker import load
from gridsched.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison:
    """What `compare` gives.

    Attributes
    ----------
    results : dict of str to RunResult
        By scheduler, of the runs that did not fail.
    rows : list of dict
        Their metrics by id, with those that compare them with the best, and bounds.
    failures : dict of str to str
        What went wrong, by scheduler.
    bounds : ScenarioBounds or None
        What no schedule falls below, where that is known.
    """

    results: Mapping[str, RunResult]
    rows: Sequence[Mapping[str, Any]]
    failures: Mapping[str, str] = field(default_factory=dict)
    bounds: ScenarioBounds | None = None

    def groups(self, by: str) -> list[dict[str, Any]]:
        """Return a row for each group of parallel jobs and each scheduler: `grouped`.

        Parameters
        ----------
        by : str
            ``"partition"``, ``"size"``, or another attribute of the log: ``"user"``, ``"queue"``, ...

        Raises
        ------
        InputError
            If the jobs cannot be grouped by this.
        """
        return grouped(self.results, by)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each scheduler with every metric."""
        import pandas as pd

        return pd.DataFrame(list(self.rows)).set_index("scheduler")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return `frame` as a stream of Arrow: ``polars.from_arrow(found)``, ``duckdb``, ``pyarrow.table(found)``."""
        return arrow_stream(self.frame.reset_index(), requested_schema)

    def __repr__(self) -> str:
        failed = "".join(f"\nfailed: {name}: {text}" for name, text in self.failures.items())
        return self._shown().to_string() + failed

    def _repr_html_(self) -> str:
        failed = "".join(f"<p>failed: {escape(f'{name}: {text}')}</p>" for name, text in self.failures.items())
        return self._shown().to_html() + failed

    def _shown(self) -> pd.DataFrame:
        """Return texts under headings with units, as the command line writes them."""
        import pandas as pd

        shown = {each.id: each for each in shown_metrics("notebook", self.rows)}
        if "energy_j" in shown:
            shown.pop("energy_model_j")  # runs in which the two disagree have failed
        columns = [Column("scheduler", "scheduler"), *(each.column for each in shown.values())]
        (_, _, names), *others = written_columns(columns, self.rows)
        headings = [heading.replace("\n", " ") for _, heading, _ in others]
        return pd.DataFrame(list(zip(*(cells for *_, cells in others), strict=True)), names, headings)


def compare(
    platform: Platform | str | Path | None,
    tasks: Tasks | str | Path,
    schedulers: str | Iterable[str | Scheduler],
    *,
    workers: int | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Comparison:
    """Run schedulers on one platform and workload, several at a time.

    Parameters
    ----------
    platform, tasks
        As `Scenario` takes them.
    schedulers : str, or iterable of str or Scheduler
        Ids of the registry, or instances; a text has one id or several, separated by commas.
    workers : int, optional
        Runs at one time; default one for each CPU.
    progress : bool, optional
        Whether a bar is shown; default on a terminal, and in a notebook that has ``ipywidgets``.
    **settings
        Of `Scenario`: ``driver``, ``seed``, ``power`` and so on.

    Raises
    ------
    InputError
        Before the first run, where something contradicts itself or cannot be read.

    Examples
    --------
    >>> from gridsched import compare
    >>> found = compare("platforms/ex_a.xml", "examples/ex_a.csv", ["wq", "lecsa"])
    >>> found.frame["makespan_s"].to_dict()
    {'wq': 80.0, 'lecsa': 100.0}
    """
    base = load(Scenario(platform, tasks, **settings))
    named = _named(schedulers)
    scenarios = [replace(base, scheduler=scheduler) for scheduler in named.values()]
    outcomes = run_many(scenarios, workers=workers, progress=progress, keep_errors=True)
    results = {name: each for name, each in zip(named, outcomes, strict=True) if isinstance(each, RunResult)}
    failures = {name: str(each) for name, each in zip(named, outcomes, strict=True) if not isinstance(each, RunResult)}
    rows = [{**result.summary(), "scheduler": name} for name, result in results.items()]
    return Comparison(results, rows, failures, completed(rows, list(results.values())))


def grouped(results: Mapping[str, RunResult], by: str) -> list[dict[str, Any]]:
    """Return a row for each group of jobs and each scheduler: `RunResult.groups`, with ``scheduler`` before it.

    The rows of one group follow each other, in the order of the results.

    Parameters
    ----------
    results : mapping of str to RunResult
        By scheduler; runs of the same jobs on the same machine.
    by : str
        As `RunResult.groups` takes it.

    Raises
    ------
    InputError
        If the jobs cannot be grouped by this.
    """
    runs = list(results.items())
    if not runs:
        return []
    fair_start_s = runs[0][1].fair_start_s  # the same for all: only schedulers differ
    each_own = [[{"scheduler": name, **row} for row in result.groups(by, fair_start_s)] for name, result in runs]
    return [row for rows in zip(*each_own, strict=True) for row in rows]


def completed(rows: list[dict[str, Any]], results: Sequence[RunResult]) -> ScenarioBounds | None:
    """Add to rows of metrics what follows from all of them, and the bounds; return these."""
    if not rows:
        return None
    for metric in METRICS.values():
        if metric.of == "row" and metric.condition is ALWAYS:
            for row in rows:
                row[metric.id] = value_of_row(metric, row)
        values = metric.function(rows) if metric.of == "comparison" else None
        for row, value in zip(rows, values or [], strict=False):
            row[metric.id] = value
    if not have_bounds(results):
        return None
    with long_work(COMPUTING_BOUNDS):
        bounds = bounds_for(results)
        for row, result in zip(rows, results, strict=True):
            beside = bounds.beside(result.scenario.make_scheduler().traits)
            row.update(bound_fields(beside, row))
    return bounds


def _named(schedulers: str | Iterable[str | Scheduler]) -> dict[str, str | Scheduler]:
    """Return schedulers by name: ids, and instances by class, or as they are written; a text lists ids."""
    if isinstance(schedulers, str):
        schedulers = [name.strip() for name in schedulers.split(",")]
    try:
        given = list(schedulers)
    except TypeError:
        raise InputError(f"compare: schedulers is {schedulers!r}; it must be a list of ids or schedulers.") from None
    for each in given:
        if not isinstance(each, str | Scheduler):
            raise InputError(f"compare: {each!r} is among the schedulers; each is an id or a Scheduler.")
    names = [each if isinstance(each, str) else type(each).__name__ for each in given]
    if len(set(names)) < len(names):
        names = [each if isinstance(each, str) else repr(each) for each in given]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"compare: {twice[0]} is there twice.")
    return dict(zip(names, given, strict=True))
