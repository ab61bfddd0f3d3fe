"""A study's ``policies`` file registers a figure; the report draws it beside the usual ones."""

from __future__ import annotations

import collections
from pathlib import Path

import pandas as pd
import pytest
import small_study

from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.errors import InputError
from gridsched.figures.study_layout import layout_of
from gridsched.figures.table import _TABLE, figures, study_figures
from gridsched.page.study_report import files_folder, write_report
from gridsched.runs.figure_kinds import DECLARED_KINDS
from gridsched.runs.schema import study_schema

POLICIES = '''
"""A figure of the user's own."""
from gridsched.figures.figure_file import new_figure
from gridsched.figures.table import Drawn, register_figure


@register_figure("range", "study", "Range of makespans <s>.")
def makespan_range(results, layout):
    groups = results.shown.groupby("scheduler")["makespan_s"]
    data = groups.agg(["min", "max"]).reset_index()
    figure = new_figure(6.4, 3.0)
    figure.subplots().vlines(data["scheduler"], data["min"], data["max"])
    yield Drawn(figure, data, NAME, "From least to largest.")
'''
DECLARED = """
from gridsched.figures.figure_file import new_figure
from gridsched.figures.table import Drawn, register_figure


@register_figure("least", "declared", "The least of all.", needs=("metric",))
def least(results, declared):
    data = {"least": [float(results.shown[declared.metric].min())]}
    return Drawn(new_figure(3.0, 2.0), data, declared.name)
"""


@pytest.fixture(autouse=True)
def own_entries():
    """What a test registers does not stay."""
    figures("study")  # what gridsched ships stays
    tables = (_TABLE, DECLARED_KINDS)
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


def results_with(name: str, store: Path, folder: Path, study: str) -> StudyResults:
    """Return the results of the small study with a policies file that names its figure so."""
    (folder / "own.py").write_text(POLICIES.replace("NAME", repr(name)))
    text = study.replace("seed = 7", 'seed = 7\npolicies = ["own.py"]')
    (folder / "small.toml").write_text(text)
    (folder / "p.xml").write_text(small_study.PLATFORM)
    return read_results(str(store), small_study.Study.from_file(folder / "small.toml"))


def test_a_users_figure_is_in_the_report(small_store: Path, tmp_path: Path):
    """Its heading, its caption, and its files with their data."""
    page, text = tmp_path / "r.html", small_study.of_metrics("makespan_s")
    write_report(results_with("makespan-range", small_store, tmp_path, text), page)
    text = page.read_text()
    assert "<h3>Range of makespans &lt;s&gt;</h3>" in text
    assert "From least to largest." in text
    figures = {path.stem for path in files_folder(page).glob("*.png")}
    assert len(figures) == text.count("data:image/png;base64,") > 1
    for suffix in (".png", ".svg", ".pdf"):
        assert (files_folder(page) / f"makespan-range{suffix}").stat().st_size > 100
    data = pd.read_csv(files_folder(page) / "makespan-range.csv").set_index("scheduler")
    assert data.loc["mct"].tolist() == [8.0, 11.0]


def test_a_kind_of_ones_own_is_declared(small_store: Path, tmp_path: Path):
    """What a policies file registers is a kind of ``[[figures]]``, with the keys that it needs."""
    text = small_study.of_metrics("makespan_s").replace("seed = 7", 'seed = 7\npolicies = ["own.py"]')
    (tmp_path / "own.py").write_text(DECLARED)
    (tmp_path / "p.xml").write_text(small_study.PLATFORM)
    path = tmp_path / "small.toml"
    path.write_text(text + '\n[[figures]]\nname = "mine"\nkind = "least"\nmetric = "makespan_s"\n')
    results = read_results(str(small_store), small_study.Study.from_file(path))
    ((_, drawn), *_) = study_figures(results, layout_of(results))
    assert drawn.data == {"least": [8.0]}
    assert "least" in study_schema()["$defs"]["DeclaredFigure"]["properties"]["kind"]["enum"]
    path.write_text(text + '\n[[figures]]\nname = "mine"\nkind = "least"\n')
    with pytest.raises(InputError, match=r"figures\[0\].metric.*'least'"):
        small_study.Study.from_file(path)


@pytest.mark.parametrize("name", ["../thesis", "", "a/b"])
def test_a_figures_name_is_one_of_a_file(small_store: Path, tmp_path: Path, name: str):
    """It could lie anywhere else: it is refused where it is drawn."""
    results = results_with(name, small_store, tmp_path, small_study.of_metrics("energy_j"))
    with pytest.raises(InputError, match="a figure is called"):
        collections.deque(study_figures(results, layout_of(results)), maxlen=0)


def test_a_figure_never_takes_anothers_files(small_store: Path, tmp_path: Path):
    """A name that is taken is refused; nothing is written."""
    text = small_study.of_metrics("energy_j")
    results = results_with("bars-energy_j", small_store, tmp_path, text)
    with pytest.raises(InputError, match="a figure is called"):
        write_report(results, tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()
    assert not files_folder(tmp_path / "r.html").exists()
