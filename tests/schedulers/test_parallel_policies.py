"""FCFS, EASY and conservative backfilling: by hand, and against plain oracles."""

from __future__ import annotations

import pytest
import rigid_oracles as oracles
from hypothesis import given, settings
from hypothesis import strategies as st
from rigid_cases import ORACLES, machine, scenario, starts

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.tasks import make_tasks
from gridsched.policy.registry import make_scheduler
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

#: Section I's jobs: (submission, run time, nodes, estimate).
EXAMPLE = [(0, 10, 3, 10), (1, 5, 4, 5), (2, 20, 1, 20), (3, 7, 1, 7)]
STARTS = {"fcfs": [0, 10, 15, 15], "easy_backfilling": [0, 10, 15, 3], "conservative_backfilling": [0, 10, 15, 3]}


@pytest.mark.parametrize("scheduler", STARTS)
def test_the_example_of_section_i(scheduler):
    """Starts, nodes of the lowest ids, and joules by hand: 77 busy and 63 idle node-seconds."""
    result = run(scenario(EXAMPLE, 4, scheduler))
    assert result.trace.start_time_s.tolist() == STARTS[scheduler]
    hosts = {int(task): result.trace.hosts_of(k).tolist() for k, task in enumerate(result.trace.executions["task"])}
    assert hosts[0] == [0, 1, 2]
    assert hosts[2] == [0]
    assert hosts[3] == ([1] if scheduler == "fcfs" else [3])
    assert result.summary()["energy_j"] == 77 * 200 + 63 * 50


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", STARTS)
def test_the_example_on_simgrid(scheduler):
    """The same starts and nodes; the plugin's joules are the model's, node by node."""
    result = run(scenario(EXAMPLE, 4, scheduler, driver="simgrid"))
    expected = run(scenario(EXAMPLE, 4, scheduler))
    assert trace_differences(expected.trace, result.trace) == []
    assert result.trace.start_time_s.tolist() == pytest.approx(STARTS[scheduler], rel=1e-9)
    assert metered_differences(result) == []
    assert result.energy_plugin_j == pytest.approx(77 * 200 + 63 * 50, rel=1e-9)


JOBS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 8), st.sampled_from([0, 0, 1, 7, 30])),
    min_size=1,
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(JOBS, st.integers(8, 12), st.sampled_from(sorted(ORACLES)))
def test_starts_are_those_of_the_oracles(jobs, n_nodes, scheduler):
    """Random jobs whose estimates are right or too long: the same starts, to the last digit."""
    jobs = [(submit, length, width, length + more) for submit, length, width, more in sorted(jobs)]
    found = starts(jobs, n_nodes, scheduler)
    assert found == oracles.simulate(jobs, n_nodes, ORACLES[scheduler])
    if scheduler == "conservative_backfilling":
        assert found == oracles.simulate(jobs, n_nodes, oracles.conservative_by_steps)


@settings(max_examples=20, deadline=None)
@given(JOBS, st.integers(8, 12))
def test_reservations_made_anew_are_those_made_at_arrival(jobs, n_nodes):
    """Conservative backfilling with memory, rebuilt only after early ends, starts jobs alike."""
    jobs = [(submit, length, width, length + more) for submit, length, width, more in sorted(jobs)]
    expected = oracles.simulate(jobs, n_nodes, oracles.ReservedOnce())
    assert starts(jobs, n_nodes, "conservative_backfilling") == expected


def test_a_reservation_may_move_to_a_later_time():
    """Rebuilt in order of the queue, A takes earlier what B had: B moves from 5 to 10.

    Four nodes: R1 has one until 10, R2 one until 5, R3 two until 10. A (3 nodes, 10 s) is
    reserved at 10, B (1 node, 5 s) at 5. R3 ends at 2: A moves to 5, where three are free, and
    stays till 15; B finds a node for 5 s only from 10 on.
    """
    jobs = [(0, 10, 1, 10), (0, 5, 1, 5), (0, 2, 2, 10), (1, 10, 3, 10), (1, 5, 1, 5)]
    assert oracles.simulate(jobs, 4, oracles.conservative) == starts(jobs, 4, "conservative_backfilling")
    as_estimated = [(*job[:1], job[3], *job[2:]) for job in jobs]
    assert starts(as_estimated, 4, "conservative_backfilling")[3:] == [10.0, 5.0]
    assert starts(jobs, 4, "conservative_backfilling")[3:] == [5.0, 10.0]


