"""Queues whose means theory knows: closed forms by hand, and replicates beside them."""

from __future__ import annotations

import math

import pytest

from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.reproduction.known.queues import (
    BOOT_S,
    BUSY_W,
    IDLE_W,
    LOADS,
    MEAN_SERVICE_S,
    OFF_W,
    QUEUES,
    cobham_waits_s,
    compare,
    erlang_c,
    mean_power_w,
    mg1_wait_s,
    mmc_wait_s,
    set_up_power_w,
    set_up_wait_s,
)

DRIVERS = ["reference", pytest.param("simgrid", marks=pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL))]


def test_one_server_by_hand():
    """At half load an arrival waits as long as a service takes; of constant ones half as long."""
    assert mmc_wait_s(1, 0.5, 1.0) == pytest.approx(1.0)
    assert mg1_wait_s(0.5, 1.0, 2.0) == pytest.approx(1.0)
    assert mg1_wait_s(0.5, 1.0, 1.0) == pytest.approx(0.5)
    assert mmc_wait_s(1, 0.8, 1.0) == pytest.approx(4.0)


def test_two_servers_by_hand():
    """Of two servers at load r an arrival waits with the probability 2 r^2 / (1 + r)."""
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert erlang_c(2, 1.6) == pytest.approx(2 * 0.64 / 1.8)
    assert mmc_wait_s(2, 1.0, 1.0) == pytest.approx(1 / 3)


def test_priorities_by_hand():
    """At load 0.5 of two equal classes: 0.5 / 0.75, and that over 0.5; together as without them."""
    high, low = cobham_waits_s((0.25, 0.25), 1.0, 2.0)
    assert (high, low) == (pytest.approx(2 / 3), pytest.approx(4 / 3))
    assert (high + low) / 2 == pytest.approx(mmc_wait_s(1, 0.5, 1.0))


def test_set_up_by_hand():
    """Switched off at once, of an exponential queue at half load: 1 + (2 * 2 + 0.5 * 4) / (2 * 2)."""
    assert set_up_wait_s(0.5, 1.0, 2.0, 2.0, 0.0) == pytest.approx(2.5)
    assert set_up_wait_s(0.5, 1.0, 2.0, 2.0, math.inf) == pytest.approx(1.0)
    assert set_up_power_w(0.5, 1.0, 0.0, math.inf) == pytest.approx(mean_power_w(1, 0.5, 1.0))
    # no time to boot: off whenever it is not busy
    assert set_up_power_w(0.5, 1.0, 0.0, 0.0) == pytest.approx((OFF_W + BUSY_W) / 2)
    assert mean_power_w(4, 2.0, 1.0) == 4 * IDLE_W + 2 * (BUSY_W - IDLE_W)
    assert 0 < BOOT_S < MEAN_SERVICE_S


@pytest.mark.parametrize("name", sorted(QUEUES))
def test_theory_is_inside_the_interval(name):
    """Of few tasks, at half load; 20 replicates, 99 %."""
    found = compare(QUEUES[name], 0.5, tasks=200)
    assert [each.value for each in found if not each.holds] == []


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
def test_theory_is_inside_the_interval_on_simgrid():
    """The queue whose server is switched, by the plugin's joules."""
    found = compare(QUEUES["M/M/1 with set-up"], 0.5, tasks=100, driver="simgrid")
    assert [each.value for each in found if not each.holds] == []


@pytest.mark.long
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", sorted(QUEUES))
def test_theory_is_inside_the_interval_of_many_tasks(name, load, driver):
    """As `gridsched reproduce known` has them."""
    found = compare(QUEUES[name], load, tasks=5000, driver=driver)
    assert [each.value for each in found if not each.holds] == []
