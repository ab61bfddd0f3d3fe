"""What varies in a study: lists, named groups, schedulers; what is excluded; what sections say then."""

from __future__ import annotations

import itertools
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gridsched.errors import InputError, did_you_mean, which_instead
from gridsched.metrics.table import RESERVED
from gridsched.model.records import key_name, keys_of, shown_value, with_keys
from gridsched.model.rules import Rules
from gridsched.runs.run_filter import full_name
from gridsched.runs.run_spec import (
    MEASURE_SETTINGS,
    OPTIMIZE,
    SECTION_GENERATORS,
    FileReference,
    GeneratedSection,
    NoPlatform,
    Section,
    SectionText,
    Settings,
    file_keys,
    model_of,
    without_effect,
)
from gridsched.runs.study_document import DOCUMENT, KeyPath, StudyDocument
from gridsched.runs.study_inputs import StudyInputs
from gridsched.scenario import Scenario
from gridsched.workloads.generators import GENERATORS, brings_machines
from gridsched.workloads.traces.formats import is_trace

#: Sections that keys and groups can set; those of `Settings` are at the top of the file.
VARIED = ("platform", "workload", "settings")


@dataclass(frozen=True)
class Axis:
    """One thing that varies.

    Attributes
    ----------
    name : str
        ``workload.heterogeneity``, the name of a group, or ``scheduler``.
    values : tuple
        What the results have: values, names of a group's levels, labels of schedulers.
    changes : tuple of dict
        For each value the keys it sets: (section, key) -> value.
    paths : tuple
        For each value its place in the file.
    """

    name: str
    values: tuple[Any, ...]
    changes: tuple[Mapping[tuple[str, str], Any], ...]
    paths: tuple[KeyPath, ...]

    @property
    def sections(self) -> frozenset[str]:
        """The sections it changes."""
        return frozenset(section for change in self.changes for section, _ in change)


def section_values(document: StudyDocument, section: str) -> dict[str, Any]:
    """Return a section's keys as written; a text or list of texts is the section's file."""
    if section == "settings":
        return document.settings
    raw = getattr(document.content, section)
    if isinstance(raw, str | tuple):
        return {"file": raw}
    if not isinstance(raw, dict):
        document.refuse((section,), f"is {shown_value(raw)}; a file's name or a table is allowed.")
    return raw


def path_of(document: StudyDocument, section: str, key: str) -> tuple[str, ...]:
    """Return the place of a key of a section in the file."""
    if section == "settings":
        return (key,)
    whole = not isinstance(getattr(document.content, section), dict)
    return (section,) if whole else (section, key)


def section_model(document: StudyDocument, section: str, values: Mapping[str, Any]) -> type[Section]:
    """Return the model of a section: that of its generator, or that of a file."""
    if section == "settings":
        return Settings
    if section == "platform" and makes_system(document):
        if values:
            document.refuse(("platform",), "is not allowed: the workload's generator makes the platform, too.")
        return NoPlatform
    if section == "platform" and not values and brings_platform(document):
        return NoPlatform
    known = SECTION_GENERATORS[section]
    if "generator" not in values:
        if "file" in values:
            return model_of(section)
        files = [file for file in _files(document) if str(file).endswith(".toml")]
        if section == "platform" and not values and files:
            document.refuse(
                (section,),
                f"is missing. If {files[0]} makes its platform, write its keys under "
                "[workload], with generator for its kind.",
            )
        document.refuse((section,), f"needs file, or generator ({', '.join(known)}) with its parameters.")
    name = values["generator"]
    if not isinstance(name, str) or name not in known:
        document.refuse(
            (section, "generator"),
            f"is {shown_value(name)}. {did_you_mean(str(name), known)}Allowed: {', '.join(known)}.",
        )
    return model_of(section, name)


def makes_system(document: StudyDocument) -> bool:
    """Whether the workload's generator makes the platform, too."""
    names = _generators(document)
    of_systems = [brings_machines(name) for name in names]
    if any(of_systems) and not all(of_systems):
        document.refuse(
            ("workload", "generator"),
            f"varies between generators that make their platform ({', '.join(filter(brings_machines, GENERATORS))}) "
            "and others; make two studies of it.",
        )
    return any(of_systems)


def brings_platform(document: StudyDocument) -> bool:
    """Whether every workload comes with its machine: logs, and generators that make it."""
    files = _files(document)
    return bool(files) and all(isinstance(file, str) and is_trace(file) for file in files)


def workload_kinds(document: StudyDocument) -> set[str]:
    """Return what the workloads are, in the words of `gridsched.metrics.Condition.workload`."""
    makes_system(document)  # refuses a mixture
    known = [GENERATORS[name] for name in _generators(document)]
    kinds = {"system"} if any(each.declared.has_utility for each in known) else set()
    logs = [file for file in _files(document) if isinstance(file, str) and is_trace(file)]
    kinds |= {"parallel"} if logs or any(each.declared.is_parallel for each in known) else set()
    return kinds or {"bag"}


