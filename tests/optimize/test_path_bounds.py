"""Bounds of tasks that wait for each other: by hand, and against the best schedules of small graphs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from best_schedules import Way, best

from gridsched import Host, Platform, PState, bag_bounds, make_tasks
from gridsched.model.dependencies import After, Dependencies
from gridsched.optimize import path_energy
from gridsched.optimize.task_paths import task_paths


def waiting(work, edges, submit_s=0.0):
    """Return tasks of which (task, other) wait."""
    task, on = (np.array(column, dtype=np.int64) for column in zip(*sorted(edges), strict=True))
    pairs = Dependencies(task, on, np.full(len(task), int(After.END)), np.zeros(len(task)))
    return make_tasks(work, submit_s, dependencies=pairs)


def hosts_of(*states, cores=1):
    """Return a platform with a host for each list of (speed, idle, busy)."""
    return Platform(
        tuple(
            Host(f"h{k}", tuple(PState(speed, idle, idle, busy) for speed, idle, busy in each), cores=cores)
            for k, each in enumerate(states)
        )
    )


DIAMOND = [(1, 0), (2, 0), (3, 1), (3, 2)]


def test_the_longest_path_by_hand():
    """0 (4 s), then 1 (3 s) and 2 (5 s), then 3 (2 s): 11 s by 0, 2, 3; 1 has 2 s left on either side."""
    paths = task_paths(waiting([4, 3, 5, 2], DIAMOND), [4, 3, 5, 2])
    assert paths.head_s.tolist() == [0, 4, 4, 9]
    assert paths.tail_s.tolist() == [7, 2, 2, 0]
    assert paths.length_s == 11
    assert paths.critical(waiting([4, 3, 5, 2], DIAMOND).dependencies) == [0, 2, 3]


def test_paths_and_area_together_bound_more_than_each():
    """1 s, then four tasks of 1 s, then 1 s, on two hosts: path 3 s, area 3 s, both 1 + 2 + 1 = 4 s."""
    edges = [(k, 0) for k in (1, 2, 3, 4)] + [(5, k) for k in (1, 2, 3, 4)]
    bounds = bag_bounds(hosts_of([(1, 0, 1)], [(1, 0, 1)]), waiting([1] * 6, edges))
    assert bounds.makespan_s == 4


def test_what_is_submitted_later_begins_a_path_later():
    """Task 0 of 1 s at 5 s, counted from the first submission at 2 s, then task 2 of 2 s: 3 + 1 + 2 = 6 s."""
    tasks = waiting([1, 1, 2], [(2, 1)], [2.0, 5.0, 5.0])
    assert bag_bounds(hosts_of([(1, 0, 1)]), tasks).makespan_s == 6


def test_a_chain_slows_down_as_far_as_its_makespan_allows():
    """Two tasks of 100 flop at 10 flop/s and 50 W or 5 flop/s and 15 W above nothing, off hosts, one after the other.

    In 40 s both are slow: 2 x 20 s x 15 W = 600 J; in 20 s both are fast: 1,000 J; in 30 s one is, 800 J.
    """
    tasks = waiting([100, 100], [(1, 0)])
    bounds = bag_bounds(hosts_of(*[[(10, 0, 50), (5, 0, 15)]] * 2), tasks, may_switch_off=True, free_pstates=True)
    assert bounds.makespan_s == 20
    assert bounds.energy_j == pytest.approx(600)
    assert [bounds.least_energy_j(s) for s in (20, 30, 40, 1e9)] == pytest.approx([1000, 800, 600, 600])


def test_parallel_branches_slow_down_each_by_itself():
    """A diamond of 100 flop each and 300 in one branch; in 50 s the path of 500 flop is fast, the short branch slow.

    The short branch has 30 s, of which it needs 20 s when slow: 300 J; the path needs 50 s x 50 W = 2,500 J.
    """
    tasks = waiting([100, 100, 300, 100], DIAMOND)
    bounds = bag_bounds(hosts_of(*[[(10, 0, 50), (5, 0, 15)]] * 3), tasks, may_switch_off=True, free_pstates=True)
    assert bounds.least_energy_j(50) == pytest.approx(2800)


def test_idle_power_to_the_end_makes_paths_dear():
    """A chain of 10 s on one of two hosts of 4 W idle and 10 W busy: 10 x (4 + 10) J, though both could share a bag."""
    platform = hosts_of([(1, 4, 10)], [(1, 4, 10)])
    bounds = bag_bounds(platform, waiting([5, 5], [(1, 0)]))
    assert bounds.energy_j == pytest.approx(140)
    assert bag_bounds(platform, make_tasks([5, 5])).energy_j == pytest.approx(5 * 20)


def random_graph(rng, n):
    """Return works and edges of a random graph."""
    work = rng.integers(1, 10, n).astype(float).tolist()
    edges = sorted({(task, int(on)) for task in range(1, n) for on in rng.integers(0, task, rng.integers(0, 3))})
    return work, edges or [(1, 0)]


@pytest.mark.parametrize("seed", range(12))
def test_no_schedule_of_a_small_graph_is_below(seed):
    """The optimum of up to 8 tasks on two hosts, by trying all, is no less than the bound; nor where data take time."""
    rng = np.random.default_rng(seed)
    work, edges = random_graph(rng, 5 + seed % 4)
    speeds = rng.integers(1, 5, 2).astype(float).tolist()
    submit = np.sort(rng.integers(0, 6, len(work))).astype(float)
    submit[0] = 0.0
    bounds = bag_bounds(hosts_of(*([(speed, 0, 1)] for speed in speeds)), waiting(work, edges, submit))
    ways = [Way(k, speed, 1.0) for k, speed in enumerate(speeds)]
    optimum, _ = best(work, edges, ways, submit_s=submit)
    late, _ = best(work, edges, ways, submit_s=submit, data_s=2.0)
    assert bounds.makespan_s <= optimum * (1 + 1e-12) <= late * (1 + 1e-12)


@pytest.mark.parametrize("idle_w", [0.0, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_within_a_makespan_needs_less(seed, idle_w, monkeypatch):
    """The least energy of 5 tasks over hosts and P-states, within several makespans, is no less than the bound.

    It is so of the whole program and of the longest path alone, which is never above it.
    """
    rng = np.random.default_rng(100 + seed)
    work, edges = random_graph(rng, 5)
    states = [[(4.0, idle_w, idle_w + 40.0), (2.0, idle_w, idle_w + 11.0)], [(3.0, idle_w, idle_w + 14.0)]]
    limits = {"may_switch_off": not idle_w, "free_pstates": True}
    bounds = bag_bounds(hosts_of(*states), waiting(work, edges), **limits)
    ways = [Way(h, speed, busy - idle) for h, each in enumerate(states) for speed, idle, busy in each]
    soonest, _ = best(work, edges, ways)
    wholes = []
    for factor in (1.0, 1.3, 2.0, math.inf):
        _, least_j = best(work, edges, ways, idle_w=2 * idle_w, most_s=factor * soonest)
        wholes.append(bounds.least_energy_j(factor * soonest))
        assert wholes[-1] <= least_j * (1 + 1e-9)
    monkeypatch.setattr(path_energy, "MOST_TERMS", 0)
    path = bag_bounds(hosts_of(*states), waiting(work, edges), **limits)
    assert not path.is_whole
    alone = [path.least_energy_j(factor * soonest) for factor in (1.0, 1.3, 2.0, math.inf)]
    assert all(one <= other * (1 + 1e-9) for one, other in zip(alone, wholes, strict=True))


def test_chains_reach_their_bound():
    """Of a chain on one host with two P-states the bound is the optimum wherever whole tasks fill the makespan."""
    work, edges = [10.0, 20.0, 30.0], [(1, 0), (2, 1)]
    states = [[(10.0, 1.0, 31.0), (5.0, 1.0, 9.0)]]
    bounds = bag_bounds(hosts_of(*states), waiting(work, edges), free_pstates=True)
    ways = [Way(0, 10.0, 30.0), Way(0, 5.0, 8.0)]
    for makespan in (6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0):
        assert bounds.least_energy_j(makespan) == pytest.approx(
            best(work, edges, ways, idle_w=1.0, most_s=makespan)[1], rel=1e-9
        )
