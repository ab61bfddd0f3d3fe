"""How tables and numbers look."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from gridsched.cli.tables import print_table, print_values
from gridsched.metrics.columns import Column, numbers, percent, prefix

COLUMNS = (
    Column("name", "name"),
    Column("energy", "energy\n[{unit}]", "number", "J", "total"),
    Column("model", "model\n[{unit}]", "number", "J", "total"),
    Column("idle", "idle [{unit}]", "number", "J"),
    Column("above", "above", "percent"),
    Column("difference", "difference", "exponent"),
)
ROWS = [
    {"name": "a [b]", "energy": 1.6643e10, "model": 1.6643e10, "idle": 82495.4, "above": 0.541, "difference": 1.1e-16},
    {"name": "long name", "energy": 1.08e10, "model": 1.08e10, "idle": 0.0, "above": 0.0, "difference": 0.0},
    {"name": "failed", "energy": None, "model": float("nan")},
]


def printed(width: int, columns=COLUMNS, rows=ROWS, title: str = "") -> list[str]:
    """Return the lines of a table on a terminal of that width."""
    out = Console(file=io.StringIO(), width=width, highlight=False, soft_wrap=True)
    print_table(out, columns, rows, title)
    return out.file.getvalue().splitlines()


def test_table_in_full():
    """Prefixes are shared where asked for; zeros, nothing and the best are told apart."""
    assert printed(120, title="Title") == [
        "Title",
        "            energy    model",
        "name          [GJ]     [GJ]  idle [J]    above  difference",
        "─" * 58,
        "a [b]      16.6430  16.6430  82,495.4  +54.1 %     1.1e-16",
        "long name  10.8000  10.8000         0     best           0",
        "failed           -        -         -        -           -",
    ]


@given(st.integers(1, 130))
def test_no_line_is_wider_than_the_terminal(width):
    """Where the columns do not fit, further blocks follow, each with the names."""
    lines = printed(width)
    widest = max(cell_len(line) for line in lines)
    assert widest <= max(width, cell_len("long name  10.8000") + 3)
    if width >= 25:
        blocks = "\n".join(lines).split("\n\n")
        assert all("long name" in block for block in blocks)
        for word in ("16.6430", "82,495.4", "+54.1 %", "1.1e-16"):
            assert word in "\n".join(lines)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([], []),
        ([0.0], ["0"]),
        ([None, float("nan"), float("inf")], ["-", "-", "-"]),
        ([80.0, 100.0], ["80", "100"]),
        ([80.5, 100.0], ["80.500", "100.000"]),
        ([1234567.0], ["1,234,567"]),
        ([1234567.5, 1.0], ["1,234,568", "1"]),
        ([0.001234567], ["0.00123457"]),
        ([1e-9], ["1.00000e-09"]),
        ([1e20, 1.0], ["1.00000e+20", "1.00000e+00"]),
        ([100000.5, 0.01], ["100,000", "1.0e-02"]),
        ([-2.5], ["-2.50000"]),
    ],
)
def test_numbers(values, shown):
    """Six significant digits of the largest, equal decimals, whole numbers without any."""
    assert numbers(values) == shown


@given(st.lists(st.floats(0, 1e30), max_size=8))
def test_numbers_are_right_to_six_digits(values):
    """What is shown differs from the value by less than the last digit of the largest."""
    largest = max(values, default=0.0)
    for value, text in zip(values, numbers(values), strict=True):
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.06, abs=6e-6 * largest)
        if value == largest:
            assert float(text.replace(",", "")) == pytest.approx(value, rel=6e-6)


@given(st.floats(1e-300, 1e300))
def test_prefix(largest):
    """Up to a million no prefix; beyond, the number shown is below 1000 while prefixes last."""
    factor, letter = prefix(largest)
    if largest < 1e6:
        assert (factor, letter) == (1.0, "")
    elif largest < 1e21:
        assert 0.999 <= largest / factor < 1000.001
    else:
        assert letter == "E"


def test_percent():
    """0 is the best; nothing stays nothing."""
    assert [percent(v) for v in (0.0, 0.5, 12.345, -0.1, None, float("nan"))] == [
        "best",
        "+50.0 %",
        "+1,234.5 %",
        "-10.0 %",
        "-",
        "-",
    ]


def test_values_stand_in_line():
    """Decimal points stand under each other; texts are left as they are."""
    out = Console(file=io.StringIO(), width=80, highlight=False)
    print_values(out, [("a", 1234.0, "J"), ("long", 0.5, ""), ("b", "text", ""), ("c", None, "s")])
    assert out.file.getvalue().splitlines() == ["a     1,234   J", "long      0.5", "b     text", "c         -   s"]
