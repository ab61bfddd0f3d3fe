"""The studies that were run into a store, and copies of the files they read, as it keeps them.

What a study's policies bring is kept as data, so that a study is read without importing them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ValidationError

from gridsched.campaign.readable_inputs import check_readable
from gridsched.campaign.segments import cannot_write
from gridsched.errors import InputError, NotTrusted
from gridsched.files.input_files import check_size
from gridsched.files.output_files import as_text, write_whole
from gridsched.policy.base import Scheduler
from gridsched.renamed import with_new_names
from gridsched.runs.run_spec import RESULTS_VERSION, FileReference
from gridsched.runs.study import Study
from gridsched.runs.study_document import StudyDocument, parse_document
from gridsched.runs.study_inputs import InputFile, file_digest
from gridsched.runs.study_schedulers import CustomDefinitions

#: Larger files are not studies.
_MOST_BYTES = 1 << 26


def _with_new_names(own: object) -> object:
    """Return what a store keeps of policies with the present names of traits and keys."""
    return with_new_names(own, all_names=True)


class _Content(BaseModel):
    """The content of a file."""

    text: str
    path: str
    replicates: int
    inputs: dict[str, FileReference]
    results_version: int
    started_at: str
    own: Annotated[CustomDefinitions | None, BeforeValidator(_with_new_names)]


@dataclass(frozen=True)
class KeptStudy:
    """A study as a store keeps it.

    Attributes
    ----------
    file : Path
    document : StudyDocument
    replicates : int
        With which it was run last.
    inputs : dict of str to InputFile
        The store's copies of the files that it reads, by the name in the study.
    own : CustomDefinitions or None
        What its policies bring.
    started_at : str
    """

    file: Path
    document: StudyDocument
    replicates: int
    inputs: dict[str, InputFile]
    own: CustomDefinitions | None
    started_at: str

    @property
    def name(self) -> str:
        """What the study is called."""
        return self.document.content.name

    @property
    def policies(self) -> list[InputFile]:
        """The store's copies of its Python files."""
        names = self.document.content.policies
        return [self.inputs[name] for name in names if name in self.inputs]

    def study(self, *, trust: bool) -> Study:
        """Return the study.

        Parameters
        ----------
        trust : bool
            Whether its policies may be imported.

        Raises
        ------
        NotTrusted
            If they would have to be: it is not kept what they bring.
        InputError
            If it contradicts itself.
        """
        study = Study(self.document, self.inputs, None if trust else self.own, trust=trust)
        same = study.replicates == self.replicates
        return study if same else study.with_replicates(self.replicates)


def not_trusted(what: str, policies: Iterable[InputFile]) -> NotTrusted:
    """Return the error about Python files of a store that would have to be run."""
    files = ", ".join(str(file.path) for file in policies)
    return NotTrusted(
        f"{what} runs Python that the store holds: {files}. Look at it; --trust, or "
        "Store.open(path, trust=True), then runs it."
    )


def check_programs(what: str, schedulers: Iterable[Scheduler], *, trust: bool) -> None:
    """Refuse schedulers that are other programs, which a file names, unless it is trusted.

    Parameters
    ----------
    what : str
        What has named them.
    schedulers : iterable of Scheduler
    trust : bool

    Raises
    ------
    NotTrusted
        If there is one, and the file is not trusted.
    """
    if not trust and (named := [repr(each) for each in schedulers if each.traits.external]):
        raise NotTrusted(
            f"{what} lets another program decide, which it starts or calls: {', '.join(named)}. Look at it; "
            "--trust, or Store.open(path, trust=True), then does so."
        )


class KeptStudies:
    """The studies in a store's folder.

    Parameters
    ----------
    root : Path
        Of the store.
    """

    def __init__(self, root: Path) -> None:
        self._inputs, self._studies = root / "inputs", root / "studies"

    def add(self, study: Study) -> None:
        """Keep a study, so that it can be read again without its file, and what it reads.

        Raises
        ------
        InputError
            If they cannot be written, a file has changed since the study was read, or it is not what the study takes
            it for: `gridsched.campaign.readable_inputs`.
        """
        new = {name: file for name, file in study.inputs.items() if not self._is_kept(file)}
        check_readable(study, new)
        try:
            for file in new.values():
                self._copy(file)
        except OSError as error:
            raise cannot_write(self._inputs, error) from None
        kept = _Content(
            text=study.document.text,
            path=as_text(study.document.path),
            replicates=study.replicates,
            inputs={name: FileReference(**file.reference) for name, file in study.inputs.items()},
            results_version=RESULTS_VERSION,
            started_at=datetime.now(UTC).isoformat(),
            own=study.own,
        )
        text = f"{kept.model_dump_json(indent=1)}\n"
        write_whole(self._studies / f"{study.name}.json", text, force=True)

    def _is_kept(self, file: InputFile) -> bool:
        """Whether the copy of a file is there, and whole."""
        target = self._place(file.name, file.sha256)
        return target.exists() and file_digest(target) == file.sha256

    def _copy(self, file: InputFile) -> None:
        target = self._place(file.name, file.sha256)
        target.parent.mkdir(exist_ok=True)
        temporary = target.with_name(f".{file.name}.{os.getpid()}.tmp")
        shutil.copyfile(file.path, temporary)
        if file_digest(temporary) != file.sha256:
            temporary.unlink()
            raise InputError(f"{file.path}: has changed since the study was read; retry.")
        os.replace(temporary, target)

    def _place(self, name: str, sha256: str) -> Path:
        return self._inputs / sha256 / name

    def inputs(self) -> dict[str, Path]:
        """Return SHA-256 -> file for the copies of the files that runs read."""
        return {path.parent.name: path for path in self._inputs.glob("*/[!.]*")}

    def read(self) -> tuple[list[KeptStudy], list[str]]:
        """Return the studies, the latest first, and what is damaged, in words."""
        studies, damage = [], []
        copies = self.inputs()
        for path in sorted(self._studies.glob("*.json")):
            try:
                check_size(path, _MOST_BYTES)
                content = _Content.model_validate_json(path.read_bytes())
                studies.append(self._kept(path, content, copies))
            except (OSError, ValidationError) as error:
                reason = " ".join(str(error).split("\n")[1:3] or [str(error)])
                damage.append(f"{path}: is damaged: {' '.join(reason.split())[:200]}")
            except InputError as error:
                damage.append(str(error))
        return sorted(studies, key=lambda each: each.started_at, reverse=True), damage

    def _kept(self, path: Path, content: _Content, copies: dict[str, Path]) -> KeptStudy:
        inputs = {
            name: InputFile(each.name, copies.get(each.sha256, self._place(each.name, each.sha256)), each.sha256)
            for name, each in content.inputs.items()
        }
        return KeptStudy(
            path,
            parse_document(content.text, content.path),
            content.replicates,
            inputs,
            content.own,
            content.started_at,
        )


def damaged_inputs(study: Study) -> list[str]:
    """Return which of the files that a study reads are not what they were, in words."""
    damage = []
    for file in study.inputs.values():
        try:
            file.checked()
        except InputError as error:
            damage.append(str(error))
    return damage
