"""TOML, CSV and Markdown that nobody vouches for."""

from __future__ import annotations

import csv
import html
import io

import pytest
from markdown_it import MarkdownIt

from gridsched.analysis.statistics import Interval
from gridsched.analysis.texts import markdown_row, markdown_text
from gridsched.errors import InputError
from gridsched.files.csv_files import csv_text
from gridsched.files.input_files import parse_toml
from gridsched.reproduction.claims import MISSED, Finding
from gridsched.reproduction.claims_tables import claims_markdown
from gridsched.runs.claims_schema import Claim


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a = " + "9" * 5000, "no valid TOML: Exceeds the limit"),
        ("\n" + ".".join(["a"] * 50_000) + " = 1", "line 2: a key of more than 100 parts"),
        ("[" + ".".join(['"a"'] * 50_000) + "]", "line 1: a key of more than 100 parts"),
        ("a = " + "[" * 50_000, "nest too deeply"),
        ("a = " + "[" * 300 + "]" * 300, "nest too deeply"),
        ("a = 1\na = 2", "Cannot overwrite"),
    ],
    ids=["digits", "parts", "quoted", "open", "closed", "twice"],
)
def test_toml_is_refused_in_one_line(text: str, part: str):
    """Digits, depth and parts have limits; the file is named."""
    with pytest.raises(InputError) as caught:
        parse_toml(text, "x.toml")
    assert str(caught.value).startswith("x.toml")
    assert part in str(caught.value)
    assert len(str(caught.value)) < 200


def test_usual_toml_is_read():
    """Numbers with points are no keys of many parts."""
    numbers = ", ".join(["0.5"] * 500)
    assert parse_toml(f"a.b.c = [\n{numbers}\n]", "x.toml")["a"]["b"]["c"] == [0.5] * 500


def test_no_cell_is_a_formula():
    """Texts that a spreadsheet would run get a quote; numbers and files to read back do not."""
    cells = ["=1+1", "@x", "+x()", "-x", "-1.5", "+3", "-1e-5", "a=b", "\tx"]
    columns = {"=name": cells, "value": [-1.5] * len(cells)}
    quoted = list(csv.reader(io.StringIO(csv_text(columns, for_people=True))))
    assert quoted[0] == ["'=name", "value"]
    assert [row[0] for row in quoted[1:]] == ["'=1+1", "'@x", "'+x()", "'-x", "-1.5", "+3", "-1e-5", "a=b", "'\tx"]
    assert {row[1] for row in quoted[1:]} == {"-1.5"}
    plain = list(csv.reader(io.StringIO(csv_text(columns))))
    assert [row[0] for row in plain[1:]] == cells


def test_markdown_has_no_html():
    """Neither a script nor a cell of another's making."""
    assert markdown_text("a <script>x</script>\n# b") == "a &lt;script>x&lt;/script> # b"
    assert markdown_row(["a|b", "<i>"]) == "| a\\|b | &lt;i> |"


LINKS = [
    "[x](javascript:alert(1))",
    "![x](javascript:alert(1))",
    "\\[x](javascript:alert(1))",
    "\\\\[x](javascript:alert(1))",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)",
    "`a [x](javascript:alert(1))",
    "|[x](javascript:alert(1))|",
    "\\|[x](javascript:alert(1))",
    "<a href='javascript:alert(1)'>x</a>",
    "&#91;x](javascript:alert(1))",
    "[![x](javascript:alert(1))](javascript:alert(1))",
]


@pytest.mark.parametrize("text", LINKS)
def test_claims_as_markdown_hold_no_links_of_a_study(text: str):
    """Where each text that a study brings stands; the reader of Markdown follows any scheme."""
    markdown = MarkdownIt().enable("table")
    markdown.validateLink = lambda url: True  # many a reader checks nothing
    word = "".join(text.split())
    claim = Claim(
        id=word,
        kind="number",
        source=text,
        metric="makespan_s",
        scheduler="wq",
        paper=1.0,
        tolerance=(0.0, 1.0),
        tolerance_set="before",
        tolerance_ground=text,
        text=text,
        unit=text,
    )
    finding = Finding(claim, Interval(2.0, 1.0, 3.0, 3), text, MISSED, text, ("0" * 32,))
    page = markdown.render(claims_markdown([finding], text))
    assert "alert(1)" in page
    assert "<a" not in page
    assert "<img" not in page
    rendered = markdown.render(f"{markdown_text(text)}\n\nafter [y]")
    assert "<a" not in rendered
    assert "<img" not in rendered


def test_the_text_of_markdown_is_shown_as_it_was():
    """What is escaped is read again as what stood there."""
    text = r"error [%] of a\b, <i> and c\[d] & &lt;"
    page = MarkdownIt().render(markdown_text(text))
    assert page == f"<p>{html.escape(text)}</p>\n"
