"""`state.late_masses` and `state.mean_ready_time` against the distributions they stand for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.model import pmf_kernels
from gridsched.model.pmf import Pmf, PmfGrid, from_impulses, from_samples, point_mass
from gridsched.model.stochastic import ListedTimes, StochasticTypes
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, PowerOff, PowerOn, WakeAt
from gridsched.testing.cases import make_stochastic_case
from gridsched.testing.playing import Case, play


class LooksAtAllHosts(Scheduler):
    """Assigns at random, switches idle hosts off and on, and compares what it is told."""

    traits = Traits(asked="event", uses_rng=True, uses_dvfs=True, powers_hosts=True)

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
        """Convolve every queue anew."""
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
                late.append(float(end.late_mass(state.tasks.deadline_s[task])))
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
        assert state.queued_late_masses() == pytest.approx(self.late_by_hand(state), abs=2e-12)
        for task in state.mappable.tolist():
            late = state.late_masses(task)
            for (host, pstate), eet_s in np.ndenumerate(self.eet(state, task)):
                expected = 1.0
                if np.isfinite(eet_s):
                    run_time = state.estimates.pmf(task, host, pstate)
                    expected = ready[host].sum_late_mass(run_time, state.tasks.deadline_s[task])
                assert late[host, pstate] == pytest.approx(expected, abs=2e-12)
                self.looks_ += 1


def drawn_case(seed: int) -> Case:
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
    play(drawn_case(seed), policy, seed=seed)
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
        traits = Traits(asked="arrival", needs_distributions=True)

        def schedule(self, state):
            told.append((state.late_masses(task := next(state.waiting())).item(), state.mean_ready_time().item()))
            yield Assign(task, 0)

    case = make_stochastic_case(
        "by hand", [[[3.0]]], [0], [0, 0, 0], [0.0, 1.0, 2.5], slack_s=7.5, luck=False, distributions=listed
    )
    assert isinstance(case.types, StochasticTypes)
    assert (case.types.estimates(case.tasks).grid() is None) == (step is None)
    play(case, Queues())
    # 0 must end by 7.5 s; 1 ends at 4, 6 or 8 s and must by 8.5 s; 2 must by 10 s
    assert told == [(0.0, 0.0), (0.0, 3.0), (0.25, 7.0)]


def test_chances_next_to_certainty_are_certain():
    """What is further than rounding from 0 and 1 stays; the rest is 0 or 1."""
    zero = from_impulses([0.0], [1.0])
    for mass, expected in ((1e-13, (0.0, 1.0)), (1e-11, (1e-11, 1.0 - 1e-11))):
        rare = Pmf(np.array([1.0, 3.0]), np.array([1.0 - mass, mass]))
        often = Pmf(np.array([1.0, 3.0]), np.array([mass, 1.0 - mass]))
        found = zero.sum_late_mass(rare, 2.0), zero.sum_late_mass(often, 2.0)
        assert found == pytest.approx(expected, rel=1e-12, abs=0.0)
        assert (rare.late_mass(2.0), often.late_mass(2.0)) == pytest.approx(expected, rel=1e-4)


def test_equal_hosts_that_are_ready_at_other_times_have_other_chances():
    """2 s until 5 s: in time from 0 s and, as of now, from 1 s on; late from 10 s on."""
    hosts = pmf_kernels.empty_host_table(4)
    hosts.kind[:], hosts.at[:] = pmf_kernels.CERTAIN, [0.0, 10.0, 1.0, 10.0]
    grid = PmfGrid(1.0, np.full((1, 1, 1), 2.0), lambda *_: point_mass(2.0, 1.0))
    late = pmf_kernels.late_masses(hosts, grid.table(0), np.zeros(4, np.int64), 0, 1.0, 5.0)
    assert late.ravel().tolist() == [0.0, 1.0, 0.0, 1.0]


def test_an_impulse_at_the_deadline_is_in_time_whatever_division_makes_of_it():
    """The third multiple of 0.7 s, divided by 0.7 s, is less than 3 as floats go."""
    step, certain = 0.7, (np.ones(1), np.array([1.0, 0.0]))
    after = np.array([1.0, 1.0, 1.0, 1.0, 0.0])  # all mass at the third multiple
    deadlines = 3 * step, np.nextafter(3 * step, 0.0)
    assert deadlines[0] / step < 3
    late = [pmf_kernels.late_mass_of_sum(*certain, after, 0.0, step, each) for each in deadlines]
    assert late == [0.0, 1.0]
