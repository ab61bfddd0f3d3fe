"""Probability mass functions: the examples of paper 002's definition by hand, and their laws."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gridsched.errors import InputError
from gridsched.model.pmf import Pmf, from_edges, from_impulses, from_samples, point_mass


@st.composite
def grids(draw: st.DrawFn, step: float = 10.0) -> Pmf:
    """A pmf on a grid of some impulses."""
    weights = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=30)))
    first = draw(st.integers(0, 50))
    return Pmf(step * (first + np.arange(len(weights))), weights / weights.sum(), step)


@st.composite
def impulses(draw: st.DrawFn) -> Pmf:
    """A pmf of free impulses."""
    times = draw(st.lists(st.floats(0.0, 1e4), min_size=1, max_size=12, unique=True))
    weights = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=len(times), max_size=len(times))))
    return from_impulses(times, weights / weights.sum())


def as_dict(pmf: Pmf) -> dict[float, float]:
    """Return time -> mass."""
    return dict(zip(pmf.times.tolist(), pmf.masses.tolist(), strict=True))


def mass_until(pmf: Pmf, time: float) -> float:
    """Return the probability of ending at `time` or before."""
    return float(pmf.masses[pmf.times <= time].sum())


def variance(pmf: Pmf) -> float:
    """Return the variance of the time."""
    return float((pmf.times - pmf.mean) ** 2 @ pmf.masses)


# ---------------------------------------------------------------- algorithms D5, by hand


def test_running_task_of_the_worked_example():
    """Started at 5, now 18: the impulse at 15 is gone, the others share its mass."""
    running = from_impulses([10, 20, 30], [0.25, 0.5, 0.25]).shifted(5).not_before(18)
    assert as_dict(running) == pytest.approx({25.0: 2 / 3, 35.0: 1 / 3}, rel=1e-15)


def test_completion_of_the_worked_example():
    """Core 1: rho 0.86667 at the deadline 45, expected completion 42.3333."""
    running = from_impulses([10, 20, 30], [0.25, 0.5, 0.25]).shifted(5).not_before(18)
    task = from_impulses([10, 20], [0.6, 0.4])
    whole = running.convolved(task)
    assert as_dict(whole) == pytest.approx({35.0: 0.4, 45.0: 7 / 15, 55.0: 2 / 15}, rel=1e-14)
    assert mass_until(whole, 45) == pytest.approx(13 / 15, rel=1e-14)
    assert whole.late_probability(45) == pytest.approx(2 / 15, rel=1e-14)
    assert running.late_probability_of_sum(task, 45) == pytest.approx(2 / 15, rel=1e-14)
    assert whole.mean == pytest.approx(42 + 1 / 3, rel=1e-14)
    assert task.mean == pytest.approx(14, rel=1e-15)


def test_empty_core_of_the_worked_example():
    """Core 2: the task's own pmf from now on."""
    whole = from_impulses([15, 30], [0.6, 0.4]).shifted(18)
    assert as_dict(whole) == {33.0: 0.6, 48.0: 0.4}
    assert mass_until(whole, 45) == 0.6
    assert whole.mean == pytest.approx(39, rel=1e-15)


def test_nothing_left_is_a_point_mass_now():
    """A task that should have ended long ago ends now, as far as anyone knows."""
    gone = from_impulses([1, 2], [0.5, 0.5]).not_before(7)
    assert as_dict(gone) == {7.0: 1.0}
    on_grid = Pmf(np.array([0.0, 10.0]), np.array([0.5, 0.5]), 10.0).not_before(12)
    assert (as_dict(on_grid), on_grid.step) == ({12.0: 1.0}, 10.0)


