"""Systems of paper 003: sizes, moments, idle power, independent draws."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from gridsched.workloads.profit_system import ProfitBag, draw_profit_system, draw_task_counts


def test_the_paper_s_size():
    """30 task types, 9 machine types of 40 machines, 11,000 tasks, no idle power."""
    spec = ProfitBag()
    system = draw_profit_system(spec)
    counts = draw_task_counts(spec, system)
    assert system.etc.shape == system.apc.shape == (30, 9)
    assert system.machines.tolist() == [40] * 9
    assert counts.sum() == 11_000
    assert not system.idle_w.any()
    assert system.frequency.sum() == pytest.approx(1)


def test_moments_of_the_matrices():
    """Mean, and the cov over all entries of a CVB matrix: sqrt((1 + a^2)(1 + b^2) - 1)."""
    system = draw_profit_system(ProfitBag(task_types=3000, machine_types=60))
    for matrix, mean, task, machine in ((system.etc, 100, 0.5, 0.35), (system.apc, 200, 0.1, 0.25)):
        cov = np.sqrt((1 + task**2) * (1 + machine**2) - 1)
        assert matrix.mean() == pytest.approx(mean, rel=0.03)
        assert matrix.std() / matrix.mean() == pytest.approx(cov, rel=0.05)


def test_idle_power_is_a_share_of_the_machine_type_s_mean():
    """5 % of the mean of each column; nothing else changes with it."""
    still, idle = (draw_profit_system(ProfitBag(idle_share=share)) for share in (0.0, 0.05))
    assert idle.idle_w.tolist() == pytest.approx((0.05 * idle.apc.sum(axis=0) / 30).tolist())
    assert np.array_equal(still.etc, idle.etc)
    assert np.array_equal(still.frequency, idle.frequency)


def test_without_variation_all_types_are_alike():
    """All covs 0 give the means themselves."""
    flat = ProfitBag(time_task_cov=0, time_machine_cov=0, power_task_cov=0, power_machine_cov=0)
    system = draw_profit_system(flat)
    assert np.all(system.etc == 100)
    assert np.all(system.apc == 200)


def test_replicates_share_the_system_and_differ_in_tasks():
    """Same seed same bag; another replicate or size draws other tasks for the same machines."""
    spec = ProfitBag(tasks=1800)
    system = draw_profit_system(spec)
    first, again = draw_task_counts(spec, system), draw_task_counts(spec, system)
    other = spec.model_copy(update={"replicate": 1})
    assert np.array_equal(first, again)
    assert not np.array_equal(first, draw_task_counts(other, system))
    assert np.array_equal(draw_profit_system(other).etc, system.etc)
    elsewhere = draw_profit_system(spec.model_copy(update={"system_seed": 6}))
    assert not np.array_equal(elsewhere.etc, system.etc)


def test_replicates_follow_the_frequencies():
    """The mean share of 400 bags is near each type's frequency: five standard errors."""
    spec = ProfitBag(tasks=100, task_types=4)
    system = draw_profit_system(spec)
    bags = [draw_task_counts(spec.model_copy(update={"replicate": k}), system) for k in range(400)]
    error = np.sqrt(system.frequency * (1 - system.frequency) / (400 * 100))
    assert np.all(np.abs(np.mean(bags, axis=0) / 100 - system.frequency) < 5 * error)


@pytest.mark.parametrize("fields", [{"tasks": 0}, {"idle_share": 1.5}, {"time_mean_s": -1}, {"machines": 3}])
def test_refused(fields):
    """Numbers out of range and unknown names."""
    with pytest.raises(ValidationError):
        ProfitBag(**fields)
