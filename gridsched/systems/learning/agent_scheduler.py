"""What an agent is asked, and an agent, trained or not, as a scheduler.

It is asked questions: options with what is known of them, of which it takes one. As a scheduler it
serves runs, comparisons, studies and SimGrid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError, did_you_mean
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate, Assign, Decision
from gridsched.policy.state import State
from gridsched.schedulers.parallel.backfilling import check_one_cluster

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """Options at one moment of a run.

    Attributes
    ----------
    options : ndarray of float64, shape (options, columns)
        What is known of each (`Choice.columns`); 0 if it is not allowed.
    legal : ndarray of bool, shape (options,)
    otherwise : int
        The option that replaces one that is not allowed.
    """

    options: Floats
    legal: Booleans
    otherwise: int

    def taken(self, action: int) -> int:
        """Return the option that an action means."""
        is_legal = 0 <= action < len(self.legal) and self.legal[action]
        return action if is_legal else self.otherwise


Questions = Generator[Question, int, list[Decision]]


class Choice(ABC):
    """What an agent chooses, and how its choices become decisions.

    Attributes
    ----------
    traits : Traits
        Of a scheduler that decides so.
    columns : tuple of str
        What is known of an option.
    scales : tuple of int
        Columns with the same number here are scaled together, so that they can be compared.
    """

    traits: ClassVar[Traits]
    columns: ClassVar[tuple[str, ...]]
    scales: ClassVar[tuple[int, ...]]

    @abstractmethod
    def prepare(self, system: System) -> int:
        """Get ready for `system`; return the number of options.

        Raises
        ------
        InputError
            If nothing can be chosen so there.
        """

    @abstractmethod
    def questions(self, state: State) -> Questions:
        """Yield the questions of one ask, be sent the options that are taken, return the decisions."""


class HostChoice(Choice):
    """The host of the next task, in the order of submission; an option is a host.

    Of each host: in how many seconds the task would complete there, after all that is queued; how
    long it would take [s]; its energy [J]. All are estimates. A host is allowed if it is on and can
    run the task.
    """

    traits = Traits(trigger="arrival", platform_order_matters=True)
    columns = ("completion_s", "run_time_s", "energy_j")
    scales = (0, 1, 2)

    def prepare(self, system: System) -> int:
        """Remember hosts and their P-states."""
        self._hosts = np.arange(system.n_hosts)
        self._pstates = system.pstates
        return system.n_hosts

    def questions(self, state: State) -> Questions:
        """Ask for a host for the task, unless none can run it."""
        decisions: list[Decision] = []
        for task in state.waiting():
            question = _serial(state, task, self._hosts, self._pstates)
            if question.legal.any():
                decisions.append(Assign(task, question.taken((yield question))))
        return decisions


class PStateChoice(Choice):
    """The P-state of the next task, in the order of submission; an option is a P-state.

    The task goes to the host where it would complete first in that P-state. Columns are those of
    `HostChoice`, on that host; a P-state is allowed if any host that is on has it. The cores of a host
    share one P-state: hosts of several cores have only the one that they start in.
    """

    traits = Traits(trigger="arrival", platform_order_matters=True, uses_dvfs=True)
    columns, scales = HostChoice.columns, HostChoice.scales

    def prepare(self, system: System) -> int:
        """Remember which hosts have which P-states."""
        platform = system.platform
        counts = system.estimates.n_pstates(platform)
        alone = platform.cores == 1
        legal = [np.where(alone, counts > k, system.pstates == k) for k in range(int(counts.max(initial=1)))]
        self._hosts = [np.flatnonzero(hosts) for hosts in legal]
        return len(self._hosts)

    def questions(self, state: State) -> Questions:
        """Ask for a P-state for the task, unless no host can run it."""
        decisions: list[Decision] = []
        for task in state.waiting():
            options, best = np.zeros((len(self._hosts), 3)), [-1] * len(self._hosts)
            for k, hosts in enumerate(self._hosts):
                if not len(hosts):
                    continue
                on_hosts = _serial(state, task, hosts, k)
                if on_hosts.legal.any():
                    first = int(np.argmin(np.where(on_hosts.legal, on_hosts.options[:, 0], np.inf)))
                    options[k], best[k] = on_hosts.options[first], hosts.item(first)
            legal = np.array(best) >= 0
            if legal.any():
                question = Question(options, legal, int(np.argmax(legal)))
                pstate = question.taken((yield question))
                decisions.append(Assign(task, best[pstate], pstate))
        return decisions


def _serial(state: State, task: int, hosts: Integers, pstates: Integers | int) -> Question:
    """Return what is known of a task on each of the hosts."""
    run_time = state.estimates.etc([task], hosts, pstates)[0]
    # as mct adds up; what is subtracted from all changes no order
    completion = state.ready_time[hosts] + run_time
    legal = np.isfinite(completion)
    rows = slice(None) if legal.all() else legal
    options = np.zeros((len(hosts), 3))
    options[rows, 0] = completion[rows] - state.now
    options[rows, 1] = run_time[rows]
    some = pstates if isinstance(pstates, int) else pstates[rows]
    options[rows, 2] = state.estimates.eec([task], hosts[rows], some)[0]
    return Question(options, legal, int(np.argmax(legal)))


class JobChoice(Choice):
    """Which of the first waiting jobs starts next, or none; the last option is none.

    Of each job: in how many seconds enough nodes will be free for it, if all that runs ends as
    estimated and nothing else starts (0: now); how long it may run [s]; the share of all nodes that
    it takes; how long it has waited [s]. Of none: when the next job ends, 0, the share of nodes
    that are free, 0. A job is allowed if it fits; none is allowed unless nothing would happen any more.

    A job starts on the free nodes of the lowest ids, and the next one is asked for, until none is
    chosen. Nothing is asked where no job of these fits.

    Parameters
    ----------
    jobs : int
        So many jobs are options, in order of submission.
    """

    traits = Traits(trigger="event", parallel=True, platform_order_matters=True)
    columns = ("start_s", "run_time_s", "nodes", "wait_s")
    scales = (0, 0, 1, 0)

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def __repr__(self) -> str:
        return f"{type(self).__name__}(jobs={self.jobs})"

    def prepare(self, system: System) -> int:
        """Look whether the platform is one cluster."""
        check_one_cluster(self, system)
        self._n_nodes = system.n_hosts
        self._pstate = system.pstate
        return self.jobs + 1

    def questions(self, state: State) -> Questions:
        """Ask for one job after the other."""
        estimates, started = state.estimates, _Started(state)
        decisions: list[Decision] = []
        while True:
            queue = state.next_waiting(self.jobs + len(started.tasks))
            queue = [task for task in queue if task not in started.tasks][: self.jobs]
            question = self._question(state, queue, started)
            if not question.legal[: self.jobs].any():
                return decisions
            option = question.taken((yield question))
            if option == self.jobs:
                return decisions
            task = queue[option]
            end = state.now + estimates.run_time(task, 0, self._pstate)
            decisions.append(Allocate(task, started.take(task, estimates.width(task, 0), end)))

    def _question(self, state: State, queue: list[int], started: _Started) -> Question:
        estimates, n, free = state.estimates, len(queue), len(started.free)
        options = np.zeros((self.jobs + 1, 4))
        legal = np.zeros(self.jobs + 1, dtype=np.bool_)
        if not n or not free:
            return Question(options, legal, self.jobs)
        width = np.array([estimates.width(task, 0) for task in queue])
        ends = np.append(state.nodes.estimated_end, started.ends)
        order = np.argsort(ends)
        widths = np.append(state.nodes.width, started.widths)[order]
        in_s = np.maximum(np.append(ends[order] - state.now, np.inf), 0.0)
        place = np.searchsorted(free + np.cumsum(widths), width)
        legal[:n] = width <= free
        start_s = np.where(legal[:n], 0.0, in_s[np.minimum(place, len(in_s) - 1)])
        options[:n, 0] = np.where(np.isfinite(start_s), start_s, 0.0)  # unknown for nodes that are off
        options[:n, 1] = [estimates.run_time(task, 0, self._pstate) for task in queue]
        options[:n, 2] = width / self._n_nodes
        options[:n, 3] = state.now - state.tasks.submit_time_s[queue]
        legal[self.jobs] = len(ends) > 0 or state.tasks_to_arrive > 0
        if len(ends):
            options[self.jobs, 0] = in_s[0]
        options[self.jobs, 2] = free / self._n_nodes
        return Question(options, legal, self.jobs if legal[self.jobs] else int(np.argmax(legal)))


class _Started:
    """What an agent has started in one ask, of which the state does not know yet."""

    def __init__(self, state: State) -> None:
        self.tasks: set[int] = set()
        self.widths: list[int] = []
        self.ends: list[float] = []
        self.free = np.flatnonzero(state.nodes.free)

    def take(self, task: int, width: int, end: float) -> Integers:
        """Give a job that ends then the free nodes of the lowest ids."""
        hosts, self.free = self.free[:width], self.free[width:]
        self.tasks.add(task)
        self.widths.append(width)
        self.ends.append(end)
        return hosts


#: By the name of the action; called with the number of jobs that are options.
_CHOICES: dict[str, Callable[[int], Choice]] = {
    "host": lambda jobs: HostChoice(),
    "pstate": lambda jobs: PStateChoice(),
    "job": JobChoice,
}


def make_choice(action: str | Choice, jobs: int) -> Choice:
    """Return what an agent chooses, by its name or as it is.

    Raises
    ------
    InputError
        If there is no such action, or no job is an option.
    """
    if isinstance(action, Choice):
        return action
    make = _named("action", action, _CHOICES, ", or a Choice")
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs is {jobs!r}; it must be a whole number >= 1.")
    return make(jobs)


def _scaled(options: Floats, scales: tuple[int, ...]) -> NDArray[np.float32]:
    """Divide columns by their greatest value, those of one scale by the same."""
    greatest: list[float] = options.max(axis=0, initial=0.0).tolist()
    together = [max(most for most, other in zip(greatest, scales, strict=True) if other == scale) for scale in scales]
    return (options / [most or 1.0 for most in together]).astype(np.float32)


#: How options are shown to an agent: called with the scales of their columns.
Show = Callable[[Floats, tuple[int, ...]], Floats | NDArray[np.float32]]
#: In their units, or between 0 and 1.
_OBSERVATIONS: dict[str, Show] = {"estimates": lambda options, scales: options, "scaled": _scaled}


def observation_of(name: str) -> Show:
    """Return how options are shown; `InputError` if they cannot be shown so."""
    return _named("observation", name, _OBSERVATIONS)


def _named(what: str, name: str, legal: Mapping[str, T], more: str = "") -> T:
    if name not in legal:
        hint = did_you_mean(str(name), legal)
        raise InputError(f"{what} is {name!r}. {hint}Allowed: {', '.join(map(repr, legal))}{more}.")
    return legal[name]


#: ``agent(observation, legal)`` returns the option that it takes.
Agent = Callable[[NDArray[Any], Booleans], int]


class _TraitsOfAction:
    """Traits of a scheduler, by its attribute `action`."""

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
        ``agent(observation, legal)`` returns the number of an option; one that is not allowed is
        replaced as in the environment. By default the allowed option with the least first
        column: with hosts that is MCT.
    action : {"host", "pstate", "job"} or Choice
        What it chooses; see `make_choice`.
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
        observation_of(self.observation)
        self.choice_ = make_choice(self.action, self.jobs)
        self.choice_.prepare(system)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Ask the agent one question after the other."""
        questions, show, scales = self.choice_.questions(state), observation_of(self.observation), self.choice_.scales
        try:
            question = next(questions)
            while True:
                question = questions.send(int(self.act(show(question.options, scales), question.legal)))
        except StopIteration as end:
            decisions: list[Decision] = end.value
            return decisions

    def act(self, observation: NDArray[Any], legal: Booleans) -> int:
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
