"""Hand-written s4u loops that do the least a work queue needs: what gridsched is measured against.

Usage: python benchmarks/bare_loops.py {exectask|workers|messages} PLATFORM.xml HOSTS TASKS

Prints the seconds from the engine's creation to the last result, and the simulated makespan. They
use nothing of gridsched but the function that finds SimGrid's library.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque

import numpy as np

from gridsched.drivers.simgrid_library import load_simgrid

sg = load_simgrid()


def task_sizes(tasks: int) -> list[float]:
    """Sizes [flop] as in benchmarks/run.py."""
    return np.random.default_rng(1).uniform(5e5, 15e5, tasks).tolist()


def exectask(engine, hosts: list, sizes: list[float]) -> None:
    """One ExecTask a host; its completion callback fires the next."""
    set_amount = sg.Task.__dict__["amount"].fset
    queue = deque(sizes)
    host_of = {}

    def completed(task) -> None:
        if queue:
            host_of[task.name].pstate = 0
            set_amount(task, queue.popleft(), "instance_0")
            task.enqueue_firings(1)

    sg.Task.on_completion_cb(completed)
    kept = []
    for host in hosts:
        task = sg.ExecTask.init(host.name, 1.0, host)
        host_of[task.name] = host
        kept.append(task)
        completed(task)
    engine.run()


def workers(engine, hosts: list, sizes: list[float]) -> None:
    """One worker actor a host; all take from one queue."""
    queue = deque(sizes)

    def worker(host) -> None:
        while queue:
            host.pstate = 0
            sg.this_actor.execute(queue.popleft())

    for host in hosts:
        host.add_actor("worker", worker, host)
    engine.run()


def messages(engine, hosts: list, sizes: list[float], master_host) -> None:
    """Master and workers with two mailbox messages a task."""
    queue = deque(sizes)
    master_box = sg.Mailbox.by_name("master")

    def master() -> None:
        boxes = [sg.Mailbox.by_name(host.name) for host in hosts]
        for box in boxes:
            box.put_init(queue.popleft(), 1000).detach()
        for _ in range(len(sizes)):
            k = master_box.get()
            boxes[k].put_init(queue.popleft() if queue else None, 1000).detach()

    def worker(k: int, host) -> None:
        box = sg.Mailbox.by_name(host.name)
        while (flops := box.get()) is not None:
            host.pstate = 0
            sg.this_actor.execute(flops)
            master_box.put(k, 1000)

    for k, host in enumerate(hosts):
        host.add_actor("worker", worker, k, host)
    master_host.add_actor("master", master)
    engine.run()


def main(kind: str, platform: str, n_hosts: int, n_tasks: int) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sizes = task_sizes(n_tasks)
    began = time.perf_counter()
    engine = sg.Engine(["bare", "--cfg=plugin:host_energy", "--log=root.thresh:error"])
    engine.load_platform(platform)
    hosts = [engine.host_by_name(f"host{k}") for k in range(n_hosts)]
    if kind == "exectask":
        exectask(engine, hosts, sizes)
    elif kind == "workers":
        workers(engine, hosts, sizes)
    else:
        messages(engine, hosts, sizes, engine.host_by_name("master"))
    print(time.perf_counter() - began, engine.clock, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
