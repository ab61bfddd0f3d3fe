"""Runs against bare SimGrid, and the execution modes against each other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sim_cases import acting, deciding, ex_a, on_simgrid, write_star

from gridsched.drivers.simgrid_library import load_simgrid
from gridsched.errors import InputError, SimulationError
from gridsched.model.carbon import Carbon
from gridsched.model.data_files import DataFiles
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.series import Series, SiteSeries
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.xml_reader import read_platform
from gridsched.policy.decisions import Assign, Cancel, Drop, Plan, PowerOff, PowerOn, WakeAt
from gridsched.runs.plugin_agreement import check_energy_agreement, energy_check
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.workloads.bag import BagOfTasks, generate_bag

# Joules of hosts that switch, fail, change their speed or are capped: those of SimGrid alone.

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


def consumed_in_all_modes(platform: Path, tasks, scheduler, plan: list, **rules) -> list[dict]:
    """Return what SimGrid alone, the model and the plugin say that a and b have drawn [J]."""
    alone = by_simgrid_alone(platform, plan)[-1]
    result = on_simgrid(platform, make_tasks(*tasks), scheduler, **rules)
    model = dict(zip(result.energy.names, result.energy.total_j.tolist(), strict=True))
    assert result.trace.horizon_s == plan[-1][0]
    each_joules = [alone, model, result.plugin_j]
    consumed = [{name: joules[name] for name in "ab"} for joules in each_joules]
    if len(result.trace.periods):
        assert result.trace.periods["consumed_j"].sum() == pytest.approx(sum(consumed[0].values()))
    return consumed


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
        consumed_in_all_modes(write(tmp_path / "p.xml"), ([2000.0, 1000.0],), decisions, plan, **rules)
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
        consumed = [0.0, *(each[name] for each in told)]
        for k, begin in enumerate(edges[:-1]):
            line = max(j for j, time in enumerate(series.time_s) if time <= begin % 10.0)
            expected += 1.25 * (consumed[k + 1] - consumed[k]) * series.value[line] / 3.6e6
    metrics = result.metrics()
    assert metrics["carbon_g"] == pytest.approx(expected, rel=1e-9)
    parts = [metrics[f"carbon_{part}_g"] for part in ("busy", "idle", "boot")]
    assert sum(parts) < metrics["carbon_g"]
    shares = result.tasks["carbon_g"].sum()
    assert shares == pytest.approx(metrics["carbon_busy_g"], rel=1e-12)


@pytest.mark.parametrize("rules", [{}, {"budget": BUDGET}])
def test_failure(tmp_path, rules):
    """a is down from 20 to 25 s, and boots for 4 s; what it lost begins again at 29 s."""
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
        consumed_in_all_modes(write(tmp_path / "p.xml", profile), ([3000.0, 4000.0],), first, plan, **rules)
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
        consumed_in_all_modes(
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
        consumed_in_all_modes(
            write(tmp_path / "p.xml"),
            ([1000.0, 1000.0],),
            deciding(answer, respects_power_cap=True),
            plan,
            power_cap_w=52.0,
        )
        == [pytest.approx(expected, rel=1e-12)] * 3
    )


# Without a network SimGrid, all in the maestro or with actors, does what the reference does.


def check_all_modes(platform, tasks, scheduler, modes=("maestro", "actors"), **rules):
    """Run with the reference driver and all execution modes on SimGrid; return the reference's trace."""
    expected = on_simgrid(platform, tasks, scheduler, driver="reference", **rules).trace
    for execution_mode in modes:
        result = on_simgrid(platform, tasks, scheduler, execution_mode=execution_mode, **rules)
        assert trace_differences(expected, result.trace) == []
        assert metered_differences(result) == []
        assert result.trace.mapping_events == expected.mapping_events
        same = ["task", "host", "pstate", "outcome"]
        order = np.lexsort([expected.executions[name] for name in ("task", "host", "start")])
        other = np.lexsort([result.trace.executions[name] for name in ("task", "host", "start")])
        assert expected.executions[same][order].tolist() == result.trace.executions[same][other].tolist()
    return expected


