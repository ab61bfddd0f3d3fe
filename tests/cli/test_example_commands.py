"""Commands of the help pages and of the examples."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
from cli_cases import EX_A_TASKS
from typer.main import get_command

from gridsched.cli.app import app, load_command, main
from gridsched.files.shipped_files import FOLDERS, shipped_files
from gridsched.workloads.rigid_jobs import RigidJobs, draw_rigid_jobs
from gridsched.workloads.traces.swf import read_swf

# Every example of --help runs, in a folder with the files that come with gridsched.

_IN_HELP = re.compile(r"Example: `?(gridsched [^`\n]*)")
#: Campaigns take their time; the documents run commands of these kinds.
CAMPAIGNS = ("gridsched reproduce", "gridsched study")


def commands(command: click.Command, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command below one, and itself, by the words that call it."""
    yield " ".join(words), command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, *words, name)


def examples(command: click.Command) -> list[str]:
    """Return the command lines in a help: paragraphs of their own, or after ``Example:``."""
    paragraphs = [" ".join(each.split()) for each in (command.epilog or "").split("\n\n")]
    found = [each for each in paragraphs if each.startswith("gridsched ")]
    return found + _IN_HELP.findall(f"{command.help} {command.epilog}")


GRIDSCHED = get_command(app)
GRIDSCHED.commands = {name: load_command(name) for name in GRIDSCHED.list_commands(None)}
ALL = {words: examples(each) for words, each in commands(GRIDSCHED)}
#: What is tried, by the command whose help has it.
FOUND = {words: lines for words, lines in ALL.items() if any(not each.startswith(CAMPAIGNS) for each in lines)}


def test_most_commands_have_examples():
    """A change of the way they are written would be noticed."""
    assert len(FOUND) >= 20
    assert sum(map(len, FOUND.values())) >= 40


@pytest.mark.parametrize("words", FOUND)
def test_examples_run(simgrid, gridsched, tmp_path, monkeypatch, words):
    """One after the other, where nothing but 'gridsched example copy' was called before."""
    monkeypatch.chdir(tmp_path)
    lines = [each for each in FOUND[words] if not each.startswith(CAMPAIGNS)]
    if "gridsched example copy" not in lines:
        lines.insert(0, "gridsched example copy")
    for line in lines:
        outcome = gridsched(*shlex.split(line)[1:])
        worse = [each for each in outcome.problems if not each.startswith("gridsched: warning: ")]
        assert (outcome.status, worse) == (0, []), line


# ``gridsched example``: what comes with gridsched, and copies of it.

ROOT = Path(__file__).resolve().parents[2]


def test_list_names_the_files_of_the_checkout(capsys: pytest.CaptureFixture[str]):
    """Each file of platforms/, deployments/ and examples/ is listed once."""
    assert main(["example", "list"]) == 0
    listed = capsys.readouterr().out.split()
    there = [path for folder in FOLDERS for path in (ROOT / folder).iterdir() if path.is_file()]
    assert sorted(listed) == sorted(path.relative_to(ROOT).as_posix() for path in there)


def test_all_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Into the current folder, where nothing is named; test_help_examples.py runs with them."""
    monkeypatch.chdir(tmp_path)
    assert main(["example", "copy", "--quiet"]) == 0
    copied = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert copied == set(shipped_files())


def test_one_file_goes_where_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A file keeps its folder below --to, with the bytes of the shipped one."""
    there = tmp_path / "trial"
    assert main(["example", "copy", "examples/ex_a.csv", "--to", str(there)]) == 0
    assert capsys.readouterr().out == f"Copied 1 file to {there}, into examples/.\n"
    copy = there / "examples" / "ex_a.csv"
    assert copy.read_bytes() == (ROOT / "examples" / "ex_a.csv").read_bytes()


