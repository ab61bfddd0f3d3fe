"""Every command and every line of Python in the documents runs and prints what is shown."""

from __future__ import annotations

import contextlib
import io
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from document_blocks import DOCUMENTS, ROOT, Block, Command, blocks_of, commands_of, missing_line, name_of

from gridsched.cli.app import main
from gridsched.policy import registry

#: Folders of the checkout that commands may use; each test gets a copy of its own.
FOLDERS = ("platforms", "deployments", "examples", "docs/figures")
#: What a command may call beside gridsched and python.
SMALL_TOOLS = ("cat", "head", "ls")
LANGUAGES = ("console", "python", "text", "csv", "toml", "xml", "mermaid")
#: The only commands of the documents that no test executes: they set up a machine, or measure it.
NOT_RUN = {
    "python scripts/simgrid_module.py toolchain '>' .venv/python.cmake",
    "python scripts/simgrid_module.py check",
    "export 'CMAKE_TOOLCHAIN_FILE=$PWD/.venv/python.cmake'",
    "python examples/static_power.py",
    # inputs of others, or minutes: tests/analysis has the same, in part under 'long'
    "gridsched reproduce known --inputs '~/logs' -o known.md",
    "gridsched reproduce known --inputs '~/logs' --only buffalo",
    "gridsched reproduce known --only queue",
    "make demo",
    "make test",
    "make test-long",
    "make benchmark",
    "source .venv/bin/activate",
    "python3 -m venv .venv",
    ". .venv/bin/activate",
    "export PIP_CONSTRAINT=build-constraints.txt PIP_BUILD_CONSTRAINT=build-constraints.txt",
    "export PIP_USE_PEP517=1",
    "pip install .",
    "pip install 'gridsched[batsim]' docopt procset sortedcontainers",
    "pip install --no-deps pybatsim==3.2.1",
    "pip install ./examples/plugin",
    "gridsched run --platform platforms/ex_a.xml --workload bag.toml --scheduler two_choices --export out",
    "gridsched plot busy out -o busy.svg",
    "gridsched study view tiny-results 3f2a -o run.html",
    "pybatsim -s tcp://127.0.0.1:28000 easyBackfill",
    "gridsched run --workload jobs.swf --scheduler batsim:tcp://127.0.0.1:28000",
    "pip install gridsched-0.2.0-cp311-abi3-linux_x86_64.whl simgrid-4.1-cp311-cp311-linux_x86_64.whl",
}
LONG = [document for document in DOCUMENTS if any(block.info == "console long" for block in blocks_of(document))]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh working folder with what a checkout offers to commands."""
    for name in FOLDERS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    # what an example registers is gone after the test
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def execute(words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run a command in this process, where the fork server is shared; return status and output."""
    if words[0] in SMALL_TOOLS:
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stdout + done.stderr
    monkeypatch.setattr(sys, "argv", words)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        if words[0] == "gridsched":
            return main(words[1:]), output.getvalue()
        try:
            monkeypatch.setattr(sys, "argv", words[1:])
            runpy.run_path(words[1], run_name="__main__")
        except SystemExit as end:
            return int(end.code or 0), output.getvalue()
    return 0, output.getvalue()


