"""The serial jobs of a log as a bag of tasks."""

from __future__ import annotations

from dataclasses import dataclass

from gridsched.model.tasks import Tasks, make_tasks
from gridsched.workloads.traces.job_table import JobTable


@dataclass(frozen=True)
class SerialTasks:
    """What becomes of a log for schedulers of serial tasks.

    Attributes
    ----------
    tasks : Tasks
    jobs : JobTable
        The same jobs, and what was left out.
    """

    tasks: Tasks
    jobs: JobTable


def serial_tasks(jobs: JobTable, speed: float) -> SerialTasks:
    """Return the jobs of one node as tasks; the others are left out.

    Parameters
    ----------
    jobs : JobTable
    speed : float
        Speed of the log's machine [flop/s]: a task has as many flops as its job could do in its run
        time.

    Returns
    -------
    SerialTasks
        The first submission is at 0 s. Requested times go: a bag's sizes are known.
    """
    table = jobs.without(jobs.width > 1, "wider than one node, and so no serial task").from_zero()
    tasks = make_tasks(
        table.run_time_s * speed, table.submit_time_s, labels=table.job.tolist(), name=table.name
    )
    return SerialTasks(tasks, table)
