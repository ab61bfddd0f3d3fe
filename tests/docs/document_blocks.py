"""Documents, their fenced blocks and the commands in them.

The convention, by the info string of a block:

======================  ========================================================================
``console``             lines that start with ``$`` are commands and are executed; ``\\`` at the end
                        continues one on the next line, ``# exit 2`` at its end states its exit
                        status. Other lines are its output: each must come, in this order, in what
                        the command prints; a line ``...`` means anything.
``console long``        likewise, in the tests marked `long` only
``console not-run``     is not executed; its commands are in an explicit list of the tests
``python``              is executed; the blocks of a document share their names
``LANGUAGE PATH``       shows a file of the repository, whole
``text``, ``mermaid``   are no code
======================  ========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(.*?)\s*$")
_STATUS = re.compile(r"\s+# exit (\d+)\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its document, the line of its fence, its info string and its lines."""

    document: Path
    line: int
    info: str
    lines: tuple[str, ...]

    @property
    def language(self) -> str:
        """First word of the info string."""
        return self.info.partition(" ")[0]

    @property
    def place(self) -> str:
        """``docs/files.md:12``."""
        return f"{self.document.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a console block, with the status and the output the document states."""

    text: str
    status: int
    shown: tuple[str, ...]
    place: str


def name_of(document: Path) -> str:
    """Name of a document, for the test's id."""
    return str(document.relative_to(ROOT))


def blocks_of(document: Path) -> list[Block]:
    """Return the fenced blocks of a document."""
    found: list[Block] = []
    fence, begin, info, lines = "", 0, "", []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        match = _FENCE.match(line)
        if not fence and match:
            fence, begin, info, lines = match[1], number, match[2], []
        elif fence and match and match[1].startswith(fence) and not match[2]:
            found.append(Block(document, begin, info, tuple(lines)))
            fence = ""
        elif fence:
            lines.append(line)
    assert not fence, f"{name_of(document)}:{begin}: the block is not closed"
    return found


def prose_of(document: Path) -> str:
    """Return the document without its fenced blocks."""
    prose, fence = [], ""
    for line in document.read_text(encoding="utf-8").splitlines():
        match = _FENCE.match(line)
        if match and (not fence or (match[1].startswith(fence) and not match[2])):
            fence = "" if fence else match[1]
        elif not fence:
            prose.append(line)
    return "\n".join(prose)


def commands_of(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block."""
    text, shown, number = "", [], block.line
    for offset, line in enumerate(block.lines, start=1):
        if text.endswith("\\"):
            text = text[:-1] + " " + line.strip()
        elif line.startswith("$ "):
            if text:
                yield _command(text, shown, f"{name_of(block.document)}:{number}")
            text, shown, number = line[2:].strip(), [], block.line + offset
        elif text:
            shown.append(line)
        else:
            raise AssertionError(f"{block.place}: output before the first command: {line!r}")
    assert text, f"{block.place}: a console block without a command"
    yield _command(text, shown, f"{name_of(block.document)}:{number}")


def _command(text: str, shown: list[str], place: str) -> Command:
    match = _STATUS.search(text)
    status = int(match[1]) if match else 0
    return Command(_STATUS.sub("", text), status, tuple(shown), place)


def missing_line(shown: tuple[str, ...], output: str) -> str | None:
    """Return the first shown line that `output` lacks, or has too early; blanks count as one."""
    printed = iter([" ".join(line.split()) for line in output.splitlines()])
    for line in (" ".join(line.split()) for line in shown):
        if line and line != "..." and line not in printed:
            return line
    return None
