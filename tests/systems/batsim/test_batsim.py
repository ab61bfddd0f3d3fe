"""Schedulers that are programs of their own and speak Batsim's protocol, over a real socket."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, Simulation, long_work, run
from gridsched.campaign.campaign import run_campaign
from gridsched.campaign.duration import estimate
from gridsched.campaign.rerun import rerun
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import IncompleteRun, InputError, InvalidDecision, MissingDependency, NotTrusted, SimulationError
from gridsched.model.host_profiles import HostProfiles, Profile
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.registry import make_scheduler
from gridsched.runs.plugin_agreement import check_energy_agreement
from gridsched.runs.run import check
from gridsched.runs.study import Study

ROOT = Path(__file__).resolve().parents[3]
PEER = Path(__file__).parent / "batsim_peer.py"
#: pybatsim's scheduler that switches hosts, for states that are texts as Batsim's documents say. It compares
#: states with numbers, and waits for no message after the last.
SLEEPER = """
from schedulers.fcfsSchedSleep import FcfsSchedSleep


class Sleeper(FcfsSchedSleep):
    def onMachinePStateChanged(self, machines, pstate):
        super().onMachinePStateChanged(machines, int(pstate))
"""
ADDRESS = "batsim:tcp://127.0.0.1:0"
EASY = shlex.join([sys.executable, str(ROOT / "examples/batsim_easy.py"), "{address}"])
JOBS = ROOT / "examples/rigid_jobs.toml"
DRIVERS = ("reference", "simgrid")
PSTATES = (PState(10.0, 50.0, 50.0, 100.0), PState(8.0, 45.0, 45.0, 80.0), PState(5.0, 40.0, 40.0, 60.0))
needs_pybatsim = pytest.mark.skipif(
    find_spec("batsim") is None,
    reason="pybatsim is not installed: pip install --no-deps pybatsim==3.2.1 docopt procset sortedcontainers",
)


def pybatsim(scheduler: str, folder: Path) -> str:
    """Return the command that starts a scheduler of pybatsim's in a folder, where it writes its files."""
    words = [
        "env",
        "-C",
        str(folder),
        sys.executable,
        "-m",
        "batsim.cmds.launcher",
        "-v",
        "error",
        "-s",
        "{address}",
        "-t",
        "60000",
        scheduler,
    ]
    return shlex.join(words)


def nodes(n: int, **times: float) -> Platform:
    hosts = tuple(Host(f"n{k}", PSTATES, off_w=5.0, **times) for k in range(n))
    return Platform(hosts, (Cluster("c", tuple(range(n))),))


def scenario(platform, jobs, start, driver="reference", **more):
    """Return jobs (submission [s], width, requested time [s]) under a scheduler that `start` starts."""
    submit, width, requested = zip(*jobs, strict=True)
    tasks = make_tasks(np.array(requested) * 10.0, submit, width=width, requested_time_s=requested)
    parameters = {"start": start, **more.pop("parameters", {})}
    return Scenario(platform, tasks, ADDRESS, parameters, driver=driver, **more)


@pytest.fixture
def scripted(tmp_path):
    """Return a command that answers by a script, and a function that returns what it heard."""
    heard = tmp_path / "heard"

    def command(*answers: object) -> str:
        (tmp_path / "script.json").write_text(json.dumps([[], *answers]))  # nothing at the begin
        return shlex.join([sys.executable, str(PEER), "{address}", str(tmp_path / "script.json"), str(heard)])

    def messages() -> list[tuple[float, list[tuple[str, dict]]]]:
        told = [json.loads(line) for line in heard.read_text().splitlines()[1:]]
        return [(each["now"], [(event["type"], event["data"]) for event in each["events"]]) for each in told]

    command.messages = messages
    command.is_gone = lambda: not Path(f"/proc/{heard.read_text().splitlines()[0]}").exists()
    return command


def execute(job: int, alloc: str, **more) -> dict:
    return {"type": "EXECUTE_JOB", "data": {"job_id": f"w0!{job}", "alloc": alloc}, **more}


