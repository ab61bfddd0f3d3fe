"""Measure rigid parallel jobs: both drivers under EASY, and a bare s4u loop with the same starts.

Usage: python benchmarks/rigid_jobs.py [--jobs N] [--repeats R] [--shared]

The trace is that of the generator `rigid_jobs` with its defaults: Poisson arrivals, lognormal run
times (median 1,800 s, sigma 1.2, whole seconds, at most a day), 1 to 256 nodes in powers of two,
1,024 nodes, load 0.90, estimates ceil(run * U(1, 5)). The bare loop, in a process of its own,
starts the same jobs on the same nodes at the same times under ptask_L07, every node metered, and
waits for the one that ends next. Runs of ours and of the loop take turns, and each figure is the
least CPU time of the repeats: the machine may not be idle.

With --shared: jobs that share nodes of 64 cores, on the reference driver, beside the same jobs with
whole nodes. Of each of their nodes they take 1 to 64 cores in powers of two and 1 to 4 GB a core,
and they arrive at a load of 0.90 of the cores. Memory is the largest that Python and NumPy hold.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import platform as machine
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import table

from gridsched import __version__
from gridsched.drivers import reference
from gridsched.engine import Controller
from gridsched.model.estimates import RequestedTimes
from gridsched.model.platform import Cluster, Host, Partition, Platform
from gridsched.model.rules import Rules
from gridsched.model.system import System
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.xml_writer import parallel_platform_xml, write_platform
from gridsched.policy.registry import make_scheduler
from gridsched.workloads.rigid_jobs import RigidJobs, generate_rigid_jobs

CORES = 64  # of a shared node
GOALS = {"reference_jobs_per_s": 25_000, "simgrid_jobs_per_s": 4_000, "ratio": 1.7}


def system_of(n_jobs: int) -> tuple:
    """Return the system, the jobs and their true run times."""
    made = generate_rigid_jobs(RigidJobs(jobs=n_jobs, seed=1))
    estimates = RequestedTimes(made.platform, made.tasks)
    return System(made.platform, estimates), made.tasks, made.run_times


def controller_of(system, tasks, scheduler: str = "easy_backfilling") -> Controller:
    """Return a fresh controller."""
    policy = make_scheduler(scheduler)
    return Controller(system, tasks, policy, rng=np.random.default_rng(0))


def on_reference(system, tasks, truth, scheduler: str = "easy_backfilling") -> tuple:
    """Return CPU seconds and the trace of a run on the reference driver."""
    controller = controller_of(system, tasks, scheduler)
    gc.collect()
    gc.disable()
    began = time.process_time()
    trace = reference.simulate(controller, truth)
    seconds = time.process_time() - began
    gc.enable()
    return seconds, trace


def on_simgrid(path, system, tasks, truth, scheduler: str = "easy_backfilling") -> tuple[float, float]:
    """Return CPU seconds and the end of a run through the driver; the process is spent."""
    from gridsched.drivers.coordinator import CoordinatorSession

    from gridsched.drivers.simulated_platform import SimulatedPlatform
    from gridsched.sim.child import PARALLEL_TASKS

    gc.disable()
    began = time.process_time()
    controller = controller_of(system, tasks, scheduler)
    simulated = SimulatedPlatform(system.platform, path, cfg=(PARALLEL_TASKS,), log=("root.thresh:error",))
    session = CoordinatorSession(simulated, controller, truth)
    session.run()
    return time.process_time() - began, controller.now


def bare(path, trace) -> tuple[float, float]:
    """Return CPU seconds and the end of the same starts by hand; the process is spent."""
    from gridsched.drivers.simgrid_library import HOSTS, load_simgrid

    sg = load_simgrid()
    runs = trace.executions
    starts, ends, pstates = (runs[name].tolist() for name in ("start", "end", "pstate"))
    speed = trace.platform.speed[runs["host"], runs["pstate"]]
    flops = ((runs["end"] - runs["start"]) * speed).tolist()
    nodes = [trace.hosts_of(k).tolist() for k in range(len(runs))]
    # what ends at a time is waited for before what starts then
    moments = sorted([(t, 0, k) for k, t in enumerate(ends)] + [(t, 1, k) for k, t in enumerate(starts)])
    gc.disable()
    began = time.process_time()
    engine = sg.Engine(["bare", "--cfg=host/model:ptask_L07", "--log=root.thresh:error"])
    HOSTS.start()
    engine.load_platform(str(path))
    hosts = [engine.host_by_name(host.name) for host in trace.platform.hosts]
    activities = {}

    def lead() -> None:
        for moment, is_start, k in moments:
            if not is_start:
                activities.pop(k).wait()
                continue
            if engine.clock < moment - 1e-6:
                sg.this_actor.sleep_until(moment)
            mine = [hosts[h] for h in nodes[k]]
            for host in mine:
                host.pstate = pstates[k]
            activities[k] = sg.this_actor.exec_init(mine, [flops[k]] * len(mine), []).start()

    clock = engine.netzone_root.add_host("clock", "1f")
    clock.set_property("wattage_per_state", "0:0")
    clock.seal()
    clock.add_actor("lead", lead)
    engine.run()
    HOSTS.consumed_j(host.name for host in hosts)
    return time.process_time() - began, engine.clock


def in_a_process(function, *arguments):
    """Call a function in a fresh process, pinned to one CPU, whose engine goes with it."""
    reader, writer = multiprocessing.Pipe(duplex=False)

    def body() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        writer.send(function(*arguments))
        os._exit(0)  # without SimGrid's farewell

    process = multiprocessing.get_context("fork").Process(target=body)
    process.start()
    writer.close()
    answer = reader.recv()
    process.join()
    return answer


def measure(n_jobs: int, repeats: int) -> dict:
    """Return all figures of one trace."""
    system, tasks, truth = system_of(n_jobs)
    on_reference(*system_of(200))  # compiles
    taken: dict[str, list[float]] = {"reference": [], "simgrid": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "platform.xml"
        write_platform(system.platform, path, command="benchmarks/rigid_jobs.py")
        path.write_text(parallel_platform_xml(path) or "")
        for _ in range(repeats):
            seconds, trace = on_reference(system, tasks, truth)
            taken["reference"].append(seconds)
            for name, call in (("simgrid", (on_simgrid, path, system, tasks, truth)), ("bare", (bare, path, trace))):
                seconds, end = in_a_process(*call)
                taken[name].append(seconds)
                if abs(end - trace.horizon_s) > 1e-9 * trace.horizon_s:
                    raise SystemExit(f"{name} ends at {end} s, the reference at {trace.horizon_s}.")
    least = {name: min(seconds) for name, seconds in taken.items()}
    return {
        "jobs": n_jobs,
        "nodes": len(system.platform.hosts),
        "node_executions": int(trace.width.sum()),
        "mean_wait_s": float((trace.start_time_s - tasks.submit_time_s).mean()),
        "reference_jobs_per_s": n_jobs / least["reference"],
        "simgrid_jobs_per_s": n_jobs / least["simgrid"],
        "bare_jobs_per_s": n_jobs / least["bare"],
        "ratio": least["simgrid"] / least["bare"],
        "reference_over_bare": least["reference"] / least["bare"],
        "goals": GOALS,
        "cpu_s": taken,
    }


def shared_system_of(n_jobs: int) -> tuple:
    """Return the system whose jobs share nodes, the jobs and their true run times."""
    whole, tasks, truth = system_of(n_jobs)
    rng = np.random.default_rng(1)
    cores = 2 ** rng.integers(0, CORES.bit_length(), n_jobs)
    memory = cores * rng.integers(1024, 4096, n_jobs)
    hosts = tuple(
        Host(f"n{k}", whole.platform.hosts[0].pstates, cores=CORES, resources=(("memory_mb", 262_144),))
        for k in range(len(whole.platform))
    )
    every = tuple(range(len(hosts)))
    platform = Platform(hosts, (Cluster("nodes", every),), partitions=(Partition("all", every),))
    jobs = make_tasks(
        tasks.flops,
        tasks.submit_time_s * (cores.mean() / CORES),
        width=tasks.width,
        requested_time_s=tasks.requested_time_s,
        demand=np.column_stack([cores, memory]),
        resources=("cores", "memory_mb"),
    )
    return System(platform, RequestedTimes(platform, jobs), rules=Rules(placement="pack")), jobs, truth


def speed_and_memory(case: tuple, repeats: int) -> dict[str, float]:
    """Return jobs a second and MB of a case on the reference driver."""
    seconds = min(on_reference(*case)[0] for _ in range(repeats))
    tracemalloc.start()
    trace = on_reference(*case)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"jobs_per_s": len(trace.tasks) / seconds, "peak_mb": peak / 2**20}


def measure_shared(n_jobs: int, repeats: int) -> dict:
    """Return the figures of jobs that share nodes, and of the same jobs on whole ones."""
    cases = {"whole": system_of, "shared": shared_system_of}
    for system in cases.values():
        on_reference(*system(200))  # compiles
    return {"jobs": n_jobs, **{name: speed_and_memory(system(n_jobs), repeats) for name, system in cases.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--shared", action="store_true", help="print the figures of jobs that share nodes")
    arguments = parser.parse_args()
    if arguments.shared:
        print(json.dumps(measure_shared(arguments.jobs, arguments.repeats), indent=2))
        return
    figures = measure(arguments.jobs, arguments.repeats)
    print(
        "EASY, {jobs:,} jobs, {nodes:,} nodes: reference {reference_jobs_per_s:,.0f} jobs/s, "
        "SimGrid {simgrid_jobs_per_s:,.0f}, bare loop {bare_jobs_per_s:,.0f}, ratio {ratio:.2f}".format(**figures),
        flush=True,
    )
    results = {
        "gridsched": __version__,
        "python": machine.python_version(),
        "cpus": os.cpu_count(),
        "repeats": arguments.repeats,
        **figures,
    }
    table.record("rigid_jobs", results)


if __name__ == "__main__":
    main()
