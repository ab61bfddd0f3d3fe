"""Verdicts by hand-made rows, and what makes a claim unsettled."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from small_study import study_in

from gridsched.analysis.statistics import Interval
from gridsched.analysis.study_results import read_results
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.reproduction.claim_statistics import mean, percent_more
from gridsched.reproduction.claims import (
    DIRECTION,
    MISSED,
    NO_DATA,
    NOT_DISTINGUISHABLE,
    REPRODUCED,
    Finding,
    judge,
    verdict_of,
)
from gridsched.reproduction.claims_report import HEADER, claims_markdown, counts_text, finding_cells
from gridsched.runs.claims_schema import BEST_OTHER, Claim, Ground
from gridsched.runs.study import Study


def claim(ground: str = "after", **changes: Any) -> Claim:
    """Return a claim about the energy of wq above that of lecsa."""
    values: dict[str, Any] = {
        "id": "c",
        "kind": "shape",
        "text": "",
        "source": "table",
        "ours": percent_more("energy_j", "lecsa", BEST_OTHER),
        "tolerance": None,
        "ground": Ground(ground, "made up"),
    }
    return Claim(**{**values, **changes})


def verdict(paper: float | None, tolerance: Any, mean: float, half: float, **more: Any) -> str:
    """Return the verdict for a mean and half-width of ours."""
    ours = Interval(mean, mean - half, mean + half, 5)
    return verdict_of(claim(paper=paper, tolerance=tolerance, **more), ours)


@pytest.mark.parametrize(
    ("paper", "tolerance", "mean", "half", "expected"),
    [
        (100.0, 20.0, 119.0, 1.0, REPRODUCED),
        (100.0, 20.0, 121.0, 1.0, DIRECTION),
        (100.0, 20.0, -1.0, 1.0, MISSED),
        (100.0, (70.0, 200.0), 199.0, 1.0, REPRODUCED),
        (100.0, (70.0, 200.0), 201.0, 1.0, DIRECTION),
        (0.5, 10.0, -5.0, 1.0, MISSED),  # near, but certainly on the other side
        (0.5, 10.0, -2.0, 3.0, REPRODUCED),  # near, and the interval holds 0
        (0.5, 10.0, -5.0, 6.0, NOT_DISTINGUISHABLE),  # the interval leaves the tolerance
        (100.0, 20.0, 110.0, 15.0, NOT_DISTINGUISHABLE),
        (100.0, 20.0, 130.0, 15.0, NOT_DISTINGUISHABLE),
        (100.0, 20.0, 130.0, 60.0, NOT_DISTINGUISHABLE),  # holds the whole tolerance
        (0.5, 10.0, -5.0, math.nan, MISSED),  # one replicate: nothing excuses the sign
        (-40.0, 10.0, -35.0, 1.0, REPRODUCED),
        (-40.0, 10.0, -5.0, 1.0, DIRECTION),
        (100.0, "order", 500.0, 1.0, DIRECTION),  # never more than the direction
        (100.0, "order", -5.0, 1.0, MISSED),
        (None, "order", 5.0, 1.0, REPRODUCED),
        (None, "order", -5.0, 1.0, MISSED),
        (None, "order", 5.0, 6.0, NOT_DISTINGUISHABLE),
        (None, "order", -5.0, 6.0, NOT_DISTINGUISHABLE),
        (None, "order", 5.0, math.nan, REPRODUCED),
        (100.0, "order", 5.0, 6.0, DIRECTION),
        (100.0, 20.0, math.nan, math.nan, NO_DATA),
    ],
)
def test_verdict_of_a_difference(paper: float | None, tolerance: Any, mean: float, half: float, expected: str):
    """The rules of the module's text, one by one."""
    assert verdict(paper, tolerance, mean, half) == expected


def test_verdict_of_a_mean():
    """A mean outside its tolerance has no direction that would count."""
    assert verdict(10.0, 1.0, 10.9, 0.1, ours=mean("energy_j", "lecsa")) == REPRODUCED
    assert verdict(10.0, 1.0, 11.2, 0.1, ours=mean("energy_j", "lecsa")) == MISSED


