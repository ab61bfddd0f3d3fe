"""Exports of workflows: edges and transfers come back, and what cannot be is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from made_files import edit_archive
from test_workflow_schedulers import TOPCUOGLU, scenario_of

from gridsched import read_export, run
from gridsched.errors import InputError
from gridsched.export.export import write_export
from gridsched.metrics import summary


@pytest.fixture
def written(tmp_path):
    """HEFT's run of Topcuoglu's example, and its folder."""
    trace = run(scenario_of(TOPCUOGLU, "heft").changed(driver="reference")).trace
    write_export(trace, directory=tmp_path / "run", plugin_j=None, provenance={}, workload_name="ten tasks")
    return trace, tmp_path / "run"


def test_edges_and_transfers_come_back(written):
    """Every column of the 15 edges, and the nine transfers."""
    trace, folder = written
    back = read_export(folder).trace
    assert len(back.transfers) == 9
    assert np.array_equal(back.transfers, trace.transfers)
    for name in ("task", "on", "kind", "delay_s", "size_bytes", "item"):
        assert np.array_equal(getattr(back.tasks.dependencies, name), getattr(trace.tasks.dependencies, name))


def test_the_metrics_of_an_archive_are_those_of_the_run(written):
    """The longest path takes 41, and the machine that is alone the fastest 127, as of the run itself."""
    trace, folder = written
    row = summary(read_export(folder).trace)
    assert row == summary(trace)
    assert row["schedule_length_ratio"] == pytest.approx(80 / 41)
    assert row["speedup"] == pytest.approx(127 / 80)


@pytest.mark.parametrize(
    ("array", "column", "value", "message"),
    [
        ("transfers", "pair", 15, "transfers: row 0: pair is 15; it must be from 0 to 14"),
        ("transfers", "target", 3, "transfers: row 0: target is 3; it must be from 0 to 2"),
        ("transfers", "end", -1.0, "transfers: row 0: end is -1.0; it must be finite and not before the begin"),
        ("transfers", "size_bytes", np.nan, "transfers: row 0: size_bytes is nan"),
        ("shortest_s", None, -1.0, "shortest_s: row 0: time is -1.0; it must be at least 0 s"),
        ("host_times_s", None, np.nan, "host_times_s: row 0: time is nan"),
        ("dependencies.task", None, 12, "dependencies.task must ascend, to 9 at most"),
        ("dependencies.on", None, 9, "only one submitted before it"),
        ("dependencies.size_bytes", None, -1.0, "at least 0 bytes"),
    ],
)
def test_what_cannot_be_is_refused(written, array, column, value, message):
    """One line that names the archive, the row and what is allowed."""

    def change(description, arrays):
        (arrays[array] if column is None else arrays[array][column])[0] = value

    edit_archive(written[1], change)
    with pytest.raises(InputError, match=re.escape(message)):
        read_export(written[1])
