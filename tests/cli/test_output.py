"""Where commands write, how tables look, and the messages about missing packages."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_cases import EX_A_TASKS, host_xml, zone_xml
from hidden_packages import HIDES
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from gridsched.cli.app import main
from gridsched.cli.tables import print_table, print_values
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.files.output_files import check_writable, write_whole
from gridsched.loop_library import KERNELS
from gridsched.metrics.columns import Column, numbers, percent, prefix

# Devices and sockets in the place of files: one line, instead of reading for ever.


@pytest.fixture(params=["/dev/zero", "/dev/random", "/dev/full", "socket"])
def endless(request, tmp_path, monkeypatch) -> str:
    """Return the path of something that is not a file, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    if request.param != "socket":
        return request.param
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    return "socket"


def test_what_is_no_file_is_refused_wherever_one_is_read(refused, endless):
    """Platforms, workloads, studies and tables; links to it, too."""
    Path("p.xml").write_text(zone_xml(host_xml()))
    Path("bag.csv").write_text(EX_A_TASKS)
    for name in ("link.csv", "link.toml", "link.xml"):
        Path(name).symlink_to(endless)
    told = "it is a device or pipe"
    assert told in refused("platform", "check", endless)
    assert told in refused("run", "--platform", "link.xml", "--workload", "bag.csv")
    assert told in refused("run", "--platform", "p.xml", "--workload", "link.csv")
    assert told in refused("run", "--workload", "link.toml")
    assert told in refused("platform", "from-table", endless, "-o", "x.xml")
    assert told in refused("study", "run", "link.toml", "--store", "new")
    assert "is not a store" in refused("study", "report", endless)


# ``-o FILE --force`` replaces regular files alone: no device, pipe, link or folder is lost.


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.with_name("original.csv").write_text("mine")
    path.symlink_to("original.csv")


def broken_link(path: Path) -> None:
    path.symlink_to("missing.csv")


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/null")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


KINDS = [pipe, link, broken_link, link_to_device, unix_socket]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path, make: Callable[[Path], None], force: bool):
    """One line that reports this, before and when it is written; the target is what it was."""
    target = tmp_path / "out.csv"
    make(target)
    before = os.lstat(target)
    content = {path: path.read_text() for path in tmp_path.glob("original*")}
    for refuse in (check_writable, lambda path, force: write_whole(path, "a,b\n", force=force)):
        with pytest.raises(InputError, match=r"out\.csv") as caught:
            refuse(target, force=force)
        assert "\n" not in str(caught.value)
    after = os.lstat(target)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert content == {path: path.read_text() for path in tmp_path.glob("original*")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may replace a device")
def test_a_device_is_never_replaced(tmp_path: Path):
    """As root the folder of a device is writable, and the device would become a file."""
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o020666, os.makedev(1, 3))
    except OSError:
        pytest.skip("no device can be made here")
    with pytest.raises(InputError, match="is not a regular file"):
        write_whole(device, "text", force=True)
    assert device.is_char_device()


