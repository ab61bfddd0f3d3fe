"""A scheduler that looks at two hosts only."""

import numpy as np

from gridsched import Assign, Scheduler, Traits


class TwoChoices(Scheduler):
    """Each task goes to the one of two drawn hosts that would finish it first.

    References
    ----------
    .. [1] Mitzenmacher, The power of two choices in randomized load balancing, IEEE TPDS 12(10), 2001.
    """

    traits = Traits(trigger="arrival", uses_rng=True, platform_order_matters=True)

    def prepare(self, system, rng):
        self.rng_, self.places_ = rng, (np.arange(system.n_hosts), system.pstates)

    def schedule(self, state):
        for task in state.waiting():
            ends = np.maximum(state.ready_time, state.now) + state.estimates.etc([task], *self.places_)[0]
            able = np.flatnonzero(ends < np.inf)
            if len(able):
                sampled = self.rng_.choice(able, min(2, len(able)), replace=False)
                yield Assign(task, int(sampled[ends[sampled].argmin()]))
