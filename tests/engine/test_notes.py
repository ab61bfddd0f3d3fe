"""What a policy notes beside tasks goes into the trace, and changes nothing in the run."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import hosts, play

from gridsched.errors import InputError
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Assign, Note
from gridsched.policy.registry import make_scheduler
from gridsched.testing.cases import STOCHASTIC_CASES
from gridsched.testing.playing import play as play_case


def test_the_last_note_counts():
    """Task 0 is noted twice, task 1 never, task 2 by a numpy number; a column may stay empty."""

    def answer(state):
        yield from (Assign(task, 0) for task in state.waiting())
        if state.now == 0.0:
            yield from (Note(0, "guess", 1), Note(0, "guess", 2.5), Note(2, "guess", np.float32(3)))

    traits = Traits(asked="event", notes=("guess", "other"))
    noted = play(hosts(1.0), [2.0, 2.0, 2.0], answer, traits)[0]
    assert noted.notes["guess"] == pytest.approx([2.5, np.nan, 3.0], nan_ok=True)
    assert np.isnan(noted.notes["other"]).all()
    plain = play(hosts(1.0), [2.0] * 3, lambda state: [Assign(t, 0) for t in state.waiting()])[0]
    assert plain.notes == {}
    assert plain.executions.tolist() == noted.executions.tolist()


@pytest.mark.parametrize("name", ["", "A", "2nd", "with space", "a-b"])
def test_names_of_columns(name):
    """A column's name is one that a header can have."""
    with pytest.raises(InputError, match="lower-case"):
        Traits(asked="event", notes=(name,))


def test_who_delegates_names_the_columns_of_its_successor():
    """Columns are declared before the run, those of a successor too."""
    lead = Traits(asked="event", delegates=True, notes=("a", "b"))
    assert lead.covers(Traits(asked="event", notes=("b",)))
    assert not lead.covers(Traits(asked="event", notes=("c",)))


@pytest.mark.parametrize(
    "id", ["shortest_queue", "minimum_expected_completion_time", "lightest_load", "random_immediate"]
)
def test_deadline_heuristics_note_the_chance_of_their_choice(id):
    """Every task that was mapped has a chance from 0 to 1, at its own start if nothing ran before.

    The first task of the case starts at once on an empty core: its chance is its own distribution.
    """
    case = next(case for case in STOCHASTIC_CASES if case.name == "equal cores")
    trace = play_case(case, make_scheduler(id))
    chances = trace.notes["predicted_chance"]
    assert ((chances >= 0) & (chances <= 1)).all()
    first = trace.executions[trace.executions["task"] == 0][0]
    pmf = case.types.estimates(case.tasks).pmf(0, int(first["host"]), int(first["pstate"]))
    in_time = pmf.masses[pmf.times <= case.tasks.deadline_s[0]].sum()
    assert chances[0] == pytest.approx(in_time, abs=1e-12)
