"""Check against lower bounds of makespan and energy that hold whatever a policy does."""

from __future__ import annotations

import numpy as np

from gridsched.energy import trace_energy
from gridsched.metrics import makespan_s
from gridsched.model.platform import Platform
from gridsched.model.trace import TaskState, Trace
from gridsched.schedulers.base import Scheduler
from gridsched.testing.cases import CheckFailed, cases_for, play


def makespan_bound_s(platform: Platform, flops: np.ndarray) -> float:
    """Return a makespan [s] that no schedule of serial tasks can beat.

    All cores busy from begin to end, each host in its fastest P-state; and the largest task on
    the fastest core.

    Parameters
    ----------
    platform : Platform
    flops : ndarray, shape (tasks,)
        Sizes [flop].
    """
    if not len(flops):
        return 0.0
    speed = np.nanmax(platform.speed, axis=1)
    return float(max(flops.sum() / (platform.cores * speed).sum(), flops.max() / speed.max()))


def energy_bound_j(platform: Platform, flops: np.ndarray) -> float:
    """Return an energy [J] that no schedule of serial tasks can beat.

    With b of c cores busy a host draws ``epsilon + b / c (busy - epsilon)`` for b times the core
    speed; the joules per flop are least with all cores busy. Idle hosts draw at least nothing.

    Parameters
    ----------
    platform : Platform
    flops : ndarray, shape (tasks,)
        Sizes [flop].
    """
    joule_per_flop = platform.busy_w / (platform.cores[:, None] * platform.speed)
    return float(flops.sum() * np.nanmin(joule_per_flop)) if len(flops) else 0.0


def check_lower_bounds(scheduler: Scheduler) -> None:
    """No makespan and no energy lies below what physics allows."""
    for case in cases_for(scheduler):
        if case.estimates is None:
            trace = play(case, scheduler.clone())
            for problem in below_bounds(trace):
                raise CheckFailed(f"{scheduler!r} on the case {case.name!r}: {problem}")


def below_bounds(trace: Trace) -> list[str]:
    """Return, in words, which bounds a trace beats."""
    flops = trace.tasks.flops[trace.final_state == TaskState.FINISHED]
    if not len(flops):
        return []
    energy_j = trace_energy(trace).grid_total()
    found = (
        ("makespan", "s", makespan_s(trace), makespan_bound_s(trace.platform, flops)),
        ("energy", "J", energy_j, energy_bound_j(trace.platform, flops)),
    )
    return [
        f"{name} {value:g} {unit} is less than the least possible, {bound:g} {unit}."
        for name, unit, value, bound in found
        if value < bound * (1 - 1e-9)
    ]
