"""What rigid jobs start now, node by node and as Slurm has it: small cases by hand, most of them at an edge.

A job is (parts, cores of each, time [s]), what runs (end [s], job, parts on each host).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from gridsched.schedulers.kernels.availability import ALL, CONTIGUOUS, LOCALITY, PACK, SPREAD, Nodes, starts_now
from gridsched.schedulers.kernels.slurm_passes import Machine, Running, Starts, backfill_pass, main_pass

INF = float("inf")


def shown(values, dtype=np.int64):
    """Return an array as a state gives them."""
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


class Down(NamedTuple):
    host: int
    begin_s: float
    end_s: float


class Case(NamedTuple):
    """Jobs by id, cores of each host, what runs, and which jobs wait; hosts of each partition, that of each job."""

    jobs: list[tuple[int, int, float]]
    cores: list[int]
    running: Sequence[tuple[float, int, dict[int, int]]] = ()
    queue: list[int] | None = None
    shares: bool = True
    partitions: list[list[int]] | None = None
    partition: list[int] | None = None
    down: Sequence[Down] = ()

    def column(self, k: int, dtype=np.int64):
        return np.array([job[k] for job in self.jobs], dtype=dtype)

    def pools(self) -> list[list[int]]:
        return self.partitions or [list(range(len(self.cores)))]

    def of_jobs(self):
        """Return what parts take, whether they may share, their number, and partitions."""
        n = len(self.jobs)
        return (
            shown(self.column(1)[:, None]),
            shown([self.shares] * n, np.bool_),
            shown(self.column(0)),
            shown(self.partition or [0] * n),
        )

    def of_hosts(self):
        """Return the hosts of all partitions, and where each begins."""
        offsets = np.cumsum([0, *map(len, self.pools())], dtype=np.int64)
        return np.array([host for pool in self.pools() for host in pool], dtype=np.int64), offsets

    def windows(self):
        """Return which hosts are down, and from when to when."""
        down = np.array([each.host for each in self.down], dtype=np.int64)
        return down, np.array([[each.begin_s for each in self.down], [each.end_s for each in self.down]])

    def what_runs(self):
        """Return ends, rows and the pool of what runs, and what hosts have left."""
        left = np.array(self.cores, dtype=np.int64)[:, None]
        rows, places = [[], [], []], [[], []]
        for _, job, on in self.running:
            for row, value in zip(rows, (job, len(places[0]), len(on)), strict=True):
                row.append(value)
            for host, parts in on.items():
                left[host, 0] -= parts * self.jobs[job][1]
                places[0].append(host)
                places[1].append(parts)
        ends = np.array([end for end, _, _ in self.running], dtype=np.float64)
        return ends, np.array(rows, dtype=np.int64), np.array(places, dtype=np.int64), left

    def waiting(self) -> list[int]:
        """Return the jobs that wait; all that do not run where they are not named."""
        run = {job for _, job, _ in self.running}
        return [job for job in range(len(self.jobs)) if job not in run] if self.queue is None else self.queue


def laid(jobs, n_places, places) -> dict[int, dict[int, int]]:
    """Return the parts on each host of each job that starts."""
    ends = np.cumsum(n_places)
    return {
        job: dict(places[:, end - n : end].T.tolist())
        for job, n, end in zip(jobs.tolist(), n_places.tolist(), ends.tolist(), strict=True)
    }


def started(reservations: int, case: Case, place: int = PACK, switch=()) -> dict[int, dict[int, int]]:
    """Return what `starts_now` starts at 0 s, node by node."""
    (demand, anywhere, width, partition), (hosts, offsets) = case.of_jobs(), case.of_hosts()
    ends, rows, pool, left = case.what_runs()
    n, time = len(case.cores), case.column(2, np.float64)
    members = np.array([[host in pool for host in range(n)] for pool in case.pools()])
    exactly, at_least = np.zeros((2, max(case.cores) + 2), dtype=np.int64)
    queue, at_most = shown(case.waiting()), sum(case.cores) + 1
    nodes = Nodes(
        demand, anywhere, partition, time, hosts, offsets, members, place, shown(switch).reshape(-1, n),
        shown(pool), *case.windows(), exactly, at_least, np.zeros((2, at_most), dtype=np.int64),
        np.zeros(len(queue), dtype=np.int64),
    )  # fmt: skip
    starts = np.zeros(len(queue), dtype=np.int64)
    ends.setflags(write=False)
    count = starts_now(reservations, 0.0, queue, time, width, shown(left), ends, shown(rows), starts, nodes)
    return laid(starts[:count], nodes.n_places[:count], nodes.places)


# ---------------------------------------------------------------------- where parts are laid


@pytest.mark.parametrize("place", [PACK, SPREAD, CONTIGUOUS, LOCALITY])
def test_parts_that_need_nodes_of_their_own_are_not_laid_together(place):
    """Two parts of a core on nodes of two cores: a node each; parts that may share one lie together but if spread."""
    switch = [[0, 0]]
    assert started(0, Case([(2, 1, 9.0)], [2, 2], shares=False), place, switch) == {0: {0: 1, 1: 1}}
    together = {0: {0: 1, 1: 1}} if place == SPREAD else {0: {0: 2}}
    assert started(0, Case([(2, 1, 9.0)], [2, 2]), place, switch) == together


@pytest.mark.parametrize("place", [PACK, SPREAD, CONTIGUOUS, LOCALITY])
def test_more_parts_than_nodes_start_only_where_they_may_share(place):
    """Three parts of a core, two nodes of two cores."""
    assert started(0, Case([(3, 1, 9.0)], [2, 2], shares=False), place, [[0, 1]]) == {}
    assert sum(started(0, Case([(3, 1, 9.0)], [2, 2]), place, [[0, 1]])[0].values()) == 3


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("place", [PACK, SPREAD, CONTIGUOUS, LOCALITY])
def test_hosts_outside_a_partition_make_no_room(place, shares):
    """Three parts, a partition of two hosts of one core, and two other hosts."""
    case = Case([(3, 1, 9.0)], [1] * 4, shares=shares, partitions=[[0, 1]])
    assert started(0, case, place, [[0, 0, 1, 1]]) == {}
    assert started(0, case._replace(jobs=[(2, 1, 9.0)]), place, [[0, 0, 1, 1]]) == {0: {0: 1, 1: 1}}


@pytest.mark.parametrize(
    ("cores", "switch", "parts", "expected"),
    [
        # host 0 has the most; of hosts 1 and 2, one core each, that comes first under whose switch three are free
        ([2, 1, 1], [0, 0, 1], 2, [0, 1]),
        # that with two hosts of one core is before that with one
        ([1, 1, 1], [0, 1, 1], 1, [1]),
        # hosts of two cores come before one of one, whatever switch they lie under
        ([2, 2, 1], [0, 0, 1], 2, [0, 1]),
        # of equals one of each switch
        ([1, 1, 1], [0, 0, 1], 2, [0, 2]),
    ],
)
def test_the_order_of_hosts_over_which_parts_are_spread(cores, switch, parts, expected):
    assert sorted(started(0, Case([(parts, 1, 9.0)], cores), SPREAD, [switch])[0]) == expected


def test_of_equal_switches_the_first_is_taken():
    """One part under two equal switches; three under three of two nodes each: the second fills the first's gap."""
    two = Case([(1, 1, 9.0)], [1, 1, 1, 1])
    assert started(0, two, LOCALITY, [[0, 0, 1, 1], [0, 0, 1, 1]]) == {0: {0: 1}}
    three = Case([(3, 1, 9.0)], [1] * 6)
    assert started(0, three, LOCALITY, [[0, 0, 1, 1, 2, 2]]) == {0: {0: 1, 1: 1, 2: 1}}


