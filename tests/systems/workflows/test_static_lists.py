"""Static lists beside schedules by hand, plain programs of the same rules, and the best schedule there is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workflow_examples import ARABNEJAD, TOPCUOGLU, played, scenario_of

from gridsched.policy.registry import entries, make_scheduler
from gridsched.sim.child import simulate_reference

#: All schedulers of workflows that come with gridsched.
IDS = [entry.id for entry in entries() if "workflow" in entry.accepts]


def test_dls_by_hand():
    """Topcuoglu's example: 91, as Topcuoglu, Hariri and Wu print it of DLS beside HEFT's 80.

    Medians 14, 18, 13, 13, 12, 13, 11, 11, 18, 16; static levels of 2 to 6: 52, 40, 47, 46, 40. Once 1 has run on
    machine 3 (0-9), level less start plus median less time is greatest for 2 there: 52 - 9 + 18 - 18; then for 4 on 2:
    47 - 18 + 13 - 8 = 34; then for 5 on 1, 46 - 20 + 12 - 12 = 26; 6 on 3, 40 - 27 + 13 - 9 = 17, and 3 on 2.
    """
    assert played(TOPCUOGLU, "dls") == {
        1: (3, 0, 9), 2: (3, 9, 27), 3: (2, 26, 39), 4: (2, 18, 26), 5: (1, 20, 32),
        6: (3, 27, 36), 7: (1, 62, 69), 8: (1, 53, 58), 9: (2, 45, 57), 10: (1, 70, 91),
    }  # fmt: skip


def test_hbmct_by_hand():
    """Topcuoglu's example: groups {1}, {3, 4, 2, 5, 6}, {9, 7, 8}, {10}.

    The second begins with 2, 3, 5 and 6 on machine 3 (9-65) and 4 on 2 (18-26). 3 goes to 1 (21-32): 46 on 3. Then 5
    goes to 2, behind 4 (26-39): 36 on 3, the group ends at 39, and no further move helps. In the third all are where
    they end earliest alone: 7 on 1 (32-39), 8 on 1 (53-58), 9 on 2 (43-55), 10 there at 58 + 11.
    """
    assert played(TOPCUOGLU, "hbmct") == {
        1: (3, 0, 9), 2: (3, 9, 27), 3: (1, 21, 32), 4: (2, 18, 26), 5: (2, 26, 39),
        6: (3, 27, 36), 7: (1, 32, 39), 8: (1, 53, 58), 9: (2, 43, 55), 10: (2, 69, 76),
    }  # fmt: skip


class Plan:
    """A plan on machines of one core, each an unordered list of (start, end)."""

    def __init__(self, times, edges) -> None:
        self.times, self.edges = times, edges
        self.rows = [[] for _ in times[0]]
        self.at = {}

    def copy(self) -> Plan:
        """Return another one with the same tasks."""
        other = Plan(self.times, self.edges)
        other.rows, other.at = [list(row) for row in self.rows], dict(self.at)
        return other

    def put(self, task: int, host: int) -> float:
        """Put a task into the earliest gap of a machine, by the others that have a place; return its end."""
        ready, time = 0, self.times[task - 1][host]
        for other, this, size in self.edges:
            if this == task and other in self.at:
                ready = max(ready, self.at[other][1] + size * (self.at[other][0] != host))
        starts = sorted([ready, *(end for _, end in self.rows[host] if end > ready)])
        start = next(s for s in starts if all(e <= s or b >= s + time for b, e in self.rows[host]))
        self.rows[host].append((start, start + time))
        self.at[task] = host, start + time
        return start + time

    def put_best(self, task: int, weight=None) -> float:
        """Put a task where its end, or the sum of its end and the machine's weight, is least."""
        hosts, weight = range(len(self.rows)), weight or [0] * len(self.rows)
        return self.put(task, min(hosts, key=lambda host: (self.copy().put(task, host) + weight[host], host)))


def ranks_of(times, edges) -> tuple[dict, dict]:
    """Return upward and downward rank of each task; the mean transfer between two machines that differ is the size."""
    mean = [Fraction(sum(row), len(row)) for row in times]
    up, down = {}, {}
    for task in range(len(times), 0, -1):
        up[task] = mean[task - 1] + max((size + up[this] for other, this, size in edges if other == task), default=0)
    for task in range(1, len(times) + 1):
        before = [down[other] + mean[other - 1] + size for other, this, size in edges if this == task]
        down[task] = max(before, default=0)
    return up, down


def falling(ranks: dict) -> list[int]:
    """Return tasks by falling rank, of equals the lowest id first."""
    return sorted(ranks, key=lambda task: (-ranks[task], task))


def as_ready(plan: Plan, ranks: dict, put) -> None:
    """Put tasks of which all others have a place, the highest rank first."""
    while len(plan.at) < len(ranks):
        waits = {this for other, this, _ in plan.edges if other not in plan.at}
        put(next(task for task in falling(ranks) if task not in plan.at and task not in waits))


def by_heft(times, edges) -> Plan:
    """Return the plan of HEFT by its words alone."""
    plan = Plan(times, edges)
    for task in falling(ranks_of(times, edges)[0]):
        plan.put_best(task)
    return plan


