"""The list of checks, running them by hand or under pytest, and agreement of the drivers."""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridsched.energy import relative_difference, trace_energy
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.registry import make_scheduler
from gridsched.runs.run import RunResult, run
from gridsched.runs.run_many import energy_check
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import contract, repetition
from gridsched.testing.cases import cases_for
from gridsched.testing.playing import CheckFailed, told

# ----------------------------------------------------------------------
# Check that SimGrid and the reference driver give the same run


#: Relative difference that the drivers may show in times and joules.
TOLERANCE = 1e-9


def trace_differences(first: Trace, second: Trace, tolerance: float = TOLERANCE) -> list[str]:
    """Return, in words, in what two traces of one scenario differ.

    Tasks, hosts, P-states and outcomes must be equal, times and joules to `tolerance` relative
    (times below 1 s: absolute).

    Parameters
    ----------
    first, second : Trace
    tolerance : float
    """
    if not np.array_equal(first.final_state, second.final_state):
        return [f"final states {first.final_state} and {second.final_state}"]
    if len(first.executions) != len(second.executions):
        return [f"{len(first.executions)} and {len(second.executions)} executions"]
    order, other_order = _order(first.executions), _order(second.executions)
    one, other = first.executions[order], second.executions[other_order]
    pairs = zip(order.tolist(), other_order.tolist(), strict=True)
    differing = {
        "set of hosts": [not np.array_equal(first.hosts_of(mine), second.hosts_of(theirs)) for mine, theirs in pairs],
        **{name: one[name] != other[name] for name in ("task", "host", "pstate", "outcome")},
        **{name: np.abs(one[name] - other[name]) > tolerance * np.maximum(1.0, one[name]) for name in ("start", "end")},
    }
    problems = [
        f"execution {one[k]} and {other[k]}: {name} differs"
        for name, marks in differing.items()
        for k in np.flatnonzero(marks)[:1]
    ]
    joules = trace_energy(first).total_j, trace_energy(second).total_j
    for h in np.flatnonzero(relative_difference(*joules) > tolerance)[:1]:
        name = trace_energy(first).names[h]
        problems.append(f"host {name}: {joules[0][h]!r} J and {joules[1][h]!r} J")
    return problems


def _order(executions: np.ndarray) -> np.ndarray:
    return np.lexsort((executions["start"], executions["host"], executions["task"]))


def metered_differences(result: RunResult, tolerance: float = TOLERANCE) -> list[str]:
    """Return, in words, where plugin and model joules of a SimGrid run differ."""
    return [
        f"host {row['host']}: plugin {row['plugin_j']!r} J, model {row['model_j']!r} J"
        for row in energy_check(result)
        if row["relative_difference"] > tolerance
    ]


def same_notes(first: Trace, second: Trace) -> bool:
    """Whether schedulers noted the same beside the same tasks."""
    return first.notes.keys() == second.notes.keys() and all(
        np.array_equal(values, second.notes[name], equal_nan=True) for name, values in first.notes.items()
    )


def check_drivers_agree(scheduler: Scheduler) -> None:
    """Times and joules of reference driver and SimGrid agree to 1e-9, all ways of running."""
    if not is_installed():
        raise unittest.SkipTest(HOW_TO_INSTALL)
    traits = scheduler.traits
    ways = ["auto"]
    if not (traits.parallel or traits.replicates or traits.may_cancel or traits.powers_hosts):
        ways.append("actors")  # auto took the maestro way
    for case in cases_for(scheduler):
        if case.estimates is not None or not len(case.tasks):  # no run without tasks
            continue
        with told(case, scheduler):
            expected = run(case.scenario(scheduler, driver="reference"))
            for way in ways:
                result = run(case.scenario(scheduler, driver="simgrid", way=way))
                first, second = expected.trace, result.trace
                same = {
                    "the energy account's periods": np.array_equal(first.periods, second.periods),
                    "what was postponed": np.array_equal(first.times_postponed, second.times_postponed),
                    "what was noted": same_notes(first, second),
                }
                problems = trace_differences(first, second) + metered_differences(result)
                problems += [what for what, is_same in same.items() if not is_same]
                if problems:
                    raise CheckFailed(
                        f"reference driver and SimGrid (way={way!r}) differ: {problems[0]}. Decide "
                        "from the state alone; if you do, please report this."
                    )


# ----------------------------------------------------------------------
# The list of checks, and running them by hand or under pytest


def _always(_traits: Traits) -> bool:
    return True


class StyleWarning(UserWarning):
    """A scheduler behaves as it must, but could be written better."""


