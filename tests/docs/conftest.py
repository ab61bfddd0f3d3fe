"""Examples of documents leave no metric and no kind of figures behind."""

from collections.abc import Iterator

import pytest

from gridsched.metrics import METRICS
from gridsched.runs import figure_kinds


@pytest.fixture(autouse=True)
def registered_by_gridsched() -> Iterator[None]:
    """Forget what a document's example registers."""
    tables = METRICS, figure_kinds._table()
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)
