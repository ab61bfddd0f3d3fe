"""What works without the heavy packages, and what is said where one is missing; in processes that lack them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Hides packages from all that looks for them, in this process and in those that it starts.
HIDES = """
import os
import sys
from importlib.machinery import PathFinder

hidden, find = set(os.environ["HIDDEN"].split(",")), PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, *more: None if name.partition(".")[0] in hidden else find(name, *more)
)
"""
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
    status, out, complaints = without(HEAVY, *words)
    assert (status, "Traceback" in complaints) == (0, False), complaints
    assert out


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("pyarrow", ("study", "run", "tiny", "--store", "s")),
        ("matplotlib", ("compare", *EX_A, "--driver", "reference", "--plot", "x.png")),
        ("scipy", ("optimize", "pareto", *EX_A)),
        ("numba", ("run", "--workload", ROOT / "examples/parallel_small.toml", "--scheduler", "max_upe")),
    ],
)
def test_a_missing_package_is_named_in_one_line(without, tmp_path, package, words):
    """Exit status 2, the package, how to install it; nothing is written."""
    status, _, complaints = without(package, *words)
    assert status in (1, 2), complaints
    lines = [line for line in complaints.splitlines() if "Configuration change" not in line]
    assert "Traceback" not in complaints
    assert any(package in line and "pip install" in line for line in lines), complaints
    assert not (tmp_path / "s").exists()
