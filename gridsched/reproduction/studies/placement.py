"""The claims of the study `placement`."""

from __future__ import annotations

from itertools import product

from gridsched.reproduction.claim_statistics import ratio
from gridsched.runs.claims_schema import Claim, Ground

SIGN = Ground("before", "the sign, asked before any run of the study; runs seen were of one place alone")
SAME = Ground("before", "whole nodes that only compute: their number alone decides what starts")
NETWORKS, COMMUNICATION = ("fat tree", "dragonfly"), ("30 %", "60 %")
LESS, MORE = (0.0, 1.0), (1.0, float("inf"))


def _claim(
    name: str,
    text: str,
    metric: str,
    place: str,
    against: str,
    network: str,
    sends: str,
    range_: tuple[float, float],
    ground: Ground = SIGN,
) -> Claim:
    """Return the claim on the ratio of a metric under one place to that under another."""
    where = {"network": network, "communication": sends, "placement": place}
    measured = ratio(metric, "easy_backfilling", where=where, against_where={"placement": against})
    words = f"{text} ({network}, {sends} communication): {place} over {against}"
    return Claim(name, "driver", words, "not in a paper", measured, range_, ground)


#: What is expected of each network and each share of communication above none.
_EXPECTED = (
    ("core-locality", "Fewer bytes over the core", "sent_over_core_bytes", "locality", "pack", LESS),
    ("core-contiguous", "Fewer bytes over the core", "sent_over_core_bytes", "contiguous", "pack", LESS),
    ("core-spread", "More bytes over the core", "sent_over_core_bytes", "spread", "pack", MORE),
    ("lost-locality", "Less time lost", "not_computing_time_s", "locality", "pack", LESS),
    ("lost-spread", "More time lost", "not_computing_time_s", "spread", "pack", MORE),
    ("waits-locality", "Jobs wait less", "mean_waiting_time_s", "locality", "pack", LESS),
    ("waits-spread", "Jobs wait more", "mean_waiting_time_s", "spread", "pack", MORE),
    ("waits-contiguous", "Jobs wait more for neighbors", "mean_waiting_time_s", "contiguous", "locality", MORE),
    ("joules-locality", "Fewer joules", "energy_j", "locality", "pack", LESS),
    ("joules-spread", "More joules", "energy_j", "spread", "pack", MORE),
)

CLAIMS = [
    *(
        _claim(f"{name}-{k}", text, metric, place, against, network, sends, range_)
        for name, text, metric, place, against, range_ in _EXPECTED
        for k, (network, sends) in enumerate(product(NETWORKS, COMMUNICATION), start=1)
    ),
    *(
        _claim(
            f"alike-{place}-{k}",
            "The same waits",
            "mean_waiting_time_s",
            place,
            "pack",
            network,
            "0 %",
            (1.0, 1.0),
            SAME,
        )
        for place in ("spread", "locality")
        for k, network in enumerate(NETWORKS, start=1)
    ),
    *(
        _claim(
            f"waits-neighbors-{k}",
            "Jobs wait more for neighbors",
            "mean_waiting_time_s",
            "contiguous",
            "pack",
            network,
            "0 %",
            MORE,
        )
        for k, network in enumerate(NETWORKS, start=1)
    ),
]
