"""Commands on logs, and on workloads with utility functions."""

from __future__ import annotations

import csv
import json
import math

import pytest
from cli_cases import EX_A_TASKS, ROOT, platform_text

# The commands on logs of parallel jobs: run, describe, import, convert.

FOUR = ROOT / "examples" / "four_nodes.swf"
#: Two jobs of 10 s on both nodes of a machine, the second at 100 s.
TWO = """\
; MaxProcs: 2
1   0 -1 10 2 -1 -1 2 10 -1 1
2 100 -1 10 2 -1 -1 2 10 -1 1
"""


def test_a_log_runs_as_it_is(gridsched, tmp_path):
    """Records of section I's example; all lines left out are in JSON and provenance."""
    folder = tmp_path / "out"
    outcome = gridsched(
        "run",
        "--workload",
        FOUR,
        "--scheduler",
        "easy_backfilling",
        "--driver",
        "reference",
        "--export",
        folder,
        "--power",
        "50:150",
        "--json",
    )
    assert outcome.status == 0
    assert len(outcome.problems) == 3
    assert outcome.problems[0].endswith("(status 2 to 4) (line 10)")
    assert outcome.json["energy_model_j"] == 77 * 150 + (4 * 35 - 77) * 50
    told = json.loads((folder / "provenance.json").read_text())
    assert told["left_out"] == outcome.json["provenance"]["left_out"]
    assert [each["lines"] for each in told["left_out"]] == ["10", "8", "9"]
    rows = (folder / "jobs.csv").read_text().splitlines()
    assert rows[2].startswith("2,four_nodes,task,1.0,4,5.0,1,COMPLETED_SUCCESSFULLY,10.0,5.0")


@pytest.mark.systems("profit")
def test_serial_schedulers_are_refused_in_one_line(refused):
    """As are options without effect, and values out of range."""
    assert "accepts tasks of one host" in refused("run", "--workload", FOUR, "--scheduler", "mct")
    fcfs = ("run", "--workload", FOUR, "--scheduler", "fcfs")
    assert "nodes is 0; it must be at least 1" in refused(*fcfs, "--nodes", 0)
    assert "nodes_from is 'x'" in refused(*fcfs, "--nodes-from", "x")
    assert "leave out --files" in refused(*fcfs, "--files", FOUR)
    platform = ROOT / "platforms" / "ex_a.xml"
    assert "nodes has no effect" in refused(*fcfs, "--platform", platform, "--nodes", 3)
    assert "a trace of parallel jobs, which" in refused(
        "optimize", "pareto", "--workload", FOUR, "--platform", platform
    )


def test_a_log_on_anybodys_platform(gridsched, write):
    """Eight nodes of a platform file, whose power the command gives: joules by hand."""
    platform = write(
        "p.xml",
        platform_text(
            '<zone id="z" routing="Full"><cluster id="c" prefix="n" radical="0-7" suffix="" '
            'speed="2Gf" bw="1GBps" lat="1us"/></zone>'
        ),
    )
    found = gridsched(
        "run",
        "--platform",
        platform,
        "--workload",
        FOUR,
        "--scheduler",
        "fcfs",
        "--driver",
        "reference",
        "--power",
        "50:150",
        "--json",
    ).json
    assert found["tasks_finished"] == 5
    assert found["busy_time_s"] == 77 + 8 * 7
    busy_j = 133 * 150
    assert found["energy_model_j"] == busy_j + (8 * found["makespan_s"] - 133) * 50


@pytest.mark.parametrize("words", [(), ("--json", "--plot", "{}/jobs.svg"), ("--nodes", "1")])
def test_a_log_without_jobs_is_not_described(refused, write, tmp_path, words):
    """Statistics of nothing are no answer: why each job was left out is in the one line."""
    lines = [line.split() for line in FOUR.read_text().splitlines() if line[:1].isdigit()]
    for line in lines:
        line[3] = "-1"  # run time is not known
    log = write("none.swf", "\n".join(map(" ".join, lines)) + "\n")
    told = refused("workload", "describe", log, *(w.format(tmp_path) for w in words))
    assert "no job is left" in told
    assert "left out" in told


