"""Tables of the documents that follow from the code are what the code says now."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from document_blocks import DOCUMENTS, ROOT, name_of


@pytest.fixture(scope="module")
def tables() -> Iterator[ModuleType]:
    """docs/generated_tables.py, which is no part of the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        spec = importlib.util.spec_from_file_location("generated_tables", ROOT / "docs" / "generated_tables.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


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


def test_every_number_of_a_paper_is_in_the_figure(tables: ModuleType):
    """The data beside the figure are those of the published claims. Where this fails: see above."""
    data = tables.published_claims.FIGURE.with_suffix(".csv")
    written = pd.read_csv(data, dtype={"paper": str})
    now = tables.published_claims.data_frame()
    assert written[["study", "claim", "verdict"]].equals(now[["study", "claim", "verdict"]])
    for column in ("printed", "ours", "low", "high"):
        expected = pytest.approx(now[column].to_numpy(), nan_ok=True, rel=1e-5)
        assert written[column].to_numpy() == expected
