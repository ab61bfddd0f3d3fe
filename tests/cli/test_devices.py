"""Devices and sockets in the place of files: one line, instead of reading for ever."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from cli_cases import EX_A_TASKS, host_xml, zone_xml


@pytest.fixture(params=["/dev/zero", "/dev/random", "/dev/full", "socket"])
def endless(request, tmp_path, monkeypatch) -> str:
    """Return the path of something that is no file, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    if request.param != "socket":
        return request.param
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    return "socket"


def test_what_is_no_file_is_refused_wherever_one_is_read(refused, endless):
    """Platforms, workloads, studies and tables; links to it, too."""
    Path("p.xml").write_text(zone_xml(host_xml()))
    Path("bag.csv").write_text(EX_A_TASKS)
    for name in ("link.csv", "link.toml", "link.xml"):
        Path(name).symlink_to(endless)
    told = "it is a device or pipe"
    assert told in refused("platform", "check", endless)
    assert told in refused("run", "--platform", "link.xml", "--workload", "bag.csv")
    assert told in refused("run", "--platform", "p.xml", "--workload", "link.csv")
    assert told in refused("run", "--workload", "link.toml")
    assert told in refused("platform", "from-table", endless, "-o", "x.xml")
    assert told in refused("study", "run", "link.toml", "--store", "new")
    assert "is no store" in refused("study", "report", endless)
