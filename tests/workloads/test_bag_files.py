"""Bags from files, measured times, documented keys, and the workload commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched.analysis.bounds import have_bounds
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.files.csv_files import csv_text
from gridsched.model.data_files import DataFiles
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.trace import ExecutionEnd
from gridsched.runs.run import run
from gridsched.scenario import Scenario
from gridsched.workloads.bag import BagOfTasks, generate_bag, write_bag
from gridsched.workloads.load import read_system_workload, read_workload
from gridsched.workloads.measured_times import read_run_times

# Bags from files, measured times and the keys that documents list.

# Bags of tasks written as CSV read back exactly, whatever their files are called.

WORD = st.text(
    st.sampled_from("ab,\"'# ;é\t|") | st.characters(min_codepoint=33, max_codepoint=500), min_size=1, max_size=8
)
NAME = WORD.map(lambda name: name.replace(";", "_").strip(" #\t")).filter(
    lambda name: name == name.strip() and len(name.splitlines()) == 1
)


def bag_with_files(names: tuple[str, ...]) -> Tasks:
    """Two tasks: the first needs all files, the second none."""
    files = DataFiles(names, np.arange(1.0, 1.0 + len(names)), (("c1",),) * len(names))
    return make_tasks(
        [1e9 / 3, 2.5e12],
        [0.0, 0.1],
        input_bytes=[7.0, 0.0],
        labels=[12, 7],
        input_files=[list(range(len(names))), []],
        files=files,
        nominal_heterogeneity=0.1 + 0.2,
    )


def written_and_read(tasks: Tasks, folder: Path) -> Tasks:
    """Return what `write_bag` and a table of its files give back."""
    write_bag(tasks, folder / "bag.csv", force=True)
    files = tasks.files
    table = {"file": files.names, "size_bytes": files.size_bytes, "location": ["c1"] * len(files)}
    (folder / "files.csv").write_text(csv_text(table), encoding="utf-8")
    return read_workload(folder / "bag.csv", files=folder / "files.csv")


def test_a_file_name_with_a_comma(tmp_path):
    """It is quoted, so that the row keeps its number of cells."""
    tasks = written_and_read(bag_with_files(("a,b.dat", 'c"d.dat', "e f.dat")), tmp_path)
    assert tasks.files.names == ("a,b.dat", 'c"d.dat', "e f.dat")
    assert tasks.input_files == ((0, 1, 2), ())


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(names=st.lists(NAME, min_size=1, max_size=4, unique=True))
def test_bags_read_back_exactly(names, tmp_path):
    """Numbers to the last digit, labels, the nominal spread, and any name without ';'."""
    tasks = bag_with_files(tuple(names))
    back = written_and_read(tasks, tmp_path)
    for column in ("flops", "submit_time_s", "input_bytes", "output_bytes", "labels"):
        assert getattr(back, column).tolist() == getattr(tasks, column).tolist()
    assert back.input_files == tasks.input_files
    assert back.files.names == tasks.files.names
    assert back.nominal_heterogeneity == tasks.nominal_heterogeneity


@pytest.mark.parametrize("name", ["a;b", " a", "a\n", "a\nb", "a\x1cb", ""])
def test_names_that_would_not_read_back_are_refused(name, tmp_path):
    """';' parts names, blanks around a cell are dropped, a line ends at its break."""
    with pytest.raises(InputError, match=r"file name .* cannot be written"):
        write_bag(bag_with_files((name,)), tmp_path / "bag.csv")
    assert not (tmp_path / "bag.csv").exists()


def test_when_a_generated_bag_is_submitted():
    """Uniformly over a day, which changes no size; all at 0 by default; never backwards."""
    keys = {"tasks": 2000, "mean_flops": 1e6, "heterogeneity": 0.5, "seed": 3}
    at_once, spread = (
        generate_bag(BagOfTasks(**keys, **times))
        for times in ({}, {"submit_from_s": 86_400.0, "submit_until_s": 172_800.0})
    )
    assert not at_once.submit_time_s.any()
    assert spread.flops.tolist() == at_once.flops.tolist()
    times = spread.submit_time_s
    assert 86_400 <= times[0] < 86_800
    assert 172_400 < times[-1] <= 172_800
    quarters = np.histogram(times, 4, (86_400, 172_800))[0]
    assert abs(quarters - 500).max() < 5 * np.sqrt(2000 * 0.25 * 0.75)
    with pytest.raises(InputError, match="submit_until_s"):
        generate_bag(BagOfTasks(**keys, submit_from_s=1.0))


# Tasks of a bag that wait for others.

WAITS = "id,flops,submit_time_s,after,afterany,afterok,afternotok,aftercorr\n"


def test_tasks_wait_for_others_by_their_ids(write):
    """Ids become places in order of submission; minutes become seconds."""
    text = f"{WAITS}5,10,7,9+0.25 8,,9:8,,\n9,10,0,,,,,\n8,10,0,,9,,9+1,9\n"
    tasks = read_workload(write("bag.csv", text))
    assert tasks.labels.tolist() == [9, 8, 5]
    edges = tasks.dependencies
    rows = zip(edges.task.tolist(), edges.on.tolist(), edges.kind.tolist(), edges.delay_s.tolist(), strict=True)
    first = [(1, 0, After.END, 0), (1, 0, After.SUCCESS, 0), (1, 0, After.FAILURE, 60)]
    second = [(2, 0, After.START, 15), (2, 0, After.SUCCESS, 0), (2, 1, After.START, 0), (2, 1, After.SUCCESS, 0)]
    assert sorted(rows) == sorted(first + second)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("3,10,0,7,,,,", "line 4: after is '7'; no task .* 7"),
        ("3,10,0,,3,,,", "line 4: afterany is '3'; .* itself"),
        ("3,10,0,,,1 4,,", "line 4: afterok is '1 4'; task 4 is submitted later"),
        ("3,10,0,,,,1+x,", "line 4: afternotok"),
        ("3,10,0,,,,1+1e999,", "line 4: afternotok .* minutes"),
        ("3,10,0,,,,1+1e9999999,", "line 4: afternotok .* minutes"),
        ("3,10,0,,,,1+1e9x,", "line 4: afternotok .* minutes"),
        ("3,10,0,,,,1+-5,", "line 4: afternotok"),
        ("3,10,0,,,,,one", "line 4: aftercorr is 'one'; ids"),
        ("3,10,0,1;2,,,,", "line 4: after is '1;2'; ids"),
    ],
)
def test_damaged_dependencies_are_refused(write, row, message):
    """By line and column; so no task waits for itself, a later one, or in a circle."""
    path = write("bag.csv", f"{WAITS}1,10,0,,,,,\n2,10,0,,,,,\n{row}\n4,10,0,,,,,\n")
    with pytest.raises(InputError, match=message):
        read_workload(path)


def test_a_circle_is_refused(write):
    """Of tasks that wait for each other one is below."""
    with pytest.raises(InputError, match="line 2: afterok is '2'"):
        read_workload(write("bag.csv", "id,flops,afterok\n1,10,2\n2,10,1\n"))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_dependencies_read_back(data, tmp_path):
    """Pairs, kinds and delays, whatever the tasks are called."""
    pair = st.tuples(
        st.integers(1, 5), st.integers(0, 4), st.sampled_from(After), st.sampled_from([0.0, 1.5, 100.0, 7.7])
    )
    pairs = sorted({each for each in data.draw(st.lists(pair, min_size=1)) if each[1] < each[0]})
    edges = Dependencies(*map(np.array, zip(*pairs, strict=True))) if pairs else None
    tasks = make_tasks([1.0] * 6, np.arange(6.0), labels=[9, -4, 7, 1, 3, 2], dependencies=edges)
    write_bag(tasks, tmp_path / "bag.csv", force=True)
    back = read_workload(tmp_path / "bag.csv").dependencies
    columns = () if back is None else (back.task, back.on, back.kind, back.delay_s)
    assert sorted(zip(*(each.tolist() for each in columns), strict=True)) == pairs


def test_data_between_tasks_are_no_part_of_a_bag(tmp_path):
    """Its file could not hold them."""
    edges = Dependencies(*map(np.array, ([1], [0], [After.END], [0.0], [5.0])))
    with pytest.raises(InputError, match="workflow"):
        write_bag(make_tasks([1.0, 1.0], dependencies=edges), tmp_path / "bag.csv", force=True)


def test_the_example_of_dependent_tasks_by_hand():
    """MCT takes the fastest host: 10, 5, 20 and 15 s, then the last one, 15 s behind the start of the fourth."""
    scenario = Scenario("platforms/ex_a.xml", "examples/pipeline.csv", "mct", driver="reference")
    trace = run(scenario).trace
    assert trace.start_time_s.tolist() == [0, 10, 15, 35, 50]
    assert trace.finish_time_s.tolist() == [10, 15, 35, 50, 52.5]


# CSV tables of measured run times become distributions.


def written(tmp_path, text: str):
    """A file with these lines below the header."""
    path = tmp_path / "times.csv"
    path.write_text(f"task_type,host_type,pstate,time_s\n{text}", encoding="utf-8")
    return path


def test_measurements_of_a_group_have_equal_mass(tmp_path):
    """Four runs of a on h: 10 once, 20 twice, 30 once."""
    path = written(tmp_path, "a,h,0,20\na,h,0,10\nb,g,1,7.5\na,h,0,30\na,h,0,20\n")
    listed = read_run_times(path, ["g", "h"], 2).times
    found = listed.pmf(0, 1, 0)
    assert found.times.tolist() == [10.0, 20.0, 30.0]
    assert found.masses.tolist() == [0.25, 0.5, 0.25]
    means = listed.means((2, 2, 2))
    assert (means[0, 1, 0], means[1, 0, 1]) == (20.0, 7.5)
    assert np.isinf(means).sum() == 6
    with pytest.raises(InputError, match="distribution"):
        listed.pmf(1, 1, 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [("a,h,0,0", "time_s"), ("a,c,0,1", "'c'"), ("a,h,-1,1", "pstate"), ("a,h,2,1", "0 to 1"), ("", "no measurements")],
)
def test_bad_measurements_are_refused(tmp_path, line, message):
    """The message names what is wrong."""
    with pytest.raises(InputError, match=message):
        read_run_times(written(tmp_path, line), ["g", "h"], 2)


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "measured.toml"


@pytest.mark.systems("robust")
def test_a_generator_takes_measured_times():
    """Types and means are the file's; true run times are measurements, the same luck everywhere."""
    made = read_system_workload(EXAMPLE)
    assert made.types.task_type_names == ("render", "encode")
    assert made.types.host_type_names == ("node1", "node2")
    assert made.types.etc[0, 0].tolist() == pytest.approx([1325 / 3, 615.0])
    assert np.isinf(made.types.etc[0, 1]).all()
    assert made.types.etc[1, :, 0].tolist() == [205.0, 155.0]
    known = made.types.estimates(made.tasks)
    assert known.grid is not None  # 10 s
    render, encode = (int(np.argmax(made.tasks.task_type == k)) for k in (0, 1))
    # 395 s becomes 400 s: half a step counts upwards
    assert known.pmf(render, 0, 0).times[known.pmf(render, 0, 0).masses > 0].tolist() == [400.0, 410.0, 520.0]
    sampled = {made.run_times.run_time(task, 0, 0) for task in range(len(made.tasks))}
    assert sampled == {395.0, 410.0, 520.0, 180.0, 230.0}
    low = made.run_times.run_time(encode, 0, 0) == 180.0
    assert made.run_times.run_time(encode, 2, 0) == (150.0 if low else 160.0)
    # the mean over where the type can run, and that of all pairs that can run
    slack = made.tasks.deadline_s[render] - made.tasks.submit_time_s[render]
    pairs = [1325 / 3, 615.0, 205.0, 155.0, 260.0]
    assert slack == pytest.approx((pairs[0] + pairs[1]) / 2 + sum(pairs) / 5)


