"""Carrying out what a policy asks for, one method a decision: each returns why not, or None."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Floats, Integers
from gridsched.engine.budget_guard import BudgetGuard, by_host
from gridsched.engine.decision_validator import DecisionValidator, Refusal, ascending
from gridsched.engine.dispatch import Dispatch
from gridsched.engine.energy_account import EnergyAccount
from gridsched.engine.events import Timers
from gridsched.engine.execution import Execution, Timer
from gridsched.engine.host_switches import HostSwitches
from gridsched.engine.ready_times import Staging
from gridsched.engine.run_state import RunState
from gridsched.engine.task_states import POSTPONED, QUEUED, RUNNING, VIRTUAL
from gridsched.errors import counted
from gridsched.model.system import System
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import (
    Allocate,
    Assign,
    Cancel,
    Decision,
    Drop,
    Note,
    Plan,
    Postpone,
    PowerOff,
    PowerOn,
    WakeAt,
)


class DecisionHandlers:
    """Checks decisions and applies those that are allowed.

    Parameters
    ----------
    system : System
    run : RunState
    dispatch : Dispatch
    switches : HostSwitches
    timers : Timers
    staging : Staging
    account : EnergyAccount
    guard : BudgetGuard

    Attributes
    ----------
    notes : dict of str to ndarray of float64, shape (tasks,)
        What was noted, column by column; nan where nothing was.
    """

    def __init__(
        self,
        system: System,
        run: RunState,
        dispatch: Dispatch,
        switches: HostSwitches,
        timers: Timers,
        staging: Staging,
        account: EnergyAccount,
        guard: BudgetGuard,
    ) -> None:
        self._run = run
        self._validator = DecisionValidator(system, run)
        self._dispatch = dispatch
        self._switches = switches
        self._timers = timers
        self._staging = staging
        self._account = account
        self._guard = guard
        self._platform = system.platform
        self._always_feasible = system.estimates.always_feasible
        self._pstates = system.pstates
        self._pstate_of: list[int] = system.pstates.tolist()
        self._traits = Traits(trigger="event")
        self.notes: dict[str, Floats] = {}
        self._run_time = system.estimates.run_time

    @property
    def refuses(self) -> bool:
        """Whether a budget refuses what exceeds it."""
        return self._guard.refuses

    def apply_traits(self, traits: Traits) -> None:
        """Take decisions of a policy with these traits from now on."""
        self._traits = traits
        self._handlers = dict(self._HANDLERS)
        for kind, trait in _NEEDED_TRAITS.items():
            if not getattr(traits, trait):
                self._handlers[kind] = partial(_needs, trait, kind.__name__)
        for column in traits.notes:
            self.notes.setdefault(column, np.full(len(self._run.states), np.nan))
        self._guard.apply_traits(traits)

    def apply(self, decision: Decision, now: float) -> Refusal | None:
        """Apply a decision at `now` [s], or say why it is not allowed."""
        handler = self._handlers.get(decision.__class__)
        if handler is None:
            return f"{decision!r} is not a decision; see gridsched.policy.decisions", None, None
        if decision.__class__ in _OF_ONE:
            task, host = getattr(decision, "task", None), getattr(decision, "host", None)
            if (refusal := self._unknown(task, host)) is not None:
                return refusal
        return handler(self, decision, now)

    # ------------------------------------------------------------------ tasks

    def _assign(self, decision: Assign, now: float) -> Refusal | None:
        task, host, pstate = decision.task, decision.host, decision.pstate
        if pstate is None:
            pstate = 0  # the host's own, once it is known to be one
        if not (task.__class__ is host.__class__ is pstate.__class__ is int):
            why = no_whole_numbers(task=task, host=host, pstate=pstate)
            if why is not None:
                return why, None, None
            task, host, pstate = index(task), index(host), index(pstate)
        if decision.pstate is None and 0 <= host < len(self._pstate_of):
            pstate = self._pstate_of[host]
        why = self._validator.place(task, host, pstate)
        if why is not None:
            return why, task, host
        run, dispatch = self._run, self._dispatch
        state = run.state_of[task]
        if state == RUNNING:
            if not self._traits.replicates:
                return _needs("replicates", "Assign of a running task")
        elif state == POSTPONED and self._guard.puts_off:
            return None  # a moment ago, by the same answer
        elif (why := self._validator.assigned(state)) is not None:
            return why, task, host
        if self._guard.exists:
            place = np.array([task]), np.array([host]), np.array([pstate])
            refusal, fits = self._guard.admit(*place, now, "Assign")
            if refusal is not None or not fits[0]:
                return refusal
            dispatch.count_assigned(task, host, pstate)
        if dispatch.can_start(task, host, now):
            dispatch.start(task, host, pstate, now)
        else:
            dispatch.enqueue(task, host, pstate, now)
        return None

    def _allocate(self, decision: Allocate, now: float) -> Refusal | None:
        """Start a task now, or reserve its hosts for later."""
        task, pstate, start = decision.task, decision.pstate, decision.start
        own_pstate = 0 if pstate is None else pstate
        if not (task.__class__ is own_pstate.__class__ is int):
            if (why := no_whole_numbers(task=task, pstate=own_pstate)) is not None:
                return why, None, None
            task, own_pstate = index(task), index(own_pstate)
        hosts = np.asarray(decision.hosts)
        if hosts.ndim != 1 or not hosts.size or hosts.dtype.kind not in "iu":
            why = f"Allocate.hosts is {decision.hosts!r}; it must be an array of host ids"
            return why, task, None
        hosts, parts = ascending(hosts.astype(np.int64))  # a copy: the policy may use its array again
        if pstate is None and 0 <= hosts.item(0) < len(self._pstate_of):
            own_pstate = self._pstate_of[hosts.item(0)]
        if start is None:
            start = now
        elif isinstance(start, int | float | np.number) and now <= start < math.inf:
            start = float(start)
        else:
            why = f"Allocate.start is {start!r}; it must lie at or after now, {now!r} s"
            return why, task, None
        return self._give(task, hosts, parts, own_pstate, start, now)

    def _give(
        self, task: int, hosts: Integers, parts: Integers | None, pstate: int, start: float, now: float
    ) -> Refusal | None:
        """Start a task on a set of hosts, or reserve these from `start` on [s]."""
        run, validator = self._run, self._validator
        is_copy = 0 <= task < len(run.state_of) and run.state_of[task] == RUNNING and self._traits.replicates
        if start <= now and validator.may_start(task, hosts, parts, pstate):
            end = start + self._run_time(task, hosts.item(0), pstate)
        else:
            refusal = validator.places(task, hosts, parts, pstate, is_copy=is_copy)
            if refusal is None:
                end = start + self._run_time(task, hosts.item(0), pstate)
                refusal = validator.free_between(task, hosts, parts, pstate, start, end, now)
            if refusal is not None:
                return refusal
        if is_copy and start > now:
            return "a copy of a running task starts now, or is queued by Assign", task, None
        if self._guard.exists:
            place = np.array([task]), hosts[:1], np.array([pstate])
            refusal, fits = self._guard.admit(*place, now, "Allocate", np.array([start]))
            if refusal is not None or not fits[0]:
                return refusal
        self._dispatch.allocate(task, hosts, parts, pstate, start, end, now)
        return None

    def start_reserved(self, now: float) -> Refusal | None:
        """Start the reservations that are due, or say which finds its hosts busy."""
        reservations = self._run.reservations
        while reservations.next_start <= now:
            due = reservations.take()
            refusal = self._validator.startable(due.task, due.nodes, due.parts, due.pstate)
            if refusal is not None:
                why = (
                    f"its reservation, from {due.start:g} s, finds that {refusal[0]}; "
                    "reserve hosts that are free by then, by estimates that are upper bounds"
                )
                return why, *refusal[1:]
            self._dispatch.start_placed(due, now)
        return None

    def _cancel(self, decision: Cancel, now: float) -> Refusal | None:
        """End the task's last running copy, on the host that is named or on any; else unqueue."""
        run, task, host = self._run, index(decision.task), decision.host
        traits, is_running = self._traits, run.state_of[task] == RUNNING
        self._account.forget_state()
        hosts = None if host is None else [index(host)]
        copies = [each for each in self._copies(task) if hosts is None or hosts[0] in each.all_hosts]
        places = run.places.get(task, ())
        queued = sorted(places) if hosts is None else [h for h in hosts if h in places]
        if copies and is_running:
            if not (traits.replicates or traits.may_cancel):
                return _needs("may_cancel", "Cancel of a running copy (or 'replicates')")
            self._end_copy(copies[-1], decision, now)
        elif queued and traits.may_cancel:
            self._dispatch.unqueue(task, queued[0])
        elif run.state_of[task] == QUEUED and not traits.may_cancel:
            return _needs("may_cancel", "Cancel of a queued task")
        elif not (traits.replicates or traits.may_cancel):
            return _needs("may_cancel", "Cancel")
        else:
            word = TaskState(run.state_of[task]).name.lower()
            return f"no queued or running copy is there; the task is {word}", task, host
        self._dispatch.serve_freed(now)
        return None

    def _copies(self, task: int) -> list[Execution]:
        """Return the running copies of a task, by host, then by start."""
        copies = [each for each in self._run.executing() if each.task == task]
        return sorted(copies, key=lambda each: each.host)

    def _end_copy(self, copy: Execution, decision: Cancel, now: float) -> None:
        """End a running copy: as wasted, where copies are made; else its task is killed, or waits again.

        A policy that names one host for each task has queued it, and withdraws it as long as it has not computed.
        """
        has_computed = copy.has_begun and copy.start < now
        requeues = decision.requeue or self._traits.replicates or not (self._traits.parallel or has_computed)
        self._dispatch.withdraw(copy, now, ExecutionEnd.CANCELLED if requeues else ExecutionEnd.KILLED)
        if not requeues:
            self._dispatch.give_up(copy.task, int(TaskState.KILLED))
        if not self._traits.replicates:
            self._timers.set(now, Timer.WAKE)

    def _drop(self, decision: Drop, now: float) -> Refusal | None:
        why = self._validator.mappable(index(decision.task), "dropped")
        if why is not None:
            return why, decision.task, None
        self._dispatch.give_up(index(decision.task), TaskState.DROPPED)
        return None

    def _postpone(self, decision: Postpone, now: float) -> Refusal | None:
        why = self._validator.mappable(index(decision.task), "postponed")
        if not self._account.exists:
            why = "Postpone waits for the next budget period, and there is none"
        if why is not None:
            return why, decision.task, None
        self._run.postpone(index(decision.task))
        return None

    # ------------------------------------------------------------------ plans

    def _plan(self, decision: Plan, now: float) -> Refusal | None:
        has_starts = decision.offsets is not None or decision.starts is not None
        if has_starts and not self._traits.parallel:
            return _needs("parallel", "a Plan with offsets and starts")
        why, arrays = plan_arrays(decision, has_starts=has_starts)
        if why is not None:
            return why, None, None
        if has_starts:
            return self._plan_places(arrays, now)
        tasks = arrays["tasks"]
        if decision.hosts is None:
            return self._plan_in_common(tasks, decision, now)
        hosts, pstates = arrays["hosts"], arrays.get("pstates")
        if pstates is None:  # a host that there is not is refused below
            pstates = np.take(self._pstates, hosts, mode="clip")
        if not len(tasks) == len(hosts) == len(pstates):
            lengths = ", ".join(counted(len(each), name[:-1]) for name, each in arrays.items())
            return f"Plan has {lengths}", None, None
        self._withdraw_plan(now)
        queues = by_host(tasks, hosts, pstates)
        refusal = self._validator.plan(*queues)
        if refusal is None and self._guard.exists:
            refusal, fits = self._guard.admit(tasks, hosts, pstates, now, "Plan")
            if not fits.all():
                tasks, hosts = tasks[fits], hosts[fits]
                queues = by_host(tasks, hosts, pstates[fits])
        if refusal is None:
            self._run.plan(*queues)
            if self._staging.exists:
                self._staging.book_plan(tasks, self._platform.cluster_of[hosts], now)
        return refusal

    def _plan_places(self, arrays: dict[str, NDArray[Any]], now: float) -> Refusal | None:
        """Make place-holders in the place of those before."""
        tasks, hosts, offsets, starts = (arrays[name] for name in ("tasks", "hosts", "offsets", "starts"))
        first = hosts[offsets[:-1]]
        pstates = arrays.get("pstates", np.take(self._pstates, first, mode="clip"))
        if len(pstates) != len(tasks):
            return f"Plan has {counted(len(tasks), 'task')} and {counted(len(pstates), 'pstate')}", None, None
        late = ~((starts >= now) & (starts < math.inf))
        if late.any():
            k = int(np.argmax(late))
            why = f"Plan.starts holds {starts[k]!r} s; it must lie at or after now, {now!r} s"
            return why, int(tasks[k]), None
        self._withdraw_plan(now)
        refusal = self._validator.place_holders(tasks, hosts, first, np.diff(offsets), pstates)
        if refusal is not None:
            return refusal
        inside_j = None
        if self._guard.exists:
            refusal, fits = self._guard.admit(tasks, first, pstates, now, "Plan", starts)
            if refusal is not None:
                return refusal
            if not fits.all():
                widths = np.diff(offsets)
                tasks, pstates, first, starts = (array[fits] for array in (tasks, pstates, first, starts))
                hosts = hosts[np.repeat(fits, widths)]
                offsets = np.concatenate([[0], np.cumsum(widths[fits])])
            inside_j = self._guard.inside_j(tasks, first, pstates, starts)
        self._run.plan_places(tasks, hosts, pstates, offsets, starts, inside_j)
        return None

    def start_planned(self, now: float) -> Refusal | None:
        """Start the place-holders that are due, or say why one cannot; what waits for others goes on waiting."""
        run, planned = self._run, self._run.place_holders
        while planned.next_start <= now:
            start = planned.next_start
            task, hosts, pstate = planned.take()
            if run.state_of[task] != VIRTUAL or task in run.held:
                continue  # it has been taken elsewhere, or waits for others
            hosts, parts = ascending(hosts)
            refusal = self._validator.places(task, hosts, parts, pstate)
            if refusal is None:
                end = start + self._run_time(task, hosts.item(0), pstate)
                refusal = self._validator.free_between(task, hosts, parts, pstate, start, end, now)
            if refusal is not None:
                return f"its place-holder starts, and {refusal[0]}", *refusal[1:]
            self._dispatch.allocate(task, hosts, parts, pstate, start, end, now)
        return None

    def _plan_in_common(self, tasks: Integers, decision: Plan, now: float) -> Refusal | None:
        why = None
        if decision.pstates is not None:
            why = "a Plan without hosts has no P-states: the scenario's is used"
        elif not self._always_feasible:
            why = "a Plan without hosts needs tasks that run on every host"
        elif self._guard.refuses:
            why = "a Plan without hosts uses an unknown part of a budget that refuses"
        if why is not None:
            return why, None, None
        self._withdraw_plan(now)
        refusal = self._validator.common_plan(tasks) or self._validator.lie_alone(tasks)
        if refusal is None:
            self._run.plan_in_common(tasks)
        return refusal

    def _withdraw_plan(self, now: float) -> None:
        self._run.withdraw_plan()
        self._staging.withdraw_planned(now)

    # ------------------------------------------------------------------ hosts and time

    def _power_off(self, decision: PowerOff, now: float) -> Refusal | None:
        run, host = self._run, index(decision.host)
        if not run.is_open[host]:
            return f"PowerOff of a host that is {'drained' if run.is_drained(host) else 'off'}", None, host
        if run.is_spoken_for(host):
            return "PowerOff while something runs, is fixed or is reserved there", None, host
        if self._dispatch.keeps_data(host):
            return "PowerOff while data of tasks go from or to it, or are kept there (state.idle_since)", None, host
        self._switches.switch_off(host, now)
        return None

    def _power_on(self, decision: PowerOn, now: float) -> Refusal | None:
        run, host = self._run, index(decision.host)
        if run.is_open[host]:
            return "PowerOn of a host that is on", None, host
        if run.is_down[host] or run.is_drained(host):
            return f"PowerOn of a host that is {self._validator.why_closed(host)}", None, host
        self._switches.switch_on(host, now)
        return None

    def _wake_at(self, decision: WakeAt, now: float) -> Refusal | None:
        if not now < decision.time < math.inf:
            return f"WakeAt({decision.time!r}) must lie in the future", None, None
        self._timers.set(decision.time, Timer.WAKE)
        return None

    def _note(self, decision: Note, now: float) -> Refusal | None:
        column, value = decision.column, decision.value
        if column not in self._traits.notes:
            legal = ", ".join(self._traits.notes) or "none"
            return f"Note in column {column!r}; Traits.notes has {legal}", decision.task, None
        is_number = isinstance(value, int | float | np.integer | np.floating)
        if not is_number or not math.isfinite(value):
            why = f"Note of {value!r} in column {column!r}; it must be a finite number"
            return why, decision.task, None
        self.notes[column][index(decision.task)] = value
        return None

    def _unknown(self, task: object = None, host: object = None) -> Refusal | None:
        """Say that the task or the host is none, where one is named."""
        named = {"task": task, "host": host}
        why = no_whole_numbers(**{name: n for name, n in named.items() if n is not None})
        if why is not None:
            return why, None, None
        why = self._validator.unknown(task, host)  # type: ignore[arg-type]
        return None if why is None else (why, task, host)  # type: ignore[return-value]

    _HANDLERS: ClassVar[dict[type, Callable[[DecisionHandlers, Any, float], Refusal | None]]] = {
        Assign: _assign,
        Plan: _plan,
        Cancel: _cancel,
        Drop: _drop,
        Postpone: _postpone,
        PowerOff: _power_off,
        PowerOn: _power_on,
        WakeAt: _wake_at,
        Note: _note,
        Allocate: _allocate,
    }


