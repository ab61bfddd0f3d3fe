"""One table of workload generators: a new kind is one model, one function and one entry, here or in a plugin.

Files of generators (``kind = "bag"``), sections of studies (``generator = "bag"``) and the
commands ``workload generate`` and ``describe`` use this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

from pydantic import ValidationError

from gridsched.errors import InputError, did_you_mean
from gridsched.model.records import gravest, key_name, place_of, problem_of
from gridsched.plugins import Table, WorkloadKind, loaded

if TYPE_CHECKING:
    from gridsched.model.task_types import SystemWorkload
    from gridsched.model.tasks import Tasks
    from gridsched.workloads.generator_keys import GeneratorKeys, SystemKeys  # noqa: F401 - in a string


Keys = TypeVar("Keys", bound="GeneratorKeys")
Made = TypeVar("Made", bound="Tasks | SystemWorkload")


class Generator(Generic[Keys, Made]):
    """One kind of generator, whose modules are imported when it is first used.

    Parameters
    ----------
    declared : WorkloadKind
    """

    def __init__(self, declared: WorkloadKind) -> None:
        self.declared = declared

    @cached_property
    def model(self) -> type[Keys]:
        """The model of its keys."""
        model: type[Keys] = loaded(self.declared.keys, f"Workload {self.declared.name!r}")
        return model

    @cached_property
    def generate(self) -> Callable[[Any], Made]:
        """Draws from the checked keys."""
        function: Callable[[Any], Made] = loaded(self.declared.function, f"Workload {self.declared.name!r}")
        return function

    @property
    def file_keys(self) -> tuple[str, ...]:
        """The keys that name files."""
        return tuple(
            name
            for name, field in self.model.model_fields.items()
            if name.endswith(("_csv", "_swf")) or Path in get_args(field.annotation)
        )

    def input_files(self, parameters: GeneratorKeys) -> list[Path]:
        """Return the files that checked keys name."""
        values = (getattr(parameters, name) for name in self.file_keys)
        return [Path(value) for value in values if value is not None]


class BagGenerator(Generator["GeneratorKeys", "Tasks"]):
    """One that makes a bag of tasks, which needs a platform."""


class SystemGenerator(Generator["SystemKeys", "SystemWorkload"]):
    """One that makes tasks with their platform and rules."""


def _generator(declared: WorkloadKind) -> BagGenerator | SystemGenerator:
    return SystemGenerator(declared) if declared.makes_system else BagGenerator(declared)


#: The kinds that no system adds.
_CORE = (
    WorkloadKind("bag", "gridsched.workloads.bag:BagOfTasks", "gridsched.workloads.bag:generate_bag"),
    WorkloadKind(
        "rigid_jobs",
        "gridsched.workloads.rigid_jobs:RigidJobs",
        "gridsched.workloads.rigid_jobs:generate_rigid_jobs",
        makes_system=True,
        is_parallel=True,
        document="docs/traces.md",
    ),
    WorkloadKind(
        "deferrable_jobs",
        "gridsched.workloads.deferrable_jobs:DeferrableJobs",
        "gridsched.workloads.deferrable_jobs:generate_deferrable_jobs",
        makes_system=True,
        document="docs/carbon.md",
    ),
)
GENERATORS: Table[str, BagGenerator | SystemGenerator] = Table(
    "kind of workload",
    lambda plugin: ((each.name, _generator(each)) for each in plugin.workloads),
    {each.name: _generator(each) for each in _CORE},
)


def brings_machines(name: object) -> bool:
    """Whether a kind of this name makes its platform, too; what is not a name of one does not."""
    return isinstance(name, str) and name in GENERATORS and isinstance(GENERATORS[name], SystemGenerator)


def generator_of(parameters: GeneratorKeys) -> BagGenerator | SystemGenerator:
    """Return the generator whose checked keys these are."""
    return GENERATORS[parameters.kind]


def checked_parameters(
    values: Mapping[str, Any], owner: str, *, folder: str | Path | None = None, format_key: Callable[[str], str] = str
) -> GeneratorKeys:
    """Return the keys of a generator, checked.

    Parameters
    ----------
    values : mapping
        ``kind`` (default ``bag``) and the keys of that generator.
    owner : str
        What the message begins with.
    folder : path, optional
        Where files lie that are named.
    format_key : callable
        Returns how a key is written where the values come from.

    Raises
    ------
    InputError
        Naming the key that is wrong.
    """
    kind = values.get("kind", "bag")
    if not isinstance(kind, str) or kind not in GENERATORS:
        raise InputError(
            f"{owner}: {format_key('kind')} is {kind!r}. {did_you_mean(str(kind), GENERATORS)}"
            f"Allowed: {', '.join(GENERATORS)}."
        )
    generator = GENERATORS[kind]
    parameters = _checked(generator, values, owner, format_key)
    files = {
        name: str(Path(folder or ".") / value)
        for name in generator.file_keys
        if (value := getattr(parameters, name)) is not None
    }
    return parameters.model_copy(update=files)


def _checked(
    generator: Generator[Any, Any], values: Mapping[str, Any], owner: str, format_key: Callable[[str], str]
) -> GeneratorKeys:
    model = generator.model
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        first = gravest(error)
        reason = problem_of(first, model.model_fields, generator.declared.document)
        raise InputError(f"{owner}: {format_key(key_name(place_of(first, values)))} {reason}") from None
    except InputError as error:  # keys that contradict each other
        raise InputError(f"{owner}: {error}") from None
