"""Run a scenario with either driver and gather what came out."""

from __future__ import annotations

import contextlib
import hashlib
import math
import platform as machine
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsched.arrays import Floats, distinct
from gridsched.energy import HostEnergy, energy_and_power, link_energy
from gridsched.engine import takes_sets
from gridsched.engine.policy_calls import check_policy
from gridsched.engine.programs import MOST_STEPS
from gridsched.errors import counted, policy_at_work
from gridsched.files.output_files import temporary_folder, write_whole
from gridsched.long_work import long_work
from gridsched.metrics import RunFacts, metrics_of
from gridsched.metrics.group_metrics import group_of, group_rows
from gridsched.metrics.table import MetricValue
from gridsched.model.host_profiles import HostProfiles
from gridsched.model.records import keys_of
from gridsched.model.routes import Routes
from gridsched.model.seeds import random_stream
from gridsched.model.stimuli import CancelTask
from gridsched.model.trace import TaskState, Trace
from gridsched.platform_io.xml_edit import current_platform_xml, with_speeds_alone
from gridsched.platform_io.xml_writer import parallel_platform_xml, write_platform
from gridsched.policy.base import Scheduler
from gridsched.policy.policy_files import comes_from_file, policy_digests
from gridsched.power import kept_power, trace_power
from gridsched.runs.checks import check_informed, check_tables
from gridsched.runs.preparation import prepare
from gridsched.runs.result_frames import hosts_frame, html_table, page_of_traces, short_text, tasks_frame
from gridsched.scenario import LoadedScenario, Scenario
from gridsched.schedulers.kernels import report_interpreter
from gridsched.sim.client import simulate, simulate_reference
from gridsched.sim.lone_transfers import (
    DEFAULT_SOLVER,
    link_model,
    network_between,
    routes_between,
    solver_of_parallel_tasks,
)
from gridsched.sim.outcome import SimulationOutcome
from gridsched.version import __version__

if TYPE_CHECKING:
    import pandas as pd  # slow to load


