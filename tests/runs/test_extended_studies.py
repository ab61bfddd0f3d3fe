"""Studies that say only in what they differ from another (the key ``extends``)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from gridsched.campaign.kept_studies import KeptStudies
from gridsched.errors import InputError
from gridsched.runs.study import Study
from gridsched.runs.study_document import parse_document, parse_study_file, studies_folder

CLAIM = {
    "kind": "number",
    "source": "table 1",
    "metric": "makespan_s",
    "paper": 1.0,
    "tolerance": 0.5,
    "tolerance_set": "before",
    "tolerance_ground": "before any run",
}
BASE: dict[str, Any] = {
    "name": "base",
    "seed": 4,
    "replicates": 2,
    "driver": "reference",
    "schedulers": ["wq", "lecsa"],
    "platform": {"generator": "table", "table": "machines.csv", "hosts": 3},
    "workload": {"generator": "bag", "tasks": 5, "length_flop": 1e9},
    "report": {"where": {"scheduler": "wq", "replicate": 0}},
    "claims": [{"id": each, "scheduler": "wq", **CLAIM} for each in ("A", "B", "C")],
    "figures": [{"name": "bars", "kind": "best", "metric": "makespan_s"}],
}


def write(folder: Path, name: str, keys: dict[str, Any]) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(tomli_w.dumps(keys), encoding="utf-8")
    return path


def content_of(folder: Path, **own: Any) -> Any:
    """Return what a study says that extends `BASE`."""
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
    assert [claim.id for claim in content.claims] == ["A", "B", "C"]


def test_claims_and_figures_change_one_by_one(tmp_path: Path):
    """In their places, with those keys that are given; new ones are appended."""
    content = content_of(
        tmp_path,
        claims=[{"id": "D", **CLAIM}, {"id": "B", "paper": 2.0}],
        figures=[{"name": "bars", "caption": "Bars."}],
    ).content
    assert [(claim.id, claim.paper, claim.scheduler) for claim in content.claims] == [
        ("A", 1.0, "wq"),
        ("B", 2.0, "wq"),
        ("C", 1.0, "wq"),
        ("D", 1.0, None),
    ]
    (figure,) = content.figures
    assert (figure.kind, figure.metric, figure.caption) == ("best", "makespan_s", "Bars.")


def test_the_text_stands_by_itself(tmp_path: Path):
    """It is what a store keeps; the study that was extended may be gone by then."""
    document = content_of(tmp_path, workload={"tasks": 7}, claims=[{"id": "B", "paper": 2.0}])
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
    (tmp_path / "tiny_machines.csv").write_bytes((studies_folder() / "tiny_machines.csv").read_bytes() + b"\n")
    assert Study.from_file(path).inputs["tiny_machines.csv"].path.parent == tmp_path


@pytest.mark.parametrize("name", ["../base.toml", "/base.toml", "", "..", 3, ["base.toml"]])
def test_only_files_beside_it_or_shipped_studies(name: Any, tmp_path: Path):
    """No other folder, and no other kind of value."""
    message = refusal(tmp_path, extends=name)
    assert "own.toml: extends" in message
    assert "comes with gridsched" in message


def test_unknown_and_missing_studies(tmp_path: Path):
    """A near name is told; a file that is not there is named."""
    assert "'parallel'" in refusal(tmp_path, extends="paralel")
    assert str(tmp_path / "absent.toml") in refusal(tmp_path, extends="absent.toml")


def test_one_level_and_no_circle(tmp_path: Path):
    """What is extended extends nothing, itself least of all."""
    write(tmp_path, "middle", {"name": "middle", "extends": "base.toml"})
    assert "middle.toml" in refusal(tmp_path, extends="middle.toml")
    path = write(tmp_path, "circle", {"name": "circle", "extends": "circle.toml"})
    with pytest.raises(InputError, match=r"circle\.toml"):
        Study.from_file(path)


def test_faults_name_both_files(tmp_path: Path):
    """Of what either says: a wrong value, a doubled claim, claims without ids."""
    wrong = refusal(tmp_path, workload={"tasks": 7}, replicates=0)
    assert "own.toml" in wrong
    assert "base.toml" in wrong
    assert "replicates" in wrong
    assert "claims[0].id" in refusal(tmp_path, claims=[{"paper": 2.0}])
    twice = content_of(tmp_path, claims=[{"id": "B", "paper": 2.0}, {"id": "B", **CLAIM}])
    assert [claim.id for claim in twice.content.claims] == ["A", "B", "C", "B"]


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
