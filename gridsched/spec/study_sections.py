"""The parts of a study file that describe one run: platform, workload, schedulers, settings.

Each part is a pydantic model. A list is an axis, unless the key takes a list itself
(``speed_levels``); there a list of lists is one.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from gridsched.model.records import keys_of
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.xml_writer import NetworkLinks
from gridsched.spec.settings import RunSettings
from gridsched.workloads.bag import BagOfTasks
from gridsched.workloads.utility_day import UtilityDay


class Section(BaseModel):
    """A part of a study file; unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PlatformFile(Section):
    """A SimGrid platform file."""

    file: str


class WorkloadFile(Section):
    """A workload file and, for a bag of tasks with input files, the table of those."""

    file: str
    files: str | None = None


class NoPlatform(Section):
    """The platform section where the workload's generator makes the platform, too."""


#: Settings of a run that a study says elsewhere (time-out), or whose effect it would not keep.
_NOT_IN_STUDIES = ("timeout_s", "log")
#: Settings that say what is kept of a run, and not how it is done.
MEASURE_SETTINGS = ("series_step_s",)
#: Settings that every scenario's text has. The others are newer than the first stored runs, and a
#: text lacks them where they have their default, so that these runs keep their ids.
ALWAYS_WRITTEN = (
    "driver", "network", "deployment", "pstate", "mapping_interval_s", "hosts_off", "way", "cfg",
)  # fmt: skip

#: How a run is done: the keys of `RunSettings`, and `MEASURE_SETTINGS`.
Settings = create_model(
    "Settings",
    __base__=Section,
    **{
        name: (key.annotation, key.info)
        for name, key in keys_of(RunSettings).items()
        if name not in _NOT_IN_STUDIES
    },
    series_step_s=(float | None, Field(default=None, gt=0, allow_inf_nan=False)),
)


def _dataclass_fields(cls: type) -> dict[str, Any]:
    """Return the fields of a dataclass as pydantic's ``create_model`` takes them."""
    hints = typing.get_type_hints(cls)
    fields = (f for f in dataclasses.fields(cls) if f.name not in ("seed", "replicate"))
    return {f.name: (hints[f.name], f.default) for f in fields}


#: A seed of its own fixes what is drawn; by default the study's seed and the replicate decide.
_OWN_SEED = (int | None, Field(default=None, ge=0))

PlatformTable = create_model(
    "PlatformTable",
    __base__=Section,
    generator=(Literal["table"], ...),
    table=(str, ...),
    join=(str | None, None),
    year=(int | None, None),
    **_dataclass_fields(PlatformRecipe),
    **_dataclass_fields(NetworkLinks),
    seed=_OWN_SEED,
)


def _generated(name: str, model: type[BaseModel]) -> type[BaseModel]:
    """Return the section of a workload generator with the parameters of `model`."""
    return create_model(
        f"{name.capitalize()}Workload",
        __base__=Section,
        generator=(Literal[name], ...),
        **{
            key: (field.annotation, field)
            for key, field in model.model_fields.items()
            if key not in ("kind", "seed", "replicate")
        },
        seed=_OWN_SEED,
    )


#: Generators whose workload comes with its platform, and what checks their keys together.
SYSTEM_GENERATORS: dict[str, type[BaseModel]] = {"utility": UtilityDay}
WORKLOAD_GENERATORS = {
    name: _generated(name, model)
    for name, model in {"bag": BagOfTasks, **SYSTEM_GENERATORS}.items()
}
