"""Laws that hold of every run, by hand and on runs of many kinds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.drivers.reference import CHECK_INVARIANTS
from gridsched.energy import trace_energy
from gridsched.engine.invariants import Laws
from gridsched.errors import SimulationError
from gridsched.metrics.identities import energy_of_busy_time, identities_of, littles_law
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.tasks import make_tasks


def machine(n: int = 2, cores: int = 1, epsilon_w: float = 50.0) -> Platform:
    """Return equal hosts of 1 Gflop/s that draw 50 W idle and 200 W with all cores busy."""
    hosts = tuple(Host(f"n{k}", (PState(1e9, 50.0, epsilon_w, 200.0),), cores=cores) for k in range(n))
    return Platform(hosts, (Cluster("cluster", tuple(range(n))),))


def traced(tasks, platform=None, scheduler="wq", **options):
    """Return a run's trace on the reference driver."""
    return run(Scenario(platform or machine(), tasks, scheduler, driver="reference", **options)).trace


def test_both_laws_by_hand():
    """Three tasks of 2, 4 and 3 s come at 0, 0 and 1 s to two hosts: the last waits for 1 s, until 2 s."""
    trace = traced(make_tasks([2e9, 4e9, 3e9], [0.0, 0.0, 1.0]))
    waits, joules = identities_of(trace, trace_energy(trace))
    assert (waits.direct, waits.other, waits.why_not) == (1.0, 1.0, "")
    # two hosts for 5 s, and 9 s of computing
    assert joules.direct == joules.other == 2 * 5 * 50.0 + 9 * 150.0
    assert not waits.fails
    assert not joules.fails


def test_records_that_break_a_law_are_found():
    """A joule more or less, and a host that draws nothing."""
    trace = traced(make_tasks([2e9, 4e9, 3e9]))
    energy = trace_energy(trace)
    assert energy_of_busy_time(trace, replace(energy, total_j=energy.total_j * (1 + 1e-6))).fails
    assert not energy_of_busy_time(trace, energy).fails


@pytest.mark.parametrize(
    ("platform", "why"),
    [
        (replace(machine(), hosts=(machine().hosts[0], replace(machine(1, cores=2).hosts[0], name="m"))), "differ"),
        (machine(2, cores=2, epsilon_w=80.0), "as soon as one"),
    ],
)
def test_what_is_not_held_says_why(platform, why):
    """Energy follows from busy time on equal hosts alone."""
    trace = traced(make_tasks([1e9, 2e9]), platform)
    found = energy_of_busy_time(trace, trace_energy(trace))
    assert why in found.why_not
    assert not found.fails


def test_hosts_that_are_switched_are_not_held():
    """Nor those that go down."""
    trace = traced(make_tasks([1e9, 1e9], [0.0, 500.0]), scheduler="idle_off", parameters={"timeout_s": 10.0})
    assert "switched" in energy_of_busy_time(trace, trace_energy(trace)).why_not
    assert not littles_law(trace).fails


@pytest.mark.parametrize("scheduler", ["wq", "mct", "min_min", "fcfs", "easy_backfilling"])
@pytest.mark.parametrize("options", [{}, {"mapping_interval_s": 7.0}, {"mapping_events": "event"}])
def test_laws_are_held_of_validated_runs(scheduler, options, monkeypatch):
    """The engine counts who waits, instant by instant; the records say the same at the end."""
    monkeypatch.setenv(CHECK_INVARIANTS, "1")
    rng = np.random.default_rng(3)
    tasks = make_tasks(rng.uniform(1e9, 9e9, 40), rng.uniform(0, 60, 40))
    trace = traced(tasks, machine(3), scheduler, **options)
    assert littles_law(trace).direct > 0
    assert not any(each.fails for each in identities_of(trace, trace_energy(trace)))


def test_a_count_that_is_wrong_ends_a_validated_run(monkeypatch):
    """If the engine forgets who waits, the law shows it."""
    monkeypatch.setenv(CHECK_INVARIANTS, "1")
    look = Laws.look
    monkeypatch.setattr(Laws, "look", lambda laws, run, now: look(laws, run, now) if now != 2.0 else None)
    with pytest.raises(SimulationError, match="Little's law"):
        traced(make_tasks([2e9, 4e9, 3e9, 3e9], [0.0, 0.0, 1.0, 1.0]))
