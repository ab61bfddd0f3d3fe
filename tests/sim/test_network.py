"""Master and workers over the network, with times computed by hand.

A link has 0.5 s latency and 10 B/s, a worker 10 flop/s: 100 B of input take 10.5 s, 100 flop
10 s, 50 B of output 5.5 s.
"""

from __future__ import annotations

import pytest
from sim_cases import deciding, executions, largest_difference, on_simgrid, write_star

from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.run_times import DrawnRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd
from gridsched.platform_io.xml_reader import read_platform
from gridsched.policy.decisions import Assign, Cancel, PowerOff, PowerOn
from gridsched.policy.registry import entries, scheduler_class
from gridsched.testing.playing import CARBON


def tasks_of(count: int, flops=100.0, input_bytes=100.0, output_bytes=50.0):
    """Equal tasks; a list gives each its own size."""
    sizes = flops if isinstance(flops, list) else [flops] * count
    return make_tasks(sizes, input_bytes=input_bytes, output_bytes=output_bytes)


def near(rows: list[tuple]):
    """Compare executions with SimGrid's rounding allowed for."""
    return [pytest.approx(row, rel=1e-12, abs=1e-9) for row in rows]


def test_input_execution_output(tmp_path):
    """The input arrives at 10.5, the execution ends at 20.5, the result is there at 26."""
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0]), tasks_of(1))
    assert executions(result) == near([(0, 0, 10.5, 20.5)])
    assert result.trace.horizon_s == pytest.approx(26.0, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_the_next_task_is_sent_when_the_result_is_there(tmp_path):
    """One core: the second task leaves the master at 26."""
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0]), tasks_of(2))
    assert executions(result) == near([(0, 0, 10.5, 20.5), (1, 0, 36.5, 46.5)])
    assert result.trace.horizon_s == pytest.approx(52.0, rel=1e-12)


@pytest.mark.parametrize(
    ("input_bytes", "output_bytes", "start", "horizon"),
    [(0.0, 0.0, 0.0, 10.0), (100.0, 0.0, 10.5, 20.5), (0.0, 50.0, 0.0, 15.5)],
)
def test_no_bytes_no_network_activity(tmp_path, input_bytes, output_bytes, start, horizon):
    """What has no bytes is handed over at once, without even the latency."""
    tasks = tasks_of(1, 100.0, input_bytes, output_bytes)
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0]), tasks, network="platform")
    assert executions(result) == near([(0, 0, start, start + 10.0)])
    assert result.trace.horizon_s == pytest.approx(horizon, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_run_times_other_than_the_estimates(tmp_path):
    """Estimated as 10 s, the task takes 7.5 s: from 10.5 to 18, and the result is there at 23.5."""
    path = write_star(tmp_path / "p.xml", [10.0])
    estimates = FlopsEstimates(read_platform(path), tasks_of(1))
    truth = DrawnRunTimes(estimates, [0.25], lambda share, estimate_s: (0.5 + share) * estimate_s)
    result = on_simgrid(path, tasks_of(1), run_times=truth)
    assert executions(result) == near([(0, 0, 10.5, 18.0)])
    assert result.trace.horizon_s == pytest.approx(23.5, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_tasks_with_and_without_bytes_mix(tmp_path):
    """Each task has the network activity its own bytes ask for."""
    tasks = tasks_of(4, 100.0, [100.0, 0.0, 0.0, 100.0], [0.0, 0.0, 50.0, 50.0])
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0, 10.0]), tasks)
    # w2 is free again at 10 and takes task 2, whose result is there at 25.5; w1 is free at 20.5
    assert sorted(executions(result)) == near(
        [(0, 0, 10.5, 20.5), (1, 1, 0.0, 10.0), (2, 1, 10.0, 20.0), (3, 0, 31.0, 41.0)]
    )
    assert result.trace.horizon_s == pytest.approx(46.5, rel=1e-12)


