"""Campaigns: run, interrupt, continue, repeat; what dies is done again, what fails is a row."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import pytest
from campaign_cases import ROOT, campaign, check_complete, command, comparable, outcome, write_study, write_troubled

from gridsched.campaign.local_pool import JobExecutor, WorkerProcess
from gridsched.campaign.messages import Job, WorkerConfig, ended_row
from gridsched.campaign.rerun import rerun
from gridsched.campaign.run_records import read_records
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.cli.app import main
from gridsched.files.output_files import is_alive, temporary_folder
from gridsched.runs.run_filter import run_filter
from gridsched.runs.run_spec import RESULTS_VERSION
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

#: Makespan [s] and energy [J] of the small study's first replicate.
RESULTS = [
    (24.808624609593597, 10670.152373437973),
    (61.50131553849867, 2984.02861642694),
    (29.617249219187194, 11337.067572025771),
    (35.65085012738103, 10859.723494153306),
]


def test_a_campaign_stores_every_run_and_continues(tmp_path: Path):
    """A second command runs nothing, a changed study what is new; failed runs are rows."""
    path = write_study(tmp_path, driver="simgrid")
    study, store = Study.from_file(path, trust=True), Store.create(tmp_path / "store")
    meant = run_filter("heterogeneity == 1", study.axis_names)
    part = campaign(path, store.root, is_meant=meant, records=True)
    assert (part.total, part.found, part.done, part.failed) == (4, 0, 4, 0)
    whole = campaign(path, store.root, workers=2)
    assert (whole.total, whole.found, whole.done, whole.failed) == (8, 4, 4, 0)
    again = campaign(path, store.root)
    assert (again.found, again.done) == (8, 0)
    path.write_text(path.read_text().replace("replicates = 2", "replicates = 3"))
    more = campaign(path, store.root)
    assert (more.total, more.found, more.done) == (12, 8, 4)
    rows = store.rows(Study.from_file(path, trust=True))
    assert set(rows["status"]) == {"finished"}
    assert rows["energy_worst_host_difference"].max() < 1e-9
    assert store.segments() == []
    records = read_records(store.root, rows.loc[rows["workload.heterogeneity"] == 1, "run_id"][2])
    assert records["record"].value_counts().to_dict() == {"execution": 12, "host": 6}
    repeated = rerun(store, rows["run_id"][0])
    assert repeated.is_identical
    assert repeated.other_versions == []


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_what_a_policy_says_of_the_machine_is_said_of_its_run(tmp_path: Path, driver: str):
    """A policy that lacks something, or blames the machine, ends no campaign: its run has failed."""
    path = write_troubled(
        tmp_path, '[{id = "troubled", label = "t", ending = ["miss something", "blame the machine"]}, "wq"]'
    )
    path.write_text(path.read_text().replace('driver = "reference"', f'driver = "{driver}"'))
    progress = campaign(path, tmp_path / "store")
    assert (progress.done, progress.failed) == (3, 2)
    rows = Store.open(tmp_path / "store").rows(Study.from_file(path, trust=True)).set_index("scheduler")
    assert rows.loc["wq", "status"] == "finished"
    errors = rows["error"]
    assert errors["t(ending=miss something)"].startswith("my solver is not here (troubled.py:")
    assert errors["t(ending=blame the machine)"].startswith("my machine is tired (troubled.py:")


def test_troubles_become_rows(tmp_path: Path):
    """A policy that raises, hangs or kills its process gives a failed row with the reason."""
    path = write_troubled(
        tmp_path,
        '["wq", {id = "troubled", label = "t", ending = ["raise", "die"]}, '
        '{id = "troubled", label = "slow", wait_s = 60}]',
    )
    progress = campaign(path, tmp_path / "store", timeout_s=1.0)
    assert (progress.done, progress.failed) == (4, 3)
    store = Store.open(tmp_path / "store")
    rows = store.rows(Study.from_file(path, trust=True)).set_index("scheduler")
    assert rows.loc["wq", "status"] == "finished"
    errors = rows["error"]
    assert errors["t(ending=raise)"].startswith("ValueError: no luck (troubled.py:")
    assert "ended by signal 9 (SIGKILL)" in errors["t(ending=die)"]
    assert errors["slow"].endswith("ended after the time-out of 1 s.")
    assert pd.isna(rows.loc["slow", "energy_j"])
    assert campaign(path, store.root).done == 0


def test_a_time_out_needs_no_good_will(tmp_path: Path):
    """Policies that catch every exception, or loop in C, are ended by the leading process."""
    path = write_troubled(tmp_path, '["wq", {id = "troubled", label = "t", ending = ["hang", "hang in C"]}]')
    progress = campaign(path, tmp_path / "store", timeout_s=1.0)
    assert (progress.done, progress.failed) == (3, 2)
    store = Store.open(tmp_path / "store", trust=True)
    rows = store.rows(Study.from_file(path, trust=True)).set_index("scheduler")
    assert rows.loc["wq", "status"] == "finished"
    hanging = rows[rows.index != "wq"]
    assert hanging["error"].str.endswith("ended after the time-out of 1 s.").all()
    assert hanging["timing.total_s"].between(1.0, 30.0).all()
    repeated = rerun(store, hanging["run_id"].iloc[0], timeout_s=0.5)
    assert repeated.repeated["error"].endswith("ended after the time-out of 0.5 s.")


def test_what_policies_start_does_not_outlive_a_campaign(tmp_path: Path):
    """Threads and child processes are not waited for; endless printing goes into no file."""
    entries = [
        f'{{id = "troubled", label = "{each}", ending = "{each}", flag = "{tmp_path / each}"}}'
        for each in ("print", "leave a thread", "leave a child")
    ]
    path = write_troubled(tmp_path, f"[{', '.join(entries)}]")
    progress = campaign(path, tmp_path / "store", timeout_s=2.0)
    assert (progress.done, progress.failed) == (3, 1)
    rows = Store.open(tmp_path / "store").rows(Study.from_file(path, trust=True)).set_index("scheduler")
    assert rows.loc["print", "error"].endswith("ended after the time-out of 2 s.")
    assert (tmp_path / "print").read_text().startswith("pipe:")
    wait_for_the_end_of(int((tmp_path / "leave a child").read_text()))


DIES_AT_IMPORT = """
if Path({entered!r}).exists():
    child = os.fork()
    if child == 0:
        os.setsid()  # no more in its worker's group
        time.sleep(3600)
    Path({child!r}).write_text(str(child))
    print("x" * 3_000_000)
    print("y" * 55_000, "the end", flush=True)
    os._exit(3)
