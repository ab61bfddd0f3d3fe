"""How far runs of one bag on one platform are from the least that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsched.errors import InputError
from gridsched.long_work import long_work
from gridsched.metrics import BOUNDED, BOUNDED_CARBON, METRICS
from gridsched.metrics.run_metrics import count_in_state
from gridsched.model.carbon import carbon_signal
from gridsched.model.trace import TaskState
from gridsched.optimize.bag_bounds import BagBounds, bag_bounds
from gridsched.optimize.carbon_bound import CarbonBound
from gridsched.platform_io.overrides import pstates_of
from gridsched.policy.base import Traits
from gridsched.runs.run import RunResult
from gridsched.runs.scenario_maker import ScenarioMaker, load
from gridsched.runs.study_inputs import checked_file
from gridsched.scenario import LoadedScenario

if TYPE_CHECKING:
    from gridsched.runs.study import Study


#: What is reported where it takes long.
COMPUTING_BOUNDS = "computing the bounds that no schedule can beat"


@dataclass(frozen=True)
class ScenarioBounds:
    """What runs of one bag on one platform cannot fall below, whichever schedulers are compared.

    Attributes
    ----------
    any : BagBounds
        Of every schedule: hosts may be off at any time, and execute in any P-state.
    fixed : BagBounds or None
        Of schedules that leave power states as the scenario sets them: every host is on (or off)
        to the end, and executes in its P-state. None where all hosts are off.
    holds_fixed : bool
        Whether `fixed` holds for the scheduler at hand.
    any_carbon, fixed_carbon : CarbonBound or None
        The same for grams, if there is a carbon intensity.
    """

    any: BagBounds
    fixed: BagBounds | None
    holds_fixed: bool = True
    any_carbon: CarbonBound | None = None
    fixed_carbon: CarbonBound | None = None

    def beside(self, traits: Traits) -> ScenarioBounds:
        """Return the bounds beside a run of a scheduler with these traits."""
        changes = traits.powers_hosts or (traits.uses_dvfs and self.any.free_pstates)
        return replace(self, holds_fixed=self.holds_fixed and not changes)

    @property
    def differing(self) -> set[str]:
        """Which of ``makespan_s`` and ``energy_j`` the two bounds have different."""
        if self.fixed is None:
            return set()
        both = {name: (getattr(self.any, name), getattr(self.fixed, name)) for name in ("makespan_s", "energy_j")}
        return {name for name, (one, other) in both.items() if one < other or other < one}

    def describe(self) -> Iterator[str]:
        """Yield a sentence for each of the bounds, as far as they differ."""
        yield f"Bound of any schedule, with divisible tasks: {self.any.describe()}."
        if self.fixed is not None and self.differing:
            yield f"Bound with power states fixed: {self.fixed.describe()}."
        if self.any_carbon is not None:
            yield "Bounds of carbon: of any schedule that takes at most as long as the run."


def bounds_for(results: Sequence[RunResult]) -> ScenarioBounds:
    """Return the bounds common to runs of one bag on one platform.

    Parameters
    ----------
    results : sequence of RunResult
        At least one; they differ in nothing but the scheduler and its random numbers.
    """
    return _scenario_bounds(results[0].scenario)


def carbon_above_bounds(result: RunResult) -> dict[str, Any]:
    """Return the bounds of a run's grams, and how far it is above them; those that are known."""
    if result.trace.carbon is None or not have_bounds([result]):
        return {}
    with long_work(COMPUTING_BOUNDS):
        bounds = bounds_for([result]).beside(result.scenario.make_scheduler().traits)
        known = bound_fields(bounds, result.summary()).items()
    grams = {metric.id for metric in METRICS.values() if metric.condition is BOUNDED_CARBON}
    return {id: value for id, value in known if id in grams and value is not None}


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
    )


def _lacks_bounds(scenario: LoadedScenario) -> str | None:
    """Return why no bounds hold for a scenario, None if they do."""
    if scenario.tasks.utility is not None:
        return "they have utility functions, and need not all be executed"
    if not scenario.tasks.are_serial:
        return "they are parallel, and take sets of nodes"
    if scenario.tasks.requested_time_s is not None:
        return "they only asked for a time, and take another"
    if scenario.failures is not None or scenario.platform.profiles.of_hosts:
        return "hosts change with time"
    if scenario.run_times is not None:
        return "how long they really take is not what is estimated"
    return None