def schedule(result):
    """Return start, end [s] and hosts of each job."""
    trace = result.trace
    rows = trace.executions[["task", "start", "end"]].tolist()
    return sorted((task, start, end, trace.hosts_of(k).tolist()) for k, (task, start, end) in enumerate(rows))


# ---------------------------------------------------------------------- schedulers that work


@pytest.mark.parametrize("driver", DRIVERS)
def test_easy_over_the_socket_is_easy_backfilling_job_by_job(driver):
    """500 jobs start and end at the same instants on the same hosts, with the same joules."""
    ours = run(Scenario(None, JOBS, "easy_backfilling", driver=driver))
    theirs = run(Scenario(None, JOBS, ADDRESS, {"start": EASY}, driver=driver))
    assert schedule(theirs) == schedule(ours)
    assert theirs.metrics()["energy_model_j" if driver == "reference" else "energy_j"] == pytest.approx(
        ours.metrics()["energy_model_j" if driver == "reference" else "energy_j"], rel=1e-12
    )
    check_energy_agreement(theirs)


@needs_pybatsim
def test_pybatsim_schedulers_give_the_schedule_by_hand(tmp_path):
    """On 4 nodes job 3 overtakes job 2 under EASY, and waits for it under first come, first served."""
    jobs = [(0, 3, 10), (1, 4, 5), (2, 1, 8)]
    easy = run(scenario(nodes(4), jobs, pybatsim("easyBackfill", tmp_path)))
    assert schedule(easy) == [(0, 0.0, 10.0, [0, 1, 2]), (1, 10.0, 15.0, [0, 1, 2, 3]), (2, 2.0, 10.0, [3])]
    later = [(submit + 1, *rest) for submit, *rest in jobs]  # pybatsim starts nothing at 0 s
    fcfs = run(scenario(nodes(4), later, pybatsim("schedFcfs", tmp_path)))
    assert [each[:3] for each in schedule(fcfs)] == [(0, 1.0, 11.0), (1, 11.0, 16.0), (2, 16.0, 24.0)]


@needs_pybatsim
def test_time_that_a_scheduler_thinks_passes(tmp_path):
    """pybatsim's filler thinks 5 ms at each event: jobs start later by that."""
    result = run(scenario(nodes(4), [(0, 2, 10), (20, 2, 10)], pybatsim("fillerSched", tmp_path)))
    assert [each[1] for each in schedule(result)] == pytest.approx([0.005, 20.005], abs=1e-12)


@needs_pybatsim
@pytest.mark.parametrize("driver", DRIVERS)
def test_pybatsim_switches_hosts(driver, tmp_path):
    """Its sleeper switches off what is idle: job 2 waits 4 s for its nodes to boot."""
    platform = nodes(4, boot_time_s=4.0, shutdown_time_s=1.0)
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text(SLEEPER)
    result = run(scenario(platform, [(0, 2, 10), (30, 4, 10)], pybatsim(str(sleeper), tmp_path), driver))
    assert [each[:3] for each in schedule(result)] == [(0, 0.0, 10.0), (1, 34.0, 44.0)]
    # 2 nodes: computing, off until booting, computing; all shut down and boot at 50 W
    two = 2 * (10 * 100 + 1 * 50 + 19 * 5 + 4 * 50 + 10 * 100)
    others = 2 * (1 * 50 + 29 * 5 + 4 * 50 + 10 * 100)
    assert result.energy.total_j.sum() == pytest.approx(two + others, rel=1e-12)
    check_energy_agreement(result)


# ---------------------------------------------------------------------- what is sent


