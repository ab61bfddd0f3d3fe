"""The claims of the study `workflows`, written before it was run."""

from __future__ import annotations

from itertools import product

import numpy as np

from gridsched.analysis.claim_values import Measured
from gridsched.analysis.statistics import Interval
from gridsched.analysis.study_results import StudyResults
from gridsched.reproduction.claim_statistics import EVERYWHERE, Given, finished_runs, mean, percent_more
from gridsched.runs.claims_schema import Claim, Explanation, Ground, numbered, statistic

JSSPP = "JSSPP 2022: on hosts of 10 to 100 W the least makespan was of the least energy in all eight workflows"
SIGN = Ground("before", "the sign, asked before the study was run")
BY_HAND = Ground("before", "equal hosts that are on to the end: energy is 80 W times the makespan and a constant")
HOPED = Ground("before", "a guess of ours, before the study was run")
#: Those that leave P-states alone, and those that choose them.
AT_FULL_SPEED = (
    "heft", "cpop", "peft", "lookahead_heft", "dls", "hbmct", "ready_mct", "ready_min_min", "ready_max_min",
    "ready_sufferage",
)  # fmt: skip
WITH_PSTATES = (*AT_FULL_SPEED, "heft_slack", "ecs", "ees")
HOSTS = ("equal", "Green500")


@statistic()
def shortest_is_cheapest(results: StudyResults, among: tuple[str, ...], *, where: Given = EVERYWHERE) -> Measured:
    """Return in how many of a hundred draws some schedule of the least makespan is of the least energy, too [%].

    Parameters
    ----------
    results : StudyResults
    among : tuple of str
        Schedulers that count.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    makespans, note = finished_runs(results, "makespan_s", where, *among)
    energies, _ = finished_runs(results, "energy_j", where, *among)
    keys = [*results.cell_axes, "replicate", "scheduler"]
    both = makespans[[*keys, "makespan_s"]].merge(energies[[*keys, "energy_j"]], on=keys)
    both = both[both["scheduler"].isin(among)]
    agree = []
    for _, draw in both.groupby([*results.cell_axes, "replicate"]):
        is_short = draw["makespan_s"] <= draw["makespan_s"].min() * (1 + 1e-9)
        agree.append(bool(draw.loc[is_short, "energy_j"].min() <= draw["energy_j"].min() * (1 + 1e-9)))
    share = 100 * float(np.mean(agree)) if agree else float("nan")
    return Measured(Interval(share, count=len(agree)), note or f"{sum(agree)} of {len(agree)} draws")


#: Claims about recorded workflows, too.
SLACK_LEAVES_MAKESPAN = [
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
]
HEFT_BEHIND_PEFT = [
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
]


def above_bound(ground: Ground) -> list[Claim]:
    """Return the claims about how far three schedulers are above the bound."""
    return [
        Claim(
            f"B-{scheduler}-{ccr:g}",
            "driver",
            f"{scheduler}, CCR {ccr:g}: mean makespan above the bound",
            "not in a paper",
            mean("makespan_above_bound", scheduler, where={"ccr": ccr}),
            (0.0, most),
            ground,
            scale=100.0,
            unit="%",
        )
        for scheduler, (ccr, most) in product(
            ("heft", "peft", "ready_min_min"), ((0.1, 30.0), (1.0, 100.0), (10.0, 500.0))
        )
    ]


CLAIMS = [
    Claim(
        "J-equal",
        "theorem",
        "Equal hosts of 10 to 100 W at full speed: share of draws in which the shortest schedule is the cheapest",
        JSSPP,
        shortest_is_cheapest(AT_FULL_SPEED, where={"hosts": "equal"}),
        (100.0, 100.0),
        BY_HAND,
        unit="%",
    ),
    Claim(
        "J-Green500",
        "driver",
        "Machines of the Green500 at full speed: share of draws in which the shortest schedule is the cheapest",
        JSSPP,
        shortest_is_cheapest(AT_FULL_SPEED, where={"hosts": "Green500"}),
        (50.0, 100.0),
        HOPED,
        unit="%",
    ),
    *(
        Claim(
            f"P-{hosts}",
            "driver",
            f"{hosts}: with schedulers that choose P-states the shortest schedule is the cheapest in less than half",
            "not in a paper",
            shortest_is_cheapest(WITH_PSTATES, where={"hosts": hosts}),
            (0.0, 50.0),
            HOPED,
            unit="%",
        )
        for hosts in HOSTS
    ),
    *(
        Claim(
            f"S-energy-{hosts}",
            "driver",
            f"{hosts}: how much more HEFT draws than HEFT with slack reclamation",
            "not in a paper",
            percent_more("energy_j", "heft_slack", "heft", where={"hosts": hosts}),
            "order",
            SIGN,
            unit="%",
        )
        for hosts in HOSTS
    ),
    *SLACK_LEAVES_MAKESPAN,
    *HEFT_BEHIND_PEFT,
    *above_bound(HOPED),
]

EXPLANATIONS = [
    Explanation(
        ("J-Green500",),
        (
            "In 45 of 75 draws another schedule draws less than the shortest, by 5.2 % on average over all draws and "
            "by 42 % at most. The eight machines differ 18 times in flops a joule: a schedule that is a little longer "
            "and leaves the dear ones idle saves more than their waiting costs."
        ),
        ("hosts == 'Green500' and shape == 'layered' and replicate == 0",),
    ),
    Explanation(
        ("O-1", "O-2", "O-3", "O-4", "O-5", "O-6"),
        (
            "The paper draws times by task and machine, unrelated to each other; here a machine's speed holds for all "
            "tasks. PEFT loses most where many paths are alike: on chains it takes 26 % longer than HEFT at CCR 1 and "
            "35 % at CCR 10 on machines of the Green500, on fork-joins 11 and 13 % at CCR 0.1; it wins on layered "
            "graphs there at CCR 10, by 5 %. Times by task and machine were not tried."
        ),
        ("scheduler in ('heft', 'peft') and replicate == 0",),
    ),
]
