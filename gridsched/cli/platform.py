"""``gridsched platform``: platforms from tables of machines, and a check of platform files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from gridsched.cli.option_groups import with_options
from gridsched.cli.output import check_targets
from gridsched.cli.platform_options import PlatformOptions
from gridsched.cli.platform_tables import print_platform, print_report, report_as_dict
from gridsched.cli.tables import console
from gridsched.files.json_files import json_text
from gridsched.model.platform import Platform
from gridsched.platform_io import power_edit
from gridsched.platform_io.check import check_platform_file, with_deployment, with_inspection
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import write_platform

platform_app = typer.Typer(
    name="platform",
    no_args_is_help=True,
    help="Make SimGrid platforms from tables of machines, and check platform files.",
)
_POWER_HELP = """Write a platform file again with power for its hosts; all else stays as it is.

SimGrid's format has no room for the power of a <cabinet> or <peer>: give it to each run by --power.
"""
_POWER_EPILOG = """Examples:

gridsched platform add-power examples/bare.xml --power 95:120:200 -o powered.xml

gridsched platform add-power examples/bare.xml --power 95:120:200
--power 'new-*=60:75:250,50:60:140' -o two_powers.xml
"""
_WITHOUT_EFFECT = {"force", "as_json", "quiet", "help"}

_TABLE_HELP = """Write a SimGrid platform from a table of machines.

TABLE is a Green500 or TOP500 list (CSV, TSV, XLS, XLSX; columns and units are recognised) or a
table in gridsched's own format: name,speed,efficiency,idle_power_w[,count,pstates,busy_power_w,
off_power_w,cluster,cores] in flop/s, flop/J and W.
"""
_TABLE_EPILOG = """Examples:

gridsched platform from-table platforms/green500.csv -o green.xml

gridsched platform from-table platforms/lecsa_table2.csv --rows 1-9 --hosts 90
--speed-levels 6000,8000,10000 --clusters speed --master -o levels.xml

gridsched platform from-table platforms/green500.csv --pstates '1:1;0.8:0.6' -o slower.xml
"""
_CHECK_HELP = """List hosts, cores, speeds, P-states, wattages and all problems of a platform file.

SimGrid itself loads the file too, in a process of its own. Exit status: 0 fine, 1 problems,
2 unreadable.
"""
_CHECK_EPILOG = """Examples:

gridsched platform check platforms/green500.xml

gridsched platform check examples/campus.xml --deployment examples/campus_deployment.xml

gridsched platform check platforms/ex_a.xml --json
"""


@platform_app.command("from-table", help=_TABLE_HELP, epilog=_TABLE_EPILOG)
@with_options(PlatformOptions)
def from_table(
    options: PlatformOptions,
    ctx: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Table of machines.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Platform file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Write a SimGrid platform from a table of machines."""
    check_targets(
        {"-o": [Path(output)]},
        [Path(table), Path(options.join) if options.join else None],
        force=force,
    )
    recipe, network = options.recipe(), options.network()
    # pandas takes longer to load than all the rest
    from gridsched.platform_io.from_table import platform_from_table
    from gridsched.platform_io.tables import read_machine_table

    machines = read_machine_table(table, join=options.join, year=options.year, trust=options.trust)
    platform = platform_from_table(machines, recipe)
    write_platform(platform, output, command=command_line(ctx), network=network, force=force)
    notes = (*machines.notes, *platform.warnings)
    if as_json:
        typer.echo(json_text(_summary(platform, output, notes)), nl=False)
    elif not quiet:
        print_platform(console(), platform, output, notes)


@platform_app.command("add-power", help=_POWER_HELP, epilog=_POWER_EPILOG)
def add_power(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="SimGrid XML file.")],
    power: Annotated[
        list[str],
        typer.Option(
            metavar="[PATTERN=]W:W:W",
            help="IDLE:EPSILON:BUSY in W for all hosts, or for those whose names fit the pattern; "
            "one for each P-state (with ','), or one for all; repeatable, the last one counts.",
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="Platform file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Write a platform file again with power for its hosts."""
    check_targets({"-o": [Path(output)]}, [Path(platform)], force=force)
    written = power_edit.add_power(platform, output, power, force=force)
    if not quiet:
        print_platform(console(), written, output, written.warnings)


@platform_app.command("check", help=_CHECK_HELP, epilog=_CHECK_EPILOG)
def check(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="SimGrid XML file.")],
    deployment: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="SimGrid deployment (.xml) to check beside it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the exit status.")] = False,
) -> None:
    """Check a platform file with our reader and with SimGrid."""
    from gridsched.sim.inspection import inspect_platform

    found = check_platform_file(platform)
    report = with_inspection(found, inspect_platform(platform, found.pairs()))
    if deployment is not None:
        report = with_deployment(report, deployment)
    if as_json:
        typer.echo(json_text(report_as_dict(report)), nl=False)
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
