"""Whether a run still gets anywhere, and the sentence for one that does not."""

from __future__ import annotations

import numpy as np

from gridsched.engine.ledger import FINISHED, Ledger
from gridsched.model.rules import Rules
from gridsched.model.tasks import Tasks

#: Mapping events in a row that may pass with nothing running or to come.
MAX_BARREN_EVENTS = 1000
#: Budget periods in a row that may pass with nothing running or to come.
MAX_BARREN_PERIODS = 30
#: Instants in a row at which hosts may go down or come up with nothing running or to come.
MAX_BARREN_OUTAGES = 1000
#: Tasks that a message names.
_MOST_NAMED = 10


class Progress:
    """Counts events, budget periods and outages in which nothing runs and nothing is to come.

    Attributes
    ----------
    counts : bool
        Whether it has counted any since something ran or was to come.
    """

    def __init__(self) -> None:
        self._events = self._periods = self._outages = 0
        self.counts = False

    def made(self) -> None:
        """Something runs, or is to come."""
        self._events = self._periods = self._outages = 0
        self.counts = False

    def period_began(self) -> None:
        """A new budget period may let tasks start."""
        self._periods += 1
        self.counts = True

    def none_by_outages(self) -> bool:
        """Whether hosts have gone down and come up too often with nothing started on them."""
        self._outages += 1
        self.counts = True
        return self._outages >= MAX_BARREN_OUTAGES

    def is_none(self, *, event_due: bool, has_periods: bool, has_events: bool) -> bool:
        """Whether nothing will ever happen again, now that nothing runs or is to come."""
        if has_periods:  # more of them to come
            return self._periods >= MAX_BARREN_PERIODS
        if has_events:
            self._events += event_due
            self.counts = True
            return self._events >= MAX_BARREN_EVENTS
        return True


def unfinished(
    ledger: Ledger, tasks: Tasks, policy: str, now: float, *, postponed: int,
    rules: Rules,
) -> str:  # fmt: skip
    """Return a sentence that names tasks without a final state, ten at most."""
    left = np.flatnonzero(ledger.states < FINISHED)
    names = ", ".join(str(label) for label in tasks.labels[left[:_MOST_NAMED]])
    if len(left) > _MOST_NAMED:
        names += f" and {len(left) - _MOST_NAMED} more"
    why = ""
    if rules.budget is not None and postponed:
        why = (
            f" Postponed among them: {postponed}; no period's budget of {rules.budget.words} "
            "admits these."
        )
    if rules.power_cap_w is not None:
        why += f" The hosts may draw at most {rules.power_cap_w:g} W (power_cap_w)."
    return (
        f"{policy} left {len(left)} of {len(tasks)} tasks unfinished at t = {now:g} s, with "
        f"nothing running and nothing to come: tasks {names}.{why}"
    )
