"""Options that every command which runs something shares."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import current_thread, main_thread
from typing import Annotated, Any

import typer

from gridsched.cli.options import option_name, with_options
from gridsched.errors import InputError, SimulationError, did_you_mean
from gridsched.model.records import keys_of
from gridsched.model.rules import SCHEDULING
from gridsched.policy.policy_files import named_file, resolve_scheduler
from gridsched.policy.registry import BATSIM, find, scheduler_class
from gridsched.runs.run_spec import RunSpec
from gridsched.runs.scenario import LoadedScenario
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.settings import MAX_TIMEOUT_S, RunSettings
from gridsched.sim.client import check_policies
from gridsched.workloads.traces.formats import LEGAL
from gridsched.workloads.traces.trace_options import TraceOptions


@dataclass
class ScenarioOptions:
    """What `RunSpec.asked` takes beside the scheduler, as options of the command line.

    The options of `settings` are the keys of `RunSettings`, those of `trace` the keys of
    `TraceOptions`; they hold those that were given.
    """

    platform: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SimGrid platform (.xml). [required, unless the workload brings machines]"),
    ] = None
    workload: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Bag of tasks (.csv), generator (.toml) or trace of jobs ({LEGAL}; also .gz). [required]",
        ),
    ] = None
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", rich_help_panel=SCHEDULING, help="Input files of tasks (.csv: file,size_bytes,location)."
        ),
    ] = None
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="[ID.]KEY=VALUE", help="Scheduler parameter; repeatable.")
    ] = None
    batsim_start: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            rich_help_panel=SCHEDULING,
            help="Start this as scheduler batsim, with {address} in it; end it after the run.",
        ),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random schedulers.")] = 0
    settings: dict[str, Any] = field(default_factory=dict)
    trace: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """The files that are read."""
        files = (
            self.settings.get(key) for key in ("deployment", "prices", "budget_prices", "carbon", "carbon_forecast")
        )
        return (
            self.platform,
            self.workload,
            self.files,
            self.trace.get("partitions"),
            self.trace.get("slurm_conf"),
            *files,
        )

    @cached_property
    def base_scenario(self) -> LoadedScenario:
        """The scenario without its scheduler, with its files read.

        Raises
        ------
        InputError
            If an option is missing or illegal, or a file cannot be read.
        """
        if self.workload is None:
            missing = "options '--platform FILE' and" if self.platform is None else "option"
            raise InputError(f"Missing {missing} '--workload FILE'.")
        spec = RunSpec.asked(
            self.platform, self.workload, files=self.files, trace=self.trace, settings=self.settings, seed=self.seed
        )
        timeout_s = self.settings.get("timeout_s")
        with _time_limit(timeout_s):
            made = ScenarioMaker({}, Path()).make(spec, timeout_s, spelled=option_name)
        return replace(made, log=self.settings.get("log", ()))

    def parameters(self, schedulers: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the parameters of each scheduler from ``--set``.

        Raises
        ------
        InputError
            If an item is malformed or fits none of the schedulers.
        """
        chosen: dict[str, dict[str, Any]] = {id: {} for id in schedulers}
        if self.batsim_start is not None:
            programs = [id for id in schedulers if find(id).id == BATSIM]
            if not programs:
                raise InputError("--batsim-start needs a scheduler batsim:ADDRESS, as batsim:tcp://127.0.0.1:0.")
            chosen |= {id: {"start": self.batsim_start} for id in programs}
        for item in self.set or ():
            name, equals, text = item.partition("=")
            owner, dot, key = name.strip().rpartition(".")
            if not equals or not key:
                raise InputError(f"--set {item!r}: it must read KEY=VALUE or ID.KEY=VALUE.")
            if dot and owner not in chosen:
                hint = did_you_mean(owner, chosen)
                raise InputError(f"--set {item!r}: {owner!r} is not among the schedulers {', '.join(chosen)}. {hint}")
            for id in _takers(item, key, [owner] if dot else list(schedulers)):
                default = scheduler_class(id).parameter_defaults()[key]
                chosen[id][key] = _value(text.strip(), default)
        return chosen


@contextmanager
def _time_limit(timeout_s: float | None) -> Iterator[None]:
    """End what reads platform and workload after a wall time [s]; an illegal one is refused later."""

    def end(*_: object) -> None:
        raise SimulationError(f"Reading platform and workload: ended after the time-out of {timeout_s:g} s.")

    if timeout_s is None or not 0 < timeout_s <= MAX_TIMEOUT_S or current_thread() is not main_thread():
        yield  # only there signals are heard
        return
    before = signal.signal(signal.SIGALRM, end)
    rest = signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *rest)
        signal.signal(signal.SIGALRM, before)


def _takers(item: str, key: str, schedulers: Sequence[str]) -> list[str]:
    """Return those of the schedulers that have the parameter `key`."""
    legal = {id: list(scheduler_class(id).parameter_defaults()) for id in schedulers}
    takers = [id for id, names in legal.items() if key in names]
    if not takers:
        hint = did_you_mean(key, {name for names in legal.values() for name in names})
        parameters = "; ".join(f"{id}: {', '.join(names)}" for id, names in legal.items() if names)
        raise InputError(f"--set {item!r}: no parameter {key!r}. {hint}Parameters: {parameters or 'none'}.")
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
    ScenarioOptions, before=2, records={"trace": keys_of(TraceOptions), "settings": keys_of(RunSettings)}
)
