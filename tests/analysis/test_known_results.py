"""Cases with known results: how near a number must be, and what becomes of them by the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from gridsched.analysis.statistics import Interval
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.reproduction.known import energy_budgets
from gridsched.reproduction.known.cases import AGREES, MISSES, SKIPPED, Case, Input, LogRun, Outcome, Row, outcomes
from gridsched.reproduction.known.real_slurm import with_constraints
from gridsched.reproduction.known.table import CASES, cells, chosen_cases, markdown

#: Where inputs of others lie for tests; without it they skip.
INPUTS = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.mark.parametrize(
    ("printed", "ours", "agrees"),
    [
        ("92.5765397336295", 92.57653973362947, True),
        ("92.5765397336295", 92.57653973363, False),
        ("309231", 309231.4, True),
        ("309231", 309232.0, False),
        ("3.721657e11", 3.7216574e11, True),
        ("3.721657e11", 3.721658e11, False),
        ("71.722", 71.7224, True),
    ],
)
def test_all_printed_digits(printed, ours, agrees):
    """Half a unit of the last digit that is printed."""
    assert Row("x", "x", printed).agrees(ours) == agrees


def test_within_a_share_or_an_interval():
    """5 % of the printed number; or it lies inside our interval."""
    near = Row("x", "x", "100", near="share", share=0.05)
    assert near.agrees(105.0)
    assert not near.agrees(94.0)
    assert Row("x", "x", "100", near="interval").agrees(Interval(98.0, 95.0, 101.0, 20))
    assert not Row("x", "x", "100", near="interval").agrees(Interval(98.0, 96.0, 99.9, 20))


def test_of_the_same_sign():
    """Table II of CCGrid 2017 has changes for the better and the worse; how far off one is means nothing there."""
    row = Row("x", "x", "-4.74", "%", near="sign")
    assert row.agrees(-15.0)
    assert not row.agrees(0.0)
    assert not row.agrees(0.1)
    case = Case("made", "by hand", "gridsched", lambda _: {"x": -15.0}, (row,))
    (found,) = outcomes([case], None)
    assert cells(found.record()) == ("x", "-4.74 %", "-15", "", AGREES)


@pytest.mark.parametrize(
    ("keys", "places"),
    [
        ([1.0] * 16, list(range(16))),
        ([1.0] * 17, [8, 16, 15, 14, 13, 12, 11, 10, 9, 0, 7, 6, 5, 4, 3, 2, 1]),
        ([float(k * 7 % 5) for k in range(20)], [0, 5, 15, 10, 18, 3, 13, 8, 1, 16, 11, 6, 9, 14, 4, 19, 12, 7, 17, 2]),
    ],
)
def test_the_order_of_equal_submissions_in_batsim(keys, places):
    """As a C++ program of ten lines puts them with std::sort of GCC 12, whose ties are not kept as they were."""
    assert energy_budgets.order_of_std_sort(keys) == places


def test_a_log_as_batsim_s_converter_has_it():
    """Runs in full 2 s, requests of at least twice the log's run, jobs by submission and id."""
    rows = [(9, 5, 7, 2, 9), (8, 5, 3, 1, 20), (7, 60, 1.5, 4, 1)]
    lines = [f"{n} {s} -1 {r} {w} -1 -1 {w} {e} -1 1" + " -1" * 7 for n, s, r, w, e in rows]
    made = energy_budgets.as_converted("; MaxProcs: 4\n" + "\n".join(lines) + "\n", "made.swf").splitlines()
    assert made[0] == "; MaxProcs: 4"
    found = [[float(line.split()[at]) for at in (0, 1, 3, 4, 8)] for line in made[1:]]
    assert found == [[1, 5, 2, 1, 20], [2, 5, 6, 2, 14], [3, 60, 1, 4, 3]]
    for line in ("1 0 -1", lines[0].replace(" 7 ", " seven "), lines[0].replace(" 7 ", " inf ")):
        with pytest.raises(InputError, match=r"made\.swf"):
            energy_budgets.as_converted(line, "made.swf")


def test_a_week_under_a_budget_by_hand(tmp_path):
    """Two of three nodes compute for 100,000 s in the budget's days, and three when they are over.

    The last job waits for 100 s, as its third node would exceed the cap; the first begins the week. Nothing is drawn
    after the last end.
    """
    rows = [(1, 0, 2, 1, 4), (2, 200_000, 100_000, 2, 200_000), (3, 431_900, 100_000, 3, 200_000)]
    lines = [f"{n} {s} -1 {r} {w} -1 -1 {w} {e} -1 1" + " -1" * 7 for n, s, r, w, e in rows]
    log = tmp_path / "week.swf"
    log.write_text("; MaxProcs: 3\n" + "\n".join(lines) + "\n")
    found = energy_budgets.measured(log, 3, {"budget_share": 0.9, "energy_reservation": "none"})
    above_j = 2 * 100_000 * (190.738 - 95.0)
    assert found["budget_j"] == pytest.approx(3 * 95.0 * 259_200 + above_j)
    assert found["week_j"] == pytest.approx(3 * 95.0 * 532_000 + 2.5 * above_j + 2 * (190.738 - 95.0))
    assert found["end_s"] == 532_000
    assert found["slowdown"] == pytest.approx((2 + 1.001) / 3)
    assert found["utilisation"] == pytest.approx(500_002 / (3 * 604_800))


