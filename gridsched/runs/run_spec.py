"""The one description of a run, which `run`, `compare`, studies, stored rows and reruns use.

Each part is a pydantic model. In a study file a list is an axis, unless the key takes a list
itself (``speed_levels``); there a list of lists is one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    WithJsonSchema,
    create_model,
    field_validator,
)

from gridsched.errors import InputError
from gridsched.files.json_files import canonical_text
from gridsched.files.output_files import as_bytes, is_file_name
from gridsched.model.energy_cost import PerEnergy, cost_per_joule, with_unit_read
from gridsched.model.records import Key, given_keys, gravest, key_name, keys_of, number_or_text, problem_of, with_fields
from gridsched.model.tariff import Tariff
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.simgrid_options import check_option
from gridsched.platform_io.xml_writer import NetworkLinks
from gridsched.renamed import as_stored, with_new_names
from gridsched.scenario import Scenario
from gridsched.workloads.generators import GENERATORS
from gridsched.workloads.traces.formats import endings
from gridsched.workloads.traces.trace_options import TraceOptions

#: Version of everything that decides a run's metrics. Raise it with every change that alters any
#: number a run gives; stored runs of another version are kept, but not taken for this one's.
RESULTS_VERSION = 6

#: Parts of a run's description that are sections.
SECTIONS = ("platform", "workload", "scheduler", "settings")


class Section(BaseModel):
    """A part of a study file; unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


def _file_name(name: str) -> str:
    if not is_file_name(name):
        raise ValueError("it should be the name of a file, without a folder")
    return name


class FileReference(Section):
    """How a stored run names a file: by its content; an absent one has no digest."""

    name: Annotated[str, AfterValidator(_file_name)]
    sha256: str = Field(pattern="^([0-9a-f]{64})?$")


#: A file: by its path, or in a stored run by its content.
InputPath = Annotated[str | FileReference, WithJsonSchema({"type": "string"})]


#: A cost of energy [money/J], written with its unit.
EnergyCost = Annotated[
    float, BeforeValidator(cost_per_joule), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]})
]
#: One number for all times, or a file of them: a text that is a number is one.
NumberOrInputPath = Annotated[
    float | str | FileReference,
    BeforeValidator(number_or_text),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]


class PlatformFile(Section):
    """A SimGrid platform file."""

    file: InputPath = Field(description="SimGrid platform (.xml).")


