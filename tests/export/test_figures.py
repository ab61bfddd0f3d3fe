"""Figures of runs, the tables beside them, and the plot command."""

from __future__ import annotations

import csv
import math
from dataclasses import asdict
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import traces_by_hand as by_hand
from sent_bytes import OVER_TIME, sent
from typer.testing import CliRunner

from gridsched.analysis.texts import prefixed, read_unit
from gridsched.cli.plot import plot_app
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.export.export import write_export
from gridsched.figures import comparison_figure, gantt_figure
from gridsched.figures.figure_file import PlottedFigure, draw_figure, register_figure
from gridsched.figures.figure_style import new_figure
from gridsched.figures.series_styles import IDLE, WASTED
from gridsched.metrics import summary
from gridsched.model.prices import PriceSeries
from gridsched.model.tariff import Tariff
from gridsched.model.timeline import core_lanes
from gridsched.runs import figure_kinds

# Figures: every case draws, data beside them, same bytes each time, bad targets refused.

gantt = partial(draw_figure, "gantt", "run")
power = partial(draw_figure, "power", "run")
comparison_bars = partial(draw_figure, "bars", "comparison")
SIGNATURE = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
TRACES = {
    "replication": lambda: by_hand.replication(2),
    "lecsa": lambda: by_hand.lecsa(switch_off=True),
    "everything": by_hand.everything_at_once,
    "empty": by_hand.empty,
    "many hosts": lambda: by_hand.list_schedule(60, 200, 2, cancel_every=5),
    "crowded": lambda: by_hand.list_schedule(9, gantt_figure.MANY_BARS + 1, cancel_every=7),
}


def rows_of(path):
    """Read a CSV file as dictionaries of strings."""
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def comparison_rows():
    """Rows as `compare` makes them, one of a failed run."""
    runs = {"wq": by_hand.work_queue(), "wqr": by_hand.replication(3), "lecsa": by_hand.lecsa(switch_off=True)}
    rows = [{"scheduler": name} | summary(trace) for name, trace in runs.items()]
    return [*rows, {"scheduler": "broken", "error": "IncompleteRun"}]


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("draw", [gantt, power])
def test_every_trace_draws_without_a_warning(tmp_path, draw, name):
    """Three hosts or sixty, no tasks or thousands: an image and its data."""
    draw(TRACES[name](), tmp_path / "figure.png", title="a run")
    assert (tmp_path / "figure.png").read_bytes().startswith(SIGNATURE[".png"])
    assert (tmp_path / "figure.csv").exists()


@pytest.mark.parametrize("suffix", SIGNATURE)
def test_formats_by_suffix_and_the_same_bytes_each_time(tmp_path, suffix):
    """png, svg and pdf hold neither dates nor random ids."""
    trace, rows = by_hand.everything_at_once(), comparison_rows()
    for draw, what in ((gantt, trace), (power, trace), (comparison_bars, rows)):
        first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
        draw(what, first, force=True)
        draw(what, second, force=True)
        assert first.read_bytes() == second.read_bytes()
        assert first.read_bytes().startswith(SIGNATURE[suffix])


def test_drawing_leaves_matplotlibs_settings_alone(tmp_path):
    """No pyplot, no changed defaults: users' own figures look as before."""
    before = dict(matplotlib.rcParams)
    power(by_hand.work_queue(), tmp_path / "p.png")
    assert dict(matplotlib.rcParams) == before


def test_the_data_of_the_gantt_chart(tmp_path):
    """Every execution with job, host, core, times and outcome."""
    gantt(by_hand.everything_at_once(), tmp_path / "g.svg")
    rows = rows_of(tmp_path / "g.csv")
    assert [row["job_id"] for row in rows] == ["7", "3", "5", "9"]
    assert [row["core"] for row in rows] == ["0", "1", "0", "0"]
    assert rows[3] == {
        "job_id": "9",
        "host": "bare",
        "core": "0",
        "start_s": "60.0",
        "end_s": "70.0",
        "outcome": "killed",
    }


