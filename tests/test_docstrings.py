"""Every public name is described, in numpydoc; read from the source."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType

import pytest

import gridsched
import gridsched.testing

PACKAGE = Path(__file__).resolve().parents[1] / "gridsched"
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Notes", "References", "Examples")
_UNDERLINE = re.compile(r"-{3,}$")
_ITEM = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .+)?$")
Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Names that users import.
INTERFACE = {*gridsched.__all__, *gridsched.testing.__all__}
#: Modules of formulas: two parameters that do not speak for themselves are many there.
FORMULAS = ("energy.py", "power.py", "metrics.py")
#: Parameters from which on a function that is not of the interface describes them, too.
MANY = 4


@dataclass(frozen=True)
class Public:
    """A public module, class or function: where it is, what it is called, its node."""

    path: Path
    name: str
    node: ast.Module | ast.ClassDef | Function

    @property
    def place(self) -> str:
        """``gridsched/energy.py:12 trace_energy``."""
        line = getattr(self.node, "lineno", 1)
        return f"{self.path.relative_to(PACKAGE.parent)}:{line} {self.name}"

    @property
    def text(self) -> str:
        """The docstring, its indentation removed."""
        return inspect.cleandoc(ast.get_docstring(self.node, clean=False) or "")


def is_public(path: Path) -> bool:
    """Whether no part of a module's name begins with an underscore (packages do not count)."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return not any(part.startswith("_") for part in parts if part != "__init__")


def public_in(path: Path, body: list[ast.stmt], prefix: str = "") -> Iterator[Public]:
    """Yield public classes, their public methods, and public functions of a module."""
    for node in body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield Public(path, prefix + node.name, node)
            if isinstance(node, ast.ClassDef):
                yield from public_in(path, node.body, f"{prefix}{node.name}.")


