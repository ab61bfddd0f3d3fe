"""A study of the generator `robust`, and the commands that know the kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.analysis.bounds import study_bounds
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.runs.run import run
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

TEXT = """name = "robust-small"
seed = 3
replicates = 2
driver = "reference"
schedulers = [{ id = "lightest_load", remap = [false, true] }, "mct"]
metrics = ["tasks_missed", "energy_j"]
[workload]
generator = "robust"
nodes = 2
total_cores = 3
task_types = 4
phases = [[12, 60.0], [4, 200.0]]
budget_tasks = 12
grid_s = 50
"""


def test_schedulers_of_a_replicate_meet_one_trial(tmp_path: Path):
    """Replicates differ in their tasks, not in their system; parameters of schedulers are axes."""
    study = Study.from_text(TEXT, tmp_path / "s.toml")
    maker, deadlines, platforms = ScenarioMaker({}, tmp_path), {}, []
    runs = list(study.scenarios())
    assert len(runs) == 6
    for each in runs:
        result = run(maker.make(each.scenario))
        found = result.summary()
        assert 0 <= found["tasks_missed"] <= found["tasks"] == 16
        tasks = result.trace.tasks
        deadlines.setdefault(each.axes["replicate"], set()).add(tuple(tasks.deadline_s.tolist()))
        platforms.append(result.trace.platform)
    assert [len(found) for found in deadlines.values()] == [1, 1]
    assert deadlines[0] != deadlines[1]
    assert all(platform == platforms[0] for platform in platforms)


def test_bounds_of_uncertain_run_times_are_refused(tmp_path: Path):
    """The estimates' bounds say nothing of times that are drawn; the message says why."""
    study = Study.from_text(TEXT.replace("energy_j", "energy_above_bound"), tmp_path / "s.toml")
    with pytest.raises(InputError, match="bounds") as error:
        study_bounds(study, {})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("command", ["generate", "describe"])
def test_workload_commands_say_where_it_goes(capsys, tmp_path: Path, command: str):
    """Tables of tasks with utility functions have other columns: one line says what to do."""
    generator = tmp_path / "g.toml"
    generator.write_text('kind = "robust"\nphases = [[3, 8.0]]\n', encoding="utf-8")
    more = ["-o", str(tmp_path / "tasks.csv")] if command == "generate" else []
    assert main(["workload", command, str(generator), *more]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "It goes as --workload where tasks are run" in error
