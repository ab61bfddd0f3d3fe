"""Options that belong together, declared as the fields of a dataclass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints


def with_options(
    group: type, *, before: int = 0
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of a dataclass as options.

    Parameters
    ----------
    group : type
        The command's first parameter receives an instance.
    before : int
        So many of its options stand in the help before the command's own; the rest after them.
    """
    hints = get_type_hints(group, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]  # fmt: skip

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in list(signature.parameters.values())[1:]
        ]

        @functools.wraps(command)
        def wrapped(**values: Any) -> None:
            options = group(**{each.name: values.pop(each.name) for each in shared})
            command(options, **values)

        parameters = [*shared[:before], *own, *shared[before:]]
        wrapped.__signature__ = signature.replace(parameters=parameters)
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapped

    return decorated
