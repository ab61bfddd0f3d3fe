"""One run, declared: platform, workload, scheduler, seed, driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import tomli_w

from gridsched.errors import InputError
from gridsched.model.carbon import carbon_signal, forecast_signal, with_signal
from gridsched.model.estimates import Estimates, FlopsEstimates, RequestedTimes
from gridsched.model.failures import Failures
from gridsched.model.maintenance import with_maintenance
from gridsched.model.platform import Platform
from gridsched.model.prices import PriceSeries
from gridsched.model.room_on_nodes import nodes_filled
from gridsched.model.rules import Rules
from gridsched.model.run_times import LoggedRunTimes, RunTimes
from gridsched.model.series import SiteSeries
from gridsched.model.stochastic import StochasticTypes
from gridsched.model.system import System
from gridsched.model.task_types import SystemWorkload, TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.platform_io.deployment import read_deployment
from gridsched.platform_io.overrides import GivenPower, pstates_of
from gridsched.policy.base import Scheduler
from gridsched.policy.registry import make_scheduler
from gridsched.runs.run_spec import RunSpec, Section, path_of_file
from gridsched.runs.settings import RunSettings, given_keys
from gridsched.workloads.traces.job_table import Dropped
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import TraceSystem


@dataclass(frozen=True)
class Scenario(RunSettings):
    """Everything that determines a run: what runs where, and how (`RunSettings`).

    Attributes
    ----------
    platform : Platform or path, or None
        A path names a SimGrid platform file; None where the workload's generator makes its system.
    tasks : Tasks or path
        A path names a workload file.
    scheduler : str or Scheduler
        An id of the registry, or an instance (it is cloned, so it can be used again).
    parameters : mapping
        Keyword parameters where `scheduler` is an id.
    seed : int
        Seed of the scheduler's random stream.
    replicate : int
        Which repetition of the seed.
    files : path, optional
        Input files (``file,size_bytes,location``) where `tasks` is a path.
    types : TaskTypes, optional
        ETC and APC where the tasks have types.
    window_s : tuple of float, optional
        Begin and end of the time that the ``window_`` metrics cover [s].
    platform_file : path, optional
        The SimGrid file that a `platform` object was read from: SimGrid then loads that file,
        network and all. Without it, SimGrid loads one written from the object.
    run_times : RunTimes, optional
        How long executions really take, hidden from the scheduler; default the estimates.
    estimates : Estimates, optional
        What is known of times and powers, where neither types nor flops tell it.
    inputs : mapping
        File that was read -> SHA-256 of its content; `load` tells it.
    trace : TraceOptions
        How a log is read where `tasks` names one.
    left_out : tuple of Dropped
        Jobs of the log that are not run, and why; `load` tells it.
    remarks : tuple of str
        What else of the log is not simulated, in words.
    meters_carbon : bool
        Whether SimGrid's joules are read at every change of the carbon intensity (`carbon_check`).
    """

    platform: Platform | str | Path | None
    tasks: Tasks | str | Path
    scheduler: str | Scheduler = "wq"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    replicate: int = 0
    files: str | Path | None = None
    types: TaskTypes | None = None
    window_s: tuple[float, float] | None = None
    platform_file: str | Path | None = None
    run_times: RunTimes | None = None
    estimates: Estimates | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    trace: TraceOptions = field(default_factory=TraceOptions)
    left_out: tuple[Dropped, ...] = ()
    remarks: tuple[str, ...] = ()
    meters_carbon: bool = False

    def described(self) -> RunSpec:
        """Return the description of the run; what is an object here is the same one there."""
        return RunSpec.asked(
            self.platform,
            self.tasks,
            files=self.files,
            trace=self.trace.given,
            scheduler=self.scheduler,
            parameters=self.parameters,
            settings=given_keys(self),
            seed=self.seed,
            replicate=self.replicate,
        )

    def study_text(self, name: str) -> str:
        """Return a study file that holds this run alone.

        Raises
        ------
        InputError
            If a part of it is an object, which no file can name.
        """
        spec, objects = self.described(), ("types", "window_s", "run_times", "estimates")
        parts = {"platform": spec.platform, "tasks": spec.workload, "scheduler": self.scheduler}
        objects_in_it = [part for part, value in parts.items() if not isinstance(value, Section | str)]
        objects_in_it += [part for part in objects if getattr(self, part) is not None]
        settings = spec.settings.model_dump(exclude_defaults=True, warnings=False)
        objects_in_it += [key for key, value in settings.items() if isinstance(value, PriceSeries | SiteSeries)]
        if objects_in_it:
            raise InputError(f"{name}: a study names files and ids, and {objects_in_it[0]} is an object.")
        content: dict[str, Any] = {"name": name, "seed": self.seed, **settings}
        if self.timeout_s is not None:
            content["timeout_s"] = self.timeout_s
        if self.replicate:
            content |= {"replicates": self.replicate + 1, "only": f"replicate == {self.replicate}"}
        for part, section in (("platform", spec.platform), ("workload", spec.workload)):
            content[part] = section.model_dump(exclude_unset=True, exclude_none=True)
        for key, file in spec.files():
            part, _, name_there = key.partition(".")
            path = str(Path(path_of_file(file, {})).resolve())
            (content if part == "settings" else content[part])[name_there] = path
        content["schedulers"] = [{"id": self.scheduler, **self.parameters}]
        return tomli_w.dumps(content)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was found odd while reading platform and workload; it must be loaded."""
        of_platform = self.platform.warnings if isinstance(self.platform, Platform) else ()
        return (*of_platform, *self.remarks, *map(str, self.left_out))

    def with_system(self, whole: SystemWorkload) -> LoadedScenario:
        """Return the scenario on a generated system; what is set here already goes first.

        Raises
        ------
        InputError
            If the scenario has a platform or input files of its own.
        """
        for name in ("platform", "files", "deployment"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"{whole.tasks.name}: this workload makes its own system; leave out --{name} {getattr(self, name)}."
                )
        return self.on(LoadedScenario.of_system(whole))

    def on(self, world: LoadedScenario) -> LoadedScenario:
        """Return what was read, with what is set here and goes before it."""
        usual = vars(Scenario(None, ""))
        names = [each.name for each in fields(Scenario) if each.name not in ("platform", "tasks", "inputs")]
        own = {name: each for name in names if (each := getattr(self, name)) is not usual[name] and each != usual[name]}
        return replace(world, **own, inputs={**self.inputs, **world.inputs})

    def make_scheduler(self) -> Scheduler:
        """Return a fresh scheduler."""
        if isinstance(self.scheduler, Scheduler):
            return self.scheduler.clone()
        return make_scheduler(self.scheduler, self.parameters)

    @property
    def scheduler_name(self) -> str:
        """The id, or the class name of an instance."""
        if isinstance(self.scheduler, Scheduler):
            return type(self.scheduler).__name__
        return self.scheduler


