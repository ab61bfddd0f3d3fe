"""The heuristics of paper 002: the worked example, the filters, and a naive oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.drivers import reference
from gridsched.engine import Controller
from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.pmf import from_impulses, point_mass
from gridsched.model.rules import EnergyBudget, Rules
from gridsched.model.run_times import RunTimes
from gridsched.model.stochastic import ListedTimes, StochasticEstimates
from gridsched.model.system import System
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState, Trace
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Drop
from gridsched.policy.registry import make_scheduler, scheduler_class
from gridsched.schedulers.filters import energy_multiplier
from gridsched.systems.robust.deadline import LightestLoad, reaches
from gridsched.testing.cases import make_stochastic_case
from gridsched.testing.playing import play

HEURISTICS = (
    "shortest_queue",
    "minimum_expected_completion_time",
    "lightest_load",
    "random_immediate",
    "cheapest_in_time",
)


def worked_example(budget_j: float = math.inf, deadline_s: float = 45.0) -> tuple[System, object]:
    """D5: task a runs on core 1 since 5; z arrives at 18; five more arrive much later."""
    listed = ListedTimes(
        {
            (0, 0, 0): from_impulses([10.0, 20.0, 30.0], [0.25, 0.5, 0.25]),
            (1, 0, 0): from_impulses([10.0, 20.0], [0.6, 0.4]),
            (1, 1, 0): from_impulses([15.0, 30.0], [0.6, 0.4]),
        }
    )
    etc = listed.means((2, 2, 1))
    apc = np.broadcast_to(np.array([100.0, 60.0])[:, None] / 0.9, etc.shape).copy()
    apc[0] = 1.0  # so that the energy filter lets a pass, whatever it decides on z
    tasks = make_tasks(
        [1.0] * 7, [5.0, 18.0] + [1000.0] * 5, task_type=[0] + [1] * 6, deadline_s=[100.0, deadline_s] + [2000.0] * 5
    )
    estimates = StochasticEstimates(etc, apc, tasks.task_type, [0, 1], listed)
    hosts = tuple(Host(name, (PState(1.0, 0.0, 1.0, 1.0),)) for name in ("core1", "core2"))
    budget = EnergyBudget(budget_j, period_s=1e6, enforcement="stop")
    rules = Rules(budget=None if budget_j == math.inf else budget)
    return System(Platform(hosts), estimates, rules=rules), tasks


def place_of_z(scheduler: Scheduler, budget_j: float = math.inf, deadline_s: float = 45.0) -> int | None:
    """Where D5's task z runs: 0 is core 1, 1 is core 2, None if it is dropped."""
    system, tasks = worked_example(budget_j, deadline_s)
    controller = Controller(system, tasks, scheduler, rng=np.random.default_rng(1))
    trace = reference.simulate(controller)
    hosts = trace.executions["host"][trace.executions["task"] == 1].tolist()
    return hosts[0] if hosts else None


class Watching(LightestLoad):
    """Lightest load that keeps what it received at 18 s."""

    def schedule(self, state):
        """Decide, and keep what is known of the ready times."""
        self.ready = state.ready_pmf(0)
        return super().schedule(state)

    def _choose(self, found):
        if found.task == 1:
            self.seen = found, self.ready, found.ect_s
        return super()._choose(found)


def test_worked_example_in_numbers():
    """D5: what is left of a, then chance, ECT, EET, EEC and load of both cores."""
    watching = Watching()
    place_of_z(watching)
    found, ready, ect_s = watching.seen
    assert ready.times.tolist() == [25.0, 35.0]
    assert ready.masses == pytest.approx([2 / 3, 1 / 3])
    assert 1 - found.late[:, 0] == pytest.approx([0.866667, 0.6], abs=1e-6)
    assert ect_s[:, 0] == pytest.approx([42.3333, 39.0], abs=1e-4)
    assert found.eet_s[:, 0] == pytest.approx([14.0, 21.0])
    assert found.eec_j[:, 0] == pytest.approx([1555.56, 1400.0], abs=0.01)
    load = found.eec_j * found.late
    assert load[:, 0] == pytest.approx([207.41, 560.0], abs=0.01)


