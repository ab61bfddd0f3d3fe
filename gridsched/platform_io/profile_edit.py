"""A platform file with those profiles alone that SimGrid is to act by.

SimGrid changes speeds and links itself. gridsched switches hosts, because it has to end what runs
there first, and to know of it in the order of one instant. What stands in files of profiles is
written into the platform: SimGrid 4.1 opens no file by its whole path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from gridsched.model.host_profiles import Profile
from gridsched.model.platform import Platform
from gridsched.platform_io.xml_document import Element, read_document
from gridsched.platform_io.xml_places import START_TAG, edited, places_in
from gridsched.platform_io.xml_profiles import (
    HOST_FILES,
    HOST_KINDS,
    LINK_FILES,
    LINK_KINDS,
    profile_text,
)

_ATTRIBUTE = re.compile(rb"""\s+([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')""")
_ACTORS = ("actor", "process")

Edit = tuple[int, int, bytes]


def with_speeds_alone(path: str | Path, platform: Platform) -> bytes:
    """Return a platform file in which the speeds of computing hosts change, and no states.

    Parameters
    ----------
    path : str or Path
        As it was read into `platform`, or written from it.
    platform : Platform

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    root = read_document(path)
    data = Path(path).read_bytes()
    places = dict(zip(map(id, root.walk()), places_in(data), strict=True))
    edits: list[Edit] = []
    traces = list(_speed_traces(platform))
    for element in root.walk():
        begin, end = places[id(element)]
        if element.tag == "trace_connect":
            if element.attributes.get("kind", HOST_KINDS[0]) in HOST_KINDS:
                edits.append((begin, end, b""))
        elif element.tag == "trace" and element.attributes.get("file"):
            name, text = element.attributes.get("id", ""), profile_text(path, element, "file")
            edits.append((begin, end, _trace(name, text)))
        elif element.tag in ("host", "peer"):
            edits += _without(HOST_FILES, data, begin)
        elif element.tag == "link":
            edits += _without(LINK_FILES, data, begin)
            traces += _link_traces(element, path)
    last = [each for each in root.children if each.tag not in _ACTORS][-1]
    at = places[id(last)][1]
    edits.append((at, at, b"".join(traces)))
    return edited(data, edits)


def _without(attributes: tuple[str, ...], data: bytes, begin: int) -> Iterator[Edit]:
    """Take attributes out of the start tag that begins there."""
    tag = START_TAG.match(data, begin)
    assert tag is not None  # `read_document` has read it
    for found in _ATTRIBUTE.finditer(data, begin, tag.end()):
        if found[1].decode() in attributes:
            yield found.start(), found.end(), b""


def _link_traces(link: Element, path: str | Path) -> Iterator[bytes]:
    """Yield the profiles that attributes of a link name."""
    for attribute, kind in zip(LINK_FILES, LINK_KINDS, strict=True):
        if link.attributes.get(attribute):
            name = f"gridsched-{attribute}-{link.attributes['id']}"
            yield _trace(name, profile_text(path, link, attribute))
            yield _connected(kind, name, link.attributes["id"])


def _speed_traces(platform: Platform) -> Iterator[bytes]:
    """Yield the speed profile of each computing host as SimGrid reads it."""
    profiles = platform.profiles.speed_of
    for k, host in enumerate(platform.hosts):
        if host.name in profiles and profiles[host.name].dates_s:
            yield _trace(f"gridsched-speed-{k}", _text(profiles[host.name]))
            yield _connected("SPEED", f"gridsched-speed-{k}", host.name)


def _trace(name: str, text: str) -> bytes:
    return f'\n<trace id={quoteattr(name)} periodicity="-1">\n{escape(text)}</trace>'.encode()


def _connected(kind: str, trace: str, element: str) -> bytes:
    return (
        f'\n<trace_connect kind="{kind}" trace={quoteattr(trace)} element={quoteattr(element)}/>'
    ).encode()


def _text(profile: Profile) -> str:
    lines = [f"{date!r} {value!r}" for date, value in zip(
        profile.dates_s, profile.values, strict=True
    )]  # fmt: skip
    if profile.loop_delay_s is not None:
        lines.append(f"LOOPAFTER {profile.loop_delay_s!r}")
    return "".join(f"{line}\n" for line in lines)
