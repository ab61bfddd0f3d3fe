"""Utility functions: the examples of algorithms B1, and what holds for all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.model.tasks import make_tasks
from gridsched.model.utility import UtilityClasses, UtilityFunctions
from gridsched.systems.utility.sampled_utility import (
    JOINT_PERCENT,
    PRIORITIES,
    URGENCIES,
    draw_classes,
    draw_utility_functions,
)

B1 = ((0.0, 20.0, 40.0, 60.0), (1.0, 0.6, 0.2, 0.0), (1.0, 0.5, 2.0, 1.0))


def functions(priority, urgency, intervals=B1, unit_s=60.0) -> UtilityFunctions:
    """Return the function of one task."""
    return UtilityFunctions(
        np.array([priority]), np.array([urgency]), np.array([0]), UtilityClasses.from_intervals([intervals]), unit_s
    )


def value_by_definition(priority, urgency, intervals, tau) -> float:
    """Return U(tau) as algorithms B1 writes it, in plain Python."""
    if math.isinf(tau):
        return 0.0
    times, fractions, modifiers = intervals
    k = max(k for k, t in enumerate(times) if t <= tau)
    floor = fractions[k + 1] if k + 1 < len(times) else 0.0
    decay = math.exp(-urgency * modifiers[k] * (tau - times[k]))
    return priority * max(fractions[k] * decay, floor)


@st.composite
def classes_by_intervals(draw):
    """Draw start times, fractions and modifiers of one class."""
    n = draw(st.integers(1, 9))
    steps = draw(st.lists(st.floats(0.01, 100), min_size=n - 1, max_size=n - 1))
    later = draw(st.lists(st.floats(0, 1), min_size=n - 1, max_size=n - 1))
    modifiers = draw(st.lists(st.floats(0.01, 10), min_size=n, max_size=n))
    times = [0.0, *np.cumsum(steps).tolist()]
    return times, [1.0, *sorted(later, reverse=True)], modifiers


def test_the_example_of_the_definition():
    """The numbers of B1's test line, in minutes."""
    tau = np.array([0, 3, 10, 20, 30, 40, 50, 60, 100])
    expected = [8, 5.9265, 4.8, 4.8, 2.9113, 1.6, 0.2165, 0, 0]
    assert functions(8.0, 0.1).value(0, 60 * tau) == pytest.approx(expected, abs=5e-5)


def test_the_exponential_class():
    """pi=8, rho=0.01: U(10) = 7.2387."""
    utility = UtilityFunctions.exponential([8.0], 0.01)
    assert utility.value([0], 600.0)[0] == pytest.approx(7.2387, abs=5e-5)


def test_the_urgency_unit_scales_the_time():
    """With hours, what took minutes takes hours."""
    minutes, hours = functions(8.0, 0.1), functions(8.0, 0.1, unit_s=3600.0)
    tau = np.linspace(0, 70, 50)
    assert minutes.value(0, 60 * tau) == pytest.approx(hours.value(0, 3600 * tau), rel=1e-12)


def test_tasks_and_times_broadcast():
    """A column of tasks with a row of times gives a table."""
    utility = UtilityFunctions.exponential([8.0, 4.0], [0.1, 0.2])
    table = utility.value([[0], [1]], [0.0, 60.0, 120.0])
    assert table.shape == (2, 3)
    assert table[1].tolist() == utility.value(1, [0.0, 60.0, 120.0]).tolist()
    assert utility.value(1, 60.0) == pytest.approx(4 * math.exp(-0.2))


def test_no_urgency_gives_steps():
    """rho = 0: the value is the interval's fraction."""
    values = functions(10.0, 0.0).value(0, 60 * np.array([0, 19.9, 20, 39.9, 40, 59.9, 60, 1e9]))
    assert values.tolist() == [10, 10, 6, 6, 2, 2, 0, 0]


def test_the_ends():
    """Never finished is worth 0, also where nothing decays; a last fraction above 0 goes on."""
    assert functions(8.0, 0.1).value(0, math.inf) == 0
    assert functions(8.0, 0.0, ((0.0,), (1.0,), (1.0,))).value(0, math.inf) == 0
    open_end = functions(8.0, 0.1, ((0.0, 10.0), (1.0, 0.5), (1.0, 1.0)))
    assert open_end.value(0, 60 * 30.0) == pytest.approx(4 * math.exp(-2))
    assert functions(8.0, 1e300).value(0, 60 * 1e9) == 0


@pytest.mark.parametrize("bad", [-1.0, math.nan, -math.inf])
def test_a_finish_before_the_arrival_is_refused(bad):
    """The message names the task and the time."""
    utility = UtilityFunctions.exponential([8.0, 4.0], 0.1)
    with pytest.raises(InputError, match=r"task 1.*(-|nan)"):
        utility.value([0, 1], [0.0, bad])


