"""Metrics of a run against the formulas, and the table of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import traces_by_hand as by_hand
from clusters import plain_platform
from hypothesis import given
from hypothesis import strategies as st

from gridsched import Scenario, metrics, power, run
from gridsched.energy import host_energy_004, relative_difference, task_energy, total_energy, trace_energy
from gridsched.errors import InputError
from gridsched.metrics import METRICS, Metric, RunFacts, described, metrics_of, register_metric, run_metrics
from gridsched.metrics.derived_entries import share_above
from gridsched.metrics.places import PLOTTED, TABLES
from gridsched.metrics.run_metrics import CHANCE_BINS, chance_counts
from gridsched.metrics.table import shown_metrics, summary
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tasks import make_tasks
from gridsched.model.timeline import host_timeline
from gridsched.power import host_power

# The power and energy formulas, by hand.

WATTS = st.floats(0.0, 1e6)


def test_equation_1_divides_work_by_efficiency():
    """1000 flop at 2 flop/J are 500 J; arrays broadcast to tasks x hosts."""
    assert task_energy(1000.0, 2.0) == 500.0
    table = task_energy(np.array([[1000.0], [500.0]]), np.array([2.0, 2.5, 5.0]))
    assert table.tolist() == [[500.0, 400.0, 200.0], [250.0, 200.0, 100.0]]


def test_equations_2_and_3_add_idle_power_and_hosts():
    """The work queue on EX-A: 1250 + 55 s x 4 W, 300 + 65 s x 4 W, 400 J, together 2430 J."""
    hosts = [
        host_energy_004([500.0, 750.0], 55.0, 4.0),
        host_energy_004([200.0, 100.0], 65.0, 4.0),
        host_energy_004([400.0], 0.0, 4.0),
    ]
    assert hosts == [1470.0, 560.0, 400.0]
    assert total_energy(hosts) == 2430.0
    assert host_energy_004([], 10.0, 4.0) == 40.0


@pytest.mark.parametrize(
    ("busy", "is_on", "watts"),
    [
        (0, True, 20.0),
        (1, True, 40.0),
        (2, True, 50.0),
        (3, True, 60.0),
        (4, True, 70.0),
        (9, True, 70.0),
        (0, False, 1.5),
        (4, False, 1.5),
    ],
)
def test_power_of_a_four_core_host(busy, is_on, watts):
    """Idle 20 W, epsilon 30 W, all cores 70 W, off 1.5 W: 10 W for each core above epsilon."""
    assert host_power(busy, 4, 20.0, 30.0, 70.0, is_on, 1.5) == watts


def test_simgrids_own_example_of_a_single_core():
    """SimGrid's energy-exec test: 10 s idle at 100 W, then 10 s at load 1 at 120 W."""
    powers = host_power([0, 1], [1, 1], 100.0, 120.0, 120.0)
    assert (powers * 10.0).sum() == 2200.0


@given(st.integers(1, 64), WATTS, WATTS, WATTS)
def test_vector_equals_scalar(cores, idle, epsilon, busy):
    """One call for all loads gives what a call for each load gives."""
    loads = np.arange(cores + 1)
    together = host_power(loads, cores, idle, epsilon, busy)
    assert together.tolist() == [float(host_power(k, cores, idle, epsilon, busy)) for k in loads]
    assert together[0] == idle
    assert together[-1] == pytest.approx(busy, rel=1e-12, abs=1e-9)


def test_relative_difference():
    """Relative to the larger; equal zeros do not differ; an unknown energy stays unknown."""
    found = relative_difference([1.0, 0.0, 99.0, math.nan], [1.0, 0.0, 100.0, 1.0])
    assert found[:3].tolist() == [0.0, 0.0, 0.01]
    assert math.isnan(found[3])
    assert relative_difference(0.0, 5.0) == 1.0


# Metrics of runs written down by hand.


