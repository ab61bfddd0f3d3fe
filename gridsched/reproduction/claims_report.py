"""Claims as tables for the screen, Markdown, the page and CSV; and the report of a study with its claims judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from gridsched.analysis.claim_values import flat
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import TextTable, axis_text, markdown_row, markdown_text
from gridsched.errors import counted
from gridsched.page import study_report
from gridsched.page.report_files import ReportFiles, ShownTable
from gridsched.reproduction.claims import (
    DIRECTION,
    FAR_OFF_PERCENT,
    MISSED,
    NO_DATA,
    NOT_DISTINGUISHABLE,
    REPRODUCED,
    VERDICTS,
    Finding,
)
from gridsched.reproduction.readings import Reading, readings_frame, readings_table

HEADER = ["claim", "what", "kind", "paper", "ours", "off by", "tolerance", "set", "verdict"]
#: The claims of the paper, kind by kind, and those counted apart: kind -> its plural.
OF_THE_PAPER = {"number": "numbers", "order": "orders", "shape": "shapes"}
APART = {"theorem": "theorems", "driver": "our own"}


def finding_cells(finding: Finding) -> list[str]:
    """Return the texts of `HEADER` for one finding."""
    claim = finding.claim
    where = axis_text(flat(claim.ours.where))
    what = "; ".join(filter(None, [claim.text, where]))
    if finding.detail:
        what += f" ({finding.detail})"
    return [
        claim.id,
        what,
        claim.kind,
        _paper(finding),
        ours_text(finding),
        _off_by(finding),
        _tolerance(claim.tolerance),
        claim.ground.set,
        finding.verdict,
    ]


def _form(finding: Finding, unsigned: str) -> str:
    """Return how numbers of a claim are written: with their sign if it shows who has more."""
    return "+.2f" if finding.claim.ours.is_difference else unsigned


def _paper(finding: Finding) -> str:
    claim = finding.claim
    if claim.paper is None:
        return "-"
    text = f"{claim.paper:{_form(finding, 'g')}} {claim.unit}".rstrip()
    return text if claim.paper_range is None else f"{text} ({claim.paper_range[0]:g} to {claim.paper_range[1]:g})"


def ours_text(finding: Finding) -> str:
    """Return our number with the ends of its interval."""
    ours, form = finding.ours, _form(finding, ".6g")
    if math.isnan(ours.mean):
        return "-"
    return f"{ours.mean:{form}}" + ("" if math.isnan(ours.low) else f" [{ours.low:{form}}, {ours.high:{form}}]")


def _off_by(finding: Finding) -> str:
    off_by = finding.off_by_percent
    return "-" if math.isnan(off_by) else f"{off_by:+.0f} %"


def _tolerance(tolerance: Any) -> str:
    if isinstance(tolerance, tuple):
        return f"{tolerance[0]:g} to {tolerance[1]:g}"
    if isinstance(tolerance, str):
        return tolerance
    return "-" if tolerance is None else f"±{tolerance:g}"


def counts_text(findings: Sequence[Finding]) -> str:
    """Return in words how many of each kind got which verdict.

    What was judged by a tolerance set after own runs had been seen is apart, as are theorems and our own.
    """
    of_paper = [each for each in findings if each.claim.kind in OF_THE_PAPER]
    groups = {
        "": [each for each in of_paper if not is_set_after(each)],
        f"{SET_AFTER}: ": [each for each in of_paper if is_set_after(each)],
        "counted apart: ": [each for each in findings if each.claim.kind in APART],
    }
    texts = [f"{title}{_counts_of_kinds(group)}" for title, group in groups.items() if group]
    return f"{counted(len(findings), 'claim')}: {'; '.join(texts)}"


#: How claims of the paper with such a tolerance are called where they are counted apart.
SET_AFTER = "tolerance set after runs had been seen"


def is_set_after(finding: Finding) -> bool:
    """Whether what the verdict is judged by was fixed when own runs had been seen."""
    return finding.claim.ground.set == "after"


def _counts_of_kinds(findings: Sequence[Finding]) -> str:
    by_kind = {kind: [each for each in findings if each.claim.kind == kind] for kind in (OF_THE_PAPER | APART)}
    return "; ".join(f"{(OF_THE_PAPER | APART)[kind]} {_counts_of(group)}" for kind, group in by_kind.items() if group)


def _counts_of(findings: Sequence[Finding]) -> str:
    verdicts = [each.verdict for each in findings]
    details = [f"{n} {verdict}" for verdict in VERDICTS[1:] if (n := verdicts.count(verdict))]
    if far_off := sum(each.is_far_off for each in findings):
        details.insert(0, f"{far_off} of them more than {FAR_OFF_PERCENT:g} % off")
    text = f"{verdicts.count(REPRODUCED)} of {len(verdicts)} reproduced"
    return text + (f" ({', '.join(details)})" if details else "")


def explained(findings: Sequence[Finding]) -> Mapping[str, list[Finding]]:
    """Return the findings of each explanation, in order."""
    by_explanation: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.explanation:
            by_explanation.setdefault(finding.explanation, []).append(finding)
    return by_explanation


def run_ids_of(findings: Sequence[Finding]) -> list[str]:
    """Return the run ids that support findings, each once."""
    return list(dict.fromkeys(each for finding in findings for each in finding.run_ids))


def _keys_of(owner: object, *names: str) -> dict[str, Any]:
    return {name: getattr(owner, name) for name in names}


def findings_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return the findings as a data frame for CSV and JSON."""
    return pd.DataFrame(
        [
            {
                "claim": f.claim.id,
                **_keys_of(f.claim, "kind", "text", "source"),
                "where": axis_text(flat(f.claim.ours.where)),
                "metric": f.claim.ours.metric,
                "statistic": f.claim.ours.name,
                **_keys_of(f.claim, "paper", "unit"),
                "ours": f.ours.mean,
                "off_by_percent": f.off_by_percent,
                **_keys_of(f.ours, "low", "high", "count"),
                "detail": f.detail,
                "tolerance": _tolerance(f.claim.tolerance),
                "tolerance_set": f.claim.ground.set,
                "tolerance_ground": f.claim.ground.text,
                **_keys_of(f, "verdict", "explanation"),
                "run_ids": " ".join(f.run_ids),
                "problem": f.problem,
            }
            for f in findings
        ]
    )