def test_kinds_are_counted_apart():
    """Numbers, orders and shapes are the paper's; theorems and our own follow them."""
    verdicts = [
        ("order", REPRODUCED),
        ("number", MISSED),
        ("number", REPRODUCED),
        ("driver", REPRODUCED),
        ("theorem", NO_DATA),
        ("order", NOT_DISTINGUISHABLE),
    ]
    found = [Finding(claim("before", kind=kind, paper=1.0), Interval(), "", verdict) for kind, verdict in verdicts]
    assert counts_text(found) == (
        "6 claims: numbers 1 of 2 reproduced (1 not reproduced); "
        "orders 1 of 2 reproduced (1 not distinguishable); "
        "counted apart: theorems 0 of 1 reproduced (1 no data); our own 1 of 1 reproduced"
    )


def found_number(ours: float, ground: str, verdict: str = REPRODUCED, paper: float | None = 10.0) -> Finding:
    """Return the finding of a number of the paper's."""
    return Finding(claim(ground, kind="shape" if paper is None else "number", paper=paper), Interval(ours), "", verdict)


def test_tolerances_set_after_runs_are_counted_apart():
    """What they reproduce is not a confirmation; what is reproduced far off is counted in both groups."""
    found = [
        found_number(10.0, "before"),
        found_number(14.0, "before"),
        found_number(10.0, "after"),
        found_number(20.0, "after"),
        found_number(0.0, "after", MISSED),
    ]
    before, after = counts_text(found).split("set after")
    assert "numbers 2 of 2 reproduced (1 of them more than 30 % off)" in before
    assert "numbers 2 of 3 reproduced (1 of them more than 30 % off, 1 not reproduced)" in after


@pytest.mark.parametrize(
    ("paper", "ours", "off_by"), [(20.0, 7.5, -62.5), (-40.0, -50.0, -25.0), (4.0, 4.0, 0.0), (-2.0, 1.0, 150.0)]
)
def test_off_by_is_of_the_paper_s_number(paper: float, ours: float, off_by: float):
    """A distance relative to the size of what the paper prints."""
    assert found_number(ours, "before", paper=paper).off_by_percent == pytest.approx(off_by)


@pytest.mark.parametrize("paper", [None, 0.0])
def test_nothing_is_off_from_no_number(paper: float | None):
    """Without a number, or from 0, there is no relative distance, in the table neither."""
    found = found_number(3.0, "before", paper=paper)
    assert math.isnan(found.off_by_percent)
    assert finding_cells(found)[HEADER.index("off by")] == "-"


@pytest.mark.parametrize(
    ("tolerance", "is_legal"),
    [((100.0, 101.0), True), (1.0, True), ("order", True), ((97.0, 101.0), False), (3.0, False)],
)
def test_no_tolerance_is_wider_than_the_paper_s_own_range(tolerance: Any, is_legal: bool):
    """A claim whose range the paper prints is refused with a wider tolerance."""
    if is_legal:
        assert claim(paper=100.0, paper_range=(98.0, 102.0), tolerance=tolerance).tolerance == tolerance
        return
    with pytest.raises(InputError, match=r"Claim 'c'.*98 to 102"):
        claim(paper=100.0, paper_range=(98.0, 102.0), tolerance=tolerance)


CLAIMS = """
CLAIMS = [
    *(
        Claim(f"wq-{k}", "number", "", "table 1",
              percent_more("energy_j", "lecsa", "wq", where={"environment": "low", "heterogeneity": heterogeneity}),
              1.0, BEFORE, paper=paper, unit="%")
        for k, (heterogeneity, paper) in numbered((0.0, 100.0), (1.0, 150.0))
    ),
    Claim("next", "number", "", "table 1",
          percent_more("energy_j", "lecsa", BEST_OTHER, where={"environment": "low", "heterogeneity": (0.0, 1.0)}),
          0.1, AFTER, paper=50.0),
    Claim("most", "number", "", "table 1",
          largest_percent_more("energy_j", "lecsa", "wq", where={"heterogeneity": [0.0, 0.5]}),
          0.1, AFTER, paper=120.0),
    Claim("rank", "number", "", "text", worst_rank("energy_j", "lecsa"), 0.0, BEFORE, paper=1.0),
    Claim("rises", "number", "", "text", rises_along("energy_j", "lecsa", "wq", "environment"), 0.0, BEFORE, paper=3.0),
    Claim("mean", "number", "", "text", mean("makespan_s", "lecsa", where={"environment": "low"}), 1.0, BEFORE,
          paper=17.0),
]
"""
EXPLAINED = """
EXPLANATIONS = [
    Explanation(("wq-2",), "By hand the difference is 100 % everywhere.",
                ("environment == 'low' and heterogeneity == 1.0 and replicate == 0",)),
]
"""


