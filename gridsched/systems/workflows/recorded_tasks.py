"""Tasks as others recorded or described them, of whatever format, and the workflow that they make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from gridsched.errors import InputError, counted
from gridsched.model.limits import LARGEST, MAX_NAME
from gridsched.systems.workflows.workflow_csv import Workflow, ordered

#: Tasks that took no time that was measured take so long [s], at this speed where none is known [flop/s].
SHORTEST_S, _SOME_SPEED = 1e-6, 1e9
#: Of more files that several tasks make one line reports all.
MOST_LINES = 5
#: What becomes of a task that ran on several cores: it has one core that does the work of all of them or takes as long
#: as it did, it has as many cores, or it is refused.
SeveralCores = Literal["work", "time", "parallel", "refuse"]


@dataclass
class Recorded:
    """A task as it was recorded or described.

    Attributes
    ----------
    where : str
        Begin of messages on it: the file, and its line.
    name : str
    time_s : float
        Run time [s]; nan where its work is described.
    flops : float
        Its work [flop]; nan where its time was measured.
    speed : float
        Of a core of the machine on which it ran [flop/s]; nan where that is not known.
    cores : int
        On so many cores.
    parents : dict of str to float
        Tasks that it waits for, and data that each makes for it alone [byte].
    reads, makes : dict of str to float
        Files and their sizes [byte]; nan where none is given.
    """

    where: str
    name: str
    time_s: float = math.nan
    flops: float = math.nan
    speed: float = math.nan
    cores: int = 1
    parents: dict[str, float] = field(default_factory=dict)
    reads: dict[str, float] = field(default_factory=dict)
    makes: dict[str, float] = field(default_factory=dict)


def number(value: object, where: str, what: str, most: float = LARGEST) -> float:
    """Return a number >= 0 that a file gives as one or as a text.

    Parameters
    ----------
    value : object
        What the file gives.
    where, what : str
        Its place, and what it is; for messages.
    most : float
        Greater ones are refused.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        found = math.nan
    if not 0 <= found <= most:
        shown = str(value)[:80]
        raise InputError(f"{where}: {what} is {shown!r}; it must be a number >= 0, at most {most:g}.")
    return found


def joined(
    tasks: Sequence[Recorded],
    reference_speed: float | None,
    inputs_from: str | None,
    notes: Sequence[str] = (),
    several_cores: SeveralCores = "work",
) -> Workflow:
    """Return tasks with edges for the files that one makes and another reads, and for other parents.

    A file that several make goes from those that the reader names as parents. A size that is not given is that of
    another use of the file; if there is none, it is 0.

    Parameters
    ----------
    tasks : sequence of Recorded
    reference_speed : float or None
        Of the machines on which times were measured [flop/s]; None: each task's own.
    inputs_from : str or None
        Host from which files are sent that no task makes; None: they are not.
    notes : sequence of str
        What the reader has to report.
    several_cores : {"work", "time", "parallel", "refuse"}
        What becomes of tasks that ran on several cores.

    Raises
    ------
    InputError
        Naming the task and its place.
    """
    named: dict[str, Recorded] = {}
    unknown = _fill_sizes(tasks)
    makers: dict[str, dict[str, int]] = {}
    for task in tasks:
        _check_name(task.where, "task", task.name)
        if task.name in named:
            raise InputError(f"{task.where}: there is a task {task.name!r} already.")
        named[task.name] = task
        for file in task.makes:
            _check_name(task.where, "file", file)
            made_by = makers.setdefault(file, {})
            made_by[task.name] = len(made_by)
    edges: list[tuple[str, str, float, str]] = []
    staged: dict[str, float] = {}
    for task in named.values():
        for parent in task.parents:
            if parent not in named:
                raise InputError(
                    f"{task.where}: task {task.name!r} waits for {parent!r}, which is not a task of the file."
                )
            if parent == task.name:
                raise InputError(f"{task.where}: task {task.name!r} waits for itself.")
        with_files = set()
        for file, size in task.reads.items():
            if file not in makers:
                _check_name(task.where, "file", file)
                _stage(staged, task, file, size)
                edges += [(task.name, "", size, file)] * (inputs_from is not None)
            for other in _makers_for(task, file, makers.get(file, {})):
                with_files.add(other)
                edges.append((task.name, other, named[other].makes[file], file))
        edges += [(task.name, each, own, "") for each, own in task.parents.items() if own or each not in with_files]
    _refuse_cycle(named, edges)
    flops = [_work(task, reference_speed, several_cores) for task in named.values()]
    said = [*notes, *unknown, *_work_notes(tasks, reference_speed, several_cores), *_staged_notes(staged, inputs_from)]
    said += _maker_notes(makers)
    columns: dict[str, Sequence[Any]] = {"id": list(named), "flops": flops}
    if several_cores == "parallel" and any(task.cores > 1 for task in tasks):
        columns["cores"] = [task.cores for task in named.values()]
    return Workflow(columns, edges, said, inputs_from if staged else None)


