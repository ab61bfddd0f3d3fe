"""Let SimGrid itself load a platform file, in a process of its own that may abort."""

from __future__ import annotations

import pickle
import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, first_line, is_installed
from gridsched.errors import InputError, MissingDependency
from gridsched.files.output_files import temporary_folder, write_whole
from gridsched.platform_io.simgrid_view import Inspection
from gridsched.platform_io.xml_edit import current_platform_xml
from gridsched.sim.client import server
from gridsched.sim.platform_look import LOOKUP, look_at
from gridsched.sim.processes import Outcome

_LOG_LINE = re.compile(r"\[(?P<category>[\w.]+)/(?P<level>WARNING|ERROR|CRITICAL)\] (?P<text>.*)")


def inspect_platform(
    path: str | Path, pairs: Sequence[tuple[str, str]] = (), *, timeout_s: float = 120.0
) -> Inspection:
    """Return what SimGrid, with its energy plugin, makes of a platform file.

    Parameters
    ----------
    path : str or Path
        SimGrid XML.
    pairs : sequence of (str, str)
        Hosts whose routes are shown.
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
        source = Path(path).absolute()
        if current is None:
            return _inspected(source, Path(), pairs, timeout_s)
        written = folder / source.name
        write_whole(written, current)
        return _inspected(written, source.parent, pairs, timeout_s)


def _inspected(path: Path, folder: Path, pairs: Sequence[tuple[str, str]], timeout_s: float) -> Inspection:
    """Inspect a file from a folder, in which SimGrid looks for profiles as it does beside it."""
    look = partial(look_at, str(path), str(folder), tuple(pairs))
    outcome = server().outcome(look, timeout_s, f"SimGrid on {path.name}")
    lookups = re.findall(f"^{LOOKUP}(\\d+)$", outcome.log, re.MULTILINE)
    if outcome.payload is not None or outcome.timed_out or not lookups:
        return _interpret(outcome, timeout_s)
    source, target = pairs[int(lookups[-1])]
    died = f"it ends where it looks for a route from {source!r} to {target!r}: {_why_it_died(outcome)}"
    before = _inspected(path, folder, pairs[: int(lookups[-1])], timeout_s)
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
    inspection: Inspection = rest[0]
    warned = [m["text"] for m in _logged(outcome) if m["category"] != "host_energy" and m["level"] == "WARNING"]
    return replace(inspection, warnings=tuple(dict.fromkeys(warned)))


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
