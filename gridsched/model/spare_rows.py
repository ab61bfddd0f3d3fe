"""Tasks with rows for others that are not known yet, which are written in place when they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.tasks import OF_PARTS, TASK_COLUMNS, Tasks, is_constant, make_tasks

#: Ids that are texts have so many characters at most, unless those of the workload have more.
_LONGEST_ID = 64
#: What a row holds of a column that added tasks are not asked for.
_DEFAULTS = {"deadline_s": np.inf}
#: Parts of tasks of which an added one has none, and what they are.
_WITHOUT = {
    "dependencies": "jobs that wait for others",
    "holds": "jobs that are held back",
    "utility": "utility functions",
    "input_files": "input files",
    "task_type": "task types",
    "profile": "profiles",
    "host_times": "times by host",
    "staged": "files on hosts",
}


class SpareRows:
    """Tasks with spare rows behind them.

    What an added task is like, the others are: all are of one core, or take whole nodes, or share them.

    Parameters
    ----------
    tasks : Tasks
        At least one.
    n_spare : int
        So many may be added.

    Attributes
    ----------
    tasks : Tasks
        With the spare rows, whose submission is infinitely late. Its columns change where they are; nothing may have
        kept copies of those of tasks that are not submitted.
    n_tasks : int
        Tasks without the spare rows.

    Raises
    ------
    InputError
        If the tasks have what added ones cannot have.
    """

    def __init__(self, tasks: Tasks, n_spare: int) -> None:
        for name, what in _WITHOUT.items():
            if getattr(tasks, name) is not None:
                raise InputError(f"{tasks.name}: tasks cannot be added to a workload with {what}.")
        self.n_tasks = n = len(tasks)
        wide = tasks.taken(np.append(np.arange(n), np.zeros(n_spare, dtype=np.int64)))
        #: what can be written to, by name; tasks have the same memory
        self._own: dict[str, NDArray[Any]] = {}
        columns: dict[str, Any] = {name: self._column(name, getattr(wide, name)) for name in TASK_COLUMNS}
        self._own["submit_time_s"][n:] = np.inf
        self._codes = {name: each.codes.copy() for name, each in wide.attributes.items()}
        attributes = {name: replace(each, codes=_shown(self._codes[name])) for name, each in wide.attributes.items()}
        self.tasks = replace(wide, **columns, attributes=attributes)

    def _column(self, name: str, column: NDArray[Any] | None) -> NDArray[Any] | None:
        if column is None or (name in OF_PARTS and is_constant(column)):
            return column
        own = column.copy()
        if column.dtype.kind == "U":
            own = column.astype(f"U{max(_LONGEST_ID, column.dtype.itemsize // 4)}")
        self._own[name] = own
        return _shown(own)

    def one(self, flops: float, submit_time_s: float, label: int | str, **others: Any) -> Tasks:
        """Return one task that may be added, checked.

        Raises
        ------
        InputError
            If a value is out of range, or the task is of another kind than the others.
        """
        tasks, name = self.tasks, "submitted task"
        if "demand" in others:
            others["resources"] = tasks.resources
        one = make_tasks([flops], submit_time_s, labels=[label], name=name, **others)
        for kind, words in (
            ("are_serial", "of one core, without width and demand"),
            ("take_whole_nodes", "of whole nodes, with a width"),
            ("share_nodes", "with a demand"),
        ):
            if getattr(tasks, kind) and not getattr(one, kind):
                raise InputError(f"{name}: the tasks of {tasks.name} are {words}; this one must be so, too.")
        for column in ("requested_time_s", "deadline_s"):
            has, given = getattr(tasks, column) is not None, getattr(one, column) is not None
            if given and not has:
                raise InputError(f"{name}: the tasks of {tasks.name} have no {column}; leave it out.")
            if has and not given and column not in _DEFAULTS:
                raise InputError(f"{name}: the tasks of {tasks.name} have {column}; give it.")
        if (one.labels.dtype.kind == "U") != (tasks.labels.dtype.kind == "U"):
            raise InputError(f"{name}: its id is {label!r}, and those of {tasks.name} are such as {tasks.labels[0]}.")
        if one.labels.dtype.itemsize > tasks.labels.dtype.itemsize:
            raise InputError(f"{name}: its id has {len(str(label))} characters; at most {_LONGEST_ID} are allowed.")
        if (tasks.labels[: self.n_tasks] == one.labels[0]).any():
            raise InputError(f"{name}: {tasks.name} has a task {label} already; choose another id.")
        return one

    def known(self) -> Tasks:
        """Return the tasks as they are now, without spare rows; they do not change any more."""
        return self.tasks.taken(np.arange(self.n_tasks))

    def insert(self, one: Tasks) -> int:
        """Write a task into the rows, behind all that are submitted no later, and return its place.

        Parameters
        ----------
        one : Tasks
            As `one` returned it.
        """
        n = self.n_tasks
        place = int(np.searchsorted(self.tasks.submit_time_s[:n], one.submit_time_s[0], side="right"))
        for name, own in self._own.items():
            given = getattr(one, name)
            own[place + 1 : n + 1] = own[place:n].copy()
            own[place] = _DEFAULTS[name] if given is None else given[0]
        for codes in self._codes.values():
            codes[place + 1 : n + 1] = codes[place:n].copy()
            codes[place] = -1
        self.n_tasks += 1
        return place


def _shown(own: NDArray[Any]) -> NDArray[Any]:
    """Return the same memory, as policies may see it."""
    view = own.view()
    view.setflags(write=False)
    return view