def test_a_log_is_described(gridsched, tmp_path):
    """Numbers by hand, and a figure."""
    figure = tmp_path / "jobs.svg"
    outcome = gridsched("workload", "describe", FOUR, "--json", "--plot", figure)
    assert (outcome.status, outcome.err) == (0, "")
    found = outcome.json
    assert (found["jobs"], found["nodes"], found["max_width"], found["serial_jobs"]) == (4, 4, 4, 2)
    assert found["node_seconds"] == 3 * 10 + 4 * 5 + 20 + 7
    assert found["offered_load"] == pytest.approx(77 / (3 * 4))
    assert found["overestimation"] == 1
    assert len(found["left_out"]) == 3
    assert "Node-hours submitted so far" in figure.read_text()
    lines = gridsched("workload", "describe", FOUR, "--nodes", 9).out.splitlines()
    assert lines[2].split() == ["nodes", "of", "the", "machine", "9"]
    assert lines[-1] == "1 job left out: no run time greater than 0 s (line 8)"


def test_drawn_jobs_are_described_too(gridsched, write):
    """A generator's jobs are a log that no machine wrote."""
    toml = write("jobs.toml", 'kind = "rigid_jobs"\njobs = 40\nnodes = 64\nwidest_job = 8\n')
    found = gridsched("workload", "describe", toml, "--json").json
    assert (found["jobs"], found["nodes"], found["left_out"]) == (40, 64, [])
    assert 0 < found["overestimation"] < 5


def test_serial_jobs_are_imported(gridsched, tmp_path):
    """As a bag that runs; the report has all lines."""
    bag, report = tmp_path / "bag.csv", tmp_path / "report.json"
    outcome = gridsched("workload", "import", FOUR, "-o", bag, "--speed", 100, "--report", report)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines()[0] == f"Wrote {bag}: 2 tasks."
    assert bag.read_text() == "id,flops,submit_time_s\n3,2000.0,0.0\n4,700.0,1.0\n"
    told = json.loads(report.read_text())
    assert told["tasks"] == 2
    assert told["left_out"][-1]["lines"] == "4-5 9"
    platform = ROOT / "platforms" / "ex_a.xml"
    ran = gridsched("run", "--platform", platform, "--workload", bag, "--driver", "reference", "--json")
    assert ran.json["tasks_finished"] == 2


@pytest.mark.systems("batsim")
def test_logs_are_converted(gridsched, tmp_path):
    """SWF to Batsim's JSON and back: the same jobs, in nodes of two processors."""
    batsim, back = tmp_path / "jobs.json", tmp_path / "jobs.swf"
    outcome = gridsched("workload", "convert", FOUR, "--procs-per-node", 2, "-o", batsim)
    assert outcome.out.splitlines()[0] == f"Wrote {batsim}: 5 jobs."
    assert json.loads(batsim.read_text())["nb_res"] == 2
    assert gridsched("workload", "convert", batsim, "-o", back, "--json").json["jobs"] == 5
    rows = [line.split()[4] for line in back.read_text().splitlines() if line[0] != ";"]
    assert rows == ["2", "2", "1", "1", "4"]


def test_targets_are_looked_at_before_a_log_is_read(refused):
    """Names of files, and options that mean nothing here."""
    assert "tasks are written as .csv" in refused("workload", "import", FOUR, "-o", "x.swf")
    assert "jobs are written as .swf or .jobs.csv" in refused("workload", "convert", FOUR, "-o", "x.y")
    assert "nodes has no effect" in refused("workload", "convert", FOUR, "-o", "x.swf", "--nodes", 3)
    assert "--speed is 0" in refused("workload", "import", FOUR, "-o", "x.csv", "--speed", 0)


def test_a_log_of_which_no_job_is_left_is_refused(refused, write):
    """Failed before it ran: the line explains why nothing is to be run."""
    log = write("l.swf", "; MaxProcs: 4\n1 0 -1 -1 2 -1 -1 2 10 -1 0 1 1 -1 -1 -1 -1 -1\n")
    line = refused("run", "--workload", log, "--scheduler", "fcfs", "--power", "1:2")
    assert "there are no tasks to run (1 job left out: " in line


