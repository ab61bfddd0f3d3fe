"""The benchmark table of docs/performance.md, rendered from benchmarks/results.json."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- benchmark table: rewritten by 'make benchmark' -->"
END = "<!-- end of benchmark table -->"


def render(results: dict) -> str:
    """Return the table in Markdown."""
    lines = [
        "| work queue, SimGrid driver | hosts | bare s4u loop [µs/task] | gridsched [µs/task] "
        "| ratio | goal |",
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


def shown_in_document() -> str:
    """Return what the document shows between the two markers."""
    text = (ROOT / "docs" / "performance.md").read_text()
    return text.split(BEGIN)[1].split(END)[0].strip()


def rewrite_document(results: dict) -> None:
    """Put the rendered table between the document's markers."""
    path = ROOT / "docs" / "performance.md"
    text = path.read_text()
    head, rest = text.split(BEGIN)
    path.write_text(f"{head}{BEGIN}\n{render(results)}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    print(render(json.loads((ROOT / "benchmarks" / "results.json").read_text())))
