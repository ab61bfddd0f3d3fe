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
COPIED = ("gridsched", "tests", "platforms", "examples", "deployments", "docs", "pyproject.toml", "README.md")
#: Tests of the core that take seconds, and go through many rooms.
QUICK = (
    "tests/schedulers/test_list_scheduling.py",
    "tests/engine/test_queues.py",
    "tests/workloads/test_swf.py",
    "tests/runs/test_run_spec.py",
    "tests/export/test_figures.py",
)


def copy_without(folder: Path, systems: tuple[str, ...]) -> Path:
    """Copy the checkout, with its bytecode, without some systems and their tests."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=caches)
        else:
            shutil.copy(source, folder / name)
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


@pytest.mark.long
def test_quick_tests_of_the_core_pass_without_any(tmp_path: Path):
    """Those of `QUICK`, in a copy without all systems."""
    copy = copy_without(tmp_path, SYSTEMS)
    python(copy, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *QUICK)


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_all_tests_of_the_core_pass_without(system: str, tmp_path: Path):
    """All but those of the documents, which show every system's commands."""
    copy = copy_without(tmp_path, (system,))
    python(copy, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests", "--ignore=tests/docs")