def grid(boot_time_s: float = 0.0, cores: int = 1) -> Platform:
    """Four hosts of different speed, each with two P-states, an off power and a boot time."""
    return Platform(
        tuple(
            Host(
                f"h{k}",
                (PState(speed, 5.0 + k, 9.0, 30.0 + k), PState(speed / 2, 4.0, 5.0, 11.0)),
                cores=cores,
                off_w=0.5 * k,
                boot_time_s=boot_time_s,
            )
            for k, speed in enumerate((100.0, 70.0, 50.0, 31.0), start=1)
        )
    )


SIZES = [700.0, 350.0, 1400.0, 100.0, 100.0, 900.0, 50.0, 620.0, 310.0, 1000.0]
TASKS = make_tasks(SIZES, [0.0] * 5 + [3.0] * 2 + [20.0] * 3)


def nap(state):
    """Fill idle hosts, boot others for the rest, and switch off what has nothing to do."""
    waiting, idle = state.mappable.tolist(), sorted(set(state.idle_cores()))
    off = np.flatnonzero(~state.is_on).tolist()
    decisions = [Assign(task, host) for task, host in zip(waiting, idle, strict=False)]
    for task, host in zip(waiting[len(idle) :], off, strict=False):
        decisions += [PowerOn(host), Assign(task, host)]
    running = set(state.running["host"].tolist())
    return decisions + [PowerOff(h) for h in idle[len(waiting) :] if h not in running]


@pytest.mark.parametrize("boot_time_s", [0.0, 2.5])
@pytest.mark.parametrize("cores", [1, 2])
def test_hosts_go_off_and_on_again(boot_time_s, cores):
    """Idle hosts are switched off, and booted when more tasks come."""
    policy = deciding(nap, powers_hosts=True)
    trace = check_all_modes(grid(boot_time_s, cores), TASKS, policy, modes=("auto",))
    switched = trace.host_changes[trace.host_changes["time"] > 0]
    assert switched["is_on"].any()
    assert not switched["is_on"].all()


def test_a_host_can_be_switched_off_and_on_in_one_instant():
    """What is assigned in between is not lost."""

    def answer(state):
        if state.now == 0:
            return [PowerOff(0), PowerOn(0), Assign(0, 0)]
        return []

    trace = check_all_modes(grid(), [100.0], deciding(answer, powers_hosts=True), modes=("auto",))
    assert trace.finish_time_s.tolist() == [1.0]


def test_a_boot_that_is_broken_off():
    """On, off while booting, on again: the task starts after the second boot."""

    def answer(state):
        return {
            0.0: [PowerOff(1), Assign(0, 0), WakeAt(1.0), WakeAt(2.0), WakeAt(3.0)],
            1.0: [PowerOn(1)],
            2.0: [PowerOff(1)],
            3.0: [PowerOn(1), Assign(1, 1)],
        }.get(state.now, [])

    policy = deciding(answer, powers_hosts=True)
    trace = check_all_modes(grid(2.5), [100.0, 70.0], policy, modes=("auto",))
    assert trace.start_time_s.tolist() == [0.0, 5.5]


def test_hosts_that_are_off_from_the_start_draw_their_off_power():
    """Off hosts are not charged as idle, whatever the P-state."""
    for pstate in (0, 1):
        trace = check_all_modes(grid(), SIZES, "wq", modes=("auto",), hosts_off=("h2", "h4"), pstate=pstate)
        assert set(trace.executions["host"].tolist()) == {0, 2}


def test_idle_hosts_in_a_slow_pstate_are_charged_for_it():
    """Before its first task a host idles in the scenario's P-state, not in the file's."""
    check_all_modes(grid(), make_tasks([100.0, 50.0], 4.0), "mct", pstate=1)


def test_the_pstate_of_the_file_counts_and_what_is_asked_for_goes_before(tmp_path):
    """A platform file may start its hosts in another P-state than the scenario."""
    path = write_star(tmp_path / "p.xml", [10.0, 7.0])
    path.write_text(path.read_text().replace('id="w1"', 'id="w1" pstate="1"'))
    for asked, end in ((None, 6.0), (0, 5.0), ("w2=0", 6.0), ("w?=1,w1=0", 5.0)):
        trace = check_all_modes(path, make_tasks([10.0], 4.0), "wq", pstate=asked)
        assert trace.finish_time_s.tolist() == [end]


