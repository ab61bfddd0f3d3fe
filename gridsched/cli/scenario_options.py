"""The options that every command which runs something shares, declared once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gridsched.errors import InputError, did_you_mean
from gridsched.experiment.scenario import Scenario
from gridsched.schedulers.registry import scheduler_class

#: The six schedulers of paper 004.
PAPER_004 = "wq,wqr,sufferage,xsufferage,dynamic_fpltf,lecsa"
_SIMGRID = "SimGrid"


@dataclass
class ScenarioOptions:
    """What `Scenario` needs beside the scheduler, as options of the command line."""

    platform: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SimGrid platform (.xml)."),
    ] = None
    workload: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Bag of tasks (.csv) or generator (.toml)."),
    ] = None
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Input files of tasks (.csv: file,size_bytes,location).",
        ),
    ] = None  # fmt: skip
    deployment: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="SimGrid deployment (.xml): which actor runs where.",
        ),
    ] = None  # fmt: skip
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="[ID.]KEY=VALUE", help="Scheduler parameter; repeatable."),
    ] = None
    pstate: Annotated[int, typer.Option(metavar="K", help="P-state of all hosts.")] = 0
    mapping_interval_s: Annotated[
        float | None,
        typer.Option(metavar="S", help="Ask schedulers every S seconds only, not at each event."),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random schedulers.")] = 0
    driver: Annotated[
        str, typer.Option(metavar="NAME", help="simgrid, or reference: no SimGrid, no network.")
    ] = "simgrid"
    network: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=_SIMGRID,
            help="platform: bytes cross its links; or none. Default: platform if a task has bytes.",
        ),
    ] = None  # fmt: skip
    way: Annotated[
        str,
        typer.Option(
            metavar="NAME", rich_help_panel=_SIMGRID,
            help="maestro (fast, no messages), actors, or auto.",
        ),
    ] = "auto"  # fmt: skip
    cfg: Annotated[
        list[str] | None,
        typer.Option(
            "--cfg", "--sg-cfg", metavar="KEY:VALUE", rich_help_panel=_SIMGRID,
            help="SimGrid's --cfg; repeatable.",
        ),
    ] = None  # fmt: skip
    log: Annotated[
        list[str] | None,
        typer.Option(
            "--log", "--sg-log", metavar="CATEGORY.KEY:VALUE", rich_help_panel=_SIMGRID,
            help="SimGrid's --log; repeatable. What it says goes to stderr.",
        ),
    ] = None  # fmt: skip
    timeout_s: Annotated[
        float | None,
        typer.Option(metavar="S", help="End a run after this wall time.", rich_help_panel=_SIMGRID),
    ] = None
    energy_budget_j: Annotated[float | None, typer.Option(hidden=True)] = None

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """The files that are read."""
        return self.platform, self.workload, self.files, self.deployment

    def base_scenario(self) -> Scenario:
        """Return the scenario without its scheduler, with its files read.

        Raises
        ------
        InputError
            If an option is missing or illegal, or a file cannot be read.
        """
        if self.energy_budget_j is not None:
            raise InputError("--energy-budget-j: this version has no energy budgets yet; omit it.")
        for name in ("platform", "workload"):
            if getattr(self, name) is None:
                raise InputError(f"Missing option '--{name} FILE'.")
        return Scenario(
            platform=self.platform, tasks=self.workload, seed=self.seed, driver=self.driver,
            network=self.network, deployment=self.deployment, files=self.files,
            pstate=self.pstate, mapping_interval_s=self.mapping_interval_s, way=self.way,
            cfg=tuple(self.cfg or ()), log=tuple(self.log or ()), timeout_s=self.timeout_s,
        ).loaded()  # fmt: skip

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


def split_ids(text: str) -> list[str]:
    """Return the scheduler ids of a comma-separated list.

    Raises
    ------
    InputError
        If the list is empty, repeats an id or holds an unknown one.
    """
    ids = [id.strip() for id in text.split(",") if id.strip()]
    if not ids:
        raise InputError("--schedulers is empty; see 'gridsched schedulers'.")
    for k, id in enumerate(ids):
        scheduler_class(id)
        if id in ids[:k]:
            raise InputError(f"--schedulers names {id!r} twice.")
    return ids


def with_scenario_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of `ScenarioOptions` as options.

    The command's first parameter receives the `ScenarioOptions`. Its own parameters stand after
    platform and workload in the help, before the rest.
    """
    hints = get_type_hints(ScenarioOptions, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(ScenarioOptions)
    ]  # fmt: skip
    signature = inspect.signature(command, eval_str=True)
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in list(signature.parameters.values())[1:]
    ]

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        options = ScenarioOptions(**{parameter.name: values.pop(parameter.name)
                                     for parameter in shared})  # fmt: skip
        command(options, **values)

    parameters = [*shared[:2], *own, *shared[2:]]
    wrapped.__signature__ = signature.replace(parameters=parameters)
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped
