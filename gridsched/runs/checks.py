"""What must hold for a scenario before it is run: of its options, and once its files are read."""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np

from gridsched import long_work
from gridsched.errors import InputError, counted
from gridsched.model.platform import Platform
from gridsched.model.prices import PriceSeries
from gridsched.model.series import check_covered
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler
from gridsched.scenario import LoadedScenario, Scenario
from gridsched.workloads.traces.job_table import reasons

#: Every core is an actor or an object of the run; more would not fit into memory.
MAX_CORES = 1_000_000
MAX_MAPPING_EVENTS = 1e8
#: More of them take minutes, which is reported before.
REPORTED_MAPPING_EVENTS = 1e6
#: Of an energy budget; of each a record is kept.
MAX_PERIODS = 1e6


def check_scenario(scenario: Scenario) -> None:
    """Raise `InputError` where options are out of range or contradict each other."""
    if scenario.seed < 0 or scenario.replicate < 0:
        raise InputError(f"Seed {scenario.seed} and replicate must be at least 0.")
    if scenario.window_s is not None and not 0 <= scenario.window_s[0] < scenario.window_s[1]:
        raise InputError(f"window_s is {scenario.window_s}; its end must lie after its begin, both at least 0 s.")
    if scenario.charge_mapping_time and scenario.mapping_interval_s is None and scenario.types is None:
        raise InputError("charge_mapping_time needs mapping events: give --mapping-interval-s.")
    for item in scenario.cfg:
        if not re.fullmatch(r"[^:\s]+:.*", item):
            raise InputError(f"--cfg={item}: SimGrid's options read KEY:VALUE.")
    for item in scenario.log:
        if not re.fullmatch(r"no_loc|[^:\s]+:.+", item):
            raise InputError(f"--log={item}: SimGrid's log settings read CATEGORY.KEY:VALUE, as root.thresh:info.")
    if scenario.files is not None and getattr(scenario.tasks, "files", scenario) is None:
        raise InputError(f"{scenario.files}: input files go with a workload that is a file.")
    if scenario.master is not None and scenario.deployment is not None:
        raise InputError(
            f"--master {scenario.master} and --deployment {scenario.deployment}: the deployment "
            "names the master; give one of them."
        )
    if scenario.driver == "reference":
        if scenario.deployment is not None:
            raise InputError("A deployment file needs SimGrid; use --driver simgrid.")
        if scenario.cfg or scenario.log:
            raise InputError("--cfg and --log are SimGrid's; use --driver simgrid.")


def check_loaded(scenario: LoadedScenario) -> None:
    """Raise `InputError` where platform, tasks and options do not go together.

    Parameters
    ----------
    scenario : LoadedScenario
        With only the deployed hosts computing.
    """
    _check_tasks(scenario)
    _check_walltime(scenario)
    _check_network(scenario)
    _check_place(scenario)
    _check_profiles(scenario)
    _check_job_profiles(scenario)
    _check_energy(scenario)
    _check_cores(scenario.platform)
    _check_mapping_events(scenario)
    scenario.system.check_pstates()
    _check_hosts_off(scenario)


def _check_tasks(scenario: LoadedScenario) -> None:
    """Refuse a workload without tasks: makespan and energy of nothing are not results."""
    if len(scenario.tasks):
        return
    raise InputError(
        f"{scenario.tasks.name}: there are no tasks to run{reasons(scenario.left_out)}. Give a workload with at "
        "least one."
    )


def _check_walltime(scenario: LoadedScenario) -> None:
    """Refuse to kill jobs that have asked for no time, or whose time on a host is not known before."""
    if scenario.walltime == "ignore":
        return
    name, why = scenario.tasks.name, None
    takes_just_these = scenario.run_times is None and not scenario.runs_profiles
    if scenario.tasks.requested_time_s is None or takes_just_these:
        why = "its tasks have no requested times, or take just these"
    elif scenario.platform.profiles.speeds:
        why = f"host {scenario.platform.profiles.speeds[0][0]!r} has a speed profile, by which nothing is known to end"
    if why is not None:
        raise InputError(f"{name}: --walltime kill is not possible in this run: {why}.")


def _check_network(scenario: LoadedScenario) -> None:
    if not scenario.uses_network:
        return
    if scenario.network == "alone":
        why = None
        if scenario.driver == "simgrid":
            why = "on SimGrid, what crosses links shares them; use --driver reference, or --network platform"
        elif scenario.has_messages or scenario.runs_profiles or not scenario.sends_data:
            why = "it is of data between tasks, and here is something else; use --network platform"
        if why is not None:
            raise InputError(f"{scenario.tasks.name}: --network alone: {why}.")
    if scenario.has_messages and scenario.platform.master is None and scenario.deployment is None:
        raise InputError(
            f"{scenario.platform.name}: tasks with input or output bytes need a master. Give a "
            "host the property role=master, or pass --deployment, or use --network none."
        )


