"""The store: every row once, checksummed; damage reported and set aside; nothing half-written."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaign_cases import write_study
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.campaign import row_table, segments
from gridsched.campaign.segments import Damage, Line, SegmentWriter, decoded, encoded
from gridsched.campaign.store import Store
from gridsched.errors import InputError
from gridsched.runs.study import Study


def row(number: int, status: str = "finished", **metrics: Any) -> dict[str, Any]:
    """Return a row as a worker writes it."""
    return {
        "run_id": f"{number:032x}",
        "status": status,
        "error": None if status == "finished" else "no luck",
        "metrics": metrics or {"energy_j": 0.1 * number, "tasks": number},
        "scenario": {"seed": number},
        "provenance": {"gridsched": "1"},
        "timing": {"run_s": 0.5, "host": "here"},
    }


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A new store."""
    return Store.create(tmp_path / "store")


def write(store: Store, *rows: dict[str, Any]) -> Path:
    """Write rows as one process would; return the segment."""
    writer = store.writer()
    for each in rows:
        writer.write(each)
    writer.close()
    return writer.path


def test_rows_come_back_exactly(store: Store):
    """Metrics survive segment and Parquet bit by bit; nan comes back as nan, infinity as such."""
    write(store, row(1, x=0.1 + 0.2, y=float("inf"), z=float("nan"), n=2**60))
    for _ in range(2):
        stored = store.row("00")
        assert stored["metrics"] == {"x": 0.1 + 0.2, "y": float("inf"), "z": None, "n": 2**60}
        assert stored["scenario"] == {"seed": 1}
        store.compact()
    assert store.segments() == []


@given(
    metrics=st.dictionaries(st.text(min_size=1), st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.none()))
)
@settings(max_examples=50, deadline=None)
def test_lines_hold_any_row(metrics: dict[str, float | None]):
    """Encoding and decoding gives the row back, whatever its names and numbers are."""
    line = encoded({**row(7), "metrics": metrics, "error": "a\nb"})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    whole = decoded(line[:-1])
    assert whole is not None
    assert (whole.run_id, whole.status) == (f"{7:032x}", "finished")
    assert whole.row()["metrics"] == metrics


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_any_changed_byte_is_noticed(data: st.DataObject):
    """A line of which one byte is another, or which is cut, is damaged."""
    line = encoded(row(7))[:-1]
    at = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[at]))
    # hexadecimal digits of the checksum are written in lower case only
    assert decoded(line[:at] + bytes([other]) + line[at + 1 :]) is None
    assert decoded(line[:at]) is None


def test_every_run_counts_once(store: Store):
    """Runs that are stored twice are one row; finished goes before failed, whatever came first."""
    write(store, row(1), row(2, "failed"), row(3))
    write(store, row(1), row(2), row(4, "failed"))
    store.compact()
    write(store, row(3, "failed"), row(4, "failed"))
    rows = store.rows()
    assert rows["run_id"].tolist() == [f"{k:032x}" for k in (1, 2, 3, 4)]
    assert rows["status"].tolist() == ["finished"] * 3 + ["failed"]
    assert store.stored() == dict(zip(rows["run_id"], rows["status"], strict=True))
    assert store.damage == []


def test_contradicting_rows_are_told(store: Store):
    """A run that is stored with two different results is not a silent choice."""
    write(store, row(1, energy_j=1.0))
    write(store, row(1, energy_j=1.0 + 1e-15))
    assert len(store.rows()) == 1
    assert "stored twice with different metrics" in store.damage[0]


def test_damaged_lines_are_told_and_set_aside(store: Store):
    """Each damaged line is named by file and line; the others count; compaction keeps the rest."""
    path = write(store, row(1), row(2), row(3))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1].replace(b"0.2", b"0.3") + lines[2][:50])
    assert list(store.stored()) == [f"{1:032x}"]
    assert [damage.split(": ")[0] for damage in store.damage] == [f"{path}, line 2", f"{path}, line 3"]
    store.compact()
    assert len(store.damage) == 2
    assert list(store.stored()) == [f"{1:032x}"]
    assert store.damage == []
    (kept,) = (store.root / "damaged").iterdir()
    assert b'"energy_j":0.3' in kept.read_bytes()