def test_neighbors_have_no_gap_between_them():
    """Host 1 is taken, or is no host of the partition: two parts lie on 2 and 3."""
    taken = Case([(1, 1, 9.0), (2, 1, 9.0)], [1] * 4, [(9.0, 0, {1: 1})], shares=False)
    assert started(0, taken, CONTIGUOUS) == {1: {2: 1, 3: 1}}
    outside = Case([(2, 1, 9.0)], [1] * 4, shares=False, partitions=[[0, 2, 3]])
    assert started(0, outside, CONTIGUOUS) == {0: {2: 1, 3: 1}}


# ---------------------------------------------------------------------- what is reserved, at its edges


def test_what_begins_when_another_ends_takes_nothing_from_it():
    """Host of 4 cores, 2 taken until 10 s, when job 1 has 3: one is left throughout for job 2 of 20 s, none for two."""
    case = Case([(1, 2, 10.0), (1, 3, 10.0), (1, 1, 20.0)], [4], [(10.0, 0, {0: 1})])
    assert started(ALL, case) == {2: {0: 1}}
    assert started(ALL, case._replace(jobs=[*case.jobs[:2], (1, 2, 20.0)])) == {}


def test_a_job_may_end_when_what_is_reserved_begins():
    """Job 2 has host 1 from 5 s, job 3 host 0 from 10 s: until then a core of host 0 is left for job 4, not longer."""
    running = [(10.0, 0, {0: 1}), (5.0, 1, {1: 1})]
    jobs = [(1, 1, 10.0), (1, 1, 5.0), (1, 2, 50.0), (1, 2, 50.0), (1, 1, 10.0)]
    assert started(ALL, Case(jobs, [2, 2], running)) == {4: {0: 1}}
    assert started(ALL, Case([*jobs[:4], (1, 1, 10.5)], [2, 2], running)) == {}


