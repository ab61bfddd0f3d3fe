"""The compiled rules of paper 001 decide exactly as the plain loops of algorithms C3 to C5."""

from __future__ import annotations

import copy
import itertools
import math
import random
from collections import Counter

import numpy as np
import parallel_oracle as plain
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parallel_oracle import INF, Event
from scheduler_cases import random_weights, weights_of

from gridsched.model.utility import DECAYING, LINEAR, UtilityClasses, UtilityFunctions
from gridsched.systems.utility.kernels import parallel_queues
from gridsched.systems.utility.kernels.node_gaps import earliest
from gridsched.systems.utility.kernels.node_profile import Reserved, cluster_nodes, node_profile
from gridsched.systems.utility.kernels.parallel_greedy import map_parallel
from gridsched.systems.utility.kernels.parallel_options import UPE, UPR, UPT, UTIL, ParallelLimits, ParallelRows
from gridsched.systems.utility.kernels.utility_value import utility_tables

OBJECTIVES = {"util": UTIL, "upt": UPT, "upr": UPR, "upe": UPE}
NOW = 30.0
#: Pure exponential; steps without decay where urgency is 0 (ties!); a hard end; linear.
CLASSES = [
    [(0.0, 1.0, 0.0, 1.0)],
    [(0.0, 1.0, 0.5, 1.0), (10.0, 0.5, 0.25, 0.5), (30.0, 0.25, 0.0, 2.0)],
    [(0.0, 1.0, 0.6, 2.0), (12.0, 0.6, 0.0, 1.0), (40.0, 0.0, 0.0, 1.0)],
    [(0.0, 1.0, 1.0, None), (8.0, 1.0, 0.4, None), (20.0, 0.4, 0.0, None), (25.0, 0.0, 0.0, None)],
]


# ---------------------------------------------------------------------- the kernels' form


def nodes_of(event: Event):
    """Return the clusters' nodes."""
    return cluster_nodes(event.clusters, 1 + max(event.busy, default=0))


def free_and_reserved(event: Event) -> tuple[np.ndarray, Reserved]:
    """Return when running work ends, and what is reserved, each node for itself."""
    on = {h for hosts in event.clusters for h in hosts}
    free_at = np.array([NOW if h in on else INF for h in range(1 + max(event.busy, default=0))])
    parts = []
    for h in on:
        for b, e in event.busy[h]:
            if b <= NOW:
                free_at[h] = e
            else:
                parts.append((b, e, h))
    starts, ends, hosts = (np.array([p[i] for p in parts], dtype=float) for i in range(3))
    return free_at, Reserved(starts, ends, np.arange(len(parts) + 1), hosts.astype(np.int64))


def rows_of(event: Event) -> ParallelRows:
    """Return the tasks as arrays."""
    n_pstates = max([len(each[1]) for task in event.tasks for each in task[1].values()], default=1)
    shape = (len(event.tasks), len(event.clusters), n_pstates)
    time, energy = np.full(shape, INF), np.full(shape, INF)
    nodes = np.ones(shape[:2], dtype=np.int64)
    for row, task in enumerate(event.tasks):
        for c, (n, pstates) in task[1].items():
            nodes[row, c] = n
            for k, (t, e) in enumerate(pstates):
                time[row, c, k], energy[row, c, k] = t, e
    arrival = np.array([task[2] for task in event.tasks], dtype=float)
    cost = weights_of(event).cost_j(energy, event.now, time)
    cores = np.array(event.cores, dtype=np.int64)
    return ParallelRows(time, energy, cost, nodes, arrival, cores)


def functions_of(event: Event):
    """Return the tasks' utility functions as tables."""
    rows, first, kind = [], [0], []
    for each in event.classes:
        rows += [(*row[:3], row[3] or 1.0) for row in each]
        kind.append(LINEAR if each[0][3] is None else DECAYING)
        first.append(len(rows))
    classes = UtilityClasses(np.array(first), *np.array(rows, dtype=float).T, np.array(kind))
    columns = [np.array([task[i] for task in event.tasks]) for i in (3, 4, 5)]
    priority, urgency = columns[0].astype(float), columns[1].astype(float)
    return utility_tables(UtilityFunctions(priority, urgency, columns[2].astype(int), classes, event.unit_s))


