"""Metrics as expressions: what they give by hand, what they refuse, and that nothing is run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import GridschedError, InputError
from gridsched.metrics import METRICS
from gridsched.metrics.table import _DECLARED
from gridsched.runs.formulas import declare, formula

KNOWN = ("energy_j", "makespan_s", "tasks", "profit")
ROW = {"energy_j": 6.0, "makespan_s": 2, "tasks": 0, "profit": None}
CASES = {
    "energy_j * makespan_s ** 2": 24.0,
    "energy_j / makespan_s - 1": 2.0,
    "-(energy_j + 1) * 2e0": -14.0,
    "min(energy_j, makespan_s, 9) + max(1, abs(-3))": 5.0,
    "sqrt(energy_j * 6) + log(exp(makespan_s))": 8.0,
    "energy_j\n/ 4": 1.5,
    "7": 7.0,
    "energy_j / tasks": None,
    "tasks / tasks": None,
    "log(tasks)": None,
    "sqrt(-makespan_s)": None,
    "makespan_s ** 1e9": None,
    "profit * 0": None,
}


@pytest.mark.parametrize(("text", "value"), CASES.items())
def test_formulas_by_hand(text: str, value: float | None):
    """What has no finite value, or lacks one that it needs, has none."""
    found = formula("own", text, KNOWN).metric.function(ROW)
    assert found is None if value is None else math.isclose(found, value, rel_tol=1e-15)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("energy", "'energy' is no metric to compute with. Did you mean 'energy_j'?"),
        ("energy_j +", "cannot be read. Write metrics"),
        ("energy_j.real", "'energy_j.real' is no metric"),
        ("__import__('os')", "is not understood"),
        ("energy_j if tasks else 1", "is not understood"),
        ("energy_j < 1", "is not understood"),
        ("not tasks", "is not understood"),
        ("[x for x in tasks]", "is not understood"),
        ("min(*tasks)", "is not understood"),
        ("(lambda: 1)()", "is not understood"),
        ("energy_j // 2", "is not understood"),
        ("'a' * 3", "'a' is no number"),
        ("True + 1", "True is no number"),
        ("sqrt(tasks, tasks, tasks)", "too few or many values"),
        ("min()", "too few or many values"),
        ("1" * 500 + " + 1", "cannot be read"),
        ("(" * 3000 + "1" + ")" * 3000, "cannot be read"),
        ("1 + " * 2400 + "1", "nests deeper"),
        ("-" * 1000 + "1", "nests deeper"),
        ("1" * 10_001, "at most 10000 are read"),
        ("", "cannot be read"),
    ],
)
def test_what_a_formula_refuses(text: str, complaint: str):
    """In one line, with what is legal."""
    with pytest.raises(InputError) as caught:
        formula("own", text, KNOWN, called="expressions.own")
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("expressions.own")


@given(st.text(st.sampled_from("energy_j makespan_s tasks()*+-/.,0123[]{}'lambdif:=<>&|~@^% "), max_size=40))
def test_any_text_is_a_formula_or_refused(text: str):
    """No text does anything else: no other error, no number that is not finite."""
    try:
        value = formula("own", text, KNOWN).metric.function(ROW)
    except GridschedError:
        return
    assert value is None or math.isfinite(value)


def test_names():
    """A formula has a name of its own; another study's of the same name takes its place."""
    with pytest.raises(InputError, match="own-1"):
        formula("own-1", "tasks", KNOWN)
    with pytest.raises(InputError, match="energy_j"):
        formula("energy_j", "tasks", KNOWN)
    try:
        for text in ("tasks", "tasks + 1"):
            found = formula("own_number", text, KNOWN, unit="m", better="more", meaning="a try")
            declare([found])
            assert METRICS["own_number"] is found.metric
        assert METRICS["own_number"].title == "Own number [m]"
        assert METRICS["own_number"].sentence == "a try: `tasks + 1`"
        assert found.needs == {"tasks"}
    finally:
        METRICS.pop("own_number")
        _DECLARED.discard("own_number")
