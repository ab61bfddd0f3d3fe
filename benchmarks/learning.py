"""Steps a second of the learning environment: 20,000 tasks that arrive at 100 hosts.

python benchmarks/learning.py
"""

import time

import numpy as np

from gridsched import Scenario, learning, make_tasks
from gridsched.model.platform import Host, Platform, PState

TASKS, HOSTS, REPEATS = 20_000, 100, 5


def scenario() -> Scenario:
    rng = np.random.default_rng(1)
    hosts = tuple(Host(f"h{k}", (PState(float(s), 10, 20, 100),)) for k, s in enumerate(rng.uniform(50, 150, HOSTS)))
    tasks = make_tasks(rng.uniform(500, 1500, TASKS), np.sort(rng.uniform(0, TASKS * 10 / HOSTS, TASKS)))
    return Scenario(Platform(hosts), tasks, driver="reference")


def seconds_of(env) -> float:
    env.reset(seed=1)
    began, steps, is_over = time.perf_counter(), 0, False
    while not is_over:
        is_over = env.step(steps % HOSTS)[2]
        steps += 1
    return (time.perf_counter() - began) / steps


if __name__ == "__main__":
    for observation in ("estimates", "scaled"):
        env = learning.make(scenario(), observation=observation)
        best = min(seconds_of(env) for _ in range(REPEATS))
        print(f"{observation:10} {1 / best:10,.0f} steps/s")