"""


def test_a_worker_that_dies_is_not_waited_for(tmp_path: Path):
    """Neither a child that holds its pipes nor megabytes of prints hide how it ended."""
    path, entered = write_troubled(tmp_path, '["troubled"]'), tmp_path / "entered"
    with (tmp_path / "troubled.py").open("a") as stream:
        stream.write(DIES_AT_IMPORT.format(entered=str(entered), child=str(tmp_path / "child")))
    study = Study.from_file(path, trust=True)
    (run,) = study.scenarios()
    entered.touch()  # from now on who imports the file dies
    inputs = {each.sha256: each.path for each in study.inputs.values()}
    worker = WorkerProcess(WorkerConfig(None, inputs, tmp_path))
    job = Job(run.run_id, run.scenario, run.policies)
    assert worker.do(job) is None
    assert not worker.is_alive
    how = worker.end()
    assert how.startswith("exit status 3: yyy")
    error = ended_row(job, error=how)["error"]
    assert error.endswith("yyy the end")
    assert len(error) < 600
    wait_for_the_end_of(int((tmp_path / "child").read_text()))


WRITES_AT_IMPORT = """
for number in range(3, 64) if Path({entered!r}).exists() else ():
    try:
        os.write(number, b"x" * 100)
    except OSError:
        pass
"""


def test_a_worker_that_says_no_message_is_not_waited_for(tmp_path: Path):
    """A file of policies writes into the worker's pipe: its run has failed, without a time-out."""
    path, entered = write_troubled(tmp_path, '["troubled"]'), tmp_path / "entered"
    with (tmp_path / "troubled.py").open("a") as stream:
        stream.write(WRITES_AT_IMPORT.format(entered=str(entered)))
    study = Study.from_file(path, trust=True)
    (run,) = study.scenarios()
    entered.touch()
    inputs = {each.sha256: each.path for each in study.inputs.values()}
    executor = JobExecutor(WorkerConfig(None, inputs, tmp_path))
    answer = executor.do(Job(run.run_id, run.scenario, run.policies))
    executor.end()
    assert answer.status == "failed"
    assert "was not a message" in answer.error


