"""What must be installed for what: the base for README's commands, an extra for each further use."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from document_blocks import blocks_of, commands_of, missing_line
from hidden_packages import HIDES

from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import MissingDependency
from gridsched.extras import EXTRA_OF, load

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: Module -> its distribution, where that has another name.
DISTRIBUTIONS = {"zmq": "pyzmq"}
#: What a requirement brings for certain (pydantic, typer, matplotlib, jinja2); tests of one's own policy need pytest.
BROUGHT = {"annotated_types", "pydantic_core", "click", "PIL", "markupsafe", "pytest"}

#: A run, a log, a comparison of several seeds, frames and figures from Python.
SCRIPT = """
from gridsched import Scenario, compare, plot_comparison, plot_gantt, plot_trace, run

result = run(Scenario("platforms/ex_a.xml", "examples/ex_a.csv", "min_min"))
assert len(result.tasks) == 5 and len(result.hosts) == 3
found = compare("platforms/ex_a.xml", "examples/ex_a.csv", ["wq", "mct"])
log = compare(None, "examples/four_nodes.swf", ["fcfs", "easy_backfilling"], driver="reference")
assert len(log.frame) == 2
assert list(found.frame.index) == ["wq", "mct"]
plot_comparison(found).savefig("comparison.png")
plot_gantt(result).savefig("gantt.png")
plot_trace(result).savefig("trace.png")
"""


def name_of(requirement: str) -> str:
    """Return the distribution's name of a requirement."""
    return re.split(r"[\[<>=]", requirement)[0]


def brought_by(extra: str) -> set[str]:
    """Return the distributions that an extra installs beside the base."""
    names: set[str] = set()
    for each in EXTRAS[extra]:
        inner = re.fullmatch(r"gridsched\[(.+)\]", each)
        names |= set().union(*map(brought_by, inner[1].split(","))) if inner else {name_of(each)}
    return names


@pytest.fixture
def bare(tmp_path, monkeypatch) -> Path:
    """A folder with what a checkout holds for commands, whose Python has the base alone."""
    for name in ("platforms", "deployments", "examples", "docs/figures"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "sitecustomize.py").write_text(HIDES)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'hiding'}:{ROOT}")
    monkeypatch.setenv("HIDDEN", ",".join(EXTRA_OF))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_module_of_an_extra_is_brought_by_it():
    """The extra that an error names contains the module; the extra 'all' and the tests contain every one."""
    for module, extra in EXTRA_OF.items():
        distribution = DISTRIBUTIONS.get(module, module.replace("_", "-"))
        assert distribution in brought_by(extra) & brought_by("all") & brought_by("test"), module
        assert distribution not in map(name_of, PROJECT["dependencies"])


def test_what_is_imported_is_required():
    """Every module of others that gridsched names in an import is of the base or of an extra."""
    base = {name_of(each).replace("-", "_") for each in PROJECT["dependencies"]}
    legal = base | set(EXTRA_OF) | set(sys.stdlib_module_names) | {"gridsched"} | BROUGHT
    for path in (ROOT / "gridsched").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert {name.partition(".")[0] for name in names} <= legal, f"{path}:{node.lineno}"


def test_requirements_have_lower_bounds_alone():
    """An upper bound that no known break asks for keeps users from what works."""
    every = PROJECT["dependencies"] + [each for extra in EXTRAS.values() for each in extra]
    for each in every:
        assert re.fullmatch(r"[\w-]+>=[\d.]+|gridsched\[[a-z,]+\]", each), each


@pytest.mark.systems
@pytest.mark.skipif(not is_installed(), reason="SimGrid is not installed")
def test_the_base_runs_the_commands_of_readme(bare):
    """README's commands print what it shows where nothing of an extra can be imported."""
    ran = 0
    for block in blocks_of(ROOT / "README.md"):
        for command in commands_of(block) if block.info == "console" else ():
            words = shlex.split(command.text)
            assert words[0] == "gridsched"
            done = subprocess.run(
                [sys.executable, "-m", *words], capture_output=True, text=True, timeout=300, check=False
            )
            assert done.returncode == command.status, done.stderr
            assert missing_line(command.shown, done.stdout + done.stderr) is None, done.stdout
            ran += 1
    assert ran >= 5


@pytest.mark.skipif(not is_installed(), reason="SimGrid is not installed")
def test_the_base_gives_frames_and_figures_in_python(bare):
    """A run, a log, a comparison, their frames and figures need nothing of an extra."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert all((bare / f"{name}.png").stat().st_size > 1000 for name in ("comparison", "gantt", "trace"))


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("studies", "study run tiny --store s"),
        ("studies", "compare --platform platforms/ex_a.xml --workload examples/ex_a.csv -o r.parquet"),
        pytest.param(
            "lp",
            "optimize pareto --platform platforms/ex_a.xml --workload examples/ex_a.csv",
            marks=pytest.mark.systems("profit"),
        ),
        pytest.param(
            "lp",
            "run --platform platforms/ex_a.xml --workload examples/ex_a.csv --scheduler lp_pareto",
            marks=pytest.mark.systems("profit"),
        ),
        ("tables", "platform from-table machines.xlsx -o p.xml"),
        pytest.param(
            "batsim",
            "run --workload examples/four_nodes.swf --scheduler batsim:tcp://127.0.0.1:28000",
            marks=pytest.mark.systems("batsim"),
        ),
        ("view", "view records -o run.html"),
    ],
)
def test_a_missing_extra_is_one_line(bare, extra, words):
    """Exit status 2, and the command to type; nothing is written."""
    (bare / "machines.xlsx").write_bytes(b"PK\x03\x04" + bytes(100))
    command = [sys.executable, "-m", "gridsched"]
    if "records" in words:
        inputs = "--platform platforms/ex_a.xml --workload examples/ex_a.csv --driver reference --scheduler wq"
        subprocess.run([*command, "run", *inputs.split(), "--export", "records"], check=True, capture_output=True)
    more = ["--driver", "reference"] if words.startswith(("run", "compare")) else []
    done = subprocess.run([*command, *words.split(), *more], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"pip install 'gridsched[{extra}]'.")
    assert not any((bare / name).exists() for name in ("s", "r.parquet", "p.xml", "run.html"))


def test_a_package_that_is_there_but_broken_keeps_its_own_error(tmp_path, monkeypatch):
    """Installing again what is installed would not help."""
    (tmp_path / "bokeh.py").write_text("import no_such_module_of_bokeh\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bokeh", raising=False)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_bokeh") as caught:
        load("bokeh", "Pages")
    assert not isinstance(caught.value, MissingDependency)
    assert "HIDDEN" not in os.environ
