"""One run, declared, and the same with its files read: what either driver runs.

The simulating process imports this, so it knows nothing of how runs are described and stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, Self

from gridsched.drivers.link_shares import LinkModel
from gridsched.errors import InputError
from gridsched.model.calendar import Calendar
from gridsched.model.carbon import Carbon, carbon_signal, forecast_signal, with_signal
from gridsched.model.estimates import Estimates, FlopsEstimates, RequestedTimes
from gridsched.model.host_times import HostTimesEstimates
from gridsched.model.limits import LARGEST
from gridsched.model.network import Network
from gridsched.model.platform import Platform
from gridsched.model.records import as_record, check_record, key_info
from gridsched.model.routes import Routes
from gridsched.model.rules import OF_HOSTS, OF_SHARED_NODES, SCHEDULING, Rules
from gridsched.model.run_times import KilledAtEstimate, RunTimes
from gridsched.model.stimuli import CancelTask, SetPowerCap, TimedStimulus
from gridsched.model.stochastic import StochasticTypes
from gridsched.model.system import System
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import SystemWorkload, TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.platform_io.deployment import read_deployment
from gridsched.platform_io.overrides import PowerOverride, pstates_of, read_pstates, wattage_text
from gridsched.policy.base import Scheduler
from gridsched.policy.registry import make_scheduler
from gridsched.workloads.traces.job_table import Dropped
from gridsched.workloads.traces.trace_options import TraceOptions

#: Longest wall time of a run that can be asked for [s]: three years.
MAX_TIMEOUT_S = 1e8
#: Heading of the options that only SimGrid's driver knows.
_SIMGRID = {"group": "SimGrid"}
#: Fields that no option, key or stored run sets as they are: what they may hold, and that in words.
_PLAIN_FIELDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "platform": ((Platform, str, Path, NoneType), "a Platform or the path of a file"),
    "tasks": ((Tasks, str, Path), "Tasks or the path of a file"),
    "scheduler": ((str, Scheduler), "the id of a scheduler, or a Scheduler"),
    "parameters": ((Mapping,), "a dictionary"),
    "seed": ((Integral,), "a whole number"),
    "replicate": ((Integral,), "a whole number"),
    "files": ((str, Path, NoneType), "the path of a file"),
    "window_s": ((tuple, list, NoneType), "a begin and an end [s]"),
    "inputs": ((Mapping,), "a dictionary"),
    "types": ((TaskTypes, NoneType), "TaskTypes"),
    "run_times": ((RunTimes, NoneType), "RunTimes"),
    "estimates": ((Estimates, NoneType), "Estimates"),
}
#: A log that needs no options.
_DEFAULTS = TraceOptions()


@dataclass(frozen=True)
class Scenario(Rules):
    """Everything that determines a run: what runs where, and how.

    Options of the command line, study keys and provenance follow from the fields that are described.

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
        Known times and powers, if neither types nor flops give them.
    inputs : mapping
        File that was read -> SHA-256 of its content.
    trace : TraceOptions
        How a log is read where `tasks` names one.
    left_out : tuple of Dropped
        Jobs of the log that are not run, and why.
    remarks : tuple of str
        What else of the log is not simulated, in words.
    meters_carbon : bool
        Whether SimGrid's joules are read at every change of the carbon intensity (`carbon_check`).
    driver : {"simgrid", "reference"}
    network : {"platform", "alone", "none"} or None
        Whether inputs and results, data that tasks make for others, and what parts of tasks send cross the platform's
        network; None: if there are any. ``"alone"``: data between tasks take what they would take without others
        (reference driver).
    traffic_step_s : float, optional
        Length of the steps in which bytes over each link are recorded where jobs have profiles [s]; None: they are
        not. Steps of long runs become longer (`Trace.traffic_step_s`).
    deployment : path, optional
        SimGrid deployment file: which actor runs on which host (SimGrid driver).
    pstate : int or str, optional
        P-state of all hosts, or of some by their names (``"old-*=1,new-*=0"``), in the place of
        the platform file's; see `gridsched.platform_io.overrides`.
    hosts_off : tuple of str
        Hosts switched off at the start.
    power : tuple of str
        Power of hosts instead of the platform file's; see
        `gridsched.platform_io.overrides`.
    master : str, optional
        Host that computes nothing, in the place of the one with the property ``role=master``.
    failures : str, optional
        Failures of hosts that are drawn; see `gridsched.model.failures`.
    events : path, optional
        What happens to the run from outside, by time: jobs are cancelled, hosts drained and resumed, the power is
        capped (``time_s,event,what``); see `gridsched.workloads.events_csv`.
    execution_mode : {"auto", "maestro", "actors"}
        How the SimGrid driver runs a scenario without network (see docs, "which mode runs when").
    cfg, log : tuple of str
        SimGrid's ``--cfg`` and ``--log`` items.
    idle_attribution : {"cores", "node"}
        Where several executions run on a host: whether its idle power is charged to them, by the
        cores that they have, or left to the host.
    tariff : Tariff, optional
        What the bag pays and what operating the hosts costs; with it a run has a profit.
    carbon : Carbon, optional
        Carbon intensity of power by time and site; with it a run counts its grams of CO2.
    timeout_s : float, optional
        Wall time after which a run is ended with an error [s].

    Raises
    ------
    InputError
        Where a value is out of range.
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
    trace: TraceOptions = _DEFAULTS
    left_out: tuple[Dropped, ...] = ()
    remarks: tuple[str, ...] = ()
    meters_carbon: bool = False
    _: KW_ONLY
    driver: Annotated[Literal["simgrid", "reference"], key_info("simgrid, or reference: no SimGrid, no network.")] = (
        "simgrid"
    )
    network: Annotated[
        Literal["platform", "alone", "none"] | None,
        key_info(
            "platform: bytes cross its links; alone: data of tasks do not share them; none. Default: platform if "
            "there are bytes.",
            of={"group": "Network"},
        ),
    ] = None
    traffic_step_s: Annotated[
        float | None,
        key_info(
            "Record what jobs with profiles send over each link in steps of this length: 'gridsched plot traffic'.",
            of={"group": SCHEDULING},
            gt=0,
            le=LARGEST,
        ),
    ] = None
    deployment: Annotated[
        str | Path | None, key_info("SimGrid deployment (.xml): assigns actors to hosts.", "FILE", of=OF_HOSTS)
    ] = None
    pstate: Annotated[
        int | str | None,
        key_info(
            "P-state of hosts, instead of the platform file's (0 if it has none): K, or NAME_PATTERN=K; repeatable.",
            "[PATTERN=]K",
            of={"repeatable": True, **OF_HOSTS},
        ),
    ] = None
    hosts_off: Annotated[
        tuple[str, ...], key_info("Host that is switched off at the start; repeatable.", "HOST", of=OF_HOSTS)
    ] = ()
    power: Annotated[
        tuple[str, ...],
        key_info(
            "Power of hosts in W, beside or instead of the platform's: IDLE:EPSILON:BUSY, "
            "NAME_PATTERN=IDLE:EPSILON:BUSY, or none: no energy; measured: jobs of a log use the measured power "
            "(measured:clamped: within the range of a node); repeatable.",
            "[PATTERN=]W:W:W",
        ),
    ] = ()
    master: Annotated[
        str | None,
        key_info(
            "Host that hands out tasks and computes nothing; default the one with the property role=master.",
            "HOST",
            of=OF_HOSTS,
        ),
    ] = None
    failures: Annotated[
        str | None,
        key_info(
            "Hosts fail and are repaired, with these means in seconds: mtbf=S,mttr=S[,distribution=weibull,shape=X].",
            "mtbf=S,mttr=S",
            of=OF_HOSTS,
        ),
    ] = None
    events: Annotated[
        str | Path | None,
        key_info(
            "What happens to the run from outside (.csv: time_s,event,what): cancel a job, drain or resume hosts, "
            "power_cap.",
            "FILE",
            of={"group": SCHEDULING},
        ),
    ] = None
    execution_mode: Annotated[
        Literal["auto", "maestro", "actors"], key_info("maestro (fast, no messages), actors, or auto.", of=_SIMGRID)
    ] = "auto"
    cfg: Annotated[tuple[str, ...], key_info("SimGrid's --cfg; repeatable.", "KEY:VALUE", of=_SIMGRID)] = ()
    log: Annotated[
        tuple[str, ...],
        key_info("SimGrid's --log; repeatable. Its output goes to stderr.", "CATEGORY.KEY:VALUE", of=_SIMGRID),
    ] = ()
    idle_attribution: Annotated[
        Literal["cores", "node"],
        key_info(
            "Idle power of a busy host: charged to its jobs by cores, or left to the node (the energy of tasks).",
            of=OF_SHARED_NODES,
        ),
    ] = "cores"
    tariff: Annotated[
        Tariff | None,
        key_info(
            "What the bag pays, and what operating the hosts costs.",
            of={"group": "Money (with --price a run has a profit)"},
        ),
    ] = None
    carbon: Annotated[
        Carbon | None,
        key_info(
            "Carbon intensity of power by time and site.",
            of={"group": "Carbon (--carbon makes a run count grams of CO2)"},
        ),
    ] = None
    timeout_s: Annotated[
        float | None, key_info("End a run, or the reading before it, after this wall time.", gt=0, le=MAX_TIMEOUT_S)
    ] = None

    def __post_init__(self) -> None:
        check_record(self, Scenario)
        object.__setattr__(self, "trace", as_record(TraceOptions, self.trace, "trace"))
        for name, (kinds, what) in _PLAIN_FIELDS.items():
            if not isinstance(value := getattr(self, name), kinds):
                raise InputError(f"{name} is {value!r}; it must be {what}.")
        if self.window_s is not None and (
            len(self.window_s) != 2 or not all(isinstance(each, Real) for each in self.window_s)
        ):
            raise InputError(f"window_s is {self.window_s!r}; it must be a begin and an end [s].")
        read_pstates(self.pstate)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was found odd while reading platform and workload; it must be loaded."""
        of_platform = self.platform.warnings if isinstance(self.platform, Platform) else ()
        return (*of_platform, *self.remarks, *map(str, self.left_out))

    def with_system(self, whole: SystemWorkload) -> LoadedScenario:
        """Return the scenario on a generated system; what is set here takes precedence.

        Raises
        ------
        InputError
            If the scenario has a platform or input files of its own.
        """
        refuse_beside(whole, platform=self.platform, files=self.files, deployment=self.deployment)
        return self.on(LoadedScenario.of_system(whole))

    def on(self, loaded: LoadedScenario) -> LoadedScenario:
        """Return what was read, with what is set here and takes precedence."""
        default = vars(Scenario(None, ""))
        names = [each.name for each in fields(Scenario) if each.name not in ("platform", "tasks", "inputs")]
        own = {
            name: each for name in names if (each := getattr(self, name)) is not default[name] and each != default[name]
        }
        inputs = {**self.inputs, **loaded.inputs} if self.inputs else loaded.inputs
        return loaded.changed(**own, inputs=inputs)

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
    """A scenario whose files are read, which a driver runs; `gridsched.runs.scenario_maker.load` gives it.

    Attributes
    ----------
    platform : Platform
    tasks : Tasks
    between_hosts : Network or None
        How long data that tasks make for each other take between hosts; None: as SimGrid finds the routes on the
        platform (`gridsched.sim.lone_transfers`).
    calendar : Calendar or None
        Which date second 0 is, where the workload has dates.
    stimuli : tuple of TimedStimulus
        What `events` holds; without such a file, what a program did to the run (`gridsched.Simulation`).
    routes : Routes or None
        The routes between hosts, for what shares links on the reference driver; None: those that SimGrid finds.
    link_model : LinkModel or None
        How transfers share links on the reference driver, where tasks have no profiles.
    """

    platform: Platform
    tasks: Tasks
    between_hosts: Network | None = None
    routes: Routes | None = None
    link_model: LinkModel | None = None
    calendar: Calendar | None = None
    stimuli: tuple[TimedStimulus, ...] = ()

    @property
    def limits_power(self) -> bool:
        """Whether the power of all hosts together is limited from the start, or at some time."""
        return self.power_cap_w is not None or any(isinstance(each.stimulus, SetPowerCap) for each in self.stimuli)

    @property
    def cancels_tasks(self) -> bool:
        """Whether tasks are cancelled from outside."""
        return any(isinstance(each.stimulus, CancelTask) for each in self.stimuli)

    @classmethod
    def of_system(cls, whole: SystemWorkload, **others: Any) -> LoadedScenario:
        """Return the scenario of a workload that comes with its machines; `others` are further fields."""
        rules = {rule.name: getattr(whole.rules, rule.name) for rule in fields(Rules)}
        return cls(
            whole.platform,
            whole.tasks,
            types=whole.types,
            window_s=whole.window_s,
            run_times=whole.run_times,
            estimates=whole.estimates,
            calendar=whole.calendar,
            **{**rules, "platform_file": whole.platform_file, **others},
        )

    def changed(self, **values: Any) -> Self:
        """Return the scenario with other values of some fields; itself where it has them."""
        others = {name: value for name, value in values.items() if value is not getattr(self, name)}
        return replace(self, **others) if others else self

    @cached_property
    def power_override(self) -> PowerOverride:
        """The meaning of `power`."""
        return PowerOverride.read(self.power)

    @property
    def uses_network(self) -> bool:
        """Whether anything crosses the platform's network: inputs and results, data between tasks, or within them."""
        tasks = self.tasks
        if self.network is not None:
            return self.network != "none"
        return tasks.has_bytes or tasks.send_data or tasks.have_profiles

    @property
    def runs_profiles(self) -> bool:
        """Whether parts of tasks compute and send as their profiles have it, as SimGrid's parallel tasks."""
        return self.uses_network and self.tasks.have_profiles

    def uses_parallel_tasks(self, *, has_sets: bool) -> bool:
        """Whether SimGrid models the run's tasks as parallel tasks.

        Those with profiles are, and those on sets of hosts, unless they send data, whose links that model treats
        otherwise, or draw what was measured, of which it knows no bound.
        """
        return (has_sets and not self.sends_data and not self.is_metered) or self.runs_profiles

    @property
    def has_messages(self) -> bool:
        """Whether inputs and results cross the platform's network, from the master and to it."""
        tasks = self.tasks
        return self.uses_network and (tasks.has_bytes or not (tasks.send_data or tasks.have_profiles))

    @property
    def master_name(self) -> str | None:
        """The host from which inputs leave, and to which results go."""
        if self.deployment is not None:
            return read_deployment(self.deployment, self.platform).master
        return None if self.platform.master is None else self.platform.master.name

    @property
    def sends_data(self) -> bool:
        """Whether tasks send what they make to others over the network."""
        return self.uses_network and self.tasks.send_data

    @cached_property
    def durations(self) -> RunTimes | None:
        """How long tasks run, where that is not what is estimated: `run_times`, cut where jobs are killed."""
        if self.walltime == "kill" and self.run_times is not None:
            return KilledAtEstimate(self.run_times, self.system.estimates)
        return self.run_times

    @property
    def is_metered(self) -> bool:
        """Whether tasks draw a share of their hosts' range of power."""
        return self.run_times is not None and len(self.run_times.load) > 0

    @cached_property
    def system(self) -> System:
        """What schedulers are prepared for; see `make_system`."""
        return make_system(self)

    @cached_property
    def ids_off(self) -> tuple[int, ...]:
        """The computing hosts that `hosts_off` names."""
        ids = {host.name: h for h, host in enumerate(self.platform.hosts)}
        return tuple(ids[name] for name in self.hosts_off)

    @property
    def wattages(self) -> dict[str, str]:
        """SimGrid's ``wattage_per_state`` of each host, if `power` gives it."""
        return {host.name: wattage_text(host) for host in self.platform.everyone} if self.power_override.items else {}


