"""``gridsched optimize``: linear programs on bags by type (paper 003)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridsched.cli.options import command_group, option_name, with_options
from gridsched.cli.output import PRINTED, Outputs, plot_option, warn
from gridsched.cli.tables import console
from gridsched.errors import InputError
from gridsched.model.records import keys_of, with_keys
from gridsched.model.tariff import Tariff
from gridsched.scenario import Scenario

if TYPE_CHECKING:  # scipy's solver is slow to load
    from gridsched.optimize.carbon_bound import CarbonAnswer
    from gridsched.optimize.typed_bag import TypedBag
    from gridsched.systems.profit.answers import FrontAnswer, ProfitAnswer

optimize_app = command_group(
    "The linear programs use types of tasks and machines and their numbers, not single tasks: 10^9 tasks "
    "take as long as 10^4 (docs/profit.md)."
)
_SYSTEM = "Bag and machines (one of three ways)"
_SETTINGS = keys_of(Scenario)
_OF_TARIFF, _OF_CARBON = (
    {name: key for name, key in _SETTINGS.items() if name == "pstate" or key.path[0] == part}
    for part in ("tariff", "carbon")
)
_CSV = ("etc", "apc", "counts")
PlotOption = Annotated[Path | None, plot_option("front, feasible region and profit")]


def _file(text: str, default: bool | str = True) -> Any:
    return typer.Option(metavar="FILE", rich_help_panel=_SYSTEM, help=text, show_default=default)


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
    platform: Annotated[Path | None, _file("SimGrid platform (.xml); hosts are grouped by type, tasks by size.")] = None
    etc: Annotated[Path | None, _file("Times (.csv: task_type,machine_type,pstate,etc_s).")] = None
    apc: Annotated[Path | None, _file("Powers (.csv: task_type,machine_type,pstate,apc_w).")] = None
    counts: Annotated[Path | None, _file("Tasks (.csv: task_type,tasks).")] = None
    machines: Annotated[
        Path | None, _file("Machines (.csv: machine_type,count[,idle_w]).", default="one of each type")
    ] = None
    gamma: Annotated[
        float | None,
        typer.Option(
            metavar="G",
            rich_help_panel=_SETTINGS["price"].group,
            help="Price as a multiple of the cost of the least energy, instead of --price.",
        ),
    ] = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """The files that are read."""
        return self.workload, self.platform, self.etc, self.apc, self.counts, self.machines

    def bag(self) -> TypedBag:
        """Read the bag and its machines.

        Raises
        ------
        InputError
            If options are missing or exclude each other, or a file is wrong.
        """
        from gridsched.optimize.named_bag import bag_of_csv, bag_of_parameters, bag_of_platform
        from gridsched.platform_io.overrides import one_pstate, pstates_of
        from gridsched.platform_io.xml_reader import read_platform
        from gridsched.workloads.load import read_generator, read_workload

        self._check_combination()
        pstate = self.settings.get("pstate")
        if self.etc is not None and self.apc is not None and self.counts is not None:
            return bag_of_csv(self.etc, self.apc, self.counts, self.machines, one_pstate(pstate))
        if self.workload is None:
            raise InputError(
                "Missing the bag: give --workload G.toml, or --etc, --apc and --counts, or --platform and --workload."
            )
        if self.platform is None:
            if self.workload.suffix.lower() != ".toml":
                raise InputError(f"{self.workload}: a bag of tasks has no machines of its own; add --platform.")
            of_machines = one_pstate(pstate)  # refused before a file is read
            return bag_of_parameters(read_generator(self.workload), str(self.workload), of_machines)
        tasks = read_workload(self.workload)
        platform = read_platform(self.platform)
        return bag_of_platform(platform, tasks, pstates_of(platform, pstate))

    def _check_combination(self) -> None:
        names_of_csv = [name for name in (*_CSV, "machines") if getattr(self, name) is not None]
        if not names_of_csv:
            return
        for name in ("workload", "platform"):
            if getattr(self, name) is not None:
                raise InputError(f"{option_name(name)} excludes {option_name(names_of_csv[0])}.")
        for name in _CSV:
            if getattr(self, name) is None:
                names = ", ".join(option_name(each) for each in _CSV)
                raise InputError(f"Missing option '{option_name(name)}'; {names} go together.")

    def tariff(self, bag: TypedBag) -> Tariff | None:
        """Return what the bag pays and what operating its machines costs, if this is given.

        Raises
        ------
        InputError
            If an option is out of range, or has no effect.
        """
        for name in ("prices", "prices_period_s"):
            if name in self.settings:
                raise InputError(f"The linear programs know no time of day; leave out {option_name(name)}.")
        if self.gamma is not None and "price" in self.settings:
            raise InputError("--gamma sets the price, and so does --price; give one of them.")
        if self.gamma is not None and not 0 <= self.gamma <= 1e9:
            raise InputError(f"--gamma is {self.gamma:g}; it must be from 0 to 1e+09.")
        free = {} if self.gamma is None else {"price": 0.0}
        asked = Scenario(self.platform, self.workload or "")
        costs = with_keys(asked, free | self.settings, format_key=option_name).tariff
        if self.gamma is None or costs is None:
            return costs
        from gridsched.optimize.pareto_front import least_energy

        return costs.priced(self.gamma, least_energy(bag).energy_j)


@dataclass
class CarbonOptions:
    """What ``optimize carbon`` needs, as options of the command line."""

    platform: Annotated[Path, typer.Option(metavar="FILE", help="SimGrid platform (.xml).")]
    workload: Annotated[Path, typer.Option(metavar="FILE", help="Bag of tasks (.csv) or its generator (.toml).")]
    settings: dict[str, Any] = field(default_factory=dict)

    def answer(self, within_s: list[float]) -> CarbonAnswer:
        """Read the files, and solve the program.

        Raises
        ------
        InputError
            If a file is wrong, the carbon intensity is not given, or a makespan is too short.
        """
        from gridsched.model.carbon import carbon_signal
        from gridsched.optimize.carbon_bound import carbon_answer
        from gridsched.platform_io.overrides import pstates_of
        from gridsched.platform_io.xml_reader import read_platform
        from gridsched.workloads.load import read_workload
        from gridsched.workloads.signal_csv import with_carbon_read

        if "carbon_forecast" in self.settings:
            raise InputError("The linear program knows the true intensity; leave out --carbon-forecast.")
        platform, tasks = read_platform(self.platform), read_workload(self.workload)
        given = {key: str(each) if isinstance(each, Path) else each for key, each in self.settings.items()}
        settings = with_keys(Scenario(self.platform, self.workload), given, format_key=option_name)
        signal = carbon_signal(with_carbon_read(settings.carbon), platform)
        if signal is None:
            raise InputError("Missing option '--carbon': the emissions of a joule are unknown (docs/carbon.md).")
        if not tasks.are_serial or not len(tasks):
            raise InputError(f"{self.workload}: the bound is of bags of at least one task; found {tasks.name}.")
        return carbon_answer(platform, tasks, signal, pstates_of(platform, settings.pstate), within_s)


@optimize_app.command()
@with_options(OptimizeOptions, before=99, records={"settings": _OF_TARIFF})
def pareto(
    options: OptimizeOptions,
    points: Annotated[int, typer.Option(min=2, metavar="N", help="Largest number of corners of the front.")] = 200,
    plot: PlotOption = None,
    outputs: Outputs = PRINTED,
) -> None:
    """Compute energy against makespan: all corners of the front, a bound for all schedules.

    Each comes with a schedule of whole tasks; with a price, with its profit per second.

    Examples
    --------
    gridsched optimize pareto --workload examples/profit.toml --plot front.png

    gridsched optimize pareto --platform platforms/ex_a.xml --workload examples/ex_a.csv
    -o bag_front.csv

    gridsched optimize pareto --etc examples/profit_etc.csv --apc examples/profit_apc.csv
    --counts examples/profit_counts.csv --gamma 1.2

    Exit status: 0 fine, 2 bad input.
    """
    from gridsched.systems.profit.answers import front_answer
    from gridsched.systems.profit.command_tables import print_front, print_written

    outputs.check(options.inputs, plot)
    bag = options.bag()
    answer = front_answer(bag, options.tariff(bag), most_points=points)
    warn(bag.notes)
    _plot(plot, answer, None, outputs)
    if outputs.write(answer.rows(), answer.as_dict()):
        print_front(console(), answer)
        print_written(console(), outputs.output, plot)


@optimize_app.command()
@with_options(OptimizeOptions, before=99, records={"settings": _OF_TARIFF})
def profit(
    options: OptimizeOptions,
    power_cap_w: Annotated[
        float | None,
        typer.Option(
            "--power-cap-w",
            metavar="W",
            rich_help_panel="Limits",
            help="Largest mean power from the grid, PUE included.",
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
    """Compute the largest profit per second if such bags follow each other, and a schedule close to it.

    Prints the value of one machine more, one watt more and one task less. -o writes how many tasks of
    each type go to which machines.

    Examples
    --------
    gridsched optimize profit --workload examples/profit.toml --gamma 1.2 --plot profit.png

    gridsched optimize profit --workload examples/profit.toml --price 20 --energy-cost 1e-7 --pue 1.4
    --power-cap-w 55e3

    gridsched optimize profit --etc examples/profit_etc.csv --apc examples/profit_apc.csv
    --counts examples/profit_counts.csv --price 300 --json

    Exit status: 0 fine, 1 "do not run": every bag would lose more than standing still, 2 bad input.
    """
    from gridsched.systems.profit.answers import front_answer, profit_answer
    from gridsched.systems.profit.command_tables import print_profit, print_written

    outputs.check(options.inputs, plot)
    bag = options.bag()
    tariff = options.tariff(bag)
    if tariff is None:
        raise InputError("Missing option '--price' (what the bag pays) or '--gamma'.")
    answer = profit_answer(
        bag, tariff, power_cap_w=math.inf if power_cap_w is None else power_cap_w, least_rate_per_s=least_rate_per_s
    )
    if plot is not None:
        _plot(plot, front_answer(bag), answer, outputs)
    warn(answer.notes)
    if outputs.write(answer.places(), answer.as_dict()):
        print_profit(console(), answer)
        print_written(console(), outputs.output, plot)
    if not answer.plan.runs:
        raise typer.Exit(1)


def _plot(plot: Path | None, answer: FrontAnswer, profit: ProfitAnswer | None, outputs: Outputs) -> None:
    if plot is None:
        return
    from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load
    from gridsched.systems.profit.answers import landscape

    title = answer.bag.describe()
    possible, force = landscape(answer, profit), outputs.force
    draw_figure("front", "landscape", possible, plot, title=title, force=force, table=outputs.output)


@optimize_app.command()
@with_options(CarbonOptions, before=99, records={"settings": _OF_CARBON})
def carbon(
    options: CarbonOptions,
    within_s: Annotated[
        list[float] | None,
        typer.Option(
            min=0,
            metavar="S",
            help=(
                "Longest makespan; repeatable. Default: 1 to 8 times the least one, as far as the intensity is given."
            ),
        ),
    ] = None,
    outputs: Outputs = PRINTED,
) -> None:
    """Compute the least grams that any schedule of a bag emits, by its longest makespan, site and hour.

    Tasks are divided, so no schedule emits less. -o writes the flops of each place and time.

    Examples
    --------
    gridsched optimize carbon --platform examples/two_sites.xml --workload examples/two_sites_day.csv
    --carbon examples/sites.csv

    gridsched optimize carbon --platform examples/two_sites.xml --workload examples/two_sites_day.csv
    --carbon examples/sites.csv --within-s 10800 -o hours.csv

    Exit status: 0 fine, 2 bad input.
    """
    from gridsched.systems.profit.command_tables import print_least_carbon, print_written

    outputs.check([options.platform, options.workload])
    answer = options.answer(within_s or [])
    if outputs.write(answer.shares(), answer.as_dict()):
        print_least_carbon(console(), answer)
        print_written(console(), outputs.output, None)
