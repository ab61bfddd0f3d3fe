"""The claims of the study `parallel_curie`."""

from __future__ import annotations

from math import inf

from gridsched.reproduction.claim_statistics import percent_more
from gridsched.runs.claims_schema import Claim, Explanation, Ground, numbered

WRITTEN = Ground("before", "written with the list of claims, before any run of these schedulers")

CLAIMS = [
    # All tolerances are older than any run of these schedulers.
    *(
        Claim(
            f"F18-{k}",
            "order",
            text,
            "section 5.6.1, figure 14a",
            percent_more("window_utility_share", "Util", against, where={"energy_budget_j": inf, "total_cores": 46080}),
            "order_or_tie",
            WRITTEN,
            unit="%",
        )
        for k, (text, against) in numbered(
            ("No constraint, half of the cores: UPR earns more than Util", "UPR"),
            ("No constraint, half of the cores: UPT earns more than Util", "UPT"),
            ("No constraint, half of the cores: Event-Based earns more than Util", "Event-Based"),
            ("No constraint, half of the cores: Task-Based earns more than Util", "Task-Based"),
        )
    ),
    *(
        Claim(
            f"F18-comparison-{k}",
            "order",
            text,
            "section 5.6.1, figure 14a",
            percent_more(
                "window_utility_share", scheduler, against, where={"energy_budget_j": inf, "total_cores": 46080}
            ),
            "order",
            WRITTEN,
            unit="%",
        )
        for k, (text, scheduler, against) in numbered(
            ("No constraint, half of the cores: UPR earns more than Conservative", "Conservative", "UPR"),
            ("No constraint, half of the cores: UPR earns more than EASY", "EASY", "UPR"),
            ("No constraint, half of the cores: UPR earns more than Multiple queues", "Multiple queues", "UPR"),
            ("No constraint, half of the cores: UPR earns more than Random", "Random", "UPR"),
            (
                "No constraint, half of the cores: Event-Based earns more than Conservative",
                "Conservative",
                "Event-Based",
            ),
            ("No constraint, half of the cores: Event-Based earns more than EASY", "EASY", "Event-Based"),
            (
                "No constraint, half of the cores: Event-Based earns more than Multiple queues",
                "Multiple queues",
                "Event-Based",
            ),
            ("No constraint, half of the cores: Event-Based earns more than Random", "Random", "Event-Based"),
        )
    ),
    *(
        Claim(
            f"F19-{k}",
            "order",
            text,
            "section 5.6.2, figure 15a",
            percent_more("window_utility_share", scheduler, "UPE", where={"energy_budget_j": 8e9}),
            "order_or_tie",
            WRITTEN,
            unit="%",
        )
        for k, (text, scheduler) in numbered(
            ("8 GJ: UPE earns more than UPR", "UPR"),
            ("8 GJ: UPE earns more than UPT", "UPT"),
            ("8 GJ: UPE earns more than Util", "Util"),
            ("8 GJ: UPE earns more than Event-Based", "Event-Based"),
            ("8 GJ: UPE earns more than Task-Based", "Task-Based"),
        )
    ),
    *(
        Claim(
            f"F19-next-{k}",
            "order",
            text,
            "section 5.6.2, figure 15a",
            percent_more("window_utility_share", scheduler, against, where={"energy_budget_j": 8e9}),
            "order_or_tie",
            WRITTEN,
            unit="%",
        )
        for k, (text, scheduler, against) in numbered(
            ("8 GJ: Event-Based earns more than UPR", "UPR", "Event-Based"),
            ("8 GJ: Event-Based earns more than UPT", "UPT", "Event-Based"),
            ("8 GJ: Event-Based earns more than Util", "Util", "Event-Based"),
            ("8 GJ: Task-Based earns more than UPR", "UPR", "Task-Based"),
            ("8 GJ: Task-Based earns more than UPT", "UPT", "Task-Based"),
            ("8 GJ: Task-Based earns more than Util", "Util", "Task-Based"),
        )
    ),
    *(
        Claim(
            f"F19-comparison-{k}",
            "order",
            text,
            "section 5.6.2, figure 15a",
            percent_more("window_utility_share", scheduler, against, where={"energy_budget_j": 8e9}),
            "order",
            WRITTEN,
            unit="%",
        )
        for k, (text, scheduler, against) in numbered(
            ("8 GJ: UPE earns more than Conservative", "Conservative", "UPE"),
            ("8 GJ: UPE earns more than EASY", "EASY", "UPE"),
            ("8 GJ: UPE earns more than Multiple queues", "Multiple queues", "UPE"),
            ("8 GJ: UPE earns more than Random", "Random", "UPE"),
            ("8 GJ: UPR earns more than Conservative", "Conservative", "UPR"),
            ("8 GJ: UPR earns more than EASY", "EASY", "UPR"),
            ("8 GJ: UPR earns more than Multiple queues", "Multiple queues", "UPR"),
            ("8 GJ: UPR earns more than Random", "Random", "UPR"),
            ("8 GJ: UPT earns more than Conservative", "Conservative", "UPT"),
            ("8 GJ: UPT earns more than EASY", "EASY", "UPT"),
            ("8 GJ: UPT earns more than Multiple queues", "Multiple queues", "UPT"),
            ("8 GJ: UPT earns more than Random", "Random", "UPT"),
            ("8 GJ: Util earns more than Conservative", "Conservative", "Util"),
            ("8 GJ: Util earns more than EASY", "EASY", "Util"),
            ("8 GJ: Util earns more than Multiple queues", "Multiple queues", "Util"),
            ("8 GJ: Util earns more than Random", "Random", "Util"),
            ("8 GJ: Event-Based earns more than Conservative", "Conservative", "Event-Based"),
            ("8 GJ: Event-Based earns more than EASY", "EASY", "Event-Based"),
            ("8 GJ: Event-Based earns more than Multiple queues", "Multiple queues", "Event-Based"),
            ("8 GJ: Event-Based earns more than Random", "Random", "Event-Based"),
            ("8 GJ: Task-Based earns more than Conservative", "Conservative", "Task-Based"),
            ("8 GJ: Task-Based earns more than EASY", "EASY", "Task-Based"),
            ("8 GJ: Task-Based earns more than Multiple queues", "Multiple queues", "Task-Based"),
            ("8 GJ: Task-Based earns more than Random", "Random", "Task-Based"),
        )
    ),
]

EXPLANATIONS = [
    Explanation(
        ("F19-4", "F19-5"),
        (
            "8 GJ are scarce on a few of the eight days only: without a constraint that binds (26 GJ) Max UPR uses "
            "5.8 GJ on average and 8.6 at most, Event-Based 5.4 and 8.3. Max UPE, which gives up utility for "
            "energy whether it is scarce or not, uses 3.0 GJ and earns the same 95.6 % with 8 and with 26 GJ; "
            "Event-Based earns 97.4 and 97.9 %. The paper takes 48 days of the whole log and does not name them."
        ),
        (
            (
                "scheduler in ['UPE', 'UPR', 'Event-Based', 'Task-Based'] and energy_budget_j in [8e9, 26e9] and "
                "total_cores == 73728"
            ),
        ),
    )
]
