"""EASY under an energy budget in a window, by hand: the cap, what is saved, neighbors, nodes that are off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scheduler_cases import machine, scenario

from gridsched import run
from gridsched.drivers.reference import CHECK_INVARIANTS
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.energy import grid_energy_between
from gridsched.errors import InputError
from gridsched.model.platform import PState
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

#: Four nodes of 50 W idle and 200 W busy; from 100 to 200 s there are 600 W on average: two busy nodes, two idle.
WINDOW = {"budget_share": 0.75, "begin_s": 100.0, "end_s": 200.0, "idle_w": 50.0, "busy_w": 200.0, "monitored_s": 1.0}
#: (submission, run time, nodes, request): three nodes for 50 s need 50 W above 600 W; one node may overtake.
JOBS = [(100, 50, 3, 50), (101, 3, 1, 3)]


def starts(jobs, n_nodes=4, **parameters) -> list[float]:
    """Return the starts of jobs on the reference driver."""
    found = run(scenario(jobs, n_nodes, "easy_energy_budget", parameters=WINDOW | parameters))
    return found.trace.start_time_s.tolist()


def test_without_reservations_the_budget_is_a_cap():
    """Three busy nodes draw 650 W: not before the window's end. One draws 350 W: at once."""
    assert starts(JOBS, energy_reservation="none") == [200, 101]


def test_the_head_takes_what_was_saved():
    """The idle machine saves 400 W; 2,500 J are there at the look at 107 s. What overtakes would take of them."""
    assert starts(JOBS)[0] == 107
    # with all four nodes busy 800 W: 3 s of that need 600 J, and 300 J are left when the head has reserved its own
    assert starts(JOBS)[1] > 107


@pytest.mark.parametrize(
    ("share", "overtaking", "start_s"), [(0.85, "energy", 102), (0.85, "power", 200), (0.95, "power", 102)]
)
def test_what_overtakes_leaves_the_head_its_energy(share, overtaking, start_s):
    """Two nodes are busy until 150 s, when the head takes all four for 50 s; a third job needs one for 10 s.

    At a share of 0.85 the cap is 680 W. The head needs 120 W above it, 6,000 J. Until it starts the budget gives
    8,640 J more than the two nodes draw from 102 s on, 180 J were saved, and the third job needs 1,500 J: by energy it
    may overtake. By power the cap is lower by 6,000 J in 48 s, and three nodes draw 650 W. At 0.95 it is 760 W, lower
    by 2,000 J in 48 s: 718 W.
    """
    jobs = [(0, 150, 2, 150), (101, 50, 4, 50), (102, 10, 1, 10)]
    assert starts(jobs, budget_share=share, overtaking=overtaking) == [0, 150, start_s]


@pytest.mark.parametrize(("share", "start_s"), [(0.85, 132), (0.95, 104)])
def test_what_overtakes_is_held_to_what_is_saved(share, start_s):
    """Two nodes are busy until 150 s, when the head takes all four for 50 s; a third job needs one for 10 s.

    At a share of 0.85 the head needs 6,000 J. While the third runs, all draw 30 W less than 680 W, which gives 300 J
    back: it may start once 5,700 J are saved, at 180 W. At 0.95 that is 2,000 J, 1,100 J and so 900 J, at 260 W.
    """
    jobs = [(0, 150, 2, 150), (101, 50, 4, 50), (102, 10, 1, 10)]
    assert starts(jobs, budget_share=share, overtaking="saved") == [0, 150, start_s]


def test_all_reserve_energy():
    """Three nodes for 50 s draw 50 W above 600 W, 2,500 J, which the idle machine saves by 106.25 s.

    The first ends at 156.25 s, with nothing saved: the second, which would draw 450 J of it before, starts then.
    """
    assert starts(JOBS, energy_reservation="all", contiguous=False) == [106.25, 156.25]