def refuse_beside(whole: SystemWorkload, **named: object) -> None:
    """Raise `InputError` where an option names what a workload with its own system brings."""
    for name, value in named.items():
        if value is not None:
            raise InputError(f"{whole.tasks.name}: this workload makes its own system; leave out --{name} {value}.")


def workload_kinds(scenario: LoadedScenario) -> set[str]:
    """Return the kinds of workload that a scenario has; see `registry.Entry.accepts`."""
    tasks = scenario.tasks
    if not tasks.are_serial and not (tasks.send_data and tasks.lie_on_one_host):
        return {"parallel"} if tasks.utility is None else {"parallel", "parallel_utility"}
    is_bag = not len(tasks) or tasks.submit_time_s[0] == tasks.submit_time_s[-1]
    kinds = {"bag", "arrivals"} if is_bag else {"arrivals"}
    if tasks.utility is not None:
        return {*kinds, "utility"}
    if tasks.send_data:
        kinds.add("workflow")
    if scenario.types is None:
        return kinds
    return {*kinds, "typed", *(["stochastic"] if isinstance(scenario.types, StochasticTypes) else [])}


def make_system(scenario: LoadedScenario) -> System:
    """Return what the scheduler is prepared for.

    Raises
    ------
    InputError
        If a host lacks the P-state that it is to start in, or a price.
    """
    tasks = scenario.tasks
    estimates: Estimates
    if scenario.estimates is not None:
        estimates = scenario.estimates
    elif scenario.types is not None:
        estimates = scenario.types.estimates(tasks)
    elif tasks.host_times is not None:
        estimates = HostTimesEstimates(scenario.platform, tasks)
    elif tasks.requested_time_s is not None:
        estimates = RequestedTimes(scenario.platform, tasks, scenario.placement)
    else:
        estimates = FlopsEstimates(scenario.platform, tasks, scenario.placement)
    if scenario.tariff is not None:
        scenario.tariff.energy_price(scenario.platform)  # refuses hosts without a price
    carbon = carbon_signal(scenario.carbon, scenario.platform)
    budget = with_signal(scenario.budget, carbon, scenario.platform, is_parallel=not tasks.are_serial)
    rules = Rules(**{**{each.name: getattr(scenario, each.name) for each in fields(Rules)}, "budget": budget})
    return System(
        platform=scenario.platform,
        estimates=estimates,
        pstates=pstates_of(scenario.platform, scenario.pstate),
        files=tasks.files,
        rules=rules,
        tariff=scenario.tariff,
        carbon=carbon,
        carbon_forecast=forecast_signal(scenario.carbon, scenario.platform),
        network=scenario.between_hosts if scenario.sends_data else None,
    )
