"""The claims of the shipped studies beside what was published of them: counts, and one figure.

``python docs/generated_tables.py`` writes both into the documents. Our numbers and their verdicts come
from the files ``studies/**/*claims.md``, the claims from the studies.
"""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gridsched.analysis.statistics import Interval
from gridsched.figures.figure_style import style
from gridsched.metrics import METRICS
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
from gridsched.reproduction.claims_report import APART, OF_THE_PAPER, is_set_after
from gridsched.reproduction.claims_report import counts_text as counts_of_findings
from gridsched.runs.claims_schema import Claim
from gridsched.runs.study_claims import read_claims, shipped_claims_file
from gridsched.runs.study_document import StudyDocument, read_document, shipped_study_file

DOCS = Path(__file__).resolve().parent
FIGURE = DOCS / "reproduction" / "claims-with-a-number.png"
_TITLE = re.compile(r"# (\S+): the paper's claims beside our runs")
_OURS = re.compile(r"(\S+)(?: \\?\[(\S+), (\S+)\])?")
_PAPER = re.compile(r"[Pp]aper (\d{3})")


@dataclass(frozen=True)
class Published:
    """A claim of a study, our number and its verdict as published; nan where there is none yet."""

    study: str
    paper: str
    claim: Claim
    ours: Interval
    verdict: str

    @property
    def finding(self) -> Finding:
        """What was found, as a judged study has it."""
        return Finding(self.claim, self.ours, "", self.verdict)

    @property
    def system(self) -> str:
        """Which of the two systems of paper 001 it is of; empty for what the papers print."""
        return "oversubscribed" if "oversubscribed" in self.study else ""


def published_claims() -> dict[str, list[Published]]:
    """Return the claims of each shipped study of which anything was published."""
    found = {}
    for path in sorted(DOCS.glob("studies/**/*claims.md")):
        text = path.read_text(encoding="utf-8")
        title = _TITLE.match(text)
        if title is None:
            raise ValueError(f"{path}: its first line names no study.")
        document = _document(title[1])
        if document.content.readings is not None:
            continue
        numbers = _published_numbers(text)
        origin = _PAPER.search(document.content.source)
        found[title[1]] = [
            Published(title[1], origin[1] if origin else "", claim, *numbers.get(claim.id, _NONE))
            for claim in read_claims(shipped_claims_file(document))
        ]
    return found


def _document(study: str) -> StudyDocument:
    return read_document(shipped_study_file(study))


_NONE = Interval(math.nan, math.nan, math.nan, 0), NO_DATA


def _published_numbers(text: str) -> dict[str, tuple[Interval, str]]:
    """Return our numbers and their verdicts by claim, of a file of claims."""
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    ours, verdict = rows[0].index("ours"), rows[0].index("verdict")
    found = {}
    for row in rows[1:]:
        number = _OURS.fullmatch(row[ours])
        if number is not None and number[1] != "-":
            ends = [math.nan if part is None else float(part) for part in number.groups()]
            found[row[0]] = Interval(*ends, 0), row[verdict].strip("*")
    return found


# ---------------------------------------------------------------------- counts


def counts_text(study: str) -> str:
    """Return the counts of one study in words."""
    return counts_of_findings([each.finding for each in published_claims()[study]]) + ".\n"


def counts_list(paper: str) -> str:
    """Return the counts of the studies of one paper, or of no paper's, as a list."""
    lines = [
        f"- `{study}`: {counts_text(study)}" for study, claims in published_claims().items() if claims[0].paper == paper
    ]
    return "".join(lines)


def counts_rows() -> list[list[str]]:
    """Return for each study how many of each kind are reproduced, and how the others ended."""
    rows = []
    for study, claims in sorted(published_claims().items(), key=lambda item: _order(item[1])):
        verdicts = [each.verdict for each in _of_the_paper(claims, set_after=False)]
        rows.append(
            [
                claims[0].paper or "-",
                f"`{study}`",
                *_kind_cells(claims),
                *(str(verdicts.count(verdict) or "") for verdict in VERDICTS[1:]),
                *_apart_cells(claims),
                *(_share([each for each in claims if each.claim.kind == kind]) for kind in APART),
            ]
        )
    return rows


