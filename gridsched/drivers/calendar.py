"""When executions end of which this is known as they begin: both drivers take these ends from here, to decide alike."""

from __future__ import annotations

import heapq
import math

import numpy as np

from gridsched.engine.execution import UNENDED, Activity, Execution, Transfer
from gridsched.model.host_profiles import Speeds
from gridsched.model.platform import Platform
from gridsched.model.run_times import RunTimes


class Calendar:
    """The ends of all running executions in order of time.

    Parameters
    ----------
    run_times : RunTimes, optional
        True durations; without them the end that the controller estimated is the true one.
    platform : Platform, optional
        Where the speed of hosts changes with time, ends follow it.
    """

    def __init__(self, run_times: RunTimes | None = None, platform: Platform | None = None) -> None:
        self._run_times = run_times
        self._speeds: Speeds | None = None
        if platform is not None and platform.profiles.speeds:
            self._speeds = Speeds(platform.profiles, [host.name for host in platform.hosts])
        self._heap: list[tuple[float, int, Execution | Transfer]] = []
        self._started = 0

    def start(self, execution: Execution) -> None:
        """Fix the end of an execution, ``start + duration``, and note it."""
        if self._run_times is not None:
            duration = self._run_times.run_time(execution.task, execution.host, execution.pstate)
            execution.end = execution.start + duration
            execution.is_cut = self._run_times.is_cut(execution.task, execution.host, execution.pstate)
        if self._speeds is not None:
            hosts = execution.hosts
            speed = self._speeds.of(np.array([execution.host]) if hosts is None else hosts)
            if speed is not None:
                duration = execution.end - execution.start
                execution.end = speed.end_of(execution.start, duration)
        self._started += 1
        heapq.heappush(self._heap, (execution.end, self._started, execution))

    @property
    def first(self) -> float:
        """When the first of them ends [s]; infinite where nothing runs."""
        heap = self._heap
        while heap and heap[0][2].outcome != UNENDED:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def send(self, transfer: Transfer) -> None:
        """Note when a transfer arrives that shares no link."""
        self._started += 1
        heapq.heappush(self._heap, (transfer.end, self._started, transfer))

    def next_instant(self, timer: float) -> tuple[float, list[Activity]]:
        """Take the executions of the next instant out of the calendar.

        Parameters
        ----------
        timer : float
            The next time [s] at which something else is due; infinite if nothing is.

        Returns
        -------
        time : float
            The instant [s]: the latest of the ends (and the timer) that make it up; infinite
            where nothing is left.
        finished : list of Activity
            What ends in it; empty if only the timer is due.
        """
        heap = self._heap
        while heap and heap[0][2].outcome != UNENDED:
            heapq.heappop(heap)
        first = heap[0][0] if heap else timer
        if timer < first:
            first = timer
        limit = first + (1e-9 if first < 1000.0 else 1e-12 * first)  # time_tolerance, inlined
        time = first
        finished: list[Activity] = []
        while heap and heap[0][0] <= limit:
            end, _, execution = heapq.heappop(heap)
            if execution.outcome == UNENDED:
                time = end
                finished.append(execution)
        if time < timer <= limit:
            time = timer
        return time, finished