@pytest.mark.systems("robust")
@pytest.mark.parametrize("id", ["lightest_load", "mct"])
def test_runs_of_measured_times(id):
    """Schedulers with and without distributions finish tasks after measured times."""
    result = run(Scenario(None, EXAMPLE, id, driver="reference"))
    done = result.trace.of_outcome(ExecutionEnd.FINISHED)
    assert len(done) > 20
    measured = {395, 410, 520, 640, 590, 180, 230, 150, 160, 260}
    assert set(np.round(done["end"] - done["start"], 6).tolist()) <= measured
    assert not have_bounds([result])


@pytest.mark.systems("robust")
@pytest.mark.parametrize(
    ("line", "message"), [("render,node3,0,5", "'node3'"), ("render,node1,2,5", "the hosts have 0 to 1")]
)
def test_measurements_of_other_hosts_are_refused(tmp_path, line, message):
    """The message names file, line and column."""
    shutil.copy(EXAMPLE, tmp_path)
    path = tmp_path / "measured_times.csv"
    path.write_text(f"task_type,host_type,pstate,time_s\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        read_system_workload(tmp_path / "measured.toml")
    assert f"{path}, line 2" in str(error.value)


# Documents list every key of a generator, with its default.


# `gridsched workload generate` and `describe` for a workload that brings its machines.

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


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
def test_description_for_people(gridsched):
    """Tables with units, one for each matrix."""
    _, out, _ = gridsched("workload", "describe", SMALL)
    for title in ("Arrivals", "ETC [s]", "APC [W]", "EEC [J]"):
        assert title in out.splitlines()
    assert "offered load" in out


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
def test_generated_files_are_the_workload(gridsched, tmp_path):
    """Tasks, and beside them what they need; the TOML is a workload like the first."""
    tasks = tmp_path / "day.csv"
    status, out, err = gridsched("workload", "generate", SMALL, "-o", tasks)
    assert (status, err) == (0, "")
    assert f"{tmp_path / 'day.toml'} joins them" in out
    describe = ("workload", "describe", "--json")
    first = json.loads(gridsched(*describe, SMALL)[1])
    assert json.loads(gridsched(*describe, tmp_path / "day.toml")[1]) == first


@pytest.mark.systems("utility")
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
        (("generate", "--kind", "utility", "--tasks", 3, "-o", tmp_path / "x.csv"), "--tasks is not a known key"),
        (("describe", made, "--plot", tmp_path / "day.png", "--force"), "over the input"),
        (("describe", SMALL, "--files", tasks), "--files goes with a CSV workload"),
    ):
        status, out, err = gridsched("workload", *words)
        assert (status, out) == (2, ""), words
        assert message in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.systems("utility")
def test_the_papers_workload_without_a_file(gridsched, tmp_path):
    """--kind utility alone is the paper's set-up."""
    status, out, _ = gridsched("workload", "generate", "--kind", "utility", "--seed", 1, "-o", tmp_path / "w.csv")
    assert status == 0
    assert out.startswith(f"Wrote {tmp_path / 'w.csv'}: 100,280 tasks")
