"""Bags whose sizes follow a Pareto distribution."""

from typing import Literal

from pydantic import Field

from gridsched import GeneratorKeys, make_tasks, random_stream


class ParetoBag(GeneratorKeys):
    kind: Literal["pareto"] = "pareto"
    tasks: int = Field(ge=1, le=1_000_000)
    least_flops: float = Field(gt=0)
    shape: float = Field(default=1.5, gt=1)
    seed: int = 0
    replicate: int = 0


def generate(keys):
    draws = random_stream(keys.seed, "tasks", keys.replicate).pareto(keys.shape, keys.tasks)
    return make_tasks(keys.least_flops * (1 + draws), name=f"{keys.tasks} Pareto tasks")
