"""Let SimGrid itself load a platform file, in a process of its own that may abort.

``python -P -m gridsched.sim.inspection FILE FOLDER`` prints what SimGrid sees as JSON: hosts and
links in the first line, then a way in each, since SimGrid may abort where there is none.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gridsched
from gridsched.errors import InputError, MissingDependency
from gridsched.files.output_files import write_whole
from gridsched.files.scratch import temporary_folder
from gridsched.platform_io.check import Inspection, Route, SimGridHost, SimGridLink
from gridsched.platform_io.xml_edit import current_platform_xml
from gridsched.sim.energy_plugins import HOSTS, PROPERTY_NAMES
from gridsched.sim.library import HOW_TO_INSTALL, is_installed, load_simgrid
from gridsched.sim.world import first_line, refusals

_LOG_LINE = re.compile(r"\[(?P<category>[\w.]+)/(?P<level>WARNING|ERROR|CRITICAL)\] (?P<text>.*)")
_MISSING = 3
#: How the first line begins where SimGrid has loaded the file.
_LOADED = '{"hosts"'
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
    package = str(Path(gridsched.__file__).parent.parent)
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            # -P: no module of the folder in which somebody's file lies
            [sys.executable, "-P", "-m", "gridsched.sim.inspection", str(path), str(folder)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            input=json.dumps(list(pairs)),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
    except subprocess.TimeoutExpired:
        return Inspection("refused", f"no answer within {timeout_s:g} s")
    return _interpret(done.returncode, done.stdout, done.stderr)


def _interpret(status: int, output: str, errors: str) -> Inspection:
    logged = [match for line in errors.splitlines() if (match := _LOG_LINE.search(line))]
    if status == _MISSING:
        return Inspection("skipped", output.strip())
    if not output.startswith(_LOADED):
        why = json.loads(output)["refused"] if status == 0 else _why_it_died(status, logged, errors)
        return Inspection("refused", why)
    answer, *found = map(json.loads, output[: output.rindex("\n")].splitlines())
    hosts = tuple(
        SimGridHost(host["name"], host["cores"], tuple(host["speeds"]), host["properties"])
        for host in answer["hosts"]
    )
    warned = [m["text"] for m in logged if m["category"] != "host_energy" and _is_warning(m)]
    links = tuple(SimGridLink(**link) for link in answer["links"])
    routes = tuple(
        Route(**{**route, "links": route["links"] and tuple(route["links"])}) for route in found
    )
    if status != 0:
        source, target = answer["pairs"][len(routes)]
        why = _why_it_died(status, logged, errors)
        warned.append(f"it ends where it looks for a way from {source!r} to {target!r}: {why}")
    return Inspection("loaded", "", hosts, tuple(dict.fromkeys(warned)), links, routes)


def _is_warning(logged: re.Match[str]) -> bool:
    return logged["level"] == "WARNING"


def _why_it_died(status: int, logged: Sequence[re.Match[str]], errors: str) -> str:
    fatal = [match["text"] for match in logged if not _is_warning(match)]
    if fatal:
        return first_line(fatal[0])
    last = errors.strip().splitlines()[-1:] or ["without a message"]
    how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return f"{how}, {last[0]}"


def _main(path: str, folder: str, pairs: Sequence[tuple[str, str]]) -> int:
    """Load the file in this process and print the answer; SimGrid may abort on the way."""
    try:
        simgrid = load_simgrid()
        HOSTS.start()
    except MissingDependency as error:
        sys.stdout.write(str(error))
        return _MISSING
    engine = simgrid.Engine(["inspection", "--log=xbt_cfg.thresh:warning"])
    os.chdir(folder)
    try:
        engine.load_platform(path)
        engine.netzone_root.seal()
    except refusals(simgrid) as error:
        message = first_line(" ".join(str(error).split()))
        sys.stdout.write(json.dumps({"refused": message.replace(f"{path}:", "line ")}))
        return 0
    hosts = [
        {
            "name": host.name,
            "cores": host.core_count,
            "speeds": [host.pstate_speed(k) for k in range(host.pstate_count)],
            "properties": dict(host.get_properties()),
        }
        for host in engine.all_hosts
    ]
    links = [
        {
            "name": link.name,
            "bandwidth": link.bandwidth,
            "latency_s": link.latency,
            "wattage_range": next(
                (t for t in map(link.get_property, PROPERTY_NAMES) if t), None
            ),
        }
        for link in engine.all_links
        if link.name != _LOOPBACK
    ]
    named = {host.name: host for host in engine.all_hosts}
    known = [(a, b) for a, b in pairs if a in named and b in named]
    _write_line({"hosts": hosts, "links": links, "pairs": known})
    for source, target in known:
        _write_line(_route(named[source], named[target]))
    return 0


def _write_line(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()  # SimGrid may abort next


def _route(source: Any, target: Any) -> dict[str, Any]:
    """Return the way between two hosts of SimGrid; without links where there is none."""
    ends = {"source": source.name, "target": target.name}
    try:
        links, latency = source.route_to(target)
    except (RuntimeError, ValueError):
        return {**ends, "links": None}
    return {
        **ends,
        "links": [link.name for link in links],
        "latency_s": latency,
        "bandwidth": min((link.bandwidth for link in links), default=float("inf")),
    }


if __name__ == "__main__":
    code = _main(sys.argv[1], sys.argv[2], json.loads(sys.stdin.read() or "[]"))
    sys.stdout.flush()
    # SimGrid prints the energy of every host when the interpreter ends; there is nothing to clean.
    os._exit(code)
