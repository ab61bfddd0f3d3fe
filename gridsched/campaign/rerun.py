"""Repeat a stored run from its provenance alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsched.campaign.local_pool import Performer
from gridsched.campaign.messages import Job, Orders
from gridsched.campaign.segments import encoded, with_infinities
from gridsched.campaign.store import Store
from gridsched.errors import InputError
from gridsched.files.scratch import temporary_folder
from gridsched.metrics import METRICS
from gridsched.spec.canonical import file_digest


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
        Nothing is written to it.
    run_id : str
        Or its beginning.
    timeout_s : float, optional
        Wall time after which the run is ended [s].

    Raises
    ------
    InputError
        If the run is not stored, or a file that it reads is damaged.
    """
    stored = store.row(run_id)
    inputs = {digest: path.resolve() for digest, path in store.inputs().items()}
    _check_inputs(stored, inputs)
    policies = {digest for study in store.studies() for digest in study.policies}
    job = Job(
        stored["run_id"], with_infinities(stored["scenario"]), tuple(sorted(policies))
    )  # fmt: skip
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


def _check_inputs(stored: dict[str, Any], inputs: dict[str, Path]) -> None:
    """Raise `InputError` where a file that a run reads is not what it was."""
    text = json.dumps(stored["scenario"])
    for digest, path in inputs.items():
        if digest in text and file_digest(path) != digest:
            raise InputError(
                f"{path}: is damaged: its content is not that which run {stored['run_id'][:12]} "
                "read. Put the right file there, or run the study again."
            )


def _differences(stored: dict[str, Any], repeated: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    found = [
        (name, stored[name], repeated[name])
        for name in ("status", "error")
        if stored[name] != repeated[name]
    ]
    then, now = stored["metrics"], repeated["metrics"]
    for name in dict.fromkeys((*then, *now)):
        is_word = name in METRICS and not METRICS[name].is_number
        left, right = (
            each.get(name) if is_word else _exact(each.get(name)) for each in (then, now)
        )
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
