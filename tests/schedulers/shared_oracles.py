"""Plain simulations of jobs that share nodes; they import nothing of gridsched.

A job is (submission, run time, estimate, partition, parts, anywhere, need), a node a list of what
it has of each resource, cores first; a partition is (nodes, priority). Nothing is fast; every rule
is as docs/shared_nodes.md words it.
"""

from __future__ import annotations

import math

SUBMIT, RUN, ESTIMATE, PARTITION, PARTS, ANYWHERE, NEED = range(7)


def simulate(jobs: list, nodes: list, partitions: list, rule, how: str) -> tuple[list, list]:
    """Step from instant to instant; return the start and the nodes (one for each part) of each job."""
    start, place = [None] * len(jobs), [None] * len(jobs)
    waiting, running, to_come = [], [], list(range(len(jobs)))
    while to_come or waiting or running:
        now = min([start[j] + jobs[j][RUN] for j in running] + [jobs[j][SUBMIT] for j in to_come[:1]])
        running = [j for j in running if start[j] + jobs[j][RUN] != now]
        while to_come and jobs[to_come[0]][SUBMIT] == now:
            waiting.append(to_come.pop(0))
        queue = sorted(waiting, key=lambda j: -partitions[jobs[j][PARTITION]][1])
        taken = [(max(start[j] + jobs[j][ESTIMATE], math.nextafter(now, math.inf)), jobs[j], place[j]) for j in running]
        for j, on in rule(now, [(j, jobs[j]) for j in queue], nodes, partitions, taken, how):
            start[j], place[j] = now, on
            running.append(j)
            waiting.remove(j)
    return start, place


def free_after(time: float, nodes: list, taken: list) -> list:
    """What nodes have left once all has ended that ends by a time."""
    left = [list(node) for node in nodes]
    for end, job, on in taken:
        if end > time:
            for node in on:
                for r, amount in enumerate(job[NEED]):
                    left[node][r] -= amount
    return left


def parts_on(left: list, node: int, job) -> int:
    rooms = [left[node][r] // need for r, need in enumerate(job[NEED]) if need]
    return max(0, min(rooms)) if job[ANYWHERE] else int(min(rooms) > 0)


def lay(left: list, partitions: list, job, how: str, closed=()) -> list | None:
    """Return a node for each part, or nothing."""
    members = [n for n in partitions[job[PARTITION]][0] if n not in closed]
    if how == "spread":
        members = sorted(members, key=lambda n: (-left[n][0], n))
        rooms = {n: parts_on(left, n, job) for n in members}
        chosen = []
        while any(rooms.values()) and len(chosen) < job[PARTS]:
            for n in members:
                if rooms[n] and len(chosen) < job[PARTS]:
                    rooms[n] -= 1
                    chosen.append(n)
        return sorted(chosen) if len(chosen) == job[PARTS] else None
    if how == "contiguous":
        for first in members:
            chosen, node = [], first
            while node in members and parts_on(left, node, job) and len(chosen) < job[PARTS]:
                chosen += [node] * parts_on(left, node, job)
                node += 1
            if len(chosen) >= job[PARTS]:
                return chosen[: job[PARTS]]
        return None
    chosen = [n for n in members for _ in range(parts_on(left, n, job))][: job[PARTS]]
    return chosen if len(chosen) == job[PARTS] else None


def fcfs(now, queue, nodes, partitions, taken, how) -> list:
    """Jobs start in order; one that cannot closes its partition's nodes to those behind it."""
    taken, chosen, closed = list(taken), [], set()
    for j, job in queue:
        on = lay(free_after(now, nodes, taken), partitions, job, how, closed)
        if on is None:
            closed.update(partitions[job[PARTITION]][0])
        else:
            chosen.append((j, on))
            taken.append((now + job[ESTIMATE], job, on))
    return chosen


def easy(now, queue, nodes, partitions, taken, how) -> list:
    """Each partition's first blocked job must be able to start when it could without those behind it."""
    taken, chosen, heads = list(taken), [], {}
    for j, job in queue:
        on = lay(free_after(now, nodes, taken), partitions, job, how)
        if on is not None:
            then = [*taken, (now + job[ESTIMATE], job, on)]
            if all(
                now + job[ESTIMATE] <= shadow or lay(free_after(shadow, nodes, then), partitions, head, how)
                for head, shadow in heads.values()
            ):
                taken = then
                chosen.append((j, on))
        elif job[PARTITION] not in heads:
            ends = sorted(end for end, _, _ in taken)
            shadows = [end for end in ends if lay(free_after(end, nodes, taken), partitions, job, how)]
            heads[job[PARTITION]] = job, min(shadows, default=math.inf)
    return chosen


def conservative(now, queue, nodes, partitions, taken, how) -> list:
    """Each job in order gets the earliest place on the same nodes for all of its estimated time."""
    places, chosen = [(-math.inf, *each) for each in taken], []

    def left_at(time: float) -> list:
        there = [(end, job, on) for begin, end, job, on in places if begin <= time]
        return free_after(time, nodes, there)

    for j, job in queue:
        times = sorted({now} | {t for begin, end, _, _ in places for t in (begin, end) if t > now})
        for begin in times:
            end = begin + job[ESTIMATE]
            moments = [left_at(t) for t in times if begin <= t < end]
            least = [[min(m[n][r] for m in moments) for r in range(len(nodes[n]))] for n in range(len(nodes))]
            on = lay(least, partitions, job, how)
            if on is not None:
                places.append((begin, end, job, on))
                if begin == now:
                    chosen.append((j, on))
                break
    return chosen


RULES = {"fcfs": fcfs, "easy_backfilling": easy, "conservative_backfilling": conservative}
