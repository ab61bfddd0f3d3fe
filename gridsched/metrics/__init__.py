"""What a run is judged by."""

from gridsched.metrics.entries import BOUNDED, share_above, utility_metric
from gridsched.metrics.facts import RunFacts
from gridsched.metrics.of_runs import (
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
from gridsched.metrics.of_windows import (
    MOST_STEPS,
    carried_over_energy,
    energy_between,
    utility_between,
    utility_earned,
    utility_possible,
    window_series,
)
from gridsched.metrics.plan_facts import PlanFacts
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
