"""Loops of queues are called with arrays that lie in one way: for each other way numba would compile them again."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched.compiled import Kernel
from gridsched.loop_library import has_library, library
from gridsched.policy.registry import make_scheduler
from gridsched.schedulers.parallel import machines, slurm
from gridsched.testing.cases import cases_for
from gridsched.testing.playing import play

POLICIES = [
    ("fcfs", {}),
    ("easy_backfilling", {"order": "f3"}),
    ("easy_backfilling", {"backfill_order": "shortest", "estimate": "last_two_of_user"}),
    ("conservative_backfilling", {"estimate": "last_two_of_user"}),
    ("slurm", {}),
]


def layout(argument: object) -> object:
    """Return what numba knows of an argument."""
    if isinstance(argument, tuple):
        return type(argument).__name__, tuple(layout(each) for each in argument)
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        return str(argument.dtype), argument.ndim, flags.c_contiguous, flags.writeable
    return type(argument).__name__


@pytest.mark.parametrize(
    ("module", "name", "expected"), [(machines, "starts_now", 2), (slurm, "main_pass", 1), (slurm, "backfill_pass", 1)]
)
def test_each_loop_is_compiled_for_few_layouts(monkeypatch, module, name, expected):
    """Counted nodes and nodes one by one are two; an order, an estimate or equal widths make no more."""
    default, layouts = getattr(module, name), set()

    def noted(*arguments):
        layouts.add(layout(arguments))
        return default(*arguments)

    monkeypatch.setattr(module, name, noted)
    for id, parameters in POLICIES:
        scheduler = make_scheduler(id, parameters)
        for case in cases_for(scheduler):
            play(case, scheduler.clone())
    assert len(layouts) == expected, "\n".join(map(str, layouts))


@pytest.mark.skipif(not has_library(), reason="no library of loops")
def test_the_library_holds_each_loop_that_is_called(monkeypatch):
    """Else numba is loaded for it, or it is interpreted."""
    default, called = Kernel.__call__, set()

    def noted(kernel, *arguments):
        called.add(kernel.id)
        return default(kernel, *arguments)

    monkeypatch.setattr(Kernel, "__call__", noted)
    for id, parameters in POLICIES:
        scheduler = make_scheduler(id, parameters)
        for case in cases_for(scheduler):
            play(case, scheduler.clone())
    assert called
    assert called <= set(library())
