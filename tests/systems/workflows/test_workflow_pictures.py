"""Pictures of workflows: the graph with its longest path, data in the Gantt chart, and both on the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_workflow_schedulers import TOPCUOGLU, random_scenario, scenario_of

from gridsched.analysis.graph_layout import run_graph
from gridsched.errors import InputError
from gridsched.figures import gantt_figure
from gridsched.figures.figure_file import draw_figure
from gridsched.figures.figure_style import style
from gridsched.figures.graph_figure import shortened
from gridsched.page import run_data
from gridsched.page.run_data import ShownRun
from gridsched.page.run_panels import run_page
from gridsched.policy.registry import make_scheduler
from gridsched.sim.child import simulate_reference


@pytest.fixture(scope="module")
def trace():
    """HEFT's run of Topcuoglu's example."""
    return simulate_reference(scenario_of(TOPCUOGLU, "heft"), make_scheduler("heft"))


def test_the_longest_path_of_the_printed_schedule(trace):
    """1 (9), data 14, 6 (16), data 15, 8 (5), data 11, 10 (7): 77 of 80; 9 waits 3 longer for its machine."""
    graph = run_graph(trace)
    assert (np.flatnonzero(graph.is_critical) + 1).tolist() == [1, 6, 8, 10]
    assert graph.length_s == pytest.approx(77)
    assert int(graph.on_path.sum()) == 3


def test_nothing_is_sent_to_a_task_that_did_not_run(trace):
    """Without the run of 10 the edges to it, from 7 to 9, are like those within a host."""
    runs = trace.executions
    graph = run_graph(replace(trace, executions=runs[runs["task"] != 9]))
    assert not graph.is_sent[graph.pairs.task == 9].any()
    assert (graph.pairs.on[graph.is_sent] + 1).tolist() == [1, 1, 1, 4, 6, 2, 5]


def test_the_graph_and_its_data_are_written(trace, tmp_path):
    """A row for each task, with its layer, host and whether it is on the path."""
    draw_figure("graph", "run", trace, tmp_path / "graph.png", title="ten tasks")
    header, first, *others = (tmp_path / "graph.csv").read_text().splitlines()
    assert header == "job_id,layer,host,start_s,end_s,on_longest_path"
    assert first == "1,0,m3,0.0,9.0,1"
    assert len(others) == 9
    assert (tmp_path / "graph.png").stat().st_size > 10_000


def test_names_and_boxes_keep_apart(trace):
    """No two boxes of a graph overlap, and every name lies in its box."""
    from gridsched.figures.graph_figure import graph

    with style():
        figure = graph(simulate_reference(random_scenario(3, "heft"), make_scheduler("heft"))).figure
        figure.draw_without_rendering()
        (axes,) = figure.axes
        boxes = [patch.get_window_extent() for patch in axes.patches]
        names = [each.get_window_extent() for each in axes.texts]
    assert len(boxes) == len(names) == 25
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])
        assert box.x0 < names[k].x0 and names[k].x1 < box.x1  # noqa: PT018 - one fact
        assert box.y0 < names[k].y0 and names[k].y1 < box.y1  # noqa: PT018 - one fact


def test_long_names_keep_their_ends():
    """By which names of one kind differ."""
    assert shortened("split_fasta_00000017", 9) == "spli\N{HORIZONTAL ELLIPSIS}0017"
    assert shortened("short", 9) == "short"


def test_a_bag_has_no_graph(trace, tmp_path):
    """One line explains why."""
    bag = replace(trace, tasks=replace(trace.tasks, dependencies=None), transfers=trace.transfers[:0])
    with pytest.raises(InputError, match="no task waits for another"):
        draw_figure("graph", "run", bag, tmp_path / "graph.png")


def test_data_are_arrows_in_the_gantt_chart(trace):
    """Nine arrows from the begin of each transfer to its end."""
    with style():
        (axes,) = gantt_figure.gantt(trace).figure.axes
    (arrows,) = (each for each in axes.collections if type(each).__name__ == "Quiver")
    assert sorted(arrows.U.tolist()) == sorted((trace.transfers["end"] - trace.transfers["begin"]).tolist())


def test_the_page_has_both(trace, monkeypatch):
    """The transfers with their tasks, and the graph; too many are reported."""
    run = ShownRun("heft", trace)
    sent = run.sent()
    pairs = {(one, other, size) for one, other, size in zip(sent["maker"], sent["taker"], sent["bytes"], strict=True)}
    assert ("1", "2", 18.0) in pairs
    assert len(pairs) == 9
    page = run_page([run]).html
    assert "what waits for what" in page
    assert "longest path" in page
    monkeypatch.setattr(run_data, "MOST_SENT", 4)
    monkeypatch.setattr(run_data, "MOST_EDGES", 14)
    few = ShownRun("heft", trace)
    assert sorted(few.sent()["bytes"].tolist()) == [16, 17, 18, 27]
    assert few.graph is None
    assert [note.split(";")[0] for note in few.notes] == [
        "The page has the 4 largest of 9 transfers between hosts.",
        "The graph of the tasks has 15 edges",
    ]
