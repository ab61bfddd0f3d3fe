"""A ``slurm.conf``: nodes, partitions, settings, and what is passed over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gridsched.errors import InputError
from gridsched.model.constraints import Constraint, understood
from gridsched.platform_io.slurm_conf import read_slurm_conf
from gridsched.workloads.traces.partitions import partition_table

CONF = """
ClusterName=small   # a comment
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityWeightAge=1000
SchedulerParameters=bf_interval=20,bf_max_job_user=3,kill_invalid_depend
Include /etc/secret.conf
NodeName=DEFAULT RealMemory=48000 Sockets=2 CoresPerSocket=6 \\
    ThreadsPerCore=1 State=UNKNOWN
nodename=n[1-2,10] Feature=CPU-N,IB Weight=2
NodeName=g1 CPUs=24 Gres=gpu:a100:2(S:0-1),gpu:v100:1 Feature=GPU MemSpecLimit=5
NodeName=old[1-3] State=DOWN
PartitionName=DEFAULT MaxTime=2-0
PartitionName=batch Nodes=ALL PriorityTier=2 MaxNodes=3
PartitionName=short Nodes=n[1-2] MaxTime=30 Default=YES PriorityJobFactor=7
PartitionName=gone Nodes=n1 State=DOWN
"""


def conf(folder: Path, text: str = CONF):
    """Return what is read of a text."""
    path = folder / "slurm.conf"
    path.write_text(text)
    return read_slurm_conf(path)


def test_nodes_partitions_and_settings(tmp_path):
    """Defaults hold for what follows; lower weights come first, then names as numbers have them."""
    found = conf(tmp_path)
    assert [node.name for node in found.nodes] == ["g1", "n1", "n2", "n10"]
    assert [node.cores for node in found.nodes] == [24, 12, 12, 12]
    assert dict(found.nodes[0].resources) == {"memory_mb": 48000, "gpu": 3, "gpu:a100": 2, "gpu:v100": 1}
    assert found.nodes[1].features == ("CPU-N", "IB")
    short, batch = found.partitions
    assert (short.name, short.max_time_s, short.job_factor, short.tier) == ("short", 1800, 7, 1)
    assert (batch.nodes, batch.max_time_s, batch.max_nodes, batch.tier) == (("n1", "n2", "n10", "g1"), 172_800, 3, 2)
    assert found.settings["PriorityWeightAge"] == "1000"
    assert found.shares_nodes


def test_what_is_passed_over_is_counted_in_one_line(tmp_path):
    """Other lines, parameters that no scheduler here knows, keys, nodes that are down; no other file is read."""
    (note,) = conf(tmp_path).notes
    for words in ("2 lines", "Include", "kill_invalid_depend", "memspeclimit", "3 nodes"):
        assert words in note


def test_memory_counts_where_it_is_consumed(tmp_path):
    """CR_Core alone does not allocate memory; select/linear gives whole nodes."""
    found = conf(tmp_path, CONF.replace("CR_Core_Memory", "CR_Core"))
    assert dict(found.nodes[0].resources) == {"gpu": 3, "gpu:a100": 2, "gpu:v100": 1}
    assert not conf(tmp_path, CONF.replace("cons_tres", "linear")).shares_nodes


def test_a_platform_keeps_its_power(tmp_path):
    """Its hosts get features, weights and what jobs share; it needs every node, with as many cores."""
    found = conf(tmp_path, "NodeName=n[0-1] CPUs=1 Feature=IB Weight=3\nPartitionName=all Nodes=ALL\n")
    named = found.platform(idle_w=1.0, busy_w=2.0, speed=1e9)
    own = replace(named, hosts=(replace(named.hosts[0], name="x"), named.hosts[1]))
    assert [host.name for host in named.hosts] == ["n0", "n1"]
    with pytest.raises(InputError, match="n0"):
        found.described(own)
    again = found.described(named)
    assert again.hosts[1].features == ("IB",)
    assert again.hosts[1].weight == 3
    wrong = conf(tmp_path, "NodeName=n[0-1] CPUs=2\nPartitionName=all Nodes=ALL\n")
    with pytest.raises(InputError, match="2 CPUs"):
        wrong.described(named)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("PartitionName=a Nodes=ALL\n", "no nodes"),
        ("NodeName=a\n", "no partitions"),
        ("NodeName=a\nPartitionName=p Nodes=b\n", "no partition is up"),
        ("NodeName=a CPUs=99999999999\nPartitionName=p Nodes=a\n", "line 1.*99,999,999,999 CPUs"),
        ("NodeName=a CPUs=two\nPartitionName=p Nodes=a\n", "line 1.*cpus"),
        ("NodeName=a Gres=gpu:x:y\nPartitionName=p Nodes=a\n", "line 1.*gres"),
        ("NodeName=a Gres=tmp:9P\nPartitionName=p Nodes=a\n", "line 1.*gres.*8P"),
        ("NodeName=a\nPartitionName=p Nodes=a MaxTime=soon\n", "MaxTime"),
        ("NodeName=n[1-9999999]\nPartitionName=p Nodes=ALL\n", "names"),
        ("NodeName=n[1-900000] State=DOWN\n" * 5 + "PartitionName=p Nodes=a\n", "line 5.*4,500,000 names"),
        ("NodeName=a Feature=x;y\nPartitionName=p Nodes=a\n", "feature"),
    ],
)
def test_what_is_refused(tmp_path, text, words):
    """In one line that names the place."""
    with pytest.raises(InputError, match=words):
        conf(tmp_path, text)


@pytest.mark.parametrize(
    ("gres", "has"),
    [
        ("gpu", {"gpu": 1}),
        ("gpu:tesla", {"gpu": 1, "gpu:tesla": 1}),
        ("gpu:1g.5gb:7,gpu:2", {"gpu": 9, "gpu:1g.5gb": 7}),
        ("tmp:844G,craynetwork:4", {"tmp": 844 * 2**30, "craynetwork": 4}),
        ("a:1K,b:1M,c:1T,d:2P", {"a": 2**10, "b": 2**20, "c": 2**40, "d": 2**51}),
        ("lustre:no_consume:4G,gpu:a:no_consume:2,fpga:1", {"fpga": 1}),
    ],
)
def test_generic_resources(tmp_path, gres, has):
    """Types, numbers with suffixes; what jobs do not consume is passed over with a line."""
    found = conf(tmp_path, f"NodeName=a Gres={gres}\nPartitionName=p Nodes=a\n")
    assert dict(found.nodes[0].resources) == has
    assert any("consume" in note for note in found.notes) == ("no_consume" in gres)


@pytest.mark.parametrize(
    ("keys", "cores"),
    [
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=3", 12),
        ("Boards=2 Sockets=4 CoresPerSocket=3", 12),  # of the node, not of a board
        ("Sockets=2 CoresPerSocket=6 ThreadsPerCore=2", 24),
        ("Sockets=2 CoresPerSocket=6 CPUs=8", 8),
    ],
)
def test_cpus_of_a_node(tmp_path, keys, cores):
    """All threads of all sockets, where their number is not there."""
    assert conf(tmp_path, f"NodeName=a {keys}\nPartitionName=p Nodes=a\n").nodes[0].cores == cores


@pytest.mark.parametrize("keys", ["PriorityJobFactor=70000", "PriorityTier=9999999999"])
def test_what_a_table_of_partitions_does_not_take(tmp_path, keys):
    """It is refused in one line, with the partition."""
    found = conf(tmp_path, f"NodeName=a\nPartitionName=p Nodes=a {keys}\n")
    with pytest.raises(InputError, match=r"slurm\.conf: partition 'p': (job_factor|priority) is"):
        partition_table(found)


@pytest.mark.parametrize(
    "long", ["x" * 300_000, "Gres=" + "gpu:1," * 100_000, "CPUAlloc=0 CPUTot=4\n" + "  x\n" * 2_000_000]
)
def test_long_files_are_read_in_one_go(tmp_path, long):
    """A long word, a long list of resources, a long record: the work grows as they do, not as their squares."""
    found = conf(tmp_path, f"NodeName=a CPUs=4 {long}\nPartitionName=p Nodes=a\n")
    assert [(node.name, node.cores) for node in found.nodes] == [("a", 4)]


@pytest.mark.parametrize(
    ("text", "features", "met"),
    [
        ("a", {"a"}, True),
        ("a&b", {"a"}, False),
        ("a,b", {"a", "b"}, True),
        ("a|b", {"b"}, True),
        ("a|b&c", {"a"}, False),  # from left to right
        ("a|(b&c)", {"a"}, True),
        ("(a|b)&c", {"b", "c"}, True),
        ("cpu-n & ib", {"cpu-n", "ib"}, True),
    ],
)
def test_constraints(text, features, met):
    """What a node with some features is for a job."""
    assert Constraint(text).met_by(features) is met


@pytest.mark.parametrize("text", ["", "a&", "&a", "a b", "(a", "a)", "[a|b]", "a*2", "a&&b", "()", "a" * 2000])
def test_constraints_that_are_not_understood(text):
    """They are left out, and say why if asked."""
    assert understood([text, "fine"]).keys() == {"fine"}
    with pytest.raises(InputError, match="onstraint"):
        Constraint(text)


# ---------------------------------------------------------------------- what scontrol prints

SCONTROL = Path(__file__).resolve().parents[2] / "examples" / "scontrol.txt"


def test_what_scontrol_prints_is_read():
    """CPUs, memory, features and resources of nodes that are up; partitions with their limits and factors."""
    found = read_slurm_conf(SCONTROL)
    assert [(node.name, node.cores, dict(node.resources), node.features) for node in found.nodes] == [
        ("n1", 24, {"memory_mb": 128_000}, ("ib", "rome")),
        ("n2", 24, {"memory_mb": 128_000}, ("ib", "rome")),
        ("gpu1", 32, {"memory_mb": 512_000, "gpu": 4, "gpu:a100": 4}, ("ib", "milan")),
    ]
    batch, short, gpu = found.partitions
    assert (batch.nodes, batch.max_time_s, batch.max_nodes, batch.is_default) == (("n1", "n2"), 172_800, None, True)
    assert (short.max_time_s, short.max_nodes, short.tier, short.job_factor) == (1800, 1, 5, 10)
    assert gpu.nodes == ("gpu1",)
    assert found.shares_nodes
    assert any("SelectType" in note for note in found.notes)
    assert any("1 node that is down" in note for note in found.notes)


def test_one_record_a_line_is_the_same(tmp_path):
    """As `scontrol -o` prints it, nodes and partitions in files of their own."""
    records = [" ".join(record.split()) for record in SCONTROL.read_text().split("\n\n")]
    nodes, partitions = tmp_path / "nodes", tmp_path / "partitions"
    nodes.write_text("\n".join(record for record in records if record.startswith("NodeName")))
    partitions.write_text("\n".join(record for record in records if record.startswith("PartitionName")))
    whole, parts = read_slurm_conf(SCONTROL), read_slurm_conf(nodes, partitions)
    assert (parts.nodes, parts.partitions) == (whole.nodes, whole.partitions)


def test_its_configuration_says_how_nodes_are_shared(tmp_path):
    """`scontrol show config` has names, blanks, and values."""
    config = tmp_path / "config"
    config.write_text("SelectType              = select/linear\nPriorityWeightAge       = 1000\n")
    found = read_slurm_conf(SCONTROL, config)
    assert not found.shares_nodes
    assert found.settings["PriorityWeightAge"] == "1000"
