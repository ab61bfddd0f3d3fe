"""Exports: what is written is read back, whole or not at all."""

from __future__ import annotations

import json
import math
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import traces_by_hand as by_hand
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_files import edit_archive

from gridsched.energy import relative_difference, trace_energy
from gridsched.errors import InputError
from gridsched.export.export import EXPORT, FILES, read_export, write_export
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
        and first.delegated_to == second.delegated_to
    )


def test_notes_come_back_and_stand_in_tasks_csv(tmp_path):
    """A noted column survives the archive; where nothing was noted the table is empty."""
    noted = np.full(6, np.nan)
    noted[1] = 0.25
    trace = replace(by_hand.everything_at_once(), notes={"chance": noted})
    folder = export(trace, tmp_path / "out")
    back = read_export(folder).trace.notes
    assert back.keys() == {"chance"}
    assert np.array_equal(back["chance"], noted, equal_nan=True)
    header, *rows = (folder / "tasks.csv").read_text().splitlines()
    assert header.split(",")[-1] == "noted_chance"
    assert [row.split(",")[-1] for row in rows] == ["", "0.25", "", "", "", ""]
    edit_archive(folder, lambda _, arrays: arrays.update({"notes.chance": noted[1:]}))
    with pytest.raises(InputError, match=r"notes\.chance.*5.*6"):
        read_export(folder)


def test_no_cell_of_an_export_is_a_formula(tmp_path):
    """Names of hosts are another's making; the archive has them as they are."""
    trace = by_hand.everything_at_once()
    hosts = tuple(replace(host, name=f"={host.name}") for host in trace.platform.hosts)
    trace = replace(trace, platform=replace(trace.platform, hosts=hosts))
    folder = export(trace, tmp_path / "out")
    texts = {path.name: path.read_text() for path in folder.glob("*.csv")}
    assert all(f"'{hosts[0].name}," in texts[name] for name in ("hosts.csv", "host_energy.csv"))
    for text in texts.values():
        assert not any(cell.startswith("=") for row in text.splitlines() for cell in row.split(","))
    assert read_export(folder).trace.platform.hosts == hosts


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_comes_back_bit_by_bit(tmp_path, name):
    """Trace, provenance, metered joules and timing survive the way through the files."""
    trace = TRACES[name]()
    object.__setattr__(trace, "timing", {"policy_s": 0.25})
    first = trace.platform.hosts[0].name
    provenance = {"seed": 7, "scheduler": "wq", "files": [Path("a.xml").name]}
    folder = export(
        trace, tmp_path / "run", plugin_j={first: 1 / 3}, provenance=provenance, workload_name="a bag, with comma"
    )
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


def test_nodes_and_requested_times_come_back(tmp_path):
    """The archive and tasks.csv have width and requested time, where tasks have them."""
    trace = by_hand.work_queue()
    n = len(trace.tasks)
    tasks = replace(trace.tasks, width=np.arange(1, n + 1), requested_time_s=np.arange(n) + 0.1)
    folder = export(replace(trace, tasks=tasks), tmp_path / "run")
    back = read_export(folder).trace.tasks
    assert back.width.tolist() == tasks.width.tolist()
    assert back.requested_time_s.tolist() == tasks.requested_time_s.tolist()
    header, first, *_ = (folder / "tasks.csv").read_text().splitlines()
    assert header.endswith(",width,requested_time_s")
    assert first.endswith(",1,0.1")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    """The model's joules come from the archive: a record changed by hand changes its host's."""
    trace = by_hand.work_queue()
    folder = export(trace, tmp_path / "run")

    def shift(description, arrays):
        runs = arrays["executions"]
        row = np.flatnonzero((runs["start"] == 10.0) & (runs["end"] == 25.0))
        runs["start"][row] = 10.000001

    edit_archive(folder, shift)
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
    """Force deletes exports, and never a user's thesis."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"'thesis\.tex'"):
        export(by_hand.work_queue(), folder, force=True)
    assert (folder / "thesis.tex").read_text() == "years of work"


@pytest.mark.systems("batsim")
def test_a_folder_that_only_looks_like_an_export_is_kept(tmp_path):
    """A Batsim output folder has jobs.csv, too, but is not ours to delete."""
    folder = tmp_path / "batsim"
    folder.mkdir()
    (folder / "jobs.csv").write_text("theirs")
    with pytest.raises(InputError, match=r"'trace\.npz'"):
        export(by_hand.work_queue(), folder, force=True)
    assert (folder / "jobs.csv").read_text() == "theirs"


def test_an_export_with_a_link_or_folder_in_it_is_never_replaced(tmp_path):
    """A link named like a file of ours, or a folder, is not a file that we wrote."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    (folder / "jobs.csv").unlink()
    (folder / "jobs.csv").symlink_to("hosts.csv")
    with pytest.raises(InputError, match=r"'jobs\.csv'"):
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
            EXPORT.check(tmp_path / "run", force=force)
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
    with pytest.raises(InputError, match="Permission denied"):
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
    with pytest.raises(InputError, match="No space left on device"):
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


