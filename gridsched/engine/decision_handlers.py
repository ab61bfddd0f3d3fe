"""Carrying out what a policy asks for, one method a decision: each returns why not, or None."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any, ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.engine.budget_guard import BudgetGuard, by_host
from gridsched.engine.decision_validator import DOWN, DecisionValidator, Refusal
from gridsched.engine.dispatch import Dispatch
from gridsched.engine.energy_account import EnergyAccount
from gridsched.engine.events import Timers
from gridsched.engine.execution import POSTPONED, QUEUED, RUNNING, Timer
from gridsched.engine.host_switches import HostSwitches
from gridsched.engine.node_decision_handlers import NodeDecisionHandlers, no_whole_numbers, plan_arrays
from gridsched.engine.ready_times import Staging
from gridsched.engine.run_state import RunState
from gridsched.model.system import System
from gridsched.model.trace import TaskState
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
    """Checks decisions and applies those that are legal.

    Parameters
    ----------
    system : System
    run : RunState
    dispatch : Dispatch
    switches : HostSwitches
    timers : Timers
    staging : Staging or None
    account : EnergyAccount or None
    guard : BudgetGuard or None

    Attributes
    ----------
    notes : dict of str to ndarray of float64, shape (tasks,)
        What was noted, column by column; nan where nothing was.
    on_nodes : NodeDecisionHandlers
        What is asked for parallel tasks.
    """

    def __init__(
        self,
        system: System,
        run: RunState,
        dispatch: Dispatch,
        switches: HostSwitches,
        timers: Timers,
        staging: Staging | None,
        account: EnergyAccount | None,
        guard: BudgetGuard | None,
    ) -> None:
        self._run = run
        self._validator = validator = DecisionValidator(system, run)
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
        self._traits = Traits(asked="event")
        self.notes: dict[str, Floats] = {}
        self.on_nodes = NodeDecisionHandlers(system, run, validator, dispatch, guard)

    @property
    def refuses(self) -> bool:
        """Whether a budget refuses what exceeds it."""
        return self._guard is not None and self._guard.refuses

    def heed(self, traits: Traits) -> None:
        """Take decisions of a policy with these traits from now on."""
        self._traits = traits
        self._handlers = dict(self._FOR_NODES if traits.parallel else self._HANDLERS)
        for kind, trait in _NEEDED_TRAITS.items():
            if not getattr(traits, trait):
                self._handlers[kind] = partial(_needs, trait, kind.__name__)
        for column in traits.notes:
            self.notes.setdefault(column, np.full(len(self._run.states), np.nan))
        if self._guard is not None:
            self._guard.heed(traits)

    def apply(self, decision: Decision, now: float) -> Refusal | None:
        """Apply a decision at `now` [s], or say why it is illegal."""
        handler = self._handlers.get(decision.__class__)
        if handler is None:
            return f"{decision!r} is no decision; see gridsched.policy.decisions", None, None
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
        elif state == POSTPONED and self._guard is not None and self._guard.puts_off:
            return None  # a moment ago, by the same answer
        elif (why := self._validator.assigned(state)) is not None:
            return why, task, host
        if self._guard is not None:
            place = np.array([task]), np.array([host]), np.array([pstate])
            refusal, fits = self._guard.admit(*place, now, "Assign")
            if refusal is not None or not fits[0]:
                return refusal
            dispatch.count_assigned(task, host, pstate)
        if dispatch.can_start(host, now):
            dispatch.start(task, host, pstate, now)
        else:
            dispatch.enqueue(task, host, pstate, now)
        return None

    def _allocate(self, decision: Allocate, now: float) -> Refusal | None:
        return self.on_nodes.allocate(decision, now)

    def _plan_nodes(self, decision: Plan, now: float) -> Refusal | None:
        return self.on_nodes.plan(decision, now)

    def _kill(self, decision: Cancel, now: float) -> Refusal | None:
        if not self._traits.may_cancel:
            return _needs("may_cancel", "Cancel of a parallel task")
        self._timers.set(now, Timer.WAKE)  # nodes are free: what comes may be nothing else
        return self.on_nodes.kill(decision, now)

    def _for_serial_tasks(self, decision: Decision, now: float) -> Refusal | None:
        kind = type(decision).__name__
        return f"{kind} is for serial tasks; Allocate starts a parallel one", None, None

    def _cancel(self, decision: Cancel, now: float) -> Refusal | None:
        """End the task's last running copy, on the host that is named or on any; else unqueue."""
        run, task, host = self._run, index(decision.task), decision.host
        if self._account is not None:
            self._account.forget_state()
        hosts = sorted(run.running) if host is None else [index(host)]
        copies = [
            copy
            for h in hosts
            for copy in run.running.get(h, ())
            if copy.task == task and run.state_of[task] == RUNNING
        ]
        places = run.places.get(task, ())
        queued = sorted(places) if host is None else [h for h in hosts if h in places]
        if copies:
            if not self._traits.replicates:
                return _needs("replicates", "Cancel of a running copy")
            self._dispatch.withdraw(copies[-1], now)
        elif queued and self._traits.may_cancel:
            self._dispatch.unqueue(task, queued[0])
        elif run.state_of[task] == QUEUED and not self._traits.may_cancel:
            return _needs("may_cancel", "Cancel of a queued task")
        else:
            word = TaskState(run.state_of[task]).name.lower()
            return f"no queued or running copy is there; the task is {word}", task, host
        self._dispatch.serve_freed(now)
        return None

    def _drop(self, decision: Drop, now: float) -> Refusal | None:
        why = self._validator.mappable(index(decision.task), "dropped")
        if why is not None:
            return why, decision.task, None
        self._run.end_task(index(decision.task), TaskState.DROPPED)
        return None

    def _postpone(self, decision: Postpone, now: float) -> Refusal | None:
        why = self._validator.mappable(index(decision.task), "postponed")
        if self._account is None:
            why = "Postpone waits for the next budget period, and there is none"
        if why is not None:
            return why, decision.task, None
        self._run.postpone(index(decision.task))
        return None

    # ------------------------------------------------------------------ plans

    def _plan(self, decision: Plan, now: float) -> Refusal | None:
        if decision.offsets is not None or decision.starts is not None:
            return "a Plan with offsets and starts is for parallel tasks", None, None
        why, arrays = plan_arrays(decision)
        if why is not None:
            return why, None, None
        tasks = arrays["tasks"]
        if decision.hosts is None:
            return self._plan_in_common(tasks, decision, now)
        hosts, pstates = arrays["hosts"], arrays.get("pstates")
        if pstates is None:  # a host that there is not is refused below
            pstates = np.take(self._pstates, hosts, mode="clip")
        if not len(tasks) == len(hosts) == len(pstates):
            lengths = ", ".join(f"{len(each)} {name}" for name, each in arrays.items())
            return f"Plan has {lengths}", None, None
        self._withdraw_plan(now)
        queues = by_host(tasks, hosts, pstates)
        refusal = self._validator.plan(*queues)
        if refusal is None and self._guard is not None:
            refusal, fits = self._guard.admit(tasks, hosts, pstates, now, "Plan")
            if not fits.all():
                tasks, hosts = tasks[fits], hosts[fits]
                queues = by_host(tasks, hosts, pstates[fits])
        if refusal is None:
            self._run.plan(*queues)
            if self._staging is not None:
                self._staging.book_plan(tasks, self._platform.cluster_of[hosts], now)
        return refusal

    def _plan_in_common(self, tasks: Integers, decision: Plan, now: float) -> Refusal | None:
        why = None
        if decision.pstates is not None:
            why = "a Plan without hosts has no P-states: the scenario's is used"
        elif not self._always_feasible:
            why = "a Plan without hosts needs tasks that run on every host"
        elif self._guard is not None and self._guard.refuses:
            why = "a Plan without hosts draws nobody knows what from a budget that refuses"
        if why is not None:
            return why, None, None
        self._withdraw_plan(now)
        refusal = self._validator.common_plan(tasks)
        if refusal is None:
            self._run.plan_in_common(tasks)
        return refusal

    def _withdraw_plan(self, now: float) -> None:
        self._run.withdraw_plan()
        if self._staging is not None:
            self._staging.withdraw_planned(now)

    # ------------------------------------------------------------------ hosts and time

    def _power_off(self, decision: PowerOff, now: float) -> Refusal | None:
        run, host = self._run, index(decision.host)
        if not run.is_on[host]:
            return "PowerOff of a host that is off", None, host
        if run.is_spoken_for(host):
            return "PowerOff while something runs, is fixed or is reserved there", None, host
        self._switches.switch_off(host, now)
        return None

    def _power_on(self, decision: PowerOn, now: float) -> Refusal | None:
        run, host = self._run, index(decision.host)
        if run.is_on[host]:
            return "PowerOn of a host that is on", None, host
        if run.is_down[host]:
            return f"PowerOn of a host that is down; {DOWN}", None, host
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
    #: for parallel tasks, which stand in no queue
    _FOR_NODES: ClassVar[dict[type, Callable[[DecisionHandlers, Any, float], Refusal | None]]] = {
        **_HANDLERS,
        Assign: _for_serial_tasks,
        Plan: _plan_nodes,
        Cancel: _kill,
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
