"""Documents list every key of a generator, with its default."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from gridsched.systems.utility.parallel_day import ParallelDay
from gridsched.systems.utility.utility_day import UtilityDay

# Bags from files, measured times and the keys that documents list.

# Bags of tasks written as CSV read back exactly, whatever their files are called.

DOCUMENTS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize(
    ("name", "model"), [("utility_workloads.md", UtilityDay), ("parallel_workloads.md", ParallelDay)]
)
def test_every_key_is_documented_with_its_default(name: str, model):
    """A row for each key, and no other; files are in a table of their own."""
    document = (DOCUMENTS / name).read_text()
    keys = document.partition("## Keys")[2].partition("\n## ")[0]
    shown = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", keys, flags=re.MULTILINE))
    fields = {key: each.default for key, each in model.model_fields.items()}
    files = [key for key in fields if key.endswith(("_csv", "_swf"))]
    assert [key for key in files if f"`{key}`" not in document] == []
    assert set(shown) == set(fields) - {"kind", *files}
    for key, text in shown.items():
        default = tomllib.loads(f"x = {text.strip('`')}")["x"] if text else None
        assert as_lists(default) == as_lists(fields[key]), key


def as_lists(value: object) -> object:
    """Return tuples as lists, so that they compare with those of TOML."""
    return [as_lists(each) for each in value] if isinstance(value, list | tuple) else value