def change_row(name, row, column, value):
    """Return what sets one value of the archive's records."""

    def change(description, arrays):
        records = arrays[name]
        if column is None:
            records[row] = value
        else:
            records[column][row] = value

    return change


def without(name):
    """Return what removes an array or a field of the description."""

    def change(description, arrays):
        del (arrays if name in arrays else description)[name]

    return change


def describe(path, value):
    """Return what sets a value of the description; the path's parts are keys and indices."""

    def change(description, arrays):
        *inner, last = path
        for key in inner:
            description = description[key]
        description[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_row("executions", 0, "start", math.nan), r"row 0: start is nan; it must be finite"),
        (change_row("executions", 0, "start", -1), r"row 0: start is -1\.0; it must be finite and"),
        (change_row("executions", 0, "outcome", 9), r"row 0: outcome is 9; it must be an end"),
        (change_row("executions", 0, "start", 11), r"row 0: end is 10\.0; it must be .*not before"),
        (change_row("executions", 0, "end", math.inf), r"row 0: end is inf"),
        (change_row("executions", 0, "task", 6), r"row 0: task is 6; it must be from 0 to 5"),
        (change_row("executions", 0, "host", 2), r"row 0: host is 2; it must be from 0 to 1"),
        (change_row("executions", 3, "pstate", 1), r"row 3: pstate is 1; it must be a P-state of"),
        (change_row("executions", 0, "outcome", 3), r"job 7 ends as state \d+, but has 0 finished"),
        (change_row("host_changes", 1, "time", 1.0), "needs one at 0 s"),
        (change_row("host_changes", -1, "time", 30.0), r"time is 30\.0; it must be at least the"),
        (change_row("host_changes", -1, "time", 1e308), r"time is 1e\+308; it must be .* finite"),
        (change_row("tasks.flops", 0, None, -100), r"task 7 has flops -100; it must be finite and"),
        (change_row("tasks.labels", 0, None, 3), "distinct"),
        (change_row("tasks.submit_time_s", 0, None, 9.0), "submit_time_s must never decrease"),
        (without("executions"), "executions"),
        (without("horizon_s"), "horizon_s"),
        (without("format_version"), "format_version"),
        (describe(["platform", "hosts", 0, "cores"], "two"), r"hosts\[0\]\.cores is 'two'; "),
        (describe(["platform", "hosts", 0, "cores"], 0), "host 'node' needs a core, a P-state"),
        (describe(["platform", "hosts", 0, "off_w"], math.nan), "host 'node' needs a core"),
        (describe(["platform", "hosts", 0, "pstates"], []), "host 'node' needs a core"),
        (describe(["platform", "clusters", 0, "hosts"], [7]), "clusters must hold every computing"),
        (describe(["platform"], None), "platform"),
        (describe(["horizon_s"], math.inf), "horizon_s is inf"),
        (describe(["format_version"], 9), r"is of version 9; this gridsched reads version 2"),
        (describe(["plugin_j"], {"nodes": 1.0}), "hosts that the platform has not"),
        (describe(["plugin_j"], ["node"]), r"plugin_j is \['node'\];"),
        (describe(["plugin_j"], {"node": "x"}), r"plugin_j\.node is 'x'; .* number"),
        (describe(["mapping_events"], math.inf), "mapping_events is inf; .* finite"),
        (describe(["mapping_events"], -1), "mapping_events is -1; .* greater"),
        (describe(["provenance"], []), r"provenance is \[\];"),
        (describe(["workload_name"], 3), "workload_name is 3;"),
        (describe(["timing"], {"total_s": []}), r"timing\.total_s is \[\]; .* number"),
        (describe(["delegated_to"], {}), r"delegated_to is \{\};"),
        (describe(["urgency_unit_s"], 0), "urgency_unit_s is 0; .* greater"),
    ],
)
def test_a_spoilt_archive_is_refused(tmp_path, change, message):
    """Each fault is one line that names the file, the place, what was found and what is allowed."""
    folder = export(by_hand.everything_at_once(), tmp_path / "run")
    edit_archive(folder, change)
    with pytest.raises(InputError, match=message) as caught:
        read_export(folder)
    assert "\n" not in str(caught.value)
    assert str(folder / "trace.npz") in str(caught.value)


