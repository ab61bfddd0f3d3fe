"""Descriptions of runs, and studies that extend others."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from gridsched import Scenario, run, study_text
from gridsched.campaign.kept_studies import KeptStudies
from gridsched.cli.app import load_command, main
from gridsched.errors import InputError
from gridsched.files.json_files import canonical_text
from gridsched.model.rules import EnergyBudget, Rules
from gridsched.runs.run_spec import PlatformTable, RunSpec, Settings, WorkloadFile, generated_workload
from gridsched.runs.scenario_maker import ScenarioMaker, load
from gridsched.runs.schema import BEGIN, END, study_keys, study_schema
from gridsched.runs.study import Study
from gridsched.runs.study_document import parse_document, parse_study_file, shipped_study_file, shipped_study_files

# One description of a run: what is stored of it, and the same scenario made from it again.

ROOT = Path(__file__).parents[2]
EX_A = {"platform": {"file": str(ROOT / "platforms/ex_a.xml")}, "workload": {"file": str(ROOT / "examples/ex_a.csv")}}
DAY = """
generator = "utility"
special_machine_counts = [1]
general_machine_counts = [2, 2]
task_types = 10
special_task_types = [2]
days = 0.05
tasks_per_type = 30.0
tasks_per_type_deviation = 5.0
tasks_per_type_in_s = 7200.0
measured_from_s = 0.0
"""


def sha256(path: Path) -> str:
    """Return a digest without gridsched's help."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "name", ["tiny", "lecsa", "lecsa_readings", pytest.param("utility", marks=pytest.mark.systems("utility"))]
)
def test_stored_descriptions_are_read_and_written_alike(name: str):
    """What is read of a row is what the study asked for, with the same id."""
    for _, asked in zip(range(40), Study.shipped(name).scenarios(), strict=False):
        stored = json.loads(canonical_text(asked.scenario))
        spec = RunSpec.read(stored)
        assert spec == asked.spec
        assert spec.run_id == asked.run_id
        assert json.loads(canonical_text(spec.canonical())) == stored


@pytest.mark.parametrize(("key", "value"), [("log", ["root.app:file:/tmp/written"]), ("timeout_s", 1.0)])
def test_how_a_run_is_watched_is_not_stored(key: str, value: object):
    """It decides no result, so it is neither in a description nor taken from one, whoever wrote that."""
    spec = next(Study.shipped("tiny").scenarios()).spec
    watched = spec.model_copy(update={key: value})
    assert (watched.run_id, watched.canonical()) == (spec.run_id, spec.canonical())
    stored = json.loads(canonical_text(spec.canonical()))
    with pytest.raises(InputError, match=f"{key} is not a known key"):
        RunSpec.read(stored | {key: value})


def test_what_is_usual_decides_no_run_id():
    """A setting or parameter with its default is not stored, so one that comes later changes no id."""
    text = 'name = "s"\nseed = 1\ndriver = "reference"\nschedulers = "wqr"\n' + "".join(
        f'{part} = "{section["file"]}"\n' for part, section in EX_A.items()
    )
    default = text.replace("seed", 'execution_mode = "auto"\nhosts_off = []\nseed').replace(
        '"wqr"', '{id = "wqr", max_replicas = 2}'
    )
    (first,), (second,) = (Study.from_text(each, "s.toml").scenarios() for each in (text, default))
    assert first == second
    assert first.scenario["settings"] == {"driver": "reference"}
    assert first.scenario["scheduler"] == {"id": "wqr"}


def test_a_spec_goes_through_json_and_gives_the_same_run(tmp_path: Path):
    """Serialized, read back and run: the same records."""
    paths = {part: Path(section["file"]) for part, section in EX_A.items()}
    places = {sha256(path): path for path in paths.values()}
    named = {part: {"file": {"name": path.name, "sha256": sha256(path)}} for part, path in paths.items()}
    spec = RunSpec(
        **named,
        scheduler={"id": "wqr", "parameters": {"max_replicas": 3}},
        settings=Settings(driver="reference", energy_budget_j=1e9, pending_slots=1),
        seed=3,
    )
    again = RunSpec.read(json.loads(canonical_text(spec.canonical())))
    assert again == spec
    first, second = (ScenarioMaker(places, tmp_path).make(each) for each in (spec, again))
    assert first.rules == Rules(pending_slots=1, budget=EnergyBudget(1e9))
    assert run(first).summary() == run(second).summary()


