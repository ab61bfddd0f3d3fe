"""What a run emitted, where the carbon intensity of power is told."""

from __future__ import annotations

from collections.abc import Callable

from gridsched.metrics.facts import RunFacts
from gridsched.metrics.table import Condition, Metric, register_metric
from gridsched.model.signals import CARBON, J_PER_KWH

TOLD = Condition(
    "a carbon intensity (`carbon`)",
    lambda run: run.trace.carbon is not None and run.trace.platform.has_energy,
    usual=False,
)

LIMITED = Condition("an energy budget in grams (`carbon_budget_g`)", lambda run: run.has_budget_in(CARBON), usual=False)


def _grams(part: str) -> Callable[[RunFacts], float]:
    def grams(run: RunFacts) -> float:
        assert run.carbon is not None
        return run.carbon.grid_total(part)

    return grams


def _mean_intensity(run: RunFacts) -> float:
    drawn = run.energy.grid_total()
    return J_PER_KWH * _grams("total_j")(run) / drawn if drawn > 0 else float("nan")


def _part(name: str, words: str, place: int) -> Metric:
    return Metric(
        f"carbon_{name}_g",
        "g",
        f"grams of `energy_{name}_j`: each joule by the intensity of its time and site",
        _grams(f"{name}_j"),
        condition=TOLD,
        better="less",
        words=words,
        scale="grams",
        places={"run": place},
        is_part=True,
        hides_zero=True,
    )


for _metric in (
    Metric(
        "carbon_g",
        "g",
        "grams of CO2 that the energy of the computing hosts caused, PUE included: the exact integral of power times "
        "intensity, by the model",
        _grams("total_j"),
        condition=TOLD,
        better="less",
        words="carbon",
        header="carbon\n[{unit}]",
        scale="grams",
        places={"run": 272, "bag": 105, "system": 75, "parallel": 75, "notebook": 75},
    ),
    _part("busy", "while busy", 273),
    _part("idle", "while idle", 274),
    _part("boot", "while booting", 275),
    _part("wasted", "wasted", 276),
    Metric(
        "carbon_intensity_g_per_kwh",
        "",
        "grams a kWh: `carbon_g` over the energy by the model",
        _mean_intensity,
        condition=TOLD,
        better="less",
        words="grams a kWh",
        places={"run": 277},
    ),
    Metric(
        "carbon_excess_g",
        "g",
        "the most that a period emitted beyond its budget and beyond what was carried over",
        lambda run: run.budget_excess,
        condition=LIMITED,
        better="less",
        words="carbon beyond the budget",
        places={"run": 125},
    ),
    Metric(
        "carbon_budget_g",
        "g",
        "energy budget of a period",
        lambda run: None if run.budget is None else run.budget.carbon_g,
        condition=LIMITED,
        is_detail=True,
    ),
):
    register_metric(_metric)