def test_cores_of_a_host_share_its_link(tmp_path):
    """Two inputs of 100 B at once take 0.5 + 20 s; both cores execute side by side."""
    path = write_star(tmp_path / "p.xml", [10.0], cores=2)
    result = on_simgrid(path, tasks_of(2, output_bytes=0.0))
    assert executions(result) == near([(0, 0, 20.5, 30.5), (1, 0, 20.5, 30.5)])
    assert largest_difference(result) <= 1e-9


@pytest.mark.parametrize(
    "tasks",
    [
        tasks_of(4),
        tasks_of(4, input_bytes=0.0, output_bytes=0.0),
        tasks_of(4, output_bytes=0.0),
        tasks_of(4, [100.0, 155.0] * 2, input_bytes=0.0, output_bytes=[50.0, 0.0] * 2),
    ],
    ids=["both", "none", "input", "one by message, one without"],
)
def test_results_of_one_instant_are_decided_together(tmp_path, tasks):
    """Two results arrive together: the policy is asked at 0 and then once, not twice."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0])
    result = on_simgrid(path, tasks, network="platform")
    assert result.trace.mapping_events == 2
    assert len(result.trace.executions) == 4


def test_a_result_is_not_held_up_by_one_that_was_sent_earlier(tmp_path):
    """The long result of w1 (50.5 s) is under way when the short one of w2 arrives."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0])
    tasks = tasks_of(3, [100.0, 110.0, 100.0], 0.0, [500.0, 5.0, 5.0])
    result = on_simgrid(path, tasks)
    assert executions(result)[2] == pytest.approx((2, 1, 12.0, 22.0), rel=1e-12)


def test_a_late_submission_wakes_the_master(tmp_path):
    """A task submitted at 7 is sent at 7, whatever else is under way."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0])
    tasks = make_tasks([100.0, 100.0], [0.0, 7.0], input_bytes=100.0)
    result = on_simgrid(path, tasks)
    assert executions(result) == near([(0, 0, 10.5, 20.5), (1, 1, 17.5, 27.5)])


def test_a_copy_is_cancelled_while_it_executes(tmp_path):
    """The fast worker's result is there at 26; the copy has executed from 10.5 on."""
    path = write_star(tmp_path / "p.xml", [10.0, 1.0])
    result = on_simgrid(path, tasks_of(1), "wqr")
    assert executions(result) == near([(0, 0, 10.5, 20.5), (0, 1, 10.5, 26.0)])
    outcomes = result.trace.executions["outcome"].tolist()
    assert outcomes == [ExecutionEnd.FINISHED, ExecutionEnd.CANCELLED]
    assert largest_difference(result) <= 1e-9


