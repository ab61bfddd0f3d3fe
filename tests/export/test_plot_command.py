"""``gridsched plot gantt`` and ``plot power`` from an export alone."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import traces_by_hand as by_hand
from typer.testing import CliRunner

from gridsched.cli.plot import plot_app
from gridsched.errors import InputError
from gridsched.export.export import write_export
from gridsched.model.prices import PriceSeries
from gridsched.model.tariff import Tariff


@pytest.fixture
def folder(tmp_path):
    """An export of WQR on EX-A."""
    path = tmp_path / "out"
    write_export(by_hand.replication(2), None, {"scheduler": "wqr"}, path, workload_name="bag")
    return path


def run(*arguments):
    """Run the command; errors come out as they are, as the main program expects them."""
    result = CliRunner().invoke(plot_app, [str(word) for word in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("kind", ["gantt", "power"])
def test_a_figure_from_an_export(folder, tmp_path, kind):
    """The figure, its data, and a line that says where they are; quiet says nothing."""
    target = tmp_path / f"{kind}.svg"
    result = run(kind, folder, "-o", target)
    assert result.exit_code == 0
    assert str(target) in result.output
    assert target.with_suffix(".csv").exists()
    assert run(kind, folder, "-o", target, "--force", "--quiet").output == ""


@pytest.mark.parametrize("kind", ["gantt", "power"])
def test_errors_are_raised_for_the_main_program(folder, tmp_path, kind):
    """An existing target, a format that is not known, a folder that is no export."""
    (tmp_path / "there.png").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        run(kind, folder, "-o", tmp_path / "there.png")
    with pytest.raises(InputError, match="figures are saved as"):
        run(kind, folder, "-o", tmp_path / "figure.gif")
    with pytest.raises(InputError, match="does not exist"):
        run(kind, tmp_path / "nothing", "-o", tmp_path / "figure.png")
    assert (tmp_path / "there.png").read_text() == "mine"


def export_of(folder, tariff):
    """Return an export of WQR on EX-A whose provenance has this tariff."""
    provenance = {"scheduler": "wqr", "tariff": tariff}
    write_export(by_hand.replication(2), None, provenance, folder, workload_name="bag")
    return folder


def test_prices_come_from_the_export(folder, tmp_path):
    """The run's own, as its provenance has them; without some, or with wrong ones, one line."""
    prices = PriceSeries((0.0, 20.0), (3.0, 8.0), (1.0, 2.0), (0.0, 0.0))
    priced = export_of(tmp_path / "priced", asdict(Tariff(price=3.0, prices=prices)))
    assert run("prices", priced, "-o", tmp_path / "p.png").exit_code == 0
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0].startswith("time_s,price_line,energy_price_per_kwh,bag_price")
    assert lines[-1].split(",")[-1] == "8.0"  # WQR ends after 20 s
    with pytest.raises(InputError, match="--prices FILE"):
        run("prices", folder, "-o", tmp_path / "none.png")
    wrong = export_of(tmp_path / "wrong", {"price": -1.0})
    with pytest.raises(InputError, match=r"wrong.*tariff\.price.*-1\.0"):
        run("prices", wrong, "-o", tmp_path / "none.png")
    worse = export_of(tmp_path / "worse", "dear")
    with pytest.raises(InputError, match=r"worse.*tariff.*'dear'"):
        run("prices", worse, "-o", tmp_path / "none.png")


def test_help_shows_examples():
    """Both commands say how to call them."""
    assert "plot gantt out" in run("gantt", "--help").output
    assert "plot power out" in run("power", "--help").output
