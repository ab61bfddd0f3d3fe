"""The command validate, and its report if energies disagree."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cli_cases import host_xml, zone_xml
from made_files import edit_archive

# `gridsched validate` on exports, and its negative control.


@pytest.fixture
def export(gridsched, ex_a, tmp_path, simgrid) -> Path:
    """Return an export of WQ on EX-A by the SimGrid driver."""
    folder = tmp_path / "out"
    assert gridsched("run", *ex_a, "--export", folder, "--quiet").status == 0
    return folder


def shift_wattage(folder: Path, host: str, column: str) -> None:
    """Multiply one wattage of a host in the export by 1 + 1e-6."""

    def shift(description, arrays):
        entry = next(each for each in description["platform"]["hosts"] if each["name"] == host)
        entry["pstates"][0][column] *= 1 + 1e-6

    edit_archive(folder, shift)


def shift_start(folder: Path, job: int) -> None:
    """Multiply the start time of a job in the export by 1 + 1e-6."""

    def shift(description, arrays):
        runs = arrays["executions"]
        runs["start"][arrays["tasks.labels"][runs["task"]] == job] *= 1 + 1e-6

    edit_archive(folder, shift)


def test_an_export_validates(gridsched, export):
    """The joules of an export agree, host by host."""
    outcome = gridsched("validate", export)
    assert (outcome.status, outcome.err) == (0, "")
    rows = {line.split()[1]: line.split()[3:] for line in outcome.out.splitlines() if line.startswith("wq")}
    assert rows.pop("Little's") == ["20", "20", "s", "0", "-"]
    del rows["energy"]  # by busy time, which is of equal hosts alone
    assert rows == {
        "h1": ["1,470", "1,470", "0"],
        "h2": ["560", "560", "0"],
        "h3": ["400", "400", "0"],
        "total": ["2,430", "2,430", "0"],
    }
    assert "All 4 rows agree" in outcome.out


@pytest.mark.parametrize(("host", "column"), [("h1", "busy_w"), ("h1", "idle_w"), ("h2", "busy_w"), ("h3", "busy_w")])
def test_a_shifted_wattage_is_found(gridsched, export, host, column):
    """Negative control: one wattage off by 1e-6 makes it exit 1 and name the host."""
    shift_wattage(export, host, column)
    outcome = gridsched("validate", export)
    assert outcome.status == 1
    assert {line.split("host '")[1].split("'")[0] for line in outcome.problems} == {host, "total"}
    assert "agree" not in outcome.out
    assert gridsched("validate", export, "--json").json["differences"] == 2


def test_a_shifted_start_time_is_found(gridsched, export):
    """Negative control: one start time off by 1e-6 makes it exit 1 and name the host."""
    shift_start(export, 4)  # on h1 from 10 s to 25 s; the host idles 10 microseconds now
    outcome = gridsched("validate", export, "--quiet")
    assert outcome.status == 1
    assert outcome.out == ""
    assert "host 'h1'" in outcome.problems[0]
    assert not any("host 'h2'" in line or "host 'h3'" in line for line in outcome.problems)
    assert "1469.99" in outcome.problems[0]  # (50 - 4) W * 1e-5 s less


def test_an_export_of_the_reference_driver_has_no_plugin(gridsched, refused, ex_a, tmp_path):
    """There is nothing to compare with, and the message reports this."""
    folder = tmp_path / "out"
    gridsched("run", *ex_a, "--driver", "reference", "--export", folder)
    assert "SimGrid driver" in refused("validate", folder)


def huge(description, arrays):
    """Set a size that is not allowed."""
    arrays["tasks.flops"][0] = 1e300


def lose_a_row(description, arrays):
    """Forget an execution."""
    arrays["executions"] = arrays["executions"][:-1]


def other_host(description, arrays):
    """Rename the host of some joules."""
    description["plugin_j"]["h9"] = description["plugin_j"].pop("h2")


BROKEN = {
    "no export": (lambda folder: (folder / "trace.npz").unlink(), ["trace.npz", "--export"]),
    "file empty": (lambda folder: (folder / "trace.npz").write_bytes(b""), ["trace.npz"]),
    "file binary": (lambda folder: (folder / "trace.npz").write_bytes(bytes(range(256))), ["trace.npz"]),
    "file cut": (
        lambda folder: (folder / "trace.npz").write_bytes((folder / "trace.npz").read_bytes()[:-100]),
        ["trace.npz"],
    ),
    "huge number": (lambda folder: edit_archive(folder, huge), ["trace.npz", "1e+300"]),
    "row lost": (lambda folder: edit_archive(folder, lose_a_row), ["trace.npz", "job", "0"]),
    "plugin energy of another host": (lambda folder: edit_archive(folder, other_host), ["trace.npz", "h9"]),
    "folder for a file": (
        lambda folder: ((folder / "trace.npz").unlink(), (folder / "trace.npz").mkdir()),
        ["trace.npz", "folder"],
    ),
}


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
    """A missing folder and a file are distinguished."""
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


# Runs whose joules differ between plugin and model are failed ones, for every command.

#: A policy that goes behind the engine's back: SimGrid's host is then in another P-state than the
#: model's, as fast as the first and at 30 W in the place of 100 W.
MEDDLER = '''
"""A policy that changes SimGrid itself."""

import sys

from gridsched import Assign, Scheduler, Traits


class Meddler(Scheduler):
    """A work queue that puts host b into another P-state by SimGrid's own interface."""

    traits = Traits(trigger="event")

    def schedule(self, state):
        sys.modules["simgrid"].Host.by_name("b").pstate = 1
        return [Assign(t, h) for t, h in zip(state.waiting(), state.idle_cores())]
