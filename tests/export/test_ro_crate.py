"""The metadata of an export: the rules of RO-Crate 1.1, and facts of the run."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from gridsched.cli.app import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return an export."""
    folder = tmp_path_factory.mktemp("crate") / "out"
    run = ("run", "--platform", ROOT / "platforms/ex_a.xml", "--workload", ROOT / "examples/ex_a.csv")
    assert main([str(word) for word in (*run, "--driver", "reference", "--export", folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def entities(folder: Path) -> dict[str, dict]:
    """Return the entities by their ids, of which none is there twice."""
    crate = json.loads((folder / "ro-crate-metadata.json").read_text())
    assert crate["@context"] == "https://w3id.org/ro/crate/1.1/context"
    found = {each["@id"]: each for each in crate["@graph"]}
    assert len(found) == len(crate["@graph"])
    return found


def test_it_is_a_crate(folder, entities):
    """The descriptor, the root with what it must have, and each file of the folder as a part of it."""
    descriptor, root = entities["ro-crate-metadata.json"], entities["./"]
    assert descriptor["about"] == {"@id": "./"}
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert root["@type"] == "Dataset"
    assert root["name"]
    assert root["description"]
    assert date.fromisoformat(root["datePublished"])
    there = {each.name for each in folder.iterdir()} - {"ro-crate-metadata.json"}
    assert {each["@id"] for each in root["hasPart"]} == there
    for name in there:
        assert entities[name]["@type"] == "File"
        assert entities[name]["description"]


def test_all_that_is_referred_to_is_described(entities):
    """Each reference within the crate has its entity."""

    def references(value):
        if isinstance(value, dict):
            yield from [value["@id"]] if set(value) == {"@id"} else ()
            value = [each for key, each in value.items() if key != "@id"]
        if isinstance(value, list):
            for each in value:
                yield from references(each)

    for entity in entities.values():
        for id in references(list(entity.values())):
            assert id in entities or id.startswith("https://"), id


def test_the_run_is_an_action(folder, entities):
    """Its programs, and its inputs by the digests that the provenance has."""
    provenance = json.loads((folder / "provenance.json").read_text())
    action = entities["#run"]
    assert action["@type"] == "CreateAction"
    assert entities["#gridsched"]["softwareVersion"] == provenance["gridsched"]
    digests = {entities[each["@id"]]["identifier"] for each in action["object"]}
    assert digests == {f"sha256:{digest}" for digest in provenance["inputs"].values()}
    assert len(digests) == 2


def test_a_store_is_a_crate(tmp_path):
    """After a campaign: its rows, its study and the platform that it read, which all are there."""
    text = (
        'name = "two"\nseed = 1\nreplicates = 2\ndriver = "reference"\nnetwork = "none"\nmetrics = ["makespan_s"]\n'
        'schedulers = ["mct"]\nplatform = "p.xml"\n[workload]\ngenerator = "bag"\ntasks = 4\nmean_flops = 1.0\n'
    )
    (tmp_path / "p.xml").write_bytes((ROOT / "platforms/ex_a.xml").read_bytes())
    (tmp_path / "two.toml").write_text(text)
    store = tmp_path / "store"
    assert main(["study", "run", str(tmp_path / "two.toml"), "--store", str(store), "--workers", "1", "--quiet"]) == 0
    found = {each["@id"]: each for each in json.loads((store / "ro-crate-metadata.json").read_text())["@graph"]}
    parts = {each["@id"] for each in found["./"]["hasPart"]}
    assert {"store.json", "studies/two.json"} <= parts
    assert [each.rpartition("/")[2] for each in parts if each.startswith("inputs/")] == ["p.xml"]
    assert all((store / each).is_file() for each in parts)
    assert sum(each.startswith("rows-") for each in parts) == 1
    assert found["./"]["description"].startswith("2 simulated runs of gridsched")