@pytest.mark.parametrize("shares", [True, False])
def test_a_blocked_job_is_waited_for_until_it_starts(shares):
    """Job 1 has both hosts from 10 s: of others on host 1 one that ends then starts, one that ends later does not."""
    jobs = [(1, 1, 10.0), (2, 1, 5.0), (1, 1, 10.0)]
    case = Case(jobs, [1, 1], [(10.0, 0, {0: 1})], shares=shares)
    assert started(1, case) == {2: {1: 1}}
    assert started(1, case._replace(jobs=[*jobs[:2], (1, 1, 10.5)])) == {}


def test_a_blocked_job_is_promised_hosts_for_its_parts_and_not_cores():
    """Host 0, of two cores, is free from 10 s on, host 1 from 20 s: two parts of job 2 that need hosts of their own
    need host 2, too; where they may share, host 2 is left for job 3."""
    jobs = [(1, 2, 10.0), (1, 2, 20.0), (2, 1, 5.0), (1, 1, 30.0)]
    case = Case(jobs, [2, 2, 1], [(10.0, 0, {0: 1}), (20.0, 1, {1: 1})], shares=False)
    assert started(1, case) == {}
    assert started(1, case._replace(shares=True)) == {3: {2: 1}}


def test_a_blocked_job_waits_for_neighbors():
    """Hosts 1 and 3 are free, 0 from 10 s on: job 2 wants two neighbors then, so job 3 may not stay on host 1."""
    jobs = [(1, 1, 10.0), (1, 1, 20.0), (2, 1, 5.0), (1, 1, 30.0)]
    case = Case(jobs, [1] * 4, [(10.0, 0, {0: 1}), (20.0, 1, {2: 1})], shares=False)
    assert started(1, case, CONTIGUOUS) == {}
    assert started(1, case._replace(jobs=[*jobs[:3], (1, 1, 10.0)]), CONTIGUOUS) == {3: {1: 1}}


def test_a_blocked_job_waits_for_hosts_that_stay_up():
    """Host 0 is free from 10 s on, but down from 15 to 30 s, too early for job 1: job 2 has host 1 until 25 s."""
    jobs = [(1, 1, 10.0), (2, 1, 10.0), (1, 1, 25.0)]
    case = Case(jobs, [1, 1], [(10.0, 0, {0: 1})], down=[Down(0, 15.0, 30.0)])
    assert started(1, case) == {2: {1: 1}}
    assert started(1, case._replace(jobs=[*jobs[:2], (1, 1, 31.0)])) == {}


