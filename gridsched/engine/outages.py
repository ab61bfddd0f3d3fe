"""Hosts that go down and come up by themselves, and what becomes of the tasks there."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator

from gridsched.engine.dispatch import Dispatch
from gridsched.engine.execution import Execution
from gridsched.engine.host_switches import HostSwitches
from gridsched.engine.ledger import WAITING, Ledger
from gridsched.errors import IncompleteRun
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import ExecutionEnd, TaskState

#: So often a task may be started again, and a host fail to boot while tasks wait and nothing runs:
#: what takes longer than hosts are up would never end.
MAX_RESTARTS = 1000


class Outages:
    """Follows the state profiles of the hosts.

    What runs on a host that goes down has failed: the task ends so, or waits again
    (`Rules.on_failure`). What is fixed, planned or reserved there waits again.

    Parameters
    ----------
    system : System
    tasks : Tasks
    ledger : Ledger
    dispatch : Dispatch
    switches : HostSwitches

    Attributes
    ----------
    next_time : float
        When the next host goes down or comes up [s]; infinite where none ever does.
    """

    def __init__(
        self, system: System, tasks: Tasks, ledger: Ledger, dispatch: Dispatch,
        switches: HostSwitches,
    ) -> None:  # fmt: skip
        self._tasks = tasks
        self._ledger = ledger
        self._dispatch = dispatch
        self._switches = switches
        self._fails = system.rules.on_failure == "failed"
        self._lost_state = int(TaskState.FAILED)
        self._restarts: Counter[int] = Counter()
        self._has_horizon = system.rules.horizon_s is not None
        self._hosts = system.platform.hosts
        #: of each host since the last execution began, and how many had begun then
        self._failed_boots: Counter[int] = Counter()
        self._begun = 0
        self._was_on = [True] * system.n_hosts
        self._heap: list[tuple[float, int, bool, Iterator[tuple[float, float]]]] = []
        self.next_time = math.inf
        profiles = system.platform.profiles.state_of
        for host, each in enumerate(system.platform.hosts):
            if each.name in profiles:
                self._await_next(host, profiles[each.name].events())

    def _await_next(self, host: int, events: Iterator[tuple[float, float]]) -> None:
        for date, value in events:
            heapq.heappush(self._heap, (date, host, value > 0, events))
            break
        self.next_time = self._heap[0][0] if self._heap else math.inf

    def apply(self, now: float) -> bool:
        """Let hosts go down and come up that are due; return whether any did."""
        changed = False
        while self.next_time <= now:
            _, host, is_up, events = heapq.heappop(self._heap)
            self._await_next(host, events)
            if is_up == self._ledger.is_down[host]:
                changed = True
                if is_up:
                    self._comes_up(host, now)
                else:
                    self._goes_down(host, now)
        return changed

    def end(self) -> None:
        """Start nothing again: the run is over, but for what still runs."""
        self._fails, self._lost_state = True, int(TaskState.UNFINISHED)

    def _comes_up(self, host: int, now: float) -> None:
        self._ledger.is_down[host] = False
        if self._was_on[host]:
            self._switches.switch_on(host, now)

    def _goes_down(self, host: int, now: float) -> None:
        ledger = self._ledger
        ledger.is_down[host] = True
        self._was_on[host] = ledger.is_on[host]
        if ledger.is_on[host]:
            if ledger.boot_end[host] > now:
                self._count_failed_boot(host, now)
            self._withdraw(host)
            if ledger.nodes is None:
                lost = list(ledger.running.get(host, ()))
            else:
                lost = [each for each in ledger.nodes.running if host in each.all_hosts]
            for execution in lost:
                self._lose(execution, now)
        self._switches.cut_off(host, now)

    def _count_failed_boot(self, host: int, now: float) -> None:
        """Raise if hosts go down again and again before they have booted for tasks that wait."""
        ledger = self._ledger
        if len(ledger.executions) != self._begun:
            self._begun = len(ledger.executions)
            self._failed_boots.clear()
        to_arrive = len(self._tasks) - ledger.submitted
        if ledger.busy_cores or ledger.open_tasks <= to_arrive or self._has_horizon:
            return
        self._failed_boots[host] += 1
        if self._failed_boots[host] > MAX_RESTARTS:
            each = self._hosts[host]
            raise IncompleteRun(
                f"Host {each.name!r} went down {self._failed_boots[host]} times before it had "
                f"booted, at t = {now:g} s the last, while {ledger.open_tasks - to_arrive} tasks "
                f"waited and nothing ran: it boots for {each.boot_time_s:g} s. Use shorter boot "
                "times, or hosts that stay up longer."
            )

    def _withdraw(self, host: int) -> None:
        """Let tasks that are fixed, planned or reserved on a host wait again."""
        ledger, dispatch = self._ledger, self._dispatch
        for task, pstate in list(ledger.fixed[host]):
            ledger.remove_fixed(host, task)
            dispatch.uncount_assigned(task, host, pstate)
            ledger.settle(task)
        if ledger.nodes is None:
            while (planned := ledger.next_planned(host)) is not None:
                ledger.waiting_again(planned[0])
            return
        ledger.withdraw_plan()
        for each in ledger.reservations.withdraw(host):
            dispatch.uncount_assigned(each.task, each.hosts.item(0), each.pstate)
            ledger.waiting_again(each.task)

    def _lose(self, execution: Execution, now: float) -> None:
        """End a running copy as failed, and its task with it unless it is started again."""
        ledger, task = self._ledger, execution.task
        if ledger.replicates:
            ledger.copies[task].remove(execution)
        self._dispatch.uncount_running(execution, now)
        self._dispatch.stop(execution, now, ExecutionEnd.FAILED)
        ledger.settle(task)
        if ledger.state_of[task] != WAITING:  # another copy is left
            return
        if self._fails:
            ledger.state_of[task] = self._lost_state
            ledger.open_tasks -= 1
            return
        self._restarts[task] += 1
        if self._restarts[task] > MAX_RESTARTS:
            name = self._tasks.labels[task]
            raise IncompleteRun(
                f"Task {name} was lost {self._restarts[task]} times, at t = {now:g} s the last: "
                "its hosts go down before it ends. Use shorter tasks, hosts that stay up longer, "
                "or let what is lost fail (--on-failure failed)."
            )