def test_a_simulation_as_the_protocol_tells_it(scripted):
    """Begin, submission, completion and end, with what pybatsim and batsched read of them."""
    jobs = [(0, 2, 10), (3, 1, 4)]
    result = run(scenario(nodes(2), jobs, scripted([execute(1, "0-1")], [], [execute(2, "1")])))
    told = scripted.messages()
    assert [now for now, _ in told] == [0.0, 0.0, 3.0, 10.0, 14.0]
    assert [[kind for kind, _ in events] for _, events in told] == [
        ["SIMULATION_BEGINS"],
        ["JOB_SUBMITTED"],
        ["JOB_SUBMITTED", "NOTIFY"],
        ["JOB_COMPLETED"],
        ["JOB_COMPLETED", "SIMULATION_ENDS"],
    ]
    (begins,), (first,), second, third, _ = [[data for _, data in events] for _, events in told]
    assert [begins[key] for key in ("nb_resources", "nb_compute_resources", "nb_storage_resources")] == [2, 2, 0]
    assert [(each["id"], each["name"], each["state"]) for each in begins["compute_resources"]] == [
        (0, "n0", "idle"),
        (1, "n1", "idle"),
    ]
    assert begins["config"]["redis-enabled"] is False
    job = {"id": "w0!1", "subtime": 0.0, "walltime": 10.0, "res": 2, "profile": "delay_10.0"}
    assert first == {"job_id": "w0!1", "job": job, "profile": {"type": "delay", "delay": 10.0}}
    assert second[1] == {"type": "no_more_static_job_to_submit"}
    done = third[0]
    assert (done["job_id"], done["job_state"], done["alloc"]) == ("w0!1", "COMPLETED_SUCCESSFULLY", "0-1")
    assert done["return_code"] == 0
    assert schedule(result) == [(0, 0.0, 10.0, [0, 1]), (1, 10.0, 14.0, [1])]


def test_a_call_in_the_past_comes_at_once_and_news_after_the_thinking(scripted):
    """At 3 s it wants to have been called at 1 s, and then thinks for 2 s: news of 4 s are sent at 5."""
    call = {"type": "CALL_ME_LATER", "data": {"timestamp": 1.0}}
    script = scripted(
        [execute(1, "0")], [call], json.dumps({"now": 5.0, "events": []}), [execute(2, "1"), execute(3, "2")]
    )
    run(scenario(nodes(3), [(0, 1, 20), (3, 1, 20), (4, 1, 20)], script))
    told = [(now, [kind for kind, _ in events]) for now, events in scripted.messages()]
    assert told[2:5] == [(3.0, ["JOB_SUBMITTED"]), (3.0, ["REQUESTED_CALL"]), (5.0, ["JOB_SUBMITTED", "NOTIFY"])]


def test_requested_times_are_those_of_the_pstate(scripted):
    """10 s at 10 flop/s are 12.5 s at the 8 flop/s of P-state 1."""
    run(scenario(nodes(1), [(0, 1, 10)], scripted([execute(1, "0")]), pstate=1))
    assert scripted.messages()[1][1][0][1]["job"]["walltime"] == 12.5


def test_kills_rejections_and_calls(scripted):
    """A job is killed after 6 of 10 s, another rejected, and the last starts when it was to be called."""
    script = scripted(
        [execute(1, "0"), {"type": "CALL_ME_LATER", "data": {"timestamp": 6.0}}],
        [{"type": "KILL_JOB", "data": {"job_ids": ["w0!1"]}}, {"type": "REJECT_JOB", "data": {"job_id": "w0!2"}}],
        [execute(3, "0")],
    )
    result = run(scenario(nodes(1), [(0, 1, 10), (0, 1, 5), (0, 1, 4)], script))
    states = [TaskState.KILLED, TaskState.DROPPED, TaskState.FINISHED]
    assert result.trace.final_state.tolist() == states
    assert schedule(result) == [(0, 0.0, 6.0, [0]), (2, 6.0, 10.0, [0])]
    _, _, called, killed, _ = scripted.messages()
    assert called == (6.0, [("REQUESTED_CALL", {})])
    assert [kind for kind, _ in killed[1]] == ["JOB_COMPLETED", "JOB_KILLED"]
    assert killed[1][0][1]["job_state"] == "COMPLETED_KILLED"
    assert killed[1][1][1]["job_progress"] == {"w0!1": {"profile": "delay_10.0", "progress": 0.6}}


