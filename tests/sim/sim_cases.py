"""Platforms of one master and workers, and what both drivers make of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gridsched.drivers.simgrid_library import HOSTS
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign
from gridsched.runs.plugin_agreement import energy_check
from gridsched.runs.run import RunResult, run
from gridsched.scenario import Scenario

# Small platforms and policies for the tests of the SimGrid runtime.

#: EX-A of algorithms.md: three hosts, five tasks, Workqueue makespan 80 s.
SIZES = (1000.0, 500.0, 2000.0, 1500.0, 250.0)

#: Hosts as in SimGrid's example energy-boot: P-state 3 boots, P-state 4 shuts down, both with no speed, and
#: properties of ours say so. Energy in 177 s: MyHost1 10 s x 95 W + 7 s x 110 W + 10 s x 10 W + 150 s x 120 W,
#: MyHost2 177 s x 100 W.
ENERGY_BOOT = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="grid" routing="None">
    <host id="MyHost1" speed="100Mf,50Mf,20Mf,0f,0f">
      <prop id="wattage_per_state" value="95:200, 93:170, 90:150, 120:120, 110:110"/>
      <prop id="wattage_off" value="10"/>
      <prop id="boot_pstate" value="3"/>
      <prop id="boot_time_s" value="150"/>
      <prop id="shutdown_pstate" value="4"/>
      <prop id="shutdown_time_s" value="7"/>
    </host>
    <host id="MyHost2" speed="100Mf">
      <prop id="wattage_per_state" value="100:200"/>
      <prop id="wattage_off" value="10"/>
    </host>
  </zone>
</platform>
"""

#: The hosts of SimGrid's example energy-exec.
ENERGY_EXEC = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="grid" routing="None">
    <host id="MyHost1" speed="100Mf,50Mf,20Mf" core="4">
      <prop id="wattage_per_state" value="100:93.33333333333333:200, 93:90:170, 90:90:150"/>
      <prop id="wattage_off" value="10"/>
    </host>
    <host id="MyHost2" speed="100Mf,50Mf,20Mf">
      <prop id="wattage_per_state" value="100:200:200, 93:170:170, 90:150:150"/>
      <prop id="wattage_off" value="10"/>
    </host>
    <host id="MyHost3" speed="100Mf,50Mf,20Mf">
      <prop id="wattage_per_state" value="100:200:200, 93:170:170, 90:150:150"/>
      <prop id="wattage_off" value="10"/>
    </host>
  </zone>
</platform>
"""


def ex_a() -> Platform:
    """Hosts of 100, 50 and 25 flop/s with 50, 20 and 5 W, 4 W idle."""
    values = ((100.0, 50.0), (50.0, 20.0), (25.0, 5.0))
    return Platform(
        tuple(Host(f"h{k}", (PState(s, 4.0, w, w),)) for k, (s, w) in enumerate(values, start=1)), name="EX-A"
    )


def on_simgrid(platform: Platform | Path, tasks: Tasks | list[float], scheduler="wq", **changes) -> RunResult:
    """Run on SimGrid with a time-out, so that no fault of ours stops the tests."""
    tasks = tasks if isinstance(tasks, Tasks | Path) else make_tasks(tasks)
    changes.setdefault("timeout_s", 60.0)
    return run(Scenario(platform, tasks, scheduler, **changes))


def consumed_energy_j(host: str) -> float:
    """Return what the plugin has metered for a host up to now [J]."""
    return HOSTS.consumed_j([host])[host]


def acting(act: Callable, **traits) -> Scheduler:
    """Return a work queue that calls ``act(state)`` before each decision.

    Its class is local, so it reaches the simulating process by value, as one of a notebook does.
    """

    class Acting(Scheduler):
        """Work queue with a side effect."""

        def schedule(self, state):
            act(state)
            return [Assign(t, h) for h, t in zip(state.idle_cores(), state.waiting(), strict=False)]

    Acting.traits = Traits(trigger="event", **traits)
    return Acting()


def deciding(answer: Callable, **traits) -> Scheduler:
    """Return a policy whose ``schedule`` is ``answer(state)``."""

    class Deciding(Scheduler):
        """Decides as a test specifies."""

        def schedule(self, state):
            return answer(state)

    Deciding.traits = Traits(trigger="event", **traits)
    return Deciding()


def largest_difference(result: RunResult) -> float:
    """Return the largest relative difference of plugin and model joules, master included."""
    return max(row["relative_difference"] for row in energy_check(result))


def executions(result: RunResult) -> list[tuple]:
    """Return (task, host, start, end) of all executions, in order of start, then host."""
    runs = result.trace.executions[["start", "host", "task", "end"]].tolist()
    return [(task, host, start, end) for start, host, task, end in sorted(runs)]


# A master and workers, each worker on a link of its own: latency + size / bandwidth (CM02).

HEAD = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <config>
    <prop id="network/model" value="CM02"/>
    <prop id="network/crosstraffic" value="0"/>
  </config>
  <zone id="star" routing="Full">
    <host id="m" speed="1f">
      <prop id="role" value="master"/>
      <prop id="wattage_per_state" value="3:3"/>
    </host>
"""


def write_star(
    path: Path,
    speeds: list[float],
    *,
    bandwidths: list[float] | None = None,
    latency_s: float = 0.5,
    cores: int = 1,
    with_routes: bool = True,
) -> Path:
    """Write hosts w1, w2, ... of the given speeds [flop/s], links of 10 B/s; return the path.

    P-state 1 has half the speed.
    """
    text = HEAD
    for k, speed in enumerate(speeds, start=1):
        bandwidth = bandwidths[k - 1] if bandwidths else 10
        text += (
            f'    <host id="w{k}" speed="{speed}f,{speed / 2}f" core="{cores}">\n'
            f'      <prop id="wattage_per_state" value="{4 + k}:{10 + k}:{20 + 3 * k},'
            f'{3 + k}:{6 + k}:{11 + k}"/>\n      <prop id="wattage_off" value="1"/>\n    </host>\n'
            f'    <link id="l{k}" bandwidth="{bandwidth}Bps" latency="{latency_s}s"/>\n'
        )
    if with_routes:
        for k in range(1, len(speeds) + 1):
            text += f'    <route src="m" dst="w{k}"><link_ctn id="l{k}"/></route>\n'
    path.write_text(f"{text}  </zone>\n</platform>\n")
    return path