def _generators(document: StudyDocument) -> list[str]:
    """Return the generators that the workload section and the groups name."""
    return [name for name in _named(document, "generator") if isinstance(name, str)]


def _files(document: StudyDocument) -> list[Any]:
    """Return the workload files that the workload section and the groups name."""
    named = _named(document, "file")
    return [file for each in named for file in (each if isinstance(each, tuple) else (each,))]


def _named(document: StudyDocument, key: str) -> list[Any]:
    """Return the values of a key of the workload, in its section and in each level of a group that has it."""
    levels = [level for group in document.content.group.values() for level in group.values()]
    raw = (document.content.workload, *(level.get("workload") for level in levels))
    tables = [each if isinstance(each, dict) else {"file": each} for each in raw]
    return [each[key] for each in tables if each.get(key) is not None]


def depth_of_type(annotation: Any) -> int:
    """Return how deep lists nest in a field's type: 0 for a number, 1 for a tuple of them."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    deepest = max((depth_of_type(each) for each in arguments), default=0)
    if origin is tuple:
        return 1 + deepest
    return deepest if origin in (typing.Union, types.UnionType, typing.Annotated) else 0


def depth_of_value(value: Any) -> int:
    """Return how deep lists nest in a value; 0 where it is none."""
    if not isinstance(value, tuple):
        return 0
    return 1 + max(map(depth_of_value, value), default=0)


def list_axes(document: StudyDocument, groups: Sequence[Axis]) -> Iterator[Axis]:
    """Yield the axes that lists make, section by section; `groups` vary other keys."""
    grouped = {key: axis.name for axis in groups for change in axis.changes for key in change}
    for section in VARIED:
        values = section_values(document, section)
        first = {key: each for axis in groups for (at, key), each in axis.changes[0].items() if at == section}
        model = section_model(document, section, {**values, **first})
        for key, value in values.items():
            field = model.model_fields.get(key)
            depth = depth_of_type(field.annotation) if field is not None else 0
            if field is None or depth_of_value(value) <= depth:
                continue
            path = path_of(document, section, key)
            check_values(document, path, value)
            if (section, key) in grouped:
                document.refuse(path, f"varies in group {grouped[section, key]!r} already.")
            name = key if section == "settings" else f"{section}.{key}"
            yield Axis(
                section if key == "file" else name,
                value,
                tuple({(section, key): each} for each in value),
                tuple((*path, k) for k in range(len(value))),
            )


def check_values(document: StudyDocument, path: KeyPath, values: tuple[Any, ...]) -> None:
    """Refuse an axis without values, or with one twice."""
    if not values:
        document.refuse(path, "is an axis without values; give at least one.")
    for k, value in enumerate(values):
        if value in values[:k]:
            document.refuse((*path, k), f"is {shown_value(value)}, which the axis has already.")


def group_axes(document: StudyDocument) -> Iterator[Axis]:
    """Yield the axes of the named groups."""
    taken: set[tuple[str, str]] = set()
    for name, levels in document.content.group.items():
        path = ("group", name)
        if name in RESERVED or "." in name:
            document.refuse(path, f"is not an allowed name; not allowed: {', '.join(RESERVED)}, dots.")
        check_values(document, path, tuple(levels))
        changes = tuple(_level(document, (*path, label), levels[label]) for label in levels)
        for label, change in zip(levels, changes, strict=True):
            for key in change:
                if key in taken:
                    document.refuse((*path, label), f"sets {'.'.join(key)}, which another group varies, too.")
        taken |= {key for change in changes for key in change}
        yield Axis(name, tuple(levels), changes, tuple((*path, label) for label in levels))


def _level(document: StudyDocument, path: KeyPath, raw: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Return the keys that a level of a group sets."""
    change: dict[tuple[str, str], Any] = {}
    for key, value in raw.items():
        if key in Settings.model_fields:
            change["settings", key] = value
        elif key in ("platform", "workload"):
            values = value if isinstance(value, dict) else {"file": value}
            change.update({(key, inner): each for inner, each in values.items()})
        else:
            legal = ("platform", "workload", *Settings.model_fields)
            document.refuse((*path, key), f"cannot be set by a group. {which_instead(key, legal, DOCUMENT)}")
    if not change:
        document.refuse(path, "sets nothing.")
    return change


def exclusions(document: StudyDocument, axes: Sequence[Axis]) -> list[dict[str, tuple[Any, ...]]]:
    """Return the exclusions: axis -> values; a run that matches all of one is left out."""
    values_of = {axis.name: axis.values for axis in axes}
    rules = []
    for k, raw in enumerate(document.content.exclude):
        if not raw:
            document.refuse(("exclude", k), "is empty; name at least one axis and its values.")
        rules.append(axis_values(document, ("exclude", k), raw, values_of))
    return rules


