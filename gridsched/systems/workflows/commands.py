"""``gridsched workflow``: workflows of others as tables of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridsched.cli.options import command_group
from gridsched.cli.output import ForceOption, QuietOption, output_option, put, warn
from gridsched.errors import counted
from gridsched.files.output_files import temporary_folder
from gridsched.systems.workflows.foreign_workflows import read_foreign
from gridsched.systems.workflows.recorded_tasks import SeveralCores
from gridsched.workloads.load import read_workload

workflow_app = command_group()


@workflow_app.callback()
def _group() -> None:
    """Read workflows in other formats."""


@workflow_app.command("import")
def import_workflow(
    workflow: Annotated[
        Path, typer.Argument(metavar="FILE", help="WfFormat 1.4 to 1.6 (.json), DAX (.dax, .xml) or DOT (.dot, .gv).")
    ],
    output: Annotated[Path, output_option(help="The workflow (.toml); its two tables are written beside it.")],
    reference_speed: Annotated[
        float | None,
        typer.Option(
            metavar="F",
            help="Speed of a core of the machine on which run times were measured [flop/s]; default: its clock rate, "
            "if the file contains it.",
        ),
    ] = None,
    inputs_from: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Host that sends the files that no task makes; default: they are not sent."),
    ] = None,
    several_cores: Annotated[
        SeveralCores,
        typer.Option(
            help="How to import a task that ran on several cores. work: one core does the work of all; time: one "
            "core takes its run time; parallel: it takes as many cores of one host; refuse: an error."
        ),
    ] = "work",
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Convert a workflow in WfFormat, DAX or DOT to a table of tasks and a table of edges.

    Examples
    --------
    gridsched workflow import examples/diamond.dax --reference-speed 4.2e9 -o diamond.toml
    """
    found = read_foreign(workflow, reference_speed, inputs_from, several_cores)
    with temporary_folder() as folder:  # what would not read back is not written
        found.write(folder / "workflow.toml")
        read_workload(folder / "workflow.toml")
    written = found.write(output, force=force)
    if not quiet:
        warn(f"{workflow}: {note}" for note in found.notes)
        put(
            f"Wrote {counted(len(found.tasks['id']), 'task')} and {counted(len(found.edges), 'edge')}: "
            f"{', '.join(map(str, written))}"
        )
