"""Exports: what is written is read back, whole or not at all."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import traces_by_hand as by_hand
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched.energy import relative_difference, trace_energy
from gridsched.errors import InputError
from gridsched.export.export import FILES, check_export_folder, read_export, write_export
from gridsched.metrics import summary

TRACES = {
    "work queue": by_hand.work_queue,
    "replication": lambda: by_hand.replication(3),
    "lecsa": lambda: by_hand.lecsa(switch_off=True),
    "everything": by_hand.everything_at_once,
    "empty": by_hand.empty,
}


def export(trace, folder, **options):
    """Write an export with little around it."""
    options = {"plugin_j": None, "provenance": {}, "workload_name": "bag"} | options
    write_export(trace, directory=folder, **options)
    return folder


def same_trace(first, second):
    """Whether two traces are equal bit by bit."""
    ours, theirs = first.tasks, second.tasks
    arrays = ("flops", "submit_time_s", "input_bytes", "output_bytes", "labels")
    return (
        first.platform == second.platform
        and first.platform.warnings == second.platform.warnings
        and all(np.array_equal(getattr(ours, a), getattr(theirs, a)) for a in arrays)
        and np.array_equal(first.executions, second.executions)
        and np.array_equal(first.host_changes, second.host_changes)
        and np.array_equal(first.final_state, second.final_state)
        and (first.horizon_s, first.mapping_events) == (second.horizon_s, second.mapping_events)
    )


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_comes_back_bit_by_bit(tmp_path, name):
    """Trace, provenance, metered joules and timing survive the way through the files."""
    trace = TRACES[name]()
    object.__setattr__(trace, "timing", {"policy_s": 0.25})
    first = trace.platform.hosts[0].name
    provenance = {"seed": 7, "scheduler": "wq", "files": [Path("a.xml").name]}
    folder = export(
        trace, tmp_path / "run", plugin_j={first: 1 / 3}, provenance=provenance,
        workload_name="a bag, with comma",
    )  # fmt: skip
    back = read_export(folder)
    assert same_trace(back.trace, trace)
    assert back.plugin_j == {first: 1 / 3}
    assert back.provenance == provenance
    assert back.workload_name == "a bag, with comma"
    assert back.trace.timing == trace.timing
    assert {entry.name for entry in folder.iterdir()} == FILES


def test_optional_parts_of_tasks_come_back(tmp_path):
    """Task types, input files with their places, and the nominal heterogeneity."""
    trace = by_hand.everything_at_once()
    tasks = read_export(export(trace, tmp_path / "run")).trace.tasks
    assert tasks.task_type.tolist() == trace.tasks.task_type.tolist()
    assert tasks.input_files == trace.tasks.input_files
    assert tasks.files.names == ("a", "b")
    assert tasks.files.size_bytes.tolist() == [10.0, 2.5]
    assert tasks.files.locations == (("c1",), ("c1", "bare"))
    assert tasks.nominal_heterogeneity == 0.5
    plain = read_export(export(by_hand.work_queue(), tmp_path / "plain")).trace.tasks
    assert plain.task_type is plain.input_files is plain.files is None


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(1, 4), st.integers(0, 40), st.integers(1, 3), st.integers(0, 10**6))
def test_metrics_of_an_export_are_those_of_the_run(tmp_path, n_hosts, n_tasks, cores, seed):
    """Random runs: every metric and every joule repeats exactly from the files."""
    trace = by_hand.list_schedule(n_hosts, n_tasks, cores, seed, cancel_every=4)
    back = read_export(export(trace, tmp_path / "run", force=True)).trace
    assert same_trace(back, trace)
    assert json.dumps(summary(back)) == json.dumps(summary(trace))
    assert trace_energy(back).total_j.tolist() == trace_energy(trace).total_j.tolist()


def test_two_exports_of_one_run_are_equal(tmp_path):
    """Same run, same bytes in every file."""
    first = export(by_hand.replication(2), tmp_path / "a")
    second = export(by_hand.replication(2), tmp_path / "b")
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in FILES)


def test_a_start_shifted_by_a_microsecond_shows_in_the_joules(tmp_path):
    """The model's joules come from the files: a record changed by hand changes its host's."""
    trace = by_hand.work_queue()
    folder = export(trace, tmp_path / "run")
    spoil(folder, "executions.csv", "10.0,25.0,finished", "10.000001,25.0,finished")
    found, before = trace_energy(read_export(folder).trace), trace_energy(trace)
    apart = relative_difference(found.total_j, before.total_j) > 1e-9
    assert apart.tolist() == [True, False, False]


# ---------------------------------------------------------------------- whole or not at all


def test_an_existing_folder_needs_force(tmp_path):
    """Without force nothing is touched; with it the export is replaced."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    before = (folder / "executions.csv").read_bytes()
    with pytest.raises(InputError, match="exists already"):
        export(by_hand.replication(2), folder)
    assert (folder / "executions.csv").read_bytes() == before
    export(by_hand.replication(2), folder, force=True)
    assert len(read_export(folder).trace.executions) == 6
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_foreign_files_is_never_replaced(tmp_path):
    """Force deletes exports, nobody's thesis."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"holds 'thesis\.tex', which is no file of an export"):
        export(by_hand.work_queue(), folder, force=True)
    assert (folder / "thesis.tex").read_text() == "years of work"


def test_a_folder_that_only_looks_like_an_export_is_kept(tmp_path):
    """A Batsim output folder has jobs.csv, too, but is not ours to delete."""
    folder = tmp_path / "batsim"
    folder.mkdir()
    (folder / "jobs.csv").write_text("theirs")
    with pytest.raises(InputError, match=r"has no 'trace\.json' and so is no export"):
        export(by_hand.work_queue(), folder, force=True)
    assert (folder / "jobs.csv").read_text() == "theirs"


def test_an_export_with_a_link_or_folder_in_it_is_never_replaced(tmp_path):
    """A link named like a file of ours, or a folder, is no file that we wrote."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    (folder / "jobs.csv").unlink()
    (folder / "jobs.csv").symlink_to("hosts.csv")
    with pytest.raises(InputError, match=r"holds 'jobs\.csv', which is no file of an export"):
        export(by_hand.work_queue(), folder, force=True)
    assert (folder / "jobs.csv").is_symlink()


