"""AutoBag follows the best of its candidates; `Delegate` hands a run over within the rules."""

from __future__ import annotations

import pickle
from dataclasses import replace

import cloudpickle
import numpy as np
import pytest
from clusters import plain_platform
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cases import environment, ex_a_platform, ex_a_tasks, platform_of

from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import IncompleteRun, InputError, InvalidDecision
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.signals import EVEN
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Delegate, Scheduler, Traits
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.runs.run import run
from gridsched.runs.scenario_maker import load
from gridsched.scenario import Scenario
from gridsched.schedulers.auto_bag import OBJECTIVES, AutoBag
from gridsched.schedulers.bag.baselines import MCT, WQR, WorkQueue

CANDIDATES = [e.id for e in entries() if "bag" in e.accepts and AutoBag.traits.covers(scheduler_class(e.id).traits)]
EX_A = Scenario(ex_a_platform(), ex_a_tasks(), driver="reference")


def run_with(scheduler, base=EX_A, **changes):
    """Run a scheduler on EX-A, or on another scenario."""
    return run(replace(base, scheduler=scheduler, **changes))


# ---------------------------------------------------------------------- by hand


def test_ex_a_for_energy():
    """On EX-A LECSA has the least energy, 1700 J (algorithms A6)."""
    result = run_with(AutoBag())
    assert result.summary()["energy_j"] == pytest.approx(1700)
    assert result.trace.delegated_to.startswith("LECSA(")
    assert result.provenance["delegated_to"] == result.trace.delegated_to


def test_ex_a_for_makespan():
    """On EX-A dynamic FPLTF has the least makespan, 30 s, and comes first of its equals."""
    result = run_with(AutoBag("makespan"))
    assert result.summary()["makespan_s"] == pytest.approx(30)
    assert result.trace.delegated_to == "DynamicFPLTF()"


def test_under_a_cap_on_power():
    """All hosts busy draw 75 W; Min-Min alone leaves h3 idle, which saves 1 of its 5 W."""
    result = run_with(AutoBag(), power_cap_w=74.0)
    assert result.trace.delegated_to == "MinMin(reschedule=True)"
    assert result.summary()["peak_power_w"] == pytest.approx(74)
    with pytest.raises(InputError, match=r"power_cap_w = 60.*capped"):
        run_with(AutoBag(), power_cap_w=60.0)


def test_ex_a_for_the_product():
    """Energy times delay: 2250 J x 30 s of dynamic FPLTF beats 1700 J x 100 s of LECSA."""
    result = run_with(AutoBag("energy_delay"))
    row = result.summary()
    assert row["makespan_s"] * row["energy_j"] == pytest.approx(30 * 2250)


def test_scores_of_every_candidate():
    """The trials give what the worked examples say: WQ 2430 J, WQR 2745 J, Sufferage 2520 J."""
    from gridsched.drivers.reference import simulate
    from gridsched.engine import Controller
    from gridsched.model.seeds import random_stream
    from gridsched.scenario import make_system

    policy = AutoBag(candidates="wq,wqr,sufferage")
    rng = random_stream(0, "scheduler")
    simulate(Controller(make_system(load(EX_A)), EX_A.tasks, policy, rng=rng))
    assert list(policy.scores_.values()) == pytest.approx([2430, 2745, 2520])


@pytest.mark.parametrize("order", [("wq", "olb"), ("olb", "wq")])
def test_ties_go_to_the_first(order):
    """Of candidates with equal results the first in the given order is followed."""
    one_task = replace(EX_A, tasks=make_tasks([100.0]))
    result = run_with(AutoBag(candidates=order), one_task)
    assert result.trace.delegated_to == repr(make_scheduler(order[0]))


def test_candidates_as_text_ids_and_instances():
    """A text, a tuple of ids and instances with parameters name candidates alike."""
    for given_as in ("wq, wqr", ("wq", "wqr"), [WorkQueue(), WQR()]):
        assert run_with(AutoBag(candidates=given_as)).trace.delegated_to == "WorkQueue()"
    three = WQR(max_replicas=3)
    assert run_with(AutoBag("makespan", [WorkQueue(), three])).trace.delegated_to == repr(three)


