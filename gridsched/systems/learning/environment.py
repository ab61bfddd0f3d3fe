"""Runs of the reference driver as a Gymnasium environment, and what an agent is rewarded for in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import gymnasium
import numpy as np
from numpy.typing import NDArray

from gridsched.drivers.reference import simulate_with_answers
from gridsched.engine import Controller, Execution
from gridsched.engine.execution import Activity
from gridsched.engine.policy_calls import check_policy
from gridsched.errors import InputError
from gridsched.metrics import RunFacts
from gridsched.metrics.run_metrics import SLOWDOWN_BOUND_S
from gridsched.metrics.table import METRICS
from gridsched.model.limits import LARGEST_RESULT
from gridsched.model.records import shown_value
from gridsched.model.seeds import random_stream
from gridsched.model.tasks import Tasks
from gridsched.model.trace import Trace
from gridsched.runs.metric_formulas import formula
from gridsched.runs.preparation import prepare
from gridsched.runs.run import RunResult
from gridsched.runs.scenario_maker import load
from gridsched.scenario import LoadedScenario, Scenario
from gridsched.systems.learning.agent_scheduler import AgentScheduler, Choice, Question, make_choice, observation_of


class Meter:
    """What a reward has come to so far: nothing before the end, where alone metrics are known.

    Attributes
    ----------
    value : float
    """

    value = 0.0

    def __init__(self, controller: Controller, tasks: Tasks) -> None:
        pass

    def watch(self, now: float, finished: Sequence[Activity]) -> None:
        """Count what has happened up to an instant [s], and what ends in it."""


class _Joules(Meter):
    """What all hosts have drawn [J], with a minus."""

    def __init__(self, controller: Controller, tasks: Tasks) -> None:
        self._controller = controller
        self._time = 0.0

    def watch(self, now: float, finished: Sequence[Activity]) -> None:
        """Count the power since the instant before."""
        self.value -= self._controller.power_w * (now - self._time)
        self._time = now


class _Slowdown(Meter):
    """Bounded slowdowns of what has finished, over all tasks, with a minus."""

    def __init__(self, controller: Controller, tasks: Tasks) -> None:
        self._submitted: list[float] = tasks.submit_time_s.tolist()

    def watch(self, now: float, finished: Sequence[Activity]) -> None:
        """Count what ends."""
        for execution in finished:
            if not isinstance(execution, Execution):
                continue
            flow_s = execution.end - self._submitted[execution.task]
            run_s = max(execution.end - execution.start, SLOWDOWN_BOUND_S)
            self.value -= max(flow_s / run_s, 1.0) / len(self._submitted)


class _Utility(Meter):
    """Utility that has been earned."""

    def __init__(self, controller: Controller, tasks: Tasks) -> None:
        if tasks.utility is None:
            raise InputError(f"{tasks.name}: reward 'utility' needs tasks with utility functions; it has none.")
        self._utility = tasks.utility
        self._submit_s = tasks.submit_time_s

    def watch(self, now: float, finished: Sequence[Activity]) -> None:
        """Count what ends."""
        if ended := [each for each in finished if isinstance(each, Execution)]:
            ids = [execution.task for execution in ended]
            elapsed = [execution.end - self._submit_s[execution.task] for execution in ended]
            self.value += float(self._utility.value(ids, elapsed).sum())


#: Rewards that come as the run goes on: what they add up to, and what counts it.
_NAMED: dict[str, tuple[str, type[Meter]]] = {
    "joules": ("-energy_model_j", _Joules),
    "bounded_slowdown": ("-mean_bounded_slowdown", _Slowdown),
    "utility": ("utility", _Utility),
}


class Reward:
    """What the rewards of an episode add up to.

    Parameters
    ----------
    text : str
        ``joules``, ``bounded_slowdown`` or ``utility``, whose rewards come step by step, or an
        expression of metrics, greater is better, which is given at the end.

    Raises
    ------
    InputError
        If the expression cannot be understood.
    """

    def __init__(self, text: str) -> None:
        self._text, self.meter = _NAMED.get(text, (text, Meter))
        names = ", ".join(map(repr, _NAMED))
        of_runs = [metric.id for metric in METRICS.values() if metric.of == "run" and metric.is_number]
        self._formula = formula("reward", self._text, of_runs, called=f"reward ({names}, or an expression of metrics)")

    def total(self, facts: RunFacts) -> float:
        """Return what the rewards of a run add up to.

        Raises
        ------
        InputError
            If a metric has no value in this run.
        """
        metrics = {id: float(METRICS[id].function(facts)) for id in sorted(self._formula.needs)}
        value = self._formula.metric.function(metrics)
        if value is None:
            raise InputError(
                f"reward {self._text!r} has no finite value in this run, with {metrics}; without SimGrid "
                "the energy is energy_model_j."
            )
        return float(value)


#: The scenario of all episodes, or what makes that of a seed.
Episodes = Scenario | Callable[[int], Scenario]
Observation = NDArray[np.float32 | np.float64]


class SchedulingEnvironment(gymnasium.Env[Observation, np.int64]):
    """An episode is a run; a step is one choice of a scheduler.

    Parameters
    ----------
    scenario : Scenario, or callable
        ``scenario(seed)`` may draw another workload for each seed, on as many hosts. Of a scenario
        itself each episode has another seed, which draws what the scenario leaves to it, as
        failures of hosts. The driver is the reference driver.
    action : {"host", "pstate", "job"} or Choice
        What is chosen; see `gridsched.systems.learning.agent_scheduler`.
    observation : {"estimates", "scaled"}
        What is known of each option, in its units, or each column over its greatest value.
    reward : str
        See `Reward`.
    jobs : int
        With "job": how many waiting jobs are options.

    Attributes
    ----------
    result : RunResult or None
        The run of the last episode that ended.

    Raises
    ------
    InputError
        As the run of the scenario would.

    Notes
    -----
    An action that is not allowed is replaced: on hosts and P-states by the first allowed one, with jobs
    by none; ``info["illegal"]`` shows this. A run that the choices leave without end raises, as it
    would for a scheduler.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # as Gymnasium has it

    def __init__(
        self,
        scenario: Episodes,
        *,
        action: str | Choice = "host",
        observation: str = "scaled",
        reward: str = "joules",
        jobs: int = 16,
    ) -> None:
        self._show = observation_of(observation)
        self._choice = make_choice(action, jobs)
        self._scheduler = AgentScheduler(None, action, observation, jobs)
        self._reward = Reward(reward)
        self._scenario = scenario if callable(scenario) else load(replace(scenario, driver="reference"))
        self.result: RunResult | None = None
        self._questions: Generator[Question, int, Trace] | None = None
        first = self._prepared(0)
        check_policy(self._scheduler, first.system, first.tasks)
        self._n = self._choice.prepare(first.system)
        self.action_space = gymnasium.spaces.Discrete(self._n)
        is_scaled = observation == "scaled"
        self.observation_space = gymnasium.spaces.Box(
            0.0,
            1.0 if is_scaled else LARGEST_RESULT,
            (self._n, len(self._choice.columns)),
            np.float32 if is_scaled else np.float64,
        )
        self._nothing = Question(np.zeros(self.observation_space.shape), np.ones(self._n, np.bool_), 0)
        self._question = self._nothing

    def _prepared(self, seed: int) -> LoadedScenario:
        made = self._scenario(seed) if callable(self._scenario) else replace(self._scenario, seed=seed)
        return prepare(replace(made, driver="reference", scheduler=self._scheduler, parameters={}))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next episode; with a seed, the first of a series that the seed decides.

        Raises
        ------
        InputError
            If the scheduler of this scenario is never asked, or hosts are others than at first.
        """
        super().reset(seed=seed)
        self.close()
        number = int(self.np_random.integers(2**31))
        self._loaded = self._prepared(number)
        if (n := self._choice.prepare(self._loaded.system)) != self._n:
            raise InputError(
                f"The scenario of seed {number} has {n} options, that of seed 0 {self._n}; it must be as many."
            )
        controller = Controller(
            self._loaded.system,
            self._loaded.tasks,
            self._loaded.make_scheduler(),
            rng=random_stream(self._loaded.seed, "scheduler", self._loaded.replicate),
            hosts_off=self._loaded.ids_off,
            is_metered=True,
            stimuli=self._loaded.stimuli,
        )
        self._meter = self._reward.meter(controller, self._loaded.tasks)
        self._so_far = 0.0
        self._questions = _episode(controller, self._loaded, self._choice, self._meter)
        try:
            self._question = next(self._questions)
        except StopIteration:
            raise InputError(f"{self._loaded.tasks.name}: no scheduler is ever asked in this run.") from None
        return self._shown(), {"seed": number}

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an option; the rewards of an episode add up to what it is judged by.

        Raises
        ------
        InputError
            If no episode is running, or the action is not a whole number.
        """
        if self._questions is None:
            raise InputError("No episode is running; call reset() first.")
        number = self._number_of(action)
        option = self._question.taken(number)
        info = {"illegal": option != number}
        try:
            self._question = self._questions.send(option)
        except StopIteration as end:
            value = self._end(end.value)
            is_over = True
        else:
            value, is_over = self._meter.value, False
        reward, self._so_far = value - self._so_far, value
        return self._shown(), reward, is_over, False, info

    def _number_of(self, action: object) -> int:
        """Return the number that an action is, or an array of one number holds."""
        with contextlib.suppress(ValueError, TypeError):  # what numpy makes no array of
            given = np.asarray(action)
            if given.size == 1 and given.dtype.kind in "iuf" and float(given.item()).is_integer():
                return int(given.item())
        raise InputError(
            f"The action is {shown_value(action)}; the number of an option is allowed, 0 to {self._n - 1}."
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled.

        Raises
        ------
        InputError
        """
        raise InputError(
            "A SchedulingEnvironment holds a run that goes on, which can be neither copied nor pickled. Make another "
            "one of the same scenario, and give a function that makes it to what runs environments in processes."
        )

    def _end(self, trace: Trace) -> float:
        """Keep the run, and return what its rewards add up to."""
        self._question, self._questions = self._nothing, None
        self.result = RunResult(self._loaded, trace, None, {})
        return self._reward.total(self.result.facts)

    def _shown(self) -> Observation:
        return self._show(self._question.options, self._choice.scales)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are allowed now, shape (actions,), as MaskablePPO asks for it."""
        return self._question.legal.copy()

    def close(self) -> None:
        """Give up a running episode."""
        if self._questions is not None:
            self._questions.close()
            self._questions = None


def _episode(
    controller: Controller, scenario: LoadedScenario, choice: Choice, meter: Meter
) -> Generator[Question, int, Trace]:
    """Yield the questions of a run, be sent the options that are taken, and return its trace."""
    if scenario.runs_profiles:
        raise InputError(
            f"{scenario.tasks.name}: an environment does not support jobs that send data; leave the profiles out by "
            "network='none'."
        )
    states = simulate_with_answers(controller, scenario.run_times, meter.watch)
    try:
        state = next(states)
        while True:
            decisions = yield from choice.questions(state)
            state = states.send(decisions)
    except StopIteration as end:
        trace: Trace = end.value
        return trace
