"""Where elements stand in a platform file, to change some of it and leave the rest as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.parsers import expat

from gridsched.platform_io.xml_document import with_plain_comments

#: A start tag from its ``<`` on; ``>`` may stand in the values of attributes.
START_TAG = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""")


def edited(data: bytes, edits: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return the data with (begin, end, what is written there) applied; none overlap."""
    parts, at = [], 0
    for begin, end, text in sorted(edits):
        parts += [data[at:begin], text]
        at = end
    return b"".join([*parts, data[at:]])


def places_in(data: bytes) -> list[tuple[int, int]]:
    """Return where each element begins and ends, in bytes; `read_document` has read the data."""
    content = with_plain_comments(data.lstrip())
    before = len(data) - len(content)
    begins: list[int] = []
    ends: dict[int, int] = {}
    opened: list[int] = []
    parser = expat.ParserCreate()

    def start(_tag: str, _attributes: object) -> None:
        opened.append(len(begins))
        begins.append(before + parser.CurrentByteIndex)

    def end(_tag: str) -> None:
        k = opened.pop()
        tag = START_TAG.match(data, begins[k])
        if tag is not None and tag[0].endswith(b"/>"):
            ends[k] = tag.end()
        else:
            ends[k] = data.find(b">", before + parser.CurrentByteIndex) + 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(content, True)
    return [(begin, ends[k]) for k, begin in enumerate(begins)]
