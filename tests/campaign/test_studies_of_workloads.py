"""Studies of profit, of robust trials and of traces, and the joules they store."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from gridsched.analysis.bounds import study_bounds
from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.campaign.campaign import Options, run_campaign
from gridsched.campaign.messages import Job
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.cli.app import main
from gridsched.compiled import report_compiling
from gridsched.errors import InputError
from gridsched.figures.figure_style import style
from gridsched.figures.study_figure import layout_of, study_figures
from gridsched.platform_io.xml_reader import read_platform
from gridsched.policy.decisions import Assign
from gridsched.policy.state import State
from gridsched.reproduction.claims import judge
from gridsched.runs.run import run
from gridsched.runs.run_spec import RunSpec
from gridsched.runs.scenario_maker import ScenarioMaker, load
from gridsched.runs.study import Study
from gridsched.scenario import Scenario
from gridsched.schedulers.bag.baselines import WorkQueue

# A study of the generator `profit`: the price is an axis, profit and bounds are in the report.

PROFIT = """name = "prices"
seed = 3
replicates = 2
driver = "reference"
schedulers = ["lp_max_profit", "mct"]
price = [3e6, 5e6]
pue = 1.2
metrics = ["makespan_s", "energy_j", "profit_rate", "energy_above_bound"]
[workload]
generator = "profit"
task_types = 4
machine_types = 3
machines_per_type = 3
tasks = 90
"""


@pytest.mark.systems("profit")
def test_prices_are_an_axis(tmp_path: Path):
    """A higher price pays more; the plan earns more than the heuristic; bounds hold."""
    study, store, page = tmp_path / "s.toml", tmp_path / "store", tmp_path / "r.html"
    study.write_text(PROFIT, encoding="utf-8")
    quiet = ["--workers", "1", "--quiet"]
    assert main(["study", "run", str(study), "--store", str(store), *quiet]) == 0
    assert main(["study", "report", str(store), "-o", str(page)]) == 0
    means = pd.read_csv(tmp_path / "r_files" / "means-profit_rate.csv")
    rate = means.set_index(["price", "scheduler"])["mean"]
    for price in (3e6, 5e6):
        assert rate[price, "lp_max_profit"] > rate[price, "mct"]
    assert (rate[5e6] > rate[3e6]).all()
    above = pd.read_csv(tmp_path / "r_files" / "means-energy_above_bound.csv")
    assert (above["mean"] >= 0).all()


@pytest.mark.systems("profit")
@pytest.mark.parametrize("metric", ["utility", "window_energy_j"])
def test_metrics_of_utility_are_refused(metric: str, tmp_path: Path):
    """These tasks have no utility functions, and the workload no window."""
    study = tmp_path / "s.toml"
    study.write_text(PROFIT.replace('"makespan_s"', f'"{metric}"'), encoding="utf-8")
    with pytest.raises(InputError, match=f"'{metric}'"):
        Study.from_file(study)


@pytest.mark.systems("profit")
def test_runs_without_a_price_keep_their_description(tmp_path: Path):
    """A stored text has the tariff's keys only where they are set, so that ids stay."""
    study = tmp_path / "s.toml"
    text = PROFIT.replace("price = [3e6, 5e6]\npue = 1.2\n", "").replace('"profit_rate", ', "")
    study.write_text(text, encoding="utf-8")
    settings = next(Study.from_file(study).scenarios()).scenario["settings"]
    assert not {"price", "pue", "energy_cost", "overhead"} & set(settings)


@pytest.mark.systems("profit")
def test_tables_of_prices_are_inputs_of_a_study(tmp_path: Path):
    """They are an axis of files; a stored run knows its own by content."""
    path = tmp_path / "s.toml"
    for name, cost in (("cheap", "1e6"), ("dear", "9e6")):
        text = f"time_s,energy_cost_per_kwh\n0,\n50,{cost}\n"
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    text = PROFIT.replace("pue = 1.2", 'prices = ["cheap.csv", "dear.csv"]\nprices_period_s = 100.0')
    path.write_text(text.replace('"mct"', '"lp_rolling"'), encoding="utf-8")
    study = Study.from_file(path)
    maker = ScenarioMaker({each.sha256: each.path for each in study.inputs.values()}, tmp_path)
    costs = {}
    for each in study.scenarios():
        assert set(each.scenario["settings"]["prices"]) == {"name", "sha256"}
        prices = load(maker.make(each.spec)).tariff.prices
        costs[each.axes["prices"]] = round(prices.energy_cost_per_j[1] * 3.6e6)
    assert costs == {"cheap.csv": 1_000_000, "dear.csv": 9_000_000}


