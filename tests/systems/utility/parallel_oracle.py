"""Parallel tasks decided in plain words, and what energy counts in a budget (serial tasks, too)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

# What energy counts in a budget, in plain words: for the oracles of serial and parallel tasks.


def inside_j(event: Any, start: float, time: float, energy: float) -> float:
    """What the energy before the day's end counts."""
    if start >= event.day_end:
        return 0.0
    until = min(start + time, event.day_end)
    if until < start + time:
        energy *= (event.day_end - start) / time
    return energy * mean_weight(event, start, until)


def mean_weight(event: Any, start: float, end: float) -> float:
    """Mean of what a joule counts between two times."""
    if len(event.weights) < 2 or not end > start:
        return 1.0
    return (counted(event, end) - counted(event, start)) / (end - start)


def counted(event: Any, time: float) -> float:
    """What 1 W counts from 0 on, through the weights (begin, weight), again and again."""
    of_cycle, begin = [0.0], 0.0
    ends = [*(begin for begin, _ in event.weights[1:]), event.cycle]
    for (begin, weight), end in zip(event.weights, ends, strict=True):
        of_cycle.append(of_cycle[-1] + weight * (end - begin))
    cycles = math.floor(time / event.cycle)
    within = time - cycles * event.cycle
    line = max(k for k, (begin, _) in enumerate(event.weights) if begin <= within)
    begin, weight = event.weights[line]
    return cycles * of_cycle[-1] + (of_cycle[line] + weight * (within - begin))


def cost(event: Any, time: float, energy: float) -> float:
    """What a whole option counts if it runs from now on."""
    return energy * mean_weight(event, event.now, event.now + time)


# The plain loops of algorithms C3 to C5. Imports nothing of gridsched.

INF = math.inf


@dataclass
class Event:
    """One mapping event. Times [s], energies [J]; clusters, nodes and tasks are numbered.

    `busy` maps each node to its busy intervals from now on; nodes that are off are in no cluster.
    A task is (id, {cluster: (nodes, [(time, energy) of each P-state])}, arrival, priority,
    urgency, class); a class is a list of (start time, start fraction, end fraction, modifier) rows
    as in algorithms B1.
    """

    now: float
    day_end: float
    clusters: list
    cores: list
    busy: dict
    tasks: list
    classes: list
    unit_s: float
    remaining_j: float
    task_budget_j: float = INF
    resource_budget_w: float = INF
    weights: list = field(default_factory=list)
    cycle: float = 50.0
    seen: set = field(default_factory=set)


def earliest(event: Event, c: int, n: int, time: float) -> float | None:
    """C3: first s at which n nodes are free on [s, s+d)."""
    ends = {e for h in event.clusters[c] for _, e in event.busy[h] if e > event.now}
    for s in sorted({event.now} | ends):
        if s < INF and len(free_nodes(event, c, s, time)) >= n:
            return s
    return None


def free_nodes(event: Event, c: int, s: float, time: float) -> list:
    """Return the nodes that are free on [s, s+d)."""
    return [h for h in event.clusters[c] if all(e <= s or b >= s + time for b, e in event.busy[h])]


def choose(event: Event, c: int, n: int, s: float, time: float) -> list:
    """C3: the nodes with fewest voids, then smallest gaps, then lowest ids."""
    scored = []
    for h in free_nodes(event, c, s, time):
        g_s = max([event.now] + [e for _, e in event.busy[h] if e <= s])
        g_e = min([INF] + [b for b, _ in event.busy[h] if b >= s + time])
        net = int(s > g_s) + int(g_e < INF and s + time < g_e) - int(g_e < INF)
        scored.append((net, g_e - g_s, h))
    if len({key[:2] for key in scored}) < len(scored) and len(scored) > n:
        event.seen.add("tie of nodes")
    return sorted(h for _, _, h in sorted(scored)[:n])


def utility(event: Event, task: tuple, end: float) -> float:
    """B1."""
    _, _, arrival, priority, urgency, number = task
    tau, rows = (end - arrival) / event.unit_s, event.classes[number]
    number = max(k for k, row in enumerate(rows) if row[0] <= tau)
    start, fraction, floor, modifier = rows[number]
    if modifier is None:
        if fraction == floor:
            return priority * fraction
        share = (tau - start) / (rows[number + 1][0] - start)
        return priority * max(fraction + (floor - fraction) * share, floor)
    return priority * max(fraction * math.exp(-urgency * modifier * (tau - start)), floor)