@cache
def everything() -> list[Public]:
    """Return all public modules, classes, methods and functions of the package."""
    found = []
    for path in sorted(filter(is_public, PACKAGE.rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if tree.body:  # an empty __init__.py has nothing to say
            found.append(Public(path, "", tree))
            found += public_in(path, tree.body)
    return found


def all_of(kind: type | UnionType) -> list[Public]:
    """Return the public names whose nodes are of a kind."""
    return [public for public in everything() if isinstance(public.node, kind)]


def sections_of(text: str) -> dict[str, list[str]]:
    """Return the lines of each underlined section of a docstring."""
    lines = text.splitlines()
    found: dict[str, list[str]] = {}
    current = None
    for k, line in enumerate(lines):
        if k + 1 < len(lines) and line.strip() and _UNDERLINE.fullmatch(lines[k + 1]):
            current = found.setdefault(line.strip(), [])
        elif current is not None and not _UNDERLINE.fullmatch(line):
            current.append(line)
    return found


def items_of(lines: list[str]) -> list[str]:
    """Return the names that a Parameters or Attributes section describes."""
    names = []
    for line in lines:
        if line and not line[0].isspace() and (match := _ITEM.match(line)):
            names += [name.lstrip("*") for name in match[1].split(", ")]
    return names


def parameters_of(node: Function) -> list[ast.arg]:
    """Return the public parameters of a function, without self and cls."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += filter(None, [arguments.vararg, arguments.kwarg])
    return [a for a in every if a.arg not in ("self", "cls") and not a.arg.startswith("_")]


def is_described(name: str, text: str) -> bool:
    """Whether a docstring has an item for a parameter, or speaks of it by its name."""
    sections = sections_of(text)
    listed = items_of(sections.get("Parameters", []) + sections.get("Attributes", []))
    return name in listed or re.search(rf"`{re.escape(name)}`", text) is not None


def speaks_for_itself(argument: ast.arg) -> bool:
    """Whether a parameter is called after its type, as ``trace: Trace`` or ``path: Path``."""
    name = argument.arg
    types = re.findall(r"[A-Z]\w*", ast.unparse(argument.annotation or ast.Constant(0)))
    snakes = [re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", each).lower() for each in types]
    return any(snake == name or snake.endswith(f"_{name}") or snake.startswith(f"{name}_") for snake in snakes)


def is_command(public: Public) -> bool:
    """Whether a function's parameters are options of the command line, which have help texts."""
    in_cli = (public.path.parent.name == "cli" or public.path.stem == "commands") and isinstance(public.node, Function)
    return in_cli and any(
        isinstance(node, ast.Attribute) and node.attr in ("Option", "Argument") for node in ast.walk(public.node.args)
    )


def initializer(public: Public) -> Function | None:
    """Return the ``__init__`` of a class, if it defines one."""
    methods = (node for node in public.node.body if isinstance(node, Function))
    return next((node for node in methods if node.name == "__init__"), None)


def test_there_is_something_to_check():
    """The package's modules, classes and functions are found."""
    names = {public.name for public in everything()}
    assert {"", "Scenario", "run", "Scheduler.schedule", "trace_energy"} <= names


def test_each_public_name_has_a_summary():
    """The first paragraph is one sentence on the first line, with its full stop."""
    wrong = []
    for public in everything():
        first, _, rest = public.text.partition("\n")
        if not first.endswith((".", ":", "?")) or len(first) < 8:
            wrong.append(f"{public.place}: {first!r}")
        elif rest and rest.splitlines()[0].strip():
            wrong.append(f"{public.place}: no blank line after the summary")
    assert not wrong, "\n".join(wrong)


def test_sections_are_those_of_numpydoc():
    """Underlined headings are known ones, each at most once."""
    wrong = [
        f"{public.place}: {heading}"
        for public in everything()
        if not isinstance(public.node, ast.Module)
        for heading in sections_of(public.text)
        if heading not in SECTIONS
    ]
    assert not wrong, "\n".join(wrong)


def described_parameters(public: Public) -> list[ast.arg]:
    """Return the parameters that the docstring of a function or class has to describe."""
    node = public.node
    if isinstance(node, ast.ClassDef):
        node = initializer(public)
    elif "." in public.name:
        return []  # methods share the words of their class and its base
    if not isinstance(node, Function) or is_command(public):
        return []
    parameters = parameters_of(node)
    if public.name in INTERFACE:
        return parameters if len(parameters) > 1 or isinstance(public.node, ast.ClassDef) else []
    silent = [each for each in parameters if not speaks_for_itself(each)]
    many = 2 if public.path.name in FORMULAS else MANY
    return silent if len(silent) >= many or "Parameters" in sections_of(public.text) else []


def test_parameters_are_described():
    """The public interface describes all parameters; other functions all, if any or if many.

    Not looked at: compiled kernels, whose arrays are described once, and what is known to lack it.
    """
    wrong = []
    for public in everything():
        if isinstance(public.node, ast.Module) or "kernels" in public.path.parts:
            continue
        needed = described_parameters(public)
        missing = [each.arg for each in needed if not is_described(each.arg, public.text)]
        if missing:
            wrong.append(f"{public.place}: {', '.join(missing)}")
    assert not wrong, "\n".join(wrong)


def test_only_parameters_that_exist_are_described():
    """A Parameters section lists the function's own parameters, in their order."""
    wrong = []
    for public in everything():
        node = initializer(public) if isinstance(public.node, ast.ClassDef) else public.node
        listed = items_of(sections_of(public.text).get("Parameters", []))
        if listed and isinstance(node, Function):
            known = [each.arg for each in parameters_of(node) if each.arg in listed]
            if known != listed:
                wrong.append(f"{public.place}: {listed}, but the code has {known}")
    assert not wrong, "\n".join(wrong)


def test_attributes_exist():
    """An Attributes section of a dataclass lists its fields, all of them."""
    wrong = []
    for public in all_of(ast.ClassDef):
        listed = items_of(sections_of(public.text).get("Attributes", []))
        decorators = " ".join(ast.unparse(each) for each in public.node.decorator_list)
        if listed and "dataclass" in decorators:
            fields = [
                each.target.id
                for each in public.node.body
                if isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_")
            ]
            if missing := [name for name in fields if name not in listed]:
                wrong.append(f"{public.place}: {', '.join(missing)}")
    assert not wrong, "\n".join(wrong)


def test_errors_are_announced():
    """A public function that raises one of gridsched's errors lists it."""
    wrong = []
    for public in all_of(Function):
        raised = {
            node.exc.func.id
            for node in ast.walk(public.node)
            if isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and isinstance(node.exc.func, ast.Name)
            and node.exc.func.id in ("InputError", "IncompleteRun", "SimulationError")
        }
        told = is_command(public) or re.search("Raise|[Rr]efuse|InputError", public.text)
        if raised and not told:
            wrong.append(f"{public.place}: {', '.join(sorted(raised))}")
    assert not wrong, "\n".join(wrong)


def test_schedulers_name_their_source():
    """Each scheduler class describes its method in Notes and its source in References."""
    bags = [
        public
        for public in all_of(ast.ClassDef)
        if public.path.parent.parent.name == "schedulers"
        and any(
            isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "traits" for node in public.node.body
        )
        and not any("abstractmethod" in ast.unparse(node) for node in public.node.body)
    ]
    wrong = [public.place for public in bags if not {"Notes", "References"} <= set(sections_of(public.text))]
    assert len(bags) > 5
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "sections", "items"),
    [
        ("S.\n\nParameters\n----------\na, b : int\n    Two.\nc : str", ["Parameters"], "a b c"),
        ("S.\n\nParameters\n----------\ntrace : Trace\n\nReturns\n-------\nint", ["Parameters", "Returns"], "trace"),
        ("S.", [], ""),
    ],
)
def test_docstrings_are_read(text: str, sections: list[str], items: str):
    """The rules above see sections and the names in them."""
    found = sections_of(text)
    assert list(found) == sections
    assert items_of(found.get("Parameters", [])) == items.split()