def test_a_run_from_python_goes_into_a_study_and_back(tmp_path: Path, monkeypatch):
    """Files, parameters, rules, prices, seed: the same loaded run, with the same records."""
    monkeypatch.chdir(ROOT)
    (tmp_path / "prices.csv").write_text("time_s,energy_cost_per_kwh\n0,0.5\n")
    first = Scenario(
        "platforms/ex_a.xml",
        Path("examples/ex_a.csv"),
        "wqr",
        {"max_replicas": 3},
        seed=3,
        replicate=1,
        driver="reference",
        pending_slots=1,
        power=("h1=5:40:60",),
        budget=EnergyBudget(money=1e3, prices=str(tmp_path / "prices.csv")),
        timeout_s=60.0,
    )
    study = Study.from_text(study_text(first, "one"), tmp_path / "one.toml")
    (stored,) = study.scenarios()
    places = {file.sha256: file.path for file in study.inputs.values()}
    second = load(ScenarioMaker(places, tmp_path).make(stored.spec.model_copy(update={"timeout_s": study.timeout_s})))
    loaded = load(first)
    assert set(second.inputs.values()) == set(loaded.inputs.values())
    for name in ("seed", "replicate", "scheduler", "rules", "power", "timeout_s"):
        assert getattr(second, name) == getattr(loaded, name)
    assert second.make_scheduler().parameters == loaded.make_scheduler().parameters
    assert run(second).summary() == run(first).summary()


def test_command_study_and_python_ask_for_the_same_run(tmp_path: Path, capsys: pytest.CaptureFixture):
    """One description whoever writes it: the same settings, budget, parameters and results."""
    files = {part: section["file"] for part, section in EX_A.items()}
    keys = {"driver": "reference", "power": ("h1=5:40:60",), "energy_budget_j": 1e9, "pending_slots": 1, "seed": 3}
    options = [
        f"--{name.replace('_', '-')}={''.join(each) if name == 'power' else each}" for name, each in keys.items()
    ]
    named = [f"--{part}={file}" for part, file in files.items()]
    assert main(["run", *named, *options, "--scheduler", "wqr", "--set", "max_replicas=3", "--json"]) == 0
    by_command = json.loads(capsys.readouterr().out)
    text = tomli_w.dumps({"name": "one", **files, **keys, "schedulers": [{"id": "wqr", "max_replicas": 3}]})
    study = Study.from_text(text, tmp_path / "one.toml")
    places = {file.sha256: file.path for file in study.inputs.values()}
    by_study = run(ScenarioMaker(places, tmp_path).make(next(study.scenarios()).spec))
    del keys["energy_budget_j"]
    by_python = run(Scenario(*files.values(), "wqr", {"max_replicas": 3}, **keys, budget=EnergyBudget(1e9)))
    assert by_study.summary() == by_python.summary()
    assert {name: by_command[name] for name in ("makespan_s", "energy_j")}.items() <= by_python.summary().items()
    told = [each.provenance for each in (by_study, by_python)]
    told = [by_command["provenance"], *json.loads(canonical_text(told))]
    for each in told:
        del each["command"], each["platform"], each["workload"], each["inputs"]
    assert told[0] == told[1] == told[2]


def test_what_exists_in_memory_alone_goes_into_no_study():
    """The part is named."""
    loaded = load(Scenario(EX_A["platform"]["file"], EX_A["workload"]["file"]))
    with pytest.raises(InputError, match="platform"):
        study_text(loaded, "one")


@pytest.mark.systems("utility")
def test_what_is_set_goes_before_the_generators_rules(tmp_path: Path):
    """A rule set to its usual value is set, too: 0 pending slots, where the generator sets 1."""
    workload = tomllib.loads(DAY)
    described = {
        "platform": {},
        "workload": {k: tuple(v) if isinstance(v, list) else v for k, v in workload.items()},
        "scheduler": {"id": "max_max_upe"},
    }
    maker = ScenarioMaker({}, tmp_path)
    default = maker.make(RunSpec(**described, settings=Settings(driver="reference")))
    settings = Settings(driver="reference", pending_slots=0, horizon_s=600.0)
    changed = maker.make(RunSpec(**described, settings=settings))
    assert (default.pending_slots, default.mapping_interval_s, default.horizon_s) == (1, 60.0, 4320.0)
    assert (changed.pending_slots, changed.mapping_interval_s) == (0, 60.0)
    assert changed.horizon_s == 600.0
    assert changed.tasks is default.tasks


