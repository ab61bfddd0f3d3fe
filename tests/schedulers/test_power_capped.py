"""`power_capped_mct`: worked examples, plain rules, and the cap on both drivers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.model.task_types import TaskTypes, typed_platform
from gridsched.model.tasks import DataFiles
from gridsched.power import peak_power_w
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

#: 100 flop/s at 100 W or 50 flop/s at 40 W, and 40 flop/s at 30 W; 10 W idle.
PAIR = Platform(
    (
        Host("fast", (PState(100.0, 10.0, 100.0, 100.0), PState(50.0, 10.0, 40.0, 40.0))),
        Host("slow", (PState(40.0, 10.0, 30.0, 30.0),)),
    )
)


def both(platform, tasks, **rules):
    """Run on both drivers, which must agree in times, joules and the largest power."""
    expected = run(Scenario(platform, tasks, "power_capped_mct", driver="reference", **rules))
    metered = run(Scenario(platform, tasks, "power_capped_mct", driver="simgrid", **rules))
    assert trace_differences(expected.trace, metered.trace) == []
    assert metered_differences(metered) == []
    peak_w = expected.summary()["peak_power_w"]
    assert peak_w == pytest.approx(metered.summary()["peak_power_w"], rel=1e-9)
    return expected


def rows(result) -> list[tuple]:
    """Return (task, host, P-state, start, end) of each execution."""
    return [row[:5] for row in result.trace.executions.tolist()]


@pytest.mark.parametrize(
    ("cap_w", "executions", "joules", "peak_w"),
    [
        # T3 rather waits for the fast host (11 s) than for the slow one (12.5 s)
        (None, [(0, 0, 0, 0, 10), (1, 1, 0, 0, 10), (2, 0, 0, 10, 11)], 11 * 100 + 10 * 30 + 1 * 10, 130),
        # with the fast host at full power 10 W remain: nothing starts on the slow one
        (120.0, [(0, 0, 0, 0, 10), (1, 0, 0, 10, 14), (2, 0, 0, 14, 15)], 15 * 100 + 15 * 10, 110),
        # 70 W above idle: the fast host in P-state 1, and the slow one beside it
        (90.0, [(0, 0, 1, 0, 20), (1, 1, 0, 0, 10), (2, 1, 0, 10, 12.5)], 20 * 40 + 12.5 * 30 + 7.5 * 10, 70),
        # only the slow host fits
        (40.0, [(0, 1, 0, 0, 25), (1, 1, 0, 25, 35), (2, 1, 0, 35, 37.5)], 37.5 * 30 + 37.5 * 10, 40),
    ],
)
def test_a_worked_example(cap_w, executions, joules, peak_w):
    """Tasks of 1000, 400 and 100 flop under four caps."""
    result = both(PAIR, make_tasks([1000.0, 400.0, 100.0]), power_cap_w=cap_w)
    assert rows(result) == executions
    assert result.summary()["energy_j"] == pytest.approx(joules, rel=1e-12)
    assert result.summary()["peak_power_w"] == peak_w


def test_ties_go_to_the_least_power_then_the_lowest_id():
    """Equal completion times: the host that adds least; of equal ones the first."""
    states = [PState(10.0, 5.0, watts, watts) for watts in (30.0, 20.0, 20.0)]
    platform = Platform(tuple(Host(f"h{k}", (each,)) for k, each in enumerate(states)))
    result = run(Scenario(platform, make_tasks([10.0, 10.0]), "power_capped_mct", driver="reference"))
    assert [row[1] for row in rows(result)] == [1, 2]


def test_cores_share_a_pstate_and_the_watts():
    """One of two cores draws 35 W, both 60 W; a task beside another keeps its P-state."""
    states = (PState(10.0, 5.0, 10.0, 60.0), PState(5.0, 5.0, 10.0, 40.0))
    host = Platform((Host("h", states, cores=2),))
    # 35 W, then 60 W; the third waits for a core
    free = both(host, make_tasks([100.0, 100.0, 10.0]))
    assert rows(free) == [(0, 0, 0, 0, 10), (1, 0, 0, 0, 10), (2, 0, 0, 10, 11)]
    # a second core at full speed would make it 60 W: it waits, and is not slowed down
    capped = both(host, make_tasks([100.0, 100.0]), power_cap_w=50.0)
    assert rows(capped) == [(0, 0, 0, 0, 10), (1, 0, 0, 10, 20)]
    # 30 W leave room for P-state 1 only: 25 W, then 40 W is too much
    slow = both(host, make_tasks([100.0, 100.0]), power_cap_w=30.0)
    assert rows(slow) == [(0, 0, 1, 0, 20), (1, 0, 1, 20, 40)]


def test_powers_by_task_type_count():
    """A type that draws more is held back where another may start."""
    watts = np.array([[[100.0]], [[40.0]]])
    types = TaskTypes(np.full((2, 1, 1), 10.0), watts, np.array([0, 0]))
    tasks = make_tasks([1e12] * 3, task_type=[0, 0, 1])
    result = run(
        Scenario(typed_platform(types), tasks, "power_capped_mct", types=types, driver="reference", power_cap_w=150.0)
    )
    # tasks 1 and 3 together draw 140 W; the second of 100 W waits for the first
    assert [row[0] for row in rows(result) if row[3] == 0] == [0, 2]
    assert peak_power_w(result.trace) <= 150.0


hosts = st.lists(
    st.tuples(st.integers(1, 2), st.lists(st.integers(2, 40), min_size=1, max_size=3), st.integers(0, 9)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(
    hosts,
    st.lists(st.integers(1, 60), min_size=1, max_size=8),
    st.lists(st.integers(0, 9), min_size=8, max_size=8),
    st.floats(0.3, 1.0),
)
def test_the_cap_holds_and_all_tasks_finish(made, sizes, arrivals, share):
    """Wherever one core of each host may run alone; power grows with the speed."""
    platform = Platform(
        tuple(
            Host(
                f"h{k}",
                tuple(PState(speed, idle, idle + 1, idle + 1 + speed**1.5) for speed in sorted(speeds, reverse=True)),
                cores,
            )
            for k, (cores, speeds, idle) in enumerate(made)
        )
    )
    idle_w = platform.idle_w[:, 0].sum()
    least = max(float(h.pstates[-1].busy_w - h.pstates[-1].idle_w) for h in platform.hosts)
    most = sum(host.pstates[0].busy_w for host in platform.hosts)
    cap_w = max(idle_w + least, share * most)
    tasks = make_tasks(sizes, sorted(arrivals[: len(sizes)]))
    result = run(Scenario(platform, tasks, "power_capped_mct", driver="reference", power_cap_w=cap_w))
    assert result.summary()["tasks_finished"] == len(tasks)
    assert peak_power_w(result.trace) <= cap_w * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(1.0, 9.0), min_size=1, max_size=4, unique=True),
    st.lists(st.floats(1.0, 50.0), min_size=1, max_size=9, unique=True),
)
def test_without_cap_and_pstates_it_is_mct(speeds, sizes):
    """Tasks that are held back are decided as MCT decides at once."""
    platform = Platform(tuple(Host(f"h{k}", (PState(s, 1.0, 2.0, 2.0),)) for k, s in enumerate(speeds)))
    found, expected = (
        run(Scenario(platform, make_tasks(sizes), scheduler, driver="reference")).trace
        for scheduler in ("power_capped_mct", "mct")
    )
    assert found.finish_time_s == pytest.approx(expected.finish_time_s, rel=1e-9)


def test_input_files_are_refused():
    """Nobody knows when what waits for its files begins to draw."""
    files = DataFiles(("f",), [1.0], (("h",),))
    platform = Platform((Host("h", (PState(1.0, 1.0, 2.0, 2.0),)),))
    tasks = make_tasks([1.0], files=files, input_files=((0,),))
    with pytest.raises(InputError, match="--files"):
        run(Scenario(platform, tasks, "power_capped_mct", driver="reference"))
