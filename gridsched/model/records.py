"""Records of keys: their names, how they are checked, and messages about wrong ones.

A record is a frozen dataclass whose fields carry pydantic's ``Field`` (limits, description). Its
keys are its fields, and where a field is a record itself (an energy budget), the fields of that
one: flat names that a command line or a TOML file can use.
"""

from __future__ import annotations

import ast
import typing
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from dataclasses import Field as DataclassField
from datetime import date, time
from functools import cache
from math import inf
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from gridsched.errors import InputError, did_you_mean, which_instead
from gridsched.model.limits import SMALLEST

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


Record = TypeVar("Record")
Model = TypeVar("Model", bound=BaseModel)
#: Units by the end of a name.
_UNITS = {"_s": " s", "_j": " J", "_w": " W"}
#: Longer values are cut in messages.
_MAX_SHOWN = 80


@dataclass(frozen=True)
class KeyName:
    """The name of a field of an inner record outside that record (``energy_budget_j``)."""

    name: str


def number_or_text(value: object) -> object:
    """Return the number that a text or an integer is, infinite where it is too large; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    try:
        return float(value)
    except ValueError:
        return value
    except OverflowError:
        return inf


@dataclass(frozen=True)
class Key:
    """One key of a record.

    Attributes
    ----------
    name : str
    path : tuple of str
        The field of the record, and for an inner record the field of that.
    annotation : object
        Its type.
    info : FieldInfo
        Default, limits, description. A key of an inner record has the default None: not given.
    group : str or None
        Heading under which it is listed with others.
    """

    name: str
    path: tuple[str, ...]
    annotation: Any
    info: FieldInfo
    group: str | None


@cache
def keys_of(record: type) -> dict[str, Key]:
    """Return the keys of a record by name.

    Parameters
    ----------
    record : type
        A dataclass; of its fields those with a pydantic ``Field`` count.
    """
    keys: dict[str, Key] = {}
    for field, info in _described(record):
        inner = _inner_record(info.annotation)
        if inner is None:
            keys[field.name] = Key(field.name, (field.name,), info.annotation, info, _group(info))
            continue
        for part, part_info in _described(inner):
            name = next(each.name for each in part_info.metadata if isinstance(each, KeyName))
            given = FieldInfo.merge_field_infos(part_info, default=None)
            given.annotation = typing.cast(Any, typing.Optional[part_info.annotation])  # noqa: UP045
            keys[name] = Key(name, (field.name, part.name), given.annotation, given, _group(info))
    return keys


def _group(info: FieldInfo) -> str | None:
    extra = info.json_schema_extra
    return str(extra["group"]) if isinstance(extra, dict) and "group" in extra else None


def key_info(description: str, example: str | None = None, *, of: dict[str, Any] | None = None, **limits: float) -> Any:
    """Return the description of a key of a record.

    Parameters
    ----------
    description : str
        Its meaning.
    example : str, optional
        How a value is written.
    of : dict, optional
        The heading under which it is listed with others, as ``{"group": "Hosts"}``.
    **limits
        Those of pydantic's ``Field``.
    """
    return Field(description=description, examples=example and [example], json_schema_extra=of, **limits)  # type: ignore[call-overload]


def given_keys(record: object) -> dict[str, Any]:
    """Return the keys that are set in a record; with them `with_keys` makes it of one with defaults."""
    given = {}
    for name, key in keys_of(typing.cast(Any, type(record))).items():
        value = getattr(record, key.path[0])
        if len(key.path) > 1:
            value = None if value is None else getattr(value, key.path[1])
        if value != key.info.default:
            given[name] = value
    return given


def with_keys(record: Record, values: Mapping[str, Any], format_key: Callable[[str], str] = str) -> Record:
    """Return a record with other values of some keys; see `changed_fields`."""
    return replace(record, **changed_fields(type(record), values, vars(record), format_key))  # type: ignore[type-var]


def changed_fields(
    record: type, values: Mapping[str, Any], current: Mapping[str, Any], format_key: Callable[[str], str] = str
) -> dict[str, Any]:
    """Return the fields of a record that other values of some keys change.

    Parameters
    ----------
    record : type
        The dataclass.
    values : mapping
        Key -> value. A key of an inner record that is None changes nothing.
    current : mapping
        Field -> what it is now, where that is not None.
    format_key : callable
        Returns how a key is written where the values come from, for messages.

    Raises
    ------
    InputError
        If a value of an inner record is out of range, or a key needs another one.
    """
    keys = keys_of(record)
    changes: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        outer, *rest = keys[name].path
        if not rest:
            changes[outer] = value
        elif value is not None:
            inner.setdefault(outer, {})[rest[0]] = value
    for outer, parts in inner.items():
        before = current.get(outer)
        if before is None:
            hint = next(info.annotation for field, info in _described(record) if field.name == outer)
            made = typing.cast(type, _inner_record(hint))
            names = {key.path[1]: key.name for key in keys.values() if key.path[0] == outer}
            _check_needed(made, names, parts, format_key)
            changes[outer] = made(**parts)
        else:
            one_of = getattr(before, "ONE_OF", ())
            if any(name in parts for name in one_of):
                parts = {**dict.fromkeys(one_of), **parts}
            changes[outer] = replace(before, **parts)
    return changes


def check_record(record: Any, of: type, owner: str = "") -> None:
    """Raise `InputError` where a field of a record has no allowed value; a dictionary becomes the record it is for.

    Parameters
    ----------
    record : object
    of : type
        The dataclass whose fields are checked.
    owner : str
        What the message begins with.
    """
    for field, info in _described(typing.cast(Any, of)):
        value = getattr(record, field.name)
        if isinstance(value, Mapping) and (inner := _inner_record(info.annotation)) is not None:
            object.__setattr__(record, field.name, as_record(inner, value, f"{owner}{field.name}"))
        elif value is not info.default and not _is_one_of(info.annotation, value):
            read = getattr(checked(_model(of, field.name), {field.name: value}, owner), field.name)
            if isinstance(value, str) and not isinstance(read, str):
                raise InputError(f"{owner}{field.name} is {value!r}; it must be a number, not a text.")


def as_record(kind: type[Record], value: Record | Mapping[str, Any], owner: str) -> Record:
    """Return a record, which may be given as a dictionary of its fields.

    Parameters
    ----------
    kind : type
        The dataclass.
    value : record or mapping
    owner : str
        What the message begins with.

    Raises
    ------
    InputError
        If it is neither, or a field is unknown, missing or out of range.
    """
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise InputError(f"{owner} is {value!r}; it must be a {kind.__name__}, or a dictionary of its fields.")
    known = {each.name: each for each in fields(typing.cast(Any, kind)) if each.init}
    for name in value:
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise InputError(f"{owner}: {kind.__name__} has no field {name!r}. {hint}Its fields: {', '.join(known)}.")
    needed = [name for name, each in known.items() if each.default is MISSING and each.default_factory is MISSING]
    if missing := [name for name in needed if name not in value]:
        raise InputError(f"{owner}: {', '.join(missing)} is missing.")
    return kind(**value)


def check_choices(record: Any) -> None:
    """Raise `InputError` where a field of a dataclass whose type is a `Literal` has none of its values.

    For ``__post_init__`` of dataclasses that are not records of keys, which `check_record` checks.
    """
    kind = typing.cast(Any, type(record))
    for name, hint in _choices(kind).items():
        value = getattr(record, name)
        if not _is_one_of(hint, value):
            checked(_model_of_choice(kind, name), {name: value}, f"{kind.__name__}.")


@cache
def _choices(record: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields that take one of some values."""
    return {name: hint for name, hint in typing.get_type_hints(record).items() if _is_choice(hint)}


