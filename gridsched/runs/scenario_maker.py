"""From the description of a run to a `Scenario` that can be run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.errors import InputError, NotTrusted
from gridsched.model.host_times import with_flops
from gridsched.model.maintenance import in_seconds
from gridsched.model.platform import Platform
from gridsched.model.records import changed_fields, keys_of, with_keys
from gridsched.model.rules import Rules
from gridsched.model.task_types import SystemWorkload
from gridsched.platform_io.deployment import read_deployment
from gridsched.platform_io.overrides import PowerOverride, one_pstate, pstates_of, with_power
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import NetworkLinks, write_platform
from gridsched.policy.policy_files import load_policies
from gridsched.runs.run_spec import (
    MEASURE_SETTINGS,
    FileReference,
    GeneratedSection,
    NoPlatform,
    PlatformFile,
    PlatformTable,
    RunSpec,
    Section,
    Settings,
    WorkloadFile,
    file_keys,
    path_of_file,
)
from gridsched.runs.study_inputs import checked_file, file_digest
from gridsched.scenario import LoadedScenario, Scenario, refuse_beside
from gridsched.workloads.events_csv import read_events
from gridsched.workloads.generator_keys import GeneratorKeys
from gridsched.workloads.generators import GENERATORS, brings_machines, generator_of
from gridsched.workloads.load import check_kind, input_files, read_system_workload, read_workload
from gridsched.workloads.signal_csv import with_carbon_read, with_prices_read
from gridsched.workloads.traces.formats import is_trace
from gridsched.workloads.traces.job_table import Dropped
from gridsched.workloads.traces.trace_options import TraceOptions

if TYPE_CHECKING:
    from gridsched.optimize.typed_bag import TypedBag
    from gridsched.platform_io.tables import MachineTable
    from gridsched.runs.optimization import Optimization

_LINKS = tuple(field.name for field in fields(NetworkLinks))
_TABLE_KEYS = ("generator", "table", "join", "year", "trust", "seed")


@dataclass(frozen=True, eq=False)
class _Shared:
    """What the runs of a replicate share: machines and tasks, SimGrid's file of them, and what of a log is left out."""

    whole: SystemWorkload
    platform_file: Path | None = None
    trace: TraceOptions = field(default_factory=TraceOptions)
    left_out: tuple[Dropped, ...] = ()
    remarks: tuple[str, ...] = ()


