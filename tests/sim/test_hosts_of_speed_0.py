"""Hosts of speed 0 (batteries, storage): SimGrid charges them as fully loaded all the time."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_cases import executions, largest_difference, on_simgrid
from star import write_star

from gridsched.errors import InputError
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.check import check_platform_file, with_deployment, with_inspection
from gridsched.platform_io.xml_reader import read_platform
from gridsched.runs.run import energy_check
from gridsched.sim.inspection import inspect_platform


def write_still(path: Path, watts="1:2:3") -> Path:
    """Write a star with a worker of 10 flop/s, and a host of speed 0 that no route leads to."""
    host = f'<host id="still" speed="0f"><prop id="wattage_per_state" value="{watts}"/></host>'
    text = write_star(path, [10.0]).read_text()
    path.write_text(text.replace("<link", f"{host}\n<link", 1))
    return path


def write_deployment(path: Path, master: str, worker: str) -> Path:
    """Write a deployment of one master and one worker."""
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
        f'<platform version="4.1"><actor host="{master}" function="master"/>'
        f'<actor host="{worker}" function="worker"/></platform>'
    )
    return path


def test_a_host_of_speed_0_computes_nothing_and_draws_its_busy_power(tmp_path):
    """100 flop take 10 s on the worker, in which the other host draws 3 W; it is in no total."""
    path = write_still(tmp_path / "p.xml")
    platform = read_platform(path)
    assert [host.name for host in platform.hosts] == ["w1"]
    assert [host.name for host in platform.bystanders] == ["still"]
    assert "1 host(s) ('still') have speed 0: they compute nothing" in platform.warnings
    result = on_simgrid(path, make_tasks([100.0]))
    assert executions(result) == [(0, 0, 0.0, 10.0)]
    rows = {row["host"]: row for row in energy_check(result)}
    assert rows["still"]["role"] == "unused"
    assert rows["still"]["model_j"] == rows["still"]["plugin_j"] == pytest.approx(30.0)
    assert rows["total"]["model_j"] == rows["w1"]["model_j"]
    assert largest_difference(result) <= 1e-9


def test_it_may_be_the_master(tmp_path):
    """By --master: the master of before, which has a speed, computes, and may become it again."""
    path = write_still(tmp_path / "p.xml")
    platform = read_platform(path).with_master("still")
    assert platform.master.name == "still"
    assert [host.name for host in platform.hosts] == ["w1", "m"]
    again = platform.with_master("m")
    assert (again.master.name, [host.name for host in again.bystanders]) == ("m", ["still"])
    result = on_simgrid(path, make_tasks([100.0, 100.0]), master="still")
    assert result.summary()["hosts_used"] == 2
    assert largest_difference(result) <= 1e-9


def test_a_master_of_speed_0_sends_messages(tmp_path):
    """100 B take 10.5 s, 100 flop 10 s; the master draws its 4 W of a busy host all the time."""
    path = write_star(tmp_path / "p.xml", [10.0])
    path.write_text(path.read_text().replace('"m" speed="1f"', '"m" speed="0f"').replace("3:3", "3:4"))
    result = on_simgrid(path, make_tasks([100.0], input_bytes=100.0))
    assert result.trace.horizon_s == pytest.approx(20.5)
    rows = {row["host"]: row for row in energy_check(result)}
    assert rows["m"]["plugin_j"] == pytest.approx(4 * 20.5)
    assert largest_difference(result) <= 1e-9


def test_no_worker_on_it(tmp_path):
    """A deployment may not let it work, and some host must."""
    path = write_still(tmp_path / "p.xml")
    deployment = write_deployment(tmp_path / "d.xml", "m", "still")
    wanted = "host 'still' has speed 0 and computes nothing; a worker needs a host that does"
    with pytest.raises(InputError, match=wanted):
        on_simgrid(path, make_tasks([100.0]), deployment=deployment)
    assert wanted in with_deployment(check_platform_file(path), deployment).problems[-1]
    with pytest.raises(InputError, match="'w1'"):
        read_platform(path).with_master("still").restricted_to(["w1"]).with_master("w1")


def test_the_check_lists_it(tmp_path):
    """SimGrid sees the same hosts, and there is no problem."""
    path = write_still(tmp_path / "p.xml")
    found = check_platform_file(path)
    report = with_inspection(found, inspect_platform(path, found.pairs()))
    assert report.is_fine
    assert any("('still') have speed 0" in note for note in report.notes)
