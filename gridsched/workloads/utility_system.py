"""Machines and task types of paper 000, drawn (section V; algorithms B2)."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from gridsched.model.seeds import random_stream
from gridsched.model.task_types import TaskTypes
from gridsched.workloads.etc_matrices import cvb, gamma, pstate_factors
from gridsched.workloads.utility_day import UtilityDay


def draw_task_types(spec: UtilityDay) -> TaskTypes:
    """Draw ETC and APC: special machine types and task types first, then the general ones."""
    rng = random_stream(spec.seed, "platform", spec.replicate)
    n_special, n_general = len(spec.special_machine_counts), len(spec.general_machine_counts)
    n_types, levels = spec.task_types, len(spec.power_factors)
    etc = np.full((n_types, n_special + n_general, levels), np.inf)
    apc = np.zeros(etc.shape)
    base_w = gamma(rng, spec.base_power_mean_w, spec.base_power_cov, n_special + n_general)
    owner = np.repeat(np.arange(n_special), spec.special_task_types)

    def block(
        rows: int, columns: int, special: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ETC and dynamic power [W] of some task types on alike machine types."""
        time_s = cvb(
            rng, getattr(spec, f"{special}etc_mean_s"), getattr(spec, f"{special}etc_task_cov"),
            getattr(spec, f"{special}etc_machine_cov"), rows, columns,
        )  # fmt: skip
        power_w = cvb(
            rng, spec.dynamic_power_mean_w, spec.dynamic_power_task_cov,
            getattr(spec, f"{special}dynamic_power_machine_cov"), rows, columns,
        )  # fmt: skip
        slower, lower = pstate_factors(
            rng, rows, columns, spec.power_factors, type_cov=spec.pstate_type_cov,
            power_cov=spec.pstate_power_cov, time_cov=getattr(spec, f"{special}pstate_time_cov"),
        )  # fmt: skip
        return time_s[..., None] * slower, power_w[..., None] * lower

    etc[:, n_special:], dynamic_w = block(n_types, n_general, "")
    apc[:, n_special:] = base_w[n_special:, None] + dynamic_w
    special_rows = np.arange(len(owner))
    time_s, dynamic_w = block(len(owner), 1, "special_")
    etc[special_rows, owner] = time_s[:, 0]
    apc[special_rows, owner] = base_w[owner, None] + dynamic_w[:, 0]
    counts = (*spec.special_machine_counts, *spec.general_machine_counts)
    return TaskTypes(
        etc, apc, np.repeat(np.arange(len(counts)), counts), _task_type_names(spec),
        tuple(
            [f"special{j + 1}" for j in range(n_special)]
            + [f"general{j + 1}" for j in range(n_general)]
        ),
    )  # fmt: skip


def _task_type_names(spec: UtilityDay) -> tuple[str, ...]:
    """Return ``special1_1`` for the first task type of special machine type 1, and so on."""
    special = [
        f"special{j + 1}_{k + 1}" for j, n in enumerate(spec.special_task_types) for k in range(n)
    ]
    general = [f"general_{k + 1}" for k in range(spec.task_types - len(special))]
    return (*special, *general)


def host_names(types: TaskTypes) -> list[str]:
    """Return ``TYPE-1``, ``TYPE-2``, ... for the hosts of each machine type."""
    seen: dict[str, int] = {}
    names = []
    for j in types.host_type.tolist():
        # SimGrid gives some characters a meaning of their own
        name = re.sub(r"[^\w.-]+", "_", types.host_type_names[j])
        seen[name] = seen.get(name, 0) + 1
        names.append(f"{name}-{seen[name]}")
    return names