def test_a_missing_file_is_named():
    """By the name it had and its content."""
    reference = {"name": "p.xml", "sha256": "0" * 64}
    described = {**EX_A, "platform": {"file": reference}, "scheduler": {"id": "wq"}, "settings": {}}
    with pytest.raises(InputError, match=r"'p\.xml'.*0{16}"):
        ScenarioMaker({}, Path()).make(RunSpec(**described))


# ---------------------------------------------------------------------- input hashes


def test_provenance_has_the_hashes_of_all_inputs():
    """Platform, workload, input files of tasks: by path, with their SHA-256."""
    paths = [ROOT / name for name in ("platforms/ex_a.xml", "examples/data_bag.csv", "examples/data_files.csv")]
    scenario = Scenario(paths[0], ROOT / "examples/ex_a.csv", "wq", driver="reference")
    inputs = run(scenario).provenance["inputs"]
    assert inputs == {str(path): sha256(path) for path in (paths[0], ROOT / "examples/ex_a.csv")}
    loaded = load(Scenario(paths[0], paths[1], "wq", files=paths[2]))
    assert loaded.inputs == {str(path): sha256(path) for path in paths}


@pytest.mark.systems("utility")
def test_files_of_a_generator_are_inputs(tmp_path: Path):
    """The TOML and the CSV files that it names."""
    (tmp_path / "c.csv").write_text("utility_class,start_time,start_fraction,urgency_modifier\n0,0,1,1\n")
    day = tmp_path / "day.toml"
    day.write_text(DAY.replace("generator", "classes_csv = 'c.csv'\nkind"))
    assert set(load(Scenario(None, day)).inputs.items()) == {
        (str(path), sha256(path)) for path in (day, tmp_path / "c.csv")
    }


def test_stored_runs_keep_the_hashes_of_their_study(tmp_path: Path):
    """A scenario made from a study has them under the names in the study."""
    study = Study.from_text(
        'name = "s"\ndriver = "reference"\nschedulers = "wq"\n'
        f'platform = "{ROOT}/platforms/ex_a.xml"\n'
        f'workload = "{ROOT}/examples/ex_a.csv"\n'
    )
    places = {file.sha256: file.path for file in study.inputs.values()}
    made = ScenarioMaker(places, tmp_path).make(next(study.scenarios()).spec)
    assert made.inputs == {file.name: file.sha256 for file in study.inputs.values()}


# ---------------------------------------------------------------------- the reference


@pytest.mark.systems
def test_the_reference_of_study_keys_is_generated():
    """docs/campaigns.md holds what the models say; gridsched study schema --table prints it."""
    text = (ROOT / "docs/campaigns.md").read_text()
    assert text.partition(f"{BEGIN}\n")[2].partition(f"\n{END}")[0] == study_keys()


@pytest.mark.parametrize("name", sorted(shipped_study_files()))
def test_the_schema_knows_every_key_of_the_shipped_studies(name: str):
    """At the top and in the sections."""
    schema = study_schema()
    content = tomllib.loads(shipped_study_file(name).read_text())
    assert set(content) <= set(schema["properties"])
    for section in ("platform", "workload"):
        known = [
            schema["$defs"][choice["$ref"].rpartition("/")[2]]["properties"]
            for choice in schema["properties"][section]["anyOf"]
            if "$ref" in choice
        ]
        keys = set(content.get(section, {}))
        assert not keys or any(keys <= set(each) for each in known)


def test_the_schema_takes_lists_as_axes():
    """A key of a run takes a value or a list of them, and keeps its limits."""
    schema = study_schema()
    for properties in (schema["properties"], schema["$defs"]["BagWorkload"]["properties"]):
        name = "pending_slots" if "pending_slots" in properties else "tasks"
        value, values = properties[name]["anyOf"]
        assert (value["type"], value["minimum"]) == ("integer", 0)
        assert values == {"type": "array", "items": value}
    assert "anyOf" not in schema["properties"]["name"]


def options_of(*command: str) -> set[str]:
    """Return a command's options as keys are spelled."""
    found = load_command(command[0])
    for name in command[1:]:
        found = found.commands[name]
    return {
        option[2:].replace("-", "_")
        for parameter in found.params
        for option in parameter.opts
        if option.startswith("--")
    }


