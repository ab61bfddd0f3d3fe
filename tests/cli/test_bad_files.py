"""Files that are wrong: one line that names file, place, what was found and what is allowed."""

from __future__ import annotations

import gzip
import os

import pytest
from cli_cases import EX_A_TASKS, deployment_xml, host_xml, platform_text, star_xml, zone_xml

BILLION_LAUGHS = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform [\n<!ENTITY a "ha">\n'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">\n' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + ']>\n<platform version="4.1"><zone id="&i;" routing="Full"/></platform>\n'
)
OUTSIDE = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n'
    '<platform version="4.1"><zone id="&x;" routing="Full"/></platform>\n'
)
OUTSIDE_PARAMETER = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]>\n'
    '<platform version="4.1"><zone id="z" routing="Full"/></platform>\n'
)
CLUSTER = (
    '<cluster id="c" prefix="n-" radical="{}" suffix="" speed="1Gf" bw="1GBps" lat="1us">'
    '<prop id="wattage_per_state" value="1:2:3"/></cluster>'
)
ZEROS = b"\0" * 100
#: content of the platform file, and words of the message
PLATFORMS = {
    "empty": ("", ["empty"]),
    "blank": (" \n\n", ["empty"]),
    "binary": (bytes(range(256)) * 4, ["XML"]),
    "zeros": (ZEROS, ["binary"]),
    "gzip": (gzip.compress(zone_xml(host_xml()).encode()), ["XML"]),
    "not XML": ("id,flops\n1,1\n", ["line 1", "XML"]),
    "other XML": ("<html/>", ["<platform>", "<html>"]),
    "cut off": (zone_xml(host_xml())[:-30], ["line", "XML"]),
    "old version": (platform_text("", version="3"), ["'3'", "4.1", "line 3"]),
    "no host": (zone_xml(""), ["no host"]),
    "unknown element": (zone_xml("<machine/>"), ["line 5", "<machine>"]),
    "host without id": (zone_xml('<host speed="1Gf"/>'), ["line 5", "'id'"]),
    "host without speed": (zone_xml('<host id="a"/>'), ["line 5", "'speed'"]),
    "duplicate host": (zone_xml(host_xml() + "\n" + host_xml()), ["line 6", "'h1'", "line 5"]),
    "unknown unit": (zone_xml(host_xml(speed="5Gq")), ["line 5", "'5Gq'"]),
    "word for a speed": (zone_xml(host_xml(speed="fast")), ["line 5", "'fast'"]),
    "speed nan": (zone_xml(host_xml(speed="nanf")), ["line 5", "nan"]),
    "speed inf": (zone_xml(host_xml(speed="inff")), ["line 5", "inf"]),
    "speed too large": (zone_xml(host_xml(speed="1e999f")), ["line 5", "1e999f"]),
    "speed huge": (zone_xml(host_xml(speed="1e300Yf")), ["line 5", "1e300Yf"]),
    "speed tiny": (zone_xml(host_xml(speed="1e-300f")), ["line 5", "1e-300f"]),
    "speed 0": (zone_xml(host_xml(speed="0f,1f")), ["line 5", "P-state 0 has speed 0"]),
    "no speed": (zone_xml(host_xml(speed="0f")), ["no host computes"]),
    "speed negative": (zone_xml(host_xml(speed="-1Gf")), ["line 5", "'-1Gf'", "0 or more"]),
    "cores 0": (zone_xml(host_xml(extra=' core="0"')), ["line 5", "core", "'0'"]),
    "cores half": (zone_xml(host_xml(extra=' core="1.5"')), ["line 5", "core", "'1.5'"]),
    "cores huge": (zone_xml(host_xml(extra=' core="1000000000"')), ["1,000,000,000 core"]),
    "watts negative": (zone_xml(host_xml(watts="-4:50:50")), ["'h1'", "-4"]),
    "watts nan": (zone_xml(host_xml(watts="nan:50:50")), ["'h1'", "nan"]),
    "watts inf": (zone_xml(host_xml(watts="4:inf:inf")), ["'h1'", "inf"]),
    "watts huge": (zone_xml(host_xml(watts="4:1e300:1e300")), ["'h1'", "1e300"]),
    "watts for two P-states": (zone_xml(host_xml(watts="4:50:50,2:20:20")), ["'h1'", "2"]),
    "watts: one number": (zone_xml(host_xml(watts="4")), ["'h1'", "'4'"]),
    "watts: words": (zone_xml(host_xml(watts="a:b:c")), ["'h1'", "a"]),
    "no watts": (zone_xml(host_xml(watts=None)), ["'h1'", "wattage_per_state"]),
    "old name of watts": (
        zone_xml(host_xml(watts=None, properties='<prop id="watt_per_state" value="4:50"/>')),
        ["'h1'", "wattage_per_state"],
    ),
    "off power negative": (zone_xml(host_xml(properties='<prop id="wattage_off" value="-1"/>')), ["'h1'", "'-1'"]),
    **{
        name: (zone_xml(host_xml(extra=f' {name}="none.txt"')), ["line 5", "'h1'", name, "none.txt", "cannot be read"])
        for name in ("speed_file", "availability_file", "state_file")
    },
    "cluster with a profile": (
        zone_xml(
            host_xml() + '\n<cluster id="c" prefix="c" suffix="" radical="0" speed="1f" bw="1Bps" '
            'lat="1s" state_file="p.txt"/>'
        ),
        ["line 6", "<cluster> 'c'", "state_file"],
    ),
    "unknown trace": (
        zone_xml(host_xml() + '\n<trace_connect kind="SPEED" trace="t" element="h1"/>'),
        ["line 6", "<trace_connect>", "'t'", "not defined"],
    ),
    **{
        f"trace: {what}": (
            zone_xml(
                f'<trace id="t" periodicity="{period}">{text}</trace>\n{host_xml()}\n'
                f'<trace_connect kind="{kind}" trace="t" element="{host}"/>'
            ),
            words,
        )
        for what, period, text, kind, host, words in (
            ("of nobody", "1.0", "0 1", "SPEED", "h2", ["line 7", "'h2'"]),
            ("of no kind", "1.0", "0 1", "POWER", "h1", ["line 7", "'POWER'", "SPEED"]),
            ("not ascending", "-1", "5 1\n0 1", "SPEED", "h1", ["line 5", "'0 1'", "ascend"]),
            ("a word", "-1", "0 fast", "SPEED", "h1", ["line 5", "'0 fast'"]),
            ("one number", "-1", "7", "SPEED", "h1", ["line 5", "'7'"]),
            ("negative", "-1", "0 -1", "SPEED", "h1", ["line 5", "'0 -1'", "0 or more"]),
            ("speed 0", "-1", "0 0", "SPEED", "h1", ["line 7", "a speed of 0"]),
            ("too short a round", "1e-9", "0 1", "HOST_AVAIL", "h1", ["line 5", "0.001 s"]),
            ("period in words", "x", "0 1", "HOST_AVAIL", "h1", ["line 5", "periodicity"]),
            ("late", "5", "7 1", "HOST_AVAIL", "h1", ["line 5", "after its period of 5 s"]),
            ("drawn", "-1", "STOCHASTIC\nEXP 1 DET 0", "HOST_AVAIL", "h1", ["--failures"]),
        )
    },
    "two masters": (
        zone_xml("\n".join(host_xml(n, properties='<prop id="role" value="master"/>') for n in "abc")),
        ["role=master", "'a'"],
    ),
    "only a master": (zone_xml(host_xml(properties='<prop id="role" value="master"/>')), ["no host"]),
    "huge cluster": (platform_text(CLUSTER.format("0-1000000000")), ["cluster 'c'", "300,000"]),
    "cluster backwards": (platform_text(CLUSTER.format("9-0")), ["no host"]),
    "cluster of words": (platform_text(CLUSTER.format("a-b")), ["'a-b'"]),
    "deep nesting": (platform_text('<zone id="z" routing="Full">' * 5000), ["deeper"]),
    "billion laughs": (BILLION_LAUGHS, ["entity"]),
    "file outside": (OUTSIDE, ["entity"]),
    "file outside by a parameter entity": (OUTSIDE_PARAMETER, ["entity"]),
    "unknown entity": (zone_xml(host_xml(name="&nope;")), ["nope"]),
    "not UTF-8": (zone_xml(host_xml()).encode().replace(b"h1", b"h\xff1"), ["XML"]),
    "unknown encoding": (zone_xml(host_xml()).replace('"1.0"', '"1.0" encoding="klingon"'), ["encoding"]),
}
#: content of the workload file, and words of the message
WORKLOADS = {
    "empty": ("", ["id,flops"]),
    "binary": (bytes(range(256)), ["UTF-8"]),
    "zeros": (ZEROS, ["NUL"]),
    "no header": ("1,1000\n2,500\n", ["line 1", "'id'"]),
    "no flops": ("id,size\n1,1\n", ["line 1", "'flops'"]),
    "unknown column": ("id,flops,input_byte\n1,1,1\n", ["line 1", "'input_byte'", "input_bytes"]),
    "column twice": ("id,flops,flops\n1,1,1\n", ["line 1", "'flops'", "twice"]),
    "cell missing": ("id,flops\n1,1\n2\n", ["line 3", "1 cells", "2"]),
    "cell too many": ("id,flops\n1,1,1\n", ["line 2", "3 cells", "2"]),
    "quote open": ('id,flops\n1,"1\n', ["line 2"]),
    "flops nan": ("id,flops\n1,nan\n", ["line 2", "flops", "'nan'", "> 0"]),
    "flops inf": ("id,flops\n1,inf\n", ["line 2", "flops", "'inf'", "> 0"]),
    "flops 0": ("id,flops\n1,1\n2,0\n", ["line 3", "flops", "'0'", "> 0"]),
    "flops negative": ("# note\nid,flops\n1,-5\n", ["line 3", "flops", "'-5'", "> 0"]),
    "flops a word": ("id,flops\n1,many\n", ["line 2", "flops", "'many'"]),
    "flops empty": ("id,flops\n1,\n", ["line 2", "flops", "''"]),
    "flops huge": ("id,flops\n1,1e300\n", ["line 2", "flops", "1e300"]),
    "id a word": ("id,flops\na,1\n", ["line 2", "id", "'a'", "whole"]),
    "id huge": (f"id,flops\n{'9' * 30},1\n", ["line 2", "id", "64 bits"]),
    "id of 5000 digits": (f"id,flops\n{'9' * 5000},1\n", ["line 2", "id"]),
    "id twice": ("id,flops\n1,1\n2,1\n1,1\n", ["line 4", "id", "line 2"]),
    "submission negative": ("id,flops,submit_time_s\n1,1,-1\n", ["line 2", "submit_time_s"]),
    "submission nan": ("id,flops,submit_time_s\n1,1,nan\n", ["line 2", "submit_time_s"]),
    "bytes negative": ("id,flops,input_bytes\n1,1,-1\n", ["line 2", "input_bytes", ">= 0"]),
    "bytes inf": ("id,flops,output_bytes\n1,1,inf\n", ["line 2", "output_bytes"]),
    "files without table": ("id,flops,input_files\n1,1,f\n", ["line 2", "--files"]),
    "cell of 100 kB": (f"id,flops\n1,{'x' * 100_000}\n", ["line 2", "flops", "..."]),
    "cell of a megabyte": (f"id,flops\n1,{'9' * 1_000_000}\n", ["line 2", "field"]),
    "nominal heterogeneity": ("# nominal_heterogeneity=2\nid,flops\n", ["line 1", "'2'", "[0, 1]"]),
    "nominal heterogeneity nan": ("# nominal_heterogeneity=nan\nid,flops\n", ["line 1", "'nan'"]),
}
GENERATORS = {
    "empty": ("", ["tasks", "missing"]),
    "no TOML": ("tasks = = 3\n", ["TOML", "line 1"]),
    "binary": (bytes(range(256)), ["UTF-8"]),
    "unknown key": ("tasks = 1\nmean_flops = 1\ntask = 2\n", ["task ", "'tasks'"]),
    "unknown kind": ("kind = 'bags'\ntasks = 1\nmean_flops = 1\n", ["kind", "'bags'", "'bag'"]),
    "a billion tasks": ("tasks = 1000000000\nmean_flops = 1\n", ["tasks", "1000000000", "10000000"]),
    "negative tasks": ("tasks = -1\nmean_flops = 1\n", ["tasks", "-1", "0"]),
    "tasks a text": ("tasks = 'many'\nmean_flops = 1\n", ["tasks", "'many'", "whole number"]),
    "tasks a list": ("tasks = [1, 2]\nmean_flops = 1\n", ["tasks", "[1, 2]"]),
    "a table": ("[bag]\ntasks = 1\n", ["bag is "]),
    "mean 0": ("tasks = 1\nmean_flops = 0\n", ["mean_flops", "0", "greater"]),
    "mean nan": ("tasks = 1\nmean_flops = nan\n", ["mean_flops", "nan"]),
    "mean inf": ("tasks = 1\nmean_flops = inf\n", ["mean_flops", "inf"]),
    "mean huge": ("tasks = 1\nmean_flops = 1e308\n", ["mean_flops", "1e+308"]),
    "heterogeneity": ("tasks = 1\nmean_flops = 1\nheterogeneity = 1.5\n", ["heterogeneity", "1.5"]),
    "seed": ("tasks = 1\nmean_flops = 1\nseed = -1\n", ["seed", "-1"]),
    "bytes": ("tasks = 1\nmean_flops = 1\ninput_bytes = -1\n", ["input_bytes", "-1"]),
}
STAR_HOSTS = ["h1", "h2", "h3"]
DEPLOYMENTS = {
    "empty": ("", ["empty"]),
    "no XML": ("master h1", ["XML"]),
    "no actor": (platform_text(""), ["0 master", "0 worker"]),
    "no worker": (deployment_xml("m", []), ["1 master", "0 worker"]),
    "two masters": (
        platform_text('<actor host="m" function="master"/><actor host="h1" function="master"/>'),
        ["2 master"],
    ),
    "unknown host": (deployment_xml("m", ["h1", "g2"]), ["line 6", "'g2'"]),
    "unknown function": (platform_text('<actor host="m" function="boss"/>'), ["line 4", "'boss'", "'master'"]),
    "two workers on a host": (deployment_xml("m", ["h1", "h1"]), ["line 6", "'h1'", "line 5"]),
    "another master": (deployment_xml("m", ["h1"]).replace('value="m"', 'value="h2"'), ["line 5", "'h2'", "'m'"]),
    "entity": (OUTSIDE, ["entity"]),
}
FILES = {
    "empty": ("", ["file,size_bytes,location"]),
    "no location": ("file,size_bytes,location\nf,1,\n", ["line 2", "location"]),
    "size negative": ("file,size_bytes,location\nf,-1,h1\n", ["line 2", "size_bytes", "'-1'"]),
    "two sizes": ("file,size_bytes,location\nf,1,h1\nf,2,h2\n", ["line 3", "'f'"]),
    "unknown place": ("file,size_bytes,location\nf,1,nowhere\n", ["'nowhere'"]),
}


