"""Profiles of drawn jobs: how long such jobs take, which jobs have them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gridsched import Scenario, run
from gridsched.cli.workload import workload_app
from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import InputError
from gridsched.model.job_profiles import PATTERNS
from gridsched.workloads.load import read_system_workload
from gridsched.workloads.traces.trace_options import TraceOptions

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="machine" routing="Full">
    <cluster id="nodes" prefix="n" suffix="" radical="0-15" speed="2Gf" bw="1GBps" lat="1us">
      <prop id="wattage_per_state" value="50:50:200"/>
    </cluster>
  </zone>
</platform>
"""
JOBS = """
kind = "rigid_jobs"
platform = "nodes.xml"
jobs = {jobs}
widest_job = 16
load = 0.01
seed = 5
[profiles.some]
jobs = {share}
communication = {communication}
pattern = "{pattern}"
rounds = 3
bandwidth = 1e9
"""


def written(folder: Path, **values: object) -> Path:
    """Write platform and generator; return the latter's path."""
    (folder / "nodes.xml").write_text(PLATFORM)
    path = folder / "jobs.toml"
    path.write_text(JOBS.format(**{"jobs": 20, "share": 1, "communication": 0.4, "pattern": "ring"} | values))
    return path


@pytest.mark.skipif(not is_installed(), reason="SimGrid finds the ways between hosts")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_job_alone_takes_the_drawn_time(tmp_path: Path, pattern: str):
    """Links of nodes are the only bounds, each way: but for latencies (two links of 1 us, three rounds)."""
    path = written(tmp_path, pattern=pattern)
    whole = read_system_workload(path)
    assert whole is not None
    assert whole.run_times is not None
    trace = run(Scenario(None, path, scheduler="fcfs", driver="reference")).trace
    n_alone = 0
    runs = trace.executions
    for task, start, end in zip(*(runs[name].tolist() for name in ("task", "start", "end")), strict=True):
        if np.count_nonzero((runs["start"] < end) & (runs["end"] > start)) == 1:
            n_alone += 1
            assert end - start == pytest.approx(whole.run_times.run_time(task, 0, 0), abs=1e-5)
    assert n_alone > 5  # the load is low


def test_shares_of_jobs_have_profiles(tmp_path: Path):
    """None, all, and about the share; runs without a network have the same jobs."""
    for share, least, most in ((0, 0, 0), (1, 400, 400), (0.25, 70, 130)):
        whole = read_system_workload(written(tmp_path, jobs=400, share=share))
        assert whole is not None
        assert whole.tasks.profile is not None
        assert least <= np.count_nonzero(whole.tasks.profile >= 0) <= most
        plain = read_system_workload(written(tmp_path, jobs=400, share=0, communication=1))
        assert plain is not None
        assert (plain.tasks.submit_time_s == whole.tasks.submit_time_s).all()
        assert (plain.tasks.requested_time_s == whole.tasks.requested_time_s).all()


def test_computing_and_bytes_add_up(tmp_path: Path):
    """Of 40 % in a ring: 60 % of the time at 2 Gflop/s, and 40 % at 1 GB/s from each part; one node only computes."""
    whole = read_system_workload(written(tmp_path))
    assert whole is not None
    assert whole.run_times is not None
    assert whole.tasks.profile is not None
    for task, k in enumerate(whole.tasks.profile.tolist()):
        width, time_s = whole.tasks.width.item(task), whole.run_times.run_time(task, 0, 0)
        steps = list(whole.tasks.profiles[k].steps(width))
        flops = sum(step.flops[0] for step in steps)
        sent = sum(step.size_bytes[step.source == 0].sum() for step in steps)
        share = 0.4 if width > 1 else 0.0
        assert flops == pytest.approx((1 - share) * time_s * 2e9)
        assert sent == pytest.approx(share * time_s * 1e9)


@pytest.mark.skipif(not is_installed(), reason="SimGrid finds the ways between hosts")
@pytest.mark.parametrize("pattern", ["ring", "all_to_all"])
def test_written_jobs_are_read_back(tmp_path: Path, pattern: str):
    """A table of jobs and one of profiles give the generator's run bit by bit; others have no profiles."""
    path, table, profiles = (
        written(tmp_path, share=0.6, pattern=pattern),
        tmp_path / "out.jobs.csv",
        "out.profiles.toml",
    )
    run_command = CliRunner().invoke
    made = run_command(workload_app, ["generate", str(path), "-o", str(table)])
    assert made.exit_code == 0, made.output
    assert profiles in made.output.replace("\n", "")
    options = TraceOptions(profiles=tmp_path / profiles)
    ours, other = (
        run(each).trace
        for each in (
            Scenario(None, path, scheduler="easy_backfilling", driver="reference"),
            Scenario(tmp_path / "nodes.xml", table, "easy_backfilling", driver="reference", trace=options),
        )
    )
    assert other.tasks.have_profiles
    assert ours.executions.tolist() == other.executions.tolist()
    assert ours.link_bytes == other.link_bytes
    with pytest.raises(InputError, match="exists already"):
        run_command(workload_app, ["generate", str(path), "-o", str(table)], catch_exceptions=False)
    made = run_command(workload_app, ["generate", str(path), "-o", str(tmp_path / "out.swf")])
    assert "*.jobs.csv keeps it" in made.output.replace("\n", " ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("jobs = 1\n", "jobs = 1.5\n"), "profiles .*some.*jobs"),
        (('pattern = "ring"', 'pattern = "star"'), "pattern"),
        (("rounds = 3", "rounds = 0"), "rounds"),
        (("rounds = 3", "turns = 3"), "turns"),
        (("communication = 0.4", "communication = inf"), "communication"),
        (("load = 0.01", "load = 0.01\nnodes = 16"), "beside platform"),
        (('platform = "nodes.xml"', ""), "set platform"),
        (("widest_job = 16", "widest_job = 32"), "16 nodes"),
        (("[profiles.some]", '[profiles.other]\ncommunication = 0.1\npattern = "ring"\n[profiles.some]'), "together"),
    ],
)
def test_what_contradicts_is_refused(tmp_path: Path, change: tuple[str, str], words: str):
    """One line with the key, and with what is allowed."""
    path = written(tmp_path)
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(InputError, match=words) as error:
        read_system_workload(path)
    assert "\n" not in str(error.value)
