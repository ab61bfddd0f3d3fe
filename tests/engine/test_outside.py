"""What is done to a run from outside: by hand, on both drivers, and for every registered scheduler."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import InvalidDecision
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.platform import Cluster
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.cases import cases_for

STATE = PState(1.0, 10.0, 20.0, 100.0)
FINISHED, KILLED, REJECTED = TaskState.FINISHED, TaskState.KILLED, TaskState.REJECTED
IDS = [entry.id for entry in entries() if not scheduler_class(entry.id).traits.external]


def nodes(n: int, cores: int = 1) -> Platform:
    """Return nodes of 1 flop/s that draw 10 W idle and 100 W with all cores busy."""
    return Platform(tuple(Host(f"n{k}", (STATE,), cores=cores) for k in range(n)), (Cluster("c", tuple(range(n))),))


@pytest.fixture
def both(tmp_path: Path):
    """Return what runs a scenario with events on both drivers, which must agree, and SimGrid's meter with the model."""

    def run_both(platform, tasks, scheduler, *events, **options):
        file = tmp_path / "events.csv"
        file.write_text("\n".join(["time_s,event,what", *events]))
        scenarios = {
            driver: Scenario(platform, tasks, scheduler, events=file if events else None, driver=driver, **options)
            for driver in ("reference", "simgrid")
        }
        expected = run(scenarios["reference"])
        if is_installed():
            metered = run(scenarios["simgrid"])
            assert trace_differences(expected.trace, metered.trace) == []
            assert metered_differences(metered) == []
        return expected

    return run_both


def waiting(*pairs: tuple[int, int, After]) -> Dependencies:
    """Return who waits for whom, and for what."""
    task, on, kind = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    return Dependencies(task, on, kind, np.zeros(len(pairs)))


def starts(result) -> list[float]:
    """Return when each task starts [s]; nan where it never does."""
    return result.trace.start_time_s.tolist()


def states(result) -> list[TaskState]:
    """Return the final state of each task."""
    return [TaskState(state) for state in result.trace.final_state.tolist()]


def joules(result) -> float:
    """Return what all hosts drew by the model [J]."""
    return float(result.metrics()["energy_model_j"])


# ---------------------------------------------------------------------- cancel


@pytest.mark.parametrize("scheduler", ["mct", "wq"])
def test_a_job_that_runs_ends_when_it_is_cancelled(both, scheduler):
    """One host: 4 s of the first job are wasted, and the second, 5 s, follows: 9 s at 100 W."""
    result = both(nodes(1), make_tasks([10.0, 5.0]), scheduler, "4,cancel,1")
    executions = result.trace.executions
    assert executions[["task", "start", "end", "outcome"]].tolist() == [
        (0, 0.0, 4.0, ExecutionEnd.KILLED),
        (1, 4.0, 9.0, ExecutionEnd.FINISHED),
    ]
    assert states(result) == [KILLED, FINISHED]
    assert joules(result) == pytest.approx(900.0)
    assert result.metrics()["wasted_flops"] == 4.0


@pytest.mark.parametrize("scheduler", ["mct", "wq", "min_min"])
def test_a_job_that_waits_or_is_queued_never_starts(both, scheduler):
    """One host, three jobs of 10 s: whether the second is queued or planned, the third follows the first."""
    result = both(nodes(1), make_tasks([10.0] * 3), scheduler, "4,cancel,2")
    assert states(result) == [FINISHED, KILLED, FINISHED]
    assert len(result.trace.executions) == 2
    assert result.trace.horizon_s == 20.0


@pytest.mark.parametrize(("interval_s", "mapped"), [(None, 6.0), (4.0, 8.0)])
def test_a_job_that_is_not_submitted_yet_is_killed_then(both, interval_s, mapped):
    """The second job comes at 6 s and was cancelled before; the third, of that time, starts."""
    tasks = make_tasks([1.0, 5.0, 5.0], [0.0, 6.0, 6.0])
    result = both(nodes(1), tasks, "min_min", "3,cancel,2", mapping_interval_s=interval_s)
    assert states(result) == [FINISHED, KILLED, FINISHED]
    assert starts(result)[2] == mapped


def test_a_job_that_has_ended_keeps_its_end_and_a_line_reports_it(both):
    """The first of two jobs ends at 10 s; it cannot be cancelled at 12 s, nor at 10 s."""
    for time in (10, 12):
        result = both(nodes(1), make_tasks([10.0, 5.0]), "mct", f"{time},cancel,1")
        assert states(result) == [FINISHED, FINISHED]
        (remark,) = result.scenario.remarks
        assert "1 job had ended" in remark
        assert remark in result.provenance["warnings"]


def test_who_waits_for_a_cancelled_job_follows_the_rules_of_one_that_did_not_succeed(both):
    """One waits for its success and is rejected; the others wait for its end and its start: 4 s and 0 s."""
    waits = waiting((1, 0, After.SUCCESS), (2, 0, After.END), (3, 0, After.START))
    tasks = make_tasks([10.0, 5.0, 5.0, 1.0], dependencies=waits)
    result = both(nodes(2), tasks, "mct", "4,cancel,1")
    assert states(result) == [KILLED, REJECTED, FINISHED, FINISHED]
    assert starts(result)[2:] == [4.0, 0.0]


