"""The compiled utility heuristics decide exactly as the plain loops of algorithms B4 to B6."""

from __future__ import annotations

import copy
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cases import random_weights, weights_of
from two_stage_oracle import INF, Event, falls_short, randomly, two_stage

from gridsched.model.utility import DECAYING, LINEAR, UtilityClasses, UtilityFunctions
from gridsched.schedulers.kernels import utility_value
from gridsched.schedulers.kernels.random_mapping import map_randomly
from gridsched.schedulers.kernels.tables import COMP, UPE, UPT, UTIL, type_tables
from gridsched.schedulers.kernels.two_stage import IMPOSSIBLE, MAPPED, STAYS, map_two_stage
from gridsched.schedulers.kernels.utility_value import utility_tables

OBJECTIVES = {"util": UTIL, "upt": UPT, "upe": UPE, "comp": COMP}
REASONS = {STAYS: "stays", IMPOSSIBLE: "impossible"}
#: Pure exponential; steps without decay where urgency is 0 (ties!); a hard end; linear.
CLASSES = [
    [(0.0, 1.0, 0.0, 1.0)],
    [(0.0, 1.0, 0.5, 1.0), (10.0, 0.5, 0.25, 0.5), (30.0, 0.25, 0.0, 2.0)],
    [(0.0, 1.0, 0.6, 2.0), (12.0, 0.6, 0.0, 1.0), (40.0, 0.0, 0.0, 1.0)],
    [(0.0, 1.0, 1.0, None), (8.0, 1.0, 0.4, None), (20.0, 0.4, 0.0, None), (25.0, 0.0, 0.0, None)],
]


def functions_of(event: Event, n_tasks: int) -> UtilityFunctions:
    """Return the utility functions of an event's tasks, by id."""
    rows, first, kind = [], [0], []
    for each in event.classes:
        rows += [(*row[:3], row[3] or 1.0) for row in each]
        kind.append(LINEAR if each[0][3] is None else DECAYING)
        first.append(len(rows))
    columns = np.array(rows, dtype=float).T
    classes = UtilityClasses(np.array(first), *columns, np.array(kind))
    priority, urgency, number = np.zeros(n_tasks), np.zeros(n_tasks), np.zeros(n_tasks, int)
    for id, _, _, pi, rho, c in event.tasks:
        priority[id], urgency[id], number[id] = pi, rho, c
    return UtilityFunctions(priority, urgency, number, classes, event.unit_s)


def arguments(event: Event, objective: int) -> tuple:
    """Return what kernels want to know of an event: tables, functions, types, arrivals, tasks."""
    ids = np.array([task[0] for task in event.tasks], dtype=np.int64)
    n = int(ids.max(initial=0)) + 1
    task_type, arrival = np.zeros(n, dtype=np.int64), np.zeros(n)
    for task in event.tasks:
        task_type[task[0]], arrival[task[0]] = task[1], task[2]
    cost = weights_of(event).cost_j(np.array(event.eec), event.now, np.array(event.etc))
    tables = type_tables(event.etc, event.eec, event.host_type, objective, cost)
    return tables, utility_tables(functions_of(event, n)), task_type, arrival, ids


def limits(event: Event) -> tuple[float, float, float, np.ndarray]:
    """Return energy remaining, task budget, day's end and what a joule counts."""
    return (float(event.remaining_j), float(event.task_budget), float(event.day_end), weights_of(event).table)


def outcome(mapped, hosts, pstates, reasons, ids) -> tuple[list, dict]:
    """Return a kernel's answer in the oracle's form."""
    decided = list(zip(mapped.tolist(), hosts.tolist(), pstates.tolist(), strict=True))
    pairs = zip(ids.tolist(), reasons.tolist(), strict=True)
    return decided, {id: REASONS[each] for id, each in pairs if each != MAPPED}


def decide(event: Event, objective: str) -> tuple[list, dict]:
    """Let the kernel decide."""
    number = OBJECTIVES[objective]
    given = arguments(event, number)
    ready = np.array(event.ready, dtype=float)
    return outcome(*map_two_stage(number, *given, ready, *limits(event)), given[-1])


