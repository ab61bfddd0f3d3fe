"""A policy of parallel jobs of one's own: of the jobs that fit, the shortest starts."""

import numpy as np

from gridsched import Allocate, Scheduler, Traits


class ShortestFirst(Scheduler):
    """Of the waiting jobs that fit on the free nodes the one with the least requested time starts.

    References
    ----------
    .. [1] An example of gridsched's documents.
    """

    traits = Traits(asked="event", parallel=True)

    def schedule(self, state):
        free = np.flatnonzero(state.nodes.free)
        requested = {task: state.estimates.run_time(task, 0, 0) for task in state.mappable.tolist()}
        for task in sorted(requested, key=requested.get):
            width = state.tasks.width[task]
            if width <= len(free):
                yield Allocate(task, free[:width])
                free = free[width:]