@dataclass(frozen=True)
class Check:
    """One check; call it with a scheduler.

    Attributes
    ----------
    function : callable
        ``function(scheduler)``; raises `CheckFailed`, or `unittest.SkipTest` with a reason.
    applies : callable
        Whether the check concerns policies with the given `Traits`.
    is_style : bool
        Whether it is about words, not behaviour: what it finds is a `StyleWarning`.
    """

    function: Callable[[Scheduler], None]
    applies: Callable[[Traits], bool] = _always
    is_style: bool = False

    @property
    def name(self) -> str:
        """Name of the check, for messages and test ids."""
        return self.function.__name__.removeprefix("check_")

    def __call__(self, scheduler: str | type[Scheduler] | Scheduler) -> None:
        """Run the check."""
        try:
            self.function(as_scheduler(scheduler))
        except CheckFailed as error:
            if not self.is_style:
                raise
            warnings.warn(f"{self.name}: {error}", StyleWarning, stacklevel=2)

    def __repr__(self) -> str:
        return self.name


#: All common checks, the cheap ones first.
CHECKS = (
    Check(contract.check_default_construction),
    Check(contract.check_init_only_stores),
    Check(contract.check_repr),
    Check(contract.check_pickle),
    Check(contract.check_docstring, is_style=True),
    Check(contract.check_clone),
    Check(contract.check_memory),
    Check(contract.check_final_states),
    Check(contract.check_legal_places),
    Check(contract.check_budget),
    Check(contract.check_all_hosts_off, lambda t: not t.powers_hosts),
    Check(contract.check_state_untouched),
    Check(repetition.check_sees_no_future),
    Check(repetition.check_same_seed),
    Check(repetition.check_seed_irrelevant, lambda t: not t.uses_rng),
    Check(repetition.check_reuse),
    Check(repetition.check_host_order, lambda t: not t.platform_order_matters),
    Check(contract.check_lower_bounds),
    Check(contract.check_without_simgrid),
    Check(check_drivers_agree),
)


@dataclass(frozen=True)
class CheckResult:
    """Outcome of one check: its name, and why it was skipped (empty if it passed)."""

    name: str
    skipped: str = ""


def as_scheduler(scheduler: str | type[Scheduler] | Scheduler) -> Scheduler:
    """Return an instance for an id of the registry, a class, or an instance."""
    if isinstance(scheduler, str):
        return make_scheduler(scheduler)
    return contract.make_default(scheduler) if isinstance(scheduler, type) else scheduler


def applicable_checks(scheduler: str | type[Scheduler] | Scheduler) -> tuple[Check, ...]:
    """Return the checks that concern a scheduler, by its traits."""
    owner = make_scheduler(scheduler) if isinstance(scheduler, str) else scheduler
    traits = getattr(owner, "traits", None)
    if not isinstance(traits, Traits):
        return CHECKS[:1]
    return tuple(check for check in CHECKS if check.applies(traits))


def check_scheduler(scheduler: str | type[Scheduler] | Scheduler) -> tuple[CheckResult, ...]:
    """Run every applicable check on a scheduler.

    Parameters
    ----------
    scheduler : str, class or Scheduler
        An id of the registry, a class (checked with its defaults), or an instance.

    Returns
    -------
    tuple of CheckResult
        The checks that passed or were skipped.

    Raises
    ------
    CheckFailed
        With one line for each check that failed. Findings of style are warnings (`StyleWarning`).

    Examples
    --------
    >>> [result.name for result in check_scheduler("round_robin")][:2]
    ['default_construction', 'init_only_stores']
    """
    results, failures = [], []
    for check in applicable_checks(scheduler):
        try:
            check(scheduler)
        except unittest.SkipTest as skip:
            results.append(CheckResult(check.name, str(skip)))
        except CheckFailed as error:
            failures.append(f"{check.name}: {error}")
            if check is CHECKS[0]:  # without an instance nothing else can be checked
                break
        else:
            results.append(CheckResult(check.name))
    if failures:
        raise CheckFailed("\n".join(failures))
    return tuple(results)


def parametrize_with_checks(schedulers: Iterable[str | type[Scheduler] | Scheduler]) -> Any:
    """Return a decorator: one pytest item for each scheduler and applicable check.

    Parameters
    ----------
    schedulers : iterable of str, class or Scheduler
        As `check_scheduler` takes them.

    Returns
    -------
    pytest.MarkDecorator
        For a test function with the arguments ``scheduler`` and ``check``.

    Examples
    --------
    >>> @parametrize_with_checks(["wq", "lecsa"])
    ... def test_common_checks(scheduler, check):
    ...     check(scheduler)
    """
    import pytest

    items = [
        pytest.param(scheduler, check, id=f"{_name(scheduler)}-{check.name}")
        for scheduler in schedulers
        for check in applicable_checks(scheduler)
    ]
    return pytest.mark.parametrize(("scheduler", "check"), items)


def _name(scheduler: str | type[Scheduler] | Scheduler) -> str:
    if isinstance(scheduler, str):
        return scheduler
    return scheduler.__name__ if isinstance(scheduler, type) else repr(scheduler)