def of(cases: dict) -> pytest.MarkDecorator:
    """Return the parametrization over a table of cases."""
    return pytest.mark.parametrize(("content", "words"), cases.values(), ids=cases)


def check_words(line: str, name: str, words: list[str]) -> None:
    """The line names the file and all of the words."""
    for word in [name, *words]:
        assert word in line


@of(PLATFORMS)
def test_bad_platform(refused, write, ex_a, content, words):
    """`run` refuses the platform."""
    path = write("p.xml", content)
    check_words(refused("run", "--platform", path, *ex_a[2:]), "p.xml", words)


@pytest.mark.parametrize(
    ("failures", "words"),
    [
        ("mtbf=10", ["lacks mttr"]),
        ("mtbf=10,mttr=x", ["mttr is 'x'", "0.001"]),
        ("mtbf=10,mttr=1,mtfb=3", ["'mtfb=3'", "Did you mean 'mtbf'"]),
        ("mtbf=10,mttr=1,distribution=normal", ["'normal'", "weibull"]),
        ("mtbf=10,mttr=1,shape=2", ["distribution=weibull"]),
    ],
)
def test_bad_failures(refused, ex_a, failures, words):
    """Errors in --failures are explained."""
    check_words(refused("run", *ex_a, "--failures", failures), "--failures", words)


