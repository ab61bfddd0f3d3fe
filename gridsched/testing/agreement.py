"""Check that SimGrid and the reference driver give the same run."""

from __future__ import annotations

import unittest

import numpy as np

from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.energy import relative_difference, trace_energy
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler
from gridsched.runs.plugin_agreement import energy_check
from gridsched.runs.run import RunResult, run
from gridsched.testing.cases import cases_for
from gridsched.testing.playing import CheckFailed, told

#: Relative difference that the drivers may show in times and joules.
TOLERANCE = 1e-9


def trace_differences(first: Trace, second: Trace, tolerance: float = TOLERANCE) -> list[str]:
    """Return, in words, in what two traces of one scenario differ.

    Tasks, hosts, P-states and outcomes must be equal, times and joules to `tolerance` relative
    (times below 1 s: absolute).

    Parameters
    ----------
    first, second : Trace
    tolerance : float
    """
    if not np.array_equal(first.final_state, second.final_state):
        return [f"final states {first.final_state} and {second.final_state}"]
    if len(first.executions) != len(second.executions):
        return [f"{len(first.executions)} and {len(second.executions)} executions"]
    order, other_order = _order(first.executions), _order(second.executions)
    one, other = first.executions[order], second.executions[other_order]
    pairs = zip(order.tolist(), other_order.tolist(), strict=True)
    differing = {
        "set of hosts": [not np.array_equal(first.hosts_of(mine), second.hosts_of(theirs)) for mine, theirs in pairs],
        **{name: one[name] != other[name] for name in ("task", "host", "pstate", "outcome")},
        **{name: np.abs(one[name] - other[name]) > tolerance * np.maximum(1.0, one[name]) for name in ("start", "end")},
    }
    problems = [
        f"execution {one[k]} and {other[k]}: {name} differs"
        for name, marks in differing.items()
        for k in np.flatnonzero(marks)[:1]
    ]
    joules = trace_energy(first).total_j, trace_energy(second).total_j
    for h in np.flatnonzero(relative_difference(*joules) > tolerance)[:1]:
        name = trace_energy(first).names[h]
        problems.append(f"host {name}: {joules[0][h]!r} J and {joules[1][h]!r} J")
    return problems


def _order(executions: np.ndarray) -> np.ndarray:
    return np.lexsort((executions["start"], executions["host"], executions["task"]))


def metered_differences(result: RunResult, tolerance: float = TOLERANCE) -> list[str]:
    """Return, in words, where plugin and model joules of a SimGrid run differ."""
    return [
        f"host {row['host']}: plugin {row['plugin_j']!r} J, model {row['model_j']!r} J"
        for row in energy_check(result)
        if row["relative_difference"] > tolerance
    ]


def same_notes(first: Trace, second: Trace) -> bool:
    """Whether schedulers noted the same beside the same tasks."""
    return first.notes.keys() == second.notes.keys() and all(
        np.array_equal(values, second.notes[name], equal_nan=True) for name, values in first.notes.items()
    )


def check_drivers_agree(scheduler: Scheduler) -> None:
    """Times and joules of reference driver and SimGrid agree to 1e-9, in all execution modes."""
    if not is_installed():
        raise unittest.SkipTest(HOW_TO_INSTALL)
    traits = scheduler.traits
    modes = ["auto"]
    if not (traits.parallel or traits.replicates or traits.may_cancel or traits.powers_hosts):
        modes.append("actors")  # auto took the maestro
    for case in cases_for(scheduler):
        if case.estimates is not None or not len(case.tasks):  # no run without tasks
            continue
        with told(case, scheduler):
            expected = run(case.scenario(scheduler, driver="reference"))
            for execution_mode in modes:
                result = run(case.scenario(scheduler, driver="simgrid", execution_mode=execution_mode))
                first, second = expected.trace, result.trace
                same = {
                    "the energy account's periods": np.array_equal(first.periods, second.periods),
                    "what was postponed": np.array_equal(first.times_postponed, second.times_postponed),
                    "what was noted": same_notes(first, second),
                }
                problems = trace_differences(first, second) + metered_differences(result)
                problems += [what for what, is_same in same.items() if not is_same]
                if problems:
                    raise CheckFailed(
                        f"reference driver and SimGrid (execution_mode={execution_mode!r}) differ: {problems[0]}. "
                        "Decide from the state alone; if you do, please report this."
                    )
