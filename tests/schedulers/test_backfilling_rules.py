"""Rules of backfilling that simulators differ in: kills at the request, looks at the queue, order behind the head."""

from __future__ import annotations

import json
from operator import itemgetter

import easy_by_events as sc2015
import numpy as np
import pytest
import rigid_oracles as oracles
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scheduler_cases import log_of, machine, scenario

from gridsched import Scenario, run
from gridsched.cli.app import main
from gridsched.drivers.reference import CHECK_INVARIANTS
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

N_NODES = 5
#: (submission, run time, nodes, request), some of which are too short; many events at one time.
JOBS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, N_NODES), st.integers(1, 6)),
    min_size=1,
    max_size=14,
).map(lambda rows: sorted(rows, key=itemgetter(0)))
KILLED = {"walltime": "kill", "mapping_events": "event"}
SHORTEST = {"parameters": {"backfill_order": "shortest"}}


def cut(jobs) -> list[sc2015.Job]:
    """Return jobs as the oracle takes them, which end at their requests."""
    return [sc2015.Job(submit, min(length, asked), width, asked) for submit, length, width, asked in jobs]


@settings(max_examples=150, deadline=None)
@given(JOBS, st.booleans(), st.booleans())
# two end, one of them at its request, when a third is submitted
@example([(0, 3, 2, 3), (0, 3, 1, 5), (0, 4, 2, 4), (1, 5, 4, 5), (3, 1, 2, 1), (3, 2, 1, 2)], True, False)
def test_easy_by_the_rules_of_sc_2015(jobs, shortest_first, each_instant):
    """The oracle's starts, with a look after each event or once an instant."""
    expected = sc2015.starts_of_easy(cut(jobs), N_NODES, shortest_first=shortest_first, each_instant=each_instant)
    options = {**KILLED, "mapping_events": "instant" if each_instant else "event"}
    found = run(scenario(jobs, N_NODES, "easy_backfilling", **options, **(SHORTEST if shortest_first else {})))
    assert found.trace.start_time_s.tolist() == expected
    late = np.array([length > asked for _, length, _, asked in jobs])
    assert (found.trace.final_state == np.where(late, TaskState.KILLED, TaskState.FINISHED)).all()


def test_both_looks_differ_by_hand():
    """At 4 s two jobs are submitted, and one ends before its estimate: only the look at events has not seen that."""
    jobs = [(0, 4, 4, 9), (4, 3, 5, 3), (4, 2, 1, 2)]
    starts = {
        looks: run(scenario(jobs, N_NODES, "easy_backfilling", mapping_events=looks)).trace.start_time_s.tolist()
        for looks in ("instant", "event")
    }
    # the head's reservation is at 9 s while the first has not ended: the last of 2 s fits in before it
    assert starts == {"instant": [0, 4, 7], "event": [0, 6, 4]}


def behind(rule, key):
    """Return the rule of an oracle over a queue whose jobs behind the first that cannot start are sorted."""

    def choose(now, queue, free, ends):
        n = len(oracles.fcfs(now, queue, free, ends)) + 1
        return rule(now, queue[:n] + sorted(queue[n:], key=key), free, ends) if queue else []

    return choose


@settings(max_examples=80, deadline=None)
@given(JOBS, st.sampled_from(["easy_backfilling", "conservative_backfilling"]), st.sampled_from(["shortest", "fcfs"]))
def test_orders_behind_the_head(jobs, scheduler, order):
    """The plain oracles over a queue in two parts, the order of the queue itself being another, too."""
    jobs = [(submit, length, width, max(length, asked)) for submit, length, width, asked in jobs]
    rules = {"easy_backfilling": oracles.easy, "conservative_backfilling": oracles.conservative}
    key = {"shortest": itemgetter(2), "fcfs": itemgetter(0)}[order]

    # ties of the order behind are in order of submission, whatever the queue's order
    def keyed(row):
        return key(row), row[0]

    def choose(now, queue, free, ends):
        return behind(rules[scheduler], keyed)(now, sorted(queue, key=itemgetter(1)), free, ends)

    expected = oracles.simulate(jobs, N_NODES, choose)
    parameters = {"order": "smallest", "backfill_order": order}
    assert run(scenario(jobs, N_NODES, scheduler, parameters=parameters)).trace.start_time_s.tolist() == expected


