"""Study files: axes, groups, exclusions, and errors that name the key."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from campaign_cases import POLICY, write_study, write_troubled

from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.runs.run_filter import run_filter
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study, StudyRun


@pytest.fixture
def small(tmp_path: Path) -> str:
    """The text of the small study; its table lies in the test's folder."""
    return write_study(tmp_path).read_text()


def study_of(text: str, folder: Path) -> Study:
    """Return the study of a text, as if it lay in the folder."""
    return Study.from_text(text, folder / "s.toml")


def scenarios_of(study: Study) -> list[dict]:
    """Return the scenarios of all runs."""
    return [run.scenario for run in study.scenarios()]


def test_lists_are_axes(small: str, tmp_path: Path):
    """Schedulers, heterogeneities and replicates make the cartesian product."""
    study = study_of(small, tmp_path)
    runs = list(study.scenarios())
    assert study.axis_names == ("workload.heterogeneity", "scheduler", "replicate")
    assert study.n_runs == len(runs) == len({run.run_id for run in runs}) == 2 * 2 * 2
    assert runs[1].axes == {"workload.heterogeneity": 0.5, "scheduler": "lecsa", "replicate": 0}


def test_a_key_that_takes_a_list_is_no_axis(small: str, tmp_path: Path):
    """A range is one value; a list of ranges is an axis of ranges."""
    one = study_of(small, tmp_path)
    two = study_of(small.replace("[4, 12]", "[[4, 12], [8, 8]]"), tmp_path)
    assert [axis.name for axis in one.axes] == ["workload.heterogeneity", "scheduler"]
    assert two.axes[0].name == "platform.idle_power_w"
    assert two.axes[0].values == ((4, 12), (8, 8))
    assert two.n_runs == 2 * one.n_runs


def test_groups_tie_values(small: str, tmp_path: Path):
    """A group's levels set several keys at once and are in the results by name."""
    text = small + (
        "\n[group.size.few]\nworkload.tasks = 3\nworkload.mean_flops = 4e12\n"
        "[group.size.many]\nworkload.tasks = 24\npstate = 0\nplatform.hosts = 2\n"
    )
    study = study_of(text, tmp_path)
    sizes = {
        (run.axes["size"], run.scenario["workload"]["tasks"], run.scenario["platform"]["hosts"])
        for run in study.scenarios()
    }
    assert sizes == {("few", 3, 6), ("many", 24, 2)}


def test_exclude_removes_combinations(small: str, tmp_path: Path):
    """Runs that match all keys of one exclusion are left out; short names of axes do."""
    text = small + '\n[[exclude]]\nscheduler = "lecsa"\nheterogeneity = [1, 0.5]\n'
    study = study_of(text, tmp_path)
    assert study.n_runs == 4
    assert {run.axes["scheduler"] for run in study.scenarios()} == {"wq"}


def test_parameters_of_schedulers_are_axes(small: str, tmp_path: Path):
    """A list of a parameter makes one scheduler of each value, labeled with it."""
    text = small.replace('"lecsa"]', '{ id = "wqr", max_replicas = [2, 3] }]')
    labels = [scheduler.label for scheduler in study_of(text, tmp_path).schedulers]
    assert labels == ["wq", "wqr(max_replicas=2)", "wqr(max_replicas=3)"]


def test_all_schedulers_of_a_replicate_meet_the_same_inputs(small: str, tmp_path: Path):
    """Platform and tasks differ between replicates, not between schedulers."""
    study = study_of(small, tmp_path)
    inputs = {file.sha256: file.path for file in study.inputs.values()}
    maker = ScenarioMaker(inputs, tmp_path)
    made: dict[int, set] = {}
    for run in study.scenarios(run_filter("heterogeneity == 1", study.axis_names)):
        scenario = maker.make(run.spec)
        inputs = (scenario.platform.idle_w.tobytes(), scenario.tasks.flops.tobytes())
        made.setdefault(run.axes["replicate"], set()).add(inputs)
    assert [len(worlds) for worlds in made.values()] == [1, 1]
    assert not made[0] & made[1]


def test_an_own_seed_fixes_the_platform(small: str, tmp_path: Path):
    """With platform.seed every replicate meets the same platform, and other tasks."""
    study = study_of(small.replace("hosts = 6", "hosts = 6\nseed = 9"), tmp_path)
    inputs = {file.sha256: file.path for file in study.inputs.values()}
    maker = ScenarioMaker(inputs, tmp_path)
    scenarios = [maker.make(run.spec) for run in study.scenarios()]
    assert len({each.platform.idle_w.tobytes() for each in scenarios}) == 1
    assert len({each.tasks.flops.tobytes() for each in scenarios}) == 4