def test_who_is_second_keeps_its_energy():
    """Two nodes are busy until 120 s, and save 100 W: 2,000 J. Jobs of 4, 3 and 1 nodes wait from 100 s on.

    Four nodes for 5 s need 1,000 J above the cap, so that 1,000 J are left at 125 s. Three nodes for 40 s need 2,000 J:
    the idle machine saves 1,000 J by 127.5 s. One node would draw 750 J in 5 s; two idle nodes may give it nothing
    before 167.5 s, where nothing is saved. Where the head alone reserves, it overtakes the second.
    """
    jobs = [(0, 120, 2, 120), (100, 5, 4, 5), (100, 40, 3, 40), (100, 5, 1, 5)]
    planned = starts(jobs, energy_reservation="all", contiguous=False)
    assert planned == [0, 120, 127.5, 167.5]
    assert starts(jobs)[3] < 167.5


def saved_j(plan, cap_w, window, until_s) -> float:
    """Return what is saved at a time of jobs (start, run time, nodes) on four nodes of 50 and 200 W."""
    begin_s, end_s = window
    drawn_j = sum(150.0 * w * max(min(s + r, until_s, end_s) - max(s, begin_s), 0.0) for s, r, w in plan)
    return (cap_w - 200.0) * max(min(until_s, end_s) - begin_s, 0.0) - drawn_j


def fits(plan, job, cap_w, window) -> bool:
    """Whether a further job leaves nodes and saved energy at all times, at which anything changes."""
    times = sorted({t for s, r, _ in (*plan, job) for t in (s, s + r)} | {*window})
    begin_s, end_s = job[0], job[0] + job[1]
    for t in times:
        if begin_s <= t < end_s and sum(w for s, r, w in (*plan, job) if s <= t < s + r) > 4:
            return False
        own_j = 150.0 * job[2] * max(min(t, end_s, window[1]) - max(begin_s, window[0]), 0.0)
        if own_j > 0 and saved_j((*plan, job), cap_w, window, t) < -1e-6:
            return False
    return True


def planned_by_search(jobs, cap_w, window) -> list[float]:
    """Return starts by trying times: each job, in order, has the first at which it fits."""
    plan: list[tuple[float, float, int]] = []
    for submitted, run_s, width, _ in jobs:
        edges = {t for s, r, _ in plan for t in (s, s + r, s - run_s, s + r - run_s)} | {*window, window[0] - run_s}
        places = [submitted, *sorted(t for t in edges if t > submitted)]
        for low, high in zip(places, [*places[1:], places[-1]], strict=True):
            if fits(plan, (low, run_s, width), cap_w, window):
                plan.append((low, run_s, width))
                break
            inside = high - 1e-7
            if inside > low and fits(plan, (inside, run_s, width), cap_w, window):
                for _ in range(60):
                    middle = (low + inside) / 2
                    low, inside = (
                        (low, middle) if fits(plan, (middle, run_s, width), cap_w, window) else (middle, inside)
                    )
                plan.append((inside, run_s, width))
                break
    return [start for start, _, _ in plan]


