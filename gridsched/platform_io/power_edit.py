"""A platform file with the power of its hosts written in, everything else as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from gridsched.errors import InputError
from gridsched.files.output_files import write_whole
from gridsched.model.platform import Host, Platform
from gridsched.platform_io.given_power import GivenPower, wattage_text
from gridsched.platform_io.xml_document import Element, read_document
from gridsched.platform_io.xml_entries import expand_radical
from gridsched.platform_io.xml_places import START_TAG, edited, places_in
from gridsched.platform_io.xml_reader import read_platform

_HOLDERS = ("host", "cluster")
_PROPERTY = "wattage_per_state"


def add_power(
    source: str | Path, target: str | Path, power: Sequence[str], *, force: bool = False
) -> Platform:
    """Write a platform file again with the power that is given.

    Parameters
    ----------
    source, target : str or Path
        Files; the first is not changed.
    power : sequence of str
        As `RunSettings.power`, without ``none`` [W].
    force : bool
        Replace an existing file.

    Returns
    -------
    Platform
        What was written, read again.

    Raises
    ------
    InputError
        If a file cannot be read or written, or an element cannot hold what is given.
    """
    given = GivenPower.read(power)
    if not given.items:
        raise InputError(
            f"{source}: add-power writes power into the file; give it as --power "
            "IDLE:EPSILON:BUSY, once or more."
        )
    platform = read_platform(source, given)
    data = Path(source).read_bytes()
    hosts = {host.name: host for host in platform.hosts}
    hosts |= {host.name: host for _, host in platform.idle_hosts_named}
    elements = list(read_document(source).walk())
    places = dict(zip(map(id, elements), places_in(data), strict=True))
    edits = [
        edit
        for element in elements
        if element.tag in (*_HOLDERS, "cabinet", "peer")
        for edit in _edits(element, data, places, _given_to(element, given, hosts, str(source)))
    ]
    write_whole(target, edited(data, edits), force=force)
    return read_platform(target)


def _names(element: Element) -> Iterator[str]:
    """Yield the hosts that an element may make; a torus or a dragonfly makes fewer."""
    if element.tag in ("host", "peer"):
        yield element.attributes["id"]
        return
    prefix, suffix = element.attributes["prefix"], element.attributes["suffix"]
    for number in expand_radical(element.attributes["radical"]):
        yield f"{prefix}{number}{suffix}"


def _given_to(
    element: Element, given: GivenPower, hosts: dict[str, Host], where: str
) -> str | None:
    """Return the property of an element's hosts; None where nothing is given to them."""
    made = [hosts[name] for name in _names(element) if name in hosts]
    texts = {
        None if given.of(host.name, len(host.pstates), where) is None else wattage_text(host)
        for host in made
    }
    if texts <= {None}:
        return None
    what = f"{where}, line {element.line}: <{element.tag}> {element.attributes['id']!r}"
    if element.tag not in _HOLDERS:
        _refuse(f"{what} cannot hold the power of its hosts in SimGrid's format")
    if len(texts) > 1:
        _refuse(f"{what} holds one power for all its hosts, and they are given several")
    return texts.pop()


def _refuse(what: str) -> NoReturn:
    raise InputError(f"{what}; leave the file as it is, and give the power to each run (--power).")


def _edits(
    element: Element, data: bytes, places: Mapping[int, tuple[int, int]], text: str | None
) -> Iterator[tuple[int, int, bytes]]:
    """Yield (begin, end, what is written there) for one element."""
    if text is None:
        return
    for child in element.children:
        if child.tag == "prop" and child.attributes.get("id") == _PROPERTY:
            yield *places[id(child)], b""
    begin, _ = places[id(element)]
    tag = START_TAG.match(data, begin)
    if tag is None:
        _refuse("the file is in no encoding that contains ASCII")
    line = data.rfind(b"\n", 0, begin) + 1
    indent = data[line:begin]
    indent = indent if not indent.strip() else b""
    written = b'\n%s  <prop id="%s" value="%s"/>' % (indent, _PROPERTY.encode(), text.encode())
    if tag[0].endswith(b"/>"):
        closing = b"\n%s</%s>" % (indent, element.tag.encode())
        yield tag.end() - 2, tag.end(), b">" + written + closing
    else:
        yield tag.end(), tag.end(), written
