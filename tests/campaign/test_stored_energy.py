"""Which energies a stored row holds, by what they were found, and what is no result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gridsched.campaign.campaign import Options, run_campaign
from gridsched.campaign.messages import Job
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.platform_io.xml_reader import read_platform
from gridsched.runs.scenario import Scenario
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

ROOT = Path(__file__).resolve().parents[2]
EX_A = ROOT / "platforms/ex_a.xml"
#: Two hosts behind links of which one has a range of power [W].
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>
<zone id="net" routing="Full">
<host id="m" speed="10f"><prop id="role" value="master"/></host>
<host id="w1" speed="10f"><prop id="wattage_per_state" value="1:2:2"/></host>
<host id="w2" speed="10f"><prop id="wattage_per_state" value="1:2:2"/></host>
<link id="l1" bandwidth="10Bps" latency="0s"><prop id="wattage_range" value="1:3"/></link>
<link id="l2" bandwidth="10Bps" latency="0s"/>
<route src="m" dst="w1"><link_ctn id="l1"/></route>
<route src="m" dst="w2"><link_ctn id="l2"/></route>
</zone></platform>
"""
STUDY = """
name = "links"
seed = 1
replicates = 1
platform = "links.xml"
workload = {{ generator = "bag", tasks = 4, mean_flops = 100, heterogeneity = 0, input_bytes = 20 }}
schedulers = ["wq"]
driver = "{driver}"
network = "{network}"
"""


@pytest.mark.parametrize(
    ("driver", "network", "source"),
    [("simgrid", "platform", "plugin"), ("simgrid", "none", "plugin"), ("reference", "none", "model")],
)
def test_rows_say_which_energy_they_hold(tmp_path: Path, driver: str, network: str, source: str):
    """The links' energy is stored where a network is simulated, and who found the hosts'."""
    (tmp_path / "links.xml").write_text(PLATFORM)
    path = tmp_path / "links.toml"
    path.write_text(STUDY.format(driver=driver, network=network))
    study, store = Study.from_file(path), Store.create(tmp_path / "store")
    run_campaign(study, store, Options(workers=1))
    assert store.rows()["status"].tolist() == ["finished"], store.rows()["error"][0]
    for _ in range(2):  # from the segment, then from the Parquet file
        metrics = store.row(next(study.scenarios()).run_id)["metrics"]
        assert metrics["energy_source"] == source
        if network == "platform":
            idle_j = metrics["makespan_s"] * 1.0
            assert idle_j < metrics["energy_links_j"] <= 3 * idle_j
        else:
            assert metrics.get("energy_links_j") is None
        store.compact()


class _Maker(ScenarioMaker):
    """Makes the worked example with a wattage that is not its file's."""

    def make(self, scenario: dict[str, Any], timeout_s: float | None = None) -> Scenario:
        platform = read_platform(EX_A)
        first, *others = platform.hosts[0].pstates
        other = replace(first, epsilon_w=first.epsilon_w * 1.1, busy_w=first.busy_w * 1.1)
        changed = (replace(platform.hosts[0], pstates=(other, *others)), *platform.hosts[1:])
        return Scenario(
            replace(platform, hosts=changed), ROOT / "examples/ex_a.csv", "wq", platform_file=EX_A, timeout_s=timeout_s
        )


def test_energies_that_disagree_are_no_result(tmp_path: Path):
    """A run whose plugin and model differ beyond 1e-9 is a failed row that names the host."""
    row, result = perform(_Maker({}, tmp_path), Job("0" * 32, {"settings": {"driver": "simgrid"}}), 60.0)
    assert (row["status"], result) == ("failed", None)
    assert "host 'h1' has energy_j " in row["error"]
    assert "energy_model_j" in row["error"]
