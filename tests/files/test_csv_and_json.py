"""The one reader of tables that people write, and the ways of writing JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.files.csv_files import Format, Number, Table, Text, Whole, csv_text
from gridsched.files.json_files import canonical_text, json_text, stored_text
from gridsched.workloads.bag import read_bag

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
    assert table.lines == [4, 6]
    assert len(read("id,name,size\n")) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,name\n", r"t\.csv, line 1: no column 'size'; the header is id,name,size,weight,note"),
        ("id,name,size,wieght\n", "unknown column 'wieght'. Did you mean 'weight'"),
        ("id,name,size,id\n", "column 'id' stands twice"),
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
    """One line: file, line, column, what was found and what is legal."""
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
