"""Imports run one way only, SimGrid stays in its folder, and only the commands print."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

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
    """Return the package's files except gridsched/__init__.py, which stands above all rows."""
    return [source for source in SOURCES if source != PACKAGE / "__init__.py"]


def test_every_room_has_its_row():
    """A new folder or module of the package must be given a place in the order of imports."""
    assert {room_of(source) for source in in_rooms()} <= set(HEIGHT)


def test_imports_run_one_way():
    """No file imports from a row that stands after its own."""
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


def test_only_sim_imports_simgrid():
    """SimGrid's module is imported under gridsched/sim/ and nowhere else."""
    wrong = [
        place(source, line)
        for source in SOURCES
        for name, line in imports_of(source)
        if name.split(".")[0] == "simgrid" and room_of(source) != "sim"
    ]
    assert wrong == []


def test_only_the_commands_print():
    """No print() outside gridsched/cli/."""
    wrong = [
        place(source, node.lineno)
        for source in SOURCES
        if room_of(source) != "cli"
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print"
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import simgrid", ["simgrid"]),
        ("def f():\n    from simgrid import Engine", ["simgrid.Engine"]),
        ("from gridsched.sim import library", ["gridsched.sim.library"]),
        ("from gridsched import sim", ["gridsched.sim"]),
        ("from ..sim import library", ["gridsched.sim.library"]),
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
