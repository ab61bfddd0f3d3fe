"""Your own policy for jobs that share nodes: those that ask for GPUs start first."""

import numpy as np

from gridsched import Allocate, Scheduler, Traits


class GpusFirst(Scheduler):
    """Starts every job that fits: the most GPUs first, then the shortest, on nodes with many free cores.

    For jobs whose parts have nodes of their own.

    References
    ----------
    .. [1] An example of gridsched's documents.
    """

    traits = Traits(trigger="event", parallel=True, shares=True)

    def prepare(self, system, rng):
        self.hosts_ = [np.array(partition.hosts) for partition in system.platform.partitions]

    def schedule(self, state):
        jobs, left = state.tasks.parts, state.nodes.left.copy()
        gpus = state.tasks.resources.index("gpu")
        asked_s = state.tasks.requested_time_s
        for task in sorted(state.waiting(), key=lambda task: (-jobs.demand[task, gpus], asked_s[task])):
            hosts = self.hosts_[jobs.partition[task]]
            room = hosts[(left[hosts] >= jobs.demand[task]).all(axis=1)]
            chosen = room[np.argsort(-left[room, 0], kind="stable")][: jobs.width[task]]
            if len(chosen) == jobs.width[task]:
                left[chosen] -= jobs.demand[task]
                yield Allocate(task, chosen)