def limits_of(event: Event) -> ParallelLimits:
    """Return the day's limits."""
    return ParallelLimits(
        event.now,
        float(event.day_end),
        float(event.remaining_j),
        float(event.task_budget_j),
        float(event.resource_budget_w),
        weights_of(event).table,
    )


def decisions(event: Event, placed) -> list:
    """Return a kernel's answer in the oracle's form."""
    answer = []
    for i, row in enumerate(placed.rows.tolist()):
        hosts = placed.hosts[placed.offsets[i] : placed.offsets[i + 1]].tolist()
        c = next(c for c, members in enumerate(event.clusters) if hosts[0] in members)
        task = event.tasks[row][0]
        answer.append((task, c, int(placed.pstates[i]), float(placed.starts[i]), hosts))
    return answer


def decide(event: Event, objective: str, later=None, spent_j=0.0, goal_j=INF, soon=INF) -> list:
    """Let the greedy kernel decide."""
    nodes, (free_at, reserved) = nodes_of(event), free_and_reserved(event)
    profile = node_profile(nodes, free_at, reserved)
    number = OBJECTIVES[objective]
    placed = map_parallel(
        number,
        OBJECTIVES[later] if later else number,
        spent_j,
        goal_j,
        soon,
        nodes,
        profile,
        rows_of(event),
        functions_of(event),
        limits_of(event),
    )
    return decisions(event, placed)


def profile_and_rows(event: Event):
    """Return what the comparison heuristics take."""
    nodes, about = nodes_of(event), free_and_reserved(event)
    return nodes, node_profile(nodes, *about), rows_of(event)


# ---------------------------------------------------------------------- what is drawn


def random_event(draw: random.Random) -> Event:
    """Return a small event, full of ties and of things that do not fit."""
    even = draw.random() < 0.7
    evening = draw.random() < 0.35

    def length() -> float:
        return float(draw.choice((1, 2, 3, 4, 6, 8))) if even else draw.uniform(0.5, 9)

    clusters, cores, host = [], [], 0
    for _ in range(draw.randint(1, 3)):
        size = draw.choice((1, 2, 3, 4, 5, 70) if draw.random() < 0.1 else (1, 2, 3, 4, 5))
        clusters.append(list(range(host, host + size)))
        cores.append(draw.choice((1, 2, 10)))
        host += size
    busy = {h: [] for h in range(host)}
    for members in clusters:
        if draw.random() < 0.6:
            for h in members[: draw.randint(0, len(members))]:
                busy[h].append((NOW - 1, NOW + length()))
        for _ in range(draw.choice((0, 0, 1, 2))):  # what is reserved, on whole sets of nodes
            some = draw.sample(members, draw.randint(1, min(4, len(members))))
            start = max([NOW + length(), *(e for h in some for _, e in busy[h])])
            start += draw.choice((0, 0, 1.0, 2.5))
            for h in some:
                busy[h].append((start, start + 2.0))
        off = draw.choice([None] * 5 + members)
        if off is not None and len(members) > 1:
            members.remove(off)

    def options(task_clusters: list) -> dict:
        found = {}
        for c in task_clusters:
            n, powers = draw.randint(1, len(clusters[c]) + draw.choice((0, 0, 1))), (1, 2, 2, 3, 0)
            times = [length() for _ in range(n_pstates)]
            found[c] = (n, [(t, t * n * (draw.choice(powers) if even else draw.uniform(0.5, 2))) for t in times])
        return found

    n_pstates = draw.randint(1, 3)
    tasks = []
    for id in sorted(draw.sample(range(40), draw.randint(1, 8))):
        like = draw.choice(tasks)[1] if tasks and draw.random() < 0.3 else None
        some = draw.sample(range(len(clusters)), draw.randint(1, len(clusters)))
        tasks.append(
            (
                id,
                like or options(some),
                NOW - draw.choice((0, 0, 1, 7, 20, 5000)),
                float(draw.choice((1, 1, 2, 8))),
                draw.choice((0.0, 0.0, 0.1, 0.6, 3.0)),
                draw.randrange(len(CLASSES)),
            )
        )
    remaining_j = draw.choice((INF, INF, 80.0, draw.uniform(0, 60), float(draw.randint(0, 12))))
    day_end = draw.choice((INF, 60.0, NOW + draw.randint(0, 12), NOW + draw.uniform(0, 10)))
    if evening:
        remaining_j, day_end = draw.uniform(4, 40), NOW + draw.uniform(4, 14)
    weights = random_weights(draw)
    if weights and not evening and draw.random() < 0.5:
        remaining_j, day_end = draw.uniform(4, 40), 60.0
    return Event(
        NOW,
        day_end,
        clusters,
        cores,
        busy,
        tasks,
        CLASSES,
        draw.choice((1.0, 2.0)),
        remaining_j,
        task_budget_j=draw.choice((INF, INF, INF, draw.uniform(0, 30))),
        resource_budget_w=draw.choice((INF, INF, 1.0, draw.uniform(0, 3))),
        **weights,
    )


