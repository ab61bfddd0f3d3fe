"""Bags of tasks written as CSV read back exactly, whatever their files are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.files.csv_files import csv_text
from gridsched.model.tasks import DataFiles, Tasks, make_tasks
from gridsched.workloads.bag import BagOfTasks, generate_bag, write_bag
from gridsched.workloads.load import read_workload

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
