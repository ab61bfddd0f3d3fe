"""Campaigns on a Dask cluster give the same rows as here, also when a worker dies; so they do through Slurm."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from campaign_cases import ROOT, check_complete, command, outcome, write_study, write_troubled

from gridsched.campaign.dask_pool import Patience
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import InputError

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")


def start(folder: Path, *words: str) -> subprocess.Popen:
    """Start a part of a cluster."""
    with open(folder / "dask.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
            cwd=folder,
            stdout=log,
            stderr=log,
            process_group=0,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )


@contextlib.contextmanager
def running(folder: Path, workers: int, *security: str) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """Run a scheduler with workers on this machine: address and processes."""
    folder.mkdir()
    file = folder / "scheduler.json"
    words = ["--no-dashboard", *security]
    address = ["--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(file)]
    parts = [start(folder, "dask_scheduler", *address, *words, *(["--protocol", "tls"] if security else []))]
    try:
        deadline = time.monotonic() + 300
        while not file.exists():
            assert time.monotonic() < deadline, (folder / "dask.log").read_text()
            time.sleep(0.05)
        worker = ["dask_worker", "--scheduler-file", str(file), "--no-nanny", "--nthreads", "1", *words]
        parts += [start(folder, *worker) for _ in range(workers)]
        yield json.loads(file.read_text())["address"], parts
    finally:
        for part in parts:
            part.kill()
            part.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A scheduler with two workers."""
    with running(tmp_path / "cluster", 2) as parts:
        yield parts


def test_a_cluster_gives_the_same_rows(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen]], undisturbed: pd.DataFrame
):
    """With a worker killed in mid-run, every run is there once and equals a local campaign's."""
    address, parts = cluster
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    process = command("run", path, "--store", store, "--dask", address)
    deadline = time.monotonic() + 300
    while sum(each.stat().st_size for each in store.glob("segments/*")) < 20_000:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(parts[1].pid, signal.SIGKILL)
    status, _, err = outcome(process)
    assert status == 0, err
    check_complete(store, path, undisturbed)
    troubled = write_troubled(tmp_path, '["wq", {id = "troubled", ending = "die"}]')
    status, _, err = outcome(command("run", troubled, "--store", store, "--dask", address, "--trust"))
    assert status == 1
    assert "ended by signal 9 (SIGKILL)" in err


@pytest.mark.long
def test_a_scheduler_that_restarts_loses_no_run(tmp_path: Path, cluster: tuple[str, list[subprocess.Popen]]):
    """Killed and started again in mid-campaign: what it was asked for is done, not failed."""
    address, parts = cluster
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    process = command("run", path, "--store", store, "--dask", address)
    deadline = time.monotonic() + 300
    while sum(each.stat().st_size for each in store.glob("segments/*")) < 20_000:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    for part in parts:
        part.kill()
        part.wait()
    port = address.rpartition(":")[2]
    parts[:] = [
        start(tmp_path, "dask_scheduler", "--port", port, "--no-dashboard", "--host", "127.0.0.1"),
        start(tmp_path, "dask_worker", address, "--no-dashboard", "--no-nanny", "--nthreads", "1"),
    ]
    status, _, err = outcome(process)
    assert status == 0, err
    assert len(Store.open(store).stored()) == 160
    assert set(Store.open(store).stored().values()) == {"finished"}


def test_a_cluster_that_does_not_answer_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """No scheduler at the address: one line, exit status 2."""
    monkeypatch.setattr("gridsched.campaign.dask_pool._CONNECT_S", 1)
    path = write_study(tmp_path)
    words = ["study", "run", str(path), "--store", str(tmp_path / "s"), "--quiet"]
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        assert main([*words, "--dask", address]) == 2
        err = capsys.readouterr().err
        assert f"--dask {address}: no Dask scheduler answers" in err
        assert err.count("\n") == 1


def test_a_cluster_without_workers_is_told(tmp_path: Path):
    """It reports this once, waits, and ends with exit status 2; what is stored is safe."""
    path = write_study(tmp_path)
    with running(tmp_path / "cluster", 0) as (address, _):
        words = ["run", path, "--store", tmp_path / "s", "--dask", address, "--dask-wait-s", "2", "--quiet"]
        status, _, err = outcome(command(*words))
    assert status == 2
    told, ended = err.strip().splitlines()
    assert "no worker" in told
    assert "no worker for 2 s" in ended
    assert "--dask-wait-s" in told


def test_patience_with_a_cluster_has_a_limit():
    """An attempt to connect is to last no longer than until there is something to report, or the limit."""
    lines: list[str] = []
    assert Patience(600.0, lines.append).rest_s == 30.0
    patience = Patience(0.2, lines.append)
    patience.wait("nothing")
    assert (patience.rest_s, lines) == (0.1, [])
    time.sleep(0.2)
    with pytest.raises(InputError, match=r"nothing for 0\.2 s"):
        patience.wait("nothing")
    patience.end()
    patience.wait("nothing")
    assert (patience.rest_s, lines) == (0.1, [])


def test_a_scheduler_that_is_gone_is_told(tmp_path: Path):
    """Killed in mid-campaign and not started again: a line, then exit status 2; stored runs stay."""
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    with running(tmp_path / "cluster", 1) as (address, parts):
        words = ["run", path, "--store", store, "--dask", address, "--dask-wait-s", "3", "--quiet"]
        process = command(*words)
        deadline = time.monotonic() + 300
        while sum(each.stat().st_size for each in store.glob("segments/*")) < 5_000:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        for part in parts:
            part.kill()
        status, _, err = outcome(process)
    assert (status, "Traceback" in err) == (2, False), err
    assert all("no Dask scheduler answers" in line for line in err.strip().splitlines())
    assert set(Store.open(store).stored().values()) == {"finished"}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl, which is not installed")
