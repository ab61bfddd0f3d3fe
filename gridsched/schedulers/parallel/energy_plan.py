"""What running jobs and reservations leave of nodes and of a budget that becomes available at a constant rate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gridsched.model.limits import time_tolerance


@dataclass(frozen=True)
class Window:
    """A budget in a window of time, and what nodes are taken to draw.

    Attributes
    ----------
    begin_s, end_s : float
        The window [s].
    cap_w : float
        The rate at which the budget becomes available [W].
    n_nodes : int
        Nodes that draw power.
    idle_w, busy_w : float
        What one draws that idles, and one that computes [W].
    """

    begin_s: float
    end_s: float
    cap_w: float
    n_nodes: int
    idle_w: float
    busy_w: float

    def power_w(self, used: int) -> float:
        """Return what all nodes draw while so many compute [W]."""
        return used * self.busy_w + (self.n_nodes - used) * self.idle_w


class EnergyPlan:
    """Nodes in use and energy saved from now on, as running jobs and reservations have it.

    What is saved grows in the window by what becomes available, and shrinks by what all nodes draw. A reservation fits
    where nodes are free while it runs, and where, with it, at no later time less than nothing is saved:
    earlier reservations of energy still find theirs.

    Parameters
    ----------
    window : Window
    now : float
        [s].
    free_nodes : int
        Nodes that jobs may have: those that run something, and those that are free.
    saved_j : float
        What is saved now [J]; of interest inside the window.
    running : iterable of (int, float)
        Nodes and estimated end [s] of each running job.
    """

    def __init__(
        self, window: Window, now: float, free_nodes: int, saved_j: float, running: Iterable[tuple[int, float]]
    ) -> None:
        self._window, self._now, self._nodes = window, now, free_nodes
        self._saved_j = saved_j if now >= window.begin_s else 0.0
        edges = [each for each in (window.begin_s, window.end_s) if each > now]
        #: when the number of nodes in use changes, or the window begins or ends [s]; and how many there are from then
        self._time = np.array([now, *edges])
        self._used = np.zeros(len(self._time), dtype=np.int64)
        for width, end_s in running:
            self._add(now, end_s, width)
        self._account()

    def reserve(self, width: int, start_s: float, run_s: float) -> None:
        """Reserve nodes for a time, and the energy that they draw in it.

        Parameters
        ----------
        width : int
        start_s, run_s : float
            [s].
        """
        self._add(start_s, start_s + run_s, width)
        self._account()

    def earliest_s(self, width: int, run_s: float) -> float:
        """Return when a job fits first [s]; inf if it needs more nodes than there are.

        Parameters
        ----------
        width : int
        run_s : float
            Its requested time [s].
        """
        if width > self._nodes:
            return math.inf
        begin_s = self._window.begin_s
        start_s = self._free_from(width, run_s, self._now)
        if start_s >= self._window.end_s or start_s + run_s < begin_s:
            return start_s
        added_w = width * (self._window.busy_w - self._window.idle_w)
        if start_s < begin_s:
            # the later it starts before the window, the more it takes inside: the first place decides
            if self._is_saved(added_w, start_s, run_s):
                return start_s
            start_s = begin_s
        return self._free_from(width, run_s, max(start_s, self._saved_from(added_w, run_s)))

    # ------------------------------------------------------------------ inside

    def _add(self, start_s: float, end_s: float, width: int) -> None:
        for time in (start_s, end_s):
            at = int(np.searchsorted(self._time, time))
            if at == len(self._time) or self._time[at] != time:
                self._time = np.insert(self._time, at, time)
                self._used = np.insert(self._used, at, self._used[at - 1])
        low, high = np.searchsorted(self._time, (start_s, end_s))
        self._used[low:high] += width

    def _account(self) -> None:
        """Compute what is saved at each time, by what nodes draw from one to the next."""
        window, time = self._window, self._time
        added_w = window.busy_w - window.idle_w
        inside = (time[:-1] >= window.begin_s) & (time[:-1] < window.end_s)
        rate_w = np.where(inside, window.cap_w - window.power_w(0) - added_w * self._used[:-1], 0.0)
        self._saved = self._saved_j + np.append(0.0, np.cumsum(rate_w * np.diff(time)))
        low, high = np.searchsorted(time, (window.begin_s, window.end_s))
        #: times inside the window, both ends among them, and what is saved at them
        self._at, self._has = time[low : high + 1], self._saved[low : high + 1]

    def _free_from(self, width: int, run_s: float, since_s: float) -> float:
        """Return from when on so many nodes are free for a time, not before some time [s]."""
        too_few = self._used + width > self._nodes
        start_s = since_s
        at = int(np.searchsorted(self._time, since_s, side="right")) - 1
        for k in np.flatnonzero(too_few).tolist():
            if k < at:
                continue
            if self._time[k] >= start_s + run_s - time_tolerance(start_s + run_s) and k > at:
                break
            # behind the last row nothing is in use
            start_s = max(start_s, float(self._time[k + 1]))
        return start_s

    def _is_saved(self, added_w: float, start_s: float, run_s: float) -> bool:
        """Whether a job that starts before the window leaves enough saved at all times."""
        begin_s, end_s = self._window.begin_s, self._window.end_s
        stop_s = min(start_s + run_s, end_s)
        at = np.append(self._at, stop_s)
        has = np.append(self._has, np.interp(stop_s, self._at, self._has))
        takes = added_w * np.maximum(np.minimum(at, stop_s) - begin_s, 0.0)
        return not bool(((takes > 0.0) & (has < takes - 1e-9 * self._scale())).any())

    def _saved_from(self, added_w: float, run_s: float) -> float:
        """Return from when on, inside the window, a job takes nothing that is not there [s].

        It may have drawn at any time no more than is saved then: where less is saved than it takes in all, it starts no
        earlier than that would be drawn by then. That rises or falls with time from one place to the next, so that ends
        and where what is saved passes nothing, or all it takes, decide.
        """
        takes_j, slack_j = added_w * run_s, 1e-9 * self._scale()
        at, has = self._at, self._has
        points, saved = [at], [has]
        for level_j in (0.0, takes_j):
            crosses = (has[:-1] - level_j) * (has[1:] - level_j) < 0.0
            share = (level_j - has[:-1][crosses]) / np.diff(has)[crosses]
            points.append(at[:-1][crosses] + share * np.diff(at)[crosses])
            saved.append(np.full(len(share), level_j))
        point, there = np.concatenate(points), np.concatenate(saved)
        short = there < takes_j - slack_j
        short[len(at) :] = True
        bounds = point[short] - np.clip(there[short], 0.0, takes_j) / added_w
        return float(bounds.max(initial=self._now))

    def _scale(self) -> float:
        """Return how large the budget is [J], for what rounding may do."""
        return self._window.cap_w * (self._window.end_s - self._window.begin_s)
