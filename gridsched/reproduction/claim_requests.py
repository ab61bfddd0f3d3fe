"""What a statistic of a claim is computed from, and what it says where runs are lacking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from gridsched.analysis.claim_values import Level, Where, levels_of, replicate_values, series_values, where_of
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.arrays import Floats
from gridsched.runs.claims_schema import Claim

#: As `Claim.against`: in each cell the scheduler with the least mean besides the claim's.
BEST_OTHER = "best_other"


class NoData(Exception):
    """What a claim needs is not there; says what."""


@dataclass(frozen=True)
class Request:
    """What a statistic is computed from: a study's results, a claim, and the runs it chooses."""

    results: StudyResults
    claim: Claim

    @property
    def scheduler(self) -> str:
        """Label or family that the claim is about."""
        assert self.claim.scheduler is not None  # `check_claim` asks for it
        return self.claim.scheduler

    @property
    def against(self) -> str:
        """Label or family that it is compared with, where the statistic needs one."""
        assert self.claim.against is not None  # `check_claim` asks for it
        return self.claim.against

    @cached_property
    def where(self) -> Where:
        """Axis -> values of the runs that the claim chooses."""
        return where_of(self.results, self.claim.where)

    @property
    def cells(self) -> list[str]:
        """The axes besides scheduler and replicate."""
        return self.results.cell_axes

    @cached_property
    def _needed(self) -> pd.DataFrame:
        """The chosen runs of the schedulers that the claim is about."""
        chosen = restricted(self.results.plain, self.where)
        claim = self.claim
        if claim.statistic == "worst_rank" or claim.against == BEST_OTHER:
            return chosen
        labels = [claim.scheduler, *([claim.against] if claim.against else [])]
        return chosen[chosen["scheduler"].isin(labels)]

    @cached_property
    def finished(self) -> pd.DataFrame:
        """Those of them that finished; raises `NoData` where a whole combination has none."""
        metric = self.claim.metric
        if metric not in self.results.plain:
            raise NoData(f"no run has {metric}")
        needed = self._needed
        finished = needed[(needed["status"] == "finished") & needed[metric].notna()]
        group = [*self.cells, "scheduler"]
        needed_count, complete = (len(frame[group].drop_duplicates()) for frame in (needed, finished))
        if complete < needed_count or not needed_count:
            raise NoData(f"{needed_count - complete} of {needed_count} combinations that it needs have no finished run")
        return finished

    @property
    def missing(self) -> str:
        """What to say of runs that are missing from `finished`."""
        number, lost = len(self._needed), len(self._needed) - len(self.finished)
        return f"{lost} of {number} runs are missing or failed" if lost else ""

    def of_replicates(self, *labels: str) -> tuple[pd.DataFrame, str]:
        """Return `paired` of the metric of some schedulers."""
        return self.paired(
            {label: replicate_values(self.results, label, self.where, self.claim.metric) for label in labels}
        )

    def of_series(self, number: Callable[[Floats, Floats, float], float], *labels: str) -> tuple[pd.DataFrame, str]:
        """Return `paired` of a number of the series of some schedulers; see `series_values`."""
        return self.paired(
            {label: series_values(self.results, label, self.where, self.claim.metric, number) for label in labels}
        )

    def paired(self, columns: dict[Any, pd.Series]) -> tuple[pd.DataFrame, str]:
        """Return a row for each replicate that has all columns, and what to say if not all have."""
        whole = pd.concat(columns, axis=1).dropna()
        if not len(whole):
            lacking = [str(name) for name, values in columns.items() if not len(values)]
            what = f": nothing of {', '.join(lacking)}" if lacking else ""
            raise NoData(f"no replicate has all runs that it needs{what}")
        n, planned = len(whole), self.results.study.replicates
        return whole, "" if n == planned else f"{n} of {planned} replicates have all its runs"

    def levels(self, family: str) -> tuple[list[Level], pd.DataFrame, str]:
        """Return the levels of a family and the metric of each, one row a replicate."""
        claim = self.claim
        levels = levels_of(self.results, family, claim.along or "", self.where, claim.levels)
        columns = {
            k: replicate_values(self.results, level.label, {**self.where, **level.where}, claim.metric)
            for k, level in enumerate(levels)
        }
        return levels, *self.paired(columns)


def joined(*texts: str) -> str:
    """Return the texts that are not empty as one."""
    return "; ".join(filter(None, texts))