def test_pstate_of_the_scenario():
    """Trials run in the scenario's P-state: in the slow one another host is the efficient one."""
    hosts = (
        Host("a", (PState(10, 0, 20, 20), PState(5, 0, 20, 20))),
        Host("b", (PState(10, 0, 30, 30), PState(5, 0, 5, 5))),
    )
    base = replace(EX_A, platform=Platform(hosts), tasks=make_tasks([100.0] * 6))
    for pstate in (0, 1):
        auto = run_with(AutoBag(), base, pstate=pstate).summary()["energy_j"]
        alone = [run_with(id, base, pstate=pstate).summary()["energy_j"] for id in CANDIDATES]
        assert auto == pytest.approx(min(alone))


# ---------------------------------------------------------------------- task types

#: task type 0 is frugal on host type 1 and fast on 0, type 1 the other way round [s], [W]
TYPES = TaskTypes(
    np.array([[[10.0], [20.0]], [[30.0], [12.0]]]), np.array([[[90.0], [10.0]], [[5.0], [80.0]]]), np.array([0, 1])
)


def typed(task_types, **changes):
    """Typed tasks that are submitted at 0, on a host of each type."""
    n = len(task_types)
    tasks = make_tasks(np.full(n, TYPED_TASK_FLOPS), task_type=task_types)
    return Scenario(typed_platform(TYPES), tasks, types=TYPES, driver="reference", **changes)


@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
@pytest.mark.parametrize("task_types", [[0, 1, 0, 0, 1], [0, 0, 0, 0], [1, 0, 1]])
def test_typed_tasks_are_tried_with_their_energies(objective, task_types):
    """The least of all candidates that take typed tasks, not the first one."""
    base = typed(task_types)
    ids = [id for id in CANDIDATES if id not in ("dynamic_fpltf", "lecsa")]
    alone = [OBJECTIVES[objective](run_with(id, base).trace, EVEN) for id in ids]
    auto = run_with(AutoBag(objective), base)
    assert len(set(alone)) > 1
    assert OBJECTIVES[objective](auto.trace, EVEN) == min(alone)


def test_trial_energies_of_typed_tasks_by_hand():
    """One task of each type on a host of each type.

    Round robin puts them on hosts 1 and 2: 10 s x 90 W + 12 s x 80 W. Min-Min first gives task 1
    its 10 s on host 1, then task 2 its 12 s on host 2: the same.
    """
    from gridsched.drivers.reference import simulate
    from gridsched.engine import Controller
    from gridsched.model.seeds import random_stream
    from gridsched.scenario import make_system

    base = typed([0, 1])
    policy = AutoBag(candidates="round_robin,min_min")
    rng = random_stream(0, "scheduler")
    simulate(Controller(make_system(load(base)), base.tasks, policy, rng=rng))
    assert list(policy.scores_.values()) == pytest.approx([1860.0, 1860.0])


def test_typed_trials_on_a_selection():
    """A selection keeps each task's type and utility function."""
    task_types = [0, 1, 1, 0, 1, 1, 0, 1]
    base = typed(task_types)
    seen = []

    class Spy(WorkQueue):
        def schedule(self, state):
            seen.append(state.estimates.etc(np.arange(len(state.tasks)), [0])[:, 0].tolist())
            return super().schedule(state)

    run_with(AutoBag(candidates=[Spy()], max_tasks=3), base)
    assert seen[0] == [10, 30, 30]
    assert seen[-1] == [10 if k == 0 else 30 for k in task_types]


@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_saving_work_does_not_win(objective):
    """More tasks done before the horizon count for more than the joules of those left out.

    Of 30 s on host 1 and 12 s on host 2 round robin begins 1 and 2 in 25 s, MCT 1 and 3.
    """
    base = typed([1] * 4, horizon_s=25.0)
    alone = {id: run_with(id, base).summary() for id in ("round_robin", "mct", "wq")}
    auto = run_with(AutoBag(objective, candidates=tuple(alone)), base).summary()
    assert [row["tasks_finished"] for row in alone.values()] == [3, 4, 4]
    assert auto["tasks_finished"] == 4