def test_the_first_blocked_job_of_each_partition_is_waited_for():
    """Each wants both hosts of its own from 10 s on; jobs of 20 s behind them wait, those of 10 s start."""
    jobs = [(1, 1, 10.0), (1, 1, 10.0), (2, 1, 5.0), (2, 1, 5.0), (1, 1, 20.0), (1, 1, 20.0)]
    running, partitions = [(10.0, 0, {0: 1}), (10.0, 1, {2: 1})], [[0, 1], [2, 3]]
    case = Case(jobs, [1] * 4, running, partitions=partitions, partition=[0, 1, 0, 1, 0, 1])
    assert started(1, case) == {}
    assert started(1, case._replace(jobs=[*jobs[:4], *[(1, 1, 10.0)] * 2])) == {4: {1: 1}, 5: {3: 1}}


def test_a_reservation_that_ends_before_a_job_does_is_in_its_time():
    """Both cores are job 1's from 5 to 10 s: a job of 20 s may not have the core that is free before and after."""
    case = Case([(1, 1, 5.0), (1, 2, 5.0), (1, 1, 20.0)], [2], [(5.0, 0, {0: 1})])
    assert started(ALL, case) == {}
    assert started(ALL, case._replace(jobs=[*case.jobs[:2], (1, 1, 5.0)])) == {2: {0: 1}}


@pytest.mark.parametrize("shares", [True, False])
def test_what_has_outlived_its_estimate_ends_in_the_next_moment(shares):
    """It has host 0, and should have ended 5 s ago: job 1 has both hosts from that moment on, so job 2 waits."""
    case = Case([(1, 1, 5.0), (2, 1, 5.0), (1, 1, 5.0)], [1, 1], [(-5.0, 0, {0: 1})], shares=shares)
    assert started(1, case) == started(ALL, case) == {}


def test_what_a_refused_job_would_take_is_given_back():
    """Four hosts, three wanted from 10 s: two for job 2 are too many; job 3 has the one that is left, job 4 none."""
    jobs = [(2, 1, 10.0), (3, 1, 5.0), (2, 1, 20.0), (1, 1, 20.0), (1, 1, 20.0)]
    assert started(1, Case(jobs, [1] * 4, [(10.0, 0, {0: 1, 1: 1})])) == {3: {2: 1}}


@pytest.mark.parametrize("reservations", [1, ALL])
def test_of_counted_nodes_the_same_edges(reservations):
    """Two nodes, one until 10 s, both for job 0 then: job 1 has the other until 10 s, and not longer."""
    for lasts, expected in ((10.0, [1]), (10.5, [])):
        starts, time = np.zeros(2, dtype=np.int64), np.array([5.0, lasts])
        count = starts_now(
            reservations, 0.0, shown([0, 1]), time, np.array([2, 1]), 1, shown([10.0], np.float64), shown([1]),
            starts, (),
        )  # fmt: skip
        assert starts[:count].tolist() == expected


def test_a_job_may_end_when_its_host_goes_down():
    """From 10 to 20 s: a job of 10 s starts now, one of 10.5 s does not; nor does it with the host down from now on."""
    case = Case([(1, 1, 10.0)], [1], down=[Down(0, 10.0, 20.0)])
    assert started(0, case) == {0: {0: 1}}
    assert started(0, case._replace(jobs=[(1, 1, 10.5)])) == {}
    assert started(0, case._replace(down=[Down(0, 0.0, 20.0)])) == {}
    assert started(0, case._replace(down=[Down(0, -5.0, 0.0)])) == {0: {0: 1}}


# ---------------------------------------------------------------------- Slurm's passes


def of_slurm(case: Case, weight=None, whole=None):
    """Return what the passes take of a case, and room for what starts."""
    (demand, anywhere, width, partition), (hosts, offsets) = case.of_jobs(), case.of_hosts()
    down, down_s = case.windows()
    whole = np.arange(len(case.pools())) if whole is None else np.array(whole)
    weight = np.array(weight or [1] * len(case.cores))
    limit = case.column(2, np.float64)
    machine = Machine(demand, anywhere, width, limit, partition, hosts, offsets, whole, weight, down, down_s)
    m = len(case.waiting()) + 1
    room = np.zeros((2, sum(case.cores) + 1), dtype=np.int64)
    return machine, Starts(np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64), room, np.full(m, np.nan))


