"""The claims of the study `parallel_arrival`."""

from __future__ import annotations

from itertools import product

from gridsched.reproduction.claim_statistics import least_difference, mean_difference
from gridsched.runs.claims_schema import Claim, Ground

GOAL = Ground("before", "a goal set before any run")
ARRIVALS_AND_ENERGY_BUDGET_JS = (
    ("steady", 8e9),
    ("steady", 12e9),
    ("steady", 18e9),
    ("bursty", 8e9),
    ("bursty", 12e9),
    ("bursty", 18e9),
    ("Curie", 3e9),
    ("Curie", 5e9),
    ("Curie", 8e9),
)

CLAIMS = [
    # The goal was set before any run (issue 12, scope 6): in every environment the lower end of the paired
    # 95 % interval is above -1 % of the maximum utility, against both, and so against the better one.
    *(
        Claim(
            f"goal-{k}",
            "driver",
            "Arrival-aware: lower end of the interval of its utility above the other's; goal: above -1 %",
            "issue 12, scope 6",
            least_difference(
                "window_utility_share",
                scheduler,
                "Arrival-aware",
                where={"arrivals": arrivals, "energy_budget_j": energy_budget_j},
            ),
            (-1.0, 100.0),
            GOAL,
            unit="%",
            scale=100.0,
        )
        for k, ((arrivals, energy_budget_j), scheduler) in enumerate(
            product(ARRIVALS_AND_ENERGY_BUDGET_JS, ("UPE", "Event-Based")), start=1
        )
    ),
    *(
        Claim(
            f"difference-{k}",
            "driver",
            "Arrival-aware: utility above the other's, of the maximum; goal: above -1 %",
            "issue 12, scope 6",
            mean_difference(
                "window_utility_share",
                scheduler,
                "Arrival-aware",
                where={"arrivals": arrivals, "energy_budget_j": energy_budget_j},
            ),
            (-1.0, 100.0),
            GOAL,
            unit="%",
            scale=100.0,
        )
        for k, ((arrivals, energy_budget_j), scheduler) in enumerate(
            product(ARRIVALS_AND_ENERGY_BUDGET_JS, ("UPE", "Event-Based")), start=1
        )
    ),
]
