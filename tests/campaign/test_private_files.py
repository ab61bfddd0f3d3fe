"""A study names files of any kind; one that is not what its key takes it for does not get into the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from gridsched.campaign.campaign import run_campaign
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.runs.run_spec import FileReference, Settings, members_of, section_models
from gridsched.runs.study import Study
from gridsched.workloads.generators import GENERATORS

SECRET = "root:$6$SECRET:19000:0:99999:7:::\nbin:*:19000:0:99999:7:::\n"
HOST = '<host id="h" speed="1f"><prop id="wattage_per_state" value="1:2:2"/></host>'
FILES = {
    "p.xml": f'<?xml version="1.0"?>\n<platform version="4.1"><zone id="z" routing="Full">{HOST}</zone></platform>',
    "b.csv": "id,flops\n1,5\n",
    "j.jobs.csv": "id,submit_time_s,run_time_s,nodes,requested_time_s,profile\n1,0,5,1,9,\n",
    "t.csv": "Name,Total Cores,Rmax [TFlop/s],Power (kW)\nA,1000,100,50\nB,2000,300,90\n",
    "rows.csv": "time_s,g_per_kwh\n0,100\n",
    "s.csv": SECRET,
    "s.toml": SECRET,
    "s.xml": SECRET,
    "s.conf": SECRET,
    "s.py": SECRET,
}
BAG: dict[str, Any] = {"platform": "p.xml", "workload": {"file": "b.csv"}}
LOG: dict[str, Any] = {"workload": {"file": "j.jobs.csv", "nodes": 1}, "schedulers": ["fcfs"]}
TABLE: dict[str, Any] = {"platform": {"generator": "table", "table": "t.csv"}, "workload": {"file": "b.csv"}}
#: Model of a section, key -> a study, what is put into it, and the name of the private file.
KEYS: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any], str]] = {
    ("PlatformFile", "file"): (BAG, {"platform": "s.xml"}, "s.xml"),
    ("PlatformTable", "table"): (TABLE, {"platform": {"generator": "table", "table": "s.csv"}}, "s.csv"),
    ("PlatformTable", "join"): (
        TABLE,
        {"platform": {"generator": "table", "table": "t.csv", "join": "s.csv"}},
        "s.csv",
    ),
    ("WorkloadFile", "file"): (BAG, {"workload": "s.csv"}, "s.csv"),
    ("WorkloadFile", "files"): (BAG, {"workload": {"file": "b.csv", "files": "s.csv"}}, "s.csv"),
    ("WorkloadFile", "partitions"): (LOG, {"workload": LOG["workload"] | {"partitions": "s.toml"}}, "s.toml"),
    ("WorkloadFile", "slurm_conf"): (LOG, {"workload": {"file": "j.jobs.csv", "slurm_conf": "s.conf"}}, "s.conf"),
    ("WorkloadFile", "profiles"): (LOG, {"workload": LOG["workload"] | {"profiles": "s.toml"}}, "s.toml"),
    ("Settings", "deployment"): (BAG, {"deployment": "s.xml"}, "s.xml"),
    ("Settings", "events"): (BAG, {"events": "s.csv"}, "s.csv"),
    ("Settings", "carbon"): (BAG, {"carbon": "s.csv"}, "s.csv"),
    ("Settings", "carbon_forecast"): (BAG, {"carbon": "rows.csv", "carbon_forecast": "s.csv"}, "s.csv"),
    ("Settings", "prices"): (BAG, {"price": 5.0, "energy_cost": 1e-7, "prices": "s.csv"}, "s.csv"),
    ("Settings", "budget_prices"): (BAG, {"money_budget": 5.0, "budget_prices": "s.csv"}, "s.csv"),
    ("study", "claims"): (BAG, {"claims": "s.py"}, "s.py"),
    ("study", "policies"): (BAG, {"policies": ["s.py"]}, "s.py"),
}


def run_refused(folder: Path, study: dict[str, Any]) -> str:
    """Return why a study is refused, of which nothing may be kept."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    whole = {"name": "s", "driver": "reference", "schedulers": ["wq"], **study}
    (folder / "study.toml").write_text(tomli_w.dumps(whole))
    with pytest.raises(InputError) as refused, Store.for_campaign(folder / "store", trust=True) as store:
        run_campaign(Study.from_file(folder / "study.toml", trust=True), store)
    assert not (folder / "store").exists()
    return str(refused.value)


