"""The claims of the study `rolling`."""

from __future__ import annotations

from gridsched.reproduction.claim_statistics import percent_more
from gridsched.runs.claims_schema import Claim, Ground, numbered

SIGN = Ground("after", "the sign, asked when the runs had been seen")

CLAIMS = [
    *(
        Claim(
            f"profit-{k}",
            "driver",
            "lp_rolling: profit above that of the fixed plan",
            "issue 10, item 7: prices that vary over the day",
            percent_more("profit", "fixed plan", "lp_rolling", where={"setting": setting}),
            (0.0, 1000.0),
            SIGN,
            unit="%",
        )
        for k, setting in numbered("energy", "energy, fewer bags", "energy and bags")
    )
]
