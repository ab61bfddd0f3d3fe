"""A stranger's package, built into a wheel and installed beside gridsched, is used by commands like gridsched's own."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling builds the wheel of examples/plugin")

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "examples" / "plugin"
OFFLINE = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
BAG = "kind = 'pareto'\ntasks = 200\nleast_flops = 1e9\nseed = 3\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which the package's wheel is installed."""
    folder = tmp_path_factory.mktemp("stranger")
    pip = [sys.executable, "-m", "pip"]
    build = [*pip, "wheel", *OFFLINE, "--no-build-isolation", "-w", folder, PACKAGE]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", *OFFLINE, "--target", folder / "site", wheel], check=True, capture_output=True)
    return folder / "site"


@pytest.fixture
def command(site: Path, tmp_path: Path):
    """Call gridsched in a process that has the package; return what it prints."""
    (tmp_path / "bag.toml").write_text(BAG)

    def call(*words: object) -> str:
        environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
        line = [sys.executable, "-W", "error", "-m", "gridsched", *map(str, words)]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return call


def test_the_package_is_small():
    """At most 80 lines that are not empty, its pyproject.toml among them."""
    files = [PACKAGE / "pyproject.toml", *PACKAGE.glob("heavy_tails/*.py")]
    assert sum(1 for file in files for line in file.read_text().splitlines() if line.strip()) <= 80


def test_its_parts_are_listed(command):
    """The scheduler with its source, the kind of workload and the figure in the help."""
    assert "Mitzenmacher 2001" in command("schedulers", "two_choices")
    assert "pareto" in command("workload", "generate", "--help")
    assert "busy" in command("plot", "--help")


def test_its_scheduler_workload_metric_and_figure_are_used(command, tmp_path: Path):
    """A run of its workload by its scheduler; its metric in the table, its figure of the export."""
    assert "200 tasks" in command("workload", "generate", "bag.toml", "-o", "bag.csv")
    platform = ROOT / "platforms" / "ex_a.xml"
    words = ("run", "--platform", platform, "--workload", "bag.toml", "--scheduler", "two_choices")
    printed = command(*words, "--driver", "reference", "--export", "out")
    (shown,) = (line.split()[-1] for line in printed.splitlines() if line.startswith("imbalance"))
    command("plot", "busy", "out", "-o", "busy.svg")
    with open(tmp_path / "busy.csv", encoding="utf-8") as file:
        busy = [float(row["busy_s"]) for row in csv.DictReader(line for line in file if not line.startswith("#"))]
    assert float(shown) == pytest.approx(max(busy) / (sum(busy) / len(busy)), rel=1e-4)
    assert sum(busy) > 0
