"""``gridsched workload generate`` and ``describe``."""

from __future__ import annotations

from dataclasses import make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from gridsched.analysis.workload_statistics import WorkloadStatistics, system_statistics, task_statistics
from gridsched.cli.job_commands import (
    LogOptions,
    convert,
    described_jobs,
    import_command,
    print_energy,
    print_rest,
    statistics_of_jobs,
    with_log_options,
)
from gridsched.cli.options import command_group, option_name, with_options
from gridsched.cli.output import (
    ForceOption,
    JsonOption,
    QuietOption,
    check_targets,
    figure_files,
    output_option,
    plot_option,
    put_json,
)
from gridsched.cli.tables import console, print_table, print_values
from gridsched.errors import InputError, counted
from gridsched.metrics.columns import Column
from gridsched.model.task_types import SystemWorkload
from gridsched.model.tasks import Tasks
from gridsched.workloads.bag import BagOfTasks, write_bag
from gridsched.workloads.generator_keys import GeneratorKeys, WrittenKeys
from gridsched.workloads.generators import GENERATORS, checked_parameters, generator_of
from gridsched.workloads.load import input_files, read_generator, read_system_workload, read_workload
from gridsched.workloads.traces.formats import endings, written_endings
from gridsched.workloads.traces.job_table import JobTable

if TYPE_CHECKING:
    from gridsched.figures.figure_file import Subject

workload_app = command_group()
workload_app.command("import")(import_command)
workload_app.command("convert")(convert)
_CLUSTERS = (
    Column("cluster", "cluster"),
    Column("nodes", "nodes", "number"),
    Column("cores_per_node", "cores of\na node", "number"),
    Column("cores", "cores", "number"),
    Column("task_types", "task types\nthat run", "number"),
    Column("tasks", "tasks\nthat fit", "number"),
)
_ARRIVALS = (
    Column("kind", "task types"),
    Column("task_types", "number", "figure"),
    Column("tasks", "tasks", "number"),
    Column("min_per_day", "per type and\nday: fewest", "rounded", scale="rate"),
    Column("mean_per_day", "mean", "rounded", scale="rate"),
    Column("max_per_day", "most", "rounded", scale="rate"),
)
_MATRICES = (
    Column("machine_types", "machine types"),
    Column("pstate", "P-state", "figure"),
    Column("entries", "entries", "number"),
    Column("mean", "mean", "number"),
    Column("cov", "cov", "rounded"),
    Column("min", "least", "number"),
    Column("max", "most", "number"),
)


#: What represents the value of each key of a bag in the help, and what it means.
_BAG = {
    "kind": ("KIND", f"{' or '.join(GENERATORS)}; default bag."),
    "tasks": ("N", "Number of tasks."),
    "mean_flops": ("F", "Mean size [flop]."),
    "heterogeneity": ("H", "Sizes are uniform in F * (1 -+ H/2); 0 (default) to 1."),
    "seed": ("N", "Seed; default 0."),
    "input_bytes": ("B", "Input of each task [byte]; default 0."),
    "output_bytes": ("B", "Result of each task [byte]; default 0."),
    "submit_from_s": ("S", "Tasks are submitted uniformly from this time on [s]; default 0."),
    "submit_until_s": ("S", "... until this time [s]; default 0: all at once."),
}


def _bag_option(key: str, metavar: str, text: str) -> tuple[str, Any, None]:
    kind: Any = str if key == "kind" else BagOfTasks.model_fields[key].annotation
    return key, Annotated[kind | None, typer.Option(metavar=metavar, help=text)], None


BagOptions = make_dataclass("BagOptions", [_bag_option(key, *words) for key, words in _BAG.items()])