def test_cases_have_names_of_their_own():
    """So have the rows of each, and every command is one line of gridsched."""
    ids = [case.id for case in CASES]
    assert len(set(ids)) == len(ids)
    for case in CASES:
        assert len({row.key for row in case.rows}) == len(case.rows)
        assert case.command.startswith("gridsched ")
        assert all(row.unit in ("", "s", "min", "W", "J", "%") for row in case.rows)


def made_log(folder: Path) -> Path:
    """Write a log of three jobs: on two nodes the second waits for 8 s, and is killed after 2 s."""
    path = folder / "made.swf"
    rows = [(1, 0, 8, 2, 9), (2, 0, 5, 2, 2), (3, 1, 1, 1, 1)]
    lines = [f"{n} {s} -1 {r} {w} -1 -1 {w} {e} -1 1" + " -1" * 7 for n, s, r, w, e in rows]
    path.write_text("; MaxProcs: 2\n" + "\n".join(lines) + "\n")
    return path


def case_of(folder: Path, printed: str, why: str = "") -> Case:
    """Return a case on the made log."""
    log = Input(made_log(folder).name, "made by this test")
    rows = (Row("mean_waiting_time_s", "mean wait", printed, "s", why=why), Row("tasks_killed", "killed", "1"))
    return LogRun(log, "fcfs", settings=(("walltime", "kill"),)).case("made", "by hand", rows)


def test_a_case_by_hand(tmp_path):
    """Waits of 0, 8 and 9 s; the input lies in a folder of the folder of inputs."""
    (tmp_path / "logs").mkdir()
    case = case_of(tmp_path / "logs", "5.667")
    assert case.command == "gridsched run --workload made.swf --driver reference --walltime kill --scheduler fcfs"
    found = list(outcomes([case], tmp_path))
    assert [each.verdict for each in found] == [AGREES, AGREES]
    assert cells(found[0].record())[:4] == ("mean wait", "5.667 s", "5.667", "-0.0 %")


def test_misses_and_skips_are_shown(tmp_path):
    """A miss is open until its reason is given; an absent case names its source."""
    missed, _ = outcomes([case_of(tmp_path, "6.5")], tmp_path)
    assert (missed.verdict, missed.is_open) == (MISSES, True)
    explained, _ = outcomes([case_of(tmp_path, "6.5", why="another clock")], tmp_path)
    assert (explained.verdict, explained.is_open) == (MISSES, False)
    assert "another clock" in markdown([explained.record()])
    for folder in (None, tmp_path / "logs"):
        if folder is not None:
            folder.mkdir()
        skipped, _ = outcomes([case_of(tmp_path, "6.5")], folder)
        assert isinstance(skipped, Outcome)
        assert (skipped.verdict, skipped.is_open, skipped.absent) == (SKIPPED, False, "made.swf: made by this test")


def test_cases_are_chosen_by_the_begin_of_their_names():
    """A name that begins none is refused."""
    assert {case.id.partition("-")[0] for case in chosen_cases(["tsafrir", "queue"])} == {"tsafrir", "queue"}
    assert chosen_cases(None) == CASES
    with pytest.raises(InputError, match="--only sc2014"):
        chosen_cases(["sc2014"])


