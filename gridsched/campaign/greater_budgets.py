"""Runs that need not be made: those of greater energy budgets, where a smaller one already limited nothing.

A policy that looks at a budget only to see whether something still fits (`Scheduler.limited_by_budget`) decides under
a greater one what it decided under one in which everything fitted; so does the engine. The rows then differ in what
metrics say of the budget itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gridsched.campaign.messages import Job, ended_row
from gridsched.campaign.row_table import FINISHED
from gridsched.campaign.segments import RunRow
from gridsched.files.json_files import canonical_text
from gridsched.metrics.value_entries import under_greater_budget
from gridsched.runs.run import RunResult
from gridsched.runs.study import StudyRun

_KEY = "energy_budget_j"


def least_budgets_first(runs: Iterable[StudyRun]) -> list[StudyRun]:
    """Return runs so that those that differ in the energy budget alone follow each other, the least one first."""
    places: dict[tuple[str, ...], int] = {}

    def place(run: StudyRun) -> tuple[int, float]:
        budgets = [name for name in run.axes if name.split(".")[-1] == _KEY]
        others = tuple(repr(value) for name, value in run.axes.items() if name not in budgets)
        return places.setdefault(others, len(places)), min((run.axes[name] for name in budgets), default=0.0)

    return sorted(runs, key=place)


def apart_from_budget(scenario: Mapping[str, Any]) -> tuple[str, float | None]:
    """Return the description of a run without its energy budget, as text, and the budget [J], if it names one."""
    budget = None
    sections = dict(scenario)
    for name in ("workload", "settings"):
        section = dict(scenario.get(name, {}))
        budget = section.pop(_KEY, budget)
        sections[name] = section
    return canonical_text(sections), budget


class LastUnlimited:
    """The last run that its budget did not limit, if the worker's last run is such a one or follows from it."""

    def __init__(self) -> None:
        self._row: RunRow | None = None
        self._description, self._budget_j = "", 0.0

    def note(self, job: Job, row: RunRow, result: RunResult | None) -> None:
        """Keep the row of a run if its budget limited nothing; forget the one before."""
        self._row = None
        if result is None or row["status"] != FINISHED or result.trace.limited_by_budget or job.policies:
            return
        description, budget_j = apart_from_budget(job.scenario)
        if budget_j is not None and under_greater_budget(row["metrics"], budget_j) is not None:
            self._row, self._description, self._budget_j = row, description, budget_j

    def row_of(self, job: Job) -> RunRow | None:
        """Return the row of a run that need not be made; None of another."""
        if self._row is None or job.policies:
            return None
        description, budget_j = apart_from_budget(job.scenario)
        if budget_j is None or not self._budget_j <= budget_j < float("inf") or description != self._description:
            return None
        metrics = under_greater_budget(self._row["metrics"], budget_j)
        warnings = self._row["provenance"]["warnings"]
        row = ended_row(job, metrics=metrics, further={"warnings": warnings, "follows_from": self._row["run_id"]})
        if "series" in self._row:
            row["series"] = self._row["series"]
        return row