def test_an_empty_folder_may_be_filled_with_force(tmp_path):
    """A folder made beforehand holds nothing to lose."""
    export(by_hand.work_queue(), tmp_path, force=True)
    assert read_export(tmp_path).workload_name == "bag"


def test_a_file_in_the_way_is_refused(tmp_path):
    """The target is a folder, never a file, forced or not."""
    (tmp_path / "run").write_text("a file")
    for force in (False, True):
        with pytest.raises(InputError, match="is a file; give the name of a folder"):
            check_export_folder(tmp_path / "run", force=force)
    assert (tmp_path / "run").read_text() == "a file"


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    """A parent that is a file: InputError, nothing left behind."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        export(by_hand.work_queue(), tmp_path / "file" / "run")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_one_clear_line(tmp_path):
    """No permission to write: InputError names the folder."""
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        export(by_hand.work_queue(), tmp_path / "run")
    tmp_path.chmod(0o700)


def test_the_old_export_stays_if_the_new_one_fails(tmp_path, monkeypatch):
    """The disk fills while the new files are written: the old export is whole, no rest is left."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    write_bytes = Path.write_bytes

    def full_disk(path, content):
        if path.name == "platform.json":
            raise OSError(28, "No space left on device")
        return write_bytes(path, content)

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        export(by_hand.replication(2), folder, force=True)
    monkeypatch.undo()
    assert len(read_export(folder).trace.executions) == 5
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_the_old_export_comes_back_if_the_renaming_fails(tmp_path, monkeypatch):
    """The last step fails: the old folder is put back in its place."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    rename = Path.rename

    def stubborn(path, target):
        if path.suffix == ".tmp":
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", stubborn)
    with pytest.raises(InputError, match="Input/output error"):
        export(by_hand.replication(2), folder, force=True)
    monkeypatch.undo()
    assert len(read_export(folder).trace.executions) == 5
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_provenance_may_hold_numpy_numbers_and_paths(tmp_path):
    """What callers put in by nature is written as plain JSON."""
    provenance = {"seed": np.int64(3), "platform": Path("p.xml"), "leniency": math.inf}
    folder = export(by_hand.empty(), tmp_path / "run", provenance=provenance)
    back = read_export(folder).provenance
    assert back == {"seed": 3, "platform": "p.xml", "leniency": math.inf}


# ---------------------------------------------------------------------- bad input


def spoil(folder, name, old, new):
    """Replace the first `old` in a file of an export."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("executions.csv", "0.0,10.0,finished", "nan,10.0,finished",
         r"executions\.csv: line 2: column 'starting_time' is 'nan'; it must be a finite number"),
        ("executions.csv", "0.0,10.0,finished", "-1,10.0,finished",
         r"line 2: column 'starting_time' is -1\.0; it must be at least 0"),
        ("executions.csv", "0.0,10.0,finished", "0.0,10.0,done",
         r"line 2: column 'outcome' is 'done'; it must be one of finished, cancelled"),
        ("executions.csv", "0.0,10.0,finished", "11.0,10.0,finished",
         r"line 2: column 'finish_time' is 10\.0; it must be at least starting_time"),
        ("executions.csv", "7,0,node", "8,0,node",
         r"line 2: column 'job_id' is 8; it must be a job of tasks\.csv"),
        ("executions.csv", "7,0,node", "7,2,node", "'host_id' is 2; it must be from 0 to 1"),
        ("executions.csv", "9,1,bare,0", "9,1,bare,1",
         r"line 5: column 'pstate' is 1; it must be a P-state of its host"),
        ("executions.csv", "7,0,node", "seven,0,node", r"'seven'; it must be a whole number"),
        ("executions.csv", "7,0,node", "99999999999999999999,0,node", "must be a whole number"),
        ("executions.csv", "job_id,", "job,", r"line 1: column 'job_id' is missing"),
        ("executions.csv", "9,1,bare,0,60.0,70.0,killed,200.0,0.0,0.0\n", "",
         r"executions\.csv: has 3 rows, but trace\.json says 4; it was cut off or edited"),
        ("executions.csv", "killed,200.0,0.0,0.0\n", "kil", "line 5: 7 fields where the"),
        ("executions.csv", "0.0,10.0,finished", "0.0,10.0,failed",
         r"tasks\.csv: line 2: job 7 ends as 'finished', but executions\.csv has 0"),
        ("host_changes.csv", "0.0,1,0,1\n", "1.0,1,0,1\n", "needs a row at time 0"),
        ("host_changes.csv", "47.0", "30.0", r"line 6: column 'time' is 30\.0; it must be"),
        ("host_changes.csv", "35.0,0,0,1", "35.0,0,0,2", r"'is_on' is 2; it must be 0 or 1"),
        ("tasks.csv", "dropped", "lost", r"line 6: column 'final_state' is 'lost'; it must be one"),
        ("tasks.csv", "7,100.0", "7,-100.0", r"task 7 has flops -100; it must be finite and gr"),
        ("tasks.csv", "7,100.0", "3,100.0", "distinct"),
        ("tasks.csv", "0 1,killed", "0 2,killed",
         r"line 5: column 'input_files' is '0 2'; it must be whole numbers from 0 to 1"),
        ("tasks.csv", "0,0.0", "0,9.0", "'submission_time' must never decrease"),
        ("tasks.csv", "0.0,0,,f", "0.0,,,f", r"line 2: column 'task_type' .* one number"),
        ("platform.json", '"cores": 2', '"cores": 0', r"hosts\[0\]\.cores is 0; it must be"),
        ("platform.json", '"off_w": 1.0', '"off_w": NaN', r"hosts\[0\]\.off_w is nan"),
        ("platform.json", '"latency_s"', '"latency"', r"clusters\[0\]\.latency_s is missing"),
        ("platform.json", '"hosts"', '"host"', r"clusters\[0\]\.hosts is missing"),
        ("platform.json", "{", "[", "is not JSON"),
        ("trace.json", '"horizon_s": 70.0', '"horizon_s": Infinity', "horizon_s is inf"),
        ("trace.json", '"format_version": 1', '"format_version": 9', "reads version 1"),
        ("provenance.json", "{}", "[]", r"provenance\.json: must hold a JSON object, not list"),
        ("host_energy.csv", "node,computing", "nodes,computing", "hosts are not those of platform"),
        ("host_energy.csv", "node,computing,", "node,computing,x", "must be a finite number"),
    ],
)  # fmt: skip
def test_a_spoilt_export_is_refused_by_file_and_line(tmp_path, name, old, new, message):
    """Each fault is one line that names the file, the place, what was found and what is legal."""
    folder = export(by_hand.everything_at_once(), tmp_path / "run")
    spoil(folder, name, old, new)
    with pytest.raises(InputError, match=message) as caught:
        read_export(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value) or "task" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["executions.csv", "host_changes.csv", "tasks.csv", "platform.json", "trace.json",
             "timing.json", "provenance.json", "host_energy.csv"],
)  # fmt: skip
@pytest.mark.parametrize("fault", ["missing", "empty", "binary"])
def test_a_file_that_is_missing_empty_or_binary(tmp_path, name, fault):
    """Whatever was done to a file, the message names it."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    if fault == "missing":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(b"" if fault == "empty" else b"\x89PNG\x00\xff\xfe" * 100)
    with pytest.raises(InputError, match=name.replace(".", r"\.")) as caught:
        read_export(folder)
    assert "\n" not in str(caught.value)


def test_folders_that_are_no_exports(tmp_path):
    """A folder that is not there, a file, and an empty folder."""
    with pytest.raises(InputError, match="does not exist"):
        read_export(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file, not a folder"):
        read_export(tmp_path / "file")
    with pytest.raises(InputError, match=r"has no 'trace\.json' and so is no export"):
        read_export(tmp_path)
