"""The command optimize."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest
from cli_cases import EX_A_TASKS, ROOT

# `gridsched optimize pareto` and `profit`, by the example worked by hand (algorithms, E5).

PLATFORM = ROOT / "platforms/ex_a.xml"
FILES = {
    "etc": "task_type,machine_type,pstate,etc_s\na,fast,0,2\na,slow,0,4\n",
    "apc": "task_type,machine_type,pstate,apc_w\na,fast,0,10\na,slow,0,2.5\n",
    "counts": "task_type,tasks\na,12\n",
}


@pytest.fixture
def example(write):
    """Options that name the example's matrices."""
    return [word for name, text in FILES.items() for word in (f"--{name}", write(f"{name}.csv", text))]


@pytest.fixture
def optimized(gridsched, example):
    """Call `optimize profit` or `pareto` on the example; return its JSON and status."""

    def call(command, *words):
        outcome = gridsched("optimize", command, *example, *words, "--json")
        return outcome.json, outcome.status

    return call


@pytest.mark.parametrize(
    ("words", "time_s", "rate"),
    [
        (("--price", 180), 48, 1.25),
        (("--gamma", 1.5), 48, 1.25),
        (("--price", 300), 16, 6.25),
        (("--price", 300, "--power-cap-w", 10), 19.2, 5.625),
        (("--price", 600, "--energy-cost", "2/J"), 16, 12.5),
        (("--price", 300, "--pue", 1.5), 48, 2.5),
        (("--price", 312, "--overhead", 12), 16, 6.25),
        (("--price", 300, "--wear-per-s", 0.5), 16, 5.25),
        (("--price", 300, "--depreciation-per-s", 0.75), 16, 4.75),
        (("--price", 108, "--r-min", 1 / 48), 48, -0.25),
    ],
)
def test_profit_by_hand(optimized, words, time_s, rate):
    """The bag takes 16 s for 200 J, 48 s for 120 J, or what lies between; wear is 28 s x 0.5."""
    found, status = optimized("profit", *words)
    assert status == 0
    divided = found["rates"][0]
    assert divided["time_s"] == pytest.approx(time_s, rel=1e-9)
    assert divided["profit_rate"] == pytest.approx(rate, rel=1e-9)
    assert found["profit_rate_bound"] >= divided["profit_rate"]


def test_whole_tasks_and_worths(optimized):
    """Under 10 W: 7 tasks and 5, 190 J in 20 s; a watt more is worth 0.25 money/s."""
    found, _ = optimized("profit", "--price", 300, "--power-cap-w", 10)
    whole = found["rates"][1]
    assert (whole["time_s"], whole["energy_j"]) == (20, 190)
    assert whole["profit_rate"] == pytest.approx(5.5)
    assert [place["tasks"] for place in found["places"]] == [7, 5]
    assert found["watt_worth"] == pytest.approx(0.25)
    assert found["machines"][0]["machine_worth"] == pytest.approx(0)


def test_a_bag_that_never_pays_is_not_run(gridsched, example):
    """Exit status 1, and the first line states this."""
    outcome = gridsched("optimize", "profit", *example, "--price", 108)
    assert (outcome.status, outcome.err) == (1, "")
    assert outcome.out.splitlines()[1].startswith("Do not run:")


def test_front_by_hand(optimized):
    """One edge: 80 J saved in 32 s more."""
    found, status = optimized("pareto", "--price", 300)
    assert (status, found["complete"]) == (0, True)
    first, last = found["front"]
    assert (first["makespan_s"], first["energy_j"]) == pytest.approx((16, 200))
    assert (last["makespan_s"], last["energy_j"]) == pytest.approx((48, 120))
    assert first["joules_per_second"] == pytest.approx(2.5)
    assert [row["profit_rate"] for row in (first, last)] == pytest.approx([6.25, 3.75])
    assert (first["schedule_makespan_s"], first["schedule_energy_j"]) == (16, 200)