def test_what_is_no_order_is_refused():
    """The parameter is named."""
    jobs = [(0, 1, 1, 1)]
    with pytest.raises(InputError, match="'backfill_order' of easy_backfilling"):
        run(scenario(jobs, N_NODES, "easy_backfilling", parameters={"backfill_order": "shorter"}))
    parameters = {"backfill_order": "shortest", "reservations": "permanent"}
    with pytest.raises(InputError, match="backfill_order"):
        run(scenario(jobs, N_NODES, "easy_backfilling", parameters=parameters))


def test_a_killed_job_by_hand():
    """Of two jobs on all nodes the first has asked for 2 s of its 9: it is killed, and counts in all times."""
    jobs = [(0, 9, N_NODES, 2), (0, 5, N_NODES, 5)]
    found = run(scenario(jobs, N_NODES, "fcfs", walltime="kill"))
    assert found.trace.executions["outcome"].tolist() == [ExecutionEnd.TIMEOUT, ExecutionEnd.FINISHED]
    assert found.trace.executions["end"].tolist() == [2, 7]
    metrics = found.metrics()
    assert (metrics["tasks_finished"], metrics["tasks_killed"]) == (1, 1)
    assert (metrics["mean_waiting_time_s"], metrics["mean_flow_time_s"]) == (1, 4.5)
    assert (metrics["makespan_s"], metrics["utilisation"]) == (7, 1)
    assert metrics["wasted_flops"] == 2e9 * N_NODES
    ignored = run(scenario([(0, 9, N_NODES, 9), jobs[1]], N_NODES, "fcfs")).metrics()
    assert (ignored["tasks_killed"], ignored["makespan_s"]) == (0, 14)


@pytest.mark.parametrize(("kind", "state"), [(After.END, TaskState.FINISHED), (After.SUCCESS, TaskState.REJECTED)])
def test_a_killed_job_has_ended_without_success(kind, state):
    """Who waits for its end starts then; who waits for its success never does."""
    waits = Dependencies(np.array([1]), np.array([0]), np.array([kind]), np.array([0.0]))
    tasks = make_tasks([2e9, 1e9], width=[1, 1], requested_time_s=[2.0, 1.0], dependencies=waits)
    times = LoggedRunTimes(machine(2), [9.0, 1.0])
    found = run(Scenario(machine(2), tasks, "fcfs", driver="reference", run_times=times, walltime="kill"))
    assert found.trace.final_state.tolist() == [TaskState.KILLED, state]
    assert found.trace.start_time_s[1] == 2 or state == TaskState.REJECTED


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling"])
def test_both_drivers_kill_alike(scheduler, monkeypatch):
    """The same records, and the plugin's joules are the model's."""
    monkeypatch.setenv(CHECK_INVARIANTS, "1")
    rng = np.random.default_rng(7)
    columns = rng.integers(0, 40, 60), rng.integers(1, 9, 60), rng.integers(1, 6, 60), rng.integers(1, 9, 60)
    jobs = sorted(zip(*(each.tolist() for each in columns), strict=True))
    expected = run(scenario(jobs, N_NODES, scheduler, **KILLED))
    found = run(scenario(jobs, N_NODES, scheduler, driver="simgrid", **KILLED))
    assert trace_differences(expected.trace, found.trace) + metered_differences(found) == []
    assert TaskState.KILLED in expected.trace.final_state


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"walltime": "kill"}, "--walltime kill is not possible in"),
        ({"mapping_events": "event", "mapping_interval_s": 5.0}, "mapping_interval_s"),
        ({"mapping_events": "event", "scheduler": "wqr"}, "--mapping-events event"),
    ],
)
def test_what_does_not_go_together_is_refused(options, named):
    """Requests that no user made, two answers to one question, copies that end while others are asked about."""
    options = {"scheduler": "wq", "driver": "reference", **options}
    with pytest.raises(InputError, match=named):
        run(Scenario(machine(2), make_tasks([1e9, 2e9]), **options))


