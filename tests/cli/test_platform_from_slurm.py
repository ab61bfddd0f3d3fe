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


# A configuration of several files, and what is beside it.

INCLUDING = """SelectType=select/cons_tres
Include nodes.conf
NodeSet=ib Feature=ib
PartitionName=p Nodes=ib
"""
LOG = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|Partition|State\n1|0|60|2|3|3|p|COMPLETED\n"
TOPOLOGY = "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3\n"


@pytest.fixture
def site(tmp_path):
    """Write a configuration with an included file, a log of one job, and a study of them."""
    (tmp_path / "slurm.conf").write_text(INCLUDING)
    (tmp_path / "nodes.conf").write_text("NodeName=n[1-3] CPUs=2 Feature=ib\n")
    (tmp_path / "log.sacct").write_text(LOG)
    (tmp_path / "topology.conf").write_text(TOPOLOGY)
    study = 'name = "s"\ndriver = "reference"\nschedulers = ["fcfs"]\n'
    study += '[workload]\nfile = "log.sacct"\nslurm_conf = "slurm.conf"\n'
    (tmp_path / "study.toml").write_text(study)
    return tmp_path


def test_what_is_included_is_part_of_the_machine(gridsched, site):
    """Three nodes of a set, in runs and in the platform; a run's provenance has the included file."""
    words = ["--workload", site / "log.sacct", "--scheduler", "fcfs", "--driver", "reference", "--json"]
    found = gridsched("run", *words, "--slurm-conf", site / "slurm.conf")
    assert found.json["tasks_finished"] == 1
    assert str(site / "nodes.conf") in found.json["provenance"]["inputs"]
    assert gridsched("platform", "from-slurm", site / "slurm.conf", "-o", site / "m.xml").status == 0
    assert [host.name for host in read_platform(site / "m.xml").hosts] == ["n1", "n2", "n3"]


def test_a_study_needs_it_in_one_file(gridsched, site):
    """A store holds the file that the study names, and none that this includes."""
    found = gridsched("study", "run", site / "study.toml", "--store", site / "store")
    assert found.status == 2
    assert "nodes.conf" in found.err
    assert "includes" in found.err


def test_other_files_of_slurm_are_not_swallowed(refused, site):
    """A topology.conf, as a file of the machine and as what a log would be."""
    words = ("platform", "from-slurm", site / "slurm.conf", site / "topology.conf", "-o", site / "m.xml")
    assert "topology.conf of Slurm" in refused(*words)
    assert "topology.conf of Slurm" in refused("run", "--workload", site / "topology.conf", "--nodes", 2)


@pytest.mark.parametrize(
    "words",
    [("--platform", "slurm.conf"), ("--partitions", "slurm.conf", "--nodes", "3"), ("--workload", "slurm.conf")],
)
def test_a_configuration_in_the_place_of_another_file(refused, site, words):
    """The line names the option and the command that take it."""
    given = [str(site / word) if "." in word else word for word in words]
    log = [] if words[0] == "--workload" else ["--workload", site / "log.sacct"]
    said = refused("run", *log, "--scheduler", "fcfs", "--driver", "reference", *given)
    assert "--slurm-conf" in said
    assert "platform from-slurm" in said


@pytest.mark.parametrize(
    ("columns", "values", "named"),
    [
        ("Account|QOS|User", ["x|high|ann", "x|low|bob"], {"PriorityWeightQOS", "PriorityWeightFairshare"}),
        ("Account|QOS|User", ["x|high|ann", "x|high|ann"], set()),
        ("Account|QOS|User", ["x|high|ann", "x|low|ann"], {"PriorityWeightQOS"}),
        ("Account|User", ["x|ann", "x|bob"], {"PriorityWeightQOS", "PriorityWeightFairshare"}),
    ],
)
def test_weights_without_values(gridsched, site, columns, values, named):
    """Priorities of QOS and shares are in no file: a line for each in which jobs of the log differ."""
    weights = "PriorityType=priority/multifactor\nPriorityWeightQOS=1000\nPriorityWeightFairshare=500\n"
    (site / "slurm.conf").write_text(weights + INCLUDING)
    head = f"JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|Partition|State|{columns}"
    rows = [f"{k}|{k}|60|2|1|1|p|COMPLETED|{each}" for k, each in enumerate(values, start=1)]
    (site / "log.sacct").write_text("\n".join([head, *rows]) + "\n")
    words = ["--workload", site / "log.sacct", "--scheduler", "slurm", "--driver", "reference"]
    said = gridsched("run", *words, "--slurm-conf", site / "slurm.conf").err
    assert {key for key in ("PriorityWeightQOS", "PriorityWeightFairshare") if key in said} == named


@pytest.mark.parametrize(("constraint", "is_named"), [("", True), ("ib", False)])
def test_features_without_constraints(gridsched, site, constraint, is_named):
    """If no job of the log has a constraint, a line names the features of the nodes."""
    head = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|Partition|State|Constraints"
    (site / "log.sacct").write_text(f"{head}\n1|0|60|2|1|1|p|COMPLETED|{constraint}\n")
    words = ["--workload", site / "log.sacct", "--scheduler", "fcfs", "--driver", "reference"]
    said = gridsched("run", *words, "--slurm-conf", site / "slurm.conf").err
    assert ("features (ib)" in said) == is_named