def test_front_without_money_has_no_profit(gridsched, example):
    """Neither in JSON nor in the table."""
    outcome = gridsched("optimize", "pareto", *example)
    assert (outcome.status, outcome.err) == (0, "")
    assert "profit" not in outcome.out
    assert "12 tasks of 1 type on 2 machines of 2 types" in outcome.out.splitlines()[0]


def test_machines_have_numbers_and_idle_power(optimized, write):
    """APC0 = (1, 0.25) W: the fastest bag is the same, no power beside it (E5)."""
    machines = write("m.csv", "machine_type,count,idle_w\nfast,1,1\nslow,1,0.25\n")
    found, _ = optimized("profit", "--machines", machines, "--price", 300)
    assert found["rates"][0]["profit_rate"] == pytest.approx(6.25)
    found, _ = optimized("pareto", "--machines", machines)
    assert found["front"][-1]["energy_j"] == pytest.approx(120 + 48)


def test_platform_and_bag_go_by_size_and_kind_of_host(gridsched, write):
    """EX-A: five sizes on three hosts; no makespan below 5250 flop / 175 flop/s."""
    bag = write("w.csv", EX_A_TASKS)
    found = gridsched("optimize", "pareto", "--platform", PLATFORM, "--workload", bag, "--json")
    assert found.json["bag"].endswith("5 tasks of 5 types on 3 machines of 3 types")
    assert found.json["front"][0]["makespan_s"] == pytest.approx(30)
    # docs/bounds.md: 70 s x (5 + 20 + 4) W
    assert found.json["front"][-1]["energy_j"] == pytest.approx(2030)


def test_a_generator_is_taken_by_its_counts(gridsched, write):
    """Ten million million tasks are no list; both numbers of tasks have the same plan."""
    shape = "task_types = 4\nmachine_types = 3\nmachines_per_type = 2\n"
    text = f'kind = "profit"\n{shape}tasks = 10_000_000_000\n'
    found = gridsched("optimize", "profit", "--workload", write("g.toml", text), "--gamma", 1.2, "--json").json
    assert "10,000,000,000 tasks of 4 types on 6 machines of 3 types" in found["bag"]
    assert 0 <= found["relative_decrease"] < 1e-6
    assert sum(place["tasks"] for place in found["places"]) == 10**10


def test_files_are_written(gridsched, example, tmp_path):
    """-o lists which machine executes what; the figure has its data beside it."""
    table, figure = tmp_path / "plan.csv", tmp_path / "front.svg"
    outcome = gridsched("optimize", "profit", *example, "--price", 300, "-o", table, "--plot", figure)
    assert (outcome.status, outcome.err) == (0, "")
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["machine_type"], row["tasks"]) for row in rows] == [("fast", "8"), ("slow", "4")]
    data = figure.with_suffix(".csv").read_text()
    assert "\nfront,200" in data
    assert "largest profit" in data
    assert figure.read_text().startswith("<?xml")