def test_executions_of_one_host_never_share_a_core():
    """Lanes: no overlap on a core, and never more lanes than cores."""
    trace = by_hand.list_schedule(3, 120, cores=4)
    lanes, runs = core_lanes(trace)[1], trace.executions
    assert lanes.max() == 3
    for host in range(3):
        for lane in range(4):
            mine = runs[(runs["host"] == host) & (lanes == lane)]
            assert (mine["start"][1:] >= mine["end"][:-1]).all()


def test_the_data_of_the_power_figure_hold_the_energy(tmp_path):
    """The last row's energy is the total of the table."""
    trace = by_hand.lecsa(switch_off=False)
    power(trace, tmp_path / "p.pdf")
    rows = rows_of(tmp_path / "p.csv")
    assert float(rows[-1]["energy_j"]) == trace_energy(trace).grid_total() == 2320.0
    assert [float(row["busy_w"]) for row in rows] == [75, 25, 25, 5, 5, 0]
    assert [float(row["idle_w"]) for row in rows] == [0, 4, 4, 8, 8, 12]


def test_the_data_of_the_comparison(tmp_path):
    """Parts sum to the total; a failed run is a row without numbers."""
    comparison_bars(comparison_rows(), tmp_path / "c.png", title="EX-A")
    rows = rows_of(tmp_path / "c.csv")
    assert [row["scheduler"] for row in rows] == ["wq", "wqr", "lecsa", "broken"]
    assert float(rows[1]["energy_useful_j"]) == 3375 - 825
    for row in rows[:3]:
        parts = [float(value) for name, value in row.items() if name.startswith("energy") and name != "energy_model_j"]
        assert math.fsum(parts) == float(row["energy_model_j"])
    assert set(rows[3].values()) == {"broken", ""}


def test_only_parts_that_occur_are_in_the_legend():
    """No waste, no idle time: nothing to explain."""
    rows = comparison_rows()
    seen = [comparison_figure.comparison_bars(each).figure for each in (rows, rows[2:3])]
    labels = [text.get_text() for text in seen[0].legends[0].get_texts()]
    assert labels == ["useful work", "wasted (cancelled copies)", "idle"]
    assert seen[1].legends == []


def test_a_run_that_finished_nothing_is_not_the_best():
    """It has the least energy and makespan, and gives the reason."""
    rows = [
        {"scheduler": id, "makespan_s": time, "energy_model_j": time, "tasks": 2, "tasks_finished": done}
        for id, time, done in (("idle", 0.0, 0), ("quick", 5.0, 2), ("slow", 9.0, 2))
    ]
    for axes in comparison_figure.comparison_bars(rows).figure.axes:
        shown = [text.get_text() for text in axes.texts]
        assert shown == ["0 (nothing finished)", "5 (best)", "9"]


def test_parallel_jobs_are_compared_by_how_they_wait():
    """Waiting time and slowdown in the makespan's place, their data beside them; whole numbers."""
    rows = [
        {
            "scheduler": name,
            "makespan_s": 9.0,
            "energy_model_j": 5.0,
            "utilisation": 0.75,
            "mean_waiting_time_s": wait,
            "mean_bounded_slowdown": slowdown,
        }
        for name, wait, slowdown in (("fcfs", 28_693.4, 31.908), ("easy_backfilling", 0.5, 1.0))
    ]
    plotted = comparison_figure.comparison_bars(rows)
    _, wait, slowdown = plotted.figure.axes
    assert wait.get_xlabel() == "Mean waiting time [s]"
    assert [text.get_text() for text in wait.texts] == ["28,693", "0.5 (best)"]
    assert [text.get_text() for text in slowdown.texts] == ["31.91", "1.00 (best)"]
    assert plotted.data["utilisation"].tolist() == [0.75, 0.75]


def test_a_comparison_of_failures_only_still_draws(tmp_path):
    """All runs failed: the figure shows this."""
    comparison_bars([{"scheduler": "a", "error": "x"}], tmp_path / "c.svg")
    assert (tmp_path / "c.svg").exists()


