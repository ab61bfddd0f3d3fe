"""Stores that somebody has forged: no Python of theirs is run without --trust, nor any path's.

What would be run is a file that leaves a mark when it is imported.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gridsched.campaign.messages import Job
from gridsched.campaign.segments import SegmentWriter
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.cli.app import main
from gridsched.errors import InputError, NotTrusted
from gridsched.metrics import METRICS
from gridsched.metrics.table import _DECLARED
from gridsched.policy import registry
from gridsched.runs.run_spec import RunSpec
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

TEXT = """
name = "plans"
driver = ["optimize", "reference"]
price = 300
schedulers = [{ id = "lp_max_profit", gamma = [1.05, 1.6] }]
metrics = ["makespan_s", "energy_j"]
[workload]
generator = "profit"
idle_share = 0.05
task_types = 3
machine_types = 2
machines_per_type = 2
tasks = 20
[report]
where = { driver = "optimize" }
[[figures]]
name = "possible"
kind = "landscapes"
metric = "profit_rate"
along = "gamma"
"""
POLICY = """
from gridsched.policy.registry import scheduler_class

with open({marker!r}, "a") as stream:
    stream.write("imported")


class Forged(scheduler_class("lp_max_profit")):
    '''A planner of somebody's own.'''
"""

Row = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store whose study has no policy, and a Python file beside it."""
    folder = tmp_path_factory.mktemp("forged")
    (folder / "forged_policy.py").write_text(POLICY.format(marker=str(folder / "marker")))
    study, store = Study.from_text(TEXT), Store.create(folder / "store")
    store.add(study)
    segment, maker = store.writer(), ScenarioMaker({}, folder)
    for run in study.scenarios():
        segment.write(perform(maker, Job(run.run_id, run.scenario), None)[0])
    segment.close()
    store.compact()
    return folder


@pytest.fixture
def store(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the store that holds the file, too, to a process that has not seen it."""
    (made / "marker").unlink(missing_ok=True)
    copy = shutil.copytree(made / "store", tmp_path / "store")
    held(copy, made / "forged_policy.py")
    monkeypatch.chdir(made)
    monkeypatch.syspath_prepend(str(made))
    known = (METRICS, _DECLARED, registry._ENTRIES)
    before = [dict(METRICS), set(_DECLARED), dict(registry._ENTRIES)]
    yield copy
    sys.modules.pop("forged_policy", None)
    for each, kept in zip(known, before, strict=True):
        each.clear()
        each.update(kept)


def held(store: Path, file: Path) -> dict[str, str]:
    """Copy a file into a store as one that runs read; return how a row names it."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    place = store / "inputs" / digest / file.name
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, place)
    return {"name": file.name, "sha256": digest}


def forge_rows(store: Path, change: Callable[[Row], None]) -> str:
    """Change all rows of a store; return the id of one that executes nothing."""
    opened = Store.open(store)
    rows = [opened.row(run_id) for run_id in opened.stored()]
    plan = next(row["run_id"] for row in rows if row["scenario"]["settings"].get("driver") == "optimize")
    for file in store.glob("rows-*.parquet"):
        file.unlink()
    writer = SegmentWriter(store / "segments")
    for row in rows:
        change(row)
        writer.write(row)
    writer.close()
    Store.open(store).compact()
    return plan


