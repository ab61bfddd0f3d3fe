"""Hosts that change with time on SimGrid: its own profiles, the model's ends, the same joules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_cases import consumed_energy_j, largest_difference

from gridsched.drivers.simgrid_library import load_simgrid
from gridsched.energy import grid_energy_between
from gridsched.errors import InputError, InvalidDecision
from gridsched.model.host_profiles import HostProfiles, Profile, SampledFailures
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.registry import make_scheduler
from gridsched.runs.plugin_agreement import check_energy_agreement
from gridsched.runs.run import run
from gridsched.scenario import Scenario
from gridsched.sim.client import server

POWER = '<prop id="wattage_per_state" value="10:20:40"/><prop id="wattage_off" value="1"/>'
FILE = f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <zone id="hosts" routing="Full">
      <host id="a" speed="100f" speed_file="half.txt">{POWER}</host>
      <host id="b" speed="100f" core="2" state_file='out.txt'>{POWER}</host>
    </zone>
    <cluster id="c" prefix="c" suffix="" radical="0-1" speed="50f" bw="1GBps" lat="0s">
      {POWER}
    </cluster>
    <zone id="front" routing="Full">
      <host id="m" speed="1f"><prop id="role" value="master"/>{POWER}</host>
      <link id="l" bandwidth="1kBps" latency="0s" bandwidth_file="link.txt"/>
    </zone>
    <zoneRoute src="front" dst="hosts" gw_src="m" gw_dst="a"><link_ctn id="l"/></zoneRoute>
  </zone>
  <trace id="slow" periodicity="12">
    0 0.25
    6 1.5
  </trace>
  <trace id="blink" periodicity="-1">
    7 0
    9 1
    LOOPAFTER 3
  </trace>
  <trace_connect kind="SPEED" trace="slow" element="c0"/>
  <trace_connect trace="blink" element="c1"/>
</platform>
"""


@pytest.fixture
def file(tmp_path) -> Path:
    """A platform with every kind of profile, and the files that it names."""
    (tmp_path / "half.txt").write_text("# date share\n10 0.5\n\n30 1\n")
    (tmp_path / "out.txt").write_text("4 0\n6.5 1\nPERIODICITY 11\n")
    (tmp_path / "link.txt").write_text("3 500\n")
    path = tmp_path / "p.xml"
    path.write_text(FILE)
    return path


def on_both(platform, tasks, scheduler, **settings):
    """Run with both drivers, which must agree on all that happens; return SimGrid's result."""
    results = [
        run(Scenario(platform, tasks, scheduler, driver=driver, timeout_s=60.0, **settings))
        for driver in ("reference", "simgrid")
    ]
    first, second = (result.trace for result in results)
    assert first.final_state.tolist() == second.final_state.tolist()
    for column in ("task", "host", "outcome"):
        assert first.executions[column].tolist() == second.executions[column].tolist()
    for column in ("start", "end"):
        assert second.executions[column] == pytest.approx(first.executions[column], rel=1e-9)
    assert first.host_changes.tolist() == second.host_changes.tolist()
    assert largest_difference(results[1]) <= 1e-9
    return results[1]


@pytest.mark.parametrize("on_failure", ["restart", "failed"])
def test_file_with_profiles(file, on_failure):
    """Inline and in files, once and in rounds, of hosts and of a cluster's hosts."""
    tasks = make_tasks([900.0, 2500.0, 300.0, 300.0, 400.0, 150.0, 80.0, 600.0])
    result = on_both(file, tasks, "mct", on_failure=on_failure)
    assert (result.trace.executions["outcome"] == 3).any()
    assert [name for name, _ in result.trace.platform.profiles.speeds] == ["a", "c0"]
    assert {Path(name).name for name in result.provenance["inputs"]} >= {"half.txt", "out.txt"}


def test_speeds_with_messages(file):
    """Messages cross a link whose bandwidth changes, and the speed of hosts changes, too."""
    text = FILE.replace(" state_file='out.txt'", "")
    text = text.replace('<trace_connect trace="blink" element="c1"/>', "")
    route = '<zoneRoute src="front" dst="c" gw_src="m" gw_dst="cc_router"><link_ctn id="l"/>'
    route = f"{route}</zoneRoute>"
    file.write_text(text.replace('  </zone>\n  <trace id="slow', f'    {route}\n  </zone>\n  <trace id="slow'))
    tasks = make_tasks([900.0] * 6, input_bytes=[1000.0] * 6)
    result = run(Scenario(file, tasks, "wq", timeout_s=60.0))
    check_energy_agreement(result)
    # the master computes nothing: its speed is of no use
    changing = file.read_text().replace('"m" speed="1f"', '"m" speed="1f" speed_file="half.txt"')
    file.write_text(changing)
    same = run(Scenario(file, tasks, "wq", timeout_s=60.0))
    check_energy_agreement(same)
    assert same.trace.executions.tolist() == result.trace.executions.tolist()
    file.write_text(changing.replace('speed_file="half.txt">', 'state_file="half.txt">', 2))
    with pytest.raises(InputError, match=r"'m'.*master"):
        run(Scenario(file, make_tasks([900.0]), "wq"))


