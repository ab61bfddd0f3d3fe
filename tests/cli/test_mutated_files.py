"""Right files with bytes flipped, cut, doubled or put in: an answer or one line, never a crash."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from cli_cases import EX_A_TASKS, deployment_xml, host_xml, star_xml, zone_xml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.workloads.traces.options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

PLATFORM = zone_xml("\n".join([
    host_xml("h1", "100f,50f", "4:50:50,2:20:20", ' core="2"'),
    host_xml("h2", "50f,25f", "4:20,2:9", properties='<prop id="wattage_off" value="1"/>'),
    '<link id="l" bandwidth="10Bps" latency="1ms"/>',
    '<route src="h1" dst="h2"><link_ctn id="l"/></route>',
]))  # fmt: skip
CLUSTER = zone_xml(
    '<cluster id="c" prefix="n" radical="0-3,7" suffix="" speed="1Gf" bw="1GBps" lat="1us">'
    '<prop id="wattage_per_state" value="1:2:3"/></cluster>'
)
BAG = (
    "# nominal_heterogeneity=0.5\n"
    "id,flops,input_bytes,output_bytes,submit_time_s,input_files\n"
    "1,1000,0,0,0,f;g\n2,500.5,0,0,0.5,\n3,2e3,0,0,10,f\n"
)
FILES = "file,size_bytes,location\nf,1000,z\ng,5,h1\nf,1000,h2\n"
GENERATOR = (
    "kind = 'bag'\ntasks = 5\nmean_flops = 1e2\nheterogeneity = 0.5\nseed = 3\ninput_bytes = 0\n"
)
TABLE = (
    "name,speed,efficiency,idle_power_w,count,pstates,off_power_w,cluster,cores\n"
    "a,100,2.0,4,2,1:1;0.5:0.4,0,A,1\nb,50,2.5,4,1,1:1,0,B,2\n"
)
GREEN500 = (
    "List of November\nGreen500_Rank,Mflops/Watt,Name,Power (kW),TOP500_Rank,RMax,Total Cores\n"
    "1,2026.48,A,85.1,64,172490,8192\n2,1684.2,B,38.8,,65350,4096\n"
)
#: Logs of parallel jobs by the names that tell their formats.
LOGS = {
    "a.swf": (
        "; MaxProcs: 4\n  1 100 -1 10 3 -1 -1 3 10 -1 1\n2 101 -1 5 4 -1 -1 4 5\n"
        "3 102 -1 2.5 -1 -1 -1 1 20 -1 0 1 1 -1 -1 -1 -1 x:2x8\n"
    ),
    "a.psv": (
        "JobIDRaw|Submit|Start|End|ElapsedRaw|Timelimit|AllocNodes|State\n"
        "7|2024-03-01T10:00:00|Unknown|Unknown|60|1-00:00:00|2|COMPLETED\n"
        "7.0|2024-03-01T10:00:00|Unknown|Unknown|60||2|COMPLETED\n"
        "8|1709287200|2024-03-01T10:00:00|2024-03-01T10:00:09||UNLIMITED|1|FAILED\n"
    ),
    "a.json": (
        '{"nb_res": 4, "jobs": [{"id": "1", "subtime": 0, "walltime": 9, "res": 2, "profile": "d"},'
        ' {"id": 2, "subtime": 1.5, "res": 1, "profile": "p"}], "profiles": {"d": {"type": "delay",'
        ' "delay": 8}, "p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}}'
    ),
}  # fmt: skip
#: Pieces that hurt readers.
PIECES = [
    b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r", b'"', b"'", b"<", b">", b"&", b"&x;",
    b"&#0;", b"]]>", b"<!--", b"-->", b"nan", b"inf", b"-inf", b"-1", b"0", b"1e999", b"1e-999",
    b"9" * 30, b",", b";", b":", b"=", b"[", b"{", b"\t", b"\x1b[31m", "\u202e\U0001d7d8".encode(),
    b"<host/>", b"<zone>", b'<!DOCTYPE x [<!ENTITY x "y">]>', b"%s", b"\\", b"../", b" " * 200,
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, original: str | bytes) -> bytes:
    """Draw a file that differs from the original in a few places."""
    data = bytearray(original.encode() if isinstance(original, str) else original)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        stop = min(len(data), place + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(["cut", "flip", "put", "replace", "remove", "double"]))
        if kind == "cut":
            del data[place:]
        elif kind == "flip" and place < len(data):
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif kind == "put":
            data[place:place] = draw(st.sampled_from(PIECES))
        elif kind == "replace":
            data[place:stop] = draw(st.sampled_from(PIECES))
        elif kind == "remove":
            del data[place:stop]
        else:
            data[place:place] = data[place:stop]
    return bytes(data)


#: A command for each example takes its time: so many by the profile, four times as many by "wide".
_EXAMPLES = settings.default.max_examples
few = settings(
    max_examples=_EXAMPLES // 4, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
fewer = settings(few, max_examples=_EXAMPLES // 8)


def check(gridsched, folder: Path, words: list[object], made: list[str]) -> None:
    """The command answers, or refuses in one line and leaves nothing behind."""
    before = {path.name for path in folder.iterdir()}
    outcome = gridsched(*words)
    assert outcome.status in (0, 1, 2)
    assert "Traceback" not in outcome.err
    assert "internal error" not in outcome.err, outcome.err
    new = {path.name for path in folder.iterdir()} - before
    if outcome.status == 2:
        assert (len(outcome.complaints), outcome.out) == (1, "")
        assert new == set()
    elif outcome.status == 0:
        assert new == set(made)


@pytest.fixture
def try_out(gridsched):
    """Call a command on a mutated file in a folder of its own."""

    def call(name: str, content: bytes, words: list[str], made: tuple[str, ...] = (), **good: str):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for other, text in good.items():
                (folder / other.replace("_", ".")).write_text(text)
            (folder / name).write_bytes(content)
            filled = [word.replace("{}", place) for word in words]
            check(gridsched, folder, filled, list(made))

    return call


RUN = ["run", "--platform", "{}/p.xml", "--workload", "{}/w.csv", "--timeout-s", "20"]


@few
@given(content=mutated(PLATFORM))
def test_platform(try_out, content):
    """A damaged platform on the reference driver."""
    try_out("p.xml", content, [*RUN[:-2], "--driver", "reference"], w_csv=EX_A_TASKS)


@fewer
@given(content=mutated(PLATFORM) | mutated(CLUSTER))
def test_platform_on_simgrid(try_out, simgrid, content):
    """What our reader takes, SimGrid takes too or refuses in one line."""
    try_out("p.xml", content, RUN, w_csv=EX_A_TASKS)


@few
@given(content=mutated(CLUSTER))
def test_cluster(try_out, content):
    """A damaged platform with a cluster tag."""
    try_out("p.xml", content, [*RUN[:-2], "--driver", "reference"], w_csv=EX_A_TASKS)


@fewer
@given(content=mutated(deployment_xml("m", ["h1", "h2"])))
def test_deployment(try_out, simgrid, content):
    """A damaged deployment."""
    try_out("d.xml", content, [*RUN, "--deployment", "{}/d.xml"], p_xml=star_xml(),
            w_csv=EX_A_TASKS)  # fmt: skip


@few
@given(content=mutated(BAG))
def test_bag(try_out, content):
    """A damaged bag of tasks, run and described."""
    words = [*RUN[:-2], "--files", "{}/f.csv", "--driver", "reference", "--network", "none"]
    try_out("w.csv", content, words, p_xml=PLATFORM, f_csv=FILES)
    words = ["workload", "describe", "{}/w.csv", "--files", "{}/f.csv", "--json"]
    try_out("w.csv", content, words, f_csv=FILES)


@few
@given(content=mutated(FILES))
def test_input_files(try_out, content):
    """A damaged table of input files."""
    words = [*RUN[:-2], "--files", "{}/f.csv", "--driver", "reference", "--scheduler", "xsufferage"]
    try_out("f.csv", content, words, p_xml=PLATFORM, w_csv=BAG)


@pytest.mark.parametrize("name", LOGS)
@settings(few, max_examples=60)
@given(data=st.data())
def test_reading_of_a_log(tmp_path, name, data):
    """A damaged log of parallel jobs is tasks and a machine, or bad input."""
    path = tmp_path / name
    path.write_bytes(data.draw(mutated(LOGS[name])))
    try:
        found = trace_system(path, TraceOptions(nodes=9))
    except InputError:
        return
    assert (found.jobs.run_time_s > 0).all()
    assert found.system.tasks.width.max(initial=1) <= 9


@pytest.mark.long
@pytest.mark.parametrize("name", LOGS)
@fewer
@given(data=st.data())
def test_log(try_out, name, data):
    """A damaged log of parallel jobs: run, described, made tasks of, written anew."""
    content = data.draw(mutated(LOGS[name]))
    log = f"{{}}/{name}"
    run = ["run", "--workload", log, "--scheduler", "fcfs", "--driver", "reference", "--nodes", "9"]
    try_out(name, content, run)
    try_out(name, content, ["workload", "describe", log])
    try_out(name, content, ["workload", "import", log, "-o", "{}/t.csv"], made=("t.csv",))
    try_out(name, content, ["workload", "convert", log, "-o", "{}/j.swf"], made=("j.swf",))


@few
@given(content=mutated(GENERATOR))
def test_generator(try_out, content):
    """Damaged parameters of a generator."""
    words = ["workload", "generate", "{}/g.toml", "-o", "{}/bag.csv"]
    try_out("g.toml", content, words, made=("bag.csv",))


@few
@given(content=mutated(TABLE) | mutated(GREEN500))
def test_table(try_out, content):
    """A damaged table of machines; what is written can be read again."""
    words = ["platform", "from-table", "{}/t.csv", "-o", "{}/p.xml", "--json"]
    try_out("t.csv", content, words, made=("p.xml",))


@pytest.fixture(scope="module")
def export(tmp_path_factory) -> dict[str, bytes]:
    """Return the files of an export."""
    from gridsched.cli.app import main

    folder = tmp_path_factory.mktemp("export")
    for name, text in (("p.xml", PLATFORM), ("w.csv", EX_A_TASKS)):
        (folder / name).write_text(text)
    words = ["run", "--platform", folder / "p.xml", "--workload", folder / "w.csv", "--quiet",
             "--driver", "reference", "--export", folder / "out"]  # fmt: skip
    assert main([str(word) for word in words]) == 0
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.mark.parametrize(
    "words", [["validate", "{}/out", "--json"], ["plot", "gantt", "{}/out", "-o", "{}/g.svg"]]
)
@fewer
@given(data=st.data())
def test_export(gridsched, export, words, data):
    """A damaged export, read by each of its commands."""
    name = data.draw(st.sampled_from(sorted(export)))
    content = data.draw(mutated(export[name]))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "out").mkdir()
        for other, original in export.items():
            (folder / "out" / other).write_bytes(content if other == name else original)
        filled = [word.replace("{}", place) for word in words]
        check(gridsched, folder, filled, ["g.svg", "g.csv"] if words[0] == "plot" else [])


@fewer
@given(value=st.text(max_size=20) | st.floats().map(repr) | st.integers().map(str))
def test_values_of_parameters(gridsched, ex_a, value):
    """Any text as a parameter's value, seed or list of schedulers."""
    for words in (
        ["--scheduler", "lecsa", "--set", f"few_tasks_share={value}"],
        ["--scheduler", "wqr", "--set", value],
        ["--scheduler", value],
        [f"--timeout-s={value}"],
        [f"--pstate={value}"],
    ):
        outcome = gridsched("run", *ex_a, "--driver", "reference", "--json", *words)
        timed_out = "ended after the time-out" in outcome.err
        assert outcome.status in ((1,) if timed_out else (0, 2)), outcome
        assert "internal error" not in outcome.err
        if outcome.status == 0:
            json.loads(outcome.out)
        else:
            assert len(outcome.complaints) == 1
