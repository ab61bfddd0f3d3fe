"""Utility functions of generated tasks: classes, priorities and urgencies (algorithms B1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.model.seeds import random_stream
from gridsched.model.utility import UtilityClasses, UtilityFunctions

#: A lowest and a highest value.
Bounds = tuple[float, float]

#: Priorities of paper 000: critical, high, medium, low.
PRIORITIES = (8.0, 4.0, 2.0, 1.0)
#: Urgencies [1/urgency unit]: extreme, high, medium, low.
URGENCIES = (0.6, 0.2, 0.1, 0.01)
#: Joint percentages of priority (rows) and urgency (columns); paper 001, table 2.
JOINT_PERCENT = ((2.0, 2.0, 0.05, 0.0), (3.45, 5.0, 1.5, 3.0), (0.0, 10.0, 10.0, 10.0), (0.0, 0.0, 20.0, 33.0))


def draw_classes(
    n_classes: int = 20,
    *,
    seed: int = 0,
    intervals: tuple[int, int] = (2, 4),
    duration: Bounds = (5.0, 60.0),
    fraction: Bounds = (0.1, 0.9),
    modifier: Bounds = (0.25, 2.0),
) -> UtilityClasses:
    """Draw the default set of utility classes, which all trials share (algorithms B1).

    Parameters
    ----------
    n_classes : int
    seed : int
        Of a stream of its own: it has nothing to do with the trial's seed.
    intervals : (int, int)
        Fewest and most decaying intervals; after the last one the fraction is 0.
    duration : (float, float)
        Of each interval [urgency units], uniform.
    fraction : (float, float)
        At the start of the second and later intervals, uniform and sorted.
    modifier : (float, float)
        Urgency modifier of each interval, uniform.

    Returns
    -------
    UtilityClasses
    """
    rng = random_stream(seed, "utility_classes")
    classes = []
    for _ in range(n_classes):
        m = int(rng.integers(intervals[0], intervals[1], endpoint=True))
        times = np.append(0.0, np.cumsum(rng.uniform(*duration, m)))
        later = np.sort(rng.uniform(*fraction, m - 1))[::-1]
        fractions = np.concatenate([[1.0], later, [0.0]])
        classes.append((times, fractions, np.append(rng.uniform(*modifier, m), 1.0)))
    return UtilityClasses.from_intervals(classes)


def draw_priorities(
    rng: np.random.Generator,
    n: int,
    priorities: Sequence[Bounds],
    urgencies: Sequence[float],
    joint_percent: Sequence[Sequence[float]],
) -> tuple[Floats, Floats]:
    """Draw priority and urgency jointly (paper 001, table 2).

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of pairs.
    priorities : sequence of (float, float)
        Range of each level; the priority is uniform in it, its lower end excluded.
    urgencies : sequence of float
        [1/urgency unit].
    joint_percent : sequence of sequence of float
        Share of each pair of priority level (rows) and urgency; scaled to a sum of 1.

    Returns
    -------
    priority, urgency : ndarray of float64, shape (n,)
    """
    share = np.asarray(joint_percent, dtype=np.float64).ravel()
    row, column = np.divmod(rng.choice(len(share), size=n, p=share / share.sum()), len(urgencies))
    lowest, highest = np.asarray(priorities, dtype=np.float64)[row].T
    if (lowest < highest).any():
        highest = highest - rng.random(n) * (highest - lowest)
    return highest, np.asarray(urgencies, dtype=np.float64)[column]


def draw_utility_functions(
    n: int,
    classes: UtilityClasses,
    rng: np.random.Generator,
    *,
    priorities: tuple[float, ...] = PRIORITIES,
    urgencies: tuple[float, ...] = URGENCIES,
    joint_percent: tuple[tuple[float, ...], ...] = JOINT_PERCENT,
    urgency_unit_s: float = 60.0,
) -> UtilityFunctions:
    """Draw priority and urgency of each task jointly, and its class uniformly.

    Parameters
    ----------
    n : int
        Number of tasks.
    classes : UtilityClasses
    rng : numpy.random.Generator
    priorities : tuple of float
    urgencies : tuple of float
        [1/urgency unit].
    joint_percent : tuple of tuple of float
        Share of each (priority, urgency) pair; scaled to a sum of 1.
    urgency_unit_s : float
        [s].

    Returns
    -------
    UtilityFunctions
    """
    priority, urgency = draw_priorities(rng, n, [(each, each) for each in priorities], urgencies, joint_percent)
    utility_class: Integers = rng.integers(len(classes), size=n)
    return UtilityFunctions(priority, urgency, utility_class, classes, urgency_unit_s)
