"""The documents' words: plain American English, without the words that this project's authors misuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from document_blocks import ROOT, name_of, prose_of
from typer.main import get_command

from gridsched.cli.app import app, load_command

#: Pattern of a word -> what to write in its place. Code, in blocks or between backticks, is not looked at.
INSTEAD = {
    r"tells|told": "shows, reports, explains, specifies (or name the message)",
    r"says|said(?! \d)": "shows, reports, states, specifies; of a paper: states",
    r"in the mean\b": "on average",
    r"nobody|nobody's": "no one, or name who does not",
    r"parted by": "separated by",
    r"(?:il)?legal(?:ly)?": "allowed (not allowed)",
    r"lies? above": "is described above, is above",
    r"has grams": "emits, reports its grams of CO2",
    r"go(?:es)? by": "uses, follows, depends on",
    r"(?<=[.:;] )whoever": "If you ..., or name the person",
    r"(?<![-±,] )1 (?:hosts|jobs|tasks|runs|nodes|cores|files|errors)\b": "the singular (gridsched.errors.counted)",
}
_WORDS = {re.compile(rf"(?<![\w.])(?:{pattern})(?!\w)", re.IGNORECASE): word for pattern, word in INSTEAD.items()}
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGES.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/schedulers").glob("*.md")),
    *sorted((ROOT / "docs/studies").glob("*.md")),
]


def words_of(page: Path) -> str:
    """Return the text of a page without code and bad examples; of the changes, only the unreleased ones."""
    text = re.sub(r"^ *- Before: .*$", "", prose_of(page), flags=re.MULTILINE)
    if page.name == "CHANGES.md":
        text = text.partition("\n## ")[2].partition("\n## ")[0]
    return re.sub(r"`[^`]+`", "`code`", text)


def found_in(text: str) -> list[str]:
    """Return each word of the list with the words around it and the words to write."""
    return [
        f"{text[max(0, match.start() - 40) : match.end() + 25]!r}: write {instead}"
        for pattern, instead in _WORDS.items()
        for match in pattern.finditer(text)
    ]


def helps_of(command: object) -> Iterator[str]:
    """Yield the help of a command, its options and the commands below it."""
    yield from filter(None, (getattr(each, "help", None) for each in (command, *getattr(command, "params", ()))))
    for child in getattr(command, "commands", {}).values():
        yield from helps_of(child)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_plain_words(page: Path):
    """No page has a word of the list; each finding comes with the words to write in its place."""
    found = found_in(words_of(page))
    assert not found, "\n".join(found)


def test_plain_words_of_help():
    """The same of all that ``--help`` shows of commands and options."""
    found = [each for name in get_command(app).list_commands(None) for each in helps_of(load_command(name))]
    wrong = [f"{text}\n{hit}" for text in found for hit in found_in(text)]
    assert len(found) > 100
    assert not wrong, "\n".join(wrong)
