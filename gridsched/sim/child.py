"""One run, inside the process that is made for it: what goes there, and what comes back."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.engine import Controller, reference, takes_sets
from gridsched.errors import InputError
from gridsched.model.run_times import RunTimes
from gridsched.model.seeds import random_stream
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler
from gridsched.sim.lead import LeadSession, MeteredSession
from gridsched.sim.network import NetworkSession
from gridsched.sim.session import MaestroSession, Session
from gridsched.sim.world import World

# ----------------------
# What goes to the simulating process and what comes back; needs no SimGrid to import


@dataclass(frozen=True)
class SimulationRequest:
    """One run of either driver; the fields are those of `Scenario`, with everything loaded.

    The reference driver needs no `platform_file`, and no other file.
    """

    system: System
    tasks: Tasks
    scheduler: Scheduler
    platform_file: Path | None = None
    seed: int = 0
    replicate: int = 0
    deployment_file: Path | None = None
    uses_network: bool = False
    hosts_off: tuple[int, ...] = ()
    way: str = "auto"
    cfg: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    timeout_s: float | None = None
    run_times: RunTimes | None = None
    #: SimGrid's ``wattage_per_state`` of hosts, in the place of what the platform file says
    wattages: Mapping[str, str] = field(default_factory=dict)
    #: whether SimGrid's joules are weighed by the carbon intensity of the system, too
    meters_carbon: bool = False

    @property
    def is_metered(self) -> bool:
        """Whether tasks draw a share of their hosts' range of power."""
        return self.run_times is not None and len(self.run_times.load) > 0

    @property
    def has_sets(self) -> bool:
        """Whether executions have sets of hosts."""
        return takes_sets(self.tasks, self.scheduler.traits)


@dataclass(frozen=True)
class SimulationOutcome:
    """What a run gave: records, the plugins' joules by host and link name, SimGrid's log, grams by host name."""

    trace: Trace
    plugin_j: dict[str, float]
    log: str
    links_j: dict[str, float] | None = None
    grams: dict[str, float] | None = None


@dataclass(frozen=True)
class Records:
    """The part of a trace that the simulating process sends back."""

    fields: dict[str, Any]
    plugin_j: dict[str, float]
    links_j: dict[str, float] | None = None
    grams: dict[str, float] | None = None


# ----------------------
# One run, inside the process that is made for it


#: SimGrid's default for ``precision/timing``.
SIMGRID_PRECISION_S = 1e-9
#: SimGrid's model of tasks that compute on several hosts at once.
PARALLEL_TASKS = "host/model:ptask_L07"


def choose_way(request: SimulationRequest) -> str:
    """Choose how to run: ``"network"``, ``"lead"`` or ``"maestro"``.

    Messages need worker actors. Sets of nodes, cancellation, switched hosts, deployment files and
    SimGrid's tracing (whose file is complete only if the simulation ends by itself) need a leading
    actor;
    ``request.way`` can ask for it. The rest runs in the maestro.

    Raises
    ------
    InputError
        If `request.way` is ``"maestro"`` although actors are needed, or tasks that draw what was measured send bytes.
    """
    traits = request.scheduler.traits
    if request.uses_network and request.is_metered:
        raise InputError(
            f"{request.tasks.name}: tasks that draw what was measured have no messages; leave these out by "
            "--network none."
        )
    needs_lead = (
        request.deployment_file is not None
        or bool(request.hosts_off)
        or bool(request.system.platform.profiles.states)
        or request.has_sets
        or request.is_metered
        or traits.replicates
        or traits.may_cancel
        or traits.powers_hosts
        or any(item.startswith("tracing") for item in request.cfg)
    )
    if request.way == "maestro" and (needs_lead or request.uses_network):
        raise InputError(
            "way='maestro' has no messages, deployment, cancellation, hosts that are switched or "
            "go down, sets of nodes or tracing, which this scenario needs; use way='auto'."
        )
    if request.uses_network:
        return "network"
    return "lead" if needs_lead or request.way == "actors" else "maestro"


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


def make_controller(request: SimulationRequest) -> Controller:
    """Return the controller of a run; its policy is timed."""
    return Controller(
        request.system,
        request.tasks,
        request.scheduler,
        rng=random_stream(request.seed, "scheduler", request.replicate),
        hosts_off=request.hosts_off,
        stopwatch=time.perf_counter,
    )


def simulate_reference(request: SimulationRequest) -> Trace:
    """Run a request with the reference driver, in this process."""
    controller = make_controller(request)
    was_enabled = gc.isenabled()
    gc.disable()  # it would scan 100,000 live records again and again
    try:
        return reference.simulate(controller, request.run_times)
    finally:
        if was_enabled:
            gc.enable()


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
    assert request.platform_file is not None
    check_precision(request)
    way = choose_way(request)
    run_times = request.run_times
    cfg = (*request.cfg, PARALLEL_TASKS) if request.has_sets and not request.is_metered else request.cfg
    gc.disable()  # the process ends with the run, and nothing in it is cyclic garbage
    world = World(
        request.system.platform,
        request.platform_file,
        pstates=request.system.first_pstates.tolist(),
        hosts_off=request.hosts_off,
        cfg=cfg,
        log=request.log,
        uses_network=request.uses_network,
        wattages=request.wattages,
        carbon=request.system.carbon if request.meters_carbon else None,
    )
    controller = make_controller(request)  # a policy that ends its process is not the platform's
    reference.validate_if_asked(controller)
    if controller.done:
        plugin_j, links_j, horizon = world.metered_energy(), world.metered_link_energy(), 0.0
    else:
        kinds: dict[str, type[Session]] = {
            "network": NetworkSession,
            "lead": MeteredSession if request.is_metered else LeadSession,
            "maestro": MaestroSession,
        }
        session = kinds[way](world, controller, run_times)
        session.run(request.deployment_file)
        controller.finish()
        plugin_j, links_j, horizon = session.energy_j, session.links_j, None
    trace = controller.trace(horizon, as_estimated=run_times is None)
    trace.timing["simulate_s"] = time.perf_counter() - began
    fields = {name: value for name, value in vars(trace).items() if name not in _SHARED}
    if run_times is not None:
        fields["load"] = run_times.load
    if reference.validates() and way != "network":  # there messages take time, too
        controller.validate_end(replace(trace, load=fields.get("load", trace.load)))
    meter = world.carbon_meter
    return Records(fields, plugin_j, links_j, None if meter is None else meter.grams)


#: Parts of a trace that the asking process has already.
_SHARED = ("platform", "tasks")
