"""A formula of routes and models of links gives the time that SimGrid takes for a transfer alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, make_tasks, read_platform, run
from gridsched.errors import InputError
from gridsched.model.dependencies import After, Dependencies
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign

#: Hosts with a private link, of which two are shared, one is split-duplex and one of no transfer's alone.
HOSTS = {"a": "SHARED", "b": "SHARED", "c": "SPLITDUPLEX", "d": "FATPIPE"}
BANDWIDTH = {"a": 3e6, "b": 5e6, "c": 7e6, "d": 1e6}
LATENCY = {"a": 1e-3, "b": 0.4, "c": 2e-3, "d": 0.0}
MODELS = {
    "default": "",
    "CM02": '<prop id="network/model" value="CM02"/>',
    "CM02 alone": '<prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/>',
    "LV08 alone": '<prop id="network/crosstraffic" value="no"/>',
    "window": '<prop id="network/TCP-gamma" value="1e4"/>',
    "own": '<prop id="network/latency_factor" value="3"/><prop id="network/TCP-gamma" value="0"/>',
}


class Sends(Scheduler):
    """Run task 0 on one host and task 1 on another."""

    traits = Traits(trigger="event")

    def __init__(self, source: int = 0, target: int = 1) -> None:
        self.source, self.target = source, target

    def schedule(self, state):
        """Queue both at the first ask."""
        return [Assign(0, self.source), Assign(1, self.target)] if state.now == 0 else []


def star(folder: Path, config: str = "") -> Path:
    """Write a star of the hosts around a router."""
    entries = []
    for name, policy in HOSTS.items():
        entries.append(f'<host id="{name}" speed="1f"><prop id="wattage_per_state" value="1:1:2"/></host>')
        entries.append(
            f'<link id="l{name}" bandwidth="{BANDWIDTH[name]}Bps" latency="{LATENCY[name]}s" '
            f'sharing_policy="{policy}"/>'
        )
    routes = [f'<link_ctn id="l{name}"{{}}/>' for name in HOSTS]
    routes[2] = '<link_ctn id="lc" direction="{}"/>'
    for name, route in zip(HOSTS, routes, strict=True):
        entries.append(
            f'<route src="{name}" dst="hub" symmetrical="NO">{route.format("UP" if name == "c" else "")}</route>'
        )
        entries.append(
            f'<route src="hub" dst="{name}" symmetrical="NO">{route.format("DOWN" if name == "c" else "")}</route>'
        )
    path = folder / "star.xml"
    head = '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
    entries.sort(key=lambda each: each.startswith("<route"))
    body = f'<zone id="z" routing="Floyd">{"".join(entries[:8])}<router id="hub"/>{"".join(entries[8:])}</zone>'
    path.write_text(f"{head}{f'<config>{config}</config>' if config else ''}{body}</platform>")
    return path


def two_tasks(size: float = 1e7):
    """Return two tasks of 1 flop, of which the first makes data for the second."""
    one = np.array([1]), np.array([0])
    pairs = Dependencies(*one, np.array([int(After.END)]), np.zeros(1), np.array([size]))
    return make_tasks([1.0, 1.0], dependencies=pairs)


def made(file, driver, **options):
    """Return the trace of the two tasks."""
    scenario = Scenario(read_platform(file), two_tasks(), platform_file=file, driver=driver, **options)
    return run(scenario).trace


@pytest.mark.parametrize("model", MODELS)
def test_both_drivers_agree_on_a_lone_transfer(tmp_path, model):
    """Between hosts of each kind of link, under each model and its options."""
    file = star(tmp_path, MODELS[model])
    for source, target in [(0, 1), (2, 0), (2, 3), (3, 0)]:
        ends = [made(file, driver, scheduler=Sends(source, target)).horizon_s for driver in ("simgrid", "reference")]
        assert ends[0] == pytest.approx(ends[1], rel=1e-9), (source, target)


def test_a_transfer_by_hand(tmp_path):
    """LV08 from a to c: 13.01 x 3 ms; 3e6 byte/s x 0.97 / 1.05, as the way back takes link a; 1e7 bytes."""
    trace = made(star(tmp_path), "reference", scheduler=Sends(0, 2))
    (sent,) = trace.transfers
    assert sent["end"] - sent["begin"] == pytest.approx(13.01 * 3e-3 + 1e7 / (3e6 * 0.97 / 1.05), rel=1e-12)


def test_without_network_data_take_no_time(tmp_path):
    """Task 1 starts when task 0 ends, on both drivers."""
    file = star(tmp_path)
    for driver in ("simgrid", "reference"):
        assert made(file, driver, scheduler=Sends(), network="none").horizon_s == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ('<prop id="network/model" value="SMPI"/>', "SMPI"),
        ('<prop id="host/model" value="ptask_L07"/>', "ptask_L07"),
        ('<prop id="network/latency-factor" value="0:1;100:2"/>', "0:1;100:2"),
    ],
)
def test_models_without_a_formula_are_refused(tmp_path, config, part):
    """The message to a policy that sends data names the model, and what to do."""
    with pytest.raises(InputError, match=part):
        made(star(tmp_path, config), "reference", scheduler=Sends())
