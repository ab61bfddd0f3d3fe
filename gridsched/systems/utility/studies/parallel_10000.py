"""The claims of the study `parallel_10000`."""

from __future__ import annotations

from math import inf

from gridsched.reproduction.claim_statistics import mean, mean_difference, percent_more
from gridsched.runs.claims_schema import Claim, Explanation, Ground, numbered

WRITTEN = Ground("before", "written with the list of claims, before any run of these schedulers")
ENDED = Ground(
    "before",
    (
        "written with the list of claims, before any run of these schedulers, and ended "
        "since at what the paper states it is up to"
    ),
)
NODES = Ground("after", "the number of nodes was chosen with the paper's energies in view")

CLAIMS = [
    # Set "after": the number of nodes was chosen with the paper's energies in view. The other
    # tolerances are older than any run of these schedulers.
    *(
        Claim(
            f"F4-{k}",
            "number",
            text,
            "section 5.1",
            mean("window_utility_share", scheduler),
            10.0,
            WRITTEN,
            paper=paper,
            unit="%",
            scale=100.0,
        )
        for k, (text, scheduler, paper) in numbered(
            ("Max UPR with place-holders and the filter per resource", "UPR", 49.5),
            ("Max UPE with place-holders", "UPE", 48.7),
        )
    ),
    Claim(
        "F4-gap-1",
        "number",
        "Max UPR above Max UPE",
        "section 5.1: 49.5 % against 48.7 %",
        mean_difference("window_utility_share", "UPE", "UPR"),
        (-4.0, 4.0),
        WRITTEN,
        paper=0.8,
        unit="points",
        scale=100.0,
    ),
    *(
        Claim(
            f"F5-{k}",
            "number",
            text,
            "section 5.1",
            mean("window_utility_share", scheduler),
            tolerance,
            WRITTEN,
            paper=paper,
            unit="%",
            scale=100.0,
        )
        for k, (text, scheduler, paper, tolerance) in numbered(
            ("Conservative backfilling", "Conservative", 15.3, (0.0, 25.0)),
            ("EASY backfilling", "EASY", 7.1, (0.0, 18.0)),
        )
    ),
    Claim(
        "F5-order-1",
        "order",
        "Conservative backfilling earns at least as much as EASY",
        "section 5.1",
        percent_more("window_utility_share", "EASY", "Conservative"),
        "order_or_tie",
        WRITTEN,
        unit="%",
    ),
    Claim(
        "F6-1",
        "number",
        "Max UPR over Max UPT, place-holders, filter per resource",
        "section 5.1: up to 50 % more",
        percent_more("window_utility_share", "UPT", "UPR"),
        (15.0, 50.0),
        ENDED,
        paper=50.0,
        paper_range=(0.0, 50.0),
        unit="%",
    ),
    Claim(
        "F7-1",
        "number",
        "Max UPR uses more energy than Max UPE",
        "section 5.1, figure 9b",
        percent_more("window_energy_j", "UPE", "UPR"),
        (5.0, 40.0),
        WRITTEN,
        paper=20.0,
        unit="%",
    ),
    Claim(
        "F8-1",
        "number",
        "Energy of Max UPR with place-holders without constraint (15 GJ / 0.70)",
        "section 4.4.3",
        mean("window_energy_j", "UPR, no filter", where={"energy_budget_j": inf}),
        3.21,
        NODES,
        paper=21.4,
        unit="GJ",
        scale=1e-09,
    ),
    *(
        Claim(
            f"F13-{k}",
            "order",
            text,
            "section 5.2: never better",
            percent_more("window_utility_share", scheduler, against),
            "order_or_tie",
            WRITTEN,
            unit="%",
        )
        for k, (text, scheduler, against) in numbered(
            ("UPE: place-holders over permanent reservations", "UPE, reserved", "UPE"),
            ("UPR: place-holders over permanent reservations", "UPR, reserved", "UPR"),
            ("UPT: place-holders over permanent reservations", "UPT, reserved", "UPT"),
            ("Util: place-holders over permanent reservations", "Util, reserved", "Util"),
        )
    ),
]

EXPLANATIONS = [
    Explanation(
        ("F5-1", "F5-2", "F5-order-1"),
        (
            "This system is loaded less than the paper's. With all times multiplied by 1.375 and utilities that "
            "decay sooner conservative backfilling earns 13.6 % (study parallel_10000_oversubscribed). EASY, at "
            "18.8 %, stays above it there, too: that is open. It lets a task that can start now pass one that "
            "cannot."
        ),
        ("energy_budget_j == 15e9 and scheduler in ['Conservative', 'EASY']",),
    ),
    Explanation(
        ("F7-1",),
        (
            "Max UPE runs nearly everything in the slowest P-state, whose power is half of the first's and whose "
            "energy is 71 %: all nodes together can draw no more than 11.4 GJ a day there. UPR with its filter "
            "uses up the 15 GJ."
        ),
        ("energy_budget_j == 15e9 and scheduler in ['UPE', 'UPR']",),
    ),
]