def test_a_cluster_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With the certificates named in Dask's configuration the address is tls://; without them there is no answer."""
    certificate, key = tmp_path / "cluster.pem", tmp_path / "key.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run(
        ["openssl", *words, "-keyout", key, "-out", certificate], check=True, capture_output=True, cwd=tmp_path
    )
    security = ["--tls-ca-file", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key)]
    path, store = write_study(tmp_path), tmp_path / "store"
    with running(tmp_path / "cluster", 1, *security) as (address, _):
        assert address.startswith("tls://")
        status, _, err = outcome(command("run", path, "--store", store, "--dask", address, "--quiet"))
        assert (status, err.count("\n")) == (2, 1)
        tls = "DASK_DISTRIBUTED__COMM__TLS__"
        monkeypatch.setenv(f"{tls}CA_FILE", str(certificate))
        monkeypatch.setenv(f"{tls}CLIENT__CERT", str(certificate))
        monkeypatch.setenv(f"{tls}CLIENT__KEY", str(key))
        status, _, err = outcome(command("run", path, "--store", store, "--dask", address, "--quiet"))
    assert status == 0, err
    assert set(Store.open(store).stored().values()) == {"finished"}


# A Slurm of two nodes on this machine, through dask-jobqueue.

SLURM_PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "scancel", "sinfo")
MISSING = [name for name in SLURM_PROGRAMS if shutil.which(name) is None]

CONFIGURATION = """
ClusterName=test
SlurmctldHost={name}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName=n1 NodeHostname={name} NodeAddr=127.0.0.1 Port={n1} CPUs=2 RealMemory=2000
NodeName=n2 NodeHostname={name} NodeAddr=127.0.0.1 Port={n2} CPUs=2 RealMemory=2000
PartitionName=all Nodes=n1,n2 Default=YES State=UP
"""


def free_ports(number: int) -> list[int]:
    """Return unused ports of this machine."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(what: str, holds, folder: Path) -> None:
    """Wait until something holds; the logs show why it never does."""
    deadline = time.monotonic() + 120
    while not holds():
        logs = "\n".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.log")))
        assert time.monotonic() < deadline, f"{what}: {logs}"
        time.sleep(0.5)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run munge, a controller and two nodes; commands find them by SLURM_CONF."""
    folder = tmp_path / "slurm"
    (folder / "state").mkdir(parents=True)
    for parent in (folder, *folder.parents[:3]):
        parent.chmod(0o755)
    port, n1, n2 = free_ports(3)
    name = socket.gethostname().partition(".")[0]
    settings = CONFIGURATION.format(name=name, folder=folder, port=port, n1=n1, n2=n2)
    (folder / "slurm.conf").write_text(settings)
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    munge = [
        "--socket",
        "munge.socket",
        "--key-file",
        "munge.key",
        "--pid-file",
        "munge.pid",
        "--log-file",
        "munge.log",
    ]
    munge = [f"{folder}/{word}" if word.startswith("munge.") else word for word in munge]
    commands = [["munged", "--foreground", "--force", *munge, f"--seed-file={folder}/munge.seed"]]
    commands += [["slurmctld", "-D"], ["slurmd", "-D", "-N", "n1"], ["slurmd", "-D", "-N", "n2"]]
    running = []
    try:
        for words in commands:
            with open(folder / "output.log", "ab") as log:
                running.append(subprocess.Popen(words, stdout=log, stderr=log, cwd=folder))
            time.sleep(1.0)
        idle = ["sinfo", "--noheader", "--format=%T %D"]
        wait_for(
            "two idle nodes",
            lambda: subprocess.run(idle, capture_output=True).stdout.split() == [b"idle", b"2"],
            folder,
        )
        yield folder
    finally:
        for each in reversed(running):
            each.terminate()
        for each in reversed(running):
            each.wait(timeout=60)


@pytest.mark.faults
@pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons are started by root")
@pytest.mark.skipif(bool(MISSING), reason=f"apt-get install slurm-wlm munge: missing are {', '.join(MISSING)}")
def test_a_study_on_slurm_gives_the_same_rows(tmp_path: Path, slurm: Path, undisturbed: pd.DataFrame):
    """Two jobs of a worker each, one of which is cancelled: every run is there once, as on one machine."""
    jobqueue = pytest.importorskip("dask_jobqueue", reason="the extra 'cluster' is not installed")
    path, store = write_study(tmp_path, replicates=40), tmp_path / "store"
    root = Path(__file__).resolve().parents[2]
    with jobqueue.SLURMCluster(
        cores=1,
        processes=1,
        memory="1GB",
        walltime="00:20:00",
        interface="lo",
        python=sys.executable,
        job_script_prologue=[f"export PYTHONPATH={root}"],
        log_directory=str(slurm),
        worker_extra_args=["--no-nanny"],
        scheduler_options={"dashboard": False},
    ) as cluster:
        cluster.scale(jobs=2)
        wait_for("two workers", lambda: len(cluster.scheduler_info["workers"]) == 2, slurm)
        process = command("run", path, "--store", store, "--dask", cluster.scheduler_address)
        wait_for("first runs", lambda: sum(p.stat().st_size for p in store.glob("segments/*")) > 20_000, slurm)
        queue = subprocess.run(["squeue", "--noheader", "--format=%i"], capture_output=True, text=True, check=True)
        first = min(queue.stdout.split(), key=int)
        subprocess.run(["scancel", first], check=True)
        status, _, err = outcome(process)
    assert status == 0, err
    check_complete(store, path, undisturbed)
