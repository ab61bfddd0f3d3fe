"""Deleting the folder of a system leaves a core that works: in a copy for each, and one without any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_files import caches
from systems_there import SYSTEMS

ROOT = Path(__file__).resolve().parents[2]
#: What a checkout has that its files did not bring; hidden folders beside `.ci` are of tools.
MADE = {"demo", "site", "build", "dist", "htmlcov"}
#: Tests that the normal run leaves out are left out here, too.
NORMAL = "not long and not faults"
#: Documents show every system's commands; the tests of systems are run with each system alone.
OF_THE_CORE = ("tests", "--ignore=tests/docs", "--ignore=tests/systems")


def copy_without(folder: Path, systems: tuple[str, ...]) -> Path:
    """Copy the checkout, with its bytecode, without some systems and their tests."""
    for source in ROOT.iterdir():
        if not source.is_dir():
            shutil.copy(source, folder / source.name)
        elif source.name == ".ci" or not (source.name in MADE or source.name.startswith(".")):
            shutil.copytree(source, folder / source.name, ignore=caches)
    for name in systems:
        shutil.rmtree(folder / "gridsched" / "systems" / name)
        shutil.rmtree(folder / "tests" / "systems" / name)
    (folder / "tests" / "systems" / Path(__file__).name).unlink()
    return folder


def python(folder: Path, *words: str) -> str:
    """Run Python in a copy; return what it prints, and fail where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    line = [sys.executable, *words]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "plugin" not in done.stderr.lower()
    return done.stdout


WHAT_IS_THERE = """
from gridsched.policy.registry import entries, scheduler_class
from gridsched.workloads.generators import GENERATORS
from gridsched.workloads.traces.formats import FORMATS
from gridsched.runs.figure_kinds import figure_kinds
from gridsched.cli.app import app
from typer.main import get_command
for entry in entries():
    scheduler_class(entry.id)
assert all(each.model and each.generate for each in GENERATORS.values())
assert figure_kinds("run")["gantt"].draw
print(len(entries()), *GENERATORS, *FORMATS, *get_command(app).list_commands(None))
"""


@pytest.mark.parametrize("systems", [*((name,) for name in SYSTEMS), SYSTEMS], ids="+".join)
def test_the_core_lists_and_runs_without(systems: tuple[str, ...], tmp_path: Path):
    """Tables hold what is left, all of it can be imported, and a comparison of bag schedulers runs."""
    copy = copy_without(tmp_path, systems)
    words = python(copy, "-c", WHAT_IS_THERE).split()
    assert ("optimize" in words) == ("profit" not in systems)
    assert (".json" in words) == ("batsim" not in systems)
    assert {"bag", "rigid_jobs", ".swf", "run", "compare"} <= set(words)
    compared = ("--platform", "platforms/ex_a.xml", "--workload", "examples/ex_a.csv", "--driver", "reference")
    assert "lecsa" in python(copy, "-m", "gridsched", "compare", *compared)


def run_tests(copy: Path, *words: str) -> None:
    """Run tests of a copy, and fail with the names of all that fail."""
    python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words)


@pytest.mark.long
def test_all_tests_of_the_core_pass_without_any(tmp_path: Path):
    """Those that need a system are skipped, so this runs what no mark names a system for."""
    run_tests(copy_without(tmp_path, SYSTEMS), "-m", NORMAL, *OF_THE_CORE)


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_tests_of_the_core_that_need_others_pass_without(system: str, tmp_path: Path):
    """What has a mark names each system that it needs."""
    run_tests(copy_without(tmp_path, (system,)), "-m", f"systems and {NORMAL}", *OF_THE_CORE)


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_systems_own_tests_need_no_other(system: str, tmp_path: Path):
    """In a copy that has this system alone."""
    copy = copy_without(tmp_path, tuple(name for name in SYSTEMS if name != system))
    run_tests(copy, "-m", NORMAL, f"tests/systems/{system}")
