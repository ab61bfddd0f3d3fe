"""SimGrid's own known energy answers (its examples energy-exec and energy-boot), by our runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_cases import consumed_energy_j

from gridsched.model.platform import Platform
from gridsched.platform_io.xml_reader import read_platform
from gridsched.sim.client import server
from gridsched.sim.library import load_simgrid
from gridsched.sim.world import World

HERE = Path(__file__).parent


def act_alone(platform: Platform, file: str, on: str, act) -> dict[str, float]:
    """Run one actor on a platform of this folder, in a child of our server; return the joules."""

    def simulate() -> dict[str, float]:
        world = World(platform, HERE / file)
        world.host_named[on].add_actor("alone", act, world)
        world.engine.run()
        return {host.name: consumed_energy_j(host.name) for host in platform.hosts}

    return server().call(simulate, timeout_s=30.0)[0]


def execute_and_switch(world: World) -> None:
    """The actor of energy-exec: idle 10 s, 100 Mflop, P-state 2, 100 Mflop, idle 4 + 10 s."""
    this_actor = load_simgrid().this_actor
    host = world.host_named["MyHost1"]
    this_actor.sleep_for(10)
    assert consumed_energy_j("MyHost1") == 1000.0
    this_actor.execute(100e6)
    host.pstate = 2
    this_actor.execute(100e6)
    this_actor.sleep_for(4)
    world.host_named["MyHost2"].turn_off()
    this_actor.sleep_for(10)


def shut_down_and_boot(world: World) -> None:
    """The actor of energy-boot: P-state 4 is the way down (7 s), P-state 3 the way up (150 s)."""
    this_actor = load_simgrid().this_actor
    host = world.host_named["MyHost1"]
    this_actor.sleep_for(10)
    host.pstate = 4
    this_actor.sleep_for(7)
    host.pstate = 0
    host.turn_off()
    this_actor.sleep_for(10)
    host.pstate = 3
    host.turn_on()
    this_actor.sleep_for(150)
    host.pstate = 0


def test_energy_exec():
    """2905, 2100 and 3000 J, 8005 J in total."""
    platform = read_platform(HERE / "energy_exec.xml")
    joules = act_alone(platform, "energy_exec.xml", "MyHost1", execute_and_switch)
    expected = {"MyHost1": 2905.0, "MyHost2": 2100.0, "MyHost3": 3000.0}
    assert joules == pytest.approx(expected, rel=1e-12)
    assert sum(joules.values()) == pytest.approx(8005.0, rel=1e-12)


def test_energy_boot():
    """37520 J for the host that boots and the one that watches it."""
    platform = read_platform(HERE / "energy_boot.xml")
    joules = act_alone(platform, "energy_boot.xml", "MyHost2", shut_down_and_boot)
    assert joules["MyHost2"] == pytest.approx(177 * 100.0, rel=1e-12)
    assert sum(joules.values()) == pytest.approx(37520.0, rel=1e-12)