def study_bounds(study: Study, inputs: Mapping[str, Path]) -> dict[str, ScenarioBounds]:
    """Return the bounds beside each run of a study by run id.

    They follow from the scenarios alone, so stored runs have bounds, too. Runs that differ in
    nothing but the scheduler share them.

    Parameters
    ----------
    study : Study
    inputs : mapping
        SHA-256 of a file -> its path.

    Raises
    ------
    InputError
        If an input file is missing or damaged.
    """
    traits = {each.label: each.traits for each in study.schedulers}
    for digest in {file.sha256 for file in study.inputs.values()}.difference(study.policies):
        checked_file(inputs[digest], digest)
    with long_work(f"{COMPUTING_BOUNDS}, of each scenario of the study"):
        return _study_bounds(study, inputs, traits)


def _study_bounds(study: Study, inputs: Mapping[str, Path], traits: Mapping[str, Traits]) -> dict[str, ScenarioBounds]:
    maker = ScenarioMaker(inputs, Path())
    by_run: dict[str, ScenarioBounds] = {}
    for _, group in groupby(study.scenarios(), key=_axes_but_scheduler):
        runs = list(group)
        described = runs[0].spec
        # The reference driver's scenario is the same, and needs no platform file.
        settings = described.settings.model_copy(update={"driver": "reference"})
        scheduler = described.scheduler.model_copy(update={"policy": None})  # no scheduler is made
        told = described.model_copy(update={"settings": settings, "scheduler": scheduler})
        scenario = load(maker.make(told))
        bounds = _scenario_bounds(scenario)
        by_run.update({run.run_id: bounds.beside(traits[run.axes["scheduler"]]) for run in runs})
    return by_run


def _axes_but_scheduler(run: Any) -> dict[str, Any]:
    return {name: value for name, value in run.axes.items() if name != "scheduler"}


def _scenario_bounds(scenario: LoadedScenario) -> ScenarioBounds:
    if (why := _lacks_bounds(scenario)) is not None:
        raise InputError(f"{scenario.tasks.name}: these tasks have no bounds, because {why}. Name no metric of bounds.")
    names = set(scenario.hosts_off)
    off = [h for h, host in enumerate(scenario.platform.hosts) if host.name in names]
    every, every_carbon = _bounds(scenario, off, is_fixed=False)
    if len(off) == len(scenario.platform):
        return ScenarioBounds(every, None, holds_fixed=False, any_carbon=every_carbon)
    fixed, fixed_carbon = _bounds(scenario, off, is_fixed=True)
    return ScenarioBounds(every, fixed, any_carbon=every_carbon, fixed_carbon=fixed_carbon)


def _bounds(scenario: LoadedScenario, off: Sequence[int], *, is_fixed: bool) -> tuple[BagBounds, CarbonBound | None]:
    """Return the bounds of schedules that leave power states alone, or of all."""
    platform, tasks, types = scenario.platform, scenario.tasks, scenario.types
    # parked hosts rest in another P-state: the bounds then allow any
    parks = scenario.parked_pstate is not None
    pstates = pstates_of(platform, scenario.parked_pstate if parks else scenario.pstate)
    several = int(platform.n_pstates.max(initial=1)) if types is None else types.etc.shape[2]
    free = parks or (not is_fixed and several > 1)
    if types is None:
        limits: dict[str, Any] = {"may_switch_off": not is_fixed, "free_pstates": free, "hosts_off": off}
        bounds = bag_bounds(platform, tasks, pstates, **limits)
        signal = carbon_signal(scenario.carbon, platform) if platform.has_energy and len(tasks) else None
        return bounds, None if signal is None else CarbonBound(platform, tasks, signal, pstates, **limits)
    from gridsched.optimize.typed_bounds import typed_bounds  # scipy's solver is slow to load

    differ = len(np.unique(pstates)) > 1
    bounds = typed_bounds(
        types, tasks, int(pstates[0]), may_switch_off=not is_fixed, free_pstates=free or differ, hosts_off=off
    )
    return bounds, None


def bound_fields(bounds: ScenarioBounds, row: dict[str, Any]) -> dict[str, Any]:
    """Return the bounds, and by which share a run is above them.

    Parameters
    ----------
    bounds : ScenarioBounds
        Beside the run; see `ScenarioBounds.beside`.
    row : dict
        The run's `RunResult.summary`.

    Returns
    -------
    dict
        A value for each metric of bounds. Distances are None where the bound is 0 or does not
        hold for the run, or the run did not finish all tasks, and 0 where only rounding makes a
        difference.
    """
    known = {**row, "bounds": bounds}
    conditions = (BOUNDED,) if bounds.any_carbon is None else (BOUNDED, BOUNDED_CARBON)
    return {metric.id: metric.function(known) for metric in METRICS.values() if metric.condition in conditions}
