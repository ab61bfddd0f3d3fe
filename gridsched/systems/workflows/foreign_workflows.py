"""Workflows of others as tables of our own, by their endings: WfFormat, Pegasus DAX, DOT.

Work is run time times the speed of the machine on which it was measured, or as described. Data are files:
what one task makes and another reads goes along an edge.
"""

from __future__ import annotations

from pathlib import Path

from gridsched.errors import InputError
from gridsched.model.limits import LARGEST
from gridsched.systems.workflows.dot_graphs import read_dot
from gridsched.systems.workflows.pegasus_dax import read_dax
from gridsched.systems.workflows.recorded_tasks import SeveralCores, joined
from gridsched.systems.workflows.wf_format import read_wf_format
from gridsched.systems.workflows.workflow_csv import Workflow

#: Larger files are refused [byte].
_MOST = 256 * 2**20


def read_foreign(
    path: Path,
    reference_speed: float | None = None,
    inputs_from: str | None = None,
    several_cores: SeveralCores = "work",
) -> Workflow:
    """Read a workflow by its ending: ``.json`` (WfFormat), ``.dax`` or ``.xml`` (DAX), ``.dot`` or ``.gv``.

    Parameters
    ----------
    path : Path
    reference_speed : float, optional
        Of a core of the machines on which run times were measured [flop/s]; default the clock rate of each
        task's machine, one flop a cycle.
    inputs_from : str, optional
        Host from which files are sent that no task makes; default they are not.
    several_cores : {"work", "time", "parallel", "refuse"}
        What becomes of a task that ran on several cores: one core does the work of all, or takes the run time, or it
        has as many cores, or the file is refused.

    Raises
    ------
    InputError
        Naming the file, the line and the task.
    """
    if reference_speed is not None and not 0 < reference_speed <= LARGEST:
        raise InputError(f"--reference-speed is {reference_speed:g}; it must be a speed > 0 in flop/s.")
    ending = path.suffix.lower()
    if ending in (".dot", ".gv"):
        tasks, notes = read_dot(path, _MOST)
        return joined(tasks, reference_speed, inputs_from, notes)
    if ending in (".xml", ".dax"):
        tasks, notes = read_dax(path, _MOST)
        return joined(tasks, reference_speed, inputs_from, notes, several_cores)
    if ending != ".json":
        raise InputError(
            f"{path}: the name of a workflow must end in .json (WfFormat), .dax or .xml (DAX), .dot or .gv (DOT)."
        )
    return joined(read_wf_format(path, _MOST), reference_speed, inputs_from, several_cores=several_cores)
