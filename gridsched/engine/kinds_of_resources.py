"""Which way of counting hosts serves a run, by its tasks and its policy.

`CoreCounts` counts the cores of each host in plain lists, for tasks of one core whose policy names
one host: one number changes at a time. `WholeNodes` and `SharedNodes` keep arrays, so that a job of
57 nodes costs a few array operations, not 57 steps.
"""

from __future__ import annotations

from dataclasses import replace

from gridsched.engine.core_counts import CoreCounts
from gridsched.engine.resources import Resources
from gridsched.engine.shared_nodes import SharedNodes
from gridsched.engine.whole_nodes import WholeNodes
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Traits


def resources_of(system: System, tasks: Tasks, traits: Traits, is_on: list[bool]) -> Resources:
    """Return the hosts of a run, counted in the cheapest way that serves its tasks and its policy.

    Parameters
    ----------
    system : System
    tasks : Tasks
    traits : Traits
        Of the policy that is asked first; what it delegates to places tasks alike.
    is_on : list of bool
        Of each host at the start.
    """
    if not takes_sets(tasks, traits):
        return CoreCounts(system, is_on)
    one_core = max(system.platform.cores.tolist(), default=1) == 1
    kind = WholeNodes if tasks.take_whole_nodes or (tasks.are_serial and one_core) else SharedNodes
    return kind(system, tasks, is_on)


def with_pools(system: System, tasks: Tasks, traits: Traits) -> System:
    """Return a system whose platform has partitions, where jobs share nodes that belong to no partition yet."""
    platform = system.platform
    shares = takes_sets(tasks, traits) and not tasks.take_whole_nodes and (platform.cores > 1).any()
    return replace(system, platform=replace(platform, partitions=platform.pools)) if shares else system


def takes_sets(tasks: Tasks, traits: Traits) -> bool:
    """Whether executions have sets of hosts; else each has one core of one host."""
    return traits.parallel or not tasks.are_serial
