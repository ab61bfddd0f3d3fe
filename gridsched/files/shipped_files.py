"""Platforms, deployments and examples that come with gridsched."""

from __future__ import annotations

from pathlib import Path

#: Folders of a checkout that a wheel carries, too (pyproject.toml).
FOLDERS = ("platforms", "deployments", "examples")
_PACKAGE = Path(__file__).resolve().parents[1]


def shipped_root() -> Path:
    """Return the folder that holds `FOLDERS`: inside an installed package, else the checkout."""
    installed = _PACKAGE / "shipped"
    return installed if installed.is_dir() else _PACKAGE.parent


def shipped_files() -> dict[str, Path]:
    """Return all shipped files by name (``examples/ex_a.csv``), folder after folder."""
    root = shipped_root()
    return {
        path.relative_to(root).as_posix(): path
        for folder in FOLDERS
        for path in sorted((root / folder).glob("*"))
        if path.is_file()
    }
