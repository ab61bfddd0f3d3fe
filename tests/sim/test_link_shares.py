"""Data that share links: the ends of transfers by hand, and as SimGrid alone has them on networks that are drawn."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import inf
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, make_tasks, run
from gridsched.drivers.link_shares import Flows
from gridsched.model.dependencies import After, Dependencies
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign
from gridsched.sim.lone_transfers import link_model, routes_between

BARE = Path(__file__).parent / "bare_transfers.py"
HOST = '<host id="{}" speed="1Gf"><prop id="wattage_per_state" value="10:20:20"/></host>'
#: what is sent: begin [s], source, target, bytes, and when it is cancelled [s]
Plan = list[tuple[float, str, str, int, float | None]]


class Anywhere(Scheduler):
    """Queue all tasks at once, each on a random one of five hosts: their data leave as soon as they are made."""

    traits = Traits(trigger="event")

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def schedule(self, state):
        """Return all at the first ask."""
        hosts = np.random.default_rng(self.seed).integers(5, size=40).tolist()
        return [Assign(task, host) for task, host in enumerate(hosts)] if state.now == 0 else []


@dataclass
class Case:
    """A platform file, SimGrid's options, what is sent."""

    file: Path
    options: list[str]
    plan: Plan


def by_simgrid(folder: Path, cases: list[Case]) -> list[list[tuple[float, float, float]] | None]:
    """Return begin and end [s] of each transfer and the bytes that are left, for each case, by SimGrid alone."""
    plans = folder / "plans.json"
    plans.write_text(json.dumps([[str(c.file), [f"--cfg={each}" for each in c.options], c.plan] for c in cases]))
    answer = subprocess.run([sys.executable, str(BARE), str(plans)], capture_output=True, text=True, timeout=600)
    assert answer.returncode == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


def by_flows(case: Case, hosts: list[str]) -> list[tuple[float, float, float]]:
    """Return the same by `Flows`, on the routes that SimGrid finds."""
    routes = routes_between(case.file, hosts)
    flows = Flows(link_model(case.file, case.options), routes.bandwidth, routes.unshared)
    begins = sorted((begin, k) for k, (begin, *_) in enumerate(case.plan))
    cancels = sorted((each[4], k) for k, each in enumerate(case.plan) if each[4] is not None)
    seen: dict[int, tuple[float, float, float]] = {}
    while begins or len(flows):
        time = min(begins[0][0] if begins else inf, cancels[0][0] if cancels else inf, flows.next_end())
        for key in flows.advance(time):
            seen[key] = case.plan[key][0], time, 0.0
        while cancels and cancels[0][0] <= time:
            _, key = cancels.pop(0)
            if key in flows:
                seen[key] = case.plan[key][0], time, flows.remaining(key)
                flows.cancel(key)
        while begins and begins[0][0] <= time:
            _, key = begins.pop(0)
            _, source, target, size, _ = case.plan[key]
            flows.begin(key, routes.route(source, target), routes.route(target, source), size, time)
    return [seen[k] for k in range(len(case.plan))]