def random_event(draw: random.Random) -> Event:
    """Return a small event of a day's last minutes, full of ties and of things that do not fit."""
    evening = draw.random() < 0.3
    n_types, n_host_types, n_pstates = draw.randint(1, 4), draw.randint(1, 4), draw.randint(1, 3)
    n_host_types = 1 if evening else n_host_types
    times = (1, 2, 3, 4, 6, 8, 0.1, 0.3) if draw.random() < 0.7 else None
    powers = (1, 2, 2, 3, 0) if draw.random() < 0.5 else (0.5, 1, 1.5)

    def row() -> list:
        if draw.random() < 0.2:
            return [INF] * n_pstates
        return [float(draw.choice(times)) if times else draw.uniform(1, 9) for _ in range(n_pstates)]

    etc = [[row() for _ in range(n_host_types)] for _ in range(n_types)]
    eec = [[[t * draw.choice(powers) if t < INF else INF for t in each] for each in one] for one in etc]
    now = 30.0
    ready = [
        INF if draw.random() < 0.1 else now + draw.choice((0, 0, 0, 1, 2, 5, draw.uniform(0, 9)))
        for _ in range(draw.randint(1, 2 if evening else 7))
    ]
    tasks = [
        (
            id,
            draw.randrange(n_types),
            now - draw.choice((0, 0, 1, 7, 20, 5000)),
            float(draw.choice((1, 1, 2, 8))),
            draw.choice((0.0, 0.0, 0.1, 0.6, 3.0)),
            draw.randrange(len(CLASSES)),
        )
        for id in sorted(draw.sample(range(40), draw.randint(1, 10)))
    ]
    remaining_j = draw.choice((INF, 40.0, draw.uniform(0, 30), draw.randint(0, 12), -1.0))
    day_end = draw.choice((INF, 60.0, now + draw.randint(0, 12), now + draw.uniform(0, 10)))
    if evening:  # what does not fit now may fit later, once it crosses the day's end
        remaining_j, day_end = draw.uniform(4, 16), now + draw.uniform(4, 12)
    weights = random_weights(draw)
    if weights and not evening and draw.random() < 0.5:  # or once the price is lower
        remaining_j, day_end = draw.uniform(2, 12), 60.0
    return Event(
        etc,
        eec,
        [draw.randrange(n_host_types) for _ in ready],
        ready,
        tasks,
        CLASSES,
        unit_s=draw.choice((1.0, 2.0)),
        remaining_j=remaining_j,
        task_budget=draw.choice((INF, INF, 4.0, draw.uniform(0, 12))),
        day_end=day_end,
        now=now,
        **weights,
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**63))
def test_lazy_greedy_decides_as_the_plain_loop(objective: str, seed: int):
    """Same tasks, hosts and P-states in the same order; the same tasks stay or are given up."""
    event = random_event(random.Random(seed))
    assert decide(copy.deepcopy(event), objective) == two_stage(event, objective)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**63))
def test_random_mapping_decides_as_the_plain_loop(seed: int):
    """The same pairs for the same uniform numbers."""
    draw = random.Random(seed)
    event = random_event(draw)
    uniforms = [draw.choice((draw.random(), 0.0, 1 - 2**-53)) for _ in event.tasks]
    tables, _, task_type, _, ids = arguments(event, UPE)
    ready = np.array(event.ready)
    answer = map_randomly(tables, task_type, ids, np.array(uniforms), ready, *limits(event))
    assert outcome(*answer, ids) == randomly(event, uniforms)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**63))
def test_dropping_as_defined(seed: int):
    """The best utility of P-state 0 decides; equality keeps."""
    event = random_event(random.Random(seed))
    for threshold in (0.5, 1.0, 0.0):
        found = utility_value.falls_short(*arguments(event, UPE), np.array(event.ready), threshold)
        assert found.tolist() == [falls_short(event, task, threshold) for task in event.tasks]


def test_random_events_draw_what_matters():
    """The drawn events hold ties, infeasible pairs, blocked, filtered and crossing options."""
    seen: Counter = Counter()
    for seed in range(1500):
        event = random_event(random.Random(seed))
        seen["infeasible"] += any(INF in each for one in event.etc for each in one)
        seen["nearly empty"] += event.remaining_j < 12
        seen["last hours"] += event.day_end < 45
        _, reasons = two_stage(event, random.Random(seed).choice(list(OBJECTIVES)))
        seen.update(event.seen)
        seen.update(set(reasons.values()))
    wanted = {
        "tie",
        "infeasible",
        "nearly empty",
        "last hours",
        "blocked",
        "filtered",
        "crossing",
        "stays",
        "impossible",
    }
    assert {name for name in wanted if seen[name] < 150} == set(), seen
    assert seen["admissible again"] >= 10, seen
    assert seen["admissible at a lower price"] >= 5, seen
