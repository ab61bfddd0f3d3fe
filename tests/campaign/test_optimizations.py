"""Runs that execute nothing: a campaign stores, resumes, repeats and reports them as any other."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from gridsched.campaign.campaign import Options, run_campaign
from gridsched.campaign.messages import Job
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

#: The worked example of algorithms E5: 12 tasks, a fast and a slow machine.
FILES = {
    "etc.csv": "task_type,machine_type,pstate,etc_s\na,fast,0,2\na,slow,0,4\n",
    "apc.csv": "task_type,machine_type,pstate,apc_w\na,fast,0,10\na,slow,0,2.5\n",
    "counts.csv": "task_type,tasks\na,12\n",
    "machines.csv": "machine_type,count\nfast,1\nslow,1\n",
}
TEXT = """name = "plans"
driver = ["optimize", "reference"]
price = 300
schedulers = [
    "lp_max_profit",
    { id = "lp_max_profit", label = "capped", power_cap_w = 10 },
    { id = "lp_pareto", energy_weight = [0.0, 1.0] },
    "lp_pareto_profit",
]
metrics = ["makespan_s", "energy_j", "profit_rate", "relative_decrease", "makespan_bound_s"]
[workload]
generator = "profit"
etc_csv = "etc.csv"
apc_csv = "apc.csv"
machines_csv = "machines.csv"
counts_csv = "counts.csv"
"""


def study_file(folder: Path, text: str = TEXT) -> Path:
    """Write the study and the files that it reads."""
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")
    path = folder / "plans.toml"
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(folder: Path, text: str = TEXT) -> dict[tuple[str, str], dict]:
    """Do all runs of a study in this process; return them by driver and scheduler."""
    study = Study.from_file(study_file(folder, text))
    maker = ScenarioMaker({each.sha256: each.path for each in study.inputs.values()}, folder)
    return {
        (run.axes.get("driver", ""), run.axes["scheduler"]): perform(maker, Job(run.run_id, run.scenario), None)[0]
        for run in study.scenarios()
    }


def test_the_worked_example(tmp_path: Path):
    """Rows Pmax and plain of E5's table, the recovery of the former, and the ends of the front."""
    rows = rows_of(tmp_path)
    capped = rows["optimize", "capped"]["metrics"]
    expected = {
        "divided_makespan_s": 19.2,
        "divided_energy_j": 192.0,
        "divided_profit_rate": 5.625,
        "makespan_s": 20.0,
        "energy_j": 190.0,
        "profit_rate": 5.5,
        "profit": 110.0,
        "busy_time_s": 34.0,
        "tasks": 12,
        "tasks_finished": 12,
        "plan_runs": 1,
        "profit_rate_bound": 5.625,
        "relative_decrease": 0.125 / 5.625,
        "energy_source": "plan",
    }
    assert capped == {
        name: value if isinstance(value, str) else pytest.approx(value, rel=1e-9) for name, value in expected.items()
    }
    best = rows["optimize", "lp_max_profit"]["metrics"]
    assert (best["divided_makespan_s"], best["energy_j"]) == pytest.approx((16.0, 200.0))
    ends = [rows["optimize", f"lp_pareto(energy_weight={w})"]["metrics"] for w in (0.0, 1.0)]
    assert [end["makespan_s"] for end in ends] == pytest.approx([16.0, 48.0])
    assert [end["energy_j"] for end in ends] == pytest.approx([200.0, 120.0])
    assert "profit_rate_bound" not in ends[0]
    assert rows["optimize", "lp_pareto_profit"]["metrics"]["divided_profit_rate"] == pytest.approx(6.25)


def test_execution_confirms_the_plan(tmp_path: Path):
    """A driver that executes gives every metric that the plan has, as the plan says."""
    rows = rows_of(tmp_path)
    for (driver, scheduler), planned in rows.items():
        if driver == "optimize":
            executed = rows["reference", scheduler]["metrics"]
            common = planned["metrics"].keys() & executed.keys() - {"energy_source"}
            assert {"makespan_s", "energy_j", "profit_rate", "busy_time_s"} <= common
            for name in common:
                assert executed[name] == pytest.approx(planned["metrics"][name], rel=1e-9), name


