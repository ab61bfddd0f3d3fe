"""The metrics that follow from those of runs, or that a plan has, after those of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gridsched.metrics.entries import BOUNDED, BOUNDED_CARBON, PLANNED
from gridsched.metrics.table import Condition, Metric, register_metric, shown_metrics

Row = Mapping[str, Any]


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
    """Return the table that a comparison is (see `Metric.places`), and the metrics it shows."""
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
    Metric(
        "plan_runs",
        "",
        "1 where the programme has the bag run, 0 where standing still costs less",
        lambda plan: int(plan.runs),
        "plan",
        PLANNED,
    ),
    Metric(
        "divided_makespan_s",
        "s",
        "makespan of the programme's own solution, in which tasks are divided",
        lambda plan: plan.divided_makespan_s,
        "plan",
        PLANNED,
        "less",
    ),
    Metric(
        "divided_energy_j",
        "J",
        "energy of that solution until its makespan",
        lambda plan: plan.divided_energy_j,
        "plan",
        PLANNED,
        "less",
    ),
    Metric(
        "divided_profit_rate",
        "",
        "money per second that it earns if such bags follow each other",
        lambda plan: plan.divided_profit_rate,
        "plan",
        PLANNED,
        "more",
    ),
    Metric(
        "profit_rate_bound",
        "",
        "money per second that no schedule earns more than; of `lp_max_profit`",
        lambda plan: plan.profit_rate_bound,
        "plan",
        PLANNED,
    ),
    Metric(
        "relative_decrease",
        "",
        "share by which `profit_rate` is below `profit_rate_bound`; none where that is not positive",
        lambda plan: plan.relative_decrease,
        "plan",
        PLANNED,
        "less",
        form="share",
    ),
)
_ROWS = (
    Metric(
        "energy_delay_js",
        "J s",
        "`energy_j` times makespan",
        lambda row: row["energy_j"] * row["makespan_s"],
        "row",
        better="less",
    ),
)


def _of_bounds(
    kind: str, infix: str, words: str, header: str, makespan: dict[str, int], energy: dict[str, int], carbon: int
) -> tuple[Metric, ...]:
    """Return the metrics of one of the two bounds.

    `infix` is part of their names; `makespan`, `energy` and `carbon` are the places of what lies above them.
    """
    unfinished = "none where not all tasks finished"
    if kind == "fixed":
        unfinished += ", or the scheduler changes power states"
    return (
        Metric(
            f"{infix}makespan_bound_s",
            "s",
            f"least makespan that is possible{words}",
            _bound(kind, "makespan_s"),
            "row",
            BOUNDED,
        ),
        Metric(
            f"{infix}energy_bound_j",
            "J",
            f"least energy that is possible{words}",
            _bound(kind, "energy_j"),
            "row",
            BOUNDED,
        ),
        Metric(
            f"makespan_above_{infix}bound",
            "",
            f"share by which the makespan lies above `{infix}makespan_bound_s`; {unfinished}",
            _above_bound(kind, "makespan_s", "makespan_s"),
            "row",
            BOUNDED,
            "less",
            header=header,
            form="percent",
            places=makespan,
        ),
        Metric(
            f"energy_above_{infix}bound",
            "",
            f"share by which `energy_j` lies above `{infix}energy_bound_j`; {unfinished}",
            _above_bound(kind, "energy_j", "energy_j"),
            "row",
            BOUNDED,
            "less",
            header=header,
            form="percent",
            places=energy,
        ),
        Metric(
            f"above_{infix}front",
            "",
            "share by which `energy_j` lies above the least that any "
            f"schedule of at most the run's makespan needs{words}; {unfinished}",
            _above_bound(kind, "energy_j", "front"),
            "row",
            BOUNDED,
            "less",
            words=f"energy above the {infix.replace('_', ' ')}front",
            header=header.replace("bound", "front"),
            form="percent",
            is_detail=True,
        ),
        Metric(
            f"carbon_{infix}bound_g",
            "g",
            f"least grams that any schedule of at most the run's makespan emits{words}; none where not all tasks "
            "finished",
            _carbon_bound(kind),
            "row",
            BOUNDED_CARBON,
        ),
        Metric(
            f"carbon_above_{infix}bound",
            "",
            f"share by which `carbon_g` lies above `carbon_{infix}bound_g`; {unfinished}",
            _above_carbon_bound(kind),
            "row",
            BOUNDED_CARBON,
            "less",
            words=f"carbon above the {infix.replace('_', ' ')}bound",
            header=header,
            form="percent",
            places={"bag": carbon, "run": 172 + carbon},
        ),
    )


_BOUNDS = (
    *_of_bounds(
        "any",
        "",
        ", where hosts may be off and in any P-state at any time",
        "above\nbound",
        {"bag": 30, "notebook": 50},
        {"bag": 90, "notebook": 80},
        106,
    ),
    *_of_bounds(
        "fixed",
        "fixed_",
        ", where every host is on (or off) to the end and in its P-state, as the scenario sets them",
        "above\nfixed\nbound",
        {"bag": 40},
        {"bag": 100},
        107,
    ),
)
_COMPARISONS = (
    Metric(
        "makespan_above_best",
        "",
        "share by which the makespan lies above the least of all; none where no task finished",
        _above_best("makespan_s"),
        "comparison",
        better="less",
        header="above\nbest",
        form="percent",
        places={"bag": 20, "notebook": 40},
    ),
    Metric(
        "energy_above_best",
        "",
        "share by which `energy_j` lies above the least of all; none where no task finished",
        _above_best("energy_j"),
        "comparison",
        better="less",
        header="above\nbest",
        form="percent",
        places={"bag": 80, "parallel": 70, "notebook": 70},
    ),
    Metric(
        "utility_share_of_best",
        "",
        "utility (in the window, if there is one) over that of the best",
        _share_of_best,
        "comparison",
        Condition("utility functions"),
        "more",
        header="share\nof best",
        form="share",
        places={"system": 30},
    ),
)
for _metric in (*_PLANS, *_ROWS, *_BOUNDS, *_COMPARISONS):
    register_metric(_metric)
