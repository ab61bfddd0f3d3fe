"""What a paper claims beside what our runs give, and the verdict.

The statistics are in `gridsched.reproduction.claim_statistics`.

**Verdict.** A claim with a number and a tolerance is *reproduced* if our mean lies within it, and,
for a difference, not certainly on the other side of 0 (our interval excludes 0 and the paper's sign
is the other). It has the *direction only* if the sign agrees. A claim with a number of which only
the order is asked can at best have the direction. A claim without number of which the order is
asked is reproduced if the order holds, or, if it allows this, if both are equal. If our interval
holds values that would be reproduced and others that would not, the two are *not distinguishable*,
whichever side our mean is on. Everything else is *not reproduced*.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from gridsched.analysis.claim_values import Measured, chosen_variant, where_of
from gridsched.analysis.statistics import Interval
from gridsched.analysis.study_results import StudyResults
from gridsched.errors import InputError
from gridsched.reproduction.claim_statistics import NoData, joined
from gridsched.runs.claims_schema import BEST_OTHER, Claim, Ours

REPRODUCED, DIRECTION, MISSED = "reproduced", "direction only", "not reproduced"
NOT_DISTINGUISHABLE, NO_DATA = "not distinguishable", "no data"
#: In the order in which they are counted.
VERDICTS = (REPRODUCED, DIRECTION, MISSED, NOT_DISTINGUISHABLE, NO_DATA)
#: What is reproduced and further off than this is counted beside [%].
FAR_OFF_PERCENT = 30.0
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
        One of `VERDICTS`.
    explanation : str
        Why it is missed, or what decides it.
    run_ids : tuple of str
        Stored runs that support the explanation.
    problem : str
        Why the claim counts as unsettled; empty if it is settled.
    """

    claim: Claim
    ours: Interval
    detail: str
    verdict: str
    explanation: str = ""
    run_ids: tuple[str, ...] = ()
    problem: str = ""

    @property
    def off_by_percent(self) -> float:
        """How far our number lies from the paper's, of the paper's [%]; nan where it prints none, or 0."""
        paper = self.claim.paper
        return 100.0 * (self.ours.mean - paper) / abs(paper) if paper else math.nan

    @property
    def is_far_off(self) -> bool:
        """Whether it is reproduced, by a wide tolerance, and lies further off than `FAR_OFF_PERCENT`."""
        return self.verdict == REPRODUCED and abs(self.off_by_percent) > FAR_OFF_PERCENT


def judge(results: StudyResults) -> list[Finding]:
    """Return the finding of every claim of a study, in the study's order.

    Raises
    ------
    InputError
        If a claim asks for something unknown.
    """
    return [_finding(results, claim) for claim in results.claims]


def _finding(results: StudyResults, claim: Claim) -> Finding:
    measured = measure_claim(results, claim)
    finding = Finding(claim, measured.interval, measured.detail, verdict_of(claim, measured.interval))
    if finding.verdict == NO_DATA:
        return replace(finding, problem=f"no verdict: {measured.detail}")
    if finding.verdict == REPRODUCED or (finding.verdict == NOT_DISTINGUISHABLE and not claim.explanation):
        return finding
    ids, problem = supporting_runs(results, claim)
    return replace(finding, explanation=claim.explanation, run_ids=ids, problem=problem)


def measure_claim(results: StudyResults, claim: Claim) -> Measured:
    """Return our number for a claim, from all runs that its `where` chooses.

    Raises
    ------
    InputError
        If the claim names an unknown scheduler, level or axis.
    """
    ours, arguments = claim.ours, dict(claim.ours.arguments)
    text = arguments["scheduler"] if ours.takes_families else ""
    if ours.variant:
        chosen = _variants(results, ours)
        new = [label for key, label in chosen.items() if label != arguments[key]]
        arguments |= chosen
        text = ", ".join(dict.fromkeys(new)) or (arguments["scheduler"] if ours.takes_families else "")
    try:
        measured = ours.function(results, **arguments)
    except NoData as error:
        measured = Measured(Interval(), str(error))
    except InputError as error:
        raise InputError(f"Claim {claim.id!r}: {error}") from None
    interval, scale = measured.interval, claim.scale
    low, high = sorted((scale * interval.low, scale * interval.high))
    return Measured(Interval(scale * interval.mean, low, high, interval.count), joined(text, measured.detail))


def _variants(results: StudyResults, ours: Ours) -> dict[str, str]:
    """Return the labels of a family's variants that represent it."""
    where = where_of(results, ours.where)
    named = {key: label for key, label in ours.schedulers.items() if label != BEST_OTHER}
    return {key: chosen_variant(results, label, ours.variant, where) for key, label in named.items()}


def verdict_of(claim: Claim, ours: Interval) -> str:
    """Return the verdict for our number; see the module's text for the rules."""
    if math.isnan(ours.mean):
        return NO_DATA
    low, high = _reproduced_range(claim)
    is_whole = low <= ours.low and ours.high <= high
    if not is_whole and ours.low < high and low < ours.high:
        return NOT_DISTINGUISHABLE
    is_difference = claim.ours.is_difference
    has_direction = _has_direction(claim, ours)
    if claim.tolerance == "order_or_tie":
        return REPRODUCED if has_direction or ours.mean == 0 else MISSED
    if claim.tolerance == "order":
        if not has_direction:
            return MISSED
        return REPRODUCED if claim.paper is None else DIRECTION
    if low <= ours.mean <= high and not (is_difference and _is_opposite(claim, ours)):
        return REPRODUCED
    return DIRECTION if is_difference and has_direction else MISSED


def _reproduced_range(claim: Claim) -> tuple[float, float]:
    """Return from where to where our number reproduces a claim; nan if nowhere."""
    if isinstance(claim.tolerance, str) and claim.paper is None:
        return 0.0, math.inf
    return claim.tolerated_range


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
    problem : str
        Empty if there is an explanation and each entry of `run_ids` finds a finished run.
    """
    if not claim.explanation.strip():
        return (), "missed without an explanation"
    if not claim.run_ids:
        return (), "its explanation names no run"
    run_ids: list[str] = []
    for entry in claim.run_ids:
        if _RUN_ID.fullmatch(entry):
            rows = results.runs[results.runs["run_id"].str.startswith(entry)]
        else:
            rows = results.matching(entry)
        ids = rows.loc[rows["status"] == "finished", "run_id"].tolist()
        if not ids:
            return tuple(run_ids), f"run_ids: {entry!r} finds no finished run in the store"
        run_ids += [each for each in ids if each not in run_ids]
    return tuple(run_ids), ""
