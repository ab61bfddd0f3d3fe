"""Switching hosts on and off: by a policy, or by themselves with what becomes of the tasks."""

from __future__ import annotations

import math
from collections import Counter

from gridsched.engine.dispatch import Dispatch
from gridsched.engine.events import ProfileEvents, Timers
from gridsched.engine.execution import Execution, SetPState, Timer, TurnOff, TurnOn
from gridsched.engine.run_state import RunState
from gridsched.engine.task_states import WAITING
from gridsched.errors import IncompleteRun, counted
from gridsched.model.platform import Platform
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import ExecutionEnd, TaskState


class HostSwitches:
    """Switches hosts, and notes it where it has to be known.

    A host that is switched off takes no task from then on, and is off when it has shut down. One
    that is switched on again before that boots when it is off.

    Parameters
    ----------
    platform : Platform
    run : RunState
    dispatch : Dispatch
        Takes the commands.
    timers : Timers
    """

    def __init__(self, platform: Platform, run: RunState, dispatch: Dispatch, timers: Timers) -> None:
        self._hosts = platform.hosts
        self._run = run
        self._dispatch = dispatch
        self._timers = timers
        #: when each host that shuts down is off [s]
        self._off_at: dict[int, float] = {}

    def switch_off(self, host: int, now: float) -> None:
        """Switch off a host on which nothing runs or is fixed."""
        run, each = self._run, self._hosts[host]
        run.switch(host, on=False)
        run.resources.set_ready(host, ready=False)
        if host in self._off_at:  # it was to boot after that
            return
        run.switching_w.pop(host, None)
        run.host_changed(now, host)
        if not each.shutdown_time_s:
            self._turn_off(host)
            return
        self._off_at[host] = now + each.shutdown_time_s
        watts = each.shutdown_w
        if watts is None:
            watts = each.pstates[run.pstate[host]].idle_w
        run.switching_w[host] = watts
        self._set_pstate(host, each.shutdown_pstate)
        self._dispatch.power_changed(host)
        self._timers.set(self._off_at[host], Timer.SWITCHED, host)

    def cut_off(self, host: int, now: float) -> None:
        """Let a host go down at once, without shutting down; nothing runs or is fixed there."""
        run = self._run
        shuts_down = self._off_at.pop(host, None) is not None
        if not run.is_on[host] and not shuts_down:
            return
        run.switch(host, on=False)
        run.resources.set_ready(host, ready=False)
        run.switching_w.pop(host, None)
        run.host_changed(now, host)
        if self._hosts[host].shutdown_time_s and not shuts_down:
            run.host_changed(now, host)  # the second change reports that it is off already
        self._turn_off(host)

    def switch_on(self, host: int, now: float) -> None:
        """Switch on a host, which boots, or will do so when it has shut down."""
        run, off_at = self._run, self._off_at.get(host)
        run.switch(host, on=True)
        if off_at is None:
            self._boot(host, now)
        else:
            run.boots(host, off_at + self._hosts[host].boot_time_s)

    def go_on(self, host: int, now: float) -> bool:
        """Take the next step of a host that is due; return whether it takes tasks from now on.

        Nothing is due where the host was switched since then.
        """
        run = self._run
        if host in self._off_at:
            if self._off_at[host] > now:
                return False
            del self._off_at[host], run.switching_w[host]
            self._turn_off(host)
            if not run.is_on[host]:
                return False
            self._boot(host, now)
        if not run.is_on[host] or run.boot_end[host] > now:
            return False
        if run.switching_w.pop(host, None) is not None:
            self._set_pstate(host, run.pstate[host])
            self._dispatch.power_changed(host)
            run.touch(host)
        run.resources.set_ready(host, ready=True)
        self._dispatch.serve_fixed(host, now)
        self._dispatch.vacant.append(host)
        return True

    def _turn_off(self, host: int) -> None:
        """Let a host be off."""
        self._dispatch.power_changed(host)
        self._dispatch.commands.append(TurnOff(host))

    def _boot(self, host: int, now: float) -> None:
        """Let a host boot that is off and switched on."""
        run, each = self._run, self._hosts[host]
        run.boots(host, now + each.boot_time_s)
        run.host_changed(now, host)
        boot_w = each.boot_w if each.boot_time_s else None
        if boot_w is not None:
            run.switching_w[host] = boot_w
        if each.switch_pstates:
            self._set_pstate(host, run.pstate[host] if boot_w is None else each.boot_pstate)
        self._dispatch.power_changed(host)
        self._dispatch.commands.append(TurnOn(host))
        if each.boot_time_s:
            self._timers.set(run.boot_end[host], Timer.SWITCHED, host)
        else:
            run.resources.set_ready(host, ready=True)

    def _set_pstate(self, host: int, pstate: int | None) -> None:
        """Tell the driver of the P-state that a host is in, if it is another one."""
        if pstate is not None:
            self._dispatch.commands.append(SetPState(host, pstate))


