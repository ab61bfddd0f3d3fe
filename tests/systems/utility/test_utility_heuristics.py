"""The utility heuristics of paper 000: their kernels against plain loops, and by hand."""

from __future__ import annotations

import copy
import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cases import MINUTE, b6_scenario, b6_types, day, exponential_tasks, random_weights, weights_of
from two_stage_oracle import INF, Event, falls_short, randomly, two_stage

from gridsched import Scenario, make_scheduler, make_tasks, run
from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import InputError
from gridsched.model.signals import EVEN
from gridsched.model.task_types import TaskTypes, typed_platform
from gridsched.model.trace import TaskState
from gridsched.model.utility import DECAYING, LINEAR, UtilityClasses, UtilityFunctions
from gridsched.runs.scenario_maker import load
from gridsched.scenario import make_system
from gridsched.schedulers.kernels.tables import COMP, UPE, UPT, UTIL, type_tables
from gridsched.systems.utility.kernels import utility_value
from gridsched.systems.utility.kernels.random_mapping import map_randomly
from gridsched.systems.utility.kernels.two_stage import IMPOSSIBLE, MAPPED, STAYS, map_two_stage
from gridsched.systems.utility.kernels.utility_value import utility_tables

# The utility heuristics of paper 000 on the worked examples of algorithms B4 to B6, by hand.

ROOT = Path(__file__).resolve().parents[3]
HEURISTICS = ("max_max_util", "max_max_upt", "max_max_upe", "min_min_completion_time")
A, B, C = 0, 1, 2
drivers = pytest.mark.parametrize(
    "driver",
    ["reference", pytest.param("simgrid", marks=pytest.mark.skipif(not is_installed(), reason="needs SimGrid"))],
)

#: B6: (task, machine, P-state, completion [min]) in order of assignment; utility; energy [kJ].
B6 = {
    "max_max_util": ([(A, 0, 0, 10), (B, 1, 0, 10), (C, 0, 0, 20)], 9.5289, 300.0),
    "max_max_upt": ([(A, 0, 0, 10), (B, 0, 0, 15), (C, 1, 0, 10)], 9.0361, 240.0),
    "max_max_upe": ([(A, 0, 1, 14), (B, 1, 0, 10), (C, 1, 1, 24)], 9.2130, 223.8),
    "min_min_completion_time": ([(B, 0, 0, 5), (C, 1, 0, 10), (A, 0, 0, 15)], 10.2166, 240.0),
}


class FirstPlan:
    """Watch a scheduler's first plan: `around` of gridsched.testing.play."""

    def __init__(self):
        self.plan = None

    def __call__(self, state, ask):
        answer = list(ask())
        self.plan = self.plan or answer[-1]
        return answer


@pytest.mark.parametrize("name", HEURISTICS)
@drivers
def test_table_of_b6(name: str, driver: str):
    """Machines, P-states, completion times, utility and energy of the worked example."""
    expected, utility, energy_kj = B6[name]
    result = run(b6_scenario(name, driver))
    pstates = result.trace.executions["pstate"] % 2  # SimGrid's are 2 * task type + P-state
    runs = result.trace.executions
    found = zip(runs["task"], runs["host"], pstates, runs["end"] / MINUTE, strict=True)
    assert sorted(found) == sorted(expected)
    summary = result.summary()
    assert round(summary["utility"], 4) == utility
    assert summary["energy_j"] == pytest.approx(energy_kj * 1e3, rel=1e-12)


@pytest.mark.parametrize("name", HEURISTICS)
def test_order_of_assignment_of_b6(name: str):
    """The plan holds the assignments in the order in which they were made."""
    from gridsched.testing import Case, play

    scenario = b6_scenario(name)
    case = Case(
        "B6",
        scenario.platform,
        scenario.tasks,
        types=scenario.types,
        rules={"mapping_interval_s": MINUTE, "pending_slots": 1},
    )
    first = FirstPlan()
    play(case, make_scheduler(name, {"energy_leniency": INF}), around=first)
    plan = first.plan
    found = list(zip(plan.tasks, plan.hosts, plan.pstates, strict=True))
    assert found == [each[:3] for each in B6[name][0]]