def claims_markdown(findings: Sequence[Finding], title: str) -> str:
    """Return the findings as Markdown: the table, then explanations with their run ids."""
    lines = [f"# {markdown_text(title)}", "", f"{counts_text(findings)}.", ""]
    lines += [HOW, "", markdown_row(HEADER), "|" + "---|" * len(HEADER)]
    for finding in findings:
        cells = finding_cells(finding)
        if finding.verdict != REPRODUCED:
            cells[-1] = f"**{cells[-1]}**"
        lines.append(markdown_row(cells))
    lines += ["", "## What the tolerances are based on", ""]
    grounds: dict[str, list[str]] = {}
    for finding in findings:
        claim = finding.claim
        ground = f"*{claim.ground.set}*: {markdown_text(claim.ground.text)}"
        grounds.setdefault(ground, []).append(claim.id)
    lines += [f"- {text} ({markdown_text(', '.join(ids))})" for text, ids in grounds.items()]
    groups = explained(findings)
    if groups:
        lines += ["", f"## {WHY}", ""]
    for text, group in groups.items():
        ids = run_ids_of(group)
        lines += [
            f"**{markdown_text(', '.join(f.claim.id for f in group))}.** {markdown_text(text)}",
            "",
            f"Runs ({len(ids)}): {', '.join(f'`{each}`' for each in ids)}",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


#: Heading of the explanations.
WHY = "Why the others are missed, or undecided"
#: What the columns mean.
HOW = (
    "*Kind*: a number that the paper prints, an order, a shape; a theorem holds whatever is drawn, "
    "and what is called driver is ours, not the paper's. *Ours*: mean (or what the claim is of: "
    "a median, a level) and 95 % interval over the replicates. *Off by*: the distance of ours from the "
    "paper's number, of that number; of levels, differences and medians alike. *Set*: whether the tolerance was "
    "fixed before or after own runs had been seen; "
    "where it was after, *reproduced* shows that the code does what was decided, and is not an "
    "independent confirmation. *Not distinguishable*: the interval holds values that would be "
    "reproduced, and others that would not."
)


def claims_table(findings: Sequence[Finding]) -> TextTable:
    """Return the findings as a table for the screen."""
    rows = [finding_cells(finding) for finding in findings]
    return TextTable(counts_text(findings), HEADER, rows, 2)


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
    """Return the tables of the readings; one more file holds all their numbers."""
    files.put_frame("readings.csv", readings_frame(readings))
    tables = readings_table(results, readings)
    return [files.table(f"readings-{k}", table) for k, table in enumerate(tables, start=1)]


def _claims(name: str, findings: Sequence[Finding], files: ReportFiles) -> dict[str, Any]:
    links = files.table("claims", claims_table(findings), findings_frame(findings)).files
    text = claims_markdown(findings, f"{name}: the paper's claims beside our runs")
    problems: dict[str, list[str]] = {}
    for finding in findings:
        if finding.problem:
            shown = finding.problem[:1].upper() + finding.problem[1:]
            problems.setdefault(shown, []).append(finding.claim.id)
    return {
        "counts": counts_text(findings),
        "files": [*links, files.put("claims.md", text)],
        "how": HOW.replace("*", ""),
        "problems": problems,
        "header": HEADER,
        "rows": [(_VERDICTS[each.verdict], finding_cells(each)) for each in findings],
        "why": WHY,
        "reasons": [
            ([each.claim.id for each in group], text, [each[:12] for each in run_ids_of(group)])
            for text, group in explained(findings).items()
        ],
    }