def _check_place(scenario: LoadedScenario) -> None:
    """Refuse `locality` if nothing describes the switches."""
    if scenario.placement == "locality" and not len(scenario.platform.switch_of):
        raise InputError(
            f"{scenario.platform.name}: --placement locality needs switches below the cluster: one of topology "
            "FAT_TREE, DRAGONFLY or TORUS, or hosts with the property switches (docs/parallel_tasks.md). Use pack, or "
            "add them."
        )


def _check_profiles(scenario: LoadedScenario) -> None:
    """Refuse what goes on where hosts change with time and is not simulated."""
    profiles, platform = scenario.platform.profiles, scenario.platform
    if scenario.uses_network and profiles.failing_links:
        raise InputError(
            f"{platform.name}: link {profiles.failing_links[0]!r} has a state profile, and "
            "messages are not defined when it is down. Leave the bytes out by --network none, "
            "or take the profile out."
        )
    if scenario.has_messages and scenario.master_name in profiles.state_of:
        raise InputError(
            f"{platform.name}: host {scenario.master_name!r} goes down with time, and the master, from which messages "
            "leave, runs there. Choose another one, or leave the bytes out by --network none."
        )
    if not profiles.of_hosts:
        return
    for role, host in platform.idle_hosts_named:
        if host.name in profiles.state_of:  # a speed is of no use there
            raise InputError(
                f"{platform.name}: host {host.name!r} computes nothing ({role}) and goes down with "
                "time; only computing hosts may. Take its state profile out of the file."
            )
    if scenario.limits_power:
        _check_cap_on_profiles(scenario)


#: SimGrid's options that say which models there are; its model of parallel tasks has all of them.
_MODELS = ("host/model", "network/model", "cpu/model")
#: Of wider jobs no bytes are sent on SimGrid: it takes a number for each pair of parts, or of cores, sent or not.
_MOST_PARTS = 4_000


def _check_job_profiles(scenario: LoadedScenario) -> None:
    """Refuse what does not go with jobs whose parts compute and send as their profiles say."""
    tasks, platform = scenario.tasks, scenario.platform
    if not scenario.runs_profiles:
        if scenario.traffic_step_s is not None:
            raise InputError(
                f"{tasks.name}: --traffic-step-s {scenario.traffic_step_s:g} has no effect: no job has a profile that "
                "is simulated, so none is known to send anything. Leave it out."
            )
        return
    for item in scenario.cfg:
        key, _, value = item.partition(":")
        if key in _MODELS and (key, value) != ("host/model", "ptask_L07"):
            raise InputError(
                f"{tasks.name}: --cfg={item}: jobs with profiles run on SimGrid's model of parallel tasks "
                "(host/model:ptask_L07) alone. Leave the option out, or the profiles (--network none)."
            )
        if key == "host/solver" and value == "maxmin":
            raise InputError(
                f"{tasks.name}: --cfg={item}: SimGrid's model of parallel tasks does not take this solver; "
                "fairbottleneck is the default one."
            )
    named = {host.name for host in platform.everyone}
    missing = sorted(frozenset().union(*(each.storages for each in tasks.profiles)) - named)
    why = None
    if platform.profiles.speeds:
        why = f"host {platform.profiles.speeds[0][0]!r} has a speed profile, which no parallel task follows"
    elif scenario.driver == "simgrid" and (widest := _widest_that_sends(tasks)) > _MOST_PARTS:
        why = f"a job of {widest:,} parts sends bytes, and SimGrid takes {_MOST_PARTS:,} parts at most here"
    elif missing:
        why = f"a profile names the storage host {missing[0]!r}, which {platform.name} does not have"
    if why is not None:
        raise InputError(f"{tasks.name}: {why}. Change that, or leave the profiles out by --network none.")


def _widest_that_sends(tasks: Tasks) -> int:
    """Return how many parts, or cores of them, the widest task has whose profile sends bytes."""
    assert tasks.profile is not None
    kinds = np.unique(np.stack([tasks.profile, tasks.width, tasks.size], axis=1), axis=0).tolist()
    return max((size for k, parts, size in kinds if k >= 0 and tasks.profiles[k].moves_bytes(parts)), default=0)


def _check_cap_on_profiles(scenario: LoadedScenario) -> None:
    """Refuse hosts that may draw more than at full speed, which a cap on power assumes."""
    profiles, platform = scenario.platform.profiles, scenario.platform
    cap = "a cap on power (--power-cap-w)"
    if profiles.speeds and scenario.budget is not None:
        raise InputError(
            f"{platform.name}: host {profiles.speeds[0][0]!r} has a speed profile; {cap} and an "
            "energy budget (--energy-budget-j) do not follow it together. Leave one of them out."
        )
    for host in platform.hosts:
        if host.name not in profiles.speed_of:
            continue
        faster = host.cores > 1 and max(profiles.speed_of[host.name].values, default=1.0) > 1.0
        if faster or any(state.busy_w < state.epsilon_w for state in host.pstates):
            raise InputError(
                f"{platform.name}: by its speed profile host {host.name!r} may draw more than at "
                f"its full speed, but {cap} assumes full speed. Leave one of them out."
            )