def test_keys_are_spelled_as_options():
    """All that decides a run, and a platform from a table; docs/campaigns.md explains the rest."""
    text = (ROOT / "docs/campaigns.md").read_text()
    table = text.partition("### Keys and options")[2].partition("###")[0]
    elsewhere = {"scheduler", "set", "batsim_start", "log", "export", "json", "group_by"}
    output = {"output", "force", "quiet", "sg_cfg", "sg_log"}
    trace = {
        "files",
        "nodes",
        "nodes_from",
        "procs_per_node",
        "columns",
        "boot",
        "shutdown",
        "allocation",
        "partitions",
    }
    trace |= {"outcomes_from", "requests", "slurm_conf", "profiles", "log_zone", "cluster"}
    assert [name for name in elsewhere | trace if f"--{name.replace('_', '-')}" not in table] == []
    keys = {*Settings.model_fields, "platform", "workload", "seed", "timeout_s"}
    assert options_of("run") - elsewhere - output - trace <= keys
    assert trace <= set(WorkloadFile.model_fields)
    assert keys - options_of("run") == {"series_step_s"}
    made = set(PlatformTable.model_fields) - {"generator", "table", "shuffle"}
    assert made <= options_of("platform", "from-table")
    sampled = {
        "tasks",
        "mean_flops",
        "heterogeneity",
        "input_bytes",
        "output_bytes",
        "seed",
        "submit_from_s",
        "submit_until_s",
    }
    assert sampled <= options_of("workload", "generate")
    assert sampled == set(generated_workload("bag").model_fields) - {"generator"}


def test_several_errors_of_a_study_are_told_at_once():
    """The mistyped key, the number in quotes, and what is missing; `seeds` means replicates."""
    text = 'name = "x"\nreplicates = "many"\nseeds = 3\nseed = "1e3"\nschedulers = ["wq"]\n'
    with pytest.raises(InputError) as told:
        parse_document(text, "s.toml")
    message = str(told.value)
    assert "Did you mean 'replicates'" in message
    for fact in ("seeds", "'many'", "seed is '1e3'", "whole number"):
        assert fact in message
    assert "parse" not in message


# Studies that say only in what they differ from another (the key ``extends``).

BASE: dict[str, Any] = {
    "name": "base",
    "seed": 4,
    "replicates": 2,
    "driver": "reference",
    "schedulers": ["wq", "lecsa"],
    "platform": {"generator": "table", "table": "machines.csv", "hosts": 3},
    "workload": {"generator": "bag", "tasks": 5, "length_flop": 1e9},
    "report": {"where": {"scheduler": "wq", "replicate": 0}},
    "claims": "lecsa",
    "figures": [{"name": each, "kind": "best", "metric": "makespan_s"} for each in ("bars", "more")],
}


def write(folder: Path, name: str, keys: dict[str, Any]) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(tomli_w.dumps(keys), encoding="utf-8")
    return path


def content_of(folder: Path, **own: Any) -> Any:
    """Return the content of a study that extends `BASE`."""
    write(folder, "base", BASE)
    text = tomli_w.dumps({"name": "own", "extends": "base.toml", **own})
    return parse_study_file(text, str(folder / "own.toml"))


def refusal(folder: Path, **own: Any) -> str:
    with pytest.raises(InputError) as refused:
        content_of(folder, **own)
    return str(refused.value)


def test_tables_change_key_by_key_and_all_else_whole(tmp_path: Path):
    """The rest is as it was, in its order."""
    document = content_of(
        tmp_path, driver="simgrid", schedulers=["wqr"], workload={"tasks": 7}, report={"where": {"replicate": 1}}
    )
    content = document.content
    assert (content.name, content.seed, content.replicates) == ("own", 4, 2)
    assert document.settings == {"driver": "simgrid"}
    assert content.schedulers == ("wqr",)
    assert list(content.workload.items()) == [("generator", "bag"), ("tasks", 7), ("length_flop", 1e9)]
    assert content.platform == BASE["platform"]
    assert content.report.where == {"replicate": 1}
    assert content.claims == "lecsa"


def test_figures_change_one_by_one(tmp_path: Path):
    """In their places, with those keys that are given; new ones are appended. A file of claims is another."""
    new = {"name": "lines", "kind": "lines", "metric": "energy_j", "along": "hosts"}
    content = content_of(tmp_path, figures=[new, {"name": "bars", "caption": "Bars."}], claims="own.py").content
    assert [(each.name, each.metric, each.caption) for each in content.figures] == [
        ("bars", "makespan_s", "Bars."),
        ("more", "makespan_s", ""),
        ("lines", "energy_j", ""),
    ]
    assert content.claims == "own.py"


