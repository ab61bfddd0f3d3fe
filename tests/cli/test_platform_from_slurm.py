"""`gridsched platform from-slurm`: what it writes serves a run as the configuration itself does."""

from __future__ import annotations

import shlex

import pytest
from cli_cases import ROOT

from gridsched.metrics.resource_energy import idle_power_w
from gridsched.platform_io.xml_reader import read_platform

LOG, CONF, SCONTROL = (ROOT / "examples" / name for name in ("live_slurm.sacct", "live_slurm.conf", "scontrol.txt"))
RUN = ("run", "--workload", LOG, "--scheduler", "easy_backfilling", "--driver", "reference", "--json")


def test_a_run_on_it_is_as_on_the_configuration(gridsched, tmp_path):
    """Nodes in the same order with the same memory and features, partitions with the same limits and tiers."""
    platform, table = tmp_path / "m.xml", tmp_path / "m.toml"
    assert gridsched("platform", "from-slurm", CONF, "-o", platform).status == 0
    ours = gridsched(*RUN, "--platform", platform, "--allocation", "cores", "--partitions", table).json
    theirs = gridsched(*RUN, "--slurm-conf", CONF).json
    for metric in ("makespan_s", "energy_model_j", "mean_waiting_time_s"):
        assert ours[metric] == theirs[metric]


def test_power_and_speed_are_given_by_name(gridsched, tmp_path):
    """The last pattern that fits counts; what is given to no node is reported."""
    platform = tmp_path / "m.xml"
    words = ("--power", "95:110:350", "--power", "gpu*=180:200:900", "--speed", "2Gf", "--partitions", tmp_path / "p")
    result = gridsched("platform", "from-slurm", SCONTROL, "-o", platform, *words)
    assert result.status == 0
    assert "typical" not in result.out
    hosts = read_platform(platform).hosts
    assert [(each.name, each.pstates[0].speed, each.pstates[0].busy_w) for each in hosts] == [
        ("n1", 2e9, 350.0),
        ("n2", 2e9, 350.0),
        ("gpu1", 2e9, 900.0),
    ]
    assert dict(hosts[2].resources) == {"memory_mb": 512_000, "gpu": 4, "gpu:a100": 4}
    assert (tmp_path / "p").read_text().count("[[partition]]") == 3


def test_the_command_in_the_file_makes_it_again(gridsched, tmp_path):
    """Files and repeated options are words of their own."""
    platform, again = tmp_path / "m.xml", tmp_path / "again.xml"
    words = ("--power", "95:110:350", "--power", "gpu*=180:200:900", "--speed", "2Gf")
    assert gridsched("platform", "from-slurm", SCONTROL, "-o", platform, *words).status == 0
    text = platform.read_text().replace("-\\-", "--")
    line = next(line for line in text.splitlines() if line.startswith("gridsched platform from-slurm"))
    command = [again if word == str(platform) else word for word in shlex.split(line)[1:]]
    assert gridsched(*command).status == 0
    assert again.read_text().partition("<platform")[2] == platform.read_text().partition("<platform")[2]


def test_power_of_units_is_of_the_nodes_that_have_them(gridsched, tmp_path):
    """4 GPUs of 25 W, and 500 GiB of 0.1 W: 150 W beside the cores of gpu1; the others have 125 GiB of 0.2 W."""
    platform = tmp_path / "m.xml"
    words = ("--unit-power", "gpu:25:300,memory:0.2:0.4", "--unit-power", "gpu*=gpu:25:300,memory:0.1:0.4")
    assert gridsched("platform", "from-slurm", SCONTROL, "-o", platform, *words).status == 0
    n1, _, gpu1 = read_platform(platform).hosts
    assert gpu1.unit_power == (("gpu", 25.0, 300.0), ("memory_mb", 0.1, 0.4))
    assert n1.unit_power == (("memory_mb", 0.2, 0.4),)
    assert (idle_power_w(n1), idle_power_w(gpu1)) == (25.0, 150.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((SCONTROL, "--unit-power", "tpu:1:2"), "tpu"),
        ((SCONTROL, "--unit-power", "n*=gpu:1:2"), "gpu"),
        ((SCONTROL, "--unit-power", "x*=gpu:1:2"), "x*"),
        ((SCONTROL, "--unit-power", "gpu:1"), "NAME:IDLE:BUSY"),
        ((ROOT / "README.md",), "NodeName"),
        ((SCONTROL, "--power", "x*=1:2:3"), "x*"),
        ((SCONTROL, "--power", "none"), "--power"),
        ((SCONTROL, "--speed", "fast"), "--speed"),
        ((SCONTROL, "--partitions", "m.xml"), "m.xml"),
    ],
)
def test_what_is_refused(refused, words, said):
    """In one line, and nothing is written."""
    assert said in refused("platform", "from-slurm", *words, "-o", "m.xml")


def test_nothing_is_written_where_a_partition_is_refused(refused, tmp_path):
    """A table of partitions takes job factors up to Slurm's own limit."""
    (tmp_path / "slurm.conf").write_text("NodeName=a CPUs=4\nPartitionName=p Nodes=a PriorityJobFactor=70000\n")
    assert "job_factor" in refused("platform", "from-slurm", tmp_path / "slurm.conf", "-o", tmp_path / "m.xml")
    assert [each.name for each in tmp_path.iterdir()] == ["slurm.conf"]
