"""Open a workload by its name: a CSV of tasks or the TOML of a generator."""

from __future__ import annotations

from pathlib import Path

from gridsched.errors import InputError
from gridsched.files.foreign_files import foreign_file
from gridsched.files.input_files import parse_toml, read_text
from gridsched.model.task_types import SystemWorkload
from gridsched.model.tasks import Tasks
from gridsched.workloads.bag import read_bag
from gridsched.workloads.generator_keys import GeneratorKeys
from gridsched.workloads.generators import SystemGenerator, checked_parameters, generator_of
from gridsched.workloads.traces.formats import endings, is_trace
from gridsched.workloads.traces.log_lines import numbered_lines
from gridsched.workloads.traces.sacct_rows import JOB


def read_workload(path: str | Path, *, files: str | Path | None = None) -> Tasks:
    """Read or generate a workload.

    Parameters
    ----------
    path : path
        ``.csv``: a bag of tasks; ``.toml``: parameters of a generator.
    files : path, optional
        Input files of the tasks (CSV workloads only).

    Raises
    ------
    InputError
        If the file cannot be read or its kind is unknown.
    """
    check_kind(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".toml":
        if files is not None:
            raise InputError(f"{path}: --files goes with a CSV workload, not with a generator.")
        parameters = read_generator(path)
        generator = generator_of(parameters)
        if isinstance(generator, SystemGenerator):
            raise InputError(
                f"{path}: kind {parameters.kind!r} brings its machines too: it makes its own "
                "system, so leave out --platform; in Python, use 'read_system_workload'."
            )
        return generator.generate(parameters)
    if suffix == ".csv":
        return read_bag(path, files=files)
    raise InputError(
        f"{path}: a trace of parallel jobs, which this command does not take; 'gridsched "
        "workload import' makes tasks of its serial ones."
    )


def check_kind(path: str | Path) -> None:
    """Refuse a file that is not a workload by its name and content.

    Raises
    ------
    InputError
        Saying what the file is where its content is known.
    """
    suffix = Path(path).suffix.lower()
    if is_trace(path) or suffix == ".toml":
        return
    said = foreign_file(path)
    if suffix == ".csv":
        names = next(numbered_lines(Path(path)), (1, ""))[1].split(",")
        if set(JOB).intersection(names) and "Submit" in names:
            said = "is sacct's output with commas between columns; as 'sacct -P' prints it, with |, it is read."
    elif said is None:
        said = f"a workload is a .csv (tasks), a .toml (generator) or a trace ({endings()})."
    if said is not None:
        raise InputError(f"{path}: {said}")


def read_system_workload(path: str | Path) -> SystemWorkload | None:
    """Read or generate a workload that brings its system.

    Parameters
    ----------
    path : path
        ``.toml`` with a kind that makes its machines (``utility``).

    Returns
    -------
    SystemWorkload or None
        None where the file is of another kind, which `read_workload` reads.

    Raises
    ------
    InputError
        If the file cannot be read or is wrong.
    """
    if Path(path).suffix.lower() != ".toml":
        return None
    parameters = read_generator(path)
    generator = generator_of(parameters)
    return generator.generate(parameters) if isinstance(generator, SystemGenerator) else None


def read_generator(path: str | Path) -> GeneratorKeys:
    """Read the parameters of a generator from TOML; paths in it are relative to the file.

    Raises
    ------
    InputError
        Naming the file and the key that is wrong.
    """
    content = parse_toml(read_text(path), str(path))
    return checked_parameters(content, str(path), folder=Path(path).parent)


def input_files(path: str | Path) -> list[Path]:
    """Return the files that a workload is read from: its own and those that a generator names."""
    own = [Path(path)]
    if Path(path).suffix.lower() != ".toml":
        return own
    parameters = read_generator(path)
    return own + generator_of(parameters).input_files(parameters)
