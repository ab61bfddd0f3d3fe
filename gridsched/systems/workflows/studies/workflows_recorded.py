"""The claims of the study `workflows_recorded`, written before it was run: what generated graphs gave is expected."""

from __future__ import annotations

from itertools import product

from gridsched.reproduction.claim_statistics import mean, percent_more
from gridsched.runs.claims_schema import Claim, Explanation, Ground, numbered
from gridsched.systems.workflows.studies.workflows import (
    AT_FULL_SPEED,
    BY_HAND,
    HOSTS,
    JSSPP,
    WITH_PSTATES,
    shortest_is_cheapest,
)

SIGN = Ground("before", "the sign, asked before the study was run")
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
    *(
        Claim(
            f"S-makespan-{hosts}",
            "driver",
            f"{hosts}: how much longer HEFT with slack reclamation takes than HEFT",
            "slack reclamation leaves the makespan",
            percent_more("makespan_s", "heft", "heft_slack", where={"hosts": hosts}),
            (-0.001, 0.001),
            SIGN,
            unit="%",
        )
        for hosts in HOSTS
    ),
    *(
        Claim(
            f"O-{k}",
            "order",
            f"{hosts}, CCR {ccr:g}: how much longer HEFT takes than PEFT",
            "Arabnejad, Barbosa 2014, section 6: PEFT's schedules are shorter than HEFT's",
            percent_more("makespan_s", "peft", "heft", where={"hosts": hosts, "ccr": ccr}),
            "order",
            SIGN,
            unit="%",
        )
        for k, (hosts, ccr) in numbered(*product(HOSTS, (0.1, 1.0, 10.0)))
    ),
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
    *(
        Claim(
            f"B-{scheduler}-{ccr:g}",
            "driver",
            f"{scheduler}, CCR {ccr:g}: mean makespan above the bound",
            "not in a paper",
            mean("makespan_above_bound", scheduler, where={"ccr": ccr}),
            (0.0, most),
            AS_GENERATED,
            scale=100.0,
            unit="%",
        )
        for scheduler, (ccr, most) in product(
            ("heft", "peft", "ready_min_min"), ((0.1, 30.0), (1.0, 100.0), (10.0, 500.0))
        )
    ),
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
