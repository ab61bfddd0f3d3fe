"""Check against lower bounds of makespan and energy that hold whatever a policy does."""

from __future__ import annotations

from gridsched.energy import trace_energy
from gridsched.metrics import makespan_s
from gridsched.model.task_types import TaskTypes
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState, Trace
from gridsched.optimize.bag_bounds import bag_bounds
from gridsched.optimize.typed_bounds import typed_bounds
from gridsched.policy.base import Scheduler, Traits
from gridsched.testing.cases import cases_for
from gridsched.testing.playing import CheckFailed, play


def check_lower_bounds(scheduler: Scheduler) -> None:
    """No makespan and no energy lies below what physics allows."""
    for case in cases_for(scheduler):
        # the bounds go by flops and speeds, or by types; where the truth is another, none holds
        if case.estimates is None and case.estimates_of is None and case.run_times is None:
            trace = play(case, scheduler.clone())
            for problem in below_bounds(trace, scheduler.traits, case.pstate, case.types):
                raise CheckFailed(f"{scheduler!r} on the case {case.name!r}: {problem}")


def below_bounds(
    trace: Trace, traits: Traits, pstate: int = 0, types: TaskTypes | None = None
) -> list[str]:
    """Return, in words, which bounds a trace beats.

    Parameters
    ----------
    trace : Trace
        Hosts are on at the start.
    traits : Traits
        Whether the scheduler may switch hosts off and choose P-states.
    pstate : int
        The scenario's P-state.
    types : TaskTypes, optional
        ETC and APC where the tasks have types.
    """
    tasks = trace.tasks
    finished = trace.final_state == TaskState.FINISHED
    if not finished.all():  # the others leave no gap that could be counted on
        task_type = None if tasks.task_type is None else tasks.task_type[finished]
        tasks = make_tasks(tasks.flops[finished], task_type=task_type)
    may_switch_off, free_pstates = traits.powers_hosts, traits.uses_dvfs
    if types is None:
        bounds = bag_bounds(
            trace.platform, tasks, pstate, may_switch_off=may_switch_off, free_pstates=free_pstates
        )
    else:
        bounds = typed_bounds(
            types, tasks, pstate, may_switch_off=may_switch_off, free_pstates=free_pstates
        )
    length_s = makespan_s(trace)
    found = (
        ("makespan", "s", length_s, bounds.makespan_s, ""),
        ("energy", "J", trace_energy(trace).grid_total(), bounds.least_energy_j(length_s),
         f" in {length_s:g} s"),
    )  # fmt: skip
    return [
        f"{name} {value:g} {unit} is less than the least possible{within}, {bound:g} {unit}."
        for name, unit, value, bound, within in found
        if value < bound * (1 - 1e-9)
    ]
