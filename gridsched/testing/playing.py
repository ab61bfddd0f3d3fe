"""Playing a scheduler on a tiny system; whatever goes wrong names the scheduler and the case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from gridsched.engine import Controller, reference
from gridsched.errors import GridschedError, IncompleteRun
from gridsched.model.seeds import random_stream
from gridsched.model.system import System
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State
from gridsched.testing.case import Case

#: No tiny case needs more mapping events.
MAX_MAPPING_EVENTS = 10_000


class CheckFailed(AssertionError):
    """A scheduler breaks its contract; the message says how to mend it."""


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
        around: Callable[[State, Callable[[], Iterable[Decision]]], Iterable[Decision]]
        | None = None,
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

    def attend(self, state: State) -> Iterable[Decision]:
        """Ask the scheduler."""
        return self._ask(state, self.scheduler.attend)

    def _ask(
        self, state: State, asked: Callable[[State], Iterable[Decision]]
    ) -> Iterable[Decision]:
        self._asked += 1
        if self._asked > MAX_MAPPING_EVENTS:
            raise CheckFailed(
                f"it was asked {MAX_MAPPING_EVENTS} times and {len(state.mappable)} tasks still "
                "wait; assign them, or drop them, instead of waking up again."
            )
        if self._around is None:
            return asked(state)
        return self._around(state, lambda: asked(state))


@contextmanager
def told(case: Case, scheduler: Scheduler) -> Iterator[None]:
    """Turn whatever a run raises into a `CheckFailed` that names case and scheduler."""
    where = f"{scheduler!r} on the case {case.name!r}"
    try:
        yield
    except CheckFailed as error:
        raise CheckFailed(f"{where}: {error}") from error
    except IncompleteRun as error:
        needed = "an Assign, a place in a Plan, or a Drop."
        if scheduler.traits.parallel:
            needed = (
                "an Allocate, a place in a Plan, or a Drop. Place-holders are withdrawn before "
                "each ask: plan again."
            )
        raise CheckFailed(f"{where}: {error} Every task needs {needed}") from error
    except GridschedError as error:
        raise CheckFailed(f"{where}: {type(error).__name__}: {error}") from error
    except Exception as error:
        hint = ""
        if "read-only" in str(error):
            hint = " Arrays of the state cannot be written to; change a copy of them."
        raise CheckFailed(f"{where}: it raised {type(error).__name__}: {error}.{hint}") from error


def play(
    case: Case,
    scheduler: Scheduler,
    *,
    seed: int = 0,
    system: System | None = None,
    around: Callable[[State, Callable[[], Iterable[Decision]]], Iterable[Decision]] | None = None,
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

    Raises
    ------
    CheckFailed
        Whatever goes wrong; the message names case and scheduler.
    """
    with told(case, scheduler):
        controller = Controller(
            system or case.system(),
            case.tasks,
            Watched(scheduler, around),
            rng=random_stream(seed, "scheduler"),
            hosts_off=case.hosts_off,
        )
        return reference.simulate(controller, case.run_times)
