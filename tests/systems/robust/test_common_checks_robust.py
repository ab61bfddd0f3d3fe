"""A variant of paper 002's heuristics passes the common checks, as those with usual parameters do."""

from gridsched.policy.registry import make_scheduler
from gridsched.testing import parametrize_with_checks


@parametrize_with_checks([make_scheduler("lightest_load", {"energy_fair_share": True, "remap": True})])
def test_common_checks(scheduler, check):
    """The scheduler passes the check."""
    check(scheduler)
