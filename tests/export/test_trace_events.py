"""Trace events, and archives that others have made."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import traces_by_hand as by_hand
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Scenario, run
from gridsched.energy import busy_energy_j, trace_energy
from gridsched.errors import InputError
from gridsched.export import trace_events
from gridsched.export.export import read_export, write_export
from gridsched.export.trace_events import trace_events_text
from gridsched.model.trace import ExecutionEnd
from gridsched.power import trace_power
from gridsched.testing.parallel_cases import EXAMPLE, make_parallel_case

# The trace-event file of an export agrees with the records, in whole microseconds.

EXAMPLES = Path(__file__).parents[2] / "examples"


def read(trace):
    """Return the events of a run, read back from its text."""
    return json.loads(trace_events_text(trace, trace_power(trace)))


def bars(document, category):
    """Return the bars of a category with the name of the thread that each is in."""
    events = document["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [(names[e["pid"], e["tid"]], e) for e in events if e.get("cat") == category]


@pytest.mark.parametrize(
    "trace",
    [
        by_hand.work_queue(),
        by_hand.replication(3),
        by_hand.everything_at_once(),
        by_hand.list_schedule(5, 60, 3, 7, cancel_every=4),
        by_hand.empty(),
    ],
)
def test_each_execution_is_a_bar_with_its_record(tmp_path, trace):
    """Task, host, P-state, outcome, joules and wait of every execution; times to half a microsecond."""
    write_export(trace, None, {}, tmp_path / "out", workload_name="bag")
    document = json.loads((tmp_path / "out" / "trace_events.json").read_text())
    rows = []
    for thread, bar in bars(document, "execution"):
        args, host = bar["args"], thread.split(", core ")[0]
        rows.append((bar["ts"], bar["ts"] + bar["dur"], host, *(args[k] for k in ("task", "pstate", "outcome"))))
        rows[-1] += (args["energy_j"], args["wait_s"])
    runs, labels = trace.executions, trace.tasks.labels
    joules, waits = busy_energy_j(trace), runs["start"] - trace.tasks.submit_time_s[runs["task"]]
    hosts = [host.name for host in trace.platform.hosts]
    expected = [
        (
            round(run["start"] * 1e6),
            round(run["end"] * 1e6),
            hosts[run["host"]],
            int(labels[run["task"]]),
            int(run["pstate"]),
            ExecutionEnd(run["outcome"]).name.lower(),
            float(energy),
            float(wait),
        )
        for run, energy, wait in zip(runs, joules, waits, strict=True)
    ]
    assert sorted(rows) == sorted(expected)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(0, 40), st.integers(1, 3), st.integers(0, 10**6))
def test_bars_of_a_thread_never_overlap(n_hosts, n_tasks, cores, seed):
    """Viewers drop a bar that begins within another and ends after it."""
    document = read(by_hand.list_schedule(n_hosts, n_tasks, cores, seed, cancel_every=4))
    of_thread = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            of_thread[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in of_thread.values():
        assert all(end <= start for (_, end), (start, _) in pairwise(sorted(spans)))


def test_power_adds_up_to_the_energy():
    """The counter holds from each change to the next: the model's joules, to a microsecond's rounding."""
    trace = by_hand.everything_at_once()
    events = read(trace)["traceEvents"]
    steps = [(e["ts"] / 1e6, e["args"]["W"]) for e in events if e["ph"] == "C"] + [(trace.horizon_s, 0.0)]
    joules = sum(watts * (after - time) for (time, watts), (after, _) in pairwise(steps))
    assert joules == pytest.approx(trace_energy(trace).grid_total(), rel=1e-6)


def test_switching_and_cores_of_a_host_by_hand():
    """The node is off from 25 s, boots from 35 s to 45 s; its two cores are two threads."""
    document = read(by_hand.everything_at_once())
    switched = [(thread, bar["name"], bar["ts"], bar["dur"]) for thread, bar in bars(document, "host")]
    assert switched == [
        ("node, core 0", "off", 25_000_000, 10_000_000),
        ("node, core 0", "boot", 35_000_000, 10_000_000),
    ]
    first = [(thread, bar["name"]) for thread, bar in bars(document, "execution") if bar["ts"] == 0]
    assert first == [("node, core 0", "task 7"), ("node, core 1", "task 3")]
    assert ("bare", "task 9 (killed)") in [(thread, bar["name"]) for thread, bar in bars(document, "execution")]


def test_a_failure_is_told_from_a_switch():
    """The host of the example is down from 20 s to 25 s, and what it ran has failed."""
    tasks = by_hand.make_tasks([1500.0] * 6)
    trace = run(Scenario(EXAMPLES / "failing.xml", tasks, "wq", driver="reference")).trace
    document = read(trace)
    down = [(thread, bar["name"], bar["ts"], bar["dur"]) for thread, bar in bars(document, "host")]
    assert down == [("faulty", "down", 20_000_000, 5_000_000)]
    failed = [bar for thread, bar in bars(document, "execution") if bar["args"]["outcome"] == "failed"]
    assert len(failed) == np.count_nonzero(trace.executions["outcome"] == ExecutionEnd.FAILED) > 0
    assert all(bar["ts"] + bar["dur"] == 20_000_000 for bar in failed)


def test_a_job_stands_on_each_of_its_nodes_or_on_the_first(monkeypatch):
    """The example's jobs of 3, 4, 1 and 1 nodes have 9 bars; if that is too many, 4, and a line reports this."""
    case = make_parallel_case("example", 4, [(0, 4, 3, 10), *EXAMPLE[1:]])
    trace = run(case.scenario("easy_backfilling", driver="reference")).trace
    whole = read(trace)
    assert sorted(bar["name"] for _, bar in bars(whole, "execution")) == sorted(
        f"job {label}" for label, width in ((1, 3), (2, 4), (3, 1), (4, 1)) for _ in range(width)
    )
    assert "note" not in whole["otherData"]
    monkeypatch.setattr(trace_events, "MOST_BARS", 8)
    folded = read(trace)
    assert sorted(bar["args"]["hosts"] for _, bar in bars(folded, "execution")) == [1, 1, 3, 4]
    assert folded["otherData"]["note"]