class ScenarioMaker:
    """Makes scenarios; all runs of a replicate share its platform and its tasks.

    The only Python that it imports is what `load_policies` names: a description that names
    another policy is refused.

    Parameters
    ----------
    inputs : mapping
        SHA-256 of a file -> its path.
    folder : Path
        For the SimGrid files of generated platforms; the caller removes it.
    """

    def __init__(self, inputs: Mapping[str, Path], folder: Path) -> None:
        self._inputs = inputs
        self._folder = folder
        # what was made last is kept: runs that follow each other share it
        self._shared = lru_cache(2)(self._make_shared)
        self._platform_of_file = lru_cache(4)(self._read_platform)
        self._generated_platform = lru_cache(4)(self._draw_platform)
        self._table = lru_cache(4)(self._read_table)
        self._tasks_of_file = lru_cache(4)(read_workload)
        self._generated = lru_cache(4)(_draw)
        self._system_file = lru_cache(4)(lambda keys: self._written_platform(self._generated(keys).platform))
        self._listed_bag = lru_cache(2)(self._make_bag)
        self._imported: set[str] = set()
        self._written = 0

    def load_policies(self, digests: Iterable[str]) -> None:
        """Import files of a study's policies, given by SHA-256, for runs that need them.

        Raises
        ------
        InputError
            If one is missing, damaged, or cannot be imported.
        """
        for digest in digests:
            if digest in self._imported:
                continue
            if digest not in self._inputs:
                raise InputError(f"The policies of SHA-256 {digest[:16]}... are not in the store.")
            load_policies([checked_file(self._inputs[digest], digest)])
            self._imported.add(digest)

    def make(self, spec: RunSpec, *, format_key: Callable[[str], str] = str) -> LoadedScenario:
        """Return the scenario of a described run, with its files read.

        Parameters
        ----------
        spec : RunSpec
        format_key : callable
            Returns how a key is written where the description comes from, for messages.

        Raises
        ------
        NotTrusted
            If it has a policy that `load_policies` does not name.
        InputError
            If an input file is missing or contradicts the parameters.
        """
        self._check_policy(spec)
        is_named = isinstance(spec.platform, Section) and isinstance(spec.workload, Section)
        make = self._shared if is_named else self._make_shared  # objects are not keys of a cache
        shared = make(_origin(spec), spec.settings.driver == "simgrid")
        rules = vars(shared.whole.rules)
        return LoadedScenario.of_system(
            shared.whole,
            **changed_fields(LoadedScenario, self._settings(spec), rules, format_key),
            platform_file=shared.platform_file,
            trace=shared.trace,
            left_out=shared.left_out,
            remarks=shared.remarks,
            scheduler=spec.scheduler.id,
            parameters=spec.scheduler.parameters,
            seed=spec.seed,
            replicate=spec.replicate,
            timeout_s=spec.timeout_s,
            log=spec.log,
            inputs=_digests(spec, shared.whole.platform),
        )

    def optimization(self, spec: RunSpec) -> Optimization:
        """Return what is to be planned in a described run that executes nothing.

        Parameters
        ----------
        spec : RunSpec
            Its driver is ``optimize``.

        Raises
        ------
        NotTrusted
            If it has a policy that `load_policies` does not name.
        InputError
            If an input file is missing, or the run has no bag by types.
        """
        from gridsched.runs.optimization import Optimization  # scipy's solver is slow to load

        self._check_policy(spec)
        values = self._settings(spec)
        del values["driver"]
        return Optimization(
            self._bag(spec), spec.scheduler.id, spec.scheduler.parameters, with_keys(Scenario(None, ""), values).tariff
        )

    def _check_policy(self, spec: RunSpec) -> None:
        """Refuse a run whose policy is not imported."""
        policy = spec.scheduler.policy
        if policy is not None and policy.sha256 not in self._imported:
            raise NotTrusted(
                f"Scheduler {spec.scheduler.id!r} is of the policy {policy.name!r} (SHA-256 "
                f"{policy.sha256[:16]}...), which is not run unasked; --trust runs the policies of "
                "the studies that a store keeps."
            )

    def _path(self, file: str | FileReference) -> str:
        return path_of_file(file, self._inputs)

    def _values(self, section: Section) -> dict[str, Any]:
        """Return the keys of a section that are set, with the paths of its files."""
        values = {name: getattr(section, name) for name in section.model_fields_set}
        return values | {name: self._path(values[name]) for name in file_keys(section)}

    def _settings(self, spec: RunSpec) -> dict[str, Any]:
        """Return the settings that are set, but for those of what is measured."""
        values = self._values(spec.settings)
        return {name: values[name] for name in sorted(values) if name not in MEASURE_SETTINGS}

    def _keys(self, section: GeneratedSection, spec: RunSpec, without: Collection[str] = ()) -> Any:
        """Return the keys of a generator, checked."""
        others = ("generator", "seed", *without)
        values = {key: each for key, each in self._values(section).items() if key not in others}
        return GENERATORS[section.generator].model(**(values | _seeds(section, spec)))

    def _bag(self, spec: RunSpec) -> TypedBag:
        """Return the bag of a run by types; one of a generator of systems need not be listed."""
        from gridsched.optimize import named_bag

        workload, pstate = spec.workload, self._settings(spec).get("pstate")
        if isinstance(workload, GeneratedSection) and brings_machines(workload.generator):
            return self._listed_bag(
                self._keys(workload, spec), f"bag of replicate {spec.replicate}", one_pstate(pstate)
            )
        shared = self._shared(_origin(spec), False).whole
        if shared.types is not None:
            return named_bag.bag_of_types(shared.tasks.name, shared.tasks, shared.types, one_pstate(pstate))
        pstates = pstates_of(shared.platform, pstate)
        return named_bag.bag_of_platform(shared.platform, shared.tasks, pstates)

    def _make_bag(self, keys: GeneratorKeys, name: str, pstate: int) -> TypedBag:
        from gridsched.optimize import named_bag

        return named_bag.bag_of_parameters(keys, name, pstate)

    def _make_shared(self, spec: RunSpec, needs_file: bool) -> _Shared:
        """Return what the schedulers of a replicate share."""
        workload = spec.workload
        if isinstance(workload, WorkloadFile):
            return self._of_file(spec, workload, needs_file)
        if isinstance(workload, GeneratedSection) and brings_machines(workload.generator):
            return self._system(spec, workload, needs_file)
        platform, file = self._platform(spec, needs_file)
        tasks = self._generated(self._keys(workload, spec)) if isinstance(workload, GeneratedSection) else workload
        return _Shared(SystemWorkload(platform, with_flops(platform, tasks), None), file)

    def _of_file(self, spec: RunSpec, workload: WorkloadFile, needs_file: bool) -> _Shared:
        """Return what a workload file holds, on the run's platform or on its own."""
        values = self._values(workload)
        file, files = values.pop("file"), values.pop("files", None)
        options = TraceOptions(**values)
        own = None if isinstance(spec.platform, NoPlatform) else spec.platform
        if is_trace(file):
            from gridsched.workloads.traces.trace_system import trace_system  # bags need none of it

            if files is not None:
                raise InputError(f"{file}: jobs of a trace have no input files; leave out --files {files}.")
            platform, platform_file = (None, None) if own is None else self._platform(spec, needs_file)
            self._refuse_includes(options, dict(workload)["slurm_conf"])
            given = self._settings(spec)
            rules = {name: given.get(name, getattr(Rules, name)) for name in ("placement", "walltime")}
            roles = partial(with_roles, master=given.get("master"), deployment=given.get("deployment"))
            log = trace_system(file, options, platform, network=given.get("network"), roles=roles, **rules)
            return _Shared(log.system, platform_file, options, log.jobs.dropped, log.jobs.notes)
        check_kind(file)
        options.refuse(set(options.given), file, "this workload is not a trace")
        whole = read_system_workload(file)
        if whole is not None:
            named: Any = _name_of(own.file) if isinstance(own, PlatformFile) else own
            refuse_beside(whole, platform=named, files=files, deployment=self._settings(spec).get("deployment"))
            return _Shared(whole, whole.platform_file, options)
        platform, platform_file = self._platform(spec, needs_file)
        tasks = with_flops(platform, self._tasks_of_file(file, files=files))
        return _Shared(SystemWorkload(platform, tasks, None), platform_file, options)

    def _refuse_includes(self, options: TraceOptions, file: str | FileReference | None) -> None:
        """Refuse a ``slurm.conf`` of a study that includes files: a store would not hold them."""
        if not self._inputs or file is None or options.slurm_conf is None:
            return
        from gridsched.platform_io.slurm_lines import include_lines  # of few studies

        if names := include_lines(options.slurm_conf):
            raise InputError(
                f"{_name_of(file)}: it includes files such as {names[0][:100]!r}; in studies the file must contain "
                "what they have."
            )

    def _platform(self, spec: RunSpec, needs_file: bool) -> tuple[Platform, Path | None]:
        """Return the platform on which only the hosts compute that the run lets compute, and its file.

        It holds before anything is read that numbers hosts: partitions, and times by host.
        """
        platform, file = self._whole_platform(spec, needs_file)
        settings = self._settings(spec)
        return with_roles(platform, settings.get("master"), settings.get("deployment")), file

    def _whole_platform(self, spec: RunSpec, needs_file: bool) -> tuple[Platform, Path | None]:
        section = spec.platform
        if isinstance(section, Platform):
            return section, None
        if isinstance(section, NoPlatform):
            raise InputError("Missing option '--platform FILE': the workload makes no platform of its own.")
        if isinstance(section, PlatformFile):
            return self._platform_of_file(section.file, PowerOverride.read(self._settings(spec).get("power", ())))
        return self._generated_platform(section, **_seeds(section, spec), needs_file=needs_file)

    def _read_platform(self, file: str | FileReference, power: PowerOverride) -> tuple[Platform, Path]:
        path = Path(self._path(file))
        platform = read_platform(path, power)
        if self._inputs and platform.profiles.files:  # a store would not hold them
            raise InputError(
                f"{_name_of(file)}: its profiles are in files such as "
                f"{platform.profiles.files[0]}; in studies the platform file must contain them (<trace>)."
            )
        return platform, path

    def _draw_platform(
        self, section: PlatformTable, *, seed: int, replicate: int, needs_file: bool
    ) -> tuple[Platform, Path | None]:
        from gridsched.platform_io.from_table import platform_from_table  # slow to load, and seldom needed

        table = self._table(section.table, section.join, section.year, section.trust)
        values = self._values(section)
        links = NetworkLinks(**{key: values[key] for key in _LINKS if key in values})
        recipe = {key: each for key, each in values.items() if key not in (*_LINKS, *_TABLE_KEYS)}
        platform = platform_from_table(table, PlatformRecipe(**recipe, seed=seed, replicate=replicate))
        return platform, self._written_platform(platform, links) if needs_file else None

    def _written_platform(self, platform: Platform, links: NetworkLinks | None = None) -> Path:
        self._written += 1
        path = self._folder / f"platform{self._written % 16}.xml"
        write_platform(platform, path, command="gridsched study run", network=links, force=True)
        return path

    def _read_table(
        self, file: str | FileReference, join: str | FileReference | None, year: int | None, trust: str | None
    ) -> MachineTable:
        from gridsched.platform_io.tables import read_machine_table

        joined = None if join is None else self._path(join)
        return replace(read_machine_table(self._path(file), join=joined, year=year, trust=trust), path=_name_of(file))

    def _system(self, spec: RunSpec, workload: GeneratedSection, needs_file: bool) -> _Shared:
        """Return a workload that comes with its platform.

        Runs that differ in rules alone share what is drawn.
        """
        rules = self._keys(workload, spec).rules
        keys = self._keys(workload, spec, without=keys_of(Rules))
        whole = replace(self._generated(keys), rules=rules)
        if whole.platform_file is not None:
            return _Shared(whole, whole.platform_file)
        return _Shared(whole, self._system_file(keys) if needs_file else None)


