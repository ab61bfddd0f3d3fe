"""The table of figures: all are in it once, and users put their own into it."""

from __future__ import annotations

from pathlib import Path

import pytest
import traces_by_hand as by_hand

from gridsched.errors import InputError
from gridsched.figures.figure_file import draw_figure, new_figure
from gridsched.figures.table import _TABLE, Drawn, figures, register_figure

EXPECTED = {
    "run": ["gantt", "power", "trace"],
    "comparison": ["bars"],
    "tasks": ["sizes"],
    "system": ["overview"],
    "study": ["bars", "sweep", "boxes", "pareto", "trace"],
    "declared": ["best", "sweep", "traces"],
}


@pytest.fixture
def own_entries():
    """Entries of a test do not stay."""
    figures("study")  # what gridsched ships stays
    before = dict(_TABLE)
    yield
    _TABLE.clear()
    _TABLE.update(before)


@pytest.mark.parametrize("of", EXPECTED)
def test_every_figure_is_in_the_table(of: str):
    """Those of a study in the order of its report; each says what it draws."""
    found = figures(of)
    assert [name for name in found if name in EXPECTED[of]] == EXPECTED[of] or (
        of != "study" and set(EXPECTED[of]) <= set(found)
    )
    for kind in found.values():
        assert kind.sentence.endswith(".")
        assert kind.heading


def test_a_figure_of_ones_own(own_entries, tmp_path: Path):
    """Registered, it is drawn and saved with its data as ours are."""

    @register_figure("starts", "run", "When executions start.")
    def starts(trace, *, title=""):
        figure = new_figure(3.0, 2.0)
        figure.subplots().plot(trace.executions["start"])
        return Drawn(figure, {"start_s": trace.executions["start"]})

    draw_figure("starts", "run", by_hand.work_queue(), tmp_path / "s.svg")
    assert (tmp_path / "s.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "s.csv").read_text().splitlines()[:2] == ["start_s", "0.0"]


def test_names_are_unique(own_entries):
    """Another function of the same name and subject is refused; another subject's is not."""
    with pytest.raises(InputError, match=r"'gantt'.*gridsched\.figures\.gantt"):
        register_figure("gantt", "run", "Mine.")(lambda trace: None)
    register_figure("gantt", "tasks", "Mine.")(lambda tasks: None)
    assert "gantt" in figures("tasks")


def test_an_unknown_figure_is_one_clear_line(tmp_path: Path):
    """The nearest name is proposed."""
    with pytest.raises(InputError, match=r"'gant'.*'gantt'"):
        draw_figure("gant", "run", by_hand.work_queue(), tmp_path / "g.png")
    assert list(tmp_path.iterdir()) == []