def test_what_booting_costs_on_a_logs_machine(gridsched, refused, write):
    """Off at 15 s for nothing, which is reported; or once idle for 560 J / 50 W = 11.2 s."""
    log = write("two.swf", TWO)
    what = (
        "--workload",
        log,
        "--driver",
        "reference",
        "--power",
        "50:150",
        "--set",
        "idle_off.scheduler=fcfs",
        "--set",
        "idle_off.timeout_s=5",
    )
    costs = ("--boot", "4:100", "--shutdown", "2:80")
    commands = (("run", "--scheduler", "idle_off"), ("compare", "--schedulers", "fcfs,idle_off"))
    for command in commands:
        free = gridsched(*command, *what)
        assert [line for line in free.out.splitlines() if "0 J" in line and "--boot" in line]
        assert "--boot" not in gridsched(*command, *what, *costs).out
    found = gridsched("run", "--scheduler", "idle_off", *what, *costs, "--json").json
    assert found["makespan_s"] == 114
    assert found["energy_model_j"] == pytest.approx(2 * (20 * 150 + 11.2 * 50 + 4 * 100 + 2 * 80))
    assert (found["energy_boot_j"], found["energy_shutdown_j"]) == (800, 320)
    assert found["provenance"]["trace"] == {"boot": "4:100", "shutdown": "2:80"}
    fcfs = ("run", "--scheduler", "fcfs", "--workload", log)
    for text in ("4", "4:100:2", "0:100", "4:-1", "nan:1", "4:inf"):
        assert f"boot is '{text}'; S:W is allowed" in refused(*fcfs, "--boot", text)
    platform = ROOT / "platforms" / "ex_a.xml"
    assert "shutdown has no effect" in refused(*fcfs, "--platform", platform, "--shutdown", "1:1")
    assert "boot has no effect" in refused("workload", "describe", log, "--boot", "1:1")


def test_the_meter_agrees_on_nodes_that_boot(gridsched, write):
    """SimGrid's plugin, host by host, on the machine made from a log."""
    log = write("two.swf", TWO)
    outcome = gridsched(
        "validate",
        "--workload",
        log,
        "--schedulers",
        "idle_off",
        "--set",
        "scheduler=fcfs",
        "--boot",
        "4:100",
        "--shutdown",
        "2:80",
        "--json",
    )
    assert outcome.status == 0
    assert outcome.json["hosts"][-1]["plugin_j"] > 2 * 560


# `run`, `compare` and `plot` on a workload with utility functions, and the budget's options.

DAY = """kind = "utility"
seed = 5
days = 0.25
special_machine_counts = [1]
general_machine_counts = [2, 2]
special_task_types = [2]
task_types = 6
tasks_per_type = 600
tasks_per_type_deviation = 0
measured_from_s = 7200
measured_until_s = 21600
"""
REFERENCE = ("--driver", "reference")


@pytest.fixture
def day(write):
    """A quarter of a day on five machines."""
    return write("day.toml", DAY)