seeds = given(seed=st.integers(0, 2**63))


# ---------------------------------------------------------------------- node profiles


@settings(max_examples=120, deadline=None)
@seeds
def test_earliest_start_as_defined(seed: int):
    """The first candidate at which enough nodes are free for the whole time."""
    draw = random.Random(seed)
    event = random_event(draw)
    _, profile, _ = profile_and_rows(event)
    for c, members in enumerate(event.clusters):
        for n in range(1, len(members) + 2):
            time = draw.choice((1.0, 2.0, 3.0, draw.uniform(0, 9)))
            start, spare = call_earliest(profile, c, n, time, -INF, INF)
            wanted = plain.earliest(event, c, n, time)
            assert start == (INF if wanted is None else wanted)
            since = draw.choice((start, draw.uniform(event.now, min(start, event.now + 99.0))))
            assert call_earliest(profile, c, n, time, since, INF) == (start, spare)
            assert call_earliest(profile, c, n, time, since, start) == (start, spare)
            if start < INF:
                too_soon = math.nextafter(start, -INF)
                assert call_earliest(profile, c, n, time, -INF, too_soon) == (INF, 0)
            if wanted is not None:
                assert spare == len(plain.free_nodes(event, c, start, time)) - n


def call_earliest(*arguments) -> tuple[float, int]:
    """Call what is made for kernels only."""
    return earliest.py_func(*arguments)


def example_profile():
    """Return C6's cluster: four nodes, n1 and n2 busy until 10."""
    nodes = cluster_nodes([np.arange(4)], 4)
    nothing = np.empty(0)
    reserved = Reserved(nothing, nothing, np.zeros(1, np.int64), np.empty(0, np.int64))
    return node_profile(nodes, np.array([10.0, 10.0, 0.0, 0.0]), reserved)


def test_nodes_with_equal_gaps_share_a_row():
    """Two rows for four nodes, of which two are busy until the same time."""
    profile = example_profile()
    assert profile.size.tolist() == [2]
    assert profile.begin[0, :2].tolist() == [0.0, 10.0]
    assert profile.n_nodes[0, :2].tolist() == [2, 2]
    assert profile.bits[0, profile.bits_of[0, :2], 0].tolist() == [0b1100, 0b0011]


# ---------------------------------------------------------------------- C6 by hand


