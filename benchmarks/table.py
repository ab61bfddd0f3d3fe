"""The benchmark tables of docs/performance.md, and the file that their figures are kept in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
DOCUMENT = HERE.parent / "docs" / "performance.md"


def record(benchmark: str, results: dict) -> None:
    """Keep a benchmark's figures in results.json, in place of its former ones."""
    every = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    every[benchmark] = results
    RESULTS.write_text(json.dumps(dict(sorted(every.items())), indent=1) + "\n")


class DocumentTable(NamedTuple):
    """A table of the document, between two markers.

    Attributes
    ----------
    name : str
        As the markers have it.
    render : callable
        Makes the table in Markdown of a file's figures.
    command : str
        Rewrites it.
    """

    name: str
    render: Callable[[dict], str]
    command: str = "make benchmark"

    @property
    def markers(self) -> tuple[str, str]:
        """The lines before and after the table."""
        return (f"<!-- {self.name} table: rewritten by '{self.command}' -->", f"<!-- end of {self.name} table -->")

    def shown_in_document(self) -> str:
        """Return what the document shows."""
        begin, end = self.markers
        return DOCUMENT.read_text().split(begin)[1].split(end)[0].strip()

    def rewrite_document(self, results: dict) -> None:
        """Put the rendered table into the document."""
        begin, end = self.markers
        head, rest = DOCUMENT.read_text().split(begin)
        tail = rest.split(end)[1]
        DOCUMENT.write_text(f"{head}{begin}\n{self.render(results)}\n{end}{tail}")


def render_commands(results: dict) -> str:
    """Return the table of whole commands."""
    lines = [
        "| command | CPU [s] | memory [MB] | beside | its CPU [s] | ratio | goal |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results["commands"]:
        goals = [] if row["goal"] is None else [f"<= {row['goal']:g}"]
        goals += [] if row["goal_mb"] is None else [f"{row['goal_mb']:g} MB"]
        lines.append(
            f"| {row['case']} | {row['cpu_s']:.2f} | {row['memory_mb']:.0f} | {row['beside']} | "
            f"{row['beside_s']:.2f} | {row['ratio']:.1f} | {', '.join(goals)} |"
        )
    return "\n".join(lines)


def render_drivers(results: dict) -> str:
    """Return the table of the drivers' cost of a task."""
    lines = [
        "| work queue, SimGrid driver | hosts | bare s4u loop [µs/task] | gridsched [µs/task] | ratio | goal |",
        "|---|---|---|---|---|---|",
    ]
    for row in results["simgrid_driver"]:
        lines.append(
            f"| {row['case']} | {row['hosts']:,} | {row['bare_us']:.1f} | "
            f"{row['gridsched_us']:.1f} | {row['ratio']:.2f} | <= {row['goal']:g} |"
        )
    lines += ["", "| other figures | measured | goal |", "|---|---|---|"]
    for hosts, value in results["reference_us"].items():
        lines.append(
            f"| reference driver, {int(hosts):,} hosts [µs/task] | {value:.1f} | "
            f"<= {results['reference_goals_us'][hosts]:g} |"
        )
    for row in results["growth"]:
        lines.append(
            f"| `{row['scheduler']}`, tasks arrive at a load of 0.9: cost of a task on 2,000 hosts "
            f"over 100 | {row['ratio']:.1f} | <= {row['goal']:g} |"
        )
    lines.append(
        f"| a whole SimGrid run of 5 tasks through the fork server [ms] | "
        f"{results['run_overhead_ms']:.0f} | <= {results['run_overhead_goal_ms']:g} |"
    )
    lines.append(
        f"| {results['tasks']:,} tasks on 100 hosts, everything included [s] | "
        f"{results['whole_run_s']:.1f} | Batsim 4.2.1 on SimGrid 4.1: {results['batsim_s']:g} s, "
        "measured by the project's owner on another machine of this size |"
    )
    return "\n".join(lines)


def render_peers(results: dict) -> str:
    """Return the table of other simulators on the same logs."""
    lines = [
        "| log under EASY | program | CPU [s] | memory [MB] | ratio | jobs | mean wait [s] |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        lines.append(
            f"| {row['log']}, {row['nodes']:,} nodes | {row['program']} | {row['cpu_s']:.2f} | "
            f"{row['memory_mb']:.0f} | {row['ratio']:.1f} | {row['jobs']:,} | {row['mean_wait_s']:,.2f} |"
        )
    return "\n".join(lines)


def render_versions(results: dict) -> str:
    """Return the table of this version beside another one."""
    lines = [
        f"| command | CPU [s] | memory [MB] | {results['other']}: CPU [s] | memory [MB] | ratio | over a bare loop |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        bare = "" if row["over_bare"] is None else f"{row['over_bare']:.2f}"
        lines.append(
            f"| {row['case']} | {row['cpu_s']:.2f} | {row['memory_mb']:,.0f} | {row['other_s']:.2f} | "
            f"{row['other_mb']:,.0f} | {row['ratio']:.2f} | {bare} |"
        )
    return "\n".join(lines)


DRIVERS = DocumentTable("benchmark", render_drivers)
COMMANDS = DocumentTable("whole commands", render_commands)
VERSIONS = DocumentTable("versions", render_versions, "python benchmarks/versions.py")
PEERS = DocumentTable("peers", render_peers, "python benchmarks/peers.py")
