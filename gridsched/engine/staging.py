"""Input files on their way to clusters: when a task's data is there (algorithms A4).

Transfers into one cluster are serial over its uplink. A transfer belongs to a fixed assignment,
or to a plan; a new plan withdraws those that have not begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.tasks import DataFiles, Tasks


@dataclass(slots=True)
class Transfer:
    """Files on their way into a cluster from `begin` to `end` [s].

    `fixed` once a task relies on them that cannot be planned again.
    """

    begin: float
    end: float
    files: list[int]
    fixed: bool

    def is_kept(self, now: float) -> bool:
        """Whether a new plan at `now` [s] leaves the transfer alone."""
        return self.fixed or self.begin <= now


class Staging:
    """Where each input file is, and until when each cluster's uplink is busy.

    Parameters
    ----------
    platform : Platform
        Its clusters' `bandwidth` [byte/s] and `latency_s` [s] are used.
    tasks : Tasks
        With `input_files`.
    files : DataFiles

    Raises
    ------
    InputError
        If a file lies at a place the platform does not have.
    """

    def __init__(self, platform: Platform, tasks: Tasks, files: DataFiles) -> None:
        self._needs = tasks.input_files or ((),) * len(tasks)
        self._sizes = files.size_bytes
        self._clusters = platform.clusters
        self.available = np.full((len(files), len(platform.clusters)), np.inf)
        self.uplink_free = np.zeros(len(platform.clusters))
        #: transfers into each cluster, in order of booking
        self._booked: list[list[Transfer]] = [[] for _ in platform.clusters]
        cluster_of = {cluster.name: c for c, cluster in enumerate(platform.clusters)}
        for h, host in enumerate(platform.hosts):
            cluster_of.setdefault(host.name, int(platform.cluster_of[h]))
        for f, places in enumerate(files.locations):
            for place in places:
                if place not in cluster_of:
                    known = ", ".join(cluster.name for cluster in platform.clusters[:5])
                    raise InputError(
                        f"File {files.names[f]!r} is located at {place!r}, which is no cluster or "
                        f"host of {platform.name}; its clusters start with: {known}."
                    )
                self.available[f, cluster_of[place]] = 0.0

    def data_ready(self, task: int, cluster: int, now: float, *, fixed: bool = True) -> float:
        """Return when the task's files are in the cluster [s], booking missing transfers.

        A booking that is not `fixed` can be withdrawn until it begins; a `fixed` call fixes those
        that were made before for the same files, too.
        """
        needed = list(self._needs[task])
        if not needed:
            return now
        if fixed:
            for transfer in self._booked[cluster]:
                if not transfer.fixed:
                    transfer.fixed = any(f in transfer.files for f in needed)
        times = self.available[needed, cluster]
        ready = max([now, *times[np.isfinite(times)].tolist()])
        missing = [f for f, time in zip(needed, times, strict=True) if time == np.inf]
        if missing:
            begin = max(now, float(self.uplink_free[cluster]))
            place = self._clusters[cluster]
            end = begin + place.latency_s + float(self._sizes[missing].sum()) / place.bandwidth
            ready = max(ready, end)
            self.available[missing, cluster] = ready
            self.uplink_free[cluster] = ready
            self._booked[cluster].append(Transfer(begin, ready, missing, fixed))
        return ready

    def begun(self, now: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (file available [s], uplink free [s]) of what a new plan cannot withdraw."""
        available, uplink_free = self.available.copy(), np.zeros(len(self._clusters))
        for cluster, booked in enumerate(self._booked):
            for transfer in booked:
                if transfer.is_kept(now):
                    uplink_free[cluster] = transfer.end
                else:
                    available[transfer.files, cluster] = np.inf
        return available, uplink_free

    def withdraw_planned(self, now: float) -> None:
        """Forget all planned transfers that have not begun at `now` [s]."""
        self.available, self.uplink_free = self.begun(now)
        for booked in self._booked:
            booked[:] = [transfer for transfer in booked if transfer.is_kept(now)]

    def book_plan(self, tasks: Iterable[int], clusters: Iterable[int], now: float) -> None:
        """Book the transfers of a plan in its order."""
        for task, cluster in zip(tasks, clusters, strict=True):
            self.data_ready(int(task), int(cluster), now, fixed=False)
