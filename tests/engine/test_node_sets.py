"""Parallel tasks on sets of nodes: the decision, what is refused, and the records, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import estimates_of, jobs, two_clusters
from scripted import NODE, PARALLEL, Scripted, at_times, controller_of, nodes, play_on_nodes

from gridsched.drivers import reference
from gridsched.energy import trace_energy
from gridsched.engine import execution
from gridsched.errors import InputError, InvalidDecision
from gridsched.metrics import summary
from gridsched.model.platform import Cluster, Host, Platform
from gridsched.model.task_types import TypedEstimates
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Allocate, Assign, Cancel, Plan, PowerOff, PowerOn, WakeAt
from gridsched.testing.decision_checks import illegal_places


@pytest.mark.parametrize("most_recent", [0, execution.MOST_RECENT])
def test_two_jobs_share_a_cluster(monkeypatch, most_recent):
    """Widths 3 and 2 on 5 nodes; the third waits for the first: records and joules by hand."""
    monkeypatch.setattr(execution, "MOST_RECENT", most_recent)
    trace, _ = play_on_nodes(
        nodes(5),
        [(0, 3, 10), (0, 2, 30), (4, 3, 8)],
        at_times(
            {
                0: [Allocate(0, np.array([4, 0, 2])), Allocate(1, np.array([1, 3]))],
                6: [Allocate(2, np.array([0, 2, 4]))],
            }
        ),
        logged=[6.0, 25.0, 8.0],
    )
    assert trace.host_offsets.tolist() == [0, 3, 5, 8]
    assert trace.host_ids.tolist() == [0, 2, 4, 1, 3, 0, 2, 4]
    assert trace.executions["host"].tolist() == [0, 1, 0]
    assert trace.width.tolist() == [3, 2, 3]
    assert trace.executions["end"].tolist() == [6.0, 25.0, 14.0]
    assert trace.executed_flops().tolist() == [180.0, 500.0, 240.0]
    found = summary(trace)
    assert found["busy_time_s"] == 3 * 6 + 2 * 25 + 3 * 8
    assert found["hosts_used"] == 5
    energy = trace_energy(trace)
    assert energy.total_j.tolist() == [14 * 20 + 11 * 5, 500, 14 * 20 + 11 * 5, 500, 335]
    assert energy.execution_j.tolist() == [360, 1000, 480]
    assert illegal_places(trace) == []


def test_what_a_policy_sees_of_nodes():
    """Free flags, estimated ends and widths; running with widths; never the true ends."""
    seen = []

    def answer(state):
        view = state.nodes
        seen.append(
            (
                state.now,
                view.n_free,
                np.flatnonzero(view.free).tolist(),
                sorted(zip(view.estimated_end.tolist(), view.width.tolist(), strict=True)),
                state.running[["task", "host", "estimated_end", "width"]].tolist(),
                state.idle_cores(),
                state.ready_time.tolist(),
                state.free_cores.tolist(),
            )
        )
        assert not any(a.flags.writeable for a in (view.free, view.estimated_end, view.width))
        return at_times({0: [Allocate(0, np.array([1, 2]))], 2: [Allocate(1, np.array([0]))]})(state)

    play_on_nodes(nodes(4), [(0, 2, 10), (2, 1, 20)], answer, logged=[5.0, 6.0], hosts_off=(3,))
    assert seen[:3] == [
        (0.0, 3, [0, 1, 2], [], [], [0, 1, 2], [0, 0, 0, np.inf], [1, 1, 1, 1]),
        (2.0, 1, [0], [(10.0, 2)], [(0, 1, 10.0, 2)], [0], [2, 10, 10, np.inf], [1, 0, 0, 1]),
        (5.0, 2, [1, 2], [(22.0, 1)], [(1, 0, 22.0, 1)], [1, 2], [22, 5, 5, np.inf], [0, 1, 1, 1]),
    ]


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        (Allocate(0, np.array([0])), "the task takes 2 nodes, not 1"),
        (Allocate(0, np.array([1, 1])), "a host is listed twice"),
        (Allocate(0, np.array([0, 9])), "there are hosts 0 to 5"),
        (Allocate(0, np.array([-1, 2])), "there are hosts 0 to 5"),
        (Allocate(0, np.array([2, 3])), "its nodes lie in several clusters"),
        (Allocate(0, np.array([0, 1]), 2), "P-states 0 to 1, not 2"),
        (Allocate(0, np.array([0, 2])), "host 2 is off; PowerOn it first"),
        (Allocate(0, np.array([0.0, 1.0])), "must be an array of host ids"),
        (Allocate(0, 3), "must be an array of host ids"),
        (Allocate(0, np.array([], dtype=int)), "must be an array of host ids"),
        (Allocate(7, np.array([0, 1])), "there are tasks 0 to 1"),
        (Allocate("a", np.array([0, 1])), "task is 'a'"),
        (Allocate(1, np.array([0, 1])), "the task is not_submitted"),
        (Assign(0, 0), "takes 2 nodes, not 1; Allocate"),
        (Plan(np.array([0]), np.array([0])), "takes 2 nodes, not 1; Allocate"),
        (Cancel(0), "needs the trait 'may_cancel'"),
    ],
)
def test_illegal_allocations(decision, why):
    """The message shows what is allowed and what was found."""
    with pytest.raises(InvalidDecision, match=why):
        play_on_nodes(nodes(3, 3), [(0, 2, 10), (5, 2, 10)], lambda state: [decision], hosts_off=(2,))


def test_busy_nodes_and_started_jobs_are_refused():
    """No job gets a node that another one has, and no job starts twice."""
    first = Allocate(0, np.array([0, 1]))
    with pytest.raises(InvalidDecision, match="host 1"):
        play_on_nodes(nodes(4), [(0, 2, 10)] * 2, lambda state: [first, Allocate(1, np.array([1, 2]))])
    with pytest.raises(InvalidDecision, match="the task is running"):
        play_on_nodes(nodes(4), [(0, 2, 10)] * 2, lambda state: [first, Allocate(0, np.array([2, 3]))])
    with pytest.raises(InvalidDecision, match="PowerOff"):
        play_on_nodes(nodes(4), [(0, 2, 10)] * 2, lambda state: [first, PowerOff(1)])


def test_serial_tasks_are_not_allocated():
    """The trait is needed, and tasks with a width."""
    serial = controller_of(
        nodes(2), make_tasks([10.0]), Scripted(lambda state: [Allocate(0, np.array([0]))], Traits(trigger="event"))
    )
    with pytest.raises(InvalidDecision, match=r"Allocate.*'parallel'"):
        reference.simulate(serial)


def test_nodes_boot_before_they_are_free():
    """Off at first, switched on at 0 with 4 s to boot: the job starts at 4 s."""

    def answer(state):
        if state.now == 0:
            return [PowerOn(1), WakeAt(2.0)]
        if state.now == 2:
            assert state.nodes.n_free == 1
            assert state.ready_time.tolist() == [2.0, 4.0]
            return []
        return [Allocate(0, np.array([0, 1]))] if state.nodes.n_free == 2 else []

    trace, policy = play_on_nodes(nodes(2, boot_time_s=4.0), [(0, 2, 3)], answer, hosts_off=(1,))
    assert policy.times[:3] == [0.0, 2.0, 4.0]
    assert trace.executions[["start", "end"]].tolist() == [(4.0, 7.0)]
    with pytest.raises(InvalidDecision, match="host 1"):
        play_on_nodes(
            nodes(2, boot_time_s=4.0),
            [(0, 2, 3)],
            lambda state: [PowerOn(1), Allocate(0, np.array([0, 1]))],
            hosts_off=(1,),
        )


def test_nodes_change_their_pstate_as_a_block_and_park():
    """At half the speed twice the time; nodes without work go into the parked P-state."""
    trace, _ = play_on_nodes(
        nodes(3),
        [(0, 2, 10), (0, 1, 10)],
        at_times({0: [Allocate(0, np.array([0, 1]), 1), Allocate(1, np.array([2]))]}),
        logged=[6.0, 6.0],
        parked_pstate=1,
    )
    assert trace.executions["end"].tolist() == [12.0, 6.0]
    assert trace.executions["pstate"].tolist() == [1, 0]
    changes = [row for row in trace.host_changes.tolist() if row[0] > 0 or row[2] == 0]
    assert changes == [(0.0, 2, 0, True), (6.0, 2, 1, True)]
    assert trace_energy(trace).total_j.tolist() == [108.0, 108.0, 6 * 20 + 6 * 4]


def test_a_job_wider_than_every_cluster_is_rejected():
    """Five nodes in clusters of 3 and 2 hold no job of 4."""
    trace, _ = play_on_nodes(nodes(3, 2), [(0, 4, 10), (0, 3, 10)], at_times({0: [Allocate(1, np.array([0, 1, 2]))]}))
    assert trace.final_state.tolist() == [TaskState.REJECTED, TaskState.FINISHED]


def test_what_node_sets_do_not_have_is_refused_before_the_run():
    """Cores, unequal clusters, estimates; policies that name one host for jobs of several."""
    job, nothing = [(0, 1, 5)], at_times({})
    with pytest.raises(InputError, match=r"host 'n0'.* 4"):
        play_on_nodes(nodes(2, cores=4), job, nothing)
    unequal = Platform((Host("a", NODE), Host("b", NODE[:1])), (Cluster("c", (0, 1)),))
    with pytest.raises(InputError, match=r"'c'.*'a'.*'b'"):
        play_on_nodes(unequal, job, nothing)
    types = TypedEstimates(np.ones((1, 1, 1)), np.ones((1, 1, 1)), [0], [0, 0])
    with pytest.raises(InputError, match="estimates"):
        controller_of(nodes(2), make_tasks([10.0], width=1), Scripted(nothing, PARALLEL), estimates=types)
    with pytest.raises(InputError, match=r"1 .*2"):
        controller_of(
            two_clusters(),
            make_tasks([1.0], width=1, task_type=[0]),
            Scripted(nothing, PARALLEL),
            estimates=estimates_of(two_clusters(), jobs((0, 0, 1), (0, 0, 1))),
        )
    with pytest.raises(InputError, match=r"one host.*2 nodes"):
        play_on_nodes(nodes(2), [(0, 2, 5)], nothing, traits=Traits(trigger="event"))


def test_only_policies_of_parallel_jobs_delegate_among_themselves():
    """A serial policy could do nothing in a run of parallel jobs."""
    parallel = Traits(trigger="event", parallel=True, delegates=True)
    assert parallel.covers(Traits(trigger="event", parallel=True))
    assert not parallel.covers(Traits(trigger="event"))