@pytest.mark.parametrize("keep", [0, 3, 700, -1])
def test_a_truncated_parquet_file_is_told_and_set_aside(store: Store, keep: int):
    """A Parquet file that is not whole counts for nothing, and a line reports this."""
    write(store, row(1))
    store.compact()
    (path,) = store.root.glob("rows-*.parquet")
    path.write_bytes(path.read_bytes()[:keep])
    write(store, row(2))
    assert list(store.stored()) == [f"{2:032x}"]
    assert store.damage[0].startswith(f"{path}: damaged (")
    assert len(store.rows()) == 1
    store.compact()
    assert store.rows()["run_id"].tolist() == [f"{2:032x}"]
    assert store.damage == []
    assert len(list((store.root / "damaged").iterdir())) == 1


def test_a_changed_bit_in_parquet_is_noticed(store: Store):
    """A Parquet file with one other bit is damaged, wherever it is."""
    write(store, row(1))
    store.compact()
    (path,) = store.root.glob("rows-*.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert store.stored() == {}
    assert store.damage[0].startswith(f"{path}: damaged (")


def test_growing_segments_are_left_alone(store: Store):
    """Compaction leaves what another process still writes; half a line there is no damage."""
    writer = store.writer()
    writer.write(row(1))
    with open(writer.path, "ab") as stream:
        stream.write(b'{"crc32":"')
    write(store, row(2))
    store.compact()
    assert store.segments() == [writer.path]
    assert len(store.rows()) == 2
    assert store.damage == []
    writer.close()
    assert len(store.rows()) == 2
    assert len(store.damage) == 1


def test_a_compaction_that_was_killed_loses_nothing(store: Store):
    """Segments that survive beside the Parquet file they went into count once."""
    path = write(store, row(1), row(2))
    content = path.read_bytes()
    store.compact()
    path.write_bytes(content)
    (store.root / ".rows.1.tmp").write_bytes(b"half")
    assert len(store.rows()) == 2
    write(store, row(3))
    store.compact()
    assert len(store.rows()) == 3
    assert store.damage == []


def test_a_segment_compacted_as_it_is_opened_loses_no_row(store: Store, monkeypatch: pytest.MonkeyPatch):
    """A compaction right after a writer's open takes the empty segment; no row goes with it."""
    really_open, opened = os.open, []

    def compact_after(path: Any, flags: int, *rest: int) -> int:
        file = really_open(path, flags, *rest)
        if flags & os.O_EXCL and not opened:
            opened.append(Path(path))
            store.compact()
            assert not opened[0].exists()
        return file

    monkeypatch.setattr(os, "open", compact_after)
    write(store, row(1), row(2))
    assert opened
    assert list(store.stored()) == [f"{k:032x}" for k in (1, 2)]


@pytest.fixture(params=["fails", "does nothing"])
def two_machines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Make this process the one or the other of two machines that see no lock of each other."""
    calls = {"fails": _no_locks, "does nothing": lambda _file, _kind: None}
    monkeypatch.setattr(fcntl, "flock", calls[request.param])
    growing: dict[str, set[str]] = {"left": set(), "right": set()}

    def become(name: str) -> None:
        monkeypatch.setattr(segments, "this_machine", lambda: name)
        monkeypatch.setattr(segments, "_growing_here", growing[name])

    return become


def _no_locks(_file: int, _kind: int) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def test_a_compaction_without_locks_leaves_living_writers_alone(store: Store, two_machines: Callable):
    """Two writers on two machines, one of them compacting: no segment of a writer goes, no row."""
    two_machines("left")
    one = store.writer()
    one.write(row(1))
    two_machines("right")
    other = store.writer()
    other.write(row(2))
    store.compact()
    assert set(store.segments()) == {one.path, other.path}
    other.close()
    store.compact()
    assert store.segments() == [one.path]
    one.write(row(3))
    assert list(store.stored()) == [f"{k:032x}" for k in (2, 1, 3)]
    two_machines("left")
    one.close()
    store.compact()
    assert store.segments() == []
    assert store.rows()["run_id"].tolist() == [f"{k:032x}" for k in (1, 2, 3)]


def test_a_writer_that_was_quiet_for_an_hour_finds_its_segment_gone(store: Store, two_machines: Callable):
    """Another machine has compacted the segment; what is written next goes to a new one."""
    two_machines("left")
    writer = store.writer()
    first = writer.path
    writer.write(row(1))
    os.utime(first, (0, time.time() - segments.QUIET_S - 1))
    two_machines("right")
    store.compact()
    assert store.segments() == []
    two_machines("left")
    writer.write(row(2))
    assert store.segments() == [writer.path]
    assert writer.path != first
    writer.close()
    assert list(store.stored()) == [f"{k:032x}" for k in (1, 2)]


def test_a_row_written_while_it_is_compacted_is_not_lost(
    store: Store, two_machines: Callable, monkeypatch: pytest.MonkeyPatch
):
    """A row that comes after the compaction's reading is written again to the next segment."""
    two_machines("left")
    writer = store.writer()
    writer.write(row(1))
    os.utime(writer.path, (0, time.time() - segments.QUIET_S - 1))
    joined = row_table.one_row_each

    def write_meanwhile(table: Any) -> Any:
        writer.write(row(2))
        return joined(table)

    monkeypatch.setattr(row_table, "one_row_each", write_meanwhile)
    two_machines("right")
    store.compact()
    monkeypatch.setattr(row_table, "one_row_each", joined)
    writer.path.unlink(missing_ok=True)  # as if the compaction had not seen that it grew
    two_machines("left")
    writer.close()
    assert list(store.stored()) == [f"{k:032x}" for k in (1, 2)]


def test_a_compaction_elsewhere_hides_no_row_from_a_reader(
    store: Store, two_machines: Callable, monkeypatch: pytest.MonkeyPatch
):
    """A Parquet file that goes while it is read: the reader begins again with the new one."""
    two_machines("left")
    write(store, row(1))
    store.compact()
    write(store, row(2))
    whole = row_table.is_whole

    def compact_first(path: Path) -> bool:
        monkeypatch.setattr(row_table, "is_whole", whole)
        store.compact()
        return whole(path)

    for read in (store.stored, lambda: store.rows().set_index("run_id").index):
        if read is not store.stored:
            write(store, row(3))
        monkeypatch.setattr(row_table, "is_whole", compact_first)
        assert {f"{1:032x}", f"{2:032x}"} <= set(read())
    assert len(store.rows()) == 3


def test_two_machines_lose_no_row(store: Store):
    """Processes of two machines without locks write and compact at once: every row is there."""
    here = Path(__file__).resolve().parent
    code = WRITES_AND_COMPACTS.format(path=[str(here), str(here.parents[1])], store=str(store.root))
    both = [
        subprocess.Popen([sys.executable, "-c", code, name], stderr=subprocess.PIPE, text=True) for name in ("0", "1")
    ]
    assert [(process.communicate()[1], process.returncode) for process in both] == [("", 0)] * 2
    assert len(store.rows()) == 400
    assert store.damage == []


WRITES_AND_COMPACTS = """
import fcntl, sys
sys.path[:0] = {path!r}
fcntl.flock = lambda file, kind: None
from test_store import row
from gridsched.campaign import segments
from gridsched.campaign.store import Store
machine = sys.argv[1]
segments.this_machine = lambda: machine
segments.QUIET_S = 0.0  # the other's segments, too, are taken for finished
store = Store.open({store!r})
writer = store.writer()
for k in range(200):
    writer.write(row(200 * int(machine) + k))
    if k % 20 == 19:
        store.compact()
writer.close()
"""


LIMITED = """
import resource, sys
sys.path[:0] = {path!r}
from test_store import row
from gridsched.errors import InputError
from gridsched.campaign.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
writer = Store.open({store!r}).writer()
try:
    for k in range(1, 100):
        writer.write(row(k))
except InputError as error:
    sys.exit(str(error))
"""


def test_no_space_leaves_whole_lines_only(store: Store):
    """If a row finds no room, one line reports this and what was stored stays whole."""
    folder = Path(__file__).resolve().parent
    code = LIMITED.format(path=[str(folder), str(folder.parents[1])], store=str(store.root))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "cannot be written: File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    assert 0 < len(store.stored()) < 99
    assert store.damage == []


def test_a_full_device_is_told(store: Store):
    """ENOSPC, as /dev/full gives it, is one clear line."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    writer = SegmentWriter(store.root / "segments")
    os.dup2(os.open("/dev/full", os.O_WRONLY), writer._file)
    with pytest.raises(InputError, match="No space left on device"):
        writer.write(row(1))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"format": "gridsched store", "format_version": 99, "gridsched": "9.9"}', "version 99"),
        ('{"format": "gridsched store", "format_version": 1, "gridsched": "0.0"}', "version 1,"),
        ('{"format": "other"}', "of no gridsched store"),
        ("{", "is damaged"),
        ("", "is damaged"),
    ],
)
def test_what_is_no_store_of_ours_is_refused(tmp_path: Path, content: str, problem: str):
    """A store of another format, or something else, is refused and left untouched."""
    marker = tmp_path / "store.json"
    marker.write_text(content)
    for open_it in (Store.open, Store.create):
        with pytest.raises(InputError, match=problem):
            open_it(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["store.json"]
    assert marker.read_text() == content


def test_folders_with_other_things_are_refused(tmp_path: Path):
    """No store is made among a user's files, in a file's place, or where nothing can be made."""
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="not empty"):
        Store.create(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        Store.create(tmp_path / "thesis.tex")
    with pytest.raises(InputError, match="cannot be written"):
        Store.create("/proc/gridsched-store")
    with pytest.raises(InputError, match="is not a store"):
        Store.open(tmp_path / "nothing")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_store_keeps_its_studies(store: Store, tmp_path: Path):
    """Study and inputs come back from the store alone, with the replicates that were run."""
    path = write_study(tmp_path)
    study = Study.from_file(path).with_replicates(3)
    store.add(study)
    (tmp_path / "machines.csv").unlink()
    path.unlink()
    kept = store.study()
    assert [run.run_id for run in kept.scenarios()] == [run.run_id for run in study.scenarios()]
    assert set(store.inputs()) == {file.sha256 for file in study.inputs.values()}
    with pytest.raises(InputError, match="'other'"):
        store.study("other")


def test_runs_that_are_not_stored_are_missing(store: Store, tmp_path: Path):
    """Rows of a study have one row a run; runs that are not stored are marked."""
    study = Study.from_file(write_study(tmp_path))
    first = next(study.scenarios())
    write(store, {**row(1), "run_id": first.run_id}, row(2))
    rows = store.rows(study)
    assert rows["status"].tolist() == ["finished"] + ["missing"] * 7
    assert rows["replicate"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert rows["energy_j"].tolist()[0] == 0.1


def test_run_ids_may_be_shortened(store: Store):
    """The beginning of an id is enough where it is unique."""
    write(store, row(0x10), row(0x11))
    assert store.row(f"{0x10:032x}")["scenario"] == {"seed": 16}
    with pytest.raises(InputError, match="2 runs"):
        store.row("0")
    with pytest.raises(InputError, match="is not stored"):
        store.row("f")


def test_lines_are_json(store: Store):
    """Each line is JSON for any reader, with checksum and row."""
    path = write(store, row(1, x=float("inf")))
    line = json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(word))
    assert line["row"]["metrics"] == {"x": "inf"}
    assert isinstance(decoded(path.read_bytes()[:-1]), Line)
    assert str(Damage(path, 3, b"abc")).endswith("line 3: damaged (3 bytes)")
