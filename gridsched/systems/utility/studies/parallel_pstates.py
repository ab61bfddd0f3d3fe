"""The claims of the study `parallel_pstates`: those of figures 8, 9, 10 and 12, for each reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from gridsched.runs.claims_schema import Claim, Explanation, Ground
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
    parallel.CONSERVATIVE_KEEPS: "Conservative",
    parallel.EASY_KEEPS: "EASY",
    parallel.MULTIPLE_QUEUES_KEEPS: "Multiple queues",
}
#: The number of the criterion for which `parallel` has no claim; its tolerance is 5 %.
UPR_ENERGY = tuple(replace(each, tolerance=0.6) for each in parallel_inference.CLAIMS if each.id == "energy-1")
#: Figure, study's claims, and the ids of those that choose a reading or judge it.
USED: tuple[tuple[str, Sequence[Claim], tuple[str, ...]], ...] = (
    ("8", parallel.CLAIMS, ("F1-1", "F1-2", "F1-3", "F2-3", "F7-1", "F8")),
    ("8", UPR_ENERGY, ("energy-1",)),
    ("8", parallel.CLAIMS, ("F2-2", "F3-1")),
    ("9", parallel_10000.CLAIMS, ("F4-1", "F4-2", "F4-gap-1", "F7-1")),
    ("10", parallel.CLAIMS, ("F14-1",)),
    (
        "12",
        parallel.CLAIMS,
        ("F9-1", "F9-2", "F10-1", "F10-3", "F10-4", "F10-gap-1", "F10-gap-2", "F11-1", "F11-2", "F11-3"),
    ),
)
#: How many of these lists choose; the others judge.
CHOOSE = 2


def _of(reading: str, figure: str, claim: Claim, *, chooses: bool) -> Claim:
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
        ground=CHOSE if chooses else claim.ground,
        explanation="",
        run_ids=(),
    )


CLAIMS = [
    _of(reading, figure, claim, chooses=k < CHOOSE)
    for reading in READINGS
    for k, (figure, claims, ids) in enumerate(USED)
    for claim in claims
    if claim.id in ids
]

EXPLANATIONS = [
    Explanation(
        tuple(f"{reading}-8-F3-1" for reading in READINGS),
        (
            "As in the study parallel_oversubscribed, where the filter per task is the better one at the paper's "
            "leniencies, 4 and 2: no reading of the P-states changes that."
        ),
        ("tasks_per_day == 5_000 and energy_budget_j == 12e9 and scheduler in ['UPR', 'UPR per task']",),
    ),
    Explanation(
        tuple(
            f"{reading}-{name}"
            for reading in READINGS
            for name in ("8-F7-1", "9-F4-1", "9-F4-2", "9-F7-1", "12-F9-1", "12-F9-2", "12-F10-gap-1")
        ),
        (
            "In each reading a type's cheapest option needs 66 to 71 % of the energy of its cheapest one in P-state 0, "
            "so that Max UPE uses much less than Max UPR, and 8 GJ hardly bind it. Factors of their own give it more "
            "options to choose from, and it saves more."
        ),
        (
            "tasks_per_day == 5_000 and energy_budget_j in [8e9, 12e9, 15e9] and scheduler == 'UPE'",
            "tasks_per_day == 10_000 and scheduler in ['UPE', 'UPR']",
        ),
    ),
    Explanation(
        tuple(f"{reading}-12-{name}" for reading in READINGS for name in ("F10-4", "F10-gap-2", "F11-1")),
        (
            "As in the study parallel_oversubscribed: with 15 GJ Max UPR lacks next to nothing in each reading, and "
            "leaves the metaheuristics nothing to gain."
        ),
        ("energy_budget_j in [15e9, 18e9] and scheduler in ['UPR, no filter', 'Event-Based', 'Util']",),
    ),
]
