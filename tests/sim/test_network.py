"""Networks, and the deployments that place master and workers in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sim_cases import deciding, executions, largest_difference, on_simgrid, write_star

from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.run_times import SampledRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd
from gridsched.platform_io.deployment import Deployment, read_deployment, write_deployment
from gridsched.platform_io.xml_reader import read_platform
from gridsched.policy.decisions import Assign, Cancel, PowerOff, PowerOn
from gridsched.policy.registry import entries, scheduler_class
from gridsched.testing import trace_differences
from gridsched.testing.playing import CARBON
from gridsched.workloads.bag import BagOfTasks, generate_bag

# Master and workers over the network, with times computed by hand.


def tasks_of(count: int, flops=100.0, input_bytes=100.0, output_bytes=50.0):
    """Equal tasks; a list gives each its own size."""
    sizes = flops if isinstance(flops, list) else [flops] * count
    return make_tasks(sizes, input_bytes=input_bytes, output_bytes=output_bytes)


def near(rows: list[tuple]):
    """Compare executions with SimGrid's rounding allowed for."""
    return [pytest.approx(row, rel=1e-12, abs=1e-9) for row in rows]


def test_input_execution_output(tmp_path):
    """The input arrives at 10.5, the execution ends at 20.5, the result is there at 26."""
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0]), tasks_of(1))
    assert executions(result) == near([(0, 0, 10.5, 20.5)])
    assert result.trace.horizon_s == pytest.approx(26.0, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_the_next_task_is_sent_when_the_result_is_there(tmp_path):
    """One core: the second task leaves the master at 26."""
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0]), tasks_of(2))
    assert executions(result) == near([(0, 0, 10.5, 20.5), (1, 0, 36.5, 46.5)])
    assert result.trace.horizon_s == pytest.approx(52.0, rel=1e-12)


@pytest.mark.parametrize(
    ("input_bytes", "output_bytes", "start", "horizon"),
    [(0.0, 0.0, 0.0, 10.0), (100.0, 0.0, 10.5, 20.5), (0.0, 50.0, 0.0, 15.5)],
)
def test_no_bytes_no_network_activity(tmp_path, input_bytes, output_bytes, start, horizon):
    """What has no bytes is handed over at once, without even the latency."""
    tasks = tasks_of(1, 100.0, input_bytes, output_bytes)
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0]), tasks, network="platform")
    assert executions(result) == near([(0, 0, start, start + 10.0)])
    assert result.trace.horizon_s == pytest.approx(horizon, rel=1e-12)
    assert largest_difference(result) <= 1e-9


@pytest.mark.parametrize(("input_bytes", "output_bytes"), [(12.5, 2.5), (12.5, 20.0), (20.0, 2.5)])
def test_bytes_are_any_numbers(tmp_path, input_bytes, output_bytes):
    """Two tasks one after the other: 0.5 s and bytes at 10 B/s there and back, 10 s of work between them."""
    tasks = tasks_of(2, 100.0, input_bytes, output_bytes)
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0]), tasks)
    first = 0.5 + input_bytes / 10
    second = first + 10.0 + 0.5 + output_bytes / 10 + first
    assert executions(result) == near([(0, 0, first, first + 10.0), (1, 0, second, second + 10.0)])
    assert result.trace.horizon_s == pytest.approx(second + 10.5 + output_bytes / 10, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_run_times_other_than_the_estimates(tmp_path):
    """Estimated as 10 s, the task takes 7.5 s: from 10.5 to 18, and the result is there at 23.5."""
    path = write_star(tmp_path / "p.xml", [10.0])
    estimates = FlopsEstimates(read_platform(path), tasks_of(1))
    truth = SampledRunTimes(estimates, [0.25], lambda share, estimate_s: (0.5 + share) * estimate_s)
    result = on_simgrid(path, tasks_of(1), run_times=truth)
    assert executions(result) == near([(0, 0, 10.5, 18.0)])
    assert result.trace.horizon_s == pytest.approx(23.5, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_tasks_with_and_without_bytes_mix(tmp_path):
    """Each task has the network activity its own bytes ask for."""
    tasks = tasks_of(4, 100.0, [100.0, 0.0, 0.0, 100.0], [0.0, 0.0, 50.0, 50.0])
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0, 10.0]), tasks)
    # w2 is free again at 10 and takes task 2, whose result is there at 25.5; w1 is free at 20.5
    assert sorted(executions(result)) == near(
        [(0, 0, 10.5, 20.5), (1, 1, 0.0, 10.0), (2, 1, 10.0, 20.0), (3, 0, 31.0, 41.0)]
    )
    assert result.trace.horizon_s == pytest.approx(46.5, rel=1e-12)


