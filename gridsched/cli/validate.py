"""``gridsched validate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gridsched.cli.compare import SchedulersOption, run_each
from gridsched.cli.output import (
    ForceOption,
    JsonOption,
    OutputOption,
    QuietOption,
    check_targets,
    one_line,
    say,
    table_file,
    write_rows,
)
from gridsched.cli.scenario_options import (
    PAPER_004,
    ScenarioOptions,
    split_ids,
    with_scenario_options,
)
from gridsched.cli.tables import Column, console, print_table
from gridsched.energy import compare_energy
from gridsched.errors import GridschedError, InputError
from gridsched.export.export import read_export
from gridsched.files.json_files import json_text
from gridsched.spec.run import ENERGY_TOLERANCE, RunResult, energy_check

COLUMNS = (
    Column("scheduler", "scheduler"),
    Column("host", "host"),
    Column("role", "role"),
    Column("plugin_j", "plugin\n[{unit}]", "number", "J", "total"),
    Column("model_j", "model\n[{unit}]", "number", "J", "total"),
    Column("relative_difference", "relative\ndifference", "exponent"),
)
EPILOG = """Examples:

gridsched validate --platform platforms/ex_a.xml --workload examples/ex_a.csv
--schedulers wqr,lecsa

gridsched run --platform platforms/ex_a.xml --workload examples/ex_a.csv --export out

gridsched validate out

Exit status: 0 all agree to 1e-9 relative, 1 some differ or a run failed, 2 bad input.
"""


@with_scenario_options
def validate(
    options: ScenarioOptions,
    export: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="Folder of 'gridsched run --export'.", show_default=False
        ),
    ] = None,
    schedulers: SchedulersOption = PAPER_004,
    output: OutputOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check the model's joules against SimGrid's energy plugin, host by host.

    Either of runs made for it (options as in compare), or of an export. The model's joules come
    from the trace and the formulas alone.
    """
    check_targets({"-o": table_file(output)}, options.inputs, force=force)
    failures: list[str] = []
    if export is not None:
        if any(options.inputs):
            raise InputError("Give either DIR or --platform and --workload, not both.")
        rows = _rows_of_export(export)
    else:
        rows, failures = _rows_of_runs(options, split_ids(schedulers, options), quiet=quiet or json)
    bad = [row for row in rows if not row["relative_difference"] <= ENERGY_TOLERANCE]
    whole = {
        "tolerance": ENERGY_TOLERANCE,
        "differences": len(bad),
        "hosts": rows,
        "failures": failures,
    }
    if output is not None:
        write_rows(output, rows, whole, force=force)
    if json:
        print(json_text(whole), end="")
    elif rows and not quiet:
        out = console()
        print_table(out, COLUMNS, rows, "Energy by SimGrid's plugin and by the model")
        if not bad and not failures:
            out.print(f"All {len(rows)} rows agree to {ENERGY_TOLERANCE:g} relative.")
    for row in bad:
        say(
            f"{row['scheduler']}: host {row['host']!r}: plugin {row['plugin_j']!r} J, model "
            f"{row['model_j']!r} J, relative difference {row['relative_difference']:.3g}"
        )
    for failure in failures:
        say(f"run failed: {failure}")
    if bad or failures:
        raise typer.Exit(1)


def _rows_of_export(folder: Path) -> list[dict[str, Any]]:
    export = read_export(folder)
    if export.plugin_j is None:
        raise InputError(f"{folder}: was not made by the SimGrid driver; no plugin joules in it.")
    name = str(export.provenance.get("scheduler", ""))
    return [{"scheduler": name, **row} for row in compare_energy(export.trace, export.plugin_j)]


def _accept_any(result: RunResult) -> None:
    """Let every run pass: a difference is a row of the table here."""


def _rows_of_runs(
    options: ScenarioOptions, ids: list[str], *, quiet: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    if options.settings.get("driver") == "reference":
        raise InputError("The reference driver has no energy plugin; use --driver simgrid.")
    rows: list[dict[str, Any]] = []
    failures: list[str] = []
    for id, result in run_each(options, ids, quiet=quiet, accept=_accept_any):
        if isinstance(result, GridschedError):
            failures.append(f"{id}: {one_line(str(result))}")
        else:
            rows += [{"scheduler": id, **row} for row in energy_check(result)]
    return rows, failures
