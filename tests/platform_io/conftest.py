from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Return a file of the folder 'shared' beside the checkout; skips where it is absent."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"shared/data/{name} is not beside the checkout")
        return path

    return find


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write text or bytes into a new file and return its path."""

    def write(content: str | bytes, name: str = "file.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
