"""``gridsched platform``: platforms from tables of machines, and a check of platform files."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from gridsched.cli.output import check_targets
from gridsched.cli.platform_tables import print_platform, print_report, report_as_dict
from gridsched.cli.tables import console
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.platform_io.check import check_platform_file, with_inspection
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_units import parse_quantity
from gridsched.platform_io.xml_writer import NetworkLinks, write_platform

platform_app = typer.Typer(
    name="platform",
    no_args_is_help=True,
    help="Make SimGrid platforms from tables of machines, and check platform files.",
)
_WITHOUT_EFFECT = {"force", "as_json", "quiet", "help"}

_TABLE_HELP = """Write a SimGrid platform from a table of machines.

TABLE is a Green500 or TOP500 list (CSV, TSV, XLS, XLSX; columns and units are recognised) or a
table in gridsched's own format: name,speed,efficiency,idle_power_w[,count,pstates,busy_power_w,
off_power_w,cluster,cores] in flop/s, flop/J and W.
"""
_TABLE_EPILOG = """Examples:

gridsched platform from-table green.csv --join top500.tsv -o p.xml

gridsched platform from-table list.xlsx --rows 1-9 --hosts 90
--speed-levels 6000,8000,10000 --clusters speed --master -o p.xml

gridsched platform from-table own.csv --pstates '1:1;0.8:0.6' -o p.xml
"""
_CHECK_HELP = """List hosts, cores, speeds, P-states, wattages and all problems of a platform file.

SimGrid itself loads the file too, in a process of its own. Exit status: 0 fine, 1 problems,
2 unreadable.
"""
_CHECK_EPILOG = """Examples:

gridsched platform check platforms/green500.xml

gridsched platform check p.xml --json
"""


@platform_app.command("from-table", help=_TABLE_HELP, epilog=_TABLE_EPILOG)
def from_table(
    ctx: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Table of machines.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Platform file to write.")],
    join: Annotated[
        str | None, typer.Option(help="TOP500 list of the same date: brings cores and Rmax.")
    ] = None,
    year: Annotated[
        int | None, typer.Option(help="Year of the list, where Rmax names no unit.")
    ] = None,
    hosts: Annotated[
        int | None, typer.Option(help="Number of hosts, dealt to the rows; default one for each.")
    ] = None,
    rows: Annotated[str | None, typer.Option(help="Ranks to use, as '1-50,60'.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Regular expression on name, computer or site.")
    ] = None,
    speed_levels: Annotated[
        str | None, typer.Option(help="Simulated speeds in flop/s, dealt to the rows in order.")
    ] = None,
    speed_uniform: Annotated[
        str | None, typer.Option(help="Simulated speeds drawn from LO:HI, in flop/s.")
    ] = None,
    efficiency: Annotated[
        str | None, typer.Option(help="scaled (s_sim*eps_real/s_real), real or nearest.")
    ] = None,
    idle_share: Annotated[
        float | None, typer.Option(help="Idle power as a share of busy power, 0 to 1.")
    ] = None,
    idle_power_w: Annotated[
        str | None, typer.Option(help="Idle power in W, or drawn from LO:HI.")
    ] = None,
    off_power_w: Annotated[float | None, typer.Option(help="Power while off, in W.")] = None,
    pstates: Annotated[
        str | None, typer.Option(help="Speed and power factors, as '1:1;0.8:0.6'.")
    ] = None,
    cores: Annotated[int | None, typer.Option(help="Cores of each host; default 1.")] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            help="A number, or what clusters share: host, speed, row, cluster, site, computer, "
            "year, name."
        ),
    ] = None,
    cluster_bandwidth: Annotated[
        str | None, typer.Option(help="Of the uplinks, as 1GBps or one for each: 1GBps,10Gbps.")
    ] = None,
    cluster_latency: Annotated[
        str | None, typer.Option(help="Of the uplinks, as 50us or one for each.")
    ] = None,
    host_bandwidth: Annotated[
        str | None, typer.Option(help="Between host and cluster router; default unlimited.")
    ] = None,
    host_latency: Annotated[str | None, typer.Option(help="Likewise; default 0s.")] = None,
    master: Annotated[
        bool, typer.Option("--master", help="Add a host that computes nothing.")
    ] = False,
    master_bandwidth: Annotated[
        str | None, typer.Option(help="Between master and uplinks; default unlimited.")
    ] = None,
    master_latency: Annotated[str | None, typer.Option(help="Likewise; default 0s.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all that is drawn.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Write a SimGrid platform from a table of machines."""
    check_targets({"-o": [Path(output)]}, [Path(table), join and Path(join)], force=force)
    recipe = PlatformRecipe(
        hosts=hosts,
        rows=rows,
        name_pattern=name,
        speed_levels=_quantities("--speed-levels", speed_levels, "speed", ","),
        speed_uniform=_range("--speed-uniform", speed_uniform, "speed"),
        efficiency=efficiency,
        idle_share=idle_share,
        idle_power_w=_range("--idle-power-w", idle_power_w, "watts"),
        off_power_w=off_power_w,
        pstates=_pstates(pstates),
        cores=cores,
        clusters=int(clusters) if clusters and clusters.isdecimal() else clusters,
        cluster_bandwidth=_quantities("--cluster-bandwidth", cluster_bandwidth, "bandwidth", ","),
        cluster_latency_s=_quantities("--cluster-latency", cluster_latency, "time", ","),
        master=master,
        seed=seed,
    )
    network = NetworkLinks(
        _link_value("--host-bandwidth", host_bandwidth, "bandwidth", math.inf),
        _link_value("--host-latency", host_latency, "time", 0.0),
        _link_value("--master-bandwidth", master_bandwidth, "bandwidth", math.inf),
        _link_value("--master-latency", master_latency, "time", 0.0),
    )
    # pandas takes longer to load than all the rest
    from gridsched.platform_io.from_table import platform_from_table
    from gridsched.platform_io.tables import read_machine_table

    machines = read_machine_table(table, join=join, year=year)
    platform = platform_from_table(machines, recipe)
    write_platform(platform, output, command=command_line(ctx), network=network, force=force)
    notes = (*machines.notes, *platform.warnings)
    if as_json:
        typer.echo(json.dumps(_summary(platform, output, notes), indent=2))
    elif not quiet:
        print_platform(console(), platform, output, notes)


