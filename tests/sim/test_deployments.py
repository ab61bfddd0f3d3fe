"""Deployment files: the shipped ones with and without bytes, and what is wrong with others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sim_cases import executions, largest_difference, on_simgrid, write_star

from gridsched.errors import InputError
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.deployment import Deployment, read_deployment, write_deployment
from gridsched.platform_io.xml_reader import read_platform
from gridsched.testing import trace_differences
from gridsched.workloads.bag import BagOfTasks, generate_bag

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "platforms" / "lecsa_env2.xml"


@pytest.fixture(scope="module")
def environment():
    """Environment 2 of paper 004."""
    return read_platform(ENVIRONMENT)


@pytest.mark.parametrize(("file", "workers"), [("lecsa_all", 90), ("lecsa_half", 45)])
@pytest.mark.parametrize("has_bytes", [False, True])
@pytest.mark.parametrize("scheduler", ["wq", "lecsa"])
def test_shipped_deployments(environment, file, workers, has_bytes, scheduler):
    """Only hosts with a worker compute; joules agree on every host of the platform."""
    sizes = {"input_bytes": 1e5, "output_bytes": 1e4} if has_bytes else {}
    tasks = generate_bag(BagOfTasks(tasks=200, mean_flops=1e6, heterogeneity=1.0, **sizes))
    path = ROOT / "deployments" / f"{file}.xml"
    result = on_simgrid(ENVIRONMENT, tasks, scheduler, deployment=path)
    deployed = set(read_deployment(path, environment).workers)
    computing = {host.name for host in result.trace.platform.hosts}
    assert computing == deployed
    assert len(computing) == workers
    assert result.summary()["tasks_finished"] == 200
    assert result.summary()["hosts_used"] == workers
    assert len(result.plugin_j) == 91
    assert largest_difference(result) <= 1e-9


def test_without_bytes_a_deployment_changes_nothing_but_the_hosts(environment):
    """The run with all workers is the run without a deployment file."""
    tasks = generate_bag(BagOfTasks(tasks=200, mean_flops=1e6, heterogeneity=0.5))
    path = ROOT / "deployments" / "lecsa_all.xml"
    with_file = on_simgrid(ENVIRONMENT, tasks, "wq", deployment=path)
    without = on_simgrid(ENVIRONMENT, tasks, "wq")
    assert trace_differences(with_file.trace, without.trace) == []


def test_the_command_in_the_readme_makes_the_files_again(tmp_path, monkeypatch):
    """The files are what the README's lines write, byte for byte."""
    text = (ROOT / "deployments" / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    (tmp_path / "deployments").mkdir()
    (tmp_path / "platforms").symlink_to(ROOT / "platforms")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    for name in ("lecsa_all.xml", "lecsa_half.xml"):
        shipped = (ROOT / "deployments" / name).read_bytes()
        assert (tmp_path / "deployments" / name).read_bytes() == shipped


@pytest.fixture
def star(tmp_path) -> Path:
    """A master and three workers."""
    return write_star(tmp_path / "star.xml", [10.0, 10.0, 10.0])


def test_a_worker_can_be_the_master_too(star, tmp_path):
    """The master of the file wins over the platform's; it may share a worker's host."""
    text = star.read_text().replace(
        "  </zone>",
        '    <route src="w1" dst="w2"><link_ctn id="l1"/><link_ctn id="l2"/></route>\n'
        '    <route src="w1" dst="w1"><link_ctn id="l3"/></route>\n  </zone>',
    )
    star.write_text(text)
    path = tmp_path / "d.xml"
    write_deployment(Deployment("w1", ("w1", "w2")), path)
    tasks = make_tasks([100.0, 100.0], input_bytes=[0.0, 100.0])
    result = on_simgrid(star, tasks, deployment=path)
    assert executions(result) == [pytest.approx(row, rel=1e-12) for row in [(0, 0, 0.0, 10.0), (1, 1, 11.0, 21.0)]]
    assert [host.name for _, host in result.trace.platform.idle_hosts_named] == ["m", "w3"]
    assert largest_difference(result) <= 1e-9


def test_the_masters_host_cannot_be_switched_off(star, tmp_path):
    """A policy that switches the master's host off is told to deploy otherwise."""
    path = tmp_path / "d.xml"
    write_deployment(Deployment("w2", ("w1", "w2")), path)
    star.write_text(
        star.read_text().replace("  </zone>", ('    <route src="w2" dst="w1"><link_ctn id="l1"/></route>\n  </zone>'))
    )
    tasks = make_tasks([100.0], input_bytes=1.0)
    with pytest.raises(InputError, match=r"'w2'.*master"):
        on_simgrid(star, tasks, "lecsa", deployment=path)


def test_writing_and_reading_gives_the_deployment_back(star, tmp_path):
    """Names with characters special to XML survive."""
    text = star.read_text().replace('"w1"', '"w&amp;1"').replace('"w2"', '"w&quot;2"')
    star.write_text(text)
    platform = read_platform(star)
    deployment = Deployment("m", ("w&1", 'w"2', "w3"))
    write_deployment(deployment, tmp_path / "d.xml")
    assert read_deployment(tmp_path / "d.xml", platform) == deployment
    result = on_simgrid(star, [100.0] * 3, deployment=tmp_path / "d.xml")
    assert result.trace.horizon_s == 10.0


def test_an_existing_file_is_not_overwritten(tmp_path):
    """Only with force."""
    path = tmp_path / "d.xml"
    write_deployment(Deployment("m", ("w",)), path)
    with pytest.raises(InputError, match=r"d\.xml"):
        write_deployment(Deployment("m", ("x",)), path)
    assert '"w"' in path.read_text()
    write_deployment(Deployment("m", ("x",)), path, force=True)
    assert '"x"' in path.read_text()


ACTOR = '<actor host="{}" function="{}">{}</actor>\n'
MASTER = ACTOR.format("m", "master", "")
WORKER = ACTOR.format("w1", "worker", '<argument value="m"/>')


@pytest.mark.parametrize(
    ("actors", "message"),
    [
        ("", "found 0 master and 0 worker actors; exactly one master and at least one worker"),
        (MASTER, "found 1 master and 0 worker"),
        (WORKER, "found 0 master and 1 worker"),
        (MASTER + MASTER + WORKER, "found 2 master and 1 worker"),
        (MASTER + ACTOR.format("w11", "worker", ""), r"5: no host 'w11' in .*Did you mean 'w1'"),
        (MASTER + ACTOR.format("w1", "slave", ""), "line 5: no actor function 'slave'; gridsched has"),
        (MASTER + WORKER + WORKER, r"line 6: host 'w1' has a worker already \(line 5\)"),
        (
            MASTER + ACTOR.format("w1", "worker", '<argument value="w2"/>'),
            r"line 5: this worker's arguments are \['w2'\]; its one argument is .*'m'",
        ),
        (
            ACTOR.format("w1", "worker", '<argument value="w2"/>') + MASTER,
            r"line 4: this worker's arguments are \['w2'\]",
        ),
        (MASTER + '<actor host="w1" function="worker" kill_time="5"/>', r"actor on 'w1' has kill_time='5'"),
        (
            MASTER + '<actor host="w1" function="worker" on_failure="RESTART"/>',
            r"actor on 'w1' has on_failure='RESTART'",
        ),
        ('<zone id="z" routing="Full"/>', "is a platform file"),
        (
            MASTER + ACTOR.format("w1", "worker", '<argument value="m"/><argument value="1"/>'),
            r"arguments are \['m', '1'\]",
        ),
    ],
)
def test_what_is_wrong_with_a_deployment_is_told(star, tmp_path, actors, message):
    """File, line, what was found and what is legal; before SimGrid sees it."""
    path = tmp_path / "bad.xml"
    path.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        f'<platform version="4.1">\n{actors}</platform>\n'
    )
    with pytest.raises(InputError, match=message) as caught:
        on_simgrid(star, [1.0], deployment=path)
    assert "bad.xml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_deployment_needs_simgrid(star, tmp_path):
    """The reference driver has no actors."""
    write_deployment(Deployment("m", ("w1",)), tmp_path / "d.xml")
    with pytest.raises(InputError, match="SimGrid"):
        on_simgrid(star, [1.0], deployment=tmp_path / "d.xml", driver="reference")


def test_hosts_of_a_deployment_can_be_off_at_the_start(star, tmp_path):
    """A worker on a host that is off does not hinder the others."""
    write_deployment(Deployment("m", ("w1", "w2")), tmp_path / "d.xml")
    rules = {"deployment": tmp_path / "d.xml", "hosts_off": ("w1",)}
    result = on_simgrid(star, [100.0, 100.0], "wq", **rules)
    assert [row[1] for row in executions(result)] == [1, 1]
    assert largest_difference(result) <= 1e-9
