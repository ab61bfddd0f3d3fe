"""Tasks that wait for each other as a drawing in layers: the place of each task, and the route of each edge.

Every task is one layer behind the last of those that it waits for. Edges over several layers pass each of them
at a place of their own, so that they go round tasks. In each layer tasks are ordered by the mean place of their
neighbors, back and forth a few times, and the order of fewest crossings counts (Sugiyama, Tagawa, Toda, IEEE
Transactions on Systems, Man, and Cybernetics 11(2), 1981); then they move towards these means as far as their order
allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gridsched.analysis.statistics import without_falls
from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError
from gridsched.metrics.run_metrics import data_times_s
from gridsched.model.dependencies import Dependencies
from gridsched.model.trace import ExecutionEnd, Trace
from gridsched.optimize.task_paths import task_paths

_SWEEPS = 12
#: Where edges pass more layers than this in all, they go straight.
_MOST_PASSED = 60_000
#: Room of an edge that passes a layer, beside that of a task.
_PASSING = 0.35
#: Of more steps than this between two layers, crossings are not counted but for neighbors.
_MOST_COMPARED = 500


@dataclass(frozen=True)
class GraphLayout:
    """Where tasks are and how edges go.

    Attributes
    ----------
    x : ndarray of int64, shape (tasks,)
        Layer.
    y : ndarray of float64, shape (tasks,)
        Place in it; two of one layer are at least 1 apart.
    curves : list of ndarray of float64, shape (points, 2)
        Corners of each edge, from the task that is waited for.
    """

    x: Integers
    y: Floats
    curves: list[Floats]

    @property
    def range_y(self) -> tuple[float, float]:
        """Least and largest place of tasks and edges."""
        ends = np.concatenate([self.y, *(curve[:, 1] for curve in self.curves)])
        return float(ends.min(initial=0.0)), float(ends.max(initial=0.0))


def layered(n_tasks: int, task: Sequence[int], on: Sequence[int]) -> GraphLayout:
    """Lay out a graph without cycles whose tasks are behind those that they wait for.

    Parameters
    ----------
    n_tasks : int
    task, on : sequence of int
        Each edge: a task, and one before it for which it waits.
    """
    layer = [0] * n_tasks
    edges = list(zip(task, on, strict=True))
    for one, other in sorted(edges):
        layer[one] = max(layer[one], layer[other] + 1)
    passed = sum(layer[one] - layer[other] - 1 for one, other in edges)
    chains: list[list[int]] = []  # the vertices of each edge, those between being no task
    for one, other in edges:
        between = range(layer[other] + 1, layer[one]) if passed <= _MOST_PASSED else ()
        first = len(layer)
        layer.extend(between)
        chains.append([other, *range(first, len(layer)), one])
    steps = np.array([step for chain in chains for step in pairwise(chain)], dtype=np.int64)
    room = np.where(np.arange(len(layer)) < n_tasks, 1.0, _PASSING)
    y = _places(np.array(layer, dtype=np.int64), room, steps.reshape(-1, 2))
    points = np.column_stack([np.array(layer, dtype=np.float64), y])
    return GraphLayout(np.array(layer[:n_tasks], dtype=np.int64), y[:n_tasks], [points[chain] for chain in chains])


def _places(layer: Integers, room: Floats, steps: Integers) -> Floats:
    """Return the place of each vertex in its layer, of which it takes some room."""
    layers = [np.flatnonzero(layer == k) for k in range(int(layer.max(initial=-1)) + 1)]
    place, y = np.zeros(len(layer), dtype=np.int64), np.zeros(len(layer))
    for each in layers:
        place[each] = np.arange(len(each))
        y[each] = _centred(room[each])
    before = _joined(layers, layer[steps[:, 1]], place[steps[:, 1]], steps[:, 0])
    behind = _joined(layers, layer[steps[:, 0]], place[steps[:, 0]], steps[:, 1])
    both = [tuple(map(np.concatenate, zip(*of, strict=True))) for of in zip(before, behind, strict=True)]
    best, fewest = y.copy(), _crossings(y, layers, behind)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        for k in range(len(layers)) if forth else reversed(range(len(layers))):
            means = _means(y, layers[k], before[k] if forth else behind[k])
            order = layers[k][np.argsort(means, kind="stable")]
            y[order] = _centred(room[order])
        if (crossings := _crossings(y, layers, behind)) < fewest:
            best, fewest = y.copy(), crossings
    y = best
    for sweep in range(_SWEEPS):
        for k in range(len(layers)) if sweep % 2 else reversed(range(len(layers))):
            order = np.argsort(y[layers[k]], kind="stable")
            wanted, apart = _means(y, layers[k], both[k])[order], _centred(room[layers[k][order]])
            y[layers[k][order]] = without_falls(wanted - apart) + apart
    return y - (y.min() + y.max()) / 2 if len(y) else y


def _centred(room: Floats) -> Floats:
    """Return the middles of neighbors that take so much room, around 0."""
    return np.cumsum(room) - room / 2 - room.sum() / 2


def _joined(
    layers: Sequence[Integers], layer: Integers, place: Integers, other: Integers
) -> list[tuple[Integers, Integers]]:
    """Return for each layer (place in it, vertex at the other end) of the steps whose one end lies there."""
    order = np.argsort(layer, kind="stable")
    cuts = np.searchsorted(layer[order], np.arange(1, len(layers)))
    return [(place[rows], other[rows]) for rows in np.split(order, cuts)]


def _means(y: Floats, some: Integers, joined: tuple[Integers, ...]) -> Floats:
    """Return the mean place of what each vertex of a layer is joined to; its own if to nothing."""
    place, other = joined
    counts = np.bincount(place, minlength=len(some))
    return np.where(counts > 0, np.bincount(place, y[other], minlength=len(some)) / np.maximum(counts, 1), y[some])


def _crossings(y: Floats, layers: Sequence[Integers], behind: Sequence[tuple[Integers, Integers]]) -> int:
    """Return how many pairs of steps cross; of layers with very many only neighboring ones are compared."""
    crossings = 0
    for some, (place, other) in zip(layers, behind, strict=True):
        ends = y[other][np.lexsort((y[other], y[some][place]))]
        if len(ends) > _MOST_COMPARED:
            crossings += int((np.diff(ends) < 0).sum())
        else:
            crossings += int((ends[:, None] > ends[None, :])[np.triu_indices(len(ends), 1)].sum())
    return crossings


@dataclass(frozen=True)
class RunGraph:
    """The graph of a run's tasks, laid out, with what a figure or a page shows of it.

    Attributes
    ----------
    layout : GraphLayout
    pairs : Dependencies
        The edges, by task.
    host, start_s, end_s : ndarray, shape (tasks,)
        Of the execution that finished each task; -1 and nan where none did.
    is_sent : ndarray of bool, shape (edges,)
        Whether data went along it from one host to another, for a task that finished.
    is_critical : ndarray of bool, shape (tasks,)
        On the longest path, by run times and transfers of the run.
    on_path : ndarray of bool, shape (edges,)
    length_s : float
        Of that path [s].
    """

    layout: GraphLayout
    pairs: Dependencies
    host: Integers
    start_s: Floats
    end_s: Floats
    is_sent: Booleans
    is_critical: Booleans
    on_path: Booleans
    length_s: float


def run_graph(trace: Trace) -> RunGraph:
    """Return the graph of a run's tasks.

    Parameters
    ----------
    trace : Trace

    Raises
    ------
    InputError
        If no task waits for another.
    """
    if trace.tasks.dependencies is None or not trace.tasks.dependencies.n_pairs:
        raise InputError(f"{trace.tasks.name}: no task waits for another, so there is no graph to draw.")
    if trace.tasks.dependencies.blocks:
        n_pairs = trace.tasks.dependencies.n_pairs
        raise InputError(f"{trace.tasks.name}: arrays wait for arrays, {n_pairs:,} edges in all: no graph is drawn.")
    pairs, n = trace.tasks.dependencies.by_task(), len(trace.tasks)
    done = trace.of_outcome(ExecutionEnd.FINISHED)
    host, start_s, end_s = np.full(n, -1), np.full(n, np.nan), np.full(n, np.nan)
    host[done["task"]], start_s[done["task"]], end_s[done["task"]] = done["host"], done["start"], done["end"]
    sent_s = data_times_s(trace)
    waiting = replace(trace.tasks, dependencies=replace(pairs, delay_s=pairs.delay_s + sent_s))
    paths = task_paths(waiting, np.where(np.isnan(end_s), 0.0, end_s - start_s))
    path = paths.critical(waiting.dependencies)
    is_critical = np.zeros(n, dtype=bool)
    is_critical[path] = True
    steps = set(zip(path[1:], path[:-1], strict=True))
    on_path = np.array([pair in steps for pair in zip(pairs.task.tolist(), pairs.on.tolist(), strict=True)])
    layout = layered(n, pairs.task.tolist(), pairs.on.tolist())
    both_ran = (host[pairs.on] >= 0) & (host[pairs.task] >= 0)
    is_sent = (pairs.size_bytes > 0) & both_ran & (host[pairs.on] != host[pairs.task]) & bool(len(trace.transfers))
    return RunGraph(layout, pairs, host, start_s, end_s, is_sent, is_critical, on_path, paths.length_s)
