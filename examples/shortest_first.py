"""A policy of your own for parallel jobs: of the jobs that fit, the shortest starts."""

import numpy as np

from gridsched import Allocate, Scheduler, Traits


class ShortestFirst(Scheduler):
    """Starts the waiting job with the least requested time among those that fit on the free nodes.

    References
    ----------
    .. [1] An example of gridsched's documents.
    """

    traits = Traits(trigger="event", parallel=True)

    def schedule(self, state):
        free = np.flatnonzero(state.nodes.free)
        requested = {task: state.estimates.run_time(task, 0, 0) for task in state.mappable.tolist()}
        for task in sorted(requested, key=requested.get):
            width = state.tasks.width[task]
            if width <= len(free):
                yield Allocate(task, free[:width])
                free = free[width:]
