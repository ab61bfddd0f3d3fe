"""Patterns of names: of hosts that get values (``NAME_PATTERN=VALUE``), of machines to use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError, did_you_mean

Value = TypeVar("Value")
#: What a value without a pattern stands for.
EVERYONE = "*"


def split_pattern(text: str) -> tuple[str, str]:
    """Return the pattern and the value of an item; `EVERYONE` where it has no pattern.

    Raises
    ------
    ValueError
        If the item begins with ``=``.
    """
    pattern, equals, value = text.rpartition("=")
    if equals and not pattern:
        raise ValueError("no pattern of names stands before '='")
    return pattern or EVERYONE, value


def last_match(items: Sequence[tuple[str, Value]], name: str) -> Value | None:
    """Return the value of the last item whose pattern fits a name; None if none does."""
    return next((value for each, value in reversed(items) if fnmatchcase(name, each)), None)


def contain_match(texts: Iterable[str], pattern: str) -> NDArray[np.bool_]:
    """Return which texts contain a match of a regular expression, whatever the case.

    RE2 looks for it, in a time that grows with the text's length alone; it has all but references
    to what was matched before, and looking ahead and behind.

    Raises
    ------
    InputError
        If it is no such expression.
    """
    import pyarrow as pa  # slow to load
    from pyarrow.compute import match_substring_regex

    strings = pa.array(texts, pa.string())
    try:
        matches = match_substring_regex(strings, pattern, ignore_case=True)
    except (pa.ArrowInvalid, UnicodeError) as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise InputError(f"Name pattern {pattern!r}: {reason}.") from None
    return np.asarray(matches.to_numpy(zero_copy_only=False), dtype=bool)


def check_patterns(
    option: str, items: Iterable[tuple[str, object]], names: Iterable[str], where: str
) -> None:
    """Raise `InputError` for a pattern that no host has.

    Parameters
    ----------
    option : str
        What gave the patterns.
    items : iterable of tuple
        Pattern, and what it stands for.
    names : iterable of str
        Of the hosts.
    where : str
        The platform, for the message.
    """
    known = list(names)
    for pattern, _ in items:
        if not any(fnmatchcase(name, pattern) for name in known):
            hint = did_you_mean(pattern, known)
            raise InputError(
                f"{where}: {option} {pattern!r}: no host has such a name. {hint}".rstrip()
            )
