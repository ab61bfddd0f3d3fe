"""How long hosts boot and shut down, and in which P-state, in properties of our own."""

from __future__ import annotations

from typing import Any

from gridsched.model.platform import Host
from gridsched.platform_io.findings import Findings
from gridsched.platform_io.xml_energy import read_amount
from gridsched.platform_io.xml_entries import HostEntry

#: Properties that say how long a host is being switched [s], and in which P-state of speed 0;
#: fields of `Host` are called the same.
_PROPERTIES = (("boot_time_s", "boot_pstate"), ("shutdown_time_s", "shutdown_pstate"))


def read_switching(entry: HostEntry, findings: Findings) -> dict[str, Any]:
    """Return times [s] and P-states as the fields of `Host`.

    What is wrong goes to `findings`: above all a P-state of speed 0 of which nothing says what it
    is for.
    """
    fields: dict[str, Any] = {}
    for time, pstate in _PROPERTIES:
        fields[time] = read_amount(entry.name, entry.properties, time, findings, entry.line)
        if pstate not in entry.properties:
            continue
        fields[pstate] = _pstate(entry, pstate, findings)
        if fields[pstate] is not None and not fields[time]:
            findings.problem(
                f"host {entry.name!r} has the property {pstate} and no {time}: say how long it is "
                "in that P-state [s].",
                entry.line,
            )
    first = len(entry.speeds)
    named = {fields.get(pstate) for _, pstate in _PROPERTIES}
    unnamed = [str(k) for k in range(first, first + entry.n_still) if k not in named]
    if unnamed:
        findings.problem(
            f"host {entry.name!r} has speed 0 in P-state {' and '.join(unnamed)}, and nothing "
            "says what for: give it the properties boot_pstate and boot_time_s [s], "
            "shutdown_pstate and shutdown_time_s [s], or leave such P-states out.",
            entry.line,
        )
    return fields


def _pstate(entry: HostEntry, name: str, findings: Findings) -> int | None:
    """Return the number of a P-state of speed 0 that a property names."""
    text, first = entry.properties[name].strip(), len(entry.speeds)
    if text.isdecimal() and len(text) < 9 and first <= int(text) < first + entry.n_still:
        return int(text)
    legal = f"its P-states of speed 0 are {first} to {first + entry.n_still - 1}"
    findings.problem(
        f"host {entry.name!r}: {name} is {text!r}; "
        + (legal if entry.n_still else "it has no P-state of speed 0")
        + ".",
        entry.line,
    )
    return None


def switch_properties(host: Host) -> dict[str, str]:
    """Return the properties of a host that `read_switching` reads, without those that say 0."""
    found: dict[str, str] = {}
    for time, pstate in _PROPERTIES:
        if getattr(host, time):
            found[time] = repr(float(getattr(host, time)))
        if getattr(host, pstate) is not None:
            found[pstate] = str(getattr(host, pstate))
    return found