def by_main(case: Case, weight=None, whole=None) -> dict[int, dict[int, int]]:
    """Return what Slurm's main scheduler starts at 0 s."""
    machine, starts = of_slurm(case, weight, whole)
    count = main_pass(machine, 0.0, np.array(case.waiting()), case.what_runs()[3], starts)
    return laid(starts.job[:count], starts.n_places[:count], starts.places)


def by_backfilling(case: Case, now=0.0, window_s=1e4, resolution_s=1.0, linear_s=0.0, is_aligned=False):
    """Return what backfilling starts, and when each job that waits is expected to start [s]; nan: not known."""
    machine, starts = of_slurm(case)
    ends, rows, pool, left = case.what_runs()
    queue, n = np.array(case.waiting()), len(ends)
    more, size = np.zeros(len(queue), dtype=np.int64), pool.shape[1]
    room = np.zeros((2, sum(case.cores)), dtype=np.int64)
    running = Running(
        np.concatenate([ends, np.zeros(len(queue))]),
        *(np.concatenate([row, more]) for row in rows),
        np.concatenate([pool, room], axis=1),
        np.array([n, size]),
    )
    count = backfill_pass(
        machine, now, queue, left, running, window_s, resolution_s, linear_s, 0.0, is_aligned, starts
    )  # fmt: skip
    found = laid(starts.job[:count], starts.n_places[:count], starts.places)
    return found, dict(zip(queue.tolist(), starts.expected_s[: len(queue)].tolist(), strict=True))


def test_stretches_of_neighbors():
    """Of equals the first; one that lacks a part is not enough; of too small ones the largest, of equals the first."""
    one = Case([(1, 1, 9.0)], [1, 1, 1], partitions=[[0, 2]])
    assert by_main(one) == {0: {0: 1}}
    three = Case([(3, 1, 9.0)], [1] * 6, shares=False, partitions=[[0, 1, 3, 4, 5]])
    assert by_main(three) == {0: {3: 1, 4: 1, 5: 1}}
    apart = Case([(3, 1, 9.0)], [1] * 7, shares=False, partitions=[[0, 1, 3, 4, 6]])
    assert by_main(apart) == {0: {0: 1, 1: 1, 6: 1}}
    largest = Case([(4, 1, 9.0)], [1] * 7, shares=False, partitions=[[0, 2, 3, 4, 6]])
    assert by_main(largest) == {0: {2: 1, 3: 1, 4: 1, 0: 1}}


def test_parts_for_slurm_share_a_node_only_where_they_may():
    """Two parts of a core, nodes of two cores; three find no room without sharing."""
    assert by_main(Case([(2, 1, 9.0)], [2, 2], shares=False)) == {0: {0: 1, 1: 1}}
    assert by_main(Case([(2, 1, 9.0)], [2, 2])) == {0: {0: 2}}
    assert by_main(Case([(3, 1, 9.0)], [2, 2], shares=False)) == {}


def test_nodes_of_lower_weight_come_first():
    """Weights 2, 1, 1: one part lies on host 1, three on 1, 2 and then 0."""
    assert by_main(Case([(1, 1, 9.0)], [1] * 3), [2, 1, 1]) == {0: {1: 1}}
    assert by_main(Case([(3, 1, 9.0)], [1] * 3), [2, 1, 1]) == {0: {1: 1, 2: 1, 0: 1}}
    assert by_main(Case([(2, 1, 9.0)], [1] * 4), [1, 2, 1, 1]) == {0: {2: 1, 3: 1}}  # not 0 and 1


def test_the_main_scheduler_may_fill_a_host_until_it_goes_down():
    """At 10 s: a job of 10 s starts, one of 10.5 s does not."""
    case = Case([(1, 1, 10.0)], [1], down=[Down(0, 10.0, 20.0)])
    assert by_main(case) == {0: {0: 1}}
    assert by_main(case._replace(jobs=[(1, 1, 10.5)])) == {}


def test_a_blocked_job_keeps_its_hosts_from_other_partitions():
    """Host 0 is wanted whole by a job of its own partition: that of both hosts has host 1, as a third has none."""
    jobs = [(1, 1, 9.0), (1, 2, 9.0), (1, 1, 9.0), (1, 1, 9.0)]
    case = Case(jobs, [2, 1], [(9.0, 0, {0: 1})], partitions=[[0], [0, 1]], partition=[0, 0, 1, 1])
    assert by_main(case) == {2: {1: 1}}