def test_an_option_that_crosses_the_days_end_becomes_admissible():
    """The exception to lazy greedy: the task that had no option at first is mapped after all.

    One machine, 10 s and 10 J left. The first task takes 8 s and 12 J: too much. Behind the second
    (6 s, 2 J) it would use half of its energy before the day's end: 6 J of the 8 J left.
    """
    tables = type_tables([[[8.0]], [[6.0]]], [[[12.0]], [[2.0]]], [0], UTIL)
    functions = utility_tables(exponential_tasks(0.0, [0, 1], [(8, 0), (1, 0)]).utility)
    types, arrivals, tasks = np.array([0, 1]), np.zeros(2), np.array([0, 1])
    answer = map_two_stage(UTIL, tables, functions, types, arrivals, tasks, np.zeros(1), 10.0, INF, 10.0, EVEN.table)
    assert [each.tolist() for each in answer] == [[1, 0], [0, 0], [0, 0], [0, 0]]


# ---------------------------------------------------------------------- dropping and postponing


def one_machine(arrivals_min, worth, scheduler="max_max_util", **changes) -> Scenario:
    """Return tasks of 20 min and 120 kJ on one machine with one P-state."""
    types = TaskTypes(np.full((1, 1, 1), 20 * MINUTE), np.full((1, 1, 1), 100.0), np.array([0]))
    tasks = exponential_tasks(np.array(arrivals_min) * MINUTE, [0] * len(worth), worth)
    values = {
        "types": types,
        "driver": "reference",
        "mapping_interval_s": MINUTE,
        "pending_slots": 1,
        "parameters": {"energy_leniency": INF},
        **changes,
    }
    return Scenario(typed_platform(types), tasks, scheduler, **values)


def final_states(scenario: Scenario) -> list[str]:
    """Return the final state of each task."""
    return [TaskState(each).name for each in run(scenario).trace.final_state.tolist()]


@pytest.mark.parametrize("name", [*HEURISTICS, "random_mapping"])
@drivers
def test_dropping_threshold(name: str, driver: str):
    """What can no longer earn the threshold is dropped; equality keeps.

    Alone, a task completes after 20 min: 1 * exp(-20 rho) is 0.5 for rho = ln 2 / 20, below it for
    a larger rho.
    """
    rho = math.log(2) / 20
    utility = math.exp(-rho * 20.0)
    for urgency, threshold, state in (
        (rho * 1.001, 0.5, "DROPPED"),
        (rho * 0.999, 0.5, "FINISHED"),
        (rho, utility, "FINISHED"),
        (rho, np.nextafter(utility, 1), "DROPPED"),
    ):
        parameters = {"energy_leniency": INF, "dropping_threshold": threshold}
        scenario = one_machine([0], [(1, urgency)], name, driver=driver, parameters=parameters)
        assert final_states(scenario) == [state]


@pytest.mark.parametrize("name", [*HEURISTICS, "random_mapping"])
@drivers
def test_postponed_tasks_run_in_the_next_period(name: str, driver: str):
    """A budget of one task an hour: the second runs in the next hour, a hasty third is dropped.

    At 60 min + 20 min the second earns 2 exp(-0.8) = 0.9, the third 2 exp(-1.6) = 0.4 < 0.5.
    """
    scenario = one_machine(
        [0, 0, 0],
        [(8, 0.01), (2, 0.01), (2, 0.02)],
        name,
        driver=driver,
        budget=day(150e3, 60.0),
        parameters={"energy_leniency": INF, "dropping_threshold": 0.5},
    )
    if name == "random_mapping":  # takes tasks in their order, as the others do here
        assert scenario.tasks.utility.priority.tolist() == [8, 2, 2]
    result = run(scenario)
    assert result.trace.final_state.tolist() == [TaskState.FINISHED, TaskState.FINISHED, TaskState.DROPPED]
    assert result.trace.executions["start"].tolist() == [0.0, 60 * MINUTE]
    assert result.summary()["utility"] == pytest.approx(8 * math.exp(-0.2) + 2 * math.exp(-0.8))
    assert result.summary()["tasks_postponed"] == 1


