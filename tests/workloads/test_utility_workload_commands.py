"""`gridsched workload generate` and `describe` for a workload that brings its machines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gridsched.cli.app import main
from gridsched.workloads.load import read_system_workload

ROOT = Path(__file__).resolve().parents[2]
SMALL = ROOT / "examples/utility_small.toml"


@pytest.fixture
def gridsched(capsys):
    """Call a command; return its status and what it printed."""

    def call(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(word) for word in words])
        return status, *capsys.readouterr()

    return call


def test_described_numbers_are_those_of_the_arrays(gridsched):
    """Counts, rates, and mean, cov, least and most of each matrix."""
    status, out, err = gridsched("workload", "describe", SMALL, "--json")
    assert (status, err) == (0, "")
    found, whole = json.loads(out), read_system_workload(SMALL)
    assert found["tasks"] == len(whole.tasks)
    assert found["tasks_per_day"] == pytest.approx(6 * len(whole.tasks))
    assert (found["machines"], found["machine_types"], found["task_types"]) == (10, 3, 10)
    general, special = found["arrivals"]
    assert (general["kind"], general["task_types"]) == ("general", 8)
    assert (special["kind"], special["task_types"]) == ("special", 2)
    assert general["tasks"] + special["tasks"] == len(whole.tasks)
    counts = np.bincount(whole.tasks.task_type, minlength=10)
    assert special["max_per_day"] == pytest.approx(6 * counts[:2].max())
    assert general["min_per_day"] == pytest.approx(6 * counts[2:].min())
    rows = {(r["matrix"], r["machine_types"], r["pstate"]): r for r in found["matrices"]}
    assert len(rows) == 3 * 2 * 3
    values = whole.types.etc[:, 1:, 1] * whole.types.apc[:, 1:, 1]
    row = rows["eec", "general", 1]
    assert row["entries"] == values.size == 20
    assert row["mean"] == pytest.approx(values.mean())
    assert row["cov"] == pytest.approx(values.std() / values.mean())
    assert (row["min"], row["max"]) == pytest.approx((values.min(), values.max()))
    assert rows["etc", "special", 0]["entries"] == 2


def test_offered_load_by_hand(gridsched, tmp_path):
    """Two tasks of 600 s and 1200 s (mean of its machines) on three machines in 1,800 s."""
    (tmp_path / "m.csv").write_text("machine_type,count\na,2\nb,1\n")
    entries = {"x,a,0": "600", "x,b,0": "600", "y,a,0": "900", "y,b,0": "1800"}
    for name, values in (("etc_s", entries), ("apc_w", dict.fromkeys(entries, "100"))):
        lines = [f"task_type,machine_type,pstate,{name}", *map(",".join, values.items())]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    (tmp_path / "t.csv").write_text(
        "id,submit_time_s,task_type,priority,urgency,utility_class\n1,0,x,8,0,0\n2,9,y,4,0,0\n"
    )
    (tmp_path / "w.toml").write_text(
        'kind = "utility"\ndays = 0.020833333333333332\nmachines_csv = "m.csv"\n'
        'etc_csv = "etc_s.csv"\napc_csv = "apc_w.csv"\ntasks_csv = "t.csv"\n'
    )
    found = json.loads(gridsched("workload", "describe", tmp_path / "w.toml", "--json")[1])
    assert found["offered_load"] == pytest.approx((600 + 1200) / (3 * 1800))
    assert found["utility_possible"] == 12
    assert [row["kind"] for row in found["arrivals"]] == ["general"]


def test_description_for_people(gridsched):
    """Tables with units, one for each matrix."""
    _, out, _ = gridsched("workload", "describe", SMALL)
    for title in ("Arrivals", "ETC [s]", "APC [W]", "EEC [J]"):
        assert title in out.splitlines()
    assert "offered load" in out


@pytest.mark.parametrize("changes", ["", "tasks_per_type = 0\ntasks_per_type_deviation = 0\n"])
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_figure_and_its_data(gridsched, tmp_path, changes, ending):
    """Arrivals sum to the tasks, shares to 100 %; without tasks there is a figure, too."""
    kept = [line for line in SMALL.read_text().splitlines() if not line.startswith("tasks_per_type")]
    toml = tmp_path / "w.toml"
    toml.write_text(SMALL.read_text() if not changes else "\n".join(kept) + "\n" + changes)
    figure = tmp_path / f"day.{ending}"
    status, out, err = gridsched("workload", "describe", toml, "--plot", figure, "--quiet")
    assert (status, out, err) == (0, "", "")
    assert figure.stat().st_size > 10_000
    lines = [line.split(",") for line in figure.with_suffix(".csv").read_text().splitlines()]
    assert lines[0] == ["panel", "series", "x", "y"]
    total: dict[str, float] = {}
    for panel, series, _, y in lines[1:]:
        total[f"{panel} {series}"] = total.get(f"{panel} {series}", 0.0) + float(y)
    n = len(read_system_workload(toml).tasks)
    arrivals = sum(v for k, v in total.items() if k.startswith("arrivals"))
    assert arrivals / 12 == pytest.approx(n)  # tasks per hour in intervals of 5 min
    for name in ("etc_s general", "eec_j special"):
        assert total[f"share_percent_over_{name}"] == pytest.approx(100)
    assert len({k for k in total if k.startswith("fraction")}) == 21


def test_figure_of_many_and_of_exponential_classes(gridsched, tmp_path):
    """Sixty classes are drawn as a range; the exponential one over five times its decay."""
    for keys, series in (
        ("n_classes = 60\n", {"lowest", "highest", "mean"}),
        ('utility_classes = "exponential"\n', {"class 0", "mean"}),
    ):
        toml = tmp_path / "w.toml"
        toml.write_text(SMALL.read_text() + keys)
        figure = tmp_path / "day.png"
        assert gridsched("workload", "describe", toml, "--plot", figure, "--force")[0] == 0
        lines = [line.split(",") for line in figure.with_suffix(".csv").read_text().splitlines()]
        assert {line[1] for line in lines if line[0].startswith("fraction")} == series


def test_generated_files_are_the_workload(gridsched, tmp_path):
    """Tasks, and beside them what they need; the TOML is a workload like the first."""
    tasks = tmp_path / "day.csv"
    status, out, err = gridsched("workload", "generate", SMALL, "-o", tasks)
    assert (status, err) == (0, "")
    assert f"{tmp_path / 'day.toml'} joins them" in out
    describe = ("workload", "describe", "--json")
    first = json.loads(gridsched(*describe, SMALL)[1])
    assert json.loads(gridsched(*describe, tmp_path / "day.toml")[1]) == first


def test_what_generate_and_describe_refuse(gridsched, tmp_path):
    """Existing files, another ending, inputs as targets, options beside a file."""
    tasks = tmp_path / "day.csv"
    gridsched("workload", "generate", SMALL, "-o", tasks, "--quiet")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    made = tmp_path / "day.toml"
    for words, message in (
        (("generate", SMALL, "-o", tasks), "day.csv: exists already"),
        (("generate", made, "-o", tasks, "--force"), "over the input"),
        (("generate", SMALL, "-o", tmp_path / "x.txt"), "written as .csv"),
        (("generate", SMALL, "--seed", 3, "-o", tmp_path / "x.csv"), "--seed has no effect beside"),
        (("generate", "--kind", "utility", "--tasks", 3, "-o", tmp_path / "x.csv"), "--tasks is no known key"),
        (("describe", made, "--plot", tmp_path / "day.png", "--force"), "over the input"),
        (("describe", SMALL, "--files", tasks), "--files goes with a CSV workload"),
    ):
        status, out, err = gridsched("workload", *words)
        assert (status, out) == (2, ""), words
        assert message in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_papers_workload_without_a_file(gridsched, tmp_path):
    """--kind utility alone is the paper's set-up."""
    status, out, _ = gridsched("workload", "generate", "--kind", "utility", "--seed", 1, "-o", tmp_path / "w.csv")
    assert status == 0
    assert out.startswith(f"Wrote {tmp_path / 'w.csv'}: 100,280 tasks")
