"""Bags of tasks as paper 004 draws them (section 4; algorithms A7)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.seeds import random_stream
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.workloads.generator_keys import GeneratorKeys

#: More tasks than this are refused: they would not fit into memory in any driver.
MAX_TASKS = 10_000_000


class BagOfTasks(GeneratorKeys):
    """Parameters of a generated bag.

    Attributes
    ----------
    tasks : int
        Number of tasks.
    mean_flops : float
        Mean size [flop].
    heterogeneity : float
        Sizes are uniform in ``mean_flops * (1 -+ heterogeneity / 2)``; 0 to 1.
    seed, replicate : int
        Which random stream.
    input_bytes, output_bytes : float
        Size of each task's input and result [byte].
    """

    kind: Literal["bag"] = "bag"
    tasks: int = Field(ge=0, le=MAX_TASKS)
    mean_flops: float = Field(ge=SMALLEST, le=LARGEST / 2)  # sizes are up to 1.5 times the mean
    heterogeneity: float = Field(default=0.0, ge=0, le=1)
    seed: int = Field(default=0, ge=0)
    replicate: int = Field(default=0, ge=0)
    input_bytes: float = Field(default=0.0, ge=0, le=LARGEST)
    output_bytes: float = Field(default=0.0, ge=0, le=LARGEST)


def generate_bag(bag: BagOfTasks) -> Tasks:
    """Draw a bag of tasks, all submitted at time 0.

    Parameters
    ----------
    bag : BagOfTasks

    Returns
    -------
    Tasks
        With `nominal_heterogeneity` set, as LECSA wants it (algorithms A6.2).
    """
    rng = random_stream(bag.seed, "tasks", bag.replicate)
    half = bag.heterogeneity / 2
    flops = bag.mean_flops * rng.uniform(1 - half, 1 + half, bag.tasks)
    if bag.heterogeneity == 0:
        flops = np.full(bag.tasks, bag.mean_flops)
    return make_tasks(
        flops,
        input_bytes=bag.input_bytes,
        output_bytes=bag.output_bytes,
        nominal_heterogeneity=bag.heterogeneity,
        name=f"bag of {bag.tasks} tasks (seed {bag.seed})",
    )
