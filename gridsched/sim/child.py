"""One run, inside the process that is made for it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.drivers import reference
from gridsched.drivers.session import Session, flops_of
from gridsched.drivers.simulated_platform import SimulatedPlatform
from gridsched.engine import Controller, takes_sets
from gridsched.errors import InputError
from gridsched.model.routes import RouteSource
from gridsched.model.seeds import random_stream
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler, Traits
from gridsched.scenario import LoadedScenario
from gridsched.sim.outcome import Records

#: SimGrid's default for ``precision/timing``.
SIMGRID_PRECISION_S = 1e-9
#: SimGrid's model of tasks that compute on several hosts at once.
PARALLEL_TASKS = "host/model:ptask_L07"


def choose_execution_mode(scenario: LoadedScenario, traits: Traits, *, has_sets: bool) -> str:
    """Choose how to run: ``"parallel tasks"``, ``"transfers"``, ``"network"``, ``"coordinator"`` or ``"maestro"``.

    Jobs with profiles, and tasks that make data for others, have a mode each. Messages
    need worker actors. Sets of nodes, cancellation, switched hosts, deployment files and
    SimGrid's tracing (whose file is complete only if the simulation ends by itself) need a leading
    actor; the scenario's `execution_mode` can ask for it. The rest runs in the maestro.

    Parameters
    ----------
    scenario : LoadedScenario
    traits : Traits
        Of the scheduler.
    has_sets : bool
        Whether executions have sets of hosts.

    Raises
    ------
    InputError
        If `execution_mode` is ``"maestro"`` although actors are needed, or tasks that draw what was measured
        send bytes.
    """
    if scenario.runs_profiles:
        return "parallel tasks"
    if scenario.sends_data:
        return "transfers"
    if scenario.uses_network and scenario.is_metered:
        raise InputError(
            f"{scenario.tasks.name}: tasks that draw what was measured have no messages; leave these out by "
            "--network none."
        )
    needs_coordinator = (
        scenario.deployment is not None
        or bool(scenario.hosts_off)
        or bool(scenario.platform.profiles.states)
        or has_sets
        or scenario.is_metered
        or traits.replicates
        or traits.may_cancel
        or traits.powers_hosts
        or any(item.startswith("tracing") for item in scenario.cfg)
    )
    if scenario.execution_mode == "maestro" and (needs_coordinator or scenario.uses_network):
        raise InputError(
            "execution_mode='maestro' has no messages, deployment, cancellation, hosts that are switched or "
            "go down, sets of nodes or tracing, which this scenario needs; use execution_mode='auto'."
        )
    if scenario.uses_network:
        return "network"
    return "coordinator" if needs_coordinator or scenario.execution_mode == "actors" else "maestro"


def check_precision(scenario: LoadedScenario) -> None:
    """Raise `InputError` where a task would be too short for SimGrid to distinguish from nothing."""
    if not len(scenario.tasks) or any("precision/timing" in item for item in scenario.cfg):
        return
    shortest = scenario.tasks.flops.min() / np.nanmax(scenario.platform.speed)
    if shortest < SIMGRID_PRECISION_S:
        raise InputError(
            f"{scenario.tasks.name}: the smallest task takes {shortest:.3g} s on the fastest host "
            f"of {scenario.platform.name}, less than SimGrid's precision of "
            f"{SIMGRID_PRECISION_S:g} s. Use larger tasks, --cfg=precision/timing:SECONDS, or "
            "--driver reference."
        )


def make_controller(scenario: LoadedScenario, scheduler: Scheduler, routes: RouteSource | None = None) -> Controller:
    """Return the controller of a run; its policy is timed, and may ask for the routes between hosts."""
    return Controller(
        scenario.system if routes is None else replace(scenario.system, routes=routes),
        scenario.tasks,
        scheduler,
        rng=random_stream(scenario.seed, "scheduler", scenario.replicate),
        hosts_off=scenario.ids_off,
        stopwatch=time.perf_counter,
    )


def simulate_reference(scenario: LoadedScenario, scheduler: Scheduler) -> Trace:
    """Run a scenario with the reference driver, in this process."""
    controller = make_controller(scenario, scheduler, scenario.routes if scenario.runs_profiles else None)
    was_enabled = gc.isenabled()
    gc.disable()  # it would scan 100,000 live records again and again
    try:
        if not scenario.runs_profiles:
            return reference.simulate(controller, scenario.durations)
        return _simulate_profiles(scenario, controller)
    finally:
        if was_enabled:
            gc.enable()


def _simulate_profiles(scenario: LoadedScenario, controller: Controller) -> Trace:
    """Run a scenario whose jobs have profiles with the reference driver."""
    from gridsched.drivers.fluid_calendar import FluidCalendar  # slow to load, and seldom needed
    from gridsched.engine.profile_runs import ProfileRuns

    assert scenario.routes is not None  # as `run` has found
    flops = flops_of(scenario.system, scenario.tasks, scenario.run_times)
    runs = ProfileRuns(scenario.system, scenario.tasks, flops, scenario.traffic_step_s)
    calendar = FluidCalendar(runs, scenario.platform, scenario.routes)
    trace = reference.simulate(controller, scenario.run_times, calendar)
    return replace(trace, **runs.records(), as_estimated=False)


def simulate(scenario: LoadedScenario, scheduler: Scheduler, platform_file: Path) -> Records:
    """Run a scenario on SimGrid; the process is spent afterwards.

    Parameters
    ----------
    scenario : LoadedScenario
    scheduler : Scheduler
    platform_file : Path
        What SimGrid loads.

    Returns
    -------
    Records

    Raises
    ------
    GridschedError
        Whatever the controller, SimGrid or the scheduler object to.
    """
    began = time.perf_counter()
    check_precision(scenario)
    has_sets, is_metered = takes_sets(scenario.tasks, scheduler.traits), scenario.is_metered
    execution_mode = choose_execution_mode(scenario, scheduler.traits, has_sets=has_sets)
    run_times = scenario.run_times if scenario.runs_profiles else scenario.durations  # there a deadline kills
    gc.disable()  # the process ends with the run, and nothing in it is cyclic garbage
    takes_several = scenario.uses_parallel_tasks(has_sets=has_sets)
    simulated = SimulatedPlatform(
        scenario.platform,
        platform_file,
        pstates=scenario.system.first_pstates.tolist(),
        hosts_off=scenario.ids_off,
        cfg=(*scenario.cfg, PARALLEL_TASKS) if takes_several and not is_metered else scenario.cfg,
        log=scenario.log,
        uses_network=scenario.uses_network and not scenario.runs_profiles,
        wattages=scenario.wattages,
        carbon=scenario.system.carbon if scenario.meters_carbon else None,
    )
    routes = None
    if scenario.runs_profiles:
        from gridsched.drivers.parallel_tasks import LiveRoutes

        routes = LiveRoutes(simulated)
    controller = make_controller(scenario, scheduler, routes)  # a policy that ends its process is not the platform's
    reference.validate_if_asked(controller)
    sent: dict[str, Any] = {}
    if controller.done:
        plugin_j, links_j, horizon = simulated.metered_energy(), simulated.metered_link_energy(), 0.0
    else:
        kind = _session(execution_mode, is_metered=is_metered)
        kept = {"traffic_step_s": scenario.traffic_step_s} if scenario.runs_profiles else {}
        session = kind(simulated, controller, run_times, **kept)
        session.run(None if scenario.deployment is None else Path(scenario.deployment))
        controller.finish()
        plugin_j, links_j, horizon = session.energy_j, session.links_j, None
        sent = session.records()
    trace = controller.trace(horizon, as_estimated=run_times is None and not scenario.runs_profiles)
    trace.timing["simulate_s"] = time.perf_counter() - began
    fields = {name: value for name, value in vars(trace).items() if name not in _SHARED}
    if run_times is not None:
        fields["load"] = run_times.load
    fields |= sent
    if reference.validates() and execution_mode not in ("network", "parallel tasks"):  # there messages take time, too
        controller.validate_end(replace(trace, load=fields.get("load", trace.load)))
    meter = simulated.carbon_meter
    unshared = frozenset[str]() if routes is None else routes.unshared
    return Records(fields, plugin_j, links_j, None if meter is None else meter.grams, unshared)


def _session(execution_mode: str, *, is_metered: bool) -> Callable[..., Session]:
    """Return the session of an execution mode; its module is imported where it is used."""
    kinds = {
        "network": "network:NetworkSession",
        "transfers": "transfers:TransferSession",
        "parallel tasks": "parallel_tasks:ParallelTaskSession",
        "coordinator": "metered_session:MeteredSession" if is_metered else "coordinator:CoordinatorSession",
        "maestro": "maestro:MaestroSession",
    }
    module, _, name = kinds[execution_mode].partition(":")
    kind: Callable[..., Session] = getattr(import_module(f"gridsched.drivers.{module}"), name)
    return kind


#: Parts of a trace that the asking process has already.
_SHARED = ("platform", "tasks")
