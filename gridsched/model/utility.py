"""Utility: what finishing a task is worth, falling with time (paper 000, II-C; algorithms B1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError

#: One class as its intervals' start times [urgency units], start fractions and urgency modifiers.
Intervals = tuple[ArrayLike, ArrayLike, ArrayLike]
#: Kinds of utility classes, in `UtilityClasses.kind`.
DECAYING, LINEAR = 0, 1


@dataclass(frozen=True)
class UtilityClasses:
    """Shapes of utility functions; the rows of class c are ``first[c]`` to ``first[c + 1] - 1``.

    Attributes
    ----------
    first : ndarray of int64, shape (classes + 1,)
    start_time : ndarray of float64, shape (rows,)
        Start of each interval, in urgency units; the first of a class is 0.
    start_fraction, end_fraction : ndarray of float64, shape (rows,)
        Fraction of the priority at the interval's start, and the next interval's (the floor).
    urgency_modifier : ndarray of float64, shape (rows,)
    kind : ndarray of int64, shape (classes,)
        `DECAYING`: exponential within an interval (algorithms B1). `LINEAR`: a straight line from
        each interval's start fraction to the next one's; urgency plays no part.
    """

    first: Integers
    start_time: Floats
    start_fraction: Floats
    end_fraction: Floats
    urgency_modifier: Floats
    kind: Integers

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
            Naming the class and what is out of range.
        """
        return cls.joined([cls._one(c, DECAYING, *each) for c, each in enumerate(intervals)])

    @classmethod
    def _one(
        cls, number: int, kind: int, times: ArrayLike, fractions: ArrayLike, modifiers: ArrayLike
    ) -> UtilityClasses:
        """Return one class; `number` is its name in error messages."""
        columns = (np.array(part, dtype=np.float64) for part in (times, fractions, modifiers))
        start_time, start_fraction, modifiers = columns
        _check_intervals(f"Utility class {number}", kind, start_time, start_fraction, modifiers)
        following = 0.0 if kind == DECAYING else start_fraction[-1]
        return cls(
            np.array([0, len(start_time)]),
            start_time,
            start_fraction,
            np.append(start_fraction[1:], following),
            modifiers,
            np.array([kind]),
        )

    @classmethod
    def exponential(cls) -> UtilityClasses:
        """Return the one class ``"exp"``: one interval, modifier 1 (algorithms B1)."""
        return cls.from_intervals([([0.0], [1.0], [1.0])])

    @classmethod
    def plateau_linear(cls, t1: float, t2: float) -> UtilityClasses:
        """Return one class of fraction 1 to `t1`, then linear to 0 at `t2` [urgency units].

        Raises
        ------
        InputError
            Unless ``0 <= t1 <= t2`` and both are finite.
        """
        if not 0 <= t1 <= t2 < np.inf:
            raise InputError(f"Utility class: t1 is {t1:g} and t2 is {t2:g}; 0 <= t1 <= t2 must hold.")
        return cls.from_points([0.0, t1, t2], [1.0, 1.0, 0.0])

    @classmethod
    def from_points(cls, times: ArrayLike, fractions: ArrayLike) -> UtilityClasses:
        """Return one class that is linear between points, and constant after the last one.

        Parameters
        ----------
        times : array_like, shape (points,)
            [urgency units]; they rise (or stay, where the value jumps) from 0.
        fractions : array_like, shape (points,)
            Of the priority; they fall (or stay) from 1 to at least 0.

        Raises
        ------
        InputError
            If a time or fraction is out of range.
        """
        return cls._one(0, LINEAR, times, fractions, np.ones(np.shape(times)))

    @classmethod
    def joined(cls, parts: Sequence[UtilityClasses]) -> UtilityClasses:
        """Return the classes of all `parts`, in their order."""
        sizes = [len(part.start_time[a:b]) for part in parts for a, b in pairwise(part.first)]
        names = ("start_time", "start_fraction", "end_fraction", "urgency_modifier")
        columns = {name: np.concatenate([[], *(getattr(part, name) for part in parts)]) for name in names}
        kind = np.array([each for part in parts for each in part.kind], dtype=np.int64)
        return cls(first=np.cumsum([0, *sizes], dtype=np.int64), kind=kind, **columns)

    def row_at(self, utility_class: Integers, tau: NDArray[Any]) -> Integers:
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
            low, high = (np.where(started, middle, low), np.where(started | (middle == low), high, middle))
        return low

    def fraction(self, utility_class: ArrayLike, tau: ArrayLike, urgency: ArrayLike) -> Floats:
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
            np.asarray(utility_class, dtype=np.int64),
            np.asarray(tau, dtype=np.float64),
            np.asarray(urgency, dtype=np.float64),
        )
        finite = np.isfinite(tau)
        tau = np.where(finite, tau, 0.0)
        row = self.row_at(c, tau)
        since, start, end = (tau - self.start_time[row], self.start_fraction[row], self.end_fraction[row])
        with np.errstate(over="ignore"):  # exp(-inf) is the right 0
            left = start * np.exp(-rho * self.urgency_modifier[row] * since)
        linear = self.kind[c] == LINEAR
        if linear.any():
            last = row == self.first[c + 1] - 1
            following = self.start_time[np.where(last, row, row + 1)]
            width = np.where(last, np.inf, following - self.start_time[row])
            left = np.where(linear, start + (end - start) * (since / width), left)
        return np.where(finite, np.maximum(left, end), 0.0)