# A study of the generator `robust`, and the commands that know the kind.

ROBUST = """name = "robust-small"
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


@pytest.mark.systems("robust")
def test_schedulers_of_a_replicate_meet_one_trial(tmp_path: Path):
    """Replicates differ in their tasks, not in their system; parameters of schedulers are axes."""
    study = Study.from_text(ROBUST, tmp_path / "s.toml")
    maker, deadlines, platforms = ScenarioMaker({}, tmp_path), {}, []
    runs = list(study.scenarios())
    assert len(runs) == 6
    for each in runs:
        result = run(maker.make(each.spec))
        found = result.summary()
        assert 0 <= found["tasks_missed"] <= found["tasks"] == 16
        tasks = result.trace.tasks
        deadlines.setdefault(each.axes["replicate"], set()).add(tuple(tasks.deadline_s.tolist()))
        platforms.append(result.trace.platform)
    assert [len(found) for found in deadlines.values()] == [1, 1]
    assert deadlines[0] != deadlines[1]
    assert all(platform == platforms[0] for platform in platforms)


@pytest.mark.systems("robust")
def test_bounds_of_uncertain_run_times_are_refused(tmp_path: Path):
    """The estimates' bounds do not hold for times that are drawn; the message explains why."""
    study = Study.from_text(ROBUST.replace("energy_j", "energy_above_bound"), tmp_path / "s.toml")
    with pytest.raises(InputError, match="bounds") as error:
        study_bounds(study, {})
    assert "\n" not in str(error.value)


@pytest.mark.systems("robust")
@pytest.mark.parametrize("command", ["generate", "describe"])
def test_workload_commands_say_where_it_goes(capsys, tmp_path: Path, command: str):
    """Tables of tasks with utility functions have other columns: one line names the remedy."""
    generator = tmp_path / "g.toml"
    generator.write_text('kind = "robust"\nphases = [[3, 8.0]]\n', encoding="utf-8")
    more = ["-o", str(tmp_path / "tasks.csv")] if command == "generate" else []
    assert main(["workload", command, str(generator), *more]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "Use it as --workload of a run" in error


# Studies of generated jobs and of logs that may be absent; the study of backfilling.

ROOT = Path(__file__).resolve().parents[2]
LOG = "four_nodes.swf"
CLAIMS = """
from gridsched.reproduction.claim_statistics import percent_more
from gridsched.runs.claims_schema import Claim, Ground, numbered

CLAIMS = [
    Claim(f"wait-{k}", "order", "", "by hand",
          percent_more("mean_waiting_time_s", "easy_backfilling", "fcfs", where={"trace": trace}),
          "order", Ground("before", "made up"))
    for k, trace in numbered("drawn", "log")
]
"""
TRACES = f"""name = "traces"
claims = "claims.py"
replicates = 2
driver = "reference"
only = "trace == 'drawn' or replicate == 0"
schedulers = ["fcfs", "easy_backfilling"]
optional = ["{LOG}"]
[group.trace.drawn]
workload = {{ generator = "rigid_jobs", jobs = 40, nodes = 8, widest_job = 8 }}
[group.trace.log]
workload = "{LOG}"
[[figures]]
name = "waiting"
kind = "points"
metric = "mean_waiting_time_s"
along = "trace"
names = ["FCFS", "EASY"]
"""


def done(study: Study, folder: Path) -> StudyResults:
    """Do the runs of a study in this process, and return what its store holds."""
    kept = Store.create(folder / "store")
    kept.add(study)
    segment = kept.writer()
    maker = ScenarioMaker({each.sha256: each.path for each in study.inputs.values()}, folder)
    for scheduled in study.scenarios():
        segment.write(perform(maker, Job(scheduled.run_id, scheduled.scenario), None)[0])
    segment.close()
    return read_results(Store.open(folder / "store", trust=True))


def figure_of(results: StudyResults):
    """Return the data of the one declared figure."""
    with style():
        ((_, found), *_) = study_figures(results, layout_of(results))
        found.figure.canvas.draw()
    assert found.figure.axes[0].get_xscale() == "log"
    return found.data


def test_a_log_that_is_absent_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its runs, its claims and its row of the figure; the store later gives the same."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.py").write_text(CLAIMS)
    study = Study.from_text(TRACES, tmp_path / "s.toml", trust=True)
    (reason,) = study.files.absent.values()
    assert f"{LOG} is neither beside it nor in the working folder" in reason
    assert study.n_runs == len(list(study.scenarios())) == 4
    assert [claim.id for claim in study.claims] == ["wait-1"]
    assert "mean_bounded_slowdown" in study.metrics
    results = done(study, tmp_path)
    shutil.copy(ROOT / "examples" / LOG, tmp_path)  # comes too late for this store
    assert read_results(Store.open(tmp_path / "store", trust=True)).study.n_runs == 4
    assert [finding.ours.count for finding in judge(results)] == [2]
    assert figure_of(results)["trace"].tolist() == ["drawn", "drawn"]


