"""Keys of workflows: tables, or a shape that is drawn, once or as a stream."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from gridsched.arrays import Floats
from gridsched.errors import InputError, counted
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.limits import LARGEST, MAX_NAME, AtLeastZero, Count, Fraction, Positive, Seed
from gridsched.model.seeds import random_stream
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.systems.workflows import workflow_shapes
from gridsched.systems.workflows.bag_beside import with_bag
from gridsched.systems.workflows.workflow_csv import Workflow, read_workflow
from gridsched.systems.workflows.workflow_shapes import Shape
from gridsched.workloads.bag import read_bag
from gridsched.workloads.generator_keys import MAX_TASKS, WrittenKeys, keys_between

#: Deeper chains and trees are refused.
_MOST_DEPTH = 1_000_000
#: Uniform draws are within the mean times 1 -+ half of it.
Spread = Annotated[float, Field(ge=0, le=2)]
_OF_BRANCHES = {
    "chains": workflow_shapes.chains,
    "fork_join": workflow_shapes.fork_join,
    "out_tree": workflow_shapes.out_tree,
    "in_tree": workflow_shapes.in_tree,
}
_OF_SIZE = {"gaussian": workflow_shapes.gaussian, "fft": workflow_shapes.fft}
#: Which keys each shape has.
SHAPE_KEYS = {
    **dict.fromkeys(_OF_BRANCHES, ("branches", "depth")),
    **dict.fromkeys(_OF_SIZE, ("size",)),
    "layered": ("tasks", "width", "density", "regularity", "jump"),
}


class WorkflowKeys(WrittenKeys):
    """Keys of a workflow.

    Attributes
    ----------
    tasks_csv : str
        ``id,flops[,cores][,submit_time_s][,workflow]``: a task does `flops` on each of its cores, all
        of one host.
    times_csv : str
        Replaces `tasks_csv`. ``id,HOST,...[,submit_time_s][,workflow]``: time of a task on each host of the platform,
        in P-state 0 [s]; an empty cell if the task cannot run there.
    edges_csv : str
        ``task,on[,bytes][,file]``: `task` waits for the end of `on`, and for the bytes that `on` makes. Edges with the
        same `on` and the same file share the data, which are sent to a host once. If `on` is empty, no task makes the
        file.
    inputs_from : str
        Host of the platform that sends such files.
    bag_csv : str
        A bag of tasks that runs beside the workflow; see `gridsched.workloads.bag.read_bag`.
    rescaled : bool
        Whether the work and the data of the tables are scaled to the mean values of the keys from `mean_flops` on,
        and sampled around their own values by `heterogeneity` and `data_heterogeneity`.
    shape : str
        Structure of a generated workflow, if there are no tables; see
        `gridsched.systems.workflows.workflow_shapes`.
    branches, depth : int
        Number and length of chains; tasks in parallel and stages of fork-joins; children of a task and levels of
        trees.
    size : int
        Columns of the matrix, or points of the Fourier transform, a power of two.
    tasks, width, density, regularity, jump
        Parameters of layered graphs; see `workflow_shapes.layered`.
    mean_flops, heterogeneity : float
        Work is uniform in ``mean_flops * (1 -+ heterogeneity / 2)`` [flop].
    ccr : float
        Mean transfer time over mean run time, on hosts of `reference_speed` [flop/s] that send at
        `reference_bandwidth` [byte/s]: the data of an edge have
        ``ccr * mean_flops / reference_speed * reference_bandwidth`` bytes on average.
    data_heterogeneity : float
        The same as `heterogeneity`, for the sizes of data.
    workflows : int
        Number of workflows, all of one shape and each with its own random numbers.
    mean_interarrival_s : float
        Mean of the exponential times between their arrivals, the first of which is at 0 s [s].
    submit_times_s : tuple of float
        Arrival times, which replace `mean_interarrival_s` [s].
    """

    kind: Literal["workflow"] = "workflow"
    seed: Seed = 0
    replicate: Seed = 0
    tasks_csv: str | None = None
    times_csv: str | None = None
    edges_csv: str | None = None
    inputs_from: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] | None = None
    bag_csv: str | None = None
    rescaled: bool = False
    shape: Literal["chains", "fork_join", "out_tree", "in_tree", "gaussian", "fft", "layered"] | None = None
    branches: Count = 4
    depth: Annotated[int, Field(ge=1, le=_MOST_DEPTH)] = 3
    size: Annotated[int, Field(ge=2, le=2**20)] = 8
    tasks: Annotated[int, Field(ge=1, le=MAX_TASKS)] = 100
    width: Fraction = 0.5
    density: Fraction = 0.5
    regularity: Fraction = 0.9
    jump: Count = 1
    mean_flops: Positive = 1e12
    heterogeneity: Spread = 0.0
    ccr: AtLeastZero = 1.0
    data_heterogeneity: Spread = 0.0
    reference_speed: Positive = 1e10
    reference_bandwidth: Positive = 1.25e8
    workflows: Count = 1
    mean_interarrival_s: AtLeastZero = 0.0
    submit_times_s: tuple[AtLeastZero, ...] = ()

    @property
    def mean_bytes(self) -> float:
        """Mean size of the data of an edge [byte]."""
        return self.ccr * (self.mean_flops / self.reference_speed) * self.reference_bandwidth

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Refuse keys that contradict each other."""
        table = "tasks_csv" if self.times_csv is None else "times_csv"
        self.check_files(
            together=(table, "edges_csv"),
            needed={"edges_csv": {"inputs_from", "rescaled"}},
            replaced={"times_csv": {"tasks_csv", "bag_csv", "rescaled", *_SAMPLED}}
            | dict.fromkeys(("tasks_csv", "edges_csv"), _SAMPLED - (_RESCALED if self.rescaled else set())),
        )
        if self.mean_bytes > LARGEST / 2 or self.mean_flops > LARGEST / 2:
            raise InputError(
                f"mean_flops, {self.mean_flops:g}, and ccr give data of {self.mean_bytes:g} bytes; at most "
                f"{LARGEST / 2:g} flop and bytes are allowed."
            )
        if self.edges_csv is not None:
            return self
        if self.shape is None:
            raise InputError(
                f"shape is missing: one of {', '.join(SHAPE_KEYS)}; or give edges_csv, and tasks_csv or times_csv."
            )
        own = SHAPE_KEYS[self.shape]
        if useless := self.changed({key for keys in SHAPE_KEYS.values() for key in keys} - set(own)):
            raise InputError(f"{useless[0]} has no effect on the shape {self.shape!r}, which has {', '.join(own)}.")
        if self.shape == "fft" and self.size & (self.size - 1):
            raise InputError(f"size is {self.size}; a fast Fourier transform needs a power of two.")
        if self.submit_times_s and (len(self.submit_times_s) != self.workflows or self.mean_interarrival_s):
            raise InputError(
                f"submit_times_s has {len(self.submit_times_s)} times; it needs one for each of {self.workflows} "
                "workflows, without mean_interarrival_s."
            )
        tasks, edges = _numbers(self)
        keys = f"workflows and {', '.join(own)}"
        if tasks * self.workflows > MAX_TASKS:
            raise InputError(f"{keys} give {tasks * self.workflows:,} tasks; at most {MAX_TASKS:,} are allowed.")
        self.check_entries(keys, edges * self.workflows)
        return self

    def written(self, output: Path) -> list[Path]:
        """Return the two tables and the file that names them; `InputError` where it is no .toml."""
        return Workflow.paths(output)

    def write(self, output: Path, *, force: bool) -> list[str]:
        """Draw the workflow and write it as tables."""
        made = Workflow.of(make_workflow(self))
        tables = made.write(output, force=force)
        names = " and ".join(path.name for path in tables[:2])
        return [
            f"Wrote {output}: {counted(len(made.tasks['id']), 'task')}, {counted(len(made.edges), 'edge')}; "
            f"beside it {names}."
        ]


