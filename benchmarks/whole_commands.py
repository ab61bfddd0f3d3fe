"""Whole commands as a user types them, beside their rivals: writes `whole_commands` of benchmarks/results.json.

Usage: python benchmarks/whole_commands.py [--large] [--repeats R]

Each command is a process of its own, its children included; it and what it is set beside take
turns. A figure is the least CPU time of the repeats (another job can only add), a ratio that of the
two leasts; memory is the largest of the peaks. docs/performance.md's first table is rewritten, unless
another output is named. `--large` measures what takes minutes, too, once each.
"""

from __future__ import annotations

import argparse
import os
import platform as machine
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gridsched.version import __version__

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
import table  # noqa: E402

GRIDSCHED = (sys.executable, "-m", "gridsched")
NUMPY = ("import numpy", (sys.executable, "-c", "import numpy"))
PLATFORM = str(ROOT / "platforms" / "ex_a.xml")
EXAMPLE = ("--platform", PLATFORM, "--workload", str(ROOT / "examples" / "ex_a.csv"))
GREEN500 = str(ROOT / "platforms" / "green500.xml")
#: README's.
BAG = ("--kind=bag", "--tasks=720", "--mean-flops=1e18", "--heterogeneity=0.5", "--seed=1")
#: Jobs of the logs that are made, and their nodes.
LOGS, NODES = (1_000, 10_000), 1024
LARGE_LOG = 200_000
#: Tasks on 100 hosts of random speeds, of 0.5 to 1.5 Mflop.
TASKS, LARGE_TASKS = 100_000, 1_000_000


@dataclass(frozen=True)
class Command:
    """A command of gridsched.

    Attributes
    ----------
    name : str
        As the table shows it.
    words : tuple of str
        What follows ``gridsched``.
    """

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Case(Command):
    """A command, what it is set beside, and the most that it may take.

    Attributes
    ----------
    beside : tuple of (str, tuple of str)
        Name and command of the rival.
    goal : float or None
        Largest ratio of the two CPU times.
    goal_mb : float or None
        Largest peak of memory [MB].
    compiles : bool
        Whether nothing is compiled before, as after an installation by pip.
    """

    beside: tuple[str, tuple[str, ...]] = NUMPY
    goal: float | None = 5.0
    goal_mb: float | None = None
    compiles: bool = False


def easy(n_jobs: int, *more: str) -> tuple[str, ...]:
    """Return a run of a made log under EASY."""
    return under_easy(f"jobs_{n_jobs}.swf", NODES, *more)


def under_easy(log: str, nodes: int, *more: str) -> tuple[str, ...]:
    """Return a run of a log on a number of nodes under EASY."""
    return ("run", "--workload", log, "--scheduler", "easy_backfilling", "--nodes", str(nodes), *more)


def cases() -> list[Case]:
    """Return what is measured; the logs lie in the folder at work."""
    reference, run = ("--driver", "reference"), ("run", *EXAMPLE, "--scheduler")
    return [
        Case("`--version`", ("--version",), goal=1.5),
        Case("`--help`", ("--help",), goal=1.5),
        Case("`schedulers`", ("schedulers",), goal=3.0),
        Case("`platform check` of 5 hosts", ("platform", "check", PLATFORM), goal=3.0),
        Case("`run`, 5 tasks, `wq`, reference driver", (*run, "wq", *reference)),
        Case("the same on SimGrid", (*run, "wq")),
        Case(
            "`run`, 5 tasks, `sufferage`, reference driver, beside `wq`",
            (*run, "sufferage", *reference),
            ("`wq`", (*GRIDSCHED, *run, "wq", *reference)),
            goal=1.3,
        ),
        Case("README's `compare`", ("compare", "--platform", GREEN500, "--workload", "bag.csv"), goal=17.0),
        *(
            Case(f"{n:,} jobs under EASY, reference driver", easy(n, *reference), goal=goal, goal_mb=goal_mb)
            for n, goal, goal_mb in zip(LOGS, (6.7, 9.1), (None, 100.0), strict=True)
        ),
        Case(
            f"{LOGS[1]:,} jobs under EASY, SimGrid",
            easy(LOGS[1]),
            ("the reference driver", (*GRIDSCHED, *easy(LOGS[1], *reference))),
            goal=None,
        ),
        Case(
            f"{TASKS:,} tasks under `wq`, SimGrid",
            ("run", *bag(TASKS), "--scheduler", "wq"),
            ("bare ExecTask loop", bare_loop(TASKS)),
            goal=2.0,
        ),
    ]


def large_cases() -> list[Case]:
    """Return what takes minutes."""
    reference, queue = ("--driver", "reference"), ("run", *bag(LARGE_TASKS), "--scheduler", "wq")
    bare = ("a tenth of the tasks", (*GRIDSCHED, "run", *bag(TASKS), "--scheduler", "wq"))
    parallel = ("run", "--workload", str(ROOT / "examples" / "parallel_small.toml"), "--scheduler", "max_upe")
    return [
        Case(f"{LARGE_LOG:,} jobs under EASY, reference driver", easy(LARGE_LOG, *reference), goal=None, goal_mb=1000),
        Case(
            f"{LARGE_TASKS:,} tasks under `wq`, reference driver",
            (*queue, *reference),
            (bare[0], (*bare[1], *reference)),
            goal=13.0,
            goal_mb=500,
        ),
        Case(f"{LARGE_TASKS:,} tasks under `wq`, SimGrid", queue, bare, goal=13.0, goal_mb=1400),
        Case(
            "first use, nothing compiled: `parallel_small` under `max_upe`",
            parallel,
            ("the second time", (*GRIDSCHED, *parallel)),
            goal=None,
            compiles=True,
        ),
    ]