def test_nothing_is_copied_over_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Where one file exists, none is written without --force; with it, all are."""
    mine = tmp_path / "examples" / "ex_a.csv"
    mine.parent.mkdir()
    mine.write_text("mine", encoding="utf-8")
    words = ["example", "copy", "platforms/ex_a.xml", "examples/ex_a.csv", "--to", str(tmp_path)]
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert mine.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "platforms" / "ex_a.xml").exists()
    assert main([*words, "--force"]) == 0
    assert mine.read_bytes() == shipped_files()["examples/ex_a.csv"].read_bytes()


def test_an_unknown_file_is_refused_with_the_nearest_name(capsys: pytest.CaptureFixture[str]):
    """A misspelt name is one line and status 2."""
    assert main(["example", "copy", "examples/exa.csv"]) == 2
    assert "examples/ex_a.csv" in capsys.readouterr().err


def test_v_is_version(capsys: pytest.CaptureFixture[str]):
    """-v prints the same as --version."""
    assert main(["-v"]) == main(["--version"]) == 0
    first, second = capsys.readouterr().out.split("\n")[:2]
    assert first == second


# The worked examples A1 to A6, from files through the command line.

#: scheduler, --set, makespan [s], busy time [s], energy [J], idle, wasted energy [J]
WORKED = [
    ("wq", [], 80, 25 + 15 + 80, 2430, 480, 0),
    ("wqr", ["wqr.max_replicas=1"], 80, 120, 2430, 480, 0),
    ("wqr", [], 55, 25 + 55 + 55, 2745, 120, 275),
    ("wqr", ["max_replicas=3"], 45, 3 * 45, 3375, 0, 825),
    ("sufferage", [], 35, 35 + 30 + 10, 2520, 120, 0),
    ("xsufferage", [], 35, 75, 2520, 120, 0),
    ("dynamic_fpltf", [], 30, 90, 2250, 0, 0),
    ("lecsa", [], 100, 10 + 35 + 100, 1700, 0, 0),
    ("lecsa", ["lecsa.switch_off=none"], 100, 145, 2320, 620, 0),
]
DRIVERS = ["simgrid", "reference"]


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    """Return each driver, SimGrid only where it is installed."""
    if request.param == "simgrid":
        request.getfixturevalue("simgrid")
    return request.param


@pytest.mark.parametrize(("scheduler", "settings", "makespan", "busy", "joules", "idle", "wasted"), WORKED)
def test_run_gives_the_worked_numbers(
    gridsched, ex_a, driver, scheduler, settings, makespan, busy, joules, idle, wasted
):
    """`run` gives makespan, busy time and joules of A1-A6 on both drivers."""
    options = [word for item in settings for word in ("--set", item)]
    outcome = gridsched("run", *ex_a, "--scheduler", scheduler, *options, "--driver", driver, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    found = outcome.json
    assert found["makespan_s"] == makespan
    assert found["busy_time_s"] == busy
    assert found["energy_j"] == pytest.approx(joules, rel=1e-12)
    assert found["energy_model_j"] == pytest.approx(joules, rel=1e-12)
    assert found["energy_idle_j"] == pytest.approx(idle, abs=1e-9)
    assert found["energy_wasted_j"] == pytest.approx(wasted, abs=1e-9)
    assert found["tasks_finished"] == 5
    assert found["hosts_used"] == 3


def test_compare_lists_the_six_in_one_table(gridsched, ex_a, simgrid):
    """`compare` prints the six schedulers with their numbers, the best one marked."""
    outcome = gridsched("compare", *ex_a)
    assert (outcome.status, outcome.err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in outcome.out.splitlines() if line.strip()}
    expected = {
        "wq": "80 +166.7 120 2,430 +42.9 480 0 3",
        "wqr": "55 +83.3 135 2,745 +61.5 120 275 3",
        "sufferage": "35 +16.7 75 2,520 +48.2 120 0 3",
        "xsufferage": "35 +16.7 75 2,520 +48.2 120 0 3",
        "dynamic_fpltf": "30 best 90 2,250 +32.4 0 3",
        "lecsa": "100 +233.3 145 1,700 best 0 3",
    }
    for scheduler, words in expected.items():
        assert set(words.split()) <= set(rows[scheduler]), scheduler
        energy = words.split()[3]
        assert rows[scheduler].count(energy) == 2  # by plugin and by model
    assert "Plugin and model agree" in outcome.out


def test_compare_on_the_reference_driver_shows_the_model_only(gridsched, ex_a):
    """Without SimGrid there is no column of the plugin, and the table explains why."""
    outcome = gridsched("compare", *ex_a, "--driver", "reference", "--schedulers", "wq,lecsa")
    assert outcome.status == 0
    assert "plugin\n" not in outcome.out
    assert "1,700" in outcome.out
    assert "the reference driver has no plugin" in outcome.out


def test_validate_finds_plugin_and_model_equal(gridsched, ex_a, simgrid):
    """`validate` lists every host of every scheduler, and all agree to 1e-9."""
    outcome = gridsched("validate", *ex_a, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    found = outcome.json
    assert found["differences"] == 0
    assert found["tolerance"] == 1e-9
    totals = {row["scheduler"]: row["plugin_j"] for row in found["hosts"] if row["host"] == "total"}
    assert totals == pytest.approx(
        {"wq": 2430, "wqr": 2745, "sufferage": 2520, "xsufferage": 2520, "dynamic_fpltf": 2250, "lecsa": 1700}
    )
    assert len(found["hosts"]) == 6 * (3 + 1)


def test_platform_of_the_example_is_fine(gridsched, ex_a, simgrid):
    """`platform check` finds no problem in the example's platform."""
    outcome = gridsched("platform", "check", ex_a[1], "--json")
    assert outcome.status == 0
    found = outcome.json
    assert [host["name"] for host in found["hosts"]] == ["h1", "h2", "h3"]
    assert [host["speeds_flops"] for host in found["hosts"]] == [[100.0], [50.0], [25.0]]
    assert found["problems"] == []