@workload_app.command()
@with_options(BagOptions)
def generate(
    options: Any,
    output: Annotated[Path, output_option(help="Tasks (.csv), a workflow (.toml) or jobs (.swf).")],
    generator: Annotated[
        Path | None, typer.Argument(metavar="G.toml", help="Parameters, instead of options.", show_default=False)
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Generate a bag of tasks, machines or clusters and tasks with utility, workflows, or parallel jobs.

    Examples
    --------
    gridsched workload generate --tasks 720 --mean-flops 1e6 -o bag.csv

    gridsched workload generate examples/bag.toml -o other.csv

    gridsched workload generate examples/utility_small.toml -o day.csv

    gridsched workload generate examples/rigid_jobs.toml -o jobs.swf

    gridsched workload generate examples/gaussian.toml -o elimination.toml

    The keys of a bag's .toml file are those of the options: kind, tasks, mean_flops, heterogeneity,
    seed, input_bytes, output_bytes, submit_from_s, submit_until_s, and replicate. A .toml of kind
    utility brings its machines: they, ETC, APC and utility classes are written beside the tasks
    (docs/utility_workloads.md). A .toml
    of kind parallel brings clusters, which are written likewise (docs/parallel_workloads.md), unless
    its tasks are jobs of a log: then give the .toml itself as --workload. A .toml of kind rigid_jobs
    makes parallel jobs, which are written as a log (docs/traces.md). A .toml of kind workflow draws
    workflows, which are written as a .toml and two tables beside it (docs/workflows.md).
    """
    keys = {name: value for name, value in vars(options).items() if value is not None}
    if output.suffix.lower() not in (".csv", ".toml", *written_endings()):
        raise InputError(
            f"{output}: tasks are written as .csv, workflows as .toml, parallel jobs as "
            f"{' or '.join(written_endings())}."
        )
    if generator is not None and keys:
        option = option_name(next(iter(keys)))
        raise InputError(f"{option} has no effect beside {generator}; set it in the file.")
    if generator is not None:
        check_targets({"-o": [output]}, [generator], force=force)
        parameters = read_generator(generator)
    else:
        parameters = checked_parameters(keys, "workload generate", format_key=option_name)
    lines = _write_generated(parameters, output, generator, force=force)
    if not quiet:
        console().print("\n".join(lines))


def _write_generated(parameters: GeneratorKeys, output: Path, generator: Path | None, *, force: bool) -> list[str]:
    """Generate from checked keys, write it, and return what was written, in words."""
    kind_of = generator_of(parameters)
    inputs = [generator, *kind_of.input_files(parameters)]
    if isinstance(parameters, WrittenKeys):
        check_targets({"-o": parameters.written(output)}, inputs, force=force)
        return parameters.write(output, force=force)
    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: tasks are written as .csv.")
    check_targets({"-o": [output]}, inputs, force=force)
    made = kind_of.generate(parameters)
    assert isinstance(made, Tasks)  # only keys of systems make more
    write_bag(made, output, force=force)
    return [f"Wrote {output}: {counted(len(made), 'task')}."]


def _check_has_utility(system: SystemWorkload) -> None:
    """Refuse a system whose tasks have no utility functions: its files have other columns."""
    if system.tasks.utility is None:
        raise InputError(
            f"{system.tasks.name}: the tasks have no utility functions to write. Use it as "
            f"--workload of a run; 'gridsched optimize' shows its machines."
        )


@workload_app.command()
@with_log_options
def describe(
    options: LogOptions,
    workload: Annotated[
        Path,
        typer.Argument(
            metavar="WORKLOAD", help=f"Bag of tasks (.csv), generator (.toml) or trace of jobs ({endings()}; also .gz)."
        ),
    ],
    files: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Input files of tasks (file,size_bytes,location).")
    ] = None,
    power: Annotated[
        str | None,
        typer.Option(
            metavar="W:W:W", help=("Power of a node, IDLE:EPSILON:BUSY [W], beside the measured power of a log's jobs.")
        ),
    ] = None,
    plot: Annotated[Path | None, plot_option("sizes and arrivals")] = None,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print statistics of a workload, and draw its sizes and submissions or its arrivals.

    Examples
    --------
    gridsched workload describe examples/ex_a.csv

    gridsched workload describe examples/bag.toml --plot sizes.png

    gridsched workload describe examples/utility_small.toml --plot day.png

    gridsched workload describe examples/four_nodes.swf --procs-per-node 2
    """
    if files is not None and workload.suffix.lower() == ".toml":
        raise InputError(f"{workload}: --files goes with a CSV workload, not with a generator.")
    check_targets({"--plot": figure_files(plot)}, [*input_files(workload), files], force=force)
    jobs = described_jobs(workload, options.trace)
    if power is not None and jobs is None:
        raise InputError(f"{workload}: --power has no effect: this workload is not a trace. Leave it out.")
    system = None if jobs is not None else read_system_workload(workload)
    subject: JobTable | Tasks | SystemWorkload
    of: Subject
    if jobs is not None:
        statistics = statistics_of_jobs(jobs, options.trace, power)
        name, kind, of, subject = jobs.name, "jobs", "jobs", jobs
    elif system is None:
        tasks = read_workload(workload, files=files)
        statistics = task_statistics(tasks)
        name, kind, of, subject = tasks.name, "sizes", "tasks", tasks
    else:
        _check_has_utility(system)
        statistics = system_statistics(system)
        name, kind, of, subject = system.tasks.name, "overview", "system", system
    if plot is not None:
        from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load

        draw_figure(kind, of, subject, plot, title=name, force=force)
    if json:
        put_json(statistics.as_dict())
    elif not quiet:
        out = console()
        _print_statistics(out, statistics, name)
        if jobs is not None:
            print_energy(out, statistics.rows.get("energy", ()))
            print_rest(out, jobs)
        if plot is not None:
            out.print(f"Figure: {plot}")


def _print_statistics(out: Console, statistics: WorkloadStatistics, title: str) -> None:
    """Print the numbers of a workload, and clusters, arrivals and matrices of a system."""
    print_values(out, statistics.named(), title)
    if statistics.parallel is not None:
        print_values(out, statistics.parallel.named())
        for note in statistics.parallel.rows["notes"]:
            out.print(note[:1].upper() + note[1:] + ".")
        out.print()
        print_table(out, _CLUSTERS, statistics.parallel.rows["clusters"], "Clusters")
    if "arrivals" not in statistics.rows:
        return
    out.print()
    print_table(out, _ARRIVALS, statistics.rows["arrivals"], "Arrivals")
    for matrix, title in (("etc", "ETC [s]"), ("apc", "APC [W]"), ("eec", "EEC [J]")):
        rows = [row for row in statistics.rows["matrices"] if row["matrix"] == matrix]
        out.print()
        print_table(out, _MATRICES, rows, title)
