"""One table of workload generators: a new kind is one model, one function and one entry here.

Files of generators (``kind = "bag"``), sections of studies (``generator = "bag"``) and the
commands ``workload generate`` and ``describe`` go by this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

from pydantic import ValidationError

from gridsched.errors import InputError, did_you_mean
from gridsched.model.records import complaint, gravest, key_name

if TYPE_CHECKING:
    from gridsched.model.task_types import SystemWorkload
    from gridsched.model.tasks import Tasks
    from gridsched.workloads.generator_keys import GeneratorKeys, SystemKeys  # noqa: F401 - in a string


Keys = TypeVar("Keys", bound="GeneratorKeys")
Made = TypeVar("Made", bound="Tasks | SystemWorkload")


@dataclass(frozen=True)
class Generator(Generic[Keys, Made]):
    """One kind of generator, whose module is imported when it is first used.

    Attributes
    ----------
    module : str
        The one of this room that it lives in.
    keys : str
        The model of its keys there. Those that end with ``_csv`` or ``_swf`` name files; ``seed``
        and ``replicate`` decide what is drawn.
    function : str
        What draws from the checked keys.
    has_utility : bool
        Whether the tasks have utility functions. This and `is_parallel` decide which metrics a
        study of such runs may name: those of a bag of tasks, those of utility, those of parallel
        jobs.
    is_parallel : bool
        Whether the tasks are parallel.
    document : str
        Where the keys are listed, if they are too many for a message.
    """

    module: str
    keys: str
    function: str
    has_utility: bool = False
    is_parallel: bool = False
    document: str = ""

    def _found(self, name: str) -> Any:
        return getattr(import_module(f"gridsched.workloads.{self.module}"), name)

    @cached_property
    def model(self) -> type[Keys]:
        """The model of its keys."""
        model: type[Keys] = self._found(self.keys)
        return model

    @cached_property
    def generate(self) -> Callable[[Any], Made]:
        """Draws from the checked keys."""
        function: Callable[[Any], Made] = self._found(self.function)
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


@dataclass(frozen=True)
class BagGenerator(Generator["GeneratorKeys", "Tasks"]):
    """One that makes a bag of tasks, which needs a platform."""


@dataclass(frozen=True)
class SystemGenerator(Generator["SystemKeys", "SystemWorkload"]):
    """One that makes tasks with their platform and rules."""


GENERATORS: dict[str, BagGenerator | SystemGenerator] = {
    "bag": BagGenerator("bag", "BagOfTasks", "generate_bag"),
    "utility": SystemGenerator(
        "utility_day", "UtilityDay", "generate_utility_day", has_utility=True, document="docs/utility_workloads.md"
    ),
    "profit": SystemGenerator("profit_system", "ProfitBag", "generate_profit_bag", document="docs/profit.md"),
    "robust": SystemGenerator(
        "robust_trial", "RobustTrial", "generate_robust_trial", document="docs/robust_workloads.md"
    ),
    "rigid_jobs": SystemGenerator(
        "rigid_jobs", "RigidJobs", "generate_rigid_jobs", is_parallel=True, document="docs/traces.md"
    ),
    "deferrable_jobs": SystemGenerator(
        "deferrable_jobs", "DeferrableJobs", "generate_deferrable_jobs", document="docs/carbon.md"
    ),
    "parallel": SystemGenerator(
        "parallel_tasks",
        "ParallelDay",
        "generate_parallel_day",
        has_utility=True,
        is_parallel=True,
        document="docs/parallel_workloads.md",
    ),
}


def generator_of(parameters: GeneratorKeys) -> BagGenerator | SystemGenerator:
    """Return the generator whose checked keys these are."""
    return GENERATORS[parameters.kind]


def checked_parameters(
    values: Mapping[str, Any], owner: str, *, folder: str | Path | None = None, spelled: Callable[[str], str] = str
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
    spelled : callable
        Says how a key is written where the values come from.

    Raises
    ------
    InputError
        Naming the key that is wrong.
    """
    kind = values.get("kind", "bag")
    if not isinstance(kind, str) or kind not in GENERATORS:
        raise InputError(
            f"{owner}: {spelled('kind')} is {kind!r}. {did_you_mean(str(kind), GENERATORS)}"
            f"Legal: {', '.join(GENERATORS)}."
        )
    generator = GENERATORS[kind]
    parameters = _checked(generator, values, owner, spelled)
    files = {
        name: str(Path(folder or ".") / value)
        for name in generator.file_keys
        if (value := getattr(parameters, name)) is not None
    }
    return parameters.model_copy(update=files)


def _checked(
    generator: Generator[Any, Any], values: Mapping[str, Any], owner: str, spelled: Callable[[str], str]
) -> GeneratorKeys:
    model = generator.model
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        first = gravest(error)
        reason = complaint(first, model.model_fields, generator.document)
        raise InputError(f"{owner}: {spelled(key_name(first['loc']))} {reason}") from None
    except InputError as error:  # keys that contradict each other
        raise InputError(f"{owner}: {error}") from None