def test_a_byte_of_the_archive_is_never_lost_unseen(tmp_path):
    """Flipped or cut anywhere: an error that names the file, or the very same run."""
    trace = by_hand.everything_at_once()
    folder = export(trace, tmp_path / "run")
    path = folder / "trace.npz"
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for k in rng.choice(len(whole), 150, replace=False):
        for content in (whole[:k] + bytes([whole[k] ^ 64]) + whole[k + 1 :], whole[:k]):
            path.write_bytes(content)
            try:
                back, line = read_export(folder).trace, ""
            except InputError as error:
                back, line = None, str(error)
            assert same_trace(back, trace) if back else str(path) in line and "\n" not in line
            refused += back is None
    assert refused > 200


@pytest.mark.parametrize("fault", ["empty", "binary", "pickle", "array", "folder"])
def test_an_archive_that_is_none(tmp_path, fault):
    """Whatever is in its place, the message names it, and nothing is executed."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    path = folder / "trace.npz"
    path.unlink()
    if fault == "folder":
        path.mkdir()
    elif fault == "array":
        with open(path, "wb") as stream:
            np.save(stream, np.arange(3))
    else:
        words = {"empty": b"", "binary": b"\x89PNG\x00\xff\xfe" * 100, "pickle": pickle.dumps({"description": 1})}
        path.write_bytes(words[fault])
    with pytest.raises(InputError, match=r"trace\.npz: ") as caught:
        read_export(folder)
    assert "\n" not in str(caught.value)


def test_read_back_needs_the_archive_alone(tmp_path):
    """Tables are for people and other tools: without them the run is still there."""
    trace = by_hand.everything_at_once()
    folder = export(trace, tmp_path / "run")
    for path in folder.iterdir():
        if path.name != "trace.npz":
            path.unlink()
    assert same_trace(read_export(folder).trace, trace)


def test_the_scheduler_that_decided_comes_back(tmp_path):
    """auto_bag's choice is part of the trace."""
    trace = replace(by_hand.work_queue(), delegated_to="LECSA()")
    assert read_export(export(trace, tmp_path / "run")).trace.delegated_to == "LECSA()"


def test_an_export_without_archive_is_one_clear_line(tmp_path):
    """Whatever else lies there."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    (folder / "trace.npz").unlink()
    with pytest.raises(InputError, match=r"'trace\.npz'"):
        read_export(folder)


def test_folders_that_are_no_exports(tmp_path):
    """A folder that is not there, a file, and an empty folder."""
    with pytest.raises(InputError, match="does not exist"):
        read_export(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file, not a folder"):
        read_export(tmp_path / "file")
    with pytest.raises(InputError, match=r"'trace\.npz'"):
        read_export(tmp_path)
