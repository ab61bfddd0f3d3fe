"""Task and host records of one run as one Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gridsched.campaign import row_table
from gridsched.campaign.segments import cannot_write
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.files.output_files import write_whole
from gridsched.model.trace import ExecutionEnd, Trace
from gridsched.runs.run import RunResult

if TYPE_CHECKING:
    from collections.abc import Mapping


def records_file(store: Path, run_id: str) -> Path:
    """Return where the records of a run are kept."""
    return store / "records" / f"{run_id}.parquet"


def records_of(result: RunResult) -> pd.DataFrame:
    """Return the records of a run in one table.

    Returns
    -------
    pandas.DataFrame
        ``record`` is ``execution`` (``task_id, host_id, pstate, start_s, end_s, outcome``, of
        parallel tasks also ``width``; the host is then the first one) or
        ``host`` (``host_id, host, role, model_j, plugin_j``); the other columns are empty.
    """
    executions, hosts = _executions(result.trace), _hosts(result.trace, result.plugin_j)
    return pd.concat([executions, hosts], ignore_index=True)


def _executions(trace: Trace) -> pd.DataFrame:
    runs = trace.executions
    names = np.array([ExecutionEnd(k).name.lower() for k in range(len(ExecutionEnd))])
    table = pd.DataFrame(
        {
            "record": "execution",
            "task_id": np.asarray(trace.tasks.labels)[runs["task"]],
            "host_id": runs["host"].astype(np.int64),
            "pstate": runs["pstate"].astype(np.int64),
            "start_s": runs["start"],
            "end_s": runs["end"],
            "outcome": names[runs["outcome"]],
        }
    )
    if trace.is_parallel:
        table["width"] = trace.width
    return table


def _hosts(trace: Trace, plugin_j: Mapping[str, float] | None) -> pd.DataFrame:
    energy = trace_energy(trace)
    ids = {host.name: h for h, host in enumerate(trace.platform.hosts)}
    return pd.DataFrame(
        {
            "record": "host",
            "host": list(energy.names),
            "host_id": pd.array([ids.get(name) for name in energy.names], dtype="Int64"),
            "role": list(energy.roles),
            "model_j": energy.total_j,
            "plugin_j": [np.nan if plugin_j is None else plugin_j.get(name, np.nan) for name in energy.names],
        }
    )


def write_records(result: RunResult, store: Path, run_id: str) -> None:
    """Write the records of a run whole, before its row.

    Raises
    ------
    InputError
        If they cannot be written.
    """
    path = records_file(store, run_id)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None
    write_whole(path, records_of(result).to_parquet(engine="pyarrow", compression="zstd"), force=True)


def read_records(store: Path, run_id: str) -> pd.DataFrame:
    """Return the records of a run.

    Parameters
    ----------
    store : Path
        Its folder.
    run_id : str
        The whole id.

    Raises
    ------
    InputError
        If they were not kept (``--records``), or are damaged.
    """
    path = records_file(store, run_id)
    try:
        return row_table.read_parquet(path).to_pandas(use_threads=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no records of this run; 'gridsched study run --records' keeps them.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: damaged: {error}.") from None