class Draw:
    """Random numbers, or few values of each kind, so that many things are equal or happen at once."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.has_ties = bool(rng.random() < 0.5)
        self._widths = 10.0 ** rng.uniform(3, 9, size=3)
        self._widths[1] = self._widths[0] * (1 - rng.choice([1e-4, 4e-6]))  # about what a link is full at
        self._latencies = [0.0, *(10.0 ** rng.uniform(-6, 0, size=2) if rng.random() < 0.5 else (0.125, 0.25))]

    def one_of(self, few: Sequence[float], other: float) -> float:
        """Return one of few values, or else another."""
        return float(self.rng.choice(few) if self.rng.random() < (0.9 if self.has_ties else 0.4) else other)

    def width(self) -> float:
        """Return a bandwidth [byte/s]."""
        return self.one_of(self._widths, 10.0 ** self.rng.uniform(3, 9))

    def latency_s(self) -> float:
        """Return a latency [s]."""
        return self.one_of(self._latencies, 10.0 ** self.rng.uniform(-6, 0))

    def begin_s(self) -> float:
        """Return when something begins [s]."""
        return self.one_of([0.0, 0.125, 0.25, 0.5, 1.0, 2.0], self.rng.uniform(0, 5))

    def size_bytes(self, width: float) -> int:
        """Return how much takes some seconds over a link [byte]."""
        return round(self.one_of([0.0, 0.1, 1.0, 1.0], 10.0 ** self.rng.uniform(-2, 0.7)) * width)


def draw_network(draws: Draw, hosts: list[str]) -> tuple[str, list[float]]:
    """Return the inner XML of a random network of some hosts, and the bandwidths of its links [byte/s]."""
    policies, rng = ["SHARED", "SHARED", "SPLITDUPLEX", "FATPIPE"], draws.rng
    names = [*(f"l{host}" for host in hosts), "middle", "other"]
    links = {name: (draws.width(), draws.latency_s(), str(rng.choice(policies))) for name in names}
    shape = rng.choice(["star", "chain", "dumbbell"])
    returns_elsewhere, n_crossed = rng.random() < 0.2, 2 if rng.random() < 0.15 else 1

    def ctn(name: str, up: bool) -> str:
        direction = f' direction="{"UP" if up else "DOWN"}"' if links[name][2] == "SPLITDUPLEX" else ""
        return f'<link_ctn id="{name}"{direction}/>'

    def way(a: int, b: int) -> list[tuple[str, bool]]:
        if shape == "chain":
            inner = [(f"l{hosts[k]}", a < b) for k in range(min(a, b), max(a, b))]
            return inner if a < b else inner[::-1]
        half = len(hosts) // 2
        crosses = shape == "star" or (a < half) != (b < half)
        middle = [("other" if returns_elsewhere and a > b else "middle", a < b)] * n_crossed
        return [(f"l{hosts[a]}", True), *(middle if crosses else []), (f"l{hosts[b]}", False)]

    routes = "".join(
        f'<route src="{hosts[a]}" dst="{hosts[b]}" symmetrical="NO">{"".join(ctn(*each) for each in way(a, b))}</route>'
        for a, b in permutations(range(len(hosts)), 2)
    )
    entries = "".join(
        f'<link id="{name}" bandwidth="{width!r}Bps" latency="{latency!r}s" sharing_policy="{policy}"/>'
        for name, (width, latency, policy) in links.items()
    )
    return entries + routes, [width for width, _, _ in links.values()]


def draw_options(rng: np.random.Generator) -> list[str]:
    """Return random options of SimGrid's models of links."""
    options = [f"network/model:{rng.choice(['LV08', 'CM02'])}", f"network/crosstraffic:{rng.integers(2)}"]
    own = {
        "network/TCP-gamma": rng.choice([0.0, 10.0 ** rng.uniform(3, 7)]),
        "network/weight-S": rng.choice([0.0, 10.0 ** rng.uniform(2, 5)]),
        "network/latency-factor": rng.choice([0.0, rng.uniform(0.5, 20.0)]),
        "network/bandwidth-factor": rng.uniform(0.5, 1.0),
    }
    return options + [f"{name}:{float(value)!r}" for name, value in own.items() if rng.random() < 0.25]


def write(folder: Path, name: str, hosts: Iterable[str], network: str) -> Path:
    """Write a platform file."""
    file = folder / f"{name}.xml"
    file.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'
        f'<zone id="z" routing="Full">{"".join(HOST.format(h) for h in hosts)}{network}</zone>'
        "</platform>"
    )
    return file


def draw(folder: Path, seed: int) -> tuple[Case, list[str]]:
    """Return a random case, and its hosts."""
    draws = Draw(seed)
    rng = draws.rng
    hosts = [f"h{k}" for k in range(rng.integers(2, 7))]
    network, widths = draw_network(draws, hosts)
    plan: Plan = []
    for _ in range(rng.integers(2, 13)):
        source, target = rng.choice(hosts, size=2, replace=False).tolist()
        if draws.has_ties and target != hosts[0] and rng.random() < 0.6:
            source = hosts[0]  # which sends to many at once
        begin = draws.begin_s()
        cancel = begin + float(rng.uniform(0.01, 5)) if rng.random() < 0.1 else None
        plan.append((begin, source, target, draws.size_bytes(rng.choice(widths)), cancel))
    return Case(write(folder, f"network{seed}", hosts, network), draw_options(rng), plan), hosts


