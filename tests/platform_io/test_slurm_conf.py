"""A ``slurm.conf``: nodes, partitions, settings, and what is passed over."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gridsched.errors import InputError
from gridsched.model.constraints import Constraint, understood
from gridsched.platform_io.slurm_conf import read_slurm_conf
from gridsched.platform_io.slurm_lines import included_files
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
    """Other lines are counted; parameters that no scheduler here knows, keys of less memory, partitions are named."""
    missing, effects, passed = conf(tmp_path).notes
    for words in ("line 7", "/etc/secret.conf"):
        assert words in missing
    assert "memspeclimit of 1 node list (g1)" in effects
    for words in ("1 line ", "kill_invalid_depend", "3 nodes", "1 partition that is down or drained (gone)"):
        assert words in passed


# What would change a schedule comes first.

TWO = "SelectType=select/cons_tres\nNodeName=a,b CPUs=4\nPartitionName=p Nodes=a,b\n"


@pytest.mark.parametrize(
    "line",
    [
        "TopologyPlugin=topology/tree",
        "PreemptType=preempt/qos",
        "PreemptMode=REQUEUE",
        "Licenses=matlab:4",
        "AccountingStorageEnforce=limits",
        "PriorityType=priority/multifactor\nPriorityWeightTRES=CPU=1000",
        "SuspendTime=600",
        "SelectTypeParameters=CR_LLN",
        "PartitionName=p Nodes=a,b QOS=high",
        "PartitionName=p Nodes=a,b OverSubscribe=FORCE:2",
        "PartitionName=p Nodes=a,b PreemptMode=suspend",
        "NodeName=a CPUs=4 CoreSpecCount=1",
    ],
)
def test_what_would_change_a_schedule_is_named_first(tmp_path, line):
    """Its key is in the first line about the file; without it there is no such line."""
    (effects,) = conf(tmp_path, TWO + line).notes
    key = line.splitlines()[-1].split()[-1].split("=")[0]
    assert key.lower() in effects.lower()
    assert conf(tmp_path, TWO).notes == ()


@pytest.mark.parametrize(
    "line",
    [
        "TopologyPlugin=topology/flat",
        "PreemptMode=OFF",
        "PreemptType=preempt/none",
        "SuspendTime=-1\nSuspendTimeout=30",
        "AccountingStorageEnforce=associations",
        "Licenses=(null)",
        "PriorityWeightTRES=CPU=1000",
        "PartitionName=p Nodes=a,b PreemptMode=OFF OverSubscribe=NO LLN=NO QOS=N/A",
    ],
)
def test_what_changes_none_is_only_counted(tmp_path, line):
    """By its value, or as priorities have one factor."""
    assert not any("not simulated" in note for note in conf(tmp_path, TWO + line).notes)


# Sets of nodes.


def members(found) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each partition."""
    return {each.name: each.nodes for each in found.partitions}


def test_sets_of_nodes(tmp_path):
    """By feature, by list, by both, of all; beside names, before or after the nodes, whatever the case of the key."""
    text = """
    NodeSet=ibset Feature=ib
    NodeName=n[1-2] CPUs=16 Feature=ib,avx
    NodeName=n[3-4],old CPUs=16
    NodeName=gone Feature=ib State=DOWN
    NODESET=rest Nodes=n[3-4],gone
    NodeSet=both Nodes=n4 Feature=avx
    NodeSet=every Nodes=ALL
    PartitionName=cpu Nodes=ibset Default=YES
    PartitionName=gpu Nodes=rest
    PartitionName=mixed Nodes=old,both,n1
    PartitionName=all Nodes=every
    """
    found = conf(tmp_path, text)
    assert members(found) == {
        "cpu": ("n1", "n2"),
        "gpu": ("n3", "n4"),
        "mixed": ("old", "n4", "n1", "n2"),
        "all": ("n1", "n2", "n3", "n4", "old"),
    }
    assert not any("without" in note for note in found.notes)


def test_nodes_that_nothing_defines(tmp_path):
    """A partition of an unknown set, or name, is reported with it."""
    (note,) = conf(tmp_path, TWO + "PartitionName=x Nodes=ibset\nPartitionName=y Nodes=a,c\n").notes
    assert "1 partition without nodes that are up (x)" in note
    assert "2 nodes of partitions without a NodeName (ibset, c)" in note


def test_sets_count_as_lists_do(tmp_path):
    """A thousand partitions of a set of 5,000 nodes hold more names than are read."""
    text = "NodeName=n[1-5000] Feature=x\nNodeSet=s Feature=x\n"
    with pytest.raises(InputError, match="names"):
        conf(tmp_path, text + "".join(f"PartitionName=p{k} Nodes=s\n" for k in range(900)))


# Files that are included.


