"""What a `Scenario` and `compare` take from Python: records may be dictionaries, and whatever is wrong is one error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsched import Carbon, Scenario, Tariff, compare, run
from gridsched.errors import InputError
from gridsched.model.rules import EnergyBudget
from gridsched.workloads.traces.trace_options import TraceOptions

ROOT = Path(__file__).resolve().parents[2]
EX_A = ROOT / "platforms" / "ex_a.xml", ROOT / "examples" / "ex_a.csv"


def scenario(**values: Any) -> Scenario:
    return Scenario(*EX_A, **{"scheduler": "mct", "driver": "reference", **values})


@pytest.mark.parametrize(
    ("name", "fields", "record"),
    [
        ("budget", {"energy_j": 1e9}, EnergyBudget(energy_j=1e9)),
        ("carbon", {"intensity": 300.0}, Carbon(intensity=300.0)),
        ("tariff", {"price": 2.0, "energy_cost_per_j": 1e-7}, Tariff(price=2.0, energy_cost_per_j=1e-7)),
        ("trace", {"requests": "exact"}, TraceOptions(requests="exact")),
    ],
)
def test_a_dictionary_is_the_record_of_its_fields(name: str, fields: dict[str, Any], record: object):
    """The scenarios are equal, and so are the metrics of their runs, by `run` and by `compare`."""
    assert getattr(scenario(**{name: fields}), name) == record
    if name == "trace":
        return
    expected = run(scenario(**{name: record})).summary()
    assert run(scenario(**{name: fields})).summary() == expected
    found = compare(*EX_A, ["mct"], driver="reference", workers=1, **{name: fields})
    assert found.frame.loc["mct", "energy_j"] == expected["energy_j"]


def test_options_of_a_log_as_a_dictionary():
    log = ROOT / "examples" / "four_nodes.swf"
    trace = run(Scenario(None, log, "fcfs", driver="reference", trace={"nodes": 6})).trace
    assert len(trace.platform) == 6


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"budget": {"energie_j": 1e5}}, ["budget", "'energie_j'", "energy_j"]),
        ({"budget": {"energy_j": -1.0}}, ["energy_j", "-1"]),
        ({"budget": {}}, ["budget"]),
        ({"budget": 5.0}, ["budget", "5"]),
        ({"carbon": {"intensity": "many.csv", "fill": "x"}}, ["fill"]),
        ({"tariff": {"pue": 1.2}}, ["tariff", "price"]),
        ({"trace": {"node": 4}}, ["trace", "'node'", "nodes"]),
        ({"trace": 4}, ["trace", "TraceOptions"]),
        ({"seed": 1.5}, ["seed", "1.5", "whole"]),
        ({"seed": "1"}, ["seed", "'1'"]),
        ({"seed": -1}, ["-1"]),
        ({"replicate": 0.5}, ["replicate", "0.5"]),
        ({"parameters": [1]}, ["parameters"]),
        ({"scheduler": 3}, ["scheduler", "3"]),
        ({"scheduler": None}, ["scheduler", "None"]),
        ({"timeout_s": "5"}, ["timeout_s", "'5'"]),
        ({"power_cap_w": "5"}, ["power_cap_w", "'5'"]),
        ({"window_s": 5}, ["window_s"]),
        ({"window_s": (0.0, 1.0, 2.0)}, ["window_s"]),
        ({"window_s": ("a", "b")}, ["window_s"]),
        ({"files": 3}, ["files"]),
        ({"inputs": 3}, ["inputs"]),
        ({"types": 3}, ["types"]),
        ({"run_times": 3}, ["run_times"]),
        ({"estimates": {}}, ["estimates"]),
    ],
)
def test_what_is_wrong_is_an_error_that_names_it(values: dict[str, Any], words: list[str]):
    with pytest.raises(InputError) as refused:
        run(scenario(**values))
    assert [word for word in words if word not in str(refused.value)] == []


def test_numbers_of_numpy_are_seeds():
    assert run(scenario(seed=np.int64(3))).summary() == run(scenario(seed=3)).summary()


def test_a_text_names_schedulers():
    """One or several; compare("...", "mct") meant m, c and t before."""
    found = compare(*EX_A, "mct", driver="reference", workers=1)
    assert list(found.frame.index) == ["mct"]
    assert list(compare(*EX_A, "mct, wq", driver="reference", workers=1).frame.index) == ["mct", "wq"]


@pytest.mark.parametrize(("schedulers", "word"), [(3, "3"), ([3], "3"), ([None], "None")])
def test_what_names_no_scheduler(schedulers: Any, word: str):
    with pytest.raises(InputError, match=word):
        compare(*EX_A, schedulers, driver="reference", workers=1)
