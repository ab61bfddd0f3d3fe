"""Whether tasks may go where a decision puts them: places that exist, P-states they can share."""

from __future__ import annotations

from itertools import islice
from operator import index
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.ledger import VIRTUAL, WAITING
from gridsched.errors import InvalidDecision
from gridsched.model.trace import TaskState

if TYPE_CHECKING:
    from gridsched.engine.ledger import Ledger

Ids = NDArray[np.int64]


class PlacementChecks:
    """The part of the controller that refuses illegal places."""

    ledger: Ledger
    now: float

    def _prepare_places(self) -> None:
        estimates, platform = self.system.estimates, self.system.platform
        self._n_hosts = self.system.n_hosts
        self._n_pstates_of = estimates.n_pstates(platform)
        self._n_pstates: list[int] = self._n_pstates_of.tolist()
        self._some_infeasible = not estimates.always_feasible

    def _refuse(self, reason: str, task: int | None = None, host: int | None = None) -> NoReturn:
        where = ""
        if task is not None:
            known = isinstance(task, int | np.integer) and 0 <= task < len(self.tasks)
            where += f", task {int(self.tasks.labels[task]) if known else task!r}"
        if host is not None:
            known = isinstance(host, int | np.integer) and 0 <= host < self._n_hosts
            where += f", host {self.system.platform.hosts[host].name if known else host!r}"
        raise InvalidDecision(f"{self.scheduler!r} at t = {self.now:g} s{where}: {reason}.")

    def _whole(self, number: object, what: str) -> int:
        """Return an id as a plain int; refuse what is no whole number."""
        try:
            return index(number)
        except TypeError:
            self._refuse(f"{what} is {number!r}; it must be a whole number")

    def _need(self, trait: str, decision: str) -> None:
        if not getattr(self.scheduler.traits, trait):
            self._refuse(f"{decision} needs the trait {trait!r}")

    def _check_place(self, task: int, host: int, pstate: int) -> None:
        """Refuse a task, host or P-state that does not exist or cannot be used now."""
        if not 0 <= task < len(self.ledger.state_of):
            self._refuse(f"there are tasks 0 to {len(self.tasks) - 1}", task, host)
        if not 0 <= host < self._n_hosts:
            self._refuse(f"there are hosts 0 to {self._n_hosts - 1}", task, host)
        if not 0 <= pstate < self._n_pstates[host]:
            legal = self._n_pstates[host] - 1
            self._refuse(f"the host has P-states 0 to {legal}, not {pstate}", task, host)
        if not self.ledger.is_on[host]:
            self._refuse("the host is off; PowerOn it first", task, host)
        if self._some_infeasible and self._run_time(task, host, pstate) == np.inf:
            self._refuse("the task cannot run on this host", task, host)
        if self.ledger.cores[host] > 1:
            self._check_shared_pstate(task, host, pstate)

    def _check_shared_pstate(self, task: int, host: int, pstate: int) -> None:
        """A host has one P-state for all its cores: what runs, is fixed and planned must agree.

        One of each is looked at, because they agreed when they came.
        """
        ledger = self.ledger
        present = [e.pstate for e in ledger.running[host][:1]]
        present += [k for _, k in islice(ledger.fixed[host], 1)]
        planned = (
            k for t, k in ledger.virtual.left(host) if ledger.state_of[t] == VIRTUAL and t != task
        )
        present += islice(planned, 1)
        for other in present:
            if other != pstate:
                self._refuse_shared_pstate(task, host, pstate, other)

    def _refuse_shared_pstate(self, task: int, host: int, pstate: int, other: int) -> NoReturn:
        self._refuse(
            f"P-state {pstate} on a host whose other work uses P-state {other}; all cores of a "
            "host share one",
            task,
            host,
        )

    def _check_plan(self, tasks: Ids, hosts: Ids, pstates: Ids) -> None:
        """Refuse a plan with an entry that is illegal; all are looked at together."""
        ledger = self.ledger
        if not len(tasks):
            return
        exist = (
            (tasks >= 0) & (tasks < len(ledger.states)) & (hosts >= 0) & (hosts < self._n_hosts)
        )  # fmt: skip
        if exist.all():
            legal = (pstates >= 0) & (pstates < self._n_pstates_of[hosts])
            if not all(ledger.is_on):
                legal &= np.array(ledger.is_on)[hosts]
            if self._some_infeasible and legal.all():
                legal &= np.isfinite(self.system.estimates.run_times(tasks, hosts, pstates))
        else:
            legal = exist
        if not legal.all():
            k = int(np.flatnonzero(~legal)[0])
            self._check_place(int(tasks[k]), int(hosts[k]), int(pstates[k]))
        free = ledger.states[tasks] == WAITING
        if not free.all() or self._repeats(tasks):
            repeated = np.ones(len(tasks), dtype=bool)
            repeated[np.unique(tasks, return_index=True)[1]] = False
            k = int(np.flatnonzero(repeated | ~free)[0])
            state = TaskState(VIRTUAL if free[k] else ledger.states[tasks[k]]).name.lower()
            self._refuse(
                f"Plan holds a task twice, or one that is {state}", int(tasks[k]), int(hosts[k])
            )
        if not ledger.one_core:
            self._check_planned_pstates(tasks, hosts, pstates)

    def _repeats(self, tasks: Ids) -> bool:
        """Whether a task stands twice among waiting ones."""
        states, first = self.ledger.states, int(tasks.min())
        states[tasks] = VIRTUAL
        n_marked = np.count_nonzero(states[first : int(tasks.max()) + 1] == VIRTUAL)
        states[tasks] = WAITING
        return n_marked < len(tasks)

    def _check_planned_pstates(self, tasks: Ids, hosts: Ids, pstates: Ids) -> None:
        """Refuse a plan that gives the cores of one host different P-states."""
        planned: dict[int, int] = {}
        for task, host, pstate in zip(
            tasks.tolist(), hosts.tolist(), pstates.tolist(), strict=True
        ):
            if self.ledger.cores[host] == 1:
                continue
            self._check_shared_pstate(task, host, pstate)
            if planned.setdefault(host, pstate) != pstate:
                self._refuse_shared_pstate(task, host, pstate, planned[host])
