"""Jobs cancelled from outside in each execution mode of SimGrid, against its joules and the reference driver."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_cases import executions, largest_difference, on_simgrid, write_star

from gridsched import Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

EXAMPLES = Path(__file__).parents[2] / "examples"


def events(folder: Path, *rows: str) -> Path:
    """Write a file of events."""
    file = folder / "events.csv"
    file.write_text("\n".join(["time_s,event,what", *rows]))
    return file


def near(rows: list[tuple]):
    """Compare executions with SimGrid's rounding allowed for."""
    return [pytest.approx(row, rel=1e-12, abs=1e-9) for row in rows]


@pytest.mark.parametrize(
    ("time", "first", "second"),
    [(15.0, (10.5, 15.0), (25.5, 35.5)), (23.0, (10.5, 20.5), (33.5, 43.5))],
    ids=["while it executes", "while its result is under way"],
)
def test_a_task_with_messages(tmp_path, time, first, second):
    """The first task executes from 10.5 s to 20.5 s, and its result would be there at 26 s; then the other is sent.

    What is under way of a cancelled task is under way no more: the link of 10 byte/s carries the other's input alone.
    """
    tasks = make_tasks([100.0] * 2, input_bytes=100.0, output_bytes=50.0)
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0]), tasks, events=events(tmp_path, f"{time},cancel,1"))
    assert executions(result) == near([(0, 0, *first), (1, 0, *second)])
    assert result.trace.final_state.tolist() == [TaskState.KILLED, TaskState.FINISHED]
    assert largest_difference(result) <= 1e-9


def test_a_task_whose_input_is_under_way(tmp_path):
    """It never computes, and the other does."""
    tasks = make_tasks([100.0] * 2, input_bytes=100.0, output_bytes=50.0)
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0]), tasks, events=events(tmp_path, "5,cancel,1"))
    assert result.trace.final_state.tolist() == [TaskState.KILLED, TaskState.FINISHED]
    ((_, _, start, end),) = [row for row in executions(result) if row[0] == 0]
    assert start == end == 5.0
    assert largest_difference(result) <= 1e-9


def test_a_task_of_a_workflow_with_those_that_wait_for_it(tmp_path):
    """Of Topcuoglu's ten tasks, all that need the data of the second are rejected, on both drivers alike."""
    file = events(tmp_path, "20,drain,*2", "30,cancel,n2", "45,resume,*2")
    results = {}
    for driver in ("reference", "simgrid"):
        scenario = Scenario(EXAMPLES / "topcuoglu.xml", EXAMPLES / "topcuoglu.toml", "heft", events=file, driver=driver)
        results[driver] = run(scenario)
    assert trace_differences(results["reference"].trace, results["simgrid"].trace) == []
    ends = dict(zip(results["simgrid"].tasks.index, results["simgrid"].trace.final_state.tolist(), strict=True))
    assert ends.pop("n2") == TaskState.KILLED
    rejected = {name for name, state in ends.items() if state == TaskState.REJECTED}
    assert rejected == {"n8", "n9", "n10"}


def test_a_job_with_a_profile(tmp_path):
    """The communicating job ends at 1 s in one of its steps; both drivers draw the same joules."""
    results = [
        run(
            Scenario(
                EXAMPLES / "communicating.xml",
                EXAMPLES / "communicating.jobs.csv",
                "easy_backfilling",
                events=events(tmp_path, "1,cancel,1"),
                driver=driver,
                trace={"profiles": str(EXAMPLES / "profiles.toml")},
            )
        )
        for driver in ("reference", "simgrid")
    ]
    for result in results:
        rows = result.trace.executions
        assert rows[["start", "end", "outcome"]][rows["task"] == 0].tolist() == [(0.0, 1.0, ExecutionEnd.KILLED)]
    reference, simgrid = (result.metrics()["energy_model_j"] for result in results)
    assert simgrid == pytest.approx(reference, rel=1e-6)
    assert metered_differences(results[1]) == []


def test_the_maestro_cancels_nothing(tmp_path):
    """The mode in which nothing can be cancelled is refused for events that cancel, and serves others."""
    platform = write_star(tmp_path / "p.xml", [10.0])
    with pytest.raises(InputError, match="cancellation"):
        on_simgrid(platform, [10.0], execution_mode="maestro", events=events(tmp_path, "5,cancel,1"))
    drained = on_simgrid(platform, [10.0], execution_mode="maestro", events=events(tmp_path, "0.5,drain,*"))
    assert drained.trace.final_state.tolist() == [TaskState.FINISHED]