def test_the_command_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture):
    """``workload generate -o LINK --force``: exit status 2, and the link is there."""
    link(tmp_path / "bag.csv")
    arguments = ["workload", "generate", "--kind", "bag", "--tasks", "3", "--mean-flops", "10"]
    arguments += ["--heterogeneity", "0", "--seed", "1", "-o", str(tmp_path / "bag.csv")]
    assert main([*arguments, "--force"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "original.csv").read_text() == "mine"
    assert (tmp_path / "bag.csv").is_symlink()


def test_regular_files_are_replaced_with_force(tmp_path: Path):
    """The usual case: refused without --force, replaced with it."""
    (tmp_path / "a.csv").write_text("old")
    with pytest.raises(InputError, match="exists already"):
        write_whole(tmp_path / "a.csv", "new")
    write_whole(tmp_path / "a.csv", "new", force=True)
    assert (tmp_path / "a.csv").read_text() == "new"


# What works without the heavy packages, and the messages without them; in processes that lack them.

ROOT = Path(__file__).resolve().parents[2]
HEAVY = "pyarrow,numba,llvmlite,scipy,pandas,matplotlib,jinja2,python_calamine"
EX_A = ("--platform", ROOT / "platforms/ex_a.xml", "--workload", ROOT / "examples/ex_a.csv")


@pytest.fixture
def without(tmp_path: Path):
    """Return a function that runs a command where packages are hidden: status, output, complaints."""
    (tmp_path / "sitecustomize.py").write_text(HIDES)

    def call(hidden: str, *words: object) -> tuple[int, str, str]:
        environment = {**os.environ, "HIDDEN": hidden, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
        done = subprocess.run(
            [sys.executable, "-m", "gridsched", *map(str, words)],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.mark.parametrize(
    "words",
    [
        ("run", *EX_A, "--scheduler", "lecsa", "--driver", "reference", "--timeout-s", "60"),
        ("compare", *EX_A, "--driver", "reference"),
        ("compare", "--workload", ROOT / "examples/four_nodes.swf", "--driver", "reference"),
        ("schedulers",),
    ],
)
def test_the_main_commands_need_none_of_the_heavy_packages(without, words):
    """Small bags and logs run with what is left: NumPy, pydantic, typer and the like."""
    status, out, problems = without(HEAVY, *words)
    assert (status, "Traceback" in problems) == (0, False), problems
    assert out


def test_a_missing_package_is_named_in_one_line(without):
    """Exit status 2, the package, how to install it."""
    status, _, problems = without("matplotlib", "compare", *EX_A, "--driver", "reference", "--plot", "x.png")
    assert status in (1, 2), problems
    lines = [line for line in problems.splitlines() if "Configuration change" not in line]
    assert "Traceback" not in problems
    assert any("matplotlib" in line and "pip install" in line for line in lines), problems


#: What each decision bears on.
COMPARED = ("energy_j", "makespan_s", "executions", "hosts_used", "mean_waiting_time_s", "mean_flow_time_s")


@pytest.mark.systems("utility")
@pytest.mark.parametrize(
    "driver",
    ["reference", pytest.param("simgrid", marks=pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL))],
)
def test_without_numba_and_library_loops_are_interpreted(without, monkeypatch, driver):
    """All of them, with one line that names what to install; the results are those of compiled ones."""
    words = "run", "--workload", ROOT / "examples/parallel_small.toml", "--scheduler", "max_upe", "--driver", driver
    found = []
    for kernels, hidden in (("", ""), ("python", "numba,llvmlite")):
        monkeypatch.setenv(KERNELS, kernels)
        status, out, problems = without(hidden, *words, "--json")
        assert status == 0, problems
        found.append([json.loads(out)[name] for name in COMPARED])
    (line,) = problems.splitlines()
    assert "interpreted" in line
    assert "pip install 'gridsched[compile]'" in line
    assert found[0] == found[1]


# How tables and numbers look.

COLUMNS = (
    Column("name", "name"),
    Column("energy", "energy\n[{unit}]", "number", "J", "total"),
    Column("model", "model\n[{unit}]", "number", "J", "total"),
    Column("idle", "idle [{unit}]", "number", "J"),
    Column("above", "above", "percent"),
    Column("difference", "difference", "exponent"),
)
ROWS = [
    {"name": "a [b]", "energy": 1.6643e10, "model": 1.6643e10, "idle": 82495.4, "above": 0.541, "difference": 1.1e-16},
    {"name": "long name", "energy": 1.08e10, "model": 1.08e10, "idle": 0.0, "above": 0.0, "difference": 0.0},
    {"name": "failed", "energy": None, "model": float("nan")},
]


def printed(width: int, columns=COLUMNS, rows=ROWS, title: str = "") -> list[str]:
    """Return the lines of a table on a terminal of that width."""
    out = Console(file=io.StringIO(), width=width, highlight=False, soft_wrap=True)
    print_table(out, columns, rows, title)
    return out.file.getvalue().splitlines()


def test_table_in_full():
    """Prefixes are shared on request; zeros, nothing and the best are distinguished."""
    assert printed(120, title="Title") == [
        "Title",
        "            energy    model",
        "name          [GJ]     [GJ]  idle [J]    above  difference",
        "─" * 58,
        "a [b]      16.6430  16.6430  82,495.4  +54.1 %     1.1e-16",
        "long name  10.8000  10.8000         0     best           0",
        "failed           -        -         -        -           -",
    ]


@given(st.integers(1, 130))
def test_no_line_is_wider_than_the_terminal(width):
    """Where the columns do not fit, further blocks follow, each with the names."""
    lines = printed(width)
    widest = max(cell_len(line) for line in lines)
    assert widest <= max(width, cell_len("long name  10.8000") + 3)
    if width >= 25:
        blocks = "\n".join(lines).split("\n\n")
        assert all("long name" in block for block in blocks)
        for word in ("16.6430", "82,495.4", "+54.1 %", "1.1e-16"):
            assert word in "\n".join(lines)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([], []),
        ([0.0], ["0"]),
        ([None, float("nan"), float("inf")], ["-", "-", "-"]),
        ([80.0, 100.0], ["80", "100"]),
        ([80.5, 100.0], ["80.500", "100.000"]),
        ([1234567.0], ["1,234,567"]),
        ([1234567.5, 1.0], ["1,234,568", "1"]),
        ([0.001234567], ["0.00123457"]),
        ([1e-9], ["1.00000e-09"]),
        ([1e20, 1.0], ["1.00000e+20", "1.00000e+00"]),
        ([100000.5, 0.01], ["100,000", "1.0e-02"]),
        ([-2.5], ["-2.50000"]),
    ],
)
def test_numbers(values, shown):
    """Six significant digits of the largest, equal decimals, whole numbers without any."""
    assert numbers(values) == shown


@given(st.lists(st.floats(0, 1e30), max_size=8))
def test_numbers_are_right_to_six_digits(values):
    """What is shown differs from the value by less than the last digit of the largest."""
    largest = max(values, default=0.0)
    for value, text in zip(values, numbers(values), strict=True):
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.06, abs=6e-6 * largest)
        if value == largest:
            assert float(text.replace(",", "")) == pytest.approx(value, rel=6e-6)


@given(st.floats(1e-300, 1e300))
def test_prefix(largest):
    """Up to a million no prefix; beyond, the number shown is below 1000 while prefixes last."""
    factor, letter = prefix(largest)
    if largest < 1e6:
        assert (factor, letter) == (1.0, "")
    elif largest < 1e21:
        assert 0.999 <= largest / factor < 1000.001
    else:
        assert letter == "E"


def test_percent():
    """0 is the best; nothing stays nothing."""
    assert [percent(v) for v in (0.0, 0.5, 12.345, -0.1, None, float("nan"))] == [
        "best",
        "+50.0 %",
        "+1,234.5 %",
        "-10.0 %",
        "-",
        "-",
    ]


def test_values_stand_in_line():
    """Decimal points are under each other; texts are left as they are."""
    out = Console(file=io.StringIO(), width=80, highlight=False)
    print_values(out, [("a", 1234.0, "J"), ("long", 0.5, ""), ("b", "text", ""), ("c", None, "s")])
    assert out.file.getvalue().splitlines() == ["a     1,234   J", "long      0.5", "b     text", "c         -   s"]
