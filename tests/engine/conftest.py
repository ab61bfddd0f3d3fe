"""Every run of these tests is validated after each instant."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _validated(validated):
    """Validate each instant."""
