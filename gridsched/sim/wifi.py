"""Rates of the stations in Wi-Fi zones, without which SimGrid ends a run at their first message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gridsched.platform_io.xml_document import Findings, read_document
from gridsched.platform_io.xml_entries import read_entries


def give_rates(simgrid: Any, engine: Any, platform_file: Path) -> None:
    """Give each station the rate that the platform file says, or its link's first one.

    Parameters
    ----------
    simgrid : module
    engine : simgrid.Engine
        With the platform loaded.
    platform_file : Path
        What it has loaded.
    """
    wifi = simgrid.Link.SharingPolicy.WIFI
    links = {link.name: link for link in engine.all_links if link.get_sharing_policy() == wifi}
    if not links:
        return
    entries = read_entries(read_document(platform_file), Findings(platform_file, strict=True))
    for station in entries.stations:
        if station.link in links:
            host = engine.host_by_name(station.host)
            links[station.link].set_host_wifi_rate(host, station.rate)
