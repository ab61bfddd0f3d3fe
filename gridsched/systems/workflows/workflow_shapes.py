"""Shapes of workflows: who waits for whom in chains, trees, eliminations, transforms and layered random graphs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Integers


@dataclass(frozen=True)
class Shape:
    """Tasks, numbered so that each comes behind those that it waits for, and their edges.

    Attributes
    ----------
    tasks : int
        How many.
    task, on : ndarray of int64, shape (edges,)
        The first waits for the second.
    level : ndarray of int64, shape (tasks,), or None
        Where all tasks of a level cost alike, and all data from one level to another: each task's level.
    """

    tasks: int
    task: Integers
    on: Integers
    level: Integers | None = None


def chains(branches: int, depth: int) -> Shape:
    """Return chains of `depth` tasks that know nothing of each other."""
    task = np.arange(branches * depth).reshape(branches, depth)[:, 1:].reshape(-1)
    return Shape(branches * depth, task, task - 1)


def fork_join(branches: int, depth: int) -> Shape:
    """Return `depth` stages of a task, those that wait for it, and one that waits for them: the next stage's first."""
    first = np.arange(depth) * (branches + 1)  # forks; the next one is the join
    middle = (first[:, None] + 1 + np.arange(branches)).reshape(-1)
    forks, joins = np.repeat(first, branches), np.repeat(first + branches + 1, branches)
    return Shape(1 + depth * (branches + 1), np.concatenate([middle, joins]), np.concatenate([forks, middle]))


def out_tree(branches: int, depth: int) -> Shape:
    """Return a tree of `depth` levels: `branches` tasks wait for each that is not of the last level."""
    task = np.arange(1, tree_tasks(branches, depth))
    return Shape(len(task) + 1, task, (task - 1) // branches)


def in_tree(branches: int, depth: int) -> Shape:
    """Return a tree of `depth` levels: each task that is not of the first level waits for `branches` others."""
    tree = out_tree(branches, depth)
    return Shape(tree.tasks, tree.tasks - 1 - tree.on, tree.tasks - 1 - tree.task)


def tree_tasks(branches: int, depth: int) -> int:
    """Return how many tasks a tree has."""
    return depth if branches == 1 else (branches**depth - 1) // (branches - 1)


def gaussian(size: int) -> Shape:
    """Return the elimination of a square matrix of `size` columns: (size² + size - 2) / 2 tasks.

    Step k has a pivot task and one task for each column j behind k, which waits for the pivot and for column j's
    task of the step before; the pivot waits for column k's task of the step before.

    References
    ----------
    .. [1] H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task scheduling for
       heterogeneous computing", IEEE TPDS 13(3), 2002, section 5.3.1. https://doi.org/10.1109/71.993206
    """
    task, on = [], []
    first = 0  # the pivot of the step; column k + i has the i-th task behind it
    for columns in range(size - 1, 0, -1):
        update = first + 1 + np.arange(columns)
        task.append(update)
        on.append(np.full(columns, first))
        if columns > 1:  # the pivot of the next step takes the first of them, its columns take the others
            task.append(update + columns)
            on.append(update)
        first += columns + 1
    return Shape((size * size + size - 2) // 2, np.concatenate(task), np.concatenate(on))


def fft(size: int) -> Shape:
    """Return the fast Fourier transform of `size` points: 2 size - 1 recursive calls, size log2(size) butterflies.

    Tasks of one level cost alike, and so do data between two levels: every way through the graph is a critical one.

    References
    ----------
    .. [1] H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task scheduling for
       heterogeneous computing", IEEE TPDS 13(3), 2002, section 5.3.2. https://doi.org/10.1109/71.993206
    """
    calls = out_tree(2, size.bit_length())
    task, on = [calls.task], [calls.on]
    points = np.arange(size)
    before = size - 1 + points  # the calls of single points
    levels = [np.floor(np.log2(1 + np.arange(calls.tasks)) + 1e-9).astype(np.int64)]
    for k in range(size.bit_length() - 1):
        butterflies = calls.tasks + k * size + points
        task.append(np.repeat(butterflies, 2))
        on.append(np.stack([before, before[points ^ (1 << k)]], axis=1).reshape(-1))
        levels.append(np.full(size, size.bit_length() + k))
        before = butterflies
    return Shape(
        calls.tasks + size * (size.bit_length() - 1), np.concatenate(task), np.concatenate(on), np.concatenate(levels)
    )


def layered(rng: np.random.Generator, tasks: int, width: float, density: float, regularity: float, jump: int) -> Shape:
    """Return a random graph in layers.

    Parameters
    ----------
    rng : numpy.random.Generator
    tasks : int
    width : float
        A layer has tasks ** width tasks on average: 0 gives a chain, 1 one layer.
    density : float
        A task has 1 to 1 + density * (tasks of the layer before it) parents, all of these at most.
    regularity : float
        Layers differ from the average by up to 1 - regularity of it.
    jump : int
        A parent is 1 to `jump` layers before the task.

    References
    ----------
    .. [1] F. Suter, S. Hunold, "daggen: a synthetic task graph generator". https://github.com/frs69wq/daggen
       Here the parents are drawn by the same rule, from other random numbers; work and data are not.
    """
    sizes = _layers(rng, tasks, int(tasks**width + 1e-9), 1.0 - regularity)
    first = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    task: list[int] = []
    on: list[int] = []
    for layer in range(1, len(sizes)):
        most = sizes[layer - 1]
        for child in range(first[layer], first[layer + 1]):
            wanted = min(1 + int(rng.uniform(0.0, density * most)), most)
            layers = np.maximum(layer - rng.integers(1, jump + 1, wanted), 0)
            shares = rng.random(wanted)
            parents: set[int] = set()
            for at, share in zip(layers.tolist(), shares.tolist(), strict=True):
                index = int(share * sizes[at])
                for step in range(sizes[at]):  # the next one that is none yet
                    parent = first[at] + (index + step) % sizes[at]
                    if parent not in parents:
                        parents.add(parent)
                        break
            task += [child] * len(parents)
            on += sorted(parents)
    return Shape(tasks, np.array(task, dtype=np.int64), np.array(on, dtype=np.int64))


def _layers(rng: np.random.Generator, tasks: int, mean: int, spread: float) -> list[int]:
    """Return how many tasks each layer has."""
    sizes: list[int] = []
    left = tasks
    while left:
        sizes.append(min(max(1, int(mean * (1.0 + rng.uniform(-spread, spread)))), left))
        left -= sizes[-1]
    return sizes
