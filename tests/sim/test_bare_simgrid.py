"""Joules of hosts that switch, fail, change their speed or are capped: those of SimGrid alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sim_cases import deciding, on_simgrid

from gridsched.model.carbon import Carbon
from gridsched.model.rules import EnergyBudget
from gridsched.model.site_series import Series, SiteSeries
from gridsched.model.tasks import make_tasks
from gridsched.policy.decisions import Assign, PowerOff, PowerOn, WakeAt

BARE = Path(__file__).parent / "bare_simgrid.py"
#: 100 flop/s at 20 to 40 W, or half of it at 7 to 9 W; 2 boots (50 W), 3 shuts down (30 W)
HOST = """
  <host id="{name}" speed="100f,50f,0f,0f" core="{cores}">
    <prop id="wattage_per_state" value="10:20:40,6:7:9,11:12:50,30:30:30"/>
    <prop id="wattage_off" value="1"/>
    <prop id="boot_pstate" value="2"/><prop id="boot_time_s" value="4"/>
    <prop id="shutdown_pstate" value="3"/><prop id="shutdown_time_s" value="3"/>
  </host>"""


def write(path: Path, profiles: str = "", cores: int = 1) -> Path:
    """Write hosts a and b, the master m, and profiles; return the path."""
    hosts = "".join(HOST.format(name=name, cores=cores) for name in "ab")
    path.write_text(f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="None">{hosts}
  <host id="m" speed="1f"><prop id="role" value="master"/>
    <prop id="wattage_per_state" value="0:0"/></host></zone>{profiles}
</platform>
""")
    return path


def at(steps: dict[float, list], **traits):
    """Return a policy that decides what is given for a time, and wakes then."""
    wakes = [WakeAt(time) for time in steps if time]
    return deciding(lambda state: steps.get(state.now, []) + wakes * (state.now == 0.0), **traits)


def by_simgrid_alone(platform: Path, plan: list) -> list[dict]:
    """Return what each host has drawn at each reading of a plan and at its end [J]."""
    command = [sys.executable, str(BARE), str(platform), json.dumps(plan)]
    # of the environment nothing that could find this package
    alone = subprocess.run(command, capture_output=True, text=True, timeout=60, env={}, cwd="/")
    assert alone.returncode == 0, alone.stderr
    return [json.loads(line) for line in alone.stdout.splitlines() if line.startswith("{")]


def drawn_in_all_ways(platform: Path, tasks, scheduler, plan: list, **rules) -> list[dict]:
    """Return what SimGrid alone, the model and the plugin say that a and b have drawn [J]."""
    alone = by_simgrid_alone(platform, plan)[-1]
    result = on_simgrid(platform, make_tasks(*tasks), scheduler, **rules)
    model = dict(zip(result.energy.names, result.energy.total_j.tolist(), strict=True))
    assert result.trace.horizon_s == plan[-1][0]
    ways = [alone, model, result.plugin_j]
    drawn = [{name: joules[name] for name in "ab"} for joules in ways]
    if len(result.trace.periods):
        assert result.trace.periods["consumed_j"].sum() == pytest.approx(sum(drawn[0].values()))
    return drawn


BUDGET = EnergyBudget(1e6, 7.0)


@pytest.mark.parametrize("rules", [{}, {"budget": BUDGET}])
def test_boot_and_shutdown(tmp_path, rules):
    """a shuts down from 5 to 8 s, is off to 12 s, boots to 16 s, computes to 26 s."""
    decisions = at(
        {0.0: [Assign(0, 1)], 5.0: [PowerOff(0)], 12.0: [PowerOn(0)], 16.0: [Assign(1, 0)]}, powers_hosts=True
    )
    plan = [
        [0, "execute", "b", 2000],
        [5, "pstate", "a", 3],
        [8, "pstate", "a", 0],
        [8, "off", "a", 0],
        [12, "pstate", "a", 2],
        [12, "on", "a", 0],
        [16, "pstate", "a", 0],
        [16, "execute", "a", 1000],
        [26, "end", "m", 0],
    ]
    a = 5 * 10 + 3 * 30 + 4 * 1 + 4 * 50 + 10 * 40
    expected = {"a": a, "b": 20 * 40 + 6 * 10}
    assert (
        drawn_in_all_ways(write(tmp_path / "p.xml"), ([2000.0, 1000.0],), decisions, plan, **rules)
        == [pytest.approx(expected, rel=1e-12)] * 3
    )