def test_plateau_and_line():
    """Constant to t1, linear to 0 at t2; beside decaying classes in one set."""
    utility = UtilityFunctions.plateau_linear([8.0, 4.0, 2.0], [2.0, 0.0, 1.0], [4.0, 1.0, 1.0])
    tau = 60 * np.array([0, 0.5, 1, 2, 3, 4, 5])
    assert utility.value(0, tau) == pytest.approx([8, 8, 8, 8, 4, 0, 0])
    assert utility.value(1, tau) == pytest.approx([4, 2, 0, 0, 0, 0, 0])
    assert utility.value(2, tau) == pytest.approx([2, 2, 0, 0, 0, 0, 0])
    assert utility.value(0, math.inf) == 0
    both = UtilityClasses.joined(
        [UtilityClasses.from_intervals([B1]), UtilityClasses.plateau_linear(2.0, 4.0), UtilityClasses.exponential()]
    )
    mixed = UtilityFunctions(np.full(3, 8.0), np.full(3, 0.1), np.arange(3), both)
    expected = [5.9265, 4.0, 8 * math.exp(-0.3)]
    assert mixed.value(np.arange(3), 180.0) == pytest.approx(expected, abs=5e-5)


def test_any_function_of_time():
    """Exact at the points, linear between them, constant after; equal functions share a class."""

    def half_life(tau):
        return 8.0 * 0.5 ** (tau / 30)

    utility = UtilityFunctions.sampled([half_life, lambda tau: 3.0, half_life, lambda tau: 0.0], [0, 30, 60, 90])
    assert utility.utility_class.tolist() == [0, 1, 0, 2]
    assert utility.priority.tolist() == [8, 3, 8, 0]
    tau = 60.0 * np.array([0, 15, 30, 60, 75, 90, 500, math.inf])
    assert utility.value(0, tau).tolist() == [8, 6, 4, 2, 1.5, 1, 1, 0]
    assert utility.value(1, tau).tolist() == [3] * 7 + [0]
    assert utility.value(3, tau).tolist() == [0] * 8


@pytest.mark.parametrize(
    ("function", "times", "message"),
    [
        (lambda tau: 1.0 + tau, [0, 1], r"class 0: start fractions \[1.0, 2.0\]; they must fall"),
        (lambda tau: 1.0 - tau, [0, 1, 2], r"fractions \[1.0, 0.0, -1.0\]"),
        (lambda tau: math.nan, [0, 1], "fractions"),
        (lambda tau: math.inf, [0, 1], "fractions"),
        (lambda tau: -1.0, [0, 1], "priority of task 0 is -1; it must be finite and at least 0"),
        (lambda tau: 1.0, [1, 2], r"start times \[1.0, 2.0\]; they must rise from 0"),
        (lambda tau: 1.0, [0, 2, 1], "they must rise from 0"),
        (lambda tau: 1.0, [], "there must be one interval"),
    ],
)
def test_functions_that_are_no_utilities_are_refused(function, times, message):
    """Rising, negative or no numbers; times that do not rise."""
    with pytest.raises(InputError, match=message):
        UtilityFunctions.sampled([function], times)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 1)), max_size=8),
    st.lists(st.floats(0, 1000), min_size=1, max_size=20),
)
def test_lines_between_points(points, taus):
    """As numpy interpolates where no two times are equal; never rising, jumps or not."""
    times = np.cumsum([0.0, *(step for step, _ in points)])
    fractions = [1.0, *sorted((fraction for _, fraction in points), reverse=True)]
    one = UtilityClasses.from_points(times, fractions)
    values = one.fraction(0, sorted(taus), 0.0)
    assert (np.diff(values) <= 0).all()
    if (np.diff(times) > 1e-6).all():
        assert values == pytest.approx(np.interp(sorted(taus), times, fractions), abs=1e-9)


@settings(max_examples=150)
@given(classes_by_intervals(), st.floats(0, 10), st.floats(0, 5), st.lists(st.floats(0, 1000), min_size=1, max_size=20))
def test_values_are_those_of_the_definition(intervals, priority, urgency, taus):
    """Equal to B1's formula, never rising, within [0, pi], never below the next fraction."""
    taus = sorted([*taus, *intervals[0], math.inf])
    utility = functions(priority, urgency, intervals, unit_s=1.0)
    values = utility.value(0, taus)
    expected = [value_by_definition(priority, urgency, intervals, tau) for tau in taus]
    assert values == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert (np.diff(values) <= 0).all()
    assert values[0] == priority
    assert ((values >= 0) & (values <= priority)).all()
    for tau, value in zip(taus, values, strict=True):
        later = [f for t, f in zip(*intervals[:2], strict=True) if t > tau]
        assert value >= priority * max(later, default=0.0)


@settings(max_examples=50)
@given(st.lists(classes_by_intervals(), min_size=1, max_size=5), st.floats(0, 500))
def test_each_class_of_a_set_is_as_alone(intervals, tau):
    """Classes of different lengths do not touch each other."""
    n = len(intervals)
    together = UtilityFunctions(
        np.full(n, 2.0), np.full(n, 0.1), np.arange(n), UtilityClasses.from_intervals(intervals)
    )
    alone = [functions(2.0, 0.1, each).value(0, 60 * tau) for each in intervals]
    assert together.value(np.arange(n), 60 * tau).tolist() == [float(each) for each in alone]


