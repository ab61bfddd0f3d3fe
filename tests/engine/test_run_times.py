"""Run times: estimates and truth, and chances of missing a deadline."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import at, first_host, hosts, idle_hosts, plan, play, rows

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import IncompleteRun, InputError
from gridsched.model import pmf_kernels
from gridsched.model.estimates import FlopsEstimates, RequestedTimes
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.pmf import Pmf, PmfGrid, from_impulses, from_samples, point_mass
from gridsched.model.run_times import LoggedRunTimes, SampledRunTimes
from gridsched.model.seeds import random_stream
from gridsched.model.stochastic import ListedTimes, StochasticTypes
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, TypedEstimates, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, PowerOff, PowerOn, WakeAt
from gridsched.runs.scenario_maker import load
from gridsched.scenario import make_system
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.cases import make_stochastic_case
from gridsched.testing.playing import Case
from gridsched.testing.playing import play as play_case

# True run times beside the estimates: both drivers take them, no policy sees them.


def uniform(share: float, estimate_s: float) -> float:
    """Half to one and a half times the estimate."""
    return (0.5 + share) * estimate_s


def test_a_task_has_the_same_luck_wherever_it_runs():
    """Shares 0.25 and 0.75 of 10 s and 20 s, of 5 s and 10 s: by hand."""
    platform, tasks = hosts(10, 20), make_tasks([100.0, 200.0])
    truth = SampledRunTimes(FlopsEstimates(platform, tasks), [0.25, 0.75], uniform)
    assert [truth.run_time(0, h, 0) for h in (0, 1)] == [7.5, 3.75]
    assert [truth.run_time(1, h, 0) for h in (0, 1)] == [25.0, 12.5]


def test_requested_and_logged_times_are_those_of_the_fastest_host():
    """On the fastest host in P-state 0 to the last digit; at a quarter of its speed 4 times."""
    platform = Platform((Host("a", (PState(3e9), PState(1.5e9))), Host("b", (PState(0.75e9),))))
    tasks = make_tasks([1.0, 1.0], requested_time_s=[0.1, 7.3])
    known, truth = RequestedTimes(platform, tasks), LoggedRunTimes(platform, [0.07, 6.1])
    assert known.run_time(0, 0, 0) == 0.1
    assert known.etc([1], [0, 1]).tolist() == [[7.3, 4 * 7.3]]
    assert (known.run_time(1, 0, 1), truth.run_time(1, 0, 1)) == (14.6, 12.2)
    assert (truth.run_time(0, 0, 0), truth.run_time(0, 1, 0)) == (0.07, 0.28)
    seen, reveal = known.concealed()
    reveal(1)
    assert seen.etc([0], [0]).tolist() == [[0.1]]
    with pytest.raises(InputError, match="requested times"):
        RequestedTimes(platform, make_tasks([1.0]))
    with pytest.raises(InputError, match=r"task 1.*0 s"):
        LoggedRunTimes(platform, [1.0, 0.0])


def test_a_scenario_estimates_by_requested_times():
    """Ten seconds asked for, four taken: the policy sees the ten, the records have the four."""
    platform = hosts(1e9)
    tasks = make_tasks([10e9], requested_time_s=[10.0])
    scenario = Scenario(platform, tasks, "wq", driver="reference", run_times=LoggedRunTimes(platform, [4.0]))
    assert make_system(load(scenario)).estimates.run_time(0, 0, 0) == 10.0
    assert run(scenario).trace.finish_time_s.tolist() == [4.0]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_shares_lie_between_0_and_1(share):
    """At the ends a quantile may be infinite: the task is named."""
    estimates = FlopsEstimates(hosts(10), make_tasks([1.0, 1.0]))
    with pytest.raises(InputError, match="task 1"):
        SampledRunTimes(estimates, [0.5, share], uniform)


def test_executed_flops_are_those_of_the_true_time():
    """100 flop estimated as 10 s take 7.5 s at 10 flop/s: 75 flop were executed."""
    platform, tasks = hosts(10), make_tasks([100.0])
    truth = SampledRunTimes(FlopsEstimates(platform, tasks), [0.25], uniform)
    for run_times, flops in ((None, 100.0), (truth, 75.0)):
        scenario = Scenario(platform, tasks, "wq", driver="reference", run_times=run_times)
        assert run(scenario).trace.executed_flops().tolist() == [flops]


def bag(scheduler: str) -> Scenario:
    """Twelve tasks, some of which come later, on three hosts, one with two cores."""
    rng = np.random.default_rng(5)
    platform = Platform(
        tuple(
            Host(f"h{k}", (PState(speed, 4, 6, watts),), cores=cores)
            for k, (speed, watts, cores) in enumerate([(100, 50, 1), (50, 40, 2), (25, 20, 1)])
        )
    )
    tasks = make_tasks(rng.uniform(100, 2000, 12), np.repeat([0.0, 7.0], 6))
    truth = SampledRunTimes(FlopsEstimates(platform, tasks), random_stream(1, "runtime", 0).random(12), uniform)
    return Scenario(platform, tasks, scheduler, run_times=truth)


def typed(scheduler: str) -> Scenario:
    """Two task types on two host types with two P-states."""
    types = TaskTypes(
        np.array([[[10.0, 14], [20, 28]], [[6, 9], [4, 5]]]),
        np.array([[[100.0, 50], [80, 40]], [[120, 70], [90, 60]]]),
        np.array([0, 1]),
    )
    tasks = make_tasks([TYPED_TASK_FLOPS] * 6, [0.0] * 4 + [11.0] * 2, task_type=[0, 1] * 3)
    shares = random_stream(2, "runtime", 0).random(6)
    truth = SampledRunTimes(types.estimates(tasks), shares, uniform)
    return Scenario(typed_platform(types), tasks, scheduler, types=types, run_times=truth, pstate=0)


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize(
    "scenario",
    [bag("wq"), bag("wqr"), bag("min_min"), bag("lecsa"), typed("mct")],
    ids=lambda scenario: f"{scenario.scheduler}-{'typed' if scenario.types else 'bag'}",
)
def test_both_drivers_agree_on_run_times_other_than_the_estimates(scenario):
    """Times and joules to 1e-9, and not those of the estimates."""
    reference = run(replace(scenario, driver="reference"))
    simulated = run(replace(scenario, driver="simgrid"))
    assert trace_differences(reference.trace, simulated.trace) == []
    assert metered_differences(simulated) == []
    assert not reference.trace.as_estimated
    assert not simulated.trace.as_estimated
    estimated = run(replace(scenario, driver="reference", run_times=None))
    assert trace_differences(reference.trace, estimated.trace) != []


# Estimates by task type, tasks that fit nowhere, and true run times that differ.

INF = float("inf")


def typed_estimates(etc, task_type, host_type) -> TypedEstimates:
    """Estimates of (task type, host type, P-state) with 10 W everywhere."""
    etc = np.array(etc, dtype=float)
    return TypedEstimates(etc, np.full(etc.shape, 10.0), task_type, host_type)


def test_run_times_come_from_the_etc_matrix():
    """Type 0 takes 4 s on the first host type and 6 s on the second; flops do not count."""
    tasks = make_tasks([1.0, 1e9], task_type=[0, 0])
    estimates = typed_estimates([[[4.0], [6.0]]], [0, 0], [0, 1])
    answer = at((0.0, [Assign(0, 0), Assign(1, 1)]))
    trace, _ = play(hosts(10, 10), tasks, answer, estimates=estimates)
    assert trace.finish_time_s.tolist() == [4.0, 6.0]


def test_a_task_that_fits_nowhere_is_rejected_before_the_policy_sees_it():
    """No host runs type 1: its task is never mappable, and final."""
    tasks = make_tasks([1.0, 1.0], task_type=[1, 0])
    estimates = typed_estimates([[[4.0]], [[INF]]], [1, 0], [0])
    trace, policy = play(hosts(10), tasks, first_host, estimates=estimates)
    assert policy.asked_ == [(0.0, [1])]
    assert trace.final_state.tolist() == [TaskState.REJECTED, TaskState.FINISHED]


@pytest.mark.parametrize("asked", ["start", "arrival", "event"])
def test_a_run_of_rejected_tasks_asks_nobody(asked):
    """Where nothing fits there is nothing to decide."""
    tasks = make_tasks([1.0, 1.0], 3.0, task_type=[0, 0])
    trace, policy = play(hosts(10), tasks, first_host, Traits(asked), estimates=typed_estimates([[[INF]]], [0, 0], [0]))
    assert policy.times == []
    assert trace.final_state.tolist() == [TaskState.REJECTED] * 2
    assert trace.horizon_s == 3.0


def test_a_task_that_fits_in_another_pstate_is_not_rejected():
    """Infeasible in P-state 0 only: the policy may still run it in P-state 1."""
    platform = Platform((Host("h1", (PState(10.0), PState(5.0))),))
    tasks = make_tasks([1.0], task_type=[0])
    estimates = typed_estimates([[[INF, 7.0]]], [0], [0])
    answer = at((0.0, [Assign(0, 0, 1)]))
    trace, _ = play(platform, tasks, answer, estimates=estimates)
    assert rows(trace) == [(0.0, 0, 0, 7.0)]


def test_a_host_type_that_no_host_has_makes_nothing_feasible():
    """Columns of the matrix without a host do not count as places to run."""
    tasks = make_tasks([1.0], task_type=[0])
    estimates = typed_estimates([[[INF], [5.0]]], [0], [0])
    assert estimates.runnable([0], [0]).tolist() == [False]
    trace, _ = play(hosts(10), tasks, first_host, estimates=estimates)
    assert trace.final_state.tolist() == [TaskState.REJECTED]


def test_typed_estimates_check_their_matrices():
    """Shapes and signs are checked when the estimates are made."""
    with pytest.raises(InputError, match="both need"):
        TypedEstimates(np.ones((1, 1, 1)), np.ones((1, 2, 1)), [0], [0])
    with pytest.raises(InputError, match=r"ETC.* 0"):
        TypedEstimates([[[0.0]]], [[[1.0]]], [0], [0])
    with pytest.raises(InputError, match=r"ETC.* 0"):
        TypedEstimates([[[float("nan")]]], [[[1.0]]], [0], [0])
    with pytest.raises(InputError, match=r"APC.*0 W"):
        TypedEstimates([[[1.0]]], [[[-1.0]]], [0], [0])


def test_scalar_and_array_estimates_agree():
    """`run_time` is the scalar twin of `etc`; energy is time times power."""
    two_cores = Host("a", (PState(8.0, 1, 2, 40), PState(4.0, 1, 2, 12)), cores=2)
    platform = Platform((two_cores, Host("b", (PState(3.0, 1, 2, 9),))))
    tasks = make_tasks([24.0, 6.0])
    estimates = FlopsEstimates(platform, tasks)
    assert estimates.etc([0, 1], [0, 1]).tolist() == [[3.0, 8.0], [0.75, 2.0]]
    assert estimates.run_time(0, 0, 1) == estimates.etc([0], [0], 1)[0, 0] == 6.0
    assert estimates.eec([0], [0, 1]).tolist() == [[3.0 * 20.0, 8.0 * 9.0]]
    assert estimates.eec([0], [0], 1).tolist() == [[6.0 * 6.0]]


def test_the_policy_sees_estimates_the_run_takes_the_truth():
    """True times are doubled: the policy expects the end at 1 s and learns of it at 2 s."""
    seen = {}

    def answer(state):
        seen[state.now] = (state.ready_time.tolist(), state.running["estimated_end"].tolist())
        return first_host(state)

    tasks = make_tasks([10.0, 20.0, 30.0], [0.0, 0.0, 1.5])
    trace, _ = play(hosts(10), tasks, answer, run_time=lambda task, host, pstate: tasks.flops[task] / 5.0)
    assert trace.finish_time_s.tolist() == [2.0, 6.0, 12.0]
    assert seen[1.5] == ([3.5], [1.0])  # late already: free now, then the queued 2 s
    assert seen[2.0] == ([7.0], [4.0])


def test_a_task_that_ends_early_frees_its_host_early():
    """With shorter true times plans run down earlier than planned."""
    answer = at((0.0, [plan((0, 0), (1, 0), (2, 1))]))
    trace, policy = play(hosts(10, 10), [50.0, 50.0, 50.0], answer, run_time=lambda task, host, pstate: 1.0 + task)
    assert rows(trace) == [(0.0, 0, 0, 1.0), (0.0, 1, 2, 3.0), (1.0, 0, 1, 3.0)]
    assert policy.times == [0.0, 1.0]


def test_random_true_times_keep_every_task_once_and_the_hosts_busy():
    """Whatever the truth, a work queue runs each task once and leaves no gap on a host."""
    rng = np.random.default_rng(3)
    truth = rng.gamma(2.0, 5.0, (40, 4))
    trace, _ = play(hosts(1, 2, 3, 4), [10.0] * 40, idle_hosts, run_time=lambda task, host, _: truth[task, host])
    assert sorted(trace.executions["task"].tolist()) == list(range(40))
    lengths = trace.executions["end"] - trace.executions["start"]
    expected = truth[trace.executions["task"], trace.executions["host"]]
    np.testing.assert_allclose(lengths, expected, rtol=1e-12)
    for host in range(4):
        runs = trace.executions[trace.executions["host"] == host]
        assert runs["start"].tolist() == [0.0, *runs["end"][:-1].tolist()]


def test_an_incomplete_run_tells_how_many_tasks_are_left():
    """The message counts, gives the time and names the tasks."""
    with pytest.raises(IncompleteRun, match=r"2 of 3.*t = 5 s.*2, 3"):
        play(hosts(10), [50.0, 1.0, 1.0], at((0.0, [Assign(0, 0)])))


def test_an_incomplete_run_names_ten_tasks_and_counts_the_rest():
    """A bag of a million tasks makes no sentence of a million names."""
    with pytest.raises(IncompleteRun, match=r"1, 2, 3, 4, 5, 6, 7, 8, 9, 10.* 3"):
        play(hosts(10), [1.0] * 13, lambda state: [])


# `state.late_probabilities` and `state.mean_ready_time` against the distributions that they summarize.


class LooksAtAllHosts(Scheduler):
    """Assigns at random, switches idle hosts off and on, and compares what it sees."""

    traits = Traits(trigger="event", uses_rng=True, uses_dvfs=True, powers_hosts=True)

    def prepare(self, system, rng):
        self.rng_, self.looks_, self.mine_ = rng, 0, {}

    def schedule(self, state):
        self.look(state)
        for task in state.mappable.tolist():
            pairs = np.argwhere(np.isfinite(self.eet(state, task)) & state.is_on[:, None])
            if len(pairs):
                host, pstate = self.rng_.choice(pairs).tolist()
                self.mine_[task] = pstate
                yield Assign(task, host, pstate)
                return  # the others at the next look
        host = int(self.rng_.integers(len(state.is_on)))
        if not state.is_on[host]:
            yield PowerOn(host)
        elif state.free_cores[host] and not state.queue_length[host]:
            yield PowerOff(host)
        if len(state.mappable) or state.tasks_to_arrive:
            yield WakeAt(state.now + float(self.rng_.exponential(3.0)))

    def eet(self, state, task):
        known = state.estimates
        return known.etc_matrix[known.task_type[task]][known.host_type]

    def late_by_hand(self, state):
        """Convolve every queue again."""
        known, late = state.estimates, []
        running = {int(row["host"]): row for row in state.running}
        for host, (first, last) in enumerate(itertools.pairwise(state.queue_offsets.tolist())):
            end = point_mass(state.now)
            if host in running:
                row = running[host]
                run_time = known.pmf(int(row["task"]), host, int(row["pstate"]))
                end = run_time.shifted(float(row["start"])).not_before(state.now)
            elif last > first:  # it boots
                end = point_mass(state.ready_pmf(host).times[0] - self.first_of_queue(state, host))
            for task in state.queue_tasks[first:last].tolist():
                run_time = known.pmf(task, host, self.mine_[task])
                end = run_time.shifted(end.times[0]) if len(end) == 1 else end.convolved(run_time)
                late.append(float(end.late_probability(state.tasks.deadline_s[task])))
        return late

    def first_of_queue(self, state, host):
        first, last = state.queue_offsets[host : host + 2].tolist()
        return sum(
            state.estimates.pmf(task, host, self.mine_[task]).times[0]
            for task in state.queue_tasks[first:last].tolist()
        )

    def look(self, state):
        hosts = range(len(state.is_on))
        ready = [state.ready_pmf(host) for host in hosts]
        assert state.mean_ready_time() == pytest.approx([pmf.mean for pmf in ready], rel=1e-12)
        assert state.queued_late_probabilities() == pytest.approx(self.late_by_hand(state), abs=2e-12)
        for task in state.mappable.tolist():
            late = state.late_probabilities(task)
            for (host, pstate), eet_s in np.ndenumerate(self.eet(state, task)):
                expected = 1.0
                if np.isfinite(eet_s):
                    run_time = state.estimates.pmf(task, host, pstate)
                    expected = ready[host].late_probability_of_sum(run_time, state.tasks.deadline_s[task])
                assert late[host, pstate] == pytest.approx(expected, abs=2e-12)
                self.looks_ += 1


def sampled_case(seed: int) -> Case:
    """A dozen tasks of three types on some cores of two types, one of which boots."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(8.0, 30.0, (3, 2, 2))
    means[2, 0, 1] = np.inf
    n = 12
    return make_stochastic_case(
        "drawn",
        means,
        [0, 1, 1],
        rng.integers(0, 3, n).tolist(),
        np.cumsum(rng.exponential(6.0, n)),
        slack_s=float(rng.uniform(25.0, 80.0)),
        boot_time_s=4.0,
    )


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_compiled_chances_are_those_of_the_distributions(seed):
    """Running, queued, booting, overdue and switched-off hosts: one sum for each pair agrees."""
    policy = LooksAtAllHosts()
    play_case(sampled_case(seed), policy, seed=seed)
    assert policy.looks_ > 0


