"""Changes of P-states and power switches, as they are noted during a run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gridsched.model.trace import HOST_CHANGE


class HostChanges:
    """All changes in order; those of many nodes at once are kept as one array.

    Parameters
    ----------
    pstates : ndarray of int64, shape (hosts,)
        At time 0.
    is_on : list of bool
    """

    def __init__(self, pstates: NDArray[np.int64], is_on: list[bool]) -> None:
        self._blocks: list[NDArray[np.void]] = []
        self._singles: list[tuple[float, int, int, bool]] = [
            (0.0, host, pstate, is_on[host]) for host, pstate in enumerate(pstates.tolist())
        ]

    def add(self, time: float, host: int, pstate: int, is_on: bool) -> None:
        """Note what a host has from a time on [s]."""
        self._singles.append((time, host, pstate, is_on))

    def add_block(self, time: float, hosts: NDArray[np.int64], pstate: int) -> None:
        """Note a P-state of hosts that are on."""
        self._close_singles()
        block = np.empty(len(hosts), dtype=HOST_CHANGE)
        block["time"], block["host"], block["pstate"], block["is_on"] = time, hosts, pstate, True
        self._blocks.append(block)

    def _close_singles(self) -> None:
        if self._singles:
            self._blocks.append(np.array(self._singles, dtype=HOST_CHANGE))
            self._singles.clear()

    def records(self) -> NDArray[np.void]:
        """Return all changes so far."""
        self._close_singles()
        return np.concatenate([np.empty(0, dtype=HOST_CHANGE), *self._blocks])