@pytest.mark.parametrize(
    ("intervals", "message"),
    [
        (([0.0, 2.0], [1.0], [1.0, 1.0]), "each interval needs one of each"),
        (([], [], []), "there must be one interval"),
        (([1.0], [1.0], [1.0]), "they must rise from 0"),
        (([0.0, 5.0, 5.0], [1.0, 0.5, 0.0], [1.0] * 3), "they must rise from 0"),
        (([0.0], [0.9], [1.0]), "from 1 to at least 0"),
        (([0.0, 1.0, 2.0], [1.0, 0.5, 0.6], [1.0] * 3), "must fall or stay"),
        (([0.0, 1.0], [1.0, -0.1], [1.0] * 2), "must fall or stay"),
        (([0.0], [1.0], [0.0]), "each must be > 0"),
    ],
)
def test_bad_classes_are_refused(intervals, message):
    """The message lists the parts of a class."""
    with pytest.raises(InputError, match=message):
        UtilityClasses.from_intervals([intervals])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"priority": np.array([1.0, -1.0])}, "priority of task 1 is -1; it must be finite"),
        ({"urgency": np.array([math.nan, 0.0])}, "urgency of task 0 is nan"),
        ({"utility_class": np.array([0, 1])}, "utility_class of task 1 is 1; there are classes 0"),
        ({"urgency": np.array([0.1])}, "urgency has 1 values; each task needs one"),
        ({"urgency_unit_s": 0.0}, "urgency_unit_s is 0; it must be greater than 0 s"),
    ],
)
def test_bad_functions_are_refused(changes, message):
    """The message names the field, the task and the value."""
    fields = {
        "priority": np.ones(2),
        "urgency": np.ones(2),
        "utility_class": np.zeros(2, dtype=int),
        "classes": UtilityClasses.exponential(),
    }
    with pytest.raises(InputError, match=message):
        UtilityFunctions(**{**fields, **changes})


def test_functions_follow_their_tasks_into_the_order_of_submission():
    """make_tasks permutes utility functions and task types alike."""
    utility = UtilityFunctions.exponential([1.0, 2.0, 3.0], [0.1, 0.2, 0.3])
    tasks = make_tasks([1.0] * 3, [20.0, 0.0, 10.0], task_type=[7, 8, 9], utility=utility)
    assert tasks.utility.priority.tolist() == [2, 3, 1]
    assert tasks.utility.urgency.tolist() == [0.2, 0.3, 0.1]
    assert tasks.task_type.tolist() == [8, 9, 7]
    with pytest.raises(InputError, match=r"2 tasks.*3"):
        make_tasks([1.0, 1.0], utility=utility)


def test_drawn_classes_are_as_defined():
    """Two to four decaying intervals of 5 to 60 units, then nothing; fractions and modifiers."""
    classes = draw_classes(500)
    intervals = set()
    for c in range(len(classes)):
        rows = slice(classes.first[c], classes.first[c + 1])
        times, fractions = classes.start_time[rows], classes.start_fraction[rows]
        intervals.add(len(times) - 1)
        assert ((np.diff(times) >= 5) & (np.diff(times) <= 60)).all()
        assert fractions[0] == 1
        assert fractions[-1] == 0
        assert ((fractions[1:-1] >= 0.1) & (fractions[1:-1] <= 0.9)).all()
        modifiers = classes.urgency_modifier[rows][:-1]
        assert ((modifiers >= 0.25) & (modifiers <= 2)).all()
    assert intervals == {2, 3, 4}


def test_the_default_classes_are_always_the_same():
    """20 classes, fixed by a seed of their own."""
    first, again, other = draw_classes(), draw_classes(), draw_classes(seed=1)
    assert len(first) == 20
    assert first.start_time.tolist() == again.start_time.tolist()
    assert first.start_time.tolist() != other.start_time.tolist()


def test_priorities_and_urgencies_follow_the_joint_table():
    """Each cell of table 2 within five standard deviations; classes uniform."""
    n = 200_000
    utility = draw_utility_functions(n, draw_classes(), np.random.default_rng(5))
    assert np.sum(JOINT_PERCENT) == pytest.approx(100)
    for pi, row in zip(PRIORITIES, JOINT_PERCENT, strict=True):
        for rho, percent in zip(URGENCIES, row, strict=True):
            p = percent / 100
            found = ((utility.priority == pi) & (utility.urgency == rho)).mean()
            assert abs(found - p) <= 5 * math.sqrt(p * (1 - p) / n)
    counts = np.bincount(utility.utility_class, minlength=20)
    assert (abs(counts - n / 20) < 5 * math.sqrt(n / 20)).all()
