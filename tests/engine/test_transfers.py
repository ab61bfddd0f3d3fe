"""Data between tasks: sent once to where they are wanted, and waited for there, on both drivers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from gridsched import Host, Platform, PState, make_tasks
from gridsched.drivers.reference import CHECK_INVARIANTS
from gridsched.engine.transfers import Transfers
from gridsched.errors import InputError
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.network import Network
from gridsched.model.staged_files import StagedFiles
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Cancel, Decision, Drop, Plan
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference
from gridsched.sim.client import simulate

#: The example of Topcuoglu, Hariri, Wu, TPDS 2002 (10.1109/71.993206): times of ten tasks on three machines.
TIMES = [
    [14, 16, 9], [13, 19, 18], [11, 13, 19], [13, 8, 17], [12, 13, 10],
    [13, 16, 9], [7, 15, 11], [5, 11, 14], [18, 12, 20], [21, 7, 16],
]  # fmt: skip
EDGES = [
    (1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16), (3, 7, 23), (4, 8, 27),
    (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13),
]  # fmt: skip
#: What HEFT decides: (task, machine), in order of the starts; and the printed (machine, start, end) of each task.
HEFT = [(1, 3), (3, 3), (4, 2), (2, 1), (6, 2), (5, 3), (7, 3), (9, 2), (8, 1), (10, 2)]
PRINTED = {
    1: (3, 0, 9), 2: (1, 27, 40), 3: (3, 9, 28), 4: (2, 18, 26), 5: (3, 28, 38),
    6: (2, 26, 42), 7: (3, 38, 49), 8: (1, 57, 62), 9: (2, 56, 68), 10: (2, 73, 80),
}  # fmt: skip
DRIVERS = ["reference", "simgrid"]


class InOrder(Scheduler):
    """Queue (task, host) once, as given."""

    traits = Traits(trigger="event")

    def __init__(self, places: tuple[tuple[int, int], ...] = ()) -> None:
        self.places = places

    def prepare(self, system, rng) -> None:
        """Forget the last run."""
        self.is_done_ = False

    def schedule(self, state):
        """Queue everything at the first ask."""
        answer = [] if self.is_done_ else [Assign(task, host) for task, host in self.places]
        self.is_done_ = True
        return answer


def edges(*rows: tuple[int, int, float], item=()) -> Dependencies:
    """Return (task, on, bytes) as dependencies on ends."""
    task, on, size = (np.array(column) for column in zip(*sorted(rows), strict=True))
    item = np.array(item, dtype=np.int64) if len(item) else np.full(len(task), -1)
    return Dependencies(task, on, np.full(len(task), int(After.END)), np.zeros(len(task)), size.astype(float), item)


def mesh_file(folder: Path, platform: Platform, *, shared: bool, latency: str = "0s") -> Path:
    """Write hosts of which each two have a link of their own, of 1 byte/s: shared by transfers, or not."""
    hosts = []
    for host in platform.hosts:
        speeds = ",".join(f"{each.speed!r}f" for each in host.pstates)
        watts = ",".join(f"{each.idle_w}:{each.epsilon_w}:{each.busy_w}" for each in host.pstates)
        hosts.append(
            f'<host id="{host.name}" speed="{speeds}" core="{host.cores}">'
            f'<prop id="wattage_per_state" value="{watts}"/></host>'
        )
    names = [host.name for host in platform.hosts]
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    policy = "SHARED" if shared else "FATPIPE"
    links = [f'<link id="{a}-{b}" bandwidth="1Bps" latency="{latency}" sharing_policy="{policy}"/>' for a, b in pairs]
    routes = [f'<route src="{a}" dst="{b}"><link_ctn id="{a}-{b}"/></route>' for a, b in pairs]
    path = folder / f"mesh-{policy}.xml"
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>'
        f'<zone id="z" routing="Full">{"".join(hosts + links + routes)}</zone></platform>'
    )
    return path


def played(folder, driver, platform, estimates, tasks, places, *, shared=False, latency_s=0.0):
    """Return the trace of tasks in given queues on a mesh of links of 1 byte/s."""
    n = len(platform.hosts)
    network = Network(np.full((n, n), latency_s), np.ones((n, n)))
    file = mesh_file(folder, platform, shared=shared, latency=f"{latency_s}s")
    return simulated(driver, platform, estimates, tasks, InOrder(tuple(places)), network, file)


def simulated(driver, platform, estimates, tasks, scheduler, network, file, **rules):
    """Return the trace of a run."""
    scenario = LoadedScenario(platform, tasks, estimates=estimates, network="platform", between_hosts=network, **rules)
    if driver == "reference":
        return simulate_reference(scenario, scheduler)
    return simulate(scenario, scheduler, file).trace


def equal_hosts(n: int) -> Platform:
    """Return hosts of 1 flop/s."""
    return Platform(tuple(Host(f"h{k}", (PState(1.0, 1.0, 2.0, 2.0),)) for k in range(n)))


def on_equal_hosts(folder, driver, n, flops, pairs, places, **options):
    """Return {task: (host, start, end)} and transfers as tuples, of tasks of so many flop on equal hosts."""
    platform, tasks = equal_hosts(n), make_tasks(flops, dependencies=pairs)
    trace = played(folder, driver, platform, FlopsEstimates(platform, tasks), tasks, places, **options)
    spans = {e["task"]: (e["host"], pytest.approx(e["start"]), pytest.approx(e["end"])) for e in trace.executions}
    return spans, [
        tuple(map(pytest.approx, row)) for row in trace.transfers[["source", "target", "begin", "end"]].tolist()
    ]


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_schedule_of_topcuoglu(tmp_path, driver):
    """Ten tasks queued as HEFT decides run when the paper prints: 80 in all."""
    types = TaskTypes(
        np.array(TIMES, float)[:, :, None], np.full((10, 3, 1), 10.0), np.arange(3), idle_w=np.full(3, 1.0)
    )
    pairs = edges(*((b - 1, a - 1, size) for a, b, size in EDGES))
    tasks = make_tasks([TYPED_TASK_FLOPS] * 10, task_type=np.arange(10), dependencies=pairs)
    places = [(task - 1, machine - 1) for task, machine in HEFT]
    trace = played(tmp_path, driver, typed_platform(types), types.estimates(tasks), tasks, places)
    found = {
        e["task"] + 1: (e["host"] + 1, pytest.approx(e["start"]), pytest.approx(e["end"])) for e in trace.executions
    }
    assert found == PRINTED


def staged_on_h0(folder, driver, flops, pairs, places, **options):
    """Return {task: (host, start, end)} and transfers of tasks that read (task, file, bytes) of host h0."""
    platform = equal_hosts(2)
    task, file, size = (np.array(column) for column in zip(*pairs, strict=True))
    tasks = make_tasks(flops, staged=StagedFiles("h0", task, file, size.astype(float)))
    trace = played(folder, driver, platform, FlopsEstimates(platform, tasks), tasks, places, **options)
    spans = {e["task"]: (e["host"], pytest.approx(e["start"]), pytest.approx(e["end"])) for e in trace.executions}
    return spans, [
        tuple(map(pytest.approx, row)) for row in trace.transfers[["source", "target", "begin", "end"]].tolist()
    ]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_file_that_no_task_makes_is_sent_once_to_a_host(tmp_path, driver):
    """4 bytes to h1 for tasks 0 and 1, there at 4 s; task 2 runs where the file lies."""
    pairs, places = [(0, 7, 4), (1, 7, 4), (2, 7, 4)], [(0, 1), (1, 1), (2, 0)]
    spans, transfers = staged_on_h0(tmp_path, driver, [2.0, 3.0, 1.0], pairs, places)
    assert spans == {0: (1, 4.0, 6.0), 1: (1, 6.0, 9.0), 2: (0, 0.0, 1.0)}
    assert transfers == [(0, 1, 0.0, 4.0)]


@pytest.mark.parametrize(
    ("driver", "shared", "end"), [("reference", False, 4), ("simgrid", False, 4), ("simgrid", True, 6)]
)
def test_files_that_no_task_makes_share_links(tmp_path, driver, shared, end):
    """2 and 4 bytes on one link: the smaller one has half of it until 4 s, and then the larger one all, until 6 s."""
    spans, _ = staged_on_h0(tmp_path, driver, [1.0], [(0, 0, 2), (0, 1, 4)], [(0, 1)], shared=shared)
    assert spans == {0: (1, end, end + 1.0)}


def test_files_of_a_host_that_computes_nothing_are_refused(tmp_path):
    """They would have no way."""
    tasks = make_tasks([1.0], staged=StagedFiles("elsewhere", np.array([0]), np.array([0]), np.array([1.0])))
    with pytest.raises(InputError, match=r"'elsewhere'.*h0, h1"):
        played(tmp_path, "reference", equal_hosts(2), FlopsEstimates(equal_hosts(2), tasks), tasks, [(0, 1)])


@pytest.mark.parametrize("driver", DRIVERS)
def test_data_within_a_host_take_no_time_and_elsewhere_latency_and_bytes(tmp_path, driver):
    """Task 0 ends at 10 s; its 5 bytes are at h1 at 10 + 2 + 5 s, and its own host waits for nothing."""
    spans, transfers = on_equal_hosts(
        tmp_path, driver, 2, [10.0, 3.0, 4.0], edges((1, 0, 7.0), (2, 0, 5.0)), [(0, 0), (1, 0), (2, 1)], latency_s=2.0
    )
    assert spans == {0: (0, 0.0, 10.0), 1: (0, 10.0, 13.0), 2: (1, 17.0, 21.0)}
    assert transfers == [(0, 1, 10.0, 17.0)]


@pytest.mark.parametrize("driver", DRIVERS)
def test_shared_data_are_sent_once_to_a_host(tmp_path, driver):
    """Two tasks on h1 need one file of 6 bytes; a third pair has data of its own."""
    pairs = edges((1, 0, 6.0), (2, 0, 6.0), (3, 0, 8.0), item=(4, 4, -1))
    spans, transfers = on_equal_hosts(tmp_path, driver, 3, [1.0] * 4, pairs, [(0, 0), (1, 1), (2, 1), (3, 2)])
    assert spans == {0: (0, 0.0, 1.0), 1: (1, 7.0, 8.0), 2: (1, 8.0, 9.0), 3: (2, 9.0, 10.0)}
    assert transfers == [(0, 1, 1.0, 7.0), (0, 2, 1.0, 9.0)]


def test_transfers_over_one_link_share_it(tmp_path):
    """12 and 4 bytes from h0 to h1 at 1 byte/s: 4 are there at 1 + 8 s, 12 at 1 + 16 s. SimGrid alone knows."""
    pairs = edges((1, 0, 12.0), (2, 0, 4.0))
    spans, transfers = on_equal_hosts(
        tmp_path, "simgrid", 2, [1.0, 1.0, 1.0], pairs, [(0, 0), (2, 1), (1, 1)], shared=True
    )
    assert transfers == [(0, 1, 1.0, 9.0), (0, 1, 1.0, 17.0)]
    assert spans == {0: (0, 0.0, 1.0), 2: (1, 9.0, 10.0), 1: (1, 17.0, 18.0)}


@pytest.mark.parametrize("driver", DRIVERS)
def test_data_wait_until_somebody_wants_them(tmp_path, driver):
    """The policy places task 1 at 5 s alone, when task 2 ends: its data leave then."""

    class Later(InOrder):
        def schedule(self, state):
            if state.now == 0:
                return [Assign(0, 0), Assign(2, 1)]
            ready = state.data_ready(1) if 1 in state.mappable else None
            if ready is None or state.now < 5:
                return []
            assert ready.tolist() == [5.0, 5.0 + 3.0]
            return [Assign(1, 1)]

    platform, tasks = equal_hosts(2), make_tasks([1.0, 1.0, 5.0], dependencies=edges((1, 0, 3.0)))
    network, file = Network(np.zeros((2, 2)), np.ones((2, 2))), mesh_file(tmp_path, platform, shared=False)
    trace = simulated(driver, platform, FlopsEstimates(platform, tasks), tasks, Later(), network, file)
    assert trace.transfers["begin"].tolist() == pytest.approx([5.0])
    assert trace.executions["start"].tolist() == pytest.approx([0.0, 0.0, 8.0])


@pytest.mark.parametrize("driver", DRIVERS)
def test_data_of_planned_tasks_leave_when_they_are_fixed(tmp_path, driver):
    """Task 2 is planned behind task 1 (5 s) and fixed in its pending slot: 3 bytes leave at 1 s; it starts at 5 s."""

    class Planned(InOrder):
        def schedule(self, state):
            return [Plan([0, 1, 2], [0, 1, 1])] if state.now == 0 else []

    platform, tasks = equal_hosts(2), make_tasks([1.0, 5.0, 1.0], dependencies=edges((2, 0, 3.0)))
    network, file = Network(np.zeros((2, 2)), np.ones((2, 2))), mesh_file(tmp_path, platform, shared=False)
    trace = simulated(
        driver, platform, FlopsEstimates(platform, tasks), tasks, Planned(), network, file, pending_slots=1
    )
    assert trace.transfers[["begin", "end"]].tolist() == [pytest.approx((1.0, 4.0))]
    assert trace.executions["start"].tolist() == pytest.approx([0.0, 0.0, 5.0])


def test_the_host_of_files_is_in_use_until_all_are_sent():
    """Two tasks read a file of h0 each: h0 is in use before, while they are sent, and no longer."""
    none = np.zeros(0, dtype=np.int64)
    files = StagedFiles("h0", np.array([0, 1]), np.array([0, 1]), np.array([2.0, 3.0]))
    transfers = Transfers(
        Dependencies(none, none, none, np.zeros(0)), Network(np.zeros((2, 2)), np.ones((2, 2))), files, 0
    )
    in_use = [set(transfers.hosts_in_use)]
    for task in (0, 1):
        transfers.want(task, 1, 0.0)
        in_use.append(set(transfers.hosts_in_use))
    for each in transfers.take_sent():
        transfers.arrive(each, each.end)
        in_use.append(set(transfers.hosts_in_use))
    assert in_use == [{0}, {0, 1}, {0, 1}, {0, 1}, set()]


class Withdraws(Scheduler):
    """Decide as given at each of some times, in order."""

    traits = Traits(trigger="event", may_cancel=True, may_drop=True)

    def __init__(self, at: dict[float, Iterable[Decision]] | None = None) -> None:
        self.at = at

    def prepare(self, system, rng) -> None:
        """Forget the last run."""
        self.left_ = dict(self.at)

    def schedule(self, state):
        """Answer once at each time."""
        return self.left_.pop(state.now, [])


def withdrawn(folder, driver, at, flops=(1.0, 2.0, 3.0), rows=((1, 0, 4.0), (2, 1, 5.0))):
    """Return {task: (host, start, end)}, transfers, final states of a row of tasks of which some are withdrawn."""
    platform, tasks = equal_hosts(2), make_tasks(list(flops), dependencies=edges(*rows))
    network, file = Network(np.zeros((2, 2)), np.ones((2, 2))), mesh_file(folder, platform, shared=False)
    trace = simulated(driver, platform, FlopsEstimates(platform, tasks), tasks, Withdraws(at), network, file)
    done = trace.executions[trace.executions["outcome"] == int(ExecutionEnd.FINISHED)]
    spans = {e["task"]: (e["host"], pytest.approx(e["start"]), pytest.approx(e["end"])) for e in done}
    return spans, trace.transfers[["source", "target"]].tolist(), [TaskState(each) for each in trace.final_state]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("at", "spans", "sent"),
    [
        # before anything has run: the first task has its core, the others wait for it
        ({0.0: [*(Assign(t, 0) for t in range(3)), *(Cancel(t, 0) for t in range(3)),
                *(Assign(t, 1) for t in range(3))]},
         {0: (1, 0.0, 1.0), 1: (1, 1.0, 3.0), 2: (1, 3.0, 6.0)}, []),
        # the second is withdrawn while it waits for the first: nothing goes to the host that it has left
        ({0.0: [Assign(0, 0), Assign(1, 1), Cancel(1, 1), Assign(1, 0), Assign(2, 0)]},
         {0: (0, 0.0, 1.0), 1: (0, 1.0, 3.0), 2: (0, 3.0, 6.0)}, []),
        # it is withdrawn when its data are on their way, before it could compute
        ({0.0: [Assign(0, 0)], 1.0: [Assign(1, 1), Cancel(1, 1), Assign(1, 0), Assign(2, 0)]},
         {0: (0, 0.0, 1.0), 1: (0, 1.0, 3.0), 2: (0, 3.0, 6.0)}, [(0, 1)]),
    ],
)  # fmt: skip
def test_queued_tasks_are_withdrawn_and_planned_elsewhere(tmp_path, monkeypatch, driver, at, spans, sent):
    """Tasks of 1, 2 and 3 s that wait for each other, with data of 4 and 5 bytes at 1 byte/s."""
    monkeypatch.setenv(CHECK_INVARIANTS, "1")
    found, transfers, states = withdrawn(tmp_path, driver, at)
    assert (found, transfers, set(states)) == (spans, sent, {TaskState.FINISHED})


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("ends", [Drop(0), Cancel(0)])
def test_tasks_whose_data_are_never_made_are_rejected(tmp_path, driver, ends):
    """The first task is dropped, or killed as it runs: who needs its data is rejected, who needs the end alone runs."""
    first, then = ([ends], []) if isinstance(ends, Drop) else ([Assign(0, 0)], [ends])
    rows = (1, 0, 4.0), (3, 0, 0.0), (3, 2, 0.0)
    at = {0.0: [*first, Assign(2, 1), Assign(3, 0)], 1.0: then}
    spans, _, states = withdrawn(tmp_path, driver, at, (3.0, 1.0, 1.0, 1.0), rows)
    assert spans == {2: (1, 0.0, 1.0), 3: (0, 1.0, 2.0)}
    assert states[0] in (TaskState.DROPPED, TaskState.KILLED)
    assert states[1:] == [TaskState.REJECTED, TaskState.FINISHED, TaskState.FINISHED]


def random_graph(rng, n_tasks: int, n_hosts: int):
    """Return flops, pairs and places of a random graph whose data are of any size, some shared."""
    rows = {
        (task, int(on)): float(rng.integers(0, 20))
        for task in range(1, n_tasks)
        for on in rng.integers(0, task, rng.integers(0, 3))
    }
    pairs = edges(*((task, on, size) for (task, on), size in rows.items())) if rows else None
    return rng.uniform(1, 20, n_tasks), pairs, [(task, int(rng.integers(n_hosts))) for task in range(n_tasks)]


@pytest.mark.parametrize("seed", range(20))
def test_both_drivers_agree_where_no_link_is_shared(tmp_path, seed):
    """Random graphs queued at random, against a plain recurrence over tasks in their order."""
    rng = np.random.default_rng(seed)
    flops, pairs, places = random_graph(rng, 15, 4)
    spans, _ = on_equal_hosts(tmp_path, "reference", 4, flops, pairs, places, latency_s=0.5)
    metered, _ = on_equal_hosts(tmp_path, "simgrid", 4, flops, pairs, places, latency_s=0.5)
    end, free = {}, [0.0] * 4
    host_of = dict(places)
    waits = [] if pairs is None else list(zip(pairs.task, pairs.on, pairs.size_bytes, strict=True))
    for task, host in places:
        there = [
            end[on] + ((0.5 + size) if size and host_of[on] != host else 0.0) for t, on, size in waits if t == task
        ]
        start = max([free[host], *there])
        end[task] = free[host] = start + flops[task]
        assert spans[task] == metered[task] == (host, start, end[task])


def test_impossible_data_are_refused():
    """Negative sizes, and networks that are not two squares or have no bandwidth."""
    with pytest.raises(InputError, match="bytes"):
        edges((1, 0, -1.0))
    with pytest.raises(InputError, match="square"):
        Network(np.zeros((2, 2)), np.ones((3, 3)))
    with pytest.raises(InputError, match="bandwidth"):
        Network(np.zeros((2, 2)), np.zeros((2, 2)))