#: Keys that tables take the place of, and those of them by which tables are rescaled.
_SAMPLED = keys_between(WorkflowKeys, "shape", "submit_times_s")
_RESCALED = keys_between(WorkflowKeys, "mean_flops", "reference_bandwidth")


def _numbers(keys: WorkflowKeys) -> tuple[int, int]:
    """Return how many tasks one workflow has, and about how many edges at most."""
    branches, depth, size = keys.branches, keys.depth, keys.size
    if keys.shape == "chains":
        return branches * depth, branches * depth
    if keys.shape == "fork_join":
        return 1 + depth * (branches + 1), 2 * depth * branches
    if keys.shape in ("out_tree", "in_tree"):
        levels = depth if branches == 1 else min(depth, 2 + MAX_TASKS.bit_length())  # more are too many in any case
        return (tasks := workflow_shapes.tree_tasks(branches, levels)), tasks
    if keys.shape == "gaussian":
        return (size * size + size - 2) // 2, size * size
    if keys.shape == "fft":
        return size * (size.bit_length() + 1), 2 * size * size.bit_length()
    return keys.tasks, int(keys.tasks * (1 + keys.density * keys.tasks**keys.width))


def make_workflow(keys: WorkflowKeys) -> Tasks:
    """Read a workflow from its tables, or draw it, or several, in order of submission.

    Raises
    ------
    InputError
        Naming file, line and task of the first that is wrong.
    """
    if keys.edges_csv is not None:
        made = read_workflow(keys.edges_csv, keys.tasks_csv, keys.times_csv, keys.inputs_from)
        if keys.rescaled:
            made = _rescaled(made, keys)
    else:
        made = _sampled_workflows(keys)
    return made if keys.bag_csv is None else with_bag(made, read_bag(keys.bag_csv))


