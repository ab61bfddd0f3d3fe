"""Profiles of a SimGrid platform: how speeds and states of hosts change with time.

Read as SimGrid 4.1 reads them (``ProfileBuilder.cpp``): one line for each change, with its date and
value, and ``PERIODICITY`` or ``LOOPAFTER`` where it repeats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gridsched.errors import InputError, did_you_mean
from gridsched.files.input_files import read_text
from gridsched.model.host_profiles import HostProfiles, Profile
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.platform_io.findings import Findings
from gridsched.platform_io.xml_document import Element

#: Attributes of hosts that name files, by what changes.
SPEED_FILES = ("speed_file", "availability_file")
STATE_FILE = "state_file"
HOST_FILES = (*SPEED_FILES, STATE_FILE)
LINK_FILES = ("bandwidth_file", "latency_file", STATE_FILE)
_FILES = (*HOST_FILES, *LINK_FILES[:-1])
#: Kinds of ``<trace_connect>``; the first is the default.
HOST_KINDS = ("HOST_AVAIL", "SPEED")
#: Of links, in the order of `LINK_FILES`.
LINK_KINDS = ("BANDWIDTH", "LATENCY", "LINK_AVAIL")
_KINDS = (*HOST_KINDS, *LINK_KINDS)
#: A profile that repeats must last this long for each of its changes [s].
SHORTEST_ROUND_S = 1e-3
_LAWS = {"DET", "NORM", "NORMAL", "GAUSS", "GAUSSIAN", "EXP", "EXPONENTIAL", "UNIF", "UNIFORM", "STOCHASTIC"}
_TWICE = (
    "are connected to a trace that another host has already: SimGrid gives a trace to the first "
    "one alone, and so does gridsched"
)


def parse_profile(text: str, periodicity: float = -1.0) -> Profile:
    """Return the profile that a text describes.

    Parameters
    ----------
    text : str
    periodicity : float
        From the begin of one round to that of the next [s]; it repeats if this is above 0.

    Raises
    ------
    ValueError
        If it is none, or is stochastic.
    """
    dates: list[float] = []
    values: list[float] = []
    after: float | None = None
    for line in map(str.strip, text.splitlines()):
        if not line or line[0] in "#%":
            continue
        words = line.split()
        if words[0] == "PERIODICITY":
            periodicity = _number(words, 1, line)
        elif words[0] == "LOOPAFTER":
            after = _number(words, 1, line)
        elif _LAWS.intersection(words):
            raise ValueError(
                f"{line!r} is drawn at random by SimGrid, and could not be repeated; give dates and values, "
                "or let hosts fail by --failures"
            )
        else:
            dates.append(_number(words, 0, line))
            values.append(_number(words, 1, line))
            if len(dates) > 1 and dates[-1] < dates[-2]:
                raise ValueError(f"{line!r} comes after {dates[-2]:g} s; dates must ascend")
    if periodicity > 0:
        if after:
            raise ValueError("it has both PERIODICITY and LOOPAFTER; one of them is allowed")
        after = periodicity - (dates[-1] if dates else 0.0)
        if after < 0:
            raise ValueError(f"its last date lies after its period of {periodicity:g} s")
    if after is not None and dates and after + dates[-1] < SHORTEST_ROUND_S * len(dates):
        raise ValueError(
            f"{len(dates)} change(s) repeat every {after + dates[-1]:g} s; a round lasts at least "
            f"{SHORTEST_ROUND_S:g} s for each change"
        )
    return Profile(tuple(dates), tuple(values), after)


def _number(words: list[str], k: int, line: str) -> float:
    try:
        value = float(words[k])
    except (IndexError, ValueError):
        raise ValueError(f"{line!r} must hold a date and a value") from None
    if not (value == 0 or SMALLEST <= value <= LARGEST):
        raise ValueError(f"{line!r}: numbers of 0 or more, up to {LARGEST:g}, are allowed")
    return value


def place_of(platform: str | Path, file: str) -> Path:
    """Return where a file of profiles lies: beside the platform file, or in the working folder."""
    beside = Path(platform).parent / file
    return beside if beside.exists() else Path(file)


def profile_text(platform: str | Path, element: Element, attribute: str) -> str:
    """Return the text of the file that an attribute of an element names.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    return read_text(place_of(platform, element.attributes[attribute]))


