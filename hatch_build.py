"""Puts libraries of compiled loops into the wheel where ``GRIDSCHED_LOOPS`` names their folder ('make wheels')."""

from __future__ import annotations

import os
from pathlib import Path
from platform import machine
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Loops(BuildHookInterface):
    """Without that variable the wheel holds Python alone: numba, if installed, compiles loops at first use."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the libraries, which any CPython from 3.11 on loads on a machine like this one."""
        folder = os.environ.get("GRIDSCHED_LOOPS")
        if folder is None or version == "editable":
            return
        libraries = sorted(Path(folder).glob("_loops_*.so"))
        if not libraries:
            raise FileNotFoundError(f"GRIDSCHED_LOOPS: {folder} holds no library of loops")
        build_data["force_include"].update({str(file): f"gridsched/{file.name}" for file in libraries})
        build_data["pure_python"], build_data["tag"] = False, f"cp311-abi3-linux_{machine()}"