def example(value_of_t3: float = 3.0, t2_s: float = 10.0) -> Event:
    """Return C6's cluster of four nodes with tasks T1, T2 and T3 of constant utility."""
    tasks = [
        (number, {0: (n, [(time, time * n)])}, 0.0, worth, 0.0, 0)
        for number, n, time, worth in ((1, 3, 20.0, 6.0), (2, 2, t2_s, 2.0), (3, 2, 15.0, value_of_t3))
    ]
    busy = {0: [], 1: [(-1.0, 10.0)], 2: [(-1.0, 10.0)], 3: [], 4: []}
    constant = [[(0.0, 1.0, 1.0, None), (1.0, 1.0, 0.0, None)]]
    return Event(0.0, INF, [[1, 2, 3, 4]], [10], busy, tasks, constant, 1e9, INF)


def played(event: Event, kernel, *more) -> list:
    """Return the decisions of a comparison heuristic as (task, start, nodes)."""
    nodes = cluster_nodes(event.clusters, 5)
    nothing = np.empty(0)
    reserved = Reserved(nothing, nothing, np.zeros(1, np.int64), np.empty(0, np.int64))
    profile = node_profile(nodes, np.array([0.0, 10.0, 10.0, 0.0, 0.0]), reserved)
    placed = kernel(nodes, profile, rows_of(event), *more, limits_of(event), False)
    return [(task, start, hosts) for task, _, _, start, hosts in decisions(event, placed)]