def withdraw_from(host: int, run: RunState, dispatch: Dispatch, now: float) -> None:
    """Let tasks that are fixed, planned or reserved on a host wait again, at `now` [s]."""
    for task, _ in list(run.fixed[host]):
        dispatch.unqueue(task, host)
    if len(run.place_holders):
        run.withdraw_plan()
    while (planned := run.next_planned(host)) is not None:
        run.waiting_again(planned[0])
    for each in run.reservations.withdraw(host=host):
        dispatch.uncount_execution(each, now)
        run.waiting_again(each.task)


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
    run : RunState
    dispatch : Dispatch
    switches : HostSwitches
    """

    exist = True

    def __init__(self, system: System, tasks: Tasks, run: RunState, dispatch: Dispatch, switches: HostSwitches) -> None:
        self._tasks = tasks
        self._run = run
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
        self._events = ProfileEvents(system.platform, system.platform.profiles.state_of)

    @property
    def next_time(self) -> float:
        """When the next host goes down or comes up [s]; infinite where none ever does."""
        return self._events.next_time

    def apply(self, now: float) -> bool:
        """Let hosts go down and come up that are due; return whether any did."""
        changed = False
        while self.next_time <= now:
            host, value = self._events.take()
            if (value > 0) == self._run.is_down[host]:
                changed = True
                if value > 0:
                    self._comes_up(host, now)
                else:
                    self._goes_down(host, now)
        return changed

    def end(self) -> None:
        """Start nothing again: the run is over, but for what still runs."""
        self._fails, self._lost_state = True, int(TaskState.UNFINISHED)

    def _comes_up(self, host: int, now: float) -> None:
        self._run.is_down[host] = False
        if self._was_on[host]:
            self._switches.switch_on(host, now)
            self._dispatch.resume_data(now)

    def _goes_down(self, host: int, now: float) -> None:
        run = self._run
        run.is_down[host] = True
        self._was_on[host] = run.is_on[host]
        if run.is_on[host]:
            if run.boot_end[host] > now:
                self._count_failed_boot(host, now)
            withdraw_from(host, self._run, self._dispatch, now)
            for execution in list(run.resources.on_host(host)):
                self._lose(execution, now)
        self._dispatch.cut_data(host)
        self._switches.cut_off(host, now)

    def _count_failed_boot(self, host: int, now: float) -> None:
        """Raise if hosts go down again and again before they have booted for tasks that wait."""
        run = self._run
        if len(run.executions) != self._begun:
            self._begun = len(run.executions)
            self._failed_boots.clear()
        to_arrive = len(self._tasks) - run.submitted
        if run.n_executing or run.open_tasks <= to_arrive or self._has_horizon:
            return
        self._failed_boots[host] += 1
        if self._failed_boots[host] > MAX_RESTARTS:
            each = self._hosts[host]
            raise IncompleteRun(
                f"Host {each.name!r} went down {self._failed_boots[host]} times before it had "
                f"booted, at t = {now:g} s the last, while {counted(run.open_tasks - to_arrive, 'task')} "
                f"waited and nothing ran: it boots for {each.boot_time_s:g} s. Use shorter boot "
                "times, or hosts that stay up longer."
            )

    def _lose(self, execution: Execution, now: float) -> None:
        """End a running copy as failed, and its task with it unless it is started again."""
        run, task = self._run, execution.task
        self._dispatch.withdraw(execution, now, ExecutionEnd.FAILED)
        if run.state_of[task] != WAITING:  # another copy is left
            return
        if self._fails:
            self._dispatch.give_up(task, self._lost_state)
            return
        self._restarts[task] += 1
        if self._restarts[task] > MAX_RESTARTS:
            name = self._tasks.labels[task]
            raise IncompleteRun(
                f"Task {name} was lost {self._restarts[task]} times, at t = {now:g} s the last: "
                "its hosts go down before it ends. Use shorter tasks, hosts that stay up longer, "
                "or let what is lost fail (--on-failure failed)."
            )


class NoOutages(Outages):
    """A run whose hosts never go down by themselves."""

    exist = False
    next_time = math.inf

    def __init__(self) -> None:
        self._was_on = []

    def apply(self, now: float) -> bool:
        """Let no host go down."""
        return False

    def end(self) -> None:
        """Start nothing again, as always."""
