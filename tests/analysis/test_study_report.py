"""The report: a page that is well-formed and needs nothing else, and the files beside it."""

from __future__ import annotations

import csv
import os
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
from small_study import of_metrics, study_in

from gridsched.analysis.rankings import Ranking, ranking_of, rankings
from gridsched.analysis.study_results import read_results
from gridsched.analysis.texts import TextTable, axis_name, axis_text, axis_value, number_text
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.figures.study_figure import efficient, finished_over_time, layout_of
from gridsched.page.printing import MAX_ROWS, latex_text, templates
from gridsched.page.ranking_tables import ranking_table, ranking_words
from gridsched.page.report_files import Link
from gridsched.page.study_report import REPORT_FILES, check_report_target, files_folder, write_report
from gridsched.page.study_tables import constants_text, difference_frame, difference_table, mean_frame, mean_table
from gridsched.reproduction.claims import judge
from gridsched.reproduction.claims_report import write_report as write_judged_report
from gridsched.runs.study import Study

_VOID = {"meta", "link", "img", "br", "hr"}


class Page(HTMLParser):
    """Checks that elements nest, and collects the page's references and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.ids: set[str] = set()
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note the element and what it refers to."""
        named = dict(attributes)
        self.references += [named[key] for key in ("src", "href", "data") if named.get(key)]
        if named.get("id"):
            self.ids.add(named["id"])
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes the element opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.words.append(data)


