"""Options that cannot matter change nothing: limits that nothing reaches, maintenance after the end, a price of 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsched import Carbon, Host, Platform, PState, RunResult, Scenario, make_tasks, read_platform, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.model.data_files import DataFiles
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.job_profiles import Delay, ParallelWork, Sequence
from gridsched.model.platform import Cluster, Partition
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.series import Series, SiteSeries
from gridsched.model.tariff import Tariff
from gridsched.model.tasks import Tasks
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.testing import trace_differences
from gridsched.testing.cases import cases_for
from gridsched.testing.repetition import same_run
from gridsched.workloads.traces.trace_options import TraceOptions

#: No tiny case needs so many joules, watts, seconds, grams or so much money.
ENOUGH, LATE_S = 1e18, 1e9
EVEN_CARBON = Carbon(SiteSeries(("*",), (Series((0.0,), (300.0,)),)))
EVEN_PRICES = PriceSeries.of_energy((0.0,), (2.0,))
EXAMPLES = Path(__file__).parents[1] / "examples"

BUDGET, CAP, DOWN, PRICE = "budget", "power_cap_w", "maintenance", "tariff"
#: Schedulers for which an option is an aim, not a limit: a share of the budget, the profit.
AIMS = {
    "arrival_aware": BUDGET,
    "event_based": BUDGET,
    "task_based": BUDGET,
    "lp_max_profit": PRICE,
    "lp_rolling": PRICE,
}
IDS = [entry.id for entry in entries() if not scheduler_class(entry.id).traits.external]


@dataclass(frozen=True)
class Kind:
    """Tasks of one kind, without options.

    Attributes
    ----------
    name : str
    scenario : Scenario
        On the reference driver, with `Platform` and `Tasks`.
    is_refused : bool
        Whether the scheduler does not take such tasks.
    """

    name: str
    scenario: Scenario
    is_refused: bool = False

    @property
    def takes(self) -> str:
        """What tasks take, whether they wait for others, and what else they have."""
        tasks = self.scenario.tasks
        assert isinstance(tasks, Tasks)
        words = ["serial" if tasks.are_serial else "whole" if tasks.take_whole_nodes else "shared"]
        has = {
            "dependent": tasks.dependencies is not None,
            "data": tasks.send_data,
            "files": tasks.files is not None,
            "profiles": tasks.have_profiles,
        }
        return " ".join([*words, *(word for word, holds in has.items() if holds)])


def plain_kinds(scheduler: Scheduler) -> Iterator[Kind]:
    """Yield the first case of each kind of tasks that a scheduler takes, without limits of its own."""
    seen = set[tuple[str, bool]]()
    for case in cases_for(scheduler):
        if len(case.tasks) < 2 or case.estimates is not None or {BUDGET, CAP} & set(case.rules):
            continue
        free = replace(case, name=f"{case.name}, or not", tasks=replace(case.tasks, dependencies=None))
        for each in (case, free):
            kind = Kind(each.name, each.scenario(scheduler, driver="reference"))
            if (key := (kind.takes, each.logged is not None)) not in seen:
                seen.add(key)
                yield kind


#: Three chains: tasks and those whose success they wait for.
TASK, ON = np.array([3, 5, 6, 7]), np.array([1, 3, 0, 2])
SUBMIT_S = (0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 20.0)
WIDTH = [2, 1, 3, 1, 4, 1, 2, 1]
#: Parts that compute and send at once, and that wait, read from a host and compute, twice.
PROFILES = (
    ParallelWork(flops=(2e9,), pattern="ring", message_bytes=1e9),
    Sequence((Delay(1.0), ParallelWork(flops=(1e9,), read_bytes=2e9, storage="n7")), 2),
)


def eight_tasks(*, size_bytes: float = 0.0, **more: Any) -> Tasks:
    """Return tasks of 3 Gflop, some of which wait for others, and for up to three times so many bytes of theirs."""
    kind, sizes = np.full(4, int(After.SUCCESS)), size_bytes * np.array([1.0, 2.0, 3.0, 1.0])
    return make_tasks([3e9] * 8, SUBMIT_S, dependencies=Dependencies(TASK, ON, kind, np.zeros(4), sizes), **more)


@pytest.fixture(scope="module")
def moving(tmp_path_factory) -> dict[str, Scenario]:
    """Return tasks whose data cross links, by what they are; those of serial tasks have routes, found once."""
    of_whole = {"width": WIDTH, "profile": [0, 1, 0, -1, 0, -1, 1, 0], "profiles": PROFILES, "requested_time_s": 90.0}
    one_core = EXAMPLES / "communicating.xml"
    two_cores = tmp_path_factory.mktemp("shared") / "two_cores.xml"
    two_cores.write_text(one_core.read_text().replace('speed="1Gf"', 'speed="1Gf" core="2"'))
    shared = replace(read_platform(two_cores), partitions=(Partition("all", tuple(range(8))),))
    scenarios = {
        "data": Scenario(one_core, eight_tasks(size_bytes=1e9), "fcfs"),
        "serial": Scenario(one_core, eight_tasks(profile=[1, 1, 1, -1, 1, -1, 1, 1], profiles=PROFILES), "fcfs"),
        "whole": Scenario(one_core, eight_tasks(**of_whole), "fcfs"),
    }
    found = {name: run(replace(each, driver="reference")).scenario for name, each in scenarios.items()}
    parts = eight_tasks(demand=[[1]] * 8, anywhere=True, **of_whole)
    return {**found, "shared": Scenario(shared, parts, "fcfs", platform_file=two_cores, driver="reference")}


def as_bag(scenario: Scenario) -> Scenario:
    """Return the scenario with all its tasks there at 0 s."""
    assert isinstance(scenario.tasks, Tasks)
    tasks = replace(scenario.tasks, submit_time_s=np.zeros(len(scenario.tasks)), dependencies=None)
    return replace(scenario, tasks=tasks)


def with_files(scheduler: Scheduler) -> Scenario:
    """Return tasks with input files, on hosts of two clusters, or of the one that queues take."""
    hosts = tuple(Host(name, (PState(1e9, 5.0, 9.0, 40.0 + k),)) for k, name in enumerate("abc"))
    clusters = Cluster("x", (0, 1), bandwidth=10.0), Cluster("y", (2,), bandwidth=20.0)
    if scheduler.traits.parallel:
        clusters = (Cluster("x", (0, 1, 2), bandwidth=10.0),)
    files = DataFiles(("f", "g"), np.array([100.0, 50.0]), ((), ("x",)))
    tasks = eight_tasks(input_files=[[0], [1], [0, 1], [], [0], [1], [], [0]], files=files)
    return Scenario(Platform(hosts, clusters), tasks, scheduler, driver="reference")


def kinds(scheduler: Scheduler, moving: dict[str, Scenario]) -> Iterator[Kind]:
    """Yield all kinds of tasks that a scheduler takes: plain ones, and those whose data move."""
    yield from plain_kinds(scheduler)
    traits = scheduler.traits
    if traits.needs_utility or traits.needs_distributions:
        return  # types of tasks state how long these run, not work and data
    more = {"scheduler": scheduler, **({"carbon": EVEN_CARBON} if traits.needs_carbon else {})}
    moving = {name: replace(each, **more) for name, each in moving.items()}
    if traits.plans_once:
        yield Kind("profiles of a bag", as_bag(moving["serial"]))
        return
    yield Kind("profiles of serial tasks", moving["serial"])
    yield Kind("data between tasks", moving["data"])
    # when tasks that are in a queue and wait for files draw power is not known
    is_refused = traits.respects_power_cap and not traits.parallel
    yield Kind("input files", replace(with_files(scheduler), **more), is_refused=is_refused)
    if traits.parallel:
        yield Kind("profiles of jobs on whole nodes", moving["whole"])
    if traits.shares:
        yield Kind("profiles of jobs that share nodes", moving["shared"])


def vacuous(scenario: Scenario, scheduler: Scheduler) -> Iterator[dict[str, Any]]:
    """Yield fields of scenarios that cannot matter."""
    # what begins after a period waits for the next one's budget; a queue decides about what begins now
    is_queue = scheduler.traits.parallel and not scheduler.traits.needs_utility
    carbon = {} if scenario.carbon is not None else {"carbon": EVEN_CARBON}
    yield {"budget": EnergyBudget(ENOUGH, period_s=7.0 if is_queue else LATE_S)}
    yield {"budget": EnergyBudget(ENOUGH, period_s=math.inf, enforcement="stop")}
    yield {"budget": EnergyBudget(carbon_g=ENOUGH, period_s=math.inf), **carbon}
    yield {"budget": EnergyBudget(money=ENOUGH, prices=EVEN_PRICES, period_s=math.inf)}
    yield {"power_cap_w": ENOUGH}
    yield {"maintenance": (f"{LATE_S}:{2 * LATE_S}",)}
    yield {"horizon_s": LATE_S}
    yield {"tariff": Tariff(price=0.0)}
    yield from whole_partition(scenario)


def whole_partition(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Yield the platform with one partition of all its nodes, if it has none."""
    platform = scenario.platform
    assert isinstance(platform, Platform)
    if not platform.partitions:
        whole = Partition("all", tuple(range(len(platform))))
        yield {"platform": replace(platform, partitions=(whole,))}


