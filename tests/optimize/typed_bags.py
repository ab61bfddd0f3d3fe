"""Bags of tasks by type: the example worked by hand (algorithms, E5), and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from gridsched.optimize.typed_bag import TypedBag, typed_bag


def example(tasks: int = 12, machines=(1, 1), idle_w=0.0) -> TypedBag:
    """E5: a task takes 2 s at 10 W on machine type 1, or 4 s at 2.5 W on machine type 2."""
    return typed_bag([[2, 4]], [[10, 2.5]], [tasks], machines, idle_w)


def random_bag(
    seed: int, *, most_tasks: int = 1000, most_machines: int = 5, types: int = 5, idle: bool = True
) -> TypedBag:
    """A bag with infeasible pairs, empty task types and machine types without machines."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, types + 1, 2))
    etc = rng.choice([1.0, 2.0, 5.0], shape) * rng.choice([1.0, rng.uniform(0.1, 40)], shape)
    etc[rng.random(shape) < 0.2] = np.inf
    tasks = rng.integers(0, most_tasks + 1, shape[0])
    machines = rng.integers(0, most_machines + 1, shape[1])
    etc[:, 0] = np.where(np.isfinite(etc[:, 0]), etc[:, 0], 7.0)
    tasks[0], machines[0] = max(tasks[0], 1), max(machines[0], 1)
    idle_w = rng.choice([0.0, 1.0, 30.0], shape[1]) * rng.random(shape[1]) if idle else 0.0
    return typed_bag(etc, rng.uniform(1, 200, shape), tasks, machines, idle_w)


def changed(bag: TypedBag, **fields) -> TypedBag:
    """The bag with other arrays."""
    names = ("etc", "apc", "tasks", "machines", "idle_w")
    return typed_bag(*(fields.get(name, getattr(bag, name)) for name in names))


def every_schedule(bag: TypedBag) -> Iterator[tuple[Fraction, Fraction, list[Fraction]]]:
    """Makespan, energy above idle, and busy seconds by type, of every schedule of whole tasks."""
    tasks = [i for i, count in enumerate(bag.tasks) for _ in range(count)]
    machines = [j for j, count in enumerate(bag.machines) for _ in range(count)]
    for places in product(range(len(machines)), repeat=len(tasks)):
        if not all(bag.usable[i, machines[k]] for i, k in zip(tasks, places, strict=True)):
            continue
        loads = [Fraction(0)] * len(machines)
        busy = [Fraction(0)] * len(bag.machines)
        energy = Fraction(0)
        for i, k in zip(tasks, places, strict=True):
            j = machines[k]
            seconds = Fraction(float(bag.etc[i, j]))
            loads[k] += seconds
            busy[j] += seconds
            energy += seconds * (Fraction(float(bag.apc[i, j])) - Fraction(float(bag.idle_w[j])))
        yield max(loads), energy, busy


def exact_idle_w(bag: TypedBag) -> Fraction:
    """Idle power of all machines, exactly."""
    return sum((int(m) * Fraction(float(w)) for m, w in zip(bag.machines, bag.idle_w, strict=True)), Fraction(0))