def test_a_blocked_job_is_cancelled_with_who_waits_for_it(both):
    """The second waits for the first, and the third for the second, which is cancelled: only the first runs."""
    waits = waiting((1, 0, After.SUCCESS), (2, 1, After.SUCCESS))
    result = both(nodes(2), make_tasks([10.0] * 3, dependencies=waits), "mct", "4,cancel,2")
    assert states(result) == [FINISHED, KILLED, REJECTED]
    assert result.trace.horizon_s == 10.0


@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling"])
@pytest.mark.parametrize("cores", [None, 2])
def test_a_parallel_job_gives_all_its_nodes_back(both, scheduler, cores):
    """Three nodes, a job of all of them for 10 s, one of two for 5 s: the second starts when the first is cancelled."""
    demand = None if cores is None else [[cores]] * 2
    tasks = make_tasks([10.0, 5.0], width=[3, 2], requested_time_s=[10.0, 5.0], demand=demand)
    result = both(nodes(3, cores or 1), tasks, scheduler, "4,cancel,1")
    assert starts(result) == [0.0, 4.0]
    assert states(result) == [KILLED, FINISHED]
    # 3 nodes for 4 s and 2 for 5 s at full power, one idle for 5 s
    assert joules(result) == pytest.approx((12 + 10) * 100 + 5 * 10)


def test_copies_of_a_cancelled_task_end_with_it(both):
    """Work queue with replication has two copies of the one task on two equal hosts: both end at 4 s."""
    result = both(nodes(2), make_tasks([10.0]), "wqr", "4,cancel,1")
    assert result.trace.executions["end"].tolist() == [4.0, 4.0]
    assert states(result) == [KILLED]


# ---------------------------------------------------------------------- drain and resume


def test_queued_tasks_leave_a_drained_host_and_what_runs_goes_on(both):
    """Two hosts with two tasks of 10 s each: the one that is queued on the drained host goes behind all others.

    40 s at 100 W, and the drained host is idle for 20 s.
    """
    result = both(nodes(2), make_tasks([10.0] * 4), "mct", "4,drain,n0")
    assert starts(result) == [0.0, 0.0, 20.0, 10.0]
    assert joules(result) == pytest.approx(4200.0)


def test_a_common_queue_passes_a_drained_host_over(both):
    """Until it is resumed at 25 s, the other host takes the tasks alone, at 10 s and 20 s; then both do."""
    result = both(nodes(2), make_tasks([10.0] * 6), "wq", "4,drain,n0", "25,resume,n?")
    assert starts(result) == [0.0, 0.0, 10.0, 20.0, 25.0, 30.0]


@pytest.mark.parametrize("scheduler", ["easy_backfilling", "conservative_backfilling"])
@pytest.mark.parametrize("predictor", [None, "last_two_of_user"])
@pytest.mark.parametrize("cores", [None, 2])
def test_reservations_count_no_drained_node(both, scheduler, predictor, cores):
    """Three nodes; a job of two until 10 s, one until 4 s; then one of two, and one of one node for 20 s, wait.

    A node of the first is drained: the third can start at 10 s on the other two, and the last would delay it. It waits
    until the drained node comes back, at 12 s. 64 node-seconds at 100 W and 32 at 10 W.
    """
    width, run_s = [2, 1, 2, 1], [10.0, 4.0, 10.0, 20.0]
    demand = None if cores is None else [[cores]] * 4
    users = {"user": ["a", "b", "c", "d"]}  # of whom nothing is known: predicted is what they request
    tasks = make_tasks(
        run_s, [0.0, 0.0, 1.0, 2.0], width=width, requested_time_s=run_s, demand=demand, attributes=users
    )
    platform, parameters = nodes(3, cores or 1), {} if predictor is None else {"estimate": predictor}
    assert starts(both(platform, tasks, scheduler, parameters=parameters)) == [0.0, 0.0, 10.0, 4.0]
    events = "3,drain,n0", "12,resume,n0"
    result = both(platform, tasks, scheduler, *events, parameters=parameters)
    assert starts(result) == [0.0, 0.0, 10.0, 12.0]
    assert joules(result) == pytest.approx(64 * 100 + 32 * 10)


def test_shared_nodes_give_nothing_of_a_drained_one(both):
    """Two nodes of 4 cores; a job of 1 core runs on the drained one, whose other cores stay idle until 12 s."""
    tasks = make_tasks(
        [10.0, 6.0, 6.0], [0.0, 5.0, 5.0], width=[1, 1, 1], requested_time_s=[10.0, 6.0, 6.0], demand=[[1], [4], [3]]
    )
    assert starts(both(nodes(2, 4), tasks, "fcfs", "4,drain,n0", "12,resume,n0")) == [0.0, 5.0, 11.0]
    assert starts(both(nodes(2, 4), tasks, "fcfs")) == [0.0, 5.0, 5.0]


