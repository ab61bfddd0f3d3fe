"""Utility functions: what finishing a task is worth, falling with time (paper 000, II-C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import InputError

#: One class as its intervals' start times [urgency units], start fractions and urgency modifiers.
Intervals = tuple[Sequence[float], Sequence[float], Sequence[float]]
#: Kinds of utility classes, in `UtilityClasses.kind`.
DECAYING, PLATEAU_LINEAR = 0, 1


@dataclass(frozen=True)
class UtilityClasses:
    """Shapes of utility functions; the rows of class c are ``first[c]`` to ``first[c + 1] - 1``.

    Attributes
    ----------
    first : ndarray of int64, shape (classes + 1,)
    start_time : ndarray of float64, shape (rows,)
        Start of each interval, in urgency units; the first is 0.
    start_fraction, end_fraction : ndarray of float64, shape (rows,)
        Fraction of the priority at the interval's start, and the next interval's (the floor).
    urgency_modifier : ndarray of float64, shape (rows,)
    kind : ndarray of int64, shape (classes,)
        `DECAYING`, or `PLATEAU_LINEAR`: two rows, whose start times are where the value begins to
        fall linearly and where it is 0.
    """

    first: NDArray[np.int64]
    start_time: NDArray[np.float64]
    start_fraction: NDArray[np.float64]
    end_fraction: NDArray[np.float64]
    urgency_modifier: NDArray[np.float64]
    kind: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def from_intervals(cls, intervals: Sequence[Intervals]) -> UtilityClasses:
        """Return decaying classes, each given by its intervals.

        Parameters
        ----------
        intervals : sequence of (start times, start fractions, urgency modifiers)
            Start times [urgency units] rise from 0; fractions fall (or stay) from 1 to at least
            0; modifiers are greater than 0. The last fraction 0 makes a hard end.

        Raises
        ------
        InputError
            Naming the class, the row and the value that is out of range.
        """
        rows = [_checked_intervals(c, each) for c, each in enumerate(intervals)]
        columns = [np.concatenate([r[k] for r in rows]) if rows else np.empty(0) for k in range(4)]
        sizes = [len(r[0]) for r in rows]
        return cls(
            np.cumsum([0, *sizes], dtype=np.int64), *columns,
            kind=np.full(len(rows), DECAYING, dtype=np.int64),
        )  # fmt: skip

    @classmethod
    def exponential(cls) -> UtilityClasses:
        """Return the one class ``"exp"``: one interval, modifier 1 (algorithms B1)."""
        return cls.from_intervals([([0.0], [1.0], [1.0])])

    @classmethod
    def plateau_linear(cls, t1: float, t2: float) -> UtilityClasses:
        """Return one class of fraction 1 before `t1`, then linear to 0 at `t2` [urgency units].

        Raises
        ------
        InputError
            Unless ``0 <= t1 <= t2`` and both are finite.
        """
        if not 0 <= t1 <= t2 < np.inf:
            raise InputError(
                f"Utility class: t1 is {t1:g} and t2 is {t2:g}; 0 <= t1 <= t2 must hold."
            )
        return cls(
            np.array([0, 2]), np.array([t1, t2], dtype=np.float64), np.array([1.0, 0.0]),
            np.zeros(2), np.ones(2), np.array([PLATEAU_LINEAR]),
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence[UtilityClasses]) -> UtilityClasses:
        """Return the classes of all `parts`, in their order."""
        sizes = np.concatenate([np.diff(part.first) for part in parts])
        names = ("start_time", "start_fraction", "end_fraction", "urgency_modifier", "kind")
        columns = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
        return cls(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), *columns)

    def row_at(self, utility_class: NDArray[np.int64], tau: NDArray) -> NDArray[np.int64]:
        """Return the last row of each class that starts at or before `tau` [urgency units].

        The class's first row where none does. Binary search over all pairs at once.
        """
        low, high = self.first[utility_class], self.first[utility_class + 1]
        low, high = (np.broadcast_to(bound, tau.shape).copy() for bound in (low, high))
        steps = int(np.diff(self.first).max(initial=1)).bit_length()
        for _ in range(steps):
            middle = (low + high) // 2
            started = (middle > low) & (self.start_time[middle] <= tau)
            # where one row is left, middle == low and both bounds stay
            low, high = (
                np.where(started, middle, low),
                np.where(started | (middle == low), high, middle),
            )
        return low

    def fraction(
        self, utility_class: ArrayLike, tau: ArrayLike, urgency: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the fraction of the priority that is left (algorithms B1).

        Parameters
        ----------
        utility_class : array_like of int
        tau : array_like
            Time since arrival [urgency units], at least 0; infinite gives 0.
        urgency : array_like
            Rate of decay [1/urgency unit].

        Returns
        -------
        ndarray of float64, in [0, 1]
            Of the shape that the three arguments broadcast to.
        """
        c, tau, rho = np.broadcast_arrays(
            np.asarray(utility_class, dtype=np.int64), np.asarray(tau, dtype=np.float64),
            np.asarray(urgency, dtype=np.float64),
        )  # fmt: skip
        finite = np.isfinite(tau)
        tau = np.where(finite, tau, 0.0)
        row = self.row_at(c, tau)
        with np.errstate(over="ignore"):  # exp(-inf) is the right 0
            decay = np.exp(-rho * self.urgency_modifier[row] * (tau - self.start_time[row]))
        left = np.maximum(self.start_fraction[row] * decay, self.end_fraction[row])
        linear = self.kind[c] == PLATEAU_LINEAR
        if linear.any():
            t1, t2 = (self.start_time[self.first[c] + k * linear] for k in (0, 1))
            width = np.where(linear & (t2 > t1), t2 - t1, 1.0)
            slope = np.where(tau < t2, np.clip((t2 - tau) / width, 0.0, 1.0), 0.0)
            left = np.where(linear, np.where(tau < t1, 1.0, slope), left)
        return np.where(finite, left, 0.0)