def test_a_copy_is_cancelled_on_its_way(tmp_path):
    """Over a link of 1 B/s the copy's input would arrive at 100.5: it never executes."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0], bandwidths=[10.0, 1.0])
    result = on_simgrid(path, tasks_of(1), "wqr")
    assert executions(result) == near([(0, 0, 10.5, 20.5), (0, 1, 26.0, 26.0)])
    assert largest_difference(result) <= 1e-9


def test_a_copy_is_cancelled_while_its_result_is_under_way(tmp_path):
    """w2 executes faster, its result is there at 25.0; w1's, sent at 20.5, comes too late."""
    path = write_star(tmp_path / "p.xml", [10.0, 100.0 / 9.0])
    result = on_simgrid(path, tasks_of(1), "wqr")
    assert executions(result) == near([(0, 0, 10.5, 20.5), (0, 1, 10.5, 19.5)])
    outcomes = result.trace.executions["outcome"].tolist()
    assert sorted(outcomes) == [ExecutionEnd.FINISHED, ExecutionEnd.CANCELLED]
    assert result.trace.horizon_s == pytest.approx(25.0, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_a_worker_takes_another_task_after_a_cancelled_one(tmp_path):
    """A policy's own Cancel, too: w2 gives task 0 up at 26 and executes task 2."""

    def answer(state):
        if state.now == 0:
            return [Assign(0, 1), Assign(1, 0)]
        if len(state.mappable):
            return [Cancel(0), Assign(2, 1), Assign(0, 0)]
        return []

    path = write_star(tmp_path / "p.xml", [10.0, 1.0])
    result = on_simgrid(path, tasks_of(3), deciding(answer, replicates=True))
    assert executions(result) == near([(1, 0, 10.5, 20.5), (0, 1, 10.5, 26.0), (0, 0, 36.5, 46.5), (2, 1, 36.5, 136.5)])
    assert largest_difference(result) <= 1e-9


def test_hosts_are_switched_over_the_network_too(tmp_path):
    """w2 is off until the first result is there, and then executes the second task."""

    def answer(state):
        if state.now == 0:
            return [PowerOff(1), Assign(0, 0)]
        return [PowerOn(1), Assign(1, 1)] if len(state.mappable) else []

    path = write_star(tmp_path / "p.xml", [10.0, 10.0])
    result = on_simgrid(path, tasks_of(2), deciding(answer, powers_hosts=True))
    assert executions(result) == near([(0, 0, 10.5, 20.5), (1, 1, 36.5, 46.5)])
    assert largest_difference(result) <= 1e-9


@pytest.mark.parametrize(
    "scheduler",
    [
        entry.id
        for entry in entries()
        if not (traits := scheduler_class(entry.id).traits).needs_utility
        and not traits.by_types
        and not traits.needs_distributions
        and not traits.parallel
    ],
)
@pytest.mark.parametrize("cores", [1, 2])
def test_every_scheduler_works_over_the_network(tmp_path, scheduler, cores):
    """All tasks finish, and plugin and model joules agree on master and workers."""
    path = write_star(tmp_path / "p.xml", [10.0, 7.0, 3.0], cores=cores)
    tasks = make_tasks(
        [100.0, 37.0, 250.0, 80.0, 64.0, 12.0, 150.0, 91.0],
        [0.0] * 5 + [30.0] * 3,
        input_bytes=[100, 0, 30, 7, 0, 55, 20, 1],
        output_bytes=[0, 0, 44, 5, 60, 0, 10, 3],
    )
    carbon = CARBON if scheduler_class(scheduler).traits.needs_carbon else None
    result = on_simgrid(path, tasks, scheduler, pstate=1, carbon=carbon)
    assert result.summary()["tasks_finished"] == 8
    assert largest_difference(result) <= 1e-9


@pytest.mark.parametrize(
    ("routing", "words"),
    [
        ("Full", "no connecting path between"),
        ("Floyd", "No route from 'm' to 'w1'"),
        ("None", "can't be route in an Empty zone"),
    ],
)
def test_a_worker_without_a_route_is_a_clear_error(tmp_path, routing, words):
    """SimGrid's words about the missing route come through, and what to do."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0], with_routes=False)
    text = path.read_text().replace('routing="Full"', f'routing="{routing}"')
    if routing == "Floyd":  # a zone of routes that leaves out the first worker
        text = text.replace("  </zone>", '<route src="m" dst="w2"><link_ctn id="l2"/></route></zone>')
    path.write_text(text)
    wanted = f"finds no way for a message: .*{words}.*--master.*--network none"
    with pytest.raises(InputError, match=wanted) as caught:
        on_simgrid(path, tasks_of(1))
    assert "\n" not in str(caught.value)


def test_the_reference_driver_refuses_a_network(tmp_path):
    """Only SimGrid knows how long messages take."""
    path = write_star(tmp_path / "p.xml", [10.0])
    for network in ("platform", None):
        with pytest.raises(InputError, match="reference driver"):
            on_simgrid(path, tasks_of(1), driver="reference", network=network)
    ideal = on_simgrid(path, tasks_of(1), driver="reference", network="none")
    assert ideal.trace.horizon_s == 10.0


def test_a_network_needs_a_master(tmp_path):
    """Without role=master and without deployment file nobody could send the tasks."""
    path = write_star(tmp_path / "p.xml", [10.0])
    path.write_text(path.read_text().replace('<prop id="role" value="master"/>', ""))
    with pytest.raises(InputError, match="master"):
        on_simgrid(path, tasks_of(1))
