"""How far runs of one bag on one platform are from the least that is possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsched.errors import InputError
from gridsched.metrics import BOUNDED, METRICS
from gridsched.metrics.of_runs import count_in_state
from gridsched.model.trace import TaskState
from gridsched.optimize.bag_bounds import BagBounds, bag_bounds
from gridsched.platform_io.given_pstates import pstates_of
from gridsched.policy.base import Traits
from gridsched.spec.canonical import checked_file
from gridsched.spec.run import RunResult
from gridsched.spec.scenario import LoadedScenario
from gridsched.spec.scenario_maker import ScenarioMaker

if TYPE_CHECKING:
    from gridsched.spec.study import Study


def bounds_for(results: Sequence[RunResult]) -> BagBounds:
    """Return the bounds common to runs of one bag on one platform.

    Parameters
    ----------
    results : sequence of RunResult
        At least one; they differ in nothing but the scheduler and its random numbers.

    Returns
    -------
    BagBounds
        Without idle power where any of the schedulers may switch hosts off, and over all P-states
        where any of them chooses P-states.
    """
    traits = [result.scenario.make_scheduler().traits for result in results]
    return _scenario_bounds(results[0].scenario, traits)


def have_bounds(results: Sequence[RunResult]) -> bool:
    """Whether any of the runs is one that bounds say something of.

    Tasks with utility functions may be left out, and uncertain run times have no certain bounds.
    Of a run that a budget or a horizon ended, or that dropped tasks, the bounds of all its tasks
    say nothing.
    """
    return any(
        _lacks_bounds(result.scenario) is None
        and count_in_state(result.trace, TaskState.FINISHED) == len(result.trace.tasks)
        for result in results
    )  # fmt: skip


def _lacks_bounds(scenario: LoadedScenario) -> str | None:
    """Return why no bounds hold for a scenario, None if they do."""
    if scenario.tasks.utility is not None:
        return "they have utility functions, and need not all be executed"
    if scenario.tasks.width is not None:
        return "they are parallel, and take sets of nodes"
    if scenario.tasks.requested_time_s is not None:
        return "they only asked for a time, and take another"
    if scenario.failures is not None or scenario.platform.profiles.of_hosts:
        return "hosts change with time"
    if scenario.run_times is not None:
        return "how long they really take is not what is estimated"
    return None


def study_bounds(study: Study, inputs: Mapping[str, Path]) -> dict[str, BagBounds]:
    """Return the bounds of each run of a study by run id.

    They follow from the scenarios alone, so stored runs have bounds, too. Runs that differ in
    nothing but the scheduler share them, as in `bounds_for`.

    Parameters
    ----------
    study : Study
    inputs : mapping
        SHA-256 of a file -> where it lies.

    Raises
    ------
    InputError
        If an input file is missing or damaged.
    """
    traits = {each.label: each.traits for each in study.schedulers}
    for digest in {file.sha256 for file in study.inputs.values()}.difference(study.policies):
        checked_file(inputs[digest], digest)
    maker = ScenarioMaker(inputs, Path())
    found: dict[str, BagBounds] = {}
    for _, group in groupby(study.scenarios(), key=_axes_but_scheduler):
        runs = list(group)
        described = runs[0].scenario
        # The reference driver's scenario is the same, and needs no platform file.
        settings = {**described["settings"], "driver": "reference"}
        scheduler = {**described["scheduler"], "policy": None}  # no scheduler is made
        told = {**described, "settings": settings, "scheduler": scheduler}
        scenario = maker.make(told).deployed()
        bounds = _scenario_bounds(scenario, (traits[run.axes["scheduler"]] for run in runs))
        found.update(dict.fromkeys((run.run_id for run in runs), bounds))
    return found


def _axes_but_scheduler(run: Any) -> dict[str, Any]:
    return {name: value for name, value in run.axes.items() if name != "scheduler"}


def _scenario_bounds(scenario: LoadedScenario, traits: Iterable[Traits]) -> BagBounds:
    """Return the bounds common to schedulers of these traits."""
    if (why := _lacks_bounds(scenario)) is not None:
        raise InputError(
            f"{scenario.tasks.name}: these tasks have no bounds, because {why}. Name no metric of "
            "bounds."
        )
    compared = list(traits)
    may_switch_off = any(each.powers_hosts for each in compared)
    # parked hosts rest in another P-state: the bounds then allow any
    parks = scenario.parked_pstate is not None
    free_pstates = parks or any(each.uses_dvfs for each in compared)
    pstates = pstates_of(scenario.platform, scenario.parked_pstate if parks else scenario.pstate)
    names = set(scenario.hosts_off)
    off = [h for h, host in enumerate(scenario.platform.hosts) if host.name in names]
    if scenario.types is None:
        return bag_bounds(
            scenario.platform, scenario.tasks, pstates, may_switch_off=may_switch_off,
            free_pstates=free_pstates, hosts_off=off,
        )  # fmt: skip
    from gridsched.optimize.typed_bounds import typed_bounds  # scipy's solver is slow to load

    differ = len(np.unique(pstates)) > 1
    return typed_bounds(
        scenario.types, scenario.tasks, int(pstates[0]), may_switch_off=may_switch_off,
        free_pstates=free_pstates or differ, hosts_off=off,
    )  # fmt: skip


def bound_fields(bounds: BagBounds, row: dict[str, Any]) -> dict[str, Any]:
    """Return the bounds, and by which share a run lies above them.

    Parameters
    ----------
    bounds : BagBounds
    row : dict
        The run's `RunResult.summary`.

    Returns
    -------
    dict
        ``makespan_bound_s``, ``energy_bound_j``, ``energy_bound_counts_idle``,
        ``makespan_above_bound``, ``energy_above_bound``, ``above_front``. The last three are None
        where the bound is 0 or the run did not finish all tasks, and 0 where only rounding makes a
        difference.
    """
    known = {**row, "bounds": bounds}
    bounded = (metric for metric in METRICS.values() if metric.condition is BOUNDED)
    return {metric.id: metric.function(known) for metric in bounded}
