"""Runs of their own: a few that tell how long a study will take, and a stored one repeated."""

from __future__ import annotations

import json
import math
import statistics
import time
from dataclasses import dataclass
from itertools import islice
from typing import Any

from gridsched.campaign.kept_studies import not_trusted
from gridsched.campaign.local_pool import Performer
from gridsched.campaign.messages import Job, Orders
from gridsched.campaign.segments import encoded, with_infinities
from gridsched.campaign.store import Store
from gridsched.errors import InputError
from gridsched.files.output_files import temporary_folder
from gridsched.metrics import METRICS
from gridsched.runs.canonical import checked_file
from gridsched.runs.run_spec import RunSpec, path_of_file
from gridsched.runs.section_texts import InputFile
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
    found: dict[str, StudyRun] = {}
    for k, run in enumerate(islice(study.scenarios(), first)):
        combination = tuple(run.axes[axis.name] for axis in study.axes)
        earliest = seen.setdefault(combination, run) if is_partial else run
        if k in wanted:
            found[earliest.run_id] = earliest
    return list(found.values())


def estimate(study: Study, number: int, timeout_s: float | None = None) -> Estimate:
    """Time a few runs of a study; nothing is stored.

    Parameters
    ----------
    study : Study
    number : int
        How many, at least 1.
    timeout_s : float, optional
        Wall time after which each is ended [s].
    """
    inputs = {file.sha256: file.path.resolve() for file in study.inputs.values()}
    timed: list[float] = []
    failures: list[tuple[StudyRun, str]] = []
    with temporary_folder() as folder:
        performer = Performer(Orders(None, inputs, folder, timeout_s))
        runs = sample(study, number)
        performer.row(Job(runs[0].run_id, runs[0].scenario, study.policies))  # starts all that is needed once
        began = time.perf_counter()
        for run in runs:
            row = performer.row(Job(run.run_id, run.scenario, study.policies))
            timed.append(row["timing"]["total_s"])
            if row["error"] is not None:
                failures.append((run, row["error"]))
            if time.perf_counter() - began > _ENOUGH_S:
                break
        performer.end()
    return Estimate(timed, failures)


@dataclass(frozen=True)
class Repetition:
    """A stored run beside its repetition.

    Attributes
    ----------
    stored, repeated : dict
        The rows.
    differences : list of tuple
        (what, stored value, repeated value) of all that is not identical bit by bit; timing does
        not count.
    other_versions : list of tuple
        (what, version then, version now) where they differ.
    """

    stored: dict[str, Any]
    repeated: dict[str, Any]
    differences: list[tuple[str, Any, Any]]
    other_versions: list[tuple[str, Any, Any]]

    @property
    def is_identical(self) -> bool:
        """Whether the metrics are identical bit by bit."""
        return not self.differences


def rerun(store: Store, run_id: str, timeout_s: float | None = None) -> Repetition:
    """Do a stored run again.

    Parameters
    ----------
    store : Store
        Nothing is written to it. Where the run or its studies have policies, it must be trusted.
    run_id : str
        Or its beginning.
    timeout_s : float, optional
        Wall time after which the run is ended [s].

    Raises
    ------
    NotTrusted
        If Python files of the store would have to be run.
    InputError
        If the run is not stored or describes none, or a file that it reads is damaged.
    """
    stored = store.row(run_id)
    inputs = {digest: path.resolve() for digest, path in store.inputs().items()}
    policies = {each.sha256: each for study in store.kept_studies() for each in study.policies}
    described = with_infinities(stored["scenario"])
    try:
        spec = RunSpec.read(described)
        for _, file in spec.files():
            path_of_file(file, inputs)
    except InputError as error:
        raise InputError(f"{store.root}: run {stored['run_id']}: {error}") from None
    if (own := spec.scheduler.policy) is not None:
        policies.setdefault(own.sha256, InputFile(own.name, inputs[own.sha256], own.sha256))
    if policies and not store.trust:
        raise not_trusted("To repeat a run", policies.values())
    text = json.dumps(stored["scenario"])
    for digest, path in inputs.items():
        if digest in policies or digest in text:
            checked_file(path, digest)
    job = Job(stored["run_id"], described, tuple(policies))
    with temporary_folder() as folder:
        performer = Performer(Orders(None, inputs, folder, timeout_s))
        row = performer.row(job)
        performer.end()
    repeated = json.loads(encoded(row))["row"]  # as a stored row has been written and read
    then, now = stored["provenance"], repeated["provenance"]
    versions = [
        (name, then.get(name), now.get(name))
        for name in sorted({*then, *now})
        if name != "warnings" and then.get(name) != now.get(name)
    ]
    return Repetition(stored, repeated, _differences(stored, repeated), versions)


def _differences(stored: dict[str, Any], repeated: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    found = [(name, stored[name], repeated[name]) for name in ("status", "error") if stored[name] != repeated[name]]
    then, now = stored["metrics"], repeated["metrics"]
    for name in dict.fromkeys((*then, *now)):
        is_word = name in METRICS and not METRICS[name].is_number
        left, right = (each.get(name) if is_word else _exact(each.get(name)) for each in (then, now))
        if left != right:
            found.append((name, then.get(name), now.get(name)))
    then, now = stored.get("series", {}), repeated.get("series", {})
    for name in dict.fromkeys((*then, *now)):
        left, right = (list(map(_exact, each.get(name, []))) for each in (then, now))
        if left != right:
            found.append((f"series.{name}", then.get(name), now.get(name)))
    return found


def _exact(value: Any) -> str | None:
    """Return every bit of a number as text: 0.0 and -0.0 differ, whole numbers may be floats."""
    return None if value is None or value != value else float(value).hex()