def forge_study(store: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the study that a store keeps."""
    (file,) = (store / "studies").glob("*.json")
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def was_run(made: Path) -> bool:
    """Whether the Python file has been imported."""
    return (made / "marker").exists()


def with_policy(policy: Any, id: str = "Forged") -> Callable[[Row], None]:
    """Return what gives a row a scheduler with a policy."""

    def change(row: Row) -> None:
        row["scenario"]["scheduler"] |= {"id": id, "policy": policy}

    return change


def rejected(capsys: pytest.CaptureFixture[str], *command: object) -> str:
    """Return the one line by which a command refuses, with status 2."""
    capsys.readouterr()
    assert main([str(word) for word in command]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" not in line]
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.systems("profit")
@pytest.mark.parametrize("driver", ["optimize", "reference"])
@pytest.mark.parametrize("trust", [(), ("--trust",)])
@pytest.mark.parametrize("path", ["forged_policy.py", "{made}/forged_policy.py"])
def test_a_path_in_a_row_is_never_imported(
    made: Path, store: Path, capsys: Any, path: str, trust: tuple[str, ...], driver: str
):
    """Not even with --trust: a store's row names files by their content alone."""
    forge_rows(store, with_policy(path.format(made=made)))
    rows = Store.open(store).rows()
    has_driver = rows["scenario"].str.contains(f'"driver":"{driver}"')
    line = rejected(capsys, "study", "rerun", store, rows[has_driver]["run_id"].iloc[0], *trust)
    assert "scheduler.policy" in line
    assert "forged_policy.py" in line
    assert not was_run(made)


@pytest.mark.systems("profit")
@pytest.mark.parametrize("id", ["forged_policy:Forged", "forged_policy.Forged", "forged_policy.py:Forged", "Forged"])
def test_a_modules_name_in_a_row_is_never_imported(made: Path, store: Path, id: str):
    """An id is one of the registry, though the module lies in Python's path; the run fails."""

    def change(row: Row) -> None:
        row["scenario"]["scheduler"]["id"] = id

    run_id = forge_rows(store, change)
    for trust in ((), ("--trust",)):
        assert main(["study", "rerun", str(store), run_id, "--quiet", *trust]) in (1, 2)
        assert not was_run(made)


@pytest.mark.systems("profit")
def test_nor_is_one_that_a_parameter_names(made: Path, store: Path):
    """A scheduler that wraps another takes an id of the registry, too."""

    def change(row: Row) -> None:
        parameters = {"scheduler": "forged_policy.py:Forged"}
        row["scenario"]["scheduler"] = {"id": "idle_off", "parameters": parameters}

    run_id = forge_rows(store, change)
    assert main(["study", "rerun", str(store), run_id, "--quiet"]) in (1, 2)
    assert not was_run(made)


@pytest.mark.systems("profit")
@pytest.mark.parametrize("keeps_study", [True, False])
def test_a_rerun_asks_for_the_rows_own_policy(made: Path, store: Path, capsys: Any, keeps_study: bool):
    """The kept study names no policy, or there is none; the line names the file that is run."""
    reference = held(store, made / "forged_policy.py")
    run_id = forge_rows(store, with_policy(reference))
    if not keeps_study:
        shutil.rmtree(store / "studies")
    line = rejected(capsys, "study", "rerun", store, run_id)
    assert f"{reference['sha256']}/forged_policy.py" in line
    assert "--trust" in line
    assert not was_run(made)
    assert main(["study", "rerun", str(store), run_id, "--trust", "--quiet"]) == 0
    assert was_run(made)


@pytest.mark.systems("profit")
def test_a_policy_that_the_store_does_not_hold(made: Path, store: Path, capsys: Any):
    """A row may name any digest; nothing is looked for elsewhere."""
    shutil.rmtree(store / "inputs")
    digest = hashlib.sha256((made / "forged_policy.py").read_bytes()).hexdigest()
    run_id = forge_rows(store, with_policy({"name": "forged_policy.py", "sha256": digest}))
    line = rejected(capsys, "study", "rerun", store, run_id, "--trust")
    assert "forged_policy.py" in line
    assert "not in the store" in line
    assert not was_run(made)


@pytest.mark.systems("profit")
@pytest.mark.parametrize("command", ["report", "claims"])
@pytest.mark.parametrize("policy", ["forged_policy.py", None])
def test_reading_results_runs_no_policy_of_a_row(
    made: Path, store: Path, tmp_path: Path, command: str, policy: str | None
):
    """The figure of what is possible plans the first stored optimization again."""
    reference = held(store, made / "forged_policy.py")
    forge_rows(store, with_policy(policy or reference))
    output = ["-o", str(tmp_path / "report.html")] if command == "report" else []
    status = main(["study", command, str(store), *output, "--quiet"])
    assert status == (2 if command == "report" else 0)
    assert not was_run(made)


@pytest.mark.systems("profit")
def test_the_figure_of_what_is_possible_needs_no_trust(store: Path, tmp_path: Path):
    """Where no run has a policy of its own."""
    page = tmp_path / "report.html"
    assert main(["study", "report", str(store), "-o", str(page), "--quiet"]) == 0
    assert "possible" in page.read_text()


@pytest.mark.systems("profit")
def test_a_scenario_takes_a_policy_only_of_those_it_was_given(made: Path, store: Path):
    """A file of the store by its digest is none; once its caller has handed it, it is."""
    reference = held(store, made / "forged_policy.py")
    study = Study.from_text(TEXT)
    described = next(study.scenarios()).scenario
    described["scheduler"] |= {"id": "Forged", "policy": reference}
    spec = RunSpec.read(described)
    maker = ScenarioMaker(Store.open(store).inputs(), Path())
    for make in (maker.make, maker.optimization):
        with pytest.raises(NotTrusted, match=r"forged_policy\.py"):
            make(spec)
    assert not was_run(made)
    maker.load_policies([reference["sha256"]])
    assert maker.optimization(spec).scheduler == "Forged"
    assert was_run(made)


# ---------------------------------------------------------------------- studies that are kept


def naming_policy(content: dict[str, Any]) -> None:
    """Have a kept study name a policy."""
    content["text"] = f'policies = ["forged_policy.py"]\n{content["text"]}'


@pytest.mark.systems("profit")
@pytest.mark.parametrize("trust", [(), ("--trust",)])
def test_a_policy_is_never_taken_from_where_a_study_is_said_to_lie(made: Path, store: Path, trust: tuple[str, ...]):
    """The study states that the file lies beside it, and that the store holds no copy."""

    def change(content: dict[str, Any]) -> None:
        naming_policy(content)
        content["path"] = str(made / "plans.toml")

    forge_study(store, change)
    assert main(["study", "claims", str(store), "--quiet", *trust]) == 2
    assert not was_run(made)


@pytest.mark.systems("profit")
def test_a_policy_of_another_content_is_never_run(made: Path, store: Path):
    """Not even with --trust: the study was run with another one."""
    (store / "inputs" / ("0" * 64)).mkdir()
    shutil.copyfile(made / "forged_policy.py", store / "inputs" / ("0" * 64) / "forged_policy.py")

    def change(content: dict[str, Any]) -> None:
        naming_policy(content)
        reference = {"name": "forged_policy.py", "sha256": "0" * 64}
        content["inputs"]["forged_policy.py"] = reference

    forge_study(store, change)
    run_id = next(iter(Store.open(store).stored()))
    for command in (["claims", str(store)], ["rerun", str(store), run_id]):
        for trust in ((), ("--trust",)):
            assert main(["study", *command, "--quiet", *trust]) == 2
            assert not was_run(made)


@pytest.mark.systems("profit")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "../../../outside.csv"),
        ("name", "/outside.csv"),
        ("name", ".."),
        ("sha256", "../../outside"),
        ("sha256", "a" * 63),
    ],
)
def test_a_kept_study_names_no_file_outside_its_store(store: Path, key: str, value: str):
    """Its copies lie in folders of their digests, whoever runs it into another store."""

    def change(content: dict[str, Any]) -> None:
        content["inputs"]["x.csv"] = {"name": "x.csv", "sha256": "0" * 64} | {key: value}

    forge_study(store, change)
    opened = Store.open(store)
    assert opened.kept_studies() == []
    (damage,) = opened.damaged_studies
    assert "plans.json" in damage
    assert key in damage


