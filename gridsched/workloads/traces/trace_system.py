"""The jobs of a log as tasks, with the machine that they run on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.errors import InputError, counted
from gridsched.model.platform import Platform, homogeneous_cluster
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.task_types import SystemWorkload
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.workloads.traces.dependencies import dependencies_of
from gridsched.workloads.traces.formats import NODE_SPEED, read_jobs
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.trace_options import MAX_NODES, NODE_POWER_W, OF_MACHINE, TraceOptions


@dataclass(frozen=True)
class TraceSystem:
    """What is run of a log, and what of it is not.

    Attributes
    ----------
    system : SystemWorkload
        Platform, rigid jobs with their requested times, and their true run times.
    jobs : JobTable
        The jobs that are run, and what was left out.
    """

    system: SystemWorkload
    jobs: JobTable


def trace_system(
    path: str | Path,
    options: TraceOptions,
    platform: Platform | None = None,
    *,
    placement: str = "pack",
    walltime: str = "ignore",
    network: str | None = None,
    roles: Callable[[Platform], Platform] = lambda platform: platform,
) -> TraceSystem:
    """Read a log, and make the machine that it runs on where none is given.

    Parameters
    ----------
    path : path
        As `read_jobs` reads it.
    options : TraceOptions
    platform : Platform, optional
        Run times of the log are those of its fastest host in P-state 0.
    placement : str
        How jobs that share nodes are laid on them, see `gridsched.model.room_on_nodes.PLACES`.
    walltime : {"ignore", "kill"}
        What becomes of jobs that run longer than they asked for, see `Rules`; where they go on, what they
        asked for is as long as they run.
    network : {"platform", "none"} or None
        Whether jobs that have profiles are run by them, so that their bytes cross the platform's network; None:
        if any sends bytes, and there is a platform.
    roles : callable
        Returns a machine that is made here with only those hosts computing that the run lets compute.

    Returns
    -------
    TraceSystem
        The first submission is at 0 s; jobs that are wider than every cluster are left out.

    Raises
    ------
    InputError
        If the file cannot be read, or nothing states how many nodes there are.
    """
    speed = NODE_SPEED if platform is None else speed_of(platform)
    conf = None
    if options.slurm_conf is not None:
        from gridsched.platform_io.slurm_conf import read_slurm_conf  # only then

        conf = read_slurm_conf(options.slurm_conf)
    if conf is not None and conf.shares_nodes:
        options = replace(options, allocation="cores")
    jobs = read_jobs(path, options, speed=speed, keeps_profiles=True)
    if len(jobs.profile) and network == "platform" and platform is None:
        raise InputError(f"{path}: its jobs send bytes over the network of a platform; add --platform FILE.")
    sends = network == "platform" or (network is None and platform is not None and jobs.send_bytes)
    jobs = jobs.with_profiles() if sends and len(jobs.profile) else jobs.without_profiles()
    if conf is not None:
        from gridsched.workloads.traces.conf_notes import missing_factors

        jobs = replace(jobs, notes=(*jobs.notes, *conf.notes, *missing_factors(conf, jobs)))
        options.refuse({"nodes"}, path, f"the nodes are those of {conf.path}")
    if platform is None and conf is not None:
        idle_w, busy_w = NODE_POWER_W
        platform = conf.platform(idle_w=idle_w, busy_w=busy_w, speed=speed)
        hosts = tuple(replace(host, **options.switching) for host in platform.hosts)
        platform = roles(replace(platform, hosts=hosts))
    elif platform is None:
        n_nodes = options.nodes or jobs.nodes_of_header
        if n_nodes is None:
            raise InputError(
                f"{path}: the log does not state how many nodes its machine has; add --nodes N, --platform FILE, or of "
                "Slurm --slurm-conf FILE."
            )
        if n_nodes > MAX_NODES:
            raise InputError(
                f"{path}: a machine of {n_nodes:,} nodes by its header; at most {MAX_NODES:,} are "
                "allowed. Give the number of processors of a node (--procs-per-node), or --nodes."
            )
        idle_w, busy_w = NODE_POWER_W
        platform = homogeneous_cluster(n_nodes, idle_w=idle_w, busy_w=busy_w, speed=speed, name=f"{n_nodes:,} nodes")
        cores = options.procs_per_node if options.allocation == "cores" else 1
        nodes = tuple(replace(host, cores=cores, **options.switching) for host in platform.hosts)
        platform = roles(replace(platform, hosts=nodes))
    else:
        options.refuse(OF_MACHINE, path, f"the nodes are those of {platform.name}")
        platform = platform if conf is None else conf.described(platform)
    columns: Mapping[str, Any] = {}
    constrained = "constraint" in jobs.attributes and any(host.features for host in platform.hosts)
    if options.shares or constrained or platform.cores.max(initial=1) > 1:
        from gridsched.platform_io.slurm_conf import CLOCK
        from gridsched.workloads.traces.sharing import share_nodes

        if conf is not None and len(jobs):
            clock = (CLOCK, repr(float(jobs.submit_time_s.min())))
            platform = replace(platform, queue_settings=(*platform.queue_settings, clock))
        shared = share_nodes(jobs, platform, options, placement, conf)
        jobs, platform, columns = shared.jobs.from_zero(), shared.platform, shared.columns
    else:
        widest = max((len(cluster.hosts) for cluster in platform.clusters), default=0)
        jobs = jobs.that_fit(widest).with_limits().from_zero()
    if options.requests == "exact":
        exact_s = np.minimum(jobs.run_time_s, jobs.asked_s) if walltime == "kill" else jobs.run_time_s
        jobs = replace(jobs, requested_time_s=exact_s, notes=(*jobs.notes, "jobs ask for just what they take"))
    elif options.requests == "twice":
        twice_s = np.maximum(jobs.asked_s, 2.0 * jobs.run_time_s)
        notes = (*jobs.notes, "jobs ask for at least twice what they take")
        jobs = replace(jobs, requested_time_s=twice_s, notes=notes)
    late = int(np.count_nonzero(jobs.run_time_s > jobs.asked_s))
    if late:
        fate = "are killed when they have (--walltime kill)"
        if walltime == "ignore":
            fate = "go on to their ends, and are taken to have asked for as long (--walltime ignore)"
        note = f"{counted(late, 'job')} ran longer than asked for: they {fate}"
        jobs = replace(jobs, notes=(*jobs.notes, note))
    system, notes = _rigid_system(jobs, platform, columns, kills=walltime == "kill")
    jobs = replace(jobs, notes=(*jobs.notes, *notes))
    return TraceSystem(system, jobs)


def rigid_system(jobs: JobTable, platform: Platform) -> SystemWorkload:
    """Return jobs as parallel tasks on a platform, with all that a scheduler may know of them.

    Those without a time limit are planned as in `JobTable.with_limits`.

    Parameters
    ----------
    jobs : JobTable
        Their run times, which schedulers do not know, are those of the platform's fastest host
        in P-state 0.
    platform : Platform
    """
    return _rigid_system(jobs.with_limits(), platform, {}, kills=False)[0]


def _rigid_system(
    jobs: JobTable, platform: Platform, columns: Mapping[str, Any], *, kills: bool
) -> tuple[SystemWorkload, tuple[str, ...]]:
    """Return the same, and lines on what jobs wait for.

    `columns` are those of jobs that share nodes; if a request that is too short `kills` its job, a policy
    does not expect it to run longer.
    """
    dependencies, missing, awaits_others = dependencies_of(jobs.after, jobs.after_arrays, jobs.lines)
    notes, holds = list[str](), None
    if missing:
        notes.append(f"{missing:,} dependencies on jobs that are left out or come later: no job waits for them")
    if jobs.holds is not None:
        holds, of_holds = jobs.holds.of_run(jobs.submit_time_s, awaits_others)
        notes += of_holds
    estimate_s = jobs.asked_s if kills else jobs.estimate_s
    tasks = make_tasks(
        estimate_s * speed_of(platform),
        jobs.submit_time_s,
        labels=jobs.ids,
        **{"width": jobs.width, **columns},
        requested_time_s=estimate_s,
        attributes={name: texts.tolist() for name, texts in jobs.attributes.items()},
        dependencies=dependencies,
        holds=holds,
        profile=jobs.profile if len(jobs.profile) else None,
        profiles=jobs.profiles,
        name=jobs.name,
    )
    run_times = LoggedRunTimes(platform, jobs.run_time_s, jobs.power_w if len(jobs.power_w) else None)
    return SystemWorkload(platform, tasks, None, run_times=run_times, calendar=jobs.calendar), tuple(notes)


def speed_of(platform: Platform) -> float:
    """Return the speed of the fastest host in P-state 0 [flop/s]; 0 without hosts."""
    return float(platform.speed[:, 0].max(initial=0.0))


@dataclass(frozen=True)
class SerialTasks:
    """What becomes of a log for schedulers of serial tasks.

    Attributes
    ----------
    tasks : Tasks
    jobs : JobTable
        The same jobs, and what was left out.
    """

    tasks: Tasks
    jobs: JobTable


def serial_tasks(jobs: JobTable, speed: float) -> SerialTasks:
    """Return the jobs of one node as tasks; the others are left out.

    Parameters
    ----------
    jobs : JobTable
    speed : float
        Speed of the log's machine [flop/s]: a task has as many flops as its job could do in its run
        time.

    Returns
    -------
    SerialTasks
        The first submission is at 0 s. Requested times go: a bag's sizes are known.
    """
    table = jobs.without(jobs.width > 1, "wider than one node, and so no serial task").from_zero()
    tasks = make_tasks(table.run_time_s * speed, table.submit_time_s, labels=table.job.tolist(), name=table.name)
    if len(table.names):
        note = "ids that are not numbers are not kept: tasks have the numbers of their lines"
        table = replace(table, notes=(*table.notes, note))
    return SerialTasks(tasks, table)
