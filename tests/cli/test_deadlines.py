"""Hard deadlines: what is late, what is missed, and that files and archives keep them."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from cli_cases import ROOT

from gridsched import Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.export.archive import read_archive
from gridsched.model.platform import Host, Platform, PState
from gridsched.testing.repetition import with_other_future
from gridsched.workloads.bag import write_bag
from gridsched.workloads.load import read_workload

#: EX-A's tasks finish at 10, 10, 80, 25 and 15 s under `wq` (algorithms A1).
BAG = "id,flops,deadline_s\n1,1000,10\n2,500,9\n3,2000,\n4,1500,25\n5,250,14.5\n"
PLATFORM = ROOT / "platforms" / "ex_a.xml"


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize(
    ("more", "late", "missed"),
    [
        ((), 2, 2),  # tasks 2 and 5; 1 and 4 end at their deadlines, 3 has none
        (("--horizon-s", "5"), 1, 3),  # 4 and 5 never start
        (("--energy-budget-j", "300", "--on-exhaustion", "stop"), 0, 5),  # 74 W: over at 4.05 s
    ],
)
def test_late_and_missed_tasks(gridsched, write, driver, more, late, missed):
    """Both drivers count alike; equality is in time; what never finishes is missed, not late."""
    workload = write("bag.csv", BAG)
    words = ("--platform", PLATFORM, "--workload", workload, "--driver", driver, *more)
    found = gridsched("run", *words, "--json").json
    assert (found["tasks_late"], found["tasks_missed"]) == (late, missed)
    shown = gridsched("compare", *words, "--schedulers", "wq").out
    assert "late  missed" in shown
    row = next(line for line in shown.splitlines() if line.startswith("wq "))
    assert row.split()[-2:] == [str(late), str(missed)]


def test_only_workloads_with_deadlines_have_the_metrics(gridsched, ex_a):
    """Without the column nothing is shown."""
    found = gridsched("run", *ex_a, "--driver", "reference", "--json").json
    assert not {"tasks_late", "tasks_missed"} & found.keys()
    assert "missed" not in gridsched("compare", *ex_a, "--driver", "reference").out


def test_rounding_does_not_make_a_task_late():
    """0.1 s + 0.2 s is 0.30000000000000004 s, the same instant as 0.3 s."""
    host = Platform((Host("h", (PState(10.0, 1.0, 2.0, 2.0),)),))
    for deadline, late in ((0.3, 0), (0.3 - 1e-8, 1)):
        tasks = make_tasks([1.0, 2.0], deadline_s=[np.inf, deadline])
        result = run(Scenario(host, tasks, "wq", driver="reference"))
        assert result.trace.finish_time_s[1] > 0.3
        assert result.summary()["tasks_late"] == late


def test_a_bag_reads_back_with_its_deadlines(tmp_path):
    """To the last digit, and in order of submission; a bag of none has none."""
    tasks = make_tasks([1.0, 2.0, 3.0], [5.0, 0.0, 1.0], deadline_s=[0.1 + 0.2, np.inf, 7.0])
    assert tasks.deadline_s.tolist() == [np.inf, 7.0, 0.1 + 0.2]
    write_bag(tasks, tmp_path / "bag.csv")
    back = read_workload(tmp_path / "bag.csv")
    assert back.deadline_s.tolist() == tasks.deadline_s.tolist()
    assert make_tasks([1.0, 2.0], deadline_s=np.inf).deadline_s is None
    write_bag(make_tasks([1.0]), tmp_path / "none.csv")
    assert read_workload(tmp_path / "none.csv").deadline_s is None


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "soon"])
def test_a_deadline_that_is_none_is_refused(refused, write, value):
    """The message names file, line and column."""
    path = write("bag.csv", f"id,flops,deadline_s\n1,10,5\n2,10,{value}\n")
    line = refused("run", "--platform", PLATFORM, "--workload", path)
    assert f"bag.csv, line 3: deadline_s is '{value}'; it must be a finite number >= 0" in line


def test_a_deadline_of_python_is_checked():
    """Negative times and nan are refused, with what is legal."""
    for value in (-1.0, float("nan"), 1e31):
        with pytest.raises(InputError, match=r"task 2.*deadline_s.*inf"):
            make_tasks([1.0, 2.0], deadline_s=[np.inf, value])


def test_an_export_keeps_deadlines(gridsched, write, tmp_path):
    """jobs.csv and tasks.csv have a column, the archive the numbers."""
    words = ("--platform", PLATFORM, "--workload", write("bag.csv", BAG), "--driver", "reference")
    assert gridsched("run", *words, "--export", tmp_path / "out").status == 0
    for name in ("jobs.csv", "tasks.csv"):
        with (tmp_path / "out" / name).open() as file:
            told = [row["deadline_s"] for row in csv.DictReader(file)]
        assert told == ["10.0", "9.0", "", "25.0", "14.5"]
    back = read_archive(tmp_path / "out" / "trace.npz").trace
    assert back.tasks.deadline_s.tolist() == [10.0, 9.0, np.inf, 25.0, 14.5]


def test_the_check_for_the_future_changes_deadlines_with_their_tasks():
    """Each later task keeps the time that it is given from its arrival on."""
    tasks = make_tasks([10.0, 20.0, 30.0], [0.0, 1.0, 2.0], deadline_s=[5.0, 7.0, 9.0])
    other = with_other_future(tasks, 1.0)
    assert other.deadline_s.tolist() == [5.0, 1.25 + 7.0, 3.25 + 6.0]
