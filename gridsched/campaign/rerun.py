"""A stored run done again, and what differs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsched.campaign.kept_studies import check_programs, not_trusted
from gridsched.campaign.local_pool import JobExecutor
from gridsched.campaign.messages import Job, WorkerConfig
from gridsched.campaign.row_table import GROUP
from gridsched.campaign.segments import RunRow, encoded, with_infinities
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.errors import InputError
from gridsched.files.output_files import temporary_folder
from gridsched.metrics import METRICS
from gridsched.policy.registry import make_scheduler
from gridsched.runs.run import RunResult
from gridsched.runs.run_spec import RunSpec, path_of_file
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study_inputs import InputFile, checked_file


@dataclass(frozen=True)
class Repetition:
    """A stored run beside its repetition.

    Attributes
    ----------
    stored, repeated : dict
        The rows.
    differences : list of tuple
        (what, stored value, repeated value) of all that is stored and not identical bit by bit;
        timing does not count.
    other_versions : list of tuple
        (what, version then, version now) where they differ.
    """

    stored: RunRow
    repeated: RunRow
    differences: list[tuple[str, Any, Any]]
    other_versions: list[tuple[str, Any, Any]]

    @property
    def not_stored(self) -> list[str]:
        """Metrics, also of groups, and series that the version which stored the row did not have."""
        return [name for name in _results(self.repeated) if name not in _results(self.stored)]

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
        If Python files of the store, or another program that it names, would have to be run.
    InputError
        If the run is not stored or describes none, or a file that it reads is damaged.
    """
    stored, job, inputs = _admitted(store, run_id)
    with temporary_folder() as folder:
        executor = JobExecutor(WorkerConfig(None, inputs, folder, timeout_s))
        row = executor.row(job)
        executor.end()
    repeated = json.loads(encoded(row))["row"]  # as a stored row has been written and read
    then, now = stored["provenance"], repeated["provenance"]
    versions = [
        (name, then.get(name), now.get(name))
        for name in sorted({*then, *now})
        if name not in ("warnings", "follows_from") and then.get(name) != now.get(name)
    ]
    return Repetition(stored, repeated, _differences(stored, repeated), versions)


def result_again(store: Store, run_id: str, timeout_s: float | None = None) -> RunResult:
    """Do a stored run again and return all that it gives.

    Parameters
    ----------
    store, run_id, timeout_s
        As for `rerun`.

    Raises
    ------
    InputError
        As `rerun` does, or if the run fails or executes nothing.
    """
    stored, job, inputs = _admitted(store, run_id)
    with temporary_folder() as folder:
        row, result = perform(ScenarioMaker(inputs, folder), job, timeout_s)
    if result is None:
        what = row["error"] or "it executes nothing"
        raise InputError(f"{store.root}: run {stored['run_id']} has no records: {what}")
    return result


def _admitted(store: Store, run_id: str) -> tuple[RunRow, Job, dict[str, Path]]:
    """Return a stored run, what is to be done to repeat it, and the store's files by SHA-256."""
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
    programs = []
    with contextlib.suppress(InputError):  # the repetition reports what is wrong with it
        programs = [make_scheduler(spec.scheduler.id, spec.scheduler.parameters)]
    check_programs(f"Run {stored['run_id'][:8]}", programs, trust=store.trust)
    text = json.dumps(stored["scenario"])
    for digest, path in inputs.items():
        if digest in policies or digest in text:
            checked_file(path, digest)
    return stored, Job(stored["run_id"], described, tuple(policies)), inputs


def _differences(stored: RunRow, repeated: RunRow) -> list[tuple[str, Any, Any]]:
    then, now = _results(stored), _results(repeated)
    return [(name, value, now.get(name)) for name, value in then.items() if _exact(name, then) != _exact(name, now)]


def _results(row: RunRow) -> dict[str, Any]:
    series = {f"series.{name}": values for name, values in row.get("series", {}).items()}
    groups = {
        f"groups.{group['group_by']}.{group['group']}.{name}": value
        for group in row.get("groups", ())
        for name, value in group.items()
        if name not in GROUP
    }
    return {"status": row["status"], "error": row["error"], **row["metrics"], **series, **groups}


def _exact(name: str, results: Mapping[str, Any]) -> list[Any]:
    """Return every bit of numbers as text: 0.0 and -0.0 differ, whole numbers may be floats."""
    value = results.get(name)
    values = value if isinstance(value, list) else [value]
    if name in ("status", "error") or (name in METRICS and not METRICS[name].is_number):
        return values
    return [None if each is None or each != each else float(each).hex() for each in values]