def test_a_job_that_outlives_its_estimate_counts_as_ending_at_once():
    """Beyond its estimate of 4 s a job holds its nodes; what needs them waits, others overtake.

    Three nodes: J1 takes two until 10 s, asked for 4 s. J2 needs three. At 6 s J3 (one node, 2 s)
    comes: the shadow time is a moment away, no node is extra; it waits for J2.
    """
    jobs = [(0, 10, 2, 4), (1, 5, 3, 5), (6, 2, 1, 2)]
    for scheduler in ("easy_backfilling", "conservative_backfilling"):
        assert starts(jobs, 3, scheduler) == [0.0, 10.0, 15.0]


@pytest.mark.parametrize("scheduler", ["easy_backfilling", "conservative_backfilling"])
def test_all_that_outlive_their_estimates_count_as_ending_together(scheduler):
    """Two of four nodes are held beyond 2 and 4 s until 10 s; J3 needs three.

    At 6 s J4 comes, one node for 20 s: when both end, a node is left beside J3, so it starts.
    """
    jobs = [(0, 10, 1, 2), (0, 10, 1, 4), (1, 5, 3, 5), (6, 20, 1, 20)]
    assert starts(jobs, 4, scheduler) == [0.0, 0.0, 10.0, 6.0]


@pytest.mark.parametrize(
    ("third", "expected"),
    [
        # T3 outlives the shadow time and takes both extra nodes: T4 has to wait for T2's
        ((0, 20, 2, 20), [0.0, 10.0, 0.0, 15.0]),
        # T3 ends by the shadow time, and takes none of them
        ((0, 9, 2, 9), [0.0, 10.0, 0.0, 0.0]),
        # one of them is left, too few for T4
        ((0, 20, 1, 20), [0.0, 10.0, 0.0, 15.0]),
    ],
)
def test_a_job_that_overtakes_uses_up_the_extra_nodes(third, expected):
    """Eight nodes, four busy until 10 s, six wanted from then on: two are extra."""
    jobs = [(0, 10, 4, 10), (0, 5, 6, 5), third, (0, 20, 2, 20)]
    assert starts(jobs, 8, "easy_backfilling") == expected


@pytest.mark.parametrize("scheduler", ["easy_backfilling", "conservative_backfilling"])
def test_nodes_beyond_their_estimate_are_not_free(scheduler):
    """T1 has two of three nodes until 10 s and asked for 4 s; T2 comes at 6 s and takes the third.

    With permanent reservations T2 would begin on busy nodes if these looked free.
    """
    permanent = make_scheduler(scheduler, {"reservations": "permanent"})
    trace = run(scenario([(0, 10, 2, 4), (6, 2, 1, 2)], 3, permanent)).trace
    assert (trace.start_time_s.tolist(), trace.host_ids.tolist()) == ([0.0, 6.0], [0, 1, 2])


def test_a_reservation_takes_its_nodes_until_its_end_alone():
    """Of four nodes J1 has three until 2 s, J2 all four until 5 s; J3 would run beyond 2 s."""
    jobs = [(0, 2, 3, 2), (0, 3, 4, 3), (0, 9, 1, 14)]
    assert starts(jobs, 4, "conservative_backfilling") == [0.0, 2.0, 5.0]


def test_nodes_that_are_off_hold_no_job():
    """A job that needs a node that stays off blocks FCFS, and is overtaken by the others."""
    jobs = [(0, 5, 1, 5), (0, 5, 3, 5), (0, 5, 1, 5)]
    for scheduler in ("easy_backfilling", "conservative_backfilling"):
        with pytest.raises(Exception, match=r"1 of 3.* 2"):
            run(scenario(jobs, 3, scheduler, hosts_off=("n0",)))
    with pytest.raises(Exception, match=r"2 of 3.* 2, 3"):
        run(scenario(jobs, 3, "fcfs", hosts_off=("n0",)))


def test_several_clusters_and_bad_parameters_are_refused():
    """One line each, before the run."""
    platform = Platform(machine(2).hosts)
    tasks = make_tasks([1e9], width=1, requested_time_s=1.0)
    with pytest.raises(InputError, match=r"FCFS.*one.*2"):
        run(Scenario(platform, tasks, "fcfs", driver="reference"))
    policy = make_scheduler("conservative_backfilling", {"reservations": "kept"})
    with pytest.raises(InputError, match=r"'reservations'.*conservative_backfilling.*'kept'"):
        run(scenario(EXAMPLE, 4, policy))