@pytest.mark.parametrize("price", [300, 108, 0])
def test_figures_of_one_type_of_machines(gridsched, write, tmp_path, price):
    """The front is a point, the region a line; where nothing pays there is no plan to draw."""
    words = []
    for name, text in FILES.items():
        only_fast = "\n".join(line for line in text.splitlines() if "slow" not in line)
        words += [f"--{name}", write(f"{name}.csv", f"{only_fast}\n")]
    figure = tmp_path / "f.png"
    outcome = gridsched("optimize", "profit", *words, "--price", price, "--plot", figure)
    # a bag costs 240 J
    assert (outcome.status, outcome.err) == (0 if price == 300 else 1, "")
    data = figure.with_suffix(".csv").read_text()
    assert ("largest profit" in data) == (price == 300)
    assert figure.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("profit",), "Missing option '--price'"),
        (("profit", "--price", 300, "--gamma", 2), "give one of them"),
        (("profit", "--energy-cost", "2/J"), "no effect without --price"),
        (("profit", "--price", -1), "price is -1"),
        (("profit", "--price", 3, "--pue", 0.5), "pue is 0.5"),
        (("profit", "--gamma", -1), "from 0 to 1e+09"),
        (("profit", "--price", 3, "--prices", "p.csv"), "know no time of day"),
        (("profit", "--price", 300, "--power-cap-w", 0), "power cap must be positive"),
        (("profit", "--price", 300, "--r-min", 1), "finish at most 0.0625"),
        (("profit", "--price", 300, "--pstate", 1), "P-state 1 is requested; allowed: 0 to 0"),
        (("pareto", "--workload", "g.toml"), "--workload excludes --etc"),
        (("pareto", "--points", 1), "--points"),
        (("pareto", "-o", "front.txt"), "writes .json, .csv or .parquet"),
    ],
)
def test_bad_options_are_refused(refused, example, words, message):
    """In one line that shows what is allowed."""
    command, *others = words
    assert message in refused("optimize", command, *example, *others)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing the bag"),
        (("--etc", "etc.csv"), "Missing option '--apc'"),
        (("--workload", ROOT / "examples/ex_a.csv"), "add --platform"),
        (("--workload", ROOT / "examples/bag.toml"), "add --platform"),
    ],
)
def test_missing_systems_are_refused(refused, words, message):
    """Naming what to add."""
    assert message in refused("optimize", "pareto", *words)


def test_too_many_sizes_are_refused(refused, write):
    """A solver would take minutes."""
    lines = "\n".join(f"{k},{k}.5" for k in range(1, 33_400))
    bag = write("w.csv", f"id,flops\n{lines}\n")
    message = refused("optimize", "pareto", "--platform", PLATFORM, "--workload", bag)
    assert "100,197 pairs; the linear programs accept at most 100,000" in message


def test_commands_start_without_what_few_need():
    """The solver and pandas take longer to load than all the rest of the command line."""
    code = (
        "import sys, gridsched.cli.app, gridsched.campaign.worker; "
        "print(sorted({'scipy.optimize', 'scipy.special', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_cap_equal_to_the_idle_power_is_no_error(gridsched, example, write):
    """Nothing can run under 1.25 W: "do not run", exit status 1 as for any bag that only loses."""
    machines = write("m.csv", "machine_type,count,idle_w\nfast,1,1\nslow,1,0.25\n")
    words = ("optimize", "profit", *example, "--machines", machines, "--price", 300)
    outcome = gridsched(*words, "--power-cap-w", 1.25)
    assert (outcome.status, outcome.err) == (1, "")
    assert outcome.out.splitlines()[1].startswith("Do not run:")


@pytest.mark.parametrize("output", [("--json",), ("-o", "p.json"), ("-o", "p.csv"), ()])
def test_whole_tasks_that_are_too_slow_for_the_promise_say_so(gridsched, write, tmp_path, monkeypatch, output):
    """Ten tasks of 2 s or 4 s: divided 40/3 s, whole 14 s; a bag in 13.5 s is promised."""
    monkeypatch.chdir(tmp_path)
    words = [w for n, text in FILES.items() for w in (f"--{n}", write(f"{n}.csv", text))]
    write("counts.csv", "task_type,tasks\na,10\n")
    outcome = gridsched("optimize", "profit", *words, "--price", 300, "--r-min", 1 / 13.5, *output, "--quiet")
    assert outcome.status == 0
    said = "whole tasks take 14 s a bag, too slow for the promised 0.0740741 a second"
    assert said in outcome.err
    if output == ("--json",):
        found = outcome.json
    elif output and output[1].endswith("json"):
        found = json.loads((tmp_path / output[1]).read_text())
    else:
        return
    assert [row["keeps_rate"] for row in found["rates"]] == [True, False]
    assert any("too slow" in note for note in found["notes"])
