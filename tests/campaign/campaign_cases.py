"""Small studies, commands in processes of their own, and what a store must hold afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

from gridsched.campaign.campaign import Options, Progress, run_campaign
from gridsched.campaign.store import Store
from gridsched.runs.study import Study

ROOT = Path(__file__).resolve().parents[2]

MACHINES = """name,speed,efficiency,idle_power_w
slow,50e9,0.5e9,30
fast,200e9,1.2e9,50
green,100e9,4e9,10
"""
#: Two schedulers, two heterogeneities, on generated platforms and bags.
STUDY = """
name = "small"
seed = 3
replicates = {replicates}
driver = "{driver}"
network = "none"
schedulers = ["wq", "lecsa"]

[platform]
generator = "table"
table = "machines.csv"
hosts = 6
idle_power_w = [4, 12]

[workload]
generator = "bag"
tasks = 12
mean_flops = 1e12
heterogeneity = [0.5, 1]
"""
#: A policy that takes its time, fails or dies, for the tests of what then happens.
POLICY = '''
import errno, os, signal, threading, time
from pathlib import Path
from gridsched.errors import EnvironmentFault, IncompleteRun, MissingDependency
from gridsched.schedulers.bag.baselines import WorkQueue
from gridsched.policy.registry import register


class Troubled(WorkQueue):
    """Workqueue that waits before its first decision, and may then come to grief."""

    def __init__(self, wait_s=0.0, ending="well", flag=""):
        self.wait_s, self.ending, self.flag = wait_s, ending, flag

    def schedule(self, state):
        if state.now == 0:
            time.sleep(self.wait_s)
            if self.ending == "raise":
                raise ValueError("no\\nluck")
            if self.ending == "miss something":
                raise MissingDependency("my solver is not here")
            if self.ending == "blame the machine":
                raise EnvironmentFault("my machine is tired")
            if self.ending == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            while self.ending == "hang":
                try:
                    time.sleep(60)
                except BaseException:  # gives in to nobody
                    continue
            if self.ending == "hang in C":
                sum(range(10**15))
            if self.ending == "leave a thread":
                threading.Thread(target=time.sleep, args=(3600,)).start()
            if self.ending == "leave a child":
                child = os.fork()
                if child == 0:
                    os.setsid()
                    time.sleep(3600)
                    os._exit(0)
                Path(self.flag).write_text(str(child))
            if self.ending == "print":
                Path(self.flag).write_text(os.readlink("/proc/self/fd/2"))
            while self.ending == "print":
                print("x" * 100_000)
            if self.ending == "no thread":
                raise RuntimeError("can't start new thread")
            if self.ending == "no process" and not os.path.exists(self.flag):
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
            if self.ending == "unless flag" and not os.path.exists(self.flag):
                raise IncompleteRun("not yet")
        return super().schedule(state)


register("troubled", "troubled:Troubled")
'''


def write_study(folder: Path, *, replicates: int = 2, driver: str = "reference") -> Path:
    """Write the small study with its table; return the study file."""
    (folder / "machines.csv").write_text(MACHINES)
    path = folder / "small.toml"
    path.write_text(STUDY.format(replicates=replicates, driver=driver))
    return path


def write_troubled(folder: Path, schedulers: str, *, replicates: int = 1) -> Path:
    """Write the small study with the policy above, these schedulers and one heterogeneity."""
    path = write_study(folder, replicates=replicates)
    (folder / "troubled.py").write_text(POLICY)
    text = path.read_text().replace('schedulers = ["wq", "lecsa"]', f"schedulers = {schedulers}")
    text = text.replace("heterogeneity = [0.5, 1]", "heterogeneity = 0.5")
    path.write_text(text.replace("seed = 3", 'seed = 3\npolicies = ["troubled.py"]'))
    return path


def command(*arguments: object, environment: dict[str, str] | None = None, **options: object) -> subprocess.Popen:
    """Start ``gridsched study ...`` in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    return subprocess.Popen(
        [sys.executable, "-m", "gridsched", "study", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


def campaign(path: Path, store: Path, *, workers: int = 1, **options: object) -> Progress:
    """Run a study file, led by this process."""
    settings = Options(workers=workers, **options)
    return run_campaign(Study.from_file(path, trust=True), Store.create(store), settings)


def outcome(process: subprocess.Popen) -> tuple[int, str, str]:
    """Return status, stdout and stderr of a command at its end."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows without what may differ between two times: the timing."""
    timing = [name for name in rows.columns if name.startswith("timing.")]
    return rows.drop(columns=timing)


def check_complete(store: Path, study: Path, undisturbed: pd.DataFrame) -> None:
    """Every run of the study is there exactly once, with an undisturbed campaign's results."""
    kept = Store.open(store)
    rows = kept.rows(Study.from_file(study))
    assert len(kept.rows()) == len(rows) == rows["run_id"].nunique()
    assert set(rows["status"]) == {"finished"}
    columns = list(comparable(undisturbed).columns)
    pd.testing.assert_frame_equal(comparable(rows)[columns], undisturbed[columns], check_exact=True)
