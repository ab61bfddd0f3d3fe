"""An agent as a scheduler: common checks, both drivers, comparisons and studies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, Store, Study, compare, run
from gridsched.campaign.campaign import run_campaign
from gridsched.learning import AgentScheduler
from gridsched.testing import parametrize_with_checks

ROOT = Path(__file__).parents[2]
EX_A = (ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv")


def cheapest(observation, legal) -> int:
    """Return the legal host that needs the least energy."""
    return int(np.argmin(np.where(legal, observation[:, 2], np.inf)))


@parametrize_with_checks([AgentScheduler(), AgentScheduler(action="pstate"), AgentScheduler(action="job", jobs=3)])
def test_common_checks(scheduler, check):
    """Contract, legal places, bounds, no look-ahead, both drivers agree: as for every scheduler."""
    check(scheduler)


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_by_default_it_is_mct(driver):
    """On both drivers, to the last digit; SimGrid's plugin agrees."""
    ours, theirs = (run(Scenario(*EX_A, scheduler, driver=driver)) for scheduler in (AgentScheduler(), "mct"))
    assert ours.metrics()["energy_model_j"] == theirs.metrics()["energy_model_j"]
    assert np.array_equal(ours.energy_plugin_j, theirs.energy_plugin_j, equal_nan=True)


def test_in_a_comparison():
    """The cheapest host takes all of EX-A's tasks: h3, at 5 flop/J, 1050 J and the others idle."""
    comparison = compare(*EX_A, ["mct", AgentScheduler(cheapest)], driver="reference", workers=1)
    energy = comparison.frame["energy_model_j"].to_dict()
    assert energy["AgentScheduler"] == 5250 / 5 + 2 * 4 * 210
    assert energy["mct"] == 2510


AGENT = '''
"""An agent with what it has learned as a parameter."""
import numpy as np
from gridsched.learning import AgentScheduler


class Weighted(AgentScheduler):
    """Host of the least weighted sum."""

    observation = "estimates"

    def __init__(self, joules: float = 0.0) -> None:
        self.joules = joules

    def act(self, observation, legal):
        return int(np.argmin(np.where(legal, observation @ [1.0, 0.0, self.joules], np.inf)))
'''


def test_in_a_study(tmp_path):
    """A file with a subclass, and its parameter as an axis; joules alone put all on h3."""
    (tmp_path / "weighted.py").write_text(AGENT)
    (tmp_path / "s.toml").write_text(
        f'name = "agents"\ndriver = "reference"\n'
        f'[platform]\nfile = "{EX_A[0]}"\n[workload]\nfile = "{EX_A[1]}"\n'
        '[[schedulers]]\nid = "weighted.py"\njoules = [0.0, 1e6]\n'
    )
    study, store = Study.from_file(tmp_path / "s.toml"), Store.create(tmp_path / "store")
    run_campaign(study, store)
    assert sorted(store.rows(study)["energy_model_j"]) == [2510.0, 2730.0]
