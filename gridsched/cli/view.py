"""``gridsched view``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridsched.cli.output import ForceOption, QuietOption, check_targets
from gridsched.cli.plot import title_of
from gridsched.export.export import read_export

VIEW_EPILOG = """Examples:

gridsched run --platform platforms/ex_a.xml --workload examples/ex_a.csv --scheduler lecsa --export lecsa

gridsched view lecsa -o lecsa.html

Exit status: 0 fine, 2 bad input.
"""
PageOption = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Page to write (.html).")]


def view(
    exports: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of 'gridsched run --export'.")],
    output: PageOption,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a page to look at a run, or at several on one time axis; needs gridsched[view]."""
    from gridsched.page.run_data import ShownRun
    from gridsched.page.run_page import run_page

    inputs = [file for folder in exports if folder.is_dir() for file in sorted(folder.iterdir())]
    check_targets({"-o": [output]}, inputs, force=force)
    read = [read_export(folder) for folder in exports]
    run_page([ShownRun(title_of(each), each.trace) for each in read]).save(output, force=force)
    if not quiet:
        print(f"Page: {output}")
