"""What a paper claims beside what our runs give, and the verdict.

**Statistics** (`Claim.statistic`). A cell is one combination of all axes besides scheduler and
replicate; `where` chooses the cells.

=========================  ======================================================================
``mean``                   mean of `metric` of `scheduler`
``percent_more``           how much more `against` needs than `scheduler` [%], paired over
                           replicates; over several cells, the mean of each replicate's mean
``largest_percent_more``   the largest ``percent_more`` of all cells, with that cell's interval
``smallest_percent_more``  the smallest, likewise
``worst_rank``             the highest rank of `scheduler` by its mean in any cell; 1 is the least
``rises_along``            number of cells in which ``percent_more`` is larger at the second value
                           of the axis `along` than at the first
``ratio``                  mean of `metric` of `scheduler` over the mean of `against_metric` of
                           `against` (default: the same) in `against_where`
``best_level``             the level of `along` (a parameter of the family `scheduler`, or an axis)
                           with the largest mean of `metric`
``best_level_steps``       by how many levels that of `scheduler` lies above that of `against`
``best_over_last``         how much more the best level has than the last one [%]; with `against`,
                           by how much more than that family's gain [points of percent]
``spread``                 largest minus least mean of `levels`, over the largest [%]
``least_rise``             the smallest rise from one of `levels` to the next [%]
``hours_later``            how much later `scheduler` has used `share` of its budget than `against`
``percent_of_budget_used`` share of the budget used in `hours` [%]; with `against_hours`, minus that
                           used in these
=========================  ======================================================================

Those of levels have percentile bootstrap intervals over replicates where no t-interval exists
(``best_level``, ``best_level_steps``, ``spread``); a level's interval tells which levels could as
well be the best. With `variant`, `scheduler` and `against` may be families: the variant with the
largest or least mean of a metric is taken. Our number is multiplied by `scale`.

`against` is a label, or ``best_other``: in each cell the scheduler with the least mean besides
`scheduler`. It is chosen by the same runs, so that its lead is a little overestimated.

**Verdict.** A claim with a number and a tolerance is *reproduced* if our mean lies within it, and,
for a difference, not certainly on the other side of 0 (our interval excludes 0 and the paper's sign
is the other). It has the *direction only* if the sign agrees. A claim with a number of which only
the order is asked can at best have the direction. A claim without number of which the order is
asked is reproduced if the order holds, or, where it says so, may hold (a tie: our interval does not
exclude it). Everything else is *not reproduced*.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gridsched.analysis import claims_sweeps, statistics
from gridsched.analysis.claim_values import Measured, chosen_variant, where_of
from gridsched.analysis.statistics import Interval, t_interval
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_text
from gridsched.errors import InputError
from gridsched.spec.study_axes import full_name
from gridsched.spec.study_document import Claim

REPRODUCED, DIRECTION, MISSED = "reproduced", "direction only", "not reproduced"
NO_DATA = "no data"
BEST_OTHER = "best_other"
STATISTICS = (
    "mean", "percent_more", "largest_percent_more", "smallest_percent_more", "worst_rank",
    "rises_along", *claims_sweeps.MEASURES,
)  # fmt: skip
#: Statistics with a sign.
DIFFERENCES = (*STATISTICS[1:4], *claims_sweeps.DIFFERENCES)
_RUN_ID = re.compile(r"[0-9a-f]{8,32}")


@dataclass(frozen=True)
class Finding:
    """A claim, our number, and the verdict.

    Attributes
    ----------
    claim : Claim
    ours : Interval
    detail : str
        Which scheduler or cell our number is of, or why there is none.
    verdict : str
        `REPRODUCED`, `DIRECTION`, `MISSED` or `NO_DATA`.
    explanation : str
        Why it is missed.
    run_ids : tuple of str
        Stored runs that support the explanation.
    complaint : str
        Why the claim counts as unsettled; empty if it is settled.
    """

    claim: Claim
    ours: Interval
    detail: str
    verdict: str
    explanation: str = ""
    run_ids: tuple[str, ...] = ()
    complaint: str = ""


def judge(results: StudyResults) -> list[Finding]:
    """Return the finding of every claim of a study, in the study's order.

    Raises
    ------
    InputError
        If a claim asks for something unknown.
    """
    return [_finding(results, claim) for claim in results.study.claims]


def _finding(results: StudyResults, claim: Claim) -> Finding:
    measured = measure_claim(results, claim)
    verdict = verdict_of(claim, measured.interval)
    if verdict == NO_DATA:
        complaint = f"no verdict: {measured.detail}"
        return Finding(claim, measured.interval, measured.detail, verdict, complaint=complaint)
    if verdict == REPRODUCED:
        return Finding(claim, measured.interval, measured.detail, verdict)
    ids, complaint = supporting_runs(results, claim)
    return Finding(
        claim, measured.interval, measured.detail, verdict, claim.explanation, ids, complaint
    )


# ---------------------------------------------------------------------- our number


def measure_claim(results: StudyResults, claim: Claim) -> Measured:
    """Return our number for a claim, from all runs that its `where` chooses.

    Raises
    ------
    InputError
        If the claim names an unknown statistic, scheduler or axis.
    """
    text = ""
    if claim.variant:
        claim, text = _with_variants(results, claim)
    _check(results, claim)
    if claim.statistic in claims_sweeps.MEASURES:
        measured = claims_sweeps.measure_sweep(results, claim)
        text = text or str(claim.scheduler)
    else:
        measured = _of_cells(results, claim)
    detail = "; ".join(filter(None, [text, measured.detail]))
    return Measured(_scaled(measured.interval, claim.scale), detail)


def _with_variants(results: StudyResults, claim: Claim) -> tuple[Claim, str]:
    """Return a claim with labels for its families, and which these are."""
    where = where_of(results, claim.where)
    found = {
        name: chosen_variant(results, getattr(claim, name), claim.variant, where)
        for name in ("scheduler", "against")
        if getattr(claim, name) not in (None, BEST_OTHER)
    }
    new = [label for name, label in found.items() if label != getattr(claim, name)]
    return claim.model_copy(update=found), ", ".join(dict.fromkeys(new))


def _scaled(interval: Interval, scale: float) -> Interval:
    low, high = sorted((scale * interval.low, scale * interval.high))
    return Interval(scale * interval.mean, low, high, interval.count)


def _of_cells(results: StudyResults, claim: Claim) -> Measured:
    """Return our number for a claim about the cells that its `where` chooses."""
    if claim.metric not in results.plain:
        return Measured(t_interval([]), f"no run has {claim.metric}")
    where = where_of(results, claim.where)
    chosen = restricted(results.plain, where)
    cells = results.cell_axes
    labels = None if claim.statistic == "worst_rank" or claim.against == BEST_OTHER else [
        claim.scheduler, *([claim.against] if claim.against else [])
    ]  # fmt: skip
    needed = chosen if labels is None else chosen[chosen["scheduler"].isin(labels)]
    finished = needed[(needed["status"] == "finished") & needed[claim.metric].notna()]
    group = [*cells, "scheduler"]
    wanted, found = (len(frame[group].drop_duplicates()) for frame in (needed, finished))
    if found < wanted or not wanted:
        text = f"{wanted - found} of {wanted} combinations that it needs have no finished run"
        return Measured(t_interval([]), text)
    missing = len(needed) - len(finished)
    measured = _MEASURES[claim.statistic](_Request(results, claim, where, finished))
    if missing:
        note = f"{missing} of {len(needed)} runs are missing or failed"
        measured = Measured(measured.interval, "; ".join(filter(None, [measured.detail, note])))
    return measured


def _check(results: StudyResults, claim: Claim) -> None:
    place = f"Claim {claim.id!r}"
    if claim.statistic not in STATISTICS:
        raise InputError(
            f"{place}: statistic {claim.statistic!r} is unknown. Legal: {', '.join(STATISTICS)}."
        )
    if claim.scheduler is None:
        raise InputError(f"{place}: names no scheduler.")
    if claim.statistic in claims_sweeps.MEASURES:
        return
    if claim.scheduler not in results.labels:
        raise InputError(
            f"{place}: scheduler is {claim.scheduler!r}, of which there are variants. Choose one "
            f"by 'variant', or by its label: {', '.join(results.labels)}."
        )
    if claim.statistic not in ("mean", "worst_rank"):
        legal = (BEST_OTHER, *results.labels)
        if claim.against not in legal:
            raise InputError(f"{place}: against is {claim.against!r}. Legal: {', '.join(legal)}.")
    if claim.statistic == "rises_along" and claim.along is None:
        raise InputError(f"{place}: rises_along needs the key 'along', the name of an axis.")


@dataclass(frozen=True)
class _Request:
    """What a statistic is computed from: the finished runs that a claim chooses, and the claim."""

    results: StudyResults
    claim: Claim
    where: dict[str, tuple[Any, ...]]
    finished: pd.DataFrame

    @property
    def cells(self) -> list[str]:
        return self.results.cell_axes


def _mean(request: _Request) -> Measured:
    finished, claim = request.finished, request.claim
    whole = finished[finished["scheduler"] == claim.scheduler]
    return Measured(_over_replicates(whole, request.cells, claim.metric))


def _over_replicates(frame: pd.DataFrame, cells: list[str], column: str) -> Interval:
    """Mean over cells in each replicate that has all of them, then the interval of these."""
    table = frame.groupby("replicate")[column].agg(["mean", "count"])
    whole = len(frame[cells].drop_duplicates()) if cells else 1
    return t_interval(table.loc[table["count"] == whole, "mean"].to_numpy())


def _differences(request: _Request) -> tuple[pd.DataFrame, str]:
    """Return the paired differences of each cell and replicate, and against whom they are."""
    claim, cells = request.claim, request.cells
    pairs, best = request.results.differences(claim.metric, claim.scheduler or "")
    where = {axis: values for axis, values in request.where.items() if axis in cells}
    pairs = restricted(pairs, where)
    if claim.against != BEST_OTHER:
        return pairs[pairs["scheduler"] == claim.against], f"against {claim.against}"
    chosen = pairs.merge(restricted(best, where), on=[*cells, "scheduler"])
    names = chosen["scheduler"].unique()
    shown = ", ".join(names) if len(names) <= 2 else f"{len(names)} different schedulers"
    return chosen, f"against {shown}"


def _percent_more(request: _Request) -> Measured:
    pairs, against = _differences(request)
    return Measured(_over_replicates(pairs, request.cells, "difference_percent"), against)


def _extreme_percent_more(request: _Request) -> Measured:
    pairs, _ = _differences(request)
    table = statistics.group_intervals(pairs, [*request.cells, "scheduler"], "difference_percent")
    largest = request.claim.statistic.startswith("largest")
    row = table.loc[table["mean"].idxmax() if largest else table["mean"].idxmin()]
    interval = Interval(*(float(row[k]) for k in ("mean", "low", "high")), int(row["count"]))
    place = axis_text({name: row[name] for name in request.results.varying_axes})
    return Measured(interval, f"{place}, against {row['scheduler']}".lstrip(", "))


def _worst_rank(request: _Request) -> Measured:
    table = statistics.mean_ranks(request.finished, request.cells, request.claim.metric)
    ranks = table.loc[table["scheduler"] == request.claim.scheduler, "rank"]
    text = f"rank 1 in {int((ranks == 1).sum())} of {len(ranks)} cells"
    return Measured(Interval(float(ranks.max()), math.nan, math.nan, len(ranks)), text)


def _rises_along(request: _Request) -> Measured:
    results = request.results
    axis = full_name(request.claim.along or "", [each.name for each in results.study.axes])
    first, second = results.values_of(axis)[:2]
    pairs, _ = _differences(request)
    table = statistics.group_intervals(pairs, request.cells, "difference_percent")
    others = [name for name in request.cells if name != axis]
    at_first, at_second = (
        table.loc[table[axis] == value, [*others, "mean"]] for value in (first, second)
    )
    both = at_first.merge(at_second, on=others) if others else at_first.merge(
        at_second, how="cross"
    )  # fmt: skip
    rising = int((both["mean_y"] > both["mean_x"]).sum())
    text = f"rises in {rising} of {len(both)} pairs from {first} to {second}"
    return Measured(Interval(float(rising), math.nan, math.nan, len(both)), text)


_MEASURES = {
    "mean": _mean,
    "percent_more": _percent_more,
    "largest_percent_more": _extreme_percent_more,
    "smallest_percent_more": _extreme_percent_more,
    "worst_rank": _worst_rank,
    "rises_along": _rises_along,
}


# ---------------------------------------------------------------------- the verdict


def verdict_of(claim: Claim, ours: Interval) -> str:
    """Return the verdict for our number; see the module's text for the rules."""
    if math.isnan(ours.mean):
        return NO_DATA
    is_difference = claim.statistic in DIFFERENCES
    has_direction = _has_direction(claim, ours)
    if claim.tolerance == "order_or_tie":
        may_tie = ours.low <= 0 <= ours.high or ours.mean == 0
        return REPRODUCED if has_direction or may_tie else MISSED
    if claim.tolerance == "order":
        if not has_direction:
            return MISSED
        return REPRODUCED if claim.paper is None else DIRECTION
    if _is_within(claim, ours.mean) and not (is_difference and _is_opposite(claim, ours)):
        return REPRODUCED
    return DIRECTION if is_difference and has_direction else MISSED


