"""Folders for temporary files: those of processes that were killed go with the next start."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from gridsched.errors import InputError
from gridsched.files.output_files import is_alive, temporary_folder
from gridsched.sim.library import text_path

#: No process has such an id: Linux' largest is 2**22.
GONE = 2**22 + 5


def test_folders_of_dead_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not those of living ones, nor what others have put there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, mine, other = (tmp_path / name for name in (f"gridsched-scratch-{GONE}-a", "gridsched-scratch-thesis", "else"))
    for folder in (old, mine, other):
        folder.mkdir()
        (folder / "file").write_text("x")
    assert is_alive(os.getpid())
    assert not is_alive(GONE)
    with temporary_folder() as one, temporary_folder() as two:
        assert {each.name for each in tmp_path.iterdir()} == {one.name, two.name, mine.name, other.name}
    assert {each.name for each in tmp_path.iterdir()} == {mine.name, other.name}


def test_paths_that_are_no_text():
    """SimGrid would answer with a TypeError; umlauts are fine."""
    assert text_path(Path("ä/ü.xml")) == "ä/ü.xml"
    with pytest.raises(InputError, match="rename it"):
        text_path(os.fsdecode(b"x\xff.xml"))
