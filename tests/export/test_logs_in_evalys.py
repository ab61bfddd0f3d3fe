"""Exports of whole logs, as evalys reads them."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from gridsched import Scenario, run
from gridsched.export.export import write_export
from gridsched.workloads.traces.options import TraceOptions

LOGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "swf"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "options"),
    [("HPC2N_excerpt.swf", {}), ("KTH-SP2.swf.gz", {}), ("CEA-Curie_10day.swf.gz", {"procs_per_node": 16})],
)
def test_evalys_reads_logs_under_easy(tmp_path: Path, name: str, options: dict):
    """Each job with its times and as many hosts as it asked for; node-seconds are ours."""
    if not (LOGS / name).exists():
        pytest.skip("the logs of the Parallel Workloads Archive are not beside the checkout")
    result = run(Scenario(None, LOGS / name, "easy_backfilling", driver="reference", trace=TraceOptions(**options)))
    write_export(result.trace, None, {}, tmp_path / "run", workload_name="jobs")
    trace = result.trace
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it and its libraries warn on new versions of theirs
        jobset = pytest.importorskip("evalys.jobset", reason="evalys is not installed")
        last = len(trace.platform.hosts) - 1
        path = tmp_path / "run" / "jobs.csv"
        read = jobset.JobSet.from_csv(str(path), resource_bounds=(0, last))
        area = read.utilisation.area.sum()
    frame = read.df.set_index("jobID").loc[[str(label) for label in trace.tasks.labels]]
    assert len(frame) == len(read.df)
    assert [len(hosts) for hosts in frame.allocated_resources] == trace.tasks.width.tolist()
    assert frame.starting_time.to_numpy() == pytest.approx(trace.start_time_s)
    assert frame.finish_time.to_numpy() == pytest.approx(trace.finish_time_s)
    assert area == pytest.approx(result.summary()["busy_time_s"], rel=1e-9)
