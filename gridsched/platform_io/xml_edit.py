"""Platform files with some of their text changed, and every other byte and line as it was.

Power of hosts is written in; options get the names that SimGrid 4.1 knows; and profiles are left
that SimGrid is to act by. SimGrid changes speeds and links itself. gridsched switches hosts,
because it has to end what runs there first, and to know of it in the order of one instant. What
is in files of profiles is written into the platform: SimGrid 4.1 opens no file by its whole
path.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from gridsched.errors import InputError
from gridsched.files.input_files import read_bytes
from gridsched.files.output_files import write_whole
from gridsched.model.host_profiles import Profile
from gridsched.model.platform import Host, Platform
from gridsched.platform_io.overrides import PowerOverride, wattage_text
from gridsched.platform_io.simgrid_options import check_option, new_name
from gridsched.platform_io.xml_document import MAX_BYTES, Element, parse_document
from gridsched.platform_io.xml_profiles import HOST_FILES, HOST_KINDS, LINK_FILES, LINK_KINDS, profile_text
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_values import escape_text, expand_radical, quote_value

#: A start tag from its ``<`` on; the values of attributes may have ``>``.
_START_TAG = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_ATTRIBUTE = re.compile(rb"""\s+([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')""")
_ACTORS = ("actor", "process")
#: Elements that hold the power of their hosts, and the property that contains it.
_HOLDERS = ("host", "cluster")
_POWER = "wattage_per_state"

#: Begin and end of bytes, and what is written there.
Edit = tuple[int, int, bytes]


def _edited(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Return the data with edits applied, of which none overlap."""
    parts, at = [], 0
    for begin, end, text in sorted(edits):
        parts += [data[at:begin], text]
        at = end
    return b"".join([*parts, data[at:]])


def _start_tag(data: bytes, element: Element) -> re.Match[bytes]:
    tag = _START_TAG.match(data, element.begin)
    if tag is None:
        raise InputError(f"Line {element.line}: the file is in no encoding that contains ASCII.")
    return tag


def _place(data: bytes, element: Element) -> tuple[int, int]:
    """Return the bytes at which an element begins and ends."""
    if _start_tag(data, element)[0].endswith(b"/>"):
        return element.begin, element.end
    return element.begin, data.find(b">", element.end) + 1


def _attributes(data: bytes, element: Element, names: Collection[str]) -> Iterator[re.Match[bytes]]:
    """Yield the attributes of some names as the start tag has them."""
    tag = _start_tag(data, element)
    for match in _ATTRIBUTE.finditer(data, *tag.span()):
        if match[1].decode() in names:
            yield match


def add_power(source: str | Path, target: str | Path, power: Sequence[str], *, force: bool = False) -> Platform:
    """Write a platform file again with the power that is given.

    Parameters
    ----------
    source, target : str or Path
        Files; the first is not changed.
    power : sequence of str
        As `Scenario.power`, without ``none`` [W].
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
    given = PowerOverride.read(power)
    if not given.items:
        raise InputError(
            f"{source}: add-power writes power into the file; give it as --power IDLE:EPSILON:BUSY, once or more."
        )
    platform = read_platform(source, given)
    data = read_bytes(source, MAX_BYTES)
    hosts = {host.name: host for host in platform.everyone}
    edits: list[Edit] = []
    for element in parse_document(source, data).walk():
        if element.tag in (*_HOLDERS, "cabinet", "peer"):
            text = _given_to(element, given, hosts, str(source))
            edits += () if text is None else _with_power(data, element, text)
    write_whole(target, _edited(data, edits), force=force)
    return read_platform(target)


def _names(element: Element) -> Iterator[str]:
    """Yield the hosts that an element may make; a torus or a dragonfly makes fewer."""
    if element.tag in ("host", "peer"):
        yield element.attributes["id"]
        return
    prefix, suffix = element.attributes["prefix"], element.attributes["suffix"]
    for number in expand_radical(element.attributes["radical"]):
        yield f"{prefix}{number}{suffix}"


def _given_to(element: Element, given: PowerOverride, hosts: dict[str, Host], where: str) -> str | None:
    """Return the property of an element's hosts; None where nothing is given to them."""
    made = [hosts[name] for name in _names(element) if name in hosts]
    texts = {None if given.of(host.name, len(host.pstates), where) is None else wattage_text(host) for host in made}
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


def _with_power(data: bytes, element: Element, text: str) -> Iterator[Edit]:
    """Write the power of its hosts into an element, in the place of any that it has."""
    for child in element.children:
        if child.tag == "prop" and child.attributes.get("id") == _POWER:
            yield *_place(data, child), b""
    tag = _start_tag(data, element)
    line = data.rfind(b"\n", 0, element.begin) + 1
    indent = data[line : element.begin]
    indent = indent if not indent.strip() else b""
    written = b'\n%s  <prop id="%s" value="%s"/>' % (indent, _POWER.encode(), text.encode())
    if tag[0].endswith(b"/>"):
        closing = b"\n%s</%s>" % (indent, element.tag.encode())
        yield tag.end() - 2, tag.end(), b">" + written + closing
    else:
        yield tag.end(), tag.end(), written


def current_platform_xml(path: str | Path, data: bytes | None = None) -> bytes | None:
    """Return a platform file as SimGrid 4.1 takes it, with every line where it was.

    Parameters
    ----------
    path : str or Path
    data : bytes, optional
        Its text, where that was changed; else the file is read.

    Returns
    -------
    bytes or None
        The content to load instead; None if the file serves as it is.

    Raises
    ------
    InputError
        If the file cannot be read, or sets an option that is no one's but the user's to set.
    """
    if data is None:
        data = read_bytes(path, MAX_BYTES)
    if b"<config" not in data:
        return None
    edits: list[Edit] = []
    for element in parse_document(path, data).walk():
        for prop in element.children if element.tag == "config" else ():
            try:
                edits += _with_current_name(data, prop)
            except ValueError as error:
                raise InputError(f"{path}, line {prop.line}: the option {error}.") from None
    return _edited(data, edits) if edits else None


def _with_current_name(data: bytes, prop: Element) -> Iterator[Edit]:
    """Rename an option or leave it out; `ValueError` where the file may not set it."""
    option, value = (prop.attributes.get(name, "") for name in ("id", "value"))
    name = new_name(option, value)
    if name is None:
        begin, end = _place(data, prop)
        yield begin, end, b"\n" * data.count(b"\n", begin, end)
        return
    check_option(name, value)
    if name != option:
        for match in _attributes(data, prop, ["id"]):
            yield *match.span(2), f'"{name}"'.encode()


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
    data = read_bytes(path, MAX_BYTES)
    root = parse_document(path, data)
    edits: list[Edit] = []
    traces = list(_speed_traces(platform))
    for element in root.walk():
        if element.tag == "trace_connect":
            if element.attributes.get("kind", HOST_KINDS[0]) in HOST_KINDS:
                edits.append((*_place(data, element), b""))
        elif element.tag == "trace" and element.attributes.get("file"):
            name, text = element.attributes.get("id", ""), profile_text(path, element, "file")
            edits.append((*_place(data, element), _trace(name, text)))
        elif element.tag in ("host", "peer", "link"):
            files = LINK_FILES if element.tag == "link" else HOST_FILES
            edits += [(*match.span(), b"") for match in _attributes(data, element, files)]
        if element.tag == "link":
            traces += _link_traces(element, path)
    last = [each for each in root.children if each.tag not in _ACTORS][-1]
    _, at = _place(data, last)
    edits.append((at, at, b"".join(traces)))
    return _edited(data, edits)


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
    head = f'\n<trace id={quote_value(name)} periodicity="-1">\n'
    return f"{head}{escape_text(text)}</trace>".encode()


def _connected(kind: str, trace: str, element: str) -> bytes:
    ends = f"trace={quote_value(trace)} element={quote_value(element)}"
    return f'\n<trace_connect kind="{kind}" {ends}/>'.encode()


def _text(profile: Profile) -> str:
    lines = [f"{date!r} {value!r}" for date, value in zip(profile.dates_s, profile.values, strict=True)]
    if profile.loop_delay_s is not None:
        lines.append(f"LOOPAFTER {profile.loop_delay_s!r}")
    return "".join(f"{line}\n" for line in lines)