def load(scenario: Scenario) -> LoadedScenario:
    """Return a scenario with its files read; it can be run as often as needed.

    Raises
    ------
    InputError
        If a file cannot be read, or the scenario has no platform or two of them.
    """
    if isinstance(scenario, LoadedScenario):
        shared = scenario
    else:
        shared = scenario.on(ScenarioMaker({}, Path()).make(RunSpec.of(scenario)))
    platform = with_roles(with_power(shared.platform, shared.power_override), shared.master, shared.deployment)
    _check_times(scenario, platform)
    _check_times(shared, platform, but=scenario)
    return shared.changed(
        platform=platform,
        maintenance=in_seconds(shared.maintenance, shared.calendar),
        tariff=with_prices_read(shared.tariff, shared.calendar),
        budget=with_prices_read(shared.budget, shared.calendar),
        carbon=with_carbon_read(shared.carbon, shared.calendar),
        stimuli=shared.stimuli
        if shared.events is None
        else read_events(shared.events, shared.tasks, platform, shared.calendar),
    )


def with_roles(platform: Platform, master: str | None, deployment: str | Path | None) -> Platform:
    """Return the platform with the master that is named, and only those hosts computing that a deployment gives work.

    Raises
    ------
    InputError
        If there is no such host, or the deployment file cannot be read or does not fit the platform.
    """
    if master is not None:
        platform = platform.with_master(master)
    if deployment is not None:
        platform = platform.restricted_to(read_deployment(deployment, platform).workers)
    return platform


