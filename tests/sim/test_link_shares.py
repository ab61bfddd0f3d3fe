"""Data that share links: the ends of transfers by hand, and as SimGrid alone has them on networks that are drawn."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np
import pytest

from gridsched.drivers.link_shares import Flows
from gridsched.sim.lone_transfers import link_model, routes_between

BARE = Path(__file__).parent / "bare_transfers.py"
#: what is sent: begin [s], source, target, bytes, and when it is cancelled [s]
Plan = list[tuple[float, str, str, int, float | None]]


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


def draw_network(rng: np.random.Generator, hosts: list[str]) -> tuple[str, list[float]]:
    """Return the inner XML of a random network of some hosts, and the bandwidths of its links [byte/s]."""
    widths, latencies = 10.0 ** rng.uniform(3, 9, size=3), [0.0, *10.0 ** rng.uniform(-6, 0, size=2)]
    links: dict[str, tuple[float, float, str]] = {}

    def link(name: str, policies: tuple[str, ...]) -> None:
        width = float(widths[rng.integers(3)] if rng.random() < 0.4 else 10.0 ** rng.uniform(3, 9))
        latency = float(latencies[rng.integers(3)] if rng.random() < 0.6 else 10.0 ** rng.uniform(-6, 0))
        links[name] = width, latency, str(rng.choice(policies))

    all_policies = "SHARED", "SHARED", "SPLITDUPLEX", "FATPIPE"
    shape = rng.choice(["star", "chain", "dumbbell"])
    for host in hosts:
        link(f"l{host}", all_policies)
    for name in ("middle", "other"):
        link(name, all_policies)
    returns_elsewhere, twice = rng.random() < 0.2, rng.random() < 0.15

    def ctn(name: str, up: bool) -> str:
        direction = f' direction="{"UP" if up else "DOWN"}"' if links[name][2] == "SPLITDUPLEX" else ""
        return f'<link_ctn id="{name}"{direction}/>'

    def way(a: int, b: int) -> list[tuple[str, bool]]:
        first, last = hosts[a], hosts[b]
        if shape == "chain":
            inner = [(f"l{hosts[k]}", a < b) for k in range(min(a, b), max(a, b))]
            return inner if a < b else inner[::-1]
        half = len(hosts) // 2
        crosses = shape == "star" or (a < half) != (b < half)
        middle = [("other" if returns_elsewhere and a > b else "middle", a < b)] * (2 if twice else 1)
        return [(f"l{first}", True), *(middle if crosses else []), (f"l{last}", False)]

    routes = "".join(
        f'<route src="{hosts[a]}" dst="{hosts[b]}" symmetrical="NO">{"".join(ctn(*each) for each in way(a, b))}</route>'
        for a in range(len(hosts))
        for b in range(len(hosts))
        if a != b
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
        "network/latency-factor": rng.uniform(0.5, 20.0),
        "network/bandwidth-factor": rng.uniform(0.5, 1.0),
    }
    return options + [f"{name}:{float(value)!r}" for name, value in own.items() if rng.random() < 0.25]


def draw(folder: Path, seed: int) -> tuple[Case, list[str]]:
    """Return a random case, and its hosts."""
    rng = np.random.default_rng(seed)
    hosts = [f"h{k}" for k in range(rng.integers(2, 7))]
    network, widths = draw_network(rng, hosts)
    file = folder / f"network{seed}.xml"
    file.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'
        f'<zone id="z" routing="Full">{"".join(f"""<host id="{h}" speed="1Gf"/>""" for h in hosts)}{network}</zone>'
        "</platform>"
    )
    plan: Plan = []
    for _ in range(rng.integers(2, 13)):
        source, target = rng.choice(hosts, size=2, replace=False).tolist()
        begin = float(rng.integers(3) if rng.random() < 0.4 else rng.uniform(0, 5))
        size = 0 if rng.random() < 0.05 else round(rng.choice(widths) * 10.0 ** rng.uniform(-2, 0.7))
        cancel = begin + float(rng.uniform(0.01, 5)) if rng.random() < 0.1 else None
        plan.append((begin, source, target, size, cancel))
    return Case(file, draw_options(rng), plan), hosts


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


def test_networks_that_are_drawn(tmp_path: Path):
    """Stars, chains and dumbbells, links of all kinds, both models and their options."""
    check_drawn(tmp_path, range(20))


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_many_networks_that_are_drawn(tmp_path: Path, first: int):
    """The same, 1,000 of them."""
    check_drawn(tmp_path, range(first, first + 100))
