"""P-states that a user lets hosts start in, in the place of what the platform file says."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.platform_io.name_patterns import (
    EVERYONE,
    check_patterns,
    last_match,
    split_pattern,
)


def read_pstates(given: int | str | None) -> tuple[tuple[str, int], ...]:
    """Return what `RunSettings.pstate` says: patterns of host names, and a P-state for each.

    Parameters
    ----------
    given : int or str, optional
        As ``1``, or ``"old-*=1,new-*=0"``; of several items the last one that fits a host counts.

    Raises
    ------
    InputError
        If it says nothing of the kind.
    """
    return () if given is None else tuple(_item(each) for each in str(given).split(","))


def _item(text: str) -> tuple[str, int]:
    try:
        pattern, value = split_pattern(text.strip())
        if not re.fullmatch(r"\d{1,9}", value.strip()):
            raise ValueError(f"{value!r} is no whole number of at least 0")
    except ValueError as error:
        raise InputError(
            f"--pstate {text!r}: {error}; K for all hosts or NAME_PATTERN=K is legal."
        ) from None
    return pattern, int(value)


def pstates_of(platform: Platform, given: int | str | None) -> NDArray[np.int64]:
    """Return the P-state that each computing host starts in, shape (hosts,).

    Parameters
    ----------
    platform : Platform
    given : int or str, optional
        See `read_pstates`. Where it says nothing of a host, that is what its file says.

    Raises
    ------
    InputError
        If a pattern fits no computing host, or a host lacks its P-state.
    """
    items = read_pstates(given)
    check_patterns("--pstate", items, (host.name for host in platform.hosts), platform.name)
    found = [(last_match(items, host.name), host.pstate) for host in platform.hosts]
    pstates = np.array([own if told is None else told for told, own in found], dtype=np.int64)
    platform.check_pstates(pstates)
    return pstates


def one_pstate(given: int | str | None) -> int:
    """Return the one P-state of machines that have no names; see `read_pstates`.

    Raises
    ------
    InputError
        If P-states are given by names.
    """
    items = read_pstates(given)
    named = [pattern for pattern, _ in items if pattern != EVERYONE]
    if named:
        raise InputError(
            f"--pstate {given!r}: no machine has a name that {named[0]!r} could fit; K alone is "
            "legal."
        )
    return items[-1][1] if items else 0