OWN = {
    "schedulers": [
        {
            "label": "lp",
            "id": "Forged",
            "parameters": "{}",
            "policy": None,
            "path": ["schedulers"],
            "family": "lp",
            "varied": "{}",
            "traits": {"trigger": "start"},
        }
    ],
    "metrics": [
        {
            "id": "own",
            "unit": "",
            "sentence": "",
            "of": "run",
            "better": None,
            "words": "",
            "header": "",
            "form": "number",
            "scale": "",
            "is_detail": False,
            "condition": "",
            "workload": "any",
            "default": True,
        }
    ],
    "may_draw": False,
}


@pytest.mark.systems("profit")
@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("schedulers", "policy", "elsewhere.py"),
        ("schedulers", "parameters", "[1"),
        ("schedulers", "parameters", "[]"),
        ("schedulers", "varied", "7"),
        ("schedulers", "traits", {"trigger": "never"}),
        ("schedulers", "traits", {"nonsense": 1}),
        ("schedulers", "path", []),
        ("metrics", "id", "../../outside"),
        ("metrics", "id", "a b"),
    ],
)
def test_what_policies_are_said_to_bring_is_checked(
    made: Path, store: Path, tmp_path: Path, capsys: Any, part: str, key: str, value: object
):
    """It is kept as data that anybody may have written: one line, and no file anywhere else."""
    reference = held(store, made / "forged_policy.py")

    def change(content: dict[str, Any]) -> None:
        naming_policy(content)
        content["inputs"]["forged_policy.py"] = reference
        content["own"] = json.loads(json.dumps(OWN))
        content["own"][part][0][key] = value

    forge_study(store, change)
    before = sorted(tmp_path.rglob("*"))
    rejected(capsys, "study", "report", store, "-o", tmp_path / "report.html")
    assert sorted(tmp_path.rglob("*")) == before
    assert not was_run(made)


