"""Options that every command which runs something shares."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from types import MappingProxyType
from typing import Annotated, Any

import typer

from gridsched.cli.options import option_name, with_options
from gridsched.errors import InputError, SimulationError, did_you_mean
from gridsched.model.records import keys_of
from gridsched.model.rules import SCHEDULING
from gridsched.policy.policy_files import named_file, resolve_scheduler
from gridsched.policy.registry import scheduler_class
from gridsched.runs.run_spec import NoPlatform, RunSpec, Settings
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.scenario import MAX_TIMEOUT_S, LoadedScenario, Scenario
from gridsched.sim.client import check_policies
from gridsched.workloads.traces.formats import endings
from gridsched.workloads.traces.trace_options import TraceOptions


def _asked(
    platform: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SimGrid platform (.xml). [required, unless the workload brings machines]"),
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Bag of tasks (.csv), generator (.toml) or trace of jobs ({endings()}; also .gz). [required]",
        ),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", rich_help_panel=SCHEDULING, help="Input files of tasks (.csv: file,size_bytes,location)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random schedulers.")] = 0,
    settings: Mapping[str, Any] = MappingProxyType({}),
    trace: Mapping[str, Any] = MappingProxyType({}),
) -> RunSpec:
    """Return what options of the command line ask for, as yet without a scheduler."""
    return RunSpec.asked(platform, workload, files=files, trace=trace, settings=settings, seed=seed)


#: Gives a command what `RunSpec.asked` takes as options; its own follow the files.
with_scenario_options = with_options(
    _asked, before=2, records={"trace": keys_of(TraceOptions), "settings": keys_of(Scenario)}
)


def paths_read(asked: RunSpec) -> list[Path]:
    """Return the files that are asked for, which no output may replace."""
    return [Path(file) for _, file in asked.files() if isinstance(file, str)]


def refuse_without_effect(asked: RunSpec, command: str, why: Mapping[str, str]) -> None:
    """Raise `InputError` if a setting has another value than by default, and that changes nothing of what is shown.

    Parameters
    ----------
    asked : RunSpec
    command : str
    why : mapping of str to str
        Setting -> why it has no effect there.
    """
    for name, reason in why.items():
        if getattr(asked.settings, name) != Settings.model_fields[name].default:
            raise InputError(f"{option_name(name)} has no effect on 'gridsched {command}': {reason}. Leave it out.")


def loaded(asked: RunSpec) -> LoadedScenario:
    """Return the scenario that is asked for, with its files read.

    Raises
    ------
    InputError
        If an option is missing or not allowed, or a file cannot be read.
    """
    if asked.workload is None:
        missing = "options '--platform FILE' and" if isinstance(asked.platform, NoPlatform) else "option"
        raise InputError(f"Missing {missing} '--workload FILE'.")
    with _time_limit(asked.timeout_s):
        return ScenarioMaker({}, Path()).make(asked, format_key=option_name)


@dataclass
class SchedulerParameters:
    """Parameters of schedulers, as options of the command line."""

    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="[ID.]KEY=VALUE", help="Scheduler parameter; repeatable.")
    ] = None
    batsim_start: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            rich_help_panel=SCHEDULING,
            help="Start this program as scheduler batsim, with {address} in it; end it after the run.",
        ),
    ] = None

    def of(self, schedulers: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the parameters of each scheduler.

        Raises
        ------
        InputError
            If an item is malformed or fits none of the schedulers.
        """
        chosen: dict[str, dict[str, Any]] = {id: {} for id in schedulers}
        if self.batsim_start is not None:
            programs = [id for id in schedulers if scheduler_class(id).traits.external]
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
    """End the reading of platform and workload after a wall time [s]; a wrong limit is refused later."""

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


def resolve_apart(text: str, timeout_s: float | None) -> str:
    """Return the id of a scheduler; its file is imported in a process of its own before.

    Raises
    ------
    InputError
        If the file cannot be imported, within the time-out, or has no such scheduler.
    """
    if (named := named_file(text)) is not None:
        check_policies([Path(named[0])], timeout_s)
    return resolve_scheduler(text)


def split_ids(text: str, timeout_s: float | None) -> list[str]:
    """Return the scheduler ids of a comma-separated list; files are named as ``path.py[:Class]``.

    Raises
    ------
    InputError
        If the list is empty, repeats an id or holds an unknown one.
    """
    ids = [resolve_apart(id.strip(), timeout_s) for id in text.split(",") if id.strip()]
    if not ids:
        raise InputError("--schedulers is empty; see 'gridsched schedulers'.")
    for k, id in enumerate(ids):
        scheduler_class(id)
        if id in ids[:k]:
            raise InputError(f"--schedulers names {id!r} twice.")
    return ids
