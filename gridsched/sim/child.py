"""One run, inside the process that is made for it."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from gridsched.drivers import reference
from gridsched.drivers.session import LedSession, Session
from gridsched.drivers.simulated_platform import SimulatedPlatform
from gridsched.engine import Controller, takes_sets
from gridsched.engine.programs import ProgramRules
from gridsched.errors import InputError
from gridsched.model.routes import Routes, RouteSource
from gridsched.model.seeds import random_stream
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler, Traits
from gridsched.scenario import LoadedScenario
from gridsched.sim.outcome import Records

#: SimGrid's default for ``precision/timing``.
SIMGRID_PRECISION_S = 1e-9


def is_plain(scenario: LoadedScenario, traits: Traits, *, has_sets: bool) -> bool:
    """Whether a run is simulated without any actor: the fastest session, for tasks that just compute on a core.

    What only SimGrid knows the end of, sets of nodes, cancellation, switched hosts, deployment files and SimGrid's
    tracing (whose file is complete only if the simulation ends by itself) need a leading actor; the scenario's
    `execution_mode` can ask for it.

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
        If `execution_mode` is ``"maestro"`` although an actor is needed.
    """
    needs_actor = (
        scenario.uses_network
        or scenario.deployment is not None
        or bool(scenario.hosts_off)
        or bool(scenario.platform.profiles.states)
        or has_sets
        or scenario.is_metered
        or traits.replicates
        or traits.may_cancel
        or traits.powers_hosts
        or scenario.cancels_tasks
        or any(item.startswith("tracing") for item in scenario.cfg)
    )
    if scenario.execution_mode == "maestro" and needs_actor:
        raise InputError(
            "execution_mode='maestro' has no messages, deployment, cancellation, hosts that are switched or "
            "go down, sets of nodes or tracing, which this scenario needs; use execution_mode='auto'."
        )
    return not needs_actor and scenario.execution_mode != "actors"


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


def make_controller(
    scenario: LoadedScenario,
    scheduler: Scheduler,
    routes: RouteSource | None = None,
    master: str | None = None,
    n_spare: int | None = None,
) -> Controller:
    """Return the controller of a run; its policy is timed.

    Parameters
    ----------
    scenario : LoadedScenario
    scheduler : Scheduler
    routes : RouteSource, optional
        Between hosts, for which the policy may ask where parts of jobs send to each other.
    master : str, optional
        Host from which messages leave; None: none do.
    n_spare : int, optional
        Where a program drives the run, as of `Controller`.
    """
    programs, system = None, scenario.system
    if routes is not None:
        load = np.zeros(0) if scenario.run_times is None else scenario.run_times.load
        programs = ProgramRules(routes, master, scenario.runs_profiles, scenario.traffic_step_s, load)
        system = replace(system, routes=routes) if scenario.runs_profiles else system
    return Controller(
        system,
        scenario.tasks,
        scheduler,
        rng=random_stream(scenario.seed, "scheduler", scenario.replicate),
        hosts_off=scenario.ids_off,
        stopwatch=time.perf_counter,
        programs=programs,
        stimuli=scenario.stimuli,
        is_metered=n_spare is not None,
        n_spare=n_spare or 0,
    )


def simulate_reference(scenario: LoadedScenario, scheduler: Scheduler) -> Trace:
    """Run a scenario with the reference driver, in this process."""
    controller, routes = reference_controller(scenario, scheduler)
    was_enabled = gc.isenabled()
    gc.disable()  # it would scan 100,000 live records again and again
    try:
        return reference.simulate(controller, scenario.durations, routes, scenario.link_model)
    finally:
        if was_enabled:
            gc.enable()


def reference_controller(
    scenario: LoadedScenario, scheduler: Scheduler, n_spare: int | None = None
) -> tuple[Controller, Routes | None]:
    """Return the controller of a run on the reference driver, and the routes that the driver needs."""
    routes, master = scenario.routes, scenario.master_name if scenario.has_messages else None
    has_programs = scenario.runs_profiles or master is not None
    return make_controller(scenario, scheduler, routes if has_programs else None, master, n_spare), routes


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
    has_sets = takes_sets(scenario.tasks, scheduler.traits)
    plain = is_plain(scenario, scheduler.traits, has_sets=has_sets)
    gc.disable()  # the process ends with the run, and nothing in it is cyclic garbage
    simulated = SimulatedPlatform(
        scenario.platform,
        platform_file,
        pstates=scenario.system.first_pstates.tolist(),
        hosts_off=scenario.ids_off,
        cfg=scenario.cfg,
        log=scenario.log,
        has_parallel_tasks=scenario.uses_parallel_tasks(has_sets=has_sets),
        uses_network=scenario.uses_network and not scenario.runs_profiles,
        wattages=scenario.wattages,
        carbon=scenario.system.carbon if scenario.meters_carbon else None,
    )
    routes, master = None, scenario.master_name if scenario.has_messages else None
    if scenario.runs_profiles or scenario.has_messages:
        from gridsched.drivers.live_routes import LiveRoutes

        routes = LiveRoutes(simulated)
    controller = make_controller(
        scenario, scheduler, routes, master
    )  # a policy that ends its process is not the platform's
    reference.validate_if_asked(controller)
    session: Session
    if plain:
        from gridsched.drivers.maestro import MaestroSession

        session = MaestroSession(simulated, controller, scenario.durations)
    else:
        session = LedSession(simulated, controller, scenario.durations, master)
    horizon = None
    if controller.done:
        horizon = 0.0
        session.finish()
    else:
        session.run(None if scenario.deployment is None else Path(scenario.deployment))
        controller.finish()
    run_times = scenario.durations
    trace = controller.trace(horizon, as_estimated=run_times is None and not scenario.runs_profiles)
    trace.timing["simulate_s"] = time.perf_counter() - began
    fields = {name: value for name, value in vars(trace).items() if name not in _SHARED}
    if run_times is not None:
        fields["load"] = run_times.load
    if reference.validates():
        controller.validate_end(replace(trace, load=fields.get("load", trace.load)))
    links_j = session.links_j
    if scenario.runs_profiles:
        links_j = simulated.link_energy_of(trace.link_bytes)
    meter = simulated.carbon_meter
    unshared = routes.unshared if routes is not None and scenario.runs_profiles else frozenset[str]()
    return Records(fields, session.energy_j, links_j, None if meter is None else meter.grams, unshared)


#: Parts of a trace that the asking process has already.
_SHARED = ("platform", "tasks")
