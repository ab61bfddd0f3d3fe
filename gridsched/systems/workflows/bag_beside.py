"""A bag of tasks and workflows in one run."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.arrays import Integers
from gridsched.errors import InputError
from gridsched.model.dependencies import Dependencies
from gridsched.model.staged_files import StagedFiles
from gridsched.model.tasks import Tasks, make_tasks


def with_bag(workflow: Tasks, bag: Tasks) -> Tasks:
    """Return the tasks of a workflow and those of a bag, in order of submission; of equal times the workflow's first.

    The bag's ids get ``bag`` before them, and so is its workflow called.

    Raises
    ------
    InputError
        If the bag's tasks have deadlines, bytes or files of their own, or ids are not distinct.
    """
    if bag.deadline_s is not None or bag.has_bytes or bag.files is not None:
        raise InputError(
            f"{bag.name}: tasks beside a workflow can have only flops, submission times and dependencies; leave out "
            "deadlines, bytes and files."
        )
    both = workflow, bag
    submit_s = np.concatenate([each.submit_time_s for each in both])
    order = np.argsort(submit_s, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    places = place[: len(workflow)], place[len(workflow) :]
    labels = [*map(str, workflow.labels.tolist()), *(f"bag{label}" for label in bag.labels.tolist())]
    names = workflow.attributes["workflow"].texts if "workflow" in workflow.attributes else [""] * len(workflow)
    names = [*names, *["bag"] * len(bag)]
    return make_tasks(
        np.concatenate([each.flops for each in both])[order],
        submit_s[order],
        labels=[labels[k] for k in order.tolist()],
        demand=None if workflow.are_serial else np.concatenate([each.size for each in both])[order][:, None],
        attributes={"workflow": [names[k] for k in order.tolist()]},
        dependencies=_moved(both, places),
        staged=None if workflow.staged is None else _staged(workflow.staged, places[0]),
        name=f"{workflow.name} and {bag.name}",
    )


def _moved(both: tuple[Tasks, Tasks], places: tuple[Integers, Integers]) -> Dependencies | None:
    """Return the dependencies of both by the new places of their tasks; data keep who shares them."""
    found = [(own, each.dependencies) for own, each in zip(places, both, strict=True) if each.dependencies is not None]
    if not found:
        return None
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(pairs, name) for _, pairs in found])
        for name in ("kind", "delay_s", "size_bytes", "item")
    }
    return Dependencies(
        np.concatenate([own[pairs.task] for own, pairs in found]),
        np.concatenate([own[pairs.on] for own, pairs in found]),
        **columns,
    ).by_task()


def _staged(staged: StagedFiles, place: Integers) -> StagedFiles:
    """Return files by the new places of the tasks that read them, which keep their order."""
    return StagedFiles(staged.host, place[staged.task], staged.file, staged.size_bytes)
