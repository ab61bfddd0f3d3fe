"""The words of documents, help, comments and docstrings: plain American English, without those misused here."""

from __future__ import annotations

import ast
import re
import tokenize
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
    r"(?<![-±,+] )(?<!and )(?<!type )1 (?:hosts|jobs|tasks|runs|nodes|cores|files|errors)\b": (
        "the singular (gridsched.errors.counted)"
    ),
    r"anew": "again",
    r"(?:linear )?programmes?": "program",
    r"\w*(?:neighbour|behaviour|colour|favour)\w*": "the American spelling, in -or",
    r"\w*(?:minim|maxim|optim|normal|vector|linear|parametr|recogn|serial|visual|discret)is(?:e[ds]?|ing|ations?)": (
        "the American spelling, in -ize"
    ),
    r"centres?|licences?|grey|labelled|modelled|modelling": "center, license, gray, labeled, modeled, modeling",
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


#: A noun denied as in German.
_IS_NO = re.compile(
    r"(?<!there )\b(?:is|are) no (?:whole |regular |known )?(?:number|file|folder|store|name|text|date|list|key)\b"
)
#: Tokens after which a string is a docstring, or a statement of its own.
_STATEMENT_BEGINS = (tokenize.ENCODING, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE)
SOURCES = ("gridsched", "tests", "benchmarks", "examples", "scripts", "docs")


def words_of(page: Path) -> str:
    """Return the text of a page without code and bad examples; of the changes, only the unreleased ones."""
    text = re.sub(r"^ *- Before: .*$", "", prose_of(page), flags=re.MULTILINE)
    if page.name == "CHANGES.md":
        text = text.partition("\n## ")[2].partition("\n## ")[0]
    return without_code(re.sub(r"\]\([^)]*\)", "]", text))


def without_code(text: str) -> str:
    """Return a text without what is between backticks."""
    return re.sub(r"(`+)[^`]+\1", "code", text)


def remarks_of(source: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of the comments and docstrings of a Python file, without code and names of parameters."""
    before = tokenize.ENCODING
    with source.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and before in _STATEMENT_BEGINS):
                text = re.sub(r"^ *[\w, *]+ : .*$", "", token.string, flags=re.MULTILINE)
                yield token.start[0], without_code(text)
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                before = token.type


def messages_of(source: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of the strings of three words and more that are no docstrings; of f-strings, each part."""
    tree = ast.parse(source.read_bytes())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
        if is_text and len(node.value.split()) > 2:
            yield node.lineno, without_code(node.value)


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


@pytest.mark.parametrize("folder", SOURCES)
def test_plain_words_of_remarks(folder: str):
    """The same of all comments and docstrings, private ones among them."""
    sources = sorted((ROOT / folder).rglob("*.py"))
    wrong = [
        f"{name_of(source)}:{line}: {hit}"
        for source in sources
        if source != Path(__file__)
        for line, text in remarks_of(source)
        for hit in found_in(text)
    ]
    assert sources
    assert not wrong, "\n".join(wrong)


def test_plain_words_of_messages():
    """The same of messages, notes of claims and labels in the package, and no German "is no number" among them."""
    sources = sorted((ROOT / "gridsched").rglob("*.py"))
    wrong = [
        f"{name_of(source)}:{line}: {hit}"
        for source in sources
        for line, text in messages_of(source)
        for hit in (*found_in(text), *(f"{each!r}: write 'is not a'" for each in _IS_NO.findall(text)))
    ]
    assert sources
    assert not wrong, "\n".join(wrong)
