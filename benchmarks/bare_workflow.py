"""A hand-written s4u program that plays a schedule of a workflow with Comms: what gridsched is measured against.

Usage: python benchmarks/bare_workflow.py PLATFORM.xml TASKS.csv EDGES.csv EXECUTIONS.csv [--within-hosts]

EXECUTIONS.csv is of ``gridsched run ... --export DIR``: each task goes to the host that it had there, and each host
takes its tasks in that order, one at a time. Data leave when they are made; shared files are sent once to a host.
`--within-hosts` sends what stays on a host, too, over SimGrid's loopback, as SimGrid's own example does. It prints
the CPU seconds from the engine's creation to the last end, and the simulated makespan. It uses nothing of gridsched
but the function that finds SimGrid's library.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import deque
from pathlib import Path

from gridsched.drivers.simgrid_library import load_simgrid

sg = load_simgrid()


def rows(path: str) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


class Player:
    """One actor that starts executions and messages, and waits for whatever ends next."""

    def __init__(self, engine, tasks: str, edges: str, executions: str, *, within_hosts: bool) -> None:
        self.hosts = {host.name: host for host in engine.all_hosts}
        self.flops = {row["id"]: float(row["flops"]) for row in rows(tasks)}
        self.within_hosts = within_hosts
        self.place: dict[str, str] = {}
        self.queues: dict[str, deque[str]] = {}
        for row in sorted(rows(executions), key=lambda row: float(row["starting_time"])):
            self.place[row["job_id"]] = row["host"]
            self.queues.setdefault(row["host"], deque()).append(row["job_id"])
        #: what each task waits for, and which messages each makes: (host, bytes) with those that wait for it there
        self.left = dict.fromkeys(self.flops, 0)
        self.made: dict[str, dict[tuple, tuple[float, list[str]]]] = {task: {} for task in self.flops}
        for k, row in enumerate(rows(edges)):
            target = self.place[row["task"]]
            key = row.get("file") or k, target
            self.made[row["on"]].setdefault(key, (float(row["bytes"] or 0), []))[1].append(row["task"])
            self.left[row["task"]] += 1
        self.is_busy = dict.fromkeys(self.queues, False)
        self.in_flight = sg.ActivitySet()
        self.what: dict[object, tuple[str, object]] = {}

    def serve(self, name: str) -> None:
        """Start the head of a host's queue if it can."""
        queue = self.queues[name]
        if not self.is_busy[name] and queue and not self.left[queue[0]]:
            task = queue.popleft()
            self.is_busy[name] = True
            execution = sg.this_actor.exec_init(self.flops[task])
            execution.host = self.hosts[name]
            self.watch(execution.start(), ("end", task))

    def watch(self, activity, what: tuple[str, object]) -> None:
        """Wait for an activity, too."""
        self.what[activity] = what
        self.in_flight.push(activity)

    def arrived(self, tasks: list[str]) -> None:
        """Let tasks wait for one thing less."""
        for task in tasks:
            self.left[task] -= 1
            self.serve(self.place[task])

    def ended(self, task: str) -> None:
        """Send what a task has made, and go on."""
        name = self.place[task]
        self.is_busy[name] = False
        for (_, target), (size, waiting) in self.made[task].items():
            if size and (target != name or self.within_hosts):
                message = sg.Comm.sendto_init(self.hosts[name], self.hosts[target])
                self.watch(message.set_payload_size(round(size)).start(), ("data", waiting))
            else:
                self.arrived(waiting)
        self.serve(name)

    def lead(self) -> None:
        """Play all."""
        for name in self.queues:
            self.serve(name)
        while not self.in_flight.empty():
            kind, what = self.what.pop(self.in_flight.wait_any())
            if kind == "end":
                self.ended(what)
            else:
                self.arrived(what)


def main(platform: str, tasks: str, edges: str, executions: str, *options: str) -> None:
    """Play a schedule, and print CPU seconds and makespan."""
    began = time.process_time()
    engine = sg.Engine(["bare", "--log=root.thres:error"])
    engine.load_platform(platform)
    player = Player(engine, tasks, edges, executions, within_hosts="--within-hosts" in options)
    engine.all_hosts[0].add_actor("lead", player.lead)
    engine.run()
    print(f"{time.process_time() - began:.3f} {engine.clock:.6f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
