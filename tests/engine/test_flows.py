"""Rates of flows that share links, and when they end, by hand."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest

from gridsched.drivers.link_shares import FlowLimits, Flows, LinkModel, link_rates
from gridsched.errors import InputError
from gridsched.model.routes import RouteLinks

#: CM02 without acknowledgements: latency + size / bandwidth
PLAIN = LinkModel(latency_factor=1.0, bandwidth_factor=1.0, has_crosstraffic=False, weight_bytes=0.0)
WIDE = 1e9


def route(*links: str, latency_s: float = 0.0) -> RouteLinks:
    """Return a route."""
    return RouteLinks(links, latency_s)


def ends(flows: Flows) -> dict[object, float]:
    """Return when each transfer under way ends [s]."""
    seen: dict[object, float] = {}
    while len(flows):
        time = flows.next_end()
        seen.update(dict.fromkeys(flows.advance(time), time))
    return seen


def test_two_flows_on_one_link_have_half_each():
    """1,000 B over 1,000 B/s: 0.5 s alone, 1 s at half, then the second one has 0.5 s alone."""
    flows = Flows(PLAIN, {"l": 1000.0})
    flows.begin("first", route("l"), route("l"), 1000, 0.0)
    assert flows.next_end() == 1.0
    flows.begin("second", route("l"), route("l"), 1000, 0.5)
    assert flows.remaining("first") == 500
    assert flows.next_end() == 1.5
    assert flows.advance(1.0) == []
    assert (flows.remaining("first"), flows.remaining("second")) == (250, 750)
    assert ends(flows) == {"first": 1.5, "second": 2.0}


def test_latency_comes_first_and_takes_nothing():
    """1,000 B/s: the second one's latency of 3 x 0.2 s is over at 0.6 s, when the first one has sent 600 B."""
    flows = Flows(LinkModel(3.0, 1.0, 0.0, False, 0.0), {"l": 1000.0})
    flows.begin("first", route("l"), route("l"), 1000, 0.0)
    flows.begin("second", route("l", latency_s=0.2), route("l"), 900, 0.0)
    assert flows.advance(0.5) == []
    assert (flows.remaining("first"), flows.remaining("second")) == (500, 900)
    # 1 / penalty: 1 of the first, which has no latency, and 5 of the second
    assert ends(flows) == pytest.approx({"second": 0.6 + 900 * 6 / 5 / 1000, "first": 0.5 + 500 / 1000 + 0.9})


@pytest.mark.parametrize("weight", [0.0, 20.0])
def test_shares_are_by_latency_and_narrow_links(weight: float):
    """1 / (latency + sum of weight-S / bandwidth), under CM02: 1 to 3 by latency alone."""
    model, width = LinkModel(1.0, 1.0, 0.0, False, weight), {"l": 1000.0, "m": WIDE, "n": 500.0}
    near, far = route("m", "l", latency_s=0.01), route("n", "l", latency_s=0.03)
    limits = [model.limits(each, each, width, ()) for each in (near, far)]
    penalties = 0.01 + weight / 1000 + weight / WIDE, 0.03 + weight / 1000 + weight / 500
    assert [each.penalty for each in limits] == pytest.approx(penalties)
    rates = link_rates(limits, width)
    assert sum(rates) == pytest.approx(1000)
    assert rates[0] / rates[1] == pytest.approx(penalties[1] / penalties[0])


def test_a_bounded_flow_leaves_the_rest():
    """100 B/s by the window of 20 B / (2 x 0.1 s); the other one, on the same link, has 900."""
    model, width = LinkModel(1.0, 1.0, 20.0, False, 0.0), {"l": 1000.0}
    far = model.limits(route("l", latency_s=0.1), route(), width, ())
    assert far.bound == 100
    assert link_rates([far, FlowLimits({"l": 1.0}, far.penalty)], width) == pytest.approx([100, 900])
    narrow = FlowLimits({"l": 1.0, "n": 1.0})
    assert link_rates([narrow, FlowLimits({"l": 1.0})], {"l": 1000.0, "n": 300.0}) == pytest.approx([300, 700])


def test_what_acknowledgements_take():
    """0.05 of the links of the way back: B / 1.05 alone, B / 2.1 against another one, 20 B where only they flow."""
    model, width = LinkModel(1.0, 1.0, 0.0, True, 0.0), {"l": 1050.0, "m": 10.0, "w": WIDE}
    there = model.limits(route("l"), route("l"), width, ())
    assert link_rates([there], width) == [1000]
    assert link_rates([there, there], width) == [500, 500]
    assert link_rates([model.limits(route("w"), route("m"), width, ())], width) == pytest.approx([200])
    assert model.lone_rate(route("w"), route("m"), width, ()) == pytest.approx(200)


def test_a_link_crossed_twice_and_one_of_all():
    """Half of it; all of it if it is FATPIPE, and there the flow with the longer way has its part beside the other."""
    width = {"l": 1000.0}
    twice = PLAIN.limits(route("l", "l"), route(), width, ())
    assert link_rates([twice], width) == [500]
    assert PLAIN.lone_rate(route("l", "l"), route(), width, ()) == 500
    fat = PLAIN.limits(route("l", "l", latency_s=0.1), route(), width, {"l"})
    far = PLAIN.limits(route("l", latency_s=0.4), route(), width, {"l"})
    assert link_rates([fat], width, {"l"}) == [1000]
    assert link_rates([fat, fat, far], width, {"l"}) == [1000, 1000, 250]