def check_drawn(folder: Path, seeds: range) -> None:
    """Compare both on networks that are drawn: the ends within 1e-9, and the bytes left of what was cancelled."""
    drawn = [draw(folder, seed) for seed in seeds]
    known = by_simgrid(folder, [case for case, _ in drawn])
    assert len(known) == len(seeds)
    for seed, (case, hosts), simgrid in zip(seeds, drawn, known, strict=True):
        assert simgrid is not None, seed
        for ours, theirs, sent in zip(by_flows(case, hosts), simgrid, case.plan, strict=True):
            assert ours == (
                pytest.approx(theirs[0], rel=1e-9),
                pytest.approx(theirs[1], rel=1e-9),
                pytest.approx(theirs[2], rel=1e-9, abs=1e-6 * max(1.0, sent[3])),
            ), (seed, sent)


def compare(case: Case, hosts: Iterable[str]) -> list[float]:
    """Return the ends of a case [s], which must be the same by SimGrid and by `Flows`."""
    (known,) = by_simgrid(case.file.parent, [case])
    assert known is not None
    seen = [end for _, end, _ in by_flows(case, list(hosts))]
    assert seen == pytest.approx([end for _, end, _ in known], rel=1e-12)
    return seen


def link(name: str, width: float, latency_s: float = 0.0, policy: str = "SHARED") -> str:
    """Return the XML of a link."""
    return f'<link id="{name}" bandwidth="{width!r}Bps" latency="{latency_s!r}s" sharing_policy="{policy}"/>'


def full_route(source: str, target: str, *links: str) -> str:
    """Return the XML of a route."""
    return f'<route src="{source}" dst="{target}">{"".join(f"""<link_ctn id="{each}"/>""" for each in links)}</route>'


#: latency + size / bandwidth
PLAIN = ["network/model:CM02", "network/crosstraffic:0"]


@pytest.mark.parametrize(("order", "ends"), [("bcc", [10.1, 2.1, 2.1]), ("cbc", [4.1, 10.1, 4.1])])
def test_flows_that_begin_in_one_instant(tmp_path: Path, order: str, ends: list[float]):
    """Data to c over 1,000 B/s: 4 s for two of 2,000 B, and 2 s if SimGrid looks at the flow to b alone."""
    network = link("up", 1e5, 0.1) + link("x", 1000.0) + link("y", 1000.0)
    routes = full_route("a", "b", "up", "x") + full_route("a", "c", "up", "y") + full_route("b", "c", "x", "y")
    file = write(tmp_path, "fork", "abc", network + routes)
    plan: Plan = [(0.0, "a", to, {"b": 10_000, "c": 2000}[to], None) for to in order]
    assert compare(Case(file, PLAIN, plan), "abc") == pytest.approx(ends)


def test_one_that_begins_when_others_begin_to_flow(tmp_path: Path):
    """The last latency is over at 0.25 s, when SimGrid looks at all again: 2,000 B take 0.125 s of 2 s and 3.75 s."""
    network = link("up", 1e5, 0.125) + "".join(link(name, 1000.0) for name in "xyz")
    routes = "".join(full_route("a", to, "up", name) for to, name in zip("bcd", "xyz", strict=True))
    others = full_route("b", "c", "x", "y") + full_route("b", "d", "x", "z") + full_route("c", "d", "y", "z")
    file = write(tmp_path, "fork", "abcd", network + routes + others)
    plan: Plan = [(0.0, "a", to, {"b": 10_000, "c": 2000}[to], None) for to in "bcc"]
    plan.append((0.125, "a", "d", 10_000, None))
    assert compare(Case(file, PLAIN, plan), "abcd") == pytest.approx([10.125, 4.0, 4.0, 10.25])


