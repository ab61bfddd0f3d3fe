"""The schedulers of a study: ids with parameters, lists as axes, and the user's own policies."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from gridsched.errors import GridschedError, InputError, did_you_mean
from gridsched.metrics.table import METRICS, Condition, Metric, declare_metric, is_own
from gridsched.model.records import shown_value
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.policy_files import named_file, scheduler_of
from gridsched.policy.registry import make_scheduler, scheduler_class
from gridsched.runs.run_spec import with_tuples
from gridsched.runs.study_axes import check_values, depth_of_value
from gridsched.runs.study_document import KeyPath, StudyDocument

#: Keys of a scheduler's table beside its parameters.
_OWN_KEYS = ("id", "label")
#: More labels than this are shown by family.
_MOST_LABELS = 12


def _from_text(text: Any) -> Mapping[str, Any]:
    values = json.loads(text) if isinstance(text, str) else None
    if not isinstance(values, dict):
        raise ValueError("it should be a JSON object")
    return with_tuples(values)


#: Kept as the text of a JSON object, whose infinities Python alone reads.
_Parameters = Annotated[
    Mapping[str, Any],
    BeforeValidator(_from_text),
    PlainSerializer(lambda values: json.dumps(dict(values)), return_type=str),
]


@dataclass(frozen=True)
class StudyScheduler:
    """One scheduler of a study.

    Attributes
    ----------
    label : str
        What the results have: the id, with the parameters that vary.
    id : str
    parameters : dict
        Those that have not their default.
    policy : str or None
        Name of the file it comes from, if it is none of gridsched's.
    path : tuple
        Where it is in the study file.
    family : str
        The label without the parameters that vary.
    varied : dict
        Those parameters.
    traits : Traits
        What it needs and may do with these parameters.
    """

    label: str
    id: str
    parameters: _Parameters
    policy: str | None
    path: KeyPath
    family: str
    varied: _Parameters
    traits: Traits

    __pydantic_config__ = ConfigDict(extra="forbid")


def read_schedulers(document: StudyDocument, policies: Mapping[str, ModuleType]) -> tuple[StudyScheduler, ...]:
    """Return the schedulers of a study; `policies` are its own modules by file name."""
    raw = document.content.schedulers
    entries = raw if isinstance(raw, tuple) else (raw,)
    if not entries:
        document.refuse(("schedulers",), "is an axis without values; give at least one.")
    schedulers: list[StudyScheduler] = []
    for k, entry in enumerate(entries):
        path = ("schedulers", k) if isinstance(raw, tuple) else ("schedulers",)
        for each in _variants(document, path, entry, policies):
            if each.label in [other.label for other in schedulers]:
                document.refuse(path, f"names {each.label!r} again; give it another label.")
            schedulers.append(each)
    return tuple(schedulers)


def scheduler_texts(schedulers: Sequence[StudyScheduler]) -> list[str]:
    """Return the labels; of more than a dozen, each family's in one text."""
    if len(schedulers) <= _MOST_LABELS:
        return [each.label for each in schedulers]
    families: dict[str, list[StudyScheduler]] = {}
    for each in schedulers:
        families.setdefault(each.family, []).append(each)
    return [_family_text(family, variants) for family, variants in families.items()]


def _family_text(family: str, variants: Sequence[StudyScheduler]) -> str:
    names = list(dict.fromkeys(name for each in variants for name in each.varied))
    parts = []
    for name in names:
        values = dict.fromkeys(each.varied[name] for each in variants if name in each.varied)
        parts.append(f"{name}={', '.join(map(str, values))}")
    return f"{family}({'; '.join(parts)})" if parts else family


