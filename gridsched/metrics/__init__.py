"""What a run is judged by: the table of metrics; formulas are in the modules `*_metrics` and `varying_prices`."""

from gridsched.metrics.derived_entries import BOUNDED, BOUNDED_CARBON, DERIVED_ENTRIES, compared_metrics
from gridsched.metrics.facts import PlanFacts, RunFacts
from gridsched.metrics.run_entries import RUN_ENTRIES
from gridsched.metrics.table import (
    METRICS,
    Condition,
    Metric,
    described,
    known_metrics,
    metrics_of,
    metrics_of_plan,
    register_metric,
    summary,
)
from gridsched.metrics.value_entries import CARBON_ENTRIES, VALUE_ENTRIES

__all__ = [
    "BOUNDED",
    "BOUNDED_CARBON",
    "METRICS",
    "Condition",
    "Metric",
    "PlanFacts",
    "RunFacts",
    "compared_metrics",
    "described",
    "known_metrics",
    "metrics_of",
    "metrics_of_plan",
    "register_metric",
    "summary",
]

METRICS.update({_entry.id: _entry for _entry in (*CARBON_ENTRIES, *RUN_ENTRIES, *VALUE_ENTRIES, *DERIVED_ENTRIES)})
