"""The trace-event file of an export says what the records say, in whole microseconds."""

from __future__ import annotations

import json
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
from gridsched.export import trace_events
from gridsched.export.export import write_export
from gridsched.export.trace_events import trace_events_text
from gridsched.model.trace import ExecutionEnd
from gridsched.power import trace_power
from gridsched.testing.parallel_cases import EXAMPLE, make_parallel_case

EXAMPLES = Path(__file__).parents[2] / "examples"


def read(trace):
    """Return the events of a run, read back from its text."""
    return json.loads(trace_events_text(trace, trace_power(trace)))


def bars(document, category):
    """Return the bars of a category with the name of the thread that each stands in."""
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
    """The example's jobs of 3, 4, 1 and 1 nodes have 9 bars; where that is too many, 4, as is told."""
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