@pytest.mark.systems("utility")
def test_compare_tells_utility_and_no_bounds(gridsched, day):
    """The keys of utility runs; the best has share 1; bounds of bags are left out."""
    outcome = gridsched("compare", "--workload", day, "--schedulers", "mct,round_robin", *REFERENCE, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    rows = outcome.json["results"]
    for row in rows:
        assert 0 < row["window_utility"] < row["utility"] < row["utility_possible"]
        assert 0 < row["window_energy_j"] < row["energy_model_j"]
        assert row["tasks_postponed"] == 0
        expected = row["timing"]["policy_s"] / row["mapping_events"]
        assert row["timing"]["mapping_event_s"] == expected
        assert not {name for name in row if "bound" in name}
        assert "budget_excess_j" not in row
        states = ("finished", "dropped", "rejected", "killed", "failed", "unfinished")
        assert sum(row[f"tasks_{state}"] for state in states) == row["tasks"]
    best = max(row["window_utility"] for row in rows)
    assert [row["utility_share_of_best"] for row in rows] == [row["window_utility"] / best for row in rows]
    assert max(row["utility_share_of_best"] for row in rows) == 1.0


@pytest.mark.systems("utility")
def test_the_table_of_a_utility_comparison(gridsched, day, tmp_path):
    """Columns of the issue, at most 120 wide; the figure's data hold utility and energy."""
    figure = tmp_path / "c.png"
    outcome = gridsched(
        "compare", "--workload", day, "--schedulers", "mct,round_robin", "--plot", figure, "--energy-budget-j", "1e7"
    )
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    words = outcome.out.split("─")[0].split()
    for word in ("utility", "share", "energy", "dropped", "post-", "wait", "mapping"):
        assert any(word in each for each in words), word
    assert max(map(len, lines)) <= 120
    assert "Window: from 7,200 s to 21,600 s." in lines
    assert "Energy budget: 10 MJ in each 86,400 s (refuse); no run exceeded it." in lines
    assert not [line for line in lines if "bound" in line]
    with figure.with_suffix(".csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["scheduler"] for row in rows] == ["mct", "round_robin"]
    assert all(float(row["window_utility"]) > 0 for row in rows)
    assert all(float(row["window_energy_j"]) > 0 for row in rows)


@pytest.mark.systems("utility")
def test_run_exports_what_the_plots_draw(gridsched, day, tmp_path):
    """Each figure is drawn from the export; its last steps are the run's totals."""
    folder = tmp_path / "out"
    outcome = gridsched(
        "run",
        "--workload",
        day,
        "--scheduler",
        "mct",
        *REFERENCE,
        "--export",
        folder,
        "--energy-budget-j",
        "1e7",
        "--budget-enforcement",
        "stop",
        "--budget-period-s",
        "10800",
        "--json",
    )
    assert (outcome.status, outcome.err) == (0, "")
    found = outcome.json
    assert found["provenance"]["budget"]["energy_j"] == 1e7
    for kind in ("gantt", "power", "trace"):
        consumed = gridsched("plot", kind, folder, "-o", tmp_path / f"{kind}.svg")
        assert (consumed.status, consumed.err) == (0, "")
    with (tmp_path / "trace.csv").open() as stream:
        steps = list(csv.DictReader(stream))
    energy = utility = 0.0
    for now, later in zip(steps, [*steps[1:], {"period": None}], strict=True):
        if now["period"] != later["period"]:
            energy += float(now["energy_j"])
            utility += float(now["utility"])
        assert float(now["budget_j"]) == 1e7
        assert float(now["energy_j"]) <= 1e7 * (1 + 1e-9)
    assert energy == pytest.approx(found["energy_model_j"], rel=1e-9)
    assert utility == pytest.approx(found["utility"], rel=1e-9)
    assert sum(int(step["tasks_finished"]) for step in steps) == found["tasks_finished"]
    with (folder / "jobs.csv").open() as stream:
        jobs = list(csv.DictReader(stream))
    assert math.fsum(float(job["utility"]) for job in jobs) == pytest.approx(found["utility"])
    finished = [job for job in jobs if job["success"] == "1"]
    for job in finished:
        host_pstate = 3 * int(job["task_type"]) + int(job["scheduler_pstate"])
        assert int(job["pstate"]) == host_pstate
    with (folder / "periods.csv").open() as stream:
        periods = list(csv.DictReader(stream))
    consumed = {step["period"]: float(step["energy_j"]) for step in steps}
    for number, period in enumerate(periods):  # the controller's account against the records
        account = float(period["consumed_j"])
        assert account == pytest.approx(consumed.get(str(number), 0.0), rel=1e-9)


@pytest.mark.systems("utility")
def test_run_shows_utility_for_people(gridsched, day):
    """The list names utility, window and mapping time."""
    outcome = gridsched("run", "--workload", day, "--scheduler", "mct", *REFERENCE)
    for words in ("utility earned", "utility in the window", "energy in the window", "wall time of a mapping event"):
        assert words in outcome.out
    assert "beyond the budget" not in outcome.out


@pytest.mark.systems("utility")
def test_steps_of_the_trace(gridsched, day, tmp_path, refused):
    """--step-s sets the steps; nonsense is refused."""
    folder = tmp_path / "out"
    gridsched("run", "--workload", day, *REFERENCE, "--export", folder, "--quiet")
    assert gridsched("plot", "trace", folder, "-o", tmp_path / "t.png", "--step-s", 600).status == 0
    with (tmp_path / "t.csv").open() as stream:
        steps = [float(row["until_s"]) - float(row["from_s"]) for row in csv.DictReader(stream)]
    assert steps[:-1] == [600.0] * (len(steps) - 1)
    for step in ("0", "-1", "nan", "inf", "1e-9"):
        line = refused("plot", "trace", folder, "-o", tmp_path / "u.png", "--step-s", step)
        assert "Steps of" in line


def test_the_trace_of_a_bag_has_energy_only(gridsched, ex_a, tmp_path):
    """plot trace works on every export; EX-A ends at 2430 J."""
    folder = tmp_path / "out"
    gridsched("run", *ex_a, *REFERENCE, "--export", folder, "--quiet")
    assert gridsched("plot", "trace", folder, "-o", tmp_path / "t.pdf").status == 0
    with (tmp_path / "t.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert "utility" not in rows[0]
    assert float(rows[-1]["energy_j"]) == pytest.approx(2430)
    assert len(rows) == 72
    assert {row["period"] for row in rows} == {"-1"}


# ---------------------------------------------------------------------- options of the budget


def budget_of(outcome):
    """Return the budget that a run received."""
    assert (outcome.status, outcome.err) == (0, ""), outcome
    return outcome.json["provenance"]["budget"]


@pytest.mark.systems("utility")
def test_options_go_before_the_generators_file(gridsched, write):
    """Each option replaces its key; the other keys stay."""
    path = write(
        "day.toml",
        DAY + 'energy_budget_j = 5e6\nbudget_enforcement = "stop"\n'
        "budget_period_s = 10800\nfirst_period_start_s = 60\n",
    )
    words = ("run", "--workload", path, *REFERENCE, "--json")
    told = budget_of(gridsched(*words))
    assert (told["energy_j"], told["period_s"], told["enforcement"]) == (5e6, 10800, "stop")
    changed = budget_of(gridsched(*words, "--energy-budget-j", "4e6"))
    assert changed == {**told, "energy_j": 4e6}
    changed = budget_of(gridsched(*words, "--budget-period-s", "7200"))
    assert changed == {**told, "period_s": 7200}
    changed = budget_of(gridsched(*words, "--energy-budget-j", "inf", "--budget-enforcement", "refuse"))
    assert changed == {**told, "energy_j": None, "enforcement": "refuse"}  # JSON has no inf


def test_a_budget_stops_a_bag(gridsched, ex_a):
    """EX-A draws 75 W in its first 15 s: 1000 J last for 13.33 s."""
    outcome = gridsched("run", *ex_a, *REFERENCE, "--energy-budget-j", "1000", "--budget-enforcement", "stop", "--json")
    found = outcome.json
    assert found["horizon_s"] == pytest.approx(1000 / 75)
    assert found["energy_model_j"] == pytest.approx(1000)
    assert (found["tasks_finished"], found["tasks_killed"]) == (2, 3)
    assert found["budget_excess_j"] <= 1e-6
    assert budget_of(outcome)["period_s"] == 86400


def test_a_budget_too_small_for_any_task_is_told(refused, ex_a):
    """One line, exit status 1: no input is wrong, but the run cannot end."""
    line = refused("run", *ex_a, *REFERENCE, "--energy-budget-j", "100", status=1)
    assert "no period's budget of 100 J admits" in line


def test_a_horizon_leaves_later_tasks_undone(gridsched, ex_a):
    """With 5 s no second task starts on any host of EX-A."""
    found = gridsched("run", *ex_a, *REFERENCE, "--horizon-s", "5", "--json").json
    assert (found["tasks_finished"], found["tasks_unfinished"]) == (3, 2)


@pytest.mark.systems("utility")
def test_a_generated_system_takes_no_platform(refused, day, write, ex_a):
    """The files that a generated system replaces are named; a bag still needs a platform."""
    line = refused("run", *ex_a[:2], "--workload", day)
    assert "makes its own system" in line
    assert "--platform" in line
    bag = write("bag.csv", EX_A_TASKS)
    assert "'--platform FILE'" in refused("run", "--workload", bag)
    assert "'--workload FILE'" in refused("run")
    files = write("files.csv", "file,size_bytes,location\na,1,x\n")
    assert "--files" in refused("compare", "--workload", day, "--files", files)


@pytest.mark.systems("utility")
def test_what_is_written_is_what_json_says(gridsched, day, tmp_path):
    """-o holds the new keys, too."""
    path = tmp_path / "rows.json"
    words = ("compare", "--workload", day, "--schedulers", "mct", *REFERENCE)
    outcome = gridsched(*words, "-o", path, "--json")
    ours, theirs = outcome.json["results"][0], json.loads(path.read_text())["results"][0]
    assert ours["utility"] == theirs["utility"]
    flat = tmp_path / "rows.csv"
    gridsched(*words, "-o", flat, "--quiet")
    with flat.open() as stream:
        row = next(csv.DictReader(stream))
    assert float(row["window_utility"]) == ours["window_utility"]


@pytest.mark.systems("utility")
def test_a_budget_for_the_whole_run(gridsched):
    """``inf`` is a period on the command line; both drivers stop at the same joules."""
    words = (
        "--workload",
        ROOT / "examples" / "utility_small.toml",
        "--energy-budget-j",
        "2e6",
        "--budget-period-s",
        "inf",
        "--budget-enforcement",
        "stop",
    )
    found = [gridsched("run", *words, "--driver", driver, "--json").json for driver in ("reference", "simgrid")]
    assert found[0]["horizon_s"] == found[1]["horizon_s"]
    for each in found:
        assert each["tasks_killed"] > 0
        assert each["energy_j"] == pytest.approx(2e6, rel=1e-9)
    shown = gridsched("compare", *words, "--driver", "reference", "--schedulers", "mct").out
    assert "Energy budget: 2 MJ for the whole run (stop)" in shown
