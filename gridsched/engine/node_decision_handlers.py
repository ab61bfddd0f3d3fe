"""Carrying out what a policy asks for parallel tasks: starts, reservations and place-holders."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Integers
from gridsched.engine.budget_guard import BudgetGuard
from gridsched.engine.decision_validator import DecisionValidator, Refusal
from gridsched.engine.dispatch import Dispatch
from gridsched.engine.execution import VIRTUAL
from gridsched.engine.node_sets import SharedNodes
from gridsched.engine.run_state import RunState
from gridsched.model.system import System
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.policy.decisions import Allocate, Cancel, Plan


class NodeDecisionHandlers:
    """Checks decisions about parallel tasks and applies those that are legal.

    Parameters
    ----------
    system : System
    run : RunState
        Of a run of parallel tasks.
    validator : DecisionValidator
    dispatch : Dispatch
    guard : BudgetGuard or None
    """

    def __init__(
        self, system: System, run: RunState, validator: DecisionValidator, dispatch: Dispatch, guard: BudgetGuard | None
    ) -> None:
        self._run = run
        self._validator = validator
        self._dispatch = dispatch
        self._guard = guard
        # hosts of serial tasks may start in several, and what is said here is refused
        self._shares = isinstance(run.nodes, SharedNodes)
        self._pstate = 0 if run.nodes is None or self._shares else system.pstate
        self._pstates: list[int] = system.pstates.tolist()
        self._run_time = system.estimates.run_time

    # ------------------------------------------------------------------ one task

    def allocate(self, decision: Allocate, now: float) -> Refusal | None:
        """Start a task now, or reserve its nodes for later."""
        task, pstate, start = decision.task, decision.pstate, decision.start
        if pstate is None:
            pstate = self._pstate
        if not (task.__class__ is pstate.__class__ is int):
            if (why := no_whole_numbers(task=task, pstate=pstate)) is not None:
                return why, None, None
            task, pstate = index(task), index(pstate)
        hosts = np.asarray(decision.hosts)
        if hosts.ndim != 1 or not hosts.size or hosts.dtype.kind not in "iu":
            why = f"Allocate.hosts is {decision.hosts!r}; it must be an array of host ids"
            return why, task, None
        hosts = hosts.astype(np.int64)  # a copy: the policy may use its array again
        if self._shares:
            return self._share(task, hosts, decision.pstate, start, now)
        if not self._in_order(hosts):
            return "a host stands there twice", task, None
        if start is None:
            start = now
        elif isinstance(start, int | float | np.number) and now <= start < math.inf:
            start = float(start)
        else:
            why = f"Allocate.start is {start!r}; it must lie at or after now, {now!r} s"
            return why, task, None
        why = self._validator.node_set(task, hosts, pstate)
        if why is None:
            end = start + self._run_time(task, hosts.item(0), pstate)
            why = self._validator.free_between(hosts, start, end, now)
        if why is not None:
            return why, task, None
        if self._guard is not None:
            place = np.array([task]), hosts[:1], np.array([pstate])
            refusal, fits = self._guard.admit(*place, now, "Allocate", np.array([start]))
            if refusal is not None or not fits[0]:
                return refusal
        self._dispatch.allocate(task, hosts, pstate, start, end, now)
        return None

    def kill(self, decision: Cancel, now: float) -> Refusal | None:
        """End a running task, for good or to wait again."""
        task, run = index(decision.task), self._run
        execution = next((each for each in run.executing() if each.task == task), None)
        if execution is None:
            return "Cancel of a parallel task that does not run", task, None
        outcome = ExecutionEnd.CANCELLED if decision.requeue else ExecutionEnd.KILLED
        self._dispatch.withdraw(execution, now, outcome)
        if not decision.requeue:
            run.end_task(task, int(TaskState.KILLED))
        return None

    def _share(self, task: int, hosts: Integers, pstate: int | None, start: float | None, now: float) -> Refusal | None:
        """Start a task now on parts of nodes; one that gives several parts stands there as often."""
        if start is not None and start != now:
            return f"Allocate.start is {start!r}; nodes that jobs share are not reserved", task, None
        parts = None
        if not self._in_order(hosts):
            hosts, parts = np.unique(hosts, return_counts=True)
        first = hosts.item(0)
        if pstate is None and 0 <= first < len(self._pstates):
            pstate = self._pstates[first]
        refusal = self._validator.parts(task, hosts, parts, pstate)
        if refusal is not None:
            return refusal[0], task, refusal[2]
        assert pstate is not None  # its first host exists
        end = now + self._run_time(task, first, pstate)
        self._dispatch.share(task, hosts, parts, pstate, now, end)
        return None

    def _in_order(self, hosts: Integers) -> bool:
        """Bring ids of hosts into ascending order, in place; whether none stands there twice."""
        if (hosts[1:] > hosts[:-1]).all():
            return True
        hosts.sort()
        return bool((hosts[1:] > hosts[:-1]).all())

    def start_reserved(self, now: float) -> Refusal | None:
        """Start the reservations that are due, or say which finds its nodes busy."""
        reservations = self._run.reservations
        while reservations.next_start <= now:
            due = reservations.take()
            host = self._validator.not_free(due.nodes)
            if host is not None:
                why = (
                    f"its reservation, from {due.start:g} s, finds the host busy, off or booting; "
                    "reserve nodes that are free by then, by estimates that are upper bounds"
                )
                return why, due.task, host
            self._dispatch.start_on_nodes(due)
        return None

    # ------------------------------------------------------------------ plans

    def plan(self, decision: Plan, now: float) -> Refusal | None:
        """Make place-holders in place of those before."""
        if self._shares:
            return "Plan makes place-holders on whole nodes; start jobs that share nodes by Allocate", None, None
        why, arrays = plan_arrays(decision, parallel=True)
        if why is not None:
            return why, None, None
        tasks, hosts, offsets, starts = (arrays[name] for name in ("tasks", "hosts", "offsets", "starts"))
        pstates = arrays.get("pstates", np.full(len(tasks), self._pstate))
        if len(pstates) != len(tasks):
            return f"Plan has {len(tasks)} tasks and {len(pstates)} pstates", None, None
        late = ~((starts >= now) & (starts < math.inf))
        if late.any():
            k = int(np.argmax(late))
            why = f"Plan.starts holds {starts[k]!r} s; it must lie at or after now, {now!r} s"
            return why, int(tasks[k]), None
        self._run.withdraw_plan()
        first = hosts[offsets[:-1]]
        refusal = self._validator.node_plan(tasks, hosts, first, np.diff(offsets), pstates)
        if refusal is not None:
            return refusal
        inside_j = None
        if self._guard is not None:
            refusal, fits = self._guard.admit(tasks, first, pstates, now, "Plan", starts)
            if refusal is not None:
                return refusal
            if not fits.all():
                widths = np.diff(offsets)
                tasks, pstates, first, starts = (array[fits] for array in (tasks, pstates, first, starts))
                hosts = hosts[np.repeat(fits, widths)]
                offsets = np.concatenate([[0], np.cumsum(widths[fits])])
            inside_j = self._guard.inside_j(tasks, first, pstates, starts)
        self._run.plan_nodes(tasks, hosts, pstates, offsets, starts, inside_j)
        return None

    def start_planned(self, now: float) -> Refusal | None:
        """Start the planned tasks that are due, or say why one cannot."""
        run, planned = self._run, self._run.place_holders
        while planned.next_start <= now:
            start = planned.next_start
            task, hosts, pstate = planned.take()
            if run.state_of[task] != VIRTUAL:
                continue  # it has gone another way
            why = None if self._in_order(hosts) else "a host stands there twice"
            why = why or self._validator.node_set(task, hosts, pstate)
            if why is None:
                end = start + self._run_time(task, hosts.item(0), pstate)
                why = self._validator.free_between(hosts, start, end, now)
            if why is not None:
                return f"its place-holder starts, and {why}", task, None
            self._dispatch.allocate(task, hosts, pstate, start, end, now)
        return None


def plan_arrays(decision: Plan, *, parallel: bool = False) -> tuple[str | None, dict[str, NDArray[Any]]]:
    """Return copies of the arrays that a plan has by name, or say what is wrong with one."""
    arrays: dict[str, NDArray[Any]] = {}
    for name in ("tasks", "hosts", "pstates", "offsets", "starts"):
        values = getattr(decision, name)
        if values is None and name != "tasks":
            if name == "pstates" or not parallel:
                continue
            return f"Plan.{name} is None; a Plan of parallel tasks needs hosts, offsets, starts", {}
        array, numbers = np.asarray(values), "iuf" if name == "starts" else "iu"
        if array.ndim != 1 or (array.size and array.dtype.kind not in numbers):
            what = "numbers" if name == "starts" else "whole numbers"
            return f"Plan.{name} is {values!r}; it must be an array of {what}", {}
        arrays[name] = array.astype(np.float64 if name == "starts" else np.int64)
    if not parallel:
        return None, arrays
    tasks, offsets, n_hosts = arrays["tasks"], arrays["offsets"], len(arrays["hosts"])
    if len(arrays["starts"]) != len(tasks) or len(offsets) != len(tasks) + 1:
        lengths = f"{len(tasks)} tasks, {len(arrays['starts'])} starts, {len(offsets)} offsets"
        return f"Plan has {lengths}; it needs a start for each task, and one offset more", {}
    if offsets[0] != 0 or offsets[-1] != n_hosts or (offsets[1:] <= offsets[:-1]).any():
        return f"Plan.offsets must rise from 0 to {n_hosts}, the number of hosts", {}
    return None, arrays


def no_whole_numbers(**named: object) -> str | None:
    """Say that something, by its name, is no whole number; None if all are."""
    for name, number in named.items():
        try:
            index(number)  # type: ignore[arg-type]
        except TypeError:
            return f"{name} is {number!r}; it must be a whole number"
    return None