def test_a_policy_that_chooses_pstates():
    """Every task in its own P-state, on hosts with one core."""

    def answer(state):
        pairs = zip(state.waiting(), state.idle_cores(), strict=False)
        return [Assign(task, host, task % 2) for task, host in pairs]

    trace = check_all_modes(grid(), TASKS, deciding(answer, uses_dvfs=True))
    assert set(trace.executions["pstate"].tolist()) == {0, 1}


def test_a_plan_with_a_mapping_interval_and_wake_ups_without():
    """Timers: multiples of an interval that is not a binary fraction; and wakes between ends."""
    for scheduler in ("min_min", "sufferage", "wq", "mct"):
        check_all_modes(grid(cores=2), TASKS, scheduler, mapping_interval_s=0.7)

    def doze(state):
        if state.now < 30.0 and len(state.mappable):
            return [WakeAt(state.now + 0.3), *nap(state)[:1]]
        return [Assign(t, 0) for t in state.waiting()]

    check_all_modes(grid(), SIZES, deciding(lambda state: doze(state), powers_hosts=True), ("auto",))


def test_a_policy_that_cancels_and_drops():
    """Queued tasks are withdrawn, running copies cancelled, one task dropped."""

    def answer(state):
        if state.now == 0:
            first = [Assign(0, 0), Assign(1, 0), Assign(2, 1), Assign(3, 2), Assign(2, 2)]
            return [*first, Drop(4), Plan([5], [3])]
        return {2.0: [Cancel(1), Assign(1, 3), Cancel(2, 2)] if len(state.queue_tasks) else []}.get(state.now, [])

    policy = deciding(answer, may_cancel=True, may_drop=True, replicates=True)
    tasks = [900.0, 350.0, 1400.0, 100.0, 100.0, 620.0]
    trace = check_all_modes(grid(), tasks, policy, modes=("auto",))
    assert len(trace.executions) == 6


@pytest.mark.parametrize("scheduler", ["xsufferage", "sufferage", "wqr", "min_min", "wq", "lecsa"])
def test_input_files_are_staged_alike(scheduler):
    """Transfers into clusters are gridsched's own model; it gives the same on all ways."""
    hosts = grid().hosts
    platform = Platform(hosts, (Cluster("A", (0, 1), 10.0, 0.25), Cluster("B", (2, 3), 7.0, 1.0)))
    files = DataFiles(("f", "g", "h"), np.array([100.0, 35.0, 12.0]), (("A",), ("B",), ("h1", "B")))
    needs = [(0,), (1,), (0, 1), (), (2,), (1, 2), (0,), (), (2,), (0, 1, 2)]
    tasks = make_tasks(SIZES, TASKS.submit_time_s, input_files=needs, files=files)
    check_all_modes(platform, tasks, scheduler, modes=("auto", "actors"), network="none")


def test_the_maestro_is_refused_where_it_cannot_serve():
    """Cancellation and switching need actors; the message names what to write."""
    with pytest.raises(InputError, match="use execution_mode='auto'"):
        on_simgrid(ex_a(), SIZES, "wqr", execution_mode="maestro")
    with pytest.raises(InputError, match="use execution_mode='auto'"):
        on_simgrid(ex_a(), SIZES, "wq", execution_mode="maestro", hosts_off=("h1",))


@pytest.mark.parametrize("execution_mode", ["maestro", "actors"])
def test_simgrid_stops_only_where_something_ends_or_starts(execution_mode, tmp_path):
    """A mapping event that changes nothing costs no stop of its clock; starts are in time."""
    seen = tmp_path / "clocks"

    def answer(state):
        with seen.open("a") as file:
            print(state.now, load_simgrid().Engine.instance.clock, file=file)
        return [Assign(task, task) for task in state.waiting()]

    tasks = make_tasks([1000.0, 350.0], [0.0, 2.2])
    result = on_simgrid(grid(), tasks, deciding(answer), execution_mode=execution_mode, mapping_interval_s=0.5)
    assert result.trace.start_time_s.tolist() == [0.0, 2.5]
    assert result.trace.finish_time_s.tolist() == [10.0, 7.5]
    assert metered_differences(result) == []
    times, clocks = np.loadtxt(seen).T
    assert times.tolist() == [0.5 * k for k in range(20)]
    assert sorted(set(clocks.tolist())) == [0.0, 2.5, 7.5]


