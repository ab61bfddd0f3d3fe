"""Former names of options, keys and parameters: refused in one line that gives the new name; read where stored."""

from __future__ import annotations

import pytest

import gridsched as package
from gridsched import Study, Traits
from gridsched.errors import InputError, error_of_policy
from gridsched.renamed import as_stored, with_new_names
from gridsched.runs.run_spec import RunSpec
from gridsched.runs.study_document import parse_document, parse_study_file

#: Former and present names of options that are not keys of studies.
OPTIONS = [("by", "group_by")]
#: Former and present names of keys, each of which is an option too, of a run and of studies' tables.
KEYS = [
    ("max_barren_asks", "max_idle_wakeups"),
    ("on_exhaustion", "budget_enforcement"),
    ("share_idle", "idle_attribution"),
    ("place", "placement"),
    ("jobs_take", "allocation"),
    ("way", "execution_mode"),
]
#: Former and present names of traits of policies.
TRAITS = [
    ("heeds_power_cap", "respects_power_cap"),
    ("heeds_budget", "respects_budget"),
    ("attends", "observes_events"),
    ("asked", "trigger"),
]
#: Former and present names that the package offers.
NAMES = [("Drawn", "PlottedFigure")]
#: Tables of a study that have the keys; the others are settings.
TABLES = {"jobs_take": "workload"}
#: A value that each key takes, beside its default.
VALUES = {
    "way": "actors",
    "jobs_take": "cores",
    "place": "spread",
    "share_idle": "node",
    "on_exhaustion": "stop",
    "max_barren_asks": 9,
}
STUDY = """
name = "small"
seed = 1
driver = "reference"
schedulers = "fcfs"
{settings}
[workload]
file = "w.swf"
{workload}
"""


def as_option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def study(old: str, key: str) -> str:
    """Return the text of a study that sets the key `old` was or is, under the name `key`."""
    line, table = f"{key} = {VALUES[old]!r}", TABLES.get(old, "settings")
    return STUDY.format(**{name: line if name == table else "" for name in ("workload", "settings")})


@pytest.mark.parametrize(("old", "new"), OPTIONS + KEYS)
def test_a_former_option_is_refused_with_the_new_one(gridsched, ex_a, old: str, new: str):
    outcome = gridsched("run", *ex_a, "--scheduler", "wq", as_option(old), str(VALUES.get(old, "user")))
    (line,) = outcome.err.splitlines()
    assert (outcome.status, outcome.out) == (2, "")
    assert as_option(old) in line
    assert f"it is now {as_option(new)}." in line


@pytest.mark.parametrize(("old", "new"), KEYS)
def test_a_former_key_of_a_study_is_refused_with_the_new_one(old: str, new: str):
    with pytest.raises(InputError, match=f"{old} is not a known key. It is now '{new}'"):
        Study.from_text(study(old, old), "s.toml")


@pytest.mark.parametrize(("old", "new"), KEYS)
def test_a_study_that_a_store_keeps_is_read_under_former_names(old: str, new: str):
    kept, now = parse_document(study(old, old), "s.toml"), parse_study_file(study(old, new), "s.toml")
    assert (kept.content.workload, kept.settings) == (now.content.workload, now.settings)


@pytest.mark.parametrize(("old", "new"), KEYS)
def test_a_row_keeps_its_keys_and_its_run(old: str, new: str):
    """Rows were stored under the former name: they are the same runs."""
    value = {"settings": {}, "workload": {"file": {"name": "w.swf", "sha256": ""}}}
    value[TABLES.get(old, "settings")][old] = VALUES[old]
    stored = {**value, "platform": {}, "scheduler": {"id": "wq"}, "seed": 3, "replicate": 0}
    spec = RunSpec.read(stored)
    assert getattr(getattr(spec, TABLES.get(old, "settings")), new) == VALUES[old]
    assert spec.canonical() == stored
    assert as_stored({new: 1, "seed": 2}) == {old: 1, "seed": 2}


@pytest.mark.parametrize(("old", "new"), TRAITS)
def test_a_former_trait_is_refused_with_the_new_one(old: str, new: str):
    """What a user's policy raises names it; what a store keeps of a policy is read."""
    with pytest.raises(TypeError) as raised:
        Traits(**{old: True})
    assert f"it is now {new!r}" in str(error_of_policy(raised.value))
    kept = with_new_names([{old: 1, "other": ({old: 2},)}], all_names=True)
    assert kept == [{new: 1, "other": ({new: 2},)}]


@pytest.mark.parametrize(("old", "new"), NAMES)
def test_a_former_public_name_is_refused_with_the_new_one(old: str, new: str):
    with pytest.raises(AttributeError, match=f"'{old}'; it is now '{new}'"):
        getattr(package, old)
    with pytest.raises(ImportError) as raised:
        exec(f"from gridsched import {old}", {})
    assert f"it is now {new!r}" in str(error_of_policy(raised.value))
    assert hasattr(package, new)