@pytest.mark.parametrize("step", [None, 1.0])
def test_measured_times_with_and_without_a_grid(step):
    """Two samples each, by hand: task 0 runs since 0 s, task 1 waits behind it, task 2 arrives.

    At 2.5 s what runs ends at 4 s for sure (2 s has passed), the queue takes 2 or 4 s, and the
    third task 2 or 4 s more: 8, 10 or 12 s with chances 1/4, 1/2, 1/4.
    """
    listed = ListedTimes({(0, 0, 0): from_samples([2.0, 4.0], step)})
    told = []

    class Queues(Scheduler):
        traits = Traits(trigger="arrival", needs_distributions=True)

        def schedule(self, state):
            told.append(
                (state.late_probabilities(task := next(state.waiting())).item(), state.mean_ready_time().item())
            )
            yield Assign(task, 0)

    case = make_stochastic_case(
        "by hand", [[[3.0]]], [0], [0, 0, 0], [0.0, 1.0, 2.5], slack_s=7.5, luck=False, distributions=listed
    )
    assert isinstance(case.types, StochasticTypes)
    assert (case.types.estimates(case.tasks).grid() is None) == (step is None)
    play_case(case, Queues())
    # 0 must end by 7.5 s; 1 ends at 4, 6 or 8 s and must by 8.5 s; 2 must by 10 s
    assert told == [(0.0, 0.0), (0.0, 3.0), (0.25, 7.0)]