def test_cores_of_a_host_share_its_link(tmp_path):
    """Two inputs of 100 B at once take 0.5 + 20 s; both cores execute side by side."""
    path = write_star(tmp_path / "p.xml", [10.0], cores=2)
    result = on_simgrid(path, tasks_of(2, output_bytes=0.0))
    assert executions(result) == near([(0, 0, 20.5, 30.5), (1, 0, 20.5, 30.5)])
    assert largest_difference(result) <= 1e-9


@pytest.mark.parametrize(
    "tasks",
    [
        tasks_of(4),
        tasks_of(4, input_bytes=0.0, output_bytes=0.0),
        tasks_of(4, output_bytes=0.0),
        tasks_of(4, [100.0, 155.0] * 2, input_bytes=0.0, output_bytes=[50.0, 0.0] * 2),
    ],
    ids=["both", "none", "input", "one by message, one without"],
)
def test_results_of_one_instant_are_decided_together(tmp_path, tasks):
    """Two results arrive together: the policy is asked at 0 and then once, not twice."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0])
    result = on_simgrid(path, tasks, network="platform")
    assert result.trace.mapping_events == 2
    assert len(result.trace.executions) == 4


def test_a_result_is_not_held_up_by_one_that_was_sent_earlier(tmp_path):
    """The long result of w1 (50.5 s) is under way when the short one of w2 arrives."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0])
    tasks = tasks_of(3, [100.0, 110.0, 100.0], 0.0, [500.0, 5.0, 5.0])
    result = on_simgrid(path, tasks)
    assert executions(result)[2] == pytest.approx((2, 1, 12.0, 22.0), rel=1e-12)


def test_a_late_submission_wakes_the_master(tmp_path):
    """A task submitted at 7 is sent at 7, whatever else is under way."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0])
    tasks = make_tasks([100.0, 100.0], [0.0, 7.0], input_bytes=100.0)
    result = on_simgrid(path, tasks)
    assert executions(result) == near([(0, 0, 10.5, 20.5), (1, 1, 17.5, 27.5)])


def test_a_copy_is_cancelled_while_it_executes(tmp_path):
    """The fast worker's result is there at 26; the copy has executed from 10.5 on."""
    path = write_star(tmp_path / "p.xml", [10.0, 1.0])
    result = on_simgrid(path, tasks_of(1), "wqr")
    assert executions(result) == near([(0, 0, 10.5, 20.5), (0, 1, 10.5, 26.0)])
    outcomes = result.trace.executions["outcome"].tolist()
    assert outcomes == [ExecutionEnd.FINISHED, ExecutionEnd.CANCELLED]
    assert largest_difference(result) <= 1e-9


def test_a_copy_is_cancelled_on_its_way(tmp_path):
    """Over a link of 1 B/s the copy's input would arrive at 100.5: it never executes."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0], bandwidths=[10.0, 1.0])
    result = on_simgrid(path, tasks_of(1), "wqr")
    assert executions(result) == near([(0, 0, 10.5, 20.5), (0, 1, 26.0, 26.0)])
    assert largest_difference(result) <= 1e-9


def test_a_host_that_a_message_still_goes_to_is_switched_off(tmp_path):
    """The copy's input of 100.5 bytes would be at w2 at 101 s; at 26.05 s the copy is ended, and w2 switched off."""

    def answer(state):
        if state.now == 0:
            return [Assign(0, 0), Assign(0, 1)]
        return [PowerOff(1), Assign(1, 0)] if state.now > 6 and 1 in state.mappable else []

    path = write_star(tmp_path / "p.xml", [10.0, 10.0], bandwidths=[10.0, 1.0])
    tasks = make_tasks([100.0, 100.0], [0.0, 5.0], input_bytes=100.5, output_bytes=50.0)
    result = on_simgrid(path, tasks, deciding(answer, replicates=True, powers_hosts=True))
    assert executions(result) == near([(0, 0, 10.55, 20.55), (0, 1, 26.05, 26.05), (1, 0, 36.6, 46.6)])
    assert largest_difference(result) <= 1e-9


