"""A small study with hand-made rows for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_study import make_store


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the small study's runs: two failed, one missing."""
    return make_store(tmp_path_factory.mktemp("small") / "store")
