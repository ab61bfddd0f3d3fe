"""`document_blocks` is found whatever the import mode is; examples leave no metric behind."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gridsched.metrics import METRICS

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(autouse=True)
def the_metrics_of_gridsched() -> Iterator[None]:
    """Forget the metrics that a document's example registers."""
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)