def test_clusters_are_processes_and_unknown_power_is_left_out():
    """Two clusters, the grid beside them; without power there is neither a counter nor joules."""
    trace = by_hand.everything_at_once()
    names = [e["args"]["name"] for e in read(trace)["traceEvents"] if e["name"] == "process_name"]
    assert names == ["grid", "hosts"]  # clusters of one host each
    bag = by_hand.make_tasks([1000.0] * 3)
    bare = run(Scenario(EXAMPLES / "bare.xml", bag, "wq", driver="reference", power=("none",))).trace
    events = read(bare)["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "C"] == []
    assert all("energy_j" not in e["args"] for e in events)


# Archives of somebody else: small files that would unpack to gigabytes.


@pytest.fixture
def folder(tmp_path):
    """The export of a run."""
    write_export(
        by_hand.everything_at_once(), directory=tmp_path / "e", plugin_j=None, provenance={}, workload_name="bag"
    )
    return tmp_path / "e"


def with_member(folder, name, size, *, shape=None, compression=zipfile.ZIP_DEFLATED, dtype="<f8"):
    """Put an array of zeros into the archive of an export, `size` bytes long."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": dtype, "fortran_order": False, "shape": shape or (size // 8,)}
    )
    zeros = bytes(1 << 20)
    with (
        zipfile.ZipFile(folder / "trace.npz", "a", compression) as archive,
        archive.open(f"{name}.npy", "w", force_zip64=True) as stream,
    ):
        stream.write(header.getvalue())
        for done in range(0, size, len(zeros)):
            stream.write(zeros[: size - done])


def peak_of_reading(folder):
    """Return what reading an export takes at its peak [byte], and the problem or None."""
    tracemalloc.start()
    try:
        read_export(folder)
        return tracemalloc.get_traced_memory()[1], None
    except InputError as error:
        return tracemalloc.get_traced_memory()[1], str(error)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["own", "../tasks.flops"])
def test_arrays_that_no_run_has_are_not_unpacked(folder, name):
    """A small file that holds 300 MB of zeros is read in no time, without them."""
    before = peak_of_reading(folder)[0]
    with_member(folder, name, 300 << 20)
    peak, problem = peak_of_reading(folder)
    assert problem is None
    assert peak < before + (16 << 20)


@pytest.mark.parametrize("name", ["notes.own", "tasks.width"])
def test_an_archive_that_unpacks_to_far_too_much_is_refused(folder, name):
    """Before it is unpacked, by the size that it declares."""
    with_member(folder, name, 300 << 20)
    peak, problem = peak_of_reading(folder)
    assert "trace.npz: unpacks to 300 MB" in problem
    assert peak < 16 << 20


@pytest.mark.parametrize(
    "options",
    [
        {"shape": (1 << 40,)},
        {"shape": (1 << 20, 1 << 20)},
        {"dtype": "|O"},
        {"dtype": "|V0", "shape": (1 << 40,)},
        {"dtype": "|V8", "shape": (1 << 40, 0, 1 << 40)},
        {"compression": zipfile.ZIP_LZMA},
        {"compression": zipfile.ZIP_BZIP2},
    ],
)
def test_an_array_that_says_that_it_is_larger_than_it_is_is_refused(folder, options):
    """Nothing is put aside for it."""
    with_member(folder, "notes.own", 64, **options)
    peak, problem = peak_of_reading(folder)
    assert "is not a whole archive of a run" in problem
    assert peak < 16 << 20


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,)",
        # NumPy divides by this 0, which ends the process
        b"{'descr': '<M8[ns/0]', 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': [('a', '<M8[ns/0]')], 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': 'f8,,', 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': [['<f8']], 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': None, 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': 'x'}",
        b"[]",
        b"{}",
        b"(" * 9_000,
        b"-" * 9_000 + b"1",
        b"1" * 60_000,
        b"\0",
    ],
    ids=range(13),
)
def test_an_array_whose_header_is_none_is_refused(folder, header):
    """In one line, whatever the header makes of Python's parser and of NumPy."""
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24)
    with zipfile.ZipFile(folder / "trace.npz", "a") as archive:
        archive.writestr("notes.own.npy", array)
    with pytest.raises(InputError, match=r"trace\.npz") as caught:
        read_export(folder)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["executions", "host_changes", "tasks.flops", "description"])
def test_an_array_of_several_dimensions_is_refused(folder, name):
    """A run has none."""
    with np.load(folder / "trace.npz") as archive:
        arrays = dict(archive)
    np.savez(folder / "trace.npz", **(arrays | {name: arrays[name][None]}))
    with pytest.raises(InputError, match=r"trace\.npz.*shape"):
        read_export(folder)


def test_a_size_that_the_archive_understates_is_refused(folder):
    """No more is unpacked than it declares."""
    with_member(folder, "notes.own", 300 << 20)
    path = folder / "trace.npz"
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("notes.own.npy").file_size
    content = path.read_bytes()
    assert content.count(size.to_bytes(4, "little")) >= 1
    path.write_bytes(content.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    peak, problem = peak_of_reading(folder)
    assert problem is not None
    assert peak < 16 << 20


def test_a_description_of_endless_values_is_refused(folder):
    """Each of 30 million empty lists would take 72 bytes."""
    text = np.frombuffer(b"[" + b"[]," * 30_000_000 + b"0]", np.uint8)
    np.savez_compressed(folder / "trace.npz", description=text)
    peak, problem = peak_of_reading(folder)
    assert "20,000,000 values" in problem
    assert peak < 512 << 20