def findings(tmp_path: Path, store: Path, claims: str) -> dict[str, Finding]:
    """Judge the small study with claims."""
    results = read_results(str(store), study_in(tmp_path, claims=claims))
    return {finding.claim.id: finding for finding in judge(results)}


def test_numbers_by_hand(tmp_path: Path, small_store: Path):
    """Means, differences, extremes, ranks and rises of the made-up rows."""
    found = findings(tmp_path, small_store, CLAIMS + EXPLAINED)
    means = {id: finding.ours.mean for id, finding in found.items()}
    expected = {"wq-1": 100.0, "wq-2": 100.0, "next": 50.0, "most": 120.0, "rank": 1.0, "rises": 3.0, "mean": 17.5}
    assert means == pytest.approx(expected)
    assert found["wq-1"].ours.half_width == pytest.approx(0.0, abs=1e-9)
    assert found["next"].detail == "against mct"
    assert found["most"].detail == "heterogeneity 0.5, high, against wq"
    assert found["rank"].detail.startswith("rank 1 in 6 of 6 cells")
    assert found["wq-1"].ours.count == 4


def test_verdicts_and_explanations(tmp_path: Path, small_store: Path):
    """A missed claim with an explanation and runs is settled; its runs are those it names."""
    found = findings(tmp_path, small_store, CLAIMS + EXPLAINED)
    verdicts = {id: finding.verdict for id, finding in found.items()}
    assert verdicts.pop("wq-2") == DIRECTION
    assert verdicts.pop("mean") == NOT_DISTINGUISHABLE  # 17.5, but the interval leaves 16 to 18
    assert set(verdicts.values()) == {REPRODUCED}
    assert not any(finding.problem for finding in found.values())
    assert len(found["wq-2"].run_ids) == 3
    text = claims_markdown(list(found.values()), "t")
    assert "| **direction only** |" in text
    assert all(each in text for each in found["wq-2"].run_ids)


def test_what_failed_or_is_missing_is_told(tmp_path: Path, small_store: Path):
    """Two failed and one missing run are named beside the number that lacks them."""
    found = findings(tmp_path, small_store, CLAIMS + EXPLAINED)
    assert "3 of 72 runs are missing or failed" in found["rank"].detail
    assert "2 of 48 runs are missing or failed" in found["rises"].detail


@pytest.mark.parametrize(
    ("explanation", "problem"),
    [
        ("", "missed without an explanation"),
        ('explanation="because"', "names no run"),
        ('explanation="because", run_ids=("0123456789abcdef",)', "finds no finished run"),
        (
            "explanation='because', run_ids=(\"scheduler == 'wq' and environment == 'high' "
            'and heterogeneity == 1.0 and replicate == 0",)',
            "finds no finished run",
        ),
    ],
)
def test_a_miss_needs_an_explanation_with_runs(tmp_path: Path, small_store: Path, explanation: str, problem: str):
    """Without text, without runs, or with runs that are not there or failed it is unsettled."""
    text = f"""
CLAIMS = [Claim("x", "number", "", "s", percent_more("energy_j", "lecsa", "wq", where={{"environment": "low"}}),
                1.0, AFTER, paper=10.0, {explanation})]
"""
    found = findings(tmp_path, small_store, text)["x"]
    assert found.verdict == DIRECTION
    assert problem in found.problem


def test_no_data_is_no_verdict(tmp_path: Path, small_store: Path):
    """A claim about a combination without finished runs has no verdict."""
    study = study_in(tmp_path, claims=CLAIMS)
    results = read_results(str(small_store), study)
    results.runs.loc[results.runs["environment"] == "low", "status"] = "failed"
    found = {finding.claim.id: finding for finding in judge(results)}
    assert found["wq-1"].verdict == NO_DATA
    assert "no verdict" in found["wq-1"].problem
    assert found["most"].verdict == NO_DATA


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"lecsa", "wq", "environment"', '"lecsa", "nobody", "environment"', "Allowed: best_other, wq, mct, lecsa"),
        ('worst_rank("energy_j"', 'worst_rank("energy"', "metric is 'energy'. Did you mean 'energy_j'"),
        ('where={"environment": "low"})', 'where={"environment": "lower"})', "it has the values 'low', 'high'"),
        ('where={"environment": "low"})', 'where={"env": "low"})', "claim 'mean': where is wrong"),
        ('Claim("next"', 'Claim("wq-1"', "claim 'wq-1' is there twice"),
        ('("wq-2",)', '("wq-9",)', "no claim is called so"),
        ('Claim("rank", "number"', 'Claim("rank", "numbers"', "in a Claim, "),
        ('worst_rank("energy_j", "lecsa")', '"lecsa"', "in a Claim, "),
        ('worst_rank("energy_j", "lecsa")', 'worst_rank("energy_j")', "missing a required argument: 'scheduler'"),
        (", paper=1.0)", ")", "Claim 'rank': kind is 'number'"),
        ("CLAIMS = [", "OTHERS = [", "CLAIMS is None; it should be a list of Claim records"),
        ("import *", "import *\n1 / 0", "ZeroDivisionError"),
    ],
)
def test_files_of_claims_are_checked(tmp_path: Path, old: str, new: str, words: str):
    """What a claim names and the study does not have, and what is not a claim, is refused with the file."""
    study = study_in(tmp_path, claims=CLAIMS + EXPLAINED)
    file = tmp_path / "claims.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    study = Study.from_file(tmp_path / "small.toml", trust=True)
    with pytest.raises(InputError, match=r"claims\.py: ") as caught:
        study.check_claims()
    assert words in str(caught.value)