def test_grams_hour_by_hour(tmp_path):
    """Joules of SimGrid's plugin between the changes of the intensity, each by its grams a kWh.

    a computes, slows down, shuts down and boots meanwhile; every 10 s the day begins again.
    """
    platform = write(tmp_path / "p.xml")
    decisions = at(
        {0.0: [Assign(0, 1), Assign(1, 0, 1)], 18.0: [PowerOff(0)], 24.5: [PowerOn(0)], 28.5: [Assign(2, 0)]},
        powers_hosts=True,
        uses_dvfs=True,
    )
    plan = [
        [0, "execute", "b", 3500],
        [0, "pstate", "a", 1],
        [0, "execute", "a", 700],
        [18, "pstate", "a", 3],
        [21, "pstate", "a", 0],
        [21, "off", "a", 0],
        [24.5, "pstate", "a", 2],
        [24.5, "on", "a", 0],
        [28.5, "pstate", "a", 0],
        [28.5, "execute", "a", 1100],
    ]
    a, b = Series((0.0, 3.0, 7.5), (400.0, 100.0, 0.0)), Series((0.0, 4.0), (50.0, 650.0))
    changes = sorted({begin + 10.0 * day for day in range(4) for begin in (*a.time_s, *b.time_s)} - {0.0, 39.5})
    readings = [[time, "read", "m", 0] for time in changes if time < 39.5]
    told = by_simgrid_alone(platform, sorted([*plan, *readings, [39.5, "end", "m", 0]]))
    carbon = Carbon(SiteSeries(("a", "b"), (a, b)), period_s=10.0, pue=1.25)
    result = on_simgrid(platform, make_tasks([3500.0, 700.0, 1100.0]), decisions, carbon=carbon)
    assert result.trace.horizon_s == 39.5
    edges = [0.0, *(time for time, *_ in readings), 39.5]
    expected = 0.0
    for name, series in (("a", a), ("b", b)):
        drawn = [0.0, *(each[name] for each in told)]
        for k, begin in enumerate(edges[:-1]):
            line = max(j for j, time in enumerate(series.time_s) if time <= begin % 10.0)
            expected += 1.25 * (drawn[k + 1] - drawn[k]) * series.value[line] / 3.6e6
    metrics = result.metrics()
    assert metrics["carbon_g"] == pytest.approx(expected, rel=1e-9)
    parts = [metrics[f"carbon_{part}_g"] for part in ("busy", "idle", "boot")]
    assert sum(parts) < metrics["carbon_g"]
    shares = result.tasks["carbon_g"].sum()
    assert shares == pytest.approx(metrics["carbon_busy_g"], rel=1e-12)


@pytest.mark.parametrize("rules", [{}, {"budget": BUDGET}])
def test_failure(tmp_path, rules):
    """a is down from 20 to 25 s, and boots for 4 s; what it lost begins anew at 29 s."""
    profile = """
  <trace id="down" periodicity="-1">20 0
25 1</trace>
  <trace_connect kind="HOST_AVAIL" trace="down" element="a"/>"""
    plan = [
        [0, "execute", "a", 3000],
        [0, "execute", "b", 4000],
        [25, "pstate", "a", 2],
        [29, "pstate", "a", 0],
        [29, "execute", "a", 3000],
        [59, "end", "m", 0],
    ]
    first = deciding(
        lambda state: [Assign(t, t) for t in state.mappable.tolist() if t == 1 or state.idle_cores()[:1] == [0]]
    )
    expected = {"a": 20 * 40 + 5 * 1 + 4 * 50 + 30 * 40, "b": 40 * 40 + 19 * 10}
    assert (
        drawn_in_all_ways(write(tmp_path / "p.xml", profile), ([3000.0, 4000.0],), first, plan, **rules)
        == [pytest.approx(expected, rel=1e-12)] * 3
    )


@pytest.mark.parametrize("rules", [{}, {"budget": BUDGET}])
def test_speed_profile(tmp_path, rules):
    """Two cores, one busy: a quarter of the load from 10 s on, when a has half its speed."""
    profile = """
  <trace id="half" periodicity="-1">10 0.5</trace>
  <trace_connect kind="SPEED" trace="half" element="a"/>"""
    plan = [[0, "execute", "a", 1500], [20, "end", "m", 0]]
    expected = {"a": 10 * 30 + 10 * 25, "b": 20 * 10}
    assert (
        drawn_in_all_ways(
            write(tmp_path / "p.xml", profile, cores=2), ([1500.0],), at({0.0: [Assign(0, 0)]}), plan, **rules
        )
        == [pytest.approx(expected, rel=1e-12)] * 3
    )


def test_power_cap(tmp_path):
    """Under 52 W one host computes at full speed, or slowly beside it: b does from 10 s on."""
    wanted = [(0, 0, 0), (1, 1, 0), (1, 1, 1)]  # 40 + 10 W; 80 W is too much; 40 + 9 W

    def answer(state):
        for task, host, pstate in wanted:
            if task in state.mappable and state.power.allows([30.0, -1.0][pstate]):
                yield Assign(task, host, pstate)
                return

    plan = [[0, "execute", "a", 1000], [10, "pstate", "b", 0], [10, "execute", "b", 1000], [20, "end", "m", 0]]
    expected = {"a": 10 * 40 + 10 * 10, "b": 10 * 10 + 10 * 40}
    assert (
        drawn_in_all_ways(
            write(tmp_path / "p.xml"),
            ([1000.0, 1000.0],),
            deciding(answer, heeds_power_cap=True),
            plan,
            power_cap_w=52.0,
        )
        == [pytest.approx(expected, rel=1e-12)] * 3
    )
