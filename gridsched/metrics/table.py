"""Every metric as an entry of one table: what it is called, its unit, what it means, how it is got.

Tables on the screen, reports, the columns of stored runs and the tables of the documentation follow
from the entries. A new metric is one entry and one function; `register_metric` takes one's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from gridsched.energy import HostEnergy, energy_and_power
from gridsched.errors import GridschedError, InputError, SimulationError, error_of_policy
from gridsched.metrics.columns import Column
from gridsched.metrics.facts import PlanFacts, RunFacts
from gridsched.metrics.places import TABLES
from gridsched.model.records import check_choices
from gridsched.model.trace import Trace
from gridsched.plugins import Plugin, Table, harmless
from gridsched.power import kept_power

#: Units by the ends of names, of metrics and of axes alike.
UNIT_SUFFIXES = {"_s": "s", "_j": "J", "_js": "J s", "_w": "W", "_flops": "flop", "_g": "g", "_bytes": "byte"}


def unit_of(name: str) -> str:
    """Return the unit that the name of a metric or an axis ends with; empty if it has none."""
    return next((unit for end, unit in UNIT_SUFFIXES.items() if name.endswith(end)), "")


def without_unit(name: str) -> str:
    """Return the name of a metric or an axis in words, without its unit."""
    suffix = next((end for end in UNIT_SUFFIXES if name.endswith(end)), "")
    return name.removesuffix(suffix).replace("_", " ")


#: A number, a word, or None where the run has neither.
MetricValue = float | int | str | None
#: Metrics of a run, by id.
MetricRow = Mapping[str, MetricValue]


@dataclass(frozen=True)
class Condition:
    """When a metric exists.

    Attributes
    ----------
    words : str
        For the documentation; empty: always.
    holds : callable
        Called with the `RunFacts`; whether the run has the metric.
    workload : {"any", "bag", "system", "parallel"}
        Which studies may name it: all, those of bags of tasks, those of systems with task types,
        those of parallel tasks.
    default : bool
        Whether a study that names no metrics has it, unless it is a detail.
    """

    words: str = ""
    holds: Callable[[RunFacts], bool] = lambda run: True
    workload: Literal["any", "bag", "system", "parallel"] = "any"
    default: bool = True

    def __post_init__(self) -> None:
        check_choices(self)


ALWAYS = Condition()
#: Of metrics that a study or an option gives as an expression over others: theirs alone.
FORMULA = Condition("an expression of the study")


@dataclass(frozen=True)
class Metric:
    """One number that runs are judged by.

    Attributes
    ----------
    id : str
        Its name in files, with the unit.
    unit : str
        SI; empty if it is a pure number.
    sentence : str
        What it means.
    function : callable
        See `of`.
    of : {"run", "plan", "row", "comparison"}
        Its source. A ``run``: `function` receives its `RunFacts`. A ``plan`` that is
        not executed: it receives its `PlanFacts`, and may return None. A stored ``row``: it
        receives the row's metrics by id, and under ``bounds`` the bounds of the run, where its
        condition is `BOUNDED`; no new run is needed. A ``comparison``: it receives the rows of all
        schedulers and returns one value for each, or None.
    condition : Condition
        When it exists.
    better : {"less", "more"} or None
        Which is better, if one is.
    words : str
        Its name in a table of one run; default the id without its unit.
    header : str
        Heading of its column; may hold line breaks; ``{unit}`` becomes the unit with its prefix.
    form : {"number", "rounded", "percent", "share", "text"}
        How it is written: see `gridsched.metrics.columns.Column`; shares are written in per cent.
    scale : str
        Columns with the same word here share their unit's prefix.
    planned : callable, optional
        Of a metric of runs: how it is got from the `PlanFacts` of a plan that is not executed; it
        may return None. Without it such plans do not have the metric.
    is_detail : bool
        Whether a report shows it only where a study names it.
    is_part : bool
        Whether it is part of the metric above it in a table of one run.
    hides_zero : bool
        Whether a table of one run leaves it out where it is 0.
    """

    id: str
    unit: str
    sentence: str
    function: Callable[[Any], Any]
    of: Literal["run", "plan", "row", "comparison"] = "run"
    condition: Condition = ALWAYS
    better: Literal["less", "more"] | None = None
    words: str = ""
    header: str = ""
    form: Literal["number", "rounded", "percent", "share", "text"] = "number"
    scale: str = ""
    planned: Callable[[PlanFacts], Any] | None = None
    is_detail: bool = False
    is_part: bool = False
    hides_zero: bool = False

    def __post_init__(self) -> None:
        check_choices(self)

    @property
    def is_number(self) -> bool:
        """Whether it can be averaged; the others are words beside a number."""
        return self.form != "text"

    @property
    def is_share(self) -> bool:
        """Whether it is the share by which something else is exceeded; shown in per cent."""
        return self.form in ("percent", "share")

    @property
    def title(self) -> str:
        """Name and unit, as people see them."""
        return self.title_in("%" if self.is_share else self.unit)

    def title_in(self, unit: str) -> str:
        """Return the name with a unit, if there is one."""
        return f"{self.name} [{unit}]" if unit else self.name

    @property
    def name(self) -> str:
        """The id in words, without its unit."""
        text = without_unit(self.id) if unit_of(self.id) == self.unit else self.id.replace("_", " ")
        return text[:1].upper() + text[1:]

    @property
    def row_name(self) -> str:
        """Its name in a table of one run."""
        return self.words or self.name.lower()

    @property
    def heading(self) -> str:
        """Heading of its column."""
        return self.header or self.row_name + "\n[{unit}]" * bool(self.unit)

    @property
    def column(self) -> Column:
        """Its column in a table of several runs."""
        return Column(self.id, self.heading, self.form, self.unit, self.scale)

    def problem(self, value: object) -> str:
        """Return in words why no row can hold a value; empty if one can."""
        if value is None or type(value) is (float if self.is_number else str):
            return ""
        if self.is_number and type(value) is int:
            bits = value.bit_length()
            return f"is a whole number of {bits} bits; at most 63 are allowed" if bits > 63 else ""
        legal = "a number" if self.is_number else "a word"
        return f"is of the type {type(value).__name__}; {legal} is allowed"


def metric(id: str, sentence: str, function: Callable[[Any], Any], **declared: Any) -> Metric:
    """Return a metric whose id contains its unit.

    Parameters
    ----------
    id, sentence, function
        As the fields of `Metric`.
    **declared
        Further fields of it.
    """
    return Metric(id, unit_of(id), sentence, function, **declared)


#: Names of the other columns of stored runs.
RESERVED = ("run_id", "status", "error", "scenario", "provenance", "groups", "scheduler", "replicate")


def _registered(plugin: Plugin) -> tuple[()]:
    """Import the modules of a plugin, which register metrics; nothing is left to add then."""
    for module in plugin.metrics:
        with harmless(plugin.name, f"adds no metric of {module!r}"):
            import_module(module)
    return ()


#: Every metric by id, in the order of a report.
METRICS: Table[str, Metric] = Table("metric", _registered, {})
#: Those of them that only describe columns: see `declare_metric`.
_DECLARED: set[str] = set()


def register_metric(metric: Metric) -> None:
    """Add a metric to the table; a study's ``policies`` file may do so.

    Parameters
    ----------
    metric : Metric
        Its id must be free, or the same metric's: a file may be imported twice.

    Raises
    ------
    InputError
        If the id is not a name of a column, or another metric has it.

    Examples
    --------
    >>> register_metric(Metric(
    ...     "energy_per_task_j", "J", "energy over finished tasks",
    ...     lambda row: row["energy_j"] / row["tasks_finished"], of="row", better="less",
    ... ))
    """
    _check_id(metric)
    known = METRICS.get(metric.id)
    if known is not None and metric.id not in _DECLARED and _origin(known) != _origin(metric):
        raise InputError(f"Metric {metric.id!r} exists already ({known.sentence}). Choose another id.")
    METRICS[metric.id] = metric
    _DECLARED.discard(metric.id)


def declare_metric(metric: Metric) -> None:
    """Add what is known of a metric whose own function is not here, unless the id is taken.

    Whoever registers or declares a metric of this id later replaces it.

    Raises
    ------
    InputError
        If the id is not a name of a column.
    """
    _check_id(metric)
    if metric.id not in METRICS or metric.id in _DECLARED:
        METRICS[metric.id] = metric
        _DECLARED.add(metric.id)


def _check_id(metric: Metric) -> None:
    if not metric.id.isidentifier():
        raise InputError(
            f"Metric {metric.id!r}: the id must be a name of letters, digits and underscores, as "
            "'energy_per_task_j' is."
        )
    if metric.id in RESERVED:
        raise InputError(f"Metric {metric.id!r}: runs have this already; choose another id.")


def is_own(metric: Metric) -> bool:
    """Whether a file of a user's own registers a metric."""
    module, _ = _origin(metric)
    return module.partition(".")[0] != "gridsched"