def test_factors_apply_to_window_and_bandwidth():
    """LV08: 0.97 of both, 13.01 latencies; nothing limits a route without links, as between peers of Vivaldi."""
    model, width = LinkModel(gamma_bytes=1e3), {"l": 1e6}
    assert model.lone_rate(route("l", latency_s=0.1), route(), width, ()) == pytest.approx(0.97 * 1e3 / 0.2)
    assert model.lone_rate(route("l", latency_s=1e-9), route("l"), width, ()) == pytest.approx(0.97e6 / 1.05)
    assert model.lone_rate(route(latency_s=0.1), route("l"), width, ()) == inf
    flows = Flows(model, width)
    flows.begin(0, route(latency_s=0.1), route("l"), 1e15, 0.0)
    assert ends(flows) == {0: pytest.approx(1.301)}


def test_a_full_link_limits_no_other():
    """SimGrid's precision: 1e-5 of a link left is none left, and who has nothing of it so far takes all elsewhere."""
    first, second = FlowLimits({"l": 1.0, "n": 1.0}, 1e-7), FlowLimits({"l": 1.0, "m": 1.0})
    width = {"l": 1000.0, "n": 999.995, "m": 700.0}
    assert link_rates([first, second], width) == [999.995, 700]
    assert link_rates([first, FlowLimits({"l": 1.0})], width) == [999.995, 0]


def test_a_cancelled_flow_leaves_its_share():
    """One of three is cancelled while it flows, and one in its latency; the last one has the link alone."""
    flows = Flows(PLAIN, {"l": 1000.0})
    for key, latency in enumerate((0.0, 0.0, 0.7)):
        flows.begin(key, route("l", latency_s=latency), route(), 1000, 0.0)
    assert flows.next_end() > 0.7  # looked ahead
    assert flows.advance(0.5) == []
    flows.cancel(1)
    flows.cancel(2)
    assert len(flows) == 1
    assert 1 not in flows
    assert ends(flows) == {0: 1.25}
    with pytest.raises(KeyError):
        flows.cancel(2)


def test_a_begin_changes_what_was_looked_ahead():
    """Asked for the next end or not, in between, the ends are the same; so they are in steps."""

    def run(step: float, asks: bool) -> dict[object, float]:
        flows = Flows(LinkModel(has_crosstraffic=False), {"l": 1000.0, "m": 800.0})
        seen: dict[object, float] = {}
        for key in range(8):
            begin = 0.25 * key
            if asks:
                flows.next_end()
                [flows.remaining(other) for other in range(key) if other in flows]
            for time in [*np.arange(max(0.0, begin - 0.25), begin, step).tolist(), begin]:
                while flows.next_end() <= time:
                    end = flows.next_end()
                    seen.update(dict.fromkeys(flows.advance(end), end))
                flows.advance(time)
            links = ("l", "m") if key % 3 else ("m",)
            flows.begin(key, route(*links, latency_s=0.001 * 3 ** (key % 5)), route("l"), 100 * (key + 1), begin)
        return seen | ends(flows)

    known = run(0.25, False)
    assert len(known) == 8
    assert run(0.25, True) == known
    assert run(1 / 64, False) == pytest.approx(known, rel=1e-12)


@pytest.mark.parametrize("start", [0.0, 1e6, 1e9, 1e12])
def test_late_in_a_long_run(start: float):
    """Where the clock has no nanoseconds left, transfers end."""
    flows = Flows(LinkModel(), {"l": 1e6})
    for key in range(5):
        flows.begin(key, route("l", latency_s=1e-6 * key), route("l"), 1e5 * key, start)
    seen = ends(flows)
    assert sorted(seen) == list(range(5))
    assert all(a <= b for a, b in pairwise(seen.values()))
    assert seen[4] - start == pytest.approx(1e6 * 1.05 / 0.97e6, rel=0.01, abs=1e-3 * (start >= 1e12))


def test_empty_transfers_take_the_latency():
    """Which may be 0."""
    flows = Flows(LinkModel(), {"l": 1e6})
    flows.begin("none", route("l"), route("l"), 0, 2.0)
    flows.begin("some", route("l", latency_s=0.1), route("l"), 0, 2.0)
    assert flows.next_end() == 2.0
    assert flows.advance(2.0) == ["none"]
    assert ends(flows) == {"some": pytest.approx(3.301)}
    assert flows.next_end() == inf
    assert flows.advance(9.0) == []


def test_what_is_refused():
    """A second transfer of a key, no size, another time, options that change shares."""
    flows = Flows(LinkModel(), {"l": 1e6})
    flows.begin(0, route("l"), route("l"), 1e6, 1.0)
    for key, size, now in ((0, 1.0, 1.0), (1, -1.0, 1.0), (1, float("nan"), 1.0), (1, 1.0, 0.5), (1, 1.0, 1e9)):
        with pytest.raises(ValueError, match="ransfer"):
            flows.begin(key, route("l"), route("l"), size, now)
    with pytest.raises(ValueError, match="back"):
        flows.advance(0.5)
    for option, value in (("network/solver", "bmf"), ("maxmin/precision", "1e-9"), ("network/weight-S", "x")):
        with pytest.raises(InputError, match=option):
            LinkModel.of_options("p.xml", {option: value})
    assert LinkModel.of_options("p.xml", {"precision/timing": "0.000000001"}) == LinkModel()
    assert LinkModel.of_options("p.xml", {"network/model": "CM02"}).weight_bytes == 0
