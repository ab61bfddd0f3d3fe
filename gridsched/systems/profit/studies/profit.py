"""The claims of the study `profit`."""

from __future__ import annotations

from itertools import product
from math import inf

from gridsched.reproduction.claim_statistics import mean, percent_more, ratio
from gridsched.runs.claims_schema import Claim, Explanation, Ground, numbered

PROBE = Ground("after", "written after a probe on another system had been seen")
WRITTEN = Ground("before", "written with the list of claims, before any run")
PROGRAMME = Ground("before", "follows from the program; a tolerance for its rounding")
CAP = Ground("before", "the paper's own cap")
ROUNDING = Ground("before", "written with the list of claims: rounding to whole tasks may cost 1 %")
DRIVERS = Ground("before", "the drivers execute what was planned, to rounding")
OF_F1 = Ground("before", "the tolerance of F1, before any run on these machines")
SCHEDULERS = ("at_most_55_kW(gamma=1.01)", "at_most_55_kW(gamma=1.2)", "at_most_55_kW(gamma=1.5)")

CLAIMS = [
    # Set "after": written after a probe had been seen (algorithms F-003, rows 1 and 3).
    *(
        Claim(
            f"F1-{k}",
            "shape",
            "The bound and the schedule of whole tasks nearly coincide: relative decrease",
            "section V-B, figure 1: nearly overlap",
            mean("relative_decrease", scheduler, where={"bags": bags}),
            (0.0, 5.0),
            PROBE,
            unit="%",
            scale=100.0,
        )
        for k, (scheduler, bags) in numbered(
            ("lp_max_profit(gamma=1.01)", "paper"),
            ("lp_max_profit(gamma=1.2)", "paper"),
            ("lp_max_profit(gamma=1.5)", "paper"),
        )
    ),
    Claim(
        "F2-energy",
        "shape",
        "Gamma 1.01 minimizes energy: E over E_min, divided tasks",
        "section V-B",
        ratio("divided_energy_j", "lp_max_profit(gamma=1.01)", "lp_pareto(energy_weight=1.0)", where={"bags": "paper"}),
        (0.999999, 1.01),
        WRITTEN,
        paper=1.0,
    ),
    Claim(
        "F2-makespan",
        "shape",
        "Gamma 1.5 minimizes makespan: MS over MS_min, divided tasks",
        "section V-B",
        ratio(
            "divided_makespan_s", "lp_max_profit(gamma=1.5)", "lp_pareto(energy_weight=0.0)", where={"bags": "paper"}
        ),
        (0.999999, 1.02),
        WRITTEN,
        paper=1.0,
    ),
    Claim(
        "F2-knee-energy",
        "theorem",
        "Gamma 1.2 is at the knee: more energy than the least",
        "section V-B",
        percent_more(
            "divided_energy_j", "lp_pareto(energy_weight=1.0)", "lp_max_profit(gamma=1.2)", where={"bags": "paper"}
        ),
        "order",
        WRITTEN,
        unit="%",
    ),
    Claim(
        "F2-knee-makespan",
        "theorem",
        "Gamma 1.2 is at the knee: more makespan than the least",
        "section V-B",
        percent_more(
            "divided_makespan_s", "lp_pareto(energy_weight=0.0)", "lp_max_profit(gamma=1.2)", where={"bags": "paper"}
        ),
        "order",
        WRITTEN,
        unit="%",
    ),
    *(
        Claim(
            f"F3-size-{k}",
            "shape",
            "The relative decrease falls with the tasks per machine: larger bags over smaller ones",
            "section V-B, figure 2",
            ratio("relative_decrease", scheduler, against_where=against_where, where={"bags": bags}),
            (0.0, 1.0),
            PROBE,
        )
        for k, (scheduler, (bags, against_where)) in enumerate(
            product(
                ("lp_max_profit(gamma=1.01)", "lp_max_profit(gamma=1.2)", "lp_max_profit(gamma=1.5)"),
                (("10 per machine", {"bags": "5 per machine"}), ("30 per machine", {"bags": "10 per machine"})),
            ),
            start=1,
        )
    ),
    *(
        Claim(
            f"F3-gamma-{k}",
            "order",
            "The bounds are tighter for lower prices: mean decrease at the lower gamma over the higher",
            "section V-B, figure 2",
            ratio("relative_decrease", scheduler, against, where={"bags": bags}),
            (0.0, 1.0),
            PROBE,
        )
        for k, ((scheduler, against), bags) in enumerate(
            product(
                (
                    ("lp_max_profit(gamma=1.01)", "lp_max_profit(gamma=1.2)"),
                    ("lp_max_profit(gamma=1.01)", "lp_max_profit(gamma=1.5)"),
                    ("lp_max_profit(gamma=1.2)", "lp_max_profit(gamma=1.5)"),
                ),
                ("5 per machine", "10 per machine", "30 per machine"),
            ),
            start=1,
        )
    ),
    *(
        Claim(
            f"F5-loss-{k}",
            "theorem",
            "Gamma below 1: the front's best point loses more than the program's plan",
            "section V-C, figure 4",
            percent_more("divided_profit_rate", scheduler, against, where={"bags": "idle power"}),
            "order",
            WRITTEN,
            unit="%",
        )
        for k, (scheduler, against) in numbered(
            ("lp_max_profit(gamma=0.9)", "lp_pareto_profit(gamma=0.9)"),
            ("lp_max_profit(gamma=0.95)", "lp_pareto_profit(gamma=0.95)"),
            ("lp_max_profit(gamma=0.98)", "lp_pareto_profit(gamma=0.98)"),
        )
    ),
    *(
        Claim(
            f"F5-equal-{k}",
            "theorem",
            "Gamma above 1: both earn the same, ratio",
            "section V-C, figure 4",
            ratio("divided_profit_rate", scheduler, against, where={"bags": "idle power"}),
            1e-06,
            PROGRAMME,
            paper=1.0,
        )
        for k, (scheduler, against) in numbered(
            ("lp_max_profit(gamma=1.01)", "lp_pareto_profit(gamma=1.01)"),
            ("lp_max_profit(gamma=1.05)", "lp_pareto_profit(gamma=1.05)"),
            ("lp_max_profit(gamma=1.2)", "lp_pareto_profit(gamma=1.2)"),
            ("lp_max_profit(gamma=1.5)", "lp_pareto_profit(gamma=1.5)"),
        )
    ),
    *(
        Claim(
            f"F6-{k}",
            "theorem",
            text,
            "section V-C, figures 3 and 5a",
            percent_more(
                metric, "lp_pareto(energy_weight=1.0)", "lp_max_profit(gamma=0.9)", where={"bags": "idle power"}
            ),
            "order",
            WRITTEN,
            unit="%",
        )
        for k, (text, metric) in numbered(
            ("Gamma 0.9: the least loss takes more energy than the cheapest point", "divided_energy_j"),
            ("Gamma 0.9: the least loss takes more time than the cheapest point", "divided_makespan_s"),
        )
    ),
    Claim(
        "F7-fast-end",
        "order",
        "The shortest plan draws more than 55 kW",
        "section V-B, figure 1",
        ratio(
            "divided_energy_j",
            "lp_pareto(energy_weight=0.0)",
            against_metric="divided_makespan_s",
            where={"bags": "paper"},
        ),
        (55.0, inf),
        CAP,
        unit="kW",
        scale=0.001,
    ),
    *(
        Claim(
            f"F7-divided-{k}",
            "theorem",
            "Under the cap: mean power of divided tasks",
            "section V-B, figure 1",
            ratio("divided_energy_j", scheduler, against_metric="divided_makespan_s", where={"bags": "paper"}),
            (0.0, 55.000001),
            PROGRAMME,
            unit="kW",
            scale=0.001,
        )
        for k, scheduler in numbered(*SCHEDULERS)
    ),
    *(
        Claim(
            f"F7-whole-{k}",
            "order",
            "Under the cap: mean power of whole tasks before any pause, at most 1 % more",
            "section V-B, figure 1",
            ratio("energy_j", scheduler, against_metric="makespan_s", where={"bags": "paper"}),
            (0.0, 55.55),
            ROUNDING,
            unit="kW",
            scale=0.001,
        )
        for k, scheduler in numbered(*SCHEDULERS)
    ),
    *(
        Claim(
            f"F8-{k}",
            "theorem",
            "Without idle power a price below the least energy's cost means: do not run",
            "section V-A: gamma > 1 implies that positive profit is achievable; V-C",
            mean("plan_runs", scheduler, where={"bags": "paper"}),
            0.0,
            PROGRAMME,
            paper=0.0,
        )
        for k, scheduler in numbered("lp_max_profit(gamma=0.8)", "lp_max_profit(gamma=0.98)")
    ),
    *(
        Claim(
            f"drivers-{k}",
            "driver",
            "Execution over plan",
            "our own check: the drivers confirm what was planned",
            ratio(
                metric,
                "lp_max_profit(gamma=1.2)",
                against_where={"driver": "optimize"},
                where={"driver": driver, "bags": bags},
            ),
            1e-09,
            DRIVERS,
            paper=1.0,
        )
        for k, (metric, driver, bags) in numbered(
            ("makespan_s", "simgrid", "paper"),
            ("energy_j", "simgrid", "paper"),
            ("makespan_s", "simgrid", "idle power"),
            ("energy_j", "simgrid", "idle power"),
            ("makespan_s", "simgrid", "measured"),
            ("energy_j", "simgrid", "measured"),
            ("makespan_s", "reference", "paper"),
            ("energy_j", "reference", "paper"),
            ("makespan_s", "reference", "idle power"),
            ("energy_j", "reference", "idle power"),
            ("makespan_s", "reference", "measured"),
            ("energy_j", "reference", "measured"),
        )
    ),
    *(
        Claim(
            f"measured-{k}",
            "driver",
            "As F1, on measured machines",
            "our own question",
            mean("relative_decrease", scheduler, where={"bags": bags}),
            (0.0, 5.0),
            OF_F1,
            unit="%",
            scale=100.0,
        )
        for k, (scheduler, bags) in numbered(
            ("lp_max_profit(gamma=1.01)", "measured"),
            ("lp_max_profit(gamma=1.2)", "measured"),
            ("lp_max_profit(gamma=1.5)", "measured"),
        )
    ),
]

EXPLANATIONS = [
    Explanation(
        ("F2-makespan",),
        (
            "With our drawn times and powers the front is flat at its fast end: from gamma 1.5 on, 5.4 % less time "
            "costs 7.5 % more energy, and at that price the energy decides. Gamma 2.0 is 3.5 % above the least "
            "makespan, 2.5 is 1.2 % above it, 5.0 reaches it. Where a front bends depends on the ETC and APC that "
            "the paper has not published."
        ),
        (
            (
                "bags == 'paper' and driver == 'optimize' and scheduler in ( 'lp_max_profit(gamma=1.5)', "
                "'lp_max_profit(gamma=2.0)', 'lp_max_profit(gamma=2.5)', 'lp_max_profit(gamma=5.0)', "
                "'lp_pareto(energy_weight=0.0)' )"
            ),
        ),
    )
]