@pytest.mark.parametrize(("scheduler", "n_tasks"), [("wqr", 12), ("lecsa", 400)])
def test_many_cores_need_no_threads(scheduler, n_tasks):
    """2,000 hosts of 64 cores: one actor leads, where a thread for each core could not be made."""
    hosts = [Host(f"h{k}", (PState(100.0 + k, 5.0, 9.0, 30.0),), cores=64, off_w=1.0) for k in range(2000)]
    sizes = [1000.0 + 7.0 * (k % 41) for k in range(n_tasks)]
    check_all_modes(Platform(tuple(hosts)), sizes, scheduler, modes=("auto",))


def test_only_the_leading_actor_has_a_thread():
    """Four hosts of two cores compute; the process has two threads, its own and the lead."""

    def look(state):
        status = Path("/proc/self/status").read_text()
        n_threads = int(status.split("Threads:")[1].split()[0])
        if n_threads > 2:
            raise ValueError(f"{n_threads} threads")

    trace = on_simgrid(grid(cores=2), SIZES, acting(look, replicates=True)).trace
    assert len(trace.executions) == len(SIZES)


def test_an_unknown_host_cannot_be_off():
    """A host name that the platform lacks is refused."""
    with pytest.raises(InputError, match="'h9'"):
        on_simgrid(ex_a(), SIZES, "wq", hosts_off=("h9",))


def test_very_small_and_very_large_times():
    """Run times from a microsecond to years agree, too."""
    platform = Platform((Host("h1", (PState(1e9, 1, 2, 3),)), Host("h2", (PState(1e3, 1, 2, 3),))))
    for tasks in ([1e3, 1e4, 1e3], [1e17, 3e11, 1e9], make_tasks([1e9, 2e3, 5e7], [0.0, 1e6, 1e9])):
        check_all_modes(platform, tasks, "mct")


def shifted_wattage(result):
    """Return the trace with one wattage of h2 a millionth larger."""
    hosts = list(result.trace.platform.hosts)
    state = hosts[1].pstates[0]
    larger = replace(state, busy_w=state.busy_w * (1 + 1e-6), epsilon_w=state.epsilon_w * (1 + 1e-6))
    hosts[1] = replace(hosts[1], pstates=(larger,))
    return replace(result.trace, platform=replace(result.trace.platform, hosts=tuple(hosts)))


def shifted_start(result):
    """Return the trace with one start on h2 a microsecond later."""
    executions = result.trace.executions.copy()
    first = np.flatnonzero(executions["host"] == 1)[0]
    executions["start"][first] += 1e-6
    return replace(result.trace, executions=executions)


@pytest.mark.parametrize("shift", [shifted_wattage, shifted_start])
def test_the_comparison_of_energies_finds_a_millionth(shift):
    """Negative control: one wattage or start shifted by 1e-6 shows, on that host and no other."""
    from gridsched.energy import compare_energy

    result = on_simgrid(ex_a(), SIZES)
    assert metered_differences(result) == []
    rows = compare_energy(shift(result), result.plugin_j)
    wrong = [row["host"] for row in rows if row["relative_difference"] > 1e-9]
    assert wrong == ["h2", "total"]


def test_tasks_of_microseconds_agree_within_the_precision_of_the_clock():
    """10,000 tasks in 15 ms, where 1e-9 s of SimGrid's clock is more than a relative 1e-9; a thousandth is found."""
    platform = read_platform(Path(__file__).resolve().parents[2] / "platforms" / "green500.xml")
    tasks = generate_bag(BagOfTasks(tasks=10_000, mean_flops=1e12))
    result = on_simgrid(platform, tasks)
    rows = energy_check(result)
    assert max(row["relative_difference"] for row in rows) > 1e-9
    check_energy_agreement(result)
    host = rows[0]["host"]
    wrong = replace(result, plugin_j={**result.plugin_j, host: 1.001 * result.plugin_j[host]})
    with pytest.raises(SimulationError, match=re.escape(host)):
        check_energy_agreement(wrong)