def _of_the_paper(claims: Sequence[Published], *, set_after: bool) -> list[Published]:
    """Return the paper's claims with a tolerance set after own runs had been seen, or before."""
    return [each for each in claims if each.claim.kind in OF_THE_PAPER and is_set_after(each.finding) == set_after]


def _kind_cells(claims: Sequence[Published]) -> list[str]:
    before = _of_the_paper(claims, set_after=False)
    return [_share([each for each in before if each.claim.kind == kind]) for kind in OF_THE_PAPER]


def _apart_cells(claims: Sequence[Published]) -> list[str]:
    """Return what was reproduced by tolerances set after, and what of all that is far off."""
    far_off = sum(each.finding.is_far_off for each in claims if each.claim.kind in OF_THE_PAPER)
    return [_share(_of_the_paper(claims, set_after=True)), str(far_off or "")]


def _share(claims: Sequence[Published]) -> str:
    reproduced = sum(each.verdict == REPRODUCED for each in claims)
    return f"{reproduced} of {len(claims)}" if claims else ""


#: Systems that a paper's claims are of, and how a table calls them.
_SYSTEMS = {"": "", "oversubscribed": ", the system that its figure 8 implies"}
#: What is counted beside the kinds.
APART_HEADER = ("set after", f"over {FAR_OFF_PERCENT:g} % off")
#: Header of `counts_rows`.
COUNTS_HEADER = ("paper", "study", *OF_THE_PAPER.values(), *VERDICTS[1:], *APART_HEADER, *APART.values())
#: Header of `paper_rows`.
PAPERS_HEADER = ("paper", *OF_THE_PAPER.values(), *APART_HEADER, "theorems", "study")


def paper_rows(links: Mapping[str, tuple[str, str]]) -> list[list[str]]:
    """Return for each paper how many claims of each kind its studies reproduce.

    Parameters
    ----------
    links : Mapping
        By the paper's number: what it is of, and the page of its main study.
    """
    claims = [each for of_study in published_claims().values() for each in of_study]
    rows = []
    for (paper, (title, page)), system in itertools.product(links.items(), _SYSTEMS):
        of_row = [each for each in claims if (each.paper, each.system) == (paper, system)]
        if not of_row:
            continue
        theorems = _share([each for each in of_row if each.claim.kind == "theorem"])
        cells = [*_kind_cells(of_row), *_apart_cells(of_row), theorems]
        rows.append([f"{paper}: {title}{_SYSTEMS[system]}", *cells, f"[{Path(page).stem}]({page})"])
    return rows


def systems_rows(study: str) -> list[list[str]]:
    """Return the numbers of a study of paper 001 in both systems, as printed and oversubscribed."""
    claims = published_claims()
    pairs = zip(claims[study], claims[f"{study}_oversubscribed"], strict=True)
    return [
        [
            f"{printed.claim.id}: {printed.claim.text}",
            f"{printed.claim.paper:g} {printed.claim.unit}".rstrip(),
            _number_cell(printed),
            _number_cell(other),
        ]
        for printed, other in pairs
        if printed.claim.kind == "number"
    ]


def _number_cell(each: Published) -> str:
    verdict = each.verdict if each.verdict == REPRODUCED else f"**{each.verdict}**"
    off_by = f"{each.finding.off_by_percent:+.0f} %"
    after = ", set after" if is_set_after(each.finding) else ""
    return f"{each.ours.mean:.1f} [{each.ours.low:.1f}, {each.ours.high:.1f}], off by {off_by}, {verdict}{after}"


#: What the readings of a study are, of which nothing counts among the paper's claims: their numbers, as published.
READINGS = DOCS / "studies" / "parallel" / "pstate-readings.md"
#: Reading -> how its table calls it.
READINGS_HEADER = {
    "cluster": "one factor",
    "quantity": "power, time",
    "pstate": "each P-state",
    "quantity_and_pstate": "each of both",
}