def by_cpop(times, edges) -> Plan:
    """Return the plan of CPOP by its words alone."""
    up, down = ranks_of(times, edges)
    ranks = {task: up[task] + down[task] for task in up}
    path = [next(task for task in falling(ranks) if not down[task])]
    while on := [this for other, this, _ in sorted(edges) if other == path[-1] and ranks[this] == ranks[path[0]]]:
        path.append(min(on))
    sums = [sum(times[task - 1][host] for task in path) for host in range(len(times[0]))]
    plan = Plan(times, edges)
    best = sums.index(min(sums))
    as_ready(plan, ranks, lambda task: plan.put(task, best) if task in path else plan.put_best(task))
    return plan


def by_peft(times, edges) -> Plan:
    """Return the plan of PEFT by its words alone."""
    hosts = range(len(times[0]))
    cost = {}
    for task in range(len(times), 0, -1):
        behind = [(this, size) for other, this, size in edges if other == task]
        cost[task] = [
            max(
                (min(cost[t][h] + times[t - 1][h] + size * (h != host) for h in hosts) for t, size in behind), default=0
            )
            for host in hosts
        ]
    plan = Plan(times, edges)
    ranks = {task: Fraction(sum(row), len(row)) for task, row in cost.items()}
    as_ready(plan, ranks, lambda task: plan.put_best(task, cost[task]))
    return plan


def by_lookahead(times, edges) -> Plan:
    """Return the plan of HEFT with lookahead by its words alone."""
    order = falling(ranks_of(times, edges)[0])
    plan = Plan(times, edges)
    for task in order:
        children = [child for child in order if any((a, b) == (task, child) for a, b, _ in edges)]
        best = None
        for host in range(len(times[0])):
            trial = plan.copy()
            end = trial.put(task, host)
            latest = max((trial.put_best(child) for child in children), default=end)
            best = min(filter(None, [best, (latest, end, host)]))
        plan.put(task, best[2])
    return plan


PLAIN = {"heft": by_heft, "cpop": by_cpop, "peft": by_peft, "lookahead_heft": by_lookahead}


def check_plain(id: str, example) -> None:
    """Compare a static list with its plain program: each task has the same machine and end."""
    plan = PLAIN[id](*example)
    found = {task: (machine, end) for task, (machine, _, end) in played(example, id).items()}
    assert found == {task: (host + 1, end) for task, (host, end) in plan.at.items()}


@pytest.mark.parametrize("example", [TOPCUOGLU, ARABNEJAD])
@pytest.mark.parametrize("id", PLAIN)
def test_a_list_is_what_its_words_say(id, example):
    """A plain program of the same rule gives each task of the printed examples the same machine and end."""
    check_plain(id, example)


@st.composite
def small_graphs(draw, most=6, machines=(2, 3)):
    """Return times and edges of up to so many tasks on two or three machines, or other numbers of them."""
    n, hosts = draw(st.integers(1, most)), draw(st.sampled_from(machines))
    times = draw(st.lists(st.lists(st.integers(1, 9), min_size=hosts, max_size=hosts), min_size=n, max_size=n))
    pairs = [(a, b) for b in range(2, n + 1) for a in range(1, b)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    if not chosen:
        times, chosen = [*times, [1] * hosts], [(1, n + 1)]
    return times, [(a, b, draw(st.integers(0, 12))) for a, b in sorted(chosen)]


@given(small_graphs(most=9, machines=(2, 4)))
@settings(max_examples=60, deadline=None)
def test_a_list_is_what_its_words_say_of_random_graphs(graph):
    """Ends, ranks and costs are often equal; means over two or four machines are exact, and so are these equals.

    Lookahead tries the tasks that wait for one by what had a place before: where one of them waits for another of them,
    the plain program knows more.
    """
    pairs = {(on, task) for on, task, _ in graph[1]}
    among = any((a, c) in pairs for a, b in pairs for other, c in pairs if other == b)
    for id in PLAIN:
        if id != "lookahead_heft" or not among:
            check_plain(id, graph)


def optimum(times, edges) -> float:
    """Return the least makespan: every order of tasks that waits for all before, every machine for each."""
    least = [min(row) for row in times]
    tail = {}
    for task in range(len(times), 0, -1):
        tail[task] = least[task - 1] + max((tail[b] for a, b, _ in edges if a == task), default=0)
    best = np.inf

    def extend(at: dict, free: tuple, end: float) -> None:
        nonlocal best
        if len(at) == len(times):
            best = min(best, end)
            return
        for task in range(1, len(times) + 1):
            before = [(a, size) for a, b, size in edges if b == task]
            if task in at or not all(a in at for a, _ in before):
                continue
            for host, since in enumerate(free):
                start = max([since, *(at[a][1] + size * (at[a][0] != host) for a, size in before)])
                if start + tail[task] < best:
                    done = start + times[task - 1][host]
                    extend({**at, task: (host, done)}, (*free[:host], done, *free[host + 1 :]), max(end, done))

    extend({}, (0,) * len(times[0]), 0)
    return best


@given(small_graphs())
@settings(max_examples=25, deadline=None)
def test_no_list_beats_the_optimum(graph):
    """Nor does the optimum beat the longest way of least times, and precedence is kept by all."""
    least = optimum(*graph)
    for id in IDS:
        spans = {}
        for e in simulate_reference(scenario_of(graph, id), make_scheduler(id)).executions:
            spans[e["task"] + 1] = e["host"], e["start"], e["end"]
        assert len(spans) == len(graph[0])
        assert max(end for _, _, end in spans.values()) >= least - 1e-6, id
        for on, task, size in graph[1]:
            sent = size if spans[on][0] != spans[task][0] else 0
            assert spans[task][1] >= spans[on][2] + sent - 1e-6, id