def _check_intervals(
    owner: str, kind: int, times: NDArray[Any], fractions: NDArray[Any], modifiers: NDArray[Any]
) -> None:
    """Refuse a class whose start times, start fractions or modifiers are out of range."""
    if not 0 < len(times) == len(fractions) == len(modifiers):
        raise InputError(
            f"{owner}: {len(times)} start times, {len(fractions)} fractions and {len(modifiers)} "
            "modifiers; each interval needs one of each, and there must be one interval."
        )
    steps = np.diff(times)
    rises = (steps > 0).all() if kind == DECAYING else (steps >= 0).all()  # a line may jump
    if times[0] != 0 or not rises or not np.isfinite(times).all():
        raise InputError(f"{owner}: start times {times.tolist()}; they must rise from 0.")
    if fractions[0] != 1 or not (np.diff(fractions) <= 0).all() or not fractions[-1] >= 0:
        raise InputError(
            f"{owner}: start fractions {fractions.tolist()}; they must fall or stay, from 1 to at least 0."
        )
    if not ((modifiers > 0) & (modifiers < np.inf)).all():
        raise InputError(f"{owner}: urgency modifiers {modifiers.tolist()}; each must be > 0.")


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

    priority: Floats
    urgency: Floats
    utility_class: Integers
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
                f"Utility functions: urgency_unit_s is {self.urgency_unit_s:g}; it must be greater than 0 s and finite."
            )

    @classmethod
    def exponential(cls, priority: ArrayLike, urgency: ArrayLike, *, urgency_unit_s: float = 60.0) -> UtilityFunctions:
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
        return cls(
            priority,
            np.zeros(len(priority)),
            index.reshape(-1).astype(np.int64),
            UtilityClasses.joined(parts),
            urgency_unit_s,
        )

    @classmethod
    def sampled(
        cls, utilities: Sequence[Callable[[float], float]], times: ArrayLike, *, urgency_unit_s: float = 60.0
    ) -> UtilityFunctions:
        """Return the utility functions that are given as Python functions U(tau).

        They are evaluated once, at `times`; between these the values are linear, after the last
        time they are constant. So kernels run at full speed whatever the functions are.

        Parameters
        ----------
        utilities : sequence of callable, shape (tasks,)
            Utility some time after the arrival [urgency units]; finite, at least 0, never rising.
            Tasks with the same function share a class.
        times : array_like, shape (points,)
            Where the functions are evaluated [urgency units]; they rise from 0.
        urgency_unit_s : float
            [s].

        Raises
        ------
        InputError
            If a function rises, is negative or is not finite, or the times do not rise from 0.

        Examples
        --------
        >>> half_life = UtilityFunctions.sampled([lambda tau: 8 * 0.5 ** (tau / 30)], range(0, 121))
        >>> half_life.value([0, 0, 0], [0.0, 1800.0, 3600.0]).tolist()
        [8.0, 4.0, 2.0]
        """
        distinct = list(dict.fromkeys(utilities))
        points = np.array(times, dtype=np.float64).reshape(-1)
        values = [[float(utility(tau)) for tau in points.tolist()] for utility in distinct]
        parts = [UtilityClasses.from_points(points, _fractions(each)) for each in values]
        number_of = {utility: number for number, utility in enumerate(distinct)}
        classes = np.array([number_of[utility] for utility in utilities], dtype=np.int64)
        priority = np.array([values[c][0] for c in classes.tolist()], dtype=np.float64)
        return cls(priority, np.zeros(len(priority)), classes, UtilityClasses.joined(parts), urgency_unit_s)

    def __len__(self) -> int:
        return len(self.priority)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The arrays with an entry for each task, by name."""
        return {"priority": self.priority, "urgency": self.urgency, "utility_class": self.utility_class}

    def taken(self, order: Integers | slice) -> UtilityFunctions:
        """Return the functions of some tasks, in another order."""
        columns: dict[str, Any] = {name: each[order] for name, each in self.columns.items()}
        return replace(self, **columns)

    def value(self, tasks: ArrayLike, elapsed_s: ArrayLike) -> Floats:
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
        tau, ``U(tau) = priority * max(F_k exp(-urgency d_k (tau - t_k)), F_{k+1})``, or, in a
        linear class, ``U(tau) = priority * (F_k + (F_{k+1} - F_k) (tau - t_k) / (t_{k+1} - t_k))``.
        """
        tasks = np.asarray(tasks, dtype=np.int64)
        elapsed = np.asarray(elapsed_s, dtype=np.float64)
        bad = ~(elapsed >= 0)
        if bad.any():
            task = np.broadcast_to(tasks, np.broadcast_shapes(tasks.shape, elapsed.shape))
            task = task[np.broadcast_to(bad, task.shape)][0]
            raise InputError(
                f"Utility of task {task}: the time since its arrival is {elapsed[bad][0]:g} s; it must be at least 0 s."
            )
        left = self.classes.fraction(self.utility_class[tasks], elapsed / self.urgency_unit_s, self.urgency[tasks])
        return self.priority[tasks] * left


def _fractions(values: list[float]) -> Floats:
    """Return values as fractions of the first one; 1 throughout where they are all 0."""
    array = np.array(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # what comes out is refused
        return array / array[0] if array.any() else np.ones(len(array))


def _refused(name: str, values: NDArray[Any], bad: Booleans, legal: str) -> str:
    if not bad.any():
        return f"Utility functions: {name} has {len(values)} values; each task needs one."
    k = int(np.flatnonzero(bad)[0])
    return f"Utility functions: {name} of task {k} is {values[k]:g}; {legal}."