@drivers
def test_the_day_ends_before_the_machine_is_ready(driver: str):
    """An option that would begin at or after the day's end is none: the task is postponed."""
    worth = [(8, 0.01), (4, 0.01)]
    scenario = one_machine([0, 0], worth, driver=driver, budget=day(INF, 20.0))
    trace = run(scenario).trace
    assert trace.executions["start"].tolist() == [0.0, 20 * MINUTE]
    assert trace.times_postponed.tolist() == [0, 1]


@drivers
def test_what_only_the_filter_removes_stays(driver: str):
    """A task above the filter's budget waits, unpostponed, until the filter lets it pass.

    One machine, 240 kJ for an hour: the fair share at time 0 is 240 / (60/20) = 80 kJ, less than
    the task's 120 kJ. At t [min] it is 240 / ((60 - t)/20), and 120 kJ from t = 20 min on.
    """
    rules = {"budget": day(240e3, 60.0), "parameters": {"energy_leniency": 1.0}}
    trace = run(one_machine([0], [(8, 0.0)], driver=driver, **rules)).trace
    assert trace.executions["start"].tolist() == [20 * MINUTE]
    assert trace.times_postponed.tolist() == [0]


# ---------------------------------------------------------------------- random mapping


def test_random_mapping_is_uniform_over_admissible_pairs():
    """Each of the five admissible pairs has a fifth of 5,000 draws (chi-square, p > 1e-4)."""
    etc = [[[1.0, 2.0], [3.0, INF], [1.0, 1.0]]]
    eec = [[[1.0, 1.0], [1.0, INF], [9.0, 1.0]]]
    tables = type_tables(etc, eec, [0, 1, 2, 0], UPE)  # the last host is off
    ready = np.array([0.0, 0.0, 0.0, INF])
    uniforms = np.random.default_rng(5).random(5000)
    types, task = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    counts = {}
    for uniform in uniforms:  # a filter of 5 J removes host 2 in P-state 0
        _, host, pstate, _ = map_randomly(tables, types, task, np.array([uniform]), ready, INF, 5.0, INF, EVEN.table)
        pair = (int(host[0]), int(pstate[0]))
        counts[pair] = counts.get(pair, 0) + 1
    assert set(counts) == {(0, 0), (0, 1), (1, 0), (2, 1)}
    chi_square = sum((n - 1250) ** 2 / 1250 for n in counts.values())
    assert chi_square < 21.1  # 3 degrees of freedom


def test_seed_of_random_mapping():
    """Other seeds give other runs, the same seed the same."""
    ends = [run(b6_scenario("random_mapping", seed=seed)).trace.executions["end"].tolist() for seed in (0, 0, 1, 2)]
    assert ends[0] == ends[1]
    assert any(other != ends[0] for other in ends[2:])


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize("name", [*HEURISTICS, "random_mapping"])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"energy_leniency": 0.0}, "'energy_leniency' of .* is 0.0; it must be a number greater"),
        ({"energy_leniency": "much"}, "'energy_leniency' of .* is 'much'"),
        ({"energy_leniency": float("nan")}, "'energy_leniency' of .* is nan"),
        ({"dropping_threshold": -1}, "'dropping_threshold' of .* is -1; it must be a number of"),
    ],
)
def test_bad_parameters_are_refused(name: str, parameters: dict, message: str):
    """The message names scheduler, parameter, what is allowed and what was found."""
    with pytest.raises(InputError, match=message):
        run(b6_scenario(name, parameters=parameters))


