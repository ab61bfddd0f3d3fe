"""SAGA's HEFT on a random graph, beside which ``gridsched run --scheduler heft`` is measured.

Usage: PYTHON benchmarks/saga_heft.py [TASKS [HOSTS]], with a Python in which anrg-saga is installed, not gridsched's.

Prints the CPU seconds of making the schedule alone.
"""

from __future__ import annotations

import random
import sys
import time

from saga import Network, TaskGraph
from saga.schedulers import HeftScheduler


def main(n_tasks: int = 1000, n_hosts: int = 100) -> None:
    """Schedule four edges a task on hosts of random speeds."""
    draw = random.Random(1)
    hosts = [(f"h{k}", draw.uniform(1, 10)) for k in range(n_hosts)]
    pairs = [(a, b) for a in range(n_hosts) for b in range(a, n_hosts)]
    routes = [(f"h{a}", f"h{b}", 1e15 if a == b else draw.uniform(1, 10)) for a, b in pairs]
    edges: dict[tuple[int, int], float] = {}
    while len(edges) < 4 * n_tasks:
        task = draw.randrange(1, n_tasks)
        edges[draw.randrange(max(0, task - 300), task), task] = draw.uniform(1, 100)
    tasks = [(f"t{k}", draw.uniform(10, 1000)) for k in range(n_tasks)]
    graph = TaskGraph.create(tasks, [(f"t{a}", f"t{b}", size) for (a, b), size in edges.items()])
    network = Network.create(hosts, routes)
    began = time.process_time()
    HeftScheduler().schedule(network, graph)
    print(f"{time.process_time() - began:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
