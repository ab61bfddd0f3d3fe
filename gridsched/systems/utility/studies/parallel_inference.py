"""The claims of the study `parallel_inference`."""

from __future__ import annotations

from math import inf

from gridsched.reproduction.claim_statistics import mean, percent_more
from gridsched.runs.claims_schema import Claim, Ground, numbered

CHOSE = Ground("after", "these numbers chose the load and the classes")

CLAIMS = [
    *(
        Claim(
            f"share-{k}",
            "number",
            text,
            "section 5.1, figure 8a",
            mean("window_utility_share", scheduler),
            None,
            CHOSE,
            paper=paper,
            unit="%",
            scale=100.0,
        )
        for k, (text, scheduler, paper) in numbered(
            ("Conservative, nothing dropped", "Conservative", 35.0),
            ("EASY, nothing dropped", "EASY", 35.0),
            ("Multiple queues, nothing dropped", "Multiple queues", 35.0),
            ("Max UPE", "UPE", 73.0),
        )
    ),
    *(
        Claim(
            f"energy-{k}",
            "number",
            text,
            "sections 4.4.3 and 5.1, figure 8b",
            mean("window_energy_j", scheduler, where={"energy_budget_j": energy_budget_j}),
            None,
            CHOSE,
            paper=paper,
            unit="GJ",
            scale=1e-09,
        )
        for k, (text, scheduler, paper, energy_budget_j) in numbered(
            ("Max UPR with the filter per resource", "UPR", 12.0, 12e9),
            ("Max Util without a budget", "Util", 17.1, inf),
        )
    ),
    Claim(
        "energy-more",
        "number",
        "Max UPR uses more energy than Max UPE",
        "section 5.1, figure 8b",
        percent_more("window_energy_j", "UPE", "UPR"),
        None,
        CHOSE,
        paper=20.0,
        unit="%",
    ),
]