def test_a_copy_is_cancelled_while_its_result_is_under_way(tmp_path):
    """w2 executes faster, its result is there at 25.0; w1's, sent at 20.5, comes too late."""
    path = write_star(tmp_path / "p.xml", [10.0, 100.0 / 9.0])
    result = on_simgrid(path, tasks_of(1), "wqr")
    assert executions(result) == near([(0, 0, 10.5, 20.5), (0, 1, 10.5, 19.5)])
    outcomes = result.trace.executions["outcome"].tolist()
    assert sorted(outcomes) == [ExecutionEnd.FINISHED, ExecutionEnd.CANCELLED]
    assert result.trace.horizon_s == pytest.approx(25.0, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_a_worker_takes_another_task_after_a_cancelled_one(tmp_path):
    """A policy's own Cancel, too: w2 gives task 0 up at 26 and executes task 2."""

    def answer(state):
        if state.now == 0:
            return [Assign(0, 1), Assign(1, 0)]
        if len(state.mappable):
            return [Cancel(0), Assign(2, 1), Assign(0, 0)]
        return []

    path = write_star(tmp_path / "p.xml", [10.0, 1.0])
    result = on_simgrid(path, tasks_of(3), deciding(answer, replicates=True))
    assert executions(result) == near([(1, 0, 10.5, 20.5), (0, 1, 10.5, 26.0), (0, 0, 36.5, 46.5), (2, 1, 36.5, 136.5)])
    assert largest_difference(result) <= 1e-9


def test_hosts_are_switched_over_the_network_too(tmp_path):
    """w2 is off until the first result is there, and then executes the second task."""

    def answer(state):
        if state.now == 0:
            return [PowerOff(1), Assign(0, 0)]
        return [PowerOn(1), Assign(1, 1)] if len(state.mappable) else []

    path = write_star(tmp_path / "p.xml", [10.0, 10.0])
    result = on_simgrid(path, tasks_of(2), deciding(answer, powers_hosts=True))
    assert executions(result) == near([(0, 0, 10.5, 20.5), (1, 1, 36.5, 46.5)])
    assert largest_difference(result) <= 1e-9


@pytest.mark.parametrize(
    "scheduler",
    [
        entry.id
        for entry in entries()
        if not (traits := scheduler_class(entry.id).traits).needs_utility
        and not traits.by_types
        and not traits.needs_distributions
        and not traits.parallel
    ],
)
@pytest.mark.parametrize("cores", [1, 2])
def test_every_scheduler_works_over_the_network(tmp_path, scheduler, cores):
    """All tasks finish, plugin and model joules agree on master and workers, and both drivers on what happened."""
    path = write_star(tmp_path / "p.xml", [10.0, 7.0, 3.0], cores=cores)
    tasks = make_tasks(
        [100.0, 37.0, 250.0, 80.0, 64.0, 12.0, 150.0, 91.0],
        [0.0] * 5 + [30.0] * 3,
        input_bytes=[100, 0, 30, 7, 0, 55, 20, 1],
        output_bytes=[0, 0, 44, 5, 60, 0, 10, 3],
    )
    carbon = CARBON if scheduler_class(scheduler).traits.needs_carbon else None
    result = on_simgrid(path, tasks, scheduler, pstate=1, carbon=carbon)
    assert result.summary()["tasks_finished"] == 8
    assert largest_difference(result) <= 1e-9
    other = on_simgrid(path, tasks, scheduler, pstate=1, carbon=carbon, driver="reference")
    assert trace_differences(result.trace, other.trace) == []


@pytest.mark.parametrize(
    ("routing", "words"),
    [
        ("Full", "no connecting path between"),
        ("Floyd", "No route from 'm' to 'w1'"),
        ("None", "can't be route in an Empty zone"),
    ],
)
def test_a_worker_without_a_route_is_a_clear_error(tmp_path, routing, words):
    """SimGrid's words about the missing route come through, and what to do."""
    path = write_star(tmp_path / "p.xml", [10.0, 10.0], with_routes=False)
    text = path.read_text().replace('routing="Full"', f'routing="{routing}"')
    if routing == "Floyd":  # a zone of routes that leaves out the first worker
        text = text.replace("  </zone>", '<route src="m" dst="w2"><link_ctn id="l2"/></route></zone>')
    path.write_text(text)
    wanted = f"finds no route for a message: .*{words}.*--master.*--network none"
    with pytest.raises(InputError, match=wanted) as caught:
        on_simgrid(path, tasks_of(1))
    assert "\n" not in str(caught.value)


def test_the_reference_driver_sends_messages(tmp_path):
    """The same times as on SimGrid, by hand; none without the network, and none of them alone."""
    path = write_star(tmp_path / "p.xml", [10.0])
    for network in ("platform", None):
        result = on_simgrid(path, tasks_of(1), driver="reference", network=network)
        assert executions(result) == near([(0, 0, 10.5, 20.5)])
        assert result.trace.horizon_s == pytest.approx(26.0, rel=1e-12)
    ideal = on_simgrid(path, tasks_of(1), driver="reference", network="none")
    assert ideal.trace.horizon_s == 10.0
    for driver in ("reference", "simgrid"):
        with pytest.raises(InputError, match="--network alone"):
            on_simgrid(path, tasks_of(1), driver=driver, network="alone")


def test_a_network_needs_a_master(tmp_path):
    """Without role=master and without deployment file no host could send the tasks."""
    path = write_star(tmp_path / "p.xml", [10.0])
    path.write_text(path.read_text().replace('<prop id="role" value="master"/>', ""))
    with pytest.raises(InputError, match="master"):
        on_simgrid(path, tasks_of(1))


# Deployment files: the shipped ones with and without bytes, and what is wrong with others.

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
    text = (ROOT / "platforms" / "README.md").read_text()
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
    """The message to a policy that switches the master's host off names another deployment."""
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
    """File, line, what was found and what is allowed; before SimGrid sees it."""
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


# Jobs on sets of hosts: their input goes to the first of them, their result comes from there.


QUEUE = {"scheduler": "fcfs", "network": "platform"}


@pytest.mark.parametrize("more", [0.0, 0.5])
@pytest.mark.parametrize("demand", [None, [[1]]])
def test_jobs_on_sets_of_hosts_have_messages(tmp_path, demand, more):
    """100 B at 10 B/s and 0.5 s to the first host, 10 s on both, 50 B back: 10.5, 20.5, 26 s; or half a byte more."""
    tasks = make_tasks([100.0], width=2, demand=demand, input_bytes=100.0 + more, output_bytes=50.0 + more)
    result = on_simgrid(write_star(tmp_path / "p.xml", [10.0, 10.0]), tasks, **QUEUE)
    assert executions(result) == near([(0, 0, 10.5 + more / 10, 20.5 + more / 10)])
    assert result.trace.hosts_of(0).tolist() == [0, 1]
    assert result.trace.horizon_s == pytest.approx(26.0 + more / 5, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_jobs_share_a_host_while_their_messages_cross(tmp_path):
    """Two jobs of two cores each on one host of four: their inputs share the link, and come at 20.5 s."""
    path = write_star(tmp_path / "p.xml", [10.0], cores=4)
    tasks = make_tasks([100.0, 100.0], width=1, demand=[[2], [2]], input_bytes=100.0)
    result = on_simgrid(path, tasks, **QUEUE)
    assert executions(result) == near([(0, 0, 20.5, 30.5), (1, 0, 20.5, 30.5)])
    assert largest_difference(result) <= 1e-9