@cache
def _model_of_choice(record: type, name: str) -> type[BaseModel]:
    """Return the pydantic model of such a field."""
    choice: dict[str, Any] = {name: (_choices(record)[name], ...)}
    model: type[BaseModel] = create_model(record.__name__, **choice)
    return model


def _is_choice(hint: Any) -> bool:
    return typing.get_origin(hint) is Literal or any(map(_is_choice, typing.get_args(hint)))


def _is_one_of(hint: Any, value: Any) -> bool:
    """Whether a value is plainly among those that a type lists; a model, which is slow to make, decides the others."""
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return any(_is_one_of(each, value) for each in typing.get_args(hint))
    if typing.get_origin(hint) is not Literal:
        return hint is NoneType and value is None
    return any(type(value) is type(each) and value == each for each in typing.get_args(hint))


def checked(model: type[Model], values: Mapping[str, Any], owner: str = "") -> Model:
    """Return values as a pydantic model.

    Parameters
    ----------
    model : type
    values : mapping
    owner : str
        What the message begins with.

    Raises
    ------
    InputError
        Naming the key that is wrong, all its limits and what was found.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name, value = str(first["loc"][0]), first["input"]
        value_text = f"{value:g}" if isinstance(value, float) else repr(value)
        legal = _legal(model.model_fields[name], _UNITS.get(name[-2:], ""), first["msg"])
        raise InputError(f"{owner}{name} is {value_text}; {legal}.") from None


def _legal(info: FieldInfo, unit: str, problem: str) -> str:
    """Return what is allowed, all limits at once, as the end of a sentence."""
    limits = []
    for each in info.metadata:
        if isinstance(each, Gt) or each == Ge(SMALLEST):
            limits.append(f"greater than {getattr(each, 'gt', 0)}{unit}")
        elif isinstance(each, Ge):
            limits.append(f"at least {each.ge}{unit}")
        elif isinstance(each, Le):
            limits.append(f"at most {each.le:g}{unit}")
        elif getattr(each, "allow_inf_nan", True) is False:
            limits.append("finite")
    if limits:
        return f"it must be {' and '.join(limits)}"
    return problem.replace("Input should", "it must")


def key_name(path: Sequence[str | int]) -> str:
    """Return the path to a value as ``claims[2].paper``."""
    text = ""
    for part in path:
        name = str(part) if part != "" and str(part).isprintable() else repr(part)
        text += f"[{name}]" if isinstance(part, int) else f".{name}" if text else name
    return text or "the file"


def expression_tree(text: str) -> ast.expr:
    """Return a Python expression that somebody wrote as a tree; what Python warns of in it is not shown.

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError
        If it is none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body


