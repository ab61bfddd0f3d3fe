"""Options that belong together, and those that every command which runs something shares.

They are declared as the fields of a dataclass or the keys of a record.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gridsched.errors import InputError, did_you_mean
from gridsched.model.records import Key, checked, keys_of, with_keys
from gridsched.policy.policy_files import named_file, resolve_scheduler
from gridsched.policy.registry import scheduler_class
from gridsched.sim.client import check_policies
from gridsched.spec.run_spec import RunSpec, Settings
from gridsched.spec.scenario import LoadedScenario
from gridsched.spec.scenario_maker import ScenarioMaker
from gridsched.spec.settings import RunSettings
from gridsched.workloads.traces.options import TraceOptions

#: The six schedulers of paper 004.
PAPER_004 = "wq,wqr,sufferage,xsufferage,dynamic_fpltf,lecsa"
#: What stands for a value in the help, by the end of a key's name.
_METAVARS = {"_per_s": "X", "_s": "S", "_j": "X"}


def command_group(epilog: str | None = None) -> typer.Typer:
    """Return a group of commands; the list of all commands has its help."""
    return typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", epilog=epilog)


def with_options(
    group: type, *, before: int = 0, records: dict[str, type] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of dataclasses as options.

    A further parameter of the command whose type is a dataclass stands for that one's fields.

    Parameters
    ----------
    group : type
        The command's first parameter receives an instance.
    before : int
        So many of its options stand in the help before the command's own; the rest after them.
    records : dict of str to type, optional
        Field of `group` -> record (see `gridsched.model.records`) each key of which is an option.
        The field receives those that are given, by key.
    """
    records = records or {}
    shared = [each for each in _options_of(group) if each.name not in records]
    of_records = {
        name: [_key_option(key) for key in keys_of(record).values()]
        for name, record in records.items()
    }

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        first, *others = signature.parameters.values()
        groups = {first.name: (group, shared)}
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
            for name, options in of_records.items():
                given = {each.name: values.pop(each.name) for each in options}
                told[name] = {
                    key: _collected(value, keys_of(records[name])[key])
                    for key, value in given.items()
                    if value not in (None, [])
                }
            for name, (kind, options) in groups.items():
                told |= {each.name: values.pop(each.name) for each in options}
                values[name], told = kind(**told), {}
            command(**values)

        parameters = [
            *shared[:before],
            *own,
            *shared[before:],
            *itertools.chain(*of_records.values()),
        ]
        vars(wrapped).update(__signature__=signature.replace(parameters=parameters))
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapped

    return decorated


