"""The claims of the study `workflows_recorded`, written before it was run: what generated graphs gave is expected."""

from __future__ import annotations

from itertools import product

from gridsched.reproduction.claim_statistics import percent_more
from gridsched.runs.claims_schema import Claim, Explanation, Ground
from gridsched.systems.workflows.studies.workflows import (
    AT_FULL_SPEED,
    BY_HAND,
    HEFT_BEHIND_PEFT,
    HOSTS,
    JSSPP,
    SLACK_LEAVES_MAKESPAN,
    WITH_PSTATES,
    above_bound,
    shortest_is_cheapest,
)

AS_GENERATED = Ground("before", "about what generated graphs gave in the study `workflows`, before this one was run")

CLAIMS = [
    Claim(
        "J-equal",
        "theorem",
        "Equal hosts of 10 to 100 W at full speed: share of samples in which the shortest schedule is the cheapest",
        JSSPP,
        shortest_is_cheapest(AT_FULL_SPEED, where={"hosts": "equal"}),
        (100.0, 100.0),
        BY_HAND,
        unit="%",
    ),
    Claim(
        "J-Green500",
        "driver",
        "Machines of the Green500 at full speed: share of samples in which the shortest schedule is the cheapest",
        JSSPP,
        shortest_is_cheapest(AT_FULL_SPEED, where={"hosts": "Green500"}),
        (20.0, 60.0),
        AS_GENERATED,
        unit="%",
    ),
    *(
        Claim(
            f"P-{hosts}",
            "driver",
            f"{hosts}: with schedulers that choose P-states, share of samples in which the shortest is the cheapest",
            "not in a paper",
            shortest_is_cheapest(WITH_PSTATES, where={"hosts": hosts}),
            (0.0, 20.0),
            AS_GENERATED,
            unit="%",
        )
        for hosts in HOSTS
    ),
    *(
        Claim(
            f"S-energy-{hosts}",
            "driver",
            f"{hosts}: how much more energy HEFT needs than HEFT with slack reclamation",
            "not in a paper",
            percent_more("energy_j", "heft_slack", "heft", where={"hosts": hosts}),
            (5.0, 20.0),
            AS_GENERATED,
            unit="%",
        )
        for hosts in HOSTS
    ),
    *SLACK_LEAVES_MAKESPAN,
    *HEFT_BEHIND_PEFT,
    *(
        Claim(
            f"G-{other}-{hosts}",
            "order",
            f"{hosts}: how much longer {other} takes than {one}",
            "the study `workflows`, generated graphs",
            percent_more("makespan_s", one, other, where={"hosts": hosts}),
            "order",
            AS_GENERATED,
            unit="%",
        )
        for (one, other), hosts in product(
            (("lookahead_heft", "heft"), ("heft", "dls"), ("heft", "cpop"), ("heft", "ready_min_min")), HOSTS
        )
    ),
    *(
        Claim(
            f"E-{hosts}",
            "order",
            f"{hosts}: how much more energy HEFT needs than ECS",
            "the study `workflows`, generated graphs",
            percent_more("energy_j", "ecs", "heft", where={"hosts": hosts}),
            "order",
            AS_GENERATED,
            unit="%",
        )
        for hosts in HOSTS
    ),
    *above_bound(AS_GENERATED),
]

EXPLANATIONS = [
    Explanation(
        ("S-makespan-equal", "S-makespan-Green500"),
        (
            "On six of eight workflows the makespan stays, or nearly so; on both Montages it grows by 3 % on average "
            "and by 12 % at most. There a task makes two files for another. The plan adds the times of both, and the "
            "reference driver sends each as if it were alone, so HEFT ends before the end that it planned, and slack "
            "is taken up to that. With the files of each pair joined into one, the makespans of HEFT and of slack "
            "reclamation are equal again (both Montages on equal hosts, CCR 1, another seed)."
        ),
        ("scheduler in ('heft', 'heft_slack') and recorded in ('Montage', 'Montage (DAX)') and replicate == 0",),
    ),
    Explanation(
        ("O-1", "O-2", "O-3", "O-4", "O-5", "O-6"),
        (
            "As on generated graphs: a machine's speed holds for all tasks, and the paper's times differ by task and "
            "machine. PEFT loses most on BLAST, by 26 % on average, whose forty searches are alike, and wins on "
            "Epigenomics, by 3 %. Times by task and machine were not tried."
        ),
        ("scheduler in ('heft', 'peft') and replicate == 0",),
    ),
]