def test_the_text_stands_by_itself(tmp_path: Path):
    """It is what a store keeps; the study that was extended may be gone by then."""
    document = content_of(tmp_path, workload={"tasks": 7}, figures=[{"name": "more", "caption": "M"}])
    (tmp_path / "base.toml").unlink()
    kept = parse_document(document.text, document.path)
    assert (kept.content, kept.settings) == (document.content, document.settings)
    assert "extends" not in tomllib.loads(document.text)


def test_what_a_store_keeps_reads_no_other_study(tmp_path: Path):
    """A forged copy is not to open files beside the place where its study once lay."""
    write(tmp_path, "base", BASE)
    with pytest.raises(InputError, match="extends"):
        parse_document('name = "own"\nextends = "base.toml"\nschedulers = "wq"', "own.toml")


def test_input_files_of_either_study(tmp_path: Path):
    """They lie beside it, or beside the one that it extends."""
    tiny = Study.shipped("tiny")
    path = write(tmp_path, "own", {"name": "own", "extends": "tiny", "replicates": 1})
    own = Study.from_file(path)
    assert own.inputs["tiny_machines.csv"].sha256 == tiny.inputs["tiny_machines.csv"].sha256
    one = tiny.with_replicates(1)
    assert [run.run_id for run in own.scenarios()] == [run.run_id for run in one.scenarios()]
    (tmp_path / "tiny_machines.csv").write_bytes(
        shipped_study_file("tiny").with_name("tiny_machines.csv").read_bytes() + b"\n"
    )
    assert Study.from_file(path).inputs["tiny_machines.csv"].path.parent == tmp_path


@pytest.mark.parametrize("name", ["../base.toml", "/base.toml", "", "..", 3, ["base.toml"]])
def test_only_files_beside_it_or_shipped_studies(name: Any, tmp_path: Path):
    """No other folder, and no other kind of value."""
    message = refusal(tmp_path, extends=name)
    assert "own.toml: extends" in message
    assert "comes with gridsched" in message


def test_unknown_and_missing_studies(tmp_path: Path):
    """A near name is suggested; a file that is not there is named."""
    assert "'backfilling'" in refusal(tmp_path, extends="backfiling")
    assert str(tmp_path / "absent.toml") in refusal(tmp_path, extends="absent.toml")


def test_one_level_and_no_circle(tmp_path: Path):
    """What is extended extends nothing, itself least of all."""
    write(tmp_path, "middle", {"name": "middle", "extends": "base.toml"})
    assert "middle.toml" in refusal(tmp_path, extends="middle.toml")
    path = write(tmp_path, "circle", {"name": "circle", "extends": "circle.toml"})
    with pytest.raises(InputError, match=r"circle\.toml"):
        Study.from_file(path)


def test_faults_name_both_files(tmp_path: Path):
    """Errors in either file: a wrong value, a doubled figure, figures without names."""
    wrong = refusal(tmp_path, workload={"tasks": 7}, replicates=0)
    assert "own.toml" in wrong
    assert "base.toml" in wrong
    assert "replicates" in wrong
    assert "figures[0].name" in refusal(tmp_path, figures=[{"caption": "M"}])
    again = {"name": "more", "kind": "best"}
    twice = content_of(tmp_path, figures=[{"name": "more", "caption": "M"}, again])
    assert [figure.name for figure in twice.content.figures] == ["bars", "more", "more"]


def test_a_store_keeps_it_whole(tmp_path: Path):
    """With its files, wherever they came from; the same runs follow from the copy."""
    for folder in ("inputs", "studies"):
        (tmp_path / folder).mkdir()
    path = write(tmp_path, "own", {"name": "own", "extends": "tiny", "replicates": 1})
    study = Study.from_file(path)
    KeptStudies(tmp_path).add(study)
    path.unlink()
    (kept,), damage = KeptStudies(tmp_path).read()
    assert damage == []
    copy = kept.study(trust=False)
    assert [run.run_id for run in copy.scenarios()] == [run.run_id for run in study.scenarios()]
    assert copy.inputs["tiny_machines.csv"].path.is_relative_to(tmp_path)
