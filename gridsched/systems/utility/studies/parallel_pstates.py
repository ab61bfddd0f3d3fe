"""The claims of the study `parallel_pstates`: those of figures 8, 9, 10 and 12, for each reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from gridsched.runs.claims_schema import Claim, Ground
from gridsched.systems.utility.parallel_day import ParallelDay
from gridsched.systems.utility.studies import parallel, parallel_10000, parallel_inference

CHOSE = Ground("after", "these numbers chose load and utility classes, and choose the reading")
READINGS = get_args(ParallelDay.model_fields["pstate_factor_of"].annotation)
#: Labels of the study `parallel` -> those of this one and of the two other studies.
LABELS = {
    parallel.UPE: "UPE",
    parallel.UPR: "UPR, no filter",
    parallel.UPR_PER_TASK: "UPR per task",
    parallel.UPR_PER_RESOURCE: "UPR",
    parallel.UTIL: "Util",
    parallel.EVENT_BASED: "Event-Based",
    parallel.TASK_BASED: "Task-Based",
}
#: Figure -> study's claims, and the ids of those that judge a reading.
JUDGES: dict[str, tuple[Sequence[Claim], tuple[str, ...]]] = {
    "8": (parallel.CLAIMS, ("F2-2", "F3-1")),
    "9": (parallel_10000.CLAIMS, ("F4-1", "F4-2", "F4-gap-1", "F7-1")),
    "10": (parallel.CLAIMS, ("F14-1",)),
    "12": (
        parallel.CLAIMS,
        ("F9-1", "F9-2", "F10-1", "F10-3", "F10-4", "F10-gap-1", "F10-gap-2", "F11-1", "F11-2", "F11-3"),
    ),
}


def _of(reading: str, figure: str, claim: Claim, *, ground: Ground) -> Claim:
    """Return a claim of another study, of this study's runs of a reading."""
    arguments = dict(claim.ours.arguments)
    arguments |= {key: LABELS.get(label, label) for key, label in claim.ours.schedulers.items()}
    tasks_per_day, usual_j = (10_000, 15e9) if figure == "9" else (5_000, 12e9)
    cells = {"tasks_per_day": tasks_per_day, "energy_budget_j": usual_j, "pstate_factor_of": reading}
    arguments["where"] = cells | dict(claim.ours.where)
    return replace(
        claim,
        id=f"{reading}-{figure}-{claim.id}",
        ours=replace(claim.ours, arguments=arguments),
        ground=ground,
        explanation="",
        run_ids=(),
    )


CLAIMS = [
    each
    for reading in READINGS
    for each in (
        *(_of(reading, "8", claim, ground=CHOSE) for claim in parallel_inference.CLAIMS),
        *(
            _of(reading, figure, claim, ground=claim.ground)
            for figure, (claims, ids) in JUDGES.items()
            for claim in claims
            if claim.id in ids
        ),
    )
]