def is_metered(rows: Sequence[MetricRow]) -> bool:
    """Whether SimGrid's plugin metered all of some runs."""
    return all(row.get("energy_source") == "plugin" for row in rows)


def shown_metrics(table: str, rows: Sequence[MetricRow]) -> list[Metric]:
    """Return the metrics that a table shows of rows, in order: those that some row has.

    Parameters
    ----------
    table : str
        One of `places.TABLES`; a metric of a user's own is shown in all, last.
    rows : sequence of mapping
        Metrics of runs by id. Where no host has power, there is no energy to show, and none of the
        plugin unless it metered all runs.
    """
    has_meter = is_metered(rows)
    has_energy = any(not _is_nan(row.get("energy_j", math.nan)) for row in rows)
    own = [metric.id for metric in METRICS.values() if is_own(metric)]
    known = [METRICS[id] for id in dict.fromkeys((*TABLES[table], *own)) if id in METRICS]
    return [
        metric
        for metric in known
        if any(metric.id in row for row in rows)
        and (has_energy or not metric.id.startswith("energy_"))
        and (has_meter or metric.id != "energy_j")
    ]


def _is_nan(value: MetricValue) -> bool:
    return value != value


def _origin(metric: Metric) -> tuple[str, str]:
    return getattr(metric.function, "__module__", None) or "", metric.sentence