@pytest.mark.parametrize(
    ("id", "place"), [("shortest_queue", 1), ("minimum_expected_completion_time", 1), ("lightest_load", 0)]
)
def test_worked_example_decides(id, place):
    """D5: SQ and MECT take core 2, LL core 1; with a least chance of 0.7 all take core 1."""
    assert place_of_z(make_scheduler(id)) == place
    assert place_of_z(make_scheduler(id, {"robustness": 0.7})) == 0
    assert place_of_z(make_scheduler(id, {"robustness": 0.9})) is None


@pytest.mark.parametrize(("ties", "place"), [("energy", 1), ("first", 0)])
def test_ties_of_lightest_load(ties, place):
    """With a deadline at 200 s both loads are 0: core 2 takes less energy, core 1 is the first."""
    assert place_of_z(make_scheduler("lightest_load", {"ties": ties}), deadline_s=200.0) == place
    with pytest.raises(InputError, match="'ties' of lightest_load"):
        place_of_z(make_scheduler("lightest_load", {"ties": "last"}))


def test_cheapest_in_time():
    """D5: chances 0.8667 and 0.6, energies 1555.56 and 1400 J; what is enough decides."""
    for least_chance, place in ((0.99, 0), (0.8667, 0), (0.8666, 0), (0.61, 0), (0.6, 1), (0.0, 1)):
        given = {"least_chance": least_chance}
        assert place_of_z(make_scheduler("cheapest_in_time", given)) == place
    assert place_of_z(make_scheduler("cheapest_in_time"), deadline_s=200.0) == 1
    assert place_of_z(make_scheduler("cheapest_in_time", {"robustness": 0.9})) is None
    with pytest.raises(InputError, match="'least_chance' of cheapest_in_time"):
        place_of_z(make_scheduler("cheapest_in_time", {"least_chance": 1.5}))


def test_energy_filter():
    """D5: 2000 J let both cores pass, 1500 J core 2 only, 1300 J none; one task on two cores.

    The depth is 0.5, so a task may use 0.8 of the fair share of five tasks that are to come.
    """
    of_a = 20.0 * 1.0
    scheduler = make_scheduler("lightest_load", {"energy_fair_share": True})
    for allowed_j, place in ((2000.0, 0), (1500.0, 1), (1300.0, None)):
        assert place_of_z(scheduler, of_a + allowed_j * 5 / 0.8) == place
    both = make_scheduler("lightest_load", {"energy_fair_share": True, "robustness": 0.7})
    assert place_of_z(both, of_a + 1500.0 * 5 / 0.8) is None


def test_energy_multiplier_by_depth():
    """D4: 0.8 below 0.8 tasks a core, 1 up to 1.2, then 1.2; D5's depth 0.9 gives 1."""
    found = [energy_multiplier(depth) for depth in (0.0, 0.79, 0.8, 0.9, 1.2, 1.21, 9.0)]
    assert found == [0.8, 0.8, 1.0, 1.0, 1.0, 1.2, 1.2]


def test_without_distributions_it_is_refused():
    """A bag of tasks has no distributions: one line names the remedy."""
    platform = Platform((Host("h", (PState(1.0, 0.0, 1.0, 1.0),)),))
    tasks = make_tasks([5.0])
    system = System(platform, FlopsEstimates(platform, tasks))
    with pytest.raises(InputError, match="kind 'robust'") as error:
        Controller(system, tasks, make_scheduler("lightest_load"), rng=np.random.default_rng(1))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [-0.1, 1.1, "half", True, None])
def test_robustness_out_of_range(value):
    """The least chance is a number from 0 to 1."""
    with pytest.raises(InputError, match="'robustness' of lightest_load"):
        place_of_z(make_scheduler("lightest_load", {"robustness": value}))


