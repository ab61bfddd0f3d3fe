"""``study report``, ``study claims`` and ``reproduce``: the content of a store, the claims of a paper."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from gridsched.cli.campaign_progress import Quiet, Screen, terminable
from gridsched.cli.output import ForceOption, JsonOption, QuietOption, one_line, output_option, put, put_json, say, warn
from gridsched.cli.tables import console, print_trimmed
from gridsched.errors import InputError, NotTrusted, counted, visible
from gridsched.long_work import long_work

if TYPE_CHECKING:
    from gridsched.analysis.study_results import StudyResults
    from gridsched.analysis.texts import TextTable
    from gridsched.campaign.store import Store
    from gridsched.reproduction.claims import Finding
    from gridsched.reproduction.readings import Reading
    from gridsched.runs.study import Study

T = TypeVar("T")
#: What `reproduce` takes in the place of a study's name: all cases with known results.
KNOWN = "known"

TrustOption = Annotated[
    bool, typer.Option("--trust", metavar="", help="Run Python files and programs that the store or study names.")
]
StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the results.")]
StudyOption = Annotated[
    str | None,
    typer.Option(
        "--study", metavar="STUDY", help="Study file, or a shipped study's name. Default: the study as it was run last."
    ),
]


def report(
    store: StoreArgument,
    output: Annotated[Path, output_option(help="The page (.html).")] = Path("report.html"),
    study: StudyOption = None,
    trust: TrustOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a report of a study: one HTML page, and a folder with figures and data beside it.

    Exit status: 0 fine, 2 bad input.

    Examples
    --------
    gridsched study report tiny-results -o tiny.html
    """
    from gridsched.page.study_report import check_report_target
    from gridsched.reproduction.claims_report import write_report

    check_report_target(output, force=force)
    results = load_results(store, study, trust=trust)
    findings, readings = judged(results)
    folder = write_report(results, output, findings, readings, force=force)
    if not quiet:
        put(f"{output}: {len(results.finished):,} of {len(results.runs):,} runs; {folder}/")