def check_command(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command; its status and its output are those of the document."""
    words = shlex.split(command.text, comments=True)
    assert words[0] in ("gridsched", "python", *SMALL_TOOLS), f"{command.place}: {words[0]}?"
    status, output = execute(words, monkeypatch)
    where = f"{command.place}: $ {command.text}\n{output}"
    assert status == command.status, f"exit status {status}, not {command.status}: {where}"
    missing = missing_line(command.shown, output)
    assert missing is None, f"the document shows the line {missing!r}, which is not in: {where}"


def run_document(document: Path, monkeypatch: pytest.MonkeyPatch, *, long: bool) -> int:
    """Run the blocks of a document from top to bottom; return how many ran."""
    names = {"__name__": "__main__"}
    ran = 0
    for block in blocks_of(document):
        if block.info == "console" or (long and block.info == "console long"):
            for command in commands_of(block):
                check_command(command, monkeypatch)
        elif block.info == "python":
            code = compile("\n".join(block.lines), block.place, "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, names)
        else:
            continue
        ran += 1
    return ran


def numbers_of(path: Path) -> tuple[list[list[str]], list[float]]:
    """Return a figure's data: cells that are texts, line by line, and those that are numbers."""
    texts: list[list[str]] = []
    numbers: list[float] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        texts.append([])
        for cell in line.split(","):
            try:
                numbers.append(float(cell))
            except ValueError:
                texts[-1].append(cell)
    return texts, numbers


def test_documents_exist():
    """There is something to test."""
    assert len(DOCUMENTS) > 5


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
@pytest.mark.usefixtures("checkout")
def test_commands_run(document: Path, monkeypatch: pytest.MonkeyPatch):
    """All blocks that are not marked 'long' run in a fresh folder, from top to bottom.

    Figures that they draw again show the same numbers as the committed ones.
    """
    expected = sum(block.info in ("console", "python") for block in blocks_of(document))
    assert run_document(document, monkeypatch, long=False) == expected
    for kept in (ROOT / "docs/figures").glob("*.csv"):
        plotted = Path("docs/figures", kept.name)
        texts, numbers = numbers_of(plotted)
        kept_texts, kept_numbers = numbers_of(kept)
        assert texts == kept_texts, f"{plotted}: draw it anew"
        assert numbers == pytest.approx(kept_numbers, rel=1e-9), f"{plotted}: draw it anew"


@pytest.mark.long
@pytest.mark.parametrize("document", LONG, ids=name_of)
@pytest.mark.usefixtures("checkout")
def test_long_commands_run(document: Path, monkeypatch: pytest.MonkeyPatch):
    """The same with the blocks that take minutes."""
    assert run_document(document, monkeypatch, long=True) > 0


def all_blocks() -> list[Block]:
    """Return the blocks of all documents."""
    return [block for document in DOCUMENTS for block in blocks_of(document)]


def test_no_block_escapes_the_convention():
    """Each block has a kind, so that no command hides in one that is never run."""
    plain = {"console", "console long", "console not-run", "python", "text", "mermaid"}
    wrong = []
    for block in all_blocks():
        shows_a_file = block.language in LANGUAGES[1:] and block.info.count(" ") == 1
        hides = block.language != "console" and any(line.startswith("$ ") for line in block.lines)
        if hides or (block.info not in plain and not shows_a_file):
            wrong.append(f"{block.place}: {block.info!r}")
    assert not wrong, "\n".join(wrong)


def test_figures_are_drawn_by_commands():
    """Each committed figure is the work of a command that a document shows."""
    typed = " ".join(
        command.text for block in all_blocks() if block.info == "console" for command in commands_of(block)
    )
    figures = sorted((ROOT / "docs/figures").glob("*.png"))
    assert len(figures) > 0
    assert [path.name for path in figures if f"docs/figures/{path.name}" not in typed] == []


def test_blocks_that_are_not_run_are_known():
    """Commands that no test executes are exactly those of the list above."""
    found = {
        shlex.join(shlex.split(command.text, comments=True))
        for block in all_blocks()
        if block.info == "console not-run"
        for command in commands_of(block)
    }
    assert found <= NOT_RUN


def test_shown_files_are_the_files():
    """A block that names a file shows all of it."""
    wrong = []
    for block in all_blocks():
        language, _, path = block.info.partition(" ")
        if language != "console" and path:
            text = (ROOT / path).read_text(encoding="utf-8")
            if text.strip().splitlines() != list(block.lines):
                wrong.append(f"{block.place}: {path}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("shown", "output", "missing"),
    [
        (("a", "c"), "a\nb\nc\n", None),
        (("c", "a"), "a\nb\nc\n", "a"),
        (("a   b",), "  a b\n", None),
        (("...", "b"), "a\nb\n", None),
        (("b", "d"), "a\nb\nc\n", "d"),
    ],
)
def test_shown_output_is_compared(shown: tuple[str, ...], output: str, missing: str | None):
    """Shown lines must come in order; a line that does not is named."""
    assert missing_line(shown, output) == missing


def test_a_wrong_status_or_output_is_found(monkeypatch: pytest.MonkeyPatch):
    """The check of a command fails where the document states another status or output."""
    good = Command("gridsched --version", 0, ("gridsched ...",), "here")
    with pytest.raises(AssertionError, match="shows the line"):
        check_command(good, monkeypatch)
    with pytest.raises(AssertionError, match=r"0.*2"):
        check_command(Command("gridsched --version", 2, (), "here"), monkeypatch)
