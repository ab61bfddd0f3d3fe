"""The commands optimize and validate."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_cases import EX_A_TASKS, ROOT, host_xml, zone_xml
from made_files import edit_archive

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
        (("--price", 600, "--energy-cost", 2), 16, 12.5),
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
    """Exit status 1, and the first line says so."""
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
    """-o tells who executes what; the figure stands with its data."""
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
        (("profit", "--energy-cost", 2), "no effect without --price"),
        (("profit", "--price", -1), "price is -1"),
        (("profit", "--price", 3, "--pue", 0.5), "pue is 0.5"),
        (("profit", "--gamma", -1), "from 0 to 1e+09"),
        (("profit", "--price", 3, "--prices", "p.csv"), "know no time of day"),
        (("profit", "--price", 300, "--power-cap-w", 0), "power cap must be positive"),
        (("profit", "--price", 300, "--r-min", 1), "finish at most 0.0625"),
        (("profit", "--price", 300, "--pstate", 1), "P-state 1 is wanted; legal are 0 to 0"),
        (("pareto", "--workload", "g.toml"), "--workload excludes --etc"),
        (("pareto", "--points", 1), "--points"),
        (("pareto", "-o", "front.txt"), "writes .json, .csv or .parquet"),
    ],
)
def test_bad_options_are_refused(refused, example, words, message):
    """In one line that says what is legal."""
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
    assert "100,197 pairs; the programmes take at most 100,000" in message


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


# The validate command, and what is said where energies disagree.

# `gridsched validate` on exports, and its negative control.


@pytest.fixture
def export(gridsched, ex_a, tmp_path, simgrid) -> Path:
    """Return an export of WQ on EX-A by the SimGrid driver."""
    folder = tmp_path / "out"
    assert gridsched("run", *ex_a, "--export", folder, "--quiet").status == 0
    return folder


def shift_wattage(folder: Path, host: str, column: str) -> None:
    """Multiply one wattage of a host in the export by 1 + 1e-6."""

    def shift(description, arrays):
        entry = next(each for each in description["platform"]["hosts"] if each["name"] == host)
        entry["pstates"][0][column] *= 1 + 1e-6

    edit_archive(folder, shift)


def shift_start(folder: Path, job: int) -> None:
    """Multiply the start time of a job in the export by 1 + 1e-6."""

    def shift(description, arrays):
        runs = arrays["executions"]
        runs["start"][arrays["tasks.labels"][runs["task"]] == job] *= 1 + 1e-6

    edit_archive(folder, shift)


def test_an_export_validates(gridsched, export):
    """The joules of an export agree, host by host."""
    outcome = gridsched("validate", export)
    assert (outcome.status, outcome.err) == (0, "")
    rows = {line.split()[1]: line.split()[3:] for line in outcome.out.splitlines() if line.startswith("wq")}
    assert rows == {
        "h1": ["1,470", "1,470", "0"],
        "h2": ["560", "560", "0"],
        "h3": ["400", "400", "0"],
        "total": ["2,430", "2,430", "0"],
    }
    assert "All 4 rows agree" in outcome.out


@pytest.mark.parametrize(("host", "column"), [("h1", "busy_w"), ("h1", "idle_w"), ("h2", "busy_w"), ("h3", "busy_w")])
def test_a_shifted_wattage_is_found(gridsched, export, host, column):
    """Negative control: one wattage off by 1e-6 makes it exit 1 and name the host."""
    shift_wattage(export, host, column)
    outcome = gridsched("validate", export)
    assert outcome.status == 1
    assert {line.split("host '")[1].split("'")[0] for line in outcome.complaints} == {host, "total"}
    assert "agree" not in outcome.out
    assert gridsched("validate", export, "--json").json["differences"] == 2


def test_a_shifted_start_time_is_found(gridsched, export):
    """Negative control: one start time off by 1e-6 makes it exit 1 and name the host."""
    shift_start(export, 4)  # on h1 from 10 s to 25 s; the host idles 10 microseconds now
    outcome = gridsched("validate", export, "--quiet")
    assert outcome.status == 1
    assert outcome.out == ""
    assert "host 'h1'" in outcome.complaints[0]
    assert not any("host 'h2'" in line or "host 'h3'" in line for line in outcome.complaints)
    assert "1469.99" in outcome.complaints[0]  # (50 - 4) W * 1e-5 s less


def test_an_export_of_the_reference_driver_has_no_plugin(gridsched, refused, ex_a, tmp_path):
    """There is nothing to compare with, and the message says so."""
    folder = tmp_path / "out"
    gridsched("run", *ex_a, "--driver", "reference", "--export", folder)
    assert "SimGrid driver" in refused("validate", folder)


def huge(description, arrays):
    """Set an illegal size."""
    arrays["tasks.flops"][0] = 1e300


def lose_a_row(description, arrays):
    """Forget an execution."""
    arrays["executions"] = arrays["executions"][:-1]


def other_host(description, arrays):
    """Rename the host of some joules."""
    description["plugin_j"]["h9"] = description["plugin_j"].pop("h2")


BROKEN = {
    "no export": (lambda folder: (folder / "trace.npz").unlink(), ["trace.npz", "--export"]),
    "file empty": (lambda folder: (folder / "trace.npz").write_bytes(b""), ["trace.npz"]),
    "file binary": (lambda folder: (folder / "trace.npz").write_bytes(bytes(range(256))), ["trace.npz"]),
    "file cut": (
        lambda folder: (folder / "trace.npz").write_bytes((folder / "trace.npz").read_bytes()[:-100]),
        ["trace.npz"],
    ),
    "huge number": (lambda folder: edit_archive(folder, huge), ["trace.npz", "1e+300"]),
    "row lost": (lambda folder: edit_archive(folder, lose_a_row), ["trace.npz", "job", "0"]),
    "plugin energy of another host": (lambda folder: edit_archive(folder, other_host), ["trace.npz", "h9"]),
    "folder for a file": (
        lambda folder: ((folder / "trace.npz").unlink(), (folder / "trace.npz").mkdir()),
        ["trace.npz", "folder"],
    ),
}


@pytest.mark.parametrize(("break_it", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_export_is_refused(refused, export, break_it, words):
    """What is missing, cut off or edited in an export is named; plots refuse it alike."""
    break_it(export)
    for command in (
        ["validate", export],
        ["plot", "gantt", export, "-o", export.parent / "g.png"],
        ["plot", "power", export, "-o", export.parent / "p.svg"],
    ):
        line = refused(*command)
        assert all(word in line for word in words), line


def test_no_folder_at_all(refused, tmp_path, write):
    """A missing folder and a file are told apart."""
    assert "does not exist" in refused("validate", tmp_path / "none")
    assert "file" in refused("validate", write("x.csv", "x"))


def test_validate_writes_its_table(gridsched, ex_a, tmp_path, simgrid):
    """-o writes a row for each scheduler and host."""
    path = tmp_path / "v.csv"
    outcome = gridsched("validate", *ex_a, "--schedulers", "wq,lecsa", "--quiet", "-o", path)
    assert (outcome.status, outcome.out) == (0, "")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(row["scheduler"], row["host"]) for row in rows] == [
        (scheduler, host) for scheduler in ("wq", "lecsa") for host in ("h1", "h2", "h3", "total")
    ]
    assert all(float(row["relative_difference"]) == 0 for row in rows)


# Runs whose joules differ between plugin and model are failed ones, for every command.

#: A policy that goes behind the engine's back: SimGrid's host is then in another P-state than the
#: model's, as fast as the first and at 30 W in the place of 100 W.
MEDDLER = '''
"""A policy that changes SimGrid itself."""

import sys

from gridsched import Assign, Scheduler, Traits


class Meddler(Scheduler):
    """A work queue that puts host b into another P-state by SimGrid's own interface."""

    traits = Traits(asked="event")

    def schedule(self, state):
        sys.modules["simgrid"].Host.by_name("b").pstate = 1
        return [Assign(t, h) for t, h in zip(state.waiting(), state.idle_cores())]
