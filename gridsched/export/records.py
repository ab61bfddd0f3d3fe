"""A trace as files and back, with every digit: what an export needs to be read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.export.platform_json import read_platform
from gridsched.export.utility_files import (
    UTILITY_KINDS,
    classes_values,
    read_functions,
    read_periods,
    utility_columns,
)
from gridsched.files.csv_files import csv_text, read_table
from gridsched.files.json_files import Fields, is_text, read_json
from gridsched.model.platform import Platform
from gridsched.model.tasks import DataFiles, Tasks, make_tasks
from gridsched.model.trace import (
    EXECUTION,
    HOST_CHANGE,
    PERIOD,
    ExecutionEnd,
    TaskState,
    Trace,
)

FORMAT_VERSION = 1


# ---------------------------------------------------------------------- tasks


def tasks_table(trace: Trace) -> str:
    """Return ``tasks.csv``: the tasks in order of their ids, and how each ended."""
    tasks, n = trace.tasks, len(trace.tasks)
    needs = tasks.input_files or ((),) * n
    return csv_text({
        "job_id": tasks.labels,
        "flops": tasks.flops,
        "submission_time": tasks.submit_time_s,
        "input_bytes": tasks.input_bytes,
        "output_bytes": tasks.output_bytes,
        "task_type": [None] * n if tasks.task_type is None else tasks.task_type,
        "input_files": [" ".join(map(str, row)) for row in needs],
        "final_state": [TaskState(state).name.lower() for state in trace.final_state.tolist()],
        "times_postponed": trace.times_postponed,
        **utility_columns(tasks.utility),
    })  # fmt: skip


def _read_tasks(path: Path, fields: Fields) -> tuple[Tasks, dict[str, NDArray[np.int64]]]:
    """Return the tasks, and of each its final state and how often it was postponed."""
    functions = fields.object("utility") if fields.has("utility") else None
    table = read_table(path, {
        "job_id": "integer", "flops": "number", "submission_time": "number",
        "input_bytes": "number", "output_bytes": "number", "task_type": "text",
        "input_files": "text", "final_state": "text",
        **({"times_postponed": "integer"} if fields.has("times_postponed") else {}),
        **(UTILITY_KINDS if functions else {}),
    })  # fmt: skip
    _check_rows(path, len(table["flops"]), fields)
    places = fields.optional("files", fields.objects)
    files = needs = types = None
    if places is not None:
        files = DataFiles(
            tuple(place.text("name") for place in places),
            np.array([place.number("size_bytes") for place in places]),
            tuple(tuple(place.values("locations", is_text, "texts")) for place in places),
        )
    if fields.flag("has_input_files"):
        n_files = len(files) if files else 0
        needs = _whole_numbers(path, "input_files", table["input_files"], n_files)
    if fields.flag("has_task_types"):
        types = [
            row[0] if len(row) == 1 else _refuse_row(path, line, "task_type", row, "one number")
            for line, row in enumerate(
                _whole_numbers(path, "task_type", table["task_type"], 2**31), start=2
            )
        ]
    names = {state.name.lower(): int(state) for state in TaskState}
    for line, state in enumerate(table["final_state"], start=2):
        if state not in names:
            _refuse_row(path, line, "final_state", state, "one of " + ", ".join(names))
    if (np.diff(table["submission_time"]) < 0).any():
        raise InputError(f"{path}: column 'submission_time' must never decrease.")
    postponed = table.get("times_postponed", np.zeros(len(table["flops"]), dtype=np.int64))
    _refuse_first(path, postponed < 0, "times_postponed", postponed, "at least 0")
    tasks = make_tasks(
        table["flops"], table["submission_time"], input_bytes=table["input_bytes"],
        output_bytes=table["output_bytes"], labels=table["job_id"], task_type=types,
        input_files=needs, files=files, name=fields.text("tasks_name"),
        nominal_heterogeneity=fields.optional("nominal_heterogeneity", fields.number),
        utility=read_functions(functions, table) if functions else None,
    )  # fmt: skip
    final_state = np.array([names[state] for state in table["final_state"]], dtype=np.int64)
    return tasks, {"final_state": final_state, "times_postponed": postponed}


def _whole_numbers(path: Path, name: str, cells: list[str], below: int) -> list[tuple[int, ...]]:
    """Read cells of blank-separated whole numbers from 0 to `below` - 1."""
    rows = []
    for line, cell in enumerate(cells, start=2):
        words = cell.split()
        if not all(word.isdecimal() and int(word) < below for word in words):
            _refuse_row(path, line, name, cell, f"whole numbers from 0 to {below - 1}")
        rows.append(tuple(map(int, words)))
    return rows


def _refuse_row(path: Path, line: int, name: str, found: object, need: str) -> NoReturn:
    raise InputError(f"{path}: line {line}: column {name!r} is {found!r}; it must be {need}.")


def _check_rows(path: Path, found: int, fields: Fields) -> None:
    """Raise `InputError` unless the table has as many rows as were written."""
    for entry in fields.objects("tables"):
        if entry.text("file") == path.name and entry.whole("rows") != found:
            raise InputError(
                f"{path}: has {found} rows, but {fields.path.name} says {entry.whole('rows')}; "
                "it was cut off or edited."
            )


# ---------------------------------------------------------------------- what happened


def executions_table(
    trace: Trace, above_idle_j: NDArray[np.float64], with_idle_j: NDArray[np.float64]
) -> str:
    """Return ``executions.csv``: every copy of every task, cancelled ones too."""
    runs = trace.executions
    names = [host.name for host in trace.platform.hosts]
    return csv_text({
        "job_id": trace.tasks.labels[runs["task"]],
        "host_id": runs["host"],
        "host": [names[host] for host in runs["host"].tolist()],
        "pstate": runs["pstate"],
        "starting_time": runs["start"],
        "finish_time": runs["end"],
        "outcome": [ExecutionEnd(end).name.lower() for end in runs["outcome"].tolist()],
        "executed_flops": trace.executed_flops(),
        "consumed_energy": above_idle_j,
        "energy_with_idle": with_idle_j,
    })  # fmt: skip


def _read_executions(path: Path, platform: Platform, tasks: Tasks, fields: Fields) -> NDArray:
    table = read_table(path, {
        "job_id": "integer", "host_id": "integer", "pstate": "integer",
        "starting_time": "number", "finish_time": "number", "outcome": "text",
    })  # fmt: skip
    n = len(table["job_id"])
    _check_rows(path, n, fields)
    by_label = np.argsort(tasks.labels)
    place = np.searchsorted(tasks.labels[by_label], table["job_id"])
    runs = np.zeros(n, dtype=EXECUTION)
    runs["host"], runs["pstate"] = table["host_id"], table["pstate"]
    runs["start"], runs["end"] = table["starting_time"], table["finish_time"]
    known = np.zeros(n, dtype=bool)
    if len(tasks):
        runs["task"] = by_label[place.clip(max=len(tasks) - 1)]
        known = tasks.labels[runs["task"]] == table["job_id"]
    outcomes = {end.name.lower(): int(end) for end in ExecutionEnd}
    legal = np.array([word in outcomes for word in table["outcome"]], dtype=bool)
    _refuse_first(path, ~known, "job_id", table["job_id"], "a job of tasks.csv")
    _refuse_first(path, ~legal, "outcome", table["outcome"], "one of " + ", ".join(outcomes))
    _check_hosts(path, platform, table["host_id"], table["pstate"])
    _refuse_first(path, runs["start"] < 0, "starting_time", runs["start"], "at least 0")
    early = runs["end"] < runs["start"]
    _refuse_first(path, early, "finish_time", runs["end"], "at least starting_time")
    runs["outcome"] = [outcomes[word] for word in table["outcome"]]
    return runs[np.argsort(runs["start"], kind="stable")]


def _refuse_first(path: Path, wrong: NDArray[np.bool_], name: str, values: Any, need: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        found = values[row].item() if isinstance(values, np.ndarray) else values[row]
        _refuse_row(path, row + 2, name, found, need)


def _check_hosts(path: Path, platform: Platform, host: NDArray, pstate: NDArray) -> None:
    wrong = (host < 0) | (host >= len(platform))
    _refuse_first(path, wrong, "host_id", host, f"from 0 to {len(platform) - 1}")
    wrong = (pstate < 0) | (pstate >= platform.n_pstates[host])
    _refuse_first(path, wrong, "pstate", pstate, "a P-state of its host")


def _check_finishes(path: Path, tasks: Tasks, final_state: NDArray, runs: NDArray) -> None:
    """Raise `InputError` unless exactly the finished tasks have one finished execution."""
    finishes = np.bincount(
        runs["task"][runs["outcome"] == ExecutionEnd.FINISHED], minlength=len(tasks)
    )
    wrong = finishes != (final_state == TaskState.FINISHED)
    if wrong.any():
        task = int(np.argmax(wrong))
        raise InputError(
            f"{path}: line {task + 2}: job {tasks.labels[task]} ends as "
            f"{TaskState(final_state[task]).name.lower()!r}, but executions.csv has "
            f"{finishes[task]} finished executions of it."
        )


def host_changes_table(trace: Trace) -> str:
    """Return ``host_changes.csv``: P-state and power switch of every host, and their changes."""
    changes = trace.host_changes
    return csv_text({
        "time": changes["time"], "host_id": changes["host"], "pstate": changes["pstate"],
        "is_on": changes["is_on"],
    })  # fmt: skip


def _read_host_changes(path: Path, platform: Platform, fields: Fields) -> NDArray:
    kinds = {"time": "number", "host_id": "integer", "pstate": "integer", "is_on": "integer"}
    table = read_table(path, kinds)
    _check_rows(path, len(table["time"]), fields)
    _check_hosts(path, platform, table["host_id"], table["pstate"])
    _refuse_first(path, ~np.isin(table["is_on"], (0, 1)), "is_on", table["is_on"], "0 or 1")
    falls = np.append(0.0, table["time"])
    _refuse_first(path, np.diff(falls) < 0, "time", table["time"], "at least the time before")
    changes = np.zeros(len(table["time"]), dtype=HOST_CHANGE)
    for name, column in zip(HOST_CHANGE.names, table.values(), strict=True):
        changes[name] = column
    at_zero = np.unique(changes["host"][changes["time"] == 0])
    if len(at_zero) != len(platform):
        raise InputError(f"{path}: each of the {len(platform)} hosts needs a row at time 0.")
    return changes


def _read_periods(path: Path, fields: Fields) -> NDArray:
    """Return the periods of the budget; none where the run had no budget."""
    if not any(entry.text("file") == path.name for entry in fields.objects("tables")):
        return np.zeros(0, dtype=PERIOD)
    periods = read_periods(path)
    _check_rows(path, len(periods), fields)
    return periods


def trace_values(trace: Trace, workload_name: str) -> dict[str, Any]:
    """Return ``trace.json``: what the tables do not hold, and how long they are."""
    tasks = trace.tasks
    files = tasks.files and [
        {"name": name, "size_bytes": float(size), "locations": list(places)}
        for name, size, places in zip(
            tasks.files.names, tasks.files.size_bytes, tasks.files.locations, strict=True
        )
    ]
    lengths = {"tasks.csv": len(tasks), "executions.csv": len(trace.executions),
               "host_changes.csv": len(trace.host_changes)}  # fmt: skip
    if len(trace.periods):
        lengths["periods.csv"] = len(trace.periods)
    return {
        "format": "gridsched export",
        "format_version": FORMAT_VERSION,
        "workload_name": workload_name,
        "tasks_name": tasks.name,
        "horizon_s": float(trace.horizon_s),
        "mapping_events": int(trace.mapping_events),
        "nominal_heterogeneity": tasks.nominal_heterogeneity,
        "has_task_types": tasks.task_type is not None,
        "has_input_files": tasks.input_files is not None,
        "files": files,
        "times_postponed": True,
        "utility": classes_values(tasks.utility),
        "tables": [{"file": name, "rows": rows} for name, rows in lengths.items()],
    }


def read_trace(directory: Path) -> tuple[Trace, str]:
    """Return the trace and the workload's name from the files of an export.

    Raises
    ------
    InputError
        Naming the file and the line or field at fault.
    """
    path = directory / "trace.json"
    fields = Fields(path, read_json(path))
    version = fields.whole("format_version")
    if fields.text("format") != "gridsched export" or version != FORMAT_VERSION:
        raise InputError(
            f"{path}: is version {version} of {fields.text('format')!r}; this gridsched reads "
            f"version {FORMAT_VERSION} of 'gridsched export'."
        )
    platform = read_platform(directory / "platform.json")
    tasks, ends = _read_tasks(directory / "tasks.csv", fields)
    timing = read_json(directory / "timing.json")
    executions = _read_executions(directory / "executions.csv", platform, tasks, fields)
    _check_finishes(directory / "tasks.csv", tasks, ends["final_state"], executions)
    trace = Trace(
        platform, tasks, executions,
        _read_host_changes(directory / "host_changes.csv", platform, fields),
        ends["final_state"], fields.number("horizon_s"), fields.whole("mapping_events"), timing,
        periods=_read_periods(directory / "periods.csv", fields),
        times_postponed=ends["times_postponed"],
    )  # fmt: skip
    return trace, fields.text("workload_name")
