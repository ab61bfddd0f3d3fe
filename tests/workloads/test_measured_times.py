"""CSV tables of measured run times become distributions."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from gridsched.analysis.bounds import have_bounds
from gridsched.errors import InputError
from gridsched.model.trace import ExecutionEnd
from gridsched.runs.run import run
from gridsched.runs.scenario import Scenario
from gridsched.workloads.load import read_system_workload
from gridsched.workloads.measurements import read_measured_times


def written(tmp_path, text: str):
    """A file with these lines below the header."""
    path = tmp_path / "times.csv"
    path.write_text(f"task_type,host_type,pstate,time_s\n{text}", encoding="utf-8")
    return path


def test_measurements_of_a_group_have_equal_mass(tmp_path):
    """Four runs of a on h: 10 once, 20 twice, 30 once."""
    path = written(tmp_path, "a,h,0,20\na,h,0,10\nb,g,1,7.5\na,h,0,30\na,h,0,20\n")
    listed = read_measured_times(path, ["a", "b"], ["g", "h"])
    found = listed.pmf(0, 1, 0)
    assert found.times.tolist() == [10.0, 20.0, 30.0]
    assert found.masses.tolist() == [0.25, 0.5, 0.25]
    means = listed.means((2, 2, 2))
    assert (means[0, 1, 0], means[1, 0, 1]) == (20.0, 7.5)
    assert np.isinf(means).sum() == 6
    with pytest.raises(InputError, match="distribution"):
        listed.pmf(1, 1, 0)


@pytest.mark.parametrize(
    ("line", "message"), [("a,h,0,0", "time_s"), ("c,h,0,1", "'c'"), ("a,h,-1,1", "pstate"), ("", "no measurements")]
)
def test_bad_measurements_are_refused(tmp_path, line, message):
    """The message names what is wrong."""
    with pytest.raises(InputError, match=message):
        read_measured_times(written(tmp_path, line), ["a", "b"], ["g", "h"])


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "measured.toml"


def test_a_generator_takes_measured_times():
    """Types and means are the file's; true run times are measurements, the same luck everywhere."""
    made = read_system_workload(EXAMPLE)
    assert made.types.task_type_names == ("render", "encode")
    assert made.types.host_type_names == ("node1", "node2")
    assert made.types.etc[0, 0].tolist() == pytest.approx([1325 / 3, 615.0])
    assert np.isinf(made.types.etc[0, 1]).all()
    assert made.types.etc[1, :, 0].tolist() == [205.0, 155.0]
    known = made.types.estimates(made.tasks)
    assert known.grid is not None  # 10 s
    render, encode = (int(np.argmax(made.tasks.task_type == k)) for k in (0, 1))
    # 395 s becomes 400 s: half a step counts upwards
    assert known.pmf(render, 0, 0).times[known.pmf(render, 0, 0).masses > 0].tolist() == [400.0, 410.0, 520.0]
    drawn = {made.run_times.run_time(task, 0, 0) for task in range(len(made.tasks))}
    assert drawn == {395.0, 410.0, 520.0, 180.0, 230.0}
    low = made.run_times.run_time(encode, 0, 0) == 180.0
    assert made.run_times.run_time(encode, 2, 0) == (150.0 if low else 160.0)
    # the mean over where the type can run, and that of all pairs that can run
    slack = made.tasks.deadline_s[render] - made.tasks.submit_time_s[render]
    pairs = [1325 / 3, 615.0, 205.0, 155.0, 260.0]
    assert slack == pytest.approx((pairs[0] + pairs[1]) / 2 + sum(pairs) / 5)


@pytest.mark.parametrize("id", ["lightest_load", "mct"])
def test_runs_of_measured_times(id):
    """Schedulers with and without distributions finish tasks after measured times."""
    result = run(Scenario(None, EXAMPLE, id, driver="reference"))
    done = result.trace.of_outcome(ExecutionEnd.FINISHED)
    assert len(done) > 20
    measured = {395, 410, 520, 640, 590, 180, 230, 150, 160, 260}
    assert set(np.round(done["end"] - done["start"], 6).tolist()) <= measured
    assert not have_bounds([result])


@pytest.mark.parametrize(
    ("line", "message"), [("render,node3,0,5", "'node3'"), ("render,node1,2,5", "the hosts have 0 to 1")]
)
def test_measurements_of_other_hosts_are_refused(tmp_path, line, message):
    """The message names file, line and column."""
    shutil.copy(EXAMPLE, tmp_path)
    path = tmp_path / "measured_times.csv"
    path.write_text(f"task_type,host_type,pstate,time_s\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        read_system_workload(tmp_path / "measured.toml")
    assert f"{path}, line 2" in str(error.value)
