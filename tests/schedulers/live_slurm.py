"""A Slurm of 96 cores on this machine, as root, from the packages of Debian: sleeping jobs need none."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("slurm-wlm", "munge", "slurmdbd", "mariadb-server")
#: Columns of the accounting that is printed.
FORMAT = (
    "JobID,JobIDRaw,Partition,Account,User,Submit,Start,End,Elapsed,ElapsedRaw,State,NNodes,AllocCPUS,ReqCPUS,"
    "ReqMem,AllocTRES,Timelimit,TimelimitRaw,QOS,NodeList,Constraints,Priority"
)
CONF = """ClusterName=live
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={slurmd_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/log/ctld.log
SlurmdLogFile={folder}/log/%n.log
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/%n.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={folder}/munge.socket
AccountingStorageEnforce=associations
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,bf_window=100,bf_resolution=1,bf_continue
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=0-0:10:00
PriorityWeightJobSize=5000
PriorityWeightPartition=1000
PriorityWeightFairshare=4000
PriorityCalcPeriod=1
KillWait=2
InactiveLimit=0
MinJobAge=600
NodeName=n[1-4] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{nodes}1-{nodes}4] CPUs=12 Sockets=2 CoresPerSocket=6 \
ThreadsPerCore=1 RealMemory=48000 Feature=CPU-N State=UNKNOWN
NodeName=m[1-4] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{nodes}5-{nodes}8] CPUs=12 Sockets=2 CoresPerSocket=6 \
ThreadsPerCore=1 RealMemory=48000 Feature=CPU-M State=UNKNOWN
PartitionName=normal Nodes=n[1-4],m[1-4] Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=100
PartitionName=express Nodes=n[1-2] MaxTime=5 PriorityTier=5 State=UP DefMemPerCPU=100
"""
DBD_CONF = """AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
LogFile={folder}/log/dbd.log
PidFile={folder}/dbd.pid
"""
#: Users of every Debian, by account, with the shares of accounts.
ACCOUNTS = {"physics": (60, ("games", "mail")), "biology": (30, ("news", "backup")), "guests": (10, ("irc",))}


def why_not() -> str | None:
    """Return why this machine cannot play a Slurm; None if it can."""
    if os.geteuid():
        return "a live Slurm needs root"
    if shutil.which("slurmctld") is None and shutil.which("apt-get") is None:
        return "a live Slurm needs the packages of Debian (apt-get)"
    return None


def install() -> None:
    """Install the packages where they are missing; none of their services is started."""
    if all(shutil.which(name) for name in ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd")):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        subprocess.run(["apt-get", "-q", *command], check=True, env=environment, capture_output=True)


@dataclass(frozen=True)
class Job:
    """A job to submit: when [s], nodes, cores of each, how long it sleeps and may take [s, min]."""

    at_s: float
    nodes: int
    cores: int
    sleeps_s: int
    limit_min: int
    constraint: str = ""
    partition: str = "normal"
    user: str = "root"
    account: str = "root"


def mix(kind: str, seed: int, jobs: int = 70) -> list[Job]:
    """Return jobs to submit: ``full`` (a queue of them), ``tiers`` (with partitions and features), ``shares``."""
    rng, at_s, made = random.Random(seed), 0.0, []
    owners = [(account, user) for account, (_, users) in ACCOUNTS.items() for user in users]
    for _ in range(jobs):
        at_s += rng.choice((0, 1, 1, 2, 3) if kind == "full" else (0, 1, 2))
        nodes = rng.choice((1, 1, 1, 1, 2, 3, 4))
        cores = 12 if nodes > 1 else rng.choice((1, 2, 4, 6, 12, 12))
        sleeps_s = min(4 + int(rng.expovariate(1 / 10)), 50)
        job = Job(at_s, nodes, cores, sleeps_s, rng.choice((1, 1, 2, 3)))
        if kind == "tiers":
            sampled = rng.random()
            if sampled < 0.4:
                job = Job(at_s, nodes, cores, sleeps_s, job.limit_min, "CPU-N" if sampled < 0.2 else "CPU-M")
            elif sampled < 0.55:
                job = Job(at_s, min(nodes, 2), cores, sleeps_s, job.limit_min, partition="express")
        elif kind == "shares":
            account, user = rng.choice(owners)
            job = Job(at_s, nodes, cores, sleeps_s, job.limit_min, user=user, account=account)
        made.append(job)
    return made


class LiveSlurm:
    """A Slurm that runs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.conf = folder, folder / "slurm.conf"
        self._environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        self.began_s = 0.0

    def call(self, *command: str) -> str:
        """Return what a command of Slurm prints."""
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self, stack: ExitStack, *command: str) -> None:
        """Start a daemon in the foreground, to be ended with the stack."""
        process = subprocess.Popen(
            command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(_end, process)

    def wait_for(self, what: Iterable[str], fits: str, most_s: float = 60.0) -> None:
        """Wait until a command prints something."""
        until = time.monotonic() + most_s
        while True:
            try:
                found = self.call(*what)
                if fits in found:
                    return
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                found = str(error)
            if time.monotonic() > until:
                raise RuntimeError(f"{' '.join(what)} never printed {fits!r}: {found}")
            time.sleep(0.5)

    def play(self, jobs: list[Job], path: Path) -> None:
        """Submit jobs at their times, wait until all have ended, and write their accounting."""
        ids, begin = [], _next_second()
        for job in jobs:
            time.sleep(max(0.0, begin + job.at_s - time.time()))
            constraint = ["--constraint", job.constraint] if job.constraint else []
            ids.append(
                self.call(
                    "sbatch", "--parsable", f"--uid={job.user}", f"--account={job.account}", "-p", job.partition,
                    "-N", str(job.nodes), f"--ntasks-per-node={job.cores}", "-t", str(job.limit_min), "-o", "/dev/null",
                    "--chdir=/tmp", *constraint, "--wrap", f"sleep {job.sleeps_s}",
                ).strip()
            )  # fmt: skip
        while self.call("squeue", "-h"):
            time.sleep(1.0)
        time.sleep(3.0)  # the accounting comes behind
        text = self.call("sacct", "-a", "-P", "-X", "-j", ",".join(ids), "-o", FORMAT)
        ran = text.count("|COMPLETED|") + text.count("|TIMEOUT|")
        if ran < len(jobs):
            raise RuntimeError(f"{len(jobs) - ran} of {len(jobs)} jobs did not run to their end.")
        path.write_text(text)


def _next_second() -> float:
    """Wait for a little after a second begins; return when that is."""
    now = time.time()
    until = int(now) + 1.1
    time.sleep(until - now)
    return until


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def live_slurm() -> Iterator[LiveSlurm]:
    """Start a Slurm of eight nodes with accounting in a folder of its own; end all of it afterwards.

    Sockets, ports, the key of munge and the database are its own: nothing of the machine's is touched.
    """
    folder = Path(tempfile.mkdtemp(prefix="live_slurm_"))
    folder.chmod(0o755)  # the users of jobs read their scripts there
    try:
        with _started(folder) as slurm:
            yield slurm
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _started(folder: Path) -> Iterator[LiveSlurm]:
    slurm = LiveSlurm(folder)
    for name in ("state", "spool", "log", "db"):
        (folder / name).mkdir(parents=True)
    values = {
        "folder": folder, "host": socket.gethostname().split(".")[0], "port": 16817, "slurmd_port": 16819,
        "dbd_port": 16829, "sql_port": 16830, "nodes": 1684, "password": secrets.token_hex(16),
    }  # fmt: skip
    slurm.conf.write_text(CONF.format(**values))
    dbd = folder / "slurmdbd.conf"
    dbd.write_text(DBD_CONF.format(**values))
    dbd.chmod(0o600)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    with ExitStack() as stack:
        munge = [
            f"--{name}={folder}/munge.{name.split('-')[0]}" for name in ("socket", "pid-file", "log-file", "seed-file")
        ]
        slurm.start(stack, "munged", "--foreground", "--force", f"--key-file={key}", *munge)
        sql = [f"--datadir={folder}/db", "--user=root"]
        subprocess.run(["mariadb-install-db", *sql], check=True, capture_output=True)
        at = [f"--socket={folder}/sql.socket", f"--port={values['sql_port']}", "--bind-address=127.0.0.1"]
        slurm.start(stack, "mariadbd", *sql, *at, f"--pid-file={folder}/sql.pid", "--innodb-buffer-pool-size=64M")
        client = ("mariadb", f"--socket={folder}/sql.socket", "-e")
        slurm.wait_for((*client, "select 1"), "1")
        for host in ("127.0.0.1", "localhost"):
            slurm.call(*client, f"create user slurm@'{host}' identified by '{values['password']}'")
            slurm.call(*client, f"grant all on slurm_acct_db.* to slurm@'{host}'")
        slurm.start(stack, "slurmdbd", "-D")
        slurm.wait_for(("sacctmgr", "-i", "add", "cluster", "live"), "live")
        for account, (shares, users) in ACCOUNTS.items():
            slurm.call("sacctmgr", "-i", "add", "account", account, f"fairshare={shares}")
            for user in users:
                slurm.call("sacctmgr", "-i", "add", "user", user, f"account={account}")
        slurm.began_s = time.time()
        slurm.start(stack, "slurmctld", "-D", "-f", str(slurm.conf))
        slurm.wait_for(("sinfo", "-h"), "normal")
        for name in [f"{letter}{k}" for letter in "nm" for k in range(1, 5)]:
            slurm.start(stack, "slurmd", "-D", "-N", name, "-f", str(slurm.conf))
        slurm.wait_for(("sinfo", "-h", "-p", "normal", "-o", "%D %t"), "8 idle")
        yield slurm
