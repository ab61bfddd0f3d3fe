"""A run that a program drives: it goes on step by step, and things are done to it meanwhile."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike

from gridsched.drivers import reference
from gridsched.engine.execution import Activity
from gridsched.errors import IncompleteRun, InputError, counted, policy_at_work
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Platform
from gridsched.model.run_times import RunTimes
from gridsched.model.spare_rows import SpareRows
from gridsched.model.stimuli import SetPowerCap, Stimulus, TimedStimulus
from gridsched.model.tasks import Tasks
from gridsched.model.trace import TaskState, Trace
from gridsched.policy.state import State
from gridsched.runs.checks import check_informed, check_loaded, check_tables
from gridsched.runs.preparation import prepare
from gridsched.runs.run import RunResult, provenance_of, result_of, with_routes
from gridsched.scenario import LoadedScenario, Scenario
from gridsched.sim.child import reference_controller
from gridsched.sim.outcome import SimulationOutcome
from gridsched.workloads.events_csv import Events


class Simulation:
    """A run of a scenario that a program of one's own drives, on the reference driver, in this process.

    The scheduler of the scenario decides. What is done from outside has its effect in the next instant, at the time
    that is given: before submissions, and before the scheduler is asked, which learns of it then. As a context manager
    it gives the run up at the end of the block, if it has not been finished.

    Parameters
    ----------
    scenario : Scenario
        Its `driver` is not used, nor is its `timeout_s`.
    most_tasks : int
        How many further tasks may be submitted. Without any, every scenario of the reference driver can be driven.

    Attributes
    ----------
    now : float
        Simulated time [s].

    Raises
    ------
    InputError
        As `gridsched.run` would, or if tasks cannot be added to this scenario.

    Notes
    -----
    Tasks can be added where their times follow from flops or from requested times, and where none wait for others, are
    held back, or have utility functions, task types, times by host, profiles, input files or data of others. All tasks
    are of one kind: of one core, of whole nodes, or with a `demand`. A policy that plans once, at the start, takes no
    further tasks. A policy knows nothing of a task before its submission but that there is one more to come
    (`State.tasks_to_arrive`), once this is known here.

    Stepped to its end, a run is that of `gridsched.run`, bit by bit. The scenario of the result has all tasks, and all
    that was done, so it can be run again; the key ``outside`` of its provenance lists it.

    Examples
    --------
    >>> from gridsched import Scenario, Simulation
    >>> simulation = Simulation(Scenario("platforms/ex_a.xml", "examples/ex_a.csv", "mct"), most_tasks=1)
    >>> simulation.until(12.0)
    >>> task = simulation.submit(500.0)
    >>> simulation.drain("h1")
    >>> simulation.finish().summary()["makespan_s"]
    55.0
    """

    def __init__(self, scenario: Scenario, *, most_tasks: int = 0) -> None:
        if isinstance(most_tasks, bool) or not isinstance(most_tasks, int) or most_tasks < 0:
            raise InputError(f"most_tasks is {most_tasks!r}; it must be a whole number from 0 on.")
        self._began = time.perf_counter()
        self._prepared = prepared = with_routes(prepare(replace(scenario, driver="reference")))
        check_tables(prepared)
        self._scheduler = prepared.make_scheduler()
        check_informed(self._scheduler)
        self._provenance = provenance_of(prepared, self._scheduler)
        self._rows: SpareRows | None = None
        self._run_times: RunTimes | None = None
        if most_tasks:
            prepared = self._with_room(prepared, most_tasks)
        with policy_at_work():
            self._controller, routes = reference_controller(prepared, self._scheduler, most_tasks)
        self._durations = prepared.durations
        platform, links = self._controller.system.platform, prepared.link_model
        self._driver = reference.ReferenceDriver(self._durations, platform, routes, links)
        reference.validate_if_asked(self._controller)
        self._controller.attach(self._driver.remaining)
        self._controller.stay_open()
        self.now = 0.0
        self._events: Events | None = None
        #: what was done from outside: as events, and as the provenance has it
        self._done: list[TimedStimulus] = []
        self._log: list[list[Any]] = []
        self._given_up = ""
        self._may_limit = False
        self._result: RunResult | None = None

    def _with_room(self, prepared: LoadedScenario, most_tasks: int) -> LoadedScenario:
        """Return the scenario with rows for further tasks."""
        if prepared.types is not None or prepared.estimates is not None:
            raise InputError(f"{prepared.tasks.name}: tasks can be added where their times follow from flops.")
        if prepared.has_messages:
            raise InputError(f"{prepared.tasks.name}: tasks cannot be added to a workload with input or output bytes.")
        self._rows = SpareRows(prepared.tasks, most_tasks)
        if prepared.run_times is not None:
            self._run_times = prepared.run_times.with_spare(most_tasks)
        return prepared.changed(tasks=self._rows.tasks, run_times=self._run_times)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._result is None:
            self._given_up = "its block has ended"

    # ------------------------------------------------------------------ time

    @property
    def done(self) -> bool:
        """Whether every task has its final state."""
        return self._controller.done

    def step(self) -> float:
        """Go on to the next instant in which anything happens, and return its time [s].

        Raises
        ------
        IncompleteRun
            If nothing will happen by itself: all is done, or nothing runs and nothing is to come. What is done from
            outside may change that.
        InvalidDecision
            As `gridsched.run` would.
        """
        self._check_open()
        self._controller.stay_open()
        return self._next_instant()

    def until(self, time_s: float) -> None:
        """Go on to a time [s], with all that happens until then and in it.

        Raises
        ------
        InputError
            If the time has passed, or is not finite.
        InvalidDecision, IncompleteRun
            As `gridsched.run` would.
        """
        self._check_open()
        until = self._time(time_s)
        controller = self._controller
        controller.stay_open(until)
        while True:
            timer = controller.next_timer
            instant, ended = self._driver.advance(min(timer, until))
            if not ended and timer > instant:
                break
            self._apply(instant, ended)
        self.now = max(self.now, until)

    def finish(self) -> RunResult:
        """Go on to the end, and return what `gridsched.run` returns; nothing can be done to the run any more.

        Raises
        ------
        IncompleteRun
            If tasks are left that nothing will ever start.
        InvalidDecision
            As `gridsched.run` would.
        """
        if self._result is not None:
            return self._result
        self._check_open()
        controller = self._controller
        controller.stay_open(is_open=False)
        while not controller.done:
            self._next_instant()
        with policy_at_work():
            trace = self._known(reference.records_of(controller, self._durations))
        prepared = self._as_happened(trace.tasks)
        outcome = SimulationOutcome(trace, None, "")
        self._result = result_of(prepared, self._scheduler, outcome, self._provenance, self._began)
        self._given_up = "it is finished"
        return self._result

    def _as_happened(self, tasks: Tasks) -> LoadedScenario:
        """Return the scenario of all that happened, which can be run again; note it in the provenance."""
        prepared = self._prepared
        if self._log:
            self._provenance["outside"] = self._log
        if self._done:
            prepared = prepared.changed(events=None, stimuli=(*prepared.stimuli, *self._done))
        if tasks is prepared.tasks:
            return prepared
        return prepared.changed(tasks=tasks, run_times=self._run_times)

    def _next_instant(self) -> float:
        instant, ended = self._driver.advance(self._controller.next_timer)
        if instant == math.inf:
            raise IncompleteRun(
                f"All tasks are done at t = {self.now:g} s." if self.done else self._controller.what_is_left()
            )
        self._apply(instant, ended)
        return self.now

    def _apply(self, instant: float, ended: Sequence[Activity]) -> None:
        with policy_at_work():
            commands = self._controller.step(instant, ended)
        for command in commands:
            self._driver.carry_out(command)
        self.now = max(self.now, instant)

    # ------------------------------------------------------------------ what is done from outside

    def submit(
        self,
        flops: float,
        *,
        at: float | None = None,
        label: int | str | None = None,
        width: int | None = None,
        requested_time_s: float | None = None,
        deadline_s: float | None = None,
        demand: ArrayLike | None = None,
        anywhere: bool | None = None,
        partition: int | None = None,
    ) -> int | str:
        """Submit a further task, and return its id.

        Parameters
        ----------
        flops : float
            Work [flop]; of one with a `width`, on each of its nodes or in each of its parts.
        at : float, optional
            When [s]; default now.
        label : int or str, optional
            Its id, of the kind that the workload's ids are; default the next number.
        width, requested_time_s, deadline_s, demand, anywhere, partition : optional
            As `gridsched.make_tasks` takes them, of one task. A requested time is needed where the other tasks have
            one; it is what schedulers know, and `flops` what is true if the workload is a log with run times.

        Raises
        ------
        InputError
            If a value is out of range, the time has passed, `most_tasks` have been submitted, or the task is of
            another kind than the others.
        """
        self._check_open()
        rows, when = self._rows, self._time(at)
        if rows is None or rows.n_tasks == len(rows.tasks):
            n_more = 0 if rows is None else len(rows.tasks) - len(self._prepared.tasks)
            raise InputError(f"{counted(n_more, 'further task')} may be submitted (most_tasks), and no more.")
        horizon = self._prepared.horizon_s
        if horizon is not None and when >= horizon:
            raise InputError(f"A task at {when:g} s would come at or after the horizon, {horizon:g} s.")
        if label is None:
            label = self._next_label(rows)
        given: dict[str, Any] = {
            "width": width,
            "requested_time_s": requested_time_s,
            "deadline_s": deadline_s,
            "demand": None if demand is None else [demand],
            "anywhere": anywhere,
            "partition": partition,
        }
        one = rows.one(flops, when, label, **{name: value for name, value in given.items() if value is not None})
        estimates = self._controller.system.estimates
        estimates.of(one)  # refuses a partition that there is not
        place = rows.insert(one)
        estimates.insert(place, rows.tasks)
        if self._run_times is not None:
            self._run_times.insert(place, flops / float(self.platform.speed[:, 0].max()))
        self._controller.insert(place, when)
        self._done = [each.moved(place) for each in self._done]
        self._log.append([when, "submit", str(label)])
        self._events = None
        return label

    def _next_label(self, rows: SpareRows) -> int | str:
        labels = rows.tasks.labels[: rows.n_tasks]
        if labels.dtype.kind != "U":
            return int(labels.max()) + 1
        number = rows.n_tasks + 1
        while (labels == f"{number}").any():
            number += 1
        return f"{number}"

    def cancel(self, task: int | str, *, at: float | None = None) -> None:
        """Take a task out of the run, wherever it is; one that runs ends, and what it drew is wasted.

        Parameters
        ----------
        task : int or str
            Its id, as in the workload.
        at : float, optional
            When [s]; default now.

        Raises
        ------
        InputError
            If there is no such task, or the time has passed.
        """
        self._do("cancel", str(task), at)

    def drain(self, host: str, *, at: float | None = None) -> None:
        """Give hosts no task from then on; whatever runs there goes on.

        Parameters
        ----------
        host : str
            Name, or a pattern of names: ``"node1*"``.
        at : float, optional
            When [s]; default now.

        Raises
        ------
        InputError
            If there is no such host, or the time has passed.
        """
        self._do("drain", host, at)

    def resume(self, host: str, *, at: float | None = None) -> None:
        """Give drained hosts tasks again.

        Parameters
        ----------
        host, at
            As of `drain`.

        Raises
        ------
        InputError
            If there is no such host, or the time has passed.
        """
        self._do("resume", host, at)

    def set_limit(self, power_cap_w: float, *, at: float | None = None) -> None:
        """Let all hosts together draw at most so much from then on.

        Parameters
        ----------
        power_cap_w : float
            [W]; infinite for no cap. Where the hosts draw more, nothing starts until they draw less.
        at : float, optional
            When [s]; default now.

        Raises
        ------
        InputError
            If the cap is not above 0, the time has passed, or the scenario allows no cap (`power_cap_w`).
        """
        self._check_open()
        if not self._may_limit:
            lifted = TimedStimulus(self.now, SetPowerCap(math.inf))
            check_loaded(replace(self._prepared, stimuli=(*self._prepared.stimuli, lifted)))
            if self._prepared.is_metered:
                raise InputError("--power measured: the true power of jobs is unknown before they run: no cap is kept.")
            self._may_limit = True
        if power_cap_w != math.inf:
            self._do("power_cap", repr(power_cap_w), at)
        else:
            self._stimulate(SetPowerCap(math.inf), self._time(at))
            self._log.append([self._time(at), "power_cap", "none"])

    def _do(self, event: str, what: str, at: float | None) -> None:
        self._check_open()
        when = self._time(at)
        try:
            stimuli = self._named().read(event, what)
        except ValueError as error:
            raise InputError(f"{event} {what!r}: {error}.") from None
        for each in stimuli:
            self._stimulate(each, when)
        self._log.append([when, event, what])

    def _stimulate(self, stimulus: Stimulus, when: float) -> None:
        self._check_open()
        self._controller.stimulate(when, stimulus)
        self._done.append(TimedStimulus(when, stimulus))

    # ------------------------------------------------------------------ what is seen

    @property
    def tasks(self) -> Tasks:
        """The tasks of the run that are known so far, those that are to be submitted among them."""
        rows = self._rows
        if rows is None or rows.n_tasks == len(self._prepared.tasks):
            return self._prepared.tasks
        return rows.known()

    @property
    def platform(self) -> Platform:
        """The hosts of the run."""
        return self._prepared.platform

    @property
    def state(self) -> State:
        """The run as its scheduler would see it now; it holds until the run goes on."""
        return self._controller.state_at(self.now)

    def state_of(self, task: int | str) -> TaskState:
        """Return where a task is; `InputError` if there is none of this id."""
        try:
            return self._controller.state_of(self._named().task(str(task)))
        except ValueError as error:
            raise InputError(f"task {task!r}: {error}.") from None

    def trace(self) -> Trace:
        """Return the records so far, up to `now`: what runs ends there in them, with the outcome -1."""
        if self._result is not None:
            return self._result.trace
        trace = self._known(self._controller.trace(self.now, as_estimated=self._durations is None, is_over=False))
        runs = trace.executions["outcome"] < 0
        trace.executions["end"][runs] = self.now
        return trace

    def _known(self, trace: Trace) -> Trace:
        """Return records without spare rows."""
        if self._rows is None:
            return trace
        n = self._rows.n_tasks
        return replace(
            trace,
            tasks=self.tasks,
            final_state=trace.final_state[:n],
            times_postponed=trace.times_postponed[:n],
            notes={name: column[:n] for name, column in trace.notes.items()},
        )

    def _named(self) -> Events:
        """Return what finds tasks and hosts by name."""
        if self._events is None:
            self._events = Events(self.tasks, self.platform)
        return self._events

    def _time(self, at: float | None) -> float:
        """Return a time from now on [s]; `InputError` if it is none."""
        if at is None:
            return self.now
        if not self.now <= at <= LARGEST:
            raise InputError(f"The time {at!r} s is not from now, {self.now:g} s, on.")
        return float(at)

    def _check_open(self) -> None:
        if self._given_up:
            raise InputError(f"This Simulation cannot go on: {self._given_up}.")