@pytest.mark.systems("profit")
@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.clear(),
        lambda s: s.pop("scheduler"),
        lambda s: s["settings"].update(nonsense=1),
        lambda s: s.update(settings=[]),
        lambda s: s.update(platform="x"),
        lambda s: s["workload"].update(generator="none"),
        lambda s: s.update(seed="x"),
    ],
)
def test_a_row_that_describes_no_run_is_refused(store: Path, capsys: Any, change: Callable[[Row], object]):
    """In one line that explains what is wrong."""
    opened = Store.open(store)
    run_id = next(iter(opened.stored()))

    def forge(row: Row) -> None:
        if row["run_id"] == run_id:
            change(row["scenario"])

    forge_rows(store, forge)
    assert run_id in rejected(capsys, "study", "rerun", store, run_id)


@pytest.mark.systems("profit")
def test_a_row_names_no_file_by_its_path(made: Path, store: Path, capsys: Any):
    """A run that is repeated reads what its store holds, and nothing else of this machine."""
    bag = made / "bag.csv"
    bag.write_text("id,flops\n1,1000\n")

    def change(row: Row) -> None:
        row["scenario"]["workload"] = {"file": str(bag)}

    line = rejected(capsys, "study", "rerun", store, forge_rows(store, change))
    assert "workload.file" in line
    assert str(bag) in line


@pytest.mark.systems("profit")
@pytest.mark.parametrize(
    ("key", "items", "named"),
    [
        ("cfg", ["tracing:yes", "tracing/filename:{victim}"], "'tracing'"),
        ("cfg", ["network/crosstraffic:1 tracing:yes tracing/filename:{victim}"], "crosstraffic"),
        ("cfg", ["model-check/dot-output:{victim}"], "'model-check/dot-output'"),
        ("log", ["root.app:file:{victim}"], "settings.log"),
    ],
)
def test_a_row_has_simgrid_write_no_file(
    store: Path, tmp_path: Path, capsys: Any, key: str, items: list[str], named: str
):
    """A stranger's options of SimGrid, too, are refused; such options are the command line's."""
    victim = tmp_path / "victim"
    victim.write_text("precious")

    def change(row: Row) -> None:
        told = [item.format(victim=victim) for item in items]
        row["scenario"]["settings"] |= {"driver": "simgrid", key: told}
        row["scenario"]["scheduler"] = {"id": "wq", "parameters": {}}

    run_id = next(iter(Store.open(store).stored()))
    forge_rows(store, change)
    line = rejected(capsys, "study", "rerun", store, run_id, "--trust")
    assert run_id in line
    assert named in line
    assert victim.read_text() == "precious"


def test_a_report_writes_no_file_elsewhere(tmp_path: Path):
    """Whatever a name is made of that a study or a store brings."""
    from gridsched.page.study_report import REPORT_FILES

    target = tmp_path / "new" / "r_files"
    for name in ("../outside.csv", str(tmp_path / "outside.csv"), "..", "", "a/b"):
        with pytest.raises(InputError, match="name of a file"):
            REPORT_FILES.write(target, {name: "x"})
    assert not list(tmp_path.rglob("outside.csv"))
    assert not target.exists()