def _rescaled(tasks: Tasks, keys: WorkflowKeys) -> Tasks:
    """Return tasks of tables with the mean work and data of the keys, sampled around their own values."""
    rng = random_stream(keys.seed, "tasks", keys.replicate)
    scale = keys.mean_flops / tasks.flops.mean()
    flops = tasks.flops * _uniform(rng, scale, keys.heterogeneity, len(tasks))
    edges, staged = tasks.dependencies, tasks.staged
    mean_bytes = 0.0 if edges is None else float(edges.size_bytes.mean())
    if not mean_bytes and keys.mean_bytes:
        raise InputError(f"{tasks.name}: no task makes data for another, so ccr must be 0, not {keys.ccr:g}.")
    by_size = keys.mean_bytes / mean_bytes if mean_bytes else 0.0
    if edges is not None:  # edges that share data of a task have one size
        alone = np.where(edges.item < 0, np.arange(len(edges)), -1)
        _, data = np.unique([edges.on, edges.item, alone], axis=1, return_inverse=True)
        sizes = edges.size_bytes * _uniform(rng, by_size, keys.data_heterogeneity, len(edges))[data.reshape(-1)]
        edges = replace(edges, size_bytes=np.rint(sizes))
    if staged is not None:
        factors = _uniform(rng, by_size, keys.data_heterogeneity, int(staged.file.max()) + 1)
        staged = replace(staged, size_bytes=np.rint(staged.size_bytes * factors[staged.file]))
    attributes = {name: each.texts for name, each in tasks.attributes.items()}
    return make_tasks(
        flops,
        tasks.submit_time_s,
        labels=tasks.labels,
        demand=None if tasks.are_serial else tasks.demand,
        attributes=attributes,
        dependencies=edges,
        staged=staged,
        name=tasks.name,
    )


def _sampled_workflows(keys: WorkflowKeys) -> Tasks:
    """Draw one workflow, or several."""
    sampled = [_sampled(keys, random_stream(keys.seed, "tasks", keys.replicate, k)) for k in range(keys.workflows)]
    counts = np.array([len(flops) for _, flops, _ in sampled])
    first = np.concatenate([[0], np.cumsum(counts)])
    task = np.concatenate([shape.task + begin for (shape, *_), begin in zip(sampled, first, strict=False)])
    on = np.concatenate([shape.on + begin for (shape, *_), begin in zip(sampled, first, strict=False)])
    none, ends = np.zeros(len(task)), np.full(len(task), int(After.END))
    edges = Dependencies(task, on, ends, none, np.concatenate([size for *_, size in sampled])).by_task()
    names = [f"w{k + 1}" for k in range(keys.workflows)]
    labels = [f"{name}t{t + 1}" for name, n in zip(names, counts.tolist(), strict=True) for t in range(n)]
    several = keys.workflows > 1
    return make_tasks(
        np.concatenate([flops for _, flops, _ in sampled]),
        np.repeat(_arrivals_s(keys), counts),
        labels=labels if several else None,
        attributes={"workflow": np.repeat(names, counts).tolist()} if several else None,
        dependencies=edges if len(edges) else None,
        name=f"workflow of shape {keys.shape} (seed {keys.seed})",
    )


def _arrivals_s(keys: WorkflowKeys) -> Floats:
    """Return when the workflows arrive [s], ascending."""
    if keys.submit_times_s:
        return np.sort(np.array(keys.submit_times_s))
    gaps = random_stream(keys.seed, "arrivals", keys.replicate).exponential(keys.mean_interarrival_s, keys.workflows)
    gaps[0] = 0.0
    return np.cumsum(gaps)


def _sampled(keys: WorkflowKeys, rng: np.random.Generator) -> tuple[Shape, Floats, Floats]:
    """Draw one workflow: its shape, the work of its tasks [flop], and the data of its edges [byte]."""
    shape = _shape(keys, rng)
    level = np.arange(shape.tasks) if shape.level is None else shape.level
    flops = _uniform(rng, keys.mean_flops, keys.heterogeneity, int(level.max()) + 1)[level]
    of_edge = np.arange(len(shape.task)) if shape.level is None else shape.level[shape.task] - 1
    sizes = _uniform(rng, keys.mean_bytes, keys.data_heterogeneity, int(of_edge.max(initial=-1)) + 1)[of_edge]
    return shape, flops, np.rint(sizes)  # SimGrid sends whole bytes


def _shape(keys: WorkflowKeys, rng: np.random.Generator) -> Shape:
    if keys.shape in _OF_BRANCHES:
        return _OF_BRANCHES[keys.shape](keys.branches, keys.depth)
    if keys.shape in _OF_SIZE:
        return _OF_SIZE[keys.shape](keys.size)
    return workflow_shapes.layered(rng, keys.tasks, keys.width, keys.density, keys.regularity, keys.jump)


def _uniform(rng: np.random.Generator, mean: float, spread: float, count: int) -> Floats:
    """Draw uniformly from ``mean * (1 - spread / 2, 1 + spread / 2]``: never 0."""
    draws: Floats = mean * (1.0 + spread / 2 * (1.0 - 2.0 * rng.random(count)))
    return draws
