"""``gridsched optimize``: linear programmes on bags by type (paper 003)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from gridsched.cli.options import command_group, option_name, with_options
from gridsched.cli.output import OUTPUT_PANEL, PRINTED, Outputs, warn
from gridsched.cli.tables import console
from gridsched.errors import InputError
from gridsched.model.carbon import Carbon
from gridsched.model.records import with_keys
from gridsched.model.tariff import Tariff

if TYPE_CHECKING:  # scipy's solver is slow to load
    from gridsched.optimize.answers import FrontAnswer, ProfitAnswer
    from gridsched.optimize.carbon_bound import CarbonAnswer
    from gridsched.optimize.named_bag import NamedBag

optimize_app = command_group(
    "The programmes look at types of tasks and machines and at their numbers, not at single "
    "tasks: 10^9 tasks take as long as 10^4 (docs/profit.md)."
)
_SYSTEM = "Bag and machines (one of three ways)"
_CSV = ("etc", "apc", "counts")
_PARETO_EPILOG = """Examples:

gridsched optimize pareto --workload examples/profit.toml --plot front.png

gridsched optimize pareto --platform platforms/ex_a.xml --workload examples/ex_a.csv
-o bag_front.csv

gridsched optimize pareto --etc examples/profit_etc.csv --apc examples/profit_apc.csv
--counts examples/profit_counts.csv --gamma 1.2

Exit status: 0 fine, 2 bad input.
"""
_PROFIT_EPILOG = """Examples:

gridsched optimize profit --workload examples/profit.toml --gamma 1.2 --plot profit.png

gridsched optimize profit --workload examples/profit.toml --price 20 --energy-cost 1e-7 --pue 1.4
--power-cap-w 55e3

gridsched optimize profit --etc examples/profit_etc.csv --apc examples/profit_apc.csv
--counts examples/profit_counts.csv --price 300 --json

Exit status: 0 fine, 1 "do not run": every bag would lose more than standing still, 2 bad input.
"""
_CARBON_EPILOG = """Examples:

gridsched optimize carbon --platform examples/two_sites.xml --workload examples/two_sites_day.csv
--carbon examples/sites.csv

gridsched optimize carbon --platform examples/two_sites.xml --workload examples/two_sites_day.csv
--carbon examples/sites.csv --within-s 10800 -o hours.csv

