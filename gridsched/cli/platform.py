"""``gridsched platform``: platforms from tables of machines, and a check of platform files."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast

import typer

from gridsched.cli.options import command_group, option_name, with_options
from gridsched.cli.output import ForceOption, JsonOption, QuietOption, check_targets
from gridsched.cli.platform_tables import print_platform, print_report, report_as_dict
from gridsched.cli.tables import console
from gridsched.errors import InputError, counted
from gridsched.files.json_files import json_text
from gridsched.files.output_files import write_whole
from gridsched.model.platform import Platform
from gridsched.platform_io import xml_edit
from gridsched.platform_io.check import check_platform_file, with_deployment, with_inspection
from gridsched.platform_io.hostlists import fold_hostlist
from gridsched.platform_io.overrides import PowerOverride, last_match, with_power, with_unit_power
from gridsched.platform_io.recipe import PlatformRecipe, parse_pstates
from gridsched.platform_io.slurm_conf import read_slurm_conf
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_values import parse_quantity
from gridsched.platform_io.xml_writer import NetworkLinks, write_platform
from gridsched.workloads.traces.partitions import partition_table
from gridsched.workloads.traces.trace_options import NODE_POWER_W

if TYPE_CHECKING:
    from gridsched.platform_io.tables import MachineTable

T = TypeVar("T")
Kind = Literal["speed", "bandwidth", "time", "watts"]
platform_app = command_group()
_WITHOUT_EFFECT = {"force", "json", "quiet", "help"}


def _quantity(text: str, kind: Kind) -> float:
    """Return one value; speeds and times may lack their unit, which the help or the name states."""
    if kind == "watts":
        return float(text)
    value, has_unit = parse_quantity(text.strip(), kind)
    if not has_unit and kind == "bandwidth":
        raise ValueError(f"{text!r} needs a unit, as 125MBps")
    if not value >= 0 or (kind == "bandwidth" and value == 0):
        raise ValueError(f"{text!r} is not allowed; give a positive value")
    return value


def _list(text: str, kind: Kind, separator: str = ",") -> tuple[float, ...]:
    return tuple(_quantity(part, kind) for part in text.split(separator))


def _range(text: str, kind: Kind) -> tuple[float, float]:
    values = _list(text, kind, ":")
    if len(values) > 2 or (len(values) == 1 and kind != "watts"):
        raise ValueError(f"{text!r} is not a range; write LO:HI")
    return values[0], values[-1]


def _number_or_text(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


@dataclass(frozen=True)
class _Option:
    """What an option means, its type, the key it sets if not its own name, and how it is read.

    It is called by its key, as in a study; its own name is allowed, too.
    """

    help: str
    type: type = str
    key: str | None = None
    read: Callable[[Any], Any] = lambda value: value
    default: Any = None


_OPTIONS = {
    "join": _Option("TOP500 list of the same date: brings cores and Rmax."),
    "year": _Option("Year of the list: selects one of several, and sets the unit if Rmax names none.", int),
    "trust": _Option("The value that counts if both are listed: power or efficiency."),
    "hosts": _Option("Number of hosts, divided among the rows; default: one for each.", int),
    "rows": _Option("Ranks to use, for example '1-50,60'."),
    "name": _Option("Regular expression (RE2) on name, computer or site.", key="name_pattern"),
    "speed_levels": _Option(
        "Simulated speeds in flop/s, assigned to the rows in order.", read=partial(_list, kind="speed")
    ),
    "speed_uniform": _Option("Simulated speeds sampled from LO:HI, in flop/s.", read=partial(_range, kind="speed")),
    "efficiency": _Option("scaled (s_sim*eps_real/s_real), real or nearest."),
    "idle_share": _Option("Idle power as a share of busy power, 0 to 1.", float),
    "idle_power_w": _Option("Idle power in W, or sampled from LO:HI.", read=partial(_range, kind="watts")),
    "off_power_w": _Option("Power while off, in W.", float),
    "embodied_kg": _Option("Embodied carbon of a host, in kg CO2e.", float),
    "lifetime_years": _Option("Years over which it is spread.", float),
    "memory": _Option("Memory of each host, such as 64G."),
    "resources": _Option("What else jobs may take of each host, for example gpu:4."),
    "unit_power": _Option(
        "Power in W of a unit of these that is free, and of one that a job has, on hosts that have it: "
        "NAME:IDLE:BUSY,..., for example gpu:25:300,memory:0.1:0.4 (memory by GiB)."
    ),
    "pstates": _Option("Speed and power factors, for example '1:1;0.8:0.6'.", read=parse_pstates),
    "cores": _Option("Cores of each host; default 1.", int),
    "clusters": _Option(
        "Number of clusters, or the property that the hosts of a cluster share: host, speed, row, cluster, "
        "site, computer, year, name.",
        read=_number_or_text,
    ),
    "cluster_bandwidth": _Option(
        "Bandwidth of the uplinks, for example 1GBps, or one for each: 1GBps,10Gbps.",
        read=partial(_list, kind="bandwidth"),
    ),
    "cluster_latency": _Option(
        "Latency of the uplinks, for example 50us, or one for each.",
        key="cluster_latency_s",
        read=partial(_list, kind="time"),
    ),
    "host_bandwidth": _Option(
        "Bandwidth between host and cluster router; default: unlimited.", read=partial(_quantity, kind="bandwidth")
    ),
    "host_latency": _Option(
        "Latency between them; default: 0s.", key="host_latency_s", read=partial(_quantity, kind="time")
    ),
    "master": _Option("Add a host that computes nothing.", bool, default=False),
    "master_bandwidth": _Option(
        "Bandwidth between master and uplinks; default: unlimited.", read=partial(_quantity, kind="bandwidth")
    ),
    "master_latency": _Option(
        "Latency between them; default: 0s.", key="master_latency_s", read=partial(_quantity, kind="time")
    ),
    "seed": _Option("Seed of all that is sampled.", int, default=0),
}


def _declared(name: str, option: _Option) -> tuple[str, Any, Any]:
    names = ["--master"] if option.type is bool else []  # and no --no-master
    if option.key is not None:
        names = [option_name(option.key), option_name(name)]
    kind = option.type | None if option.default is None else option.type
    return name, Annotated[kind, typer.Option(*names, help=option.help)], option.default


PlatformOptions = make_dataclass("PlatformOptions", [_declared(*each) for each in _OPTIONS.items()])


def _filled(record: type[T], options: Any) -> T:
    """Return a record of those options that are its keys.

    Raises
    ------
    InputError
        If an option is not a quantity of its kind.
    """
    keys, values = {field.name for field in fields(cast(Any, record))}, {}
    for name, option in _OPTIONS.items():
        key, value = option.key or name, getattr(options, name)
        if key in keys and value is not None:
            try:
                values[key] = option.read(value)
            except ValueError as error:
                raise InputError(f"{option_name(key)}: {error}.") from None
    return record(**values)


@platform_app.command("from-table")
@with_options(PlatformOptions)
def from_table(
    options: Any,
    ctx: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Table of machines.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Platform file to write.")],
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a SimGrid platform from a table of machines.

    TABLE is a Green500 or TOP500 list (CSV, TSV, XLS, XLSX; columns and units are recognized) or a
    table in gridsched's own format: name,speed,efficiency,idle_power_w[,count,pstates,busy_power_w,
    off_power_w,cluster,cores,embodied_kg,lifetime_years,memory,resources,unit_power] in flop/s, flop/J, W
    and kg CO2e.

    Examples
    --------
    gridsched platform from-table platforms/green500.csv -o green.xml

    gridsched platform from-table platforms/lecsa_table2.csv --rows 1-9 --hosts 90
    --speed-levels 6000,8000,10000 --clusters speed --master -o levels.xml

    gridsched platform from-table platforms/green500.csv --pstates '1:1;0.8:0.6' -o slower.xml
    """
    check_targets({"-o": [Path(output)]}, [Path(table), Path(options.join) if options.join else None], force=force)
    recipe, network = _filled(PlatformRecipe, options), _filled(NetworkLinks, options)
    # pandas takes longer to load than all the rest
    from gridsched.platform_io.from_table import platform_from_table
    from gridsched.platform_io.tables import read_machine_table

    machines = read_machine_table(table, join=options.join, year=options.year, trust=options.trust)
    platform = platform_from_table(machines, recipe)
    write_platform(platform, output, command=command_line(ctx), network=network, force=force)
    notes = (*machines.notes, *platform.warnings)
    if json:
        typer.echo(json_text(_summary(platform, output, notes) | {"settled": _settled(machines)}), nl=False)
    elif not quiet:
        print_platform(console(), platform, output, notes)