def test_bags_are_asked_after_each_event_too():
    """A work queue that is asked twice in an instant does what it does when asked once."""
    tasks, platform = make_tasks([1e9] * 6), machine(3)
    once = run(Scenario(platform, tasks, "wq", driver="reference")).trace
    each = run(Scenario(platform, tasks, "wq", driver="reference", mapping_events="event")).trace
    assert each.finish_time_s.tolist() == once.finish_time_s.tolist()


# ---------------------------------------------------------------------- through the command line


def made_log(path, jobs) -> str:
    """Write jobs, whose allocated processors are fewer than they asked for, and one that is too wide."""
    lines = ["; MaxProcs: 5", "; MaxNodes: 5"]
    rows = [*jobs, (0, 1, N_NODES + 1, 1)]
    for number, (submit, length, width, asked) in enumerate(rows, start=1):
        lines.append(f"{number} {submit} -1 {length} {max(width - 1, 1)} -1 -1 {width} {asked} -1 1" + " -1" * 7)
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def printed(capsys, *arguments: str) -> dict:
    """Return what a command prints as JSON."""
    assert main(["run", *arguments, "--driver", "reference", "--json"]) == 0
    content: dict = json.loads(capsys.readouterr().out)
    return content


AS_SC_2015 = ("--nodes-from", "8", "--walltime", "kill", "--mapping-events", "event", "--scheduler", "easy_backfilling")


@pytest.mark.parametrize("shortest_first", [False, True])
def test_the_command_gives_the_oracles_figures(shortest_first, tmp_path, capsys):
    """Requested processors, too wide jobs left out, runs cut at their requests: to all digits."""
    rng = np.random.default_rng(11)
    columns = rng.integers(0, 900, 300), rng.integers(1, 60, 300), rng.integers(1, 6, 300), rng.integers(1, 60, 300)
    jobs = sorted(zip(*(each.tolist() for each in columns), strict=True), key=itemgetter(0))
    log, order = made_log(tmp_path / "made.swf", jobs), ("--set", "backfill_order=shortest") * shortest_first
    found = printed(capsys, "--workload", log, *AS_SC_2015, *order)
    expected = sc2015.starts_of_easy(cut(jobs), N_NODES, shortest_first=shortest_first)
    flow = sc2015.flow_times(cut(jobs), expected)
    slowdown = sc2015.mean_bounded_slowdown(cut(jobs), expected)
    assert found["mean_bounded_slowdown"] == pytest.approx(slowdown, rel=1e-13)
    assert found["mean_flow_time_s"] == pytest.approx(sum(flow) / len(flow), rel=1e-13)
    assert found["max_flow_time_s"] == max(flow)
    assert found["tasks_killed"] == sum(length > asked for _, length, _, asked in jobs)


@pytest.mark.long
@pytest.mark.parametrize(
    ("order", "slowdown", "flow_s", "longest_s"),
    [
        ((), 92.5765397336295, 15696.7981812436, 309_231),
        (("--set", "backfill_order=shortest"), 69.4054005803035, 14764.0026684456, 372_238),
    ],
)
def test_the_command_gives_what_sc_2015_stored(order, slowdown, flow_s, longest_s, capsys):
    """EASY and EASY-SJBF on all of KTH-SP2, to all printed digits."""
    found = printed(capsys, "--workload", str(log_of("KTH-SP2.swf.gz")), *AS_SC_2015, *order)
    assert found["tasks_finished"] + found["tasks_killed"] == 28_481
    assert found["mean_bounded_slowdown"] == pytest.approx(slowdown, rel=1e-14)
    assert found["mean_flow_time_s"] == pytest.approx(flow_s, rel=1e-14)
    assert found["max_flow_time_s"] == longest_s