def shown_value(value: Any) -> str:
    """Return a value for a message, cut where it is long."""
    if isinstance(value, date | time):  # of TOML
        return str(value)
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def gravest(error: ValidationError) -> ErrorDetails:
    """Return the problem to show first: a mistyped key explains a missing one."""
    return by_gravity(error)[0]


def by_gravity(error: ValidationError) -> list[ErrorDetails]:
    """Return a problem for each key that has one, mistyped keys first."""
    of_key: dict[object, ErrorDetails] = {}
    for each in sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden"):
        of_key.setdefault(each["loc"][:1], each)
    return list(of_key.values())


def place_of(error: ErrorDetails, values: Any) -> tuple[str | int, ...]:
    """Return the keys and indices that lead to a problem in the values; pydantic also has names of alternatives there.

    Parameters
    ----------
    error : ErrorDetails
    values : object
        What was checked.
    """
    location, path = error["loc"], []
    for k, part in enumerate(location):
        is_there = (isinstance(values, Mapping) and part in values) or (
            isinstance(values, list | tuple) and isinstance(part, int) and part < len(values)
        )
        if is_there:
            values = values[part]
        if is_there or (error["type"] == "missing" and k == len(location) - 1):
            path.append(part)
    return tuple(path) or location


#: The form of names that are parts of files' names.
NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
#: What is allowed, by patterns of texts.
_FORMS = {
    NAME: "a letter, then letters, digits, - and _ are allowed",
    r"\S": "a text that is not blank is allowed",
    r"^\S+$": "a text without blanks is allowed",
}
_WHOLE, _NUMBER = "a whole number is allowed, without quotes", "a number is allowed, without quotes"
#: What is allowed, by pydantic's names of errors whose own sentences say it in other words.
_WANTED = {
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": "a whole number is allowed",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "bool_type": "true or false is allowed",
    "bool_parsing": "true or false is allowed",
    "string_type": "a text in quotes is allowed",
    "list_type": "a list in brackets is allowed",
    "tuple_type": "a list in brackets is allowed",
    "dict_type": "a table is allowed",
    "model_type": "a table is allowed",
    "dataclass_type": "a table is allowed",
}


