"""Rigid parallel jobs drawn at a load, on one homogeneous cluster or on the nodes of a platform file.

Poisson arrivals, lognormal run times and sizes in powers of two: the usual synthetic trace, simple
enough that other simulators draw the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from gridsched.errors import InputError, counted
from gridsched.model.limits import AtLeastZero, Count, Positive, PositiveRange, Seed
from gridsched.model.platform import Platform, homogeneous_cluster
from gridsched.model.rules import Rules
from gridsched.model.seeds import random_stream
from gridsched.model.task_types import SystemWorkload
from gridsched.platform_io.xml_reader import read_platform
from gridsched.workloads.drawn_profiles import DrawnProfiles, check_shares, drawn_profiles
from gridsched.workloads.generator_keys import MAX_TASKS, SystemKeys
from gridsched.workloads.traces.formats import NODE_SPEED, check_written, write_jobs
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.tables import files_of_table
from gridsched.workloads.traces.trace_options import NODE_POWER_W
from gridsched.workloads.traces.trace_system import rigid_system, speed_of

#: Power of a node, idle and computing, where no keys give it [W]: as for logs.
_IDLE_W, _BUSY_W = NODE_POWER_W


def _power_of_two(nodes: int) -> int:
    """Return a number of nodes; `ValueError` if it is not a power of two."""
    if nodes & (nodes - 1):
        raise ValueError("it should be a power of two")
    return nodes


class RigidJobs(SystemKeys):
    """Parameters of the jobs and of their cluster; the defaults are those of our benchmark.

    Attributes
    ----------
    jobs : int
    nodes : int
        Nodes of the cluster.
    load : float
        Node-seconds that arrive in a second, over `nodes`: the mean run time times width of the
        drawn jobs over the mean time between arrivals times nodes.
    run_time_median_s, run_time_sigma : float
        Median [s] and sigma of the lognormal distribution of run times, which are rounded up to
        whole seconds.
    longest_run_time_s : float
        Longer ones are cut to this [s].
    widest_job : int
        Sizes are the powers of two up to this, all equally likely.
    estimate_factor : (float, float)
        What users ask for is the run time times a uniform draw from here, rounded up to whole
        seconds.
    idle_w, busy_w : float
        Power of a node on which nothing runs, and of one that computes [W].
    platform : path or None
        SimGrid platform (XML) whose hosts are the nodes, in the place of `nodes`, `idle_w` and `busy_w`.
    profiles : tuple of (str, DrawnProfile)
        What shares of the jobs do (``[profiles.NAME]``); the others only compute. They need a `platform`.
    """

    kind: Literal["rigid_jobs"] = "rigid_jobs"
    seed: Seed = 0
    replicate: Seed = 0
    jobs: int = Field(default=10_000, ge=1, le=MAX_TASKS)
    nodes: Count = 1024
    load: Positive = 0.9
    run_time_median_s: Positive = 1800.0
    run_time_sigma: float = Field(default=1.2, ge=0, le=10)
    longest_run_time_s: Annotated[float, Field(ge=1, le=1e12)] = 86_400.0
    widest_job: Annotated[Count, AfterValidator(_power_of_two)] = 256
    estimate_factor: PositiveRange = (1.0, 5.0)
    idle_w: AtLeastZero = _IDLE_W
    busy_w: AtLeastZero = _BUSY_W
    platform: Path | None = None
    profiles: DrawnProfiles = ()

    @property
    def rules(self) -> Rules:
        """The rules of the run: the usual ones."""
        return Rules()

    def written(self, output: Path) -> list[Path]:
        """Return the log that is written, and its profiles; `InputError` if its name is of no format."""
        check_written(output)
        return list(files_of_table(output)) if self._keeps_profiles(output) else [output]

    def _keeps_profiles(self, output: Path) -> bool:
        """Whether there are profiles, and a log of this name can name them."""
        return bool(self.profiles) and output.name.lower().endswith(".jobs.csv")

    def write(self, output: Path, *, force: bool) -> list[str]:
        """Draw the jobs and write them as a log."""
        jobs, lines = draw_rigid_jobs(self), []
        if self._keeps_profiles(output):
            lines = [f"Wrote {files_of_table(output)[1]}: what they compute and send (--profiles)."]
        elif self.profiles:
            jobs = replace(jobs, profile=np.zeros(0, dtype=np.int64), profiles=())
            lines = [
                "What jobs send is not written, only their run times without contention; a file *.jobs.csv keeps it."
            ]
        write_jobs(jobs, output, force=force)
        return [f"Wrote {output}: {counted(len(jobs), 'job')}.", *lines]

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Refuse keys that contradict each other."""
        self.check_files(replaced={"platform": {"nodes", "idle_w", "busy_w"}})
        check_shares(self.profiles)
        if self.profiles and self.platform is None:
            raise InputError("profiles has no effect without a platform, whose network jobs use: set platform, too.")
        if self.widest_job > self.nodes and self.platform is None:
            raise InputError(
                f"widest_job is {self.widest_job}; the cluster has {counted(self.nodes, 'node')}. It must not "
                "exceed them."
            )
        if self.estimate_factor[0] < 1:
            raise InputError(
                f"estimate_factor begins with {self.estimate_factor[0]:g}; estimates are upper "
                "bounds of the run times, so it must be at least 1."
            )
        if self.busy_w < self.idle_w:
            raise InputError(f"busy_w is {self.busy_w:g}; it must be at least idle_w, {self.idle_w:g} W.")
        return self


