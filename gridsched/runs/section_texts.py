"""What the runs of a study say in one section: platform, workload or settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsched.errors import InputError
from gridsched.files.json_files import canonical_text
from gridsched.model.records import keys_of, with_keys
from gridsched.model.rules import Rules
from gridsched.runs.canonical import checked_file, file_digest
from gridsched.runs.run_spec import (
    MEASURE_SETTINGS,
    OPTIMIZE,
    SYSTEM_GENERATORS,
    DrawnSection,
    FileReference,
    Settings,
    canonical_section,
    file_keys,
    without_effect,
)
from gridsched.runs.settings import RunSettings
from gridsched.runs.study_axes import Axis, combinations, makes_system, path_of, section_model, section_values
from gridsched.runs.study_document import KeyPath, StudyDocument
from gridsched.workloads.generators import GENERATORS


class SectionTexts:
    """The canonical texts of one section for every combination of the axes that change it.

    Parameters
    ----------
    document : StudyDocument
    axes : sequence of Axis
        All of the study, in running order.
    files : StudyInputs
    section : {"platform", "workload", "settings"}
    """

    def __init__(self, document: StudyDocument, axes: Sequence[Axis], files: StudyInputs, section: str) -> None:
        self._document, self._all_axes, self._files = document, axes, files
        self._section = section
        self._axes = [k for k, axis in enumerate(axes) if section in axis.sections]
        self._texts: dict[tuple[int, ...], str] = {}
        self._lacking: set[tuple[int, ...]] = set()

    def lacks(self, levels: tuple[int, ...]) -> bool:
        """Whether a combination names an optional file that is absent."""
        return tuple(levels[k] for k in self._axes) in self._lacking

    def text(self, levels: tuple[int, ...]) -> str:
        """Return the section's text for a combination."""
        key = tuple(levels[k] for k in self._axes)
        if key not in self._texts:
            self._texts[key] = self._resolve(key)
        return self._texts[key]

    def check(self) -> None:
        """Resolve every combination, so that all of the file is checked before the first run."""
        for key in combinations([self._all_axes[k] for k in self._axes]):
            self._texts[key] = self._resolve(key)

    def _resolve(self, key: tuple[int, ...]) -> str:
        document = self._document
        values = dict(section_values(document, self._section))
        paths: dict[str, KeyPath] = {name: path_of(document, self._section, name) for name in values}
        for k, level in zip(self._axes, key, strict=True):
            axis = self._all_axes[k]
            for (changed, name), value in axis.changes[level].items():
                if changed == self._section:
                    values[name] = value
                    is_group = axis.name in document.content.group
                    where = (name,) if changed == "settings" else (changed, name)
                    paths[name] = (*axis.paths[level], *where) if is_group else axis.paths[level]
        model = section_model(document, self._section, values)
        default = () if self._section == "settings" else (self._section,)
        section = document.check(model, values, lambda name: paths.get(name, (*default, name)))
        if isinstance(section, Settings):
            self._check_settings(section, paths)
        elif isinstance(section, DrawnSection) and section.generator in SYSTEM_GENERATORS:
            self._check_system(section)
        files = {
            name: FileReference(**self._files.file(paths[name], getattr(section, name)).reference)
            for name in file_keys(section)
        }
        if any(getattr(section, name) in self._files.absent for name in files):
            self._lacking.add(key)
        return canonical_text(canonical_section(section.model_copy(update=files)))

    def _check_system(self, section: DrawnSection) -> None:
        values = section.model_dump(exclude={"generator", "seed"}, exclude_unset=True)
        try:
            GENERATORS[section.generator].model(**values)
        except InputError as error:
            self._document.refuse((self._section,), f"contradicts itself: {error}")

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
            self._document.refuse(paths[ruled[0]], "belongs into [workload], whose generator sets it.")
        try:
            with_keys(RunSettings(), given)
        except InputError as error:
            key = next((name for name in given if name in str(error)), next(iter(given)))
            self._document.refuse(paths[key], f"is wrong: {error}")


@dataclass(frozen=True)
class InputFile:
    """A file that a study reads: its name, where it lies, and the SHA-256 of its content."""

    name: str
    path: Path
    sha256: str

    @property
    def reference(self) -> dict[str, str]:
        """How a scenario names it."""
        return {"name": self.name, "sha256": self.sha256}

    def checked(self) -> Path:
        """Return where it lies.

        Raises
        ------
        InputError
            If it cannot be read, or its content is another.
        """
        return checked_file(self.path, self.sha256)


class StudyInputs:
    """Finds the files of a study and reads each once.

    Parameters
    ----------
    document : StudyDocument
    given : mapping, optional
        The files, if they do not lie beside the study: those of a store. They are what their
        digest says; whoever reads one checks that by `checked`.

    Attributes
    ----------
    files : dict of str to InputFile
        Those that were found, by the name in the study file.
    absent : dict of str to str
        `Content.optional` files that are not there, and what that means, in words.
    """

    def __init__(self, document: StudyDocument, given: Mapping[str, InputFile] | None) -> None:
        self._document, self._given = document, given
        self.files: dict[str, InputFile] = {}
        self.absent: dict[str, str] = {}

    def file(self, path: KeyPath, name: Any) -> InputFile:
        """Return the file that a key names; an optional one that is absent has no digest.

        Parameters
        ----------
        path : tuple
            Where the key stands in the study file.
        name : str

        Raises
        ------
        InputError
            If it cannot be read.
        """
        if not isinstance(name, str):
            self._document.refuse(path, "must be the name of a file.")
        if self._given is not None and name in self._given:
            self.files[name] = self._given[name]
        if name in self.files:
            return self.files[name]
        if self._given is not None and name not in self._document.content.optional:
            self._document.refuse(path, f"is {name!r}, of which the store holds no copy.")
        where = self._place(name)
        if where is None:
            self.absent[name] = (
                f"{self._document.path}: {name} is neither beside it nor in the working folder; "
                "the runs that need it are left out."
            )
            return InputFile(Path(name).name, Path(name), "")
        try:
            self.files[name] = InputFile(Path(name).name, where, file_digest(where))
        except InputError as error:
            self._document.refuse(path, f"is {name!r}: {error}")
        return self.files[name]

    def _place(self, name: str) -> Path | None:
        """Return where a file should lie; None for an optional one that is nowhere."""
        studies = [each for each in (self._document.path, self._document.parent) if each]
        near = [Path(study).resolve().parent / name for study in studies]
        beside = next((place for place in near if place.exists()), near[0])
        if name not in self._document.content.optional:
            return beside
        # what a store does not hold was absent when its study was run
        places = [] if self._given is not None else [beside, Path(name)]
        return next((place for place in places if place.exists()), None)
