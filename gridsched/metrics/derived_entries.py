"""The metrics that follow from those of runs, or that a plan has, after those of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gridsched.metrics.table import Condition, Metric, metric, shown_metrics

PLANNED = Condition("the driver `optimize`", default=False)
#: It uses nothing of a run: the bounds follow from its description.
BOUNDED = Condition("bags of tasks", workload="bag")
BOUNDED_CARBON = Condition("bags of tasks with a carbon intensity", workload="bag", default=False)

Row = Mapping[str, Any]
less = partial(metric, better="less")
of_plans = partial(metric, of="plan", condition=PLANNED)
of_bounds = partial(metric, of="row", condition=BOUNDED)
above_bounds = partial(of_bounds, better="less", form="percent")
above_best = partial(less, of="comparison", header="above\nbest", form="percent")


def share_above(value: float, bound: float) -> float:
    """Distance of a result from its bound, relative to the bound; nan where the bound is 0."""
    return (value - bound) / bound if bound > 0 else float("nan")


def _share_above(row: Row, metric: str, bound: float) -> float | None:
    """None where the run has not finished all tasks, 0 where only rounding differs."""
    share = share_above(row[metric], bound)
    if row["tasks_finished"] != row["tasks"] or np.isnan(share):
        return None
    return 0.0 if abs(share) < 1e-9 else share


def _bound(kind: str, name: str) -> Callable[[Row], float | None]:
    """Return the metric that one of the bounds is; `kind` is ``any`` or ``fixed``."""
    return lambda row: getattr(getattr(row["bounds"], kind), name, None)


def _above_bound(kind: str, metric: str, name: str) -> Callable[[Row], float | None]:
    def above(row: Row) -> float | None:
        bounds = row["bounds"]
        if kind == "fixed" and not bounds.holds_fixed:
            return None
        bound = getattr(bounds, kind)
        if name == "front":
            return _share_above(row, metric, bound.least_energy_j(row["makespan_s"]))
        return _share_above(row, metric, getattr(bound, name))

    return above


def _carbon_bound(kind: str) -> Callable[[Row], float | None]:
    def bound(row: Row) -> float | None:
        carbon = getattr(row["bounds"], f"{kind}_carbon")
        if carbon is None or row["tasks_finished"] != row["tasks"]:
            return None
        return carbon.least_g(row["makespan_s"])

    return bound


def _above_carbon_bound(kind: str) -> Callable[[Row], float | None]:
    def above(row: Row) -> float | None:
        bound = _carbon_bound(kind)(row)
        holds = kind == "any" or row["bounds"].holds_fixed
        return None if bound is None or not holds else _share_above(row, "carbon_g", bound)

    return above


def _above_best(metric: str) -> Callable[[Sequence[Row]], list[float | None]]:
    def above(rows: Sequence[Row]) -> list[float | None]:
        """None where nothing was finished: doing nothing is no way to be the best."""
        did = [row["tasks_finished"] > 0 or not row["tasks"] for row in rows]
        best = min((row[metric] for row, any_ in zip(rows, did, strict=True) if any_), default=0.0)
        return [
            None if not any_ else 0.0 if row[metric] == best else share_above(row[metric], best) if best > 0 else None
            for row, any_ in zip(rows, did, strict=True)
        ]

    return above


def utility_metric(row: Row) -> str | None:
    """Return which utility schedulers are compared by; None where tasks have none."""
    return next((key for key in ("window_utility", "utility") if key in row), None)


def compared_metrics(rows: Sequence[Row]) -> tuple[str, list[Metric]]:
    """Return the table that a comparison is (see `places.TABLES`), and the metrics it shows."""
    utility = utility_metric(rows[0])
    table = "parallel" if "mean_bounded_slowdown" in rows[0] else "bag"
    if utility is None:
        return table, shown_metrics(table, rows)
    shown = shown_metrics("system", rows)
    return "system", [each for each in shown if utility == each.id or each.id != "utility"]


def _share_of_best(rows: Sequence[Row]) -> list[float | None] | None:
    utility = utility_metric(rows[0])
    if utility is None:
        return None
    best = max(row[utility] for row in rows)
    return [row[utility] / best if best > 0 else None for row in rows]


_PLANS = (
    of_plans(
        "plan_runs", "1 if the linear program runs the bag, 0 if standing still costs less", lambda plan: int(plan.runs)
    ),
    of_plans(
        "divided_makespan_s",
        "makespan of the linear program's own solution, in which tasks are divided",
        lambda plan: plan.divided_makespan_s,
        better="less",
    ),
    of_plans(
        "divided_energy_j",
        "energy of that solution until its makespan",
        lambda plan: plan.divided_energy_j,
        better="less",
    ),
    of_plans(
        "divided_profit_rate",
        "money per second that it earns if such bags follow each other",
        lambda plan: plan.divided_profit_rate,
        better="more",
    ),
    of_plans(
        "profit_rate_bound",
        "upper bound of every schedule's money per second; of `lp_max_profit`",
        lambda plan: plan.profit_rate_bound,
    ),
    of_plans(
        "relative_decrease",
        "share by which `profit_rate` is below `profit_rate_bound`; none if that is not positive",
        lambda plan: plan.relative_decrease,
        better="less",
        form="share",
    ),
)
_ROWS = (
    less("energy_delay_js", "`energy_j` times makespan", lambda row: row["energy_j"] * row["makespan_s"], of="row"),
)


def _bounds(kind: str, infix: str, words: str, header: str) -> tuple[Metric, ...]:
    """Return the metrics of one of the two bounds; `infix` is part of their names."""
    unfinished = "none if not all tasks finished"
    if kind == "fixed":
        unfinished += ", or the scheduler changes power states"
    adjective = infix.replace("_", " ")
    return (
        *(
            of_bounds(f"{infix}{what}_bound_{unit}", f"least possible {what}{words}", _bound(kind, f"{what}_{unit}"))
            for what, unit in (("makespan", "s"), ("energy", "j"))
        ),
        above_bounds(
            f"makespan_above_{infix}bound",
            f"share by which the makespan is above `{infix}makespan_bound_s`; {unfinished}",
            _above_bound(kind, "makespan_s", "makespan_s"),
            header=header,
        ),
        above_bounds(
            f"energy_above_{infix}bound",
            f"share by which `energy_j` is above `{infix}energy_bound_j`; {unfinished}",
            _above_bound(kind, "energy_j", "energy_j"),
            header=header,
        ),
        above_bounds(
            f"above_{infix}front",
            "share by which `energy_j` is above the least that any "
            f"schedule of at most the run's makespan needs{words}; {unfinished}",
            _above_bound(kind, "energy_j", "front"),
            words=f"energy above the {adjective}front",
            header=header.replace("bound", "front"),
            is_detail=True,
        ),
        of_bounds(
            f"carbon_{infix}bound_g",
            f"least grams that any schedule of at most the run's makespan emits{words}; none if not all tasks finished",
            _carbon_bound(kind),
            condition=BOUNDED_CARBON,
        ),
        above_bounds(
            f"carbon_above_{infix}bound",
            f"share by which `carbon_g` is above `carbon_{infix}bound_g`; {unfinished}",
            _above_carbon_bound(kind),
            condition=BOUNDED_CARBON,
            words=f"carbon above the {adjective}bound",
            header=header,
        ),
    )


_BOUNDS = (
    *_bounds("any", "", ", if hosts may be off and in any P-state at any time", "above\nbound"),
    *_bounds(
        "fixed",
        "fixed_",
        ", if every host is on (or off) to the end and in its P-state, as the scenario sets them",
        "above\nfixed\nbound",
    ),
)
_COMPARISONS = (
    above_best(
        "makespan_above_best",
        "share by which the makespan is above the least of all; none if no task finished",
        _above_best("makespan_s"),
    ),
    above_best(
        "energy_above_best",
        "share by which `energy_j` is above the least of all; none if no task finished",
        _above_best("energy_j"),
    ),
    metric(
        "utility_share_of_best",
        "utility (in the window, if there is one) over that of the best",
        _share_of_best,
        of="comparison",
        condition=Condition("utility functions"),
        better="more",
        header="share\nof best",
        form="share",
    ),
)
DERIVED_ENTRIES = (*_PLANS, *_ROWS, *_BOUNDS, *_COMPARISONS)