@platform_app.command("from-slurm")
def from_slurm(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES", help="slurm.conf, or what scontrol show node, show partition and show config print."
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="Platform file to write.")],
    partitions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Table of partitions to write; default: as the platform, with '.toml'."),
    ] = None,
    power: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[PATTERN=]W:W:W",
            help="IDLE:EPSILON:BUSY in W for all nodes, or for those whose names fit the pattern; repeatable, the "
            "last one counts.",
        ),
    ] = None,
    unit_power: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[PATTERN=]NAME:W:W",
            help="Power in W of a GPU or another generic resource, free and with a job, and of a GiB of memory, for "
            "example gpu:25:300,memory:0.1:0.4, on all nodes that have it, or on those whose names fit the pattern; "
            "repeatable, the last one counts.",
        ),
    ] = None,
    speed: Annotated[str, typer.Option(help="Speed of a core, such as 1Gf; default 1 Gflop/s, as for logs.")] = "1Gf",
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a SimGrid platform and a table of partitions from a Slurm machine's own files.

    Nodes become hosts with their CPUs, memory, generic resources and features, in the order in which Slurm takes
    them; nodes that are down are left out. Several files are read as one configuration.

    Examples
    --------
    gridsched platform from-slurm examples/live_slurm.conf -o machine.xml

    gridsched platform from-slurm examples/scontrol.txt --power 95:110:350 --power 'gpu*=180:200:500'
    --unit-power gpu:25:300,memory:0.1:0.4 -o gpus.xml
    """
    table = Path(partitions) if partitions is not None else Path(output).with_suffix(".toml")
    check_targets({"-o": [Path(output)], "--partitions": [table]}, [Path(each) for each in files], force=force)
    conf = read_slurm_conf(*files)
    idle_w, busy_w = NODE_POWER_W
    try:
        machine = conf.platform(idle_w=idle_w, busy_w=busy_w, speed=_quantity(speed, "speed"))
    except ValueError as error:
        raise InputError(f"--speed: {error}.") from None
    given = PowerOverride.read(power or ())
    if given.is_none or given.clamps is not None:
        raise InputError("--power: powers of nodes in W are allowed here, as 95:110:350 or 'gpu*=180:200:900'.")
    typical = [host.name for host in machine.hosts if last_match(given.items, host.name) is None]
    machine = with_unit_power(with_power(machine, given), unit_power or ())
    text = partition_table(conf)
    write_platform(machine, output, command=command_line(ctx), force=force)
    write_whole(table, text, force=force)
    notes = [*conf.notes, *machine.warnings]
    if typical:
        notes.append(
            f"{len(typical):,} of {len(machine):,} nodes ({fold_hostlist(typical)[:60]}) draw {idle_w:g} W idle and "
            f"{busy_w:g} W busy here, as a typical node does; give their power by --power"
        )
    if not quiet:
        print_platform(console(), machine, output, tuple(notes))
        take = f"--allocation {'cores' if conf.shares_nodes else 'nodes'} --partitions {table}"
        typer.echo(f"Wrote {table}: {counted(len(conf.partitions), 'partition')}. Use it with {take}.")


@platform_app.command("add-power")
def add_power(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="SimGrid XML file.")],
    power: Annotated[
        list[str],
        typer.Option(
            metavar="[PATTERN=]W:W:W",
            help="IDLE:EPSILON:BUSY in W for all hosts, or for those whose names match the pattern; one for each "
            "P-state (with ','), or one for all; repeatable, the last one counts.",
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="Platform file to write.")],
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a copy of a platform file with power for its hosts; everything else stays the same.

    SimGrid's format has no place for the power of a `<cabinet>` or `<peer>`: give it to each run with --power.

    Examples
    --------
    gridsched platform add-power examples/bare.xml --power 95:120:200 -o powered.xml

    gridsched platform add-power examples/bare.xml --power 95:120:200
    --power 'new-*=60:75:250,50:60:140' -o two_powers.xml
    """
    check_targets({"-o": [Path(output)]}, [Path(platform)], force=force)
    written = xml_edit.add_power(platform, output, power, force=force)
    if not quiet:
        print_platform(console(), written, output, written.warnings)


