"""Every registered scheduler passes the common checks."""

from __future__ import annotations

import pytest

from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.testing import parametrize_with_checks

VARIANTS = (
    ("wqr", {"pick": "random"}),
    ("wqr", {"max_replicas": 3}),
    ("wqr", {"max_replicas": 1}),
    ("sufferage", {"variant": "pass"}),
    ("sufferage", {"reschedule": False}),
    ("xsufferage", {"variant": "pass"}),
    ("min_min", {"reschedule": False}),
    ("max_min", {"reschedule": False}),
    ("lecsa", {"share_rule": "levels", "leftover": "first"}),
    ("lecsa", {"share_rule": "range", "switch_off": "unused"}),
    ("lecsa", {"share_rule": "count", "switch_off": "none", "few_tasks_share": 0.5}),
    ("slowest_pstates", {"scheduler": "min_min", "within": 1.5}),
    ("idle_off", {"scheduler": "wqr", "timeout_s": 2.0}),
    ("wait_for_green", {"scheduler": "follow_sites", "max_delay_s": 30.0, "forecast": "persistence", "site": "best"}),
    ("lightest_load", {"energy_fair_share": True, "remap": True}),
    ("easy_backfilling", {"reservations": "permanent"}),
    ("conservative_backfilling", {"reservations": "permanent"}),
    ("fcfs", {"order": "f3", "depth": 2}),
    ("easy_backfilling", {"order": "wfp3", "estimate": "last_two_of_user"}),
    ("easy_backfilling", {"order": "multifactor(PriorityWeightFairshare=1000, PriorityWeightAge=1000)"}),
    ("conservative_backfilling", {"order": "unicef", "estimate": "last_two_of_user", "depth": 3}),
    ("fcfs_multiple_queues", {"cluster_choice": "first"}),
    ("task_based", {"counts_place_holders": True}),
    ("max_upr", {"mode": "reservation", "energy_filter": "energy_per_task"}),
)
#: those that are programs of their own are in schedulers/test_batsim.py
OWN = [entry.id for entry in entries() if not scheduler_class(entry.id).traits.external]
ALL = OWN + [make_scheduler(id, given) for id, given in VARIANTS]


@pytest.mark.usefixtures("validated")
@parametrize_with_checks(ALL)
def test_common_checks(scheduler, check):
    """The scheduler passes the check."""
    check(scheduler)
