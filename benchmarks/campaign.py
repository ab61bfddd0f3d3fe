"""Cost of campaigns: per run besides the run itself, and of a store of 100,000 rows.

Usage: python benchmarks/campaign.py [--runs N] [--rows N]

The overhead is what the campaign's one worker spends between the ends of its first and last run,
less what the runs themselves took, as their rows tell (``timing.run_s``). It is wall time: other
load on the machine (its average is shown) makes it longer, so CPU times are shown as well: of the
whole campaign, its runs, its worker and their start, and of the fresh processes that decide and
report. The large store holds the rows of real runs with changed numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform as machine
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import table

from gridsched import __version__
from gridsched.campaign.campaign import Ended, Options, Progress, run_campaign
from gridsched.campaign.messages import Job
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

HERE = Path(__file__).resolve().parent
GOALS = {"overhead_ms": 12.0, "decision_s": 5.0, "report_s": 60.0, "memory_mb": 2000.0}

STUDY = """
name = "{name}"
seed = {seed}
replicates = {replicates}
driver = "{driver}"
network = "none"
schedulers = ["wq", "mct", "round_robin", "lecsa"]
metrics = ["makespan_s", "energy_j"]

[platform]
generator = "table"
table = "machines.csv"
hosts = 6
idle_power_w = [4, 12]

[workload]
generator = "bag"
tasks = 12
mean_flops = 1e12
heterogeneity = [0, 0.25, 0.5, 0.75, 1]
"""
MACHINES = "name,speed,efficiency,idle_power_w\nslow,50e9,0.5e9,30\nfast,200e9,1.2e9,50\n"
#: Runs of one replicate of the study.
RUNS_EACH = 20
#: Each is done in a process of its own; the last line printed is a JSON object.
DECISION = """
import sys, time
from gridsched.campaign.campaign import Plan
from gridsched.campaign.store import Store
store = Store.open(sys.argv[1])
study = store.study("large")
began = time.perf_counter()
plan = Plan(study, store)
left = len(plan.next_packet(1))
seconds = time.perf_counter() - began
assert left == 0 and plan.found == plan.total == int(sys.argv[2]), (left, plan.found)
"""
REPORT = """
import sys, time
from pathlib import Path
began = time.perf_counter()
from gridsched.campaign.store import Store
from gridsched.page.study_report import write_report
from gridsched.analysis.study_results import read_results
results = read_results(sys.argv[1], Store.open(sys.argv[1]).study("large"))
assert len(results.finished) == int(sys.argv[2])
write_report(results, Path(sys.argv[1]).with_name("report.html"))
seconds = time.perf_counter() - began
"""
MEASURED = """
import json, resource
used = resource.getrusage(resource.RUSAGE_SELF)
cpu_s = used.ru_utime + used.ru_stime
print(json.dumps({"seconds": seconds, "process_cpu_s": cpu_s, "memory_mb": used.ru_maxrss / 1024}))
"""


def make_study(folder: Path, name: str, driver: str, replicates: int) -> Study:
    """Write a study of small runs and read it."""
    (folder / "machines.csv").write_text(MACHINES)
    path = folder / f"{name}.toml"
    seed = sum(map(ord, name))  # runs of one study are none of another's
    path.write_text(STUDY.format(name=name, driver=driver, replicates=replicates, seed=seed))
    return Study.from_file(path)


def measure_overhead(folder: Path, store: Store, name: str, driver: str, runs: int) -> dict:
    """Run a campaign of small runs; milliseconds of each run, and beside it."""
    study = make_study(folder, name, driver, max(2, runs // RUNS_EACH))
    ends: list[tuple[str, float]] = []

    def listen(_progress: Progress, ended: Ended | None) -> None:
        if ended is not None:
            ends.append((ended.run.run_id, time.perf_counter()))

    began, cpu_began = time.perf_counter(), cpu_s()
    progress = run_campaign(study, store, Options(workers=1), listen)
    whole_s, cpu = time.perf_counter() - began, cpu_s() - cpu_began
    assert progress.failed == 0
    run_s = store.rows().set_index("run_id")["timing.run_s"]
    between = ends[1:]  # the first run's end begins the count
    each_s = (ends[-1][1] - ends[0][1]) / len(between)
    itself_s = run_s[[run_id for run_id, _ in between]].mean()
    return {
        "driver": driver,
        "runs": len(ends),
        "run_ms": 1e3 * itself_s,
        "overhead_ms": 1e3 * (each_s - itself_s),
        "whole_campaign_s": whole_s,
        "whole_campaign_cpu_s": cpu,
    }


def cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended [s]."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def fill(folder: Path, store: Store, rows: int) -> Study:
    """Put as many rows of one study into a store: those of real runs, with other numbers."""
    study = make_study(folder, "large", "reference", rows // RUNS_EACH)
    store.add(study)
    writer = store.writer()
    real: list[dict] = []
    maker = ScenarioMaker({each.sha256: each.path for each in study.inputs.values()}, folder)
    for number, run in enumerate(study.scenarios()):
        if number < RUNS_EACH:
            real.append(perform(maker, Job(run.run_id, run.scenario), None)[0])
        row = real[number % RUNS_EACH]
        factor = 1 + 1e-3 * (number // RUNS_EACH % 997)
        metrics = {
            name: value * factor if isinstance(value, float) else value for name, value in row["metrics"].items()
        }
        writer.write({**row, "run_id": run.run_id, "scenario": run.scenario, "metrics": metrics})
    writer.close()
    store.compact()
    return study


def measure_process(code: str, store: Store, rows: int) -> dict[str, float]:
    """Run code in a fresh process; return its seconds and its peak memory [MB]."""
    command = [sys.executable, "-c", code + MEASURED, str(store.root), str(rows)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def measure_all(runs: int, rows: int) -> dict:
    """Measure everything; return it with the goals."""
    with tempfile.TemporaryDirectory(prefix="gridsched-") as name:
        folder = Path(name)
        small = Store.create(folder / "small")
        overheads = [
            {"stored_before": 0, **measure_overhead(folder, small, "reference", "reference", runs)},
            {"stored_before": 0, **measure_overhead(folder, small, "simgrid", "simgrid", runs)},
        ]
        large = Store.create(folder / "large")
        study = fill(folder, large, rows)
        decision = measure_process(DECISION, large, study.n_runs)
        report = measure_process(REPORT, large, study.n_runs)
        more = measure_overhead(folder, large, "more", "reference", runs)
        overheads.append({"stored_before": study.n_runs, **more})
    return {
        "gridsched": __version__,
        "python": machine.python_version(),
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "goals": GOALS,
        "overhead": overheads,
        "rows": study.n_runs,
        "decision": decision,
        "report": report,
    }


def main() -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
    results = measure_all(arguments.runs, arguments.rows)
    table.record("campaign", results)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