@pytest.mark.parametrize("name", [*HEURISTICS, "random_mapping"])
def test_tasks_without_utility_are_refused(name: str):
    """Bags without types, and typed tasks without utility functions."""
    bag = Scenario(ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv", name, driver="reference")
    with pytest.raises(InputError, match="utility"):
        run(bag)
    with pytest.raises(InputError, match="utility"):
        make_scheduler(name).prepare(make_system(load(bag)), np.random.default_rng())
    types = b6_types()
    typed = make_tasks([1e12], task_type=[0])
    scenario = Scenario(typed_platform(types), typed, name, types=types, driver="reference")
    with pytest.raises(InputError, match="utility"):
        run(scenario)


# The compiled utility heuristics decide exactly as the plain loops of algorithms B4 to B6.

OBJECTIVES = {"util": UTIL, "upt": UPT, "upe": UPE, "comp": COMP}
REASONS = {STAYS: "stays", IMPOSSIBLE: "impossible"}
#: Pure exponential; steps without decay where urgency is 0 (ties!); a hard end; linear.
CLASSES = [
    [(0.0, 1.0, 0.0, 1.0)],
    [(0.0, 1.0, 0.5, 1.0), (10.0, 0.5, 0.25, 0.5), (30.0, 0.25, 0.0, 2.0)],
    [(0.0, 1.0, 0.6, 2.0), (12.0, 0.6, 0.0, 1.0), (40.0, 0.0, 0.0, 1.0)],
    [(0.0, 1.0, 1.0, None), (8.0, 1.0, 0.4, None), (20.0, 0.4, 0.0, None), (25.0, 0.0, 0.0, None)],
]


def functions_of(event: Event, n_tasks: int) -> UtilityFunctions:
    """Return the utility functions of an event's tasks, by id."""
    rows, first, kind = [], [0], []
    for each in event.classes:
        rows += [(*row[:3], row[3] or 1.0) for row in each]
        kind.append(LINEAR if each[0][3] is None else DECAYING)
        first.append(len(rows))
    columns = np.array(rows, dtype=float).T
    classes = UtilityClasses(np.array(first), *columns, np.array(kind))
    priority, urgency, number = np.zeros(n_tasks), np.zeros(n_tasks), np.zeros(n_tasks, int)
    for id, _, _, pi, rho, c in event.tasks:
        priority[id], urgency[id], number[id] = pi, rho, c
    return UtilityFunctions(priority, urgency, number, classes, event.unit_s)


def arguments(event: Event, objective: int) -> tuple:
    """Return what kernels want to know of an event: tables, functions, types, arrivals, tasks."""
    ids = np.array([task[0] for task in event.tasks], dtype=np.int64)
    n = int(ids.max(initial=0)) + 1
    task_type, arrival = np.zeros(n, dtype=np.int64), np.zeros(n)
    for task in event.tasks:
        task_type[task[0]], arrival[task[0]] = task[1], task[2]
    cost = weights_of(event).cost_j(np.array(event.eec), event.now, np.array(event.etc))
    tables = type_tables(event.etc, event.eec, event.host_type, objective, cost)
    return tables, utility_tables(functions_of(event, n)), task_type, arrival, ids


def limits(event: Event) -> tuple[float, float, float, np.ndarray]:
    """Return energy remaining, task budget, day's end and what a joule counts."""
    return (float(event.remaining_j), float(event.task_budget), float(event.day_end), weights_of(event).table)


def outcome(mapped, hosts, pstates, reasons, ids) -> tuple[list, dict]:
    """Return a kernel's answer in the oracle's form."""
    decided = list(zip(mapped.tolist(), hosts.tolist(), pstates.tolist(), strict=True))
    pairs = zip(ids.tolist(), reasons.tolist(), strict=True)
    return decided, {id: REASONS[each] for id, each in pairs if each != MAPPED}


def decide(event: Event, objective: str) -> tuple[list, dict]:
    """Let the kernel decide."""
    number = OBJECTIVES[objective]
    given = arguments(event, number)
    ready = np.array(event.ready, dtype=float)
    return outcome(*map_two_stage(number, *given, ready, *limits(event)), given[-1])


def random_event(draw: random.Random) -> Event:
    """Return a small event of a day's last minutes, full of ties and of things that do not fit."""
    evening = draw.random() < 0.3
    n_types, n_host_types, n_pstates = draw.randint(1, 4), draw.randint(1, 4), draw.randint(1, 3)
    n_host_types = 1 if evening else n_host_types
    times = (1, 2, 3, 4, 6, 8, 0.1, 0.3) if draw.random() < 0.7 else None
    powers = (1, 2, 2, 3, 0) if draw.random() < 0.5 else (0.5, 1, 1.5)

    def row() -> list:
        if draw.random() < 0.2:
            return [INF] * n_pstates
        return [float(draw.choice(times)) if times else draw.uniform(1, 9) for _ in range(n_pstates)]

    etc = [[row() for _ in range(n_host_types)] for _ in range(n_types)]
    eec = [[[t * draw.choice(powers) if t < INF else INF for t in each] for each in one] for one in etc]
    now = 30.0
    ready = [
        INF if draw.random() < 0.1 else now + draw.choice((0, 0, 0, 1, 2, 5, draw.uniform(0, 9)))
        for _ in range(draw.randint(1, 2 if evening else 7))
    ]
    tasks = [
        (
            id,
            draw.randrange(n_types),
            now - draw.choice((0, 0, 1, 7, 20, 5000)),
            float(draw.choice((1, 1, 2, 8))),
            draw.choice((0.0, 0.0, 0.1, 0.6, 3.0)),
            draw.randrange(len(CLASSES)),
        )
        for id in sorted(draw.sample(range(40), draw.randint(1, 10)))
    ]
    remaining_j = draw.choice((INF, 40.0, draw.uniform(0, 30), draw.randint(0, 12), -1.0))
    day_end = draw.choice((INF, 60.0, now + draw.randint(0, 12), now + draw.uniform(0, 10)))
    if evening:  # what does not fit now may fit later, once it crosses the day's end
        remaining_j, day_end = draw.uniform(4, 16), now + draw.uniform(4, 12)
    weights = random_weights(draw)
    if weights and not evening and draw.random() < 0.5:  # or once the price is lower
        remaining_j, day_end = draw.uniform(2, 12), 60.0
    return Event(
        etc,
        eec,
        [draw.randrange(n_host_types) for _ in ready],
        ready,
        tasks,
        CLASSES,
        unit_s=draw.choice((1.0, 2.0)),
        remaining_j=remaining_j,
        task_budget=draw.choice((INF, INF, 4.0, draw.uniform(0, 12))),
        day_end=day_end,
        now=now,
        **weights,
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**63))
def test_lazy_greedy_decides_as_the_plain_loop(objective: str, seed: int):
    """Same tasks, hosts and P-states in the same order; the same tasks stay or are given up."""
    event = random_event(random.Random(seed))
    assert decide(copy.deepcopy(event), objective) == two_stage(event, objective)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**63))
