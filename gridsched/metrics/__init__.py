"""What a run is judged by."""

from gridsched.metrics.derived_entries import BOUNDED, BOUNDED_CARBON, DERIVED_ENTRIES, compared_metrics, share_above
from gridsched.metrics.facts import PlanFacts, RunFacts
from gridsched.metrics.run_entries import RUN_ENTRIES
from gridsched.metrics.run_metrics import (
    busy_time_s,
    count_in_state,
    deciding_execution,
    execution_time_s,
    flow_time_s,
    hosts_used,
    is_late,
    is_missed,
    makespan_s,
    max_of_finished,
    mean_of_finished,
    slowdown,
    stretch,
    useful_flops,
    waiting_time_s,
    waste_ratio,
    wasted_flops,
)
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
from gridsched.metrics.window_metrics import (
    MOST_STEPS,
    utility_between,
    utility_earned,
    utility_possible,
    window_series,
)

__all__ = [
    "BOUNDED",
    "BOUNDED_CARBON",
    "METRICS",
    "MOST_STEPS",
    "Condition",
    "Metric",
    "PlanFacts",
    "RunFacts",
    "busy_time_s",
    "compared_metrics",
    "count_in_state",
    "deciding_execution",
    "described",
    "execution_time_s",
    "flow_time_s",
    "hosts_used",
    "is_late",
    "is_missed",
    "known_metrics",
    "makespan_s",
    "max_of_finished",
    "mean_of_finished",
    "metrics_of",
    "metrics_of_plan",
    "register_metric",
    "share_above",
    "slowdown",
    "stretch",
    "summary",
    "useful_flops",
    "utility_between",
    "utility_earned",
    "utility_possible",
    "waiting_time_s",
    "waste_ratio",
    "wasted_flops",
    "window_series",
]

for _entry in (*CARBON_ENTRIES, *RUN_ENTRIES, *VALUE_ENTRIES, *DERIVED_ENTRIES):
    register_metric(_entry)
