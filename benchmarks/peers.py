"""Other simulators of schedulers beside gridsched, on the same logs: writes `peers` of benchmarks/results.json.

Usage: python benchmarks/peers.py --accasim PYTHON [--log FILE.swf[.gz] NODES] [--repeats R]

PYTHON is an interpreter with AccaSim (`pip install accasim`, in an environment of its own). The logs are
those that whole_commands.py makes, and those that are named. All programs simulate EASY backfilling on a
copy of the log in which they have nothing to interpret differently: submission times are cut to whole
seconds (of a fraction, AccaSim spreads the digits over several fields), jobs without a run time or processors
are left out, all jobs take the processors that they requested, and a job that ran longer than it requested has
requested its run time, as `--walltime ignore` takes it.

Each run is a process of its own, its children included; the programs take turns. A figure is the median
of the repeats, a ratio the median of those to gridsched's reference driver in the same turn; memory is the
largest of the peaks. The table of docs/performance.md is rewritten.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform as machine
import re
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import table
from whole_commands import GRIDSCHED, LOGS, NODES, add_log_option, cost, logs_of, under_easy, write_log

from gridsched.version import __version__

#: AccaSim 1.1.3 imports Mapping from `collections`, which Python 3.10 and later have in `collections.abc` alone.
ACCASIM = """
import collections
import collections.abc
import sys

collections.Mapping = collections.abc.Mapping

from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.simulator_class import Simulator

log, machine = sys.argv[1:]
simulator = Simulator(
    log,
    machine,
    EASYBackfilling(FirstFit()),
    scheduling_output=False,
    show_statistics=False,
    LOG_LEVEL="WARNING",
    RESULTS_FOLDER_PATH=".",
)
(statistics,) = simulator.start_simulation().values()
print(open(statistics).read())
"""
VERSIONS = "import platform, importlib.metadata as m; print(m.version('accasim'), platform.python_version())"


@dataclass(frozen=True)
class Program:
    """A program that simulates a log under EASY.

    Attributes
    ----------
    name : str
        As the table shows it.
    command : tuple of str
        The whole command.
    jobs, mean_wait_s : str
        What precedes these figures in its output.
    """

    name: str
    command: tuple[str, ...]
    jobs: str
    mean_wait_s: str

    def figure(self, label: str, output: Path) -> float:
        """Return the number behind a label of the output."""
        found = re.search(rf"^{re.escape(label)}\s+([\d.,]+)", output.read_text(), flags=re.MULTILINE)
        if found is None:
            raise SystemExit(f"{self.name}: no line '{label}' with a number in its output.")
        return float(found[1].replace(",", ""))


def programs(log: str, nodes: int, accasim: str) -> list[Program]:
    """Return the programs for one log; the first is what the others are compared with."""
    ours, theirs = ("tasks finished", "mean waiting time"), ("Total jobs:", "Avg. waiting times:")
    peer = (accasim, "-c", ACCASIM, log)
    return [
        Program("gridsched, reference driver", (*GRIDSCHED, *under_easy(log, nodes, "--driver", "reference")), *ours),
        Program("gridsched, SimGrid", (*GRIDSCHED, *under_easy(log, nodes)), *ours),
        Program(f"AccaSim, {nodes:,} nodes of one core", (*peer, "nodes.json"), *theirs),
        Program(f"AccaSim, one node of {nodes:,} cores", (*peer, "cores.json"), *theirs),
    ]


def write_machines(folder: Path, nodes: int) -> None:
    """Write AccaSim's configurations of as many nodes of one core, and of one node of as many cores."""
    for name, n, cores in (("nodes.json", nodes, 1), ("cores.json", 1, nodes)):
        system = {
            "groups": {"node": {"core": cores}},
            "resources": {"node": n},
            "equivalence": {"processor": {"core": 1}},
        }
        (folder / name).write_text(json.dumps(system))


def write_copy(log: Path, copy: Path) -> None:
    """Write a log without what the programs would interpret differently."""
    lines = []
    with gzip.open(log, "rt") if log.suffix == ".gz" else log.open() as file:
        for line in file:
            fields = line.split()
            if not fields or line.startswith(";"):
                continue
            run, requested = float(fields[3]), float(fields[8])
            processors = fields[7] if int(fields[7]) > 0 else fields[4]
            if run <= 0 or int(processors) <= 0:
                continue
            fields[1] = str(int(float(fields[1])))
            fields[4] = fields[7] = processors
            fields[8] = fields[3] if requested < run else fields[8]
            lines.append(" ".join(fields) + "\n")
    copy.write_text("".join(lines))


def measure(title: str, nodes: int, commands: list[Program], folder: Path, repeats: int) -> list[dict]:
    """Return the rows of one log."""
    taken: list[list[tuple[float, float]]] = [[] for _ in commands]
    for _ in range(repeats):
        for k, program in enumerate(commands):
            taken[k].append(cost(program.command, folder, output=f"output_{k}.txt"))
    first = [seconds for seconds, _ in taken[0]]
    return [
        {
            "log": title,
            "nodes": nodes,
            "program": program.name,
            "cpu_s": statistics.median(seconds for seconds, _ in runs),
            "memory_mb": max(mb for _, mb in runs),
            "ratio": statistics.median(seconds / least for (seconds, _), least in zip(runs, first, strict=True)),
            "jobs": int(program.figure(program.jobs, folder / f"output_{k}.txt")),
            "mean_wait_s": program.figure(program.mean_wait_s, folder / f"output_{k}.txt"),
        }
        for k, (program, runs) in enumerate(zip(commands, taken, strict=True))
    ]


def measure_all(accasim: str, logs: list[tuple[Path, int]], repeats: int) -> dict:
    """Return the figures of all logs, and where they come from."""
    asked = subprocess.run((accasim, "-c", VERSIONS), stdout=subprocess.PIPE, text=True)
    if asked.returncode:
        raise SystemExit(f"{accasim} has no AccaSim: install it there by 'pip install accasim'.")
    versions = asked.stdout.split()
    load, rows = os.getloadavg()[0], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n in LOGS:
            write_log(folder, n)
        made = [(f"{n:,} jobs", folder / f"jobs_{n}.swf", NODES) for n in LOGS]
        for title, log, nodes in (*made, *((log.name.partition(".")[0], log, nodes) for log, nodes in logs)):
            write_copy(log, folder / "copy.swf")
            write_machines(folder, nodes)
            rows += measure(title, nodes, programs("copy.swf", nodes, accasim), folder, repeats)
    return {
        "gridsched": __version__,
        "python": machine.python_version(),
        "accasim": versions[0],
        "python_of_accasim": versions[1],
        "cpus": os.cpu_count(),
        "repeats": repeats,
        "load_before": load,
        "rows": rows,
    }


def main() -> None:
    """Measure, write the file, and rewrite the document's table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accasim", required=True, metavar="PYTHON", help="an interpreter that has AccaSim")
    add_log_option(parser)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    accasim = os.path.abspath(options.accasim)  # the programs run elsewhere
    results = measure_all(accasim, logs_of(options), options.repeats)
    table.record("peers", results)
    print(table.PEERS.render(results))
    table.PEERS.rewrite_document(results)


if __name__ == "__main__":
    main()
