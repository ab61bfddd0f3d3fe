"""The tests of this folder need SimGrid."""

from __future__ import annotations

import pytest

from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed


@pytest.fixture(autouse=True)
def _simgrid() -> None:
    if not is_installed():
        pytest.skip(HOW_TO_INSTALL)