# ---------------------------------------------------------------------- properties


@st.composite
def bags(draw):
    """A platform with power figures and a bag that is submitted at 0."""
    n_hosts = draw(st.integers(1, 4))
    speeds = [draw(st.sampled_from([10.0, 20.0, 20.0, 35.0])) for _ in range(n_hosts)]
    efficiencies = [draw(st.sampled_from([0.5, 1.0, 4.0])) for _ in range(n_hosts)]
    cores = [draw(st.sampled_from([1, 1, 2])) for _ in range(n_hosts)]
    flops = draw(st.lists(st.sampled_from([10.0, 50.0, 100.0, 333.0]), min_size=1, max_size=10))
    return platform_of(speeds, efficiencies, cores=cores), make_tasks(flops)


@settings(max_examples=25, deadline=None)
@given(bags(), st.sampled_from(sorted(OBJECTIVES)))
def test_equals_the_best_candidate(case, objective):
    """On a bag submitted at 0 AutoBag's run is the best candidate's, to the last bit."""
    base = replace(EX_A, platform=case[0], tasks=case[1])
    auto = run_with(AutoBag(objective), base)
    alone = [OBJECTIVES[objective](run_with(id, base).trace, EVEN) for id in CANDIDATES]
    assert OBJECTIVES[objective](auto.trace, EVEN) == min(alone)
    winner = run_with(CANDIDATES[int(np.argmin(alone))], base)
    assert np.array_equal(auto.trace.executions, winner.trace.executions)


@pytest.mark.parametrize("scheduler", ["mct", "round_robin", "olb", "wqr", "sufferage", "lecsa"])
@pytest.mark.parametrize("interval", [None, 7.0])
def test_a_delegate_is_asked_in_its_own_way(scheduler, interval):
    """Later arrivals and mapping intervals: a run by delegation equals the delegate's own."""
    tasks = make_tasks([100, 50, 200, 150, 25, 80, 60], [3, 3, 3, 8, 8, 14, 40])
    base = replace(EX_A, tasks=tasks, mapping_interval_s=interval)
    own, by_delegation = run_with(scheduler, base), run_with(AutoBag(candidates=scheduler), base)
    assert np.array_equal(own.trace.executions, by_delegation.trace.executions)
    assert np.array_equal(own.trace.host_changes, by_delegation.trace.host_changes)


def test_random_candidate_repeats_with_the_seed():
    """A candidate that draws random numbers draws the same in its trial and in the run."""
    random_copies = WQR(max_replicas=3, pick="random")
    base = replace(EX_A, platform=environment(2), tasks=make_tasks(np.linspace(1e5, 1e6, 120)))
    for seed in (0, 1):
        own = run_with(random_copies, base, seed=seed)
        auto = run_with(AutoBag(candidates=[random_copies]), base, seed=seed)
        assert np.array_equal(own.trace.executions, auto.trace.executions)


def test_simgrid_agrees():
    """On SimGrid the same candidate is chosen and the meter gives its joules."""
    if not is_installed():
        pytest.skip("SimGrid is not installed")
    result = run_with(AutoBag(), driver="simgrid")
    assert result.trace.delegated_to.startswith("LECSA(")
    assert result.energy_plugin_j == pytest.approx(1700, rel=1e-9)


# ---------------------------------------------------------------------- what a trial knows


def test_later_tasks_are_unknown_to_the_trial():
    """Only the tasks of the first submission are tried: what comes later does not matter."""
    first = [1000.0, 500.0]
    small = replace(EX_A, tasks=make_tasks(first))
    chosen = run_with(AutoBag("makespan"), small).trace.delegated_to
    late = make_tasks([*first, *[9999.0] * 20], [0, 0, *[1.0] * 20])
    assert run_with(AutoBag("makespan"), replace(EX_A, tasks=late)).trace.delegated_to == chosen