@dataclass(frozen=True)
class LoadedScenario(Scenario):
    """A scenario whose files are read: `gridsched.runs.scenario_maker.load` gives it.

    Attributes
    ----------
    platform : Platform
    tasks : Tasks
    given_power : GivenPower
        What `power` says; `load` reads it.
    """

    platform: Platform
    tasks: Tasks
    given_power: GivenPower = field(default_factory=GivenPower)

    @classmethod
    def of_system(cls, whole: SystemWorkload) -> LoadedScenario:
        """Return the scenario of a workload that comes with its machines."""
        rules = {rule.name: getattr(whole.rules, rule.name) for rule in fields(Rules)}
        return cls(
            whole.platform,
            whole.tasks,
            types=whole.types,
            window_s=whole.window_s,
            run_times=whole.run_times,
            estimates=whole.estimates,
            **rules,
        )

    @classmethod
    def on_trace(cls, system: TraceSystem) -> LoadedScenario:
        """Return the scenario of the jobs of a log, on their machine."""
        jobs = system.jobs
        return replace(cls.of_system(system.system), left_out=jobs.dropped, remarks=jobs.notes)

    def deployed(self) -> LoadedScenario:
        """Return the scenario with only the hosts computing that a deployment gives work.

        Raises
        ------
        InputError
            If the deployment file cannot be read or does not fit the platform.
        """
        if self.deployment is None:
            return self
        workers = read_deployment(self.deployment, self.platform).workers
        return replace(self, platform=self.platform.restricted_to(workers))

    def metered(self) -> LoadedScenario:
        """Return the scenario whose jobs draw what was measured, where that is asked for.

        Raises
        ------
        InputError
            If nothing was measured, or what was lies outside the range of a node.
        """
        clamps = self.given_power.clamps
        if clamps is None:
            return self
        if not isinstance(self.run_times, LoggedRunTimes):
            raise InputError(f"{self.tasks.name}: --power measured goes with a log of jobs that tells their power.")
        for key, value in (
            ("energy_budget_j", self.budget),
            ("power_cap_w", self.power_cap_w),
            ("a speed profile", self.platform.profiles.speeds or None),
        ):
            if value is not None:
                raise InputError(
                    f"--power measured: what jobs really draw is known to nobody before they ran, and {key} goes by "
                    "it; leave one of them out."
                )
        nodes = nodes_filled(self.platform, self.tasks)
        times, note = self.run_times.at_measured_power(self.platform, self.tasks.labels, nodes, clamps=clamps)
        return replace(self, run_times=times, remarks=(*self.remarks, note))

    def failing(self) -> LoadedScenario:
        """Return the scenario with the maintenance of its hosts, or their failures drawn.

        Raises
        ------
        InputError
            If a host has a state profile of its own.
        """
        if self.maintenance:
            if self.failures is not None:
                raise InputError("--maintenance and --failures do not go together; leave one of them out.")
            return replace(self, platform=with_maintenance(self.platform, self.maintenance))
        if self.failures is None:
            return self
        drawn = Failures.read(self.failures)
        return replace(self, platform=drawn.on(self.platform, self.seed, self.replicate))