def test_a_promise_holds_for_all_places():
    """Both hosts from 60 s for job 1: job 2, which would stay on host 1, the last of them, waits behind it."""
    jobs = [(1, 1, 60.0), (2, 1, 100.0), (1, 1, 100.0)]
    for shares in (True, False):
        found, expected = by_backfilling(Case(jobs, [1, 1], [(60.0, 0, {0: 1})], shares=shares))
        assert found == {}
        assert expected == {1: 60.0, 2: 160.0}
    jobs[1] = (3, 1, 100.0)  # a part too many: nothing is promised, and job 2 starts
    found, expected = by_backfilling(Case(jobs, [1, 1], [(60.0, 0, {0: 1})], shares=False))
    assert found == {2: {1: 1}}
    assert np.isnan(expected[1])


def test_parts_that_share_a_host_are_promised_it():
    """Two parts on one host of two cores, from 60 s on; parts that need hosts of their own are promised nothing."""
    case = Case([(1, 2, 60.0), (2, 1, 100.0)], [2], [(60.0, 0, {0: 1})])
    assert by_backfilling(case) == ({}, {1: 60.0})
    assert np.isnan(by_backfilling(case._replace(shares=False))[1][1])


def test_what_starts_in_a_pass_is_waited_for():
    """Job 0 starts until 60 s, when job 1 is expected."""
    assert by_backfilling(Case([(1, 1, 60.0), (1, 1, 9.0)], [1])) == ({0: {0: 1}}, {0: 0.0, 1: 60.0})


def test_a_host_that_is_down_then_is_not_promised():
    """Host 0 is free from 60 s on, but down from 100 s: a job of 60 s is expected on host 1 at 300 s."""
    jobs = [(1, 1, 60.0), (1, 1, 300.0), (1, 1, 60.0)]
    case = Case(jobs, [1, 1], [(60.0, 0, {0: 1}), (300.0, 1, {1: 1})], down=[Down(0, 100.0, 200.0)])
    assert by_backfilling(case)[1] == {2: 300.0}
    assert by_backfilling(case._replace(jobs=[*jobs[:2], (1, 1, 40.0)]))[1] == {2: 60.0}


def test_a_limit_that_ends_with_the_begin_of_a_promise_is_too_long():
    """Promised from 60 s: a limit of 60 s waits, one of 59 s does not."""
    for limit, begins in ((60.0, {}), (59.0, {2: {1: 1}})):
        case = Case([(1, 1, 60.0), (2, 1, 100.0), (1, 1, limit)], [1, 1], [(60.0, 0, {0: 1})])
        assert by_backfilling(case)[0] == begins


def test_what_should_have_ended_does_not_make_room_now():
    """It is expected to end in a second."""
    case = Case([(1, 1, 5.0), (1, 1, 9.0)], [1], [(5.0, 0, {0: 1})])
    assert by_backfilling(case, now=10.0) == ({}, {1: 11.0})


def test_ends_within_a_window_count_together():
    """30 s after the first end at 10 s still count, 30.5 s do not; the next window has 60 s, or 30 and more."""
    jobs = [(1, 1, 0.0), (1, 1, 0.0), (1, 1, 9.0)]
    for second, expected in ((40.0, 40.0), (40.5, 10.0)):
        case = Case(jobs, [1, 1], [(10.0, 0, {0: 1}), (second, 1, {1: 1})])
        assert by_backfilling(case)[1] == {2: expected}
    jobs = [(1, 1, 0.0)] * 3 + [(2, 1, 9.0)]
    case = Case(jobs, [1] * 3, [(10.0, 0, {0: 1}), (50.0, 1, {1: 1}), (105.0, 2, {2: 1})])
    assert by_backfilling(case)[1] == {3: 105.0}
    assert by_backfilling(case, linear_s=20.0)[1] == {3: 50.0}
    assert by_backfilling(case, linear_s=25.0)[1] == {3: 105.0}


