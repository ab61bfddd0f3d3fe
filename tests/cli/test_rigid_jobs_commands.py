"""The commands on generated parallel jobs: their log, and how policies let them wait."""

from __future__ import annotations

import numpy as np

from gridsched.workloads.rigid_jobs import RigidJobs, draw_rigid_jobs
from gridsched.workloads.traces.swf import read_swf


def test_the_command_writes_a_log(gridsched, write, tmp_path):
    """What is read back is what was drawn; nothing else can be written."""
    toml = write("jobs.toml", 'kind = "rigid_jobs"\njobs = 40\nseed = 2\n')
    log = tmp_path / "jobs.swf"
    outcome = gridsched("workload", "generate", toml, "-o", log)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.strip() == f"Wrote {log}: 40 jobs."
    back, drawn = read_swf(log), draw_rigid_jobs(RigidJobs(jobs=40, seed=2))
    for name in ("job", "submit_time_s", "run_time_s", "width", "requested_time_s"):
        assert np.array_equal(getattr(back, name), getattr(drawn, name)), name
    assert back.nodes_of_header == 1024
    outcome = gridsched("workload", "generate", toml, "-o", tmp_path / "jobs.csv")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert "jobs are written as .swf" in outcome.err


def test_the_commands_run_and_compare_policies_on_it(gridsched, write, tmp_path):
    """How jobs waited stands in the tables; serial policies are refused in one line."""
    toml = write("jobs.toml", 'kind = "rigid_jobs"\njobs = 60\nnodes = 16\nwidest_job = 16\n')
    options = ("--workload", toml, "--driver", "reference")
    plot = tmp_path / "bars.svg"
    outcome = gridsched("compare", *options, "--schedulers", "fcfs,easy_backfilling", "--plot", plot)
    assert (outcome.status, outcome.err) == (0, "")
    assert "bounded" in outcome.out
    assert "sation" in outcome.out
    assert "Mean waiting time" in plot.read_text()
    alone = gridsched("run", *options, "--scheduler", "fcfs").out
    assert "utilisation" in alone
    assert "mean bounded slowdown" in alone
    refused = gridsched("run", *options, "--scheduler", "mct")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