@pytest.mark.parametrize("key", KEYS, ids=".".join)
def test_a_private_file_is_not_copied_under_any_key(tmp_path: Path, key: tuple[str, str]):
    """It is read as its kind before anything is copied; the line names it."""
    study, changes, name = KEYS[key]
    assert name in run_refused(tmp_path, study | changes)


def test_every_key_that_names_a_file_is_tried():
    """Of platforms, workloads and settings; those of generators are tried below."""
    models = [Settings, *section_models("platform"), section_models("workload")[0]]
    named = {
        (model.__name__, key)
        for model in models
        for key, field in model.model_fields.items()
        if FileReference in members_of(field.annotation)
    }
    assert named == {key for key in KEYS if key[0] != "study"}


#: Keys of generators that go together, and what a key needs beside it.
TOGETHER = {
    "profit": {"machines_csv", "etc_csv", "apc_csv", "counts_csv"},
    "utility": {"machines_csv", "etc_csv", "apc_csv"},
    "parallel": {"clusters_csv", "etc_csv", "task_types_csv", "tasks_csv"},
    "workflow": {"tasks_csv", "times_csv", "edges_csv"},
}
NEEDS: dict[str, dict[str, Any]] = {"budget_prices": {"money_budget": 5.0}, "bag_csv": {"shape": "chains"}}
IDS = {"rigid_jobs": "fcfs", "profit": "mct", "robust": "mct", "utility": "max_util", "parallel": "max_util"}


@pytest.mark.parametrize(
    ("generator", "key"), [(name, key) for name, each in GENERATORS.items() for key in each.file_keys]
)
def test_a_private_file_is_not_copied_for_a_generator(tmp_path: Path, generator: str, key: str):
    """It is drawn from before it is copied."""
    name = "s.xml" if key == "platform" else "s.csv"
    keys = TOGETHER.get(generator, set())
    if generator == "workflow":
        keys = keys - {"tasks_csv" if key == "times_csv" else "times_csv"}
    workload = dict.fromkeys(keys if key in keys else {key}, name) | NEEDS.get(key, {})
    study: dict[str, Any] = {
        "workload": {"generator": generator, **workload},
        "schedulers": [IDS.get(generator, "heft")],
    }
    if generator == "workflow":
        study["platform"] = "p.xml"
    assert name in run_refused(tmp_path, study)


def test_a_file_that_only_left_out_runs_name_is_read_too(tmp_path: Path):
    """The store needs a copy of it to read the study again."""
    study = {"platform": "p.xml", "workload": ["b.csv", "s.csv"], "only": "workload == 'b.csv'"}
    assert "s.csv" in run_refused(tmp_path, study)


def test_a_file_that_one_run_can_read_is_kept(tmp_path: Path):
    """An axis may have a value under which another file does not fit; its runs fail, the others are done."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    bags = {"few.csv": "id,h\n1,5\n", "many.csv": "id,flops,input_files\n1,5,x\n"}
    (tmp_path / "many.csv").write_text(bags["many.csv"])
    (tmp_path / "files.csv").write_text("file,size_bytes,location\nx,5,h\n")
    study = {
        "name": "s",
        "driver": "reference",
        "network": "none",
        "schedulers": ["wq"],
        "platform": "p.xml",
        "group": {
            "bag": {
                "plain": {"workload": {"file": "b.csv"}},
                "misfit": {"workload": {"file": "many.csv"}},
                "fit": {"workload": {"file": "many.csv", "files": "files.csv"}},
            }
        },
    }
    (tmp_path / "study.toml").write_text(tomli_w.dumps(study))
    store = Store.create(tmp_path / "store")
    ended = run_campaign(Study.from_file(tmp_path / "study.toml"), store)
    assert (ended.done, ended.failed) == (3, 1)
    assert sorted(path.name for path in store.inputs().values()) == ["b.csv", "files.csv", "many.csv", "p.xml"]


def test_a_store_reads_no_file_again_that_it_has(tmp_path: Path, capsys):
    """A campaign that goes on needs the study's files only as the store has them."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "study.toml").write_text(
        tomli_w.dumps({"name": "s", "driver": "reference", "schedulers": ["wq"], **BAG})
    )
    words = ["study", "run", str(tmp_path / "study.toml"), "--store", str(tmp_path / "store"), "--workers", "1"]
    assert main(words) == 0
    assert main(words) == 0
    assert "1 of 1 runs stored" in capsys.readouterr().err