def workload_kinds(scenario: LoadedScenario) -> set[str]:
    """Return the kinds of workload that a scenario has; see `registry.Entry.accepts`."""
    tasks = scenario.tasks
    if not tasks.are_serial:
        return {"parallel"} if tasks.utility is None else {"parallel", "parallel_utility"}
    is_bag = not len(tasks) or tasks.submit_time_s[0] == tasks.submit_time_s[-1]
    kinds = {"bag", "arrivals"} if is_bag else {"arrivals"}
    if tasks.utility is not None:
        return {*kinds, "utility"}
    if scenario.types is None:
        return kinds
    return {*kinds, "typed", *(["stochastic"] if isinstance(scenario.types, StochasticTypes) else [])}


def make_system(scenario: LoadedScenario) -> System:
    """Return what the scheduler is prepared for.

    Raises
    ------
    InputError
        If a host lacks a P-state that is asked for.
    """
    tasks = scenario.tasks
    estimates: Estimates
    if scenario.estimates is not None:
        estimates = scenario.estimates
    elif scenario.types is not None:
        estimates = scenario.types.estimates(tasks)
    elif tasks.requested_time_s is not None:
        estimates = RequestedTimes(scenario.platform, tasks, scenario.place)
    else:
        estimates = FlopsEstimates(scenario.platform, tasks, scenario.place)
    if scenario.tariff is not None:
        scenario.tariff.energy_price(scenario.platform)  # refuses hosts whose price is not told
    carbon = carbon_signal(scenario.carbon, scenario.platform)
    budget = with_signal(scenario.budget, carbon, scenario.platform, is_parallel=not tasks.are_serial)
    rules = Rules(**{**{each.name: getattr(scenario, each.name) for each in fields(Rules)}, "budget": budget})
    system = System(
        platform=scenario.platform,
        estimates=estimates,
        pstates=pstates_of(scenario.platform, scenario.pstate),
        files=tasks.files,
        rules=rules,
        tariff=scenario.tariff,
        carbon=carbon,
        carbon_forecast=forecast_signal(scenario.carbon, scenario.platform),
    )
    system.check_pstates()
    return system
