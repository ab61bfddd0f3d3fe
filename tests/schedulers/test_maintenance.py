"""Maintenance that is known before: nodes are down, and nobody starts what would not end by then."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rigid_cases import machine

from gridsched import Scenario, run
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

POLICIES = ["fcfs", "easy_backfilling", "conservative_backfilling"]


def scenario(jobs, windows, n_nodes=4, scheduler="easy_backfilling", **options) -> Scenario:
    """Return a run of jobs (submission, run time, nodes, request) on nodes n0, n1, ..."""
    submit, length, width, request = zip(*jobs, strict=True)
    platform = machine(n_nodes)
    tasks = make_tasks(np.array(request) * 1e9, submit, width=width, requested_time_s=request)
    options = {"driver": "reference", "maintenance": tuple(windows)} | options
    return Scenario(platform, tasks, scheduler, run_times=LoggedRunTimes(platform, length), **options)


def starts(*arguments, **options) -> list[float]:
    """Return the start of each job."""
    return run(scenario(*arguments, **options)).trace.start_time_s.tolist()


@pytest.mark.parametrize("scheduler", POLICIES)
def test_a_job_that_would_not_end_by_then_waits(scheduler):
    """All nodes are down from 20 to 30 s: what asks for 20 s from 5 s on waits, although it takes 2 s."""
    assert starts([(0, 15, 2, 20), (5, 2, 2, 20)], ["20:30"], scheduler=scheduler) == [0, 30]


@pytest.mark.parametrize(
    ("scheduler", "start"), [("fcfs", 30), ("easy_backfilling", 6), ("conservative_backfilling", 6)]
)
def test_short_jobs_fill_the_time_before(scheduler, start):
    """The third ends by 20 s; who does not let it overtake makes it wait for the second."""
    jobs = [(0, 15, 2, 20), (5, 2, 2, 20), (6, 10, 2, 14)]
    assert starts(jobs, ["20:30"], scheduler=scheduler) == [0, 30, start]


@pytest.mark.parametrize("scheduler", POLICIES)
def test_other_nodes_go_on(scheduler):
    """Nodes n0 and n1 are down: the long job takes the others."""
    result = run(scenario([(0, 50, 2, 50), (1, 50, 2, 50)], ["n[01]=20:30"], scheduler=scheduler))
    assert result.trace.start_time_s.tolist() == [0, 30]
    assert [result.trace.hosts_of(k).tolist() for k in range(2)] == [[2, 3], [0, 1]]


def test_nodes_that_are_down_draw_what_is_drawn_when_off():
    """Four nodes are down for 10 of 40 s, and idle else, but for 10 s of one."""
    trace = run(scenario([(0, 10, 1, 10), (25, 10, 1, 10)], ["20:30"])).trace
    assert trace.start_time_s.tolist() == [0, 30]
    assert trace_energy(trace).grid_total() == pytest.approx(2 * 10 * 200 + (4 * 40 - 4 * 10 - 20) * 50)


JOBS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=10
).map(lambda rows: [(s, r, n, r + more) for s, r, n, more in sorted(rows, key=lambda row: row[0])])
WINDOWS = st.lists(
    st.tuples(st.integers(10, 80), st.integers(1, 15), st.sampled_from(["*", "n0", "n[0-2]"])), max_size=2
)


def texts_of(drawn) -> list[str]:
    """Return windows that do not touch."""
    windows, last = [], -1
    for begin, length, pattern in sorted(drawn):
        if begin > last:
            windows.append(f"{pattern}={begin}:{begin + length}")
            last = begin + length
    return windows


@settings(max_examples=60, deadline=None)
@given(JOBS, WINDOWS, st.sampled_from(POLICIES))
def test_no_job_is_ever_lost(jobs, drawn, scheduler):
    """Each runs once, on nodes that are up, although what it asked for may be longer than it takes."""
    trace = run(scenario(jobs, texts_of(drawn), scheduler=scheduler)).trace
    assert len(trace.executions) == len(jobs)
    for text in texts_of(drawn):
        pattern, _, times = text.partition("=")
        begin, end = map(float, times.split(":"))
        nodes = {"*": range(4), "n0": [0], "n[0-2]": range(3)}[pattern]
        for k, each in enumerate(trace.executions):
            if set(trace.hosts_of(k).tolist()) & set(nodes):
                asked = each["start"] + jobs[each["task"]][3]
                assert asked <= begin or each["start"] >= end


@settings(max_examples=40, deadline=None)
@given(JOBS, st.sampled_from(["fcfs", "easy_backfilling"]))
def test_maintenance_after_all_is_over_changes_nothing(jobs, scheduler):
    """By nodes FCFS and EASY start what they start by counting."""
    assert starts(jobs, ["100000:100001"], scheduler=scheduler) == starts(jobs, [], scheduler=scheduler)


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", POLICIES)
def test_both_drivers_agree(scheduler):
    """The same records, and the plugin's joules are the model's."""
    rng = np.random.default_rng(4)
    jobs = [
        (int(s), r := int(rng.integers(1, 40)), int(rng.integers(1, 5)), r + 5)
        for s in np.sort(rng.integers(0, 200, 30))
    ]
    windows = ["n[12]=60:90", "150:170", "n0=200:230"]
    expected = run(scenario(jobs, windows, scheduler=scheduler))
    found = run(scenario(jobs, windows, scheduler=scheduler, driver="simgrid"))
    assert trace_differences(expected.trace, found.trace) == []
    assert metered_differences(found) == []


@pytest.mark.parametrize(
    ("windows", "options", "named"),
    [
        (["30:20"], {}, "30:20"),
        (["x"], {}, "BEGIN:END"),
        (["m*=1:2"], {}, r"m\*"),
        (["1:5", "n0=5:7"], {}, "n0"),
        (["1:5"], {"failures": "mtbf=9,mttr=1"}, "failures"),
        (["1:5"], {"parameters": {"estimate": "last_two_of_user"}}, "estimate"),
    ],
)
def test_what_is_no_maintenance_is_refused(windows, options, named):
    """One line that names it."""
    with pytest.raises(InputError, match=named):
        run(scenario([(0, 1, 1, 1)], windows, **options))
