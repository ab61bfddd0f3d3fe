"""The claims of the study `parallel_10000_oversubscribed`: those of `parallel_10000` on the other system."""

from __future__ import annotations

from dataclasses import replace

from gridsched.runs.claims_schema import Explanation, Ground
from gridsched.systems.utility.studies import parallel_10000

FIGURE_8 = Ground("after", "figure 8 chose this system")
PRINTED = Ground("before", "that of the system drawn by the printed numbers, before any run of this one")
CLAIMS = [replace(claim, ground=FIGURE_8 if claim.id == "F8-1" else PRINTED) for claim in parallel_10000.CLAIMS]
EXPLANATIONS = [
    Explanation(
        ("F5-order-1",),
        (
            "Open. EASY lets a task that can start now pass one that cannot: on average its tasks wait 4,500 s, "
            "those of conservative backfilling 15,700 s. What the text leaves open does not turn the order: on "
            "other seeds EASY earns 21.8 %; with the reservation made again at every event 21.8 %; where nothing "
            "may start on its cluster that ends after it begins 22.9 %, with one reservation in each cluster 21.1 "
            "%, for the youngest task 22.5, for the widest 23.4 % (22.8 % in the same trial); on the cluster where "
            "a task ends first 18.1 against 17.3 % (study parallel_readings). docs/studies/parallel_10000.md has "
            "all that was tried."
        ),
        ("energy_budget_j == 15e9 and scheduler in ['EASY', 'Conservative']",),
    ),
    Explanation(
        ("F7-1",),
        (
            "Max UPE runs nearly everything in the slowest P-state, whose power is half of the first's and whose "
            "energy is 71 %: all nodes together can draw no more than 11.4 GJ a day there, and it uses 9.3. UPR "
            "with its filter uses up the 15 GJ."
        ),
        ("energy_budget_j == 15e9 and scheduler in ['UPE', 'UPR']",),
    ),
]