@of(WORKLOADS)
def test_bad_workload(refused, write, ex_a, content, words):
    """`compare` refuses the workload."""
    path = write("w.csv", content)
    check_words(refused("compare", *ex_a[:2], "--workload", path), "w.csv", words)


@of(WORKLOADS)
def test_bad_workload_to_describe(refused, write, tmp_path, content, words):
    """`workload describe` refuses the workload and draws nothing."""
    path = write("w.csv", content)
    line = refused("workload", "describe", path, "--plot", tmp_path / "sizes.png")
    check_words(line, "w.csv", words)


@of(GENERATORS)
def test_bad_generator(refused, write, tmp_path, content, words):
    """`workload generate` refuses the parameters and writes nothing."""
    path = write("g.toml", content)
    check_words(refused("workload", "generate", path, "-o", tmp_path / "bag.csv"), "g.toml", words)


@of(DEPLOYMENTS)
def test_bad_deployment(refused, write, content, words):
    """`validate` refuses the deployment."""
    options = ["--platform", write("p.xml", star_xml()), "--workload", write("w.csv", EX_A_TASKS)]
    path = write("d.xml", content)
    check_words(refused("validate", *options, "--deployment", path), "d.xml", words)


@of(FILES)
def test_bad_input_files(refused, write, ex_a, content, words):
    """`run` refuses the table of input files."""
    workload = write("w.csv", "id,flops,input_files\n1,1,f\n")
    path = write("f.csv", content)
    line = refused("run", *ex_a[:2], "--workload", workload, "--files", path, "--scheduler", "xsufferage")
    check_words(line, "", words)