def test_styles_differ_in_brightness_or_hatching():
    """In gray no two areas of one figure look alike."""

    def brightness(colour):
        red, green, blue = matplotlib.colors.to_rgb(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    groups = [
        [series_style for _, series_style in comparison_figure.PARTS],
        [gantt_figure.FINISHED, *gantt_figure.ENDED.values()],
        [gantt_figure.FINISHED, *gantt_figure.CROWDED_ENDED.values()],
    ]
    assert IDLE in [styles[2].__class__(IDLE.face, IDLE.hatch, IDLE.label) for styles in groups]
    assert WASTED.hatch
    for styles in groups:
        for k, series_style in enumerate(styles):
            for other in styles[k + 1 :]:
                apart = abs(brightness(series_style.face) - brightness(other.face))
                assert apart > 0.05 or series_style.hatch != other.hatch


@pytest.mark.parametrize(
    ("largest", "expected"),
    [(0.0, (1, "J")), (999.0, (1, "J")), (1000.0, (1e3, "kJ")), (2.5e9, (1e9, "GJ")), (1e30, (1e18, "EJ"))],
)
def test_units_with_prefixes(largest, expected):
    """Axes show numbers between 1 and 1000."""
    assert prefixed("J", largest) == expected


@pytest.mark.parametrize(
    ("unit", "largest", "expected"),
    [
        ("s", 7199.0, (1, "s")),
        ("s", 7200.0, (3600, "h")),
        ("s", 4 * 86_400.0, (86_400, "d")),
        ("g", 85_000.0, (1e3, "kg")),
        ("g", 3e6, (1e6, "t")),
        ("byte", 2e15, (1e15, "PB")),
        ("J", 8e9, (1e9, "GJ")),
    ],
)
def test_units_that_are_read(unit, largest, expected):
    """Axes of a day are in hours, and 85,000 g are 85 kg."""
    assert read_unit(unit, largest) == expected


# ---------------------------------------------------------------------- bad targets


@pytest.mark.parametrize("draw", [gantt, power])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("figure.jpg", r"saved as \.png, \.svg, \.pdf, not as \.jpg"),
        ("figure.pgn", r"Did you mean '\.png'\?"),
        ("figure", r"by the ending of the file's name"),
        ("nowhere/figure.png", "cannot be written: the folder"),
    ],
)
def test_bad_targets_are_one_clear_line(tmp_path, draw, name, message):
    """A format we do not write, no format, a folder that is not there: nothing is left behind."""
    with pytest.raises(InputError, match=message) as caught:
        draw(by_hand.work_queue(), tmp_path / name)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("existing", ["figure.png", "figure.csv"])
def test_neither_figure_nor_data_are_replaced_without_force(tmp_path, existing):
    """An existing file of either name is refused, and replaced with force."""
    (tmp_path / existing).write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        gantt(by_hand.work_queue(), tmp_path / "figure.png")
    assert (tmp_path / existing).read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1
    gantt(by_hand.work_queue(), tmp_path / "figure.png", force=True)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_as_target_is_refused(tmp_path):
    """A folder named like a figure."""
    (tmp_path / "figure.png").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        power(by_hand.work_queue(), tmp_path / "figure.png", force=True)


def test_nothing_to_compare_is_refused(tmp_path):
    """No rows: an error instead of an empty figure."""
    with pytest.raises(InputError, match="nothing to compare"):
        comparison_bars([], tmp_path / "c.png")
    assert list(tmp_path.iterdir()) == []


def test_numpy_numbers_in_comparison_rows(tmp_path):
    """Rows from arrays and data frames draw as well."""
    row = {"scheduler": "a", "makespan_s": np.float64(3), "energy_model_j": np.float32(5)}
    comparison_bars([row], tmp_path / "c.png")
    assert rows_of(tmp_path / "c.csv")[0]["energy_useful_j"] == "5.0"


# The table of figures: all are in it once, and users put their own into it.

EXPECTED = {
    "run": ["gantt", "graph", "power", "trace"],
    "comparison": ["bars"],
    "tasks": ["sizes"],
    "system": ["overview"],
    "study": ["bars", "sweep", "boxes", "pareto", "trace"],
    "declared": ["best", "sweep", "traces"],
}


@pytest.fixture
def own_entries():
    """Entries of a test do not stay."""
    table = figure_kinds._table()
    before = dict(table)
    yield
    table.clear()
    table.update(before)


