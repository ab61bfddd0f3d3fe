"""Ask the policy, and have what it answers checked and applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

import numpy as np

from gridsched.engine.ledger import Ledger
from gridsched.engine.legality import Refusal
from gridsched.engine.live_state import StateRenewal
from gridsched.engine.requests import Requests
from gridsched.errors import InvalidDecision
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Decision
from gridsched.policy.delegate import Delegate
from gridsched.policy.state import State


class Inquiry:
    """The policy of a run, or the one that it has delegated to.

    Parameters
    ----------
    scheduler : Scheduler
        Prepared by `prepare`.
    shown : System
        The system as a policy sees it: nothing of it tells of what is to come.
    tasks : Tasks
    rng : numpy.random.Generator
        The scheduler's own random stream.
    ledger : Ledger
    requests : Requests
    state_at : StateRenewal
        Gives the state at an instant.
    stopwatch : callable, optional
        Returns wall time [s]; where given, the policy's time is summed in `policy_time_s`.

    Attributes
    ----------
    scheduler : Scheduler
    asked : str
        Its trait `asked`.
    attends : bool
        Its trait `attends`.
    mapping_events : int
        How often it was asked for a schedule.
    policy_time_s : float
        What it took to answer [s].
    delegated_to : str
        The successor, if it has delegated; else empty.
    """

    def __init__(
        self, scheduler: Scheduler, shown: System, tasks: Tasks, rng: np.random.Generator,
        ledger: Ledger, requests: Requests, state_at: StateRenewal,
        stopwatch: Callable[[], float] | None,
    ) -> None:  # fmt: skip
        self.mapping_events = 0
        self.policy_time_s = 0.0
        self.delegated_to = ""
        self._shown = shown
        self._tasks = tasks
        self._rng = rng
        self._ledger = ledger
        self._requests = requests
        self._state_at = state_at
        self._stopwatch = stopwatch
        self._follow(scheduler)

    def _follow(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.asked, self.attends = scheduler.traits.asked, scheduler.traits.attends
        self._requests.heed(scheduler.traits)

    def prepare(self) -> None:
        """Let the policy prepare itself, before the run."""
        self.scheduler.prepare(self._shown, self._rng)

    def attend(self, now: float) -> None:
        """Let the policy attend to its hosts at `now` [s]."""
        self._decide(self.scheduler.attend, now)

    def schedule(self, now: float, only: int | None = None) -> None:
        """Ask the policy at `now` [s] for a schedule, of one task `only` where that is given."""
        if self._ledger.nodes is not None and self._ledger.n_virtual:
            self._ledger.withdraw_plan()  # place-holders last until the next ask
        self.mapping_events += 1
        self._decide(self.scheduler.schedule, now, only)

    def _decide(
        self, ask: Callable[[State], Iterable[Decision] | None], now: float,
        only: int | None = None,
    ) -> None:  # fmt: skip
        """Show the policy the state and apply what it answers."""
        state = self._state_at(now, self._ledger.submitted, only)
        stopwatch = self._stopwatch
        began = stopwatch() if stopwatch else 0.0
        answer = ask(state)
        if answer is None:
            name = "attend" if ask == self.scheduler.attend else "schedule"
            self._refuse(
                now, f"{name}() returned None; return a list of decisions, or an empty one"
            )
        decisions = list(answer)  # all of them, before any is applied
        if stopwatch:
            self.policy_time_s += stopwatch() - began
        for decision in decisions:
            if decision.__class__ is Delegate:
                self._delegate(decision, now)
                continue
            refusal = self._requests.apply(decision, now)
            if refusal is not None:
                self._refuse(now, *refusal)

    def check(self, refusal: Refusal | None, now: float) -> None:
        """Raise `InvalidDecision` if there is a refusal of what the policy has decided."""
        if refusal is not None:
            self._refuse(now, *refusal)

    def _refuse(
        self, now: float, why: str, task: object = None, host: object = None
    ) -> NoReturn:  # fmt: skip
        where = ""
        for what, number, names in (
            ("task", task, self._tasks.labels.tolist()),
            ("host", host, [each.name for each in self._shown.platform.hosts]),
        ):
            if isinstance(number, int | np.integer) and 0 <= number < len(names):
                number = names[number]
            where += "" if number is None else f", {what} {number!r}"
        raise InvalidDecision(f"{self.scheduler!r} at t = {now:g} s{where}: {why}.")

    def _delegate(self, decision: Delegate, now: float) -> None:
        """Follow another policy from now on; what was declared before the run still bounds it."""
        if not self.scheduler.traits.delegates:
            self._refuse(now, "Delegate needs the trait 'delegates'")
        successor = decision.scheduler
        if not isinstance(successor, Scheduler):
            self._refuse(now, f"Delegate.scheduler is {successor!r}; it must be a Scheduler")
        if not self.scheduler.traits.covers(successor.traits):
            self._refuse(now, f"Delegate to {successor!r}, whose traits go beyond its own")
        successor.prepare(self._shown, self._rng)
        self._follow(successor)
        self.delegated_to = repr(successor)
