"""Stations of Wi-Fi zones: each has one of the rates of its zone's link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gridsched.platform_io.findings import Findings
from gridsched.platform_io.xml_document import Element

#: Our property of a station: which of the link's bandwidths it has, from 0 on.
WIFI_RATE = "wifi_rate"
_BETWEEN_RATES = re.compile("[;,]")


@dataclass(frozen=True)
class Station:
    """A host of a Wi-Fi zone: its link, and the one of the link's rates that it has, from 0 on."""

    host: str
    link: str
    rate: int


def split_rates(bandwidth: str) -> list[str]:
    """Return the bandwidths of a link; a Wi-Fi link may have several."""
    return _BETWEEN_RATES.split(bandwidth)


def read_stations(zone: Element, findings: Findings) -> Iterator[Station]:
    """Yield the hosts of a Wi-Fi zone that has a link, each with the rate it names or the first.

    What is wrong goes to `findings`. Of a zone of another kind nothing is yielded.
    """
    link = next((child for child in zone.children if child.tag == "link"), None)
    if zone.attributes.get("routing", "").upper() != "WIFI" or link is None:
        return
    name = link.attributes.get("id", "")
    n_rates = len(split_rates(link.attributes.get("bandwidth", "")))
    for host in zone.children:
        if host.tag not in ("host", "peer"):
            continue
        text = host.properties().get(WIFI_RATE, "0").strip()
        if text.isdecimal() and len(text) < 10 and int(text) < n_rates:
            yield Station(host.attributes.get("id", ""), name, int(text))
        else:
            findings.problem(
                f"host {host.attributes.get('id')!r}: {WIFI_RATE} is {text!r}; the Wi-Fi link "
                f"{name!r} has rates 0 to {n_rates - 1}, in the order of its bandwidths.",
                host.line,
            )
