"""CSV and JSON files, hostile texts, scratch folders and text read line by line."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt

from gridsched.analysis.statistics import Interval
from gridsched.analysis.texts import markdown_row, markdown_text
from gridsched.drivers.simgrid_library import text_path
from gridsched.errors import InputError
from gridsched.files.csv_files import Format, Number, Table, Text, Whole, csv_text
from gridsched.files.input_files import parse_toml, read_text
from gridsched.files.json_files import canonical_text, json_text, stored_text
from gridsched.files.output_files import is_alive, temporary_folder
from gridsched.reproduction.claim_statistics import mean
from gridsched.reproduction.claims import MISSED, Finding
from gridsched.reproduction.claims_report import claims_markdown
from gridsched.runs.claims_schema import Claim, Ground
from gridsched.workloads.bag import read_bag

# The one reader of tables that people write, and the ways of writing JSON.

COLUMNS = {
    "id": Whole(0, 9),
    "name": Text(is_name=True),
    "size": Number(above=True),
    "weight": Number(default=1.5),
    "note": Text(default="none"),
}


def read(text: str) -> Table:
    """Read a text with the columns above."""
    return Format(COLUMNS).read("t.csv", text)


def test_columns_come_in_any_order_with_defaults():
    """Comments, blank lines and blanks around cells are passed over; lines stay known."""
    table = read('# a\n\nsize, name,id,weight\n 2.5 ," a ",1,\n# b\n1e3,"b,c",2,7\n')
    assert (table["id"], table["name"], table["size"]) == ([1, 2], ["a", "b,c"], [2.5, 1e3])
    assert (table["weight"], table["note"]) == ([1.5, 7.0], ["none", "none"])
    assert table.lines.tolist() == [4, 6]
    assert len(read("id,name,size\n")) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,name\n", r"t\.csv, line 1: no column 'size'; the header is id,name,size,weight,note"),
        ("id,name,size,wieght\n", "unknown column 'wieght'. Did you mean 'weight'"),
        ("id,name,size,id\n", "column 'id' appears twice"),
        ("id,name,size\n1,a\n", "line 2: 2 cells where the header has 3"),
        ('id,name,size\n1,"a,1\n', "line 2: no readable CSV"),
        ("id,name,size\n1,a,1\nx,b,1\n", "line 3: id is 'x'; it must be a whole number"),
        ("id,name,size\n10,a,1\n", "line 2: id is '10'; it must lie from 0 to 9"),
        ("id,name,size\n1,,1\n", "line 2: name is ''; a name that does not begin with '#'"),
        (f"id,name,size\n1,{'n' * 1001},1\n", "at most 1,000 characters"),
        ("id,name,size\n1,a,0\n", "line 2: size is '0'; it must be a finite number > 0"),
        ("id,name,size,weight\n1,a,1,nan\n", "weight is 'nan'; it must be a finite number >= 0"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, message: str):
    """One line: file, line, column, what was found and what is allowed."""
    with pytest.raises(InputError, match=message) as raised:
        read(text)
    assert "\n" not in str(raised.value)


def test_whole_numbers_without_a_limit_fit_64_bits():
    """What numpy cannot hold is refused."""
    assert Format({"id": Whole()}).read("t.csv", f"id\n{-(2**63)}\n")["id"] == [-(2**63)]
    with pytest.raises(InputError, match=r"line 2.*id.*9223372036854775808"):
        Format({"id": Whole(1)}).read("t.csv", f"id\n{2**63}\n")


def test_repeats_and_places():
    """Rows that are equal in some columns, and texts among known names."""
    table = read("id,name,size\n1,a,1\n2,b,1\n1,b,2\n")
    table.refuse_repeats(["id", "name"])
    with pytest.raises(InputError, match=r"line 4.*'1'.*line 2"):
        table.refuse_repeats(["id"])
    assert table.places("name", ("b", "a"), "x.csv") == [1, 0, 0]
    with pytest.raises(InputError, match=r"line 3.*'b'.*x\.csv"):
        table.places("name", ("a",), "x.csv")


def test_tables_read_back_with_every_digit():
    """Floats to the last bit, texts with commas and quotes."""
    values = [0.1 + 0.2, 1 / 3, 1e-30, 1.7976931348623157e30 / 2]
    names = ["a,b", 'c"d', "é", "x y"]
    text = csv_text({"id": np.arange(4), "name": names, "size": np.array(values)})
    table = read(text)
    assert (table["size"], table["name"]) == (values, names)


@pytest.mark.parametrize("kind", [list, lambda cells: np.array(cells, dtype=object)])
def test_what_is_missing_is_an_empty_cell(kind):
    """In columns of numbers and of texts."""
    columns = {"a": kind([1.5, np.nan]), "b": kind([None, "x"]), "c": kind(["x", np.nan])}
    assert csv_text(columns) == "a,b,c\n1.5,,x\n,x,\n"


def test_what_json_lacks():
    """Null for people, texts in stored rows, Python's words where it must read back."""
    value = {"a": math.nan, "b": (math.inf, -math.inf), 3: np.int64(4), "p": Path("x"), "v": np.array([1.5, math.nan])}
    plain = {"a": None, "b": [None, None], "3": 4, "p": "x", "v": [1.5, None]}
    assert json.loads(json_text(value)) == plain
    told = json.loads(stored_text(value))
    assert told == {**plain, "b": ["inf", "-inf"]}
    kept = json.loads(json_text(value, exact=True))
    assert kept["b"] == [math.inf, -math.inf]
    assert math.isnan(kept["a"])