def test_large_bags_are_tried_on_a_selection():
    """With max_tasks 3 the trial sees the smallest, the median and the largest task."""
    tasks = make_tasks([1000, 30, 500, 2000, 1500, 250, 20])
    seen = []

    class Spy(WorkQueue):
        def schedule(self, state):
            seen.append(sorted(state.tasks.flops.tolist()))
            return super().schedule(state)

    result = run_with(AutoBag(candidates=[Spy()], max_tasks=3), replace(EX_A, tasks=tasks))
    assert seen[0] == [20, 500, 2000]
    assert seen[-1] == sorted(tasks.flops.tolist())
    assert result.summary()["tasks_finished"] == 7


def test_hosts_that_are_off():
    """A trial begins with the hosts that are on; with none, the run reports what is left."""
    off = {"hosts_off": ("h1", "h2")}
    assert run_with(AutoBag(), **off).summary()["makespan_s"] == pytest.approx(5250 / 25)
    with pytest.raises(IncompleteRun, match=r"5.*5"):
        run_with(AutoBag(), hosts_off=("h1", "h2", "h3"))


def test_a_candidate_that_cannot_act_here():
    """Without power figures LECSA is passed over, unless it was asked for by name."""
    dark = replace(EX_A, platform=plain_platform([100.0, 50.0]))
    assert run_with(AutoBag("makespan"), dark).trace.delegated_to
    with pytest.raises(InputError, match="power figure"):
        run_with(AutoBag("makespan", "lecsa,wq"), dark)
    with pytest.raises(InputError, match="power figure"):
        run_with(AutoBag("makespan", "lecsa"), dark)


# ---------------------------------------------------------------------- parameters, copies


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"objective": "joules"}, "Allowed: 'energy', 'makespan', 'energy_delay'"),
        ({"candidates": "wq,lexa"}, "Did you mean 'lecsa'"),
        ({"candidates": ()}, "must name at least one"),
        ({"candidates": "auto_bag"}, "cannot follow"),
        ({"candidates": 7}, "'candidates' of auto_bag is 7"),
        ({"candidates": (7,)}, "'candidates' of auto_bag is"),
        ({"max_tasks": 0}, "whole number >= 1"),
    ],
)
def test_bad_parameters(parameters, said):
    """Wrong parameters give one line that shows what is allowed."""
    with pytest.raises(InputError, match=said):
        run_with(AutoBag(**parameters))


class _Mine(WorkQueue):
    """A user's own policy."""


def test_a_copy_knows_the_registered_schedulers():
    """The process that simulates follows the candidates of the process that asked."""
    policy = AutoBag("makespan")
    policy.registered_ = [_Mine]
    copy = pickle.loads(cloudpickle.dumps(policy))
    assert repr(copy) == repr(policy)
    assert run_with(policy).trace.delegated_to  # a clone forgets what the copy learned
    assert copy._registered() == [_Mine]
    fresh = pickle.loads(cloudpickle.dumps(AutoBag()))
    assert len(fresh._registered()) == len(CANDIDATES)
    assert not [name for name in vars(fresh.clone()) if name.endswith("_")]


# ---------------------------------------------------------------------- Delegate


class _HandsOver(Scheduler):
    """Delegates to whatever it is given."""

    traits = Traits(trigger="start", delegates=True)

    def __init__(self, to=None):
        self.to = to

    def schedule(self, state):
        return [Delegate(self.to)]


class _Undeclared(_HandsOver):
    traits = Traits(trigger="start")


def test_delegate_within_the_traits():
    """A delegate whose traits are declared is followed, one that goes beyond them is refused."""
    assert run_with(_HandsOver(MCT())).trace.delegated_to == "MCT()"
    for illegal, said in (
        (_HandsOver(WQR()), "go beyond"),
        (_HandsOver(_HandsOver()), "go beyond"),
        (_HandsOver("mct"), "must be a Scheduler"),
        (_Undeclared(MCT()), "needs the trait 'delegates'"),
    ):
        with pytest.raises(InvalidDecision, match=said):
            run_with(illegal)


def test_traits_cover():
    """Every flag of the other must be declared; how it is asked does not matter."""
    wide = Traits(trigger="start", replicates=True, uses_rng=True)
    assert wide.covers(Traits(trigger="arrival", uses_rng=True))
    assert not wide.covers(Traits(trigger="start", powers_hosts=True))
    assert not replace(wide, delegates=True).covers(replace(wide, delegates=True))
