"""Energy of GPUs and memory by hand, the same on both drivers, beside that of the hosts and not in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cli_cases import zone_xml

from gridsched import Scenario, run
from gridsched.analysis.bounds import carbon_above_bounds
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.export.archive import read_archive
from gridsched.export.export import write_export
from gridsched.metrics.resource_energy import resource_energy
from gridsched.model.carbon import Carbon
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.tariff import Tariff
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.check import check_platform_file
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import write_platform

DRIVERS = ["reference", pytest.param("simgrid", marks=pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL))]
#: A GPU draws 25 W, 300 W for a job; 2**30 byte of memory 1 W, 3 W for a job.
UNIT_POWER = (("gpu", 25.0, 300.0), ("memory_mb", 1.0, 3.0))
RESOURCES = (("memory_mb", 4096), ("gpu", 2))


def machine(n_nodes: int = 1, unit_power=UNIT_POWER, cores: int = 4) -> Platform:
    """Return nodes of some cores, 2 GPUs and 4 GiB."""
    pstates = (PState(1e9, 90.0, 100.0, 200.0),)
    has = {"cores": cores, "resources": RESOURCES, "unit_power": unit_power}
    hosts = tuple(Host(f"n{k}", pstates, **has) for k in range(n_nodes))
    return Platform(hosts, (Cluster("c", tuple(range(n_nodes))),))


def shared(platform: Platform, driver: str, **others) -> Scenario:
    """Return two jobs of one node: 2 cores, a GPU and 2 GiB from 0 to 10 s, a core, a GPU and 1 GiB from 5 to 25 s."""
    length = np.array([10.0, 20.0])
    tasks = make_tasks(
        length * 1e9,
        [0.0, 5.0],
        width=[1, 1],
        demand=[[2, 2048, 1], [1, 1024, 1]],
        resources=("cores", "memory_mb", "gpu"),
        requested_time_s=length,
    )
    return Scenario(platform, tasks, "fcfs", driver=driver, **others)


@pytest.mark.parametrize("driver", DRIVERS)
def test_jobs_that_share_a_node(driver):
    """25 s of 2 GPUs and 4 GiB without a job, 54 W; above that 279 W for 10 s and 277 W for 20 s."""
    result = run(shared(machine(), driver, carbon=Carbon(3600.0)))
    metrics = result.metrics()
    assert metrics["energy_resources_busy_j"] == pytest.approx(279 * 10 + 277 * 20, rel=1e-12)
    assert metrics["energy_resources_j"] == pytest.approx(54 * 25 + 279 * 10 + 277 * 20, rel=1e-12) == 9680
    assert result.tasks["energy_resources_j"].tolist() == pytest.approx([306 * 10, 303 * 20])
    assert result.hosts["energy_resources_j"].tolist() == pytest.approx([9680])
    assert metrics["carbon_resources_g"] == pytest.approx(9.68, rel=1e-12)
    assert metrics["carbon_total_g"] == pytest.approx(metrics["carbon_g"] + 9.68, rel=1e-12)
    without = run(shared(machine(unit_power=()), driver, carbon=Carbon(3600.0))).metrics()
    assert {id: each for id, each in metrics.items() if id in without} == without
    assert not [id for id in without if "resources" in id]


def test_types_have_power_of_their_own():
    """Of 3 a100 (40 and 400 W) and a v100 (20 and 200 W): one of each, and one of any type, which is 3/4 of the first.

    A job of an a100 for 10 s, and a job of 2 units, of which one is a v100, from 5 to 25 s.
    """
    power = (("gpu:a100", 40.0, 400.0), ("gpu:v100", 20.0, 200.0))
    host = Host(
        "n", (PState(1e9, 90.0, 100.0, 200.0),), 4, unit_power=power,
        resources=(("gpu", 4), ("gpu:a100", 3), ("gpu:v100", 1)),
    )  # fmt: skip
    length = np.array([10.0, 20.0])
    tasks = make_tasks(
        length * 1e9,
        [0.0, 5.0],
        width=[1, 1],
        demand=[[2, 1, 1, 0], [1, 2, 0, 1]],
        resources=("cores", "gpu", "gpu:a100", "gpu:v100"),
        requested_time_s=length,
    )
    result = run(Scenario(Platform((host,)), tasks, "fcfs", driver="reference"))
    any_type = 0.75 * 360 + 0.25 * 180
    assert result.metrics()["energy_resources_busy_j"] == pytest.approx(360 * 10 + (180 + any_type) * 20)
    assert result.metrics()["energy_resources_j"] == pytest.approx(140 * 25 + 360 * 10 + (180 + any_type) * 20)
    assert result.tasks["energy_resources_j"].tolist() == pytest.approx([4000, (200 + 350) * 20])


def test_power_and_units_of_types_that_contradict():
    """All units and one type have power, or types have more units than all."""
    has = {"pstates": (PState(1.0),), "resources": (("gpu", 4), ("gpu:a100", 3))}
    with pytest.raises(InputError, match="gpu:a100"):
        Host("n", unit_power=(("gpu:a100", 40.0, 400.0), ("gpu", 20.0, 200.0)), **has)
    with pytest.raises(InputError, match=r"'n'.*'gpu'"):
        Host("n", (PState(1.0),), resources=(("gpu", 2), ("gpu:a100", 3)))


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("cores", [1, 4])
def test_whole_nodes_and_nodes_that_are_off(driver, cores):
    """A job has all units of its nodes, or of those of which it has all cores; what is off draws nothing.

    Two GPUs and 4 GiB draw 612 W for a job, and 54 W without.
    """
    whole = {} if cores == 1 else {"demand": [[cores]], "resources": ("cores",)}
    tasks = make_tasks([1e10], width=[2], requested_time_s=[10.0], **whole)
    result = run(Scenario(machine(4, cores=cores), tasks, "fcfs", driver=driver, hosts_off=("n3",)))
    found = resource_energy(result.trace)
    np.testing.assert_allclose(found.total_j, [6120, 6120, 540, 0], rtol=1e-12)
    np.testing.assert_allclose(found.execution_j, [2 * 612 * 10], rtol=1e-12)


def test_serial_tasks_have_no_units():
    """They draw idle power for as long as the run is."""
    found = resource_energy(run(Scenario(machine(), make_tasks([1e10]), "wq", driver="reference")).trace)
    np.testing.assert_allclose(found.total_j, [540], rtol=1e-12)
    np.testing.assert_allclose(found.execution_j, [0])


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"budget": EnergyBudget(2000.0, period_s=10.0)}, "energy budget"),
        ({"power_cap_w": 200.0}, "power cap"),
        ({"tariff": Tariff(price=9000.0)}, "tariff"),
        ({}, None),
    ],
)
def test_a_limit_counts_hosts_alone_and_a_line_reports_it(limits, said):
    """A task of 10 s at 200 W keeps to 2,000 J, and to 200 W; the units' 54 W come on top: 540 J."""
    scheduler = "power_capped_mct" if "power_cap_w" in limits else "mct"
    tasks = make_tasks([1e10])
    for unit_power in (UNIT_POWER, ()):
        result = run(Scenario(machine(unit_power=unit_power, cores=1), tasks, scheduler, driver="reference", **limits))
        metrics = result.metrics()
        assert metrics["energy_model_j"] == pytest.approx(2000.0)
        lines = [line for line in result.provenance["warnings"] if "unit_power" in line]
        assert len(lines) == (said is not None and unit_power != ())
        assert not lines or (said in lines[0] and metrics["energy_resources_j"] == pytest.approx(540.0))


