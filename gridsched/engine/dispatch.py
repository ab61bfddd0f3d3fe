"""How tasks get onto cores and off them: fixed queues first, then what is planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gridsched.arrays import Integers
from gridsched.engine.energy_account import EnergyAccount
from gridsched.engine.events import Timers
from gridsched.engine.execution import UNENDED, Command, Execution, SetPState, Stop, Timer, Transfer
from gridsched.engine.host_powers import HostPowers, NoCap, PowerCap
from gridsched.engine.programs import Programs
from gridsched.engine.ready_times import Staging
from gridsched.engine.run_state import RunState
from gridsched.engine.task_states import BLOCKED, FINISHED, RUNNING, VIRTUAL, WAITING
from gridsched.engine.transfers import Transfers
from gridsched.model.estimates import Estimates
from gridsched.model.system import System
from gridsched.model.trace import ExecutionEnd, TaskState

_FINISHED = int(ExecutionEnd.FINISHED)
_TIMEOUT, _KILLED = int(ExecutionEnd.TIMEOUT), int(TaskState.KILLED)
_CANCELLED = int(ExecutionEnd.CANCELLED)


class Dispatch:
    """Starts, ends and cancels executions, and notes it where it has to be known.

    Parameters
    ----------
    system : System
    run : RunState
    timers : Timers
    staging : Staging
    account : EnergyAccount
    powers : HostPowers
    transfers : Transfers
    programs : Programs

    Attributes
    ----------
    commands : list of Command
        Of the present instant, for the driver; `take_commands` takes them.
    freed : list of int
        Hosts with a core set free that fixed queues have not been offered yet.
    vacant : list of int
        Hosts that may have become able to take planned tasks in this instant.
    """

    def __init__(
        self,
        system: System,
        run: RunState,
        timers: Timers,
        staging: Staging,
        account: EnergyAccount,
        powers: HostPowers,
        transfers: Transfers,
        programs: Programs,
    ) -> None:
        self._run = run
        self._transfers, self._programs = transfers, programs
        self._timers = timers
        self._staging = staging
        #: whether executions may have to wait on their hosts for files or data
        self._may_wait = staging.exists or transfers.exists
        self._account = account
        self._powers = powers
        #: another one where it changes in the run: then what waits in queues may have to wait until hosts draw less
        self._cap: PowerCap = NoCap()
        self._slots = system.rules.pending_slots
        self._pstates: list[int] = system.pstates.tolist()
        self._estimates = estimates = system.estimates
        #: estimated run time [s] of (task, host, P-state)
        self.run_time: Callable[[int, int, int], float] = estimates.run_time
        #: None where a scheduler's P-states are the host's
        self.host_pstate: Callable[[int, int, int], int] | None = None
        if type(estimates).host_pstate is not Estimates.host_pstate:
            self.host_pstate = estimates.host_pstate
        resources = run.resources
        self._has_room, self._place = resources.has_room, resources.place
        self._has_sets, self._on_host = resources.has_sets, resources.by_host
        self._parked_pstate = system.rules.parked_pstate
        self._kills = system.rules.walltime == "kill"
        #: how far the run's journal has been read for hosts to park
        self._read = 0
        self.commands: list[Command] = programs.commands
        self.freed: list[int] = []
        self.vacant: list[int] = []

    @property
    def can_start_successor(self) -> bool:
        """Whether hosts have one core each, and nothing but run times matters for a start."""
        resources = self._run.resources
        plain = not self._powers.exists and not self._may_wait and self.host_pstate is None and not self._kills
        plain &= self._run.followed is None and not self._programs.exist
        return resources.one_core and not resources.has_sets and plain

    def start_successor(self, execution: Execution, now: float) -> Execution | None:
        """Give the core of an execution that ended to the next task of the common queue.

        The hot path in place: `finish` and `serve_plan` of one host, where `can_start_successor` and
        nothing else happens in the instant, without a look at what cannot have changed. Most of
        a work queue's instants are such; each call that is saved here is a tenth of what a task
        costs. None, and nothing changed, where it is not as simple.
        """
        run, host = self._run, execution.host
        pstate = self._pstates[host]
        if run.fixed[host] or run.pstate[host] != pstate:
            return None
        if run.replicates:
            if len(run.copies[execution.task]) > 1 or execution.task in run.places:
                return None
            del run.copies[execution.task]
        state_of = run.state_of
        execution.outcome = _FINISHED
        state_of[execution.task] = FINISHED
        run.open_tasks -= 1
        task = run.common.popleft()
        while state_of[task] != VIRTUAL:  # it has been taken elsewhere
            task = run.common.popleft()
        run.n_virtual -= 1
        state_of[task] = RUNNING
        follower = Execution(task, host, pstate, now, now + self.run_time(task, host, pstate))
        follower.has_begun = True
        self._on_host[host] = [follower]
        if run.replicates:
            run.copies[task] = [follower]
        run.version[host] += 1
        run.journal.append(host)
        run.executions.recent.append(follower)
        return follower

    # ------------------------------------------------------------------ onto hosts

    def start(self, task: int, host: int, pstate: int, now: float) -> None:
        """Start the task on the one host, at `now` [s] or when its data is there."""
        end = now + self.run_time(task, host, pstate)
        if self.host_pstate is not None:
            pstate = self.host_pstate(task, pstate, host)
        execution = Execution(task, host, pstate, now, end)
        if self._has_sets:
            self._place(execution)
        if not self._may_wait:  # `start_placed`: calls are dear here
            self._run.taken(execution)
            self.begin(execution)
        else:
            self.start_placed(execution, now)

    def allocate(
        self, task: int, hosts: Integers, parts: Integers | None, pstate: int, start: float, end: float, now: float
    ) -> None:
        """Start the task on a set of hosts, which are equal, or reserve these from `start` on [s].

        `end` is when it ends, as estimated.
        """
        host = hosts.item(0)
        self.count_assigned(task, host, pstate)
        if self.host_pstate is not None:
            pstate = self.host_pstate(task, pstate, host)
        execution = Execution(task, host, pstate, start, end)
        self._place(execution, hosts, parts)
        if start <= now:
            self.start_placed(execution, now)
            return
        self._account.commit(execution)
        self._run.reserve(execution)

    def start_placed(self, execution: Execution, now: float) -> None:
        """Let an execution have its hosts, for which they may have been reserved, and compute when its data is there.

        Its end, as estimated, is counted from then on.
        """
        task, host = execution.task, execution.host
        files_ready = ready = self._staging.ready_on(task, execution.all_hosts, now)
        self._transfers.want(task, host, now)
        if lacks_data := not self._transfers.are_there(task, host):
            ready = max(ready, self._transfers.expected(task, host, now))
        if ready > now:
            self._start_at(execution, ready)
        self._run.taken(execution)
        if execution.start <= now and not lacks_data:
            self.begin(execution)
            return
        self._account.commit(execution)
        if files_ready > now:
            self._timers.set(files_ready, Timer.DATA_READY, host, execution)
        else:
            self._transfers.wait(execution)

    def _start_at(self, execution: Execution, start: float) -> None:
        """Let an execution start at a time [s], and end as long after it as estimated."""
        task, host = execution.task, execution.host
        pstate = self._estimates.scheduler_pstate(task, execution.pstate)
        execution.start, execution.estimated_end = start, start + self.run_time(task, host, pstate)
        execution.end = execution.estimated_end

    def files_came(self, execution: Execution) -> None:
        """Let an execution begin whose input files are there, if it waits for no data of other tasks."""
        if self._transfers.are_there(execution.task, execution.host):
            self.begin(execution)
        else:
            self._transfers.wait(execution)

    def data_came(self, transfer: Transfer, now: float) -> None:
        """Let executions begin that have waited for data alone which arrive now."""
        if self._run.fixed[transfer.target]:
            self._run.touch(transfer.target)
        for execution in self._transfers.arrive(transfer, now):
            self._put_off(execution, now)
            self.begin(execution)

    def cut_data(self, host: int) -> None:
        """Stop what is under way from or to a host that goes down."""
        self.commands += map(Stop, self._transfers.cut(host))

    def resume_data(self, now: float) -> None:
        """Send again what hosts that were down have held up."""
        for host in self._transfers.resume(now):
            self._run.touch(host)

    def put_off_late(self, now: float) -> None:
        """Expect executions to begin now whose data should have been there before: they cannot end any earlier."""
        for execution in self._transfers.late(now):
            self._put_off(execution, now)

    def _put_off(self, execution: Execution, start: float) -> None:
        """Let an execution that has its hosts, but has not begun, start at another time [s]."""
        resources = self._run.resources  # which know the end of what runs
        resources.release(execution)
        self._start_at(execution, start)
        resources.take(execution)
        self._run.touch(execution.host)

    def begin(self, execution: Execution) -> None:
        """Let an execution compute from its start on."""
        run, host = self._run, execution.host
        execution.has_begun = True
        if execution.hosts is not None:
            run.set_pstates(execution.start, execution.hosts, execution.pstate)
        elif run.pstate[host] != execution.pstate:
            run.set_pstate(execution.start, host, execution.pstate)
        self._account.commit(execution)
        run.executions.recent.append(execution)
        self._programs.begin(execution, execution.start)

    def take_commands(self) -> list[Command]:
        """Return the commands so far, once."""
        commands = self.commands
        self.commands = self._programs.commands = []
        return commands

    def enqueue(self, task: int, host: int, pstate: int, now: float) -> None:
        """Append a task to the host's fixed queue; its files are on their way from now on."""
        self._run.append_fixed(host, task, pstate)
        self._staging.ready_on(task, (host,), now)
        self._transfers.want(task, host, now)

    def can_start(self, task: int, host: int, now: float) -> bool:
        """Whether a task that comes now can start on the host: nothing is before it, and it has room."""
        run = self._run
        if self._cap.holds_back:
            return False
        return not run.fixed[host] and self._has_room(task, host) and run.boot_end[host] <= now and task not in run.held

    def keeps_data(self, host: int) -> bool:
        """Whether data go from or to the host, or are kept there for tasks that will want them."""
        return host in self._transfers.hosts_in_use

    def count_assigned(self, task: int, host: int, pstate: int) -> None:
        """Add a task that is started or fixed to what was ever assigned."""
        self._account.assign(task, host, pstate)

    def uncount_execution(self, execution: Execution, now: float) -> None:
        """Take out what a copy, or a reservation, will not draw that is withdrawn at `now` [s]."""
        self._account.unassign_rest(execution, now)

    # ------------------------------------------------------------------ off a core

    def finish(self, execution: Execution, together: Iterable[Execution], now: float) -> None:
        """Apply the end of an execution: the task is done, or killed, and its other copies are cancelled.

        Copies among `together`, which end in this instant, too, are cancelled when it is their
        turn.
        """
        run, task = self._run, execution.task
        if run.state_of[task] >= FINISHED:  # a copy that ended with the winner
            execution.outcome = _CANCELLED
        else:
            execution.outcome, state = (_TIMEOUT, _KILLED) if execution.is_cut else (_FINISHED, FINISHED)
            run.end_task(task, state)
            if not execution.is_cut:
                for host in self._transfers.note_end(task, execution.host, now):
                    run.touch(host)
            if run.replicates:
                for copy in run.copies.pop(task):
                    if copy.outcome == UNENDED and copy not in together:
                        self._stop(copy, now, ExecutionEnd.CANCELLED)
                for host in list(run.places.get(task, ())):
                    run.remove_fixed(host, task)
        self._free_hosts(execution)

    def _stop(self, copy: Execution, now: float, outcome: ExecutionEnd) -> None:
        """End a running copy at `now` [s]; its core is free at once."""
        copy.stop(now, outcome)
        if copy.has_begun:
            self._programs.stop(copy, now)
        self._free_hosts(copy)

    def withdraw(self, copy: Execution, now: float, outcome: ExecutionEnd = ExecutionEnd.CANCELLED) -> None:
        """End a running copy before its time; its task depends on the copies that are left."""
        self.uncount_execution(copy, now)
        self._stop(copy, now, outcome)
        self._leaves(copy.task, copy.host, copy)

    def unqueue(self, task: int, host: int) -> None:
        """Take a task out of the host's fixed queue, and of what was ever assigned."""
        self._account.unassign(task, host, self._run.remove_fixed(host, task))
        self._leaves(task, host)

    def _leaves(self, task: int, host: int, lost: Execution | None = None) -> None:
        """Find the state of a task that leaves a host or its queue, and send it no more data there."""
        run = self._run
        run.settle(task, lost)
        self._transfers.unwant(task, host, waits=run.state_of[task] in (WAITING, BLOCKED))

    def give_up(self, task: int, state: int) -> None:
        """Give a task that is in no queue its final state; it has not succeeded."""
        self._run.end_task(task, state)
        self._transfers.forget(task)

    def _free_hosts(self, execution: Execution) -> None:
        """Give back the hosts of an execution; queues are served later."""
        run, host = self._run, execution.host
        run.freed(execution)
        if execution.hosts is None:
            if run.fixed[host] or run.n_virtual:
                self.freed.append(host)
        elif run.queued_hosts or (run.n_virtual and not len(run.place_holders)):
            self.freed += execution.all_hosts
        self._powers.ended(execution)

    def power_changed(self, host: int) -> None:
        """Follow a host that changed its P-state while nothing runs there, or was switched."""
        self._powers.changed(host)

    def park_idle_hosts(self, now: float) -> None:
        """Park hosts on which nothing runs, after all of the instant has started.

        Only hosts on which something has happened are looked at.
        """
        run, pstate = self._run, self._parked_pstate
        assert pstate is not None  # no one asks otherwise
        happened = sorted(set(run.journal[self._read :]))
        for host in happened:
            if host in run.switching_w:
                continue  # in a P-state of its own; when it has booted, it is looked at again
            if run.is_on[host] and not run.is_busy(host) and run.pstate[host] != pstate:
                run.set_pstate(now, host, pstate)
                self.power_changed(host)
                self.commands.append(SetPState(host, pstate))
        self._read = len(run.journal)

    def follow_cap(self, cap: PowerCap) -> None:
        """Start nothing of the queues while a cap holds it back."""
        self._cap = cap

    # ------------------------------------------------------------------ out of the queues

    def offer_all_hosts(self) -> None:
        """Have every queue looked at in this instant."""
        self.freed += self._run.queued_hosts
        self.vacant += self._run.virtual.hosts()

    def serve_freed(self, now: float) -> None:
        """Serve the fixed queues of hosts with a core set free, after all that set one free."""
        freed, self.freed = sorted(set(self.freed)), []
        for host in freed:
            self.serve_fixed(host, now)
        self.vacant += freed

    def serve_fixed(self, host: int, now: float) -> None:
        """Let the host take the heads of its fixed queue as long as they find room and wait for no others."""
        run = self._run
        queue = run.fixed[host]
        if self._cap.holds_back:
            return
        while queue and run.boot_end[host] <= now:
            task = queue[0][0]
            if task in run.held or not self._has_room(task, host):
                break
            self.start(task, host, run.take_fixed(host), now)

    def serve_plan(self, hosts: Iterable[int], now: float) -> None:
        """Let hosts take planned tasks; fix heads of queues in the pending slots behind them.

        There must be nothing to do on other hosts than `hosts`.
        """
        run = self._run
        if run.common:
            self._serve_common(now)
            return
        for host in sorted(hosts):
            while run.is_open[host]:
                has_slot = len(run.fixed[host]) < self._slots
                if not has_slot and not self._may_start(host, now):
                    break
                entry = run.next_planned(host)
                if entry is None:
                    break
                task, pstate = entry
                starts = self.can_start(task, host, now)
                if not starts and not has_slot:
                    run.virtual.put_back(host)
                    break
                self.count_assigned(task, host, pstate)
                if starts:
                    self.start(task, host, pstate, now)
                else:
                    run.append_fixed(host, task, pstate)
                    self._transfers.want(task, host, now)  # input files are booked with the plan

    def _may_start(self, host: int, now: float) -> bool:
        """Whether some task might start on the host: quick, and never wrongly no."""
        run = self._run
        if self._cap.holds_back:
            return False
        return not run.fixed[host] and run.resources.has_free_core(host) and run.boot_end[host] <= now

    def _serve_common(self, now: float) -> None:
        """Let hosts with free cores, in their order, take the heads of the common queue."""
        run = self._run
        for host in run.resources.idle_hosts():
            pstate = self._pstates[host]
            if run.pstate[host] != pstate and run.is_busy(host):
                continue  # its cores share another P-state
            while self._may_start(host, now):
                task = run.next_in_common(host)
                if task is None:
                    break
                self.count_assigned(task, host, pstate)
                self.start(task, host, pstate, now)
            if not run.n_virtual:
                return