def platform(profiles: HostProfiles, n: int, cores: tuple[int, ...]) -> Platform:
    pstates = (PState(100.0, 10.0, 20.0, 40.0), PState(37.0, 5.0, 8.0, 11.0))
    hosts = tuple(Host(f"h{k}", pstates, cores=cores[k], off_w=1.0, boot_time_s=0.5 * (k == 2)) for k in range(n))
    return Platform(hosts, (Cluster("c", tuple(range(n))),), profiles=profiles)


dates = st.lists(st.integers(0, 30) | st.floats(0.01, 30.0), min_size=1, max_size=4)
rounds = st.none() | st.floats(1.0, 20.0)


@st.composite
def profiles(draw, values) -> Profile:
    when = tuple(float(date) for date in sorted(draw(dates)))
    return Profile(when, tuple(draw(values) for _ in when), draw(rounds))


@given(
    st.lists(st.none() | profiles(st.sampled_from([0.05, 0.5, 1.0, 3.0])), min_size=3, max_size=3),
    st.lists(st.none() | profiles(st.sampled_from([0.0, 1.0])), min_size=2, max_size=2),
    st.tuples(*[st.integers(1, 3)] * 3),
    st.lists(st.integers(1, 15).map(lambda n: 100.0 * n), min_size=1, max_size=8),
    st.sampled_from(["wq", "wqr", "mct", "min_min", "lecsa"]),
    st.sampled_from(["restart", "failed"]),
)
@settings(max_examples=12, deadline=None)
def test_any_profiles(speeds, states, cores, flops, scheduler, on_failure):
    """Whatever happens to hosts, both drivers agree, and so do plugin and model.

    The third host stays up, so that every run ends.
    """
    named = [tuple((f"h{k}", each) for k, each in enumerate(kind) if each is not None) for kind in (speeds, states)]
    result = on_both(platform(HostProfiles(*named), 3, cores), make_tasks(flops), scheduler, on_failure=on_failure)
    assert largest_difference(result) <= 1e-9


HALF_AT_5 = Profile((5.0,), (0.5,))


def slowed(profile: Profile, n: int = 1, cores: int = 1, **changes) -> Platform:
    """Hosts of 100 flop/s, 10 W idle and 20 to 40 W busy; the first one's speed changes."""
    state = PState(100.0, 10.0, changes.get("epsilon_w", 20.0), 40.0)
    hosts = tuple(Host(f"h{k}", (state,), cores) for k in range(n))
    return Platform(hosts, name="P", profiles=HostProfiles(speeds=(("h0", profile),)))


def test_a_budget_counts_what_changing_hosts_draw():
    """40 W for 5 s, then 30 W at half the speed: 350 J are used up at 10 s."""
    budget = EnergyBudget(350.0, enforcement="stop")
    result = on_both(slowed(HALF_AT_5), make_tasks([2000.0]), "wq", budget=budget)
    assert result.trace.horizon_s == pytest.approx(10.0, rel=1e-12)
    assert result.trace.final_state.tolist() == [TaskState.KILLED]
    assert result.summary()["energy_j"] == pytest.approx(350.0, rel=1e-12)
    budget = EnergyBudget(1e6, period_s=10.0)
    result = on_both(slowed(HALF_AT_5), make_tasks([1000.0, 100.0]), "wq", budget=budget)
    # the first task ends at 15 s, the second at 17 s
    assert result.trace.finish_time_s.tolist() == [15.0, 17.0]
    assert result.trace.periods["consumed_j"].tolist() == [350.0, 210.0]


def check_periods(result) -> np.ndarray:
    """Compare the account of each period with the model's energy in it [J], and return that."""
    periods = result.trace.periods
    consumed = grid_energy_between(result.trace, np.append(periods["start"], periods["end"][-1:]))
    assert periods["consumed_j"] == pytest.approx(consumed, rel=1e-9, abs=1e-9)
    return consumed


