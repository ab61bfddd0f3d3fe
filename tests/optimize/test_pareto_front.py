"""The front of energy and makespan: by hand, against every schedule, its shape and its laws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import example as example_seed
from hypothesis import strategies as st
from scipy.optimize import linprog
from typed_bags import changed, every_schedule, exact_idle_w, example, random_bag

from gridsched.errors import InputError
from gridsched.optimize.pareto_front import exact_front, feasible_energies, least_energy, non_dominated, weighted_point
from gridsched.optimize.recovery import recover
from gridsched.optimize.typed_bag import BagPlan, typed_bag

SEEDS = st.integers(0, 2**32 - 1)


def at(makespan, energy):
    """A point without its tasks."""
    return BagPlan(example(), np.zeros((1, 1)), makespan, energy)


def weighted_points(bag, weights):
    """Return the distinct points of evenly spaced weights of the energy, by rising makespan."""
    return non_dominated(weighted_point(bag, weight) for weight in np.linspace(0, 1, weights))


# ---------------------------------------------------------------------- by hand


def test_the_worked_example():
    """E5: the segment from (16 s, 200 J) to (48 s, 120 J); the weights switch at 80 / 32."""
    front = exact_front(example())
    assert front.makespans_s.tolist() == pytest.approx([16, 48], rel=1e-12)
    assert front.energies_j.tolist() == pytest.approx([200, 120], rel=1e-12)
    assert front.joules_per_second.tolist() == pytest.approx([2.5], rel=1e-12)
    for points in (front.points, weighted_points(example(), 101)):
        assert [point.x[0].tolist() for point in points] == [pytest.approx([8, 4]), pytest.approx([0, 12], abs=1e-12)]


def test_bounds_of_the_worked_example():
    """Not below 16 s and 120 J; in 32 s not below the middle of the segment."""
    front = exact_front(example())
    assert front.complete
    assert front.least_makespan_s == pytest.approx(16, rel=1e-12)
    assert front.least_energy_j(np.inf) == pytest.approx(120, rel=1e-12)
    assert front.least_energy_j(32) == pytest.approx(160, rel=1e-12)
    assert front.least_energy_j(15.9) == np.inf


def test_excess_by_hand():
    """On the front 0; (40 s, 210 J) shrinks by 1.25 to (32, 168): E + 2.5 MS = 310 over 240."""
    front = exact_front(example())
    assert front.excess(32, 160) == pytest.approx(0, abs=1e-12)
    assert front.excess(40, 210) == pytest.approx(310 / 240 - 1, rel=1e-12)
    assert front.excess(160, 121) == pytest.approx(1 / 120, rel=1e-9)


def test_least_energy_is_the_shortest_of_the_cheapest():
    """Two machine types of equal energy: both share the work."""
    bag = typed_bag([[2, 4]], [[10, 5]], [12], [1, 1])
    point = least_energy(bag)
    assert (point.energy_j, point.makespan_s) == (pytest.approx(240), pytest.approx(16))
    assert len(exact_front(bag).points) == len(weighted_points(bag, 11)) == 1


def test_ends_are_not_weakly_dominated():
    """The slow, dear second type bounds the makespan; the first type goes where it is cheap."""
    bag = typed_bag([[1, 1], [np.inf, 10]], [[50, 10], [1, 20]], [4, 1], [1, 1])
    front = exact_front(bag)
    # type 2 keeps machine 2 busy for 10 s; type 1 takes 4 s on machine 1, 50 J each
    assert front.makespans_s.tolist() == pytest.approx([10, 14])
    assert front.energies_j.tolist() == pytest.approx([200 + 200, 200 + 40])


def test_high_idle_power_makes_the_shortest_the_cheapest():
    """With 100 W idle on both machines the front is one point."""
    bag = changed(example(), apc=[[110, 102.5]], idle_w=[100, 100])
    front = exact_front(bag)
    assert front.makespans_s.tolist() == pytest.approx([16])
    assert front.energies_j.tolist() == pytest.approx([200 + 16 * 200])


def test_dominated_points_and_duplicates_go():
    """Of equal points one stays; a point worse in one and equal in the other goes."""
    points = [at(2, 5), at(1, 9), at(2, 5 + 1e-9), at(3, 5), at(1 + 1e-9, 8), at(4, 6), at(5, 1)]
    assert [(p.makespan_s, p.energy_j) for p in non_dominated(points)] == [(1 + 1e-9, 8), (2, 5), (5, 1)]


@pytest.mark.parametrize(
    ("makespan", "idle", "least", "most"),
    [
        (16, 0, 200, 200),  # the only schedule
        (20, 0, 7 * 20 + 5 * 10, 10 * 20 + 2 * 10),
        (48, 0, 120, 240),
        (48, (1, 0.25), 120 + 48, 240 + 24 + 12),
    ],
)
def test_the_feasible_region(makespan, idle, least, most):
    """Most tasks on the cheap machine, and most on the dear one."""
    found = feasible_energies(example(idle_w=idle), makespan)
    assert found == pytest.approx((least, most), rel=1e-6)
    with pytest.raises(InputError, match=r"15 s.*16 s"):
        feasible_energies(example(idle_w=idle), 15)


# ---------------------------------------------------------------------- oracles


def least_energy_within(bag, makespan):
    """Program (5) as printed with a fixed makespan [J]."""
    n_tasks, n_machines = bag.etc.shape
    energy = (bag.runnable * bag.extra_w).ravel()
    rows = np.kron(np.eye(n_tasks), np.ones(n_machines))
    columns = np.zeros((n_machines, bag.etc.size))
    for j in range(n_machines):
        columns[j, j::n_machines] = bag.runnable[:, j] / max(bag.machines[j], 1) / makespan
    bounds = [(0, most) for most in np.where(bag.usable, np.inf, 0).ravel()]
    answer = linprog(
        energy, A_ub=columns, b_ub=np.ones(n_machines), A_eq=rows, b_eq=bag.tasks, bounds=bounds, method="highs-ipm"
    )
    assert answer.status == 0
    return answer.fun + bag.all_idle_w * makespan


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.floats(0, 1))
def test_the_front_at_any_makespan(seed, share):
    """Between its corners the front is straight, and no program is below it."""
    bag = random_bag(seed)
    front = exact_front(bag)
    assert front.complete
    first, last = front.makespans_s[[0, -1]]
    makespan = max(first + share * (last - first), first * (1 + 1e-6))
    expected = least_energy_within(bag, makespan)
    at_most = np.interp(makespan, front.makespans_s, front.energies_j)
    if makespan <= last:
        assert at_most == pytest.approx(expected, rel=1e-5)
        assert front.least_energy_j(makespan) == pytest.approx(at_most, rel=1e-6)
    assert front.least_energy_j(makespan) <= expected * (1 + 1e-6)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_no_schedule_of_whole_tasks_is_below_a_line(seed):
    """Every schedule of a few tasks, in exact arithmetic, without a tolerance."""
    bag = random_bag(seed, most_tasks=2, most_machines=2, types=2)
    assume(bag.tasks.sum() <= 4)
    lines = exact_front(bag).lines
    for makespan, above_idle, _ in every_schedule(bag):
        energy = above_idle + exact_idle_w(bag) * makespan
        for line in lines:
            weighed = Fraction(line.per_joule) * energy + Fraction(line.per_second) * makespan
            assert Fraction(line.least) <= weighed


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_lines_do_not_trust_the_solver(seed):
    """The corners' own divided tasks, made feasible in exact arithmetic, are above each line."""
    bag = random_bag(seed)
    front = exact_front(bag, 12)
    for point in front.points:
        above = Fraction(0)
        busy = [Fraction(0)] * len(bag.machines)
        for i, row in enumerate(point.x):
            parts = [Fraction(float(part)) for part in row]
            scale = int(bag.tasks[i]) / sum(parts) if sum(parts) else Fraction(0)
            for j, part in enumerate(parts):
                if part:
                    seconds = part * scale * Fraction(float(bag.etc[i, j]))
                    extra = Fraction(float(bag.apc[i, j])) - Fraction(float(bag.idle_w[j]))
                    busy[j] += seconds
                    above += seconds * extra
        makespan = max(busy[j] / int(m) for j, m in enumerate(bag.machines) if m)
        energy = above + exact_idle_w(bag) * makespan
        for line in front.lines:
            weighed = Fraction(line.per_joule) * energy + Fraction(line.per_second) * makespan
            assert Fraction(line.least) <= weighed


