"""What is committed, kept up to date, is what a fresh look at running tasks and queues gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import play

from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Assign, Cancel


def committed_afresh(state, cores) -> float:
    """Energy from now to the period's end of running tasks and fixed queues [J]."""
    now, end, estimates = state.now, state.energy.period_end, state.estimates
    total = 0.0
    for host, n_cores in enumerate(cores):
        free_from = []
        for task, on, pstate, start, estimated_end, _ in state.running.tolist():
            if on == host:
                watts = estimates.energy(task, host, pstate) / estimates.run_time(task, host, pstate)
                total += watts * max(0.0, min(estimated_end, end) - max(start, now))
                free_from.append(max(now, estimated_end))
        free_from += [now] * (n_cores - len(free_from))
        first, last = state.queue_offsets[host : host + 2].tolist()
        for task in state.queue_tasks[first:last].tolist():
            core = free_from.index(min(free_from))
            run_time = estimates.run_time(task, host, 0)
            inside = min(max((end - free_from[core]) / run_time, 0.0), 1.0)
            total += estimates.energy(task, host, 0) * inside
            free_from[core] += run_time
    return total


@settings(max_examples=150, deadline=None)
@given(
    cores=st.lists(st.integers(1, 2), min_size=1, max_size=3),
    sizes=st.lists(st.floats(10.0, 500.0), min_size=1, max_size=15),
    period_s=st.floats(5.0, 60.0),
    seed=st.integers(0, 1000),
    asked=st.sampled_from(["event", "arrival"]),
)
def test_committed_energy_is_that_of_a_fresh_look(cores, sizes, period_s, seed, asked):
    """Tasks come, start, end early or late, are cancelled in queues; periods begin."""
    rng = np.random.default_rng(seed)
    platform = Platform(
        tuple(Host(f"h{k}", (PState(10.0 + k, 0.0, 20.0 / n, 20.0),), cores=n) for k, n in enumerate(cores))
    )
    tasks = make_tasks(sizes, np.sort(rng.uniform(0.0, 30.0, len(sizes))))
    factor = rng.uniform(0.6, 1.6, len(sizes))
    looks = []

    def answer(state):
        looks.append((state.energy.committed_j, committed_afresh(state, cores)))
        decisions = [Assign(task, int(rng.integers(len(cores)))) for task in state.mappable.tolist()]
        queued = state.queue_tasks.tolist()
        if queued and asked == "event" and rng.random() < 0.3 and state.tasks_to_arrive:
            decisions.append(Cancel(queued[int(rng.integers(len(queued)))]))
        return decisions

    traits = Traits(asked, may_cancel=True, heeds_budget=True)

    def actual(task, host, pstate):
        return sizes[task] / (10.0 + host) * factor[task]

    play(platform, tasks, answer, traits, run_time=actual, budget=EnergyBudget(1e9, period_s=period_s))
    assert looks
    for kept, fresh in looks:
        assert kept == pytest.approx(fresh, rel=1e-9, abs=1e-9)
