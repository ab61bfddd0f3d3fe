"""What can be said of the jobs of a log in a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.workloads.traces.job_table import JobTable


def job_statistics(jobs: JobTable, n_nodes: int | None) -> dict[str, Any]:
    """Return numbers of jobs.

    Parameters
    ----------
    jobs : JobTable
    n_nodes : int or None
        Nodes of the machine, if they are known.

    Returns
    -------
    dict
        Numbers, nan or None where there is nothing to tell. ``node_seconds`` is what the jobs take
        of the machine [s]; ``offered_load`` the same over what the machine has from the first
        submission to the last; ``overestimation`` the node-seconds that users asked for over those
        that their jobs took, where both are known. ``left_out`` and ``notes`` tell of the rest.
    """
    some, nan = len(jobs) > 0, float("nan")
    times, run_s, width = jobs.submit_time_s, jobs.run_time_s, jobs.width
    node_seconds = float((width * run_s).sum())
    span_s = float(times[-1] - times[0]) if some else 0.0
    asked = ~np.isnan(jobs.requested_time_s)
    used = float((width * run_s)[asked].sum())
    return {
        "jobs": len(jobs),
        "nodes": n_nodes,
        "submissions_span_s": span_s,
        "node_seconds": node_seconds,
        "offered_load": node_seconds / (span_s * n_nodes) if span_s and n_nodes else nan,
        "mean_width": float(width.mean()) if some else nan,
        "median_width": float(np.median(width)) if some else nan,
        "max_width": int(width.max(initial=0)),
        "serial_jobs": int((width == 1).sum()),
        "mean_run_time_s": float(run_s.mean()) if some else nan,
        "median_run_time_s": float(np.median(run_s)) if some else nan,
        "max_run_time_s": float(run_s.max(initial=0.0)),
        "jobs_with_request": int(asked.sum()),
        "overestimation": (
            float((width * jobs.requested_time_s)[asked].sum()) / used if used else nan
        ),
        "left_out": [each.as_json() for each in jobs.dropped],
        "notes": list(jobs.notes),
    }
