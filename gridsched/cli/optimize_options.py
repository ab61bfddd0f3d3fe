"""The options of ``gridsched optimize``: which bag on which machines, and what it pays."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from gridsched.cli.option_groups import option_name, with_options
from gridsched.errors import InputError
from gridsched.model.records import with_keys
from gridsched.model.tariff import Tariff

if TYPE_CHECKING:  # scipy's solver is slow to load
    from gridsched.optimize.named_bag import NamedBag

_SYSTEM = "Bag and machines (one of three ways)"
_CSV = ("etc", "apc", "counts")


@dataclass(frozen=True)
class _Money:
    """The keys of a tariff, as a record whose keys are options."""

    tariff: Annotated[
        Tariff | None,
        Field(description="What the bag pays.", json_schema_extra={"group": "Money"}),
    ] = None


@dataclass
class OptimizeOptions:
    """What both commands need, as options of the command line."""

    workload: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_SYSTEM,
            help="Generator with machines (.toml of kind profit or utility), or with --platform a "
            "bag of tasks (.csv or .toml).",
        ),
    ] = None
    platform: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_SYSTEM,
            help="SimGrid platform (.xml); its hosts go by type, the tasks by size.",
        ),
    ] = None
    etc: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_SYSTEM,
            help="Times (.csv: task_type,machine_type,pstate,etc_s).",
        ),
    ] = None
    apc: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_SYSTEM,
            help="Powers (.csv: task_type,machine_type,pstate,apc_w).",
        ),
    ] = None
    counts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", rich_help_panel=_SYSTEM, help="Tasks (.csv: task_type,tasks)."
        ),
    ] = None
    machines: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_SYSTEM,
            show_default="one of each type",
            help="Machines (.csv: machine_type,count[,idle_w]).",
        ),
    ] = None
    pstate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[PATTERN=]K",
            rich_help_panel=_SYSTEM,
            help="P-state of all executions, or of those on some hosts; repeatable. Default: what "
            "the platform file says, else 0.",
        ),
    ] = None
    gamma: Annotated[
        float | None,
        typer.Option(
            metavar="G",
            rich_help_panel="Money",
            help="In place of --price: price over what the least energy costs.",
        ),
    ] = None
    money: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """The files that are read."""
        return self.workload, self.platform, self.etc, self.apc, self.counts, self.machines

    def bag(self) -> NamedBag:
        """Read the bag and its machines.

        Raises
        ------
        InputError
            If options are missing or exclude each other, or a file is wrong.
        """
        from gridsched.optimize.named_bag import bag_of_csv, bag_of_generator, bag_of_platform
        from gridsched.platform_io.given_pstates import one_pstate, pstates_of
        from gridsched.platform_io.xml_reader import read_platform
        from gridsched.workloads import read_workload

        self._check_combination()
        given = ",".join(self.pstate) if self.pstate else None
        if self.etc is not None and self.apc is not None and self.counts is not None:
            return bag_of_csv(self.etc, self.apc, self.counts, self.machines, one_pstate(given))
        if self.workload is None:
            raise InputError(
                "Missing the bag: give --workload G.toml, or --etc, --apc and --counts, or "
                "--platform and --workload."
            )
        if self.platform is None:
            if self.workload.suffix.lower() != ".toml":
                raise InputError(
                    f"{self.workload}: a bag of tasks has no machines of its own; add --platform."
                )
            return bag_of_generator(self.workload, one_pstate(given))
        tasks = read_workload(self.workload)
        platform = read_platform(self.platform)
        return bag_of_platform(platform, tasks, pstates_of(platform, given))

    def _check_combination(self) -> None:
        given = [name for name in (*_CSV, "machines") if getattr(self, name) is not None]
        if not given:
            return
        for name in ("workload", "platform"):
            if getattr(self, name) is not None:
                raise InputError(f"{option_name(name)} excludes {option_name(given[0])}.")
        for name in _CSV:
            if getattr(self, name) is None:
                names = ", ".join(option_name(each) for each in _CSV)
                raise InputError(f"Missing option '{option_name(name)}'; {names} go together.")

    def tariff(self, named: NamedBag) -> Tariff | None:
        """Return what the bag pays and what operating its machines costs, if anybody said.

        Raises
        ------
        InputError
            If an option is out of range, or has no effect.
        """
        if "prices" in self.money:
            raise InputError("The programmes know no time of day; leave out --prices.")
        if self.gamma is None:
            return with_keys(_Money(), self.money, spelled=option_name).tariff
        if "price" in self.money:
            raise InputError("--gamma sets the price, and so does --price; give one of them.")
        if not 0 <= self.gamma <= 1e9:
            raise InputError(f"--gamma is {self.gamma:g}; it must be from 0 to 1e+09.")
        from gridsched.optimize.pareto_front import least_energy

        costs = with_keys(_Money(), {"price": 0.0, **self.money}, spelled=option_name).tariff
        if costs is None:
            raise InputError("--gamma needs what a joule costs.")
        return costs.priced(self.gamma, least_energy(named.bag).energy_j)


#: Gives a command the fields of `OptimizeOptions` as options, before its own.
with_optimize_options = with_options(OptimizeOptions, before=99, records={"money": _Money})