@pytest.mark.parametrize("beside", [True, False])
def test_a_log_beside_the_study_or_in_the_working_folder_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
):
    """Once, in its first replicate: section I's jobs wait 8.5 s under FCFS, 5.5 s under EASY."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    shutil.copy(ROOT / "examples" / LOG, tmp_path / ("there" if beside else "here"))
    (tmp_path / "there" / "claims.py").write_text(CLAIMS)
    study = Study.from_text(TRACES, tmp_path / "there" / "s.toml", trust=True)
    assert not study.files.absent
    assert study.n_runs == len(list(study.scenarios())) == 6
    results = done(study, tmp_path)
    assert [finding.verdict for finding in judge(results)][1] == "reproduced"
    data = figure_of(results)
    found = data[data["trace"] == "log"].set_index("scheduler")["mean"]
    assert found.to_dict() == {"fcfs": 8.5, "easy_backfilling": 5.5}


def test_what_is_left_must_be_something(tmp_path: Path):
    """A study of absent logs alone, and a file that is not optional, are refused."""
    of_logs = TRACES.replace('claims = "claims.py"\n', "").replace(
        '{ generator = "rigid_jobs", jobs = 40, nodes = 8, widest_job = 8 }', f'{{ file = "{LOG}", nodes = 5 }}'
    )
    with pytest.raises(InputError, match="optional"):
        Study.from_text(of_logs, tmp_path / "s.toml")
    with pytest.raises(InputError, match=rf"trace.log.workload.file.*'{LOG}'"):
        Study.from_text(
            TRACES.replace(f'optional = ["{LOG}"]', "").replace('claims = "claims.py"\n', ""), tmp_path / "s.toml"
        )


def test_the_study_of_backfilling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both loads 30 times, one replicate on SimGrid; logs once, where they are."""
    monkeypatch.chdir(tmp_path)
    study = Study.shipped("backfilling")
    assert len(study.files.absent) == 3
    assert study.n_runs == 2 * 3 * (30 + 1)
    assert len(study.claims) == 4 + 4 + 2
    for name in study.files.absent:
        (tmp_path / name).write_text("; MaxProcs: 4\n1 0 -1 5 1 -1 -1 1 5\n", encoding="utf-8")
    study = Study.shipped("backfilling")
    assert study.n_runs == 2 * 3 * (30 + 1) + 3 * 3
    assert len(study.claims) == 10 + 10 + 2


# Which energies a stored row holds, by what they were found, and what is not a result.