@pytest.mark.parametrize("seed", range(12))
def test_all_reserve_energy_as_a_search_finds_it(seed):
    """Jobs of 1 to 4 nodes that are submitted together and take what they asked for; the budget is never exceeded."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(1, 60, 14), rng.integers(1, 5, 14)
    jobs = [(60, r, w, r) for r, w in zip(*(each.tolist() for each in columns), strict=True)]
    share = (0.6, 0.75, 0.9)[seed % 3]
    asked = scenario(
        jobs, 4, "easy_energy_budget",
        parameters=WINDOW | {"energy_reservation": "all", "contiguous": False, "budget_share": share},
    )  # fmt: skip
    trace = run(asked).trace
    expected = planned_by_search(jobs, share * 800.0, (100.0, 200.0))
    assert trace.start_time_s.tolist() == pytest.approx(expected, abs=1e-5)
    edges = np.arange(100.0, 200.5, 0.5)
    drawn_j = np.cumsum(grid_energy_between(trace, edges))
    assert (drawn_j <= share * 800.0 * (edges[1:] - 100.0) + 1e-3).all()


def test_outside_the_window_nothing_is_limited():
    """Jobs whose requests do not touch it, and a budget that is never short."""
    jobs = [(0, 50, 4, 50), (0, 49, 4, 49), (200, 50, 4, 50)]
    for rule in ("head", "all", "none"):
        assert starts(jobs, energy_reservation=rule) == [0, 50, 200]
        assert starts(JOBS, budget_share=1.0, energy_reservation=rule) == [100, 101]


def test_a_job_that_touches_the_window_counts():
    """It would end at 101 s; with another two nodes busy it must wait until they are not."""
    jobs = [(0, 150, 2, 150), (60, 41, 1, 41)]
    assert starts(jobs, energy_reservation="none") == [0, 150]
    assert starts([(0, 150, 2, 150), (60, 39, 1, 39)], energy_reservation="none") == [0, 60]


def test_neighbours():
    """Nodes 0, 1 and 3, 4 are free from 10 s on, but three in a row only when node 2 is, at 20 s."""
    jobs = [(0, 10, 2, 10), (0, 20, 1, 20), (0, 5, 2, 5), (1, 4, 3, 4)]
    assert starts(jobs, 5) == [0, 0, 0, 20]
    assert starts(jobs, 5, contiguous=False) == [0, 0, 0, 10]


def booting(n_nodes: int):
    """Return the nodes with 2 s to boot and 1 s to shut down."""
    states = (PState(0.0, 120.0, 120.0, 120.0), PState(0.0, 60.0, 60.0, 60.0))
    hosts = tuple(
        replace(
            host, off_w=10.0, boot_time_s=2.0, shutdown_time_s=1.0, switch_pstates=states, boot_pstate=1,
            shutdown_pstate=2,
        )
        for host in machine(n_nodes).hosts
    )  # fmt: skip
    return replace(machine(n_nodes), hosts=hosts)


def switched(jobs, n_nodes=4, driver="reference"):
    """Return a run whose idle nodes are off in the window."""
    parameters = WINDOW | {"energy_reservation": "none", "switches_off": True}
    asked = scenario(jobs, n_nodes, "easy_energy_budget", parameters=parameters, driver=driver)
    return run(replace(asked, platform=booting(n_nodes)))


def test_idle_nodes_are_off_in_the_window():
    """From 100 s on all shut down for 1 s; the job of 150 s boots its node for 2 s, which is off again after it."""
    trace = switched([(50, 1, 1, 1), (150, 10, 1, 10), (210, 5, 2, 5)]).trace
    # those of the window stay off until somebody needs them
    assert trace.start_time_s.tolist() == [50, 152, 212]
    off_j, shutdown_j, boot_j, busy_j = 10.0, 60.0, 120.0, 200.0
    one = shutdown_j + 49 * off_j + 2 * boot_j + 10 * busy_j + shutdown_j + 37 * off_j
    assert grid_energy_between(trace, np.array([100.0, 200.0]))[0] == pytest.approx(3 * (60 + 99 * off_j) + one)


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("switches", [False, True])
def test_both_drivers_agree(switches, monkeypatch):
    """The same records, and the plugin's joules are the model's."""
    monkeypatch.setenv(CHECK_INVARIANTS, "1")
    rng = np.random.default_rng(5)
    columns = rng.integers(0, 250, 40), rng.integers(1, 40, 40), rng.integers(1, 5, 40)
    jobs = sorted((s, r, w, r + 5) for s, r, w in zip(*(each.tolist() for each in columns), strict=True))
    if switches:
        expected, found = switched(jobs), switched(jobs, driver="simgrid")
    else:
        asked = {"parameters": WINDOW}
        expected = run(scenario(jobs, 4, "easy_energy_budget", **asked))
        found = run(scenario(jobs, 4, "easy_energy_budget", driver="simgrid", **asked))
    assert trace_differences(expected.trace, found.trace) + metered_differences(found) == []


@pytest.mark.parametrize(
    "parameters",
    [{"end_s": 50.0}, {"budget_share": 0.0}, {"energy_reservation": "some"}, {"overtaking": "any"}, {"busy_w": 50.0}],
)
def test_illegal_parameters_are_refused(parameters):
    """Each by its name."""
    with pytest.raises(InputError, match=next(iter(parameters))):
        starts(JOBS, **parameters)