@pytest.mark.parametrize("of", EXPECTED)
def test_every_figure_is_in_the_table(of: str):
    """Those of a study in the order of its report; each states what it draws."""
    found = figure_kinds.figure_kinds(of)
    assert [name for name in found if name in EXPECTED[of]] == EXPECTED[of] or (
        of != "study" and set(EXPECTED[of]) <= set(found)
    )
    for kind in found.values():
        assert kind.sentence.endswith(".")
        assert callable(kind.draw)


def test_a_figure_of_ones_own(own_entries, tmp_path: Path):
    """Registered, it is drawn and saved with its data as ours are."""

    @register_figure("starts", "run", "When executions start.")
    def starts(trace, *, title=""):
        figure = new_figure(3.0, 2.0)
        figure.subplots().plot(trace.executions["start"])
        return PlottedFigure(figure, {"start_s": trace.executions["start"]})

    draw_figure("starts", "run", by_hand.work_queue(), tmp_path / "s.svg")
    assert (tmp_path / "s.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "s.csv").read_text().splitlines()[:2] == ["start_s", "0.0"]


def test_names_are_unique(own_entries):
    """Another function of the same name and subject is refused; another subject's is not."""
    with pytest.raises(InputError, match=r"'gantt'.*gridsched\.figures\.gantt"):
        register_figure("gantt", "run", "Mine.")(lambda trace: None)
    register_figure("gantt", "tasks", "Mine.")(lambda tasks: None)
    assert "gantt" in figure_kinds.figure_kinds("tasks")


def test_an_unknown_figure_is_one_clear_line(tmp_path: Path):
    """The nearest name is proposed."""
    with pytest.raises(InputError, match=r"'gant'.*'gantt'"):
        draw_figure("gant", "run", by_hand.work_queue(), tmp_path / "g.png")
    assert list(tmp_path.iterdir()) == []


# ``gridsched plot gantt`` and ``plot power`` from an export alone.


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
    """The figure, its data, and a line with their places; with --quiet, no line."""
    target = tmp_path / f"{kind}.svg"
    result = run(kind, folder, "-o", target)
    assert result.exit_code == 0
    assert str(target) in result.output
    assert target.with_suffix(".csv").exists()
    assert run(kind, folder, "-o", target, "--force", "--quiet").output == ""


@pytest.mark.parametrize("kind", ["gantt", "power"])
def test_errors_are_raised_for_the_main_program(folder, tmp_path, kind):
    """An existing target, a format that is not known, a folder that is not an export."""
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


def test_traffic_of_runs_side_by_side(tmp_path: Path):
    """All links together, then each, the busiest first; too many runs, and one without a record, are refused."""
    folders = [tmp_path / "pack", tmp_path / "locality", tmp_path / "without"]
    for folder, step_s in zip(folders, (2.0, 4.0, None), strict=True):
        provenance = {"scheduler": "fcfs", "placement": folder.name, "command": f"... --export {folder}"}
        write_export(sent(step_s), None, provenance, folder, workload_name="jobs")
    first, second, without = folders
    assert run("traffic", first, "-o", tmp_path / "one.png").exit_code == 0
    rows = rows_of(tmp_path / "one.csv")
    assert [row["link"] for row in rows] == ["all links"] * 7 + ["near"] * 7 + ["far"] * 7
    expected = [*np.add(OVER_TIME["near"], OVER_TIME["far"]), *OVER_TIME["near"], *OVER_TIME["far"]]
    assert [2 * float(row["bytes_per_s"]) for row in rows] == pytest.approx(expected)
    assert [float(row["until_s"]) for row in rows[:7]] == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    assert run("traffic", first, "--beside", second, "-o", tmp_path / "two.svg").exit_code == 0
    rows = rows_of(tmp_path / "two.csv")
    assert [row["run"] for row in rows] == ["placement pack"] * 21 + ["placement locality"] * 12
    assert rows[24]["until_s"] == "14.0"  # the last step ends with the run
    with pytest.raises(InputError, match="--traffic-step-s"):
        run("traffic", first, "--beside", without, "-o", tmp_path / "none.png")
    with pytest.raises(InputError, match="at most 4"):
        run("traffic", first, *["--beside", second] * 4, "-o", tmp_path / "none.png")


def test_help_shows_examples():
    """Both commands say how to call them."""
    assert "plot gantt out" in run("gantt", "--help").output
    assert "plot power out" in run("power", "--help").output