def _check_energy(scenario: LoadedScenario) -> None:
    platform = scenario.platform
    if scenario.types is not None and scenario.power:
        raise InputError(
            f"{scenario.tasks.name}: this workload makes its own system, whose machines have "
            f"powers by task type; leave out --power {scenario.power[0]}."
        )
    if scenario.power_override.is_none:
        for what, is_there in (
            ("an energy budget (--energy-budget-j)", scenario.budget is not None),
            ("a power cap (--power-cap-w, --events)", scenario.limits_power),
            ("a tariff (--price)", scenario.tariff is not None),
            ("a carbon intensity (--carbon)", scenario.carbon is not None),
        ):
            if is_there:
                raise InputError(f"--power none means no energy, and {what} needs it.")
        return
    bad = [host.name for host in platform.hosts if not host.has_energy]
    if bad:
        raise InputError(
            f"{platform.name}: {counted(len(bad), 'host')}, the first {bad[0]!r}, without usable "
            "wattage_per_state, so their energy is unknown; see 'gridsched platform check'. Give "
            "it by --power IDLE:EPSILON:BUSY, or go without energy by --power none."
        )


def _check_cores(platform: Platform) -> None:
    most = int(platform.cores.max(initial=0))
    if len(platform) * most > MAX_CORES:
        raise InputError(
            f"{platform.name}: {len(platform):,} hosts with up to {most:,} core(s) each; a run "
            f"holds at most {MAX_CORES:,} cores."
        )


def _check_hosts_off(scenario: LoadedScenario) -> None:
    names = {host.name for host in scenario.platform.hosts}
    for name in scenario.hosts_off:
        if name not in names:
            raise InputError(f"{scenario.platform.name}: no computing host is called {name!r}.")


def _check_mapping_events(scenario: LoadedScenario) -> None:
    """Refuse a mapping interval that would be met too often to get through, and such periods; report many asks."""
    budget = scenario.budget
    for key, length, most, what in (
        ("mapping_interval_s", scenario.mapping_interval_s, MAX_MAPPING_EVENTS, "mapping events"),
        ("budget_period_s", budget.period_s if budget else None, MAX_PERIODS, "periods"),
    ):
        if length is None:
            continue
        shortest = _shortest_s(scenario)
        if shortest / length > most:
            raise InputError(
                f"{key} is {length:g}: the run lasts at least {shortest:g} s, which is more than "
                f"{most:g} {what}. Choose a longer one."
            )
        if what == "mapping events" and shortest / length > REPORTED_MAPPING_EVENTS:
            _report_asks(length, shortest)


@cache
def _report_asks(interval_s: float, shortest_s: float) -> None:
    """Report, once, how often a scheduler is asked at least."""
    long_work.report(
        f"mapping_interval_s is {interval_s:g}: the run lasts at least {shortest_s:g} s, so the scheduler is asked at "
        f"least {shortest_s / interval_s:,.0f} times"
    )


def _shortest_s(scenario: LoadedScenario) -> float:
    """Return a time that no run of the scenario is shorter than [s]."""
    tasks, platform = scenario.tasks, scenario.platform
    fastest = np.nanmax(platform.speed, axis=1)
    return float(
        max(
            tasks.flops.max() / fastest.max(),
            tasks.flops.sum() / (fastest * platform.cores).sum(),
            tasks.submit_time_s.max(),
        )
    )


def check_informed(scheduler: Scheduler) -> None:
    """Raise `InputError` if a scheduler cannot learn of what is done to a run from outside.

    Parameters
    ----------
    scheduler : Scheduler
    """
    if scheduler.traits.external:
        raise InputError(
            f"{scheduler!r} is another program, whose protocol has no words for jobs that others cancel and for hosts "
            "that they drain. Leave the events out (--events), or use another scheduler."
        )


def check_tables(scenario: LoadedScenario, until_s: float | None = None) -> None:
    """Raise `InputError` where a run lasts longer than a table of carbon or prices covers.

    Parameters
    ----------
    scenario : LoadedScenario
    until_s : float, optional
        How long the run lasted [s]; before a run, the last submission is known.
    """
    if until_s is None:
        stops = scenario.budget is not None and scenario.budget.enforcement == "stop"
        last_s = 0.0 if stops else float(scenario.tasks.submit_time_s.max(initial=0.0))
        until_s = min(last_s, math.inf if scenario.horizon_s is None else scenario.horizon_s)
    system, tables = scenario.system, list[tuple[str, float, str]]()
    for values, signal in (("", system.carbon), ("forecast of the ", system.carbon_forecast)):
        if signal is not None:
            tables.append((f"The {values}carbon intensity", signal.end_s, "carbon_period_s"))
    for owner, priced in (("", scenario.tariff), ("budget_", scenario.budget)):
        if priced is not None and isinstance(priced.prices, PriceSeries):
            end_s = priced.prices.end_s(priced.prices_cycle_s)
            tables.append((f"The table {owner}prices", end_s, f"{owner}prices_period_s"))
    for values, end_s, key in tables:
        check_covered(values, end_s, key, until_s, scenario.calendar)
