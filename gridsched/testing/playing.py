"""Tiny systems and playing schedulers on them; what goes wrong names scheduler and case."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import cloudpickle
import numpy as np

from gridsched.drivers import reference
from gridsched.engine import Controller
from gridsched.errors import GridschedError, IncompleteRun
from gridsched.model.carbon import Carbon, carbon_signal
from gridsched.model.estimates import Estimates
from gridsched.model.platform import Platform
from gridsched.model.run_times import LoggedRunTimes, RunTimes, SampledRunTimes
from gridsched.model.seeds import random_stream
from gridsched.model.series import Series, SiteSeries
from gridsched.model.stochastic import GammaLaw
from gridsched.model.system import System
from gridsched.model.task_types import TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State
from gridsched.scenario import LoadedScenario, Scenario, make_system

#: No tiny case needs more mapping events.
MAX_MAPPING_EVENTS = 10_000
#: How run times spread around their means, where they are uncertain.
UNCERTAINTY = GammaLaw(0.25)
#: Intensities [g/kWh] for schedulers that need them: better later, and best after 40 s.
CARBON = Carbon(SiteSeries(("*",), (Series((0.0, 12.0, 40.0), (400.0, 200.0, 100.0)),)), 97.0)


@dataclass(frozen=True)
class Case:
    """A system so small that a failure can be followed by hand.

    Attributes
    ----------
    name : str
    platform : Platform
    tasks : Tasks
    pstate : int
        The scenario's P-state.
    hosts_off : tuple of int
        Hosts that are off at the start.
    estimates : Estimates, optional
        Where given, the case is for the reference driver only.
    estimates_of : callable, optional
        ``estimates_of(platform, tasks)`` if neither flops nor types give times and powers.
    types : TaskTypes, optional
        ETC and APC where the tasks have types.
    logged : sequence of float, optional
        Where given, how long the tasks really take, as in a log [s].
    luck : tuple of float, optional
        Where given, the tasks take these quantiles of run times with cov 0.25 around `types`.
    rules : mapping
        Further fields of the scenario, by name: mapping interval, pending slots, budget.
    """

    name: str
    platform: Platform
    tasks: Tasks
    pstate: int = 0
    hosts_off: tuple[int, ...] = ()
    estimates: Estimates | None = None
    estimates_of: Callable[[Platform, Tasks], Estimates] | None = None
    types: TaskTypes | None = None
    luck: tuple[float, ...] | None = None
    logged: Sequence[float] | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)

    @property
    def run_times(self) -> RunTimes | None:
        """How long tasks really take; None where the estimates come true."""
        if self.logged is not None:
            return LoggedRunTimes(self.platform, self.logged)
        if self.luck is None or self.types is None:
            return None
        return SampledRunTimes(self.types.estimates(self.tasks), self.luck, UNCERTAINTY.quantile)

    def scenario(self, scheduler: Scheduler, **changes: Any) -> Scenario:
        """Return the scenario of the case; `changes` are further fields of it."""
        names = tuple(self.platform.hosts[h].name for h in self.hosts_off)
        return Scenario(
            replace(self.platform),
            self.tasks,
            scheduler,
            pstate=self.pstate,
            hosts_off=names,
            types=self.types,
            run_times=self.run_times,
            estimates=self._made_estimates(),
            **self.rules,
            **changes,
        )

    def _made_estimates(self) -> Estimates | None:
        return None if self.estimates_of is None else self.estimates_of(self.platform, self.tasks)

    def system(self) -> System:
        """Return what the scheduler is prepared for, with a platform object of its own."""
        platform = replace(self.platform)
        if self.estimates is not None:
            return System(platform, self.estimates, pstates=np.array([self.pstate]))
        return make_system(
            LoadedScenario(
                platform,
                self.tasks,
                pstate=self.pstate,
                types=self.types,
                estimates=self._made_estimates(),
                **self.rules,
            )
        )


class CheckFailed(AssertionError):
    """A scheduler breaks its contract; the message explains how to mend it."""


class Watched(Scheduler):
    """A scheduler under observation: what the controller sees of it, and no endless run.

    Parameters
    ----------
    scheduler : Scheduler
    around : callable, optional
        ``around(state, ask)`` is called in the place of ``ask()``, and returns its answer.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        around: Callable[[State, Callable[[], Iterable[Decision]]], Iterable[Decision]] | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.traits = scheduler.traits  # type: ignore[misc]  # of this very instance
        self._around = around
        self._asked = 0

    def __repr__(self) -> str:
        return repr(self.scheduler)

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Prepare the scheduler."""
        self.scheduler.prepare(system, rng)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Ask the scheduler."""
        return self._ask(state, self.scheduler.schedule)

    def on_event(self, state: State) -> Iterable[Decision]:
        """Ask the scheduler."""
        return self._ask(state, self.scheduler.on_event)

    def _ask(self, state: State, asked: Callable[[State], Iterable[Decision]]) -> Iterable[Decision]:
        self._asked += 1
        if self._asked > MAX_MAPPING_EVENTS:
            raise CheckFailed(
                f"it was asked {MAX_MAPPING_EVENTS} times and {len(state.mappable)} tasks still "
                "wait; assign them, or drop them, instead of waking up again."
            )
        return asked(state) if self._around is None else self._around(state, lambda: asked(state))