@dataclass(frozen=True)
class UtilityFunctions:
    """The utility function of each task: priority, urgency and class.

    Attributes
    ----------
    priority : ndarray of float64, shape (tasks,)
        Utility at once.
    urgency : ndarray of float64, shape (tasks,)
        Rate of decay [1/urgency unit].
    utility_class : ndarray of int64, shape (tasks,)
    classes : UtilityClasses
    urgency_unit_s : float
        Length of the urgency unit [s]: a minute in paper 000, an hour in 001.
    """

    priority: NDArray[np.float64]
    urgency: NDArray[np.float64]
    utility_class: NDArray[np.int64]
    classes: UtilityClasses
    urgency_unit_s: float = 60.0

    def __post_init__(self) -> None:
        n = len(self.priority)
        for name in ("priority", "urgency"):
            values = getattr(self, name)
            bad = ~((values >= 0) & (values < np.inf))
            if len(values) != n or bad.any():
                raise InputError(_refused(name, values, bad, "it must be finite and at least 0"))
        bad = (self.utility_class < 0) | (self.utility_class >= len(self.classes))
        if len(bad) != n or bad.any():
            legal = f"there are classes 0 to {len(self.classes) - 1}"
            raise InputError(_refused("utility_class", self.utility_class, bad, legal))
        if not 0 < self.urgency_unit_s < np.inf:
            raise InputError(
                f"Utility functions: urgency_unit_s is {self.urgency_unit_s:g}; it must be greater "
                "than 0 s and finite."
            )

    @classmethod
    def exponential(
        cls, priority: ArrayLike, urgency: ArrayLike, *, urgency_unit_s: float = 60.0
    ) -> UtilityFunctions:
        """Return purely exponential functions, class ``"exp"``, one for each task.

        Parameters
        ----------
        priority : array_like, shape (tasks,)
        urgency : array_like
            [1/urgency unit]; a scalar serves for all.
        urgency_unit_s : float
            [s].
        """
        priority = np.array(priority, dtype=np.float64).reshape(-1)
        rho = np.broadcast_to(np.asarray(urgency, dtype=np.float64), priority.shape).copy()
        classes = UtilityClasses.exponential()
        return cls(priority, rho, np.zeros(len(rho), dtype=np.int64), classes, urgency_unit_s)

    @classmethod
    def plateau_linear(
        cls, maximum: ArrayLike, t1: ArrayLike, t2: ArrayLike, *, urgency_unit_s: float = 60.0
    ) -> UtilityFunctions:
        """Return functions that are constant to `t1`, then linear to 0 at `t2` (algorithms C6).

        Parameters
        ----------
        maximum : array_like, shape (tasks,)
            Utility at once.
        t1, t2 : array_like
            [urgency units]; scalars serve for all. Equal pairs share a class.
        urgency_unit_s : float
            [s].

        Raises
        ------
        InputError
            Unless ``0 <= t1 <= t2``.
        """
        priority = np.array(maximum, dtype=np.float64).reshape(-1)
        ends = np.empty((len(priority), 2))
        ends[:, 0], ends[:, 1] = t1, t2
        pairs, index = np.unique(ends, axis=0, return_inverse=True)
        parts = [UtilityClasses.plateau_linear(*pair) for pair in pairs.tolist()]
        parts = parts or [UtilityClasses.plateau_linear(0.0, 0.0)]
        return cls(
            priority, np.zeros(len(priority)), index.reshape(-1).astype(np.int64),
            UtilityClasses.joined(parts), urgency_unit_s,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.priority)

    def taken(self, order: ArrayLike) -> UtilityFunctions:
        """Return the functions of some tasks, in another order."""
        order = np.asarray(order)
        return replace(
            self, priority=self.priority[order], urgency=self.urgency[order],
            utility_class=self.utility_class[order],
        )  # fmt: skip

    def value(self, tasks: ArrayLike, elapsed_s: ArrayLike) -> NDArray[np.float64]:
        """Utility of tasks that finish some time after their arrival (algorithms B1).

        Parameters
        ----------
        tasks : array_like of int
            Positions of the tasks.
        elapsed_s : array_like
            Finish minus arrival [s]; at least 0, infinite where a task never finishes.

        Returns
        -------
        ndarray of float64, in [0, priority]
            Of the shape that the two arguments broadcast to.

        Raises
        ------
        InputError
            If a time is negative or not a number.

        Notes
        -----
        With ``tau = elapsed_s / urgency_unit_s`` and k the last interval that starts at or before
        tau, ``U(tau) = priority * max(F_k exp(-urgency d_k (tau - t_k)), F_{k+1})``.
        """
        tasks = np.asarray(tasks, dtype=np.int64)
        elapsed = np.asarray(elapsed_s, dtype=np.float64)
        bad = ~(elapsed >= 0)
        if bad.any():
            task = np.broadcast_to(tasks, np.broadcast_shapes(tasks.shape, elapsed.shape))
            task = task[np.broadcast_to(bad, task.shape)][0]
            raise InputError(
                f"Utility of task {task}: the time since its arrival is {elapsed[bad][0]:g} s; it "
                "must be at least 0 s."
            )
        left = self.classes.fraction(
            self.utility_class[tasks], elapsed / self.urgency_unit_s, self.urgency[tasks]
        )
        return self.priority[tasks] * left


