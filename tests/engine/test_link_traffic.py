"""Bytes over links in steps of time: by hand, and beside a plain loop."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sent_bytes import OVER_TIME, sent

from gridsched.engine import link_traffic
from gridsched.engine.execution import ParallelStep
from gridsched.engine.link_traffic import LinkTraffic
from gridsched.model.job_profiles import Delay


def test_two_jobs_by_hand():
    """Nothing in a delay, then a full link; without the option nothing is kept."""
    trace = sent()
    assert trace.horizon_s == 14.0
    assert trace.link_bytes == pytest.approx({"near": 1200.0, "far": 200.0})
    np.testing.assert_allclose(trace.traffic_bytes, [OVER_TIME[link] for link in trace.link_bytes], rtol=1e-12)
    assert trace.traffic_step_s == 2.0
    without = sent(None)
    assert (without.traffic_bytes.size, without.traffic_step_s) == (0, 0.0)
    assert without.link_bytes == trace.link_bytes


def test_jobs_that_send_nothing_leave_no_record():
    """They have profiles, so the option is allowed."""
    trace = sent(2.0, Delay(3.0))
    assert (trace.link_bytes, trace.traffic_bytes.size, trace.traffic_step_s) == ({}, 0, 0.0)


def test_numbers_of_all_links_are_bounded(monkeypatch: pytest.MonkeyPatch):
    """Of 12 numbers, one link has 12 steps and three have 4: a link that is new makes steps longer."""
    monkeypatch.setattr(link_traffic, "MOST_NUMBERS", 12)
    traffic = LinkTraffic(1.0)
    traffic.add(["a"], np.array([12.0]), [(0.0, 0.0), (12.0, 1.0)])
    assert traffic.bytes_of("a").shape == (1, 12)
    traffic.add(["b", "c"], np.array([4.0, 8.0]), [(0.0, 0.0), (4.0, 1.0)])
    assert traffic.step_s == 4.0
    assert traffic.bytes_of("abc").tolist() == [[4.0, 4.0, 4.0], [4.0, 0.0, 0.0], [8.0, 0.0, 0.0]]


def test_many_notes_are_added_in_parts(monkeypatch: pytest.MonkeyPatch):
    """Whether they are added one by one or at the end makes no difference but for rounding."""
    whole = sent(0.5)
    monkeypatch.setattr(ParallelStep, "MOST_NOTES", 1)
    np.testing.assert_allclose(sent(0.5).traffic_bytes, whole.traffic_bytes, rtol=1e-12, atol=1e-9)


#: Links of a step with their bytes, where it begins, and how long and at which share each stretch goes on.
STEPS = st.tuples(
    st.dictionaries(st.sampled_from("abcdefg"), st.floats(1.0, 1e12), min_size=1),
    st.floats(0.0, 1000.0),
    st.lists(st.tuples(st.floats(0.0, 300.0), st.floats(0.0, 1.0)), min_size=1, max_size=6),
)


@settings(deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=8), st.floats(0.5, 200.0), st.integers(1, 40))
def test_sums_are_the_bytes_and_steps_are_those_of_a_plain_loop(steps, step_s: float, most: int):
    """However long steps become: each has what a loop over stretches and steps puts there."""
    traffic = LinkTraffic(step_s)
    stretches: list[tuple[str, float, float, float]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link_traffic, "MOST_STEPS", most)
        for link_bytes, begin, parts in steps:
            done = [(begin, 0.0)]
            total = sum(share for _, share in parts) or 1.0
            for length, share in parts:
                done.append((done[-1][0] + length, done[-1][1] + share / total))
            traffic.add(list(link_bytes), np.array(list(link_bytes.values())), done)
            for (start, before), (end, after) in pairwise(done):
                stretches += [(link, start, end, (after - before) * size) for link, size in link_bytes.items()]
    links = sorted({link for link, *_ in stretches})
    made = traffic.bytes_of(links)
    assert made.shape[1] <= most
    assert traffic.step_s / step_s == 2.0 ** round(np.log2(traffic.step_s / step_s))
    expected = np.zeros_like(made)
    for link, start, end, size in stretches:
        for k in range(made.shape[1]):
            low, high = k * traffic.step_s, (k + 1) * traffic.step_s
            if start == end:
                share = float(low <= start < high or (k == made.shape[1] - 1 and start >= high))
            else:
                share = max(min(end, high) - max(start, low), 0.0) / (end - start)
            expected[links.index(link), k] += share * size
    np.testing.assert_allclose(made, expected, rtol=1e-6, atol=1e-3)
    whole = [sum(size for each, *_, size in stretches if each == link) for link in links]
    np.testing.assert_allclose(made.sum(axis=1), whole, rtol=1e-9)