def test_included_files(tmp_path):
    """They are read in their place, relative to the file, quoted, by the cluster's name, and one from another."""
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "nodes.conf").write_text("NodeName=n[1-2] CPUs=8\nInclude more.conf\n")
    (tmp_path / "conf.d" / "more.conf").write_text("NodeName=n3\n")
    (tmp_path / "micro.conf").write_text("NodeName=DEFAULT CPUs=4 Feature=x\n")
    (tmp_path / "parts.conf").write_text("PartitionName=p Nodes=ALL\n")
    text = "ClusterName=micro\ninclude %c.conf # first\nInclude  conf.d/nodes.conf\nInclude /etc/slurm/parts.conf\n"
    found = conf(tmp_path, text)
    assert [(node.name, node.cores, node.features) for node in found.nodes] == [
        ("n1", 8, ("x",)),
        ("n2", 8, ("x",)),
        ("n3", 4, ("x",)),
    ]
    assert members(found) == {"p": ("n1", "n2", "n3")}
    assert [Path(each).name for each in included_files(tmp_path / "slurm.conf")] == [
        "micro.conf", "nodes.conf", "more.conf", "parts.conf",
    ]  # fmt: skip


def test_what_is_not_included(tmp_path):
    """What is not there, or lies outside of the folder, also by a link, gives one line each, and is not read."""
    inside, secret = tmp_path / "site", tmp_path / "secret.conf"
    inside.mkdir()
    secret.write_text("NodeName=secret\n")
    (inside / "link.conf").symlink_to(secret)
    (inside / "loop.conf").symlink_to(inside / "loop.conf")
    names = ["missing.conf", "../secret.conf", str(secret), "link.conf", "loop.conf", "x" * 300]
    found = conf(inside, TWO + "".join(f"Include {name}\n" for name in names))
    assert [node.name for node in found.nodes] == ["a", "b"]
    assert len(found.notes) == len(names)
    for note, name in zip(found.notes, names, strict=True):
        assert name[:60] in note


def test_included_files_end(tmp_path):
    """Cycles, many files, much text, and what is no regular file are refused in one line that names the file."""
    (tmp_path / "a.conf").write_text("Include b.conf\n")
    (tmp_path / "b.conf").write_text("Include a.conf\n")
    with pytest.raises(InputError, match=r"b\.conf, line 1.*itself"):
        conf(tmp_path, "Include a.conf\n")
    with pytest.raises(InputError, match=r"itself"):
        conf(tmp_path, "Include slurm.conf\n")
    for k in range(12):
        (tmp_path / f"{k}.conf").write_text(f"Include {k + 1}.conf\n" * 2)
    with pytest.raises(InputError, match="files by Include"):
        conf(tmp_path, "Include 0.conf\n")
    (tmp_path / "long.conf").write_text("#" * (6 << 20))
    with pytest.raises(InputError, match="MB"):
        conf(tmp_path, "Include long.conf\n" * 3)
    (tmp_path / "folder.conf").mkdir()
    with pytest.raises(InputError, match=r"folder\.conf"):
        conf(tmp_path, "Include folder.conf\n")
    os.mkfifo(tmp_path / "pipe.conf")
    with pytest.raises(InputError, match=r"pipe\.conf"):
        conf(tmp_path, "Include pipe.conf\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SwitchName=s1 Nodes=a\n", "topology.conf"),
        ("Name=gpu Type=a100 File=/dev/nvidia0\n", "gres.conf"),
        ("NodeName=a Name=gpu File=/dev/nvidia[0-3]\n", "gres.conf"),
        (
            "Cluster - 'micro':Fairshare=1:QOS='normal'\nParent - 'root'\nUser - 'root':DefaultAccount='root'\n",
            "sacctmgr",
        ),
        ("Name|Priority|GraceTime\nnormal|0|00:00:00\n", "sacctmgr"),
        ("ConstrainCores=yes\n", "NodeName"),
    ],
)
def test_files_beside_a_configuration_are_refused(tmp_path, text, said):
    """Given with a slurm.conf they would be swallowed: one line names the file and what it is."""
    (tmp_path / "slurm.conf").write_text(TWO)
    (tmp_path / "other").write_text(text)
    with pytest.raises(InputError, match=f"other.*{said}"):
        read_slurm_conf(tmp_path / "slurm.conf", tmp_path / "other")


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
        ("NodeName=a Gres=tmp:a:6P,tmp:b:6P\nPartitionName=p Nodes=a\n", "line 1.*tmp.*8P"),
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
    "long",
    [
        "\nInclude a" + " " * 300_000 + "b",
        "x" * 300_000,
        "Gres=" + "gpu:1," * 100_000,
        "CPUAlloc=0 CPUTot=4\n" + "  x\n" * 2_000_000,
    ],
)
def test_long_files_are_read_in_one_go(tmp_path, long):
    """A long line, word, list of resources, record: the work grows as they do, not as their squares."""
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
