"""A run that a program drives: the same as `run`, and as one that was given everything before."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_cases import star_xml
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, Scenario, Simulation, make_tasks, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import IncompleteRun, InputError
from gridsched.model.platform import Cluster, Partition
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.trace import TaskState
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.testing.cases import cases_for
from gridsched.testing.repetition import same_run

ROOT = Path(__file__).parents[2]
STATE = PState(1.0, 10.0, 20.0, 100.0)
IDS = [entry.id for entry in entries() if not scheduler_class(entry.id).traits.external]


def nodes(n: int, cores: int = 1) -> Platform:
    """Return nodes of 1 flop/s that draw 10 W idle and 100 W with all cores busy."""
    hosts, members = tuple(Host(f"n{k}", (STATE,), cores=cores) for k in range(n)), tuple(range(n))
    partitions = (Partition("p", members),) if cores > 1 else ()
    return Platform(hosts, (Cluster("c", members),), partitions=partitions)


def stepped(simulation: Simulation):
    """Step a simulation to its end, and return its trace."""
    while not simulation.done:
        simulation.step()
    return simulation.finish().trace


@pytest.mark.parametrize("id", IDS)
def test_stepped_to_its_end_a_run_is_that_of_run(id):
    """Bit by bit, on all tiny cases: by instants, and by some times that are no instants, too."""
    scheduler = make_scheduler(id)
    for case in cases_for(scheduler):
        if not len(case.tasks) or case.estimates is not None:
            continue
        scenario = case.scenario(scheduler, driver="reference")
        expected = run(scenario).trace
        assert same_run(stepped(Simulation(scenario)), expected), case.name
        simulation = Simulation(scenario)
        for share in (0.1, 0.5, 0.73):
            simulation.until(share * expected.horizon_s)
        assert same_run(simulation.finish().trace, expected), case.name


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize(
    ("platform", "tasks", "scheduler", "trace"),
    [
        ("communicating.xml", "communicating.jobs.csv", "easy_backfilling", {"profiles": "examples/profiles.toml"}),
        ("topcuoglu.xml", "topcuoglu.toml", "heft", {}),
    ],
)
def test_profiles_and_data_between_tasks_go_on_step_by_step(platform, tasks, scheduler, trace, monkeypatch):
    """Steps of profiles and transfers end within instants, too."""
    monkeypatch.chdir(ROOT)
    scenario = Scenario(f"examples/{platform}", f"examples/{tasks}", scheduler, driver="reference", trace=trace)
    expected = run(scenario)
    simulation = Simulation(scenario)
    simulation.until(expected.trace.horizon_s / 3)
    found = simulation.finish()
    assert same_run(found.trace, expected.trace)
    assert found.metrics() == expected.metrics()


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
def test_messages_go_on_step_by_step(tmp_path):
    """Bytes from and to the master share links on the reference driver, too; further tasks cannot be submitted then."""
    (tmp_path / "p.xml").write_text(star_xml(hosts=2))
    tasks = make_tasks([100.0] * 3, input_bytes=100.0, output_bytes=50.0)
    scenario = Scenario(tmp_path / "p.xml", tasks, "mct", driver="reference")
    expected = run(scenario).trace
    simulation = Simulation(scenario)
    simulation.until(7.0)
    assert same_run(simulation.finish().trace, expected)
    assert expected.executions["start"].min() > 10.0
    with pytest.raises(InputError, match="bytes"):
        Simulation(scenario, most_tasks=1)


# ---------------------------------------------------------------------- tasks that are submitted while it runs


def serial(flops, times, users=None):
    """Return tasks of one core and what runs them."""
    return nodes(2), make_tasks(flops, times), {}


def whole(flops, times):
    """Return jobs of one to three nodes, which run for half of what they request."""
    width = [1 + int(each) % 3 for each in flops]
    tasks = make_tasks(flops, times, width=width, requested_time_s=[2 * each for each in flops])
    return nodes(3), tasks, {"run_times": LoggedRunTimes(nodes(3), tasks.flops)}


def shared(flops, times):
    """Return jobs of one or two parts of one to three cores."""
    width = [1 + int(each) % 2 for each in flops]
    tasks = make_tasks(
        flops, times, width=width, demand=[[1 + int(each) % 3] for each in flops], requested_time_s=flops
    )
    return nodes(2, 6), tasks, {}


#: What is submitted besides the flops, of a task of each kind.
GIVEN = {
    serial: lambda tasks, k: {},
    whole: lambda tasks, k: {
        "width": int(tasks.width[k]), "requested_time_s": float(tasks.requested_time_s[k])
    },
    shared: lambda tasks, k: {
        "width": int(tasks.width[k]),
        "requested_time_s": float(tasks.requested_time_s[k]),
        "demand": tasks.demand[k].tolist(),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "scheduler"),
    [
        *((serial, id) for id in ("wq", "mct", "min_min", "wqr", "sufferage", "power_capped_mct", "easy_backfilling")),
        *((whole, id) for id in ("fcfs", "easy_backfilling", "conservative_backfilling", "slurm")),
        *((shared, id) for id in ("fcfs", "easy_backfilling", "conservative_backfilling", "mct")),
    ],
)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_tasks_that_are_submitted_meanwhile_are_those_of_a_workload(kind, scheduler, data):
    """Some tasks are known from the start, others are submitted in any order, at once or for later: the same run."""
    sizes = st.tuples(st.integers(1, 30), st.integers(0, 40), st.sampled_from(["known", "now", "before"]))
    rows = sorted(data.draw(st.lists(sizes, min_size=2, max_size=9)), key=lambda row: row[1])
    rows[0] = (*rows[0][:2], "known")
    platform, tasks, others = kind([float(row[0]) for row in rows], [float(row[1]) for row in rows])
    if kind is shared and scheduler == "mct":
        tasks = replace(tasks, anywhere=np.ones(len(tasks), dtype=np.bool_))
    scenario = Scenario(platform, tasks, scheduler, driver="reference", **others)
    known = np.array([k for k, row in enumerate(rows) if row[2] == "known"])
    first = replace(scenario, tasks=tasks.taken(known))
    if others:
        first = replace(first, run_times=LoggedRunTimes(platform, tasks.flops[known]))
    simulation = Simulation(first, most_tasks=len(rows))

    def submit(k, at=None):
        more = {"anywhere": True} if kind is shared and scheduler == "mct" else {}
        label = simulation.submit(
            float(tasks.flops[k]), at=at, label=int(tasks.labels[k]), **GIVEN[kind](tasks, k), **more
        )
        assert label == tasks.labels[k]

    for k, row in reversed(list(enumerate(rows))):
        if row[2] == "before":
            submit(k, at=float(row[1]))
    for k, row in enumerate(rows):
        if row[2] == "now":
            if row[1] > simulation.now:
                simulation.until(max(simulation.now, row[1] - 0.5))
            submit(k, at=float(row[1]))
    found, expected = simulation.finish().trace, run(scenario).trace
    order = np.argsort(found.tasks.labels)  # those of one time are in the order in which they were submitted
    if (order == np.arange(len(rows))).all():
        assert same_run(found, expected)
    assert sorted(found.tasks.labels.tolist()) == sorted(tasks.labels.tolist())
    assert (found.final_state == TaskState.FINISHED).all()


def test_a_task_that_comes_now_runs_now():
    """By hand: one host is free from 10 s on; a task of 5 s comes at 12 s, and another, for 13 s, is cancelled."""
    simulation = Simulation(Scenario(nodes(1), make_tasks([10.0]), "mct"), most_tasks=2)
    simulation.until(12.0)
    assert simulation.done
    first = simulation.submit(5.0)
    other = simulation.submit(5.0, at=13.0)
    assert (first, other) == (2, 3)
    assert not simulation.done
    assert simulation.state_of(first) == TaskState.NOT_SUBMITTED
    simulation.cancel(other)
    assert simulation.step() == 12.0
    assert simulation.state_of(first) == TaskState.RUNNING
    assert simulation.state.tasks_to_arrive == 1
    result = simulation.finish()
    assert result.trace.start_time_s[:2].tolist() == [0.0, 12.0]
    assert result.trace.final_state.tolist() == [TaskState.FINISHED, TaskState.FINISHED, TaskState.KILLED]
    assert result.metrics()["energy_model_j"] == pytest.approx(15 * 100 + 2 * 10)


def test_a_policy_sees_nothing_of_spare_rows_and_of_tasks_to_come():
    """The columns have the submitted tasks, and the number to come is that of those that are known here."""
    simulation = Simulation(Scenario(nodes(2), make_tasks([10.0, 7.0], [0.0, 50.0]), "min_min"), most_tasks=5)
    simulation.step()
    assert (len(simulation.state.tasks), simulation.state.tasks_to_arrive) == (1, 1)
    simulation.submit(3.0, at=20.0)
    assert (len(simulation.state.tasks), simulation.state.tasks_to_arrive) == (1, 2)
    simulation.until(20.0)
    state = simulation.state
    assert (state.tasks.flops.tolist(), state.tasks_to_arrive) == ([10.0, 3.0], 1)
    assert not state.tasks.flops.flags.writeable
    assert state.estimates.etc([1], [0]).tolist() == [[3.0]]


# ---------------------------------------------------------------------- what else is done from outside


def test_what_is_done_is_what_a_file_of_events_does(tmp_path):
    """Cancel, drain, resume and limit, at the time or before it: the run with the file, bit by bit."""
    file = tmp_path / "events.csv"
    file.write_text("time_s,event,what\n4,drain,n0\n4,cancel,2\n8,power_cap,220\n25,resume,n*\n30,power_cap,none\n")
    tasks = make_tasks([10.0] * 8, width=1, requested_time_s=10.0)
    scenario = Scenario(nodes(3), tasks, "easy_backfilling", driver="reference")
    expected = run(replace(scenario, events=file)).trace
    simulation = Simulation(scenario)
    simulation.set_limit(math.inf, at=30.0)
    simulation.until(4.0)
    simulation.drain("n0")
    simulation.cancel(2)
    simulation.set_limit(220.0, at=8.0)
    simulation.until(9.0)
    simulation.resume("n*", at=25.0)
    assert same_run(simulation.finish().trace, expected)


def test_what_happened_can_be_run_again():
    """The scenario of the result has the tasks that were submitted and all that was done, by the numbers of the end."""
    tasks = make_tasks([10.0, 10.0, 4.0], [0.0, 0.0, 30.0], labels=[1, 2, 3])
    simulation = Simulation(Scenario(nodes(2), tasks, "mct"), most_tasks=1)
    simulation.cancel(3, at=32.0)
    simulation.until(4.0)
    simulation.drain("n1")
    simulation.submit(5.0, at=6.0)
    result = simulation.finish()
    assert result.trace.tasks.labels.tolist() == [1, 2, 4, 3]
    assert result.trace.final_state.tolist() == [TaskState.FINISHED] * 3 + [TaskState.KILLED]
    assert result.provenance["outside"] == [[32.0, "cancel", "3"], [4.0, "drain", "n1"], [6.0, "submit", "4"]]
    assert same_run(run(result.scenario).trace, result.trace)


def test_records_so_far():
    """At 14 s the first of two tasks of 10 s has ended, and the second has drawn 400 J; the run goes on unchanged."""
    scenario = Scenario(nodes(1), make_tasks([10.0] * 2), "mct", driver="reference")
    simulation = Simulation(scenario)
    simulation.until(14.0)
    trace = simulation.trace()
    assert trace.executions[["start", "end", "outcome"]].tolist() == [(0.0, 10.0, 0), (10.0, 14.0, -1)]
    assert trace.final_state.tolist() == [TaskState.FINISHED, TaskState.RUNNING]
    assert simulation.state.consumed_j() == pytest.approx(1400.0)
    simulation.until(15.0)
    assert simulation.state.consumed_j() == pytest.approx(1500.0)
    assert same_run(simulation.finish().trace, run(scenario).trace)


def test_nothing_to_come_is_no_end_while_a_program_may_act():
    """All hosts are drained: no instant follows, but time may pass, and the hosts may be resumed."""
    simulation = Simulation(Scenario(nodes(1), make_tasks([10.0] * 2), "mct"))
    simulation.until(4.0)
    simulation.drain("n0")
    assert [simulation.step(), simulation.step()] == [4.0, 10.0]
    with pytest.raises(IncompleteRun, match="nothing to come"):
        simulation.step()
    simulation.until(50.0)
    simulation.resume("n0")
    assert simulation.finish().trace.start_time_s.tolist() == [0.0, 50.0]


def test_a_run_that_nothing_will_end_is_an_error_when_it_is_to_be_finished():
    """As with `run`: no host is resumed any more."""
    with Simulation(Scenario(nodes(1), make_tasks([10.0] * 2), "mct")) as simulation:
        simulation.drain("n0", at=4.0)
        with pytest.raises(IncompleteRun, match="task"):
            simulation.finish()
    with pytest.raises(InputError, match="cannot go on"):
        simulation.step()


def test_a_finished_run_takes_nothing_more():
    """Its result stays."""
    simulation = Simulation(Scenario(nodes(1), make_tasks([10.0]), "mct"), most_tasks=1)
    result = simulation.finish()
    assert simulation.finish() is result
    assert simulation.trace() is result.trace
    for act in (
        simulation.step,
        lambda: simulation.until(20.0),
        lambda: simulation.submit(1.0),
        lambda: simulation.drain("n0"),
        lambda: simulation.set_limit(math.inf),
    ):
        with pytest.raises(InputError, match="cannot go on"):
            act()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda run: run.until(3.0), "from now"),
        (lambda run: run.until(math.inf), "from now"),
        (lambda run: run.cancel(1, at=4.9), "from now"),
        (lambda run: run.submit(1.0, at=0.0), "from now"),
        (lambda run: run.submit(1.0, at=float("nan")), "from now"),
        (lambda run: run.submit(-1.0), "flops"),
        (lambda run: run.submit(1.0, width=2), "of one core"),
        (lambda run: run.submit(1.0, requested_time_s=2.0), "requested_time_s"),
        (lambda run: run.submit(1.0, label=1), "already"),
        (lambda run: run.submit(1.0, label="a"), "its id is 'a'"),
        (lambda run: run.cancel(7), "no such job"),
        (lambda run: run.drain("x*"), "no computing host"),
        (lambda run: run.set_limit(-5.0), "> 0"),
        (lambda run: run.state_of(9), "no such job"),
    ],
)
def test_what_is_not_possible_is_refused_and_changes_nothing(act, words):
    """The message explains it, and the run goes on as if nothing had been asked."""
    scenario = Scenario(nodes(2), make_tasks([10.0, 5.0, 7.0]), "mct", driver="reference")
    simulation = Simulation(scenario, most_tasks=1)
    simulation.until(5.0)
    with pytest.raises(InputError, match=words):
        act(simulation)
    assert same_run(simulation.finish().trace, run(scenario).trace)


def test_a_limit_is_refused_where_the_option_is():
    """Without known powers."""
    simulation = Simulation(Scenario(nodes(2), make_tasks([10.0]), "mct", power=("none",)))
    for limit_w in (150.0, math.inf):
        with pytest.raises(InputError, match="cap"):
            simulation.set_limit(limit_w)


def test_a_limit_on_hosts_that_go_down():
    """As the option, it is followed where hosts go down with time and come up again."""
    scenario = Scenario(nodes(2), make_tasks([30.0] * 4), "power_capped_mct", failures="mtbf=20,mttr=5", seed=3)
    with Simulation(scenario) as simulation:
        simulation.set_limit(1e6)
        limited = simulation.finish()
    assert limited.summary()["tasks_finished"] == 4
    assert limited.trace.executions.tolist() == run(scenario).trace.executions.tolist()


def test_no_more_tasks_than_there_is_room_for():
    """None without `most_tasks`, and as many as it is."""
    scenario = Scenario(nodes(1), make_tasks([10.0]), "mct")
    with pytest.raises(InputError, match="0 further tasks"):
        Simulation(scenario).submit(1.0)
    simulation = Simulation(scenario, most_tasks=1)
    simulation.submit(1.0)
    with pytest.raises(InputError, match="1 further task may"):
        simulation.submit(1.0)
    with pytest.raises(InputError, match="most_tasks"):
        Simulation(scenario, most_tasks=-1)


def test_what_added_tasks_cannot_have_is_refused():
    """Tasks that wait for others, and a policy that plans once."""
    with pytest.raises(InputError, match="wait for others"):
        Simulation(Scenario(ROOT / "platforms/ex_a.xml", ROOT / "examples/pipeline.csv", "heft"), most_tasks=1)
    with pytest.raises(InputError, match="follow from flops"):
        Simulation(Scenario(None, ROOT / "examples/utility_small.toml", "min_min_completion_time"), most_tasks=1)
    with pytest.raises(InputError, match="plans once"):
        Simulation(Scenario(nodes(2), make_tasks([1.0] * 5), "lp_max_profit"), most_tasks=1)
