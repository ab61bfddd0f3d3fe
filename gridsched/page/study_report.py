"""Write a study's report: one HTML page, and beside it a folder of figures, tables and data."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import pandas as pd
from PIL import Image  # matplotlib needs it, too

from gridsched.analysis.agreement import agreement_frame, agreement_table
from gridsched.analysis.claims import Finding
from gridsched.analysis.claims_tables import (
    claims_html,
    claims_markdown,
    counts_text,
    findings_frame,
)
from gridsched.analysis.readings import Reading, readings_frame, readings_table
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import TextTable
from gridsched.campaign.row_table import SERIES_PREFIX
from gridsched.errors import InputError
from gridsched.figures.figure_file import FORMATS, file_contents, style
from gridsched.figures.study_figures import study_figures
from gridsched.figures.study_layout import MAX_PAGES, layout_of
from gridsched.figures.table import Drawn
from gridsched.files.csv_files import csv_text
from gridsched.files.output_files import check_writable, write_whole
from gridsched.files.output_folder import FolderKind
from gridsched.metrics import METRICS
from gridsched.page.study_page import (
    Part,
    details_html,
    facts_html,
    figure_html,
    page_html,
    table_html,
)
from gridsched.page.study_tables import (
    axes_table,
    difference_frame,
    difference_table,
    failure_table,
    mean_frame,
    mean_table,
    provenance_table,
)

#: Width and number of colours of the figures on the page; the files beside it have more.
_PAGE_PIXELS, _PAGE_COLOURS = 1400, 64
#: The folder beside the page; it lists its files, so that nothing else is ever removed.
REPORT_FILES = FolderKind("a report", "files.txt")


def write_report(
    results: StudyResults,
    page: Path,
    *,
    findings: Sequence[Finding] = (),
    readings: Sequence[Reading] = (),
    force: bool = False,
) -> Path:
    """Write the report of a study.

    Parameters
    ----------
    results : StudyResults
    page : Path
        The HTML file.
    findings : sequence of Finding
        The study's claims, judged.
    readings : sequence of Reading
        Errors of the readings of a study that fits them.
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
    files: dict[str, str | bytes] = {}
    html = _page(results, files, folder.name, findings, readings)
    REPORT_FILES.write(folder, files, force=force)
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


# ---------------------------------------------------------------------- the page


def _page(
    results: StudyResults,
    files: dict[str, str | bytes],
    shown_folder: str,
    findings: Sequence[Finding],
    readings: Sequence[Reading],
) -> str:
    study = results.study
    left_out = [name for name in results.runs if name.startswith(SERIES_PREFIX)]
    runs = results.runs.drop(columns=["scenario", "provenance", *left_out])
    files["runs.csv"] = _csv(runs)
    parts = [Part("run", "What was run", _what_was_run(results, findings))]
    if readings:
        files["readings.csv"] = _csv(readings_frame(readings))
        tables = [table_html(table) for table in readings_table(results, readings)]
        parts.append(Part("readings", "Readings", "\n".join(tables)))
    if len(results.shown):
        parts.append(Part("figures", "Figures", _figures(results, files, shown_folder)))
    if findings:
        files["claims.csv"] = _csv(findings_frame(findings))
        title = f"{study.name}: the paper's claims beside our runs"
        files["claims.md"] = claims_markdown(findings, title)
        parts.append(Part("claims", "Claims", claims_html(findings)))
    if len(results.shown):
        parts.append(Part("tables", "Tables", _tables(results, files, shown_folder)))
    agreement = agreement_frame(results)
    if len(agreement):
        files["agreement.csv"] = _csv(agreement)
        table = table_html(agreement_table(agreement), heading=False)
        parts.append(Part("agreement", "Both drivers", table))
    if len(results.failed):
        failures = failure_table(results)
        parts.append(Part("failed", "Failed runs", table_html(failures, heading=False)))
    parts.append(Part("provenance", "Provenance", _provenance(results)))
    return page_html(study.title or study.name, study.source or f"Study {study.name}", parts)


