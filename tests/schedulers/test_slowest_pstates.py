"""`slowest_pstates`: worked examples, what binds a host, and the makespan that is kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.policy.registry import make_scheduler
from gridsched.schedulers.bag.batch import MaxMin
from gridsched.schedulers.slowest_pstates import SlowestPStates
from gridsched.schedulers.wrapping import wrapped_scheduler
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

#: 100 flop/s at 100 W or 50 at 40 W; 40 flop/s at 30 W or 30 at 20 W; 10 W idle.
FAST = Host("fast", (PState(100.0, 10.0, 100.0, 100.0), PState(50.0, 10.0, 40.0, 40.0)))
SLOW = Host("slow", (PState(40.0, 10.0, 30.0, 30.0), PState(30.0, 10.0, 20.0, 20.0)))
PAIR = Platform((FAST, SLOW))


def on_reference(platform, tasks, scheduler, **changes):
    """Run on the reference driver."""
    return run(Scenario(platform, tasks, scheduler, driver="reference", **changes))


def rows(result) -> list[tuple]:
    """Return (task, host, P-state, start, end) of each execution."""
    return [row[:5] for row in result.trace.executions.tolist()]


@pytest.mark.parametrize(
    ("within", "executions", "joules"),
    [
        # the first task takes 10 s; the other has as long, and needs it all in P-state 1
        (1.0, [(0, 0, 0, 0, 10), (1, 1, 1, 0, 10)], 10 * 100 + 10 * 20),
        (1.9, [(0, 0, 0, 0, 10), (1, 1, 1, 0, 10)], 10 * 100 + 10 * 20),
        (2.0, [(0, 0, 1, 0, 20), (1, 1, 1, 0, 10)], 20 * 40 + 10 * 20 + 10 * 10),
    ],
)
def test_a_worked_example(within: float, executions, joules: float):
    """Tasks of 1000 and 300 flop; alone max_min draws 1250 J in 10 s."""
    tasks, policy = make_tasks([1000.0, 300.0]), SlowestPStates(within=within)
    expected = on_reference(PAIR, tasks, policy)
    assert rows(expected) == executions
    assert expected.summary()["energy_j"] == pytest.approx(joules, rel=1e-12)
    metered = run(Scenario(PAIR, tasks, policy, driver="simgrid"))
    assert trace_differences(expected.trace, metered.trace) == []
    assert metered_differences(metered) == []


def test_a_later_task_moves_the_deadline():
    """It ends at 36 s at full speed, so that is the bound for what is placed with it."""
    tasks = make_tasks([1000.0, 300.0, 600.0, 320.0], [0.0, 0.0, 30.0, 30.0])
    # at 30 s: 600 flop take 6 s on fast; 320 flop take 8 s on slow, 9.2 s on fast behind them:
    # the bound is 38 s, and 600 flop would take 12 s in P-state 1
    assert rows(on_reference(PAIR, tasks, "slowest_pstates"))[2:] == [(2, 0, 0, 30, 36), (3, 1, 0, 30, 38)]
    # measured from the first submission 1.2 times 38 s is 45.6 s
    wide = on_reference(PAIR, tasks, SlowestPStates(within=1.2))
    assert [row[:4] for row in rows(wide)[2:]] == [(2, 0, 1, 30), (3, 1, 1, 30)]


def test_nothing_is_slowed_down_while_tasks_have_no_place():
    """Workqueue: only the last ones, which leave none waiting, and of a bag at once none."""
    tasks = make_tasks([500.0, 500.0, 500.0])
    assert {row[2] for row in rows(on_reference(PAIR, tasks, SlowestPStates("wq")))} == {0}
    two = on_reference(PAIR, make_tasks([1000.0, 300.0]), SlowestPStates("wq"))
    assert [row[2] for row in rows(two)] == [0, 1]
    # mct is asked task by task: the first of the two is not slowed down, though it could
    mapped = on_reference(PAIR, make_tasks([1000.0, 300.0]), SlowestPStates("mct", within=9.0))
    assert [row[2] for row in rows(mapped)] == [0, 1]


def test_cores_keep_the_pstate_of_what_runs_beside():
    """The third task comes while the first two run in P-state 1, and has to take it, too."""
    states = (PState(10.0, 5.0, 10.0, 60.0), PState(5.0, 5.0, 10.0, 40.0))
    platform = Platform((Host("h", states, cores=3), Host("long", (PState(1.0, 1, 2, 2),))))
    tasks = make_tasks([100.0, 50.0, 40.0], [0.0, 0.0, 6.0])
    wrapped = SlowestPStates("mct", within=4.0)
    # 100 flop come first, in P-state 0 as another follows; what follows is bound to that
    assert [row[1:3] for row in rows(on_reference(platform, tasks, wrapped))] == [(0, 0)] * 3
    together = SlowestPStates("min_min(reschedule=False)", within=4.0)
    found = sorted(rows(on_reference(platform, tasks, together)))
    assert found == [(0, 0, 1, 0, 20), (1, 0, 1, 0, 10), (2, 0, 1, 6, 14)]


def test_whom_the_scheduler_delegates_to_is_wrapped():
    """auto_bag follows lecsa, whose P-states are then chosen."""
    tasks = make_tasks([1000.0, 300.0])
    result = on_reference(PAIR, tasks, SlowestPStates("auto_bag(candidates='lecsa')"))
    assert result.trace.delegated_to.startswith("SlowestPStates(scheduler=LECSA(")
    alone = on_reference(PAIR, tasks, "lecsa")
    assert result.summary()["makespan_s"] == alone.summary()["makespan_s"]
    assert result.summary()["energy_j"] < alone.summary()["energy_j"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.lists(st.integers(2, 40), min_size=1, max_size=3, unique=True)),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(1, 60), min_size=1, max_size=12),
    st.sampled_from(["max_min(reschedule=False)", "sufferage(reschedule=False)", "lecsa(switch_off='none')"]),
)
def test_the_makespan_is_kept_and_energy_saved(made, sizes, scheduler: str):
    """A bag that is placed once: as long as without, and never more joules."""
    platform = Platform(
        tuple(
            Host(
                f"h{k}", tuple(PState(speed, 3.0, 3.0, 3.0 + speed**2) for speed in sorted(speeds, reverse=True)), cores
            )
            for k, (cores, speeds) in enumerate(made)
        )
    )
    tasks = make_tasks(sizes)
    alone = on_reference(platform, tasks, wrapped_scheduler("test", scheduler)).summary()
    slowed = on_reference(platform, tasks, SlowestPStates(scheduler)).summary()
    assert slowed["makespan_s"] == pytest.approx(alone["makespan_s"], rel=1e-9)
    assert slowed["energy_j"] <= alone["energy_j"] * (1 + 1e-9)
    assert slowed["tasks_finished"] == len(tasks)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"within": 0.5}, "Parameter 'within' of slowest_pstates is 0.5; it must be at least 1"),
        ({"scheduler": "max_min("}, r"is 'max_min\('; it must be an id, as 'wqr', or an id with"),
        ({"scheduler": "wqr(3)"}, r"is 'wqr\(3\)'; it must be an id"),
        ({"scheduler": "wqr(**{})"}, "it must be an id"),
        ({"scheduler": 7}, "is 7; it must be an id"),
        ({"scheduler": "min_mni"}, "No scheduler 'min_mni'. Did you mean 'min_min'"),
        ({"scheduler": "wqr(max_copies=3)"}, "Scheduler 'wqr' has no parameter 'max_copies'"),
        ({"scheduler": "power_capped_mct"}, r"PowerCappedMCT\(\), which chooses P-states itself"),
        ({"scheduler": "fcfs"}, r"serial|places parallel tasks"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, message: str):
    """In one line that says what is legal."""
    with pytest.raises(InputError, match=message):
        on_reference(PAIR, make_tasks([1.0]), "slowest_pstates", parameters=parameters)


def test_traits_are_those_of_the_wrapped_scheduler():
    """With P-states besides; instances and texts with parameters name it alike."""
    assert SlowestPStates.traits.uses_dvfs
    assert make_scheduler("slowest_pstates", {"scheduler": "wqr"}).traits.replicates
    assert SlowestPStates("mct").traits.asked == "arrival"
    given_one = SlowestPStates(MaxMin(reschedule=False))
    tasks = make_tasks([1000.0, 300.0])
    assert rows(on_reference(PAIR, tasks, given_one)) == rows(on_reference(PAIR, tasks, "slowest_pstates"))
