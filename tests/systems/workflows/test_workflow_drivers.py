"""A diamond with data under every scheduler that can play it, on both drivers; and SimGrid's own Min-Min."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from workflow_examples import dependencies

from gridsched import Host, Platform, PState, make_tasks
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.model.network import Network
from gridsched.model.rules import EnergyBudget
from gridsched.policy.base import Scheduler
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference
from gridsched.sim.client import simulate
from gridsched.testing.playing import CARBON

#: Schedulers of workflows, and of bags whose traits let them serve tasks that get free later.
IDS = [
    entry.id
    for entry in entries()
    if {"workflow", "bag", "arrivals"} & set(entry.accepts)
    and not scheduler_class(entry.id).traits.external
    and not scheduler_class(entry.id).traits.plans_once
]
ENERGY = ["heft", "ecs", "heft_slack", "ees", "ready_min_min"]


def diamond(folder, id: str, cores=None, **rules) -> tuple[LoadedScenario, Path]:
    """Return a run of six tasks of two ways on three hosts, each two with a link of their own, and its platform.

    With `cores` tasks take so many, and hosts have four, three and four.
    """
    speeds = (4.0, 2.0, 1.0), (3.0, 1.5), (1.7, 1.1)
    of_host = (1, 1, 1) if cores is None else (4, 3, 4)
    hosts = tuple(
        Host(f"h{k}", tuple(PState(s, 1.0, 2.0 + s**2 / 2, 2.0 + s**2) for s in each), cores=n)
        for k, (each, n) in enumerate(zip(speeds, of_host, strict=True))
    )
    pairs = dependencies([(0, 1, 7.0), (0, 2, 5.0), (1, 3, 3.0), (2, 4, 11.0), (3, 5, 6.0), (4, 5, 2.0)])
    demand = None if cores is None else [[n] for n in cores]
    tasks = make_tasks([8.0, 31.0, 23.0, 17.0, 13.0, 5.0], dependencies=pairs, demand=demand)
    network = Network(np.zeros((3, 3)), np.full((3, 3), 2.0))
    named = "".join(
        f'<host id="{h.name}" core="{h.cores}" speed="{",".join(f"{p.speed!r}f" for p in h.pstates)}">'
        '<prop id="wattage_per_state" '
        f'value="{",".join(f"{p.idle_w}:{p.epsilon_w}:{p.busy_w}" for p in h.pstates)}"/></host>'
        for h in hosts
    )
    links = "".join(
        f'<link id="{a}{b}" bandwidth="2Bps" latency="0s" sharing_policy="FATPIPE"/>'
        for a in range(3)
        for b in range(a)
    )
    routes = "".join(
        f'<route src="h{a}" dst="h{b}"><link_ctn id="{a}{b}"/></route>' for a in range(3) for b in range(a)
    )
    file = folder / "p.xml"
    file.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>'
        f'<zone id="z" routing="Full">{named}{links}{routes}</zone></platform>'
    )
    return LoadedScenario(Platform(hosts), tasks, id, network="platform", between_hosts=network, **rules), file


def check_both(folder, id: str, scheduler: Scheduler | None = None, cores=None, **rules):
    """Return the reference driver's trace of a diamond, which is SimGrid's, and keeps precedence, data and joules."""
    scenario, file = diamond(folder, id, cores, **rules)
    scheduler = scheduler or make_scheduler(id)
    trace, outcome = simulate_reference(scenario, scheduler), simulate(scenario, scheduler, file)
    simgrid = outcome.trace
    if "budget" not in rules:
        assert list(outcome.plugin_j.values()) == pytest.approx(trace_energy(trace).total_j, rel=1e-9)
    done, other = np.sort(trace.executions, order="task"), np.sort(simgrid.executions, order="task")
    for column in ("task", "host", "pstate", "outcome"):
        assert done[column].tolist() == other[column].tolist()
    for column in ("start", "end"):
        assert done[column] == pytest.approx(other[column], rel=1e-9, abs=1e-9)
    ended = {e["task"]: e for e in done if e["outcome"] == 0}
    assert sorted(ended) == list(range(6))
    pairs = scenario.tasks.dependencies
    for task, on, size in zip(pairs.task.tolist(), pairs.on.tolist(), pairs.size_bytes.tolist(), strict=True):
        sent = size / 2.0 if ended[task]["host"] != ended[on]["host"] else 0.0
        assert ended[task]["start"] >= ended[on]["end"] + sent - 1e-9
    return trace


@pytest.mark.parametrize("id", IDS)
def test_every_scheduler_plays_a_diamond_with_data(tmp_path, id):
    """Those of workflows and those of bags end all tasks, wait for data, and do the same on both drivers."""
    check_both(tmp_path, id, **({"carbon": CARBON} if scheduler_class(id).traits.needs_carbon else {}))


@pytest.mark.parametrize("id", [id for id in IDS if not scheduler_class(id).traits.one_core])
def test_every_scheduler_plays_tasks_of_several_cores(tmp_path, id):
    """Cores of one host begin and end together, no host has more than its own, and both drivers do the same."""
    cores = (1, 4, 2, 3, 1, 2)
    trace = check_both(
        tmp_path, id, cores=cores, **({"carbon": CARBON} if scheduler_class(id).traits.needs_carbon else {})
    )
    runs = trace.executions
    for at in runs["start"]:
        here = (runs["start"] <= at) & (at < runs["end"])
        used = np.bincount(runs["host"][here], np.array(cores)[runs["task"][here]], minlength=3)
        assert (used <= [4, 3, 4]).all()


def test_tasks_of_several_cores_are_refused_by_those_of_one(tmp_path):
    """By the trait `one_core`, in a line that states how many cores there are."""
    scenario, _ = diamond(tmp_path, "hbmct", (1, 4, 2, 3, 1, 2))
    with pytest.raises(InputError, match=r"accepts tasks of one core.* of up to 4"):
        simulate_reference(scenario, make_scheduler("hbmct"))


@pytest.mark.parametrize("id", ENERGY)
def test_a_budget_holds_on_both_drivers(tmp_path, id):
    """A refused task waits for the next period; what a period draws stays within its budget."""
    trace = check_both(tmp_path, id, budget=EnergyBudget(300.0, period_s=40.0))
    assert (trace.periods["consumed_j"] <= trace.periods["budget_j"] + 1e-6).all()


@pytest.mark.parametrize("id", ENERGY)
def test_hosts_without_work_are_switched_off_on_both_drivers(tmp_path, id):
    """`idle_off` around a scheduler of workflows."""
    trace = check_both(tmp_path, "idle_off", scheduler=make_scheduler("idle_off", {"scheduler": id, "timeout_s": 2.0}))
    assert not trace.host_changes["is_on"].all()


@pytest.mark.parametrize("id", ENERGY)
def test_carbon_moves_workflows_on_both_drivers(tmp_path, id):
    """`wait_for_green` around a scheduler of workflows."""
    green = make_scheduler("wait_for_green", {"scheduler": id, "max_delay_s": 30.0})
    check_both(tmp_path, "wait_for_green", scheduler=green, carbon=CARBON)


#: Min-Min with the first task on the first host, as SimGrid's example places it.
ROOT_FIRST = '''
from gridsched.policy.decisions import Assign
from gridsched.systems.workflows.ready_lists import ReadyMinMin


class RootFirst(ReadyMinMin):
    """Min-Min behind a root that is placed.

    References
    ----------
    .. [1] SimGrid, examples/cpp/dag-scheduling.
    """

    def schedule(self, state):
        """Place the root, then go on as Min-Min."""
        return [Assign(0, 0)] if state.now == 0.0 else super().schedule(state)
'''


def montage(dax: Path) -> dict:
    """Return Montage as SimGrid reads it: a root makes what no task makes, an end reads what no task reads.

    Run times are seconds of a machine of 4.2 Gflop/s; a file has the size that it has where it is first named.
    """
    top = list(ElementTree.parse(dax).getroot())
    jobs = [each for each in top if each.tag.endswith("job")]
    flops = {"root": 0.0} | {job.get("id"): float(job.get("runtime")) * 4.2e9 for job in jobs} | {"end": 0.0}
    makers, readers, size = {}, {}, {}
    for job in jobs:
        for uses in job:
            file = uses.get("file")
            size.setdefault(file, int(uses.get("size")))
            (makers if uses.get("link") == "output" else readers).setdefault(file, []).append(job.get("id"))
    files = [
        (maker, reader, size[file])
        for file in sorted(size)
        for maker in makers.get(file, ["root"])
        for reader in readers.get(file, ["end"])
    ]
    children = [each for each in top if each.tag.endswith("child")]
    waits = [(parent.get("ref"), child.get("ref")) for child in children for parent in child]
    return {"flops": flops, "files": files, "waits": waits}


def montage_tables(dax: Path, folder: Path) -> Path:
    """Write it as a workflow; tasks need work, so root and end are of 10 flop."""
    graph = montage(dax)
    (folder / "m.tasks.csv").write_text("id,flops\n" + "".join(f"{k},{v or 10!r}\n" for k, v in graph["flops"].items()))
    sent = {(reader, maker) for maker, reader, _ in graph["files"]}
    rows = [f"{reader},{maker},{size},f{k}\n" for k, (maker, reader, size) in enumerate(graph["files"])]
    rows += [f"{child},{parent},0,\n" for parent, child in graph["waits"] if (child, parent) not in sent]
    (folder / "m.edges.csv").write_text("task,on,bytes,file\n" + "".join(rows))
    (folder / "m.toml").write_text('kind = "workflow"\ntasks_csv = "m.tasks.csv"\nedges_csv = "m.edges.csv"\n')
    return folder / "m.toml"


#: What SimGrid's example prints for Montage_25 on seven hosts: when each task is placed [s], which, and on which host.
EXAMPLE = """
0.000000 ID00002 27, 0.001301 ID00000 26, 0.001301 ID00003 30, 0.001306 ID00004 27, 0.001736 ID00001 32
14.582104 ID00010 26, 17.042829 ID00008 27, 29.547201 ID00013 26, 32.629864 ID00009 30, 32.631165 ID00011 27
32.632466 ID00005 26, 32.632466 ID00006 32, 32.632469 ID00012 31, 32.632896 ID00007 28, 60.434831 ID00014 27
61.228672 ID00015 27, 62.772102 ID00016 27, 62.772102 ID00017 26, 62.773403 ID00020 30, 62.773403 ID00018 27
62.773403 ID00019 32, 88.573854 ID00021 27, 90.158236 ID00022 27, 93.450123 ID00023 27, 97.646883 ID00024 27
98.135775 end 27"""


def bare_min_min(graph: Path, platform: Path, *words: str) -> dict:
    """Return what SimGrid alone makes of it."""
    bare = Path(__file__).parent / "bare_min_min.py"
    done = subprocess.run([sys.executable, bare, platform, graph, *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_min_min_of_simgrid(shared_data, tmp_path):
    """By its rule SimGrid alone does what its example prints, and each of three habits has its part of 98.135796 s."""
    graph = tmp_path / "montage.json"
    graph.write_text(json.dumps(montage(shared_data("workflows/Montage_25.dax.xml"))))
    platform = shared_data("platforms/simulacrum_7_hosts.xml")
    example = bare_min_min(graph, platform, "one_a_step", "by_arrival", "loopback")
    printed = [each.split() for each in EXAMPLE.replace("\n", ", ").split(", ") if each]
    assert [(task, host) for _, task, host in example["placements"][1:]] == [(t, f"Host {h}") for _, t, h in printed]
    assert [time for time, *_ in example["placements"][1:]] == pytest.approx([float(t) for t, *_ in printed], abs=1e-6)
    assert example["makespan_s"] == pytest.approx(98.135796, abs=1e-6)
    assert bare_min_min(graph, platform, "loopback")["makespan_s"] == pytest.approx(98.131893, abs=1e-6)
    assert bare_min_min(graph, platform, "by_arrival")["makespan_s"] == pytest.approx(101.255098, abs=1e-6)


def test_min_min_is_that_of_simgrid_but_for_its_habits(gridsched, shared_data, tmp_path):
    """All ready tasks are placed at once and run in that order, and data that stay are there: 98.126885 s."""
    dax, platform = shared_data("workflows/Montage_25.dax.xml"), shared_data("platforms/simulacrum_7_hosts.xml")
    (tmp_path / "montage.json").write_text(json.dumps(montage(dax)))
    bare = bare_min_min(tmp_path / "montage.json", platform)
    (tmp_path / "policy.py").write_text(ROOT_FIRST)
    workload, policy = montage_tables(dax, tmp_path), f"{tmp_path / 'policy.py'}:RootFirst"
    options = "--platform", platform, "--workload", workload, "--scheduler", policy, "--driver", "simgrid"
    done = gridsched("run", *options, "--power", "none", "--json")
    assert done.json["makespan_s"] == pytest.approx(bare["makespan_s"], abs=1e-8)  # of that 6e-9 s are root and end