'''


@pytest.fixture
def files(tmp_path) -> list[object]:
    """Return the options of two hosts, and of a task for each of 10 s."""
    hosts = [host_xml(name, "100f,100f", "10:10:100, 10:10:30") for name in "ab"]
    (tmp_path / "p.xml").write_text(zone_xml("".join(hosts)))
    (tmp_path / "bag.csv").write_text("id,flops\n1,1000\n2,1000\n")
    (tmp_path / "meddler.py").write_text(MEDDLER)
    return ["--platform", tmp_path / "p.xml", "--workload", tmp_path / "bag.csv"]


@pytest.mark.usefixtures("simgrid")
def test_run_tells_the_host_and_writes_nothing(gridsched, files, tmp_path):
    """300 J by the plugin, 1000 J by the model: exit status 1, no table, no file."""
    target, records = tmp_path / "t.json", tmp_path / "out"
    found = gridsched("run", *files, "--scheduler", tmp_path / "meddler.py", "-o", target, "--export", records)
    assert found.status == 1
    assert found.out == ""
    assert not target.exists()
    assert not records.exists()
    told = " ".join(found.err.split())
    assert "host 'b' has energy_j 300.0 by SimGrid's plugin and energy_model_j 1000.0" in told
    assert "(1 of 2 hosts differ)" in told
    assert "All figures of this run are left out" in told


@pytest.mark.usefixtures("simgrid")
def test_compare_leaves_the_run_out_and_keeps_the_others(gridsched, files, tmp_path):
    """The other schedulers have their rows; the failure names its own."""
    both = f"wq,{tmp_path / 'meddler.py'}"
    found = gridsched("compare", *files, "--schedulers", both, "-o", tmp_path / "t.json", "--json")
    assert found.status == 1
    assert [row["scheduler"] for row in found.json["results"]] == ["wq"]
    (failure,) = json.loads((tmp_path / "t.json").read_text())["failures"]
    assert "Meddler" in failure
    assert "host 'b' has energy_j 300.0" in failure
    assert "All figures of this run are left out" in failure
    assert "run failed" in found.err