def draw_rigid_jobs(spec: RigidJobs) -> JobTable:
    """Draw the jobs, of which the first arrives at 0 s.

    Parameters
    ----------
    spec : RigidJobs
        Jobs of equal seed and replicate differ in the times between arrivals alone where their
        `load` differs.

    Returns
    -------
    JobTable

    Raises
    ------
    InputError
        If its platform cannot be read or does not serve.
    """
    return _sampled(spec, _platform(spec))


def _sampled(spec: RigidJobs, platform: Platform) -> JobTable:
    """Return the jobs for the nodes of a platform."""
    rng, n, nodes = random_stream(spec.seed, "tasks", spec.replicate), spec.jobs, len(platform)
    length = rng.lognormal(math.log(spec.run_time_median_s), spec.run_time_sigma, n)
    run = np.clip(np.ceil(length), 1.0, np.floor(spec.longest_run_time_s))
    width = 2 ** rng.integers(0, spec.widest_job.bit_length(), n)
    requested = np.ceil(run * rng.uniform(*spec.estimate_factor, n))
    mean_gap_s = (run * width).mean() / (spec.load * nodes)
    gaps = random_stream(spec.seed, "arrivals", spec.replicate).exponential(mean_gap_s, n - 1)
    jobs = JobTable(
        np.arange(1, n + 1),
        np.cumsum([0.0, *gaps]),
        run,
        width,
        requested,
        name=f"rigid jobs (seed {spec.seed}, replicate {spec.replicate})",
        header={"MaxNodes": str(nodes), "MaxProcs": str(nodes)},
    )
    if not spec.profiles:
        return jobs
    draws = random_stream(spec.seed, "profiles", spec.replicate)
    profile, profiles = drawn_profiles(spec.profiles, draws, run, width, speed_of(platform))
    return replace(jobs, profile=profile, profiles=profiles)


def _platform(spec: RigidJobs) -> Platform:
    """Return the machine of the jobs; `InputError` if that of a file cannot be theirs."""
    if spec.platform is None:
        return homogeneous_cluster(
            spec.nodes, idle_w=spec.idle_w, busy_w=spec.busy_w, speed=NODE_SPEED, name=f"{spec.nodes:,} nodes"
        )
    platform = read_platform(spec.platform)
    widest = max(len(cluster.hosts) for cluster in platform.clusters)
    if spec.widest_job > widest:
        raise InputError(
            f"widest_job is {spec.widest_job}; the largest cluster of {platform.name} has {counted(widest, 'node')}. "
            "It must not exceed them."
        )
    if platform.cores.max() > 1:
        host = platform.hosts[int(platform.cores.argmax())]
        raise InputError(
            f"{platform.name}: host {host.name!r} has {counted(host.cores, 'core')}; drawn jobs take whole nodes: "
            "describe each node as a host of one core, with the speed of all its cores."
        )
    return platform


def generate_rigid_jobs(spec: RigidJobs) -> SystemWorkload:
    """Draw rigid jobs and return them with their machine.

    Schedulers know the requested times; how long the jobs really take is hidden from them.

    Parameters
    ----------
    spec : RigidJobs

    Raises
    ------
    InputError
        If its platform cannot be read or does not serve.
    """
    platform = _platform(spec)
    return replace(rigid_system(_sampled(spec, platform), platform), platform_file=spec.platform)