@platform_app.command("check", help=_CHECK_HELP, epilog=_CHECK_EPILOG)
def check(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="SimGrid XML file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the exit status.")] = False,
) -> None:
    """Check a platform file with our reader and with SimGrid."""
    from gridsched.sim.inspection import inspect_platform

    report = with_inspection(check_platform_file(platform), inspect_platform(platform))
    if as_json:
        typer.echo(json.dumps(report_as_dict(report), indent=2))
    elif not quiet:
        print_report(console(), report)
    if not report.is_fine:
        raise typer.Exit(1)


def command_line(ctx: typer.Context) -> str:
    """Return the command of this invocation in a canonical form.

    Options stand in the order of the help text; those with their default value are left out.
    """
    words = ["gridsched", "platform", str(ctx.info_name)]
    for parameter in ctx.command.params:
        name = parameter.name or ""
        value = ctx.params.get(name)
        if name in _WITHOUT_EFFECT or value is None or value == parameter.default:
            continue
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif value is True:
            words.append(parameter.opts[-1])
        else:
            words += [parameter.opts[-1], str(value)]
    return shlex.join(words)


def _summary(platform: Platform, output: str, notes: tuple[str, ...]) -> dict[str, Any]:
    written = read_platform(Path(output))
    return {
        "platform": output,
        "hosts": len(written.hosts),
        "clusters": [
            {"name": cluster.name, "hosts": len(cluster.hosts)} for cluster in written.clusters
        ],
        "master": written.master.name if written.master else None,
        "speed_flops": [float(written.speed[:, 0].min()), float(written.speed[:, 0].max())],
        "efficiency_flop_per_j": [
            float(platform.efficiency().min()),
            float(platform.efficiency().max()),
        ],
        "notes": list(notes),
    }


def _quantity(option: str, text: str, kind: str) -> float:
    """Return one value; speeds may lack their unit, which the option's help names."""
    try:
        if kind == "watts":
            return float(text)
        value, has_unit = parse_quantity(text.strip(), kind)
    except ValueError as error:
        raise InputError(f"{option}: {error}.") from None
    if not has_unit and kind != "speed":
        example = "125MBps" if kind == "bandwidth" else "50us"
        raise InputError(f"{option} is {text!r}; it needs a unit, as {example}.")
    if not value >= 0 or (kind == "bandwidth" and value == 0):
        raise InputError(f"{option} is {text!r}; a positive value is legal.")
    return value


def _quantities(option: str, text: str | None, kind: str, separator: str) -> tuple[float, ...]:
    if text is None:
        return ()
    return tuple(_quantity(option, part, kind) for part in text.split(separator))


def _range(option: str, text: str | None, kind: str) -> tuple[float, float] | None:
    values = _quantities(option, text, kind, ":")
    if not values:
        return None
    if len(values) > 2 or (len(values) == 1 and kind != "watts"):
        raise InputError(f"{option} is {text!r}; LO:HI is legal.")
    return values[0], values[-1]


def _link_value(option: str, text: str | None, kind: str, default: float) -> float:
    return default if text is None else _quantity(option, text, kind)


def _pstates(text: str | None) -> tuple[tuple[float, float], ...] | None:
    if text is None:
        return None
    from gridsched.platform_io.own_table import parse_pstates

    try:
        return parse_pstates(text)
    except ValueError as error:
        raise InputError(f"--pstates: {error}.") from None
