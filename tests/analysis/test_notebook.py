"""What a notebook shows of runs and comparisons, and the example notebook itself."""

from __future__ import annotations

import ast
import base64
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from matplotlib.figure import Figure

from gridsched import (
    Assign,
    Scenario,
    Scheduler,
    Traits,
    compare,
    make_scheduler,
    plot_gantt,
    plot_power,
    run,
    run_many,
)
from gridsched.errors import InputError, InvalidDecision
from gridsched.runs import run_many as many
from gridsched.sim.client import server

ROOT = Path(__file__).resolve().parents[2]
EX_A = (ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv")


def reference(scheduler: Any) -> Scenario:
    """Return EX-A with the reference driver."""
    return Scenario(*EX_A, scheduler, driver="reference")


def test_a_comparison_is_a_table_of_arrow():
    """EX-A: 80 s under WQ, 40 s under MCT; each metric is a column."""
    found = compare(*EX_A, ["wq", "mct"], driver="reference", workers=1)
    table = pyarrow.table(found)
    assert table.column_names == ["scheduler", *found.frame.columns]
    assert table.select(["scheduler", "makespan_s"]).to_pydict() == {"scheduler": ["wq", "mct"], "makespan_s": [80, 40]}


def test_a_result_is_short_and_has_tables(monkeypatch):
    """EX-A under WQ: task 3 (2000 flop) runs on h3 (25 flop/s) from 0 to 80 s, 5 W busy."""
    monkeypatch.chdir(ROOT)  # names of files are printed as they were given
    result = run(Scenario(*(each.relative_to(ROOT) for each in EX_A), "wq", driver="reference"))
    assert len(repr(result)) < 250
    assert "makespan 80 s" in repr(result)
    assert "5 of 5 tasks finished" in repr(result)
    shown = result._repr_html_()
    assert "<td>80 s</td>" in shown
    assert "<td>2,430 J</td>" in shown
    assert "<td>0" not in shown  # rows of zeros are left out
    assert "by plugin" not in shown + repr(result)  # without SimGrid
    tasks, hosts = result.tasks, result.hosts
    assert tasks.index.tolist() == [1, 2, 3, 4, 5]
    third = tasks.loc[3]
    assert (third["host"], third["start_s"], third["finish_s"], third["state"]) == ("h3", 0.0, 80.0, "finished")
    assert third["energy_j"] == pytest.approx(80 * 5, rel=1e-12)
    assert hosts.loc["h3", "core_busy_s"] == 80
    assert hosts["energy_model_j"].sum() == pytest.approx(result.energy.grid_total(), rel=1e-12)
    assert tasks["energy_j"].sum() == pytest.approx(hosts["busy_j"].sum(), rel=1e-12)
    # busy 25 s of 50 W, 15 s of 20 W, 80 s of 5 W; idle 4 W: the model's, as there is no plugin
    assert hosts["energy_j"].tolist() == [1470.0, 560.0, 400.0]


def test_compare_gives_what_the_command_gives():
    """Rows with the distance to the best and the bound; instances are called by their class."""
    found = compare(*EX_A, ["mct", make_scheduler("wq")], driver="reference", workers=1)
    frame = found.frame
    assert frame["makespan_s"].to_dict() == {"mct": 40.0, "WorkQueue": 80.0}
    assert frame.loc["WorkQueue", "makespan_above_best"] == 1.0
    assert found.bounds.any.makespan_s == 30.0
    assert frame.loc["mct", "makespan_above_bound"] == pytest.approx(1 / 3)
    for shown in (repr(found), found._repr_html_()):
        assert "makespan [s]" in shown
        assert "energy, model [J]" in shown
        assert "2,510" in shown
    giga = replace(found, rows=[{**row, "energy_model_j": 1e6 * row["energy_model_j"]} for row in found.rows])
    assert "energy, model [GJ]" in repr(giga)
    assert "2.510" in repr(giga)
    with pytest.raises(InputError, match="mct"):
        compare(*EX_A, ["mct", "mct"], driver="reference", workers=1)


class Nowhere(Scheduler):
    """Names a host that does not exist."""

    traits = Traits(trigger="arrival")

    def schedule(self, state):
        for task in state.waiting():
            yield Assign(task, 9)


def test_failures_are_kept_or_raised():
    """A run that fails has its words in a comparison; `run_many` raises unless it must not."""
    found = compare(*EX_A, ["wq", Nowhere()], driver="reference", workers=1)
    assert list(found.results) == ["wq"]
    assert "host 9" in found.failures["Nowhere"]
    assert "failed: Nowhere" in repr(found)
    with pytest.raises(InvalidDecision, match="host 9"):
        run_many([reference("wq"), reference(Nowhere())], workers=1)
    with pytest.raises(InputError, match="workers"):
        run_many([reference("wq")], workers=0)


@pytest.mark.long
def test_many_runs_at_once_keep_their_order():
    """Two at a time, each in a process of its own."""
    names = ["wq", "mct", "lecsa", "wq"]
    found = run_many(map(reference, names), workers=2)
    assert [result.summary()["makespan_s"] for result in found] == [80.0, 40.0, 100.0, 80.0]


@pytest.mark.parametrize(("long_s", "count"), [(1e9, 1), (-1.0, 2)])
def test_a_second_server_is_started_where_runs_take_long(long_s, count, monkeypatch):
    """To start one takes as long as many small runs."""
    started = []

    def counted():
        started.append(server())
        return started[-1]

    monkeypatch.setattr(many, "server", counted)
    monkeypatch.setattr(many, "_LONG_S", long_s)
    found = run_many([reference("wq"), reference("mct")], workers=2)
    assert [result.summary()["makespan_s"] for result in found] == [80.0, 40.0]
    assert len({id(each) for each in started}) == count


def test_figures_come_back_or_stand_in_the_place_of_axes():
    """With `ax` the drawing takes that place, and the rest of the figure stays."""
    result = run(reference("wq"))
    assert isinstance(plot_gantt(result), Figure)
    whole = Figure(figsize=(9, 4), layout="constrained")
    left, right = whole.subplots(1, 2)
    parts = [plot_gantt(result, ax=left), plot_power(result, ax=right)]
    assert whole.subfigs == parts
    assert [len(part.axes) for part in parts] == [1, 2]
    whole.draw_without_rendering()


def test_figures_are_shown_by_notebooks():
    """IPython asks what a cell ends with for a PNG; a part of another figure is not shown twice."""
    figure = plot_gantt(run(reference("wq")))
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert figure.get_layout_engine() is not None  # it may be drawn into, and saved


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook that are executed."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def shown_by(cell: dict[str, Any]) -> dict[str, str]:
    """Return what a cell shows, by kind."""
    (output,) = cell["outputs"]
    return {kind: "".join(data) for kind, data in output["data"].items()}


def test_the_page_shows_what_the_notebook_shows():
    """Pictures and the table of docs/notebook.md are those of the shipped notebook."""
    shown = [shown_by(cell) for cell in code_cells(ROOT / "examples/first_notebook.ipynb")]
    pictures = {base64.b64decode(each["image/png"]) for each in shown if "image/png" in each}
    page = (ROOT / "docs/notebook.md").read_text(encoding="utf-8")
    (table,) = (each["text/plain"] for each in shown if "makespan [s]" in each["text/plain"])
    rows = [" ".join(row.replace("|", " ").split()) for row in page.splitlines() if row.startswith("| ")]
    assert {" ".join(line.split()) for line in table.splitlines()} <= set(rows)
    assert {path.read_bytes() for path in (ROOT / "docs/notebook").glob("*.png")} == pictures
    assert len(pictures) == 2


@pytest.mark.long
def test_the_example_notebook_shows_what_it_showed(tmp_path: Path):
    """nbconvert executes it again: the same texts and tables, and a picture where there was one."""
    shipped, again = ROOT / "examples/first_notebook.ipynb", tmp_path / "again.ipynb"
    how = ["--to", "notebook", "--execute", "--output", str(again)]
    subprocess.run(
        [sys.executable, "-m", "nbconvert", *how, str(shipped)], check=True, capture_output=True, timeout=300
    )
    for before, after in zip(*map(code_cells, (shipped, again)), strict=True):
        assert before["source"] == after["source"]
        old, new = shown_by(before), shown_by(after)
        assert old.pop("image/png", "")[:8] == new.pop("image/png", "")[:8]
        assert old == new


def test_the_example_notebook_runs(monkeypatch):
    """Every cell, in order; what a cell ends with can be shown."""
    monkeypatch.chdir(ROOT / "examples")
    names: dict[str, Any] = {}
    shown = []
    for cell in code_cells(Path("first_notebook.ipynb")):
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    assert shown[0].summary()["makespan_s"] == 100
    assert shown[1].shape == (5, 10)
    assert list(shown[4].frame.index) == ["wq", "mct", "min_min", "lecsa"]
    assert isinstance(shown[-1], Figure)