def test_faults_of_the_machine_are_no_results(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Runs for which no process or thread can be made are not stored; exit 2 while it lasts."""
    flag = tmp_path / "flag"
    path = write_troubled(
        tmp_path, f'["wq", {{id = "troubled", ending = "no process", flag = "{flag}"}}]', replicates=2
    )
    store = tmp_path / "store"
    arguments = ["study", "run", str(path), "--store", str(store), "--workers", "2", "--quiet", "--trust"]
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "2 runs could not be done" in err
    assert "Resource temporarily unavailable" in err
    assert err.count("\n") == 1
    assert set(Store.open(store).rows()["status"]) == {"finished"}
    flag.touch()
    assert main(arguments) == 0
    rows = Store.open(store).rows()
    assert rows["status"].tolist() == ["finished"] * 4


def test_a_machine_that_can_do_nothing_ends_the_campaign(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Where no run can be done the campaign does not try them all."""
    path = write_troubled(tmp_path, '[{id = "troubled", ending = "no thread"}]', replicates=40)
    store = tmp_path / "store"
    words = ["study", "run", str(path), "--store", str(store), "--workers", "1", "--quiet", "--trust"]
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "No run can be done: " in err
    assert "RuntimeError: can't start new thread" in err
    assert len(Store.open(store).stored()) == 0


def test_workers_that_do_not_start_end_the_campaign(tmp_path: Path):
    """An interpreter that cannot start: one line, exit status 2, and no run is a failed one."""
    path, store = write_study(tmp_path), tmp_path / "store"
    words = (
        "import sys; from gridsched.cli.app import main; sys.executable = '/bin/false'; "
        f"sys.exit(main(['study', 'run', {str(path)!r}, '--store', {str(store)!r}, '--quiet']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 2
    assert "A worker process did not start: exit status 1" in done.stderr
    assert done.stderr.count("\n") == 1
    assert Store.open(store).stored() == {}


def test_no_room_for_a_worker_ends_the_campaign(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """Where a worker finds no room: one line, exit status 2, and no waiting."""

    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", no_room)
    path, store = write_study(tmp_path), tmp_path / "store"
    assert main(["study", "run", str(path), "--store", str(store), "--quiet"]) == 2
    err = capsys.readouterr().err
    assert "A worker process cannot be made: Resource temporarily unavailable." in err
    assert err.count("\n") == 1
    assert Store.open(store).stored() == {}


def test_a_server_that_does_not_start_gives_no_results(tmp_path: Path):
    """SimGrid runs whose server cannot start are not stored as failed: exit status 2."""
    path, store = write_study(tmp_path, driver="simgrid"), tmp_path / "store"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import sys\nif 'gridsched.sim.server' in sys.orig_argv[-1]:\n    sys.exit()\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gridsched",
            "study",
            "run",
            str(path),
            "--store",
            str(store),
            "--quiet",
            "--workers",
            "1",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path / 'site'}"},
    )
    assert done.returncode == 2, done.stderr
    assert "The simulation server did not start: exit status 1" in done.stderr
    assert Store.open(store).stored() == {}


def test_scratch_folders_of_killed_campaigns_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The next campaign removes the folder of one that was killed, and no other's."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (scratch / "gridsched-scratch-thesis").mkdir()
    path = write_troubled(tmp_path, '[{id = "troubled", wait_s = 60}]')
    words = ("run", path, "--store", tmp_path / "other", "--trust")
    first = command(*words, environment={"TMPDIR": str(scratch)})
    deadline = time.monotonic() + 300
    while len(list(scratch.iterdir())) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with temporary_folder() as own:
        assert len(list(scratch.iterdir())) == 3
        first.kill()
        outcome(first)
        with temporary_folder() as other:
            left = {own.name, other.name, "gridsched-scratch-thesis"}
            assert {each.name for each in scratch.glob("gridsched-scratch-*")} == left
    assert [each.name for each in scratch.glob("gridsched-scratch-*")] == ["gridsched-scratch-thesis"]


def test_a_scratch_folder_survives_no_reused_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In a container the next process has the number of the one that was killed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old = tmp_path / f"gridsched-scratch-{os.getpid()}-left"
    old.mkdir()
    os.utime(old, (1e9, 1e9))  # long before this process began
    with temporary_folder() as own:
        assert list(tmp_path.iterdir()) == [own]
        with temporary_folder() as other:
            assert set(tmp_path.iterdir()) == {own, other}


def test_failed_runs_are_done_again_on_request(tmp_path: Path):
    """--retry-failed repeats failed runs only; the exit status shows whether any is left."""
    flag = tmp_path / "flag"
    path = write_troubled(tmp_path, f'["wq", {{id = "troubled", ending = "unless flag", flag = "{flag}"}}]')
    store = tmp_path / "store"
    arguments = ["study", "run", str(path), "--store", str(store), "--workers", "1", "--quiet", "--trust"]
    assert main(arguments) == 1
    assert main(arguments) == 1
    flag.touch()
    assert main([*arguments, "--retry-failed"]) == 0
    assert set(Store.open(store).rows()["status"]) == {"finished"}


def test_rerun_tells_identical_from_different(tmp_path: Path, capsys: pytest.CaptureFixture):
    """rerun exits 0 for identical metrics, and names each that differs in one bit."""
    path, store = write_study(tmp_path, replicates=1), tmp_path / "store"
    campaign(path, store)
    kept = Store.open(store)
    row = kept.row(kept.rows()["run_id"][0])
    assert main(["study", "rerun", str(store), row["run_id"][:12]]) == 0
    assert f"Run {row['run_id']}: identical in all" in capsys.readouterr().out
    (parquet,) = store.glob("rows-*.parquet")
    parquet.unlink()
    writer = kept.writer()
    row["metrics"]["energy_j"] += 1e-9
    writer.write(row)
    writer.close()
    assert main(["study", "rerun", str(store), row["run_id"], "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["what"] for each in told["differences"]] == ["energy_j"]


def test_rerun_judges_what_was_stored(tmp_path: Path, capsys: pytest.CaptureFixture):
    """A metric that the row's version did not have is reported, and is no difference."""
    path, store = write_study(tmp_path, replicates=1), tmp_path / "store"
    campaign(path, store)
    kept = Store.open(store)
    row = kept.row(kept.rows()["run_id"][0])
    (parquet,) = store.glob("rows-*.parquet")
    parquet.unlink()
    writer = kept.writer()
    del row["metrics"]["energy_j"]
    writer.write(row)
    writer.close()
    assert main(["study", "rerun", str(store), row["run_id"]]) == 0
    assert "energy_j" in capsys.readouterr().out
    assert main(["study", "rerun", str(store), row["run_id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_stored"] == ["energy_j"]


def test_check_tells_axes_runs_and_time(tmp_path: Path, capsys: pytest.CaptureFixture):
    """check prints what varies and an estimate; a run that fails in it makes it exit 1."""
    path = write_study(tmp_path)
    assert main(["study", "check", str(path), "--json", "--samples", "3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 8
    assert [axis["axis"] for axis in told["axes"]] == ["workload.heterogeneity", "scheduler"]
    assert told["estimate"]["timed_runs"] == 3
    assert main(["study", "check", str(path), "--samples", "0"]) == 0
    assert "8 runs" in capsys.readouterr().out
    path = write_troubled(tmp_path, '[{id = "troubled", ending = "raise"}]')
    assert main(["study", "check", str(path), "--samples", "1", "--trust"]) == 1
    assert "run failed: " in capsys.readouterr().err


def test_results_are_those_of_their_version(tmp_path: Path):
    """Where these numbers change, RESULTS_VERSION must be raised: stored runs hold the old ones."""
    study = Study.from_file(write_study(tmp_path, replicates=1))
    maker = ScenarioMaker({each.sha256: each.path for each in study.inputs.values()}, tmp_path)
    rows = [perform(maker, Job(run.run_id, run.scenario), None)[0] for run in study.scenarios()]
    assert RESULTS_VERSION == 6
    found = [(row["metrics"]["makespan_s"], row["metrics"]["energy_j"]) for row in rows]
    assert found == [pytest.approx(pair, rel=1e-12) for pair in RESULTS]


def test_the_forking_process_has_no_arrow(tmp_path: Path):
    """The server that forks for each run loads neither pyarrow nor pandas: both start threads."""
    code = (
        "import sys; from gridsched.schedulers.kernels import warm_up; "
        "import gridsched.sim.server, gridsched.sim.child; "
        "import gridsched.schedulers.bag.batch, gridsched.schedulers.parallel.backfilling; "
        "warm_up(); "
        "sys.exit(bool({'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("{study}", "--store", "{folder}"), "not empty"),
        (("nowhere.toml", "--store", "{folder}/s"), "nowhere.toml: cannot be read"),
        (("nothing", "--store", "{folder}/s"), "No study 'nothing'"),
        (("{study}", "--store", "{folder}/s", "--only", "x == 1"), "'x' is not an axis"),
        (("{study}", "--store", "{folder}/s", "--only", "replicate > 9"), "no run of the study"),
        (("{study}", "--store", "{folder}/s", "--timeout-s", "nan"), "--timeout-s is nan"),
        (("{study}", "--store", "{folder}/s", "--workers", "0"), "--workers"),
        (("{study}", "--store", "/proc/s"), "cannot be written"),
        (("{study}", "--store", "{folder}/s/deep", "--records", "--dask", "nowhere"), "--records"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture, arguments: tuple[str, ...], problem: str):
    """Bad input gives one line and exit status 2; no store is begun."""
    words = {"study": write_study(tmp_path), "folder": tmp_path}
    status = main(["study", "run", *(word.format(**words) for word in arguments)])
    err = capsys.readouterr().err
    assert status == 2
    assert problem in err
    assert err.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_a_campaign_that_is_refused_late_leaves_only_rows(tmp_path: Path, capsys: pytest.CaptureFixture):
    """A store that was made for it goes with it, folders above included; one that was there keeps all it had."""
    study, store = write_study(tmp_path, replicates=1), tmp_path / "new" / "store"
    refused = ["study", "run", str(study), "--store", str(store), "--dask", "udp://nowhere"]
    assert main(refused) == 2
    assert "--dask" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert main([*refused[:-2], "--only", "scheduler == 'wq'", "--quiet"]) == 0
    rows = Store.open(store).stored()
    assert rows
    assert main(refused) == 2
    assert Store.open(store).stored() == rows
    assert Store.open(store).study().name


def wait_for_rows(store: Path, number: int) -> None:
    """Wait until a campaign has stored so many rows."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if sum(map(lines_of, store.glob("segments/*"))) >= number:
            return
        time.sleep(0.005)
    raise AssertionError("the campaign stores nothing")


def lines_of(path: Path) -> int:
    """Count the lines of a file; 0 if another process has just put its rows elsewhere."""
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def wait_for_the_end_of(pid: int) -> None:
    """Wait until a process has ended."""
    deadline = time.monotonic() + 60  # its signal is on its way
    while is_alive(pid):
        assert time.monotonic() < deadline, "it outlives its worker"
        time.sleep(0.01)


def children_of(pid: int) -> list[int]:
    """Return the ids of all processes below one."""
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found += [child, *children_of(child)]
    except (FileNotFoundError, ProcessLookupError):
        return found  # it ended in this moment
    return found


def disturb(process: subprocess.Popen, chance: random.Random) -> None:
    """Kill a random process of a campaign: the leading one, a worker, a server or a run."""
    try:
        victims = [process.pid, *children_of(process.pid)]
        os.kill(chance.choice(victims), signal.SIGKILL)
    except (ProcessLookupError, FileNotFoundError):
        return  # it ended in this moment


def test_killed_campaigns_continue(tmp_path: Path, undisturbed: pd.DataFrame):
    """Killed leading process, killed worker, Ctrl-C: nothing is lost but the runs at work."""
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    arguments = ("run", path, "--store", store, "--workers", 2)
    first = command(*arguments)
    wait_for_rows(store, 5)
    workers = children_of(first.pid)
    first.kill()
    outcome(first)
    deadline = time.monotonic() + 300
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "workers outlive their campaign"
        time.sleep(0.01)
    stored = len(Store.open(store).stored())
    assert stored >= 5
    second = command(*arguments)
    wait_for_rows(store, stored + 5)
    os.kill(random.choice(children_of(second.pid)), signal.SIGKILL)
    wait_for_rows(store, stored + 15)
    second.send_signal(signal.SIGINT)
    status, _, err = outcome(second)
    assert status == 130, err
    assert "The same command continues." in err
    third = command(*arguments, "--json-lines")
    status, out, err = outcome(third)
    assert (status, err) == (0, "")
    last = json.loads(out.splitlines()[-1])
    assert (last["event"], last["failed"], last["found"] + last["done"]) == ("end", 0, 160)
    assert last["found"] >= stored + 15
    check_complete(store, path, undisturbed)


def test_two_campaigns_share_a_store(tmp_path: Path, undisturbed: pd.DataFrame):
    """Two commands at once on one store give every run once."""
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    both = [command("run", path, "--store", store, "--workers", 1, "--quiet") for _ in range(2)]
    assert [outcome(process)[0] for process in both] == [0, 0]
    check_complete(store, path, undisturbed)


def test_a_full_disk_ends_a_campaign_cleanly(tmp_path: Path, undisturbed: pd.DataFrame):
    """With a limit on file sizes: one line, exit status 2; the same command continues later."""
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    words = f"ulimit -f 30; exec {sys.executable} -m gridsched study run {path} --store {store}"
    limited = subprocess.run(
        ["bash", "-c", words], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert limited.returncode == 2, limited.stderr
    assert "cannot be written: File too large" in limited.stderr.splitlines()[-1]
    kept = Store.open(store)
    assert 0 < len(kept.stored()) < 160
    assert kept.damage == []
    assert campaign(path, store).failed == 0
    check_complete(store, path, undisturbed)


@pytest.mark.faults
@pytest.mark.parametrize("round_", range(20))
@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_random_kills_lose_nothing(tmp_path: Path, driver: str, round_: int):
    """Whoever is killed at whatever moment, in the end every run is there exactly once."""
    chance = random.Random(f"{driver} {round_}")
    path, store = write_study(tmp_path, replicates=30, driver=driver), tmp_path / "store"
    process = _working("run", path, "--store", tmp_path / "quiet", "--workers", 2, "--quiet")
    began = time.monotonic()
    assert outcome(process)[0] == 0
    whole_s = time.monotonic() - began  # kills fall while runs are done, however fast that is
    quiet = comparable(Store.open(tmp_path / "quiet").rows(Study.from_file(path, trust=True)))
    for _ in range(4):
        process = _working("run", path, "--store", store, "--workers", 2, "--quiet")
        for _ in range(3):
            time.sleep(chance.uniform(0.0, whole_s / 3))
            disturb(process, chance)
        process.kill()
        outcome(process)
        if (store / "store.json").exists() and chance.random() < 0.5:
            _truncate_something(store, chance)
    process = command("run", path, "--store", store, "--quiet", "--retry-failed")
    assert outcome(process)[0] == 0
    check_complete(store, path, quiet)


def _working(*arguments: object) -> subprocess.Popen:
    """Start a campaign and wait for its workers, unless it ends before, with nothing to do."""
    process = command(*arguments)
    while process.poll() is None and not children_of(process.pid):
        time.sleep(0.01)
    return process


def _truncate_something(store: Path, chance: random.Random) -> None:
    files = [*store.glob("segments/*"), *store.glob("rows-*.parquet")]
    if files:
        path = chance.choice(files)
        os.truncate(path, chance.randrange(path.stat().st_size + 1))


@pytest.mark.faults
def test_a_full_device_ends_a_campaign_cleanly(tmp_path: Path):
    """On a file system of 200 kB: one line, exit status 2; with room the same command continues."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(small)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        path, store = write_study(tmp_path, replicates=40), small / "store"
        status, _, err = outcome(command("run", path, "--store", store))
        assert status == 2
        assert "No space left on device" in err.splitlines()[-1]
        assert Store.open(store).damage == []
        assert len(Store.open(store).stored()) > 10
        subprocess.run(["mount", "-o", "remount,size=20m", str(small)], check=True)
        assert outcome(command("run", path, "--store", store))[0] == 0
        assert len(Store.open(store).rows()) == 160
    finally:
        subprocess.run(["umount", str(small)], check=True)