def _variants(
    document: StudyDocument, path: KeyPath, entry: Any, policies: Mapping[str, ModuleType]
) -> Iterator[StudyScheduler]:
    table = {"id": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or not isinstance(table.get("id"), str):
        document.refuse(path, f"is {shown_value(entry)}; an id or a table with an id is allowed.")
    try:
        id = _id_of(table["id"], policies)
        cls = scheduler_class(id)
    except InputError as error:
        document.refuse((*path, "id"), f"is wrong: {error}")
    label = table.get("label", id)
    if not isinstance(label, str) or not label:
        document.refuse((*path, "label"), f"is {shown_value(label)}; a text is allowed.")
    legal = cls.parameter_defaults()
    given = {key: value for key, value in table.items() if key not in _OWN_KEYS}
    for key in given:
        if key not in legal:
            hint, names = did_you_mean(key, legal), ", ".join(legal) or "none"
            document.refuse((*path, key), f"is not a parameter of {id}. {hint}Allowed: {names}.")
    varying = {
        key: value
        for key, value in given.items()
        if isinstance(value, tuple) and depth_of_value(value) > depth_of_value(legal[key])
    }
    for key, choices in varying.items():
        check_values(document, (*path, key), choices)
    policy = next((name for name, module in policies.items() if module.__name__ == cls.__module__), None)
    for chosen in itertools.product(*varying.values()):
        varied = dict(zip(varying, chosen, strict=True))
        parts = ", ".join(f"{key}={value}" for key, value in varied.items())
        made = _made(document, path, id, given | varied)
        name = f"{label}({parts})" if parts else label
        unusual = {key: value for key, value in made.parameters.items() if value != legal[key]}
        yield StudyScheduler(name, id, unusual, policy, path, label, varied, made.traits)


def _id_of(text: str, policies: Mapping[str, ModuleType]) -> str:
    """Return the id of a scheduler that is named as on the command line."""
    named = named_file(text)
    if named is None:
        return text
    return scheduler_of(Path(named[0]), policies[Path(named[0]).name], named[1])


def _made(document: StudyDocument, path: KeyPath, id: str, values: Mapping[str, Any]) -> Scheduler:
    try:
        return make_scheduler(id, values)
    except (GridschedError, TypeError, ValueError) as error:
        document.refuse(path, f"cannot be made: {error}")


#: What a policy that may draw a figure of its own has in its text.
_DRAWS = b"register_figure"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _OwnMetric(_Part):
    """A `Metric` without its functions."""

    id: str
    unit: str
    sentence: str
    of: Literal["run", "plan", "row", "comparison"]
    better: Literal["less", "more"] | None
    words: str
    header: str
    form: Literal["number", "rounded", "percent", "share", "text"]
    scale: str
    is_detail: bool
    condition: str
    workload: Literal["any", "bag", "system", "parallel"]
    default: bool

    @classmethod
    def of_metric(cls, metric: Metric) -> Self:
        """Return a metric as it is kept."""
        when = metric.condition
        names = cls.model_fields.keys() - {"condition", "workload", "default"}
        return cls(
            **{name: getattr(metric, name) for name in names},
            condition=when.words,
            workload=when.workload,
            default=when.default,
        )

    def metric(self) -> Metric:
        """Return it as the table of metrics has it; no run of this process computes it."""
        when = Condition(self.condition, lambda run: False, self.workload, self.default)
        names = type(self).model_fields.keys() - {"condition", "workload", "default"}
        values = {name: getattr(self, name) for name in names}
        return Metric(function=_not_imported, condition=when, **values)


def _not_imported(_facts: Any) -> None:
    """Take the place of the function of a metric whose file is not imported."""


class CustomDefinitions(_Part):
    """What the policies of a study bring.

    Attributes
    ----------
    schedulers : tuple
        All of the study, each with its parameters.
    metrics : tuple
        Those that no file of gridsched registers.
    may_draw : bool
        Whether a policy may draw figures of its own.
    """

    schedulers: tuple[StudyScheduler, ...]
    metrics: tuple[_OwnMetric, ...]
    may_draw: bool

    @classmethod
    def of(cls, schedulers: Sequence[StudyScheduler], policies: Sequence[Path]) -> Self:
        """Return what policies that are imported bring."""
        return cls(
            schedulers=tuple(schedulers),
            metrics=tuple(_OwnMetric.of_metric(each) for each in METRICS.values() if is_own(each)),
            may_draw=any(_DRAWS in path.read_bytes() for path in policies),
        )

    def declare_metrics(self) -> None:
        """Put the metrics into the table, so that stored values have their names and units."""
        for each in self.metrics:
            declare_metric(each.metric())

    @property
    def computed_from_rows(self) -> set[str]:
        """The metrics that only the policies can compute from stored rows."""
        return {each.id for each in self.metrics if each.of == "row"}