def _keys_as_fields(record: type, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the keys of a record as fields; a path is typed as a file's name or content."""
    return {
        name: (_type_with_unit(key) or _file_type(key.annotation) or key.annotation, key.info)
        for name, key in keys_of(record).items()
        if name not in without
    }


def _type_with_unit(key: Key) -> Any:
    """Return the type of a key that is a cost of energy; None for another key."""
    return EnergyCost | None if any(isinstance(each, PerEnergy) for each in key.info.metadata) else None


def _file_type(annotation: Any) -> Any:
    """Return the type of a key that names a file; None for another key."""
    types = typing.get_args(annotation)
    if Path not in types:
        return None
    return NumberOrInputPath | None if float in types else InputPath | None


@with_fields(_keys_as_fields(TraceOptions))
class WorkloadFile(Section):
    """A workload file; for a bag of tasks its input files, for a log how it is read."""

    file: InputPath = Field(
        description=f"Bag of tasks (.csv), generator (.toml) or trace of jobs ({endings()}; also .gz)."
    )
    files: InputPath | None = Field(default=None, description="Input files of tasks (.csv: file,size_bytes,location).")


class NoPlatform(Section):
    """The platform section where the workload brings its platform."""


#: Settings that decide nothing of a run's results, so they are not stored with it.
_OF_WATCHING = ("timeout_s", "log")
#: Settings that say what is kept of a run, and not how it is done.
MEASURE_SETTINGS = ("series_step_s", "group_by")
#: The driver of runs that execute nothing: see `gridsched.runs.optimization`.
OPTIMIZE: Final = "optimize"
#: Beside the tariff's, the settings that are allowed where a run executes nothing; the others would
#: have no effect.
_OPTIMIZE_TAKES = ("driver", "network", "pstate", "execution_mode", "cfg")


@with_fields(_keys_as_fields(Scenario, without=_OF_WATCHING))
class Settings(Section):
    """How a run is done: the keys of `Scenario`, and `MEASURE_SETTINGS`."""

    driver: Literal["simgrid", "reference", "optimize"] = Field(
        default="simgrid",
        description="simgrid; reference: no SimGrid, no network; or optimize: nothing is executed, the linear "
        "program of a planner alone ([profit](profit.md)).",
    )
    series_step_s: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Store cumulative energy and utility in the window of the results at steps of this length.",
    )
    group_by: tuple[str, ...] = Field(
        default=(),
        description="Store metrics of [groups of jobs](#groups-of-jobs) as well: by `partition`, `size`, `user`, or "
        "another attribute of the log.",
    )

    @field_validator("cfg", check_fields=False)
    @classmethod
    def _check_options(cls, cfg: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse what a study or a stored run, whoever wrote it, must not pass to SimGrid."""
        for item in cfg:
            option, _, value = item.partition(":")
            check_option(option, value)
        return cfg


def without_effect(settings: Section) -> list[str]:
    """Return the settings that are not the usual ones and mean nothing to `OPTIMIZE`."""
    taken = {*_OPTIMIZE_TAKES, *keys_of(Tariff)}
    return sorted(settings.model_dump(exclude_defaults=True).keys() - taken)


def _dataclass_fields(cls: type) -> dict[str, Any]:
    """Return the fields of a dataclass as pydantic's ``create_model`` takes them."""
    hints = typing.get_type_hints(cls)
    fields = (f for f in dataclasses.fields(cls) if f.name not in ("seed", "replicate"))
    return {f.name: (hints[f.name], f.default) for f in fields}


class GeneratedSection(Section):
    """A section of which something is drawn.

    A seed of its own fixes what is drawn; by default the study's seed and the replicate decide.
    """

    generator: str
    seed: int | None = Field(default=None, ge=0)


@with_fields(_dataclass_fields(PlatformRecipe) | _dataclass_fields(NetworkLinks))
class PlatformTable(GeneratedSection):
    """A platform made of a table of machines."""

    generator: Literal["table"]
    table: InputPath
    join: InputPath | None = None
    year: int | None = None
    trust: Literal["power", "efficiency"] | None = None


@cache
def generated_workload(name: str) -> type[GeneratedSection]:
    """Return the section of a workload generator, which has the keys of its model."""
    generator = GENERATORS[name]
    fields: dict[str, Any] = {
        key: (InputPath | None if key in generator.file_keys else field.annotation, field)
        for key, field in generator.model.model_fields.items()
        if key not in ("kind", "seed", "replicate")
    }
    fields["generator"] = (Literal[name], ...)
    section: type[GeneratedSection] = create_model(f"{name.capitalize()}Workload", __base__=GeneratedSection, **fields)
    return section


#: Generators of a section.
SECTION_GENERATORS: dict[str, Collection[str]] = {"platform": ("table",), "workload": GENERATORS}


def model_of(part: str, generator: str = "") -> type[Section]:
    """Return the model of a platform's or workload's section: of a generator, or of a file."""
    if part == "platform":
        return PlatformTable if generator else PlatformFile
    return generated_workload(generator) if generator else WorkloadFile


def section_models(part: str) -> list[type[Section]]:
    """Return the models of a section: that of a file, and those of generators."""
    return [model_of(part, generator) for generator in ("", *SECTION_GENERATORS[part])]


def _with_generated(value: Any) -> Any:
    """Return the section of the generator that a value names: no other's model is made."""
    name = value.get("generator") if isinstance(value, Mapping) else None
    known = isinstance(name, str) and name in GENERATORS
    return generated_workload(name).model_validate(value) if known else value


#: A section of any of these models.
Workload = Annotated[WorkloadFile | InstanceOf[GeneratedSection], BeforeValidator(_with_generated)]


class SchedulerSection(Section):
    """A scheduler by its id, its parameters without defaults, and the file of its policy if it is a user's own.

    That file is named by its content alone: a path would be imported, whoever wrote it.
    """

    id: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    policy: FileReference | None = None


class RunSpec(Section):
    """What is asked for: all that decides a run, as it is stored, and how it is watched.

    Attributes
    ----------
    platform : PlatformFile, PlatformTable or NoPlatform
    workload : WorkloadFile or the section of a generator
    scheduler : SchedulerSection
    settings : Settings
        Rules and driver; those that were set take precedence over those of a generator of systems.
    seed, replicate : int
    timeout_s : float or None
        Wall time after which the run is ended [s]; like `log` it is not stored.
    log : tuple of str
        SimGrid's ``--log`` items.
    """

    platform: PlatformFile | PlatformTable | NoPlatform
    workload: Workload
    scheduler: SchedulerSection
    settings: Settings
    seed: int = Field(default=0, ge=0)
    replicate: int = Field(default=0, ge=0)
    timeout_s: float | None = None
    log: tuple[str, ...] = ()

    @classmethod
    def asked(
        cls,
        platform: Any,
        workload: Any,
        *,
        files: str | Path | None = None,
        trace: Mapping[str, Any] = MappingProxyType({}),
        scheduler: Any = "wq",
        parameters: Mapping[str, Any] = MappingProxyType({}),
        settings: Mapping[str, Any] = MappingProxyType({}),
        seed: int = 0,
        replicate: int = 0,
    ) -> Self:
        """Return a run as it was asked for, unchecked; what is an object stays the same one.

        Parameters
        ----------
        platform, workload : path or object
            None for a platform that the workload brings.
        files : path, optional
            Input files of tasks.
        trace : mapping
            Keys of `TraceOptions`.
        scheduler : str or object
        parameters : mapping
        settings : mapping
            Keys of `Scenario`.
        seed, replicate : int
        """
        plain = {key: value for key, value in _plain(settings).items() if key in Settings.model_fields}
        plain |= {key: number_or_text(plain[key]) for key in _numbers_or_files() if key in plain}
        plain |= {key: with_unit_read(key, plain[key]) for key in _COSTS if isinstance(plain.get(key), str)}
        return cls.model_construct(
            platform=_section(PlatformFile, platform) or NoPlatform(),
            workload=_section(WorkloadFile, workload, **_plain({"files": files, **trace})),
            scheduler=SchedulerSection.model_construct(id=scheduler, parameters=dict(parameters)),
            settings=Settings.model_construct(**plain),
            seed=seed,
            replicate=replicate,
            **{key: settings[key] for key in _OF_WATCHING if key in settings},
        )

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """Return what a scenario asks for; what is an object there is the same one here."""
        return cls.asked(
            scenario.platform,
            scenario.tasks,
            files=scenario.files,
            trace=scenario.trace.given,
            scheduler=scenario.scheduler,
            parameters=scenario.parameters,
            settings=given_keys(scenario),
            seed=scenario.seed,
            replicate=scenario.replicate,
        )

    def under(self, scheduler: str, parameters: Mapping[str, Any]) -> Self:
        """Return the run with another scheduler."""
        section = SchedulerSection.model_construct(id=scheduler, parameters=dict(parameters))
        return self.model_copy(update={"scheduler": section})

    @classmethod
    def read(cls, scenario: Mapping[str, Any]) -> Self:
        """Return the description of a run that `canonical` gave, or a stored row holds.

        Raises
        ------
        InputError
            If it describes none, or names a file by its path.
        """
        if unknown := [name for name in _OF_WATCHING if name in scenario]:
            raise InputError(f"The description of a run: {unknown[0]} is not a known key.")
        try:
            sections = {key: with_new_names(each) if key in SECTIONS else each for key, each in scenario.items()}
            sections["settings"] = _per_joule(sections.get("settings"))
            spec = cls.model_validate(with_tuples(sections))
        except ValidationError as error:
            first = gravest(error)
            raise InputError(f"The description of a run: {key_name(first['loc'])} {problem_of(first)}") from None
        for key, file in spec.files():
            if isinstance(file, str):
                raise InputError(
                    f"The description of a run: {key} is the path {file!r}; a stored run names "
                    "files by name and SHA-256."
                )
        return spec

    def canonical(self) -> dict[str, Any]:
        """Return what is stored of it, without defaults: equal runs have equal descriptions."""
        sections = {name: _stored(getattr(self, name)) for name in SECTIONS}
        return {**sections, "seed": self.seed, "replicate": self.replicate}

    @property
    def run_id(self) -> str:
        """Hash of `canonical` and of the version of gridsched's results: 32 hexadecimal digits."""
        return _run_id({name: SectionText.of(getattr(self, name)) for name in SECTIONS}, self.seed, self.replicate)

    def files(self) -> Iterator[tuple[str, str | FileReference]]:
        """Yield the files that are named, with the keys that name them."""
        for part in SECTIONS:
            section = getattr(self, part)
            for key in file_keys(section):
                yield f"{part}.{key}", getattr(section, key)


def _stored(section: Section) -> dict[str, Any]:
    """Return what is stored, and hashed, of a section: its keys that have a value, as rows have always named them."""
    return as_stored(section.model_dump(exclude_defaults=True))


def path_of_file(file: str | FileReference, places: Mapping[str, Path]) -> str:
    """Return where a file of a run lies.

    Parameters
    ----------
    file : str or FileReference
    places : mapping
        SHA-256 of a file -> its path.

    Raises
    ------
    InputError
        If it is missing.
    """
    if isinstance(file, str):
        return file
    if file.sha256 not in places:
        raise InputError(f"Input file {file.name!r} (SHA-256 {file.sha256[:16]}...) is not in the store.")
    return str(places[file.sha256])


def file_keys(section: Section) -> list[str]:
    """Return the keys of a section that name a file, of those that are set."""
    named = _file_keys(type(section)) if isinstance(section, Section) else ()
    return [key for key in named if isinstance(getattr(section, key), str | FileReference)]


@cache
def _file_keys(section: type[Section]) -> tuple[str, ...]:
    fields = section.model_fields.items()
    return tuple(key for key, field in fields if FileReference in members_of(field.annotation))


@cache
def _numbers_or_files() -> tuple[str, ...]:
    """Return the keys of runs that take a number for all times, or a file."""
    return tuple(key for key in _file_keys(Settings) if float in members_of(Settings.model_fields[key].annotation))


def with_tuples(value: Any) -> Any:
    """Return a parsed TOML or JSON value with tuples for its lists, as strict models want them."""
    if isinstance(value, dict):
        return {key: with_tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(with_tuples(item) for item in value)
    return value


def members_of(annotation: Any) -> set[Any]:
    """Return the types that a union or annotated type is made of."""
    inner = typing.get_args(annotation)
    return {annotation} | {each for part in inner for each in members_of(part)}


#: Settings that are costs of energy.
_COSTS = tuple(name for name, key in keys_of(Scenario).items() if _type_with_unit(key) is not None)


def _per_joule(settings: Any) -> Any:
    """Return stored settings, which hold costs of energy in money per joule, with that unit."""
    if not isinstance(settings, Mapping):
        return settings
    costs = {key: f"{settings[key]!r}/J" for key in _COSTS if isinstance(settings.get(key), int | float)}
    return {**settings, **costs}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with texts in the place of paths."""
    return {key: str(value) if isinstance(value, Path) else value for key, value in values.items()}


def _section(model: type[Section], file: Any, **others: Any) -> Any:
    """Return the section of a file; an object stays what it is."""
    return model.model_construct(file=str(file), **others) if isinstance(file, str | Path) else file


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section that many runs share, and how it is hashed."""

    section: Section
    text: str

    @classmethod
    def of(cls, section: Section) -> Self:
        """Return a section with its text."""
        return cls(section, canonical_text(_stored(section)))


def described_run(sections: Mapping[str, SectionText], seed: int, replicate: int) -> tuple[str, RunSpec]:
    """Return the id and the description of a run whose `SECTIONS` are checked."""
    parts: dict[str, Any] = {name: each.section for name, each in sections.items()}
    spec = RunSpec.model_construct(**parts, seed=seed, replicate=replicate)
    return _run_id(sections, seed, replicate), spec


def _run_id(sections: Mapping[str, SectionText], seed: int, replicate: int) -> str:
    texts = [str(RESULTS_VERSION), str(seed), str(replicate), *(sections[name].text for name in SECTIONS)]
    return hashlib.sha256(as_bytes("\n".join(texts))).hexdigest()[:32]
