"""TOML, CSV and Markdown that nobody vouches for."""

from __future__ import annotations

import csv
import io

import pytest

from gridsched.analysis.texts import markdown_row, markdown_text
from gridsched.errors import InputError
from gridsched.files.csv_files import csv_text
from gridsched.files.toml_files import parse_toml


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
    assert [row[0] for row in quoted[1:]] == [
        "'=1+1", "'@x", "'+x()", "'-x", "-1.5", "+3", "-1e-5", "a=b", "'\tx"
    ]  # fmt: skip
    assert {row[1] for row in quoted[1:]} == {"-1.5"}
    plain = list(csv.reader(io.StringIO(csv_text(columns))))
    assert [row[0] for row in plain[1:]] == cells


def test_markdown_has_no_html():
    """Neither a script nor a cell of another's making."""
    assert markdown_text("a <script>x</script>\n# b") == "a &lt;script>x&lt;/script> # b"
    assert markdown_row(["a|b", "<i>"]) == "| a\\|b | &lt;i> |"