def test_the_run_id_names_what_matters(small: str, tmp_path: Path):
    """Other names, titles, time-outs and orders keep the ids; another key, seed or file do not."""

    def ids(text: str) -> set[str]:
        return {run.run_id for run in study_of(text, tmp_path).scenarios()}

    before = ids(small)
    assert ids(small.replace('name = "small"', 'name = "other"\ntimeout_s = 5')) == before
    assert ids(small.replace("[0.5, 1]", "[1.0, 0.5]")) == before
    assert ids(small.replace("replicates = 2", "replicates = 3")) > before
    assert not ids(small.replace("seed = 3", "seed = 4")) & before
    assert not ids(small.replace("tasks = 12", "tasks = 13")) & before
    (tmp_path / "machines.csv").write_text((tmp_path / "machines.csv").read_text() + "x,1,1,0\n")
    assert not ids(small) & before


def test_an_own_policy_is_part_of_the_identity(tmp_path: Path):
    """A changed policy file changes the ids of its scheduler's runs, and of no other."""
    path = write_troubled(tmp_path, '["wq", "troubled"]')

    def ids() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {"wq": set(), "troubled": set()}
        for run in Study.from_file(path, trust=True).scenarios():
            found[run.axes["scheduler"]].add(run.run_id)
        return found

    before = ids()
    (tmp_path / "troubled.py").write_text(POLICY + "# changed\n")
    after = ids()
    assert after["wq"] == before["wq"]
    assert not after["troubled"] & before["troubled"]


def test_runs_come_platform_by_platform(small: str, tmp_path: Path):
    """Runs of one platform are consecutive, so that it is made once."""
    text = small.replace("hosts = 6", "hosts = [6, 3]")
    sections = [json.dumps([each["platform"], each["replicate"]]) for each in scenarios_of(study_of(text, tmp_path))]
    changes = sum(a != b for a, b in itertools.pairwise(sections))
    assert changes == len(set(sections)) - 1


def test_shipped_studies_are_fine():
    """Each study that comes with gridsched can be read; 'tiny' has 100 runs."""
    assert Study.shipped("tiny").n_runs == 100
    with pytest.raises(InputError, match="'tiny'"):
        Study.shipped("tinny")


WRONG = [
    ("tasks = 12", "task = 12", "workload.task is not a known key. Did you mean 'tasks'?"),
    ("tasks = 12", "tasks = 1.5", "workload.tasks is 1.5"),
    ("tasks = 12", "tasks = -1", "workload.tasks is -1"),
    ("tasks = 12", "", "workload.tasks is missing"),
    ("[0.5, 1]", "[]", "workload.heterogeneity is an axis without values"),
    ("[0.5, 1]", "[0.5, 0.5]", "workload.heterogeneity[1] is 0.5, which the axis has"),
    ("[0.5, 1]", "[0.5,\n1,\n7]", "workload.heterogeneity[2] is 7"),
    ("seed = 3", 'seed = "3"', "seed is '3'"),
    ("seed = 3", "pstate = -1", "pstate is wrong: --pstate '-1'"),
    ("seed = 3", "seeds = 3", "seeds is not a known key. Did you mean 'replicates'?"),
    ("replicates = 2", "replicates = 0", "replicates is 0"),
    (
        "seed = 3",
        f"seed = 3\nhorizon_s = {list(range(1, 3000))}\npower_cap_w = {list(range(1, 3000))}",
        "have 71,952,008 combinations; at most 10,000,000",
    ),
    ('"lecsa"]', '"lesca"]', "schedulers[1].id is wrong: No scheduler 'lesca'. Did you"),
    ('["wq", "lecsa"]', "[]", "schedulers is an axis without values"),
    ('"lecsa"]', '{id = "wqr",  replicas = 2}]', "schedulers[1].replicas is not a parameter"),
    ('"lecsa"]', '"wq"]', "schedulers[1] names 'wq' again"),
    ('"machines.csv"', '"nowhere.csv"', "platform.table is 'nowhere.csv'"),
    ('"bag"', '"bog"', "workload.generator is 'bog'. Did you mean 'bag'?"),
    ("reference", "referense", "driver is 'referense'"),
    ("[4, 12]", '[4, "x"]', "platform.idle_power_w"),
    ("tasks = 12", "tasks = 12\ntasks = 13", "no valid TOML"),
    ("[workload]", "metrics = ['x']\n[workload]", "platform.metrics is not a known key"),
    ("seed = 3", "metrics = ['energy']", "metrics[0] is 'energy'. Did you mean 'energy_j'"),
    ("seed = 3", "baseline = 'x'", "baseline is 'x'. Schedulers: wq, lecsa"),
    ("[workload]", "[group.g.a]\nx = 1\n[workload]", "group.g.a.x cannot be set"),
    ("[workload]", "[group.g.a]\nworkload.heterogeneity = 1\n[workload]", "varies in group 'g'"),
    ("[workload]", "[[exclude]]\nhosts = 6\n[workload]", "exclude[0].hosts is wrong"),
    ("[workload]", "[[exclude]]\nscheduler = 'x'\n[workload]", "exclude[0].scheduler is"),
    ("[workload]", "[[exclude]]\nscheduler = ['wq', 'lecsa']\n[workload]", "leaves no run"),
    ("seed = 3", "claims = 'x'", "claims is 'x': No study 'x'."),
    ("seed = 3", "claims = '004'", "No study '004'. Studies of paper 004: lecsa, lecsa_auto, lecsa_readings."),
    ("seed = 3", "claims = 'paper 4'", "Studies of paper 004: lecsa,"),
    ("seed = 3", "claims = '999'", "No study '999'. Give a file"),
    ("seed = 3", "claims = 'tiny'", "claims is 'tiny', a study that comes with gridsched and has no claims"),
    ("seed = 3", "claims = 3", "claims is 3"),
    ("seed = 3", "claims = 'absent.py'", "claims is 'absent.py'"),
]