def test_all_hosts_may_be_drained_for_a_time(both):
    """Nothing runs from 10 s to 100 s, and the run goes on then."""
    result = both(nodes(2), make_tasks([10.0] * 3), "mct", "4,drain,*", "100,resume,n1")
    assert starts(result) == [0.0, 0.0, 100.0]


# ---------------------------------------------------------------------- a power cap


@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling"])
def test_nothing_more_starts_above_a_lowered_cap(both, scheduler):
    """Three nodes draw 300 W when the cap becomes 220 W: no error. At 10 s two more jobs start, 210 W, not three.

    At 15 s the cap is lifted, and the last job starts.
    """
    tasks = make_tasks([10.0] * 6, width=1, requested_time_s=10.0)
    result = both(nodes(3), tasks, scheduler, "4,power_cap,220", "15,power_cap,none")
    assert starts(result) == [0.0, 0.0, 0.0, 10.0, 10.0, 15.0]


def test_a_cap_that_changes_is_the_same_as_one_from_the_start(both):
    """With the event at 0 s, before the submissions, the queues start what they start with the option."""
    tasks = make_tasks([10.0] * 6, width=1, requested_time_s=10.0)
    by_event = both(nodes(3), tasks, "fcfs", "0,power_cap,220")
    by_option = run(Scenario(nodes(3), tasks, "fcfs", driver="reference", power_cap_w=220.0))
    assert starts(by_event) == starts(by_option) == [0.0, 0.0, 10.0, 10.0, 20.0, 20.0]


def test_queues_wait_until_the_hosts_draw_less(both):
    """The small host is free at 5 s, when the big one draws 210 W, more than the cap: its queue waits for 20 s."""
    big, small = (Host(name, (PState(1.0, 10.0, 10.0, watts),)) for name, watts in (("big", 210.0), ("small", 60.0)))
    result = both(Platform((big, small)), make_tasks([20.0, 5.0, 3.0]), "mct", "4,power_cap,100")
    assert starts(result) == [0.0, 0.0, 20.0]


def test_a_policy_that_respects_no_cap_is_refused_when_it_exceeds_one(both):
    """Under a cap from outside as under one from the start."""
    with pytest.raises(InvalidDecision, match="220 W"):
        both(nodes(3), make_tasks([10.0] * 6), "mct", "0,power_cap,220")


# ---------------------------------------------------------------------- every scheduler


def kinds_of_cases(scheduler) -> list:
    """Return the first case of each kind of tasks that a scheduler takes."""
    kinds = {}
    for case in cases_for(scheduler):
        tasks = case.tasks
        if len(tasks) > 2 and case.estimates is None:
            kinds.setdefault((tasks.are_serial, tasks.take_whole_nodes, tasks.dependencies is not None), case)
    return list(kinds.values())


@pytest.mark.parametrize("id", IDS)
def test_no_policy_sees_an_event_before_it_happens(id, tmp_path):
    """Until the first event, all starts are those of the run without; every task then comes to an end."""
    scheduler = make_scheduler(id)
    for case in kinds_of_cases(scheduler):
        before = run(case.scenario(scheduler, driver="reference")).trace
        time = 0.4 * before.horizon_s
        last, host = case.tasks.labels[-1], case.platform.hosts[-1].name
        back = f"{1.5 * before.horizon_s!r},resume,{host}"
        for k, events in enumerate(([f"{time!r},cancel,{last}"], [f"{time!r},drain,{host}", back])):
            file = tmp_path / f"{k}.csv"
            file.write_text("\n".join(["time_s,event,what", *events]))
            trace = run(case.scenario(scheduler, driver="reference", events=file)).trace
            fields = ["task", "host", "pstate", "start"]
            expected, found = (each.executions[fields] for each in (before, trace))
            assert found[found["start"] < time].tolist() == expected[expected["start"] < time].tolist(), case.name
            assert (trace.final_state >= FINISHED).all()
            begun = trace.executions["start"][trace.executions["host"] == len(case.platform) - 1]
            assert k == 0 or trace.is_parallel or not ((begun > time) & (begun < 1.5 * before.horizon_s)).any()


def test_events_that_change_nothing_change_nothing(both):
    """Resuming what is not drained, a cap of what there is and cancelling what has ended: the same run, bit by bit."""
    tasks = make_tasks([10.0, 20.0, 5.0, 7.0], [0.0, 0.0, 3.0, 4.0])
    for scheduler in ("mct", "wq", "easy_backfilling", "sufferage"):
        expected = run(Scenario(nodes(2), tasks, scheduler, driver="reference")).trace
        found = both(nodes(2), tasks, scheduler, "4,resume,*", "5,power_cap,none", "18,cancel,1").trace
        assert trace_differences(expected, found) == []
        assert found.mapping_events == expected.mapping_events
        assert math.isclose(found.horizon_s, expected.horizon_s, rel_tol=0)
