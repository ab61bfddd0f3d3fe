"""What a stranger gets: versions, commands, dependencies and cheap imports."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

import gridsched
from gridsched.files.input_files import FOLDERS

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

IMPORT_WITHOUT = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)

sys.meta_path.insert(0, Blocker())
sys.path.insert(0, {root!r})
import {module}
loaded = sorted({{name.partition(".")[0] for name in sys.modules}} & set({blocked!r}))
sys.exit(f"imported {{loaded}}" if loaded else 0)
"""


def words_of(script: Path) -> list[str]:
    """Return a shell script's lines that do something, without comments and set-up."""
    lines = [line.strip() for line in script.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]


def requirement_names(requirements: list[str]) -> set[str]:
    """Return the distributions' names of a list of requirements, normalised."""
    return {re.split(r"[\[<>=!~ ;]", text)[0].lower().replace("_", "-") for text in requirements}


def test_the_version_has_one_source():
    """The project takes its version from gridsched/version.py and says 0.1.0 or a later one."""
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "gridsched/version.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", gridsched.__version__)


def test_the_citation_names_this_version():
    """CITATION.cff cites the version that the package reports, under the package's licence."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {gridsched.__version__}\n" in citation
    assert f"\nlicense: {PROJECT['project']['license']}\n" in citation


def test_continuous_integration_calls_make_test_only():
    """.ci/run is executable and its one command is 'make test'."""
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert words_of(script) == ["exec make test"]


@pytest.mark.parametrize("target", ["demo", "test", "test-long", "benchmark", "wheels", "docs", "clean", "help"])
def test_make_lists_its_targets(target: str):
    """'make help' has a line for every target that the README names."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    done = subprocess.run(["make", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True)
    assert re.search(rf"^  make {target} +\S", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("script", ["set_up.sh", "run_demo.sh", "build_wheels.sh", "build_documents.sh"])
def test_the_scripts_are_executable_and_parse(script: str):
    """bash accepts each script's syntax, and make can run it."""
    path = ROOT / "scripts" / script
    assert path.stat().st_mode & 0o111
    done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_dependency_has_a_tested_version():
    """constraints.txt pins each dependency and each test tool to exactly one version."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = requirement_names(
        PROJECT["project"]["dependencies"] + [text for extra in extras.values() for text in extra]
    )
    assert wanted - {"gridsched"} <= requirement_names(pins)


def test_every_dependency_has_a_range():
    """Each requirement has a lowest and an upper bound."""
    extras = PROJECT["project"]["optional-dependencies"]
    for text in PROJECT["project"]["dependencies"] + extras["test"]:
        assert re.fullmatch(r"[\w-]+>=[\d.]+,<[\d.]+", text), text


def test_pip_and_uv_build_simgrid_under_the_same_constraint():
    """What build-constraints.txt says to pip, pyproject.toml says to uv."""
    lines = (ROOT / "build-constraints.txt").read_text(encoding="utf-8").splitlines()
    for_pip = [line for line in lines if not line.startswith("#")]
    assert for_pip == PROJECT["tool"]["uv"]["build-constraint-dependencies"] == ["pybind11<3"]


def test_the_licence_is_whole():
    """LICENSE is the Apache licence from its first heading to its appendix."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.mark.parametrize("module", ["gridsched", "gridsched.policy.registry"])
def test_importing_needs_neither_simgrid_nor_matplotlib(module: str):
    """The package and its registry import where SimGrid and matplotlib are missing."""
    code = IMPORT_WITHOUT.format(blocked=("simgrid", "matplotlib"), root=str(ROOT), module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_the_package_loads_no_numeric_package():
    """'import gridsched' alone is quick: it loads neither numpy nor pandas nor numba."""
    code = IMPORT_WITHOUT.format(blocked=("numpy", "pandas", "numba", "scipy"), root=str(ROOT), module="gridsched")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_wheel_carries_what_examples_use():
    """Each folder that 'gridsched example' knows is put into the wheel, where it looks for it."""
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {folder: f"gridsched/shipped/{folder}" for folder in FOLDERS}


@pytest.mark.long
def test_the_wheels_of_dist_work_in_a_fresh_environment(tmp_path):
    """Without network; what gridsched depends on is seen where this Python has it."""
    wheels = [str(next((ROOT / "dist").glob(pattern), "")) for pattern in ("gridsched-*.whl", "simgrid-*.whl")]
    if not all(wheels):
        pytest.skip("dist/ has no wheels; 'make wheels' builds them")
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    own = next((tmp_path / "fresh").glob("lib/python*/site-packages"))
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", *wheels], check=True)
    (own / "dependencies.pth").write_text(sysconfig.get_path("platlib") + "\n")
    places = "import gridsched, simgrid; print(gridsched.__file__, simgrid.__file__)"
    done = subprocess.run([python, "-c", places], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert all(Path(place).is_relative_to(own) for place in done.stdout.split())
    command = [
        python.with_name("gridsched"),
        "compare",
        "--platform",
        "platforms/ex_a.xml",
        "--workload",
        "examples/ex_a.csv",
        "--driver",
        "simgrid",
    ]
    for words in ([command[0], "example", "copy"], command):
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
