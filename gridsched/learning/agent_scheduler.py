"""An agent, trained or not, as a scheduler: for runs, comparisons, studies and SimGrid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.learning.choices import OBSERVATIONS, Choice, check_observation, make_choice
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State

#: ``agent(observation, legal)`` returns the option that it takes.
Agent = Callable[[NDArray[Any], NDArray[np.bool_]], int]


class _TraitsOfAction:
    """Traits of a scheduler, as its attribute `action` says."""

    def __get__(self, policy: AgentScheduler | None, owner: type[AgentScheduler]) -> Traits:
        action = owner.action if policy is None else policy.action
        return make_choice(action, 1).traits


class AgentScheduler(Scheduler):
    """Asks an agent which option to take, as the environment does.

    A subclass may define `act`, and take what it learned as parameters of its own; `action`,
    `observation` and `jobs` are then attributes of the class.

    Parameters
    ----------
    agent : callable, optional
        ``agent(observation, legal)`` returns the number of an option; of those that are not legal
        the environment's substitute is taken. By default the legal option with the least first
        column: with hosts that is MCT.
    action : {"host", "pstate", "job"} or Choice
        What it chooses; see `gridsched.learning.choices`.
    observation : {"estimates", "scaled"}
        How options are shown to it.
    jobs : int
        With "job": how many waiting jobs are options.

    References
    ----------
    .. [1] The environment of `gridsched.learning`, our own.
    """

    traits = _TraitsOfAction()
    action: str | Choice = "host"
    observation: str = "estimates"
    jobs: int = 16

    def __init__(
        self, agent: Agent | None = None, action: str | Choice = "host", observation: str = "estimates", jobs: int = 16
    ) -> None:
        self.agent = agent
        self.action = action
        self.observation = observation
        self.jobs = jobs

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Look whether the agent can choose so on this system."""
        check_observation(self.observation)
        self.choice_ = make_choice(self.action, self.jobs)
        self.choice_.prepare(system)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Ask the agent one question after the other."""
        questions, show, scales = self.choice_.questions(state), OBSERVATIONS[self.observation], self.choice_.scales
        try:
            question = next(questions)
            while True:
                question = questions.send(int(self.act(show(question.options, scales), question.legal)))
        except StopIteration as end:
            decisions: list[Decision] = end.value
            return decisions

    def act(self, observation: NDArray[Any], legal: NDArray[np.bool_]) -> int:
        """Return the option that the agent takes.

        Parameters
        ----------
        observation : ndarray, shape (options, columns)
        legal : ndarray of bool, shape (options,)
        """
        agent = getattr(self, "agent", None)
        if agent is not None:
            return agent(observation, legal)
        return int(np.argmin(np.where(legal, observation[:, 0], np.inf)))
