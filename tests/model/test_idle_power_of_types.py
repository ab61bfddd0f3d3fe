"""Idle power by host type: what it adds to a run's energy, by hand, and to an energy budget."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.rules import EnergyBudget
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks

INF = np.inf


def two_types(idle_w=0.0) -> TaskTypes:
    """Type 0 takes 2 s at 10 W or 4 s at 2.5 W; type 1 runs on the second host type only, 3 s."""
    etc = np.array([[[2.0], [4.0]], [[INF], [3.0]]])
    apc = np.array([[[10.0], [2.5]], [[0.0], [5.0]]])
    return TaskTypes(etc, apc, np.array([0, 1]), idle_w=np.array(idle_w))


def bag(*task_type: int):
    """Tasks of these types, all there at the start."""
    return make_tasks([TYPED_TASK_FLOPS] * len(task_type), task_type=list(task_type))


def scenario(types: TaskTypes, tasks, **changes) -> Scenario:
    """The tasks on the two hosts, each to the host that finishes it first."""
    return Scenario(typed_platform(types), tasks, "mct", types=types, **changes)


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize(("idle_w", "idle_j"), [(0.0, 0.0), ((1.0, 0.25), 1.0), (2.0, 2.0)])
def test_an_idle_host_draws_its_types_power(driver, idle_w, idle_j):
    """Host 0: 20 J in 2 s, then idle for 1 s; host 1: 15 J in 3 s."""
    result = run(scenario(two_types(idle_w), bag(0, 1), driver=driver))
    numbers = result.summary()
    assert numbers["makespan_s"] == pytest.approx(3.0, rel=1e-12)
    assert numbers["energy_idle_j"] == pytest.approx(idle_j, rel=1e-12)
    assert numbers["energy_j"] == pytest.approx(35.0 + idle_j, rel=1e-12)
    assert numbers["energy_model_j"] == pytest.approx(35.0 + idle_j, rel=1e-12)


def test_a_task_may_draw_less_than_its_idle_host():
    """A type that waits for memory, say: 2.5 W on a host that idles at 4 W."""
    result = run(scenario(two_types((1.0, 4.0)), bag(0, 0, 0), driver="reference"))
    # host 0: 2 tasks, 4 s at 10 W; host 1: 1 task, 4 s at 2.5 W
    assert result.summary()["energy_j"] == pytest.approx(50.0, rel=1e-12)


def test_every_p_state_of_a_host_has_its_types_idle_power():
    """Whatever a host ran last, it idles at the same power; the default is 0."""
    platform = typed_platform(two_types((1.0, 0.25)))
    assert platform.idle_w.tolist() == [[1.0, 1.0], [0.25, 0.25]]
    assert typed_platform(two_types()).idle_w.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_the_energy_budget_counts_idle_power():
    """A period of 2 s: host 0 busy 20 J; host 1 busy 10 J; the next: 1 J idle, and 5 J."""
    budget = EnergyBudget(100.0, period_s=2.0)
    types = two_types((1.0, 0.25))
    trace = run(scenario(types, bag(0, 1), driver="reference", budget=budget)).trace
    assert trace.periods["consumed_j"].tolist() == pytest.approx([30.0, 6.0], rel=1e-12)


def test_estimates_hand_idle_power_on():
    """A policy reads it by host type, of these tasks and of others."""
    estimates = two_types((1.0, 0.25)).estimates(bag(0, 1))
    assert estimates.idle_w.tolist() == [1.0, 0.25]
    assert estimates.of(bag(1)).idle_w.tolist() == [1.0, 0.25]


@pytest.mark.parametrize("idle_w", [(-1.0, 0.0), (1.0,), (1.0, 2.0, 3.0), (INF, 0.0), (np.nan, 0)])
def test_illegal_idle_powers_are_refused(idle_w):
    """One number for each host type, from 0 on."""
    with pytest.raises(InputError, match="2 host types"):
        two_types(idle_w)
