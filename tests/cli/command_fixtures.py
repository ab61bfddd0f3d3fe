"""Commands are called in this process, with what they print and return gathered."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_cases import ROOT

from gridsched.cli.app import main

NOBODY = 65534


@dataclass(frozen=True)
class Outcome:
    """What a command returned and printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The JSON it printed."""
        return json.loads(self.out)

    @property
    def problems(self) -> list[str]:
        """The lines on stderr."""
        return self.err.splitlines()


@pytest.fixture
def gridsched(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Call a command; a warning or a leftover of an earlier call is not seen."""

    def call(*words: object) -> Outcome:
        capsys.readouterr()
        status = main([str(word) for word in words])
        return Outcome(status, *capsys.readouterr())

    return call


@pytest.fixture
def refused(gridsched: Callable[..., Outcome], tmp_path: Path) -> Callable[..., str]:
    """Call a command that must refuse its input and touch nothing; return its one line."""

    def call(
        *words: object,
        status: int = 2,
        folder: Path = tmp_path,
        within: contextlib.AbstractContextManager | None = None,
    ) -> str:
        before = contents(folder)
        with within or contextlib.nullcontext():
            outcome = gridsched(*words)
        assert outcome.status == status, outcome
        assert outcome.out == ""
        assert len(outcome.problems) == 1, outcome.err
        line = outcome.problems[0]
        assert line.startswith("gridsched: ")
        assert "internal error" not in line
        assert "Traceback" not in line
        assert contents(folder) == before
        return line

    return call


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return every name under a folder with its bytes, hidden and temporary files too."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def ex_a() -> list[str]:
    """Return the options that name EX-A's platform and workload (algorithms A0)."""
    platform, workload = ROOT / "platforms" / "ex_a.xml", ROOT / "examples" / "ex_a.csv"
    return ["--platform", str(platform), "--workload", str(workload)]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that every user may enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        if any(not parent.stat().st_mode & 0o001 for parent in folder.parents):
            pytest.skip("the folder for temporary files is not open to every user")
        yield folder


@pytest.fixture
def without_privileges() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """Return a context in which file permissions count even for root."""

    @contextlib.contextmanager
    def as_nobody() -> Iterator[None]:
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)

    return as_nobody


@pytest.fixture
def simgrid() -> None:
    """Mark a test that runs SimGrid."""
    if importlib.util.find_spec("simgrid") is None:
        pytest.skip("SimGrid is not installed")
