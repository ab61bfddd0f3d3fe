"""Stores that were tampered with: what is whole is read, the rest is named, nothing hangs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "analysis"))

from small_study import make_store, study_in

from gridsched.analysis.study_results import read_results
from gridsched.campaign.rerun import rerun
from gridsched.campaign.store import Store
from gridsched.errors import InputError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 71 rows in one segment."""
    return make_store(tmp_path_factory.mktemp("made") / "store")


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "store")


def change_row(store: Path, change: Callable[[dict[str, Any]], object], line: int = 3) -> Path:
    """Change a row of the segment, with the checksum that its new text has."""
    (path,) = (store / "segments").glob("*.jsonl")
    lines = path.read_bytes().splitlines()
    row = json.loads(lines[line - 1])["row"]
    row = change(row) or row
    text = row if isinstance(row, bytes) else json.dumps(row, separators=(",", ":")).encode()
    lines[line - 1] = b'{"crc32":"%08x","row":%s}' % (zlib.crc32(text), text)
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def deep(row: dict[str, Any]) -> bytes:
    """A row whose metrics nest a hundred thousand deep."""
    return f'{{"run_id":"{row["run_id"]}","status":"finished","metrics":'.encode() + b"[" * 100_000


CHANGES = {
    "no timing": lambda row: row.pop("timing") and None,
    "no status": lambda row: row.pop("status") and None,
    "odd error": lambda row: row.update(error={}),
    "odd metric": lambda row: row["metrics"].update(makespan_s={}),
    "word for a number": lambda row: row["metrics"].update(makespan_s="x"),
    "bool for a number": lambda row: row["metrics"].update(makespan_s=True),
    "more than 64 bits": lambda row: row["metrics"].update(makespan_s=10**30),
    "metrics are a list": lambda row: row.update(metrics=[]),
    "odd series": lambda row: row.update(series={"energy_j": 5}),
    "deep": deep,
    "no object": lambda row: b"[" + b"0" * 60 + b"]",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_row_of_another_form_is_named(store: Path, change: Callable):
    """File and line are told, the other rows are read, and a compaction sets it aside."""
    path = change_row(store, change)
    opened = Store.open(store)
    assert len(opened.rows()) == 70
    assert opened.damage == [f"{path}, line 3: damaged ({len(_line(path, 3))} bytes)"]
    opened.compact()
    assert len(Store.open(store).rows()) == 70
    assert len(list((store / "damaged").iterdir())) == 1


def _line(path: Path, number: int) -> bytes:
    """Return what the damage counts: the row's text where the checksum holds, else the line."""
    line = path.read_bytes().splitlines()[number - 1]
    text = line[line.index(b'"row":') + 6 : -1]
    is_row = text.startswith(b'{"run_id":"') and text[43:].startswith(b'","status":"')
    return text if is_row else line + b"\n"


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b"[]", b"{}", b'{"text": 1}', b"\xff"],
    ids=["deep", "list", "empty", "number", "bytes"],
)  # fmt: skip
def test_a_damaged_study_is_named(store: Path, tmp_path: Path, content: bytes):
    """One line where nothing says which study is meant; else the rest is read, with a warning."""
    other = store / "studies" / "other.json"
    other.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_results(str(store))
    assert str(caught.value).startswith(f"{other}: ")
    assert "\n" not in str(caught.value)
    study = Store.open(store).study("small")
    assert study.replicates == 4
    assert len(read_results(str(store), study_in(tmp_path / "again")).runs) == 72


@pytest.mark.parametrize("content", [b"[" * 100_000, b"", b"[]"])
def test_a_damaged_marker_is_named(store: Path, content: bytes):
    """Deep nesting as well."""
    (store / "store.json").write_bytes(content)
    with pytest.raises(InputError, match=r"store\.json: is damaged"):
        Store.open(store)


@pytest.mark.parametrize("name", ["store.json", "segments/a-1-0.jsonl", "studies/a.json"])
def test_a_pipe_in_a_store_is_never_waited_for(store: Path, name: str):
    """Reading it would never end."""
    (store / name).unlink(missing_ok=True)
    os.mkfifo(store / name)
    with pytest.raises(InputError, match=r"pipe|no regular file"):
        read_results(str(store))


def test_no_run_of_a_study_and_damage(store: Path):
    """That rows are damaged is told where none is left."""
    (path,) = (store / "segments").glob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"status"', b'"statut"'))
    with pytest.raises(InputError, match=r"holds no run .* Damaged: .*, line 1: damaged"):
        read_results(str(store), Store.open(store).study())


def test_a_run_whose_input_is_damaged_is_not_done_again(store: Path):
    """It would differ for a reason that is no result's."""
    (path,) = Store.open(store).inputs().values()
    path.write_text(path.read_text() + "<!-- -->")
    row = Store.open(store).rows().iloc[0]
    with pytest.raises(InputError, match=r"p\.xml: is damaged: its content is not that which run"):
        rerun(Store.open(store), row["run_id"])
