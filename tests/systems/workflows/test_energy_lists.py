"""P-states of workflows: by hand, and what slack gives without taking time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workflow_examples import dependencies, random_scenario

from gridsched import Host, Platform, PState, make_tasks
from gridsched.energy import grid_energy_between
from gridsched.model.network import Network
from gridsched.model.rules import EnergyBudget
from gridsched.policy.registry import make_scheduler
from gridsched.runs.run import run as run_scenario
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="a" speed="10f"><prop id="wattage_per_state" value="1:2:2"/></host>
    <host id="b" speed="20f"><prop id="wattage_per_state" value="1:3:3"/></host>
    <link id="l" bandwidth="100Bps" latency="0s"/>
    <route src="a" dst="b"><link_ctn id="l"/></route>
  </zone>
</platform>
"""


def joules(trace) -> float:
    """Return what all hosts drew until the end [J]."""
    return grid_energy_between(trace, np.array([0.0, trace.executions["end"].max()])).item()


def fork(idle_w: float = 1.0):
    """Two ways from task 0 to task 4 on two equal hosts: 1 alone, and 2 before 3; no data. P-states of 4, 2, 1 flop/s.

    HEFT: 0 on h0 (0-1), 1 there (1-9), 2 and 3 on h1 (1-2, 2-3), 4 on h0 (9-10).
    """
    pstates = (PState(4.0, idle_w, 10.0, 10.0), PState(2.0, idle_w, 4.0, 4.0), PState(1.0, idle_w, 2.0, 2.0))
    platform = Platform((Host("h0", pstates), Host("h1", pstates)))
    pairs = dependencies([(0, 1, 0), (0, 2, 0), (2, 3, 0), (1, 4, 0), (3, 4, 0)])
    tasks = make_tasks([4.0, 32.0, 4.0, 4.0, 4.0], dependencies=pairs)
    return platform, tasks, Network(np.zeros((2, 2)), np.ones((2, 2)))


def run(id: str, *, platform, tasks, network, **rules):
    """Return the trace of a run on the reference driver."""
    return simulate_reference(
        LoadedScenario(platform, tasks, id, driver="reference", between_hosts=network, **rules), make_scheduler(id)
    )


def spans(trace):
    """Return (host, P-state, start, end) of each task."""
    rows = sorted(trace.executions[["task", "host", "pstate", "start", "end"]].tolist())
    return [(host, pstate, pytest.approx(start), pytest.approx(end)) for _, host, pstate, start, end in rows]


def test_slack_by_hand():
    """1 W idle: a task of 4 flop above that takes 9, 6, 4 J. 2 and 3 have 8 s of h1, and 4 s each suffice for 1 flop/s.

    HEFT: 10 s of 10 W on h0, and 2 s of it on h1 with 8 s idle: 128 J; with slack 8 s of 2 W and 2 s idle on h1: 118 J.
    """
    platform, tasks, network = fork()
    heft = run("heft", platform=platform, tasks=tasks, network=network)
    assert spans(heft) == [(0, 0, 0, 1), (0, 0, 1, 9), (1, 0, 1, 2), (1, 0, 2, 3), (0, 0, 9, 10)]
    assert joules(heft) == pytest.approx(128.0)
    for id in ("heft_slack", "ees"):
        trace = run(id, platform=platform, tasks=tasks, network=network)
        assert spans(trace) == [(0, 0, 0, 1), (0, 0, 1, 9), (1, 2, 1, 5), (1, 2, 5, 9), (0, 0, 9, 10)], id
        assert joules(trace) == pytest.approx(118.0), id


def test_slack_that_does_not_suffice_for_all_is_given_or_shared():
    """They have 5 s: reclamation has 2 take 4 s and 3 one (1-5, 5-6); under EES both take 2 s (1-3, 3-5)."""
    platform, tasks, network = fork()
    tasks = replace(tasks, flops=np.array([4.0, 20.0, 4.0, 4.0, 4.0]))
    first = run("heft_slack", platform=platform, tasks=tasks, network=network)
    assert spans(first)[2:4] == [(1, 2, 1, 5), (1, 0, 5, 6)]
    shared = run("ees", platform=platform, tasks=tasks, network=network)
    assert spans(shared)[2:4] == [(1, 1, 1, 3), (1, 1, 3, 5)]


def test_no_task_is_slowed_where_idling_costs_as_much():
    """9 W idle: above that 4 flop take 1 J at 4 flop/s; slower P-states draw less than idle, so they save more.

    At 1 flop/s the host draws 2 W, and idle 9 W in each: 2 and 3 still go slowly. With a slow P-state that idles at
    more than the first one, they stay.
    """
    platform, tasks, network = fork(idle_w=9.0)
    found = spans(run("heft_slack", platform=platform, tasks=tasks, network=network))
    assert [each[1] for each in found] == [0, 0, 2, 2, 0]
    pstates = (PState(4.0, 1.0, 10.0, 10.0), PState(2.0, 1.5, 4.0, 4.0))
    platform = Platform((Host("h0", pstates), Host("h1", pstates)))
    assert not any(each[1] for each in spans(run("ees", platform=platform, tasks=tasks, network=network)))


