"""``gridsched reproduce``: run a published study, report it, and judge its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridsched.cli.campaign_progress import Quiet, Screen, terminable
from gridsched.cli.output import QuietOption, say, warn
from gridsched.cli.study_report import is_settled, judged, show_claims

EPILOG = "Example: gridsched reproduce lecsa --replicates 5"


def reproduce(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="A shipped study's name, or a study file.")
    ],
    replicates: Annotated[
        int | None, typer.Option(help="Instead of the study's own number.", min=1)
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the results; default: NAME-results."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes; default: one for each CPU.", min=1)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Page; default: NAME-report.html."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Run a study, write its report, and set its paper's claims beside our runs.

    Interrupted, the same command continues. Exit status: 0 fine; 1 runs failed, a claim has no
    verdict, or a missed one no explanation (no failure with fewer replicates than the study's);
    2 bad input.
    """
    from gridsched.analysis.study_results import read_results
    from gridsched.campaign.campaign import Options, run_campaign
    from gridsched.campaign.store import Store
    from gridsched.page.study_report import check_report_target, files_folder, write_report
    from gridsched.spec.study import Study

    found = Study.find(study)
    if replicates is not None:
        found = found.with_replicates(replicates)
    warn(found.files.absent.values())
    page = output or Path(f"{found.name}-report.html")
    is_ours = files_folder(page).exists()  # an earlier report may be replaced, nothing else
    check_report_target(page, force=is_ours)
    kept = Store.create(store or Path(f"{found.name}-results"))
    kept.stored()
    warn([f"{damage}; its runs are repeated" for damage in kept.damage])
    display = Quiet() if quiet else Screen(found.name)
    with terminable(), display:
        run_campaign(found, kept, Options(workers), display.tell)
    results = read_results(str(kept.root), found)
    findings, readings = judged(results)
    folder = write_report(results, page, findings=findings, readings=readings, force=is_ours)
    if not quiet:
        show_claims(results, findings, readings)
        print(f"\nReport: {page}; figures and data: {folder}/")
    if len(results.failed):
        say(f"{len(results.failed)} runs failed; {page} lists their errors.")
    if not is_settled(results, findings) or len(results.failed):
        raise typer.Exit(1)
