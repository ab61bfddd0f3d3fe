"""The report of a study with its claims judged, or its readings fitted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gridsched.analysis.study_results import StudyResults
from gridsched.page import study_report
from gridsched.page.printing import ReportFiles, ShownTable
from gridsched.reproduction.claims import DIRECTION, MISSED, NO_DATA, NOT_DISTINGUISHABLE, REPRODUCED, Finding
from gridsched.reproduction.claims_tables import (
    HEADER,
    HOW,
    WHY,
    claims_markdown,
    claims_table,
    counts_text,
    explained,
    finding_cells,
    findings_frame,
    run_ids_of,
)
from gridsched.reproduction.readings import Reading, readings_frame, readings_table

#: How each verdict is shown.
_VERDICTS = {
    REPRODUCED: "reproduced",
    DIRECTION: "direction",
    MISSED: "missed",
    NO_DATA: "missed",
    NOT_DISTINGUISHABLE: "undecided",
}


def write_report(
    results: StudyResults,
    page: Path,
    findings: Sequence[Finding] = (),
    readings: Sequence[Reading] = (),
    *,
    force: bool = False,
) -> Path:
    """Write the report of a study; see `gridsched.page.study_report.write_report`.

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
    """
    return study_report.write_report(
        results,
        page,
        force=force,
        claims=partial(_claims, results.study.name, findings) if findings else None,
        readings=partial(_readings, results, readings) if readings else None,
    )


def _readings(results: StudyResults, readings: Sequence[Reading], files: ReportFiles) -> list[ShownTable]:
    """Return the tables of the readings; all their numbers stand in one more file."""
    files.put_frame("readings.csv", readings_frame(readings))
    tables = readings_table(results, readings)
    return [files.table(f"readings-{k}", table) for k, table in enumerate(tables, start=1)]


def _claims(name: str, findings: Sequence[Finding], files: ReportFiles) -> dict[str, Any]:
    links = files.table("claims", claims_table(findings), findings_frame(findings)).files
    text = claims_markdown(findings, f"{name}: the paper's claims beside our runs")
    complaints: dict[str, list[str]] = {}
    for finding in findings:
        if finding.complaint:
            shown = finding.complaint[:1].upper() + finding.complaint[1:]
            complaints.setdefault(shown, []).append(finding.claim.id)
    return {
        "counts": counts_text(findings),
        "files": [*links, files.put("claims.md", text)],
        "how": HOW.replace("*", ""),
        "complaints": complaints,
        "header": HEADER,
        "rows": [(_VERDICTS[each.verdict], finding_cells(each)) for each in findings],
        "why": WHY,
        "reasons": [
            ([each.claim.id for each in group], text, [each[:12] for each in run_ids_of(group)])
            for text, group in explained(findings).items()
        ],
    }