def problem_of(error: ErrorDetails, legal: Collection[str] = (), document: str = "") -> str:
    """Return what is wrong with a key, as a sentence that follows the key's name.

    Parameters
    ----------
    error : ErrorDetails
        Pydantic's details of it.
    legal : collection of str
        The keys that there are, if they are known.
    document : str
        Where they are listed, if there may be too many for a message.
    """
    if error["type"] == "missing":
        return "is missing."
    if error["type"] == "extra_forbidden":
        return f"is not a known key. {which_instead(str(error['loc'][-1]), legal, document)}".rstrip()
    limits = error.get("ctx", {})
    form = _FORMS.get(limits.get("pattern", ""), "")
    if limits.get("ge") == SMALLEST:
        form = "it should be greater than 0"
    reason = (
        form
        or _WANTED.get(error["type"], "")
        or error["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    )
    return f"is {shown_value(error['input'])}; {reason}."


@cache
def _described(record: type) -> tuple[tuple[DataclassField[Any], FieldInfo], ...]:
    """Return the fields of a dataclass that carry a pydantic ``Field``, in order."""
    hints = typing.get_type_hints(record, include_extras=True)
    descriptions = []
    for field in fields(record):
        if any(isinstance(each, FieldInfo) for each in getattr(hints[field.name], "__metadata__", ())):
            default = ... if field.default is MISSING else field.default
            info = FieldInfo.from_annotated_attribute(hints[field.name], default)
            descriptions.append((field, info))
    return tuple(descriptions)


def _inner_record(annotation: Any) -> type | None:
    """Return the record type among the alternatives of a type."""
    alternatives = typing.get_args(annotation) or (annotation,)
    return next((each for each in alternatives if is_dataclass(each)), None)  # type: ignore[return-value]


def _check_needed(
    inner: type, keys: Mapping[str, str], parts: Mapping[str, Any], format_key: Callable[[str], str]
) -> None:
    """Refuse parts, by their fields, of which no inner record can be made; `keys` has the name of each field."""
    one_of, first = getattr(inner, "ONE_OF", ()), next(iter(parts))
    if one_of and not any(name in parts for name in one_of):
        needed = " or ".join(format_key(keys[name]) for name in one_of)
        raise InputError(f"{format_key(keys[first])} has no effect without {needed}; give one of them, too.")
    for field in fields(inner):
        if field.default is MISSING and field.name not in parts:
            raise InputError(
                f"{format_key(keys[first])} has no effect without {format_key(keys[field.name])}; give it, too."
            )


def with_fields(fields: Mapping[str, Any]) -> Callable[[type[Model]], type[Model]]:
    """Return a class decorator that gives a pydantic model further fields, after its own.

    Parameters
    ----------
    fields : mapping
        Name -> type and default (or ``Field``); a field that the model has itself stays.
    """

    def made(model: type[Model]) -> type[Model]:
        added = {name: each for name, each in fields.items() if name not in model.model_fields}
        whole: type[Model] = create_model(
            model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **added
        )
        return whole

    return made


@cache
def _model(record: type, name: str) -> type[BaseModel]:
    """Return the pydantic model of one of a record's own fields."""
    info = next(info for field, info in _described(record) if field.name == name)
    described: dict[str, Any] = {name: (info.annotation, info)}
    config = ConfigDict(arbitrary_types_allowed=True)
    model: type[BaseModel] = create_model(record.__name__, __config__=config, **described)
    return model