def test_a_job_that_outlives_its_request_has_all_of_its_progress(scripted):
    """Of 10 s that were asked for 12 are needed; after 11 the progress is 1, not 1.1."""
    script = scripted(
        [execute(1, "0"), {"type": "CALL_ME_LATER", "data": {"timestamp": 11.0}}],
        [{"type": "KILL_JOB", "data": {"job_ids": ["w0!1"]}}],
    )
    platform = nodes(1)
    result = run(scenario(platform, [(0, 1, 10)], script, run_times=LoggedRunTimes(platform, np.array([12.0]))))
    assert schedule(result) == [(0, 0.0, 11.0, [0])]
    told = [data for _, events in scripted.messages() for kind, data in events if kind == "JOB_KILLED"]
    assert told[0]["job_progress"]["w0!1"]["progress"] == 1.0


def test_queries_both_ways(scripted):
    """It hears the joules of the grid until now, and answers how long a job will wait."""
    energy = {"type": "QUERY", "data": {"requests": {"consumed_energy": {}}}}
    wait = {"estimate_waiting_time": {"job_id": "w0!1?", "estimated_waiting_time": 7.5}}
    script = scripted([execute(1, "0"), {"type": "ANSWER", "data": wait}], [energy, execute(2, "1")])
    result = run(scenario(nodes(2), [(0, 1, 10), (4, 1, 4)], script, parameters={"asks_waiting_time": True}))
    _, first, _, answer, *_ = scripted.messages()
    asked = dict(first[1])["QUERY"]["requests"]["estimate_waiting_time"]
    assert (asked["job_id"], asked["job"]["res"], asked["job"]["walltime"]) == ("w0!1?", 1, 10.0)
    # 4 s of a node that computes at 100 W and one that is idle at 50 W
    assert answer == (4.0, [("ANSWER", {"consumed_energy": pytest.approx(600.0, rel=1e-12)})])
    np.testing.assert_array_equal(result.trace.notes["expected_wait_s"], [7.5, np.nan])


@pytest.mark.parametrize("driver", DRIVERS)
def test_states_of_resources(scripted, driver):
    """State 3 of three P-states is off; a job computes in the P-state that its host was set to."""
    slow = {"type": "SET_RESOURCE_STATE", "data": {"resources": "0", "state": "2"}}
    off = {"type": "SET_RESOURCE_STATE", "data": {"resources": "1", "state": "3"}}
    script = scripted([slow, off, execute(1, "0")])
    result = run(scenario(nodes(2, shutdown_time_s=1.0), [(0, 1, 10)], script, driver))
    assert schedule(result) == [(0, 0.0, 20.0, [0])]  # half the speed
    assert result.energy.total_j.tolist() == [20 * 60.0, 1 * 50.0 + 19 * 5.0]
    check_energy_agreement(result)
    told = [(now, data) for now, events in scripted.messages() for kind, data in events if kind[:8] == "RESOURCE"]
    assert told == [(0.0, {"resources": "0", "state": "2"}), (1.0, {"resources": "1", "state": "3"})]


def set_state(resources: str, state: int) -> dict:
    return {"type": "SET_RESOURCE_STATE", "data": {"resources": resources, "state": str(state)}}


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (set_state("0-1", 3), [(4.0, "1", "3"), (6.0, "0-1", "3")]),  # n0 is off at 6 s, n1 was at 4
        (set_state("1", 0), [(4.0, "1", "3"), (4.0, "1", "0")]),  # it shuts down before it is on again
    ],
)
def test_a_state_is_told_when_the_last_host_has_it(scripted, later, expected):
    """Nodes shut down for 4 s: n1 from 0 s on, and another change comes at 2 s."""
    call = {"type": "CALL_ME_LATER", "data": {"timestamp": 2.0}}
    script = scripted([set_state("1", 3), execute(1, "2"), call], [later])
    run(scenario(nodes(3, shutdown_time_s=4.0), [(0, 1, 10)], script))
    told = [(now, data) for now, events in scripted.messages() for kind, data in events if kind[:8] == "RESOURCE"]
    assert [(now, each["resources"], each["state"]) for now, each in told] == expected


def lost_at_4() -> Platform:
    """Return two nodes, of which n0 goes down at 4 s."""
    two, down = nodes(2), HostProfiles(states=(("n0", Profile((4.0, 100.0), (0.0, 1.0))),))
    return Platform(two.hosts, two.clusters, profiles=down)


