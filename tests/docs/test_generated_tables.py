"""Tables of the documents that follow from the code are what the code says now."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from document_blocks import DOCUMENTS, ROOT, name_of


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    """docs/generated_tables.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location(
        "generated_tables", ROOT / "docs" / "generated_tables.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_generated_tables_are_up_to_date(document: Path, tables: ModuleType):
    """Where this fails: python docs/generated_tables.py."""
    text = document.read_text(encoding="utf-8")
    assert text == tables.up_to_date(text)


def test_every_table_stands_in_a_document(tables: ModuleType):
    """No table is written for nothing, and each is found."""
    whole = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    for name in tables.TABLES:
        assert f"<!-- table: {name} -->" in whole