@platform_app.command("check")
def check(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="SimGrid XML file.")],
    deployment: Annotated[
        str | None, typer.Option(metavar="FILE", help="SimGrid deployment (.xml) to check beside it.")
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List hosts, cores, speeds, P-states, wattages and all problems of a platform file.

    SimGrid itself also loads the file, in a process of its own. Exit status: 0: fine, 1: problems, 2:
    unreadable.

    Examples
    --------
    gridsched platform check platforms/green500.xml

    gridsched platform check examples/campus.xml --deployment examples/campus_deployment.xml

    gridsched platform check platforms/ex_a.xml --json
    """
    from gridsched.sim.inspection import inspect_platform

    reading = check_platform_file(platform)
    report = with_inspection(reading, inspect_platform(platform, reading.pairs()))
    if deployment is not None:
        report = with_deployment(report, deployment)
    if json:
        typer.echo(json_text(report_as_dict(report)), nl=False)
    elif not quiet:
        print_report(console(), report)
    if not report.is_fine:
        raise typer.Exit(1)


def command_line(ctx: typer.Context) -> str:
    """Return the command of this invocation in a canonical form.

    Options have the order of the help text; those with their default value are left out.
    """
    words = ["gridsched", "platform", str(ctx.info_name)]
    for parameter in ctx.command.params:
        name = parameter.name or ""
        value = ctx.params.get(name)
        if name in _WITHOUT_EFFECT or value is None or value == parameter.default:
            continue
        if value is True:
            words.append(parameter.opts[-1])
            continue
        option = [] if parameter.param_type_name == "argument" else [parameter.opts[-1]]
        for each in value if isinstance(value, list | tuple) else (value,):
            words += [*option, str(each)]
    return shlex.join(words)


def _settled(machines: MachineTable) -> list[dict[str, Any]]:
    """Return the rows of a list whose power and efficiency differ, and which of them was taken."""
    frame = machines.frame
    if "taken" not in frame:
        return []
    columns = ["rank", "name", "computer", "power_w", "efficiency_flop_per_j", "taken"]
    rows: list[dict[str, Any]] = frame.loc[frame["taken"] != "", columns].to_dict("records")
    return rows


def _summary(platform: Platform, output: str, notes: tuple[str, ...]) -> dict[str, Any]:
    written = read_platform(Path(output))
    return {
        "platform": output,
        "hosts": len(written.hosts),
        "clusters": [{"name": cluster.name, "hosts": len(cluster.hosts)} for cluster in written.clusters],
        "master": written.master.name if written.master else None,
        "speed_flops": [float(written.speed[:, 0].min()), float(written.speed[:, 0].max())],
        "efficiency_flop_per_j": [float(platform.efficiency().min()), float(platform.efficiency().max())],
        "notes": list(notes),
    }
