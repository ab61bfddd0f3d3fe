"""The files of a study are read as what it takes them for before a store, which people publish, copies them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gridsched.errors import InputError
from gridsched.files.input_files import read_text
from gridsched.files.output_files import temporary_folder
from gridsched.long_work import long_work
from gridsched.runs.run_spec import OPTIMIZE, FileReference, RunSpec
from gridsched.runs.scenario_maker import ScenarioMaker, load
from gridsched.runs.study import Study
from gridsched.runs.study_inputs import InputFile
from gridsched.workloads.signal_csv import with_prices_read

#: A file that so many combinations of the study's axes cannot read is none that they read.
_ATTEMPTS = 8


def check_readable(study: Study, files: Mapping[str, InputFile]) -> None:
    """Read each file by a run that names it; one that no run can read is not what the study takes it for.

    Parameters
    ----------
    study : Study
    files : mapping of str to InputFile
        Those to read, by their names in the study.

    Raises
    ------
    InputError
        Naming the first file that cannot be read, and why.
    """
    python = [*study.document.content.policies, study.document.content.claims]
    for name in [each for each in files if each in python]:
        _check_python(study, files[name])
    left = {file.sha256: name for name, file in files.items() if name not in python}
    if not left:
        return
    faults: dict[str, list[str]] = {digest: [] for digest in left}
    with long_work(f"reading the files of the study {study.name!r}"), temporary_folder() as folder:
        maker = ScenarioMaker({file.sha256: file.path for file in study.inputs.values()}, folder)
        for spec in study.sections():
            own = {file.sha256 for _, file in spec.files() if isinstance(file, FileReference)}
            if not any(digest in left and len(faults[digest]) < _ATTEMPTS for digest in own):
                continue
            try:
                _read(maker, spec)
            except InputError as error:
                for digest in own & left.keys():
                    faults[digest].append(str(error))
                continue
            for digest in own & left.keys():
                del left[digest]
            if not left:
                return
    _refuse(study, {name: faults[digest] for digest, name in left.items()})


def _refuse(study: Study, faults: Mapping[str, list[str]]) -> None:
    """Raise the error about files that no run could read; an error names the one that it is about, if it is about one.

    Parameters
    ----------
    study : Study
    faults : mapping of str to list of str
        Name of each -> what was wrong with the runs that name it.
    """
    why = next((each[0] for each in faults.values() if each), "no combination of the axes reads it.")
    named = [name for name in faults if str(study.inputs[name].path) in why] or list(faults)
    raise InputError(
        f"{study.document.path}: no file is copied into the store, because {', '.join(map(repr, named))} cannot be "
        f"read as what the study takes it for: {why}"
    )


def _read(maker: ScenarioMaker, spec: RunSpec) -> None:
    """Read all that a run reads, under a scheduler that needs nothing."""
    if spec.settings.driver == OPTIMIZE:
        with_prices_read(maker.optimization(spec).tariff)
        return
    settings = spec.settings.model_copy(update={"driver": "reference"})  # SimGrid would get a file of each platform
    load(maker.make(spec.model_copy(update={"settings": settings})))


def _check_python(study: Study, file: InputFile) -> None:
    """Refuse a file that is no Python; it is not run."""
    try:
        compile(read_text(file.path), str(file.path), "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{study.document.path}: {Path(file.path)} is not Python: {error}.") from None
