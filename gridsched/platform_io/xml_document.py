"""SimGrid XML as a tree of elements with line numbers, from files nobody vouches for."""

from __future__ import annotations

import io
import re
import xml.sax
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, Locator

from defusedxml import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from gridsched.errors import InputError
from gridsched.files.input_files import read_bytes
from gridsched.model.limits import MAX_NAME

#: Larger files are refused; SimGrid itself needs about ten times the file's size in memory.
MAX_BYTES = 256 * 2**20
#: Attributes that hold names.
_NAMES = frozenset({"id", "src", "dst", "prefix", "suffix", "router_id", "host"})
#: Deeper nesting than any platform has; protects the recursion of the readers.
MAX_DEPTH = 100
_FOREIGN_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);|#)([^\s;&<\"']{1,40});")


@dataclass(slots=True)
class Element:
    """One XML element: its tag, attributes, children and line in the file; of a trace its text."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    text: list[str] | None = None

    def properties(self) -> dict[str, str]:
        """Return the ``<prop>`` children as a dictionary; the first of equal ids counts."""
        found: dict[str, str] = {}
        for child in self.children:
            if child.tag == "prop":
                found.setdefault(child.attributes.get("id", ""), child.attributes.get("value", ""))
        return found

    def walk(self) -> Iterator[Element]:
        """Yield this element and everything in it, in document order."""
        yield self
        for child in self.children:
            yield from child.walk()


class _Parser(DefusedExpatParser):  # type: ignore[misc]  # defusedxml has no types
    """Refuses every entity, but not the DOCTYPE line of SimGrid files (it is not followed)."""

    def defused_external_entity_ref_handler(
        self, context: str | None, base: str | None, sysid: str | None, pubid: str | None
    ) -> int:
        if context is not None:
            super().defused_external_entity_ref_handler(context, base, sysid, pubid)
        return 1


class _Builder(ContentHandler):
    _locator: Locator  # the parser's

    def __init__(self, path: Path | str, lines_before: int):
        super().__init__()
        self.path = path
        self.lines_before = lines_before
        self.root: Element | None = None
        self.open: list[Element] = []

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        line = (self._locator.getLineNumber() or 0) + self.lines_before
        element = Element(name, dict(attrs.items()), line)
        if len(self.open) >= MAX_DEPTH:
            raise InputError(f"{self.path}, line {line}: elements nest deeper than {MAX_DEPTH}.")
        for key in _NAMES & element.attributes.keys():
            if (size := len(element.attributes[key])) > MAX_NAME:
                raise InputError(
                    f"{self.path}, line {line}: {key} of <{name[:40]}> has {size:,} characters; a "
                    f"name has at most {MAX_NAME:,}."
                )
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def characters(self, content: str) -> None:
        if self.open and self.open[-1].tag == "trace":
            trace = self.open[-1]
            trace.text = trace.text or []
            trace.text.append(content)

    def endElement(self, name: str) -> None:
        self.open.pop()


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
    _refuse_foreign_entities(path, data)
    # SimGrid accepts blank lines before the XML declaration, expat does not.
    content = with_plain_comments(data.lstrip())
    lines_before = data[: len(data) - len(content)].count(b"\n")
    builder = _Builder(path, lines_before)
    # In portions, expat would read a long comment or attribute anew with each of them.
    parser = _Parser(bufsize=len(content) + 1)
    parser.setContentHandler(builder)
    try:
        parser.parse(io.BytesIO(content))
    except DefusedXmlException as error:
        name = getattr(error, "name", None) or getattr(error, "sysid", None) or "an entity"
        raise InputError(
            f"{path}, line {parser.getLineNumber() + lines_before}: declares or uses the XML "
            f"entity {name!r}; entities are not expanded. Write the text itself."
        ) from None
    except xml.sax.SAXParseException as error:
        hint = " It seems to be a binary file." if b"\0" in data[:4096] else ""
        raise InputError(
            f"{path}, line {(error.getLineNumber() or 1) + lines_before}: not well-formed XML: "
            f"{error.getMessage()}.{hint}"
        ) from None
    except (LookupError, ValueError) as error:
        raise InputError(f"{path}: not readable as XML: {error}.") from None
    root = builder.root
    if root is None or root.tag != "platform":
        found = f"<{root.tag}>" if root else "nothing"
        raise InputError(f"{path}: a SimGrid file starts with <platform>; found {found}.")
    _check_version(path, root)
    return root


def _refuse_foreign_entities(path: Path | str, data: bytes) -> None:
    # Expat drops an undeclared entity in silence where a DTD outside the file might declare it.
    if _FOREIGN_ENTITY.search(data):
        match = _FOREIGN_ENTITY.search(_without_comments(data))
        if match:
            raise InputError(
                f"{path}: uses the XML entity {match[1].decode(errors='replace')!r}; entities are "
                "not expanded. Write the text itself."
            )


def with_plain_comments(data: bytes) -> bytes:
    """Return the data with a blank for each ``-`` in a comment, of the same length.

    SimGrid takes comments that hold ``--``, which XML does not.
    """
    parts, at = [], 0
    for begin, end in _comments(data):
        parts += [data[at : begin + 4], data[begin + 4 : end - 3].replace(b"-", b" ")]
        at = end - 3
    return b"".join([*parts, data[at:]])


def _without_comments(data: bytes) -> bytes:
    """Return the text outside of comments."""
    parts, at = [], 0
    for begin, end in _comments(data):
        parts.append(data[at:begin])
        at = end
    return b"".join([*parts, data[at:]])


def _comments(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each comment that is closed; one pass, however many are opened."""
    at = 0
    while (begin := data.find(b"<!--", at)) >= 0:
        at = data.find(b"-->", begin + 4) + 3
        if at < 3:
            return
        yield begin, at


def _check_version(path: Path | str, root: Element) -> None:
    text = root.attributes.get("version", "0.0")
    try:
        version = float(text)
    except ValueError:
        version = 0.0
    if not 4.0 <= version <= 4.1:
        raise InputError(
            f"{path}, line {root.line}: platform version {text!r}; SimGrid 4.1 reads versions 4 "
            "and 4.1. SimGrid's tool 'simgrid_update_xml' brings old files up to date."
        )
