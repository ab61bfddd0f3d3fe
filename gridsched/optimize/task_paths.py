"""The longest paths through tasks that wait for each other, and the makespan that they need at least.

Data between tasks are left out: two tasks may run on one host, and within a host data take no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats, Integers
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.tasks import Tasks

#: So many begins and so many remainders are tried at most.
_THRESHOLDS = 128


@dataclass(frozen=True)
class TaskPaths:
    """When each task can start at the earliest, and what is left behind it at least.

    Attributes
    ----------
    head_s : ndarray of float64, shape (tasks,)
        From the first submission until all that the task waits for can have ended, and it is submitted [s].
    time_s : ndarray of float64, shape (tasks,)
        Its own least run time [s].
    tail_s : ndarray of float64, shape (tasks,)
        From its end to the last end of all that waits for it, at least [s].
    """

    head_s: Floats
    time_s: Floats
    tail_s: Floats

    @property
    def length_s(self) -> float:
        """Length of the longest path [s]: no makespan is less."""
        return float((self.head_s + self.time_s + self.tail_s).max(initial=0.0))

    def critical(self, pairs: Dependencies | None) -> list[int]:
        """Return the tasks of a longest path in their order; of equals the lowest id comes next.

        Parameters
        ----------
        pairs : Dependencies or None
            Of the tasks.
        """
        if not len(self.time_s):
            return []
        waits, on, delay_s = ends_of(pairs)
        through = self.head_s + self.time_s + self.tail_s
        path = [int(np.argmax(through * (1 + 1e-12) >= through.max()))]
        before: dict[int, list[tuple[int, float]]] = {}
        behind: dict[int, list[tuple[int, float]]] = {}
        for task, other, delay in zip(waits.tolist(), on.tolist(), delay_s.tolist(), strict=True):
            before.setdefault(task, []).append((other, delay))
            behind.setdefault(other, []).append((task, delay))
        while of_path := [
            other
            for other, delay in before.get(path[0], ())
            if self.head_s[other] + self.time_s[other] + delay >= self.head_s[path[0]] * (1 - 1e-12)
        ]:
            path.insert(0, min(of_path))
        while of_path := [
            task
            for task, delay in behind.get(path[-1], ())
            if delay + self.time_s[task] + self.tail_s[task] >= self.tail_s[path[-1]] * (1 - 1e-12)
        ]:
            path.append(min(of_path))
        return path


def ends_of(pairs: Dependencies | None) -> tuple[Integers, Integers, Floats]:
    """Return (task, the one whose end it waits for, delay [s]); pairs that wait for a start are left out."""
    if pairs is None:
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)
    rows = np.flatnonzero(pairs.kind != After.START)
    rows = rows[np.argsort(pairs.task[rows], kind="stable")]
    return pairs.task[rows], pairs.on[rows], pairs.delay_s[rows]


def task_paths(tasks: Tasks, time_s: ArrayLike) -> TaskPaths:
    """Return the longest paths to and from each task.

    Parameters
    ----------
    tasks : Tasks
    time_s : array_like, shape (tasks,)
        Least run time of each [s].
    """
    times = np.asarray(time_s, dtype=np.float64).tolist()
    first_s = float(tasks.submit_time_s[0]) if len(tasks) else 0.0
    head = (tasks.submit_time_s - first_s).tolist()
    tail = [0.0] * len(times)
    rows = list(zip(*(column.tolist() for column in ends_of(tasks.dependencies)), strict=True))
    for task, on, delay in rows:  # by task, and every task is listed behind those that it waits for
        head[task] = max(head[task], head[on] + times[on] + delay)
    for task, on, delay in reversed(rows):
        tail[on] = max(tail[on], delay + times[task] + tail[task])
    return TaskPaths(np.array(head), np.array(times), np.array(tail))


def least_makespan_of_paths(paths: TaskPaths, work: Floats, core_speeds: Floats) -> float:
    """Return what the makespan is at least [s], by paths and by what can be done beside them.

    Parameters
    ----------
    paths : TaskPaths
    work : ndarray of float64, shape (tasks,)
    core_speeds : ndarray of float64, shape (cores,)
        Work that each core does in a second, falling.

    Notes
    -----
    Tasks that cannot start before r, and behind each of which at least q is left, take
    ``r + work / speed + q`` at least, where the speed is that of as many of the fastest cores as there are tasks,
    as a core runs one task at a time. The largest of this over r and q holds the longest path of a task alone,
    the area (r = q = 0), and both combined [1]_.

    References
    ----------
    .. [1] E. B. Fernandez, B. Bussell, "Bounds on the number of processors and time for multiprocessor optimal
       schedules", IEEE Transactions on Computers C-22(8), 1973. https://doi.org/10.1109/TC.1973.5009153
    """
    if not len(work):
        return 0.0
    heads, tails = _thresholds(paths.head_s), _thresholds(paths.tail_s)
    place = (
        np.searchsorted(heads, paths.head_s, side="right") - 1,
        np.searchsorted(tails, paths.tail_s, side="right") - 1,
    )
    sums, counts = np.zeros((2, len(heads), len(tails)))
    np.add.at(sums, place, work)
    np.add.at(counts, place, 1.0)
    sums, counts = (np.cumsum(np.cumsum(each[::-1, ::-1], axis=0), axis=1)[::-1, ::-1] for each in (sums, counts))
    reached = np.cumsum(core_speeds)
    speed = reached[np.clip(counts.astype(np.int64), 1, len(reached)) - 1]
    lengths = heads[:, None] + sums / speed + tails[None, :]
    return max(paths.length_s, float(lengths[counts > 0].max()))


def _thresholds(values: Floats) -> Floats:
    """Return some of the values, ascending, the least of them first."""
    distinct: Floats = np.unique(values)
    if len(distinct) > _THRESHOLDS:
        distinct = distinct[np.unique(np.linspace(0, len(distinct) - 1, _THRESHOLDS).astype(np.int64))]
    return distinct
