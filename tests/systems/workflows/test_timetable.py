"""A timetable of gaps is what a search through all that is planned finds, one core after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, make_tasks
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.system import System
from gridsched.systems.workflows.timetable import Timetable

TIMES = st.integers(0, 8).map(float)


def made(*cores: int) -> Timetable:
    """Return an empty timetable of hosts with so many cores."""
    hosts = tuple(Host(f"h{k}", (PState(1.0, 1.0, 2.0, 2.0),), cores=n) for k, n in enumerate(cores))
    platform = Platform(hosts)
    return Timetable(System(platform, FlopsEstimates(platform, make_tasks([1.0]))))


def test_the_weight_counts_in_gaps():
    """Gaps at 2 (host 0) and 3.5: the ends 3 and 4.5 and the weights 3 and 0 make 6 and 4.5; behind all it is later."""
    table = made(1, 1)
    for task, (host, start, end) in enumerate([(0, 0.0, 2.0), (0, 3.0, 9.0), (1, 0.0, 3.5), (1, 4.5, 9.0)]):
        table.place(task, (host, 0, start), end - start)
    ready, time = np.zeros(2), np.ones(2)
    assert table.best_place(ready, time, np.array([3.0, 0.0])) == (1, 0, 3.5)
    assert table.best_place(ready, time) == (0, 0, 2.0)


def test_a_gap_that_is_shorter_by_rounding_alone_is_looked_at():
    """0.7 + 0.1 is a little less than 0.8, and less 0.7 not 0.1; the task ends with the gap."""
    start, time = 0.7, 0.1
    end = start + time
    assert end - start < time
    table = made(1)
    table.place(0, (0, 0, 0.0), start)
    table.place(1, (0, 0, end), 2.0)
    assert table.best_place(np.zeros(1), np.array([time])) == table.place_on(0, 0.0, time) == (0, 0, start)


def earliest_of_several(planned, ready: float, time: float, several: int) -> tuple[float, tuple[int, ...]]:
    """Return when so many of some cores, each a list of (start, end), are first free together, and the lowest ones."""
    starts = sorted({ready, *(end for each in planned for _, end in each if end > ready)})
    for s in starts:
        free = [c for c, each in enumerate(planned) if all(end <= s or start >= s + time for start, end in each)]
        if len(free) >= several:
            return s, tuple(free[:several])
    raise AssertionError


def earliest(planned, ready: float, time: float) -> float:
    """Return the earliest start in a list of (start, end) that overlap nowhere."""
    starts = [ready, *(end for _, end in planned if end > ready)]
    return min(s for s in starts if all(end <= s or start >= s + time for start, end in planned))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_the_best_place_is_that_of_a_plain_search(data):
    """Least end plus weight, then the lowest host, the earliest start, the lowest cores; some tasks go again."""
    cores = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    table = made(*cores)
    planned = [[[] for _ in range(n)] for n in cores]
    vector = st.lists(TIMES, min_size=len(cores), max_size=len(cores)).map(np.array)
    for task in range(data.draw(st.integers(1, 12))):
        ready, time = data.draw(vector), data.draw(vector) + 1.0
        weight = data.draw(st.none() | vector)
        several = data.draw(st.integers(1, max(cores)))
        if several > 1:  # a host that has too few of them is left out by the time there
            time = np.where(np.array(cores) >= several, time, np.inf)
            hosts_with = np.flatnonzero(np.isfinite(time)).tolist()
            found = [(earliest_of_several(planned[h], ready[h], time[h], several), h) for h in hosts_with]
            _, host, start, chosen = min(
                (s + time[h] + (0.0 if weight is None else weight[h]), h, s, c) for (s, c), h in found
            )
            place = table.best_place(ready, time, weight, several)
            assert place == (host, chosen, start)
            table.place(task, place, time[host])
            for core in chosen:
                planned[host][core].append((start, start + time[host]))
            continue
        found = [(earliest(planned[h][c], ready[h], time[h]), h, c) for h in range(len(cores)) for c in range(cores[h])]
        end = [(s + time[h] + (0.0 if weight is None else weight[h]), h, s, c) for s, h, c in found]
        _, host, start, core = min(end)
        place = table.best_place(ready, time, weight)
        assert place == (host, core, start)
        table.place(task, place, time[host])
        planned[host][core].append((start, start + time[host]))
        if data.draw(st.booleans()):
            other = data.draw(st.sampled_from(sorted(table.host)))
            span = table.start_s[other], table.end_s[other]
            core = table.core[other]
            for each in core if isinstance(core, tuple) else (core,):
                planned[table.host[other]][each].remove(span)
            table.remove(other)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_behind_all_is_where_no_gap_begins(data):
    """When so many cores of a host are free for good, and the lowest of them; with too few it is never."""
    cores = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    table = made(*cores)
    last = [[0.0] * n for n in cores]
    for task in range(data.draw(st.integers(0, 6))):
        host = data.draw(st.integers(0, len(cores) - 1))
        core, gap, time = data.draw(st.integers(0, cores[host] - 1)), data.draw(TIMES), data.draw(TIMES) + 1.0
        start = last[host][core] + gap
        table.place(task, (host, core, start), time)
        last[host][core] = start + time
    for several in range(1, max(cores) + 1):
        free = [sorted(each)[several - 1] if len(each) >= several else np.inf for each in last]
        assert table.free_s(several).tolist() == free
        ready = data.draw(TIMES)
        for host, each in enumerate(last):
            if len(each) >= several:
                start = max(ready, free[host])
                chosen = tuple(k for k, end in enumerate(each) if end <= start)[:several]
                expected = (host, chosen if several > 1 else chosen[0], start)
                assert table.place_behind(host, ready, several) == expected
    assert np.isinf(table.free_s(max(cores) + 1)).all()