def metrics_of(facts: RunFacts) -> dict[str, MetricValue]:
    """Return every metric that a run has, by id, in the order of the table.

    Raises
    ------
    SimulationError
        Naming the metric, if one of a user's own raises, or gives what no row can hold.
    """
    metrics = [metric for metric in METRICS.values() if metric.of == "run"]
    return {
        metric.id: _value(metric, metric.function, facts)
        for metric in metrics
        if _value(metric, metric.condition.holds, facts, is_checked=False)
    }


def metrics_of_plan(facts: PlanFacts) -> dict[str, MetricValue]:
    """Return every metric that a plan has without being executed, by id, in the table's order.

    Raises
    ------
    SimulationError
        As `metrics_of`.
    """
    functions = [
        (metric, metric.planned if metric.of == "run" else metric.function)
        for metric in METRICS.values()
        if metric.of == "plan" or metric.planned is not None
    ]
    values = {each.id: _value(each, function, facts) for each, function in functions if function}
    return {id: value for id, value in values.items() if value is not None}


def _value(metric: Metric, function: Callable[[Any], Any], facts: Any, *, is_checked: bool = True) -> Any:
    """Return what a function of a metric gives; a number or word of Python's own, or None."""
    try:
        value = function(facts)
        value = value.item() if isinstance(value, np.generic) else value
        problem = metric.problem(value) if is_checked else ""
    except (GridschedError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise SimulationError(f"Metric {metric.id!r}: {error_of_policy(error)}") from error
    if problem:
        raise SimulationError(f"Metric {metric.id!r} {problem}.")
    return value


def value_of_row(metric: Metric, row: MetricRow) -> MetricValue:
    """Return a metric of rows.

    Raises
    ------
    InputError
        If it cannot be computed.
    """
    try:
        return _value(metric, metric.function, row)
    except SimulationError as error:
        raise InputError(f"In a stored row: {error}") from None


def known_metrics(workload: Collection[str]) -> list[Metric]:
    """Return the metrics that a study may name, beside formulas of its own.

    Parameters
    ----------
    workload : collection of str
        What its workloads are, in the words of `Condition.workload`.
    """
    return [
        metric
        for metric in METRICS.values()
        if metric.of != "comparison"
        and metric.condition is not FORMULA
        and metric.condition.workload in ("any", *workload)
    ]


def summary(
    trace: Trace, energy: HostEnergy | None = None, window_s: tuple[float, float] | None = None
) -> dict[str, MetricValue]:
    """Return every metric that follows from the records of a run alone.

    Parameters
    ----------
    trace : Trace
    energy : HostEnergy, optional
        `trace_energy` of the same trace, where the caller has it already.
    window_s : tuple of float, optional
        Begin and end of the time that the ``window_`` metrics cover [s].

    Returns
    -------
    dict
        Name with unit -> value, in the order of a report; those whose condition holds.

    Notes
    -----
    Energies are the model's and count the computing hosts over [0, horizon]; waiting time, flow
    time and slowdown count finished tasks. Wall times are not in it: it repeats exactly.
    """
    power, grid = kept_power(trace), None
    if energy is None:
        energy, grid = energy_and_power(trace, power)
    return metrics_of(RunFacts(trace, energy, window_s, power=power, grid=grid))


def described(id: str) -> Mapping[str, str]:
    """Return unit, meaning and direction of a metric as texts; empty if there is no such metric."""
    metric = METRICS.get(id)
    if metric is None:
        return {}
    return {"unit": metric.unit, "description": metric.sentence, "better": metric.better or ""}