def test_do_not_run(tmp_path: Path):
    """Below the cost of the least energy nothing pays: no time, no energy, profit rate 0."""
    row = rows_of(tmp_path, TEXT.replace("price = 300", "price = 100"))
    found = row["optimize", "lp_max_profit"]["metrics"]
    assert (found["plan_runs"], found["tasks_finished"], found["profit_rate"]) == (0, 0, 0.0)
    assert math.isnan(found["makespan_s"])
    assert "relative_decrease" not in found


def test_a_price_that_just_pays(tmp_path: Path):
    """The bound is 0 but for rounding: nothing can be a share of it."""
    row = rows_of(tmp_path, TEXT.replace("price = 300", "price = 120"))
    found = row["optimize", "lp_max_profit"]["metrics"]
    assert found["profit_rate_bound"] == pytest.approx(0.0, abs=1e-9)
    assert "relative_decrease" not in found


def test_bags_of_any_kind_are_planned(tmp_path: Path):
    """A platform with a bag, gathered into types: 8 equal tasks on 2 hosts of 1 Gflop/s, 4 s."""
    (tmp_path / "bag.csv").write_text("id,flops\n" + "".join(f"{k},1e9\n" for k in range(8)), encoding="utf-8")
    (tmp_path / "p.xml").write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><zone id="z" routing="Full">'
        + "".join(
            f'<host id="h{k}" speed="1Gf"><prop id="wattage_per_state" value="0:10:10"/></host>' for k in range(2)
        )
        + "</zone></platform>\n",
        encoding="utf-8",
    )
    text = 'name = "bag"\ndriver = "optimize"\nplatform = "p.xml"\nworkload = "bag.csv"\n'
    rows = rows_of(tmp_path, text + 'schedulers = "lp_pareto"\n')
    found = rows["", "lp_pareto"]["metrics"]
    assert (found["makespan_s"], found["energy_j"]) == pytest.approx((4.0, 80.0))
    assert "profit_rate" not in found


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"lp_pareto_profit",', '"lp_pareto_profit", "mct",', r"schedulers\[4\].*'mct' follows no"),
        ("price = 300", "price = 300\nhorizon_s = 9", "horizon_s has no effect with the driver"),
        ("price = 300", "series_step_s = 9", "series_step_s has no effect with the driver"),
        ('["optimize", "reference"]', '"optimise"', "'simgrid', 'reference' or 'optimize'"),
    ],
)
def test_what_means_nothing_without_execution_is_refused(old, new, complaint, tmp_path: Path):
    """Before the first run, with the key."""
    path = study_file(tmp_path, TEXT.replace(old, new))
    with pytest.raises(InputError, match=complaint):
        Study.from_file(path)


def test_others_may_be_executed(tmp_path: Path):
    """A scheduler without a programme may stand beside planners, where it is not to be planned."""
    new = '"lp_pareto_profit", "mct",'
    text = "only = \"driver == 'reference' or scheduler != 'mct'\"\n" + TEXT
    study = Study.from_file(study_file(tmp_path, text.replace('"lp_pareto_profit",', new)))
    assert study.n_runs == 11


def test_a_campaign_keeps_them(tmp_path: Path, capsys):
    """Stored, found again, repeated to the last bit, with bounds and in the report."""
    study = Study.from_file(study_file(tmp_path, TEXT.replace(', "reference"', "")))
    store = Store.create(tmp_path / "store")
    assert run_campaign(study, store, Options(workers=1)).done == 5
    again = run_campaign(study, Store.open(tmp_path / "store"), Options(workers=1))
    assert (again.found, again.done) == (5, 0)
    rows = Store.open(tmp_path / "store").rows(study).set_index("scheduler")
    assert rows["profit_rate"]["capped"] == pytest.approx(5.5)
    assert rows["timing.programme_s"].gt(0).all()
    assert main(["study", "rerun", str(tmp_path / "store"), rows["run_id"]["capped"]]) == 0
    page = tmp_path / "r.html"
    assert main(["study", "report", str(tmp_path / "store"), "-o", str(page), "--quiet"]) == 0
    runs = pd.read_csv(tmp_path / "r_files" / "runs.csv")
    assert runs["makespan_bound_s"].to_numpy() == pytest.approx(16.0)
    assert capsys.readouterr().err == ""