def claims(
    store: StoreArgument,
    study: StudyOption = None,
    trust: TrustOption = False,
    output: Annotated[
        Path | None, output_option(help="Also write them, with all run ids, to this .md, .csv or .json file.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare a paper's claims with our runs: paper, ours with its interval, verdict.

    A study with [readings] is fitted on one part and tested on the other part instead.

    Exit status: 0 each claim has a verdict, and each missed one an explanation with runs that
    support it, or fewer replicates than the study's; 1 otherwise; 2 bad input.

    Examples
    --------
    gridsched study claims lecsa-results
    """
    results = load_results(store, study, trust=trust)
    results.study.check_claims()
    findings, readings = judged(results)
    if output is not None:
        _write(results, findings, readings, output, force=force)
    if json:
        put_json(_records(findings, readings))
    elif not quiet:
        show_claims(results, findings, readings)
    if not is_settled(results, findings):
        raise typer.Exit(1)


def reproduce(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="A shipped study's name, or a study file; 'known': see below.")
    ],
    replicates: Annotated[
        int | None, typer.Option(help="Number of replicates, instead of the study's own.", min=1)
    ] = None,
    store: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the results; default: NAME-results.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; default: one for each CPU.", min=1)] = None,
    output: Annotated[
        Path | None, output_option(help="Page; default: NAME-report.html. Of 'known': .md, .csv, .json or .parquet.")
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With 'known': folder of the published inputs.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help=("With 'known': cases whose ids begin with this; repeatable.")),
    ] = None,
    trust: TrustOption = False,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a study, write its report, and compare its paper's claims with our runs.

    'known' is not a study: it compares our results with published ones on available inputs, and queues
    with theory. Cases whose input is not in --inputs are skipped, with the source of the input.

    If interrupted, the same command continues. Exit status: 0 fine; 1: runs failed, a claim has no
    verdict, or a missed one no explanation (no failure with fewer replicates than the study's);
    2 bad input.

    Examples
    --------
    gridsched reproduce lecsa --replicates 5

    gridsched reproduce known --inputs logs -o known.md
    """
    if study == KNOWN:
        has_no_effect = {"replicates": replicates, "store": store, "workers": workers, "trust": trust or None}
        _refuse(has_no_effect, f"reproduce {KNOWN}")
        reproduce_known(inputs, only, output, force=force, json=json, quiet=quiet)
        return
    _refuse({"inputs": inputs, "only": only, "force": force or None, "json": json or None}, f"reproduce {study}")
    from gridsched.analysis.study_results import read_results
    from gridsched.campaign.campaign import Options, run_campaign
    from gridsched.campaign.store import Store
    from gridsched.page.study_report import check_report_target, files_folder
    from gridsched.reproduction.claims_report import write_report

    design = found_study(study, trust=trust)
    if replicates is not None:
        design = design.with_replicates(replicates)
    warn(design.files.absent.values())
    design.check_claims()
    page = output or Path(f"{design.name}-report.html")
    is_ours = files_folder(page).exists()  # an earlier report may be replaced, nothing else
    check_report_target(page, force=is_ours)
    display = Quiet() if quiet else Screen(design.name)
    with Store.for_campaign(store or Path(f"{design.name}-results"), trust=trusted(design, trust)) as storage:
        storage.stored()
        warn([f"{damage}; its runs are repeated" for damage in storage.damage])
        with terminable(), display:
            run_campaign(design, storage, Options(workers), display.show)
    results = read_results(str(storage.root), design)
    findings, readings = judged(results)
    folder = write_report(results, page, findings, readings, force=is_ours)
    if not quiet:
        show_claims(results, findings, readings)
        put(f"\nReport: {page}; figures and data: {folder}/")
    if len(results.failed):
        say(f"{counted(len(results.failed), 'run')} failed; {page} lists their errors.")
    if not is_settled(results, findings) or len(results.failed):
        raise typer.Exit(1)


def _refuse(options: Mapping[str, object], where: str) -> None:
    """Raise `InputError` where an option is given that means nothing there."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name} has no effect with '{where}'; leave it out.")


def reproduce_known(
    inputs: Path | None, only: list[str] | None, output: Path | None, *, force: bool, json: bool, quiet: bool
) -> None:
    """Measure cases with known results, print them as they come, and write them.

    Parameters
    ----------
    inputs : path, optional
        Folder where inputs of others lie.
    only : list of str, optional
        Begins of the names of cases.
    output : path, optional
        File that is written: .md, .csv, .json or .parquet.
    force, json, quiet : bool
        As the options say.

    Raises
    ------
    InputError
        If the folder is not there, a name begins no case, or the file cannot be written.
    """
    from gridsched.cli.output import check_targets, table_file, write_rows
    from gridsched.files.output_files import write_whole
    from gridsched.reproduction.known.cases import outcomes
    from gridsched.reproduction.known.table import cells, chosen_cases, markdown

    is_text = output is not None and output.suffix.lower() == ".md"
    if output is not None and not is_text:
        table_file(output)
    check_targets({"-o": () if output is None else (output,)}, force=force)
    if inputs is not None and not inputs.is_dir():
        raise InputError(f"--inputs {inputs}: no such folder.")
    records, n_open = [], 0
    for outcome in outcomes(chosen_cases(only), inputs):
        record = outcome.record()
        records.append(record)
        n_open += outcome.is_open
        if not quiet and not json:
            what, *numbers = cells(record)
            console().print(Text(f"{what}: " + "  ".join(filter(None, numbers))), soft_wrap=True)
            if record["why"]:
                console().print(Text(f"    {record['why']}"), soft_wrap=True)
    if json:
        put_json(records)
    if output is not None:
        if is_text:
            write_whole(output, markdown(records), force=force)
        else:
            write_rows(output, records, records, force=force)
    if n_open:
        raise typer.Exit(1)


def may_run(what: str) -> bool:
    """Ask on a terminal whether what a store or study names may be run; elsewhere it may not."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return typer.confirm(f"gridsched: {one_line(what)} Run it?", default=False, err=True)


def with_store(path: Path, trust: bool, act: Callable[[Store], T]) -> T:
    """Do something with a store; if Python files of it have to be run, ask first.

    Raises
    ------
    NotTrusted
        If they have to, without permission.
    """
    from gridsched.campaign.store import Store

    try:
        return act(Store.open(path, trust=trust))
    except NotTrusted as error:
        if trust or not may_run(str(error)):
            raise
    return act(Store.open(path, trust=True))


def found_study(name: str, timeout_s: float | None = None, *, trust: bool) -> Study:
    """Return the study of a file, or the shipped one of that name; Python of its own is asked about.

    Raises
    ------
    NotTrusted
        If it has some, and it may not be run.
    """
    from gridsched.runs.study import Study

    try:
        return Study.find(name, timeout_s, trust=trust)
    except NotTrusted as error:
        if not may_run(str(error)):
            raise
    return Study.find(name, timeout_s, trust=True)


def trusted(study: Study, trust: bool) -> bool:
    """Whether programs that a study names may decide; on a terminal the user is asked."""
    from gridsched.campaign.kept_studies import check_programs

    try:
        check_programs(f"Study {study.name!r}", study.programs(), trust=trust)
    except NotTrusted as error:
        return may_run(str(error))
    return trust


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
    from gridsched.runs.study import Study

    design = Study.find(name, trust=store.trust)
    stored = next((each for each in store.kept_studies() if each.name == design.name), None)
    return design if stored is None else design.with_replicates(stored.replicates)


def judged(results: StudyResults) -> tuple[list[Finding], list[Reading]]:
    """Return the findings of a study's claims, or the errors of its readings."""
    from gridsched.reproduction.claims import judge
    from gridsched.reproduction.readings import fit_readings

    with long_work("measuring the claims of the study, with bootstraps for their intervals"):
        if results.study.document.content.readings is not None:
            return [], fit_readings(results)
        return judge(results), []


def is_settled(results: StudyResults, findings: Sequence[Finding]) -> bool:
    """Tell of every claim that is not settled; return whether there is none.

    With fewer replicates than the study requests, what is missed is reported, and settled.
    """
    from gridsched.reproduction.claims import NO_DATA

    open_ones = [finding for finding in findings if finding.problem]
    for finding in open_ones:
        say(f"claim {finding.claim.id}: {finding.problem}")
    run, planned = results.study.replicates, results.study.planned_replicates
    if run < planned and open_ones:
        say(f"{run} of the study's {planned} replicates: what they miss is not a failure.")
        open_ones = [finding for finding in open_ones if finding.verdict == NO_DATA]
    return not open_ones


def show_claims(results: StudyResults, findings: Sequence[Finding], readings: Sequence[Reading]) -> None:
    """Print findings with their explanations, or the fits of readings."""
    from gridsched.reproduction.claims_report import claims_table, explained, run_ids_of
    from gridsched.reproduction.readings import readings_table

    if readings:
        for table in readings_table(results, readings):
            _print(table)
        return
    if not findings:
        put(f"The study {results.study.name!r} has no claims.")
        return
    _print(claims_table(findings))
    for text, group in explained(findings).items():
        ids = run_ids_of(group)
        first = ", ".join(each[:8] for each in ids[:6]) + (", ..." if len(ids) > 6 else "")
        names = ", ".join(finding.claim.id for finding in group)
        console().print(Text(f"\n{names}: {text} Runs: {first}."), soft_wrap=False)


def _print(table: TextTable) -> None:
    out = Table(box=box.SIMPLE, title=Text(table.title), title_justify="left", title_style="bold")
    for k, name in enumerate(table.header):
        is_number = k >= table.n_labels and name not in ("verdict", "set", "kind")
        out.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in table.rows:
        out.add_row(*(Text(visible(cell)) for cell in row))
    print_trimmed(console(), out)
    if table.note:
        console().print(Text(table.note), soft_wrap=False)


def _records(findings: Sequence[Finding], readings: Sequence[Reading]) -> dict[str, list[dict[str, Any]]]:
    from gridsched.reproduction.claims_report import findings_frame
    from gridsched.reproduction.readings import readings_frame

    frames = {"claims": findings_frame(findings), "readings": readings_frame(readings)}
    return {name: each.astype(object).to_dict(orient="records") for name, each in frames.items()}


def _write(
    results: StudyResults, findings: Sequence[Finding], readings: Sequence[Reading], path: Path, *, force: bool
) -> None:
    from gridsched.cli.output import table_file, write_rows
    from gridsched.files.output_files import write_whole
    from gridsched.reproduction.claims_report import claims_markdown
    from gridsched.reproduction.readings import readings_markdown

    if path.suffix.lower() == ".md":
        title = f"{results.study.name}: the paper's claims beside our runs"
        is_fit = bool(readings)
        text = readings_markdown(results, readings) if is_fit else claims_markdown(findings, title)
        write_whole(path, text, force=force)
        return
    table_file(path)
    rows = _records(findings, readings)["readings" if readings else "claims"]
    write_rows(path, rows, rows, force=force)