def bag(tasks: int, hosts: int = 100) -> tuple[str, ...]:
    """Return the options of a made bag on a number of hosts."""
    return ("--platform", f"hosts_{hosts}.xml", "--workload", f"tasks_{tasks}.csv")


def bare_loop(tasks: int, hosts: int = 100) -> tuple[str, ...]:
    """Return the bare SimGrid program that does a number of tasks on a number of hosts."""
    return (sys.executable, str(HERE / "bare_loops.py"), "exectask", f"hosts_{hosts}.xml", str(hosts), str(tasks))


def cost(
    command: tuple[str, ...], folder: Path, more: dict[str, str] | None = None, output: str = os.devnull
) -> tuple[float, float]:
    """Return CPU time [s] and peak memory [MB] of a command with its children; its output goes to a file."""
    with (folder / output).open("w") as stdout:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=stdout,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(more or {})},  # an installed package has bytecode
        )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(case: Case, folder: Path, repeats: int) -> dict:
    """Return the figures of one case."""
    rival, command = case.beside
    ours, others = [], []
    for k in range(repeats):
        more = {"NUMBA_CACHE_DIR": str(folder / f"cache-{k}")} if case.compiles else None
        ours.append(cost((*GRIDSCHED, *case.words), folder, more))
        others.append(cost(command, folder))
    cpu_s, beside_s = min(s for s, _ in ours), min(s for s, _ in others)
    return {
        "case": case.name,
        "cpu_s": cpu_s,
        "memory_mb": max(mb for _, mb in ours),
        "beside": rival,
        "beside_s": beside_s,
        "ratio": cpu_s / beside_s,
        "goal": case.goal,
        "goal_mb": case.goal_mb,
    }


def add_log_option(parser: argparse.ArgumentParser) -> None:
    """Let logs of the user's be measured, too."""
    parser.add_argument(
        "--log",
        nargs=2,
        action="append",
        default=[],
        metavar=("FILE", "NODES"),
        help="measure this log, too (.swf or .swf.gz), on a number of nodes of one processor; repeatable",
    )


def logs_of(options: argparse.Namespace) -> list[tuple[Path, int]]:
    """Return the logs that were named, and their nodes."""
    return [(Path(log), int(nodes)) for log, nodes in options.log]


def write_log(folder: Path, n_jobs: int) -> None:
    """Write a log of rigid jobs."""
    (folder / "jobs.toml").write_text(f'kind = "rigid_jobs"\njobs = {n_jobs}\nseed = 1\n')
    generate = ("workload", "generate", "jobs.toml", "-o", f"jobs_{n_jobs}.swf", "--quiet")
    cost((*GRIDSCHED, *generate), folder)


def write_bag(folder: Path, n_tasks: int) -> None:
    """Write a bag of tasks."""
    sampled = ("--kind=bag", f"--tasks={n_tasks}", "--mean-flops=1e6", "--heterogeneity=1", "--seed=1")
    cost((*GRIDSCHED, "workload", "generate", *sampled, "-o", f"tasks_{n_tasks}.csv", "--quiet"), folder)


def write_platform(folder: Path, n_hosts: int) -> None:
    """Write a platform of hosts of random speeds."""
    # as text: what this process imports would count as memory of those that it starts
    draw = random.Random(0)
    hosts = "".join(
        f'<host id="host{k}" speed="{draw.uniform(1e4, 1e5)!r}f">'
        '<prop id="wattage_per_state" value="10:20:100"/></host>'
        for k in range(n_hosts)
    )
    head = '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
    (folder / f"hosts_{n_hosts}.xml").write_text(f'{head}<zone id="z" routing="Full">{hosts}</zone></platform>')


def write_readme_bag(folder: Path) -> None:
    """Write the bag of README's `compare`."""
    cost((*GRIDSCHED, "workload", "generate", *BAG, "-o", "bag.csv", "--quiet"), folder)


def write_inputs(folder: Path, *, large: bool) -> None:
    """Write bags, logs, and a platform of 100 hosts."""
    write_readme_bag(folder)
    for n in (*LOGS, *([LARGE_LOG] if large else [])):
        write_log(folder, n)
    for n in (TASKS, *([LARGE_TASKS] if large else [])):
        write_bag(folder, n)
    write_platform(folder, 100)


def measure_all(repeats: int, *, large: bool) -> dict:
    """Return the figures of all cases, and where they come from."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, large=large)
        rows = [measure(case, folder, repeats) for case in cases()]
        rows += [measure(case, folder, 1) for case in (large_cases() if large else [])]
    return {
        "gridsched": __version__,
        "python": machine.python_version(),
        "cpus": os.cpu_count(),
        "repeats": repeats,
        "load_before": os.getloadavg()[0],
        "commands": rows,
    }


def main() -> None:
    """Measure, write the file, and rewrite the document's table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="measure what takes minutes, too")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    results = measure_all(options.repeats, large=options.large)
    table.record("whole_commands", results)
    table.COMMANDS.rewrite_document(results)
    print(table.COMMANDS.render(results))


if __name__ == "__main__":
    main()
