"""The commands on logs of parallel jobs: run, describe, import, convert."""

from __future__ import annotations

import json

import pytest
from cli_cases import ROOT, platform_text

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
    assert len(outcome.complaints) == 3
    assert outcome.complaints[0].endswith("(status 2 to 4) (line 10)")
    assert outcome.json["energy_model_j"] == 77 * 150 + (4 * 35 - 77) * 50
    told = json.loads((folder / "provenance.json").read_text())
    assert told["left_out"] == outcome.json["provenance"]["left_out"]
    assert [each["lines"] for each in told["left_out"]] == ["10", "8", "9"]
    rows = (folder / "jobs.csv").read_text().splitlines()
    assert rows[2].startswith("2,four_nodes,task,1.0,4,5.0,1,COMPLETED_SUCCESSFULLY,10.0,5.0")


def test_serial_schedulers_are_refused_in_one_line(refused):
    """As are options without effect, and values out of range."""
    assert "accepts serial tasks" in refused("run", "--workload", FOUR, "--scheduler", "mct")
    fcfs = ("run", "--workload", FOUR, "--scheduler", "fcfs")
    assert "nodes is 0; it must be at least 1" in refused(*fcfs, "--nodes", 0)
    assert "nodes_from is 'x'" in refused(*fcfs, "--nodes-from", "x")
    assert "leave out --files" in refused(*fcfs, "--files", FOUR)
    assert "leave out --master n0" in refused(*fcfs, "--master", "n0")
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
    """A generator's jobs are a log that nobody wrote."""
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
    assert "jobs are written as .swf or .json" in refused("workload", "convert", FOUR, "-o", "x.y")
    assert "nodes has no effect" in refused("workload", "convert", FOUR, "-o", "x.swf", "--nodes", 3)
    assert "--speed is 0" in refused("workload", "import", FOUR, "-o", "x.csv", "--speed", 0)


def test_a_log_of_which_no_job_is_left_is_refused(refused, write):
    """Failed before it ran: the line says why nothing is to be run."""
    log = write("l.swf", "; MaxProcs: 4\n1 0 -1 -1 2 -1 -1 2 10 -1 0 1 1 -1 -1 -1 -1 -1\n")
    line = refused("run", "--workload", log, "--scheduler", "fcfs", "--power", "1:2")
    assert "there are no tasks to run (1 job left out: " in line


def test_what_booting_costs_on_a_logs_machine(gridsched, refused, write):
    """Off at 15 s for nothing, which is said; or once idle for 560 J / 50 W = 11.2 s."""
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
        assert f"boot is '{text}'; S:W is legal" in refused(*fcfs, "--boot", text)
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