@pytest.mark.parametrize(("old", "new", "problem"), WRONG, ids=range(len(WRONG)))
def test_errors_name_file_and_key(small: str, tmp_path: Path, old: str, new: str, problem: str):
    """Every error is reported with the file and the key."""
    assert old in small
    with pytest.raises(InputError) as raised:
        study_of(small.replace(old, new), tmp_path)
    assert problem in str(raised.value)
    assert "s.toml" in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("sede = 3", "sede is not a known key. Did you mean 'seed'?"),
        ("xyzzy = 3", "xyzzy is not a known key. docs/campaigns.md"),
        ("'' = 3", "'' is not a known key."),
        ("metrics = ['enrgy_j']", "metrics[0] is 'enrgy_j'. Did you mean 'energy_j'?"),
        ("metrics = ['xyzzy']", "metrics[0] is 'xyzzy'. docs/nomenclature.md"),
        ("group.g.a.pstat = 3", "group.g.a.pstat cannot be set by a group. Did you mean"),
        ("report = 3", "report is 3; a table"),
        ("figures = [3]", "figures[0] is 3; a table"),
        ("expressions.a = 3", "expressions.a is 3; a table"),
        ("deployment = 3", "deployment is 3; a text"),
        ("pstate = 1.5", "pstate is 1.5; a whole number"),
        ("title = 2024-01-01", "title is 2024-01-01; a text"),
        ("energy_budget_j = -1", "energy_budget_j is -1; it should be greater than 0"),
        ("extends = 'tinny'", "'tiny'"),
    ],
)
def test_messages_are_short_and_in_words_of_ours(small: str, tmp_path: Path, keys: str, problem: str):
    """Neither classes, branches of types and patterns of pydantic, nor all keys that there are."""
    with pytest.raises(InputError) as raised:
        study_of(f"{keys}\n{small}", tmp_path)
    line = str(raised.value).replace(str(tmp_path), "")
    assert problem in line
    assert len(line) < 150
    assert not any(each in line for each in ("instance of", "dictionary", "should match", "datetime"))