@dataclass
class ProfileEntries:
    """Everything in a platform file that specifies how hosts and links change with time.

    Attributes
    ----------
    findings : Findings
        Takes what is wrong.
    traces : dict of str to Element
        ``<trace>`` elements by id.
    """

    findings: Findings
    traces: dict[str, Element] = field(default_factory=dict)
    _connected: set[tuple[str, str]] = field(default_factory=set)
    _speeds: dict[str, Profile] = field(default_factory=dict)
    _states: dict[str, Profile] = field(default_factory=dict)
    _lines: dict[str, int] = field(default_factory=dict)
    _failing_links: list[str] = field(default_factory=list)
    _files: dict[str, str] = field(default_factory=dict)

    def attributes(self, element: Element) -> None:
        """Read the profiles that attributes of an element name."""
        legal = HOST_FILES if element.tag in ("host", "peer") else ()
        if element.tag == "link":
            legal = LINK_FILES
        name = element.attributes.get("id", "")
        for attribute in _FILES:
            file = element.attributes.get(attribute)
            if not file:
                continue
            if attribute not in legal:
                self.findings.problem(
                    f"<{element.tag}> {name!r} has a {attribute}, which SimGrid does not know there.", element.line
                )
            elif legal is LINK_FILES:
                what = f"{attribute} {file!r} of link {name!r}"
                self._profile(element, file, what, of_link=True)
                if attribute == STATE_FILE:
                    self._failing_links.append(name)
            elif attribute != SPEED_FILES[1] or not element.attributes.get(SPEED_FILES[0]):
                kind = "HOST_AVAIL" if attribute == STATE_FILE else "SPEED"
                what = f"{attribute} {file!r} of host {name!r}"
                self._of_host(name, kind, self._profile(element, file, what), what, element)

    def trace(self, element: Element) -> None:
        """Remember a ``<trace>``."""
        name = element.attributes.get("id", "")
        if name in self.traces:
            self.findings.problem(f"two traces have the id {name!r}.", element.line)
        self.traces.setdefault(name, element)

    def connect(self, element: Element) -> None:
        """Give a ``<trace>`` to the host or link of a ``<trace_connect>``."""
        kind = element.attributes.get("kind", HOST_KINDS[0])
        name, target = (element.attributes.get(key, "") for key in ("trace", "element"))
        if kind not in _KINDS:
            self.findings.problem(f"<trace_connect> of kind {kind!r}; allowed: {', '.join(_KINDS)}.", element.line)
            return
        trace = self.traces.get(name)
        if trace is None:
            hint = did_you_mean(name, self.traces)
            self.findings.problem(
                f"<trace_connect> names the trace {name!r}, which is not defined before it. {hint}".rstrip(),
                element.line,
            )
            return
        if kind == "LINK_AVAIL":
            self._failing_links.append(target)
        if kind not in HOST_KINDS:
            self._profile(trace, trace.attributes.get("file"), f"trace {name!r} of link {target!r}", of_link=True)
            return
        if (kind, name) in self._connected:
            self.findings.remark(_TWICE, target)
            return
        self._connected.add((kind, name))
        what = f"trace {name!r} of host {target!r}"
        self._of_host(target, kind, self._profile(trace, trace.attributes.get("file"), what), what, element)

    def _content(self, element: Element, file: str | None, what: str) -> tuple[str, float] | None:
        """Return the text and the period [s] of a file, or of the trace that names none; None if they are faulty."""
        try:
            if not file:
                return "".join(element.text or ()), float(element.attributes.get("periodicity", ""))
            path = place_of(self.findings.path, file)
            text = read_text(path)
        except InputError as error:
            self.findings.problem(f"{what}: {error}", element.line)
            return None
        except ValueError:
            self.findings.problem(f"{what}: its periodicity is not a number.", element.line)
            return None
        self._files[str(path)] = what
        return text, -1.0

    def _profile(self, element: Element, file: str | None, what: str, *, of_link: bool = False) -> Profile | None:
        """Return a profile, or report what is wrong with it; SimGrid may draw how links change."""
        content = self._content(element, file, what)
        if content is None or (of_link and _LAWS.intersection(content[0].split())):
            return None
        try:
            return parse_profile(*content)
        except ValueError as error:
            self.findings.problem(f"{what}: {error}.", element.line)
            return None

    def _of_host(self, host: str, kind: str, profile: Profile | None, what: str, element: Element) -> None:
        if profile is None:
            return
        profiles = self._speeds if kind == "SPEED" else self._states
        if host in profiles:
            word = "speed" if kind == "SPEED" else "state"
            self.findings.problem(f"{what}: the host has a {word} profile already.", element.line)
        elif profiles is self._speeds and 0.0 in profile.values:
            self.findings.problem(
                f"{what}: a speed of 0 is not allowed, because SimGrid 4.1 goes on computing; let "
                "the host be down by a state profile, or slow by a small number.",
                element.line,
            )
        else:
            profiles[host] = profile
            self._lines.setdefault(host, element.line)

    def profiles(self, hosts: set[str]) -> HostProfiles:
        """Return all profiles; those of hosts that are not among `hosts` are problems."""
        for host, line in self._lines.items():
            if host not in hosts:
                hint = did_you_mean(host, hosts)
                self.findings.problem(
                    f"a profile is connected to host {host!r}, which the file does not define. {hint}".rstrip(), line
                )
        return HostProfiles(
            tuple(self._speeds.items()), tuple(self._states.items()), tuple(self._failing_links), tuple(self._files)
        )
