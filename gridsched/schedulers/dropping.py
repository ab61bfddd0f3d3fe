"""The threshold below which tasks are dropped (papers 000, section III-A; 001, section 3.3)."""

from __future__ import annotations

import math

from gridsched.policy.base import check_number


def check_dropping_threshold(owner: str, threshold: object) -> float:
    """Return the parameter ``dropping_threshold`` of the scheduler `owner`.

    Raises
    ------
    InputError
        Unless it is a finite number of at least 0.
    """
    return check_number(
        owner, "dropping_threshold", threshold, lambda x: 0 <= x < math.inf,
        "a number of at least 0",
    )  # fmt: skip