def test_an_impulse_at_the_time_stays_and_at_the_deadline_counts():
    """Both comparisons include equality (algorithms D3)."""
    pmf = from_impulses([1, 2, 3], [0.25, 0.5, 0.25])
    assert as_dict(pmf.not_before(2)) == pytest.approx({2.0: 2 / 3, 3.0: 1 / 3}, rel=1e-15)
    assert pmf.late_probability(2) == 0.25
    assert pmf.late_probability([0.5, 1, 3, 9]).tolist() == [1.0, 0.75, 0.0, 0.0]


def test_quantiles_by_hand():
    """The earliest time with enough mass."""
    pmf = from_impulses([1, 2, 3], [0.25, 0.5, 0.25])
    assert pmf.quantile([0.0, 0.25, 0.26, 0.75, 0.76, 1.0]).tolist() == [1, 1, 2, 2, 3, 3]
    # eight times 0.1 is less than 0.8 as floats add up
    assert from_samples(range(1, 11)).quantile([0.8, 0.9]).tolist() == [8, 9]


# ---------------------------------------------------------------- making one


def test_gamma_on_a_grid_has_its_moments():
    """The run times of paper 002: mean 750, coefficient of variation 0.25 (algorithms D1)."""
    shape = 1 / 0.25**2
    cdf = stats.gamma(shape, scale=750 / shape).cdf
    pmf = from_edges(cdf((np.arange(300) - 0.5) * 10.0), 10.0)
    assert pmf.mean == pytest.approx(750, rel=1e-4)
    assert np.sqrt(variance(pmf)) == pytest.approx(187.5, rel=1e-3)
    k = int(np.searchsorted(pmf.times, 800.0))
    assert pmf.masses[k] == pytest.approx(cdf(805) - cdf(795), rel=2e-6)


def test_samples_share_the_mass():
    """Measured run times, free and on a grid."""
    assert as_dict(from_samples([3.0, 1.0, 3.0, 2.0])) == {1.0: 0.25, 2.0: 0.25, 3.0: 0.5}
    assert as_dict(from_samples([3.0, 1.0, 3.0, 2.0], step=2.0)) == {2.0: 0.5, 4.0: 0.5}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: from_impulses([], []), "0 times and 0 masses"),
        (lambda: from_impulses([1, 2], [0.5, 0.6]), "sum 1.1"),
        (lambda: from_impulses([1, 2], [1.5, -0.5]), "the least is -0.5"),
        (lambda: from_impulses([np.inf], [1.0]), "not finite"),
        (lambda: from_samples([]), "0 times and 0 masses"),
        (lambda: from_edges(np.array([0.9, 1.0]), 1.0), "times that are at least 0"),
        (lambda: point_mass(1.0).coarsened(0.0), "greater than 0 s"),
        (lambda: point_mass(1.0).quantile(1.5), r"\[0, 1\]"),
    ],
)
def test_what_is_no_pmf_is_refused(make, words: str):
    """The message shows what is allowed."""
    with pytest.raises(InputError, match=words):
        make()


# ---------------------------------------------------------------- laws


@given(first=grids(), second=grids())
def test_convolution_keeps_mass_and_adds_means(first: Pmf, second: Pmf):
    """Mass 1, nothing negative, the mean and the variance additive."""
    total = first.convolved(second)
    assert total.step == 10.0
    assert (total.masses >= 0).all()
    assert total.masses.sum() == pytest.approx(1, abs=1e-12)
    assert total.mean == pytest.approx(first.mean + second.mean, rel=1e-12)
    both = variance(first) + variance(second)
    assert variance(total) == pytest.approx(both, rel=1e-8, abs=1e-6)


@given(first=grids(), second=grids())
def test_grids_and_free_impulses_agree(first: Pmf, second: Pmf):
    """The same impulses, whichever way they are convolved."""
    free = Pmf(first.times, first.masses).convolved(Pmf(second.times, second.masses))
    grid = first.convolved(second)
    assert free.times == pytest.approx(grid.times, rel=1e-12)
    assert free.masses == pytest.approx(grid.masses, abs=1e-14)


