"""Example EX-A comes from the tests of the schedulers; a study's own policies stay in its test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gridsched.policy import registry

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "schedulers"))


@pytest.fixture(autouse=True)
def _registry_as_it_was() -> Iterator[None]:
    """Forget the schedulers that a test registers: later tests go through all there are."""
    before = dict(registry._ENTRIES)
    yield
    registry._ENTRIES.clear()
    registry._ENTRIES.update(before)
