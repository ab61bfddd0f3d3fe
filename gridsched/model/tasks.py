"""What is computed: tasks as a struct of arrays, and the input files they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Booleans, Floats, Integers, Labels
from gridsched.errors import InputError, counted
from gridsched.model.arrived_columns import ArrivedColumns
from gridsched.model.attributes import Attribute
from gridsched.model.data_files import DataFiles
from gridsched.model.dependencies import Dependencies
from gridsched.model.holds import Holds
from gridsched.model.job_profiles import Profile, check_profiles
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.utility import UtilityFunctions

if TYPE_CHECKING:
    from gridsched.model.host_times import HostTimes
    from gridsched.model.staged_files import StagedFiles

#: No task is wider.
MOST_NODES = 10**9
#: No node has more of a resource: 8 P (2**50), and a number that floats hold exactly.
MOST_AMOUNT = 2**53
#: All parts of a job together take no more of a resource.
MOST_IN_ALL = 2**62
#: Resources of nodes: cores are the first column of every demand but that of parts that take all of
#: their node. Of whole nodes each host has one; no file can name a resource so.
CORES, MEMORY, WHOLE_NODE = "cores", "memory_mb", "whole node"

#: Arrays of `Tasks` with an entry for each task.
TASK_COLUMNS = (
    "flops",
    "submit_time_s",
    "input_bytes",
    "output_bytes",
    "labels",
    "task_type",
    "deadline_s",
    "width",
    "requested_time_s",
    "demand",
    "anywhere",
    "partition",
    "profile",
)


#: Those of them that are constants unless more is asked for than one core, or whole nodes.
OF_PARTS = ("width", "demand", "anywhere", "partition")


class Parts(NamedTuple):
    """What parts of tasks take of nodes, as `Tasks` has it, in contiguous arrays, as kernels take them."""

    demand: Integers
    anywhere: Booleans
    partition: Integers
    width: Integers


def constant(value: int | bool, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a column of one value for all tasks, which takes no memory."""
    return np.broadcast_to(np.bool_(value) if isinstance(value, bool) else np.int64(value), shape)


def is_constant(column: NDArray[Any]) -> bool:
    """Whether a column is one value for all tasks, as `constant` makes it."""
    return column.strides[0] == 0


@lru_cache(maxsize=None, typed=True)  # 0 and False are two
def _filled(value: int | bool, room: int) -> NDArray[Any]:
    array: NDArray[Any] = np.full(room, value)
    array.setflags(write=False)
    return array