@dataclass(frozen=True)
class RunResult:
    """What one run gave.

    Attributes
    ----------
    scenario : LoadedScenario
    trace : Trace
    plugin_j : dict of str to float, or None
        Energy of each host by SimGrid's plugin [J]; None with the reference driver.
    provenance : dict
        Enough to repeat the run.
    log : str
        What SimGrid wrote on stderr.
    timing : dict of str to float
        Wall times [s].
    links_j : dict of str to float, or None
        Energy of each link with a power range by SimGrid's plugin [J]; None where no network is
        simulated or no link has one. See `gridsched.drivers.simgrid_library` for what it counts.
    grams : dict of str to float, or None
        Of each host by SimGrid's joules [g], where the scenario's `meters_carbon` asks for them.
    """

    scenario: LoadedScenario
    trace: Trace
    plugin_j: dict[str, float] | None
    provenance: dict[str, Any]
    log: str = ""
    timing: dict[str, float] = field(default_factory=dict, compare=False)
    links_j: dict[str, float] | None = None
    grams: dict[str, float] | None = None

    @property
    def energy_plugin_j(self) -> float:
        """Plugin energy of the computing hosts [J]; nan with the reference driver."""
        if self.plugin_j is None:
            return float("nan")
        return float(sum(self.plugin_j.get(h.name, np.nan) for h in self.trace.platform.hosts))

    @cached_property
    def energy(self) -> HostEnergy:
        """Energy of each host by the model, integrated once for all who ask."""
        return self.facts.energy

    @cached_property
    def facts(self) -> RunFacts:
        """What the metrics are computed from."""
        scenario, trace = self.scenario, self.trace
        # what a window or a period used takes the power of all hosts at once
        takes_all = scenario.window_s is not None or len(trace.periods) > 0
        power = trace_power(trace) if takes_all else kept_power(trace)
        tariff, shortest_times = scenario.tariff, None
        if tariff is not None and scenario.types is not None:
            tariff = tariff.for_each(scenario.types.host_type)
        if scenario.window_s is not None and scenario.tasks.utility is not None:
            shortest_times = scenario.system.estimates.shortest_times()
        energy, grid = energy_and_power(self.trace, power)
        return RunFacts(
            self.trace,
            energy,
            scenario.window_s,
            scenario.driver,
            self.plugin_j,
            self.links_j,
            scenario.budget,
            tariff,
            shortest_times,
            power,
            grid,
        )

    def __repr__(self) -> str:
        where = f"{self.scenario.scheduler_name} on {self.trace.platform.name}, {self.trace.tasks.name}"
        return short_text(where, self.summary())

    def _repr_html_(self) -> str:
        return html_table(self.title, self.summary())

    @property
    def tasks(self) -> pd.DataFrame:
        """The tasks by id; see `gridsched.runs.result_frames`."""
        return tasks_frame(self.trace, self.scenario.idle_attribution)

    def groups(self, by: str, fair_start_s: Floats | None = None) -> list[dict[str, Any]]:
        """Return a row for each group of parallel jobs: `gridsched.metrics.group_metrics.group_rows`.

        Parameters
        ----------
        by : str
            ``"partition"``, ``"size"``, or another attribute of the log: ``"user"``, ``"queue"``, ...
        fair_start_s : ndarray of float64, shape (tasks,), optional
            `fair_start_s` of another run of the same jobs on the same machine, which is then not computed again.

        Raises
        ------
        InputError
            If the jobs cannot be grouped by this.
        """
        group_of(self.trace.tasks, self.trace.platform, by)
        fair = self.fair_start_s if fair_start_s is None else fair_start_s
        return group_rows(self.trace, by, fair, self.scenario.idle_attribution)

    @cached_property
    def fair_start_s(self) -> Floats:
        """When each job starts under FCFS [s], on the reference driver; nan where it never does."""
        return run(_under_fcfs(self.scenario)).trace.start_time_s

    @property
    def hosts(self) -> pd.DataFrame:
        """The hosts by name; see `gridsched.runs.result_frames`."""
        return hosts_frame(self.trace, self.energy, self.plugin_j)

    @property
    def title(self) -> str:
        """Who was run on what."""
        return f"{self.scenario.scheduler_name}: {self.trace.tasks.name} on {self.trace.platform.name}"

    def view(self, *others: RunResult) -> Any:
        """Return a page to look at the run, and at `others` below it; see `page_of_traces`."""
        return page_of_traces([(each.title, each.trace) for each in (self, *others)])

    def metrics(self) -> dict[str, MetricValue]:
        """Return every metric of the run; they repeat exactly, wall times are not among them."""
        return metrics_of(self.facts)

    def summary(self) -> dict[str, MetricValue]:
        """Return the scheduler and the metrics of the run."""
        return {"scheduler": self.scenario.scheduler_name, **self.metrics()}


def provenance_of(scenario: LoadedScenario, scheduler: Scheduler) -> dict[str, Any]:
    """Return versions, inputs and seeds of a run before it begins; wall times and dates stay out."""
    left_out = [each.as_json() for each in scenario.left_out]
    with policy_at_work():
        parameters = scheduler.parameters
    return {
        "gridsched": __version__,
        "python": machine.python_version(),
        "numpy": np.__version__,
        "platform": scenario.platform.name,
        "workload": scenario.tasks.name,
        "scheduler": scenario.scheduler_name,
        "parameters": parameters,
        "seed": scenario.seed,
        "replicate": scenario.replicate,
        "inputs": {**scenario.inputs, **policy_digests(scheduler)},
        "files": None if scenario.files is None else str(scenario.files),
        **{key.path[0]: _plain(getattr(scenario, key.path[0])) for key in keys_of(Scenario).values()},
        "network": "platform" if scenario.uses_network else "none",
        "heterogeneity": scenario.tasks.heterogeneity,
        "heterogeneity_is_nominal": scenario.tasks.nominal_heterogeneity is not None,
        "warnings": list(scenario.warnings),
        **({"trace": scenario.trace.given, "left_out": left_out} if left_out or scenario.trace.given else {}),
        "command": " ".join(sys.argv),
    }


