"""What ``gridsched optimize`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gridsched.cli.tables import print_table, print_values
from gridsched.metrics.columns import Column
from gridsched.optimize.carbon_bound import CarbonAnswer
from gridsched.systems.profit.answers import FrontAnswer, ProfitAnswer

#: Rows of a table, at most; files have all.
MOST_ROWS = 20
RATES = (
    Column("tasks", "tasks"),
    Column("profit_rate", "profit\n[money/s]", "number"),
    Column("time_s", "time of\na bag [s]", "number"),
    Column("energy_j", "energy\n[{unit}]", "number", "J"),
    Column("mean_power_w", "mean\npower [{unit}]", "number", "W"),
)
MACHINES = (
    Column("machine_type", "machine type"),
    Column("machines", "machines", "figure"),
    Column("divided_tasks", "tasks", "rounded"),
    Column("busy", "busy", "figure"),
    Column("machine_worth", "one more is\nworth [money/s]", "number"),
)
TASKS = (
    Column("task_type", "task type"),
    Column("tasks", "tasks", "figure"),
    Column("task_worth", "one less is\nworth [money/s]", "number"),
)
FRONT = (
    Column("corner", "corner", "figure"),
    Column("makespan_s", "makespan\n[s]", "number"),
    Column("makespan_above_least", "above\nleast", "percent"),
    Column("energy_j", "energy\n[{unit}]", "number", "J", "energy"),
    Column("energy_above_least", "above\nleast", "percent"),
    Column("mean_power_w", "mean\npower [{unit}]", "rounded", "W"),
    Column("joules_per_second", "saved by\nwaiting [J/s]", "rounded"),
    Column("schedule_makespan_s", "schedule:\nmakespan [s]", "number"),
    Column("schedule_energy_j", "schedule:\nenergy [{unit}]", "number", "J", "energy"),
    Column("profit_rate", "profit\n[money/s]", "number"),
)


LEAST_CARBON = (
    Column("within_s", "ends\nwithin [s]", "number"),
    Column("above_least", "above least\nmakespan", "percent"),
    Column("carbon_g", "least carbon,\nhosts may be off [{unit}]", "number", "g", "grams"),
    Column("fixed_carbon_g", "hosts are on\nto the end [{unit}]", "number", "g", "grams"),
)
WORK = (
    Column("begin_s", "from [s]", "number"),
    Column("end_s", "until [s]", "number"),
    Column("site", "site"),
    Column("work_share", "work", "share"),
    Column("carbon_g", "carbon\n[{unit}]", "number", "g"),
)


def print_least_carbon(out: Console, answer: CarbonAnswer) -> None:
    """Print the least grams by the longest makespan, and how the longest one is best used."""
    print_table(out, LEAST_CARBON, answer.rows(), answer.name)
    rows = [row for row in answer.shares() if row["flops"] > 0]
    out.print()
    print_table(out, WORK, rows[:MOST_ROWS], f"Within {answer.within_s[-1]:,.6g} s, where hosts may be off")
    if len(rows) > MOST_ROWS:
        out.print(f"{MOST_ROWS} of {len(rows):,} stretches with work; -o FILE has all.")


def print_profit(out: Console, answer: ProfitAnswer) -> None:
    """Print what to do, what it earns, and what more or less of everything is worth."""
    out.print(answer.plan.bag.describe())
    out.print(answer.plan.describe())
    out.print()
    rows = answer.rates()
    if answer.plan.runs:
        print_table(out, RATES, rows)
        out.print()
        out.print(_whole_tasks(answer))
    known: list[tuple[str, float | str | None, str]] = [
        ("upper bound of the profit", answer.plan.bound, "money/s"),
        ("a watt more under the power cap is worth", answer.plan.watt_worth, "money/s"),
    ]
    print_values(out, known[: 1 + bool(answer.plan.watt_worth)])
    out.print()
    machines = [{**row, "busy": f"{100 * row['busy_share']:.1f} %"} for row in answer.machines()]
    _print_first(out, MACHINES, machines, "machine_worth")
    if answer.plan.runs:
        out.print()
        _print_first(out, TASKS, answer.tasks(), "task_worth")


def _whole_tasks(answer: ProfitAnswer) -> str:
    whole = answer.whole
    if whole is None:
        return ""
    below = answer.relative_decrease
    share = f", {100 * below:.3g} % below the bound" if below == below else ""
    pause = whole.makespan_s - whole.finish_s
    rest = f" {pause:,.6g} s of it are a pause." if pause > 1e-9 * whole.finish_s else ""
    return f"Whole tasks earn {whole.profit_rate:,.6g} a second{share}.{rest}"


def _print_first(out: Console, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], key: str) -> None:
    """Print the rows, of many those with the largest values of `key`."""
    largest = list(rows)
    if len(rows) > MOST_ROWS:
        places = sorted(range(len(rows)), key=lambda k: -rows[k][key])[:MOST_ROWS]
        largest = [rows[k] for k in sorted(places)]
    print_table(out, columns, largest)
    if len(largest) < len(rows):
        out.print(f"{len(largest)} of {len(rows):,}, those worth most; --json has all.")


def print_front(out: Console, answer: FrontAnswer) -> None:
    """Print the corners of the front; of many, some that are even."""
    rows = [{"corner": k + 1, **row} for k, row in enumerate(answer.rows())]
    out.print(answer.bag.describe())
    best = None
    if answer.tariff is not None:
        best = max(rows, key=lambda row: row["profit_rate"])
    step = -(-len(rows) // MOST_ROWS)
    corners = [row for k, row in enumerate(rows) if k % step == 0 or row in (best, rows[-1])]
    columns = [column for column in FRONT if column.key in rows[0]]
    print_table(out, columns, corners)
    if len(corners) < len(rows):
        out.print(f"{len(corners)} of {len(rows):,} corners; -o FILE has all.")
    if not answer.front.complete:
        out.print("The front has more corners; --points asks for more.")
    if best is not None:
        out.print(f"Of these corner {best['corner']} earns most, {best['profit_rate']:,.6g} a second.")


def print_written(out: Console, output: Path | None, plot: Path | None) -> None:
    """Say which files were written."""
    for name, path in (("Figures", output), ("Figure", plot)):
        if path is not None:
            out.print(f"{name}: {path}")
