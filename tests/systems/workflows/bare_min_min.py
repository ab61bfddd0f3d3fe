"""A program of SimGrid alone: Min-Min of a workflow by the rule of SimGrid's example s4u-dag-scheduling.

``python bare_min_min.py PLATFORM GRAPH [one_a_step] [by_arrival] [loopback]``; the file of the graph is in JSON: work
of each task [flop], [maker, reader, bytes] of each file, and [parent, child] pairs. It prints [time, task, host] as
tasks are placed, and when the last one ends [s]. The words are what the example does and a schedule need not:

one_a_step
    After each placement the simulation goes on to its next event, the end of a latency included.
by_arrival
    A host runs tasks in the order in which their data have arrived; else in the order in which they were placed.
loopback
    Data for a task on the same host go through the host's loopback; else they are there.
"""

import ctypes
import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path

origin = Path(importlib.util.find_spec("simgrid").origin)
for library in sorted(origin.parent.glob("libsimgrid.so.*"))[:1]:  # the wheel finds it so alone
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
import simgrid  # noqa: E402

#: By this LV08 multiplies the latency of a route.
LATENCY_FACTOR = 13.01

graph, words = json.loads(Path(sys.argv[2]).read_text()), set(sys.argv[3:])
flops, files, waits = graph["flops"], graph["files"], graph["waits"]
engine = simgrid.Engine(["bare", "--log=root.thresh:error"])
engine.load_platform(sys.argv[1])
hosts = sorted(engine.all_hosts, key=lambda host: host.name)

reads: dict[str, list[int]] = defaultdict(list)
for k, (_, reader, _) in enumerate(files):
    reads[reader].append(k)
parents: dict[str, set[str]] = defaultdict(set)
for parent, child in waits:
    parents[child].add(parent)

ends: dict[str, float] = {}
place: dict[str, simgrid.Host] = {}
busy_until = dict.fromkeys((host.name for host in hosts), 0.0)
lacking = {task: len(reads[task]) for task in flops}
placed_on: dict[str, list[str]] = defaultdict(list)  # tasks that have not started, as they were placed
arrived_on: dict[str, list[str]] = defaultdict(list)  # of them those whose data are there, as they came
on: dict[str, str] = {}
running: dict[int, tuple[object, str, int | str]] = {}
latency_ends: list[float] = []
placements: list[tuple[float, str, str]] = []


def best(task: str) -> tuple[float, simgrid.Host]:
    """Return the earliest end of a task [s], and where: its data set out when their maker ended."""
    found = []
    for host in hosts:
        data_s = -1.0
        for k in reads[task]:
            maker, _, size = files[k]
            links, latency = place[maker].route_to(host)
            sent_s = latency + size / min((link.bandwidth for link in links), default=float("inf"))
            is_there = place[maker].name == host.name and "loopback" not in words
            data_s = max(data_s, ends[maker] + (0.0 if is_there else sent_s))
        found.append(max(busy_until[host.name], data_s) + flops[task] / host.speed)
    k = found.index(min(found))
    return found[k], hosts[k]


def follow() -> None:
    """Place tasks, and step from event to event, in the only actor."""
    activities = simgrid.ActivitySet()

    def watch(activity: object, kind: str, what: int | str) -> None:
        activities.push(activity)
        running[id(activity)] = activity, kind, what

    def start_next(host: simgrid.Host) -> None:
        waiting = arrived_on[host.name] if "by_arrival" in words else placed_on[host.name]
        if host.name in on or not waiting or waiting[0] not in arrived_on[host.name]:
            return
        on[host.name] = task = waiting[0]
        placed_on[host.name].remove(task)
        arrived_on[host.name].remove(task)
        if flops[task]:
            execution = simgrid.this_actor.exec_init(flops[task])
            execution.host = host
            watch(execution.start(), "execution", task)
        else:
            end(task)

    def end(task: str) -> None:
        ends[task] = engine.clock
        del on[place[task].name]
        start_next(place[task])
        for child in flops:
            if task in parents[child]:
                arrive(child)

    def arrive(task: str) -> None:
        if task in place and not lacking[task] and parents[task] <= ends.keys():
            arrived_on[place[task].name].append(task)
            start_next(place[task])

    def put(task: str, host: simgrid.Host, until_s: float) -> None:
        placements.append((engine.clock, task, host.name))
        place[task], busy_until[host.name] = host, until_s
        placed_on[host.name].append(task)
        for k in reads[task]:
            maker, _, size = files[k]
            if place[maker].name == host.name and "loopback" not in words:
                lacking[task] -= 1
                continue
            watch(simgrid.Comm.sendto_init(place[maker], host).set_payload_size(size).start(), "transfer", k)
            if (latency := place[maker].route_to(host)[1]) > 0:
                latency_ends.append(engine.clock + LATENCY_FACTOR * latency)
        arrive(task)

    def step() -> None:
        """Go on to the next end of an execution, a transfer or a latency."""
        latency_ends[:] = [each for each in latency_ends if each > engine.clock + 1e-12]
        try:
            activity = activities.wait_any_for(min(latency_ends) - engine.clock if latency_ends else -1.0)
        except simgrid.TimeoutException:
            return
        while activity is not None:  # and whatever else ends at this instant
            _, kind, what = running.pop(id(activity))
            if kind == "execution":
                end(what)
            else:
                reader = files[what][1]
                lacking[reader] -= 1
                arrive(reader)
            activity = activities.test_any() if running else None

    put("root", best("root")[1], 0.0)
    while len(ends) < len(flops):
        ready = [
            task
            for task in flops
            if task not in place and {files[k][0] for k in reads[task]} | parents[task] <= ends.keys()
        ]
        if ready:
            found = [best(task) for task in ready]
            k = min(range(len(ready)), key=lambda k: found[k][0])
            put(ready[k], found[k][1], found[k][0])
        if not ready or "one_a_step" in words:
            step()


hosts[0].add_actor("scheduler", follow)
engine.run()
print(json.dumps({"placements": placements, "makespan_s": engine.clock}))  # noqa: T201