TABLE_HEADER = "name,speed,efficiency,idle_power_w\n"
GREEN500 = "Green500_Rank,Mflops/Watt,Name,Power (kW),TOP500_Rank\n1,2026.48,A,85.1,64\n"
TABLES = {
    "empty": ("t.csv", "", []),
    "binary": ("t.csv", bytes(range(256)) * 3, []),
    "zeros": ("t.xlsx", ZEROS, []),
    "no spreadsheet": ("t.xlsx", "name,speed\n", []),
    "cut spreadsheet": ("t.xlsx", b"PK\x03\x04" + ZEROS, []),
    "no table": ("t.csv", "hello world\n", []),
    "header only": ("t.csv", TABLE_HEADER, []),
    "speed nan": ("t.csv", TABLE_HEADER + "a,nan,1,1\n", ["nan"]),
    "speed inf": ("t.csv", TABLE_HEADER + "a,inf,1,1\n", ["inf"]),
    "speed 0": ("t.csv", TABLE_HEADER + "a,0,1,1\n", ["0"]),
    "speed negative": ("t.csv", TABLE_HEADER + "a,-5,1,1\n", ["-5"]),
    "efficiency 0": ("t.csv", TABLE_HEADER + "a,5,0,1\n", ["0"]),
    "idle negative": ("t.csv", TABLE_HEADER + "a,5,1,-1\n", ["-1"]),
    "speed a word": ("t.csv", TABLE_HEADER + "a,fast,1,1\n", ["fast"]),
    "name twice": ("t.csv", TABLE_HEADER + "a,5,1,1\na,5,1,1\n", ["'a'"]),
    "count huge": ("t.csv", TABLE_HEADER[:-1] + ",count\na,5,1,1,1000000000\n", ["1,000,000,000"]),
    "count 0": ("t.csv", TABLE_HEADER[:-1] + ",count\na,5,1,1,0\n", ["0"]),
    "power beyond limits": ("t.csv", TABLE_HEADER + "a,1e10,1e-30,1\n", ["'a'", "1e+40 W"]),
    "speed beyond limits": (
        "list2012.csv",
        "Green500_Rank,Mflops/Watt,Name,Power (kW),RMax\n1,2026.48,A,85.1,172490\n2,1684.2,B,38.8,1e30\n",
        ["'B'", "1e+39 flop/s"],
    ),
}