def with_oracle(id: str):
    """A heuristic that is watched: whole queues are convolved again for each of its decisions."""

    class Watched(scheduler_class(id)):
        def prepare(self, system, rng):
            super().prepare(system, rng)
            self.mine = {}

        def schedule(self, state):
            task = next(state.waiting())
            self.expected = self.allowed_pairs(state, task)
            decisions = list(super().schedule(state))
            if isinstance(decisions[0], Drop):
                assert self.expected == []
            else:
                self.mine[task] = decisions[0].host, decisions[0].pstate
            return decisions

        def allowed_pairs(self, state, task):
            pairs = self.pairs(state, task)
            if self.energy_fair_share:
                depth = sum(self.in_system(state)) / len(state.pstate)
                energy = state.energy
                left = (energy.budget_j - energy.assigned_j) / max(state.tasks_to_arrive, 1)
                limit = (0.8 if depth < 0.8 else 1.0 if depth <= 1.2 else 1.2) * left
                pairs = [pair for pair in pairs if pair["eec"] <= limit]
            if self.robustness > 0:
                pairs = [pair for pair in pairs if 1.0 - pair["late"] >= self.robustness]
            return pairs

        def _choose(self, found):
            places = [(pair["host"], pair["pstate"]) for pair in self.expected]
            assert places == list(zip(*np.nonzero(found.allowed), strict=True))
            chosen = super()._choose(found)
            taken = self.expected[places.index(divmod(chosen, found.allowed.shape[1]))]
            if id != "random_immediate":
                best = min(self.keys(pair) for pair in self.expected)
                # sums in another order: what is equal may differ in the last digit
                assert self.keys(taken) == pytest.approx(best, rel=1e-11)
            return chosen

        def keys(self, pair):
            return {
                "shortest_queue": (pair["assigned"], pair["eet"]),
                "minimum_expected_completion_time": (pair["ect"],),
                "lightest_load": (pair["eec"] * pair["late"],),
                "cheapest_in_time": ((0, pair["eec"]) if 1.0 - pair["late"] >= 0.98 else (1, pair["late"])),
            }[id]

        def in_system(self, state):
            counts = state.queue_length.copy()
            for row in state.running:
                counts[row["host"]] += 1
            return counts

        def pairs(self, state, task):
            found, known = [], state.estimates
            offsets, queued = state.queue_offsets, state.queue_tasks
            running = {int(row["host"]): row for row in state.running}
            for host, count in enumerate(self.in_system(state)):
                begin = from_impulses([state.now], [1.0])
                if host in running:
                    row = running[host]
                    run_time = known.pmf(int(row["task"]), host, int(row["pstate"]))
                    begin = run_time.shifted(float(row["start"])).not_before(state.now)
                for other in queued[offsets[host] : offsets[host + 1]].tolist():
                    begin = begin.convolved(known.pmf(other, *self.mine[other]))
                for pstate in range(known.etc_matrix.shape[2]):
                    z = known.pmf(task, host, pstate)
                    ends = begin.convolved(z) if begin.step else z.shifted(begin.times[0])
                    found.append(
                        {
                            "host": host,
                            "pstate": pstate,
                            "assigned": count,
                            "late": float(ends.late_probability(state.tasks.deadline_s[task])),
                            "ect": ends.mean,
                            "eet": known.run_time(task, host, pstate),
                            "eec": known.energy(task, host, pstate),
                        }
                    )
            return found

    return Watched


@pytest.mark.parametrize("id", HEURISTICS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), both=st.booleans())
def test_naive_convolution_decides_alike(id, seed, both):
    """Whole queues convolved again for every pair allow the same pairs, and the same are best."""
    rng = np.random.default_rng(seed)
    host_types = np.repeat([0, 1, 2], rng.integers(1, 3, 3)).tolist()
    means = rng.uniform(8.0, 30.0, (3, 3, 1)) * np.cumprod(rng.uniform(1.1, 1.3, (3, 3, 2)), 2)
    n = 14
    case = make_stochastic_case(
        "drawn",
        means,
        host_types,
        rng.integers(0, 3, n).tolist(),
        np.cumsum(rng.exponential(25.0 / len(host_types) / 2, n)),
        slack_s=float(rng.uniform(25.0, 80.0)),
        budget=EnergyBudget(float(rng.uniform(1e4, 6e4)), period_s=1e9, enforcement="stop"),
    )
    given = {"energy_fair_share": both, "robustness": 0.5 if both else 0.0}
    trace = play(case, with_oracle(id)(**given))
    assert (trace.final_state >= TaskState.FINISHED).all()