def axis_values(
    document: StudyDocument, path: KeyPath, raw: Mapping[str, Any], values_of: Mapping[str, tuple[Any, ...]]
) -> dict[str, tuple[Any, ...]]:
    """Return a table of axis -> value or values with full names and tuples, checked."""
    rule: dict[str, tuple[Any, ...]] = {}
    for name, value in _flat(raw):
        try:
            axis = full_name(name, values_of)
        except InputError as error:
            document.refuse((*path, *name.split(".")), f"is wrong: {error}")
        legal = values_of[axis]
        wanted = (value,) if value in legal or not isinstance(value, tuple) else value
        for each in wanted:
            if each not in legal:
                shown = ", ".join(shown_value(choice) for choice in legal)
                document.refuse(
                    (*path, *name.split(".")), f"is {shown_value(each)}; {key_name((axis,))} has the values {shown}."
                )
        rule[axis] = tuple(wanted)
    return rule


def _flat(raw: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in raw.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def in_running_order(axes: typing.Iterable[Axis]) -> tuple[Axis, ...]:
    """Return axes so that a platform, then a workload, serves as many consecutive runs as can be.

    Those that change the platform come first; schedulers last.
    """

    def rank(axis: Axis) -> int:
        if axis.name == "scheduler":
            return 3
        return 0 if "platform" in axis.sections else 1 if "workload" in axis.sections else 2

    return tuple(sorted(axes, key=rank))


def combinations(axes: Sequence[Axis]) -> Iterator[tuple[int, ...]]:
    """Yield the index of each axis' value for every combination."""
    return itertools.product(*(range(len(axis.values)) for axis in axes))


class VariedSection:
    """One section for every combination of the axes that change it.

    Parameters
    ----------
    document : StudyDocument
    axes : sequence of Axis
        All of the study, in running order.
    files : StudyInputs
    name : {"platform", "workload", "settings"}
    """

    def __init__(self, document: StudyDocument, axes: Sequence[Axis], files: StudyInputs, name: str) -> None:
        self._document, self._all_axes, self._files = document, axes, files
        self.name = name
        self._axes = [k for k, axis in enumerate(axes) if name in axis.sections]
        self._lacking: set[tuple[int, ...]] = set()
        # all, so that all of the file is checked before the first run
        self._made = {key: self._resolve(key) for key in combinations([axes[k] for k in self._axes])}

    def lacks(self, levels: tuple[int, ...]) -> bool:
        """Whether a combination names an optional file that is absent."""
        return tuple(levels[k] for k in self._axes) in self._lacking

    def of(self, levels: tuple[int, ...]) -> SectionText:
        """Return the section for a combination."""
        return self._made[tuple(levels[k] for k in self._axes)]

    def _resolve(self, key: tuple[int, ...]) -> SectionText:
        document = self._document
        values = dict(section_values(document, self.name))
        paths: dict[str, KeyPath] = {name: path_of(document, self.name, name) for name in values}
        for k, level in zip(self._axes, key, strict=True):
            axis = self._all_axes[k]
            for (changed, name), value in axis.changes[level].items():
                if changed == self.name:
                    values[name] = value
                    is_group = axis.name in document.content.group
                    where = (name,) if changed == "settings" else (changed, name)
                    paths[name] = (*axis.paths[level], *where) if is_group else axis.paths[level]
        model = section_model(document, self.name, values)
        default = () if self.name == "settings" else (self.name,)
        section = document.check(model, values, lambda name: paths.get(name, (*default, name)))
        if isinstance(section, Settings):
            self._check_settings(section, paths)
        elif isinstance(section, GeneratedSection) and section.generator in GENERATORS:
            self._check_generated(section)
        files = {
            name: FileReference(**self._files.file(paths[name], getattr(section, name)).reference)
            for name in file_keys(section)
        }
        if any(getattr(section, name) in self._files.absent for name in files):
            self._lacking.add(key)
        return SectionText.of(section.model_copy(update=files))

    def _check_generated(self, section: GeneratedSection) -> None:
        values = section.model_dump(exclude={"generator", "seed"}, exclude_unset=True)
        try:
            GENERATORS[section.generator].model(**values)
        except InputError as error:
            self._document.refuse((self.name,), f"contradicts itself: {error}")

    def _check_settings(self, section: Settings, paths: Mapping[str, KeyPath]) -> None:
        given = {
            name: getattr(section, name)
            for name in paths
            if name not in MEASURE_SETTINGS and getattr(section, name) is not None
        }
        if section.driver == OPTIMIZE:
            for name in without_effect(section):
                self._document.refuse(paths[name], f"has no effect with the driver {OPTIMIZE!r}.")
            given.pop("driver")
        ruled = [name for name in given if name in keys_of(Rules)]
        if ruled and makes_system(self._document):
            drawn = {key for name in _generators(self._document) for key in GENERATORS[name].model.model_fields}
            ruled = [name for name in ruled if name in drawn]  # others no generator sets
        if ruled and makes_system(self._document):
            self._document.refuse(paths[ruled[0]], "belongs into [workload], whose generator sets it.")
        try:
            with_keys(Scenario(None, ""), given)
        except InputError as error:
            key = next((name for name in given if name in str(error)), next(iter(given)))
            self._document.refuse(paths[key], f"is wrong: {error}")