def _plain(value: Any) -> Any:
    """Return a setting as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def run(scenario: Scenario, *, is_apart: bool = False) -> RunResult:
    """Run one scenario.

    Parameters
    ----------
    scenario : Scenario
    is_apart : bool
        Whether a run of the reference driver has a process of its own in any case, as runs on
        SimGrid have, so that several go on at one time.

    Returns
    -------
    RunResult

    Raises
    ------
    InputError
        If the scenario contradicts itself or a file cannot be read.
    InvalidDecision, IncompleteRun
        If the scheduler breaks its contract or leaves tasks undone.
    SimulationError
        If SimGrid refuses, crashes or disagrees.

    Examples
    --------
    >>> from gridsched import Scenario, run
    >>> result = run(Scenario("platforms/ex_a.xml", "examples/ex_a.csv", "lecsa"))
    >>> result.summary()["makespan_s"]
    100.0
    """
    began = time.perf_counter()
    prepared = with_routes(prepare(scenario))
    check_tables(prepared)
    scheduler = prepared.make_scheduler()
    if prepared.stimuli:
        check_informed(scheduler)
    provenance = provenance_of(prepared, scheduler)
    report_interpreter()
    with _reported(scheduler, scenario.timeout_s):
        outcome = _simulated(prepared, scheduler, is_apart=is_apart)
    return result_of(prepared, scheduler, outcome, provenance, began)


def result_of(
    prepared: LoadedScenario, scheduler: Scheduler, outcome: SimulationOutcome, provenance: dict[str, Any], began: float
) -> RunResult:
    """Return what a run gave that is over.

    Parameters
    ----------
    prepared : LoadedScenario
    scheduler : Scheduler
    outcome : SimulationOutcome
    provenance : dict
        As `provenance_of` returned it; it is completed.
    began : float
        When the run began, by `time.perf_counter` [s].

    Raises
    ------
    InputError
        If the run lasted longer than a table of carbon or prices covers.
    """
    trace = outcome.trace
    if prepared.tasks.are_workflow:
        estimates = prepared.system.estimates
        times = estimates.host_times(prepared.platform, len(prepared.tasks))
        trace = replace(trace, shortest_s=estimates.shortest_times(), host_times_s=times)
    check_tables(prepared, trace.horizon_s)
    for remark in (*_of_pipes(trace, outcome.unshared), *_of_late_events(prepared, trace), *_of_steps(trace)):
        prepared = replace(prepared, remarks=(*prepared.remarks, remark))
        provenance["warnings"].append(remark)
    if trace.delegated_to:
        provenance["delegated_to"] = trace.delegated_to
    with policy_at_work():
        powers_hosts = scheduler.traits.powers_hosts
        remark = scheduler.remark_on(prepared.system)
    if remark:
        provenance["remark"] = str(remark)
    if powers_hosts and _boots_for_nothing(trace):
        provenance["free_boots"] = True
    timing = {**trace.timing, "run_s": time.perf_counter() - began}
    return RunResult(prepared, trace, outcome.plugin_j, provenance, outcome.log, timing, outcome.links_j, outcome.grams)


def _simulated(prepared: LoadedScenario, scheduler: Scheduler, *, is_apart: bool) -> SimulationOutcome:
    """Return what a run gave; its `unshared` links are those that the solver may give too much of."""
    if prepared.driver == "reference":
        trace, routes = simulate_reference(prepared, scheduler, is_apart=is_apart), prepared.routes
        if not prepared.runs_profiles or routes is None:
            return SimulationOutcome(trace, None, "")
        links_j = None
        if routes.wattage:
            links_j = link_energy(routes.wattage, routes.bandwidth, trace.link_bytes, trace.horizon_s)
        return SimulationOutcome(trace, None, "", links_j, unshared=routes.unshared)
    has_sets = prepared.uses_parallel_tasks(has_sets=takes_sets(prepared.tasks, scheduler.traits))
    with _platform_file(prepared, has_sets=has_sets) as platform_file:
        outcome = simulate(prepared, scheduler, platform_file.resolve())
        if outcome.unshared and solver_of_parallel_tasks(platform_file, prepared.cfg) != DEFAULT_SOLVER:
            return replace(outcome, unshared=frozenset())
    return outcome


def _of_steps(trace: Trace) -> Iterator[str]:
    """Yield a line if not all steps of executions are in the records."""
    if len(trace.steps) >= MOST_STEPS:
        yield f"the records have the first {MOST_STEPS:,} steps of executions; later ones are left out of Trace.steps"


def _of_pipes(trace: Trace, unshared: Collection[str]) -> Iterator[str]:
    """Yield a line about the links of type FATPIPE that jobs sent over, if there were several jobs."""
    crossed = [link for link, sent in trace.link_bytes.items() if sent > 0 and link in unshared]
    profile = trace.tasks.profile
    if crossed and profile is not None and np.count_nonzero(profile >= 0) > 1:
        first = f"{crossed[0]!r}" if len(crossed) == 1 else f"{crossed[0]!r} and {len(crossed) - 1} more"
        yield (
            f"jobs sent over {counted(len(crossed), 'link')} of type FATPIPE ({first}): SimGrid's default solver of "
            "parallel tasks gives a job more than the bandwidth of such a link while slower ones cross it, and the "
            "reference driver does the same; --driver simgrid --cfg host/solver:bmf does not (docs/simgrid_facts.md)"
        )


def _of_late_events(scenario: LoadedScenario, trace: Trace) -> Iterator[str]:
    """Yield a line about jobs that had ended when they were to be cancelled."""
    cancelled = {each.stimulus.task for each in scenario.stimuli if isinstance(each.stimulus, CancelTask)}
    late = [task for task in sorted(cancelled) if trace.final_state[task] != TaskState.KILLED]
    if late:
        owner = scenario.events or "events from outside"
        yield (
            f"{owner}: {counted(len(late), 'job')} had ended before the events that cancel them "
            f"(the first: {trace.tasks.labels[late[0]]})"
        )


def _reported(scheduler: Scheduler, timeout_s: float | None) -> contextlib.AbstractContextManager[None]:
    """Report a run that another program decides, if it takes long, and how long it may take."""
    if not scheduler.traits.external:
        return contextlib.nullcontext()
    with policy_at_work():
        answer_s = scheduler.answer_limit_s()
    limits = [f"up to {answer_s:g} s for each answer" if answer_s < math.inf else "without a limit for an answer"]
    if timeout_s is not None:
        limits.append(f"up to {timeout_s:g} s in all")
    return long_work(
        f"the run waits for the decisions of another program ({', '.join(limits)}), or simulates them; it is not over "
        "yet"
    )


def _boots_for_nothing(trace: Trace) -> bool:
    """Whether a host was switched on that boots in no time, and so without energy."""
    changes = trace.host_changes[np.argsort(trace.host_changes["host"], kind="stable")]
    host, is_on = changes["host"], changes["is_on"]
    booted = host[1:][(host[1:] == host[:-1]) & is_on[1:] & ~is_on[:-1]]
    return any(trace.platform.hosts[h].boot_time_s == 0 for h in distinct(booted).tolist())


def _under_fcfs(scenario: LoadedScenario) -> LoadedScenario:
    """Return the scenario under FCFS, on the reference driver."""
    return replace(scenario, scheduler="fcfs", parameters={}, driver="reference")


def check_groups(scenario: LoadedScenario, by: Iterable[str]) -> None:
    """Find out before a run whether `RunResult.groups` can group its jobs.

    Parameters
    ----------
    scenario : LoadedScenario
    by : iterable of str
        As `RunResult.groups` takes them.

    Raises
    ------
    InputError
        If the jobs cannot be grouped by one of them, or FCFS, whose starts are fair, does not accept the run.
    """
    keys = list(by)
    for each in keys:
        group_of(scenario.tasks, scenario.platform, each)
    if keys:
        check(_under_fcfs(scenario))


def check(scenario: Scenario) -> None:
    """Find what is wrong with a scenario before its run, the scheduler's parameters included.

    Raises
    ------
    InputError
        As `run` would. What only SimGrid knows of (its options, its view of the platform) shows
        in the run.
    """
    prepared = prepare(scenario)
    rng = random_stream(prepared.seed, "scheduler", prepared.replicate)
    system, scheduler = prepared.system, prepared.make_scheduler()
    with policy_at_work():
        check_policy(scheduler, system, prepared.tasks)
        if not comes_from_file(scheduler):  # such a one is let loose in its run's process alone
            scheduler.prepare(system, rng)


#: Routes between hosts by what they are found from; runs on one platform follow each other.
_ROUTES: dict[tuple[bytes, tuple[str, ...], tuple[float, float] | None], Routes] = {}


def _kept_routes(file: Path, names: tuple[str, ...], wattage: tuple[float, float] | None) -> Routes:
    """Return the routes between hosts of a platform file, which are looked for once while it stays the same."""
    key = hashlib.sha256(file.read_bytes()).digest(), names, wattage
    if key not in _ROUTES:
        while len(_ROUTES) > 1:  # those of 500 hosts take 500 MB
            _ROUTES.pop(next(iter(_ROUTES)))
        _ROUTES[key] = routes_between(file, names, wattage)
    return _ROUTES[key]


def with_routes(scenario: LoadedScenario) -> LoadedScenario:
    """Return the scenario with what is to be known of the network between its hosts before the run."""
    has_profiles = scenario.runs_profiles
    shares = scenario.uses_network and scenario.network != "alone" and scenario.between_hosts is None
    names = [host.name for host in scenario.platform.hosts]
    if scenario.sends_data and scenario.between_hosts is None:
        with _platform_file(scenario, has_sets=has_profiles) as file:
            network = network_between(file.resolve(), names, scenario.cfg, has_parallel_tasks=has_profiles)
            scenario = replace(scenario, between_hosts=network)
    if shares and scenario.driver == "reference" and scenario.routes is None:
        others = frozenset().union(*(each.storages for each in scenario.tasks.profiles))
        if scenario.has_messages and scenario.master_name is not None:
            others |= {scenario.master_name}
        names += sorted(others - set(names))
        with _platform_file(scenario, has_sets=has_profiles) as file:
            routes = _kept_routes(file.resolve(), tuple(names), scenario.platform.link_wattage)
            model = None if has_profiles else link_model(file)
            scenario = replace(scenario, routes=routes, link_model=model)
    return scenario


@contextlib.contextmanager
def _platform_file(scenario: LoadedScenario, *, has_sets: bool) -> Iterator[Path]:
    """Give the platform as a SimGrid file; one that is written for the run goes with it."""
    file = scenario.platform_file
    text = None if file is None else _edited(Path(file), scenario, has_sets=has_sets)
    if file is not None and text is None:
        yield Path(file)
        return
    with temporary_folder() as folder:
        path = folder / ("platform.xml" if file is None else Path(file).name)
        if text is None:
            still = replace(scenario.platform, profiles=HostProfiles())
            write_platform(still, path, command="gridsched run")
            text = _edited(path, scenario, has_sets=has_sets)
        if text is not None:
            write_whole(path, text, force=True)
        yield path


def _edited(path: Path, scenario: LoadedScenario, *, has_sets: bool) -> str | bytes | None:
    """Return a platform file as SimGrid is to load it; None where it serves as it is."""
    changed = None
    if scenario.platform.profiles.are_in_files:
        changed = with_speeds_alone(path, scenario.platform)
    changed = current_platform_xml(path, changed) or changed
    if not has_sets:
        return changed
    return parallel_platform_xml(path, None if changed is None else changed.decode())