def _refused(name: str, values: NDArray, bad: NDArray[np.bool_], legal: str) -> str:
    if not bad.any():
        return f"Utility functions: {name} has {len(values)} values; each task needs one."
    k = int(np.flatnonzero(bad)[0])
    return f"Utility functions: {name} of task {k} is {values[k]:g}; {legal}."


def _checked_intervals(number: int, intervals: Intervals) -> list[NDArray[np.float64]]:
    """Return start times, start fractions, end fractions and modifiers of one class."""
    times, fractions, modifiers = (np.array(part, dtype=np.float64) for part in intervals)
    owner = f"Utility class {number}"
    if not 0 < len(times) == len(fractions) == len(modifiers):
        raise InputError(
            f"{owner}: {len(times)} start times, {len(fractions)} fractions and {len(modifiers)} "
            "modifiers; each interval needs one of each, and there must be one interval."
        )
    if times[0] != 0 or not (np.diff(times) > 0).all() or not np.isfinite(times).all():
        raise InputError(f"{owner}: start times {times.tolist()}; they must rise from 0.")
    if fractions[0] != 1 or not (np.diff(fractions) <= 0).all() or not fractions[-1] >= 0:
        raise InputError(
            f"{owner}: start fractions {fractions.tolist()}; they must fall or stay, from 1 to at "
            "least 0."
        )
    if not ((modifiers > 0) & (modifiers < np.inf)).all():
        raise InputError(f"{owner}: urgency modifiers {modifiers.tolist()}; each must be > 0.")
    return [times, fractions, np.append(fractions[1:], 0.0), modifiers]