def _what_was_run(results: StudyResults, findings: Sequence[Finding]) -> str:
    study = results.study
    failed, finished = len(results.failed), len(results.finished)
    missing = len(results.runs) - failed - finished
    facts = [
        ("runs of the study", f"{len(results.runs):,}", False),
        ("finished", f"{finished:,}", finished == 0),
        ("failed", f"{failed:,}", failed > 0),
        ("missing", f"{missing:,}", missing > 0),
        ("replicates", str(study.replicates), False),
        ("baseline", results.baseline, False),
    ]
    text = facts_html(facts)
    if missing or failed:
        text += (
            '<p class="warn">Means and intervals below are of the finished runs alone; where '
            "some of a combination are not finished, their number stands in brackets.</p>\n"
        )
    text += "".join(f'<p class="warn">{each}</p>\n' for each in _escaped(results.damage))
    if findings:
        text += f"<p>{_escaped([counts_text(findings)])[0]}.</p>\n"
    return text + table_html(axes_table(results), heading=False)


def _escaped(texts: Sequence[str]) -> list[str]:
    return [escape(text) for text in texts]


def _provenance(results: StudyResults) -> str:
    parts = [
        table_html(provenance_table(results), heading=False),
        details_html("The study file", f"<pre>{_escaped([results.study.document.text])[0]}</pre>"),
    ]
    return "\n".join(parts)


# ---------------------------------------------------------------------- figures


def _figures(results: StudyResults, files: dict[str, str | bytes], shown_folder: str) -> str:
    layout = layout_of(results)
    parts: dict[str, list[str]] = {}
    with style():
        for heading, drawn in study_figures(results, layout):
            parts.setdefault(heading, []).append(_save(drawn, files, shown_folder))
    notes = []
    for name, same in results.distinct_metrics.items():
        if same:
            notes.append(f"{', '.join(same)}: not drawn, equal to {name} within 1e-6.")
    if layout.n_pages > MAX_PAGES and not results.study.figures:
        notes.append(
            f"The first {MAX_PAGES} of {layout.n_pages} combinations of "
            f"{', '.join(layout.pages)} are drawn; the tables hold all."
        )
    text = "".join(f'<p class="note">{each}</p>\n' for each in _escaped(notes))
    for heading, figures in parts.items():
        text += f"<h3>{escape(heading)}</h3>\n" + "\n".join(figures)
    return text


def _save(drawn: Drawn, files: dict[str, str | bytes], shown_folder: str) -> str:
    """Save a figure in every format with its data; return it as HTML."""
    contents = file_contents(drawn, FORMATS)
    files |= {f"{drawn.name}{suffix}": content for suffix, content in contents.items()}
    where = f"Files: {shown_folder}/{drawn.name}.png, .svg, .pdf; data: .csv."
    is_narrow = drawn.figure.get_figwidth() < 8
    image = _small_png(contents[".png"])
    return figure_html(image, "image/png", drawn.caption, where, is_narrow=is_narrow)


def _small_png(image: bytes) -> bytes:
    """Return a PNG for the page: not wider than `_PAGE_PIXELS`, of few colours."""
    picture = Image.open(io.BytesIO(image)).convert("RGB")
    if picture.width > _PAGE_PIXELS:
        height = round(picture.height * _PAGE_PIXELS / picture.width)
        picture = picture.resize((_PAGE_PIXELS, height), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    picture.quantize(_PAGE_COLOURS, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    return stream.getvalue()


# ---------------------------------------------------------------------- tables


def _tables(results: StudyResults, files: dict[str, str | bytes], shown_folder: str) -> str:
    return "\n".join(
        details_html(table.title, table_html(table, heading=False, csv=f"{shown_folder}/{name}"))
        for table, name in _numbered(results, files)
    )


def _numbered(
    results: StudyResults, files: dict[str, str | bytes]
) -> Iterator[tuple[TextTable, str]]:
    for metric in results.metrics:
        means = mean_frame(results, metric)
        files[f"means-{metric}.csv"] = _csv(means)
        yield mean_table(results, metric, means), f"means-{metric}.csv"
        if (
            len(results.labels) > 1
            and metric in results.distinct_metrics
            and not METRICS[metric].is_share
        ):
            differences = difference_frame(results, metric)
            files[f"differences-{metric}.csv"] = _csv(differences)
            table = difference_table(results, metric, differences)
            if differences["mean"].notna().any():  # nothing is above a baseline of 0 by a share
                yield table, f"differences-{metric}.csv"


def _csv(frame: pd.DataFrame) -> str:
    return csv_text({str(name): frame[name].to_numpy() for name in frame})
