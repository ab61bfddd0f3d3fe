"""The list of checks, and running them by hand or under pytest."""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.registry import make_scheduler
from gridsched.testing import decision_checks, object_checks, repetition
from gridsched.testing.agreement import check_drivers_agree
from gridsched.testing.playing import CheckFailed


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
        Whether it is about words, not behavior: what it finds is a `StyleWarning`.
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
    Check(object_checks.check_default_construction),
    Check(object_checks.check_init_only_stores),
    Check(object_checks.check_repr),
    Check(object_checks.check_pickle),
    Check(object_checks.check_docstring, is_style=True),
    Check(object_checks.check_clone),
    Check(object_checks.check_memory),
    Check(decision_checks.check_final_states),
    Check(decision_checks.check_legal_places),
    Check(decision_checks.check_budget),
    Check(decision_checks.check_all_hosts_off, lambda t: not t.powers_hosts),
    Check(decision_checks.check_state_untouched),
    Check(repetition.check_sees_no_future),
    Check(repetition.check_same_seed),
    Check(repetition.check_seed_irrelevant, lambda t: not t.uses_rng),
    Check(repetition.check_reuse),
    Check(repetition.check_host_order, lambda t: not t.platform_order_matters),
    Check(decision_checks.check_lower_bounds),
    Check(object_checks.check_without_simgrid),
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
    return object_checks.make_default(scheduler) if isinstance(scheduler, type) else scheduler


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