def test_what_is_certain_fits_every_grid():
    """A point mass moves a grid without taking its step, wherever it is."""
    both = from_samples([1.0, 2.0], 1.0).convolved(point_mass(2.5))
    assert (both.step, as_dict(both)) == (1.0, {3.5: 0.5, 4.5: 0.5})


@pytest.mark.parametrize("lengths", [(200, 300), (1000, 90), (5000, 400)])
def test_fft_equals_the_direct_sum(lengths: tuple[int, int]):
    """To 1e-12, and with mass 1, far beyond the size from which FFT is used."""
    rng = np.random.default_rng(7)
    parts = []
    for length in lengths:
        weights = rng.gamma(0.3, size=length)
        parts.append(Pmf(10.0 * np.arange(length), weights / weights.sum(), 10.0))
    total = parts[0].convolved(parts[1])
    direct = np.convolve(parts[0].masses, parts[1].masses)
    assert np.abs(total.masses - direct).max() <= 1e-12
    assert total.masses.sum() == pytest.approx(1, abs=1e-12)


@given(pmf=impulses(), deadlines=st.lists(st.floats(0, 1.2e4), min_size=2, max_size=5))
def test_late_probability_falls_in_the_deadline(pmf: Pmf, deadlines: list[float]):
    """More time never makes lateness likelier, and both masses add to 1."""
    deadlines = sorted(deadlines)
    late = pmf.late_probability(deadlines)
    assert (np.diff(late) <= 1e-15).all()
    in_time = [mass_until(pmf, each) for each in deadlines]
    assert late + in_time == pytest.approx(np.ones(len(late)), abs=1e-11)


@given(ready=grids(), task=grids(), deadline=st.floats(0, 2000))
def test_one_sum_gives_the_late_probability_of_a_convolution(ready: Pmf, task: Pmf, deadline: float):
    """A candidate's chance needs no convolution."""
    # times of both ways are rounded differently, so none may fall on the deadline
    deadline = 10.0 * np.floor(deadline / 10.0) + 5.0
    whole = ready.convolved(task)
    assert ready.late_probability_of_sum(task, deadline) == pytest.approx(whole.late_probability(deadline), abs=2e-12)


@given(pmf=impulses(), now=st.floats(0, 1.2e4))
def test_knowing_more_leaves_a_pmf(pmf: Pmf, now: float):
    """Mass 1, nothing before now, and a mean that does not fall."""
    known = pmf.not_before(now)
    assert known.masses.sum() == pytest.approx(1, abs=1e-12)
    assert known.times[0] >= min(now, pmf.times[0])
    assert known.times[0] >= now or now <= pmf.times[0]
    assert known.mean >= pmf.mean - 1e-9 * max(1.0, pmf.mean)


@given(pmf=impulses(), step=st.floats(0.1, 500), times=st.lists(st.floats(0, 1.2e4), max_size=5))
def test_coarsening_keeps_its_error_bound(pmf: Pmf, step: float, times: list[float]):
    """The distribution function is off by at most the bound, in time."""
    coarse, error = pmf.coarsened(step)
    assert error <= step / 2 * (1 + 1e-9)
    slack = error * (1 + 1e-9) + 1e-9
    for time in times:
        assert mass_until(coarse, time) <= mass_until(pmf, time + slack) + 1e-12
        assert mass_until(coarse, time) >= mass_until(pmf, time - slack) - 1e-12
    assert coarse.mean == pytest.approx(pmf.mean, abs=slack)


@given(parts=st.lists(grids(), min_size=1, max_size=4))
def test_quantile_inverts_the_distribution_function(parts: list[Pmf]):
    """The mass until a quantile is at least the probability that was asked for."""
    total = functools.reduce(Pmf.convolved, parts)
    asked = np.linspace(0, 1, 11)
    found = total.quantile(asked)
    until = np.array([mass_until(total, time) for time in found])
    assert (until >= asked - 1e-11).all()
    assert (np.diff(found) >= 0).all()