@pytest.mark.parametrize(("copies", "makespan", "flops", "joules"), [(2, 55, 1375, 275), (3, 45, 2625, 825)])
def test_replication_reports_its_waste(copies, makespan, flops, joules):
    """The table of A2: makespan, wasted flops and joules."""
    found = metrics.summary(by_hand.replication(copies))
    assert found["makespan_s"] == makespan
    assert found["wasted_flops"] == flops
    assert found["energy_wasted_j"] == joules
    assert found["waste_ratio"] == flops / (5250 + flops)
    assert found["tasks_finished"] == found["tasks"] == 5


def test_work_queue_summary():
    """Times and counts of A1: nothing wasted, every host used."""
    found = metrics.summary(by_hand.work_queue())
    assert found["makespan_s"] == 80
    assert found["busy_time_s"] == 120
    assert found["energy_model_j"] == 2430
    assert found["energy_idle_j"] == 480
    assert found["waste_ratio"] == 0.0
    assert found["hosts_used"] == 3
    assert found["mean_waiting_time_s"] == (10 + 10) / 5
    assert found["mean_flow_time_s"] == (10 + 10 + 80 + 25 + 15) / 5
    assert found["max_slowdown"] == 3.0
    assert list(found)[:3] == ["makespan_s", "busy_time_s", "energy_model_j"]


def test_only_finished_tasks_count_in_means():
    """A killed, a dropped and a rejected task are counted, and averaged nowhere."""
    trace = by_hand.everything_at_once()
    found = metrics.summary(trace)
    counts = [found[f"tasks_{s}"] for s in ("finished", "killed", "dropped", "rejected", "failed")]
    assert counts == [3, 1, 1, 1, 0]
    assert found["makespan_s"] == 60.0
    assert found["max_waiting_time_s"] == 45.0
    assert found["max_flow_time_s"] == 55.0
    assert found["wasted_flops"] == 200.0
    assert run_metrics.waiting_time_s(trace)[3] == 55.0
    assert np.isnan(run_metrics.flow_time_s(trace)[3:]).all()


def test_the_copy_that_finished_tells_the_tasks_times():
    """Waiting time + execution time = flow time, also where a later copy won."""
    trace = by_hand.replication(3)
    assert run_metrics.waiting_time_s(trace)[2] == 25.0
    assert run_metrics.execution_time_s(trace)[2] == 20.0
    assert run_metrics.flow_time_s(trace)[2] == 45.0


def test_an_original_that_beats_its_replica_tells_the_tasks_times():
    """Both replicas of task 0 are cancelled; none of its times are theirs."""
    trace = by_hand.beaten_replica()
    assert run_metrics.deciding_execution(trace).tolist() == [0, 1]
    assert run_metrics.waiting_time_s(trace).tolist() == [0.0, 0.0]
    assert run_metrics.execution_time_s(trace).tolist() == [10.0, 5.0]
    assert run_metrics.slowdown(trace).tolist() == [1.0, 1.0]
    found = metrics.summary(trace)
    assert found["mean_waiting_time_s"] == found["max_waiting_time_s"] == 0.0
    assert found["max_slowdown"] == 1.0
    assert found["wasted_flops"] == 5 * 50 + 10 * 25


def test_makespan_begins_with_the_first_submission():
    """A bag submitted at 100 s and done at 130 s has makespan 30 s."""
    trace = by_hand.make_trace(
        plain_platform([1.0]), make_tasks([10.0, 20.0], 100.0), [(0, 0, 0, 100.0, 110.0, 0), (1, 0, 0, 110.0, 130.0, 0)]
    )
    assert run_metrics.makespan_s(trace) == 30.0


def test_bounded_slowdown():
    """A bound of 10 s keeps a 5 s task that waited 10 s at 1.5."""
    trace = by_hand.work_queue()
    assert run_metrics.slowdown(trace)[4] == 3.0
    assert run_metrics.slowdown(trace, bound_s=10.0)[4] == 1.5
    assert run_metrics.slowdown(trace, bound_s=1e9).tolist() == [1.0] * 5