def test_a_lost_job_is_submitted_again_under_another_id(scripted):
    """Host n0 fails at 4 s with job 1 on it: it hears of host and job, and starts it on n1."""
    again = {"type": "EXECUTE_JOB", "data": {"job_id": "w0!1#1", "alloc": "1"}}
    result = run(scenario(lost_at_4(), [(0, 1, 10)], scripted([execute(1, "0")], [again]), on_failure="restart"))
    _, _, lost, _ = scripted.messages()
    assert [kind for kind, _ in lost[1]] == ["JOB_COMPLETED", "JOB_SUBMITTED", "NOTIFY"]
    assert lost[1][0][1]["job_state"] == "COMPLETED_FAILED"
    assert lost[1][1][1]["job_id"] == "w0!1#1"
    assert lost[1][2][1] == {"type": "event_machine_unavailable", "resources": "0"}
    assert schedule(result) == [(0, 0.0, 4.0, [0]), (0, 4.0, 14.0, [1])]


def test_a_job_that_starts_again_has_its_progress_from_then_on(scripted):
    """Lost at 4 s, started again and killed at 9 s it has done 5 of 10 s."""
    call = {"type": "CALL_ME_LATER", "data": {"timestamp": 9.0}}
    again = {"type": "EXECUTE_JOB", "data": {"job_id": "w0!1#1", "alloc": "1"}}
    kill = {"type": "KILL_JOB", "data": {"job_ids": ["w0!1#1"]}}
    script = scripted([execute(1, "0")], [again, call], [kill])
    run(scenario(lost_at_4(), [(0, 1, 10)], script, on_failure="restart"))
    told = [data for _, events in scripted.messages() for kind, data in events if kind == "JOB_KILLED"]
    assert told[0]["job_progress"]["w0!1#1"]["progress"] == 0.5


def test_the_id_of_a_lost_job_is_no_job_s_any_more(scripted):
    """It was submitted again as w0!1#1."""
    with pytest.raises(SimulationError, match="w0!1"):
        run(scenario(lost_at_4(), [(0, 1, 10)], scripted([execute(1, "0")], [execute(1, "1")]), on_failure="restart"))


# ---------------------------------------------------------------------- schedulers that do not work

BEGIN = {"now": 0.0, "events": []}
BAD_ANSWERS = {
    "death": ([3], ("exit status 3", "status 3")),
    "silence": ([None], ("0.5 s",)),
    "no JSON": (["{"], ("not JSON",)),
    "another object": (['{"a": 1}'], ("'now'",)),
    "no number": ([json.dumps({**BEGIN, "now": float("nan")})], ("now",)),
    "the past": ([json.dumps({**BEGIN, "now": -1.0})], ("now", "-1.0")),
    "back in time": (
        [[{**execute(1, "0"), "timestamp": 5.0}, {**execute(2, "1"), "timestamp": 3.0}]],
        ("timestamp", "3.0"),
    ),
    "deep": (["[" * 100_000], ("not JSON",)),
    "a strange request": ([[{"type": "REGISTER_JOB", "data": {}}]], ("REGISTER_JOB",)),
    "no such job": ([[execute(9, "0")]], ("w0!9",)),
    "no such host": ([[execute(1, "0-99999999")]], ("0-99999999", "0 to 1")),
    "the host after the last": ([[execute(1, "2")]], ("alloc", "0 to 1")),
    "beyond its own time": ([json.dumps({**BEGIN, "events": [execute(1, "0", timestamp=5.0)]})], ("timestamp", "5.0")),
    "no alloc": ([[execute(1, "")]], ("alloc",)),
    "no such state": ([[{"type": "SET_RESOURCE_STATE", "data": {"resources": "0", "state": "9"}}]], ("n0", "'9'")),
    "a job twice": ([[execute(1, "0"), execute(1, "1")]], ("running",)),
    "hosts twice": ([[execute(1, "0"), execute(2, "0")]], ("host 0", "busy")),
    "calls without end": ([[{"type": "CALL_ME_LATER", "data": {"timestamp": 0.0}}]] * 10_001, ("10,000",)),
}


