"""One run, inside the process that is made for it."""

from __future__ import annotations

import gc
import time

import numpy as np

from gridsched.engine import Controller
from gridsched.errors import InputError
from gridsched.model.seeds import random_stream
from gridsched.sim.actors import ActorSession
from gridsched.sim.maestro import MaestroSession
from gridsched.sim.network import NetworkSession
from gridsched.sim.request import Records, SimulationRequest
from gridsched.sim.work import Work
from gridsched.sim.world import World

#: SimGrid's default for ``precision/timing``.
SIMGRID_PRECISION_S = 1e-9


def takes_maestro_way(request: SimulationRequest) -> bool:
    """Whether the run needs no actors.

    Messages, deployment files, cancellation, switched hosts and SimGrid's tracing (whose file is
    complete only if the simulation ends by itself) need them; ``way`` can ask for them.

    Raises
    ------
    InputError
        If `request.way` is ``"maestro"`` although they are needed.
    """
    traits = request.scheduler.traits
    needs_actors = (
        request.uses_network or request.deployment_file is not None or request.hosts_off
        or traits.replicates or traits.may_cancel or traits.powers_hosts
        or any(item.startswith("tracing") for item in request.cfg)
    )  # fmt: skip
    if needs_actors and request.way == "maestro":
        raise InputError(
            "way='maestro' has no messages, deployment, cancellation, switched hosts or tracing, "
            "which this scenario needs; use way='auto'."
        )
    return request.way != "actors" and not needs_actors


def check_precision(request: SimulationRequest) -> None:
    """Raise `InputError` where a task would be shorter than SimGrid can tell apart from nothing."""
    if not len(request.tasks) or any("precision/timing" in item for item in request.cfg):
        return
    shortest = request.tasks.flops.min() / np.nanmax(request.system.platform.speed)
    if shortest < SIMGRID_PRECISION_S:
        raise InputError(
            f"{request.tasks.name}: the smallest task takes {shortest:.3g} s on the fastest host "
            f"of {request.system.platform.name}, less than SimGrid's precision of "
            f"{SIMGRID_PRECISION_S:g} s. Use larger tasks, --cfg=precision/timing:SECONDS, or "
            "--driver reference."
        )


def simulate(request: SimulationRequest) -> Records:
    """Run a request on SimGrid; the process is spent afterwards.

    Returns
    -------
    Records

    Raises
    ------
    GridschedError
        Whatever the controller, SimGrid or the scheduler object to.
    """
    began = time.perf_counter()
    check_precision(request)
    in_maestro = takes_maestro_way(request)
    gc.disable()  # the process ends with the run, and nothing in it is cyclic garbage
    controller = Controller(
        request.system,
        request.tasks,
        request.scheduler,
        rng=random_stream(request.seed, "scheduler", request.replicate),
        hosts_off=request.hosts_off,
        stopwatch=time.perf_counter,
    )
    world = World(
        request.system.platform,
        request.platform_file,
        pstate=request.system.pstate,
        hosts_off=request.hosts_off,
        cfg=request.cfg,
        log=request.log,
        meters_links=request.uses_network,
    )
    work = Work(request.system, request.tasks, request.run_times)
    links_j = None
    if controller.done:
        plugin_j, links_j = world.metered_energy(), world.metered_link_energy()
        horizon = 0.0
    elif in_maestro:
        session = MaestroSession(world, controller, work)
        session.run()
        plugin_j, horizon = session.energy_j, None
    else:
        if request.uses_network:
            session = NetworkSession(world, controller, work, request.tasks)
        else:
            session = ActorSession(world, controller, work)
        session.run(request.deployment_file)
        plugin_j, links_j, horizon = session.energy_j, session.links_j, None
    trace = controller.trace(horizon, as_estimated=request.run_times is None)
    trace.timing["simulate_s"] = time.perf_counter() - began
    fields = {name: value for name, value in vars(trace).items() if name not in _SHARED}
    return Records(fields, plugin_j, links_j)


#: Parts of a trace that the asking process has already.
_SHARED = ("platform", "tasks")
