"""Dynamic FPLTF: fastest processor to largest task first, planned again at every event."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gridsched.policy.state import State
from gridsched.schedulers.bag.batch import BatchScheduler, Mapping
from gridsched.schedulers.kernels.batch import map_in_order


class DynamicFPLTF(BatchScheduler):
    """Dynamic Fastest Processor to Largest Task First.

    Notes
    -----
    At every event all tasks that have not started are planned again, by size descending (then the
    lowest id): each goes to the host with the smallest ``TBA_j + TaskCost_ij`` (then the lowest
    id), whose time to become available grows by the cost. ``TaskCost_ij = (w_i / s_j) /
    (1 - load_j)``; what a host still has to do is stretched by its load in the same way; a load
    of 1 or more makes the host unusable.

    References
    ----------
    .. [1] D. Paranhos da Silva, W. Cirne, F. Brasileiro, "Trading cycles for information: using
       replication to schedule bag-of-tasks applications on computational grids", Euro-Par 2003.
    """

    def _map(self, state: State, waiting: NDArray[np.int64]) -> Mapping:
        order = np.argsort(-state.tasks.flops[waiting], kind="stable")
        load = np.array(state.background_load, dtype=np.float64)
        ready = np.array(state.core_ready_time)
        if load.any():  # without load the very same numbers: no rounding by now + (r - now)
            load[load >= 1.0] = 1.0
            with np.errstate(divide="ignore", invalid="ignore"):
                stretched = state.now + (ready - state.now) / (1.0 - load)[:, None]
            ready = np.where(load[:, None] > 0.0, stretched, ready)
            ready[load == 1.0] = np.inf
            load[load == 1.0] = 0.0
        hosts = map_in_order(
            order, self._run_times(state, waiting), ready, self.table_.column_of, load
        )
        placed = hosts >= 0
        return waiting[order][placed], hosts[placed]
