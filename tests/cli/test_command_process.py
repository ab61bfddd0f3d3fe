"""The command as a process: its streams, signals and exit status."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from ast import literal_eval
from concurrent.futures import ThreadPoolExecutor

import pytest
from cli_cases import ROOT
from typer.main import get_command

from gridsched import __version__
from gridsched.__main__ import main
from gridsched.campaign.run_records import read_records
from gridsched.campaign.store import Store
from gridsched.cli import app
from gridsched.policy.registry import entries

COMMAND = [sys.executable, "-m", "gridsched"]
EX_A = ["--platform", "platforms/ex_a.xml", "--workload", "examples/ex_a.csv", "--driver", "reference"]
COMMANDS = [
    ["schedulers"],
    ["platform"],
    ["platform", "from-table"],
    ["platform", "check"],
    ["workload"],
    ["workload", "generate"],
    ["workload", "describe"],
    ["run"],
    ["compare"],
    ["validate"],
    ["plot"],
    ["plot", "gantt"],
    ["plot", "power"],
]


def process(*words: object, **options) -> subprocess.CompletedProcess:
    """Run the command in a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=ROOT,
        text=True,
        check=False,
        timeout=300,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


#: Ends with as many threads as before, whatever it has read and written of a store.
STORE_SCRIPT = """
import os, sys
import pandas, pyarrow.parquet, pyarrow.compute
from pathlib import Path
from gridsched.campaign.run_records import read_records
from gridsched.campaign.store import Store
from gridsched.cli.output import write_rows
from gridsched.platform_io.overrides import contain_match
before = set(os.listdir("/proc/self/task"))
store = Store.open(sys.argv[1])
for _ in range(2):
    rows = store.rows()
    store.compact()
assert list(store.root.glob("rows-*.parquet")) and len(store.stored()) == len(rows)
for run_id in rows["run_id"]:
    assert len(read_records(store.root, run_id))
assert contain_match(["a", "b"], "A").tolist() == [True, False]
write_rows(Path(sys.argv[1]) / "t.parquet", rows[["run_id", "makespan_s"]].to_dict("records"),
           None, force=True)
assert set(os.listdir("/proc/self/task")) <= before
"""


def test_arrow_starts_no_thread(tmp_path):
    """A thread of Arrow's that lets a file of ours go at exit needs Python, and aborts without."""
    (tmp_path / "s.toml").write_text(
        f'name = "s"\ndriver = "reference"\nschedulers = ["wq", "mct"]\n'
        f'platform = "{ROOT}/platforms/ex_a.xml"\nworkload = "{ROOT}/examples/ex_a.csv"\n'
    )
    store = tmp_path / "store"
    words = ["study", "run", str(tmp_path / "s.toml"), "--store", str(store), "--records"]
    assert app.main([*words, "--quiet"]) == 0
    words = [sys.executable, "-c", STORE_SCRIPT, str(store)]
    outcome = subprocess.run(words, text=True, capture_output=True, check=False, timeout=300)
    assert (outcome.returncode, outcome.stderr) == (0, "")


def test_version():
    """--version prints the version and nothing else."""
    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"gridsched {__version__}\n", "")


def test_the_shell_completes_commands():
    """What bash asks for when a command is begun: those that begin so."""
    asked = {"_GRIDSCHED_COMPLETE": "complete_bash", "COMP_WORDS": "gridsched pl", "COMP_CWORD": "1"}
    done = process(env={**os.environ, **asked})
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", ["platform", "plot"])