def one_queue(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the queue of each row, and the quotas, of a single queue."""
    return np.zeros(m, dtype=np.int64), np.array([m + 1])


def test_conservative_example():
    """T1 waits for three nodes, T2 starts at once, T3 follows on the first two nodes."""
    found = played(example(), parallel_queues.place_in_cycles, *one_queue(3))
    assert found == [(1, 10.0, [1, 2, 3]), (2, 0.0, [3, 4]), (3, 30.0, [1, 2])]


def test_easy_example():
    """One reservation only; T2 overtakes where it ends in time."""
    found = played(example(), parallel_queues.place_easily, False)
    assert found == [(1, 10.0, [1, 2, 3]), (2, 0.0, [3, 4])]
    found = played(example(t2_s=15.0), parallel_queues.place_easily, False)
    assert found == [(1, 10.0, [1, 2, 3])]


def test_max_upr_example():
    """T3 is worth most per resource; T1 wins the tie against T2 by its id."""
    event = example(4.5)
    nodes = cluster_nodes(event.clusters, 5)
    nothing = np.empty(0)
    reserved = Reserved(nothing, nothing, np.zeros(1, np.int64), np.empty(0, np.int64))
    free_at = np.array([0.0, 10.0, 10.0, 0.0, 0.0])
    placed = map_parallel(
        UPR,
        UPR,
        0.0,
        INF,
        INF,
        nodes,
        node_profile(nodes, free_at, reserved),
        rows_of(event),
        functions_of(event),
        limits_of(event),
    )
    found = [(task, start, hosts) for task, _, _, start, hosts in decisions(event, placed)]
    assert found == [(3, 0.0, [3, 4]), (1, 15.0, [1, 3, 4]), (2, 35.0, [1, 3])]
    assert found == [(t, s, h) for t, _, _, s, h in plain.greedy(example(4.5), "upr")]


# ---------------------------------------------------------------------- against the plain loops


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=120, deadline=None)
@seeds
def test_lazy_greedy_decides_as_the_plain_loop(objective: str, seed: int):
    """Same tasks, places and starts in the same order."""
    event = random_event(random.Random(seed))
    assert decide(copy.deepcopy(event), objective) == plain.greedy(event, objective)


@settings(max_examples=120, deadline=None)
@seeds
def test_the_objective_changes_where_the_plain_loop_changes_it(seed: int):
    """Task-Based: by resources until the goal energy is reached, then by energy."""
    draw = random.Random(seed)
    event = random_event(draw)
    about = ("upr", "upe", draw.choice((0.0, 3.0)), draw.uniform(0, 60))
    assert decide(copy.deepcopy(event), *about) == plain.greedy(event, *about)


@settings(max_examples=120, deadline=None)
@seeds
def test_what_starts_soon_is_decided_as_ever(seed: int):
    """What starts later is not returned, and yet it takes nodes and energy from the rest."""
    draw = random.Random(seed)
    event = random_event(draw)
    objective, soon = draw.choice(list(OBJECTIVES)), NOW + draw.choice((0.0, 1.0, 2.5))
    whole = decide(copy.deepcopy(event), objective)
    found = decide(event, objective, soon=soon)
    assert found == [decision for decision in whole if decision[3] <= soon]


@settings(max_examples=120, deadline=None)
@seeds
def test_queues_decide_as_the_plain_loop(seed: int):
    """Conservative, three queues in cycles, EASY."""
    draw = random.Random(seed)
    event = random_event(draw)
    m, exists = len(event.tasks), draw.random() < 0.3
    queues, quotas = [draw.randrange(3) for _ in range(m)], [1, 2, 3]
    first = draw.random() < 0.5
    for queue_of, each in ((queues, quotas), ([0] * m, [m])):
        nodes, profile, rows = profile_and_rows(event)
        placed = parallel_queues.place_in_cycles(
            nodes, profile, rows, np.array(queue_of), np.array(each), limits_of(event), first
        )
        wanted = plain.by_queues(copy.deepcopy(event), queue_of, each, first=first)
        assert decisions(event, placed) == wanted
    nodes, profile, rows = profile_and_rows(event)
    placed = parallel_queues.place_easily(nodes, profile, rows, exists, limits_of(event), first)
    wanted = plain.easy(copy.deepcopy(event), reservation_exists=exists, first=first)
    assert decisions(event, placed) == wanted


@settings(max_examples=120, deadline=None)
@seeds
def test_random_places_as_the_plain_loop(seed: int):
    """The same pairs for the same uniform numbers."""
    draw = random.Random(seed)
    event = random_event(draw)
    nodes, profile, rows = profile_and_rows(event)
    pairs = rows.time_s.shape[1] * rows.time_s.shape[2]
    uniforms = [[draw.choice((draw.random(), 0.0, 1 - 2**-53)) for _ in range(pairs)] for _ in event.tasks]
    placed = parallel_queues.place_randomly(nodes, profile, rows, np.array(uniforms), limits_of(event))
    assert decisions(event, placed) == plain.randomly(copy.deepcopy(event), uniforms)


@settings(max_examples=100, deadline=None)
@seeds
def test_no_two_allocations_share_a_node(seed: int):
    """Whatever is placed, a node runs one thing at a time, and what is reserved stays."""
    event = random_event(random.Random(seed))
    intervals = copy.deepcopy(event.busy)
    tasks = {task[0]: task for task in event.tasks}
    for id, c, k, start, hosts in decide(event, "upr"):
        width, pstates = tasks[id][1][c]
        assert len(set(hosts)) == width
        assert set(hosts) <= set(event.clusters[c])
        for h in hosts:
            intervals[h].append((start, start + pstates[k][0]))
    for each in intervals.values():
        ordered = sorted(each)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(ordered))


def test_random_events_draw_what_matters():
    """The drawn events hold every special situation that a lazy loop could get wrong."""
    seen: Counter = Counter()
    for seed in range(400):
        draw = random.Random(seed)
        event = random_event(draw)
        seen["nearly empty"] += event.remaining_j < 12
        seen["last hours"] += event.day_end < 45
        seen["reserved"] += any(b > NOW for each in event.busy.values() for b, _ in each)
        plain.greedy(event, draw.choice(list(OBJECTIVES)), "upe", 0.0, 20.0)
        seen.update(name for name in event.seen if isinstance(name, str))
    wanted = {
        "tie",
        "tie of nodes",
        "too wide",
        "too late",
        "too much energy",
        "filtered",
        "crossing",
        "nearly empty",
        "last hours",
        "reserved",
        "starts now",
        "starts later",
        "switched",
    }
    assert {name for name in wanted if seen[name] < 40} == set(), seen
    assert seen["admissible again"] >= 5, seen
    assert seen["admissible at a lower price"] >= 5, seen
