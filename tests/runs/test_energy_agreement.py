"""Whatever differs between SimGrid's plugin and the model is a failed run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gridsched.errors import SimulationError
from gridsched.model.platform import Platform
from gridsched.platform_io.xml_reader import read_platform
from gridsched.runs.run import RunResult, check_energy_agreement, run
from gridsched.runs.scenario import Scenario

ROOT = Path(__file__).parents[2]
EX_A = ROOT / "platforms/ex_a.xml"


def run_on(platform: Platform | Path, **changes) -> RunResult:
    """Run WQ's worked example."""
    return run(Scenario(platform, ROOT / "examples/ex_a.csv", "wq", timeout_s=60.0, **changes))


def with_more_watts(host: int, factor: float) -> Platform:
    """Return EX-A with another power of one busy host than its file says."""
    platform = read_platform(EX_A)
    hosts = list(platform.hosts)
    first, *others = hosts[host].pstates
    changed = replace(first, epsilon_w=first.epsilon_w * factor, busy_w=first.busy_w * factor)
    hosts[host] = replace(hosts[host], pstates=(changed, *others))
    return replace(platform, hosts=tuple(hosts))


def test_runs_that_agree_pass():
    """The worked example agrees; the reference driver has no plugin to agree with."""
    check_energy_agreement(run_on(EX_A))
    check_energy_agreement(run_on(EX_A, driver="reference"))


@pytest.mark.parametrize("host", [0, 2])
def test_a_difference_names_host_and_figures(host: int):
    """SimGrid reads the file, the model one wattage off by 1e-8: the run is a failed one."""
    result = run_on(with_more_watts(host, 1 + 1e-8), platform_file=EX_A)
    with pytest.raises(SimulationError) as raised:
        check_energy_agreement(result)
    message = str(raised.value)
    assert f"host 'h{host + 1}'" in message
    assert repr(result.plugin_j[f"h{host + 1}"]) in message
    assert repr(result.energy.total_j.tolist()[host]) in message
    assert "(1 of 3 hosts differ)" in message
    assert "\n" not in message


def test_a_difference_within_the_tolerance_passes():
    """One part in 10^11 is rounding."""
    check_energy_agreement(run_on(with_more_watts(0, 1 + 1e-11), platform_file=EX_A))


def test_a_plugin_that_gives_no_number_is_a_difference():
    """nan agrees with nothing."""
    result = run_on(EX_A)
    broken = replace(result, plugin_j={**result.plugin_j, "h2": float("nan")})
    with pytest.raises(SimulationError, match=r"'h2'.*nan"):
        check_energy_agreement(broken)
