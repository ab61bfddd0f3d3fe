"""The plain loops of algorithms B1 and B4 to B6. Imports nothing of gridsched."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from parallel_oracle import cost, inside_j

INF = math.inf


@dataclass
class Event:
    """One mapping event. Times [s], energies [J]; hosts, task types and tasks are numbered.

    A utility class is a list of (start time, start fraction, end fraction, modifier) rows; with
    modifier None, the value is linear in the row's interval. A task is (id, task type, arrival,
    priority, urgency, class).
    """

    etc: list
    eec: list
    host_type: list
    ready: list
    tasks: list
    classes: list
    unit_s: float
    remaining_j: float
    task_budget: float
    day_end: float
    now: float = 0.0
    weights: list = field(default_factory=list)
    cycle: float = 50.0
    seen: set = field(default_factory=set)


def utility(event: Event, task: tuple, end: float) -> float:
    """B1."""
    _, _, arrival, priority, urgency, number = task
    tau, rows = (end - arrival) / event.unit_s, event.classes[number]
    if end == INF:
        return 0.0
    number = max(k for k, row in enumerate(rows) if row[0] <= tau)
    start, fraction, floor, modifier = rows[number]
    if modifier is None:
        if fraction == floor:
            return priority * fraction
        share = (tau - start) / (rows[number + 1][0] - start)
        return priority * max(fraction + (floor - fraction) * share, floor)
    return priority * max(fraction * math.exp(-urgency * modifier * (tau - start)), floor)


def pairs(event: Event, task: tuple, hosts: list) -> list:
    """Feasible (host, P-state, ready time, ETC, EEC) on the given hosts."""
    found = []
    for host in hosts:
        j = event.host_type[host]
        for k, time in enumerate(event.etc[task[1]][j]):
            if time < INF and event.ready[host] < INF:
                found.append((host, k, event.ready[host], time, event.eec[task[1]][j][k]))
    return found


def possible(event: Event, pair: tuple) -> bool:
    """B4 (i) and (ii)."""
    _, _, ready, time, energy = pair
    return ready < event.day_end and inside_j(event, ready, time, energy) <= event.remaining_j


def ever_possible(event: Event, pair: tuple) -> bool:
    """B4 (i) and (ii), at the lowest price that there is."""
    least = min((weight for _, weight in event.weights), default=1.0)
    _, _, ready, time, energy = pair
    if ready >= event.day_end:
        return False
    share = 1.0 if ready + time <= event.day_end else (event.day_end - ready) / time
    return least * (energy * share) <= event.remaining_j


def earliest_hosts(event: Event) -> list:
    """The earliest-ready host of each type, the lowest id of equals."""
    best = {}
    for host, j in enumerate(event.host_type):
        if j not in best or event.ready[host] < event.ready[best[j]]:
            best[j] = host
    return sorted(best.values())


def objective_of(event: Event, objective: str, task: tuple, pair: tuple) -> float:
    """B6: what an option is worth."""
    _, _, ready, time, energy = pair
    end = ready + time
    if objective == "comp":
        return -end
    value = utility(event, task, end)
    divisor = {"util": 1.0, "upt": time, "upe": cost(event, time, energy)}[objective]
    return value / divisor if divisor > 0 else (INF if value > 0 else 0.0)


def reason(event: Event, task: tuple, hosts: list) -> str:
    """Why a task is left: "stays" or "impossible"."""
    feasible = pairs(event, task, range(len(event.ready)))
    if not feasible or any(ever_possible(event, pair) for pair in pairs(event, task, hosts)):
        return "stays"  # without feasible pairs: all hosts that could run it are off
    return "impossible"


def assign(event: Event, pair: tuple) -> None:
    """Update ready time and energy remaining."""
    host, _, ready, time, energy = pair
    event.remaining_j -= inside_j(event, ready, time, energy)
    event.ready[host] = ready + time


def note(event: Event, scored: list) -> None:
    """Record which special situations an iteration contains."""
    values = [value for value, _, _ in scored]
    if len(values) > len(set(values)):
        event.seen.add("tie")


def two_stage(event: Event, objective: str) -> tuple[list, dict]:
    """B6: return [(task id, host, P-state)] in order, and why each other task is left."""
    left, decided, blocked = list(event.tasks), [], {}
    while True:
        scored = []
        for task in left:
            for pair in pairs(event, task, earliest_hosts(event)):
                key = (task[0], pair[0], pair[1])
                if not possible(event, pair):
                    blocked[key] = True
                    event.seen.add("blocked")
                elif cost(event, pair[3], pair[4]) > event.task_budget:
                    event.seen.add("filtered")
                else:
                    if blocked.pop(key, False):
                        event.seen.add("admissible again")
                        if pair[2] + pair[3] <= event.day_end:
                            event.seen.add("admissible at a lower price")
                    if pair[2] + pair[3] > event.day_end:
                        event.seen.add("crossing")
                    scored.append((objective_of(event, objective, task, pair), task, pair))
        if not scored:
            break
        note(event, scored)
        _, task, pair = min(scored, key=lambda s: (-s[0], s[1][0], s[2][0], s[2][1]))
        decided.append((task[0], pair[0], pair[1]))
        assign(event, pair)
        left.remove(task)
    return decided, {task[0]: reason(event, task, earliest_hosts(event)) for task in left}


def randomly(event: Event, uniforms: list) -> tuple[list, dict]:
    """B6, Random: as `two_stage`, with one uniform number for each task."""
    decided, reasons = [], {}
    everywhere = range(len(event.ready))
    for task, uniform in zip(event.tasks, uniforms, strict=True):
        admissible = [
            pair
            for pair in pairs(event, task, everywhere)
            if possible(event, pair) and cost(event, pair[3], pair[4]) <= event.task_budget
        ]
        if not admissible:
            reasons[task[0]] = reason(event, task, everywhere)
            continue
        pair = admissible[int(uniform * len(admissible))]
        decided.append((task[0], pair[0], pair[1]))
        assign(event, pair)
    return decided, reasons


def falls_short(event: Event, task: tuple, threshold: float) -> bool:
    """B4: whether the task is dropped before the heuristic is called."""
    ends = [event.ready[host] + event.etc[task[1]][j][0] for host, j in enumerate(event.host_type)]
    return min(ends) < INF and utility(event, task, min(ends)) < threshold
