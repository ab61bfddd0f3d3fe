"""Variants of paper 001's schedulers pass the common checks, as those with usual parameters do."""

from gridsched.policy.registry import make_scheduler
from gridsched.testing import parametrize_with_checks

VARIANTS = (
    ("easy_backfilling", {"reservations": "permanent"}),
    ("conservative_backfilling", {"reservations": "permanent"}),
    ("fcfs_multiple_queues", {"cluster_choice": "first"}),
    ("task_based", {"counts_place_holders": True}),
    ("max_upr", {"mode": "reservation", "energy_filter": "energy_per_task"}),
)


@parametrize_with_checks([make_scheduler(id, given) for id, given in VARIANTS])
def test_common_checks(scheduler, check):
    """The scheduler passes the check."""
    check(scheduler)
