"""Write a study's report: one HTML page, and beside it a folder of figures, tables and data."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image  # matplotlib needs it, too

from gridsched.analysis.agreement import agreement_frame, agreement_table
from gridsched.analysis.rankings import rankings
from gridsched.analysis.study_results import StudyResults
from gridsched.campaign.row_table import SERIES_PREFIX
from gridsched.errors import InputError
from gridsched.figures.figure_file import FORMATS, file_contents
from gridsched.figures.figure_style import style
from gridsched.figures.study_figure import MAX_PAGES, Layout, layout_of, study_figures
from gridsched.files.output_files import FolderKind, check_writable, write_whole
from gridsched.metrics import METRICS
from gridsched.metrics.group_metrics import JOBS, columns_of
from gridsched.page import ranking_tables, study_tables
from gridsched.page.printing import page_html
from gridsched.page.report_files import Link, ReportFiles, ShownTable

#: Return the page's claims, and the tables of readings; called with the report's files.
ClaimsSection = Callable[[ReportFiles], dict[str, Any]]
ReadingsSection = Callable[[ReportFiles], list[ShownTable]]
#: Width and number of colors of the figures on the page; the files beside it have more.
_PAGE_PIXELS, _PAGE_COLOURS = 1400, 64
#: The page's sections: anchor -> heading.
HEADINGS = {
    "answers": "Answers",
    "run": "What was run",
    "readings": "Readings",
    "figures": "Figures",
    "claims": "Claims",
    "tables": "Tables",
    "groups": "Groups of jobs",
    "agreement": "Both drivers",
    "failed": "Failed runs",
    "provenance": "Provenance",
}
#: Endings of a figure's files, in the order in which the page names them.
_ENDINGS = (*FORMATS, ".csv")
#: The folder beside the page; it lists its files, so that nothing else is ever removed.
REPORT_FILES = FolderKind("a report", "files.txt")


def write_report(
    results: StudyResults,
    page: Path,
    *,
    claims: ClaimsSection | None = None,
    readings: ReadingsSection | None = None,
    force: bool = False,
) -> Path:
    """Write the report of a study.

    Parameters
    ----------
    results : StudyResults
    page : Path
        The HTML file.
    claims, readings : callable, optional
        Make these sections, and put their files among those that they receive;
        `gridsched.reproduction.claims_report` has both.
    force : bool
        Replace the page and the files beside it.

    Returns
    -------
    Path
        Folder of figures and data: the page's name with ``_files`` for its ending.

    Raises
    ------
    InputError
        If something exists and `force` is not given, or cannot be written.
    """
    folder = files_folder(page)
    check_report_target(page, force=force)
    files = ReportFiles(folder.name)
    html = _page(results, files, claims, readings)
    REPORT_FILES.write(folder, files.contents, force=force)
    write_whole(page, html, force=force)
    return folder


def files_folder(page: Path) -> Path:
    """Return the folder beside a report's page."""
    return page.with_name(f"{page.stem}_files")


