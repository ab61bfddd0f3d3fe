"""The power and energy formulas, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.energy import host_energy_004, relative_difference, task_energy, total_energy
from gridsched.power import host_power

WATTS = st.floats(0.0, 1e6)


def test_equation_1_divides_work_by_efficiency():
    """1000 flop at 2 flop/J are 500 J; arrays broadcast to tasks x hosts."""
    assert task_energy(1000.0, 2.0) == 500.0
    table = task_energy(np.array([[1000.0], [500.0]]), np.array([2.0, 2.5, 5.0]))
    assert table.tolist() == [[500.0, 400.0, 200.0], [250.0, 200.0, 100.0]]


def test_equations_2_and_3_add_idle_power_and_hosts():
    """The work queue on EX-A: 1250 + 55 s x 4 W, 300 + 65 s x 4 W, 400 J, together 2430 J."""
    hosts = [
        host_energy_004([500.0, 750.0], 55.0, 4.0),
        host_energy_004([200.0, 100.0], 65.0, 4.0),
        host_energy_004([400.0], 0.0, 4.0),
    ]
    assert hosts == [1470.0, 560.0, 400.0]
    assert total_energy(hosts) == 2430.0
    assert host_energy_004([], 10.0, 4.0) == 40.0


@pytest.mark.parametrize(
    ("busy", "is_on", "watts"),
    [
        (0, True, 20.0),
        (1, True, 40.0),
        (2, True, 50.0),
        (3, True, 60.0),
        (4, True, 70.0),
        (9, True, 70.0),
        (0, False, 1.5),
        (4, False, 1.5),
    ],
)
def test_power_of_a_four_core_host(busy, is_on, watts):
    """Idle 20 W, epsilon 30 W, all cores 70 W, off 1.5 W: 10 W for each core above epsilon."""
    assert host_power(busy, 4, 20.0, 30.0, 70.0, is_on, 1.5) == watts


def test_simgrids_own_example_of_a_single_core():
    """SimGrid's energy-exec test: 10 s idle at 100 W, then 10 s at load 1 at 120 W."""
    powers = host_power([0, 1], [1, 1], 100.0, 120.0, 120.0)
    assert (powers * 10.0).sum() == 2200.0


@given(st.integers(1, 64), WATTS, WATTS, WATTS)
def test_vector_equals_scalar(cores, idle, epsilon, busy):
    """One call for all loads gives what a call for each load gives."""
    loads = np.arange(cores + 1)
    together = host_power(loads, cores, idle, epsilon, busy)
    assert together.tolist() == [float(host_power(k, cores, idle, epsilon, busy)) for k in loads]
    assert together[0] == idle
    assert together[-1] == pytest.approx(busy, rel=1e-12, abs=1e-9)


def test_relative_difference():
    """Relative to the larger; equal zeros do not differ; an unknown energy stays unknown."""
    found = relative_difference([1.0, 0.0, 99.0, math.nan], [1.0, 0.0, 100.0, 1.0])
    assert found[:3].tolist() == [0.0, 0.0, 0.01]
    assert math.isnan(found[3])
    assert relative_difference(0.0, 5.0) == 1.0
