"""A thousand parallel tasks of 16 nodes beside a bare Python program that runs the same ``exec_init``s.

``python benchmarks/parallel_tasks.py`` prints the CPU time of both [s], each in processes of its own, imports
left out: of gridsched that of the simulating process, of the bare program from its engine on. Both are
pinned to one CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gridsched import Scenario, make_tasks, read_platform
from gridsched.compiled import interpret_nothing
from gridsched.drivers.simgrid_library import load_simgrid
from gridsched.model.job_profiles import ParallelWork
from gridsched.runs.preparation import prepare
from gridsched.sim import child

NODES, WIDTH = 64, 16
PLATFORM = f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
  <cluster id="A" prefix="n" suffix="" radical="0-{NODES - 1}" speed="1Gf" bw="1GBps" lat="5us" bb_bw="30GBps"
    bb_lat="3us"><prop id="wattage_per_state" value="50:70:200"/></cluster>
</zone></platform>
"""


def scenario(path: Path, jobs: int) -> Scenario:
    """Return jobs of 16 nodes that all send to all, ready at once, under FCFS."""
    rng = np.random.default_rng(1)
    works = [
        ParallelWork(flops=(float(f),), pattern="all_to_all", message_bytes=float(b))
        for f, b in zip(rng.uniform(1e9, 1e10, jobs), rng.uniform(1e6, 2e8, jobs), strict=True)
    ]
    tasks = make_tasks(np.full(jobs, 1e12), width=WIDTH, requested_time_s=1e3, profile=np.arange(jobs), profiles=works)
    return Scenario(read_platform(path), tasks, "fcfs", platform_file=path)


def by_gridsched(path: Path, jobs: int) -> dict[str, Any]:
    """Run in this process; return CPU time and the starts, hosts and amounts of each task."""
    interpret_nothing()
    loaded = prepare(scenario(path, jobs))
    few = prepare(replace(scenario(path, 20), driver="reference", network="none"))
    scheduler = loaded.make_scheduler()
    load_simgrid()
    child.simulate_reference(few, few.make_scheduler())  # loads what schedulers have compiled, as a server does
    began = time.process_time()
    records = child.simulate(loaded, scheduler, path)
    cpu_s = time.process_time() - began
    fields = records.fields
    names = [host.name for host in loaded.platform.hosts]
    plan = []
    for k, each in enumerate(fields["executions"]):
        ids = fields["host_ids"][fields["host_offsets"][k] : fields["host_offsets"][k + 1]]
        step = next(loaded.tasks.profiles[each["task"]].steps(WIDTH))
        matrix = np.zeros((WIDTH, WIDTH))
        matrix[step.source, step.target] = step.size_bytes
        plan.append([float(each["start"]), [names[h] for h in ids], step.flops.tolist(), matrix.ravel().tolist()])
    return {"cpu_s": cpu_s, "end_s": float(fields["executions"]["end"].max()), "plan": plan}


def by_simgrid(path: Path, plan: list[Any]) -> dict[str, Any]:
    """Run the same parallel tasks in the same order, each when its nodes are free, on SimGrid alone."""
    simgrid = load_simgrid()
    began = time.process_time()
    engine = simgrid.Engine(["bare", "--cfg=host/model:ptask_L07", "--cfg=plugin:host_energy"])
    engine.load_platform(str(path))
    host_named = {host.name: host for host in engine.all_hosts}

    def lead() -> None:
        running, busy, hosts_of = simgrid.ActivitySet(), set[str](), {}
        for _, names, flops, size_bytes in plan:
            while not busy.isdisjoint(names):
                busy.difference_update(hosts_of.pop(running.wait_any()))
            activity = simgrid.this_actor.exec_init([host_named[name] for name in names], flops, size_bytes).start()
            busy.update(names)
            hosts_of[activity] = names
            running.push(activity)
        running.wait_all()

    engine.all_hosts[0].add_actor("lead", lead)
    engine.run()
    return {"cpu_s": time.process_time() - began, "end_s": engine.clock}


def main() -> None:
    """Measure pairs of runs, or be one of their processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", choices=["gridsched", "simgrid"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # as each of gridsched's runs is
        path = given.folder / "platform.xml"
        if given.only == "gridsched":
            made = by_gridsched(path, given.jobs)
        else:
            made = by_simgrid(path, json.loads((given.folder / "gridsched.json").read_text())["plan"])
        (given.folder / f"{given.only}.json").write_text(json.dumps(made))
        sys.stdout.flush()
        os._exit(0)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "platform.xml").write_text(PLATFORM)
        for _ in range(given.pairs):
            seen = {}
            for only in ("gridsched", "simgrid"):
                command = [sys.executable, __file__, "--only", only, "--folder", folder, "--jobs", str(given.jobs)]
                subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
                seen[only] = json.loads((Path(folder) / f"{only}.json").read_text())
            cpu = {only: each["cpu_s"] for only, each in seen.items()}
            ratios.append(cpu["gridsched"] / cpu["simgrid"])
            print(f"gridsched {cpu['gridsched']:.2f} s, SimGrid alone {cpu['simgrid']:.2f} s: {ratios[-1]:.2f} times; "
                  f"last ends {seen['gridsched']['end_s']!r} and {seen['simgrid']['end_s']!r}")  # fmt: skip
    print(f"median {statistics.median(ratios):.2f} times")


if __name__ == "__main__":
    main()
