"""The studies that were run into a store, as it keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from gridsched.errors import InputError
from gridsched.files.input_files import check_size
from gridsched.files.output_files import write_whole
from gridsched.spec.canonical import RESULTS_VERSION
from gridsched.spec.study import Study
from gridsched.spec.study_document import parse_document

#: Larger files are no studies.
_MOST_BYTES = 1 << 26


class _Reference(BaseModel):
    """How a kept study names a file that it reads."""

    name: str
    sha256: str


class _Kept(BaseModel):
    """The content of a file."""

    text: str
    path: str
    replicates: int
    inputs: dict[str, _Reference]
    results_version: int | str
    started_at: str


def keep_study(folder: Path, study: Study) -> None:
    """Write what a study says, so that it can be read again without its file.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    kept = _Kept(
        text=study.document.text,
        path=study.document.path,
        replicates=study.replicates,
        inputs={name: _Reference(**file.reference) for name, file in study.inputs.items()},
        results_version=RESULTS_VERSION,
        started_at=datetime.now(UTC).isoformat(),
    )
    write_whole(folder / f"{study.name}.json", f"{kept.model_dump_json(indent=1)}\n", force=True)


def kept_studies(
    folder: Path, files: Mapping[str, Path], missing: Path
) -> tuple[list[Study], list[str]]:
    """Return the studies, the latest first, and what is damaged, in words.

    Parameters
    ----------
    folder : Path
    files : mapping
        SHA-256 -> copy of a file that a study reads.
    missing : Path
        Folder where copies that are not there would lie.

    Raises
    ------
    InputError
        If a study that is whole contradicts itself.
    """
    kept, damage = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            check_size(path, _MOST_BYTES)
            kept.append(_Kept.model_validate_json(path.read_bytes()))
        except (OSError, ValidationError) as error:
            reason = " ".join(str(error).split("\n")[1:3] or [str(error)])
            damage.append(f"{path}: is damaged: {' '.join(reason.split())[:200]}")
        except InputError as error:
            damage.append(str(error))
    found = []
    for each in sorted(kept, key=lambda each: each.started_at, reverse=True):
        paths = {
            name: files.get(reference.sha256, missing / reference.sha256)
            for name, reference in each.inputs.items()
        }
        study = Study(parse_document(each.text, each.path), paths)
        same = study.replicates == each.replicates
        found.append(study if same else study.with_replicates(each.replicates))
    return found, damage
