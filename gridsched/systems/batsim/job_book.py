"""The jobs by the ids that Batsim's scheduler knows, and what has become of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from gridsched.arrays import Integers
from gridsched.files.csv_files import interval_set
from gridsched.policy.state import State
from gridsched.systems.batsim.protocol import WORKLOAD, Event, Request, event, job_description

_ESTIMATE = "estimate_waiting_time"


class JobBook:
    """Jobs that were submitted.

    A job that a failed host has lost, and that starts again, is another one with the number of its
    restart at the end of its id.

    Parameters
    ----------
    asks_waiting_time : bool
        Whether each job comes with a query about how long it will wait.

    Attributes
    ----------
    running : dict of int to ndarray of int64
        Hosts of each task that runs.
    """

    def __init__(self, asks_waiting_time: bool) -> None:
        self.running: dict[int, Integers] = {}
        self._asks = asks_waiting_time
        self._task_of: dict[str, int] = {}
        self._id_of: list[str] = []
        self._started: dict[int, float] = {}
        self._requested: list[float] = []
        self._restarts = Counter[int]()
        self._queries: dict[str, int] = {}

    # ------------------------------------------------------------------ what it receives

    def ended(self, state: State) -> Iterator[Event]:
        """Yield the ends of jobs that run no more; those that wait again are submitted again."""
        running = set(state.running["task"].tolist())
        over = [task for task in self.running if task not in running]
        waiting = set(state.waiting()) if over else set()
        for task in over:
            is_lost = bool(state.is_down[self.running[task]].any())
            yield self.completed(task, state.now, "COMPLETED_FAILED" if is_lost else "COMPLETED_SUCCESSFULLY")
            if task in waiting:
                self._restarts[task] += 1
                yield from self._submission(task, state)

    def completed(self, task: int, now: float, word: str) -> Event:
        """Return the end of a job, which has its hosts no more."""
        alloc = interval_set(self.running.pop(task))
        code = 0 if word == "COMPLETED_SUCCESSFULLY" else 1
        id = self._id_of[task]
        return event(now, "JOB_COMPLETED", job_id=id, job_state=word, return_code=code, kill_reason="", alloc=alloc)

    def submitted(self, state: State, pstate: int) -> Iterator[Event]:
        """Yield the jobs that are new; their requested times are those in a P-state."""
        for task in range(len(self._id_of), len(state.tasks)):
            self._id_of.append("")
            self._requested.append(state.estimates.run_time(task, 0, pstate))
            yield from self._submission(task, state)

    def _submission(self, task: int, state: State) -> Iterator[Event]:
        restart = self._restarts[task]
        id = f"{WORKLOAD}!{state.tasks.labels[task]}" + (f"#{restart}" if restart else "")
        self._id_of[task], self._task_of[id] = id, task
        requested_s = self._requested[task]
        width = int(state.estimates.width(task, 0))
        job = job_description(id, state.tasks.submit_time_s[task].item(), width, requested_s)
        profile = {"type": "delay", "delay": requested_s}
        yield event(state.now, "JOB_SUBMITTED", job_id=id, job=job, profile=profile)
        if self._asks:
            query = f"{id}?"
            self._queries[query] = task
            estimate_query = {_ESTIMATE: {"job_id": query, "job": {**job, "id": query}}}
            yield event(state.now, "QUERY", requests=estimate_query)

    def killed(self, request: Request, tasks: list[int], now: float) -> Event:
        """Return that `tasks` of those that were to be killed were, with their progress as estimated."""
        progress = {}
        for task in tasks:
            requested_s = self._requested[task]
            share = min((now - self._started[task]) / requested_s, 1.0)
            progress[self._id_of[task]] = {"profile": f"delay_{requested_s!r}", "progress": share}
        return event(now, "JOB_KILLED", job_ids=request.data["job_ids"], job_progress=progress)

    # ------------------------------------------------------------------ what it asks for

    def task(self, request: Request) -> int:
        """Return the task that a request names."""
        return self._known(request, request.text("job_id"))

    def tasks(self, request: Request) -> list[int]:
        """Return the tasks that a request names."""
        ids = request.data.get("job_ids")
        if not isinstance(ids, list):
            raise request.protocol_error("job_ids is not a list")
        return [self._known(request, each) for each in ids]

    def _known(self, request: Request, id: object) -> int:
        task = self._task_of.get(id) if isinstance(id, str) else None
        if task is None or self._id_of[task] != id:
            raise request.protocol_error(f"job {str(id)[:60]!r} was not submitted")
        return task

    def start(self, task: int, hosts: Integers, now: float) -> None:
        """Note the hosts of a job that starts."""
        self.running[task] = hosts
        self._started[task] = now

    def expected_wait(self, request: Request) -> tuple[int, float]:
        """Return the task of an ``ANSWER``, and how long it will wait [s]."""
        reply = request.data.get(_ESTIMATE)
        reply = reply if isinstance(reply, dict) else {}
        id, wait_s = reply.get("job_id"), reply.get("estimated_waiting_time")
        task = self._queries.get(id) if isinstance(id, str) else None
        if task is None or not isinstance(wait_s, int | float) or not math.isfinite(wait_s):
            raise request.protocol_error(f"{_ESTIMATE} names no job that was asked about, or no number")
        return task, float(wait_s)
