"""Sufferage and XSufferage: the task that loses most by its second best place goes first."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gridsched.model.system import System
from gridsched.policy.base import check_choice
from gridsched.policy.state import State
from gridsched.schedulers.bag.batch import BatchScheduler, Mapping
from gridsched.schedulers.kernels.batch import SUFFERAGE, map_greedily, map_in_passes


class Sufferage(BatchScheduler):
    """Sufferage over hosts.

    Parameters
    ----------
    variant : {"greedy", "pass"}
        Map one task after the other, always the one with the largest sufferage; or in passes, in
        each of which a host goes to the claimant with the largest sufferage.
    reschedule : bool
        Withdraw and map again all tasks that have not started, at every event; otherwise a task
        is mapped once, when it is submitted.

    Notes
    -----
    With the completion time ``CT_ij = max(r_j, A_ic) + w_i / s_j`` (`r_j` when host j is free,
    `A_ic` when the task's input files are in its cluster) the sufferage of a task is the second
    smallest minus the smallest CT over hosts; with a single usable host it is that host's CT.
    Greedy: map the task with the largest sufferage (then the lowest id) to its best host (the
    lowest id of equals), raise that host's ready time, repeat. Pass: visit tasks by id; each
    claims its best host, and takes it from an earlier claimant only with a strictly larger
    sufferage; losers try again in the next pass, with ready times brought up to date.

    References
    ----------
    .. [1] M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund, "Dynamic mapping of a
       class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999.
    .. [2] H. Casanova, A. Legrand, D. Zagorodnov, F. Berman, "Heuristics for scheduling parameter
       sweep applications in grid environments", HCW 2000.
    """

    _id: ClassVar[str] = "sufferage"
    _reads_files: ClassVar[bool] = True

    def __init__(self, variant: str = "greedy", reschedule: bool = True) -> None:
        self.variant = variant
        self.reschedule = reschedule

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; group hosts."""
        check_choice(self._id, "variant", self.variant, ("greedy", "pass"))
        check_choice(self._id, "reschedule", self.reschedule, (True, False))
        super().prepare(system, rng)

    def _map(self, state: State, waiting: NDArray[np.int64]) -> Mapping:
        arguments = self._kernel_arguments(state, waiting)
        if self.variant == "greedy":
            return map_greedily(*arguments, SUFFERAGE)
        return map_in_passes(*arguments)


class XSufferage(Sufferage):
    """Sufferage over clusters, which keeps tasks near their input files.

    Parameters
    ----------
    variant : {"greedy", "pass"}
        As in `Sufferage`.
    reschedule : bool
        As in `Sufferage`.

    Notes
    -----
    As `Sufferage`, with the sufferage taken between clusters: second smallest minus smallest of
    the clusters' smallest completion times; the task goes to the best host of its best cluster
    (then the lowest cluster id, then the lowest host id). Clusters are the platform's netzones;
    where it has none every host is a cluster, and XSufferage is Sufferage. With a single usable
    cluster the sufferage is its smallest completion time.

    Missing input files reach a cluster one task's after the other's over its uplink:
    ``A_ic = max(now, last file on its way, [max(now, link_c) + latency_c + bytes / bandwidth_c])``.

    References
    ----------
    .. [1] H. Casanova, A. Legrand, D. Zagorodnov, F. Berman, "Heuristics for scheduling parameter
       sweep applications in grid environments", HCW 2000.
    """

    _id: ClassVar[str] = "xsufferage"
    _by_cluster: ClassVar[bool] = True
