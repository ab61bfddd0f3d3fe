"""Checks of a policy's decisions: final states, allowed places, bounds, a state as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gridsched.energy import trace_energy
from gridsched.errors import IncompleteRun
from gridsched.metrics.run_metrics import makespan_s
from gridsched.model.dependencies import After
from gridsched.model.estimates import Estimates
from gridsched.model.limits import time_tolerance
from gridsched.model.system import System
from gridsched.model.task_types import TaskTypes
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.optimize.bag_bounds import bag_bounds
from gridsched.optimize.typed_bounds import typed_bounds
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State
from gridsched.testing.cases import cases_for, on_each_case
from gridsched.testing.playing import Case, CheckFailed, play, trace_of
from gridsched.testing.repetition import public_values


@on_each_case
def check_final_states(scheduler: Scheduler, case: Case) -> None:
    """Every task ends in one final state, and starts once unless the policy replicates."""
    trace = trace_of(case, scheduler)
    finishes = np.bincount(trace.of_outcome(ExecutionEnd.FINISHED)["task"], minlength=len(case.tasks))
    starts = np.bincount(trace.executions["task"], minlength=len(case.tasks))
    for task, state in enumerate(trace.final_state.tolist()):
        label, name = case.tasks.labels[task], TaskState(state).name.lower()
        if state < TaskState.FINISHED or state == TaskState.UNFINISHED:
            raise CheckFailed(f"task {label} is {name} at the end; finish or drop it.")
        if finishes[task] != (state == TaskState.FINISHED):
            raise CheckFailed(f"task {label} is {name} and finished {finishes[task]} times.")
        if starts[task] > 1 and not scheduler.traits.replicates:
            raise CheckFailed(
                f"task {label} started {starts[task]} times; assign a task once, or set Traits(replicates=True)."
            )


@on_each_case
def check_legal_places(scheduler: Scheduler, case: Case) -> None:
    """Tasks run on existing hosts and P-states, that are on, one task for each core, after what they wait for."""
    trace = trace_of(case, scheduler)
    for problem in illegal_places(trace, case.system().estimates) + early_starts(trace):
        raise CheckFailed(problem)


def early_starts(trace: Trace) -> list[str]:
    """Return, in words, which tasks of a trace start before what they wait for lets them."""
    held = _held_too_short(trace)
    edges = trace.tasks.dependencies
    if edges is None:
        return held
    start, finish = trace.start_time_s, trace.finish_time_s
    since = np.where(edges.kind == After.START, start[edges.on], finish[edges.on])
    free_s = since + edges.delay_s
    early = start[edges.task] < free_s - time_tolerance(trace.horizon_s)
    needs = np.isin(edges.kind, (After.START, After.SUCCESS))
    early |= needs & np.isnan(since) & ~np.isnan(start[edges.task])
    labels = trace.tasks.labels
    return (
        held
        + [
            f"task {labels[edges.task[k]]} starts at {start[edges.task[k]]:g} s and waits for task "
            f"{labels[edges.on[k]]} ({After(edges.kind[k]).name.lower()} at {since[k]:g} s) "
            f"and {edges.delay_s[k]:g} s more."
            for k in np.flatnonzero(early)
        ]
        + _early_of_blocks(trace)
    )


def _early_of_blocks(trace: Trace) -> list[str]:
    """Return, in words, which tasks start before all the tasks of an array let them."""
    start, finish, labels, problems = trace.start_time_s, trace.finish_time_s, trace.tasks.labels, list[str]()
    edges = trace.tasks.dependencies
    for block in () if edges is None else edges.blocks:
        since = (start if block.kind == After.START else finish)[block.on]
        never = block.kind in (After.START, After.SUCCESS) and np.isnan(since).any()
        free_s = np.inf if never else np.nanmax(since, initial=-np.inf) + block.delay_s
        problems += [
            f"task {labels[task]} starts at {start[task]:g} s; {len(block.on)} others let it from {free_s:g} s on."
            for task in block.task[start[block.task] < free_s - time_tolerance(trace.horizon_s)].tolist()
        ]
    return problems


def _held_too_short(trace: Trace) -> list[str]:
    """Return, in words, which tasks start before their times, and arrays of which too many tasks run at once."""
    holds, labels, problems = trace.tasks.holds, trace.tasks.labels, list[str]()
    if holds is None:
        return problems
    tolerance = time_tolerance(trace.horizon_s)
    start = trace.start_time_s
    for task in np.flatnonzero(start < holds.release_s - tolerance).tolist():
        problems.append(f"task {labels[task]} starts at {start[task]:g} s, held until {holds.release_s[task]:g} s.")
    runs = trace.executions
    of = holds.array[runs["task"]]
    for array, limit in enumerate(holds.limit.tolist()):
        own = runs[of == array]
        at = np.concatenate([own["start"] + tolerance, own["end"]])
        change = np.repeat([1, -1], len(own))[np.argsort(at, kind="stable")]
        if (most := int(np.cumsum(change).max(initial=0))) > limit:
            problems.append(f"{most} tasks of array {array} run at once; its limit is {limit}.")
    return problems


def illegal_places(trace: Trace, estimates: Estimates | None = None) -> list[str]:
    """Return, in words, where executions of a trace lie on hosts as they must not.

    Parameters
    ----------
    trace : Trace
    estimates : Estimates, optional
        Where they say how many nodes parallel tasks take; else their width does.
    """
    problems = []
    execution, placed = trace.placed()
    for h, host in enumerate(trace.platform.hosts):
        runs = trace.executions[execution[placed == h]]
        cores = trace.host_cores[placed == h] if len(trace.host_cores) else np.ones(len(runs), dtype=np.int64)
        changes = trace.host_changes[trace.host_changes["host"] == h]
        if ((runs["pstate"] < 0) | (runs["pstate"] >= len(host.pstates))).any():
            problems.append(f"host {host.name} runs a task in a P-state it does not have.")
        for run in runs:
            there = (runs["start"] <= run["start"]) & (run["start"] < runs["end"])
            if cores[there].sum() > host.cores:
                problems.append(f"host {host.name} runs more tasks than its {host.cores} cores.")
            if len(set(runs["pstate"][there].tolist())) > 1:
                problems.append(f"host {host.name} runs tasks in several P-states at once.")
            if not changes[changes["time"] <= run["start"]][-1]["is_on"]:
                problems.append(f"host {host.name} runs a task while it is off.")
    if len(np.setdiff1d(placed, np.arange(len(trace.platform)))):
        problems.append("a task runs on a host that does not exist.")
    if trace.tasks.share_nodes:
        tasks = trace.executions["task"]
        if (trace.n_cores != trace.tasks.size[tasks]).any():
            problems.append("a task runs on more or fewer cores than its parts need.")
    elif not trace.tasks.are_serial:
        tasks, hosts = trace.executions["task"], trace.executions["host"]
        widths = trace.tasks.width[tasks] if estimates is None else estimates.widths(tasks, hosts)
        if (trace.width != widths).any():
            problems.append("a task runs on more or fewer nodes than it is wide.")
        if len(trace.executions):
            cluster = trace.platform.cluster_of[trace.host_ids]
            if (cluster != np.repeat(trace.platform.cluster_of[hosts], trace.width)).any():
                problems.append("a task runs on nodes of several clusters.")
    return problems


def check_all_hosts_off(scheduler: Scheduler) -> None:
    """With all hosts off the run ends at once, and the error counts every task."""
    case = cases_for(scheduler)[2]
    everything = tuple(range(len(case.platform)))
    dark = replace(case, name="all hosts off", hosts_off=everything)
    try:
        play(dark, scheduler.clone())
    except CheckFailed as error:
        if not isinstance(error.__cause__, IncompleteRun):
            raise CheckFailed(
                f"{error} Where no host is on (state.is_on, or an infinite state.ready_time) decide nothing."
            ) from error
        n = len(case.tasks)
        names = ", ".join(str(label) for label in case.tasks.labels[:10])
        if f"left {n} of {n} tasks" not in str(error) or f"tasks {names}" not in str(error):
            raise CheckFailed(f"{error} It must leave all tasks.") from error
    else:
        raise CheckFailed(f"{scheduler!r} finishes tasks although all hosts are off.")


@on_each_case
def check_budget(scheduler: Scheduler, case: Case) -> None:
    """No period draws more than its budget, but for what began before it."""
    for period in trace_of(case, scheduler).periods:
        consumed = period["consumed_j"] - period["carried_over_j"]
        if consumed > period["budget_j"] * (1 + 1e-9):
            raise CheckFailed(
                f"the period from {period['start']:g} s draws {consumed:g} J, its budget is "
                f"{period['budget_j']:g} J. Assign nothing beyond state.energy.remaining_j."
            )


@on_each_case
def check_state_untouched(scheduler: Scheduler, case: Case) -> None:
    """The policy changes neither the state nor the system nor the tasks."""
    system = case.system()

    def around(state: State, ask: Callable[[], Iterable[Decision]]) -> Iterable[Decision]:
        before = picture(state, system)
        answer = ask()
        compare(before, state)
        return answer if answer is None or isinstance(answer, list | tuple) else one_by_one(answer, state)

    def one_by_one(answer: Iterable[Decision], state: State) -> Iterator[Decision]:
        before = picture(state, system)
        for decision in answer:
            compare(before, state)
            yield decision
            before = picture(state, system)
        compare(before, state)

    def compare(before: dict[str, object], state: State) -> None:
        after = picture(state, system)
        if changed := [name for name, value in before.items() if value != after.get(name)]:
            raise CheckFailed(
                f"schedule() changes {', '.join(changed)} at t = {state.now:g} s; the state is "
                "only to look at. Change a copy."
            )

    play(case, scheduler.clone(), system=system, around=around, again=True)


def picture(state: State, system: System) -> dict[str, object]:
    """Return all that a policy can see, by name."""
    pairs = np.arange(len(state.tasks)), np.arange(len(system.platform)), system.pstates
    owners = {"state": state, "tasks": state.tasks, "platform": system.platform}
    if not state.tasks.are_serial:
        owners |= {"state.nodes": state.nodes, "state.nodes.reserved": state.nodes.reserved}
    matrices = {"estimates.etc": state.estimates.etc(*pairs), "estimates.apc": state.estimates.apc(*pairs)}
    return public_values({**owners, **matrices}, levels=1)


@on_each_case
def check_lower_bounds(scheduler: Scheduler, case: Case) -> None:
    """No makespan and no energy lies below what physics allows."""
    # the bounds use flops and speeds, or types; with another truth, none holds
    if case.estimates is None and case.estimates_of is None and case.run_times is None:
        for problem in below_bounds(trace_of(case, scheduler), scheduler.traits, case.pstate, case.types):
            raise CheckFailed(problem)


def below_bounds(trace: Trace, traits: Traits, pstate: int = 0, types: TaskTypes | None = None) -> list[str]:
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
    limits: dict[str, Any] = {"may_switch_off": traits.powers_hosts, "free_pstates": traits.uses_dvfs}
    if types is None:
        bounds = bag_bounds(trace.platform, tasks, pstate, **limits)
    else:
        bounds = typed_bounds(types, tasks, pstate, **limits)
    length_s = makespan_s(trace)
    found = (
        ("makespan", "s", length_s, bounds.makespan_s, ""),
        ("energy", "J", trace_energy(trace).grid_total(), bounds.least_energy_j(length_s), f" in {length_s:g} s"),
    )
    return [
        f"{name} {value:g} {unit} is less than the least possible{within}, {bound:g} {unit}."
        for name, unit, value, bound, within in found
        if value < bound * (1 - 1e-9)
    ]