def _contiguous(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column as a contiguous array; of all lengths up to the next power of two a constant is one array."""
    if not is_constant(column) or not len(column):
        return np.ascontiguousarray(column)
    filled = _filled(column.item(0), 1 << len(column).bit_length())[: len(column)]
    return filled if column.ndim == 1 else filled.reshape(column.shape)


@dataclass(frozen=True)
class Tasks:
    """Tasks in order of submission; a task's id is its position.

    Attributes
    ----------
    flops : ndarray of float64, shape (tasks,)
        Work of each task [flop]; of a parallel one on each of its nodes.
    submit_time_s : ndarray of float64, shape (tasks,)
        Submission times [s], never decreasing.
    input_bytes, output_bytes : ndarray of float64, shape (tasks,)
        Sizes of the task's input and result [byte]; 0 means that no network is used.
    width : ndarray of int64, shape (tasks,)
        Into how many equal parts each task falls, all of which it takes at once.
    demand : ndarray of int64, shape (tasks, resources)
        What each part takes of its host: of its cores, which come first, and of what else
        `resources` names; or one `WHOLE_NODE`.
    anywhere : ndarray of bool, shape (tasks,)
        Whether parts may lie on one host; else each has a host of its own.
    partition : ndarray of int64, shape (tasks,)
        The one of `Platform.pools` that each task is submitted to.
    resources : tuple of str
        Names of the columns of `demand`.
    task_type : ndarray of int64, shape (tasks,), or None
        Row of the ETC matrix, where the workload has task types.
    deadline_s : ndarray of float64, shape (tasks,), or None
        When each task should have finished [s], on the clock of the run; inf where a task has
        no deadline, None where none has one. A finish at the deadline is in time.
    requested_time_s : ndarray of float64, shape (tasks,), or None
        The run time that was asked for [s], on the fastest host in P-state 0. Where it is given,
        it is all that is known of a task's length: estimates use it (`RequestedTimes`).
    utility : UtilityFunctions or None
        Value of finishing each task, if the workload has it.
    attributes : mapping of str to Attribute
        Other attributes of a log's jobs, by name: ``user``, ``partition``, ``qos``, ...
    dependencies : Dependencies or None
        Which tasks wait for which others; a policy sees those of the tasks that were submitted.
    holds : Holds or None
        Times before which tasks do not start, and limits of arrays; no policy sees them.
    input_files : tuple of tuple of int, or None
        Indices into `files` that each task needs.
    files : DataFiles or None
    profile : ndarray of int64, shape (tasks,), or None
        Which of `profiles` each task has, -1 for those that just compute `flops` on each part.
    profiles : tuple of Profile
        What parts of tasks compute and send to each other.
    labels : ndarray of int64 or of str, shape (tasks,)
        The ids of the workload file; shown to people, never used for decisions. They are texts where any is
        no whole number.
    nominal_heterogeneity : float or None
        The spread requested from the generator (algorithms A6.2), if the workload has it.
    host_times : HostTimes or None
        Time of each on each host, instead of flops over speed.
    staged : StagedFiles or None
        Files that lie on a host from the start, and which tasks read them.
    are_serial : bool
        Whether every task is declared as one part of one core.
    name : str
        Where the tasks come from.
    """

    flops: Floats
    submit_time_s: Floats
    input_bytes: Floats
    output_bytes: Floats
    labels: Labels
    width: Integers
    demand: Integers
    anywhere: Booleans
    partition: Integers
    resources: tuple[str, ...]
    task_type: Integers | None = None
    deadline_s: Floats | None = None
    requested_time_s: Floats | None = None
    utility: UtilityFunctions | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    dependencies: Dependencies | None = None
    holds: Holds | None = None
    input_files: tuple[tuple[int, ...], ...] | None = None
    files: DataFiles | None = None
    profile: Integers | None = None
    profiles: tuple[Profile, ...] = ()
    nominal_heterogeneity: float | None = None
    host_times: HostTimes | None = None
    staged: StagedFiles | None = None
    are_serial: bool = True
    name: str = field(default="tasks", compare=False)

    def __len__(self) -> int:
        return len(self.flops)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: of a constant column its value and shape."""
        own = vars(self)
        same = {name: own[name] for name in OF_PARTS if len(self) and is_constant(own[name])}
        return own | {name: (each.flat[0].item(), each.shape) for name, each in same.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = {name: constant(*state[name]) for name in OF_PARTS if isinstance(state[name], tuple)}
        vars(self).update(state | packed)

    @property
    def take_whole_nodes(self) -> bool:
        """Whether each part of a task takes all of its node."""
        return self.resources[0] == WHOLE_NODE

    @property
    def share_nodes(self) -> bool:
        """Whether parts are declared to take some of a host, beside others."""
        return not (self.are_serial or self.take_whole_nodes)

    @property
    def size(self) -> Integers:
        """Cores that each task takes in all, or whole nodes, shape (tasks,)."""
        return self.width if is_constant(self.demand) else self.width * self.demand[:, 0]

    @property
    def are_one_bag(self) -> bool:
        """Whether all are submitted at one time, and none is held back."""
        times = self.submit_time_s
        return not self.may_be_held and (not len(self) or bool(times[0] == times[-1]))

    @property
    def may_be_held(self) -> bool:
        """Whether any task waits for others, for a time or for its turn in an array."""
        return self.dependencies is not None or self.holds is not None

    @property
    def parts(self) -> Parts:
        """What parts of tasks take, and where."""
        return Parts(*map(_contiguous, (self.demand, self.anywhere, self.partition, self.width)))

    def taken(self, ids: Integers) -> Tasks:
        """Return some of the tasks, numbered again."""
        columns: dict[str, Any] = {
            name: column[ids] for name in TASK_COLUMNS if (column := getattr(self, name)) is not None
        }
        columns |= {
            name: np.broadcast_to(column[:1], (len(ids), *column.shape[1:]))
            for name in OF_PARTS
            if len(self) and is_constant(column := getattr(self, name))
        }
        if self.input_files is not None:
            columns["input_files"] = tuple(self.input_files[task] for task in ids.tolist())
        if self.utility is not None:
            columns["utility"] = self.utility.taken(ids)
        columns["attributes"] = {name: each.taken(ids) for name, each in self.attributes.items()}
        columns["dependencies"] = None  # of the numbers before
        columns["holds"] = None if self.holds is None else self.holds.taken(ids)
        columns["staged"] = None  # likewise
        columns["host_times"] = None if self.host_times is None else self.host_times.taken(ids)
        return replace(self, **columns)

    @property
    def has_bytes(self) -> bool:
        """Whether any task sends input or output over a network."""
        return bool(self.input_bytes.any() or self.output_bytes.any())

    @property
    def send_data(self) -> bool:
        """Whether any task makes data for another, or reads what lies on a host: these cross the network."""
        sizes = (each.size_bytes for each in (self.dependencies, self.staged) if each is not None)
        return any(bool(each.any()) for each in sizes)

    @property
    def lie_on_one_host(self) -> bool:
        """Whether every task is one part, of one core or more, of one host."""
        return not self.take_whole_nodes and bool((self.width == 1).all())

    @property
    def are_workflow(self) -> bool:
        """Whether tasks wait for each other, each on one host: of one core, or of several where data are sent."""
        on_one_host = self.are_serial or (self.send_data and self.lie_on_one_host)
        return self.dependencies is not None and on_one_host

    @property
    def have_profiles(self) -> bool:
        """Whether any task has a profile."""
        return self.profile is not None and bool((self.profile >= 0).any())

    @property
    def heterogeneity(self) -> float:
        """Heterogeneity of the sizes in [0, 1] (algorithms A6.2).

        The nominal value if the workload has it, else ``(max w - min w) / mean w``,
        clamped to [0, 1].
        """
        if self.nominal_heterogeneity is not None:
            return self.nominal_heterogeneity
        if not len(self):
            return 0.0
        spread = (self.flops.max() - self.flops.min()) / self.flops.mean()
        return float(min(max(spread, 0.0), 1.0))


class ArrivedTasks:
    """The tasks of a run as far as they have arrived.

    Parameters
    ----------
    tasks : Tasks
        All of them.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._columns = ArrivedColumns(**{name: getattr(tasks, name) for name in TASK_COLUMNS})
        self._dependencies = None if tasks.dependencies is None else tasks.dependencies.by_task()
        utility = tasks.utility
        self._worth = None if utility is None else ArrivedColumns(**utility.columns)
        self._codes = ArrivedColumns(**{name: each.codes for name, each in tasks.attributes.items()})
        self._parts: ArrivedColumns | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def parts(self, count: int) -> Parts:
        """Return what parts of the first `count` tasks take, never fewer than before, as `State.parts`."""
        if self._parts is None:
            self._parts = ArrivedColumns(**self._tasks.parts._asdict())
            for column in self._parts.whole.values():
                column.setflags(write=False)  # whoever made the tasks: kernels are compiled for arrays that are so
            self._shown_parts = Parts(**self._parts.whole)
        self._parts.arrive(count)
        return self._shown_parts

    def first(self, count: int) -> Tasks:
        """Return the first `count` tasks, never fewer than before."""
        some = object.__new__(Tasks)
        vars(some).update(vars(self._tasks))
        vars(some)["dependencies"] = None if self._dependencies is None else self._dependencies.first(count)
        vars(some)["holds"] = None  # who knows them knows when others end
        vars(some)["staged"] = None if some.staged is None else some.staged.first(count)
        vars(some)["host_times"] = None  # estimates have those of the tasks that have arrived
        vars(some).update(self._columns.first(count))
        if some.input_files is not None:
            vars(some)["input_files"] = some.input_files[:count]
        if some.utility is not None and self._worth is not None:
            vars(some)["utility"] = worth = copy(some.utility)
            vars(worth).update(self._worth.first(count))
        if some.attributes:
            vars(some)["attributes"] = {
                name: replace(each, names=each.names[: codes.max(initial=-1) + 1], codes=codes)
                for name, codes in self._codes.first(count).items()
                for each in [some.attributes[name]]
            }
        return some


def make_tasks(
    flops: ArrayLike,
    submit_time_s: ArrayLike = 0.0,
    *,
    input_bytes: ArrayLike = 0.0,
    output_bytes: ArrayLike = 0.0,
    labels: ArrayLike | None = None,
    task_type: ArrayLike | None = None,
    deadline_s: ArrayLike | None = None,
    width: ArrayLike | None = None,
    requested_time_s: ArrayLike | None = None,
    demand: ArrayLike | None = None,
    anywhere: ArrayLike | None = None,
    partition: ArrayLike | None = None,
    resources: tuple[str, ...] = (CORES,),
    utility: UtilityFunctions | None = None,
    attributes: Mapping[str, Sequence[str]] | None = None,
    dependencies: Dependencies | None = None,
    holds: Holds | None = None,
    input_files: Sequence[Sequence[int]] | None = None,
    files: DataFiles | None = None,
    profile: ArrayLike | None = None,
    profiles: Sequence[Profile] = (),
    nominal_heterogeneity: float | None = None,
    host_times: HostTimes | None = None,
    staged: StagedFiles | None = None,
    name: str = "tasks",
) -> Tasks:
    """Check, sort by submission time (stable) and freeze a bag of tasks.

    Parameters
    ----------
    flops : array_like, shape (tasks,)
        Work [flop], finite and positive.
    submit_time_s : array_like
        Submission times [s], finite and not negative; a scalar serves for all.
    input_bytes, output_bytes : array_like
        Sizes [byte], finite and not negative.
    labels : sequence of int or of str, optional
        Ids shown to people; default 1, 2, ...
    task_type : array_like of int, optional
        Row of the ETC matrix of each task.
    deadline_s : array_like, optional
        When each task should have finished [s], at least 0; inf for a task without a deadline.
    width : array_like of int, optional
        Whole nodes that each task takes at once, at least 1; a scalar serves for all. With a `demand`:
        its parts. Default: each task is one part of one core.
    requested_time_s : array_like, optional
        Run time that was asked for [s], finite and positive; a scalar serves for all.
    demand : array_like of int, shape (tasks, resources), optional
        What each part of a job takes of its node, cores (at least 1) first.
    anywhere : array_like of bool, optional
        With a `demand`: whether parts may lie on one node; default no.
    partition : array_like of int, optional
        With a `demand`: number of each job's partition; default the first one.
    resources : tuple of str
        Names of the columns of `demand`.
    utility : UtilityFunctions, optional
        One function for each task, in the order of `flops`.
    attributes : mapping of str to sequence of str, optional
        Texts in the order of `flops`, by their attribute; an empty one means unknown.
    dependencies : Dependencies, optional
        Of tasks in order of submission.
    holds : Holds, optional
        In the order of `flops`.
    input_files : sequence of sequences of int, optional
        Indices into `files` that each task needs.
    files : DataFiles, optional
    profile : array_like of int, optional
        Which of `profiles` each task has; -1: none.
    profiles : sequence of Profile
    nominal_heterogeneity : float, optional
        The spread the sizes were drawn with, in [0, 1].
    host_times : HostTimes, optional
        Times by host in the order of `flops`.
    staged : StagedFiles, optional
        Of tasks in order of submission.
    name : str
        Where the tasks come from; used in messages.

    Returns
    -------
    Tasks

    Raises
    ------
    InputError
        Where a value is not finite or out of range; the message names the task and the value.
    """
    flops = np.array(flops, dtype=np.float64).reshape(-1)
    n = len(flops)
    ids = np.arange(1, n + 1) if labels is None else _labels(labels)
    in_order = np.sort(ids)  # np.unique would load masked arrays
    if len(ids) != n or (in_order[1:] == in_order[:-1]).any():
        raise InputError(f"{name}: task ids must be as many as tasks ({n}) and distinct.")
    checked = partial(_checked, ids, name)
    columns: dict[str, Any] = {
        "flops": checked("flops", flops, positive=True),
        "submit_time_s": (submit := checked("submit_time_s", submit_time_s)),
        "input_bytes": checked("input_bytes", input_bytes),
        "output_bytes": checked("output_bytes", output_bytes),
        "deadline_s": None,
        "requested_time_s": None,
        "labels": ids,
    }
    if deadline_s is not None:
        deadlines = checked("deadline_s", deadline_s, or_inf=True)
        columns["deadline_s"] = None if np.isposinf(deadlines).all() else deadlines
    if requested_time_s is not None:
        columns["requested_time_s"] = checked("requested_time_s", requested_time_s, positive=True)
    if width is not None:
        columns["width"] = _widths(width, ids, name)
    if demand is not None:
        columns["demand"] = _demands(
            demand, columns.get("width", np.ones(n, dtype=np.int64)), ids, name, len(resources)
        )
        columns["anywhere"] = np.array(np.broadcast_to(False if anywhere is None else anywhere, n), dtype=np.bool_)
        columns["partition"] = np.array(np.broadcast_to(0 if partition is None else partition, n), dtype=np.int64)
    if profile is not None:
        columns["profile"] = np.array(np.broadcast_to(profile, n), dtype=np.int64)
        check_profiles(tuple(profiles), columns["profile"], columns.get("width", np.ones(n, dtype=np.int64)), name)
    types = None if task_type is None else np.asarray(task_type, dtype=np.int64)
    for each in (types, utility, holds, *(attributes or {}).values()):
        if each is not None and len(each) != n:
            raise InputError(
                f"{name}: {counted(n, 'task')}, but {len(each)} task types, utility functions, holds or attributes; "
                "each task needs one."
            )
    order = np.argsort(submit, kind="stable")
    if dependencies is not None and not dependencies.are_of(order):
        raise InputError(f"{name}: dependencies are of tasks in order of submission, by their positions.")
    if staged is not None and not ((order == np.arange(n)).all() and int(staged.task.max(initial=-1)) < n):
        raise InputError(f"{name}: files are of tasks in order of submission, by their positions.")
    default = {
        "width": constant(1, (n,)),
        "demand": constant(1, (n, 1)),
        "anywhere": constant(width is None, (n,)),
        "partition": constant(0, (n,)),
    }
    return Tasks(
        **default | {key: _frozen(values, order) for key, values in columns.items()},
        task_type=None if types is None else types[order],
        utility=None if utility is None else utility.taken(order),
        attributes={
            key: Attribute.of_texts([texts[k] for k in order.tolist()]) for key, texts in (attributes or {}).items()
        },
        dependencies=dependencies,
        holds=None if holds is None else holds.taken(order),
        input_files=None if input_files is None else tuple(tuple(input_files[k]) for k in order),
        files=files,
        profiles=tuple(profiles),
        nominal_heterogeneity=nominal_heterogeneity,
        host_times=None if host_times is None else host_times.taken(order),
        staged=staged,
        name=name,
        resources=resources if demand is not None else (CORES,) if width is None else (WHOLE_NODE,),
        are_serial=width is None and demand is None,
    )


def _labels(labels: ArrayLike) -> Labels:
    """Return ids as numbers, or as they are where any is not a whole number that fits 64 bits."""
    ids = np.asarray(labels)
    if ids.dtype.kind == "U" and not np.char.isdecimal(ids).all():
        return np.array(ids, dtype=np.str_)
    try:
        return np.array(ids, dtype=np.int64)
    except OverflowError:
        return np.array(ids, dtype=np.str_)


def _demands(demand: ArrayLike, width: Integers, ids: Labels, name: str, n_resources: int) -> Integers:
    """Return what parts of jobs take; `InputError` where that is not an amount, or no core, or all take too much."""
    demands = np.array(demand, dtype=np.int64)
    if demands.shape != (len(ids), n_resources):
        raise InputError(f"{name}: demand has shape {demands.shape}; it must be {(len(ids), n_resources)}.")
    wrong = (demands < 0).any(axis=1) | (demands[:, 0] < 1) | (demands > MOST_AMOUNT).any(axis=1)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(
            f"{name}: task {ids[k]} takes {demands[k].tolist()} of its node; whole amounts from 0 to "
            f"{MOST_AMOUNT:g} are allowed, and at least one core."
        )
    in_all = demands * width[:, None].astype(np.float64)
    if (in_all > MOST_IN_ALL).any():
        k = int(np.argmax((in_all > MOST_IN_ALL).any(axis=1)))
        raise InputError(
            f"{name}: the {width[k]:,} parts of task {ids[k]} take {demands[k].tolist()} each; all parts together may "
            f"take {MOST_IN_ALL:g} of a resource."
        )
    return demands


def _checked(
    ids: Labels, name: str, what: str, values: ArrayLike, *, positive: bool = False, or_inf: bool = False
) -> Floats:
    """Return a column with a number for each task; `InputError` where one is out of range."""
    array = np.broadcast_to(np.asarray(values, dtype=np.float64), (len(ids),)).copy()
    bad = ~(array >= (SMALLEST if positive else 0)) | (array > LARGEST)
    if or_inf:
        bad &= array != np.inf
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        least = "greater than" if positive else "at least"
        legal = f"finite and {least} 0, at most {LARGEST:g}" + ", or inf" * or_inf
        raise InputError(f"{name}: task {ids[k]} has {what} {array[k]:g}; it must be {legal}.")
    return array


def _frozen(values: NDArray[Any] | None, order: Integers) -> Any:
    """Return a column in this order, which cannot be written to; None stays."""
    if values is None:
        return None
    taken = values[order]
    taken.setflags(write=False)
    return taken


def _widths(width: ArrayLike, ids: Labels, name: str) -> Integers:
    """Return how many nodes each task takes; `InputError` where that is not a number of nodes."""
    widths = np.broadcast_to(np.asarray(width), (len(ids),))
    wrong = ~((widths >= 1) & (widths <= MOST_NODES) & (widths == np.floor(widths)))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(
            f"{name}: task {ids[k]} has width {widths[k]:g}; it must be a whole number of nodes "
            f"from 1 to {MOST_NODES:g}."
        )
    return widths.astype(np.int64)


def deadline_column(tasks: Tasks) -> dict[str, Floats]:
    """Return the column ``deadline_s`` of a table of tasks [s], nan where a task has none.

    Empty where no task has a deadline.
    """
    deadline = tasks.deadline_s
    if deadline is None:
        return {}
    return {"deadline_s": np.where(np.isposinf(deadline), np.nan, deadline)}
