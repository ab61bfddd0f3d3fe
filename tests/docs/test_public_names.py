"""Documents and examples import public names alone, and every public name is there."""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from document_blocks import DOCUMENTS, ROOT, blocks_of

import gridsched

#: As docs/python.md lists them.
MODULES = re.findall(r"^\| `(gridsched[.\w]*)` \|(.*)\|$", (ROOT / "docs/python.md").read_text(), flags=re.MULTILINE)
PUBLIC = {module: set(re.findall(r"`(\w+)`", names)) for module, names in MODULES}


def shown_python() -> Iterator[tuple[str, str]]:
    """Yield place and text of all Python that users are shown."""
    for document in DOCUMENTS:
        for block in blocks_of(document):
            if block.language == "python":
                yield block.place, "\n".join(block.lines)
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            if cell["cell_type"] == "code":
                yield f"{path.relative_to(ROOT)}:{number}", "".join(cell["source"])


def imported(text: str) -> Iterator[str]:
    """Yield what Python imports of gridsched, with dots."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.partition(".")[0] == "gridsched")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "gridsched":
            yield from (f"{node.module}.{each.name}" for each in node.names)


def is_public(name: str) -> bool:
    """Whether a dotted name is a public module or what one offers."""
    module, _, last = name.rpartition(".")
    return name in PUBLIC or last in PUBLIC.get(module, ())


@pytest.mark.parametrize("module", PUBLIC)
def test_each_name_is_there(module: str):
    """Every name of the table is found in its module."""
    assert PUBLIC[module]
    for name in PUBLIC[module]:
        assert getattr(importlib.import_module(module), name) is not None


def test_what_users_are_shown_imports_public_names_alone():
    """Blocks of the documents, examples and notebooks."""
    found = [(place, name) for place, text in shown_python() for name in imported(text)]
    assert len(found) > 50
    assert [each for each in found if not is_public(each[1])] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_prose_names_public_names_alone(document: Path):
    """A dotted name in the running text is public, or an attribute of what is."""
    for name in re.findall(r"`(gridsched\.[a-z]\w*(?:\.\w+)*)(?:\(|`)", document.read_text(encoding="utf-8")):
        assert is_public(name) or is_public(name.rpartition(".")[0]), name


def test_type_checkers_see_each_name():
    """What is imported on first use is also imported, from the same module, where types alone are checked."""
    typed = (ROOT / "gridsched/__init__.py").read_text(encoding="utf-8")
    for module, names in gridsched._HOME.items():
        for name in names:
            assert f"from gridsched.{module} import {name} as {name}\n" in typed  # what type checkers see
