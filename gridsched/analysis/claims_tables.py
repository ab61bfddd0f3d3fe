"""Findings as tables: for the screen, for Markdown, for the page and for CSV."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from gridsched.analysis.claim_statistics import STATISTICS
from gridsched.analysis.claim_values import flat
from gridsched.analysis.claims import (
    DIRECTION,
    MISSED,
    NO_DATA,
    REPRODUCED,
    Finding,
)
from gridsched.analysis.texts import TextTable, axis_text, markdown_row, markdown_text

HEADER = ["claim", "what", "paper", "ours", "tolerance", "set", "verdict"]


def finding_cells(finding: Finding) -> list[str]:
    """Return the texts of `HEADER` for one finding."""
    claim = finding.claim
    where = axis_text(flat(claim.where))
    what = "; ".join(filter(None, [claim.text, where]))
    if finding.detail:
        what += f" ({finding.detail})"
    return [
        claim.id, what, _paper(finding), ours_text(finding), _tolerance(claim.tolerance),
        claim.tolerance_set, finding.verdict,
    ]  # fmt: skip


def _is_signed(finding: Finding) -> bool:
    return STATISTICS[finding.claim.statistic].is_difference


def _paper(finding: Finding) -> str:
    claim = finding.claim
    if claim.paper is None:
        return "-"
    number = f"{claim.paper:+.2f}" if _is_signed(finding) else f"{claim.paper:g}"
    return f"{number} {claim.unit}".rstrip()


def ours_text(finding: Finding) -> str:
    """Return our number with the ends of its interval."""
    ours = finding.ours
    if math.isnan(ours.mean):
        return "-"
    number = f"{ours.mean:+.2f}" if _is_signed(finding) else f"{ours.mean:.6g}"
    if not math.isnan(ours.low):
        form = "+.2f" if _is_signed(finding) else ".6g"
        number += f" [{ours.low:{form}}, {ours.high:{form}}]"
    return number


def _tolerance(tolerance: Any) -> str:
    if isinstance(tolerance, tuple):
        return f"{tolerance[0]:g} to {tolerance[1]:g}"
    if isinstance(tolerance, str):
        return tolerance
    return "-" if tolerance is None else f"±{tolerance:g}"


def counts_text(findings: Sequence[Finding]) -> str:
    """Return how many claims got which verdict, in words."""
    parts = []
    for verdict in (REPRODUCED, DIRECTION, MISSED, NO_DATA):
        number = sum(finding.verdict == verdict for finding in findings)
        if number or verdict == REPRODUCED:
            parts.append(f"{number} {verdict}")
    return f"{len(findings)} claims: {', '.join(parts)}"


def explained(findings: Sequence[Finding]) -> Mapping[str, list[Finding]]:
    """Return the findings of each explanation, in order."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.explanation:
            found.setdefault(finding.explanation, []).append(finding)
    return found


def run_ids_of(findings: Sequence[Finding]) -> list[str]:
    """Return the run ids that support findings, each once."""
    return list(dict.fromkeys(each for finding in findings for each in finding.run_ids))


def findings_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return the findings as a data frame for CSV and JSON."""
    return pd.DataFrame(
        [
            {
                "claim": f.claim.id, "text": f.claim.text, "source": f.claim.source,
                "where": axis_text(flat(f.claim.where)), "metric": f.claim.metric,
                "statistic": f.claim.statistic, "paper": f.claim.paper, "unit": f.claim.unit,
                "ours": f.ours.mean, "low": f.ours.low, "high": f.ours.high,
                "count": f.ours.count, "detail": f.detail,
                "tolerance": _tolerance(f.claim.tolerance),
                "tolerance_set": f.claim.tolerance_set, "verdict": f.verdict,
                "explanation": f.explanation, "run_ids": " ".join(f.run_ids),
                "complaint": f.complaint,
            }
            for f in findings
        ]
    )  # fmt: skip


def claims_markdown(findings: Sequence[Finding], title: str) -> str:
    """Return the findings as Markdown: the table, then explanations with their run ids."""
    lines = [f"# {markdown_text(title)}", "", f"{counts_text(findings)}.", ""]
    lines += [HOW, "", markdown_row(HEADER), "|" + "---|" * len(HEADER)]
    for finding in findings:
        cells = finding_cells(finding)
        if finding.verdict != REPRODUCED:
            cells[-1] = f"**{cells[-1]}**"
        lines.append(markdown_row(cells))
    groups = explained(findings)
    if groups:
        lines += ["", "## Why the others are missed", ""]
    for text, group in groups.items():
        ids = run_ids_of(group)
        lines += [
            f"**{', '.join(f.claim.id for f in group)}.** {markdown_text(text)}",
            "",
            f"Runs ({len(ids)}): {', '.join(f'`{each}`' for each in ids)}",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


#: What the columns mean.
HOW = (
    "*Ours*: mean (or what the claim is of: a median, a level) and 95 % interval over the "
    "replicates. *Set*: whether the tolerance was fixed before or after own runs had been seen; "
    "where it was after, *reproduced* shows that the code does what was decided, and is no "
    "independent confirmation."
)


def claims_table(findings: Sequence[Finding]) -> TextTable:
    """Return the findings as a table for the screen."""
    rows = [finding_cells(finding) for finding in findings]
    return TextTable(counts_text(findings), HEADER, rows, 2)