def test_claims_of_its_own_statistic(tmp_path: Path, small_store: Path):
    """A file may bring a function of the study's results; 16 to 19 s are 17.5 s on average."""
    text = """
from gridsched.analysis.claim_values import Measured
from gridsched.analysis.statistics import t_interval

@statistic()
def mean_of_all(results, scheduler):
    chosen = results.finished[results.finished["scheduler"] == scheduler]
    return Measured(t_interval(chosen.groupby("replicate")["makespan_s"].mean()), "by hand")

CLAIMS = [Claim("own", "number", "", "s", mean_of_all("lecsa"), 5.0, AFTER, paper=17.0)]
"""
    found = findings(tmp_path, small_store, text)["own"]
    assert (found.ours.mean, found.ours.count, found.detail) == (17.5, 4, "by hand")


@pytest.mark.parametrize(
    ("name", "words"), [("lecca", "'lecsa'"), ("tiny", "has no claims"), ("absent.py", "absent.py")]
)
def test_what_names_no_claims(tmp_path: Path, name: str, words: str):
    """No study that comes with gridsched, one without claims, a file that is not there."""
    study_in(tmp_path)
    text = (tmp_path / "small.toml").read_text()
    with pytest.raises(InputError, match=words):
        Study.from_text(f'claims = "{name}"\n{text}', tmp_path / "small.toml", trust=True)


def test_tables_of_claims_in_a_study_file_are_no_longer_read(tmp_path: Path):
    """One line shows where claims are declared now."""
    with pytest.raises(InputError, match="name of a Python file"):
        study_in(tmp_path, '\n[[claims]]\nid = "x"\n')


def test_command_exits_by_what_is_settled(tmp_path: Path, small_store: Path, capsys: pytest.CaptureFixture):
    """0 if all is settled, 1 with a line for each claim that is not, 2 for no store."""
    study_in(tmp_path, claims=CLAIMS + EXPLAINED)
    study = ["--study", str(tmp_path / "small.toml"), "--trust"]
    assert main(["study", "claims", str(small_store), *study, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["claims"]) == 7
    assert main(["study", "claims", str(small_store), *study]) == 0
    shown = capsys.readouterr().out
    assert "7 claims: numbers 3 of 5 reproduced (1 direction only, 1 not distinguishable)" in shown
    assert "set after runs had been seen: numbers 2 of 2 reproduced" in shown
    assert "By hand the difference is 100 % everywhere." in shown
    study_in(tmp_path, claims=CLAIMS)
    assert main(["study", "claims", str(small_store), *study, "--quiet"]) == 1
    assert "claim wq-2: missed without an explanation" in capsys.readouterr().err
    assert main(["study", "claims", str(tmp_path / "nothing")]) == 2


def test_claims_are_written(tmp_path: Path, small_store: Path):
    """-o writes Markdown, CSV or JSON, and nothing over an existing file."""
    study_in(tmp_path, claims=CLAIMS + EXPLAINED)
    base = ["study", "claims", str(small_store), "--study", str(tmp_path / "small.toml"), "--quiet", "--trust"]
    for name in ("c.md", "c.csv", "c.json"):
        assert main([*base, "-o", str(tmp_path / name)]) == 0
        assert "direction only" in (tmp_path / name).read_text()
    assert main([*base, "-o", str(tmp_path / "c.md")]) == 2
