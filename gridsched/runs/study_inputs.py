"""The files that a study reads, known by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.errors import InputError
from gridsched.files.input_files import check_size

if TYPE_CHECKING:
    from gridsched.runs.study_document import KeyPath, StudyDocument

#: Larger files are not hashed: the largest that is read here has a few gigabytes.
MAX_BYTES = 64 << 30


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    Raises
    ------
    InputError
        If it cannot be read, is too large, or is a folder, device or pipe.
    """
    check_size(path, MAX_BYTES)
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None


def checked_file(path: Path, sha256: str) -> Path:
    """Return a file that is known by its content.

    Raises
    ------
    InputError
        If it cannot be read, or its content is another.
    """
    if file_digest(path) != sha256:
        raise InputError(
            f"{path}: is damaged: its content is not that which runs of the study read. Put the "
            "right file there, or run the study again."
        )
    return path


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
        digest states; a reader checks that by `checked`.

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
            Where the key is in the study file.
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