@contextmanager
def told(case: Case, scheduler: Scheduler) -> Iterator[None]:
    """Turn whatever a run raises into a `CheckFailed` that names case and scheduler."""
    where = f"{scheduler!r} on the case {case.name!r}"
    try:
        yield
    except CheckFailed as error:
        if str(error).startswith(where):  # what `play` found in it
            raise
        raise CheckFailed(f"{where}: {error}") from error
    except IncompleteRun as error:
        needed = "an Assign, a place in a Plan, or a Drop."
        if scheduler.traits.parallel:
            needed = f"{needed.replace('Assign', 'Allocate')} Place-holders are withdrawn before each ask: plan again."
        raise CheckFailed(f"{where}: {error} Every task needs {needed}") from error
    except GridschedError as error:
        raise CheckFailed(f"{where}: {type(error).__name__}: {error}") from error
    except Exception as error:
        hint = " Arrays of the state cannot be written to; change a copy." if "read-only" in str(error) else ""
        raise CheckFailed(f"{where}: it raised {type(error).__name__}: {error}.{hint}") from error


def play(
    case: Case,
    scheduler: Scheduler,
    *,
    seed: int = 0,
    system: System | None = None,
    around: Callable[[State, Callable[[], Iterable[Decision]]], Iterable[Decision]] | None = None,
    again: bool = False,
) -> Trace:
    """Run a case with the reference driver, on this very instance of the scheduler.

    Parameters
    ----------
    case : Case
    scheduler : Scheduler
    seed : int
        Seed of the scheduler's random stream.
    system : System, optional
        In the place of the case's own.
    around : callable, optional
        See `Watched`.
    again : bool
        Whether the run should be that of `trace_of`: then its steps are not validated once more where the
        environment asks for that.

    Raises
    ------
    CheckFailed
        Whatever goes wrong; the message names case and scheduler.
    """
    with told(case, scheduler):
        system = system or case.system()
        if scheduler.traits.needs_carbon and system.carbon is None:
            system = replace(system, carbon=carbon_signal(CARBON, system.platform))
        controller = Controller(
            system,
            case.tasks,
            Watched(scheduler, around),
            rng=random_stream(seed, "scheduler"),
            hosts_off=case.hosts_off,
        )
        with reference.validated_before() if again else nullcontext():
            return reference.simulate(controller, case.run_times)


#: Who played last, and its records with seed 0 by the identity of the case.
_owner: object = None
_records: dict[int, tuple[Case, Trace]] = {}


def trace_of(case: Case, scheduler: Scheduler) -> Trace:
    """Return the records of a fresh copy of a scheduler on a case, with seed 0.

    Checks of one scheduler that only look at records share them: those of the scheduler that played last are
    kept. A scheduler that cannot be pickled plays each time.

    Raises
    ------
    CheckFailed
        See `play`.
    """
    global _owner
    try:
        owner = type(scheduler), cloudpickle.dumps(scheduler.parameters)
    except (TypeError, AttributeError, pickle.PicklingError):
        return play(case, scheduler.clone())
    if owner != _owner:
        _owner = owner
        _records.clear()
    if id(case) not in _records:
        _records[id(case)] = case, play(case, scheduler.clone())
    return _records[id(case)][1]
