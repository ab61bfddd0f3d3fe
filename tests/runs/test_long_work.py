"""Work that takes long is reported in one line, once; a command that is asked to be quiet reports nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gridsched import compiled, long_work
from gridsched.cli.app import main

ROOT = Path(__file__).parents[2]
COMPARE = [
    *("compare", "--platform", str(ROOT / "platforms/ex_a.xml"), "--workload", str(ROOT / "examples/ex_a.csv")),
    *("--schedulers", "wq", "--driver", "reference"),
]


@pytest.fixture
def reported(monkeypatch):
    """Return what is reported, and an event that is set with it."""
    lines, said = [], threading.Event()

    def report(text: str) -> None:
        lines.append(text)
        said.set()

    monkeypatch.setattr(long_work, "reporters", [report])
    return lines, said


def test_work_is_reported_once_it_has_taken_a_while(reported):
    """What ends before is not, and no work is reported twice."""
    lines, said = reported
    with long_work.long_work("short", 1000.0):
        pass
    assert lines == []
    work = long_work.LongWork("long", 0.01)
    work.begin()
    assert said.wait(60.0)
    work.end()
    work.begin()
    work.end()
    assert lines == ["long"]


def test_pieces_of_work_count_together(reported):
    """Two that are each too short; and a piece within another is none of its own."""
    lines, said = reported
    work = long_work.LongWork("in pieces", 0.2)
    pause = threading.Event()
    while not said.is_set():
        work.begin()
        work.begin()
        pause.wait(0.05)
        work.end()
        pause.wait(0.05)
        work.end()
    assert lines == ["in pieces"]


def test_nothing_is_reported_where_nobody_listens(monkeypatch):
    """As in a program that imports gridsched: no thread is started."""
    monkeypatch.setattr(long_work, "reporters", [])
    before = threading.active_count()
    with long_work.long_work("anything", 0.0):
        assert threading.active_count() == before


@pytest.mark.parametrize("quiet", [False, True])
def test_a_command_reports_what_it_waits_for(monkeypatch, capsys, quiet):
    """The bounds of a comparison on stderr, with no patience at all; under --quiet not."""
    monkeypatch.setattr(long_work, "PATIENCE_S", 0.0)
    assert main([*COMPARE, *["--quiet"] * quiet]) == 0
    errors = capsys.readouterr().err
    assert ("bounds" in errors) is not quiet
    assert errors.count("bounds") <= 1


@pytest.mark.parametrize("quiet", [False, True])
def test_compiling_is_reported_by_the_same_mechanism(monkeypatch, capsys, quiet):
    """One line, however many loops are compiled; under --quiet none."""
    monkeypatch.setattr(long_work, "PATIENCE_S", 0.0)
    assert main([*COMPARE, *["--quiet"] * quiet]) == 0
    capsys.readouterr()
    for _ in range(2):
        compiled.report_compiling(True)
        compiled.report_compiling(False)
    assert capsys.readouterr().err.count("compiling") == (0 if quiet else 1)
