"""What is done to a scenario before its run: files are read, hosts leave it or fail, jobs draw what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gridsched.drivers.simgrid_library import has_links_with_power
from gridsched.errors import InputError, counted
from gridsched.model.failures import Failures
from gridsched.model.maintenance import with_maintenance
from gridsched.model.room_on_nodes import nodes_filled
from gridsched.model.run_times import LoggedRunTimes
from gridsched.runs.checks import check_loaded, check_scenario
from gridsched.runs.scenario_maker import load
from gridsched.scenario import LoadedScenario, Scenario


def prepare(scenario: Scenario) -> LoadedScenario:
    """Return the scenario checked, with its files read.

    Raises
    ------
    InputError
        As `run` would.
    """
    check_scenario(scenario)
    loaded = _in_whole_bytes(_units_apart(_metered(_failing(load(scenario)))))
    check_loaded(loaded)
    return loaded


def _metered(scenario: LoadedScenario) -> LoadedScenario:
    """Return the scenario whose jobs draw what was measured, where that is asked for.

    Raises
    ------
    InputError
        If nothing was measured, or what was lies outside the range of a node.
    """
    clamps = scenario.power_override.clamps
    if clamps is None:
        return scenario
    if not isinstance(scenario.run_times, LoggedRunTimes):
        raise InputError(f"{scenario.tasks.name}: --power measured needs a log of jobs with their power.")
    for key, value in (
        ("energy_budget_j", scenario.budget),
        ("a power cap (power_cap_w, events)", scenario.limits_power or None),
        ("a speed profile", scenario.platform.profiles.speeds or None),
    ):
        if value is not None:
            raise InputError(
                f"--power measured: the true power of jobs is unknown before they run, and {key} depends on "
                "it; leave one of them out."
            )
    nodes = nodes_filled(scenario.platform, scenario.tasks)
    times, note = scenario.run_times.at_measured_power(
        scenario.platform, scenario.tasks.labels, nodes, scenario.tasks.partition, clamps=clamps
    )
    return replace(scenario, run_times=times, remarks=(*scenario.remarks, note))


def _failing(scenario: LoadedScenario) -> LoadedScenario:
    """Return the scenario with the maintenance of its hosts, or their failures drawn.

    Raises
    ------
    InputError
        If a host has a state profile of its own.
    """
    if scenario.maintenance:
        if scenario.failures is not None:
            raise InputError("--maintenance and --failures do not go together; leave one of them out.")
        return replace(scenario, platform=with_maintenance(scenario.platform, scenario.maintenance))
    if scenario.failures is None:
        return scenario
    sampled = Failures.read(scenario.failures)
    return replace(scenario, platform=sampled.on(scenario.platform, scenario.seed, scenario.replicate))


def _in_whole_bytes(scenario: LoadedScenario) -> LoadedScenario:
    """Return the scenario with a remark if SimGrid rounds sizes: its plugin of links knows messages alone."""
    tasks, file = scenario.tasks, scenario.platform_file
    if scenario.driver != "simgrid" or not scenario.uses_network or scenario.runs_profiles or file is None:
        return scenario
    pairs = tuple(each.size_bytes for each in (tasks.dependencies, tasks.staged) if each is not None)
    sizes = np.concatenate([tasks.input_bytes, tasks.output_bytes, *pairs])
    n_rounded = int(np.count_nonzero(sizes % 1))
    if not n_rounded or not has_links_with_power(Path(file)):
        return scenario
    remark = (
        f"SimGrid rounds {counted(n_rounded, 'size')} of messages and data to whole bytes, because links have power "
        "(wattage_range), and its plugin meters nothing else"
    )
    return replace(scenario, remarks=(*scenario.remarks, remark))


def _units_apart(scenario: LoadedScenario) -> LoadedScenario:
    """Return the scenario with a remark if it limits or pays energy, which that of GPUs and memory is no part of."""
    if not any(max(watts) > 0 for host in scenario.platform.hosts for _, *watts in host.unit_power):
        return scenario
    counted_apart = [
        name
        for name, given in (
            ("the energy budget", scenario.budget),
            ("the power cap", scenario.limits_power or None),
            ("the tariff", scenario.tariff),
        )
        if given is not None
    ]
    if not counted_apart:
        return scenario
    remark = (
        f"GPUs, memory and other units have power (unit_power) that {' and '.join(counted_apart)} "
        f"{'does' if len(counted_apart) == 1 else 'do'} not count: energy_resources_j comes on top"
    )
    return replace(scenario, remarks=(*scenario.remarks, remark))
