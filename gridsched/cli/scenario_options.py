"""The options that every command which runs something shares, declared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gridsched.cli.option_groups import with_options
from gridsched.errors import InputError, did_you_mean
from gridsched.model.budget import EnergyBudget
from gridsched.policy.registry import scheduler_class
from gridsched.spec.scenario import Scenario
from gridsched.workloads.load import read_system_workload

#: The six schedulers of paper 004.
PAPER_004 = "wq,wqr,sufferage,xsufferage,dynamic_fpltf,lecsa"
_SIMGRID = "SimGrid"
_BUDGET = "Energy budget (each option goes before what a generator's file says)"


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
    energy_budget_j: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            rich_help_panel=_BUDGET,
            help="Joules each period may draw; inf: any.",
        ),
    ] = None
    budget_period_s: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            rich_help_panel=_BUDGET,
            help="Length of a period; default a day.",
        ),
    ] = None
    on_exhaustion: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_BUDGET,
            help="refuse: nothing may exceed the budget (default); stop: the run ends with it.",
        ),
    ] = None
    horizon_s: Annotated[
        float | None, typer.Option(metavar="S", help="No task starts at or after this time.")
    ] = None
    charge_mapping_time: Annotated[
        bool,
        typer.Option(
            "--charge-mapping-time", metavar="",
            help="Mapping events wait for the computation of the last one, by the wall clock.",
        ),
    ] = False  # fmt: skip

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
        if self.workload is None:
            missing = "options '--platform FILE' and" if self.platform is None else "option"
            raise InputError(f"Missing {missing} '--workload FILE'.")
        scenario = Scenario(
            platform=self.platform, tasks=self.workload, seed=self.seed, driver=self.driver,
            network=self.network, deployment=self.deployment, files=self.files,
            pstate=self.pstate, mapping_interval_s=self.mapping_interval_s, way=self.way,
            horizon_s=self.horizon_s, charge_mapping_time=self.charge_mapping_time,
            cfg=tuple(self.cfg or ()), log=tuple(self.log or ()), timeout_s=self.timeout_s,
        )  # fmt: skip
        if self.platform is not None:
            loaded = scenario.loaded()
        else:
            whole = read_system_workload(self.workload)
            if whole is None:
                raise InputError("Missing option '--platform FILE'.")
            loaded = scenario.with_system(whole)
        return replace(loaded, budget=self._budget(loaded.budget))

    def _budget(self, told: EnergyBudget | None) -> EnergyBudget | None:
        """Return the budget that a workload tells with what the options change of it."""
        options = {"energy_j": self.energy_budget_j, "period_s": self.budget_period_s,
                   "on_exhaustion": self.on_exhaustion}  # fmt: skip
        given = {name: value for name, value in options.items() if value is not None}
        if not given or told is not None:
            return told and replace(told, **given)
        if self.energy_budget_j is None:
            name = "--on-exhaustion" if "on_exhaustion" in given else "--budget-period-s"
            raise InputError(f"{name}: there is no energy budget; give --energy-budget-j too.")
        return EnergyBudget(**given)

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


#: Gives a command the fields of `ScenarioOptions` as options; its own stand after the files.
with_scenario_options = with_options(ScenarioOptions, before=2)
