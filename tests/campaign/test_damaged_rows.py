"""Stores that were tampered with: what is whole is read, the rest is named, nothing hangs."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_study import make_store, study_in

from gridsched.analysis.study_results import read_results
from gridsched.campaign import row_table
from gridsched.campaign.campaign import Plan
from gridsched.campaign.rerun import rerun
from gridsched.campaign.store import Store
from gridsched.cli.app import main
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
    "no name of a metric": lambda row: row["metrics"].update({"run_id": 1}),
    "more than 64 bits": lambda row: row["metrics"].update(makespan_s=10**30),
    "metrics are a list": lambda row: row.update(metrics=[]),
    "odd series": lambda row: row.update(series={"energy_j": 5}),
    "groups are no list": lambda row: row.update(groups={"user": 5}),
    "a group without a name": lambda row: row.update(groups=[{"group_by": "user", "jobs": 5}]),
    "a group's number is called as a column": lambda row: row.update(
        groups=[{"group_by": "user", "group": "1", "scheduler": 5}]
    ),
    "odd number of a group": lambda row: row.update(groups=[{"group_by": "user", "group": "1", "jobs": [5]}]),
    "deep": deep,
    "no object": lambda row: b"[" + b"0" * 60 + b"]",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_row_of_another_form_is_named(store: Path, change: Callable):
    """File and line are named, the other rows are read, and a compaction sets it aside."""
    path = change_row(store, change)
    opened = Store.open(store)
    assert len(opened.rows()) == 70
    assert opened.damage == [f"{path}, line 3: damaged ({len(_line(path, 3))} bytes)"]
    opened.compact()
    assert len(Store.open(store).rows()) == 70
    assert len(list((store / "damaged").iterdir())) == 1


@pytest.mark.parametrize(
    ("odd", "others", "lost"),
    [(2**53 + 1, 0.5, 0), (2**63 - 1, 0.5, 0), ("word", 0.5, 1), (True, 0.5, 1), (True, "word", 0)],
)
@pytest.mark.parametrize("is_compact", [False, True])
def test_values_of_several_kinds_hide_no_run(store: Path, odd: object, others: object, lost: int, is_compact: bool):
    """In one segment, or in a file and a segment: all runs are read, what is left out is reported."""
    (path,) = (store / "segments").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    change_row(store, lambda row: row["metrics"].update(own=odd), 1)
    first, rest = path.read_bytes().splitlines(keepends=True)[0], b"".join(lines[1:])
    path.write_bytes(first)
    if is_compact:
        Store.open(store).compact()
    path.write_bytes(rest if is_compact else first + rest)
    change_row(store, lambda row: row["metrics"].update(own=others), 1 if is_compact else 2)
    opened = Store.open(store)
    rows = opened.rows()
    assert (len(rows), rows["own"].notna().sum(), len(opened.damage)) == (71, 2 - lost, lost)
    opened.compact()
    rows = Store.open(store).rows()
    assert (len(rows), rows["own"].notna().sum()) == (71, 2 - lost)
    assert not (store / "damaged").exists()


def _line(path: Path, number: int) -> bytes:
    """Return what the damage counts: the row's text where the checksum holds, else the line."""
    line = path.read_bytes().splitlines()[number - 1]
    text = line[line.index(b'"row":') + 6 : -1]
    is_row = text.startswith(b'{"run_id":"') and text[43:].startswith(b'","status":"')
    return text if is_row else line + b"\n"


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b"[]", b"{}", b'{"text": 1}', b"\xff"], ids=["deep", "list", "empty", "number", "bytes"]
)
def test_a_damaged_study_is_named(store: Path, tmp_path: Path, content: bytes):
    """One line if nothing shows which study is meant; else the rest is read, with a warning."""
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
    with pytest.raises(InputError, match=r"store\.json"):
        Store.open(store)


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "/dev/full"])
@pytest.mark.parametrize("name", ["store.json", "segments/a-1-0.jsonl", "studies/a.json", f"rows-{'0' * 32}.parquet"])
def test_a_pipe_or_device_in_a_store_is_never_waited_for(store: Path, name: str, kind: str):
    """Reading it would never end."""
    (store / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(store / name)
    else:
        (store / name).symlink_to(kind)
    with pytest.raises(InputError, match=r"pipe|not a regular file"):
        read_results(str(store))


def test_no_run_of_a_study_and_damage(store: Path):
    """Damaged rows are reported even if no row is left."""
    (path,) = (store / "segments").glob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"status"', b'"statut"'))
    with pytest.raises(InputError, match="line 1"):
        read_results(str(store), Store.open(store).study())


def test_a_run_whose_input_is_damaged_is_not_done_again(store: Path):
    """It would differ for a reason that is no result's."""
    (path,) = Store.open(store).inputs().values()
    path.write_text(path.read_text() + "<!-- -->")
    row = Store.open(store).rows().iloc[0]
    with pytest.raises(InputError, match=r"p\.xml"):
        rerun(Store.open(store), row["run_id"])


def flip(path: Path, place: float, bit: int) -> None:
    """Change one bit of a file, at a share of its length."""
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    path.write_bytes(content)


@pytest.fixture(scope="module")
def two_stores(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The rows once in a segment, once in Parquet files of at most 24."""
    folder = tmp_path_factory.mktemp("two")
    copies = {name: shutil.copytree(made, folder / name) for name in ("jsonl", "parquet")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_table, "FILE_ROWS", 24)
        Store.open(copies["parquet"]).compact()
    return copies


@given(
    kind=st.sampled_from(["jsonl", "parquet"]),
    file=st.integers(0, 2),
    place=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
)
@settings(max_examples=40, deadline=None)
def test_one_flipped_bit_loses_its_own_rows_alone(
    two_stores: dict[str, Path], kind: str, file: int, place: float, bit: int
):
    """The file is named, the rows of others are read, and every number is what was written."""
    store = two_stores[kind]
    files = sorted([*store.glob("rows-*.parquet"), *(store / "segments").glob("*.jsonl")])
    assert len(files) == {"jsonl": 1, "parquet": 3}[kind]
    opened = Store.open(store)
    whole = opened.rows().set_index("run_id").drop(columns=["provenance"])
    path = files[file % len(files)]
    before = path.read_bytes()
    flip(path, place, bit)
    try:
        left = opened.rows().set_index("run_id").drop(columns=["provenance"])
        told, statuses = opened.damage, opened.stored()
    finally:
        path.write_bytes(before)
    lost = len(whole) - len(left)
    assert 1 <= lost <= {"jsonl": 2, "parquet": 24}[kind]  # an end of line parts two rows
    assert left.equals(whole.loc[left.index])
    assert statuses == dict(left["status"])
    assert told
    assert all(text.startswith(str(path)) for text in told)


def test_lost_rows_are_told_and_done_again(store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    """Claims name the file and its rows, also after it was set aside; the runs are planned."""
    monkeypatch.setattr(row_table, "FILE_ROWS", 10)
    Store.open(store).compact()
    path = sorted(store.glob("rows-*.parquet"))[3]
    number = int(row_table.read_parquet(path).num_rows)
    flip(path, 0.1, 2)
    assert main(["study", "claims", str(store), "--quiet"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"gridsched: warning: {path}: damaged ({number} rows lost)"
    opened = Store.open(store)
    plan = Plan(opened.study(), opened)
    assert (plan.total, plan.found) == (72, 71 - number)
    assert plan.damage == [f"{path}: damaged ({number} rows lost)"]
    opened.compact()
    assert len(opened.rows()) == 71 - number
    capsys.readouterr()
    assert main(["study", "claims", str(store), "--quiet"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{store}/damaged: 1 file was damaged; {number + 1} runs of the study" in line


def forge(store: Path, content: bytes) -> Path:
    """Add a Parquet file whose name contains the digest of its content."""
    path = store / f"rows-{hashlib.sha256(content).hexdigest()[:32]}.parquet"
    path.write_bytes(content)
    return path


def parquet(columns: dict[str, object]) -> bytes:
    """Return columns as a Parquet file."""
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, compression="zstd")
    return stream.getvalue()


LONG = ["x" * 100_000] * 2000
BEGUN = {name: ["a"] * 2000 for name in ("run_id", "status", "error", "scenario", "provenance")}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda: parquet(BEGUN | {"error": LONG}), "unpacks to more than"),
        (lambda: parquet(BEGUN | {"series.a": [[each] for each in LONG]}), "unpacks to more than"),
        (lambda: parquet(dict.fromkeys(BEGUN, pa.repeat("a", 10**7))), "unpacks to more than"),
        (lambda: parquet({"run_id": ["a"], "status": ["finished"]}), "holds no rows of runs"),
        (lambda: parquet(BEGUN | {"run_id": [1] * 2000}), "holds no rows of runs"),
        (lambda: b"no Parquet", "cannot be read"),
    ],
    ids=["text", "list", "rows", "columns", "types", "bytes"],
)
def test_a_forged_parquet_file_is_left_out(store: Path, content: Callable[[], bytes], words: str):
    """What unpacks to a thousand times its size, or has no rows of ours, is named and not read."""
    path = forge(store, content())
    before = pa.total_allocated_bytes()
    opened = Store.open(store)
    assert len(opened.rows()) == 71
    (line,) = opened.damage
    assert line.startswith(f"{path}: ")
    assert words in line
    assert len(opened.stored()) == 71
    opened.compact()
    assert path.exists()
    assert pa.total_allocated_bytes() < before + 64 * 2**20


def test_a_damaged_input_hides_no_run(store: Path):
    """The runs are found by what their inputs were; the file is named."""
    (path,) = Store.open(store).inputs().values()
    flip(path, 0.5, 0)
    results = read_results(str(store))
    assert len(results.runs) == 72
    (told,) = results.damage
    assert told.startswith(f"{path}: is damaged")


def test_compacting_what_is_compact_changes_nothing(store: Path, monkeypatch: pytest.MonkeyPatch):
    """Many files of one compaction are left; parts of two become one set again."""
    monkeypatch.setattr(row_table, "FILE_ROWS", 10)
    opened = Store.open(store)
    opened.compact()
    files = {path: path.stat().st_mtime_ns for path in store.glob("rows-*.parquet")}
    assert len(files) == 8
    opened.compact()
    assert {path: path.stat().st_mtime_ns for path in store.glob("rows-*.parquet")} == files
    monkeypatch.setattr(row_table, "FILE_ROWS", 40)
    row_table.write_parquet(opened._table(), store)  # as a compaction that was killed leaves it
    assert len(list(store.glob("rows-*.parquet"))) == 10
    opened.compact()
    assert len(list(store.glob("rows-*.parquet"))) == 2
    assert len(opened.rows()) == 71
    assert opened.damage == []