'''


@pytest.fixture
def files(tmp_path) -> list[object]:
    """Return the options of two hosts, and of a task for each of 10 s."""
    hosts = [host_xml(name, "100f,100f", "10:10:100, 10:10:30") for name in "ab"]
    (tmp_path / "p.xml").write_text(zone_xml("".join(hosts)))
    (tmp_path / "bag.csv").write_text("id,flops\n1,1000\n2,1000\n")
    (tmp_path / "meddler.py").write_text(MEDDLER)
    return ["--platform", tmp_path / "p.xml", "--workload", tmp_path / "bag.csv"]


@pytest.mark.usefixtures("simgrid")
def test_run_tells_the_host_and_writes_nothing(gridsched, files, tmp_path):
    """300 J by the plugin, 1000 J by the model: exit status 1, no table, no file."""
    target, records = tmp_path / "t.json", tmp_path / "out"
    found = gridsched("run", *files, "--scheduler", tmp_path / "meddler.py", "-o", target, "--export", records)
    assert found.status == 1
    assert found.out == ""
    assert not target.exists()
    assert not records.exists()
    told = " ".join(found.err.split())
    assert "host 'b' has energy_j 300.0 by SimGrid's plugin and energy_model_j 1000.0" in told
    assert "(1 of 2 hosts differ)" in told
    assert "All figures of this run are left out" in told


@pytest.mark.usefixtures("simgrid")
def test_compare_leaves_the_run_out_and_keeps_the_others(gridsched, files, tmp_path):
    """The other schedulers have their rows; the failure names its own."""
    both = f"wq,{tmp_path / 'meddler.py'}"
    found = gridsched("compare", *files, "--schedulers", both, "-o", tmp_path / "t.json", "--json")
    assert found.status == 1
    assert [row["scheduler"] for row in found.json["results"]] == ["wq"]
    (failure,) = json.loads((tmp_path / "t.json").read_text())["failures"]
    assert "Meddler" in failure
    assert "host 'b' has energy_j 300.0" in failure
    assert "All figures of this run are left out" in failure
    assert "run failed" in found.err
