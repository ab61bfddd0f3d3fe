"""Cost of a trial of paper 000 (two days, 100,000 tasks), and how it grows with the system.

Usage: python benchmarks/utility_trial.py [--largest FACTOR]

Each trial is done in a process of its own, which runs a small one first, so that compiled kernels
are loaded. Machines and tasks grow alike, with the budget. Shown are wall time and CPU time of the
run (other load makes the first longer) and the process's largest memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import table

HERE = Path(__file__).resolve().parent
GOALS = {"reference_s": 4.0, "simgrid_s": 7.0, "memory_mb": 1000.0, "exponent": 1.3}
#: Means over heuristics and leniencies are taken over these.
TRIALS = [
    ("max_max_upe", 0.5),
    ("max_max_upe", 1.5),
    ("max_max_upe", math.inf),
    ("max_max_upt", 0.5),
    ("max_max_upt", 0.75),
    ("max_max_upt", math.inf),
    ("max_max_util", 0.5),
    ("max_max_util", 0.75),
    ("max_max_util", math.inf),
    ("min_min_completion_time", 0.5),
    ("min_min_completion_time", 0.75),
    ("min_min_completion_time", math.inf),
    ("random_mapping", math.inf),
]
#: Arguments: scheduler, leniency, driver, factor. The last line printed is a JSON object.
ONE = """
import json, resource, sys, time
from gridsched import Scenario, run
from gridsched.systems.utility.utility_day import UtilityDay
from gridsched.systems.utility.utility_day import generate_utility_day

scheduler, driver = sys.argv[1], sys.argv[3]
leniency, factor = float(sys.argv[2]), float(sys.argv[4])


def scenario(factor, days):
    usual = UtilityDay(kind="utility")
    grown = {
        name: tuple(max(1, round(count * factor)) for count in getattr(usual, name))
        for name in ("special_machine_counts", "general_machine_counts")
    }
    made = generate_utility_day(UtilityDay(
        kind="utility", days=days, arrival_factor=factor, energy_budget_j=1.11e9 * factor, **grown
    ))
    base = Scenario(None, made.tasks, scheduler, {"energy_leniency": leniency}, driver=driver)
    return base.with_system(made)


run(scenario(0.25, 0.05))
whole = scenario(factor, 2.0)
began, cpu = time.perf_counter(), time.process_time()
result = run(whole)
wall, cpu = time.perf_counter() - began, time.process_time() - cpu
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
memory = max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, children) / 1024
row = {"wall_s": wall, "cpu_s": cpu, "memory_mb": memory, "tasks": len(whole.tasks),
       "machines": len(whole.platform), "simulate_s": result.timing.get("simulate_s"),
       "mapping_event_ms": 1e3 * result.timing["policy_s"] / result.trace.mapping_events}
print(json.dumps(row))
"""


def trial(scheduler: str, leniency: float, driver: str, factor: float = 1.0) -> dict:
    """Return what one trial cost."""
    done = subprocess.run(
        [sys.executable, "-c", ONE, scheduler, str(leniency), driver, str(factor)],
        check=True,
        capture_output=True,
        text=True,
    )
    row = json.loads(done.stdout.splitlines()[-1])
    told = ", ".join(f"{row[name]:.2f} {name[-1]}" for name in ("wall_s", "cpu_s"))
    print(
        f"{driver} {scheduler} {leniency:g}: {row['tasks']:,} tasks, {row['machines']} machines: "
        f"{told} CPU, {row['memory_mb']:.0f} MB",
        flush=True,
    )
    return {"scheduler": scheduler, "energy_leniency": leniency, "driver": driver, "factor": factor, **row}


def growth(rows: list[dict]) -> float:
    """Exponent of CPU time over the number of tasks: the slope of the least squares on logs."""
    points = [(math.log(row["tasks"]), math.log(row["cpu_s"])) for row in rows]
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope = sum((a - x) * (b - y) for a, b in points)
    return slope / sum((a - x) ** 2 for a, _ in points)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=float, default=8.0, help="times 50,000 tasks a day")
    chosen = parser.parse_args()
    reference = [trial(*each, "reference") for each in TRIALS]
    simgrid = [trial(*each, "simgrid") for each in TRIALS[1::3]]
    factors = [f for f in (0.5, 1.0, 2.0, 4.0, 8.0) if f <= chosen.largest]
    sizes = [trial("max_max_upt", 0.75, "reference", factor) for factor in factors]
    found = {
        "reference_s": sum(row["wall_s"] for row in reference) / len(reference),
        "reference_cpu_s": sum(row["cpu_s"] for row in reference) / len(reference),
        "simgrid_s": sum(row["wall_s"] for row in simgrid) / len(simgrid),
        "memory_mb": max(row["memory_mb"] for row in (*reference, *simgrid)),
        "exponent": growth(sizes),
    }
    for name, value in found.items():
        goal = f" (goal < {GOALS[name]:g})" if name in GOALS else ""
        print(f"{name}: {value:.2f}{goal}")
    load = os.getloadavg()[0]
    whole = {"means": found, "load_average": load, "reference": reference, "simgrid": simgrid, "growth": sizes}
    table.record("utility_trial", whole)
    print(f"Load average {load:.1f}. {table.RESULTS.name} is written.")


if __name__ == "__main__":
    main()