def test_bounds_hold_for_the_sums_too():
    """Units and embodied carbon only add: the bounds are those without them, and below every total."""
    host = replace(machine(cores=1).hosts[0], embodied_kg=1.0, lifetime_years=1.0)
    platform = Platform((host,), (Cluster("c", (0,)),))
    found = {}
    for each in (platform, machine(unit_power=(), cores=1)):
        result = run(Scenario(each, make_tasks([1e10, 2e10]), "mct", driver="reference", carbon=Carbon(3600.0)))
        found[each is platform] = carbon_above_bounds(result)
        metrics = result.metrics()
        bound_g = found[each is platform]["carbon_bound_g"]
        assert 0 < bound_g <= metrics["carbon_g"] * (1 + 1e-9)
    assert found[True] == found[False]
    result = run(Scenario(platform, make_tasks([1e10, 2e10]), "mct", driver="reference", carbon=Carbon(3600.0)))
    assert found[True]["carbon_bound_g"] < result.metrics()["carbon_total_g"]


def test_the_power_of_units_is_read_and_written_again(write, tmp_path):
    """As properties of a host in SimGrid's XML, and in the archive of a run."""
    properties = {"memory": "4G", "resources": "gpu:2", "unit_power": "gpu:25:300, memory:1:3"}
    props = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in properties.items())
    path = write("p.xml", zone_xml(f'<host id="n0" speed="1Gf" core="4">{props}</host>'))
    (host,) = read_platform(path).hosts
    assert (host.resources, host.unit_power) == (RESOURCES, UNIT_POWER)
    write_platform(Platform((host,)), tmp_path / "again.xml", command="x")
    assert read_platform(tmp_path / "again.xml").hosts == (host,)
    trace = run(shared(machine(), "reference")).trace
    write_export(trace, None, {}, tmp_path / "out", workload_name="w")
    assert read_archive(tmp_path / "out" / "trace.npz").trace.platform == trace.platform


@pytest.mark.parametrize(
    "text", ["gpu:25", "gpu:25:-1", "gpu:x:1", "tpu:1:2", "gpu:1:2,gpu:1:2", "gpu:1:inf", "memory:1:2"]
)
def test_power_of_what_a_host_does_not_have_is_refused(write, text):
    """In one line, which names what is allowed."""
    props = f'<prop id="resources" value="gpu:2"/><prop id="unit_power" value="{text}"/>'
    path = write("p.xml", zone_xml(f'<host id="n0" speed="1Gf">{props}</host>'))
    with pytest.raises(InputError, match="NAME:IDLE:BUSY") as caught:
        read_platform(path)
    assert "\n" not in str(caught.value)
    assert not check_platform_file(path).is_fine


def test_a_host_made_by_hand_is_checked():
    """Power of a resource that it lacks."""
    with pytest.raises(InputError, match="'tpu'"):
        replace(machine().hosts[0], unit_power=(("tpu", 1.0, 2.0),))