def test_random_mapping_decides_as_the_plain_loop(seed: int):
    """The same pairs for the same uniform numbers."""
    draw = random.Random(seed)
    event = random_event(draw)
    uniforms = [draw.choice((draw.random(), 0.0, 1 - 2**-53)) for _ in event.tasks]
    tables, _, task_type, _, ids = arguments(event, UPE)
    ready = np.array(event.ready)
    answer = map_randomly(tables, task_type, ids, np.array(uniforms), ready, *limits(event))
    assert outcome(*answer, ids) == randomly(event, uniforms)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**63))
def test_dropping_as_defined(seed: int):
    """The best utility of P-state 0 decides; equality keeps."""
    event = random_event(random.Random(seed))
    for threshold in (0.5, 1.0, 0.0):
        found = utility_value.falls_short(*arguments(event, UPE), np.array(event.ready), threshold)
        assert found.tolist() == [falls_short(event, task, threshold) for task in event.tasks]


def test_random_events_draw_what_matters():
    """The drawn events hold ties, infeasible pairs, blocked, filtered and crossing options."""
    seen: Counter = Counter()
    for seed in range(1500):
        event = random_event(random.Random(seed))
        seen["infeasible"] += any(INF in each for one in event.etc for each in one)
        seen["nearly empty"] += event.remaining_j < 12
        seen["last hours"] += event.day_end < 45
        _, reasons = two_stage(event, random.Random(seed).choice(list(OBJECTIVES)))
        seen.update(event.seen)
        seen.update(set(reasons.values()))
    wanted = {
        "tie",
        "infeasible",
        "nearly empty",
        "last hours",
        "blocked",
        "filtered",
        "crossing",
        "stays",
        "impossible",
    }
    assert {name for name in wanted if seen[name] < 150} == set(), seen
    assert seen["admissible again"] >= 10, seen
    assert seen["admissible at a lower price"] >= 5, seen