@pytest.mark.parametrize(("name", "content", "words"), TABLES.values(), ids=TABLES)
def test_bad_table(refused, write, tmp_path, name, content, words):
    """`platform from-table` refuses the table and writes nothing."""
    path = write(name, content)
    line = refused("platform", "from-table", path, "-o", tmp_path / "p.xml")
    check_words(line, name, words)


READERS = {
    "run --platform": ["run", "--platform", "{}", "--workload", "{w}"],
    "run --workload": ["run", "--platform", "{p}", "--workload", "{}"],
    "run --deployment": ["run", "--platform", "{p}", "--workload", "{w}", "--deployment", "{}"],
    "run --events": ["run", "--platform", "{p}", "--workload", "{w}", "--events", "{}"],
    "run --files": ["run", "--platform", "{p}", "--workload", "{w}", "--files", "{}"],
    "compare": ["compare", "--platform", "{}", "--workload", "{w}"],
    "validate": ["validate", "--platform", "{p}", "--workload", "{}"],
    "describe": ["workload", "describe", "{}"],
    "generate": ["workload", "generate", "{}", "-o", "{o}.csv"],
    "from-table": ["platform", "from-table", "{}", "-o", "{o}.xml"],
    "join": ["platform", "from-table", "{t}", "--join", "{}", "-o", "{o}.xml"],
    "check": ["platform", "check", "{}"],
}