EX_A = ROOT / "platforms/ex_a.xml"
#: Two hosts behind links of which one has a range of power [W].
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>
<zone id="net" routing="Full">
<host id="m" speed="10f"><prop id="role" value="master"/></host>
<host id="w1" speed="10f"><prop id="wattage_per_state" value="1:2:2"/></host>
<host id="w2" speed="10f"><prop id="wattage_per_state" value="1:2:2"/></host>
<link id="l1" bandwidth="10Bps" latency="0s"><prop id="wattage_range" value="1:3"/></link>
<link id="l2" bandwidth="10Bps" latency="0s"/>
<route src="m" dst="w1"><link_ctn id="l1"/></route>
<route src="m" dst="w2"><link_ctn id="l2"/></route>
</zone></platform>
"""
STUDY = """
name = "links"
seed = 1
replicates = 1
platform = "links.xml"
workload = {{ generator = "bag", tasks = 4, mean_flops = 100, heterogeneity = 0, input_bytes = 20 }}
schedulers = ["wq"]
driver = "{driver}"
network = "{network}"
"""


@pytest.mark.parametrize(
    ("driver", "network", "source"),
    [("simgrid", "platform", "plugin"), ("simgrid", "none", "plugin"), ("reference", "none", "model")],
)
def test_rows_say_which_energy_they_hold(tmp_path: Path, driver: str, network: str, source: str):
    """The links' energy is stored where a network is simulated, and who found the hosts'."""
    (tmp_path / "links.xml").write_text(PLATFORM)
    path = tmp_path / "links.toml"
    path.write_text(STUDY.format(driver=driver, network=network))
    study, store = Study.from_file(path), Store.create(tmp_path / "store")
    run_campaign(study, store, Options(workers=1))
    assert store.rows()["status"].tolist() == ["finished"], store.rows()["error"][0]
    for _ in range(2):  # from the segment, then from the Parquet file
        metrics = store.row(next(study.scenarios()).run_id)["metrics"]
        assert metrics["energy_source"] == source
        if network == "platform":
            idle_j = metrics["makespan_s"] * 1.0
            assert idle_j < metrics["energy_links_j"] <= 3 * idle_j
        else:
            assert metrics.get("energy_links_j") is None
        store.compact()


WQ_ON_EX_A = {
    "platform": {},
    "workload": {"file": {"name": "ex_a.csv", "sha256": ""}},
    "scheduler": {"id": "wq"},
    "settings": {},
}


class _Maker(ScenarioMaker):
    """Makes the worked example with a wattage that is not its file's."""

    def make(self, spec: RunSpec) -> Scenario:
        platform = read_platform(EX_A)
        first, *others = platform.hosts[0].pstates
        state = replace(first, epsilon_w=first.epsilon_w * 1.1, busy_w=first.busy_w * 1.1)
        changed = (replace(platform.hosts[0], pstates=(state, *others)), *platform.hosts[1:])
        other, bag = replace(platform, hosts=changed), ROOT / "examples/ex_a.csv"
        return Scenario(other, bag, "wq", platform_file=EX_A, timeout_s=spec.timeout_s)


def test_energies_that_disagree_are_no_result(tmp_path: Path):
    """A run whose plugin and model differ beyond 1e-9 is a failed row that names the host."""
    row, result = perform(_Maker({}, tmp_path), Job("0" * 32, WQ_ON_EX_A), 60.0)
    assert (row["status"], result) == ("failed", None)
    assert "host 'h1' has energy_j " in row["error"]
    assert "energy_model_j" in row["error"]


class _Compiling(WorkQueue):
    """Reports that loops are compiled, as they are on a fresh install."""

    def schedule(self, state: State) -> list[Assign]:
        report_compiling(True)
        report_compiling(False)
        return list(super().schedule(state))


class _CompilingMaker(ScenarioMaker):
    """Makes the worked example for it."""

    def make(self, spec: RunSpec) -> Scenario:
        return Scenario(EX_A, ROOT / "examples/ex_a.csv", _Compiling(), driver="reference", timeout_s=spec.timeout_s)


@pytest.mark.parametrize(("timeout_s", "while_compiling"), [(None, {None}), (50.0, {900.0})])
def test_compiling_has_no_limit_without_a_time_out(tmp_path: Path, timeout_s, while_compiling):
    """A slow machine may take long for it; with a time-out it has a limit of its own."""
    limits: list[float | None] = []
    row, _ = perform(_CompilingMaker({}, tmp_path), Job("0" * 32, WQ_ON_EX_A), timeout_s, limits.append)
    assert row["error"] is None
    assert len(limits) > 2
    assert set(limits) - {50.0, 110.0} == while_compiling
