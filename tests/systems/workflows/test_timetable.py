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
    hosts = tuple(Host(f"h{k}", (PState(1.0, 1.0, 2.0, 2.0),), cores=n) for k, n in enumerate(cores))
    platform = Platform(hosts)
    table = Timetable(System(platform, FlopsEstimates(platform, make_tasks([1.0]))))
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