@pytest.mark.parametrize(("answers", "facts"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_bad_answers_end_the_run_in_one_line(scripted, answers, facts):
    """The line explains what is wrong; nothing hangs, and no process is left."""
    timeout_s = 0.5 if answers == [None] else 60.0  # a busy machine starts what answers slowly
    parameters = {"answer_timeout_s": timeout_s}
    wrong = scenario(nodes(2), [(0, 1, 10), (0, 1, 10)], scripted(*answers), parameters=parameters)
    with pytest.raises((SimulationError, InvalidDecision)) as raised:
        run(wrong)
    said = str(raised.value)
    assert "\n" not in said
    assert len(said) < 700
    assert [fact for fact in facts if fact not in said] == []
    assert scripted.is_gone()


def test_a_scheduler_that_never_starts_a_job_leaves_the_run_unfinished(scripted, capfd):
    """The command reports this in one line and ends with status 1."""
    command = ["run", "--workload", str(ROOT / "examples/four_nodes.swf"), "--scheduler", ADDRESS]
    assert main([*command, "--driver", "reference", "--batsim-start", scripted()]) == 1
    assert len([line for line in capfd.readouterr().err.splitlines() if "warning" not in line]) == 1
    assert scripted.is_gone()


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_scheduler_that_is_only_called_later_ends_the_run(scripted, driver):
    """It has itself called a second later at each call, and starts nothing."""
    calls = [[{"type": "CALL_ME_LATER", "data": {"timestamp": k + 1}}] for k in range(30)]
    with pytest.raises(IncompleteRun, match=r"Batsim.* 20 times since"):
        run(scenario(nodes(2), [(0, 1, 10)], scripted(*calls), driver, max_idle_wakeups=20))
    assert scripted.is_gone()


@pytest.mark.parametrize("command", ["run --scheduler", "compare --schedulers"])
def test_a_command_says_for_whom_it_waits(command, capfd):
    """Nothing listens at a port: the address and the time are on stderr before the wait, and the run fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    words = [*command.split(), f"batsim:{address}", "--workload", str(ROOT / "examples/four_nodes.swf")]
    assert main([*words, "--driver", "reference", "--set", "answer_timeout_s=0.5"]) == 1
    first, *_, last = [line for line in capfd.readouterr().err.splitlines() if "warning" not in line]
    assert "not answered" in last
    assert [fact for fact in (address, "0.5 s", "--batsim-start") if fact not in first] == []
    assert main([*words, "--driver", "reference", "--set", "answer_timeout_s=-1"]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(("timeout_s", "limits"), [(None, ["7.5 s"]), (321.0, ["7.5 s", "321 s"])])
def test_a_long_run_states_how_long_it_waits(scripted, monkeypatch, timeout_s, limits):
    """For each answer as set, and for the whole run if it has a wall time; in one line."""
    lines = []
    monkeypatch.setattr(long_work, "PATIENCE_S", 0.0)
    monkeypatch.setattr(long_work, "reporters", [lines.append])
    one = scenario(nodes(1), [(0, 1, 10)], scripted([execute(1, "0")]))
    run(replace(one, parameters={**one.parameters, "answer_timeout_s": 7.5}, timeout_s=timeout_s))
    (line,) = [each for each in lines if "another program" in each]
    assert re.findall(r"[\d.]+ s\b", line) == limits


@pytest.mark.parametrize("address", ["ipc://@gridsched-test-heard", "tcp://127.0.0.1:0"])
def test_nobody_waits_for_a_scheduler_that_runs(address, scripted):
    """What listens at the address is noticed, and serves the run all the same."""
    if address.endswith(":0"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    ours = make_scheduler(f"batsim:{address}")
    assert address in ours.awaited()
    peer = subprocess.Popen(shlex.split(scripted([execute(1, "0")]).replace("{address}", address)))
    try:
        deadline = time.monotonic() + 20.0
        while ours.awaited() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not ours.awaited()
        one = scenario(nodes(1), [(0, 1, 10)], "", parameters={"address": address})
        assert schedule(run(one)) == [(0, 0.0, 10.0, [0])]
    finally:
        peer.kill()
        peer.wait()


def test_a_scheduler_that_was_started_by_hand_may_go_away(scripted):
    """Without a command the connection shows it: the run does not wait for the time-out."""
    start = shlex.split(scripted([execute(1, "0")], 0).replace("{address}", "ipc://@gridsched-test-batsim"))
    peer = subprocess.Popen(start)
    try:
        one = scenario(nodes(1), [(0, 1, 10), (5, 1, 10)], "", parameters={"address": "ipc://@gridsched-test-batsim"})
        with pytest.raises(SimulationError, match="connection"):
            run(one)
    finally:
        peer.kill()
        peer.wait()


def test_what_cannot_be_started_is_told(tmp_path):
    """The command is named."""
    with pytest.raises(SimulationError, match="no-such-program"):
        run(scenario(nodes(1), [(0, 1, 10)], "no-such-program {address}"))


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"address": "28000"}, "address"),
        ({"address": "http://x:80"}, "address"),
        ({"start": ""}, "start"),
        ({"answer_timeout_s": 0}, "answer_timeout_s"),
    ],
)
def test_illegal_parameters_are_refused_before_anything_starts(parameters, named):
    """The message states this."""
    with pytest.raises(InputError, match=named):
        run(scenario(nodes(1), [(0, 1, 10)], EASY, parameters=parameters))


def test_rules_that_batsim_does_not_know_are_refused():
    """Mapping intervals, and budgets that refuse: the scheduler could not hear of a refusal."""
    for rules in ({"mapping_interval_s": 5.0}, {"budget": EnergyBudget(1e9)}):
        with pytest.raises(InputError, match="mapping intervals"):
            run(scenario(nodes(1), [(0, 1, 10)], EASY, **rules))


def test_the_extra_is_loaded_late_and_its_lack_told(monkeypatch):
    """`import gridsched` does without pyzmq; a run explains how to install it."""
    code = "import gridsched, sys; sys.exit('zmq' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}).returncode == 0
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(MissingDependency, match=r"gridsched\[batsim\]"):
        check(scenario(nodes(1), [(0, 1, 10)], EASY))


# ---------------------------------------------------------------------- trust

STUDY = f"""
name = "bridged"
driver = "reference"
schedulers = ["easy_backfilling", {{ id = "{ADDRESS}", start = {EASY!r} }}]
workload = {{ file = "{ROOT / "examples/four_nodes.swf"}" }}
"""


def test_a_study_starts_programs_only_where_somebody_says_so(tmp_path, capfd):
    """Neither its runs, nor their timing, nor a repetition from the store start what a file names."""
    file = tmp_path / "bridged.toml"
    file.write_text(STUDY)
    study = Study.from_file(file)
    with pytest.raises(NotTrusted, match="batsim_easy"):
        run_campaign(study, Store.create(tmp_path / "store"))
    with pytest.raises(NotTrusted):
        estimate(study, 1)
    assert main(["study", "run", str(file), "--store", str(tmp_path / "store")]) == 2
    assert "--trust" in capfd.readouterr().err
    assert main(["study", "run", str(file), "--store", str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
    assert main(["study", "run", str(file), "--store", str(tmp_path / "store"), "--trust", "--quiet"]) == 0
    rows = Store.open(tmp_path / "store").rows(study)
    assert len(set(rows["makespan_s"])) == 1
    bridged = rows[rows["scheduler"] == ADDRESS]["run_id"].item()
    with pytest.raises(NotTrusted):
        rerun(Store.open(tmp_path / "store"), bridged)
    assert rerun(Store.open(tmp_path / "store", trust=True), bridged).is_identical


def test_the_address_may_follow_the_id():
    """`batsim:ADDRESS` is the parameter `address`; no other id takes one."""
    assert make_scheduler("batsim:ipc:///tmp/x").parameters["address"] == "ipc:///tmp/x"
    with pytest.raises(InputError, match="wq:1"):
        make_scheduler("wq:1")


def test_events_from_outside_are_refused(tmp_path):
    """The protocol has no messages for them; nothing is started."""
    file = tmp_path / "events.csv"
    file.write_text("time_s,event,what\n1,drain,n0\n")
    asked = scenario(nodes(2), [(0.0, 1, 10.0)], "false", events=file)
    for act in (run, Simulation):
        with pytest.raises(InputError, match="another program"):
            act(asked)