def _fill_sizes(tasks: Sequence[Recorded]) -> list[str]:
    """Give each file without a size that of its other uses, or none at all; return what is to be reported of it."""
    uses = [(task, files) for task in tasks for files in (task.makes, task.reads)]
    known: dict[str, float] = {}
    for _, files in uses:
        known |= {file: size for file, size in files.items() if not math.isnan(size) and file not in known}
    without: dict[str, str] = {}
    for task, files in uses:
        for file in [file for file, size in files.items() if math.isnan(size)]:
            files[file] = known.get(file, 0.0)
            if file not in known:
                without.setdefault(file, task.name)
    if not without:
        return []
    first, task_name = next(iter(without.items()))
    have = "has" if len(without) == 1 else "have"
    return [f"{counted(len(without), 'file')} {have} no size and 0 bytes, {first!r} of task {task_name!r} the first"]


def _maker_notes(makers: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return what becomes of files that several tasks make, in words: one line each for a few, else one for all."""
    several = [file for file, made_by in makers.items() if len(made_by) > 1]
    if len(several) > MOST_LINES:
        first, most = several[0], max(len(makers[file]) for file in several)
        return [
            f"{len(several):,} files are made by several tasks, up to {most:,}, {first!r} the first: a reader gets "
            "each only from its parents"
        ]
    return [
        f"file {file!r} is made by {len(makers[file])} tasks: a reader gets it only from its parents"
        for file in several
    ]


def _check_name(where: str, what: str, name: str) -> None:
    """Refuse names that a table would not give back."""
    if not name or len(name) > MAX_NAME or name.startswith("#") or name != name.strip() or not name.isprintable():
        raise InputError(
            f"{where}: {name[:80]!r} is not a name of a {what}; it must have 1 to {MAX_NAME:,} printed characters, "
            "without blanks around it or a '#' before it."
        )


def _stage(staged: dict[str, float], task: Recorded, file: str, size: float) -> None:
    """Note a file that no task makes; refuse it if it has two sizes."""
    if staged.setdefault(file, size) != size:
        raise InputError(
            f"{task.where}: task {task.name!r} reads {size:g} bytes of file {file!r}, and another "
            f"reads {staged[file]:g}; a file that no task makes must have one size."
        )


def _makers_for(task: Recorded, file: str, made_by: Mapping[str, int]) -> list[str]:
    """Return from whom a task has a file: of several that make it, its parents, in the order of `made_by`.

    Only its own parents are looked at: many tasks may read what many make.
    """
    if len(made_by) < 2:
        return [each for each in made_by if each != task.name]
    parents = sorted((each for each in task.parents if each in made_by and each != task.name), key=made_by.__getitem__)
    if not parents and task.name not in made_by:
        first, second = islice(made_by, 2)
        raise InputError(
            f"{task.where}: task {task.name!r} reads file {file!r}, which {first!r} and {second!r} make, and "
            "names none of its makers as a parent."
        )
    return parents


def _refuse_cycle(named: dict[str, Recorded], edges: Sequence[tuple[str, str, float, str]]) -> None:
    """Refuse tasks that wait for each other, by one of them."""
    place = {name: k for k, name in enumerate(named)}
    pairs = [(place[task], place[on]) for task, on, *_ in edges if on]
    _, k = ordered([one for one, _ in pairs], [other for _, other in pairs], [0.0] * len(named))
    if k is not None:
        names = list(named)
        task, on = (names[each] for each in pairs[k])
        raise InputError(f"{named[task].where}: task {task!r} waits for {on!r}, which waits for it: a cycle.")


def _speed(task: Recorded, reference_speed: float | None) -> float:
    """Return the speed by which a run time is work [flop/s]."""
    return task.speed if reference_speed is None else reference_speed


def _work(task: Recorded, reference_speed: float | None, several_cores: SeveralCores) -> float:
    """Return the work of a task [flop]."""
    if several_cores == "refuse" and task.cores > 1:
        raise InputError(
            f"{task.where}: task {task.name!r} ran on {task.cores} cores. --several-cores parallel gives it as many, "
            "--several-cores work puts the work of all on one, --several-cores time keeps the run time on one."
        )
    speed = _speed(task, reference_speed)
    if math.isnan(task.time_s):
        return task.flops or SHORTEST_S * (_SOME_SPEED if math.isnan(speed) else speed)
    if math.isnan(speed):
        raise InputError(
            f"{task.where}: the file has no single clock rate for the machines of task {task.name!r}; give "
            "--reference-speed, the speed of a core in flop/s, for all tasks."
        )
    work = max(task.time_s, SHORTEST_S) * speed * (task.cores if several_cores == "work" else 1)
    if work > LARGEST:
        raise InputError(f"{task.where}: task {task.name!r} has {work:g} flop; at most {LARGEST:g} are allowed.")
    return work


def _work_notes(tasks: Sequence[Recorded], reference_speed: float | None, several_cores: SeveralCores) -> list[str]:
    """Return how work was found, in words."""
    notes = []
    timed = [task for task in tasks if not math.isnan(task.time_s)]
    speeds = {_speed(task, reference_speed) for task in timed}
    speeds = {speed for speed in speeds if not math.isnan(speed)}
    if reference_speed is not None and timed:
        notes.append(f"work is run time times --reference-speed, {reference_speed:g} flop/s")
    elif speeds:
        most = f" to {max(speeds):g}" * (len(speeds) > 1)
        notes.append(
            f"work is run time times the clock rate of the task's machine, {min(speeds):g}{most} flop/s: one flop a "
            "cycle (--reference-speed sets another speed)"
        )
    if several := sum(task.cores > 1 for task in timed):
        widest = max(task.cores for task in timed)
        becomes = {
            "work": "one core gets the work of all (--several-cores time keeps the run time)",
            "time": "one core takes the run time, and the power of one core counts",
            "parallel": "they take as many cores of one host",
        }
        notes.append(f"{counted(several, 'task')} ran on several cores, at most {widest}: {becomes[several_cores]}")
    if short := sum(not (task.time_s >= SHORTEST_S or task.flops > 0) for task in tasks):
        notes.append(f"{counted(short, 'task without run time takes', 'tasks without run time take')} {SHORTEST_S:g} s")
    return notes


def _staged_notes(staged: dict[str, float], inputs_from: str | None) -> list[str]:
    """Return what becomes of files that no task makes, in words."""
    if not staged:
        return [] if inputs_from is None else [f"tasks make all files, so {inputs_from} sends nothing"]
    what = f"{counted(len(staged), 'file')} that no task makes, {sum(staged.values()):,.0f} bytes,"
    are = "is" if len(staged) == 1 else "are"
    if inputs_from is None:
        return [f"{what} {are} not sent; --inputs-from HOST names a host that sends them"]
    return [f"{what} {are} sent from {inputs_from}"]
