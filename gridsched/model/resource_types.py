"""Types of counted resources: four GPUs of which two are of type ``a100`` are ``gpu`` 4 and ``gpu:a100`` 2.

A resource counts all of its units, and each type those of its own. Who asks for a type takes units of both; who asks
for none may get units of any type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: Between the name of a resource and its type.
TYPE_MARK = ":"


def whole_of(name: str) -> str:
    """Return the resource that a name is of, or of which it is a type.

    Examples
    --------
    >>> whole_of("gpu:a100"), whole_of("gpu")
    ('gpu', 'gpu')
    """
    return name.partition(TYPE_MARK)[0]


def is_type(name: str) -> bool:
    """Whether a name is that of a type."""
    return TYPE_MARK in name


def typed_amounts(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return how many units there are of each type of a resource.

    Parameters
    ----------
    amounts : mapping of str to int

    Returns
    -------
    dict of str to int
        By resource, without those that have no types.
    """
    of_types: dict[str, int] = {}
    for name, amount in amounts.items():
        if is_type(name):
            of_types[whole_of(name)] = of_types.get(whole_of(name), 0) + amount
    return of_types


def with_wholes(parts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return amounts of which units are listed once: each resource counts those of its types and those of no type.

    Parameters
    ----------
    parts : iterable of (str, int)
        Names, of types too, and their units; a name may occur several times.

    Examples
    --------
    >>> with_wholes([("gpu:a100", 4), ("gpu:v100", 2), ("gpu", 1)])
    {'gpu': 7, 'gpu:a100': 4, 'gpu:v100': 2}
    """
    amounts: dict[str, int] = {}
    for name, amount in parts:
        whole = whole_of(name)
        amounts[whole] = amounts.get(whole, 0) + amount
        if name != whole:
            amounts[name] = amounts.get(name, 0) + amount
    return amounts


def listed_once(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return amounts as `with_wholes` takes them: of a resource that has types only the units of no type."""
    of_types = typed_amounts(amounts)
    once = {name: amount - of_types.get(name, 0) for name, amount in amounts.items()}
    return {name: amount for name, amount in once.items() if amount > 0 or name not in of_types}