Exit status: 0 fine, 2 bad input.
"""
PlotOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=OUTPUT_PANEL,
        help="Draw front, feasible region and profit (.png, .svg, .pdf; data beside it).",
    ),
]


def _file(text: str, default: bool | str = True) -> Any:
    return typer.Option(metavar="FILE", rich_help_panel=_SYSTEM, help=text, show_default=default)


@dataclass(frozen=True)
class _Money:
    """The keys of a tariff, as a record whose keys are options."""

    tariff: Annotated[Tariff | None, Field(description="What the bag pays.", json_schema_extra={"group": "Money"})] = (
        None
    )


@dataclass
class OptimizeOptions:
    """What both commands need, as options of the command line."""

    workload: Annotated[
        Path | None,
        _file(
            "Generator with machines (.toml of kind profit or utility), or with --platform a bag "
            "of tasks (.csv or .toml)."
        ),
    ] = None
    platform: Annotated[Path | None, _file("SimGrid platform (.xml); its hosts go by type, the tasks by size.")] = None
    etc: Annotated[Path | None, _file("Times (.csv: task_type,machine_type,pstate,etc_s).")] = None
    apc: Annotated[Path | None, _file("Powers (.csv: task_type,machine_type,pstate,apc_w).")] = None
    counts: Annotated[Path | None, _file("Tasks (.csv: task_type,tasks).")] = None
    machines: Annotated[
        Path | None, _file("Machines (.csv: machine_type,count[,idle_w]).", default="one of each type")
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
            metavar="G", rich_help_panel="Money", help="In place of --price: price over what the least energy costs."
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
        from gridsched.platform_io.overrides import one_pstate, pstates_of
        from gridsched.platform_io.xml_reader import read_platform
        from gridsched.workloads.load import read_workload

        self._check_combination()
        given = ",".join(self.pstate) if self.pstate else None
        if self.etc is not None and self.apc is not None and self.counts is not None:
            return bag_of_csv(self.etc, self.apc, self.counts, self.machines, one_pstate(given))
        if self.workload is None:
            raise InputError(
                "Missing the bag: give --workload G.toml, or --etc, --apc and --counts, or --platform and --workload."
            )
        if self.platform is None:
            if self.workload.suffix.lower() != ".toml":
                raise InputError(f"{self.workload}: a bag of tasks has no machines of its own; add --platform.")
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


@dataclass(frozen=True)
class _Emissions:
    """The keys of a carbon intensity, as a record whose keys are options."""

    carbon: Annotated[
        Carbon | None, Field(description="What a joule emits.", json_schema_extra={"group": "Carbon"})
    ] = None


@dataclass
class CarbonOptions:
    """What ``optimize carbon`` needs, as options of the command line."""

    platform: Annotated[Path, typer.Option(metavar="FILE", help="SimGrid platform (.xml).")]
    workload: Annotated[Path, typer.Option(metavar="FILE", help="Bag of tasks (.csv) or its generator (.toml).")]
    pstate: Annotated[
        list[str] | None,
        typer.Option(metavar="[PATTERN=]K", help="P-state of all hosts, or of some, where they stay on; repeatable."),
    ] = None
    carbon: dict[str, Any] = field(default_factory=dict)

    def answer(self, within_s: list[float]) -> CarbonAnswer:
        """Read the files, and solve the programme.

        Raises
        ------
        InputError
            If a file is wrong, nothing says the carbon intensity, or a makespan is too short.
        """
        from gridsched.model.carbon import carbon_signal
        from gridsched.optimize.carbon_bound import carbon_answer
        from gridsched.platform_io.overrides import pstates_of
        from gridsched.platform_io.xml_reader import read_platform
        from gridsched.workloads.load import read_workload
        from gridsched.workloads.signal_csv import with_carbon_read

        if "carbon_forecast" in self.carbon:
            raise InputError("The programme knows the true intensity; leave out --carbon-forecast.")
        platform, tasks = read_platform(self.platform), read_workload(self.workload)
        carbon = with_carbon_read(with_keys(_Emissions(), self.carbon, spelled=option_name).carbon)
        signal = carbon_signal(carbon, platform)
        if signal is None:
            raise InputError("Missing option '--carbon': nothing says what a joule emits (docs/carbon.md).")
        if tasks.width is not None or not len(tasks):
            raise InputError(f"{self.workload}: the bound is of bags of at least one task; found {tasks.name}.")
        return carbon_answer(
            platform, tasks, signal, pstates_of(platform, ",".join(self.pstate) if self.pstate else None), within_s
        )


#: Gives a command the fields of `OptimizeOptions` as options, before its own.
with_optimize_options = with_options(OptimizeOptions, before=99, records={"money": _Money})


@optimize_app.command(epilog=_PARETO_EPILOG)
@with_optimize_options
def pareto(
    options: OptimizeOptions,
    points: Annotated[int, typer.Option(min=2, metavar="N", help="Corners of the front, at most.")] = 200,
    plot: PlotOption = None,
    outputs: Outputs = PRINTED,
) -> None:
    """Energy against makespan: all corners of the front that no schedule is below.

    Each comes with a schedule of whole tasks; with a price, with its profit per second.
    """
    from gridsched.cli.optimize_tables import print_front, print_written
    from gridsched.optimize.answers import front_answer

    outputs.check(options.inputs, plot)
    named = options.bag()
    answer = front_answer(named, options.tariff(named), most_points=points)
    warn(named.notes)
    _plot(plot, answer, None, force=outputs.force)
    if outputs.write(answer.rows(), answer.as_dict()):
        print_front(console(), answer)
        print_written(console(), outputs.output, plot)


@optimize_app.command(epilog=_PROFIT_EPILOG)
@with_optimize_options
def profit(
    options: OptimizeOptions,
    power_cap_w: Annotated[
        float | None,
        typer.Option(
            "--power-cap-w",
            metavar="W",
            rich_help_panel="Limits",
            help="Largest mean power drawn from the grid, PUE included.",
        ),
    ] = None,
    least_rate_per_s: Annotated[
        float,
        typer.Option(
            "--least-rate-per-s",
            "--r-min",
            metavar="R",
            rich_help_panel="Limits",
            help="Bags per second that have been promised.",
        ),
    ] = 0.0,
    plot: PlotOption = None,
    outputs: Outputs = PRINTED,
) -> None:
    """The largest profit per second if such bags follow each other, and a schedule that nears it.

    Says what a machine more, a watt more and a task less are worth. -o writes how many tasks of
    each type go to which machines.
    """
    from gridsched.cli.optimize_tables import print_profit, print_written
    from gridsched.optimize.answers import front_answer, profit_answer

    outputs.check(options.inputs, plot)
    named = options.bag()
    tariff = options.tariff(named)
    if tariff is None:
        raise InputError("Missing option '--price' (what the bag pays) or '--gamma'.")
    answer = profit_answer(
        named, tariff, power_cap_w=math.inf if power_cap_w is None else power_cap_w, least_rate_per_s=least_rate_per_s
    )
    if plot is not None:
        _plot(plot, front_answer(named), answer, force=outputs.force)
    warn(answer.notes)
    if outputs.write(answer.places(), answer.as_dict()):
        print_profit(console(), answer)
        print_written(console(), outputs.output, plot)
    if not answer.plan.runs:
        raise typer.Exit(1)


def _plot(plot: Path | None, answer: FrontAnswer, profit: ProfitAnswer | None, *, force: bool) -> None:
    if plot is None:
        return
    from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load
    from gridsched.optimize.answers import landscape

    title = answer.named.describe()
    draw_figure("front", "landscape", landscape(answer, profit), plot, title=title, force=force)


@optimize_app.command(epilog=_CARBON_EPILOG)
@with_options(CarbonOptions, before=99, records={"carbon": _Emissions})
def carbon(
    options: CarbonOptions,
    within_s: Annotated[
        list[float] | None,
        typer.Option(
            min=0,
            metavar="S",
            help="Longest makespan; repeatable. Default: 1 to 8 times the least one, as far as the intensity goes.",
        ),
    ] = None,
    outputs: Outputs = PRINTED,
) -> None:
    """The least grams that any schedule of a bag emits, by its longest makespan, site and hour.

    Tasks are divided, so no schedule emits less. -o writes what is done where and when.
    """
    from gridsched.cli.optimize_tables import print_least_carbon, print_written

    outputs.check([options.platform, options.workload])
    answer = options.answer(within_s or [])
    if outputs.write(answer.shares(), answer.as_dict()):
        print_least_carbon(console(), answer)
        print_written(console(), outputs.output, None)