def _is_within(claim: Claim, value: float) -> bool:
    if isinstance(claim.tolerance, tuple):
        low, high = claim.tolerance
        return low <= value <= high
    if claim.tolerance is None or claim.paper is None:
        return False
    return abs(value - claim.paper) <= claim.tolerance


def _has_direction(claim: Claim, ours: Interval) -> bool:
    """Whether our sign is the paper's; without a number of the paper's it must be positive."""
    sign = 1.0 if claim.paper is None else math.copysign(1.0, claim.paper)
    return ours.mean * sign > 0


def _is_opposite(claim: Claim, ours: Interval) -> bool:
    """Whether our number is certainly on the other side of 0 than the paper's."""
    if claim.paper is None or claim.paper == 0 or ours.mean * claim.paper >= 0:
        return False
    return math.isnan(ours.low) or not ours.low <= 0 <= ours.high


def supporting_runs(results: StudyResults, claim: Claim) -> tuple[tuple[str, ...], str]:
    """Return the stored runs that support a claim's explanation, and what is wrong with it.

    Parameters
    ----------
    results : StudyResults
    claim : Claim
        Its `run_ids` are ids of stored runs (or their first 8 digits or more), or expressions as
        for ``--only`` that choose some.

    Returns
    -------
    run_ids : tuple of str
    complaint : str
        Empty if there is an explanation and each entry of `run_ids` finds a finished run.
    """
    if not claim.explanation.strip():
        return (), "missed without an explanation"
    if not claim.run_ids:
        return (), "its explanation names no run"
    found: list[str] = []
    for entry in claim.run_ids:
        if _RUN_ID.fullmatch(entry):
            rows = results.runs[results.runs["run_id"].str.startswith(entry)]
        else:
            rows = results.matching(entry)
        ids = rows.loc[rows["status"] == "finished", "run_id"].tolist()
        if not ids:
            return tuple(found), f"run_ids: {entry!r} finds no finished run in the store"
        found += [each for each in ids if each not in found]
    return tuple(found), ""