def test_a_full_link_limits_no_other(tmp_path: Path):
    """Of l, n leaves the second flow 5e-6, by SimGrid's precision nothing: it has m instead of what is left."""
    for policy in ("SHARED", "FATPIPE"):
        network = link("l", 1e6) + link("n", 999_995.0, 1e-7) + link("m", 7e5, 1.0, policy)
        routes = full_route("a", "b", "l", "n") + full_route("c", "d", "l", "m")
        others = [full_route(*ends, "m") for ends in ("ac", "ad", "bc", "bd")]
        file = write(tmp_path, f"full{policy}", "abcd", network + routes + "".join(others))
        plan: Plan = [(0.0, "a", "b", 10**7, None), (0.0, "c", "d", 700_000, None)]
        assert compare(Case(file, PLAIN, plan), "abcd")[1] == pytest.approx(2.0)


def test_a_flow_without_any_rate(tmp_path: Path):
    """Where a flow is left nothing, SimGrid ends the process; here it waits until the other one has ended."""
    network = link("l", 1e6) + link("n", 999_995.0, 1e-7)
    routes = full_route("a", "b", "l", "n") + full_route("c", "d", "l")
    others = [full_route(*ends, "n") for ends in ("ac", "ad", "bc", "bd")]
    file = write(tmp_path, "stalled", "abcd", network + routes + "".join(others))
    case = Case(file, PLAIN, [(1.0, "a", "b", 10**7, None), (1.0, "c", "d", 10**6, None)])
    assert by_simgrid(tmp_path, [case]) == [None]
    first, second = (end for _, end, _ in by_flows(case, list("abcd")))
    # from 1 s to 1.0000001 s it had the link alone
    assert (first, second) == pytest.approx((1 + 1e-7 + 1e7 / 999_995, first + 1 - 1e-7), rel=1e-12)


def test_a_pipe_gives_less_to_those_from_afar(tmp_path: Path):
    """FATPIPE of 1,000 B/s, latencies 0.1 and 0.4 s: 250 B/s beside the near one, and then all."""
    network = link("p", 1000.0, 0.0, "FATPIPE") + link("x", 1e5, 0.1) + link("y", 1e5, 0.4)
    routes = full_route("a", "b", "x", "p") + full_route("c", "d", "y", "p")
    others = [full_route(*ends, "p") for ends in ("ac", "ad", "bc", "bd")]
    file = write(tmp_path, "pipe", "abcd", network + routes + "".join(others))
    case = Case(file, PLAIN, [(0.3, "a", "b", 2000, None), (0.0, "c", "d", 1000, None)])
    assert compare(case, "abcd") == pytest.approx([2.4, 2.9])


@pytest.mark.parametrize("seed", range(6))
def test_the_transfers_of_a_run(tmp_path: Path, seed: int):
    """Data of a random graph of tasks on a drawn network, sent by the driver on SimGrid at its times, in its order."""
    draws = Draw(seed)
    rng, hosts = draws.rng, [f"h{k}" for k in range(5)]
    network, widths = draw_network(draws, hosts)
    file = write(tmp_path, "run", hosts, network)
    whole = bool(seed % 2)  # messages have whole bytes; SimGrid sends others as executions on two hosts
    pairs = {
        (int(on), task): round(float(rng.choice(widths)) * rng.uniform(0.1, 2.0), 0 if whole else 3)
        for task in range(1, 40)
        for on in rng.integers(0, task, 2)
    }
    on, task = np.array(list(pairs)).T
    graph = Dependencies(
        task, on, np.full(len(task), int(After.END)), np.zeros(len(task)), np.array(list(pairs.values()))
    )
    tasks = make_tasks(rng.uniform(1e8, 2e9, 40), dependencies=graph)
    options = draw_options(rng)
    sent = run(Scenario(file, tasks, Anywhere(seed), cfg=tuple(options), timeout_s=60.0)).trace.transfers
    plan: Plan = [(e["begin"], hosts[e["source"]], hosts[e["target"]], e["size_bytes"], None) for e in sent]
    assert len(plan) > 20
    seen = by_flows(Case(file, options, plan), hosts)
    assert [end for _, end, _ in seen] == pytest.approx(sent["end"].tolist(), rel=1e-9)


def test_networks_that_are_drawn(tmp_path: Path):
    """Stars, chains and dumbbells, links of all kinds, both models and their options."""
    check_drawn(tmp_path, range(265, 285))


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_many_networks_that_are_drawn(tmp_path: Path, first: int):
    """The same, 1,000 of them."""
    check_drawn(tmp_path, range(first, first + 100))