def _options_of(group: type) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    return [
        _parameter(
            each.name, hints[each.name],
            inspect.Parameter.empty if each.default is MISSING else each.default,
        )
        for each in fields(group)
    ]  # fmt: skip


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
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _key_option(key: Key) -> inspect.Parameter:
    """Return a key of a record as an option.

    Its default is None, which is: not given; a word stands in the help as the default.
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
    kind = list[str] if _is_listed(key) else _option_type(alternatives)
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


# ---------------------------------------------------------------------- what is run


@dataclass
class ScenarioOptions:
    """What `Scenario` needs beside the scheduler, as options of the command line.

    The options of `settings` are the keys of `RunSettings`, those of `trace` the keys of
    `TraceOptions`; they hold those that were given.
    """

    platform: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SimGrid platform (.xml)."),
    ] = None
    workload: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Bag of tasks (.csv), generator (.toml) or trace (.swf).",
        ),
    ] = None  # fmt: skip
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Input files of tasks (.csv: file,size_bytes,location).",
        ),
    ] = None  # fmt: skip
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="[ID.]KEY=VALUE", help="Scheduler parameter; repeatable."),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random schedulers.")] = 0
    settings: dict[str, Any] = field(default_factory=dict)
    trace: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """The files that are read."""
        files = (self.settings.get(key) for key in ("deployment", "prices", "budget_prices"))
        return self.platform, self.workload, self.files, *files

    def base_scenario(self) -> LoadedScenario:
        """Return the scenario without its scheduler, with its files read.

        Raises
        ------
        InputError
            If an option is missing or illegal, or a file cannot be read.
        """
        if self.workload is None:
            missing = "options '--platform FILE' and" if self.platform is None else "option"
            raise InputError(f"Missing {missing} '--workload FILE'.")
        TraceOptions(**self.trace)  # whose messages name the option
        in_spec = {
            key: str(each) if isinstance(each, Path) else each
            for key, each in self.settings.items()
            if key in Settings.model_fields
        }
        spec = checked(RunSpec, {
            "platform": _file_section(self.platform),
            "workload": _file_section(self.workload, self.files) | self.trace,
            "scheduler": {"id": "wq"},
            "seed": self.seed,
            # the scenario checks them, beside what a generator's file says
            "settings": Settings.model_construct(**in_spec),
        })  # fmt: skip
        others = {key: each for key, each in self.settings.items() if key not in in_spec}
        return with_keys(ScenarioMaker({}, Path()).make(spec, spelled=option_name), others)

    def parameters(self, schedulers: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the parameters of each scheduler from ``--set``.

        Raises
        ------
        InputError
            If an item is malformed or fits none of the schedulers.
        """
        chosen: dict[str, dict[str, Any]] = {id: {} for id in schedulers}
        for item in self.set or ():
            name, equals, text = item.partition("=")
            owner, dot, key = name.strip().rpartition(".")
            if not equals or not key:
                raise InputError(f"--set {item!r}: it must read KEY=VALUE or ID.KEY=VALUE.")
            if dot and owner not in chosen:
                hint = did_you_mean(owner, chosen)
                raise InputError(
                    f"--set {item!r}: {owner!r} is not among the schedulers {', '.join(chosen)}. "
                    f"{hint}"
                )
            for id in _takers(item, key, [owner] if dot else list(schedulers)):
                default = scheduler_class(id).parameter_defaults()[key]
                chosen[id][key] = _value(text.strip(), default)
        return chosen


def _file_section(file: Path | None, files: Path | None = None) -> dict[str, str]:
    named = {"file": file, "files": files}
    return {key: str(path) for key, path in named.items() if path is not None}


def _takers(item: str, key: str, schedulers: Sequence[str]) -> list[str]:
    """Return those of the schedulers that have the parameter `key`."""
    legal = {id: list(scheduler_class(id).parameter_defaults()) for id in schedulers}
    takers = [id for id, names in legal.items() if key in names]
    if not takers:
        hint = did_you_mean(key, {name for names in legal.values() for name in names})
        shown = "; ".join(f"{id}: {', '.join(names)}" for id, names in legal.items() if names)
        raise InputError(
            f"--set {item!r}: no parameter {key!r}. {hint}Parameters: {shown or 'none'}."
        )
    return takers


def _value(text: str, default: Any) -> Any:
    """Read a parameter's value: a number, true, false, none, or the text itself.

    Where the default is a text, so are these three words (``lecsa.switch_off=none``).
    """
    words: Mapping[str, Any] = {"true": True, "false": False, "none": None}
    if text.lower() in words and not isinstance(default, str):
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def resolve_apart(text: str, options: ScenarioOptions) -> str:
    """Return the id of a scheduler; its file is imported in a process of its own before.

    Raises
    ------
    InputError
        If the file cannot be imported, within the time-out, or has no such scheduler.
    """
    if (named := named_file(text)) is not None:
        check_policies([Path(named[0])], options.settings.get("timeout_s"))
    return resolve_scheduler(text)


def split_ids(text: str, options: ScenarioOptions) -> list[str]:
    """Return the scheduler ids of a comma-separated list; files are named as ``path.py[:Class]``.

    Raises
    ------
    InputError
        If the list is empty, repeats an id or holds an unknown one.
    """
    ids = [resolve_apart(id.strip(), options) for id in text.split(",") if id.strip()]
    if not ids:
        raise InputError("--schedulers is empty; see 'gridsched schedulers'.")
    for k, id in enumerate(ids):
        scheduler_class(id)
        if id in ids[:k]:
            raise InputError(f"--schedulers names {id!r} twice.")
    return ids


#: Gives a command the fields of `ScenarioOptions` as options; its own stand after the files.
with_scenario_options = with_options(
    ScenarioOptions, before=2, records={"trace": TraceOptions, "settings": RunSettings}
)