# The commands on generated parallel jobs: their log, and how policies let them wait.


def test_the_command_writes_a_log(gridsched, write, tmp_path):
    """What is read back is what was drawn; nothing else can be written."""
    toml = write("jobs.toml", 'kind = "rigid_jobs"\njobs = 40\nseed = 2\n')
    log = tmp_path / "jobs.swf"
    outcome = gridsched("workload", "generate", toml, "-o", log)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.strip() == f"Wrote {log}: 40 jobs."
    back, sampled = read_swf(log), draw_rigid_jobs(RigidJobs(jobs=40, seed=2))
    for name in ("job", "submit_time_s", "run_time_s", "width", "requested_time_s"):
        assert np.array_equal(getattr(back, name), getattr(sampled, name)), name
    assert back.nodes_of_header == 1024
    outcome = gridsched("workload", "generate", toml, "-o", tmp_path / "jobs.csv")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert "jobs are written as .swf" in outcome.err


def test_the_commands_run_and_compare_policies_on_it(gridsched, write, tmp_path):
    """The tables show how jobs waited; serial policies are refused in one line."""
    toml = write("jobs.toml", 'kind = "rigid_jobs"\njobs = 60\nnodes = 16\nwidest_job = 16\n')
    options = ("--workload", toml, "--driver", "reference")
    plot = tmp_path / "bars.svg"
    outcome = gridsched("compare", *options, "--schedulers", "fcfs,easy_backfilling", "--plot", plot)
    assert (outcome.status, outcome.err) == (0, "")
    assert "bounded" in outcome.out
    assert "sation" in outcome.out
    assert "Mean waiting time" in plot.read_text()
    alone = gridsched("run", *options, "--scheduler", "fcfs").out
    assert "utilisation" in alone
    assert "mean bounded slowdown" in alone
    refused = gridsched("run", *options, "--scheduler", "mct")
    assert (refused.status, refused.err.count("\n")) == (2, 1)


# `gridsched workload generate` and `describe`.