# ---------------------------------------------------------------------- shape and laws


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_fronts_are_convex_and_not_dominated(seed):
    """Makespans rise, energies fall, slopes flatten; weighted sums find the same front."""
    bag = random_bag(seed)
    exact, points = exact_front(bag), weighted_points(bag, 11)
    makespans_s = np.array([point.makespan_s for point in points])
    energies_j = np.array([point.energy_j for point in points])
    for rising, falling in ((exact.makespans_s, exact.energies_j), (makespans_s, energies_j)):
        assert np.all(np.diff(rising) > 0)
        assert np.all(np.diff(falling) < 0)
    assert np.all(np.diff(exact.joules_per_second) < 0)
    assert makespans_s[[0, -1]] == pytest.approx(exact.makespans_s[[0, -1]], rel=1e-6)
    expected = np.interp(makespans_s, exact.makespans_s, exact.energies_j)
    assert energies_j == pytest.approx(expected, rel=1e-6)
    for point in exact.points:
        assert exact.excess(point.makespan_s, point.energy_j) == pytest.approx(0, abs=1e-7)
        assert point.x.sum(axis=1) == pytest.approx(bag.tasks)
        assert not point.x[~bag.usable].any()


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_recovered_schedules_are_above_the_front(seed):
    """Rounding and LPT never fall below a bound."""
    bag = random_bag(seed, most_tasks=30)
    front = exact_front(bag, 8)
    for point in front.points:
        found = recover(bag, point.x)
        assert found.finish_s >= front.least_makespan_s * (1 - 1e-14)
        least = front.least_energy_j(found.finish_s * (1 + 1e-14))
        assert found.energy_j >= least * (1 - 1e-12)
        assert front.excess(found.finish_s, found.energy_j) >= -1e-12


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from([3, 1000]))
def test_scaling_laws(seed, k):
    """k times tasks, times, powers, or tasks and machines."""
    bag = random_bag(seed)

    def same(other, times, energies):
        ends = exact_front(other, 2)
        assert ends.makespans_s == pytest.approx(times * base.makespans_s, rel=1e-7)
        assert ends.energies_j == pytest.approx(energies * base.energies_j, rel=1e-7)

    base = exact_front(bag, 2)
    same(changed(bag, tasks=bag.tasks * k), k, k)
    same(changed(bag, etc=bag.etc * k), k, k)
    same(changed(bag, apc=bag.apc * k, idle_w=bag.idle_w * k), 1, k)
    same(changed(bag, tasks=bag.tasks * k, machines=bag.machines * k), 1, k)


