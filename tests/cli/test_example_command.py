"""``gridsched example``: what comes with gridsched, and copies of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.cli.app import main
from gridsched.files.input_files import FOLDERS, shipped_files

ROOT = Path(__file__).resolve().parents[2]


def test_list_names_the_files_of_the_checkout(capsys: pytest.CaptureFixture[str]):
    """Each file of platforms/, deployments/ and examples/ is listed once."""
    assert main(["example", "list"]) == 0
    listed = capsys.readouterr().out.split()
    there = [path for folder in FOLDERS for path in (ROOT / folder).iterdir() if path.is_file()]
    assert sorted(listed) == sorted(path.relative_to(ROOT).as_posix() for path in there)


def test_all_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Into the current folder, where nothing is named; test_help_examples.py runs with them."""
    monkeypatch.chdir(tmp_path)
    assert main(["example", "copy", "--quiet"]) == 0
    copied = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert copied == set(shipped_files())


def test_one_file_goes_where_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A file keeps its folder below --to, with the bytes of the shipped one."""
    there = tmp_path / "trial"
    assert main(["example", "copy", "examples/ex_a.csv", "--to", str(there)]) == 0
    assert capsys.readouterr().out == f"Copied 1 file to {there}, into examples/.\n"
    copy = there / "examples" / "ex_a.csv"
    assert copy.read_bytes() == (ROOT / "examples" / "ex_a.csv").read_bytes()


def test_nothing_is_copied_over_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Where one file exists, none is written without --force; with it, all are."""
    mine = tmp_path / "examples" / "ex_a.csv"
    mine.parent.mkdir()
    mine.write_text("mine", encoding="utf-8")
    words = ["example", "copy", "platforms/ex_a.xml", "examples/ex_a.csv", "--to", str(tmp_path)]
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert mine.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "platforms" / "ex_a.xml").exists()
    assert main([*words, "--force"]) == 0
    assert mine.read_bytes() == shipped_files()["examples/ex_a.csv"].read_bytes()


def test_an_unknown_file_is_refused_with_the_nearest_name(capsys: pytest.CaptureFixture[str]):
    """A misspelt name is one line and status 2."""
    assert main(["example", "copy", "examples/exa.csv"]) == 2
    assert "examples/ex_a.csv" in capsys.readouterr().err


def test_v_is_version(capsys: pytest.CaptureFixture[str]):
    """-v says what --version says."""
    assert main(["-v"]) == main(["--version"]) == 0
    first, second = capsys.readouterr().out.split("\n")[:2]
    assert first == second
