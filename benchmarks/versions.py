"""This checkout beside another version of gridsched, whole commands in turn: writes `versions` of results.json.

Usage: python benchmarks/versions.py CHECKOUT [--log FILE.swf[.gz] NODES] [--repeats R]

CHECKOUT is a folder with the other version, as of `git worktree`, which the interpreter at work runs.
Each command is a process of its own, its children included, and is run once beforehand by the other version, which may
compile loops then. A figure is the median CPU time of the repeats, a ratio the median of those of one turn; memory is
the largest of the peaks. Runs of tasks are set beside a bare SimGrid program, too. What two versions print must be
equal. Logs of 50,000 jobs take turns three times at most, a million tasks once. docs/performance.md's table of versions
is rewritten.
"""

from __future__ import annotations

import argparse
import os
import platform as machine
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import table
from whole_commands import (
    EXAMPLE,
    GREEN500,
    GRIDSCHED,
    LARGE_TASKS,
    LOGS,
    ROOT,
    TASKS,
    Command,
    add_log_option,
    bag,
    bare_loop,
    cost,
    easy,
    logs_of,
    under_easy,
    write_bag,
    write_log,
    write_platform,
    write_readme_bag,
)

from gridsched.version import __version__

LARGE_LOG = 50_000
HOSTS = (100, 1_000, 10_000)
VERSION = "from gridsched.version import __version__; print(__version__)"


@dataclass(frozen=True)
class Case(Command):
    """A command of both versions.

    Attributes
    ----------
    bare : tuple of str, optional
        The bare SimGrid program that does the same work.
    most : int or None
        How often it is repeated at most.
    """

    bare: tuple[str, ...] = ()
    most: int | None = None


def cases(logs: list[tuple[Path, int]]) -> list[Case]:
    """Return what is measured; its inputs lie in the folder at work."""
    both = [Case("`run`, 5 tasks, `wq`", ("run", *EXAMPLE, "--scheduler", "wq"))]
    both += [Case(f"{n:,} jobs under EASY", easy(n)) for n in LOGS]
    both.append(Case(f"{LARGE_LOG:,} jobs under EASY", easy(LARGE_LOG), most=3))
    for log, nodes in logs:
        title = f"{log.name.partition('.')[0]} under EASY, {nodes:,} nodes"
        both.append(Case(title, under_easy(str(log.resolve()), nodes)))
    for tasks, hosts, most in (*((TASKS, n, None) for n in HOSTS), (LARGE_TASKS, HOSTS[0], 1)):
        title, words = f"{tasks:,} tasks under `wq`, {hosts:,} hosts", ("run", *bag(tasks, hosts), "--scheduler", "wq")
        both.append(Case(title, words, bare_loop(tasks, hosts), most))
    found = [Case("README's `compare`", ("compare", "--platform", GREEN500, "--workload", "bag.csv"))]
    for case in both:
        name, words = f"{case.name}, reference driver", (*case.words, "--driver", "reference")
        found.append(Case(name, words, most=case.most))
        found.append(replace(case, name=f"{case.name}, SimGrid"))
    return found


def write_inputs(folder: Path) -> None:
    """Write logs, bags, and platforms."""
    write_readme_bag(folder)
    for n in (*LOGS, LARGE_LOG):
        write_log(folder, n)
    for n in (TASKS, LARGE_TASKS):
        write_bag(folder, n)
    for n in HOSTS:
        write_platform(folder, n)


def measure(case: Case, other: Path, folder: Path, repeats: int) -> dict:
    """Return the figures of one case."""
    command = (*GRIDSCHED, *case.words)
    versions = [{"PYTHONPATH": str(each), "NUMBA_CACHE_DIR": str(folder / "cache")} for each in (ROOT, other)]
    outputs = ["this.txt", "other.txt"]
    if case.most != 1:
        cost(command, folder, versions[1])
    taken: list[list[tuple[float, float]]] = [[], [], []]
    for _ in range(min(repeats, case.most or repeats)):
        for k in range(2):
            taken[k].append(cost(command, folder, versions[k], outputs[k]))
        if case.bare:
            taken[2].append(cost(case.bare, folder))
    if len({(folder / name).read_bytes() for name in outputs}) > 1:
        raise SystemExit(f"{case.name}: the two versions print different results.")
    seconds = [[each for each, _ in some] for some in taken]

    def ratio(beside: list[float]) -> float | None:
        return statistics.median(a / b for a, b in zip(seconds[0], beside, strict=True)) if beside else None

    return {
        "case": case.name,
        "repeats": len(taken[0]),
        "cpu_s": statistics.median(seconds[0]),
        "memory_mb": max(mb for _, mb in taken[0]),
        "other_s": statistics.median(seconds[1]),
        "other_mb": max(mb for _, mb in taken[1]),
        "ratio": ratio(seconds[1]),
        "over_bare": ratio(seconds[2]),
    }


def measure_all(other: Path, logs: list[tuple[Path, int]], repeats: int) -> dict:
    """Return the figures of all cases, and where they come from."""
    asked = subprocess.run(
        (sys.executable, "-c", VERSION),
        env={**os.environ, "PYTHONPATH": str(other)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    load, rows = os.getloadavg()[0], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        for case in cases(logs):
            rows.append(measure(case, other, folder, repeats))
            print(rows[-1], flush=True)
    return {
        "gridsched": __version__,
        "other": asked.stdout.strip(),
        "python": machine.python_version(),
        "cpus": os.cpu_count(),
        "load_before": load,
        "rows": rows,
    }


def main() -> None:
    """Measure, write the file, and rewrite the document's table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="folder of the other version")
    add_log_option(parser)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    results = measure_all(options.checkout.resolve(), logs_of(options), options.repeats)
    table.record("versions", results)
    print(table.VERSIONS.render(results))
    table.VERSIONS.rewrite_document(results)


if __name__ == "__main__":
    main()
