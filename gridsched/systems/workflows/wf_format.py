"""WfFormat 1.4 to 1.6, the JSON of WfCommons."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gridsched.errors import InputError
from gridsched.files.input_files import read_text
from gridsched.systems.workflows.recorded_tasks import Recorded, number
from gridsched.systems.workflows.workflow_csv import MOST_CORES

_VERSIONS = ("1.4", "1.5", "1.6")
#: Work of a cycle of a core's clock [flop]: it turns a clock rate into a speed.
_FLOP_A_CYCLE = 1.0
_MHZ = 1e6
_NAMED = re.compile(r'"(?:id|name)"\s*:\s*("(?:[^"\\]|\\.)*")')


def read_wf_format(path: Path, most: int) -> list[Recorded]:
    """Read what is specified, how long it took, and on which machines.

    Raises
    ------
    InputError
        Naming the file, and the task and the line where it is first named.
    """
    text = read_text(path, most)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no readable JSON: {str(error)[:200]}.") from None
    version = _entry(content, "schemaVersion", str, str(path))
    if version not in _VERSIONS:
        raise InputError(f"{path}: WfFormat {version[:20]!r}; the versions {', '.join(_VERSIONS)} are allowed.")
    workflow = _entry(content, "workflow", dict, str(path))
    return (_read_1_4 if version == "1.4" else _read_specified)(path, workflow, _lines(text))


def _lines(text: str) -> dict[str, int]:
    """Return the line in which each name is first."""
    lines: dict[str, int] = {}
    line, at = 1, 0
    for match in _NAMED.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        lines.setdefault(json.loads(match[1], strict=False), line)
    return lines


def _recorded(path: Path, name: str, lines: Mapping[str, int], seconds: object) -> tuple[Recorded, str]:
    """Return a task that took so long, and the begin of messages on what it holds."""
    line = f"{path}, line {lines.get(name, 1)}"
    where = f"{line}: task {name[:80]!r}"
    return Recorded(line, name, number(seconds, where, "runtimeInSeconds")), where


def _read_1_4(path: Path, workflow: Any, lines: Mapping[str, int]) -> list[Recorded]:
    """Read tasks that hold all of themselves; parents are named by names, or by ids."""
    speeds = _speeds(workflow, path)
    entries = _entry(workflow, "tasks", list, str(path))
    names = [_entry(each, "name", str, f"{path}: a task") for each in entries]
    ids = [each.get("id", name) for each, name in zip(entries, names, strict=True)]
    if len(set(names)) < len(names):  # then the ids are the names
        names = [_text(each, f"{path}: an id") for each in ids]
    known = {each: name for each, name in zip(ids, names, strict=True) if isinstance(each, str)}
    known |= {name: name for name in names}
    tasks = []
    for name, each in zip(names, entries, strict=True):
        task, where = _recorded(path, name, lines, _either(each, "runtimeInSeconds", "runtime"))
        task.parents = {known.get(parent, parent): 0.0 for parent in _names(each, "parents", where)}
        _add_machine(task, each, speeds, where)
        for file in _entry(each, "files", list, where, []):
            link, label = (_entry(file, key, str, f"{where}: a file") for key in ("link", "name"))
            if link not in ("input", "output"):
                raise InputError(f"{where}: link of file {label[:80]!r} is {link[:80]!r}; it must be input or output.")
            files = task.reads if link == "input" else task.makes
            if label in files:
                raise InputError(f"{where}: file {label[:80]!r} is {link} twice.")
            files[label] = _size(_either(file, "sizeInBytes", "size"), where, label)
        tasks.append(task)
    return tasks


def _read_specified(path: Path, workflow: Any, lines: Mapping[str, int]) -> list[Recorded]:
    """Read tasks, files and what was executed, which are apart from each other."""
    specification, execution = (_entry(workflow, each, dict, str(path)) for each in ("specification", "execution"))
    speeds = _speeds(execution, path)
    sizes = {
        _entry(each, "id", str, f"{path}: a file"): each.get("sizeInBytes")
        for each in _entry(specification, "files", list, str(path), [])
    }
    executed = {
        _entry(each, "id", str, f"{path}: an executed task"): each
        for each in _entry(execution, "tasks", list, str(path))
    }
    tasks = []
    for each in _entry(specification, "tasks", list, str(path)):
        name = _entry(each, "id", str, f"{path}: a task")
        run = executed.get(name, {})
        task, where = _recorded(path, name, lines, run.get("runtimeInSeconds"))
        task.parents = dict.fromkeys(_names(each, "parents", where), 0.0)
        _add_machine(task, run, speeds, where)
        for key, files in (("inputFiles", task.reads), ("outputFiles", task.makes)):
            for file in _names(each, key, where):
                files[file] = _size(sizes.get(file), where, file)
        tasks.append(task)
    return tasks


def _speeds(owner: Any, path: Path) -> dict[str, float]:
    """Return the speed of a core of each machine that has a clock rate [flop/s]."""
    speeds = {}
    for each in _entry(owner, "machines", list, str(path), []):
        name = _entry(each, "nodeName", str, f"{path}: a machine")
        cpu = _entry(each, "cpu", dict, f"{path}: machine {name[:80]!r}", {})
        rate = _either(cpu, "speedInMHz", "speed")
        if rate is not None:
            where = f"{path}: machine {name[:80]!r}"
            speeds[name] = number(rate, where, "speedInMHz") * _MHZ * _FLOP_A_CYCLE or math.nan
    return speeds


def _add_machine(task: Recorded, entry: Any, speeds: Mapping[str, float], where: str) -> None:
    """Note how many cores a task had, and how fast they are; of several machines the speed must be one."""
    cores = number(_either(entry, "coreCount", "cores", default=1), where, "coreCount", MOST_CORES)
    task.cores = max(1, round(cores))
    single = entry.get("machine")
    names = [single] if isinstance(single, str) else _names(entry, "machines", where)
    if not names and len(speeds) == 1:  # the only machine that there is
        names = list(speeds)
    found = {speeds.get(name, math.nan) for name in names}
    if len(found) == 1:
        task.speed = found.pop()


def _either(entry: Any, *keys: str, default: Any = None) -> Any:
    """Return the value of the first of some keys that an object has."""
    return (
        next((entry[key] for key in keys if entry.get(key) is not None), default)
        if isinstance(entry, dict)
        else default
    )


def _size(value: Any, where: str, file: str) -> float:
    """Return the size of a file [byte]; nan where none is given."""
    return math.nan if value is None else number(value, where, f"size of file {file[:80]!r}")


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{what} must be a text; found {type(value).__name__}.")
    return value


def _names(entry: Any, key: str, where: str) -> list[str]:
    names: Iterable[Any] = _entry(entry, key, list, where, [])
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{where}: {key} must be a list of names.")
    return list(names)


def _entry(content: Any, key: str, kind: type, where: str, default: Any = None) -> Any:
    """Return an entry of an object of JSON, of the type that it must have."""
    value = content.get(key, default) if isinstance(content, dict) else None
    if not isinstance(value, kind):
        words = {"str": "a text", "dict": "an object", "list": "a list"}[kind.__name__]
        raise InputError(f"{where}: {key!r} is required and must be {words}; found {type(value).__name__}.")
    return value