def test_ecs_by_hand():
    """One task of 4 flop: h0 takes 1 s and 10 J or, slowly, 2 s and 8 J; h1 takes 4 s and 8 J.

    Slow against fast on h0: -((8 - 10) / 8 + (2 - 1) / 2) = -0.25: fast stays. h1 against it:
    -((8 - 10) / 8 + (4 - 1) / 4) = -0.5: it stays. A makespan of 1 s leaves nothing to reduce. With 4 J slowly:
    -((4 - 10) / 4 + 1 / 2) = 1: slow.
    """
    for slow_w, pstate in ((4.0, 0), (2.0, 1)):
        h0 = Host("h0", (PState(4.0, 0.0, 10.0, 10.0), PState(2.0, 0.0, slow_w, slow_w)))
        platform = Platform((h0, Host("h1", (PState(1.0, 0.0, 2.0, 2.0),))))
        tasks = make_tasks([4.0])
        trace = run("ecs", platform=platform, tasks=tasks, network=None)
        assert [each[:2] for each in spans(trace)] == [(0, pstate)]


def test_ecs_reduces_energy_within_the_makespan():
    """Two tasks of 8 and 2 flop at 2 and 1 flop/s, 10 J or 9.5 J for 2 flop: -(-0.5 / 9.5 + 1 / 2) < 0; both are fast.

    The long one ends at 4 s; the other has time for 1 flop/s, which takes less energy.
    """
    pstates = PState(2.0, 0.0, 10.0, 10.0), PState(1.0, 0.0, 4.75, 4.75)
    platform = Platform((Host("h0", pstates), Host("h1", pstates)))
    trace = run("ecs", platform=platform, tasks=make_tasks([8.0, 2.0]), network=None)
    assert spans(trace) == [(0, 0, 0, 4), (1, 1, 0, 2)]


def bag_of(*hosts, flops):
    """Return hosts with P-states of (flop/s, W), all of one core, and tasks that wait for none."""
    made = [Host(f"h{k}", tuple(PState(f, 0.0, w, w) for f, w in pstates)) for k, pstates in enumerate(hosts)]
    return {"platform": Platform(tuple(made)), "tasks": make_tasks(flops), "network": None}


FAST, SLOW, SLOWEST = (2.0, 10.0), (1.0, 4.75), (0.5, 2.375)


@pytest.mark.parametrize(
    ("hosts", "place"),
    [
        # 9.5 J in 4 s, which is all that the makespan leaves
        (([FAST, SLOWEST], [FAST, SLOWEST]), (1, 1, 0, 4)),
        # as much on h2, where it ends earlier
        (([FAST], [FAST, SLOWEST], [SLOW]), (2, 0, 0, 2)),
        # as much, and as early: the lowest host
        (([FAST], [FAST, SLOW], [SLOW]), (1, 1, 0, 2)),
    ],
)
def test_ecs_reduces_to_the_earliest_of_equal_places(hosts, place):
    """The task of 8 flop takes 4 s of h0; that of 2 flop, first at 2 flop/s and 10 J on h1, has 4 s as well."""
    trace = run("ecs", **bag_of(*hosts, flops=[8.0, 2.0]))
    assert spans(trace) == [(0, 0, 0, 4), place]


def test_ecs_moves_nothing_for_the_same_energy():
    """Of two tasks on h1 the first goes to h2 for 9.5 J; the second stays from 1 s on, though all of h1 is free now."""
    bag = bag_of([FAST], [FAST], [SLOWEST], flops=[8.0, 2.0, 2.0])
    scenario = LoadedScenario(bag["platform"], bag["tasks"], "ecs", driver="reference")
    scheduler = make_scheduler("ecs")
    simulate_reference(scenario, scheduler)
    assert scheduler.table_.host == {0: 0, 1: 2, 2: 1}
    assert scheduler.table_.start_s == {0: 0.0, 1: 0.0, 2: 1.0}


def test_ecs_leaves_time_for_data():
    """Task 2 starts on h0 at 4 s, and waits for 2 bytes of 1 on h1: that ends by 2 s, though 4 s would take 9 J."""
    platform = bag_of([FAST], [FAST, SLOW, (0.5, 2.25)], flops=[1.0])["platform"]
    tasks = make_tasks([8.0, 2.0, 2.0], dependencies=dependencies([(0, 2, 0), (1, 2, 2)]))
    trace = run("ecs", platform=platform, tasks=tasks, network=Network(np.zeros((2, 2)), np.ones((2, 2))))
    assert spans(trace) == [(0, 0, 0, 4), (1, 1, 0, 2), (0, 0, 4, 5)]


