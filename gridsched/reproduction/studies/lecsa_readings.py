"""The claims of the study `lecsa_readings`."""

from __future__ import annotations

from gridsched.reproduction.claim_statistics import percent_more
from gridsched.runs.claims_schema import BEST_OTHER, Claim, Ground, numbered

NO_PART = Ground("after", "readings are compared by their errors; it plays no part")
LECSA_BY_VALUE = "lecsa(share_rule=value)"
ROWS = (
    ("Env 1", "29 tasks", 0.0, -16.64),
    ("Env 1", "29 tasks", 0.25, -17.93),
    ("Env 1", "29 tasks", 0.5, -17.81),
    ("Env 1", "29 tasks", 0.75, -17.92),
    ("Env 1", "29 tasks", 1.0, -17.94),
    ("Env 1", "144 tasks", 0.0, -1.95),
    ("Env 1", "144 tasks", 0.25, 2.16),
    ("Env 1", "144 tasks", 0.5, 7.99),
    ("Env 1", "144 tasks", 0.75, 8.58),
    ("Env 1", "144 tasks", 1.0, 9.21),
    ("Env 1", "720 tasks", 0.0, -10.7),
    ("Env 1", "720 tasks", 0.25, 0.27),
    ("Env 1", "720 tasks", 0.5, 0.45),
    ("Env 1", "720 tasks", 0.75, 0.72),
    ("Env 1", "720 tasks", 1.0, 0.14),
    ("Env 2", "29 tasks", 0.0, -27.78),
    ("Env 2", "29 tasks", 0.25, -38.58),
    ("Env 2", "29 tasks", 0.5, -42.12),
    ("Env 2", "29 tasks", 0.75, -40.17),
    ("Env 2", "29 tasks", 1.0, -42.6),
    ("Env 2", "144 tasks", 0.0, -54.75),
    ("Env 2", "144 tasks", 0.25, -30.33),
    ("Env 2", "144 tasks", 0.5, -17.42),
    ("Env 2", "144 tasks", 0.75, -1.34),
    ("Env 2", "144 tasks", 1.0, -3.11),
    ("Env 2", "720 tasks", 0.0, -2.73),
    ("Env 2", "720 tasks", 0.25, -1.55),
    ("Env 2", "720 tasks", 0.5, -1.71),
    ("Env 2", "720 tasks", 0.75, 0.67),
    ("Env 2", "720 tasks", 1.0, 0.39),
)

CLAIMS = [
    # The numbers to come close to; they are compared by their errors, so that tolerances play no part.
    *(
        Claim(
            f"C-{k}",
            "number",
            "Energy: best other scheduler above LECSA",
            "table 3",
            percent_more(
                "energy_j",
                LECSA_BY_VALUE,
                BEST_OTHER,
                where={"environment": environment, "granularity": granularity, "heterogeneity": heterogeneity},
            ),
            tolerance,
            NO_PART,
            paper=paper,
            unit="%",
        )
        for k, (environment, granularity, heterogeneity, paper, tolerance) in numbered(
            ("Env 1", "29 tasks", 0.0, 141.06, 20.0),
            ("Env 1", "29 tasks", 0.25, 143.23, 20.0),
            ("Env 1", "29 tasks", 0.5, 155.03, 20.0),
            ("Env 1", "29 tasks", 0.75, 148.32, 20.0),
            ("Env 1", "29 tasks", 1.0, 150.24, 20.0),
            ("Env 1", "144 tasks", 0.0, 120.79, "order"),
            ("Env 1", "144 tasks", 0.25, 31.96, "order"),
            ("Env 1", "144 tasks", 0.5, 35.94, "order"),
            ("Env 1", "144 tasks", 0.75, 41.64, "order"),
            ("Env 1", "144 tasks", 1.0, 50.66, "order"),
            ("Env 1", "720 tasks", 0.0, 118.0, "order"),
            ("Env 1", "720 tasks", 0.25, 5.07, "order"),
            ("Env 1", "720 tasks", 0.5, 11.63, "order"),
            ("Env 1", "720 tasks", 0.75, 17.05, "order"),
            ("Env 1", "720 tasks", 1.0, 27.47, "order"),
            ("Env 2", "29 tasks", 0.0, 182.9, "order"),
            ("Env 2", "29 tasks", 0.25, 173.07, "order"),
            ("Env 2", "29 tasks", 0.5, 157.85, "order"),
            ("Env 2", "29 tasks", 0.75, 83.61, "order"),
            ("Env 2", "29 tasks", 1.0, 106.55, "order"),
            ("Env 2", "144 tasks", 0.0, 102.78, 20.0),
            ("Env 2", "144 tasks", 0.25, 84.87, 20.0),
            ("Env 2", "144 tasks", 0.5, 66.59, 20.0),
            ("Env 2", "144 tasks", 0.75, 45.72, 20.0),
            ("Env 2", "144 tasks", 1.0, 35.54, 20.0),
            ("Env 2", "720 tasks", 0.0, 100.0, 20.0),
            ("Env 2", "720 tasks", 0.25, 77.86, 20.0),
            ("Env 2", "720 tasks", 0.5, 59.42, 20.0),
            ("Env 2", "720 tasks", 0.75, 34.72, 20.0),
            ("Env 2", "720 tasks", 1.0, 23.2, 20.0),
        )
    ),
    *(
        Claim(
            f"PM-{k}",
            "number",
            "Performance as makespan: best other above LECSA",
            "table 3",
            percent_more(
                "makespan_s",
                LECSA_BY_VALUE,
                BEST_OTHER,
                where={"environment": environment, "granularity": granularity, "heterogeneity": heterogeneity},
            ),
            10.0,
            NO_PART,
            paper=paper,
            unit="%",
        )
        for k, (environment, granularity, heterogeneity, paper) in numbered(*ROWS)
    ),
    *(
        Claim(
            f"PB-{k}",
            "number",
            "Performance as busy time: best other above LECSA",
            "table 3",
            percent_more(
                "busy_time_s",
                LECSA_BY_VALUE,
                BEST_OTHER,
                where={"environment": environment, "granularity": granularity, "heterogeneity": heterogeneity},
            ),
            10.0,
            NO_PART,
            paper=paper,
            unit="%",
        )
        for k, (environment, granularity, heterogeneity, paper) in numbered(*ROWS)
    ),
]
