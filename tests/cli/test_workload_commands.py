"""`gridsched workload generate` and `describe`."""

from __future__ import annotations

import pytest
from cli_cases import EX_A_TASKS


def test_generated_bag_is_described(gridsched, tmp_path):
    """A bag has the number, mean and spread it was asked for, and says so in its first line."""
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
    """Numbers stand with their decimal points in line and with units."""
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
