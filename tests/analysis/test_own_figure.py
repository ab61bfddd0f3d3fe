"""A study's ``policies`` file registers a figure; the report draws it beside the usual ones."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import small_study

from gridsched.analysis.study_results import read_results
from gridsched.errors import InputError
from gridsched.figures.table import _TABLE
from gridsched.page.study_report import files_folder, write_report

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


@pytest.fixture(autouse=True)
def own_entries():
    """What a test registers does not stay."""
    before = dict(_TABLE)
    yield
    _TABLE.clear()
    _TABLE.update(before)


def report_with(name: str, store: Path, folder: Path, study: str = small_study.TEXT) -> Path:
    """Write the report of the small study with a policies file; return its page."""
    (folder / "own.py").write_text(POLICIES.replace("NAME", repr(name)))
    text = study.replace("seed = 7", 'seed = 7\npolicies = ["own.py"]')
    (folder / "small.toml").write_text(text)
    (folder / "p.xml").write_text(small_study.PLATFORM)
    study = small_study.Study.from_file(folder / "small.toml")
    page = folder / "r.html"
    write_report(read_results(str(store), study), page)
    return page


def test_a_users_figure_is_in_the_report(small_store: Path, tmp_path: Path):
    """Its heading, its caption, and its files with their data."""
    page = report_with(
        "makespan-range", small_store, tmp_path, small_study.of_metrics("makespan_s")
    )
    text = page.read_text()
    assert "<h3>Range of makespans &lt;s&gt;</h3>" in text
    assert "From least to largest." in text
    figures = {path.stem for path in files_folder(page).glob("*.png")}
    assert len(figures) == text.count("data:image/png;base64,") > 1
    for suffix in (".png", ".svg", ".pdf"):
        assert (files_folder(page) / f"makespan-range{suffix}").stat().st_size > 100
    data = pd.read_csv(files_folder(page) / "makespan-range.csv").set_index("scheduler")
    assert data.loc["mct"].tolist() == [8.0, 11.0]


@pytest.mark.parametrize("name", ["bars-energy_j", "../thesis", "", "a/b"])
def test_a_figure_never_takes_anothers_files(small_store: Path, tmp_path: Path, name: str):
    """A name that is taken, or none for a file, is refused; nothing is written."""
    with pytest.raises(InputError, match="a figure is called"):
        report_with(name, small_store, tmp_path, small_study.of_metrics("energy_j"))
    assert not (tmp_path / "r.html").exists()
    assert not files_folder(tmp_path / "r.html").exists()