def readings_rows() -> list[list[str]]:
    """Return the numbers of each reading of paper 001's P-states; after those that choose, their sums of squares."""
    numbers = _published_numbers(READINGS.read_text(encoding="utf-8"))
    rows: dict[str, list[str]] = {}
    squares = dict.fromkeys(READINGS_HEADER, 0.0)
    judging: dict[str, list[str]] = {}
    for claim in read_claims(shipped_claims_file(_document("parallel_pstates"))):
        reading, figure, name = claim.id.split("-", 2)
        ours, verdict = numbers[claim.id]
        cell = f"{ours.mean:.1f} [{ours.low:.1f}, {ours.high:.1f}]"
        if chooses := is_set_after(Finding(claim, ours, "", verdict)):
            assert claim.paper is not None
            percent = 100.0 / claim.paper if claim.unit == "GJ" else 1.0
            squares[reading] += (percent * (ours.mean - claim.paper)) ** 2
        start = [figure, claim.text, f"{claim.paper:g} {claim.unit}"]
        (rows if chooses else judging).setdefault(f"{figure}-{name}", start).append(cell)
    least = min(squares.values())
    sums = [f"**{each:.0f}**" if each == least else f"{each:.0f}" for each in squares.values()]
    return [*rows.values(), ["8", "sum of squared distances", "0", *sums], *judging.values()]


def _order(claims: Sequence[Published]) -> tuple[bool, str, str]:
    return not claims[0].paper, claims[0].paper, claims[0].study


# ---------------------------------------------------------------------- the figure

_LOOKS = {
    REPRODUCED: ("o", "#1b6e3c", "#1b6e3c"),
    DIRECTION: ("^", "#b8860b", "#b8860b"),
    MISSED: ("X", "#a3291b", "#a3291b"),
    NOT_DISTINGUISHABLE: ("D", "#4a6785", "white"),
}
#: Size of a mark whose tolerance was set after own runs had been seen, and of all others [points].
_SMALL, _LARGE = 3.5, 6.0
#: With fewer claims of one unit than these a panel of its own would be empty.
_MIN_CLAIMS, _COLUMNS = 5, 4


def numbers() -> list[Published]:
    """Return the claims whose number a paper prints, and of which we have one."""
    return [
        each
        for claims in published_claims().values()
        for each in claims
        if each.claim.kind == "number" and each.verdict != NO_DATA
    ]


def data_frame() -> pd.DataFrame:
    """Return what the figure shows."""
    return pd.DataFrame(
        [
            {
                "paper": each.paper,
                "study": each.study,
                "claim": each.claim.id,
                "unit": each.claim.unit,
                "printed": each.claim.paper,
                "ours": each.ours.mean,
                "low": each.ours.low,
                "high": each.ours.high,
                "off_by_percent": each.finding.off_by_percent,
                "tolerance_set": each.claim.ground.set,
                "verdict": each.verdict,
            }
            for each in numbers()
        ]
    )


def draw(path: Path) -> None:
    """Draw each number of a paper against ours, and write the data beside it.

    Parameters
    ----------
    path : Path
        Of the PNG.
    """
    groups: dict[str, list[Published]] = {}
    for each in numbers():
        groups.setdefault(_panel(each), []).append(each)
    few = [each for group in groups.values() if len(group) < _MIN_CLAIMS for each in group]
    panels = {name: group for name, group in sorted(groups.items()) if len(group) >= _MIN_CLAIMS}
    lines = math.ceil(len(panels) / _COLUMNS)
    heights = [3.5 * lines, 0.28 * len(few) + 1.0]
    with style():
        figure = plt.figure(figsize=(13, sum(heights)), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=heights)
        places = above.subplots(lines, _COLUMNS, squeeze=False).ravel()
        for axes, (name, group) in zip(places, panels.items(), strict=False):
            _draw_panel(axes, name, group)
        for axes in places[len(panels) :]:
            axes.set_axis_off()
        _draw_ratios(below.subplots(), few)
        figure.legend(
            handles=[
                Line2D([], [], marker=marker, color=edge, markerfacecolor=fill, ls="", label=label)
                for label, (marker, edge, fill) in _LOOKS.items()
            ],
            loc="outside upper center",
            ncols=len(_LOOKS),
            frameon=False,
        )
        figure.savefig(path, dpi=110, metadata={"Software": None})
        plt.close(figure)
    data_frame().to_csv(path.with_suffix(".csv"), index=False, float_format="%.6g")