def filled(words: list[str], bad: object, write, tmp_path) -> list[str]:
    """Return the command with good files and the bad one put in."""
    good = {
        "p": write("p.xml", star_xml()),
        "w": write("w.csv", EX_A_TASKS),
        "t": write("t.csv", GREEN500),
        "o": tmp_path / "out",
    }
    return [word.format(bad, **good) for word in words]


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
@pytest.mark.parametrize("ending", [".xml", ".csv", ".toml"])
def test_missing_file(refused, write, tmp_path, words, ending):
    """A file that is not there is named."""
    assert f"nope{ending}" in refused(*filled(words, tmp_path / f"nope{ending}", write, tmp_path))


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
def test_folder_for_a_file(refused, write, tmp_path, words):
    """A folder in place of a file is refused, whatever its name."""
    for name in ("folder.csv", "folder.xml", "folder"):
        folder = tmp_path / name
        folder.mkdir()
        assert name in refused(*filled(words, folder, write, tmp_path))


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
def test_unreadable_file(refused, open_folder, words, without_privileges):
    """A file without read permission is refused with the system's reason."""
    secret = open_folder / "secret.csv"
    open_folder.chmod(0o777)

    def write(name, content):
        (open_folder / name).write_text(content)
        return open_folder / name

    command = filled(words, secret, write, open_folder)
    refused(*command)  # there is none yet; now everything needed has been imported
    write("secret.csv", "x").chmod(0)
    line = refused(*command, folder=open_folder, within=without_privileges())
    assert "secret.csv" in line
    assert "denied" in line


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
def test_endless_device_for_a_file(refused, write, tmp_path, words):
    """A device that never ends is not read to its end."""
    link = tmp_path / "zero.csv"
    link.symlink_to("/dev/zero")
    assert "zero.csv" in refused(*filled(words, link, write, tmp_path))


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
def test_file_of_many_gigabytes(refused, write, tmp_path, words):
    """A file that is too large is not read, and its size is shown."""
    huge = write("huge.toml" if "generate" in words else "huge.csv", "")
    os.truncate(huge, 1 << 40)
    command = filled(words, huge, write, tmp_path)
    try:
        line = refused(*command, folder=tmp_path / "none")
    finally:
        huge.unlink()
    assert "huge" in line
    assert "1,048,576 MB" in line


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("trace.swf", "Standard Workload Format"),
        ("trace.swf.gz", "Standard Workload Format"),
        ("bag.txt", "sacct"),
        ("bag.dat", ".csv"),
        ("bag", ".csv"),
    ],
)
def test_workload_of_another_kind(refused, write, ex_a, name, told):
    """For a file that is not a log, the message names what is needed; for other endings, those allowed."""
    line = refused("run", *ex_a[:2], "--workload", write(name, "1 2 3\n"))
    assert name in line
    assert told in line