def with_pstates(scenario: LoadedScenario, idle_w: list[float]) -> LoadedScenario:
    """Return a scenario whose hosts have four P-states, of these idle powers."""
    shares = (1.0, 0.8, 0.6, 0.4)
    hosts = tuple(
        Host(
            h.name,
            tuple(PState(h.pstates[0].speed * f, w, w, w + 60 * f**3) for f, w in zip(shares, idle_w, strict=True)),
        )
        for h in scenario.platform.hosts
    )
    return replace(scenario, platform=Platform(hosts))


@given(st.integers(0, 10_000), st.lists(st.sampled_from([0.0, 5.0, 20.0, 60.0]), min_size=4, max_size=4))
@settings(max_examples=30, deadline=None)
def test_slack_takes_no_time_and_never_draws_more(seed, idle_w):
    """The end is HEFT's, and so are hosts; the joules of all hosts are at most HEFT's, whatever P-states draw idle."""
    heft = simulate_reference(with_pstates(random_scenario(seed, "heft"), idle_w), make_scheduler("heft"))
    for id in ("heft_slack", "ees"):
        trace = simulate_reference(with_pstates(random_scenario(seed, id), idle_w), make_scheduler(id))
        assert trace.executions["end"].max() <= heft.executions["end"].max() * (1 + 1e-12)
        assert joules(trace) <= joules(heft) * (1 + 1e-9)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_a_plan_and_its_gaps_share_no_time(seed):
    """Whoever is placed next finds the gaps of a core between the tasks that slack has slowed down, and no others."""
    for id in ("heft_slack", "ees"):
        scenario, scheduler = with_pstates(random_scenario(seed, id), [5.0] * 4), make_scheduler(id)
        simulate_reference(scenario, scheduler)
        table = scheduler.table_
        for task, host in table.host.items():
            core = table.cores[host][table.core[task]]
            for start, end in zip(core.starts, core.ends, strict=True):
                assert end <= table.start_s[task] or start >= table.end_s[task]


def several_cores(seed: int, id: str) -> LoadedScenario:
    """Return a random scenario on hosts of two cores and two P-states."""
    scenario = random_scenario(seed, id)
    hosts = tuple(
        replace(h, cores=2, pstates=(*h.pstates, PState(h.pstates[0].speed / 2, 0.5, 0.7, 0.9)))
        for h in scenario.platform.hosts
    )
    return replace(scenario, platform=Platform(hosts))


@pytest.mark.parametrize("scenario", [random_scenario, several_cores])
@pytest.mark.parametrize(("id", "is_heft"), [("heft_slack", True), ("ees", True), ("ecs", False)])
def test_which_lists_decide_as_heft_without_a_choice_of_pstates_and_say_so(scenario, id, is_heft):
    """One P-state, or cores that share one: slack serves nothing; ECS weighs energy against time all the same."""
    heft = [run_scenario(scenario(seed, "heft")).trace.executions.tolist() for seed in range(3)]
    results = [run_scenario(scenario(seed, id)) for seed in range(3)]
    assert ([each.trace.executions.tolist() for each in results] == heft) is is_heft
    assert all(("as heft" in each.provenance.get("remark", "")) is is_heft for each in results)


def test_lists_with_a_choice_of_pstates_remark_nothing():
    platform, tasks, network = fork()
    whole = LoadedScenario(platform, tasks, "ees", driver="reference", between_hosts=network)
    assert "remark" not in run_scenario(whole).provenance


def test_a_run_and_a_comparison_name_the_lists_that_decide_as_heft(gridsched, tmp_path):
    """On SimGrid; one line for both."""
    (tmp_path / "p.xml").write_text(PLATFORM)
    (tmp_path / "w.csv").write_text("id,flops,after\n0,100,\n1,200,0\n2,300,0\n")
    words = ["--platform", str(tmp_path / "p.xml"), "--workload", str(tmp_path / "w.csv")]
    alone = gridsched("run", *words, "--scheduler", "ees")
    beside = gridsched("compare", *words, "--schedulers", "heft,heft_slack,ecs,ees")
    assert (alone.status, beside.status) == (0, 0), alone.err + beside.err
    (line,) = [each for each in alone.out.splitlines() if "as heft" in each]
    assert line.startswith("ees:")
    (line,) = [each for each in beside.out.splitlines() if "as heft" in each]
    assert line.startswith("heft_slack, ees:")


@pytest.mark.parametrize("id", ["heft", "ecs", "heft_slack", "ees", "ready_min_min"])
def test_a_budget_that_refuses_puts_tasks_off(id):
    """A budget for less than the whole workflow each minute: what does not fit waits for the next one, and all end."""
    platform, tasks, network = fork(idle_w=0.0)
    budget = EnergyBudget(95.0, period_s=60.0)
    trace = run(id, platform=platform, tasks=tasks, network=network, budget=budget)
    assert len(trace.executions) == 5
    assert trace.executions["end"].max() > 60.0
    assert (trace.periods["consumed_j"] <= trace.periods["budget_j"] + 1e-9).all()