@pytest.fixture(scope="module")
def report(small_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the small study."""
    page = tmp_path_factory.mktemp("report") / "small.html"
    write_report(read_results(str(small_store)), page)
    return page


def test_page_is_well_formed_and_self_contained(report: Path):
    """Elements nest; what it shows is inside it, and each file beside it is linked."""
    text = report.read_text(encoding="utf-8")
    page = Page(text)
    linked = set()
    for reference in page.references:
        if reference.startswith("#"):
            assert reference[1:] in page.ids
        elif not reference.startswith("data:"):
            folder, name = reference.split("/")
            assert folder == files_folder(report).name
            linked.add(name)
    assert linked == {path.name for path in files_folder(report).iterdir()} - {"files.txt"}
    assert not re.search(r"@import|url\(|<script", text)
    assert text.count("data:image/png;base64,") == 7


def test_page_says_what_was_run(report: Path):
    """Title, counts, axes, failed runs with their error, provenance; special characters escaped."""
    words = " ".join(" ".join(Page(report.read_text(encoding="utf-8")).words).split())
    assert "Small <study> & its claims" in words
    assert "runs of the study 72 finished 69 failed 2 missing 1" in words
    assert "InvalidDecision: task <3> on 'h' & more" in words
    assert "environment 2 low, high" in words
    assert "gridsched 0.1.0 71" in words
    assert "Energy model: not drawn, equal to energy within 1e-6." in words


def test_the_page_answers_on_top(report: Path):
    """Who wins, by how much, in how many settings; MORE, by hand."""
    text = report.read_text(encoding="utf-8")
    words = " ".join(" ".join(Page(text).words).split())
    assert text.index('id="answers"') < text.index('id="run"')
    # low: 50 %; high: 60, 70, 80 %; replicate 3 has no run of mct in one setting
    assert (
        "Energy: lecsa has the least in all 6 settings. Next is mct: 60.000 ± 0 % more on average "
        "over the settings, paired over 3 replicates."
    ) in words
    assert "Makespan: mct has the least in all 6 settings. Next is wq:" in words
    table = pd.read_csv(files_folder(report) / "answer-energy_j.csv").set_index("scheduler")
    assert table["above_winner"].tolist()[1:] == pytest.approx([60.0, 110.0])  # mct, wq
    assert table["replicates"].tolist() == [0, 3, 2]
    assert table["mean_rank"].tolist() == [1.0, 2.0, 3.0]


def test_the_best_of_each_setting_is_marked(small_store: Path, report: Path):
    """In bold on the page and in LaTeX; differences only where they beat the baseline."""
    results = read_results(str(small_store))
    table = mean_table(results, "energy_j", mean_frame(results, "energy_j"))
    assert table.marked == {(row, table.header.index("lecsa")) for row in range(6)}
    differences = difference_frame(results, "energy_j")
    assert difference_table(results, "energy_j", differences).marked == frozenset()
    differences = difference_frame(results, "makespan_s")
    table = difference_table(results, "makespan_s", differences)
    assert table.marked == {(row, table.header.index("mct")) for row in range(6)}
    latex = (files_folder(report) / "differences-makespan_s.tex").read_text()
    assert re.search(r"0 & low & \$-\$\S+ \$\\pm\$ \S+ & \\textbf{\$-\$", latex)


def test_units_are_those_of_the_figures(small_store: Path):
    """Large energies have a prefix; the CSV beside keeps SI."""
    results = read_results(str(small_store))
    large = replace(results, runs=results.runs.assign(energy_j=results.runs["energy_j"] * 1e7))
    frame = mean_frame(large, "energy_j")
    table = mean_table(large, "energy_j", frame)
    assert table.title == "Energy [GJ]"
    assert table.rows[0][-1] == "1.015 ± 0.021"  # 100 + mean of 0..3
    assert frame["mean"].max() > 1e9
    assert ranking_table(ranking_of(large, "energy_j")).header[3] == "mean [GJ]"


def test_metrics_that_do_not_vary_are_told_in_words(small_store: Path):
    """One sentence for each value; neither a figure nor a table of them."""
    results = read_results(str(small_store))
    constant = replace(results, runs=results.runs.assign(makespan_s=0.0, energy_model_j=5.0))
    assert constants_text(constant) == ["Makespan: all 0.", "Energy model: all 5 J."]
    assert list(constant.distinct_metrics) == ["energy_j"]
    assert [answer.metric for answer in rankings(constant)] == ["energy_j"]


def test_answers_where_shares_mean_nothing(small_store: Path):
    """A winner at 0 or below: differences in the metric's unit; equals are called equals."""
    results = read_results(str(small_store))
    runs = results.runs.assign(makespan_s=results.runs["makespan_s"] - 9.0)
    answer = ranking_of(replace(results, runs=runs), "makespan_s")
    assert not answer.is_relative
    assert answer.schedulers[1].above.mean == pytest.approx(2.0)  # wq 10, mct 8
    assert "Next is wq: 2.000 s more" in ranking_words(answer)[2]
    runs = results.runs.assign(makespan_s=results.runs["replicate"] + 1.0)
    equal = ranking_of(replace(results, runs=runs[runs["status"] == "finished"]), "makespan_s")
    assert equal.schedulers[1].above.mean == 0.0


def test_what_is_worse_than_the_best_is_positive(small_store: Path):
    """Below the best where more is better; a mean that contradicts the ranks is reported."""
    results = read_results(str(small_store))
    runs = results.runs[results.runs["status"] == "finished"]
    earned = runs.assign(utility=runs["scheduler"].map({"wq": 50.0, "mct": 80.0, "lecsa": 100.0}))
    table = ranking_table(ranking_of(replace(results, runs=earned), "utility"))
    assert table.header[-1] == "below best [%]"
    assert [row[-1] for row in table.rows] == ["-", "20.000 ± 0", "50.000 ± 0"]
    assert table.note == ""
    # mct has 8 s in five settings of six, 69 s in the sixth; others have 9 s: 5 times +12.5 %, once -87 %
    is_sixth = (runs["environment"] == "high") & (runs["workload.heterogeneity"] == 1.0)
    late = runs.assign(makespan_s=9.0)
    late["makespan_s"] = late["makespan_s"].mask(late["scheduler"] == "mct", 8.0)
    late["makespan_s"] = late["makespan_s"].mask((late["scheduler"] == "mct") & is_sixth, 69.0)
    ranking = ranking_of(replace(results, runs=late), "makespan_s")
    table = ranking_table(ranking)
    assert (ranking.winner.label, table.header[-1]) == ("mct", "above best [%]")
    assert ranking.schedulers[1].above.mean == pytest.approx((5 * 12.5 - 6000 / 69) / 6)
    assert table.rows[1][-1].startswith("-4")
    assert table.note


def test_the_next_by_rank_and_the_nearest_on_average_are_told_apart(small_store: Path):
    """Where the third by mean rank is nearer to the best on average than the second, both are named."""
    # lecsa has 10 % more than mct in five settings of six and 900 % more in the sixth; wq has 20 % more in all
    ranking = _with_sixth(small_store, {"mct": 10.0, "lecsa": 11.0, "wq": 12.0}, {"lecsa": 100.0})
    assert [each.label for each in ranking.schedulers] == ["mct", "lecsa", "wq"]
    assert [each.above.mean for each in ranking.schedulers[1:]] == pytest.approx([950 / 6, 20.0])
    words = ranking_words(ranking)[2]
    assert "mean rank" in words.partition("lecsa")[0]
    assert "wq is nearer: 20.0" in words
    # wq has 2 % more than mct in five settings, and 90 % less in the sixth
    ranking = _with_sixth(small_store, {"mct": 10.0, "lecsa": 10.1, "wq": 10.2}, {"wq": 1.0})
    assert [each.label for each in ranking.schedulers] == ["mct", "lecsa", "wq"]
    assert "wq is better than the first: 13.33" in ranking_words(ranking)[2]


@pytest.mark.parametrize(
    ("sixth", "best", "shared"),
    [
        ({"lecsa": 11.0}, "mct", {"lecsa": 5}),
        ({"mct": 9.0, "wq": 9.0}, "mct", {"lecsa": 5, "wq": 1}),
        ({"mct": 11.0}, "lecsa", {"mct": 5}),
        ({}, "mct", {"lecsa": 6}),
    ],
)
def test_who_is_best_in_all_settings_names_those_that_are_as_good(
    small_store: Path, sixth: dict[str, float], best: str, shared: dict[str, int]
):
    """Makespans of 10 s of mct and lecsa and 12 s of wq in five settings, and those of the sixth."""
    who = ranking_words(_with_sixth(small_store, {"mct": 10.0, "lecsa": 10.0, "wq": 12.0}, sixth))[1]
    first, _, others = who.partition("in all 6 settings")
    assert first.split()[0] == best
    assert {label: int(times) for label, times in re.findall(r"(\w+) in (\d) of", others)} == shared


def test_who_is_best_alone_shares_with_none(small_store: Path):
    who = ranking_words(_with_sixth(small_store, {"mct": 10.0, "lecsa": 11.0, "wq": 12.0}, {}))[1]
    assert who.endswith("in all 6 settings.")


def _with_sixth(store: Path, makespans: dict[str, float], sixth: dict[str, float]) -> Ranking:
    """Return the ranking by makespans of schedulers, some of which have another one in the sixth setting."""
    results = read_results(str(store))
    runs = results.runs[results.runs["status"] == "finished"]
    is_sixth = (runs["environment"] == "high") & (runs["workload.heterogeneity"] == 1.0)
    values = runs["scheduler"].map(makespans)
    runs = runs.assign(makespan_s=values.mask(is_sixth, runs["scheduler"].map({**makespans, **sixth})))
    return ranking_of(replace(results, runs=runs), "makespan_s")


def test_the_baseline_is_chosen_and_said(small_store: Path, tmp_path: Path, report: Path):
    """The study's own, else its first scheduler; the page names it."""
    study_in(tmp_path)
    path = tmp_path / "small.toml"
    path.write_text(path.read_text().replace('baseline = "lecsa"\n', ""))
    results = read_results(str(small_store))
    assert results.baseline == "lecsa"
    assert replace(results, study=Study.from_file(path)).baseline == "wq"
    words = " ".join(" ".join(Page(report.read_text(encoding="utf-8")).words).split())
    assert "baseline lecsa" in words


@pytest.mark.parametrize(
    ("axis", "value", "text"),
    [
        ("workload.energy_budget_j", 8e9, "8 GJ"),
        ("energy_budget_j", float("inf"), "inf"),
        ("power_cap_w", 55_000, "55 kW"),
        ("mapping_interval_s", 86_400, "86,400 s"),
        ("workload.tasks", 10_000, "10,000"),
        ("heterogeneity", 0.25, "0.25"),
        ("powers_hosts", True, "True"),
        ("environment_s", "low", "low"),
    ],
)
def test_axis_values_have_units_and_prefixes(axis: str, value: object, text: str):
    """As the name of the axis ends; the name alone is without."""
    assert axis_value(axis, value) == text
    assert not axis_name(axis).endswith((" j", " w", " s"))
    assert axis_text({"energy_budget_j": 8e9, "environment": "low"}) == "energy budget 8 GJ, low"


def test_latex_escapes_what_is_special():
    """Texts are escaped in header, cells and caption; a hyphen is no minus."""
    table = TextTable("50 % & a_b", ["x_1", "y"], [["a#-1 {b}", "-1.5 ± 2"]], 1, "N$", frozenset())
    text = latex_text(table)
    assert r"\caption{50 \% \& a\_b. N\$}" in text
    assert r"x\_1 & y" in text
    assert r"a\#-1 \{b\} & $-$1.5 $\pm$ 2" in text
    assert r"\begin{tabular}{lr}" in text


def test_a_study_without_metrics_shows_a_dozen(small_store: Path, tmp_path: Path):
    """Details are shown where a study names them."""
    study_in(tmp_path)
    text = re.sub(r"^metrics.*\n", "", (tmp_path / "small.toml").read_text(), flags=re.MULTILINE)
    (tmp_path / "small.toml").write_text(text)
    chosen = Study.from_file(tmp_path / "small.toml").metrics
    assert {"makespan_s", "energy_j", "tasks_dropped"} <= set(chosen)
    assert "horizon_s" not in chosen
    assert len(chosen) <= 20


def test_files_beside_the_page(report: Path):
    """Each figure as PNG, SVG and PDF with its data; runs and tables as CSV."""
    folder = files_folder(report)
    for name in ("bars-energy_j", "sweep-makespan_s", "boxes-energy_j", "pareto-energy_j"):
        for suffix in (".png", ".svg", ".pdf", ".csv"):
            assert (folder / f"{name}{suffix}").stat().st_size > 100
    runs = pd.read_csv(folder / "runs.csv")
    assert len(runs) == 72
    assert runs["status"].value_counts().to_dict() == {"finished": 69, "failed": 2, "missing": 1}
    bars = pd.read_csv(folder / "bars-energy_j.csv")
    row = bars.query("environment == 'low' and scheduler == 'wq' and `workload.heterogeneity` == 0")
    assert row["mean"].tolist() == [203.0]  # 2 (100 + mean of 0..3)
    with open(folder / "boxes-energy_j.csv", newline="") as stream:
        boxes = list(csv.DictReader(stream))
    low = [r for r in boxes if r["environment"] == "low" and r["scheduler"] == "wq"]
    assert [float(r["median"]) for r in low] == pytest.approx([100.0] * 3)


def test_every_table_has_its_files_and_every_file_its_link(report: Path):
    """CSV and LaTeX of each table, and of each figure its data; links lead to all that is there."""
    folder = files_folder(report)
    there = {path.name for path in folder.iterdir()} - {REPORT_FILES.marker}
    data = {name.removesuffix(".csv") for name in there if name.endswith(".csv")} - {"runs"}
    assert all({f"{name}.tex", f"{name}.png"} & there for name in data)
    text = report.read_text(encoding="utf-8")
    linked = re.findall(rf'href="{folder.name}/([^"]+)"', text)
    assert {unquote(name) for name in linked} == there
    n_tables = sum(name.endswith(".tex") for name in there)
    assert text.count("<table") == n_tables >= 10


def test_a_study_of_the_reference_driver_that_names_no_metrics(tmp_path: Path):
    """README's study in five lines: what compares with SimGrid's plugin has no value there."""
    root = Path(__file__).resolve().parents[2]
    text = (root / "examples" / "study.toml").read_text().replace("..", root.as_posix())
    (tmp_path / "five.toml").write_text(text + 'driver = "reference"\n')
    store = str(tmp_path / "results")
    arguments = ["--only", "replicate < 1", "--workers", "1", "--quiet"]
    assert main(["study", "run", str(tmp_path / "five.toml"), "--store", store, *arguments]) == 0
    shown = read_results(store).distinct_metrics
    assert "makespan_s" in shown
    assert "energy_worst_host_difference" not in shown


def test_nothing_is_overwritten(small_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture):
    """Without --force nothing is replaced; with it, no folder that is not a report's."""
    page = tmp_path / "r.html"
    page.write_text("mine")
    assert main(["study", "report", str(small_store), "-o", str(page)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert page.read_text() == "mine"
    files_folder(page).mkdir()
    (files_folder(page) / "thesis.tex").write_text("mine")
    assert main(["study", "report", str(small_store), "-o", str(page), "--force"]) == 2
    assert (files_folder(page) / "thesis.tex").read_text() == "mine"
    for bad in ("r.pdf", "no/folder/r.html"):
        with pytest.raises(InputError):
            check_report_target(tmp_path / bad)


@pytest.fixture
def written(report: Path, tmp_path: Path) -> Path:
    """A copy of the report and of the files beside it."""
    page = tmp_path / "small.html"
    page.write_bytes(report.read_bytes())
    shutil.copytree(files_folder(report), files_folder(page))
    return page


def test_force_removes_nothing_that_no_report_wrote(small_store: Path, written: Path, capsys: pytest.CaptureFixture):
    """A user's file, link or folder among the figures: the report is refused, all stay."""
    folder = files_folder(written)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    command = ["study", "report", str(small_store), "-o", str(written), "--force"]
    for name in ("thesis.tex", "link.csv", "notes"):
        mine = folder / name
        if name == "notes":
            mine.mkdir()
            (mine / "a.txt").write_text("mine")
        elif name == "link.csv":
            mine.symlink_to("runs.csv")
        else:
            mine.write_text("mine")
        assert main(command) == 2
        assert f"holds '{name}', which is not a file of a report" in capsys.readouterr().err
        assert os.path.lexists(mine)
        shutil.rmtree(mine) if name == "notes" else mine.unlink()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_force_writes_the_same_report_again(small_store: Path, report: Path, written: Path):
    """Files of an older report are gone; page and files of the same store have the same bytes."""
    folder = files_folder(written)
    names = {path.name for path in folder.iterdir()}
    assert (folder / "files.txt").read_text().splitlines()[1:] == sorted(names - {"files.txt"})
    (folder / "old-figure.png").write_text("of an older report")
    with open(folder / "files.txt", "a") as stream:
        stream.write("old-figure.png\n")
    assert main(["study", "report", str(small_store), "-o", str(written), "--force"]) == 0
    assert {path.name for path in folder.iterdir()} == names
    assert written.read_bytes() == report.read_bytes()
    for path in files_folder(report).iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("text", ["runs.csv\n", ""])
def test_force_knows_a_report_by_its_list(small_store: Path, tmp_path: Path, text: str):
    """Folders with a runs.csv, even with a list of files of the user's own, are not reports."""
    folder = tmp_path / "r_files"
    folder.mkdir()
    (folder / "runs.csv").write_text("mine")
    (folder / "files.txt").write_text(text)
    page = tmp_path / "r.html"
    assert main(["study", "report", str(small_store), "-o", str(page), "--force"]) == 2
    assert (folder / "runs.csv").read_text() == "mine"
    assert not page.exists()


def test_study_without_its_runs_is_refused(small_store: Path, tmp_path: Path):
    """A store without any run of the study is an error, no empty report."""
    study = study_in(tmp_path)
    (tmp_path / "small.toml").write_text(study.document.text.replace("seed = 7", "seed = 8"))
    arguments = ["--study", str(tmp_path / "small.toml"), "-o", str(tmp_path / "x.html")]
    assert main(["study", "report", str(small_store), *arguments]) == 2
    assert not (tmp_path / "x.html").exists()


def test_layout_of_the_small_study(small_store: Path):
    """Heterogeneity runs along x, environments are panels, the baseline looks its own way."""
    layout = layout_of(read_results(str(small_store)))
    assert (layout.x, layout.columns) == ("workload.heterogeneity", "environment")
    assert layout.rows is None
    assert [label for label, series_style in layout.styles.items() if series_style.is_baseline] == ["lecsa"]
    assert len({(series_style.marker, series_style.line) for series_style in layout.styles.values()}) == 3
    panels = layout.panels({})
    assert [panel.title for panel in panels] == ["low", "high"]


def test_efficient_points():
    """A point is efficient unless another of its cell is no worse in both and better in one."""
    table = pd.DataFrame(
        {"cell": list("aaabb"), "makespan_s": [1.0, 2.0, 2.0, 5.0, 5.0], "energy_j": [3.0, 2.0, 3.0, 1.0, 1.0]}
    )
    assert efficient(table, ["cell"], "energy_j") == [True, True, False, True, True]


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (1234.5678, 12.3, "1,235 ± 12"),
        (0.12345, 0.0123, "0.123 ± 0.012"),
        (2e10, 1.5e8, "2e+10 ± 1.5e+08"),
        (5.0, 0.0, "5.0000 ± 0"),
        (0.0, 0.0, "0 ± 0"),
        (float("nan"), 1.0, "-"),
        (3.14159, float("nan"), "3.142"),
    ],
)
def test_numbers_have_the_digits_of_their_interval(value: float, half: float, text: str):
    """Two digits of the half-width, and as many places of the mean."""
    assert number_text(value, half) == text


def test_long_tables_are_cut_and_say_so():
    """The page shows the first rows of a very long table and names the file that has all."""
    rows = [[str(k), "x"] for k in range(MAX_ROWS + 5)]
    parts = templates().get_template("parts.html").module
    files = [Link("t.csv", "f/t.csv")]
    html = parts.table(TextTable("t", ["a", "b"], rows), files=files)
    assert html.count("<tr>") == MAX_ROWS + 1
    link = '<a href="f/t.csv">t.csv</a>'
    assert f"The first {MAX_ROWS} of {MAX_ROWS + 5} rows. Files: {link}." in html


def test_finished_tasks_over_time():
    """Executions that finished count at their end; cancelled ones and hosts do not."""
    records = pd.DataFrame(
        {
            "record": ["execution"] * 4 + ["host"],
            "outcome": ["finished", "cancelled", "finished", "finished", None],
            "end_s": [2.0, 2.0, 5.0, 2.0, None],
        }
    )
    curve = finished_over_time(records)
    assert curve.values.tolist() == [[0.0, 0.0], [2.0, 2.0], [5.0, 3.0]]


CLAIMS = """
CLAIMS = [
    Claim("a1", "number", "saves <much> & more", "table 1",
          percent_more("energy_j", "lecsa", "wq", where={"environment": "low"}), 20.0, BEFORE, paper=100.0, unit="%"),
    Claim("a2", "number", "", "table 1", mean("makespan_s", "wq"), 1.0, AFTER, paper=50.0,
          explanation="Because of 'h' & more.", run_ids=("scheduler == 'wq' and replicate == 0",)),
    Claim("a3", "number", "", "table 1", mean("makespan_s", "mct"), 1.0, AFTER, paper=50.0),
]
"""


def test_claims_on_the_page(small_store: Path, tmp_path: Path):
    """Each claim with its verdict, why it is missed, and which one does not say why."""
    study = study_in(tmp_path / "claims", text=of_metrics("energy_j"), claims=CLAIMS)
    results = read_results(str(small_store), study)
    write_judged_report(results, tmp_path / "claims.html", judge(results))
    html = (tmp_path / "claims.html").read_text()
    page = Page(html)
    words = " ".join(" ".join(page.words).split())
    assert "claims" in page.ids
    assert "3 claims: numbers 1 of 1 reproduced; tolerance set after" in words
    assert "numbers 0 of 2 reproduced (2 not reproduced)." in words
    assert "a1 saves <much> & more; low (against wq) number +100.00 % +100.00 [+100.00" in words
    assert '<td class="label verdict reproduced">reproduced</td>' in html
    assert html.count('<td class="label verdict missed">not reproduced</td>') == 2
    assert "Why the others are missed, or undecided a2. Because of 'h' & more. Runs: " in words
    assert re.search(r'<p class="warn">[A-Z][^<]*: a3\.</p>', html)
    assert '<td class="label" data-label="tolerance">±20</td>' in html