#: Decisions about a task or a host, which must be there.
_OF_ONE = frozenset((Cancel, Drop, Postpone, PowerOff, PowerOn, Note))
#: What a policy must declare to decide so.
_NEEDED_TRAITS = {
    Allocate: "parallel",
    Drop: "may_drop",
    Postpone: "may_drop",
    PowerOff: "powers_hosts",
    PowerOn: "powers_hosts",
}


def _needs(trait: str, decision: str, *_: object) -> Refusal:
    return f"{decision} needs the trait {trait!r}", None, None


def plan_arrays(decision: Plan, *, has_starts: bool) -> tuple[str | None, dict[str, NDArray[Any]]]:
    """Return copies of the arrays that a plan has by name, or say what is wrong with one."""
    arrays: dict[str, NDArray[Any]] = {}
    for name in ("tasks", "hosts", "pstates", "offsets", "starts"):
        values = getattr(decision, name)
        if values is None and name != "tasks":
            if name == "pstates" or not has_starts:
                continue
            return f"Plan.{name} is None; a Plan of place-holders needs hosts, offsets, starts", {}
        array, numbers = np.asarray(values), "iuf" if name == "starts" else "iu"
        if array.ndim != 1 or (array.size and array.dtype.kind not in numbers):
            what = "numbers" if name == "starts" else "whole numbers"
            return f"Plan.{name} is {values!r}; it must be an array of {what}", {}
        arrays[name] = array.astype(np.float64 if name == "starts" else np.int64)
    if not has_starts:
        return None, arrays
    tasks, offsets, n_hosts = arrays["tasks"], arrays["offsets"], len(arrays["hosts"])
    if len(arrays["starts"]) != len(tasks) or len(offsets) != len(tasks) + 1:
        lengths = (
            f"{counted(len(tasks), 'task')}, {counted(len(arrays['starts']), 'start')}, "
            f"{counted(len(offsets), 'offset')}"
        )
        return f"Plan has {lengths}; it needs a start for each task, and one offset more", {}
    if offsets[0] != 0 or offsets[-1] != n_hosts or (offsets[1:] <= offsets[:-1]).any():
        return f"Plan.offsets must rise from 0 to {n_hosts}, the number of hosts", {}
    return None, arrays


def no_whole_numbers(**named: object) -> str | None:
    """Say that something, by its name, is not a whole number; None if all are."""
    for name, number in named.items():
        try:
            index(number)  # type: ignore[arg-type]
        except TypeError:
            return f"{name} is {number!r}; it must be a whole number"
    return None
