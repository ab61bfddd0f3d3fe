"""Right files with bytes and words changed: an answer or one line, never a crash."""

from __future__ import annotations

import importlib.util
import json
import shlex
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cli_cases import EX_A_TASKS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutated_files import LOGS, PLATFORM, Reader, mutated, readers
from small_study import make_store, study_in

from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

READERS = readers()
CLAIM = 'CLAIMS = [Claim("less", "number", "", "by hand", mean("energy_j", "lecsa"), (1.0, 90.0), AFTER, paper=50.0)]'
#: 'make test-long' asks for 10,000 files in all.
_IS_WIDE = settings.default.max_examples > 100
few = settings(
    max_examples=300 if _IS_WIDE else 8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
fewer = settings(few, max_examples=80 if _IS_WIDE else 3)
#: A command that takes longer has no end [s].
ENDLESS_S = 120


class Endless(BaseException):
    """A command has no end."""


@contextmanager
def ending() -> Iterator[None]:
    """Raise `Endless` in what has no end."""

    def ring(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(ENDLESS_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def wrong_answers(gridsched, folder: Path, command: str, made: tuple[str, ...] = ()) -> list[str]:
    """Return what is wrong with a command that should answer, or refuse in one line.

    What was there stays as it is.
    """
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with ending():
        outcome = gridsched(*(word.replace("{}", str(folder)) for word in shlex.split(command)))
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    new = {path.name for path in after.keys() - before.keys()}
    words = ("Traceback", "internal error", "out of memory", "Warning")
    faults = {
        "odd exit status": outcome.status not in (0, 1, 2),
        "crash": any(word in outcome.err for word in words),
        "file changed": {path: after.get(path) for path in before} != before,
    }
    if outcome.status == 2:
        faults |= {
            "not one line": (len(outcome.problems), outcome.out) != (1, ""),
            "long line": len(outcome.err) >= 2000,
            "new file": new != set(),
        }
    elif outcome.status == 0:
        faults |= {
            "unknown file": not new <= set(made),
            "silent": not (outcome.out or new),
            "no JSON": "--json" in command and not is_json(outcome.out),
        }
    else:
        faults["silent"] = not (outcome.err or outcome.out)
    return [f"{fault}: {command}: {outcome}"[:3000] for fault, is_so in faults.items() if is_so]


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def damaged(gridsched, reader: Reader, data: st.DataObject) -> list[str]:
    """Damage one of a reader's files; return what is wrong with its commands' answers."""
    name = data.draw(st.sampled_from(reader.names))
    content = data.draw(mutated(reader.files[name]))
    faults = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for other, right in {**reader.files, name: content}.items():
            path = folder / other
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(right.encode() if isinstance(right, str) else right)
        for command in reader.commands:
            faults += wrong_answers(gridsched, folder, command, reader.made)
    return faults


@pytest.mark.systems("batsim", "profit", "robust", "utility", "workflows")
@pytest.mark.parametrize("name", [name for name, each in READERS.items() if not each.is_slow])
@few
@given(data=st.data())
def test_reader(gridsched, name, data):
    """One damaged file among right ones."""
    assert damaged(gridsched, READERS[name], data) == []


@pytest.mark.systems("batsim", "profit", "robust", "utility", "workflows")
@pytest.mark.parametrize("name", [name for name, each in READERS.items() if each.is_slow])
@fewer
@given(data=st.data())
def test_slow_reader(gridsched, name, data):
    """The same where another process reads along: SimGrid, or what reads workbooks."""
    if READERS[name].needs_simgrid and importlib.util.find_spec("simgrid") is None:
        pytest.skip("SimGrid is not installed")
    assert damaged(gridsched, READERS[name], data) == []


@pytest.mark.systems("batsim", "profit", "robust", "utility", "workflows")
@pytest.mark.parametrize("name", READERS)
def test_right_files_are_read(gridsched, tmp_path, name):
    """Without damage each command answers: what is damaged was right before."""
    reader = READERS[name]
    if reader.needs_simgrid and importlib.util.find_spec("simgrid") is None:
        pytest.skip("SimGrid is not installed")
    for other, right in reader.files.items():
        (tmp_path / other).write_bytes(right.encode() if isinstance(right, str) else right)
    for command in reader.commands:
        words = [word.replace("{}", str(tmp_path)) for word in shlex.split(command)]
        assert gridsched(*words).status == 0, gridsched(*words)


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


EXPORT_COMMANDS = (
    "validate {}/out --json",
    *(f"plot {kind} {{}}/out -o {{}}/{kind}.svg" for kind in ("gantt", "power", "trace", "prices")),
)


@pytest.fixture(scope="module")
def export(tmp_path_factory) -> Reader:
    """Return the files of an export, and the commands that read them."""
    folder = tmp_path_factory.mktemp("export")
    prices = "time_s,price,energy_cost_per_kwh\n0,1,0.5\n20,1,0.25\n"
    for name, text in (("p.xml", PLATFORM), ("w.csv", EX_A_TASKS), ("m.csv", prices)):
        (folder / name).write_text(text)
    words = [
        "run",
        "--platform",
        folder / "p.xml",
        "--workload",
        folder / "w.csv",
        "--quiet",
        "--driver",
        "reference",
        "--price",
        "1",
        "--prices",
        folder / "m.csv",
        "--export",
        folder / "out",
    ]
    assert main([str(word) for word in words]) == 0
    files = {f"out/{path.name}": path.read_bytes() for path in (folder / "out").iterdir()}
    made = [word.rpartition("/")[2] for command in EXPORT_COMMANDS for word in command.split()]
    plots = tuple(name for name in made if name.endswith(".svg"))
    return Reader(files, EXPORT_COMMANDS, ("out/trace.npz",), (*plots, *(name.replace("svg", "csv") for name in plots)))


@few
@given(command=st.sampled_from(EXPORT_COMMANDS), data=st.data())
def test_export(gridsched, export, command, data):
    """A damaged export, read by one of its commands."""
    assert damaged(gridsched, replace(export, commands=(command,)), data) == []


@pytest.fixture(scope="module", params=["segments", "parquet"])
def store(request, tmp_path_factory) -> Reader:
    """Return the files of a store, rows in segments or compacted, and a command that reads them."""
    folder = make_store(tmp_path_factory.mktemp("store") / "store")
    study_in(folder.with_name("study"), claims=CLAIM)
    if request.param == "parquet":
        Store.open(folder).compact()
    files = {
        str(path.relative_to(folder.parent)): path.read_bytes()
        for path in folder.parent.rglob("*")
        if path.is_file() and "store-study" not in str(path)
    }
    rows = tuple(name for name in files if "segments/" in name or name.endswith(".parquet"))
    command = "study claims {}/store --study {}/study/small.toml --json --trust"
    return Reader(files, (command,), rows or tuple(files))


@fewer
@given(data=st.data())
def test_store(gridsched, store, data):
    """A damaged store: what is whole is read."""
    assert damaged(gridsched, store, data) == []


OPTIONS = (
    ["--scheduler", "lecsa", "--set", "few_tasks_share={}"],
    ["--scheduler", "wqr", "--set", "{}"],
    ["--scheduler", "{}"],
    ["--timeout-s={}"],
    ["--pstate={}"],
    ["--power={}"],
    ["--power=h*={}:1:2"],
    ["--failures=mtbf={},mttr=1"],
    ["--failures={}"],
    ["--horizon-s={}"],
    ["--mapping-interval-s={}"],
    ["--energy-budget-j={}"],
    ["--power-cap-w={}"],
    ["--price={}"],
    ["--hosts-off={}"],
    ["--seed={}"],
    ["--scheduler", "idle_off", "--set", "scheduler={}"],
)


@few
@given(
    option=st.sampled_from(OPTIONS),
    value=st.text(max_size=20)
    | st.floats().map(repr)
    | st.integers().map(str)
    | st.sampled_from(["1" * 400, "1e999", "²", "$x$y", "*" * 30, "[" * 200, "(a+)+$"]),
)
def test_values_of_options(gridsched, ex_a, option, value):
    """Any text as a parameter's value, seed, scheduler, power or list of names."""
    words = [word.replace("{}", value) for word in option]
    with ending():
        outcome = gridsched("run", *ex_a, "--driver", "reference", "--json", *words)
    timed_out = "ended after the time-out" in outcome.err
    assert outcome.status in ((1,) if timed_out else (0, 1, 2)), outcome
    assert "internal error" not in outcome.err
    if outcome.status == 0:
        json.loads(outcome.out)
    elif outcome.status == 2:
        assert len(outcome.problems) == 1