def admissible(event: Event, task: tuple) -> list:
    """Options (cluster, P-state, start) that may be chosen."""
    found = []
    for c, (n, pstates) in sorted(task[1].items()):
        if n > len(event.clusters[c]):
            event.seen.add("too wide")
        for k, (time, energy) in enumerate(pstates):
            start = earliest(event, c, n, time)
            if start is None or time == INF:
                continue
            if start >= event.day_end:
                event.seen.add("too late")
                continue
            whole = cost(event, time, energy)
            if whole > event.task_budget_j or (whole / (time * float(n * event.cores[c])) > event.resource_budget_w):
                event.seen.add("filtered")
                continue
            if inside_j(event, start, time, energy) > event.remaining_j:
                event.seen.add("too much energy")
                event.seen.add((task[0], c, k))
                continue
            if (task[0], c, k) in event.seen:
                event.seen.add("admissible again")
                if start + time <= event.day_end:
                    event.seen.add("admissible at a lower price")
            if start + time > event.day_end:
                event.seen.add("crossing")
            found.append((c, k, start))
    return found


def assign(event: Event, task: tuple, option: tuple) -> tuple:
    """Fix an option; return (task id, cluster, P-state, start, nodes)."""
    c, k, start = option
    n, pstates = task[1][c]
    time, energy = pstates[k]
    nodes = choose(event, c, n, start, time)
    for h in nodes:
        event.busy[h] = sorted([*event.busy[h], (start, start + time)])
    event.remaining_j -= inside_j(event, start, time, energy)
    event.seen.add("starts now" if start == event.now else "starts later")
    return task[0], c, k, start, nodes


def objective_of(event: Event, objective: str, task: tuple, option: tuple) -> float:
    """Paper 001, eq. 2 to 5."""
    c, k, start = option
    n, pstates = task[1][c]
    time, energy = pstates[k]
    value = utility(event, task, start + time)
    divisor = {"util": 1.0, "upt": time, "upr": time * float(n * event.cores[c]), "upe": cost(event, time, energy)}[
        objective
    ]
    return value / divisor if divisor > 0 else (INF if value > 0 else 0.0)


def greedy(event: Event, objective: str, later: str | None = None, spent_j=0.0, goal_j=INF) -> list:
    """C4: Max Util, UPT, UPR, UPE; with `later`, Task-Based."""
    left, decided = list(event.tasks), []
    while True:
        scored = [
            (-objective_of(event, objective, task, option), task[0], option[0], option[1], task, option)
            for task in left
            for option in admissible(event, task)
        ]
        if not scored:
            return decided
        best = min(scored, key=lambda each: each[:4])
        if sum(each[0] == best[0] for each in scored) > 1:
            event.seen.add("tie")
        task, option = best[4], best[5]
        before = event.remaining_j
        inside = inside_j(event, option[2], *task[1][option[0]][1][option[1]])
        decided.append(assign(event, task, option))
        assert before == INF or event.remaining_j == before - inside
        spent_j += inside
        left.remove(task)
        if later is not None and objective != later and spent_j >= goal_j:
            objective = later
            event.seen.add("switched")


def by_queues(event: Event, queue_of: list, quotas: list, *, first: bool = False) -> list:
    """C4: conservative (one queue), or several queues with so many tasks of each in a cycle."""
    queues = [
        [task for task, q in zip(event.tasks, queue_of, strict=True) if q == number] for number in range(len(quotas))
    ]
    decided = []
    while any(queues):
        for queue, quota in zip(queues, quotas, strict=True):
            count = 0
            while queue and count < quota:
                task = queue.pop(0)
                option = soonest(event, task, first=first)
                if option is not None:
                    decided.append(assign(event, task, option))
                    count += 1
    return decided


def soonest(event: Event, task: tuple, *, first: bool) -> tuple | None:
    """Admissible option in P-state 0: earliest start, then earliest finish unless `first`, id."""
    options = [each for each in admissible(event, task) if each[1] == 0]
    if not options:
        return None
    ends = {o[0]: 0.0 if first else o[2] + task[1][o[0]][1][0][0] for o in options}
    return min(options, key=lambda o: (o[2], ends[o[0]], o[0]))


def easy(event: Event, *, reservation_exists: bool, first: bool = False) -> list:
    """C4: EASY with one permanent reservation in the system."""
    decided = []
    for task in event.tasks:
        option = soonest(event, task, first=first)
        if option is None:
            continue
        if option[2] > event.now:
            if reservation_exists:
                continue
            reservation_exists = True
        decided.append(assign(event, task, option))
    return decided


def randomly(event: Event, uniforms: list) -> list:
    """C4: a random pair; if it is not admissible another one of the rest."""
    decided = []
    for task, draws in zip(event.tasks, uniforms, strict=True):
        possible = set(admissible(event, task))
        starts = {option[:2]: option for option in possible}
        pairs = [
            (c, k) for c, (_, pstates) in sorted(task[1].items()) for k, (time, _) in enumerate(pstates) if time < INF
        ]
        for uniform in draws[: len(pairs)]:
            pair = pairs.pop(int(uniform * len(pairs)))
            if pair in starts:
                decided.append(assign(event, task, starts[pair]))
                break
    return decided