def test_equal_values_have_one_canonical_text():
    """Keys are sorted, and there are no blanks."""
    assert canonical_text({"b": [1, 2.5], "a": None}) == '{"a":null,"b":[1,2.5]}'
    assert canonical_text({"x": math.inf}) == '{"x":Infinity}'


@pytest.mark.parametrize(
    ("text", "word"), [("id;flops\n1;2\n", "semicolons"), ("id\tflops\n1\t2\n", "tabs"), ("", "empty")]
)
def test_what_parts_the_cells_of_another_table_is_told(tmp_path, text: str, word: str):
    """Semicolons and tabs, which other tools write; and a file without anything."""
    path = tmp_path / "bag.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_bag(path)
    assert word in str(caught.value)


# TOML, CSV and Markdown that are not trusted.


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
    """Numbers with points are not keys of many parts."""
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
    """Where each text that a study brings is; the reader of Markdown follows any scheme."""
    markdown = MarkdownIt().enable("table")
    markdown.validateLink = lambda url: True  # many a reader checks nothing
    word = "".join(text.split())
    claim = Claim(
        id=word,
        kind="number",
        text=text,
        source=text,
        ours=mean("makespan_s", "wq"),
        tolerance=(0.0, 1.0),
        ground=Ground("before", text),
        paper=1.0,
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
    """What is escaped is read again as what was there."""
    text = r"error [%] of a\b, <i> and c\[d] & &lt;"
    page = MarkdownIt().render(markdown_text(text))
    assert page == f"<p>{html.escape(text)}</p>\n"


# Folders for temporary files: those of processes that were killed go with the next start.

#: No process has such an id: Linux' largest is 2**22.
GONE = 2**22 + 5


def test_folders_of_dead_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not those of living ones, nor what others have put there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, mine, other = (tmp_path / name for name in (f"gridsched-scratch-{GONE}-a", "gridsched-scratch-thesis", "else"))
    for folder in (old, mine, other):
        folder.mkdir()
        (folder / "file").write_text("x")
    assert is_alive(os.getpid())
    assert not is_alive(GONE)
    with temporary_folder() as one, temporary_folder() as two:
        assert {each.name for each in tmp_path.iterdir()} == {one.name, two.name, mine.name, other.name}
    assert {each.name for each in tmp_path.iterdir()} == {mine.name, other.name}


def test_paths_that_are_no_text():
    """SimGrid would answer with a TypeError; umlauts are fine."""
    assert text_path(Path("ä/ü.xml")) == "ä/ü.xml"
    with pytest.raises(InputError, match="rename it"):
        text_path(os.fsdecode(b"x\xff.xml"))


# Text in: the one reader of all text files.


def test_a_byte_order_mark_is_skipped(tmp_path: Path):
    """Spreadsheets put one before their CSV."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfname\n\xc3\xa9\n")
    assert read_text(path) == "name\né\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"ab\xff", "not a text in UTF-8 \\(byte 2\\)"), (b"a\0b", "NUL"), (b"abcdefg", "at most 0 MB")],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, problem: str):
    """Other bytes, NUL and files that are too large are reported in one line."""
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_text(path, 6)
