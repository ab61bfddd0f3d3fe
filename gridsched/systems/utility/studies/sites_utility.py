"""The claims of the study `sites_utility`."""

from __future__ import annotations

from gridsched.reproduction.claim_statistics import percent_more
from gridsched.runs.claims_schema import Claim, Explanation, Ground, numbered

SIGN = Ground("before", "the sign, asked before the study was run; the draft was run on other tasks and intensities")

CLAIMS = [
    *(
        Claim(
            f"budget-{k}",
            "driver",
            text,
            "not in a paper",
            percent_more("utility", scheduler, against, where={"budget": budget}),
            "order",
            SIGN,
            unit="%",
        )
        for k, (budget, scheduler, against, text) in numbered(
            (
                "5 kg",
                "UPE(energy_leniency=1.5)",
                "UPE, carbon(energy_leniency=1.5)",
                "How much more utility UPE earns by grams than by joules, with the filter",
            ),
            (
                "5 kg",
                "UPE(energy_leniency=inf)",
                "UPE, carbon(energy_leniency=inf)",
                "How much more utility UPE earns by grams than by joules, without filter",
            ),
            (
                "none",
                "UPE(energy_leniency=inf)",
                "UPE, carbon(energy_leniency=inf)",
                "How much more utility UPE earns by grams than by joules",
            ),
        )
    ),
    Claim(
        "grams",
        "driver",
        "How much more UPE emits by joules than by grams",
        "not in a paper",
        percent_more(
            "carbon_g", "UPE, carbon(energy_leniency=inf)", "UPE(energy_leniency=inf)", where={"budget": "none"}
        ),
        "order",
        SIGN,
        unit="%",
    ),
]

EXPLANATIONS = [
    Explanation(
        ("budget-3",),
        (
            "Without a budget nothing is bought with the grams that are saved: UPE by grams takes the site of "
            "least grams even where a task takes longer there or needs more joules (202 MJ beside 185), and its "
            "worth decays meanwhile: 291 tasks are dropped beside 196."
        ),
        ("budget == 'none' and replicate == 0",),
    )
]
