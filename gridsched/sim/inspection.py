"""Let SimGrid itself load a platform file, in a process of its own that may abort.

``python -m gridsched.sim.inspection FILE`` prints what SimGrid sees as JSON.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import gridsched
from gridsched.errors import MissingDependency
from gridsched.platform_io.check import Inspection, SimGridHost
from gridsched.sim.library import HOW_TO_INSTALL, is_installed, load_simgrid

_LOG_LINE = re.compile(r"\[(?P<category>[\w.]+)/(?P<level>WARNING|ERROR|CRITICAL)\] (?P<text>.*)")
_MISSING = 3


def inspect_platform(path: str | Path, *, timeout_s: float = 120.0) -> Inspection:
    """Return what SimGrid, with its energy plugin, makes of a platform file.

    Parameters
    ----------
    path : str or Path
        SimGrid XML.
    timeout_s : float
        After this time [s] the answer is that SimGrid hangs.

    Returns
    -------
    Inspection
        ``skipped`` where SimGrid is not installed; never an exception for a bad file.
    """
    if not is_installed():
        return Inspection("skipped", HOW_TO_INSTALL)
    package = str(Path(gridsched.__file__).parent.parent)
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gridsched.sim.inspection", str(Path(path).absolute())],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
    except subprocess.TimeoutExpired:
        return Inspection("refused", f"no answer within {timeout_s:g} s")
    return _interpret(done.returncode, done.stdout, done.stderr)


def _interpret(status: int, output: str, errors: str) -> Inspection:
    logged = [match for line in errors.splitlines() if (match := _LOG_LINE.search(line))]
    if status == _MISSING:
        return Inspection("skipped", output.strip())
    if status == 0:
        answer = json.loads(output)
        if "refused" in answer:
            return Inspection("refused", answer["refused"])
        hosts = tuple(
            SimGridHost(host["name"], host["cores"], tuple(host["speeds"]), host["properties"])
            for host in answer["hosts"]
        )
        warned = dict.fromkeys(m["text"] for m in logged if m["category"] != "host_energy")
        return Inspection("loaded", hosts=hosts, warnings=tuple(warned))
    fatal = [match["text"] for match in logged if match["level"] != "WARNING"]
    if fatal:
        return Inspection("refused", fatal[0])
    last = errors.strip().splitlines()[-1:] or ["without a message"]
    how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return Inspection("refused", f"{how}, {last[0]}")


def _main(path: str) -> int:
    """Load the file in this process and print the answer; SimGrid may abort on the way."""
    try:
        simgrid = load_simgrid()
        from gridsched.sim import host_energy

        host_energy.start_plugin()
    except MissingDependency as error:
        sys.stdout.write(str(error))
        return _MISSING
    engine = simgrid.Engine(["inspection", "--log=xbt_cfg.thresh:warning"])
    try:
        engine.load_platform(path)
        engine.netzone_root.seal()
    except (RuntimeError, ValueError, IndexError) as error:
        message = " ".join(str(error).split())
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
    sys.stdout.write(json.dumps({"hosts": hosts}))
    return 0


if __name__ == "__main__":
    code = _main(sys.argv[1])
    sys.stdout.flush()
    # SimGrid prints the energy of every host when the interpreter ends; there is nothing to clean.
    os._exit(code)
