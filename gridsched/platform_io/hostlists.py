"""Slurm's short forms of lists of host names, as ``node[01-12],login``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from gridsched.errors import InputError

#: Lists of more names are refused.
MOST_NAMES = 1_000_000
#: Longer names are refused: DNS has none.
LONGEST_NAME = 255
#: What lies between brackets, or a stretch without any.
_PART = re.compile(r"\[([^][]*)\]|([^][]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_BRACKETS_OR_COMMA = re.compile(r"\[[^][]*\]|,")
_ALLOWED = "names separated by commas, with numbers and ranges in brackets, such as 'node[01-12],a[1-3,7]'"


def expand_hostlist(text: str) -> list[str]:
    """Return the names in a host list as Slurm writes it, each once, in the order of the list.

    Parameters
    ----------
    text : str
        Names separated by commas. Brackets hold numbers and ranges, as in ``a[1-3,7]``; a name may have
        several, as ``rack[1-2]-node[01-12]``, of which the last changes fastest. The first number of a
        range sets how many digits its names have at least: ``[08-10]`` is 08, 09, 10. What is outside
        brackets is kept as it is, also the ``*`` and ``?`` of patterns.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        If it is no such list, has more than `MOST_NAMES` names, or one longer than `LONGEST_NAME`.

    Examples
    --------
    >>> expand_hostlist("node[08-10],login")
    ['node08', 'node09', 'node10', 'login']
    """
    names: dict[str, None] = {}
    n_names = 0
    for item in split_hostlist(text):
        parts = _parts(item.strip(), text)
        count = 1
        for ranges in parts:
            count *= sum(last - first + 1 for first, last, _ in ranges) if isinstance(ranges, list) else 1
        n_names += count
        if n_names > MOST_NAMES:
            raise _no_list(text, f"it has more than {MOST_NAMES:,} names; at most so many are allowed")
        names |= dict.fromkeys(map("".join, product(*map(_texts, parts))))
    return list(names)


def fold_hostlist(names: Iterable[str]) -> str:
    """Return a short host list that `expand_hostlist` expands to these names.

    Parameters
    ----------
    names : iterable of str
        Without brackets or commas.

    Returns
    -------
    str
        Names that differ in their last number alone share brackets; groups in the order of their first names.

    Examples
    --------
    >>> fold_hostlist(["node08", "node10", "node09", "login"])
    'node[08-10],login'
    """
    numbers: dict[tuple[str, str, int], set[int]] = {}
    for name in names:
        before, digits, after = _LAST_NUMBER.fullmatch(name).groups()  # type: ignore[union-attr]
        # 10 has no leading zero and goes with 9; 010 goes with 009
        padded = len(digits) if digits.startswith("0") and digits != "0" else 0
        # a name without a number goes with none: login is not 1login without its 1
        numbers.setdefault((before, after, padded if digits else _NO_NUMBER), set()).add(int(digits or _NO_NUMBER))
    _join_padded(numbers)
    return ",".join(_folded(before, after, padded, found) for (before, after, padded), found in numbers.items())


#: The digits, and the number, of names that have none.
_NO_NUMBER = -1
#: A name and its last number, which may be missing and has at most as many digits as a range may have.
_LAST_NUMBER = re.compile(r"(.*?)([0-9]{0,18})([^0-9]*)")


def _join_padded(numbers: dict[tuple[str, str, int], set[int]]) -> None:
    """Put numbers without a leading zero with padded ones of as many digits, as 10 with 08 and 09."""
    for before, after, padded in [key for key in numbers if key[2] > 0]:
        plain = numbers.get((before, after, 0), set())
        wide = {number for number in plain if len(str(number)) == padded}
        numbers[before, after, padded] |= wide
        plain -= wide
    for key in [key for key, found in numbers.items() if not found]:
        del numbers[key]


def _folded(before: str, after: str, padded: int, numbers: set[int]) -> str:
    if padded == _NO_NUMBER:
        return before + after
    texts, left = [], sorted(numbers, reverse=True)
    while left:
        first = last = left.pop()
        while left and left[-1] == last + 1:
            last = left.pop()
        texts.append(f"{first:0{padded}}" if first == last else f"{first:0{padded}}-{last:0{padded}}")
    return f"{before}{texts[0]}{after}" if len(numbers) == 1 else f"{before}[{','.join(texts)}]{after}"


def split_hostlist(text: str) -> list[str]:
    """Return the items of a host list, which commas outside brackets separate."""
    items, begin = [], 0
    for match in _BRACKETS_OR_COMMA.finditer(text):
        if match[0] == ",":
            items.append(text[begin : match.start()])
            begin = match.end()
    return [*items, text[begin:]]


#: First and last number of a range, and how many digits each has at least.
_Range = tuple[int, int, int]


def _parts(item: str, text: str) -> list[str | list[_Range]]:
    """Return the parts of a name: texts, and ranges of numbers."""
    parts: list[str | list[_Range]] = []
    at = length = 0
    for match in _PART.finditer(item):
        if match.start() != at:
            break
        at = match.end()
        ranges = None if match[1] is None else [_range(each, text) for each in match[1].split(",")]
        parts.append(match[2] if ranges is None else ranges)
        length += len(match[2]) if ranges is None else max(max(digits, len(str(last))) for _, last, digits in ranges)
    if at != len(item):
        raise _no_list(text, f"brackets of {_shown(item)} do not match")
    if not item or length > LONGEST_NAME:
        raise _no_list(text, f"a name has {length} characters; 1 to {LONGEST_NAME} are allowed")
    return parts


def _range(text: str, whole: str) -> _Range:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise _no_list(whole, f"{_shown(text)} in brackets is neither a number nor a range as 1-12")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise _no_list(whole, f"the range {text.strip()} ends before it begins")
    return first, last, len(match[1])


def _texts(part: str | list[_Range]) -> list[str]:
    if isinstance(part, str):
        return [part]
    return [f"{number:0{digits}}" for first, last, digits in part for number in range(first, last + 1)]


def _no_list(text: str, why: str) -> InputError:
    return InputError(f"{_shown(text)} is not a list of hosts: {why}. Write {_ALLOWED}.")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
