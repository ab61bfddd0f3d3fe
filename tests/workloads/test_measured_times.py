"""CSV tables of measured run times become distributions."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.workloads.measured_times import read_measured_times


def written(tmp_path, text: str):
    """A file with these lines below the header."""
    path = tmp_path / "times.csv"
    path.write_text(f"task_type,host_type,pstate,time_s\n{text}", encoding="utf-8")
    return path


def test_measurements_of_a_group_have_equal_mass(tmp_path):
    """Four runs of a on h: 10 once, 20 twice, 30 once."""
    path = written(tmp_path, "a,h,0,20\na,h,0,10\nb,g,1,7.5\na,h,0,30\na,h,0,20\n")
    listed = read_measured_times(path, ["a", "b"], ["g", "h"])
    found = listed.pmf(0, 1, 0)
    assert found.times.tolist() == [10.0, 20.0, 30.0]
    assert found.masses.tolist() == [0.25, 0.5, 0.25]
    means = listed.means((2, 2, 2))
    assert (means[0, 1, 0], means[1, 0, 1]) == (20.0, 7.5)
    assert np.isinf(means).sum() == 6
    with pytest.raises(InputError, match="no distribution is listed"):
        listed.pmf(1, 1, 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [("a,h,0,0", "time_s"), ("c,h,0,1", "'c'"), ("a,h,-1,1", "pstate"), ("", "no measurements")],
)
def test_bad_measurements_are_refused(tmp_path, line, message):
    """The message names what is wrong."""
    with pytest.raises(InputError, match=message):
        read_measured_times(written(tmp_path, line), ["a", "b"], ["g", "h"])
