"""Let SimGrid itself load a platform file, in a process of its own that may abort."""

from __future__ import annotations

import os
import pickle
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gridsched.errors import InputError, MissingDependency
from gridsched.files.output_files import write_whole
from gridsched.files.scratch import temporary_folder
from gridsched.platform_io.check import Inspection, Route, SimGridHost, SimGridLink
from gridsched.platform_io.xml_edit import current_platform_xml
from gridsched.sim.client import server
from gridsched.sim.library import HOSTS, HOW_TO_INSTALL, PROPERTY_NAMES, is_installed, load_simgrid
from gridsched.sim.request import Outcome
from gridsched.sim.world import first_line, refusals

_LOG_LINE = re.compile(r"\[(?P<category>[\w.]+)/(?P<level>WARNING|ERROR|CRITICAL)\] (?P<text>.*)")
#: Said before SimGrid looks for the way between two hosts: it may abort where there is none.
_LOOKS = "gridsched: looks for way "
#: The link from each host to itself, which SimGrid adds.
_LOOPBACK = "__loopback__"


def inspect_platform(
    path: str | Path, pairs: Sequence[tuple[str, str]] = (), *, timeout_s: float = 120.0
) -> Inspection:
    """Return what SimGrid, with its energy plugin, makes of a platform file.

    Parameters
    ----------
    path : str or Path
        SimGrid XML.
    pairs : sequence of (str, str)
        Hosts whose routes are told.
    timeout_s : float
        After this time [s] the answer is that SimGrid hangs.

    Returns
    -------
    Inspection
        ``skipped`` where SimGrid is not installed; never an exception for a bad file.
    """
    if not is_installed():
        return Inspection("skipped", HOW_TO_INSTALL)
    with temporary_folder() as folder:
        try:
            current = current_platform_xml(path)
        except InputError as error:  # SimGrid would obey what is in it
            return Inspection("refused", f"it is not handed to SimGrid: {error}".rstrip("."))
        given = Path(path).absolute()
        if current is None:
            return _inspected(given, Path(), pairs, timeout_s)
        written = folder / given.name
        write_whole(written, current)
        return _inspected(written, given.parent, pairs, timeout_s)


def _inspected(
    path: Path, folder: Path, pairs: Sequence[tuple[str, str]], timeout_s: float
) -> Inspection:
    """Inspect a file from a folder, in which SimGrid looks for profiles as it does beside it."""
    look = partial(_look, str(path), str(folder), tuple(pairs))
    outcome = server().outcome(look, timeout_s, f"SimGrid on {path.name}")
    looks = re.findall(f"^{_LOOKS}(\\d+)$", outcome.log, re.MULTILINE)
    if outcome.payload is not None or outcome.timed_out or not looks:
        return _interpret(outcome, timeout_s)
    source, target = pairs[int(looks[-1])]
    died = f"it ends where it looks for a way from {source!r} to {target!r}: {_why_it_died(outcome)}"
    before = _inspected(path, folder, pairs[: int(looks[-1])], timeout_s)
    return replace(before, warnings=(*before.warnings, died))


def _interpret(outcome: Outcome, timeout_s: float) -> Inspection:
    if outcome.timed_out:
        return Inspection("refused", f"no answer within {timeout_s:g} s")
    if outcome.payload is None:
        return Inspection("refused", _why_it_died(outcome))
    kind, *rest = pickle.loads(outcome.payload)
    if kind != "result":
        is_missing = rest[0] == MissingDependency.__name__
        return Inspection("skipped" if is_missing else "refused", rest[-1])
    found: Inspection = rest[0]
    warned = [
        m["text"]
        for m in _logged(outcome)
        if m["category"] != "host_energy" and m["level"] == "WARNING"
    ]
    return replace(found, warnings=tuple(dict.fromkeys(warned)))


def _logged(outcome: Outcome) -> list[re.Match[str]]:
    return [match for line in outcome.log.splitlines() if (match := _LOG_LINE.search(line))]


def _why_it_died(outcome: Outcome) -> str:
    fatal = [match["text"] for match in _logged(outcome) if match["level"] != "WARNING"]
    if fatal:
        return first_line(fatal[0])
    last = outcome.log.strip().splitlines()[-1:] or ["without a message"]
    number = outcome.signal
    how = f"killed by {signal.Signals(number).name}" if number else f"exit status {outcome.status}"
    return f"{how}, {last[0]}"


def _look(path: str, folder: str, pairs: Sequence[tuple[str, str]]) -> Inspection:
    """Load the file in this process; SimGrid may abort on the way."""
    simgrid = load_simgrid()
    HOSTS.start()
    engine = simgrid.Engine(["inspection", "--log=xbt_cfg.thresh:warning"])
    os.chdir(folder)
    try:
        engine.load_platform(path)
        engine.netzone_root.seal()
    except refusals(simgrid) as error:
        message = first_line(" ".join(str(error).split()))
        return Inspection("refused", message.replace(f"{path}:", "line "))
    hosts = {
        host.name: SimGridHost(
            host.name, host.core_count,
            tuple(host.pstate_speed(k) for k in range(host.pstate_count)),
            dict(host.get_properties()),
        )
        for host in engine.all_hosts
    }  # fmt: skip
    links = tuple(
        SimGridLink(
            link.name, link.bandwidth, link.latency,
            next((text for text in map(link.get_property, PROPERTY_NAMES) if text), None),
        )
        for link in engine.all_links if link.name != _LOOPBACK
    )  # fmt: skip
    routes = []
    for k, (source, target) in enumerate(pairs):
        if source in hosts and target in hosts:
            sys.stderr.write(f"{_LOOKS}{k}\n")
            sys.stderr.flush()
            routes.append(_route(engine.host_by_name(source), engine.host_by_name(target)))
    return Inspection("loaded", "", tuple(hosts.values()), (), links, tuple(routes))


def _route(source: Any, target: Any) -> Route:
    """Return the way between two hosts of SimGrid; without links where there is none."""
    try:
        links, latency = source.route_to(target)
    except (RuntimeError, ValueError):
        return Route(source.name, target.name, None)
    least = min((link.bandwidth for link in links), default=float("inf"))
    return Route(source.name, target.name, tuple(link.name for link in links), latency, least)