def test_chances_next_to_certainty_are_certain():
    """What is further than rounding from 0 and 1 stays; the rest is 0 or 1."""
    zero = from_impulses([0.0], [1.0])
    for mass, expected in ((1e-13, (0.0, 1.0)), (1e-11, (1e-11, 1.0 - 1e-11))):
        rare = Pmf(np.array([1.0, 3.0]), np.array([1.0 - mass, mass]))
        often = Pmf(np.array([1.0, 3.0]), np.array([mass, 1.0 - mass]))
        found = zero.late_probability_of_sum(rare, 2.0), zero.late_probability_of_sum(often, 2.0)
        assert found == pytest.approx(expected, rel=1e-12, abs=0.0)
        assert (rare.late_probability(2.0), often.late_probability(2.0)) == pytest.approx(expected, rel=1e-4)


def test_equal_hosts_that_are_ready_at_other_times_have_other_chances():
    """2 s until 5 s: in time from 0 s and, as of now, from 1 s on; late from 10 s on."""
    hosts = pmf_kernels.empty_host_table(4)
    hosts.kind[:], hosts.at[:] = pmf_kernels.CERTAIN, [0.0, 10.0, 1.0, 10.0]
    grid = PmfGrid(1.0, np.full((1, 1, 1), 2.0), lambda *_: point_mass(2.0, 1.0))
    late = pmf_kernels.late_probabilities(hosts, grid.table(0), np.zeros(4, np.int64), 0, 1.0, 5.0)
    assert late.ravel().tolist() == [0.0, 1.0, 0.0, 1.0]


def test_an_impulse_at_the_deadline_is_in_time_whatever_division_makes_of_it():
    """The third multiple of 0.7 s, divided by 0.7 s, is less than 3 as floats go."""
    step, certain = 0.7, (np.ones(1), np.array([1.0, 0.0]))
    after = np.array([1.0, 1.0, 1.0, 1.0, 0.0])  # all mass at the third multiple
    deadlines = 3 * step, np.nextafter(3 * step, 0.0)
    assert deadlines[0] / step < 3
    late = [pmf_kernels.late_probability_of_sum(*certain, after, 0.0, step, each) for each in deadlines]
    assert late == [0.0, 1.0]