def test_an_execution_without_length_does_not_divide_by_zero():
    """A task of no duration has slowdown 1, or infinity if it waited."""
    trace = by_hand.make_trace(
        plain_platform([1.0]), make_tasks([1e-30, 1e-30]), [(0, 0, 0, 0.0, 0.0, 0), (1, 0, 0, 5.0, 5.0, 0)]
    )
    assert run_metrics.slowdown(trace).tolist() == [1.0, math.inf]


def test_an_empty_run_has_makespan_zero_and_warns_of_nothing():
    """No tasks: counts, times and energies are 0, means over nothing are nan."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = metrics.summary(by_hand.empty())
    assert found["makespan_s"] == found["energy_model_j"] == found["waste_ratio"] == 0.0
    assert found["tasks"] == found["hosts_used"] == 0
    assert math.isnan(found["mean_flow_time_s"])
    assert math.isnan(found["max_slowdown"])
    assert all(isinstance(value, int | float) for value in found.values())


def test_nothing_finished_is_not_a_makespan():
    """All tasks killed: makespan 0, busy time and waste are what was executed."""
    trace = by_hand.list_schedule(2, 6, cancel_every=1)
    found = metrics.summary(trace)
    assert found["makespan_s"] == 0.0
    assert found["waste_ratio"] == 1.0
    assert found["busy_time_s"] > 0
    assert math.isnan(found["mean_waiting_time_s"])


# The table of metrics: what its entries must say, and how users add their own.

UNITS = {"_s": "s", "_j": "J", "_w": "W", "_js": "J s", "_flops": "flop", "_g": "g", "_bytes": "byte"}


@pytest.fixture
def table() -> Iterator[dict[str, Metric]]:
    """The table, which is afterwards as it was before."""
    before = dict(METRICS)
    yield METRICS
    METRICS.clear()
    METRICS.update(before)


def facts(trace, **changes) -> RunFacts:
    """Return what the metrics of a trace are computed from."""
    return RunFacts(trace, trace_energy(trace), **changes)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_an_entry_is_whole(metric: Metric):
    """The unit is the one that the id ends with; the meaning is words without a full stop."""
    suffix = next((end for end in UNITS if metric.id.endswith(end)), "")
    assert metric.unit == UNITS.get(suffix, "")
    assert metric.sentence
    assert not metric.sentence.endswith(".")
    assert metric.title == (f"{metric.name} [{metric.unit}]" if metric.unit else metric.title)
    assert metric.is_share == (not metric.unit and "[%]" in metric.title)
    assert described(metric.id)["unit"] == metric.unit


def test_names_are_the_ids_in_words():
    """Without the unit, beginning with a capital."""
    names = {id: METRICS[id].name for id in ("makespan_s", "energy_delay_js", "wasted_flops")}
    assert names == {"makespan_s": "Makespan", "energy_delay_js": "Energy delay", "wasted_flops": "Wasted"}
    assert METRICS["makespan_above_bound"].title == "Makespan above bound [%]"
    assert METRICS["waste_ratio"].row_name == "share of the work wasted"


def test_the_driver_decides_whose_energy_it_is():
    """The plugin's of the computing hosts where it metered, the model's otherwise."""
    trace = by_hand.work_queue()
    plugin_j = {"h1": 1000.0, "h2": 500.0, "h3": 400.0, "master": 1e9}
    found = metrics_of(facts(trace, driver="simgrid", plugin_j=plugin_j))
    assert (found["energy_j"], found["energy_source"]) == (1900.0, "plugin")
    assert found["energy_worst_host_difference"] == pytest.approx(470 / 1470)
    assert found["energy_relative_difference"] == pytest.approx(530 / 2430)
    found = metrics_of(facts(trace, driver="reference"))
    assert (found["energy_j"], found["energy_source"]) == (2430.0, "model")
    assert "energy_relative_difference" not in found
    assert not {"energy_j", "energy_source"} & metrics_of(facts(trace)).keys()


def test_a_metric_of_ones_own_is_one_entry(table):
    """It is computed with each run that has it, after those of gridsched."""
    register_metric(Metric("joules_each_j", "J", "energy over tasks", lambda run: run.energy_j / 5))
    found = metrics_of(facts(by_hand.work_queue()))
    assert list(found)[-1] == "joules_each_j"
    assert found["joules_each_j"] == 2430 / 5


def test_a_table_shows_what_stands_in_it(table):
    """In the table's order; without power no energy, without the plugin not its; one's own last."""
    register_metric(Metric("mine", "", "mine", lambda run: 1.0))
    register_metric(Metric("another", "", "mine, too", lambda run: 1.0))
    row = {"energy_idle_j": 1.0, "mine": 1.0, "energy_j": 2.0, "makespan_s": 3.0, "another": 1.0}
    metered = {"energy_source": "plugin"}
    ids = [metric.id for metric in shown_metrics("bag", [metered, {**row, **metered}])]
    assert ids == ["makespan_s", "energy_j", "energy_idle_j", "mine", "another"]
    ids = [metric.id for metric in shown_metrics("bag", [metered, row])]
    assert ids == ["makespan_s", "energy_idle_j", "mine", "another"]
    ids = [metric.id for metric in shown_metrics("run", [{**row, "energy_j": float("nan")}])]
    assert ids == ["makespan_s", "mine", "another"]


@pytest.mark.systems("workflows")
def test_tables_name_metrics_once():
    """So that a table has one order of metrics that there are; what is drawn of one is in it."""
    for ids in TABLES.values():
        assert ids
        assert len(set(ids)) == len(ids)
        assert set(ids) <= METRICS.keys()
    assert all(set(ids) <= set(TABLES[table]) for table, ids in PLOTTED.items())


def test_ids_are_taken_once(table):
    """The same entry may come again, as a file may be imported twice; another one may not."""
    for _ in range(2):
        register_metric(Metric("mine", "", "mine", lambda run: 1.0))
    with pytest.raises(InputError, match="'makespan_s'"):
        register_metric(Metric("makespan_s", "s", "my own makespan", lambda run: 1.0))
    with pytest.raises(InputError, match="'my metric'"):
        register_metric(Metric("my metric", "", "mine", lambda run: 1.0))


def test_share_above():
    """Relative to the bound; nan where that is 0."""
    assert share_above(3.0, 2.0) == 0.5
    assert share_above(1.0, 0.0) != share_above(1.0, 0.0)


def test_all_metrics_of_a_run_cut_it_into_stretches_once(monkeypatch):
    """Energy, windows and the largest power are integrals of one timeline."""
    trace, cuts = by_hand.everything_at_once(), []

    def counted(trace):
        cuts.append(trace)
        return host_timeline(trace)

    apart = summary(trace, trace_energy(trace), (0.0, 20.0))
    monkeypatch.setattr(power, "host_timeline", counted)
    assert summary(trace, None, (0.0, 20.0)) == apart
    assert len(cuts) == 1
    found = facts(trace, window_s=(0.0, 20.0))
    assert found.power is None
    assert found.consumed_j.tolist() == [apart["window_energy_j"]]


# Predicted chances beside what came of them, counted by hand.


def test_tasks_are_counted_by_their_chance():
    """One host of 10 flop/s: ends at 10, 20, 30, 40 s. The last deadline is after the run's end.

    Task 1 is in time, 2 late, 3 was given no chance, 4 could still have been in time.
    """
    platform = Platform((Host("h", (PState(10.0),)),))
    tasks = make_tasks([100.0] * 4, deadline_s=[10.0, 15.0, 30.0, 41.0])
    trace = run(Scenario(platform, tasks, "wq", driver="reference")).trace
    found = chance_counts(trace, np.array([1.0, 0.97, np.nan, 0.5]))
    assert all(len(values) == CHANCE_BINS for values in found.values())
    assert found["chance_tasks"][-1] == 2.0  # 1.0 and 0.97
    assert found["chance_sum"][-1] == pytest.approx(1.97)
    assert found["chance_in_time"][-1] == 1.0
    assert found["chance_tasks"].sum() == 2.0