def test_a_closed_stream_is_no_fault():
    """No file takes the place of the closed stream, and the status is that of the command."""
    done = process("--version", stdout=None, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


def test_without_any_stream_a_run_is_done(simgrid, tmp_path):
    """SimGrid's processes have streams that lead nowhere, too."""

    def close() -> None:
        for number in range(3):
            os.close(number)

    done = process(
        "run",
        "--platform",
        "platforms/ex_a.xml",
        "--workload",
        "examples/ex_a.csv",
        "-o",
        tmp_path / "r.json",
        stdout=None,
        stderr=None,
        preexec_fn=close,
    )
    assert done.returncode == 0
    assert (tmp_path / "r.json").exists()


def test_too_few_descriptors_are_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    """What the machine lacks is not a fault of gridsched."""

    def fail(app: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(app, "get_command", fail)
    assert app.main(["--version"]) == 2
    assert "ulimit -n" in capsys.readouterr().err


def test_a_run_leaves_nothing_on_stderr(simgrid):
    """SimGrid's greetings and the plugin's totals stay away from the terminal."""
    done = process("compare", "--platform", "platforms/ex_a.xml", "--workload", "examples/ex_a.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "dynamic_fpltf" in done.stdout
    assert "\x1b" not in done.stdout
    assert not any(line != line.rstrip() for line in done.stdout.splitlines())


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_few_tasks_compile_nothing_on_a_fresh_install(simgrid, tmp_path, driver):
    """Of six schedulers, several have their loops in one module; five tasks need none of them compiled."""
    fresh = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = process("compare", *EX_A[:4], "--driver", driver, env=fresh)
    assert (done.returncode, done.stderr) == (0, "")
    assert not any(tmp_path.iterdir())


def test_bad_input_is_one_line_of_the_process(simgrid, tmp_path):
    """Also where SimGrid aborts, the process prints one line and exits with 2."""
    for words in (
        ["--platform", "platforms/nope.xml"],
        ["--platform", "platforms/ex_a.xml", "--cfg", "network/model:XYZ"],
    ):
        done = process("run", *words, "--workload", "examples/ex_a.csv")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("gridsched: ")
        assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_early():
    """A closed pipe is not an error to talk about."""
    reader, writer = os.pipe()
    os.close(reader)
    done = process("schedulers", stdout=writer)
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode in (1, 141)


def test_any_locale_and_any_file_name(simgrid, tmp_path):
    """Names that are no text and terminals that know ASCII only do not stop a command."""
    folder = tmp_path / os.fsdecode(b"caf\xe9 \xff")
    folder.mkdir()
    bag = folder / "bag.csv"
    bag.write_text("id,flops\n1,100\n")
    options = ["--platform", "platforms/ex_a.xml", "--workload", bag]
    for environment in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {}):
        done = process(
            "compare",
            *options,
            "--schedulers",
            "wq",
            "-o",
            folder / "c.json",
            "--force",
            "--driver",
            "reference",
            env={**os.environ, **environment},
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "caf" in done.stdout
    done = process("run", *options, "--export", folder / "out", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert process("validate", folder / "out").returncode == 0


def test_a_study_in_a_folder_whose_name_is_no_text(gridsched, tmp_path):
    """Its store keeps the study, rows, records and inputs, and gives them back."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    for name, source in (("p.xml", "platforms/ex_a.xml"), ("w.csv", "examples/ex_a.csv")):
        shutil.copyfile(ROOT / source, folder / name)
    study, store = folder / "s.toml", folder / "store"
    study.write_text("name = 's'\nplatform = 'p.xml'\nworkload = 'w.csv'\nschedulers = ['wq']\ndriver = 'reference'\n")
    done = gridsched("study", "run", study, "--store", store, "--quiet", "--records")
    assert (done.status, done.err) == (0, "")
    assert gridsched("study", "claims", store).status == 0
    (run_id,) = Store.open(store).rows()["run_id"]
    assert len(read_records(store, run_id)) == 8  # five executions, three hosts
    assert gridsched("study", "rerun", store, run_id).status == 0


@pytest.mark.parametrize("words", [["schedulers"], ["run", *EX_A]], ids=["text", "table"])
def test_full_disk(words):
    """A stdout that cannot be written is reported in one line."""
    with open("/dev/full", "w") as full:
        done = process(*words, stdout=full)
    assert done.returncode == 1
    assert done.stderr == ("gridsched: what is to be printed cannot be written: No space left on device.\n")


def test_progress_bar_on_a_terminal_only(simgrid):
    """On a terminal stderr shows a bar that is gone at the end; results stay on stdout."""
    ours, theirs = pty.openpty()
    with ThreadPoolExecutor(1) as reader:  # a terminal without a reader fills up
        reading = reader.submit(read_terminal, ours)
        done = process(
            "compare",
            "--platform",
            "platforms/ex_a.xml",
            "--workload",
            "examples/ex_a.csv",
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(theirs)
        text = reading.result()
    assert done.returncode == 0
    assert "/6" in text
    assert "wq" in done.stdout
    assert "/6" not in done.stdout


def read_terminal(descriptor: int) -> str:
    """Return what comes out of a pseudo-terminal until its other end is closed."""
    parts = []
    with contextlib.suppress(OSError), open(descriptor, "rb", buffering=0) as stream:
        while part := stream.read(1 << 16):
            parts.append(part)
    return b"".join(parts).decode(errors="replace")


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_interrupt(simgrid, driver, tmp_path):
    """Ctrl-C ends a long run with one line, behind that on how often it asks, exit status 130 and nothing written."""
    (tmp_path / "w.csv").write_text("id,flops\n1,1e9\n")
    started = tmp_path / "started"
    options = [
        "run",
        "--platform",
        ROOT / "platforms" / "ex_a.xml",
        "--workload",
        tmp_path / "w.csv",
        "--driver",
        driver,
        "--mapping-interval-s",
        "0.2",
        "--export",
        tmp_path / "out",
    ]
    program = (
        # whoever started the tests in the background of a script has SIGINT ignored in all of them
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys, pathlib; from gridsched.cli import run; from gridsched.__main__ import main\n"
        "inner = run.run\n"
        f"run.run = lambda scenario: (pathlib.Path({str(started)!r}).touch(), inner(scenario))[1]\n"
        "sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, *map(str, options)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        for _ in range(600):
            if started.exists() or running.poll() is not None:
                break
            time.sleep(0.1)
        time.sleep(0.5)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to the whole group
        try:
            out, err = running.communicate(timeout=300)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert (running.returncode, out) == (130, "")
    how_often, *rest = err.splitlines()
    assert "mapping_interval_s is 0.2" in how_often
    assert rest == ["gridsched: interrupted"]
    assert {path.name for path in tmp_path.iterdir()} == {"w.csv", "started"}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("columns", ["80", "200"])
def test_help_has_examples(gridsched, monkeypatch, words, columns):
    """Every command's help explains what it does, and commands show examples to copy."""
    monkeypatch.setenv("COLUMNS", columns)
    outcome = gridsched(*words, "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert f"Usage: gridsched {' '.join(words)}" in outcome.out
    if words not in (["platform"], ["workload"], ["plot"]):
        assert "Examples:" in outcome.out
        assert f"gridsched {' '.join(words)} " in outcome.out.split("Examples:")[1]
    assert gridsched(*words, "-h").out == outcome.out
    assert "<bool>" not in outcome.out


@pytest.mark.parametrize(
    ("command", "required"), [("run", {"--platform", "--workload"}), ("compare", {"--platform", "--workload"})]
)
def test_help_shows_common_options_first(gridsched, monkeypatch, command: str, required: set[str]):
    """The first panel has ten at most, with what is required; each other panel has a subject."""
    monkeypatch.setenv("COLUMNS", "200")
    first, *panels = re.split("╭─ ", gridsched(command, "--help").out)[1:]
    options = re.findall(r"^│ +(--[a-z-]+)", first, flags=re.MULTILINE)
    assert options[:2] == ["--platform", "--workload"]
    assert {"--set", "--seed", "--driver", "--power", "--timeout-s"} <= set(options)
    assert len(set(options) - {"--help"}) <= 10
    assert set(re.findall(r"^│ +(--[a-z-]+).*\[required", first, flags=re.MULTILINE)) == required
    names = [panel.partition(" ─")[0] for panel in panels]
    assert names[0] == "Output"
    assert {"Tasks and scheduling", "Hosts", "SimGrid"} < set(names)


def test_schedulers_parted_by_blanks(gridsched):
    """The second one is not an argument; the line shows how a list is written."""
    outcome = gridsched("compare", "--workload", "x.csv", "--schedulers", "wq", "mct")
    assert outcome.status == 2
    assert "wq,mct" in outcome.err


def test_bare_command_shows_the_commands(gridsched):
    """Without a command the help is shown, and the exit status is that of a usage error."""
    outcome = gridsched()
    assert outcome.status == 2
    assert outcome.err == ""
    for name in ("schedulers", "platform", "workload", "run", "compare", "validate", "plot"):
        assert name in outcome.out


def test_schedulers_lists_all(gridsched):
    """Every id is listed with what it accepts, its parameters and source; JSON has the same."""
    outcome = gridsched("schedulers")
    found = gridsched("schedulers", "--json").json["schedulers"]
    ids = {row["id"] for row in found}
    assert ids >= {
        "wq",
        "wqr",
        "sufferage",
        "xsufferage",
        "dynamic_fpltf",
        "lecsa",
        "round_robin",
        "olb",
        "mct",
        "min_min",
        "max_min",
    }
    shipped = {each.id for each in entries() if each.target.startswith("gridsched.")}
    assert ids >= shipped
    for row in (row for row in found if row["id"] in shipped):
        assert set(row) == {"id", "accepts", "parameters", "summary", "source"}
        assert row["id"] in outcome.out
        assert row["summary"]
        assert row["accepts"]
        assert row["source"]
        for name in row["parameters"]:
            assert f"{name}=" in outcome.out


def test_console_script_is_the_same():
    """The installed command and `python -m gridsched` are one function."""
    text = (ROOT / "pyproject.toml").read_text()
    assert f'gridsched = "{main.__module__}:main"' in text


EX_A = ["--platform", "platforms/ex_a.xml", "--workload", "examples/ex_a.csv"]
RIGID = ["--workload", "examples/four_nodes.swf", "--nodes", "4"]


@pytest.mark.parametrize(
    ("words", "may_load"),
    [
        (["--version"], set()),
        (["--help"], set()),
        (["schedulers"], {"numpy", "pydantic"}),
        (["platform", "check", "platforms/ex_a.xml"], {"numpy", "pydantic"}),
        (["run", *EX_A, "--scheduler", "wq", "--driver", "reference"], {"numpy", "pydantic"}),
        (["run", *EX_A, "--scheduler", "sufferage", "--driver", "reference"], {"numpy", "pydantic"}),
        (["run", *RIGID, "--scheduler", "easy_backfilling", "--driver", "reference"], {"numpy", "pydantic"}),
    ],
)
def test_a_command_loads_no_library_that_it_does_not_use(words, may_load):
    """Each of these takes longer to load than what most commands do."""
    code = (
        "import sys; from gridsched.cli.app import main; main(sys.argv[1:]); "
        "print([*{'numpy', 'numpy.ma', 'numba', 'pandas', 'pyarrow', 'pydantic', 'scipy'} & {*sys.modules}])"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(literal_eval(done.stdout.splitlines()[-1])) <= may_load


@pytest.mark.parametrize("name", get_command(app.app).list_commands(None))
def test_the_list_of_commands_says_what_each_says_of_itself(name):
    """The list is plain text, so that it imports nothing."""
    first = app.load_command(name).help.split("\n\n")[0]
    assert get_command(app.app).get_command(None, name).help == " ".join(first.split())
