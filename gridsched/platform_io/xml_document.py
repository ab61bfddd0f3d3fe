"""XML from untrusted files: a tree that knows its lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from gridsched.errors import InputError
from gridsched.files.foreign_files import foreign_kind
from gridsched.files.input_files import read_bytes
from gridsched.model.limits import MAX_NAME

#: Larger files are refused; SimGrid itself needs about ten times the file's size in memory.
MAX_BYTES = 256 * 2**20
#: Attributes that hold names.
_NAMES = frozenset({"id", "src", "dst", "prefix", "suffix", "router_id", "host"})
#: Deeper nesting than any platform has; protects the recursion of the readers.
MAX_DEPTH = 100
_OLDEST_ROOT = "platform_description"
_CONVERTER = (
    "SimGrid's own converter brings a copy of an old file up to date: 'simgrid_update_xml FILE' (in Debian's "
    "libsimgrid-dev)."
)
_FOREIGN_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);|#)([^\s;&<\"']{1,40});")


@dataclass(slots=True)
class Element:
    """One XML element: its tag, attributes, children, and its line and bytes in the file.

    Its start tag begins at the byte `begin`. At `end` its end tag begins; where it has none, its
    start tag ends there. `text` is kept where it was asked for.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    begin: int
    end: int = 0
    children: list[Element] = field(default_factory=list)
    text: list[str] | None = None

    def properties(self) -> dict[str, str]:
        """Return the ``<prop>`` children as a dictionary; the first of equal ids counts."""
        values: dict[str, str] = {}
        for child in self.children:
            if child.tag == "prop":
                values.setdefault(child.attributes.get("id", ""), child.attributes.get("value", ""))
        return values

    def walk(self) -> Iterator[Element]:
        """Yield this element and everything in it, in document order."""
        yield self
        for child in self.children:
            yield from child.walk()


class _Builder:
    """Makes the tree of a file that declares no entities, and refuses any other."""

    def __init__(self, path: Path | str, data: bytes, with_text: Collection[str]):
        # SimGrid accepts blank lines before the XML declaration, expat does not.
        self.content = _with_comments(data.lstrip(), _without_hyphens)
        self.bytes_before = len(data) - len(self.content)
        self.lines_before = data.count(b"\n", 0, self.bytes_before)
        self.path = path
        self.with_text = with_text
        self.root: Element | None = None
        self.open: list[Element] = []
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.EntityDeclHandler = parser.UnparsedEntityDeclHandler = self.refuse_entity
        parser.ExternalEntityRefHandler = self.refuse_entity

    @property
    def line(self) -> int:
        return self.parser.CurrentLineNumber + self.lines_before

    @property
    def byte(self) -> int:
        return self.parser.CurrentByteIndex + self.bytes_before

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, self.line, self.byte)
        if len(self.open) >= MAX_DEPTH:
            raise InputError(f"{self.path}, line {self.line}: elements nest deeper than {MAX_DEPTH}.")
        for key in _NAMES & attributes.keys():
            if (size := len(attributes[key])) > MAX_NAME:
                raise InputError(
                    f"{self.path}, line {self.line}: {key} of <{tag[:40]}> has {size:,} "
                    f"characters; a name has at most {MAX_NAME:,}."
                )
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def characters(self, content: str) -> None:
        if self.open and self.open[-1].tag in self.with_text:
            element = self.open[-1]
            element.text = element.text or []
            element.text.append(content)

    def end(self, tag: str) -> None:
        self.open.pop().end = self.byte

    def refuse_entity(self, name: str | None, *details: object) -> NoReturn:
        named = repr(name) if name else "that lies outside"
        raise InputError(
            f"{self.path}, line {self.line}: declares or uses the XML entity {named}; entities "
            "are not expanded. Write the text itself."
        )


def read_document(path: Path | str) -> Element:
    """Return the ``<platform>`` element of a SimGrid file.

    Entities are not expanded and nothing outside the file is read; a ``<!DOCTYPE ... SYSTEM>``
    line, which every SimGrid file has, is accepted and not followed.

    Raises
    ------
    InputError
        If the file is missing, empty, too large, not XML, truncated, declares entities, or is no
        SimGrid platform of version 4 or 4.1.
    """
    return parse_document(path, read_bytes(path, MAX_BYTES, "a SimGrid platform file"))


def parse_document(path: Path | str, data: bytes) -> Element:
    """Return the ``<platform>`` element of the content of a file.

    Raises
    ------
    InputError
        As `read_document`.
    """
    root = parse_xml(path, data, with_text={"trace"})
    if root.tag != "platform":
        said = foreign_kind(data)
        hint = f" {_CONVERTER}" if root.tag == _OLDEST_ROOT else f" The file {said}" if said else ""
        raise InputError(f"{path}: a SimGrid file starts with <platform>; found <{root.tag}>.{hint}")
    _check_version(path, root)
    return root


def parse_xml(path: Path | str, data: bytes, with_text: Collection[str], *, names_others: bool = True) -> Element:
    """Return the outermost element of the content of a file.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    data : bytes
    with_text : collection of str
        Tags of elements whose text is kept.
    names_others : bool
        Whether content that belongs to another reader is called by its name where it is not XML.

    Raises
    ------
    InputError
        If it is not well-formed XML, or declares or uses entities.
    """
    _refuse_foreign_entities(path, data)
    builder = _Builder(path, data, with_text)
    try:
        # in portions, expat would read a long comment or attribute again with each of them
        builder.parser.Parse(builder.content, True)
    except expat.ExpatError as error:
        hint = " It seems to be a binary file." if b"\0" in data[:4096] else ""
        if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
            hint = " It is a workbook or an archive: 'gridsched platform from-table' makes a platform of a workbook."
        if names_others and (said := foreign_kind(data)):
            raise InputError(f"{path}: {said}") from None
        raise InputError(
            f"{path}, line {error.lineno + builder.lines_before}: not well-formed XML: "
            f"{expat.ErrorString(error.code)}.{hint}"
        ) from None
    except (LookupError, ValueError) as error:
        raise InputError(f"{path}: not readable as XML: {error}.") from None
    assert builder.root is not None  # or expat has found no element
    return builder.root


def _refuse_foreign_entities(path: Path | str, data: bytes) -> None:
    # Expat drops an undeclared entity in silence where a DTD outside the file might declare it.
    if _FOREIGN_ENTITY.search(data):
        match = _FOREIGN_ENTITY.search(_with_comments(data, lambda comment: b""))
        if match:
            raise InputError(
                f"{path}: uses the XML entity {match[1].decode(errors='replace')!r}; entities are "
                "not expanded. Write the text itself."
            )


def _with_comments(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return the data with each closed comment changed; one pass, however many are opened."""
    parts, at = [], 0
    while (begin := data.find(b"<!--", at)) >= 0 and (end := data.find(b"-->", begin + 4) + 3) >= 3:
        parts += [data[at:begin], change(data[begin:end])]
        at = end
    return b"".join([*parts, data[at:]])


def _without_hyphens(comment: bytes) -> bytes:
    """Return a comment with a blank for each ``-``: SimGrid takes those that hold ``--``, XML does not."""
    return b"<!--" + comment[4:-3].replace(b"-", b" ") + b"-->"


def _check_version(path: Path | str, root: Element) -> None:
    text = root.attributes.get("version", "0.0")
    try:
        version = float(text)
    except ValueError:
        version = 0.0
    if not 4.0 <= version <= 4.1:
        raise InputError(
            f"{path}, line {root.line}: platform version {text!r}; SimGrid 4.1 reads versions 4 and 4.1. {_CONVERTER}"
        )