def _check_times(scenario: Scenario, platform: Platform, but: Scenario | None = None) -> None:
    """Refuse what is known of a scenario's tasks by the numbers of its hosts if other hosts compute on `platform`.

    Values that `but` has, too, are of its own platform.
    """
    hosts = scenario.platform.hosts if isinstance(scenario.platform, Platform) else platform.hosts
    if [host.name for host in hosts] == [host.name for host in platform.hosts]:
        return
    for name in ("types", "run_times", "estimates"):
        given = getattr(scenario, name)
        if given is not None and (but is None or given is not getattr(but, name)):
            option = "--deployment" if scenario.master is None else f"--master {scenario.master}"
            raise InputError(
                f"{option}: other hosts compute then, and the {name} of these tasks are by the hosts as they were. "
                "Leave it out, or make them for a platform on which the same hosts compute (Platform.with_master, "
                "Platform.restricted_to)."
            )


def _origin(spec: RunSpec) -> RunSpec:
    """Return what of a description decides its platform and tasks; it can be hashed."""
    names = ("power", "master", "deployment", "placement", "walltime", "network")
    values = {name: getattr(spec.settings, name) for name in names}
    settings = {name: each for name, each in values.items() if name in spec.settings.model_fields_set}
    others = {"scheduler": None, "timeout_s": None, "log": ()}
    return spec.model_copy(update={**others, "settings": Settings.model_construct(**settings)})


def _draw(keys: GeneratorKeys) -> Any:
    return generator_of(keys).generate(keys)


def _name_of(file: str | FileReference) -> str:
    return file if isinstance(file, str) else file.name


def _digests(spec: RunSpec, platform: Platform) -> dict[str, str]:
    """Return the SHA-256 of each file by its name: files that were read, and so are of an allowed size."""
    files, paths = [file for _, file in spec.files()], list(platform.profiles.files)
    paths += [file for file in files if isinstance(file, str)]
    if isinstance(spec.workload, WorkloadFile) and isinstance(spec.workload.file, str):
        paths += map(str, input_files(spec.workload.file))
    conf = dict(spec.workload)["slurm_conf"] if isinstance(spec.workload, WorkloadFile) else None
    if isinstance(conf, str):
        from gridsched.platform_io.slurm_lines import included_files

        paths += included_files(conf)
    digests = {file.name: file.sha256 for file in files if isinstance(file, FileReference)}
    return digests | {path: file_digest(Path(path)) for path in paths}


def _seeds(section: GeneratedSection, spec: RunSpec) -> dict[str, int]:
    """Return what decides the random streams: a section's own seed, or the run's."""
    if section.seed is not None:
        return {"seed": section.seed, "replicate": 0}
    return {"seed": spec.seed, "replicate": spec.replicate}