def one_by_one_and_together(kind: Kind, scheduler: Scheduler) -> Iterator[dict[str, Any]]:
    """Yield options that cannot matter, each alone, and all at once."""
    yield from vacuous(kind.scenario, scheduler)
    yield from together(kind, scheduler)


def together(kind: Kind, scheduler: Scheduler) -> Iterator[dict[str, Any]]:
    """Yield options that cannot matter all at once; a cap does not follow hosts that go down."""
    all_of_them: dict[str, Any] = {}
    for changes in vacuous(kind.scenario, scheduler):
        all_of_them = {**changes, **all_of_them}
    for left_out in (CAP, DOWN):
        yield {name: value for name, value in all_of_them.items() if name != left_out}


def same(first: Trace, second: Trace, changes: dict[str, Any]) -> bool:
    """Whether two runs are the same, bit by bit, with all that moved.

    Jobs with profiles go on at each end of a budget's period, so that their times are sums of other numbers: they are
    the same up to rounding.
    """
    if first.tasks.have_profiles and BUDGET in changes:
        return np.array_equal(first.final_state, second.final_state) and not trace_differences(first, second)
    names = ("host_offsets", "host_cores", "computed", "transfers")
    return (
        same_run(first, second)
        and (first.horizon_s, first.link_bytes) == (second.horizon_s, second.link_bytes)
        and all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)
    )