SCONTROL_NODE = "NodeName=node1 Arch=x86_64 CoresPerSocket=8 \n   CPUAlloc=0 CPUTot=16 CPULoad=0.01\n"
SCONTROL_PARTITION = (
    "PartitionName=batch\n   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL\n   AllocNodes=ALL Default=YES QoS=N/A\n"
)
SLURM_CONF = "# slurm.conf\nClusterName=c\nSlurmctldHost=head\nNodeName=node[1-12] CPUs=16 State=UNKNOWN\n"
WFFORMAT = '{"name": "montage", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": []}}}'
#: name and content of a file that people have at hand, and what it is called
FOREIGN = {
    "WfFormat": ("w.json", WFFORMAT, "WfFormat"),
    "DAX": ("w.dax.xml", '<?xml version="1.0"?>\n<adag name="m" version="2.1"><job id="a"/></adag>\n', "DAX"),
    "DOT": ("w.dot", 'digraph G {\n  a [size="1e9"];\n}\n', "DOT"),
    "slurm.conf": ("slurm.conf", SLURM_CONF, "slurm.conf"),
    "slurm.conf as text": ("cluster.txt", SLURM_CONF, "slurm.conf"),
    "scontrol show job": ("jobs.txt", "JobId=123 JobName=a\n   UserId=ann(1000) JobState=RUNNING\n", "show job"),
    "scontrol show node": ("nodes.txt", SCONTROL_NODE, "show node"),
    "scontrol show partition": ("partitions", SCONTROL_PARTITION, "show partition"),
    "scontrol --json": ("jobs.json", '{"meta": {"slurm": {"version": {}}}, "jobs": []}', "Slurm"),
    "HTML": ("list.html", "<!DOCTYPE html>\n<html><body><table><tr><td>1</td></tr></table></body></html>\n", "HTML"),
}


@pytest.mark.systems("batsim")
@pytest.mark.parametrize(("name", "content", "what"), FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("use", ["run", "nodes", "alone", "describe", "platform", "check", "from-table"])
def test_known_files_that_are_not_read(refused, write, ex_a, tmp_path, name, content, what, use):
    """Workflows, configurations and states of Slurm are called what they are, whatever they are given as."""
    path = write(name, content)
    arguments = {
        "run": ["run", *ex_a[:2], "--workload", path],
        "nodes": ["run", "--workload", path, "--nodes", "12"],
        "alone": ["run", "--workload", path],
        "describe": ["workload", "describe", path, "--nodes", "12"],
        "platform": ["run", "--platform", path, *ex_a[2:]],
        "check": ["platform", "check", path],
        "from-table": ["platform", "from-table", path, "-o", tmp_path / "p.xml"],
    }[use]
    check_words(refused(*arguments), name, [what])


@pytest.mark.parametrize("options", [[], ["--nodes", "4"]])
def test_the_output_of_sacct_with_commas(refused, write, ex_a, options):
    """Its header identifies it, and the message names the output that is read."""
    text = "JobIDRaw,Submit,Start,End,AllocNodes\n1,0,1,2,1\n"
    check_words(
        refused("run", *([] if options else ex_a[:2]), "--workload", write("w.csv", text), *options),
        "w.csv",
        ["sacct", "sacct -P"],
    )


def test_a_web_page_under_the_name_of_a_workbook(refused, write, tmp_path):
    """What a browser saves as a list is not a list."""
    page = '\ufeff<html xmlns:o="urn:x"><head></head><body><table><tr><th>Rank</th></tr></table></body></html>'
    check_words(
        refused("platform", "from-table", write("green500.xlsx", page), "-o", tmp_path / "p.xml"), "xlsx", ["HTML"]
    )
