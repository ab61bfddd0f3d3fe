"""The worked example of algorithms B6, and small typed workloads with utility functions."""

from __future__ import annotations

import numpy as np

from gridsched import Scenario
from gridsched.model.rules import EnergyBudget
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.utility import UtilityFunctions

MINUTE = 60.0
#: Task types A, B, C on machine types M1, M2 in P-states 0 and 1 [min], and their powers [W].
ETC_MIN = [[[10, 14], [20, 28]], [[5, 7], [10, 14]], [[10, 14], [10, 14]]]
APC_W = [[[200, 130], [100, 65]]] * 3
#: (priority, urgency) of A, B and C.
WORTH = ((8, 0.01), (4, 0.1), (1, 0.01))


def b6_types() -> TaskTypes:
    """Return the types of the worked example."""
    etc = np.array(ETC_MIN, dtype=float) * MINUTE
    return TaskTypes(etc, np.array(APC_W, dtype=float), np.array([0, 1]))


def exponential_tasks(submit_s, task_type, worth) -> Tasks:
    """Return tasks with purely exponential utility functions, in minutes."""
    priority, urgency = np.array(worth, dtype=float).T
    return make_tasks(
        [TYPED_TASK_FLOPS] * len(task_type),
        submit_s,
        task_type=task_type,
        utility=UtilityFunctions.exponential(priority, urgency),
    )


def b6_scenario(scheduler: str, driver: str = "reference", **changes) -> Scenario:
    """Return the worked example: three tasks at time 0, a mapping event every minute."""
    types = b6_types()
    values = {
        "mapping_interval_s": MINUTE,
        "pending_slots": 1,
        "types": types,
        "driver": driver,
        "parameters": {"energy_leniency": float("inf")},
        **changes,
    }
    tasks = exponential_tasks(0.0, [0, 1, 2], WORTH)
    return Scenario(typed_platform(types), tasks, scheduler, **values)


def day(energy_j: float, period_min: float, **changes) -> EnergyBudget:
    """Return a budget for periods of some minutes."""
    return EnergyBudget(energy_j, period_s=period_min * MINUTE, **changes)
