"""A study on a Slurm of two nodes on this machine, through dask-jobqueue; a job is cancelled in mid-run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from campaign_cases import check_complete, command, outcome, write_study

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "scancel", "sinfo")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons are started by root"),
    pytest.mark.skipif(bool(MISSING), reason=f"apt-get install slurm-wlm munge: missing are {', '.join(MISSING)}"),
]
jobqueue = pytest.importorskip("dask_jobqueue", reason="the extra 'slurm' is not installed")

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
    """Return ports of this machine that nobody has."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(what: str, holds, folder: Path) -> None:
    """Wait until something holds; the logs tell why it never does."""
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


def test_a_study_on_slurm_gives_the_same_rows(tmp_path: Path, slurm: Path, undisturbed: pd.DataFrame):
    """Two jobs of a worker each, one of which is cancelled: every run is there once, as on one machine."""
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
