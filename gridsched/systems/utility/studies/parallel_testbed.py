"""The claims of the study `parallel_testbed`."""

from __future__ import annotations

from gridsched.reproduction.claim_statistics import percent_more, ratio
from gridsched.runs.claims_schema import Claim, Ground, numbered

WRITTEN = Ground("before", "written with the list of claims, before any run of these schedulers")

CLAIMS = [
    # All tolerances are older than any run of these schedulers.
    *(
        Claim(
            f"F21-{k}",
            "number",
            text,
            "section 6.3",
            percent_more("window_utility", "UPR", against, where={"energy_budget_j": energy_budget_j}),
            (5.0, 35.0),
            WRITTEN,
            paper=paper,
            unit="%",
        )
        for k, (text, against, energy_budget_j, paper) in numbered(
            ("85 % of the energy: UPE earns more than UPR", "UPE", 0.00238e9, 20.0),
            ("85 % of the energy: Event-Based earns more than UPR", "Event-Based", 0.00238e9, 20.0),
            ("70 % of the energy: UPE earns more than UPR", "UPE", 0.00196e9, 18.0),
            ("70 % of the energy: Event-Based earns more than UPR", "Event-Based", 0.00196e9, 18.0),
        )
    ),
    *(
        Claim(
            f"F21-same-{k}",
            "shape",
            text,
            "section 6.3: approximately the same",
            percent_more("window_utility", "UPR", against, where={"energy_budget_j": 0.0028e9}),
            5.0,
            WRITTEN,
            paper=0.0,
            unit="%",
        )
        for k, (text, against) in numbered(
            ("100 % of the energy: UPE above UPR", "UPE"), ("100 % of the energy: Event-Based above UPR", "Event-Based")
        )
    ),
    *(
        Claim(
            f"F21-easy-{k}",
            "order",
            text,
            "section 6.3",
            percent_more("window_utility", "EASY", against, where={"energy_budget_j": energy_budget_j}),
            "order",
            WRITTEN,
            unit="%",
        )
        for k, (text, against, energy_budget_j) in numbered(
            ("100 % of the energy: UPR earns more than EASY", "UPR", 0.0028e9),
            ("100 % of the energy: UPE earns more than EASY", "UPE", 0.0028e9),
            ("100 % of the energy: Event-Based earns more than EASY", "Event-Based", 0.0028e9),
            ("85 % of the energy: UPR earns more than EASY", "UPR", 0.00238e9),
            ("85 % of the energy: UPE earns more than EASY", "UPE", 0.00238e9),
            ("85 % of the energy: Event-Based earns more than EASY", "Event-Based", 0.00238e9),
            ("70 % of the energy: UPR earns more than EASY", "UPR", 0.00196e9),
            ("70 % of the energy: UPE earns more than EASY", "UPE", 0.00196e9),
            ("70 % of the energy: Event-Based earns more than EASY", "Event-Based", 0.00196e9),
        )
    ),
    Claim(
        "F21-energy-1",
        "number",
        "100 % of the energy: share that UPE uses",
        "section 6.3: 92 % of the budget",
        ratio("window_energy_j", "UPE", against_metric="energy_budget_j", where={"energy_budget_j": 0.0028e9}),
        (0.0, 99.9),
        WRITTEN,
        paper=92.0,
        unit="%",
        scale=100.0,
    ),
]
