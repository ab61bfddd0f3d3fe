"""A run whose jobs send bytes over three links, small enough to be known by hand."""

from __future__ import annotations

from dataclasses import replace

from gridsched import Cluster, Host, Platform, PState, make_tasks
from gridsched.model.job_profiles import Delay, ParallelWork, Profile, Sequence
from gridsched.model.routes import RouteLinks, Routes
from gridsched.model.trace import Trace
from gridsched.policy.registry import make_scheduler
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference

#: 100 byte/s each; a and b share "near", a sends to c over "near" and "far", c sends nothing.
ROUTES = Routes(
    {
        **{(name, name): RouteLinks((), 0.0) for name in "abc"},
        **{pair: RouteLinks(("near",), 0.0) for pair in (("a", "b"), ("b", "a"))},
        **{pair: RouteLinks(("near", "far"), 0.0) for pair in (("a", "c"), ("c", "a"), ("b", "c"), ("c", "b"))},
    },
    {"near": 100.0, "far": 100.0},
)
#: After 1 s, 500 bytes from the first node to the second and 100 to the third: "near" is full for 6 s.
WORK = Sequence((Delay(1.0), ParallelWork(matrix=(0.0, 500.0, 100.0, *[0.0] * 6))))


def sent(traffic_step_s: float | None = 2.0, work: Profile = WORK) -> Trace:
    """Return the trace: two such jobs, one after the other, from 0 to 7 s and from 7 to 14 s."""
    hosts = tuple(Host(name, (PState(1.0, 1.0, 2.0, 2.0),)) for name in "abc")
    platform = Platform(hosts, (Cluster("z", (0, 1, 2)),), name="three nodes")
    tasks = make_tasks([1.0, 1.0], width=3, requested_time_s=20.0, profile=[0, 0], profiles=[work])
    scenario = LoadedScenario(platform, tasks, "fcfs", driver="reference", routes=ROUTES)
    return simulate_reference(replace(scenario, traffic_step_s=traffic_step_s), make_scheduler("fcfs"))


#: What crosses each link in each step of 2 s.
OVER_TIME = {
    "near": [100.0, 200.0, 200.0, 100.0, 200.0, 200.0, 200.0],
    "far": [value / 6 for value in (100.0, 200.0, 200.0, 100.0, 200.0, 200.0, 200.0)],
}