def check_report_target(page: Path, *, force: bool = False) -> None:
    """Raise `InputError` where a report could not be written; `force` allows to replace one."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{page}: a report is an .html file.")
    check_writable(page, force=force)
    REPORT_FILES.check(files_folder(page), force=force)


def _page(
    results: StudyResults, files: ReportFiles, claims: ClaimsSection | None, readings: ReadingsSection | None
) -> str:
    """Return the page; put the files beside it into `files`."""
    study, has_runs = results.study, len(results.shown) > 0
    left_out = [name for name in results.runs if name.startswith(SERIES_PREFIX)]
    all_runs = files.put_frame("runs.csv", results.runs.drop(columns=["scenario", "provenance", *left_out]))
    agreement = agreement_frame(results)
    layout = layout_of(results)
    answers = rankings(results) if has_runs else []
    content: dict[str, Any] = {
        "answers": [ranking_tables.ranking_words(each) for each in answers],
        "constants": study_tables.constants_text(results) if has_runs else [],
        "readings": readings(files) if readings else [],
        "figures": _figures(results, layout, files) if has_runs else {},
        "claims": claims(files) if claims else None,
        "tables": list(_tables(results, files)) if has_runs else [],
        "groups": list(_group_tables(results, files)) if has_runs and len(results.groups) else [],
        "agreement": files.table("agreement", agreement_table(agreement), agreement) if len(agreement) else None,
        "failed": files.table("failures", study_tables.failure_table(results)) if len(results.failed) else None,
        "provenance": files.table("provenance", study_tables.provenance_table(results)),
    }
    is_answered = content["answers"] or content["constants"] or claims
    is_there = {**content, "run": True, "figures": has_runs, "answers": is_answered}
    return page_html(
        "report.html",
        **content,
        title=study.title or study.name,
        subtitle=study.source or (f"Study {study.name}" if study.title else ""),
        headings={anchor: heading for anchor, heading in HEADINGS.items() if is_there[anchor]},
        answers_note=ranking_tables.rankings_note(results) if answers else "",
        answer_tables=[
            files.table(f"answer-{each.metric}", ranking_tables.ranking_table(each), ranking_tables.ranking_frame(each))
            for each in answers
        ],
        facts=_facts(results),
        is_incomplete=len(results.finished) < len(results.runs),
        warnings=[*results.damage, *filter(None, [results.withheld])],
        baseline=study_tables.baseline_text(results),
        axes=files.table("axes", study_tables.axes_table(results)),
        all_runs=all_runs,
        notes=_notes(results, layout) if has_runs else [],
        study_text=study.document.text,
    )


def _facts(results: StudyResults) -> list[tuple[str, str, bool]]:
    """Return figures for boxes: what, value, and whether it is bad news."""
    failed, finished = len(results.failed), len(results.finished)
    missing = len(results.runs) - failed - finished
    return [
        ("runs of the study", f"{len(results.runs):,}", False),
        ("finished", f"{finished:,}", finished == 0),
        ("failed", f"{failed:,}", failed > 0),
        ("missing", f"{missing:,}", missing > 0),
        ("replicates", str(results.study.replicates), False),
        ("baseline", results.baseline, False),
    ]


@dataclass(frozen=True)
class _Shown:
    """A figure as the page shows it: its image in base64, and its files."""

    caption: str
    image: str
    files: list[Link]
    is_narrow: bool


def _notes(results: StudyResults, layout: Layout) -> list[str]:
    """Return what is not drawn, and why."""
    notes = [
        f"{', '.join(METRICS[each].name for each in same)}: not drawn, equal to "
        f"{METRICS[name].name.lower()} within 1e-6."
        for name, same in results.distinct_metrics.items()
        if same
    ]
    count = len(layout.combinations)
    if count > MAX_PAGES and not results.study.figures:
        notes.append(
            f"The first {MAX_PAGES} of {count} combinations of "
            f"{', '.join(layout.pages)} are drawn; the tables hold all."
        )
    return notes


def _figures(results: StudyResults, layout: Layout, files: ReportFiles) -> dict[str, list[_Shown]]:
    """Save the figures in every format with their data; return them by their headings."""
    groups: dict[str, list[_Shown]] = {}
    with style():
        for heading, plotted in study_figures(results, layout):
            contents = file_contents(plotted, FORMATS)
            links = [files.put(f"{plotted.name}{end}", contents[end]) for end in _ENDINGS]
            png = contents[".png"]
            assert isinstance(png, bytes)  # the data alone are text
            image = base64.b64encode(_small_png(png)).decode("ascii")
            is_narrow = plotted.figure.bbox.width < 8 * plotted.figure.dpi
            shown = _Shown(plotted.caption, image, links, is_narrow)
            groups.setdefault(heading, []).append(shown)
    return groups


def _small_png(image: bytes) -> bytes:
    """Return a PNG for the page: not wider than `_PAGE_PIXELS`, of few colors."""
    picture = Image.open(io.BytesIO(image)).convert("RGB")
    if picture.width > _PAGE_PIXELS:
        height = round(picture.height * _PAGE_PIXELS / picture.width)
        picture = picture.resize((_PAGE_PIXELS, height), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    picture.quantize(_PAGE_COLOURS, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _tables(results: StudyResults, files: ReportFiles) -> Iterator[ShownTable]:
    """Yield the tables of the metrics that vary; those that do not are described in words."""
    for metric in results.metrics:
        if metric in results.constant_metrics:
            continue
        means = study_tables.mean_frame(results, metric)
        yield files.table(f"means-{metric}", study_tables.mean_table(results, metric, means), means)
        is_compared = len(results.labels) > 1 and metric in results.distinct_metrics
        if is_compared and not METRICS[metric].is_share:
            differences = study_tables.difference_frame(results, metric)
            if differences["mean"].notna().any():  # nothing is above a baseline of 0 by a share
                table = study_tables.difference_table(results, metric, differences)
                yield files.table(f"differences-{metric}", table, differences)


def _group_tables(results: StudyResults, files: ReportFiles) -> Iterator[ShownTable]:
    """Yield the tables of what groups of jobs received; the rows of all of them are in ``groups.csv``."""
    groups = results.groups
    every = files.put_frame("groups.csv", groups)
    for by, rows in groups.groupby("group_by", sort=False):
        for column in columns_of(rows.dropna(axis="columns", how="all").to_dict("records")):
            if column is not JOBS:
                frame = study_tables.group_frame(results, by, column)
                table = study_tables.group_table(results, by, column, frame)
                shown = files.table(f"groups-{by}-{column.key}", table, frame)
                yield replace(shown, files=(every, *shown.files))