def test_aligned_windows_begin_at_a_multiple_of_30_s():
    """After the first end, at 10 s: the first is up to 60 s, and grows to 30 + 240 s until it holds the next end."""
    jobs = [(1, 1, 0.0), (1, 1, 0.0), (1, 1, 9.0)]
    for second, expected in ((60.0, 60.0), (60.5, 10.0)):
        case = Case(jobs, [1, 1], [(10.0, 0, {0: 1}), (second, 1, {1: 1})])
        assert by_backfilling(case, is_aligned=True)[1] == {2: expected}
    jobs = [(1, 1, 0.0)] * 3 + [(2, 1, 9.0)]
    for third, expected in ((270.0, 270.0), (270.5, 200.0)):
        case = Case(jobs, [1] * 3, [(10.0, 0, {0: 1}), (200.0, 1, {1: 1}), (third, 2, {2: 1})])
        assert by_backfilling(case, is_aligned=True)[1] == {3: expected}


def test_a_promise_has_a_unit_of_time_at_least():
    """Of 60 s, from the multiple before its begin, or now: job 2 waits for what is promised to a job of 30 s."""
    case = Case([(1, 1, 60.0), (2, 1, 30.0), (1, 1, 1e3)], [1, 1], [(60.0, 0, {0: 1})])
    assert by_backfilling(case, resolution_s=60.0)[1] == {1: 60.0, 2: 120.0}
    case = Case([(1, 1, 5.0), (2, 1, 60.0), (1, 1, 1e3)], [1, 1], [(55.0, 0, {0: 1})])
    assert by_backfilling(case, now=50.0, resolution_s=60.0)[1] == {1: 55.0, 2: 110.0}


def test_a_job_that_is_expected_at_the_end_of_the_window_has_a_promise():
    """60 s: with a window of 60 s; with one of 59 s job 2 starts instead."""
    case = Case([(1, 1, 60.0), (2, 1, 10.0), (1, 1, 1e3)], [1, 1], [(60.0, 0, {0: 1})])
    assert by_backfilling(case, window_s=60.0) == ({}, {1: 60.0, 2: pytest.approx(np.nan, nan_ok=True)})
    assert by_backfilling(case, window_s=59.0)[0] == {2: {1: 1}}


def test_a_promise_may_end_when_another_begins():
    """Both hosts for job 2 from 120 s: job 3 has host 1 from 60 s, when what runs there ends, until then."""
    jobs = [(1, 1, 120.0), (1, 1, 60.0), (2, 1, 100.0), (1, 1, 60.0)]
    case = Case(jobs, [1, 1], [(120.0, 0, {0: 1}), (60.0, 1, {1: 1})])
    assert by_backfilling(case)[1] == {2: 120.0, 3: 60.0}
    longer = case._replace(jobs=[*jobs[:3], (1, 1, 61.0)])
    assert by_backfilling(longer)[1] == {2: 120.0, 3: 220.0}


def test_a_promise_may_begin_when_one_elsewhere_ends():
    """Job 3 has host 2 from 20 to 60 s, job 4 hosts 0 and 1 from 120 s; job 5 has host 1 between, as above."""
    jobs = [(1, 1, 120.0), (1, 1, 60.0), (1, 1, 20.0), (1, 1, 40.0), (2, 1, 100.0), (1, 1, 60.0)]
    running = [(120.0, 0, {0: 1}), (60.0, 1, {1: 1}), (20.0, 2, {2: 1})]
    case = Case(jobs, [1] * 3, running, partitions=[[0, 1], [2]], partition=[0, 0, 1, 1, 0, 0])
    assert by_backfilling(case)[1] == {3: 20.0, 4: 120.0, 5: 60.0}


def test_what_starts_in_a_pass_comes_behind_what_ends_with_it():
    """Job 2 starts on host 0 until 100 s, as job 0 ends on host 2, which then goes down: job 3 has host 0 at 100 s."""
    jobs = [(1, 1, 100.0), (1, 1, 1e3), (1, 1, 100.0), (1, 1, 500.0)]
    running = [(100.0, 0, {2: 1}), (1000.0, 1, {1: 1})]
    case = Case(jobs, [1] * 3, running, down=[Down(2, 100.0, 1e9)])
    assert by_backfilling(case) == ({2: {0: 1}}, {2: 0.0, 3: 100.0})
