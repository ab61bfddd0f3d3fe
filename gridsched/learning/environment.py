"""Runs of the reference driver as a Gymnasium environment that steps where a scheduler is asked."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from gridsched.engine import Controller
from gridsched.engine.policy_calls import check_policy
from gridsched.engine.reference import simulate_with_answers
from gridsched.errors import InputError
from gridsched.learning.agent_scheduler import AgentScheduler
from gridsched.learning.choices import OBSERVATIONS, Choice, Question, check_observation, make_choice
from gridsched.learning.rewards import Meter, Reward
from gridsched.model.limits import LARGEST_RESULT
from gridsched.model.seeds import random_stream
from gridsched.model.trace import Trace
from gridsched.runs.run import RunResult, prepare, request_of
from gridsched.runs.scenario import LoadedScenario, Scenario
from gridsched.sim.request import SimulationRequest

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
        What is chosen; see `gridsched.learning.choices`.
    observation : {"estimates", "scaled"}
        What is known of each option, in its units, or each column over its greatest value.
    reward : str
        See `gridsched.learning.rewards.Reward`.
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
    An action that is not legal is replaced: on hosts and P-states by the first legal one, with jobs
    by none; ``info["illegal"]`` says so. A run that the choices leave without end raises, as it
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
        check_observation(observation)
        self._show = OBSERVATIONS[observation]
        self._choice = make_choice(action, jobs)
        self._scheduler = AgentScheduler(None, action, observation, jobs)
        self._reward = Reward(reward)
        self._scenario = scenario if callable(scenario) else replace(scenario, driver="reference").loaded()
        self.result: RunResult | None = None
        self._questions: Generator[Question, int, Trace] | None = None
        first = request_of(self._prepared(0))
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
        self._request = request_of(self._loaded)
        if (n := self._choice.prepare(self._request.system)) != self._n:
            raise InputError(
                f"The scenario of seed {number} has {n} options, that of seed 0 {self._n}; it must be as many."
            )
        controller = _controller(self._request)
        self._meter = self._reward.meter(controller, self._loaded.tasks)
        self._so_far = 0.0
        self._questions = _episode(controller, self._request, self._choice, self._meter)
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
            If no episode goes on.
        """
        if self._questions is None:
            raise InputError("No episode goes on; call reset() first.")
        option = self._question.taken(int(action))
        info = {"illegal": option != action}
        try:
            self._question = self._questions.send(option)
        except StopIteration as end:
            value = self._end(end.value)
            is_over = True
        else:
            value, is_over = self._meter.value, False
        reward, self._so_far = value - self._so_far, value
        return self._shown(), reward, is_over, False, info

    def _end(self, trace: Trace) -> float:
        """Keep the run, and return what its rewards add up to."""
        self._question, self._questions = self._nothing, None
        self.result = RunResult(self._loaded, trace, None, {})
        return self._reward.total(self.result.facts)

    def _shown(self) -> Observation:
        return self._show(self._question.options, self._choice.scales)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now, shape (actions,), as MaskablePPO asks for it."""
        return self._question.legal.copy()

    def close(self) -> None:
        """Give up an episode that goes on."""
        if self._questions is not None:
            self._questions.close()
            self._questions = None


def _controller(request: SimulationRequest) -> Controller:
    return Controller(
        request.system,
        request.tasks,
        request.scheduler,
        rng=random_stream(request.seed, "scheduler", request.replicate),
        hosts_off=request.hosts_off,
        is_metered=True,
    )


def _episode(
    controller: Controller, request: SimulationRequest, choice: Choice, meter: Meter
) -> Generator[Question, int, Trace]:
    """Yield the questions of a run, be sent the options that are taken, and return its trace."""
    states = simulate_with_answers(controller, request.run_times, meter.watch)
    try:
        state = next(states)
        while True:
            decisions = yield from choice.questions(state)
            state = states.send(decisions)
    except StopIteration as end:
        trace: Trace = end.value
        return trace
