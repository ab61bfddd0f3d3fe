"""Choose a scheduler by trying all of them: a run of the reference driver costs milliseconds."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from gridsched.drivers.reference import simulate
from gridsched.energy import trace_energy
from gridsched.engine import Controller
from gridsched.errors import IncompleteRun, InputError, InvalidDecision
from gridsched.metrics.run_metrics import makespan_s
from gridsched.model.signals import Signal
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import TaskState, Trace
from gridsched.policy.base import Delegate, Scheduler, Traits, check_choice, check_whole_number
from gridsched.policy.decisions import Decision
from gridsched.policy.registry import entries, scheduler_class
from gridsched.policy.state import State
from gridsched.schedulers.weighing import weighing_signal


def _energy_j(trace: Trace, weights: Signal) -> float:
    return trace_energy(trace, None, None if weights.is_even else weights).grid_total()


#: What a trial is judged by, with what its joules weigh; the least value wins.
OBJECTIVES: dict[str, Callable[[Trace, Signal], float]] = {
    "energy": _energy_j,
    "makespan": lambda trace, _: makespan_s(trace),
    "energy_delay": lambda trace, weights: _energy_j(trace, weights) * makespan_s(trace),
}

#: Kinds of workload (the registry's "accepts") that a candidate must take.
_WORKLOAD = "bag"


class AutoBag(Scheduler):
    """Try every bag scheduler on the tasks that are there, and follow the best one.

    Parameters
    ----------
    objective : {"energy", "makespan", "energy_delay"}
        What is to be least: energy [J], makespan [s], or their product [J s].
    candidates : str, sequence of str or Scheduler, or None
        Ids (a text may name several, separated by commas) or instances; None for all registered
        bag schedulers that can act here, in the order of their ids.
    max_tasks : int
        Larger bags are tried on a selection of this many tasks (or one for each core, if that is
        more), evenly spaced by size, because some candidates need cubic time.
    weigh : {"energy", "money", "carbon"}
        Whether a joule of a trial counts as such, or by what it costs or emits at its time and host.

    Notes
    -----
    At the first submission each candidate runs on the reference driver: on the platform as it is
    (hosts that are off stay off until the candidate switches them on), with the tasks submitted so
    far as a bag. Tasks that arrive later, messages and true run times other than the estimates are
    unknown to the trial. What draws more than a cap on power is out. Of the candidates that leave
    the fewest tasks undone the one with the least objective takes over for the whole run, the first
    one of equals. Where all tasks are submitted together, are at most `max_tasks`, and no messages
    are simulated, the result is therefore the best candidate's, bit by bit.

    References
    ----------
    .. [1] LECSA paper (004), section 6 (future work): "capable of choosing the best scheduling
       algorithm depending of the input tasks configuration".
    .. [2] J. R. Rice, "The algorithm selection problem", Advances in Computers 15, 1976.
    """

    traits: ClassVar[Traits] = Traits(
        trigger="start",
        replicates=True,
        may_cancel=True,
        powers_hosts=True,
        uses_rng=True,
        platform_order_matters=True,
        delegates=True,
    )

    def __init__(
        self,
        objective: str = "energy",
        candidates: str | Sequence[str | Scheduler] | None = None,
        max_tasks: int = 1000,
        weigh: str = "energy",
    ) -> None:
        self.objective = objective
        self.candidates = candidates
        self.max_tasks = max_tasks
        self.weigh = weigh

    def __getstate__(self) -> dict[str, Any]:
        """Take the registered classes along: another process may not know a user's own."""
        return {**vars(self), "registered_": self._registered()}

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and find the candidates that can act here."""
        check_choice("auto_bag", "objective", self.objective, OBJECTIVES)
        check_whole_number("auto_bag", "max_tasks", self.max_tasks, 1)
        self.weights_ = weighing_signal("auto_bag", self.weigh, system)
        self.system_ = system
        self.rng_ = rng
        self.able_ = self._able(system, rng)
        self.scores_: dict[str, float] = {}

    def schedule(self, state: State) -> Iterable[Decision]:
        """Try all candidates and delegate to the best.

        Raises
        ------
        InputError
            If there is a cap on power that no candidate keeps.
        """
        most = max(self.max_tasks, int(self.system_.platform.cores.sum()))
        bag = trial_bag(state, most)
        system = replace(self.system_, estimates=self.system_.estimates.of(bag))
        hosts_off = np.flatnonzero(~state.is_on).tolist()
        ranks, weights = [], self.weights_.later(state.now)
        for candidate in self.able_:
            undone, score = self._trial(candidate, system, bag, hosts_off, weights)
            self.scores_[repr(candidate)] = score
            ranks.append((undone, score))
        best = min(range(len(ranks)), key=ranks.__getitem__)
        cap_w = system.rules.power_cap_w
        if cap_w is not None and ranks[best][0] == math.inf:
            raise InputError(
                f"auto_bag: no candidate stays within power_cap_w = {cap_w:g}. Raise the cap, or "
                "use power_capped_mct, which respects it."
            )
        return [Delegate(self.able_[best].clone())]

    def _trial(
        self, candidate: Scheduler, system: System, bag: Tasks, hosts_off: list[int], weights: Signal
    ) -> tuple[float, float]:
        """Run a candidate: tasks it leaves undone, and its objective.

        Both are infinite if it gets stuck, or draws more than the cap on power.
        """
        controller = Controller(system, bag, candidate.clone(), rng=copy.deepcopy(self.rng_), hosts_off=hosts_off)
        try:
            trace = simulate(controller)
        except IncompleteRun:
            return math.inf, math.inf
        except InvalidDecision:
            if system.rules.power_cap_w is None:
                raise
            return math.inf, math.inf
        undone = np.count_nonzero(trace.final_state != TaskState.FINISHED)
        return float(undone), OBJECTIVES[self.objective](trace, weights)

    # ------------------------------------------------------------------ candidates

    def _able(self, system: System, rng: np.random.Generator) -> list[Scheduler]:
        """Candidates that can act here; one that was named and cannot is an error."""
        able, reasons = [], []
        for candidate in self._named() or [cls() for cls in self._registered()]:
            try:
                if not self.traits.covers(candidate.traits):
                    raise InputError(f"auto_bag cannot follow {candidate!r}: see its traits.")
                candidate.clone().prepare(system, copy.deepcopy(rng))
            except InputError as error:
                if self.candidates is not None:
                    raise
                reasons.append(str(error))
            else:
                able.append(candidate)
        if not able:
            raise InputError(f"auto_bag: no scheduler can act here. {' '.join(reasons)}")
        return able

    def _named(self) -> list[Scheduler]:
        if self.candidates is None:
            return []
        names = self.candidates
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",") if name.strip()]
        legal = isinstance(names, list | tuple) and len(names)
        if not legal or not all(isinstance(each, str | Scheduler) for each in names):
            raise InputError(
                f"Parameter 'candidates' of auto_bag is {self.candidates!r}; it must name at least "
                "one scheduler, such as 'wq,lecsa' or a list of ids or instances."
            )
        return [each if isinstance(each, Scheduler) else scheduler_class(each)() for each in names]

    def _registered(self) -> list[type[Scheduler]]:
        """All of gridsched's own bag schedulers by id, those left out that it cannot follow."""
        registry = getattr(self, "registered_", None)
        if registry is None:
            ids = [entry.id for entry in entries() if _WORKLOAD in entry.accepts and entry.is_ours]
            registry = [cls for cls in map(scheduler_class, ids) if self.traits.covers(cls.traits)]
        return registry


def trial_bag(state: State, most: int) -> Tasks:
    """Return the tasks submitted so far, at most `most`, as a bag that is submitted at time 0.

    Where some are left out, the others are evenly spaced by size, the smallest and the largest
    among them, and the heterogeneity stays that of all.
    """
    tasks = state.tasks
    bag = replace(tasks, submit_time_s=np.zeros(len(tasks)))
    if len(bag) <= most:
        return bag
    by_size = np.argsort(bag.flops, kind="stable")
    spaced = np.round(np.linspace(0, len(bag) - 1, most)).astype(np.int64)
    chosen = bag.taken(np.sort(by_size[spaced]))
    return replace(chosen, nominal_heterogeneity=bag.heterogeneity)