def _panel(each: Published) -> str:
    """Return what a panel holds: numbers of one system in one unit, differences apart."""
    claim = each.claim
    if along := claim.ours.arguments.get("along"):
        what, unit = f"best {along.replace('_', ' ')}", ""
    else:
        name = METRICS[claim.ours.metric].name.lower().removeprefix("window ")
        what = f"{name}, {'difference' if claim.ours.is_difference else 'value'}"
        unit = f" [{claim.unit}]" if claim.unit else ""
    return f"{each.paper}{each.system and f', {each.system}'}: {what}{unit}"


def _points(axes: Axes, x: float, y: float, ours: Interval, each: Published, *, along_x: bool) -> None:
    marker, edge, fill = _LOOKS[each.verdict]
    size = _SMALL if is_set_after(each.finding) else _LARGE
    if not math.isnan(ours.low):
        half = [[ours.mean - ours.low], [ours.high - ours.mean]]
        bars = {"xerr": half} if along_x else {"yerr": half}
        axes.errorbar(x, y, **bars, color=edge, lw=1.1, zorder=2)
    axes.plot(x, y, marker, color=edge, markerfacecolor=fill, ms=size, alpha=0.9, zorder=3)


def _draw_panel(axes: Axes, name: str, group: Sequence[Published]) -> None:
    """Ours over the paper's; on the line they are equal."""
    for each in group:
        assert each.claim.paper is not None
        _points(axes, each.claim.paper, each.ours.mean, each.ours, each, along_x=False)
    values = [(each.claim.paper, each.ours.mean, each.ours.low, each.ours.high) for each in group]
    low, high = np.nanmin(values), np.nanmax(values)
    margin = 0.06 * (high - low)
    ends = (low - margin, high + margin)
    axes.plot(ends, ends, color="#888888", lw=0.9, zorder=1)
    axes.set(xlim=ends, ylim=ends, aspect="equal", xlabel="paper", ylabel="ours")
    axes.set_title(name, fontsize=7.5, fontweight="normal", loc="left")


def _draw_ratios(axes: Axes, few: Sequence[Published]) -> None:
    """What is left, ours over the paper's, one row a claim."""
    few = sorted(few, key=lambda each: (each.paper, each.study, each.claim.id), reverse=True)
    labels = []
    for row, each in enumerate(few):
        scale = each.claim.paper
        assert scale
        low, high = sorted((each.ours.low / scale, each.ours.high / scale))
        ours = Interval(each.ours.mean / scale, low, high, 0)
        _points(axes, ours.mean, row, ours, each, along_x=True)
        text = textwrap.shorten(each.claim.text or each.claim.id, 70, placeholder=" ...")
        is_alone = sum(other.claim.text == each.claim.text for other in few) == 1
        family = "" if is_alone else each.claim.ours.schedulers["scheduler"]
        number = f"{scale:g} {each.claim.unit}".rstrip()
        origin = ", ".join(filter(None, [each.paper, each.system]))
        labels.append(f"{origin}: {' '.join(filter(None, [text, family]))}: {number}")
    axes.axvline(1.0, color="#888888", lw=0.9)
    axes.set_yticks(range(len(few)), labels, fontsize=8)
    axes.set_title("The others", fontsize=9, fontweight="normal", loc="left")
    axes.set(xlabel="ours over the paper's number", ylim=(-0.7, len(few) - 0.3))
    axes.grid(axis="y", lw=0.3)
