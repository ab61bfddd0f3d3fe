"""Options that belong together: fields of a dataclass, parameters of a function, keys of a record."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gridsched.cli.app import Application
from gridsched.model.energy_cost import PerEnergy
from gridsched.model.records import Key

#: What represents a value in the help, by the end of a key's name.
_METAVARS = {"_per_s": "X", "_s": "S", "_j": "X"}


def command_group(epilog: str | None = None) -> typer.Typer:
    """Return a group of commands; the list of all commands has its help."""
    return Application(no_args_is_help=True, epilog=epilog)


def with_options(
    group: Callable[..., Any], *, before: int = 0, records: Mapping[str, Mapping[str, Key]] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of dataclasses, or the parameters of a function, as options.

    A further parameter of the command whose type is a dataclass represents the fields of that dataclass.

    Parameters
    ----------
    group : dataclass or function
        The command's first parameter receives an instance, or what the function returns.
    before : int
        How many of its options the help lists before the command's own; the others follow them.
    records : mapping, optional
        Field or parameter of `group` -> keys of a record (see `gridsched.model.records`), each of
        which is an option. The field receives those that are given, by key.
    """
    records = records or {}
    shared = [each for each in _options_of(group) if each.name not in records]
    of_records = [_key_option(key) for keys in records.values() for key in keys.values()]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        first, *others = signature.parameters.values()
        groups: dict[str, tuple[Callable[..., Any], list[inspect.Parameter]]] = {first.name: (group, shared)}
        own: list[inspect.Parameter] = []
        for each in others:
            if isinstance(each.annotation, type) and is_dataclass(each.annotation):
                groups[each.name] = each.annotation, _options_of(each.annotation)
                own += groups[each.name][1]
            else:
                own.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(command)
        def wrapped(**values: Any) -> None:
            told: dict[str, Any] = {}
            for name, keys in records.items():
                given = {key: values.pop(key) for key in keys}
                told[name] = {
                    key: _collected(value, keys[key]) for key, value in given.items() if value not in (None, [])
                }
            for name, (kind, options) in groups.items():
                told |= {each.name: values.pop(each.name) for each in options}
                values[name], told = kind(**told), {}
            command(**values)

        # panels are shown in the order of their first options: the command's own come first
        panels = {panel for each in shared if (panel := _panel(each)) is not None}
        own.sort(key=lambda each: _panel(each) in panels)
        parameters = [*shared[:before], *own, *shared[before:], *of_records]
        vars(wrapped).update(__signature__=signature.replace(parameters=parameters))
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapped

    return decorated


def _panel(parameter: inspect.Parameter) -> str | None:
    """Return the panel of the help that an option is in; None in the first one."""
    extras: tuple[Any, ...] = getattr(parameter.annotation, "__metadata__", ())
    return next((each.rich_help_panel for each in extras if getattr(each, "rich_help_panel", None)), None)


def _options_of(group: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the fields of a dataclass, or a function's parameters, as parameters of a command."""
    if not isinstance(group, type):
        given = inspect.signature(group, eval_str=True).parameters.values()
        return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in given]
    hints = get_type_hints(group, include_extras=True)
    return [
        _parameter(each.name, hints[each.name], inspect.Parameter.empty if each.default is MISSING else each.default)
        for each in fields(group)
    ]


def _collected(value: Any, key: Key) -> Any:
    """Return what the values of an option are together: a tuple, or one text for `_is_listed`."""
    if not isinstance(value, list):
        return value
    return ",".join(value) if _is_listed(key) else tuple(value)


def _is_listed(key: Key) -> bool:
    """Whether a key's text is a list of items, each of which may be an option of its own."""
    extra = key.info.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("repeatable"))


def option_name(key: str) -> str:
    """Return how a key is written on the command line."""
    return f"--{key.replace('_', '-')}"


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _key_option(key: Key) -> inspect.Parameter:
    """Return a key of a record as an option.

    Its default is None, which is: not given; the help shows a word as the default.
    """
    alternatives = [each for each in _alternatives(key.annotation) if each is not type(None)]
    names = [option_name(key.name)]
    if key.group == "SimGrid" and str in typing.get_args(key.annotation):
        names.append(f"--sg-{key.name}")  # as SimGrid's own programs call it
    is_flag = bool in alternatives
    option = typer.Option(
        *names,
        metavar="" if is_flag else _metavar(key, alternatives),
        help=key.info.description,
        rich_help_panel=key.group,
    )
    default = key.info.default if isinstance(key.info.default, str) else None
    has_unit = any(isinstance(each, PerEnergy) for each in key.info.metadata)
    kind = list[str] if _is_listed(key) else str if has_unit else _option_type(alternatives)
    return _parameter(key.name, Annotated[kind | None, option], default)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(annotation) not in (tuple, typing.Literal, None)
    return typing.get_args(annotation) if is_union else (annotation,)


def _option_type(alternatives: list[Any]) -> Any:
    """Return the type that the command line reads; a record checks the values itself."""
    if Path in alternatives:
        return Path
    origin = typing.get_origin(alternatives[0])
    return list[str] if origin is tuple else str if origin is typing.Literal else alternatives[0]


def _metavar(key: Key, alternatives: list[Any]) -> str:
    if key.info.examples:
        return str(key.info.examples[0])
    by_unit = (metavar for end, metavar in _METAVARS.items() if key.name.endswith(end))
    by_type = "N" if int in alternatives else "X" if float in alternatives else "NAME"
    return next(by_unit, by_type)
