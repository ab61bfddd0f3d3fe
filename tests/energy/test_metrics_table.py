"""The table of metrics: what its entries must say, and how users add their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import traces_by_hand as by_hand

from gridsched import power
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.metrics import METRICS, Metric, RunFacts, described, metrics_of, register_metric
from gridsched.metrics.derived_entries import share_above
from gridsched.metrics.table import shown_metrics, summary
from gridsched.model.timeline import host_timeline

UNITS = {"_s": "s", "_j": "J", "_w": "W", "_js": "J s", "_flops": "flop", "_g": "g"}


@pytest.fixture
def table() -> Iterator[dict[str, Metric]]:
    """The table, which is afterwards as it was before."""
    before = dict(METRICS)
    yield METRICS
    METRICS.clear()
    METRICS.update(before)


def facts(trace, **changes) -> RunFacts:
    """Return what the metrics of a trace are computed from."""
    return RunFacts(trace, trace_energy(trace), **changes)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_an_entry_is_whole(metric: Metric):
    """The unit is the one that the id ends with; the meaning is words without a full stop."""
    suffix = next((end for end in UNITS if metric.id.endswith(end)), "")
    assert metric.unit == UNITS.get(suffix, "")
    assert metric.sentence
    assert not metric.sentence.endswith(".")
    assert metric.title == (f"{metric.name} [{metric.unit}]" if metric.unit else metric.title)
    assert metric.is_share == (not metric.unit and "[%]" in metric.title)
    assert described(metric.id)["unit"] == metric.unit


def test_names_are_the_ids_in_words():
    """Without the unit, beginning with a capital."""
    names = {id: METRICS[id].name for id in ("makespan_s", "energy_delay_js", "wasted_flops")}
    assert names == {"makespan_s": "Makespan", "energy_delay_js": "Energy delay", "wasted_flops": "Wasted"}
    assert METRICS["makespan_above_bound"].title == "Makespan above bound [%]"
    assert METRICS["waste_ratio"].row_name == "share of the work wasted"


def test_the_driver_decides_whose_energy_it_is():
    """The plugin's of the computing hosts where it metered, the model's otherwise."""
    trace = by_hand.work_queue()
    plugin_j = {"h1": 1000.0, "h2": 500.0, "h3": 400.0, "master": 1e9}
    found = metrics_of(facts(trace, driver="simgrid", plugin_j=plugin_j))
    assert (found["energy_j"], found["energy_source"]) == (1900.0, "plugin")
    assert found["energy_worst_host_difference"] == pytest.approx(470 / 1470)
    assert found["energy_relative_difference"] == pytest.approx(530 / 2430)
    found = metrics_of(facts(trace, driver="reference"))
    assert (found["energy_j"], found["energy_source"]) == (2430.0, "model")
    assert "energy_relative_difference" not in found
    assert not {"energy_j", "energy_source"} & metrics_of(facts(trace)).keys()


def test_a_metric_of_ones_own_is_one_entry(table):
    """It is computed with each run that has it, after those of gridsched."""
    register_metric(Metric("joules_each_j", "J", "energy over tasks", lambda run: run.energy_j / 5))
    found = metrics_of(facts(by_hand.work_queue()))
    assert list(found)[-1] == "joules_each_j"
    assert found["joules_each_j"] == 2430 / 5


def test_a_table_shows_what_stands_in_it(table):
    """In order of the places; without power no energy, without the plugin not its; one's own last."""
    register_metric(Metric("mine", "", "mine", lambda run: 1.0))
    register_metric(Metric("first", "", "mine, too", lambda run: 1.0, places={"bag": -1}))
    row = {"energy_idle_j": 1.0, "mine": 1.0, "energy_j": 2.0, "makespan_s": 3.0, "first": 1.0}
    metered = {"energy_source": "plugin"}
    ids = [metric.id for metric in shown_metrics("bag", [metered, {**row, **metered}])]
    assert ids == ["first", "makespan_s", "energy_j", "energy_idle_j", "mine"]
    ids = [metric.id for metric in shown_metrics("bag", [metered, row])]
    assert ids == ["first", "makespan_s", "energy_idle_j", "mine"]
    ids = [metric.id for metric in shown_metrics("run", [{**row, "energy_j": float("nan")}])]
    assert ids == ["makespan_s", "mine", "first"]


@pytest.mark.parametrize("name", ["run", "bag", "system", "parallel", "notebook"])
def test_a_place_is_taken_once(name: str):
    """So that a table has one order; each column of a comparison has a heading."""
    places = [metric.places[name] for metric in METRICS.values() if name in metric.places]
    assert places
    assert len(set(places)) == len(places)


def test_ids_are_taken_once(table):
    """The same entry may come again, as a file may be imported twice; another one may not."""
    for _ in range(2):
        register_metric(Metric("mine", "", "mine", lambda run: 1.0))
    with pytest.raises(InputError, match="'makespan_s'"):
        register_metric(Metric("makespan_s", "s", "my own makespan", lambda run: 1.0))
    with pytest.raises(InputError, match="'my metric'"):
        register_metric(Metric("my metric", "", "mine", lambda run: 1.0))


def test_share_above():
    """Relative to the bound; nan where that is 0."""
    assert share_above(3.0, 2.0) == 0.5
    assert share_above(1.0, 0.0) != share_above(1.0, 0.0)


def test_all_metrics_of_a_run_cut_it_into_stretches_once(monkeypatch):
    """Energy, windows and the largest power are integrals of one timeline."""
    trace, cuts = by_hand.everything_at_once(), []

    def counted(trace):
        cuts.append(trace)
        return host_timeline(trace)

    apart = summary(trace, trace_energy(trace), (0.0, 20.0))
    monkeypatch.setattr(power, "host_timeline", counted)
    assert summary(trace, None, (0.0, 20.0)) == apart
    assert len(cuts) == 1
    found = facts(trace, window_s=(0.0, 20.0))
    assert found.power is None
    assert found.drawn_j.tolist() == [apart["window_energy_j"]]