def test_generated_bag_is_described(gridsched, tmp_path):
    """A bag has the requested number, mean and spread, and states this in its first line."""
    bag = tmp_path / "bag.csv"
    outcome = gridsched(
        "workload",
        "generate",
        "--kind",
        "bag",
        "--tasks",
        2000,
        "--mean-flops",
        "1e6",
        "--heterogeneity",
        "0.5",
        "--seed",
        3,
        "-o",
        bag,
    )
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.strip() == f"Wrote {bag}: 2,000 tasks."
    assert bag.read_text().startswith("# nominal_heterogeneity=0.5\nid,flops\n1,")
    found = gridsched("workload", "describe", bag, "--json").json
    assert found["tasks"] == 2000
    assert found["nominal_heterogeneity"] == 0.5
    assert 750_000 <= found["min_flops"] < 751_000
    assert 1_249_000 < found["max_flops"] <= 1_250_000
    assert found["mean_flops"] == pytest.approx(1e6, rel=0.01)
    assert found["cov_flops"] == pytest.approx(0.5 / 12**0.5, rel=0.03)  # uniform


def test_generator_file_and_options_give_the_same_bag(gridsched, write, tmp_path):
    """The keys of a .toml file are those of the options, and it can be run as it is."""
    toml = write("g.toml", "tasks = 5\nmean_flops = 100.0\nheterogeneity = 1\nseed = 4\n")
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    assert gridsched("workload", "generate", toml, "-o", a, "--quiet").out == ""
    gridsched("workload", "generate", "--tasks", 5, "--mean-flops", 100, "--heterogeneity", 1, "--seed", 4, "-o", b)
    assert a.read_bytes() == b.read_bytes()
    assert gridsched("workload", "describe", toml).out.splitlines()[1].split() == ["tasks", "5"]


def test_describe_in_words(gridsched, write):
    """Numbers have their decimal points in line, and units."""
    outcome = gridsched("workload", "describe", write("w.csv", EX_A_TASKS))
    lines = {line[:24].strip(): line[24:] for line in outcome.out.splitlines()[1:]}
    assert lines["work in all"].split() == ["5,250", "flop"]
    assert lines["mean size"].split() == ["1,050", "flop"]
    assert lines["measured heterogeneity"].split() == ["1.66667"]
    assert lines["nominal heterogeneity"].split() == ["-"]
    units = {line.index("flop") for line in lines.values() if "flop" in line}
    assert len(units) == 1


def test_describe_an_empty_bag(gridsched, write, tmp_path):
    """Without tasks there are no sizes, and still a figure."""
    path = write("w.csv", "id,flops\n")
    outcome = gridsched("workload", "describe", path, "--plot", tmp_path / "s.svg", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.json["tasks"] == 0
    assert outcome.json["mean_flops"] is None


@pytest.mark.parametrize(
    "rows",
    [
        "1,5,0\n",
        "1,5,0\n2,5,0\n",
        "1,1e-30,0\n2,1e30,0\n",
        "1,5,7\n",
        "1,5,0\n2,6,1e30\n",
        "".join(f"{k},{k},{k / 3}\n" for k in range(1, 6000)),
        "".join(f"{k},{2.0 ** (k % 90)},{k}\n" for k in range(1, 200)),
    ],
)
def test_figure_of_any_workload(gridsched, write, tmp_path, rows):
    """One task, equal sizes, extreme ranges and many tasks are drawn without a warning."""
    path = write("w.csv", "id,flops,submit_time_s\n" + rows)
    for ending in ("png", "svg", "pdf"):
        figure = tmp_path / f"sizes.{ending}"
        outcome = gridsched("workload", "describe", path, "--plot", figure, "--force", "--quiet")
        assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
        assert figure.stat().st_size > 1000
    data = (tmp_path / "sizes.csv").read_text().splitlines()
    assert data[0] == "job_id,flops,submit_time_s"
    assert len(data) == 1 + rows.count("\n")
