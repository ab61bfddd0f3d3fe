"""`gridsched validate` on exports, and its negative control."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest


@pytest.fixture
def export(gridsched, ex_a, tmp_path, simgrid) -> Path:
    """Return an export of WQ on EX-A by the SimGrid driver."""
    folder = tmp_path / "out"
    assert gridsched("run", *ex_a, "--export", folder, "--quiet").status == 0
    return folder


def shift_wattage(folder: Path, host: str, column: int) -> None:
    """Multiply one wattage (1 idle, 3 busy) of a host in the export by 1 + 1e-6."""
    path = folder / "platform.json"
    platform = json.loads(path.read_text())
    entry = next(each for each in platform["hosts"] if each["name"] == host)
    entry["pstates"][0][column] *= 1 + 1e-6
    path.write_text(json.dumps(platform))


def shift_start(folder: Path, job: str) -> None:
    """Multiply the start time of a job in the export by 1 + 1e-6."""
    path = folder / "executions.csv"
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    row = next(row for row in rows if row["job_id"] == job)
    row["starting_time"] = repr(float(row["starting_time"]) * (1 + 1e-6))
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_an_export_validates(gridsched, export):
    """The joules of an export agree, host by host."""
    outcome = gridsched("validate", export)
    assert (outcome.status, outcome.err) == (0, "")
    rows = {line.split()[1]: line.split()[3:] for line in outcome.out.splitlines()
            if line.startswith("wq")}  # fmt: skip
    assert rows == {
        "h1": ["1,470", "1,470", "0"], "h2": ["560", "560", "0"], "h3": ["400", "400", "0"],
        "total": ["2,430", "2,430", "0"],
    }  # fmt: skip
    assert "All 4 rows agree" in outcome.out


@pytest.mark.parametrize(("host", "column"), [("h1", 3), ("h1", 1), ("h2", 3), ("h3", 3)])
def test_a_shifted_wattage_is_found(gridsched, export, host, column):
    """Negative control: one wattage off by 1e-6 makes it exit 1 and name the host."""
    shift_wattage(export, host, column)
    outcome = gridsched("validate", export)
    assert outcome.status == 1
    assert {line.split("host '")[1].split("'")[0] for line in outcome.complaints} == {host, "total"}
    assert "agree" not in outcome.out
    assert gridsched("validate", export, "--json").json["differences"] == 2


def test_a_shifted_start_time_is_found(gridsched, export):
    """Negative control: one start time off by 1e-6 makes it exit 1 and name the host."""
    shift_start(export, "4")  # on h1 from 10 s to 25 s; the host idles 10 microseconds now
    outcome = gridsched("validate", export, "--quiet")
    assert outcome.status == 1
    assert outcome.out == ""
    assert "host 'h1'" in outcome.complaints[0]
    assert not any("host 'h2'" in line or "host 'h3'" in line for line in outcome.complaints)
    assert "1469.99" in outcome.complaints[0]  # (50 - 4) W * 1e-5 s less


def test_an_export_of_the_reference_driver_has_no_plugin(gridsched, refused, ex_a, tmp_path):
    """There is nothing to compare with, and the message says so."""
    folder = tmp_path / "out"
    gridsched("run", *ex_a, "--driver", "reference", "--export", folder)
    assert "SimGrid driver" in refused("validate", folder)


BROKEN = {
    "no export": (lambda folder: (folder / "trace.json").unlink(), ["trace.json", "--export"]),
    "file missing": (lambda folder: (folder / "tasks.csv").unlink(), ["tasks.csv"]),
    "file empty": (lambda folder: (folder / "executions.csv").write_text(""), ["executions.csv"]),
    "file binary": (
        lambda folder: (folder / "platform.json").write_bytes(bytes(range(256))), ["platform.json"],
    ),
    "no JSON": (lambda folder: (folder / "trace.json").write_text("{"), ["trace.json", "JSON"]),
    "deep JSON": (
        lambda folder: (folder / "trace.json").write_text("[" * 100_000), ["trace.json"],
    ),
    "huge number": (
        lambda folder: (folder / "tasks.csv").write_text(
            (folder / "tasks.csv").read_text().replace("1000.0", "1e300")), ["tasks.csv", "1e300"],
    ),
    "row lost": (
        lambda folder: (folder / "executions.csv").write_text(
            "\n".join((folder / "executions.csv").read_text().splitlines()[:-1]) + "\n"),
        ["executions.csv", "4", "5"],
    ),
    "plugin energy of another host": (
        lambda folder: (folder / "host_energy.csv").write_text(
            (folder / "host_energy.csv").read_text().replace("h2", "h9")), ["host_energy.csv"],
    ),
    "folder for a file": (
        lambda folder: ((folder / "tasks.csv").unlink(), (folder / "tasks.csv").mkdir()),
        ["tasks.csv", "folder"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("break_it", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_export_is_refused(refused, export, break_it, words):
    """What is missing, cut off or edited in an export is named; plots refuse it alike."""
    break_it(export)
    for command in (
        ["validate", export],
        ["plot", "gantt", export, "-o", export.parent / "g.png"],
        ["plot", "power", export, "-o", export.parent / "p.svg"],
    ):
        line = refused(*command)
        assert all(word in line for word in words), line


def test_no_folder_at_all(refused, tmp_path, write):
    """A missing folder and a file are told apart."""
    assert "does not exist" in refused("validate", tmp_path / "none")
    assert "file" in refused("validate", write("x.csv", "x"))


def test_validate_writes_its_table(gridsched, ex_a, tmp_path, simgrid):
    """-o writes a row for each scheduler and host."""
    path = tmp_path / "v.csv"
    outcome = gridsched("validate", *ex_a, "--schedulers", "wq,lecsa", "--quiet", "-o", path)
    assert (outcome.status, outcome.out) == (0, "")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(row["scheduler"], row["host"]) for row in rows] == [
        (scheduler, host) for scheduler in ("wq", "lecsa") for host in ("h1", "h2", "h3", "total")
    ]
    assert all(float(row["relative_difference"]) == 0 for row in rows)