@settings(max_examples=15, deadline=None)
@example_seed(10)
@given(SEEDS)
def test_enormous_times_are_as_good_as_impossible(seed):
    """A user may write 10^28 s for "cannot run": same front, same bounds.

    A pair that draws less than the idle machine would save energy, however slow it is: there the
    bound is lower, but no rounding error times 10^28.
    """
    bag = random_bag(seed)
    impossible = ~np.isfinite(bag.etc)
    slow = np.where(impossible, 1e28, bag.etc)
    apc = np.where(impossible, np.maximum(bag.apc, bag.idle_w), bag.apc)
    expected, front = exact_front(bag, 4), exact_front(changed(bag, etc=slow, apc=apc), 4)
    assert front.makespans_s == pytest.approx(expected.makespans_s, rel=1e-7)
    assert front.energies_j == pytest.approx(expected.energies_j, rel=1e-7)
    assert front.least_makespan_s == pytest.approx(expected.least_makespan_s, rel=1e-7)
    assert front.least_energy_j(np.inf) == pytest.approx(expected.least_energy_j(np.inf), rel=1e-7)
    saving = exact_front(changed(bag, etc=slow), 4).least_energy_j(np.inf)
    assert 0 <= saving <= expected.least_energy_j(np.inf) * (1 + 1e-12)


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_bounds_are_tight_with_very_different_numbers(seed):
    """Times, powers and counts over many orders of magnitude: bounds valid and near the corners."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 10, 2))
    apc = 10 ** rng.normal(2, 0.5, shape)
    bag = typed_bag(
        10 ** rng.normal(0, 1, shape),
        apc,
        np.floor(10 ** rng.uniform(0, 9, shape[0])),
        np.floor(10 ** rng.uniform(0, 4, shape[1])),
        apc.min(axis=0) * rng.random(shape[1]),
    )
    front = exact_front(bag, 4)
    first, last = front.points[0], front.points[-1]
    assert front.least_makespan_s <= first.makespan_s * (1 + 1e-14)
    assert front.least_makespan_s == pytest.approx(first.makespan_s, rel=1e-5)
    assert front.least_energy_j(np.inf) == pytest.approx(last.energy_j, rel=1e-5)


def test_a_front_cut_short_says_so():
    """Few points: not complete, and still bounds."""
    bag = random_bag(17, types=9)
    whole = exact_front(bag)
    short = exact_front(bag, 3)
    assert len(whole.points) > 3 >= len(short.points)
    assert (whole.complete, short.complete) == (True, False)
    middle = float(whole.makespans_s.mean())
    assert short.least_energy_j(middle) <= whole.least_energy_j(middle) * (1 + 1e-12)
