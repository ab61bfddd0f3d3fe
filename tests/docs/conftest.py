"""`document_blocks` is found whatever the import mode is; examples leave no metric behind."""

from collections.abc import Iterator

import pytest

from gridsched.metrics import METRICS


@pytest.fixture(autouse=True)
def the_metrics_of_gridsched() -> Iterator[None]:
    """Forget the metrics that a document's example registers."""
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)
