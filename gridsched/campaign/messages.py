"""What the leading process of a campaign and its workers say to each other, here or on a cluster.

A worker gets `WorkerConfig` once and then one `Job` after the other, and gives an `Answer` to each.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from functools import cache
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np

from gridsched.campaign.row_table import FAILED, FINISHED
from gridsched.campaign.segments import RunRow
from gridsched.errors import shorten
from gridsched.metrics.table import MetricValue
from gridsched.runs.run_spec import RESULTS_VERSION
from gridsched.version import __version__

#: A run whose process is killed from outside is begun so often in all.
ATTEMPTS = 3


@dataclass(frozen=True)
class WorkerConfig:
    """The settings that a worker receives at its start.

    Attributes
    ----------
    store : Path or None
        Where it keeps rows; None: they are sent back.
    inputs : dict
        SHA-256 -> file.
    folder : Path
        For temporary files.
    timeout_s : float or None
        Wall time after which a run is ended [s].
    records : bool
        Whether task and host records are kept as well.
    """

    store: Path | None
    inputs: dict[str, Path]
    folder: Path
    timeout_s: float | None = None
    records: bool = False


@dataclass(frozen=True)
class Job:
    """The description of a run that a worker receives.

    Attributes
    ----------
    run_id : str
    scenario : mapping
    policies : tuple of str
        SHA-256 of the files that it imports before: they may register metrics.
    """

    run_id: str
    scenario: Mapping[str, Any]
    policies: tuple[str, ...] = ()


class AnswerKind(Enum):
    """What an answer is about."""

    ENDED = auto()
    #: Files of the worker's own have gone, and the run has failed: another worker is to do it.
    SPOILT = auto()
    #: The machine is at fault, not the run, which is not done.
    FAULT = auto()
    #: No run can be done or kept: the campaign ends.
    FATAL = auto()


@dataclass(frozen=True)
class Answer:
    """The answer of a worker.

    Attributes
    ----------
    kind : AnswerKind
    status : str
        Of the run's row.
    error : str or None
        Of the run's row, or what is at fault.
    row : dict or None
        None where the worker has stored it itself.
    is_last : bool
        Whether the worker is to be replaced now.
    follows : bool
        Whether the row follows from that of another run (`gridsched.campaign.greater_budgets`).
    """

    kind: AnswerKind
    status: str = ""
    error: str | None = None
    row: RunRow | None = None
    is_last: bool = False
    follows: bool = False

    @classmethod
    def of(cls, row: RunRow, *, with_row: bool = True, is_last: bool = False) -> Answer:
        """Return the answer for a run that has ended with a row."""
        kept, follows = row if with_row else None, "follows_from" in row["provenance"]
        return cls(AnswerKind.ENDED, row["status"], row["error"], kept, is_last=is_last, follows=follows)


@cache
def versions() -> dict[str, Any]:
    """Return the versions of all that takes part in a run."""
    simgrid = None
    with contextlib.suppress(metadata.PackageNotFoundError):
        simgrid = metadata.version("simgrid")
    return {
        "results_version": RESULTS_VERSION,
        "gridsched": __version__,
        "simgrid": simgrid,
        "numpy": np.__version__,
        "python": python_version(),
    }


def ended_row(
    job: Job,
    total_s: float = 0.0,
    error: str | None = None,
    *,
    metrics: Mapping[str, MetricValue] | None = None,
    timing: Mapping[str, float] | None = None,
    further: Mapping[str, Any] | None = None,
) -> RunRow:
    """Return the row of a run that has ended.

    Parameters
    ----------
    job : Job
    total_s : float
        Wall time of all of it [s].
    error : str or None
        Why it failed; None if it came to its end.
    metrics : mapping, optional
        What repeats exactly.
    timing : mapping, optional
        Wall times [s].
    further : mapping, optional
        What goes into the provenance beside versions: warnings, say.
    """
    return {
        "run_id": job.run_id,
        "status": FINISHED if error is None else FAILED,
        "error": None if error is None else shorten(" ".join(error.split())),
        "metrics": dict(metrics or {}),
        "scenario": job.scenario,
        "provenance": {**versions(), "warnings": [], **(further or {})},
        "timing": {
            **(timing or {}),
            "total_s": total_s,
            "host": socket.gethostname(),
            "ended_at": datetime.now(UTC).isoformat(),
        },
    }