def results(
    kind: Kind, scheduler: Scheduler, id: str, changed: Callable[[Kind, Scheduler], Iterable[dict[str, Any]]]
) -> Iterator[tuple[dict[str, Any], RunResult]]:
    """Yield what is changed and the result, first without any change; nothing for tasks that are refused."""
    if kind.is_refused:
        with pytest.raises(InputError):
            run(kind.scenario)
        return
    yield {}, run(kind.scenario)
    for changes in changed(kind, scheduler):
        changes = {name: value for name, value in changes.items() if name != AIMS.get(id)}
        yield changes, run(replace(kind.scenario, **changes))


@pytest.mark.parametrize("id", IDS)
def test_vacuous_options_change_nothing(id, moving):
    """The run is the same, bit by bit, with each of them as without, on all kinds of tasks."""
    scheduler = make_scheduler(id)
    for kind in kinds(scheduler, moving):
        expected = None
        for changes, result in results(kind, scheduler, id, one_by_one_and_together):
            expected = expected or result
            assert same(expected.trace, result.trace, changes), (kind.name, changes)


ON_SIMGRID = ["wq", pytest.param("heft", marks=pytest.mark.systems("workflows")), "easy_backfilling"]


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("id", ON_SIMGRID)
def test_vacuous_options_change_nothing_on_simgrid(id, moving):
    """All of them at once: the same records, bit by bit, and the same joules by SimGrid's plugin."""
    scheduler = make_scheduler(id)
    for kind in kinds(scheduler, moving):
        expected = None
        on_simgrid = replace(kind, scenario=replace(kind.scenario, driver="simgrid", timeout_s=60.0))
        for changes, result in results(on_simgrid, scheduler, id, together):
            expected = expected or result
            assert same(expected.trace, result.trace, changes), (kind.name, changes)
            assert result.plugin_j == pytest.approx(expected.plugin_j, rel=1e-12), (kind.name, changes)


@pytest.mark.parametrize("id", IDS)
def test_kinds_of_tasks_that_schedulers_take(id, moving):
    """Each has tasks that wait for others, and others; most have data that move; jobs take whole nodes and shares."""
    traits = make_scheduler(id).traits
    takes = {kind.takes for kind in kinds(make_scheduler(id), moving)}
    plain = {"whole" if traits.parallel else "serial"}
    if traits.shares:
        plain = {"serial", "whole", "shared"}
    waiting = set() if traits.plans_once else {f"{each} dependent" for each in plain}
    assert takes >= plain | waiting
    if not (traits.needs_utility or traits.needs_distributions or traits.plans_once):
        moving = {f"serial dependent {what}" for what in ("profiles", "data", "files")}
        assert takes >= moving | ({"whole dependent profiles"} if traits.parallel else set())


@pytest.mark.parametrize("limits", [{"energy_j": 1e18}, {"energy_j": 1e18, "period_s": math.inf}, {"carbon_g": 1e18}])
def test_a_budget_that_cannot_bind_lets_jobs_of_several_shared_nodes_run(limits):
    """Of the 398 jobs of the example 132 have parts on several nodes: their energy is no less finite for that."""
    log = TraceOptions(allocation="cores", partitions=EXAMPLES / "shared_nodes.toml")
    example = EXAMPLES / "shared_nodes.xml", EXAMPLES / "shared_nodes.sacct", "easy_backfilling"
    options = {"driver": "reference", "trace": log, "carbon": EVEN_CARBON}
    expected = run(Scenario(*example, **options)).trace
    trace = run(Scenario(*example, **options, budget=EnergyBudget(**limits))).trace
    assert len(trace.executions) == 398
    assert same_run(expected, trace)


@pytest.mark.parametrize(("budget_j", "starts"), [(600.0, [0.0]), (599.0, [])])
def test_the_energy_of_parts_on_several_shared_nodes_by_hand(budget_j, starts):
    """Six parts of a core for 10 s, on nodes of four cores that draw 40 W at work, nothing idle: 6 x 10 W x 10 s."""
    hosts = tuple(Host(f"n{k}", (PState(1.0, 0.0, 0.0, 40.0),), cores=4) for k in range(2))
    platform = Platform(hosts, (Cluster("all", (0, 1)),))
    tasks = make_tasks([10.0], width=6, demand=[[1]], anywhere=[True])
    budget = EnergyBudget(budget_j, period_s=100.0, periods=1)
    scenario = Scenario(platform, tasks, "fcfs", driver="reference", budget=budget, horizon_s=90.0)
    assert run(scenario).trace.executions["start"].tolist() == starts