class Truth(RunTimes):
    """True run times by task [s]."""

    def __init__(self, times_s: list[float]) -> None:
        self.times_s = times_s

    def run_time(self, task: int, host: int, pstate: int) -> float:
        return self.times_s[task]


def remapped(second_s: float, remap: bool = True) -> Trace:
    """Two cores and one for the last task; by hand.

    Tasks 0 and 1 take 2 s (0.9) or 30 s (0.1) and run on cores 1 and 2 from 0 s on; task 2 (4 s)
    must end by 12 s and waits for core 1, where task 0 really takes 30 s. At 5 s task 3 arrives,
    for core 3, and core 1 is known to be busy until 30 s: task 2's chance is 0.
    """
    long = from_impulses([2.0, 30.0], [0.9, 0.1])
    listed = ListedTimes(
        {
            (0, 0, 0): long,
            (0, 1, 0): long,
            (1, 0, 0): point_mass(4.0),
            (1, 1, 0): point_mass(4.0),
            (2, 2, 0): point_mass(1.0),
        }
    )
    etc = listed.means((3, 3, 1))
    tasks = make_tasks([1.0] * 4, [0.0, 0.0, 0.0, 5.0], task_type=[0, 0, 1, 2], deadline_s=[99.0, 99.0, 12.0, 99.0])
    estimates = StochasticEstimates(etc, np.ones(etc.shape), tasks.task_type, [0, 1, 2], listed)
    hosts = tuple(Host(f"core{k}", (PState(1.0, 0.0, 1.0, 1.0),)) for k in (1, 2, 3))
    scheduler = make_scheduler("minimum_expected_completion_time", {"remap": remap})
    controller = Controller(System(Platform(hosts), estimates), tasks, scheduler, rng=np.random.default_rng(1))
    return reference.simulate(controller, Truth([30.0, second_s, 4.0, 1.0]))


def test_an_unlikely_task_is_mapped_again():
    """Core 2 is idle since 2 s: task 2 goes there, ends at 9 s, and its chance is noted again."""
    trace = remapped(second_s=2.0)
    runs = {run["task"]: (run["host"], run["start"], run["end"]) for run in trace.executions}
    assert runs[2] == (1, 5.0, 9.0)
    assert trace.notes["predicted_chance"].tolist() == [1.0, 1.0, 1.0, 1.0]
    stays = remapped(second_s=2.0, remap=False)
    assert stays.finish_time_s[2] == 34.0
    assert stays.notes["predicted_chance"][2] == pytest.approx(0.9)


def test_an_unlikely_task_without_a_likely_place_is_dropped():
    """Core 2 is busy until 30 s, too: nothing meets the deadline of task 2 any more."""
    trace = remapped(second_s=30.0)
    assert trace.final_state[2] == TaskState.DROPPED
    assert trace.finish_time_s[[0, 1, 3]].tolist() == [30.0, 30.0, 6.0]


@pytest.mark.parametrize("value", ["yes", 2, None])
def test_remap_is_true_or_false(value):
    """Another value is refused before the run."""
    with pytest.raises(InputError, match="'remap' of lightest_load"):
        place_of_z(make_scheduler("lightest_load", {"remap": value}))


def test_a_chance_on_the_threshold_reaches_it():
    """Whether masses are summed up forwards or backwards, a half is a half, and less is less."""
    masses = [0.05, 0.15, 0.1, 0.2]  # a half; the sums of them differ in the last digit
    sums = np.array([sum(masses), sum(masses[::-1]), 0.5 + 2**-53, 0.5 + 1e-15])
    assert reaches(sums, 0.5).all()
    assert reaches(1.0 - sums, 0.5).all()
    assert not reaches(np.array([0.5 + 1e-9]), 0.5).any()