def test_a_name_of_a_study_is_refused_with_its_form(small: str, tmp_path: Path):
    with pytest.raises(InputError, match=r"name is 'a b'; a letter, then letters, digits, - and _ are allowed\."):
        study_of(re.sub(r'name = "\w+"', 'name = "a b"', small, count=1), tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import no_such_module\n", r"no module 'no_such_module' \(troubled.py:1 in <module>\)"),
        ("import json.no_such\n", r"no module 'json.no_such' \(troubled.py:1 in <module>\)"),
        ("from gridsched import Nothing\n", r"gridsched has no 'Nothing' \(troubled.py:1 in <module>\)"),
        ("from gridsched import Scenari\n", r"gridsched has no 'Scenari'.* Did you mean 'Scenario'"),
        ("\nclass A(:\n", r"troubled.py, line 2 is no valid Python"),
    ],
)
def test_what_a_policy_cannot_import_is_in_words_of_ours(tmp_path: Path, text: str, problem: str):
    """No frames of Python's import, no classes of its errors, no folders of packages."""
    path = write_troubled(tmp_path, '["wq"]')
    (tmp_path / "troubled.py").write_text(text)
    with pytest.raises(InputError, match=problem) as raised:
        Study.from_file(path, trust=True)
    line = str(raised.value)
    assert "\n" not in line
    assert not any(each in line for each in ("importlib", "Error:", "__init__"))


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ('cfg = ["tracing:yes", "tracing/filename:{victim}"]', "cfg"),
        ('cfg = [["network/crosstraffic:1"], ["tracing:yes", "tracing/filename:{victim}"]]', "cfg[1]"),
        ('cfg = ["precision/timing:1e-9 tracing:yes tracing/filename:{victim}"]', "cfg"),
        ('cfg = ["model-check/dot-output:{victim}"]', "cfg"),
        ('[group.how.traced]\ncfg = ["tracing/filename:{victim}"]', "group.how.traced.cfg"),
        ('log = ["root.app:file:{victim}"]', "log"),
    ],
)
def test_a_study_has_simgrid_write_no_file(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], keys: str, place: str
):
    """It may be a stranger's, and holds no Python; SimGrid's options for files are the user's."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    keys = keys.format(victim=victim)
    study = tmp_path / "s.toml"
    study.write_text(f"{small}\n{keys}\n" if keys.startswith("[") else f"{keys}\n{small}")
    assert main(["study", "run", str(study), "--store", str(tmp_path / "store")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{study}: {place} is " in line
    assert "network/model" in line or place == "log" or "blanks" in line
    assert victim.read_text() == "precious"
    assert not (tmp_path / "store").exists()


def test_a_study_sets_options_of_models(small: str, tmp_path: Path):
    """The network's model, say, is an axis."""
    values = '[["network/model:CM02", "network/crosstraffic:0"], ["network/model:LV08"]]'
    study = study_of(f"cfg = {values}\n{small}", tmp_path)
    told = {tuple(each["settings"]["cfg"]) for each in scenarios_of(study)}
    assert told == {("network/model:CM02", "network/crosstraffic:0"), ("network/model:LV08",)}


def test_a_policy_that_cannot_be_imported_is_told(tmp_path: Path):
    """A policy file that raises gives one line with its name."""
    path = write_troubled(tmp_path, '["wq"]')
    (tmp_path / "troubled.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match=r"troubled\.py.*ZeroDivisionError"):
        Study.from_file(path, trust=True)


AXES = ("environment", "workload.heterogeneity", "scheduler", "replicate")
RUN = {"environment": "low", "workload.heterogeneity": 0.5, "scheduler": "wq", "replicate": 3}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("scheduler == 'wq'", True),
        ("workload.heterogeneity < 0.5", False),
        ("0 <= heterogeneity <= 0.5 and not replicate > 3", True),
        ("environment in ['high', 'other'] or replicate == -1", False),
        ("scheduler not in ('wq', 'wqr')", False),
    ],
)
def test_only_chooses_runs(text: str, meant: bool):
    """An expression over the axes selects the runs."""
    assert run_filter(text, AXES)(RUN) is meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "scheduler =",
        "tasks == 3",
        "schedule == 'wq'",
        "__import__('os')",
        "replicate + 1 > 2",
        "scheduler.x == 1",
        "(lambda: 1)()",
        "scheduler is 'wq'",
        "x" * 20_000,
        "scheduler < 3",
    ],
)
def test_what_is_no_expression_is_refused(text: str):
    """Anything but comparisons of axes with values is an InputError, whatever it would do."""
    with pytest.raises(InputError, match="--only"):
        run_filter(text, AXES)(RUN)


def test_runs_are_lazy(small: str, tmp_path: Path):
    """The first run of a million replicates is there at once."""
    study = study_of(small.replace("replicates = 2", "replicates = 1000000"), tmp_path)
    assert isinstance(next(study.scenarios()), StudyRun)
    assert study.n_runs == 4_000_000


def test_a_folder_hides_no_shipped_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder of a study's name in the working folder is not taken for its file."""
    (tmp_path / "tiny").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Study.find("tiny").name == "tiny"