@given(
    profiles(st.sampled_from([0.05, 0.5, 1.0, 3.0])),
    st.integers(1, 3),
    st.lists(st.integers(1, 15).map(lambda n: 100.0 * n), min_size=1, max_size=6),
    st.sampled_from(["wq", "mct"]),
    st.floats(1.0, 3e3),
    st.sampled_from(["refuse", "stop"]),
    st.floats(2.0, 50.0) | st.just(float("inf")),
)
@settings(max_examples=6, deadline=None)
def test_any_budget_of_changing_hosts(profile, cores, flops, scheduler, joules, end, period_s):
    """The account of each period agrees with the model, and no budget is exceeded at a stop.

    Without a limit nothing is refused, and the account is kept all the same.
    """
    limit_j = joules if end == "stop" else float("inf")
    budget = EnergyBudget(limit_j, period_s=period_s, enforcement=end)
    result = on_both(slowed(profile, 2, cores), make_tasks(flops), scheduler, budget=budget)
    assert (check_periods(result) <= limit_j * (1 + 1e-9)).all()


def test_a_cap_goes_by_full_speeds():
    """Two busy hosts may draw 80 W, whatever one of them draws at half its speed."""
    tasks = make_tasks([1000.0] * 4)
    result = on_both(slowed(HALF_AT_5, 2), tasks, "wq", power_cap_w=80.0)
    assert result.summary()["peak_power_w"] == 80.0
    always = Profile((0.0,), (0.5,))
    assert on_both(slowed(always, 2), tasks, "wq", power_cap_w=80.0).summary()["peak_power_w"] == 70
    with pytest.raises(InvalidDecision, match="80 W"):
        run(Scenario(slowed(always, 2), tasks, "wq", power_cap_w=79.0, driver="reference"))


@pytest.mark.parametrize(
    ("platform", "rules", "message"),
    [
        (slowed(Profile((1.0,), (3.0,)), cores=2), {}, "'h0' may draw more than at its full speed"),
        (slowed(HALF_AT_5, epsilon_w=50.0), {}, "'h0' may draw more than at its full speed"),
        (slowed(HALF_AT_5), {"budget": EnergyBudget(1e9)}, "'h0' has a speed profile; a cap on"),
    ],
)
def test_what_a_cap_does_not_follow(platform, rules, message):
    """Each in one line that names the host."""
    with pytest.raises(InputError, match=message):
        run(Scenario(platform, make_tasks([1.0]), "wq", power_cap_w=1e3, **rules))


def test_parallel_jobs_on_nodes_that_fail():
    """Jobs fail with any of their nodes, on sets of nodes that SimGrid computes on."""
    sampled_hosts = tuple((f"h{k}", SampledFailures(60.0, 5.0, "weibull", 0.7, 3, 0, k)) for k in range(5))
    jobs = make_tasks(
        [1000.0, 2000.0, 500.0, 1500.0, 800.0, 1000.0],
        [0.0, 0.0, 1.0, 2.0, 30.0, 30.0],
        width=[3, 2, 5, 1, 4, 2],
        requested_time_s=[12.0, 25.0, 6.0, 15.0, 9.0, 11.0],
    )
    result = on_both(platform(HostProfiles(states=sampled_hosts), 5, (1,) * 5), jobs, "easy_backfilling")
    assert (result.trace.executions["outcome"] == 3).any()
    assert (result.trace.final_state == TaskState.FINISHED).all()


def test_a_job_is_as_fast_as_its_slowest_node():
    """Two nodes at half the speed of one of them from 5 s on: both draw 30 W from then on."""
    cluster = slowed(HALF_AT_5, 3)
    cluster = Platform(cluster.hosts, (Cluster("c", (0, 1, 2)),), profiles=cluster.profiles)
    jobs = make_tasks([1000.0, 1000.0], width=[2, 1], requested_time_s=[10.0, 10.0])
    result = on_both(cluster, jobs, "fcfs")
    assert result.trace.finish_time_s.tolist() == [15.0, 10.0]
    assert result.energy.busy_j.tolist() == [5 * 40 + 10 * 30, 5 * 40 + 10 * 30, 400]
    assert result.energy.idle_j.tolist() == [0, 0, 50]
    assert result.trace.executed_flops().tolist() == [2000.0, 1000.0]
    # three nodes draw 120 W until 5 s and 100 W from then on: 1050 J after 4.5 s of that
    budget = EnergyBudget(1050.0, enforcement="stop")
    result = on_both(cluster, jobs, "fcfs", budget=budget)
    assert result.trace.horizon_s == pytest.approx(9.5, rel=1e-12)
    assert result.summary()["energy_j"] == pytest.approx(1050.0, rel=1e-12)


