"""What may import what, and what the package brings with it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import gridsched
from gridsched.files.shipped_files import FOLDERS

# Imports run one way only, SimGrid stays in its folder, and only the commands print.

PACKAGE = Path(__file__).resolve().parents[1] / "gridsched"
SOURCES = sorted(PACKAGE.rglob("*.py"))

#: Each room may import from its own row and from the rows above it.
#: They are those of the contract of import-linter, from the ground up.
PROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())
LAYERS = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
ROWS = tuple(tuple(layer.split(" : ")) for layer in reversed(LAYERS))
HEIGHT = {room: height for height, row in enumerate(ROWS) for room in row}


def is_type_checking(test: ast.expr) -> bool:
    """Whether an if statement's test is TYPE_CHECKING or typing.TYPE_CHECKING."""
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def running_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a module without the bodies of ``if TYPE_CHECKING:``."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and is_type_checking(child.test):
            for other in child.orelse:
                yield from running_nodes(other)
        else:
            yield from running_nodes(child)


def imported_names(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield (dotted name, line) of all that a module of `package` imports, at any depth."""
    for node in running_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            outer = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join((*outer, *filter(None, [node.module])))
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            constants = [each for each in node.args[:1] if isinstance(each, ast.Constant)]
            yield from ((str(constant.value), node.lineno) for constant in constants)


def imports_of(source: Path) -> list[tuple[str, int]]:
    """Return (dotted name, line) of all that a file of the package imports."""
    package = ("gridsched", *source.relative_to(PACKAGE).parent.parts)
    return list(imported_names(ast.parse(source.read_text(encoding="utf-8")), package))


def room_of(source: Path) -> str:
    """Return the folder or module directly under gridsched/ that a file belongs to."""
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms_imported(source: Path) -> Iterator[tuple[str, int]]:
    """Yield (room, line) for what a file imports from gridsched itself."""
    for name, line in imports_of(source):
        top, *rest = name.split(".")
        if top == "gridsched" and rest and not rest[0].startswith("__"):
            yield rest[0], line


def place(source: Path, line: int) -> str:
    """Return 'gridsched/file.py:line' for a message."""
    return f"{source.relative_to(PACKAGE.parent)}:{line}"


def in_rooms() -> list[Path]:
    """Return the package's files except gridsched/__init__.py, which is above all rows."""
    return [source for source in SOURCES if source != PACKAGE / "__init__.py"]


def test_every_room_has_its_row():
    """A new folder or module of the package must be given a place in the order of imports."""
    assert {room_of(source) for source in in_rooms()} <= set(HEIGHT)


def test_imports_run_one_way():
    """No file imports from a row after its own."""
    wrong = [
        f"{place(source, line)} imports gridsched.{room}"
        for source in in_rooms()
        for room, line in rooms_imported(source)
        if HEIGHT.get(room, len(ROWS)) > HEIGHT.get(room_of(source), len(ROWS))
    ]
    assert wrong == []


def test_rooms_do_not_import_each_other_in_a_circle():
    """Within a row, too, the imports between rooms have a direction."""
    graph: dict[str, set[str]] = {room_of(source): set() for source in in_rooms()}
    for source in in_rooms():
        graph[room_of(source)] |= {room for room, _ in rooms_imported(source)} - {room_of(source)}
    try:
        order = set(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"rooms import each other in a circle: {error.args[1]}")
    assert set(graph) <= order


def test_only_drivers_import_simgrid():
    """SimGrid's module is imported under gridsched/drivers/ and nowhere else."""
    wrong = [
        place(source, line)
        for source in SOURCES
        for name, line in imports_of(source)
        if name.split(".")[0] == "simgrid" and room_of(source) != "drivers"
    ]
    assert wrong == []


def are_commands(source: Path) -> bool:
    """Whether a file of the package holds commands: the core's, or those of a system."""
    return room_of(source) == "cli" or (room_of(source) == "systems" and source.stem == "commands")


def test_only_the_commands_print():
    """No print() outside gridsched/cli/ and the systems' commands."""
    wrong = [
        place(source, node.lineno)
        for source in SOURCES
        if not are_commands(source)
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print"
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import simgrid", ["simgrid"]),
        ("def f():\n    from simgrid import Engine", ["simgrid.Engine"]),
        ("from gridsched.sim import child", ["gridsched.sim.child"]),
        ("from gridsched import sim", ["gridsched.sim"]),
        ("from ..sim import child", ["gridsched.sim.child"]),
        ("from . import lecsa", ["gridsched.schedulers.lecsa"]),
        ("import importlib\nimportlib.import_module('simgrid')", ["importlib", "simgrid"]),
        ("if TYPE_CHECKING:\n    import simgrid\nelse:\n    import numpy", ["numpy"]),
        ("import typing\nif typing.TYPE_CHECKING:\n    import simgrid", ["typing"]),
    ],
)
def test_imports_are_found_in_every_form(text: str, expected: list[str]):
    """The rules above see each way of importing, and skip what only type checkers read."""
    found = imported_names(ast.parse(text), ("gridsched", "schedulers"))
    assert [name for name, _ in found] == expected


# What a stranger gets: versions, commands, dependencies and cheap imports.

ROOT = Path(__file__).resolve().parents[1]

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
    """Return the distributions' names of a list of requirements, normalized."""
    return {re.split(r"[\[<>=!~ ;]", text)[0].lower().replace("_", "-") for text in requirements}


def test_the_version_has_one_source():
    """The project takes its version from gridsched/version.py and has 0.1.0 or a later one."""
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "gridsched/version.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", gridsched.__version__)


def test_the_citation_names_this_version():
    """CITATION.cff cites the version that the package reports, under the package's license."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {gridsched.__version__}\n" in citation
    assert f"\nlicense: {PROJECT['project']['license']}\n" in citation


def test_continuous_integration_calls_make_test_only():
    """.ci/run is executable and its one command is 'make test'."""
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert words_of(script) == ["exec make test"]


@pytest.mark.parametrize(
    "target", ["demo", "test", "test-long", "coverage", "benchmark", "wheels", "docs", "clean", "help"]
)
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


def test_pip_and_uv_build_simgrid_under_the_same_constraint():
    """pyproject.toml gives uv the constraints that build-constraints.txt gives pip."""
    lines = (ROOT / "build-constraints.txt").read_text(encoding="utf-8").splitlines()
    for_pip = [line for line in lines if not line.startswith("#")]
    assert for_pip == PROJECT["tool"]["uv"]["build-constraint-dependencies"] == ["pybind11<3"]


def test_the_licence_is_whole():
    """LICENSE is the Apache license from its first heading to its appendix."""
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
