"""``gridsched study report`` and ``study claims``: what a store says, and what a paper said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from gridsched.cli.output import ForceOption, JsonOption, QuietOption, say, warn
from gridsched.cli.study import StoreArgument, study_app
from gridsched.cli.tables import console, print_trimmed
from gridsched.cli.trust import TrustOption, may_run, with_store
from gridsched.files.json_files import json_text

if TYPE_CHECKING:
    from gridsched.analysis.claims import Finding
    from gridsched.analysis.readings import Reading
    from gridsched.analysis.study_results import StudyResults
    from gridsched.analysis.texts import TextTable
    from gridsched.campaign.store import Store
    from gridsched.spec.study import Study

StudyOption = Annotated[
    str | None,
    typer.Option(
        "--study", metavar="STUDY",
        help="Study file, or a shipped study's name. Default: the study as it was run last.",
    ),
]  # fmt: skip


@study_app.command("report")
def report(
    store: StoreArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page (.html).")
    ] = Path("report.html"),
    study: StudyOption = None,
    trust: TrustOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a report of a study: one HTML page, and a folder with figures and data beside it.

    Example: `gridsched study report tiny-results -o tiny.html`

    Exit status: 0 fine, 2 bad input.
    """
    from gridsched.page.study_report import check_report_target, write_report

    check_report_target(output, force=force)
    results = load_results(store, study, trust=trust)
    findings, readings = judged(results)
    folder = write_report(results, output, findings=findings, readings=readings, force=force)
    if not quiet:
        print(f"{output}: {len(results.finished):,} of {len(results.runs):,} runs; {folder}/")


@study_app.command("claims")
def claims(
    store: StoreArgument,
    study: StudyOption = None,
    trust: TrustOption = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write them, with all run ids, to this .md, .csv or .json file.",
        ),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Set a paper's claims beside our runs: paper, ours with its interval, verdict.

    A study with [readings] is fitted on one part and tested on the other instead.

    Example: `gridsched study claims lecsa-results`

    Exit status: 0 each claim has a verdict, and each missed one an explanation with runs that
    support it, or fewer replicates than the study's; 1 otherwise; 2 bad input.
    """
    results = load_results(store, study, trust=trust)
    findings, readings = judged(results)
    if output is not None:
        _write(results, findings, readings, output, force=force)
    if json:
        print(json_text({"claims": _records(findings), "readings": _records(readings)}), end="")
    elif not quiet:
        show_claims(results, findings, readings)
    if not is_settled(results, findings):
        raise typer.Exit(1)


def load_results(path: Path, study: str | None, *, trust: bool = False) -> StudyResults:
    """Read a study's runs from a store, with as many replicates as were asked for there.

    Parameters
    ----------
    path : Path
        The store.
    study : str or None
        As `StudyOption`.
    trust : bool
        Whether policies that the store holds may be imported.
    """
    from gridsched.analysis.study_results import read_results

    def act(store: Store) -> StudyResults:
        return read_results(store, None if study is None else _chosen(study, store))

    results = with_store(path, trust, act)
    if results.withheld and may_run(f"{results.withheld}."):
        results = with_store(path, True, act)
    warn(results.damage)
    if results.withheld:
        warn([f"{results.withheld}; --trust runs it"])
    return results


def _chosen(name: str, store: Store) -> Study:
    """Return a study of the user's own, with the replicates that the store has of it."""
    from gridsched.spec.study import Study

    found = Study.find(name)
    kept = next((each for each in store.kept_studies() if each.name == found.name), None)
    return found if kept is None else found.with_replicates(kept.replicates)


def judged(results: StudyResults) -> tuple[list[Finding], list[Reading]]:
    """Return the findings of a study's claims, or the errors of its readings."""
    from gridsched.analysis.claims import judge
    from gridsched.analysis.readings import fit_readings

    if results.study.document.content.readings is not None:
        return [], fit_readings(results)
    return judge(results), []


def is_settled(results: StudyResults, findings: Sequence[Finding]) -> bool:
    """Tell of every claim that is not settled; return whether there is none.

    With fewer replicates than the study asks for, what is missed is told, and settled.
    """
    from gridsched.analysis.claims import NO_DATA

    open_ones = [finding for finding in findings if finding.complaint]
    for finding in open_ones:
        say(f"claim {finding.claim.id}: {finding.complaint}")
    run, planned = results.study.replicates, results.study.planned_replicates
    if run < planned and open_ones:
        say(f"{run} of the study's {planned} replicates: what they miss is no failure.")
        open_ones = [finding for finding in open_ones if finding.verdict == NO_DATA]
    return not open_ones


def show_claims(
    results: StudyResults, findings: Sequence[Finding], readings: Sequence[Reading]
) -> None:
    """Print findings with their explanations, or the fits of readings."""
    from gridsched.analysis.claims_tables import claims_table, explained, run_ids_of
    from gridsched.analysis.readings import readings_table

    if readings:
        for table in readings_table(results, readings):
            _print(table)
        return
    if not findings:
        print(f"The study {results.study.name!r} has no claims.")
        return
    _print(claims_table(findings))
    for text, group in explained(findings).items():
        ids = run_ids_of(group)
        shown = ", ".join(each[:8] for each in ids[:6]) + (", ..." if len(ids) > 6 else "")
        names = ", ".join(finding.claim.id for finding in group)
        console().print(Text(f"\n{names}: {text} Runs: {shown}."), soft_wrap=False)


def _print(table: TextTable) -> None:
    out = Table(box=box.SIMPLE, title=table.title, title_justify="left", title_style="bold")
    for k, name in enumerate(table.header):
        is_number = k >= table.n_labels and name not in ("verdict", "set", "kind")
        out.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in table.rows:
        out.add_row(*(Text(cell) for cell in row))
    print_trimmed(console(), out)
    if table.note:
        console().print(Text(table.note), soft_wrap=False)


def _records(items: Sequence[Finding | Reading]) -> list[dict[str, Any]]:
    from gridsched.analysis.claims import Finding
    from gridsched.analysis.claims_tables import findings_frame
    from gridsched.analysis.readings import readings_frame

    if not items:
        return []
    found = [each for each in items if isinstance(each, Finding)]
    read = [each for each in items if not isinstance(each, Finding)]
    frame = findings_frame(found) if found else readings_frame(read)
    return frame.astype(object).to_dict(orient="records")


def _write(
    results: StudyResults,
    findings: Sequence[Finding],
    readings: Sequence[Reading],
    path: Path,
    *,
    force: bool,
) -> None:
    from gridsched.analysis.claims_tables import claims_markdown
    from gridsched.analysis.readings import readings_markdown
    from gridsched.cli.output import table_file, write_rows
    from gridsched.files.output_files import write_whole

    if path.suffix.lower() == ".md":
        title = f"{results.study.name}: the paper's claims beside our runs"
        is_fit = bool(readings)
        text = readings_markdown(results, readings) if is_fit else claims_markdown(findings, title)
        write_whole(path, text, force=force)
        return
    table_file(path)
    rows = _records(readings or findings)
    write_rows(path, rows, rows, force=force)
