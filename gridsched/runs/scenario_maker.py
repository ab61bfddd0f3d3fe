"""From the description of a run to a `Scenario` that can be run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gridsched.errors import InputError, NotTrusted
from gridsched.files.json_files import canonical_text
from gridsched.model.platform import Platform
from gridsched.model.records import keys_of, with_keys
from gridsched.model.rules import Rules
from gridsched.model.task_types import SystemWorkload
from gridsched.model.tasks import Tasks
from gridsched.platform_io.from_table import platform_from_table
from gridsched.platform_io.overrides import GivenPower, one_pstate, pstates_of
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.tables import MachineTable, read_machine_table
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import NetworkLinks, write_platform
from gridsched.policy.policy_files import load_policies
from gridsched.runs.canonical import checked_file, file_digest
from gridsched.runs.run_spec import (
    MEASURE_SETTINGS,
    DrawnSection,
    FileReference,
    NoPlatform,
    PlatformFile,
    PlatformTable,
    RunSpec,
    Section,
    WorkloadFile,
    canonical_section,
    file_keys,
    path_of_file,
)
from gridsched.runs.scenario import LoadedScenario, Scenario
from gridsched.runs.settings import RunSettings
from gridsched.workloads.generators import GENERATORS, Generator, SystemGenerator
from gridsched.workloads.load import input_files, read_system_workload, read_workload
from gridsched.workloads.traces.formats import TraceOptions, is_trace
from gridsched.workloads.traces.trace_system import TraceSystem, trace_system

if TYPE_CHECKING:
    from gridsched.optimize.named_bag import NamedBag
    from gridsched.runs.optimization import Optimization

T = TypeVar("T")
_LINKS = tuple(field.name for field in fields(NetworkLinks))
_TABLE_KEYS = ("generator", "table", "join", "year", "trust", "seed")


class ScenarioMaker:
    """Makes scenarios; all runs of a replicate share its platform and its tasks.

    The only Python that it imports is what `load_policies` is told: a description that names
    another policy is refused.

    Parameters
    ----------
    inputs : mapping
        SHA-256 of a file -> where it lies.
    folder : Path
        For the SimGrid files of generated platforms; the caller removes it.
    """

    def __init__(self, inputs: Mapping[str, Path], folder: Path) -> None:
        self._inputs = inputs
        self._folder = folder
        self._platforms: _Recent[tuple[Platform, Path | None]] = _Recent(4)
        self._tables: _Recent[MachineTable] = _Recent(4)
        self._tasks: _Recent[Tasks] = _Recent(4)
        self._traces: _Recent[TraceSystem] = _Recent(2)
        self._systems: _Recent[SystemWorkload | None] = _Recent(2)
        self._drawn_systems: _Recent[SystemWorkload] = _Recent(2)
        self._system_files: _Recent[Path] = _Recent(4)
        self._bags: _Recent[NamedBag] = _Recent(2)
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

    def make(
        self,
        described: RunSpec | Mapping[str, Any],
        timeout_s: float | None = None,
        *,
        spelled: Callable[[str], str] = str,
    ) -> LoadedScenario:
        """Return the scenario of a described run, with its files read.

        Parameters
        ----------
        described : RunSpec or mapping
            A mapping is what `RunSpec.canonical` or `StudyRun.scenario` gives.
        timeout_s : float, optional
            Wall time after which a run is ended [s].
        spelled : callable
            Says how a key is written where the description comes from, for messages.

        Raises
        ------
        NotTrusted
            If it has a policy that `load_policies` was not told.
        InputError
            If an input file is missing or contradicts the parameters.
        """
        spec = self._read(described)
        world = self._world(spec, needs_file=spec.settings.driver == "simgrid")
        scenario = replace(
            world,
            scheduler=spec.scheduler.id,
            parameters=spec.scheduler.parameters,
            seed=spec.seed,
            replicate=spec.replicate,
            timeout_s=timeout_s,
            inputs=_digests(spec, world.platform),
        )
        return with_keys(scenario, self._settings(spec), spelled)

    def world(self, spec: RunSpec) -> LoadedScenario:
        """Return the platform and the tasks of a run that is described with paths or objects."""
        world = self._world(spec, needs_file=False)
        return replace(world, inputs=_digests(spec, world.platform))

    def optimization(self, described: RunSpec | Mapping[str, Any]) -> Optimization:
        """Return what is to be planned in a described run that executes nothing.

        Parameters
        ----------
        described : RunSpec or mapping
            As for `make`; its driver is ``optimize``.

        Raises
        ------
        NotTrusted
            If it has a policy that `load_policies` was not told.
        InputError
            If an input file is missing, or the run has no bag by types.
        """
        from gridsched.runs.optimization import Optimization  # scipy's solver is slow to load

        spec = self._read(described)
        values = self._settings(spec)
        del values["driver"]
        return Optimization(
            self._bag(spec), spec.scheduler.id, spec.scheduler.parameters, with_keys(RunSettings(), values).tariff
        )

    def _read(self, described: RunSpec | Mapping[str, Any]) -> RunSpec:
        """Return the description of a run whose policy, if it has one, is imported."""
        spec = described if isinstance(described, RunSpec) else RunSpec.read(described)
        policy = spec.scheduler.policy
        if policy is not None and policy.sha256 not in self._imported:
            raise NotTrusted(
                f"Scheduler {spec.scheduler.id!r} is of the policy {policy.name!r} (SHA-256 "
                f"{policy.sha256[:16]}...), which is not run unasked; --trust runs the policies of "
                "the studies that a store keeps."
            )
        return spec

    def _path(self, file: str | FileReference) -> str:
        return path_of_file(file, self._inputs)

    def _given(self, section: Section) -> dict[str, Any]:
        """Return the keys of a section that are set, with the paths of its files."""
        given = {name: getattr(section, name) for name in section.model_fields_set}
        return given | {name: self._path(given[name]) for name in file_keys(section)}

    def _settings(self, spec: RunSpec) -> dict[str, Any]:
        """Return the settings that are set, but for those of what is measured."""
        given = self._given(spec.settings)
        return {name: given[name] for name in sorted(given) if name not in MEASURE_SETTINGS}

    def _parameters(self, section: Section) -> dict[str, Any]:
        """Return the keys of a generator that are set."""
        given = self._given(section)
        return {key: each for key, each in given.items() if key not in ("generator", "seed")}

    def _drawn(
        self, spec: RunSpec, section: DrawnSection, generator: Generator[Any, Any], without: Container[str] = ()
    ) -> tuple[str, Callable[[], Any]]:
        """Return a key of what a generator draws, and the function that draws it."""
        given, seeds = self._parameters(section), _seeds(section, spec)
        values = {name: each for name, each in given.items() if name not in without}
        key = f"{section.generator} {sorted(values.items())} {seeds}"
        return key, lambda: generator.generate(generator.model(**(values | seeds)))

    def _bag(self, spec: RunSpec) -> NamedBag:
        """Return the bag of a run by types; one of a generator of systems need not be listed."""
        from gridsched.optimize import named_bag

        workload, given = spec.workload, self._settings(spec).get("pstate")
        if isinstance(workload, DrawnSection):
            generator = GENERATORS[workload.generator]
            if isinstance(generator, SystemGenerator):
                keys = self._parameters(workload) | _seeds(workload, spec)
                parameters = generator.model(**keys)
                pstate = one_pstate(given)
                key = f"{parameters!r} {pstate}"
                name = f"bag of replicate {spec.replicate}"
                return self._bags.get(key, lambda: named_bag.bag_of_parameters(parameters, name, pstate))
        world = self._world(spec, needs_file=False)
        if world.types is not None:
            return named_bag.bag_of_types(world.tasks.name, world.tasks, world.types, one_pstate(given))
        pstates = pstates_of(world.platform, given)
        return named_bag.bag_of_platform(world.platform, world.tasks, pstates)

    def _world(self, spec: RunSpec, *, needs_file: bool) -> LoadedScenario:
        """Return what the schedulers of a replicate share."""
        workload = spec.workload
        if isinstance(workload, WorkloadFile):
            return self._of_file(spec, workload, needs_file=needs_file)
        if isinstance(workload, DrawnSection):
            generator = GENERATORS[workload.generator]
            if isinstance(generator, SystemGenerator):
                return self._system(spec, workload, generator, needs_file=needs_file)
            platform, file = self._platform(spec, needs_file=needs_file)
            tasks = self._tasks.get(*self._drawn(spec, workload, generator))
            return LoadedScenario(platform, tasks, platform_file=file)
        platform, file = self._platform(spec, needs_file=needs_file)
        return LoadedScenario(platform, workload, platform_file=file)

    def _of_file(self, spec: RunSpec, workload: WorkloadFile, *, needs_file: bool) -> LoadedScenario:
        """Return the scenario of a workload file, on the run's platform or on its own."""
        file = self._path(workload.file)
        files = None if workload.files is None else self._path(workload.files)
        options = self._trace_options(workload)
        own = not isinstance(spec.platform, NoPlatform)
        if is_trace(file):
            if files is not None:
                raise InputError(f"{file}: jobs of a trace have no input files; leave out --files {files}.")
            platform, platform_file = self._platform(spec, needs_file=needs_file) if own else (None, None)
            # the platform lives as long as the system that has it, so that its id is its own
            system = self._traces.get(f"{file} {options} {id(platform)}", lambda: trace_system(file, options, platform))
            return replace(LoadedScenario.on_trace(system), trace=options, platform_file=platform_file)
        options.refuse(set(options.given), file, "this workload is no trace")
        whole = self._systems.get(file, lambda: read_system_workload(file))
        if whole is not None:
            given: Any = spec.platform if own else None
            if isinstance(given, PlatformFile):
                given = _name_of(given.file)
            deployment = self._settings(spec).get("deployment")
            return Scenario(given, file, files=files, deployment=deployment).with_system(whole)
        platform, platform_file = self._platform(spec, needs_file=needs_file)
        tasks = self._tasks.get(f"{file} {files}", lambda: read_workload(file, files=files))
        return LoadedScenario(platform, tasks, platform_file=platform_file)

    def _trace_options(self, workload: WorkloadFile) -> TraceOptions:
        """Return how a workload file is read if it is a log."""
        given = self._given(workload)
        return TraceOptions(**{name: given[name] for name in keys_of(TraceOptions) if name in given})

    def _platform(self, spec: RunSpec, *, needs_file: bool) -> tuple[Platform, Path | None]:
        section = spec.platform
        if isinstance(section, Platform):
            return section, None
        if isinstance(section, NoPlatform):
            raise InputError("Missing option '--platform FILE': the workload makes no platform of its own.")
        if isinstance(section, PlatformFile):
            path = Path(self._path(section.file))
            power = GivenPower.read(self._settings(spec).get("power", ()))
            name = _name_of(section.file)
            return self._platforms.get(f"{path} {power}", lambda: (self._read_platform(path, power, name), path))
        seeds = _seeds(section, spec)
        key = f"{canonical_text(canonical_section(section))} {seeds} {needs_file}"
        return self._platforms.get(key, lambda: self._generate_platform(section, seeds, needs_file=needs_file))

    def _read_platform(self, path: Path, power: GivenPower, name: str) -> Platform:
        platform = read_platform(path, power)
        if self._inputs and platform.profiles.files:  # a store would not hold them
            raise InputError(
                f"{name}: its profiles lie in files as "
                f"{platform.profiles.files[0]}; in studies they stand in the platform (<trace>)."
            )
        return platform

    def _generate_platform(
        self, section: PlatformTable, seeds: dict[str, int], *, needs_file: bool
    ) -> tuple[Platform, Path | None]:
        table = self._table(section)
        values = self._given(section)
        links = NetworkLinks(**{key: values[key] for key in _LINKS if key in values})
        others = (*_LINKS, *_TABLE_KEYS)
        recipe = {key: value for key, value in values.items() if key not in others}
        platform = platform_from_table(table, PlatformRecipe(**(recipe | seeds)))
        return platform, self._written_platform(platform, links) if needs_file else None

    def _written_platform(self, platform: Platform, links: NetworkLinks | None = None) -> Path:
        self._written += 1
        path = self._folder / f"platform{self._written % 16}.xml"
        write_platform(platform, path, command="gridsched study run", network=links, force=True)
        return path

    def _table(self, section: PlatformTable) -> MachineTable:
        path = self._path(section.table)
        join = None if section.join is None else self._path(section.join)

        def read() -> MachineTable:
            table = read_machine_table(path, join=join, year=section.year, trust=section.trust)
            return replace(table, path=_name_of(section.table))

        return self._tables.get(f"{path} {join} {section.year} {section.trust}", read)

    def _system(
        self, spec: RunSpec, workload: DrawnSection, generator: SystemGenerator, *, needs_file: bool
    ) -> LoadedScenario:
        """Return the scenario of a workload that comes with its platform.

        Runs that differ in rules alone share what is drawn.
        """
        rules = generator.model(**(self._parameters(workload) | _seeds(workload, spec))).rules
        key, generate = self._drawn(spec, workload, generator, without=keys_of(Rules))
        system = self._drawn_systems.get(key, generate)
        scenario = LoadedScenario.of_system(replace(system, rules=rules))
        if not needs_file:
            return scenario
        file = self._system_files.get(key, lambda: self._written_platform(system.platform))
        return replace(scenario, platform_file=file)


def _name_of(file: str | FileReference) -> str:
    return file if isinstance(file, str) else file.name


def _digests(spec: RunSpec, platform: Platform) -> dict[str, str]:
    """Return the SHA-256 of each file by its name: what was read, and so is of a legal size."""
    files, paths = [file for _, file in spec.files()], list(platform.profiles.files)
    paths += [file for file in files if isinstance(file, str)]
    if isinstance(spec.workload, WorkloadFile) and isinstance(spec.workload.file, str):
        paths += map(str, input_files(spec.workload.file))
    digests = {file.name: file.sha256 for file in files if isinstance(file, FileReference)}
    return digests | {path: file_digest(Path(path)) for path in paths}


def _seeds(section: DrawnSection, spec: RunSpec) -> dict[str, int]:
    """Return what decides the random streams: a section's own seed, or the run's."""
    if section.seed is not None:
        return {"seed": section.seed, "replicate": 0}
    return {"seed": spec.seed, "replicate": spec.replicate}


class _Recent(Generic[T]):
    """The few things made last, by key."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str, make: Callable[[], T]) -> T:
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        made = make()
        self._kept[key] = made
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return made
