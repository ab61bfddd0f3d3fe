"""What ``gridsched workload`` does with a workload that brings its machines."""

from __future__ import annotations

from pathlib import Path

from gridsched.analysis.utility_statistics import workload_statistics
from gridsched.cli.output import check_targets, figure_files, json_text
from gridsched.cli.tables import Column, console, print_table, print_values
from gridsched.errors import InputError
from gridsched.workloads.generators import generator_of
from gridsched.workloads.typed_csv_writer import file_names, write_workload_files
from gridsched.workloads.utility_day import UtilityDay

#: Statistic -> its name and unit for people.
SHOWN = {
    "tasks": ("tasks", ""),
    "horizon_s": ("simulated time", "s"),
    "tasks_per_day": ("tasks per day", ""),
    "machines": ("machines", ""),
    "machine_types": ("machine types", ""),
    "task_types": ("task types", ""),
    "pstates": ("P-states", ""),
    "offered_load": ("offered load", ""),
    "utility_classes": ("utility classes", ""),
    "utility_possible": ("utility at most", ""),
    "mean_priority": ("mean priority", ""),
    "mean_urgency": ("mean urgency", "1/unit"),
    "urgency_unit_s": ("urgency unit", "s"),
    "energy_budget_j": ("energy budget of a period", "J"),
}
_ARRIVALS = (
    Column("kind", "task types"),
    Column("task_types", "number", "figure"),
    Column("tasks", "tasks", "number"),
    Column("min_per_day", "per type and\nday: fewest", "rounded", scale="rate"),
    Column("mean_per_day", "mean", "rounded", scale="rate"),
    Column("max_per_day", "most", "rounded", scale="rate"),
)


def generate_files(
    spec: UtilityDay, output: Path, generator: Path | None, *, force: bool, quiet: bool
) -> None:
    """Write tasks, machines, ETC, APC and utility classes, and the TOML that joins them.

    Parameters
    ----------
    spec : UtilityDay
    output : Path
        CSV of the tasks; the other names begin with its stem.
    generator : Path or None
        Where `spec` comes from; never written over.
    force : bool
        Replace existing files.
    quiet : bool
        Print nothing.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: tasks are written as .csv.")
    targets = list(file_names(output).values())
    check_targets({"-o": targets}, [generator, *generator_of(spec).input_files(spec)], force=force)
    whole = generator_of(spec).generate(spec)
    settings = spec.settings_beside_files()
    paths = write_workload_files(whole.tasks, whole.types, output, settings, force=force)
    if not quiet:
        names = ", ".join(path.name for path in paths[1:-1])
        console().print(f"Wrote {output}: {len(whole.tasks):,} tasks; beside it {names}.")
        console().print(f"{paths[-1]} joins them: use it as --workload.")


def describe_system(
    spec: UtilityDay, workload: Path, plot: Path | None, *, force: bool, json: bool, quiet: bool
) -> None:
    """Print statistics of machines, task types and tasks, and draw them.

    Parameters
    ----------
    spec : UtilityDay
    workload : Path
        Where `spec` comes from; never written over.
    plot : Path or None
        Figure to draw.
    force : bool
        Replace existing files.
    json, quiet : bool
        Print JSON, or nothing.
    """
    check_targets(
        {"--plot": figure_files(plot)},
        [workload, *generator_of(spec).input_files(spec)],
        force=force,
    )
    whole = generator_of(spec).generate(spec)
    found = workload_statistics(whole)
    if plot is not None:
        from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load

        draw_figure("overview", "system", whole, plot, title=whole.tasks.name, force=force)
    if json:
        print(json_text(found), end="")
    elif not quiet:
        out = console()
        print_values(
            out, [(name, found[key], unit) for key, (name, unit) in SHOWN.items()],
            whole.tasks.name,
        )  # fmt: skip
        out.print()
        print_table(out, _ARRIVALS, found["arrivals"], "Arrivals")
        for matrix, title in (("etc", "ETC [s]"), ("apc", "APC [W]"), ("eec", "EEC [J]")):
            rows = [row for row in found["matrices"] if row["matrix"] == matrix]
            out.print()
            print_table(out, _matrix_columns(), rows, title)
        if plot is not None:
            out.print(f"Figure: {plot}")


def _matrix_columns() -> tuple[Column, ...]:
    return (
        Column("machine_types", "machine types"),
        Column("pstate", "P-state", "figure"),
        Column("entries", "entries", "number"),
        Column("mean", "mean", "number"),
        Column("cov", "cov", "rounded"),
        Column("min", "least", "number"),
        Column("max", "most", "number"),
    )