@given(
    st.lists(st.none() | profiles(st.sampled_from([0.05, 0.5, 1.0, 3.0])), min_size=4, max_size=4),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 15), st.integers(0, 20)), min_size=1, max_size=7),
    st.sampled_from(["fcfs", "easy_backfilling", "conservative_backfilling"]),
    st.none() | st.floats(2.0, 20.0),
    st.none() | st.floats(2.0, 50.0),
)
@settings(max_examples=10, deadline=None)
def test_any_speeds_of_nodes(speeds, work, scheduler, down, period_s):
    """Ends and joules of parallel jobs, one of whose nodes may fail, and each period's account."""
    speeds = tuple((f"h{k}", each) for k, each in enumerate(speeds) if each is not None)
    states = () if down is None else (("h1", Profile((down, down + 3.0), (0.0, 1.0))),)
    widths, sizes, arrivals = zip(*sorted(work, key=lambda each: each[2]), strict=True)
    jobs = make_tasks([100.0 * n for n in sizes], arrivals, width=widths, requested_time_s=[float(n) for n in sizes])
    cluster = platform(HostProfiles(speeds, states), 4, (1,) * 4)
    budget = None if period_s is None else EnergyBudget(float("inf"), period_s=period_s)
    result = on_both(cluster, jobs, scheduler, budget=budget)
    assert result.summary()["tasks_finished"] == len(jobs)
    if budget is not None:
        check_periods(result)


def test_failures_repeat(file):
    """The same seed has the same failures, another has others; profiles of speed stay."""
    plain = Scenario(
        platform(HostProfiles(), 3, (1, 2, 1)),
        make_tasks([900.0] * 8),
        "wq",
        failures="mtbf=20,mttr=4",
        driver="reference",
    )
    first, again = run(plain), run(plain)
    assert np.array_equal(first.trace.host_changes, again.trace.host_changes)
    other = run(Scenario(**{**vars(plain), "seed": 1}))
    assert not np.array_equal(first.trace.host_changes, other.trace.host_changes)
    assert first.metrics()["executions_failed"] > 0
    on_simgrid = run(Scenario(**{**vars(plain), "driver": "simgrid"}))
    assert np.array_equal(first.trace.host_changes, on_simgrid.trace.host_changes)
    check_energy_agreement(on_simgrid)


# ---------------------------------------------------------------------- what SimGrid does


def by_simgrid_alone(file: Path) -> tuple[list[float], dict[str, float]]:
    """Execute 4000 flop on each of two hosts by SimGrid alone; return ends and joules at 40 s."""

    def simulate():
        simgrid = load_simgrid()
        from gridsched.drivers.simgrid_library import HOSTS

        engine = simgrid.Engine(["alone"])
        HOSTS.start()
        engine.load_platform(str(file))
        ends, joules = [], {}

        def lead():
            running = []
            for name in "ab":
                activity = simgrid.this_actor.exec_init(4000.0)
                activity.host = engine.host_by_name(name)
                running.append(activity.start())
            for activity in running:
                activity.wait()
                ends.append(engine.clock)
            simgrid.this_actor.sleep_until(40.0)
            joules.update({name: consumed_energy_j(name) for name in "ab"})

        engine.host_by_name("m").add_actor("lead", lead)
        engine.run()
        return ends, joules

    return server().call(simulate, timeout_s=30.0)[0]


def test_what_simgrid_does_with_profiles(tmp_path):
    """A share of 0 does not stop what computes, and a trace is of the first host alone."""
    hosts = "".join(f'<host id="{name}" speed="100f">{POWER}</host>' for name in "abm")
    path = tmp_path / "p.xml"
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
        f'<platform version="4.1"><zone id="z" routing="Full">{hosts}</zone>'
        '<trace id="t" periodicity="-1">10 0.5\n20 0\n25 3</trace>'
        '<trace_connect kind="SPEED" trace="t" element="a"/>'
        '<trace_connect kind="SPEED" trace="t" element="b"/></platform>'
    )
    ends, joules = by_simgrid_alone(path)
    # 1000 flop, 500 flop, and from 20 to 25 s 250 flop at the rate before; 2250 at 300 flop/s
    assert ends == pytest.approx([32.5, 40.0])
    assert joules["a"] == pytest.approx(10 * 40 + 15 * 30 + 7.5 * 40 + 7.5 * 10)
    assert joules["b"] == pytest.approx(40 * 40)


@pytest.mark.systems("utility")
@pytest.mark.parametrize("id", ["easy_backfilling", "conservative_backfilling"])
def test_permanent_reservations_need_hosts_of_one_speed(id):
    """They are refused before the run: nodes that are slower would be busy when they begin."""
    hosts = tuple(Host(f"h{k}", (PState(100.0, 10.0, 20.0, 40.0),)) for k in range(2))
    profiles = HostProfiles(speeds=(("h1", Profile((5.0,), (0.5,))),))
    platform = Platform(hosts, (Cluster("c", (0, 1)),), profiles=profiles)
    tasks = make_tasks([1000.0, 1000.0], width=[1, 2])
    permanent = make_scheduler(id, {"reservations": "permanent"})
    with pytest.raises(InputError, match="'h1'"):
        run(Scenario(platform, tasks, permanent, driver="reference"))
    run(Scenario(platform, tasks, id, driver="reference"))
