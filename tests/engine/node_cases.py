"""Rigid parallel jobs on clusters of equal nodes, and the playing of them by a script."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scripted import Scripted, controller_of

from gridsched.engine import reference
from gridsched.model.estimates import RequestedTimes
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Traits

PARALLEL = Traits(asked="event", parallel=True, powers_hosts=True)
NODE = (PState(10.0, 5.0, 7.0, 20.0), PState(5.0, 4.0, 5.0, 9.0))


def nodes(*sizes: int, cores: int = 1, boot_time_s: float = 0.0, pstates=NODE) -> Platform:
    """Return clusters of equal nodes n0, n1, ..."""
    hosts = tuple(Host(f"n{k}", pstates, cores=cores, boot_time_s=boot_time_s) for k in range(sum(sizes)))
    edges = np.cumsum([0, *sizes]).tolist()
    return Platform(
        hosts, tuple(Cluster(f"c{c}", tuple(range(begin, end))) for c, (begin, end) in enumerate(pairwise(edges)))
    )


def play_on_nodes(platform, jobs, answer, *, logged=None, traits=PARALLEL, **rules):
    """Run jobs (submission [s], width, requested time [s]); return the trace and the policy."""
    submit, width, requested = zip(*jobs, strict=True)
    tasks = make_tasks(np.array(requested) * 10.0, submit, width=width, requested_time_s=requested)
    policy = Scripted(answer, traits)
    controller = controller_of(platform, tasks, policy, estimates=RequestedTimes(platform, tasks), **rules)
    truth = None if logged is None else LoggedRunTimes(platform, logged)
    return reference.simulate(controller, truth), policy


def at_times(steps):
    """Answer with the decisions given for a time."""
    return lambda state: steps.get(state.now, [])


def starts(trace) -> dict[int, tuple[float, list[int]]]:
    """Return start [s] and nodes of each task that started."""
    return {
        task: (start, trace.hosts_of(k).tolist())
        for k, (task, start) in enumerate(trace.executions[["task", "start"]].tolist())
    }
