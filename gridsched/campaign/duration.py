"""How long a study will take, by a few of its runs that are timed."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from itertools import islice
from typing import Any

from gridsched.campaign.kept_studies import check_programs
from gridsched.campaign.local_pool import JobExecutor
from gridsched.campaign.messages import Job, WorkerConfig
from gridsched.files.output_files import temporary_folder
from gridsched.runs.study import Study, StudyRun

#: No further run is timed after so much wall time [s].
_ENOUGH_S = 20.0


@dataclass(frozen=True)
class Estimate:
    """What a few timed runs say of all.

    Attributes
    ----------
    timed_s : list of float
        Wall time of each timed run [s].
    failures : list of (StudyRun, str)
        Timed runs that failed, with their errors.
    """

    timed_s: list[float]
    failures: list[tuple[StudyRun, str]]

    @property
    def mean_s(self) -> float:
        """Mean wall time of a run [s]."""
        return statistics.fmean(self.timed_s)

    @property
    def uncertainty_s(self) -> float:
        """Standard error of the mean [s]; 0 for a single run."""
        n = len(self.timed_s)
        return statistics.stdev(self.timed_s) / math.sqrt(n) if n > 1 else 0.0


def sample(study: Study, number: int) -> list[StudyRun]:
    """Return runs, of the first replicate where it has them, that spread over all axes.

    Their positions step by the golden ratio, so that neither schedulers nor other axes are met in
    a rhythm. A combination that few replicates run is met as seldom as in the study.
    """
    is_partial = study.document.content.only is not None
    first = study.n_runs if is_partial else study.n_runs // study.replicates
    golden = (math.sqrt(5) - 1) / 2
    places = (int(first * math.fmod(k * golden, 1.0)) for k in range(4 * number))
    wanted = set(islice(dict.fromkeys(places), number))
    seen: dict[tuple[Any, ...], StudyRun] = {}
    runs: dict[str, StudyRun] = {}
    for k, run in enumerate(islice(study.scenarios(), first)):
        combination = tuple(run.axes[axis.name] for axis in study.axes)
        earliest = seen.setdefault(combination, run) if is_partial else run
        if k in wanted:
            runs[earliest.run_id] = earliest
    return list(runs.values())


def estimate(study: Study, number: int, timeout_s: float | None = None, *, trust: bool = False) -> Estimate:
    """Time a few runs of a study; nothing is stored.

    Parameters
    ----------
    study : Study
    number : int
        How many, at least 1.
    timeout_s : float, optional
        Wall time after which each is ended [s].
    trust : bool
        Whether schedulers that are other programs may be started.

    Raises
    ------
    NotTrusted
        If the study has such schedulers, and is not trusted.
    """
    check_programs(f"Study {study.name!r}", study.programs(), trust=trust)
    inputs = {file.sha256: file.path.resolve() for file in study.inputs.values()}
    timed: list[float] = []
    failures: list[tuple[StudyRun, str]] = []
    with temporary_folder() as folder:
        executor = JobExecutor(WorkerConfig(None, inputs, folder, timeout_s))
        runs = sample(study, number)
        executor.row(Job(runs[0].run_id, runs[0].scenario, study.policies))  # starts all that is needed once
        began = time.perf_counter()
        for run in runs:
            row = executor.row(Job(run.run_id, run.scenario, study.policies))
            timed.append(float(row["timing"]["total_s"]))
            if row["error"] is not None:
                failures.append((run, row["error"]))
            if time.perf_counter() - began > _ENOUGH_S:
                break
        executor.end()
    return Estimate(timed, failures)
