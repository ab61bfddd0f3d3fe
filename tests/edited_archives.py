"""Archives of exports with something changed in them, for tests of how they are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def edit_archive(folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Let ``change(description, arrays)`` alter the archive of an export in place."""
    path = folder / "trace.npz"
    with np.load(path) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    description = json.loads(arrays.pop("description").tobytes())
    change(description, arrays)
    text = np.frombuffer(json.dumps(description).encode(), np.uint8)
    np.savez_compressed(path, description=text, **arrays)
