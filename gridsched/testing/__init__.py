"""Common checks that every scheduler passes; run them on your own policy, too.

Examples
--------
>>> from gridsched.testing import check_scheduler
>>> results = check_scheduler("wq")

In a test file, one pytest item for each scheduler and check::

    from gridsched.testing import parametrize_with_checks


    @parametrize_with_checks(["wq", MyScheduler, MyScheduler(depth=3)])
    def test_common_checks(scheduler, check):
        check(scheduler)
"""

from gridsched.testing.agreement import trace_differences
from gridsched.testing.cases import TINY_CASES
from gridsched.testing.playing import Case, CheckFailed, play
from gridsched.testing.suite import (
    CHECKS,
    Check,
    CheckResult,
    StyleWarning,
    applicable_checks,
    check_scheduler,
    parametrize_with_checks,
)

__all__ = [
    "CHECKS",
    "TINY_CASES",
    "Case",
    "Check",
    "CheckFailed",
    "CheckResult",
    "StyleWarning",
    "applicable_checks",
    "check_scheduler",
    "parametrize_with_checks",
    "play",
    "trace_differences",
]