def test_the_command_skips_what_it_lacks(tmp_path, capsys):
    """Exit status 0, and the table all the same."""
    table = tmp_path / "known.csv"
    assert main(["reproduce", "known", "--only", "sc2015-easy", "-o", str(table)]) == 0
    assert "Parallel Workloads Archive" in capsys.readouterr().out
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert {row["verdict"] for row in rows} == {SKIPPED}
    assert main(["reproduce", "known", "--only", "sc2015-sjbf", "--json"]) == 0
    assert {each["case"] for each in json.loads(capsys.readouterr().out)} == {"sc2015-sjbf", "sc2015-sjbf-known"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["known", "--only", "nothing"],
        ["known", "--replicates", "3"],
        ["known", "--inputs", "no/such/folder"],
        ["known", "-o", "known.xyz"],
        ["tiny", "--inputs", "."],
        ["tiny", "--only", "x"],
    ],
)
def test_what_has_no_effect_is_refused(arguments, capsys):
    """One line, exit status 2."""
    assert main(["reproduce", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_accounting_is_joined_with_what_was_asked_for(tmp_path):
    """By the ids of jobs; a job of 0 s has 1 s, and one of which nothing is known is refused."""
    accounting, requests = tmp_path / "jobs.sacct", tmp_path / "requests.csv"
    accounting.write_text("JobID|Elapsed|User\n7|00:00:00|ann\n8|00:01:00|bob\n")
    requests.write_text("job_id;constraint;mem\n8;CPU-N;\n7;;500\n")
    joined = with_constraints(accounting, requests)
    assert joined == "JobID|Elapsed|User|Constraints\n7|00:00:01|ann|\n8|00:01:00|bob|CPU-N\n"
    requests.write_text("job_id;constraint;mem\n8;CPU-N;\n")
    with pytest.raises(InputError, match="no job '7'"):
        with_constraints(accounting, requests)


@pytest.mark.parametrize(
    ("jobs", "asked", "words"),
    [
        ("", "job_id;constraint\n", "jobs.sacct"),
        ("JobID|User\n7|ann\n", "job_id;constraint\n7;\n", "jobs.sacct.*'Elapsed'"),
        ("User|JobID|Elapsed\nann|7\n", "job_id;constraint\n7;\n", "jobs.sacct.*2 cells"),
        ("JobID|Elapsed\n7|00:00:01\n", "id;constraint\n7;\n", "requests.csv.*'job_id'"),
        ("JobID|Elapsed\n7|00:00:01\n", "job_id;constraint\n7\n", "requests.csv.*1 cells"),
    ],
)
def test_tables_that_lack_columns_are_refused(tmp_path, jobs, asked, words):
    """The message names the file, and what it lacks."""
    accounting, requests = tmp_path / "jobs.sacct", tmp_path / "requests.csv"
    accounting.write_text(jobs)
    requests.write_text(asked)
    with pytest.raises(InputError, match=words):
        with_constraints(accounting, requests)


def test_requests_of_at_least_twice_the_run(tmp_path):
    """Of runs of 8, 5 and 1 s with requests of 9, 2 and 1 s; no job is killed then."""
    log = Input(made_log(tmp_path).name, "made by this test")
    rows = (Row("tasks_killed", "killed", "0"), Row("mean_waiting_time_s", "mean wait", "6.6666667", "s"))
    case = LogRun(log, "fcfs", trace=(("requests", "twice"),), settings=(("walltime", "kill"),)).case("made", "x", rows)
    # the second waits for 8 s, the third, submitted at 1 s, for the second's 5 s: (0 + 8 + 12) / 3
    assert [each.verdict for each in outcomes([case], tmp_path)] == [AGREES, AGREES]


@pytest.mark.parametrize("policy", energy_budgets.POLICIES)
def test_table_2_of_ccgrid_2017_by_hand(policy, tmp_path, monkeypatch):
    """Two weeks in which nothing runs from the budget's days on; the job after them waits for its node to boot.

    Nodes that are off draw 9.75 W from the window's begin on, after 6.1 s of 101 W, in the place of 95 W.
    """
    monkeypatch.setattr(energy_budgets, "SHARES", (0.5,))
    (case,) = chosen_cases([f"ccgrid2017-table2-{policy.lower()}"])
    rows = [(1, 0, 2, 1, 4), (2, 700_000, 10, 1, 20)]
    lines = [f"{n} {s} -1 {r} {w} -1 -1 {w} {e} -1 1" + " -1" * 7 for n, s, r, w, e in rows]
    for each in case.inputs:
        (tmp_path / each.file).write_text("; MaxProcs: 1152\n" + "\n".join(lines) + "\n")
    found = {each.row.key: each for each in outcomes([case], tmp_path)}
    idle_j = 1152 * 95.0 * 604_800 + 2 * (190.738 - 95.0)
    saved_j = 1152 * ((95.0 - 9.75) * (604_800 - 172_800) - (101.0 - 9.75) * 6.1)
    assert found["week_j"].ours == pytest.approx(-100 * saved_j / idle_j)
    assert found["slowdown"].ours == pytest.approx(100 * ((1 + 16.152) / 2 - 1))
    assert found["utilisation"].ours == 0.0
    assert found["week_j"].verdict == AGREES
    assert found["utilisation"].verdict == MISSES


@pytest.mark.long
@pytest.mark.parametrize("case", [each for each in CASES if each.inputs], ids=lambda case: case.id)
def test_all_known_results(case):
    """Each agrees, or has a reason why not; those to all digits agree."""
    for outcome in outcomes([case], INPUTS if INPUTS.is_dir() else None):
        if outcome.verdict == SKIPPED:
            pytest.skip(outcome.absent)
        assert not outcome.is_open, outcome.record()
        assert outcome.verdict == AGREES or outcome.row.near != "digits", outcome.record()
