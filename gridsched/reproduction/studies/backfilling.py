"""The claims of the study `backfilling`."""

from __future__ import annotations

from itertools import product

from gridsched.reproduction.claim_statistics import mean_difference, percent_more
from gridsched.runs.claims_schema import Claim, Ground, numbered

SIGN = Ground("after", "the sign, asked when the runs had been seen")

CLAIMS = [
    *(
        Claim(
            f"wait-{k}",
            "order",
            text,
            (
                "Mu'alem and Feitelson, IEEE TPDS 12(6), 2001 (abstract read); Srinivasan et al. "
                "2002 (abstract read): wide agreement that backfilling produces significant benefits"
            ),
            percent_more("mean_waiting_time_s", scheduler, "fcfs", where={"trace": trace}),
            "order",
            SIGN,
            unit="%",
        )
        for k, (trace, (scheduler, text)) in enumerate(
            product(
                ("load 0.7", "load 0.9", "KTH-SP2", "HPC2N", "CEA-Curie"),
                (
                    ("easy_backfilling", "EASY: jobs wait less"),
                    ("conservative_backfilling", "Conservative: jobs wait less"),
                ),
            ),
            start=1,
        )
    ),
    *(
        Claim(
            f"slowdown-{k}",
            "order",
            text,
            "as above",
            percent_more("mean_bounded_slowdown", scheduler, "fcfs", where={"trace": trace}),
            "order",
            SIGN,
            unit="%",
        )
        for k, (trace, (scheduler, text)) in enumerate(
            product(
                ("load 0.7", "load 0.9", "KTH-SP2", "HPC2N", "CEA-Curie"),
                (
                    ("easy_backfilling", "EASY: jobs are slowed down less"),
                    ("conservative_backfilling", "Conservative: jobs are slowed down less"),
                ),
            ),
            start=1,
        )
    ),
    *(
        Claim(
            f"utilisation-{k}",
            "order",
            "At a high load backfilling uses more of the machine",
            (
                "Mu'alem and Feitelson 2001, abstract: FCFS suffers from severe fragmentation, "
                "leading to low utilization"
            ),
            mean_difference("utilisation", "fcfs", against, where={"trace": "load 0.9"}),
            "order",
            SIGN,
            unit="points",
            scale=100.0,
        )
        for k, against in numbered("easy_backfilling", "conservative_backfilling")
    ),
]
