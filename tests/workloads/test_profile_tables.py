"""Tables of profiles, and the column of a table of jobs that names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import InputError
from gridsched.model.job_profiles import PATTERNS, Delay, ParallelWork, Sequence, grid_of, messages_of
from gridsched.workloads.traces.formats import read_jobs
from gridsched.workloads.traces.profile_table import read_profiles, write_profiles
from gridsched.workloads.traces.trace_options import TraceOptions

TABLE = """
[[profile]]
name = "ring"
flops = 1e9
pattern = "ring"
message_bytes = 5e8
iterations = 2

[[profile]]
name = "sleep"
delay_s = 4.0

[[profile]]
name = "both"
sequence = ["ring", "sleep"]
repeat = 2

[[profile]]
name = "two parts"
flops = [1e9, 3e9]
matrix = [0, 1e6, 0, 0]
"""
JOBS = """id,submit_time_s,run_time_s,nodes,requested_time_s,profile
1,0,,2,20,ring
2,0,7,2,20,
3,1,,2,50,both
4,1,,3,50,two parts
5,1,,3,50,rign
"""


def written(folder: Path, name: str, text: str) -> Path:
    """Write a file; return its path."""
    path = folder / name
    path.write_text(text)
    return path


def test_a_table_is_read(tmp_path: Path):
    """Work, a delay, a sequence of those before it."""
    profiles = read_profiles(written(tmp_path, "profiles.toml", TABLE))
    ring = ParallelWork(flops=(1e9,), pattern="ring", message_bytes=5e8, iterations=2)
    assert profiles["ring"] == ring
    assert profiles["both"] == Sequence((ring, Delay(4.0)), 2)
    assert profiles["both"].computing_s(2, 1e9) == 12.0
    assert [step.delay_s for step in profiles["both"].steps(2)] == [0.0, 4.0, 0.0, 4.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[profile]]\nname = "a"\ndelay_s = -1.0', "delay_s"),
        ('[[profile]]\nname = "a"\nflop = 1.0', "flop"),
        ('[[profile]]\nname = "a"\nmessage_bytes = 1.0', "pattern"),
        ('[[profile]]\nname = "a"\npattern = "star"', "pattern"),
        ('[[profile]]\nname = "a"\nread_bytes = 1.0', "storage"),
        ('[[profile]]\nname = "a"\nsequence = ["a"]', "'a'"),
        ('[[profile]]\nname = "a"\ndelay_s = 1.0\nflops = 1.0', "delay_s and flops"),
        ('[[profile]]\nname = "a"\nrepeat = 2', "repeat"),
        ('[[profile]]\nname = "a"\n[[profile]]\nname = "a"', "name"),
        ('[[profile]]\nname = "a"\ndelay_s = 1.0\n' + "".join(
            f'[[profile]]\nname = "{k}"\nsequence = ["{"a" if k == 0 else k - 1}"]\nrepeat = 1000\n' for k in range(3)
        ), "steps"),
        ('[[profile]]\nname = "a"\ndelay_s = 1.0\n' + "".join(
            f'[[profile]]\nname = "{k}"\nsequence = ["{"a" if k == 0 else k - 1}"]\n' for k in range(3000)
        ), "50"),
        ("profile = 3", "[[profile]]"),
        ("x = 3", "x"),
    ],
)  # fmt: skip
def test_wrong_tables_are_one_line(tmp_path: Path, text: str, words: str):
    """The message has the file and what is wrong."""
    with pytest.raises(InputError) as refused:
        read_profiles(written(tmp_path, "profiles.toml", text))
    assert words in str(refused.value)
    assert "profiles.toml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_jobs_name_profiles(tmp_path: Path):
    """1 Gflop twice and 1 GB over links of 1 GB/s in 2 s; a job without profile runs 7 s; two do not fit."""
    if not is_installed():
        pytest.skip("SimGrid is not there")
    platform = written(tmp_path, "nodes.xml", """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
  <cluster id="A" prefix="a" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="5us"><prop id="wattage_per_state"
    value="50:70:200"/></cluster></zone></platform>""")  # fmt: skip
    options = {"profiles": str(written(tmp_path, "profiles.toml", TABLE))}
    jobs = written(tmp_path, "x.jobs.csv", JOBS)

    result = run(Scenario(platform, jobs, "fcfs", trace=TraceOptions(**options), timeout_s=60.0))
    runs = result.trace.executions
    assert (runs["end"] - runs["start"]).tolist() == pytest.approx([2 + 1e-5, 7.0, 12 + 2e-5])
    text = " ".join(result.scenario.warnings)
    assert "made for 2 parts" in text
    assert "Did you mean 'ring'" in text
    without = run(Scenario(platform, jobs, "fcfs", trace=TraceOptions(**options), network="none"))
    runs = without.trace.executions
    assert (runs["end"] - runs["start"]).tolist() == pytest.approx([2.0, 7.0, 12.0])


def test_a_table_with_profiles_needs_no_column_of_run_times(tmp_path: Path):
    """Each part computes 2 Gflop at 1 Gflop/s, once, or twice with 4 s of sleep each; a job of none has no run time."""
    options = TraceOptions(profiles=written(tmp_path, "profiles.toml", TABLE))
    text = "id,submit_time_s,nodes,requested_time_s,energy_j,profile\n1,0,2,20,9,ring\n2,0,2,50,,both\n3,0,2,20,,\n"
    jobs = read_jobs(written(tmp_path, "a.jobs.csv", text), options, speed=1e9)
    assert (jobs.job.tolist(), jobs.run_time_s.tolist()) == ([1, 2], [2.0, 12.0])
    (left_out,) = jobs.dropped
    assert (left_out.count, left_out.reason) == (1, "no run time greater than 0 s")
    with pytest.raises(InputError, match="run_time_s"):
        read_jobs(written(tmp_path, "b.jobs.csv", text.replace("profile", "prof")), options)


@pytest.mark.parametrize("profile", ["ring", "computes"])
@pytest.mark.parametrize("nodes", ["0", "1e10", "1e15"])
def test_numbers_of_nodes_that_no_machine_has(tmp_path: Path, profile: str, nodes: str):
    """No memory is taken for so many parts: such jobs are left out, or read as what they compute."""
    table = TABLE + '[[profile]]\nname = "computes"\ntotal_flops = 1e9\n'
    options = TraceOptions(profiles=written(tmp_path, "profiles.toml", table))
    rows = [f"{k},0,,2,20,ring\n" for k in range(3)]
    header = JOBS.splitlines(keepends=True)[0]
    jobs = read_jobs(written(tmp_path, "a.jobs.csv", f"{header}{''.join(rows)}9,0,,{nodes},20,{profile}\n"), options)
    is_read = profile == "computes" and nodes == "1e10"
    assert sorted(jobs.width.tolist()) == [2, 2, 2] + [10**10] * is_read


def test_grids_are_as_even_as_divisors_allow():
    """Their sides multiply to the parts."""
    assert [grid_of(12, 2), grid_of(64, 3), grid_of(7, 2), grid_of(1, 3)] == [(3, 4), (4, 4, 4), (1, 7), (1, 1, 1)]
    for parts in range(1, 200):
        for dimensions in (1, 2, 3):
            assert np.prod(grid_of(parts, dimensions)) == parts


@pytest.mark.parametrize("pattern", PATTERNS)
def test_messages_of_patterns(pattern: str):
    """No part sends to itself or twice to another; in a grid of 3 x 4 there are 17 neighbors both ways."""
    source, target = messages_of(pattern, 12)
    assert (source != target).all()
    assert len({*zip(source.tolist(), target.tolist(), strict=True)}) == len(source)
    expected = {
        "all_to_all": 132,
        "ring": 12,
        "neighbours_1d": 22,
        "neighbours_2d": 34,
        "neighbours_3d": 40,
        "one_to_all": 11,
        "all_to_one": 11,
    }
    assert len(source) == expected[pattern]
    assert not len(messages_of(pattern, 1)[0])


def test_profiles_are_written_and_read_back(tmp_path: Path):
    """Any kind of profile; equal ones, and those within sequences, are written once."""
    ring = ParallelWork(flops=(2e9,), pattern="ring", message_bytes=1e6 / 3, iterations=7)
    matrix = ParallelWork(flops=(1.0, 2.0), matrix=(0.0, 1.5, 2.5, 0.0), read_bytes=1.0, write_bytes=2.0, storage="n1")
    shared = ParallelWork(total_flops=1e9, pattern="all_to_all", total_bytes=8.0, shared_bytes=9.0)
    made = [ring, Delay(0.0), Sequence((ring, Sequence((matrix, shared), 3), Delay(1.25)), 2), ring, matrix]
    names = write_profiles(made, tmp_path / "profiles.toml")
    again = read_profiles(tmp_path / "profiles.toml")
    assert [again[name] for name in names] == made
    assert len(again) == 7
    with pytest.raises(InputError, match="exists already"):
        write_profiles(made, tmp_path / "profiles.toml")
