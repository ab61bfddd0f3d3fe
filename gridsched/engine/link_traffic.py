"""Bytes over each link in steps of time, as executions by profiles send them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

import numpy as np

from gridsched.arrays import Floats
from gridsched.model.timeline import spread_evenly

#: More steps, and more numbers of all links together, are not kept: two steps become one.
MOST_STEPS, MOST_NUMBERS = 20_000, 4_000_000


class LinkTraffic:
    """What crossed each link in each step of time; memory is bounded, so steps of long runs become longer.

    Parameters
    ----------
    step_s : float
        Length of a step [s].

    Attributes
    ----------
    step_s : float
        As it is now [s]: doubled as often as was necessary.
    """

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self._rows: dict[str, int] = {}
        #: Bytes of each link in each step, with room for more of both.
        self._bytes = np.zeros((0, 0))
        self._n_steps = 0

    def add(self, links: Sequence[str], link_bytes: Floats, done: Sequence[tuple[float, float]]) -> None:
        """Add what is sent while shares of it go over the links at constant rates.

        Parameters
        ----------
        links : sequence of str
        link_bytes : ndarray of float64, shape (links,)
            Over each of them, if all of it is sent [byte].
        done : sequence of (float, float)
            Times in ascending order [s], and the share that has been sent by each of them.
        """
        time, share = np.array(done).T
        sent = np.diff(share)
        if not links or not sent.any():
            return
        rows = np.array([self._rows.setdefault(link, len(self._rows)) for link in links])
        first, last = self._room(float(time[0]), float(time[-1]))
        edges: Floats = np.asarray(self.step_s * np.arange(first, last + 1), dtype=np.float64)
        edges[0], edges[-1] = min(edges[0], time[0]), max(edges[-1], time[-1])  # a quotient may be rounded
        shares = spread_evenly(time[:-1], time[1:], sent, edges)
        self._bytes[rows, first:last] += np.outer(link_bytes, shares)

    def bytes_of(self, links: Iterable[str]) -> Floats:
        """Return the bytes of some links in each step, shape (links, steps) [byte]."""
        nothing = np.zeros(self._n_steps)
        rows = [self._bytes[self._rows[link], : self._n_steps] if link in self._rows else nothing for link in links]
        return np.array(rows).reshape(len(rows), self._n_steps)

    def _room(self, begin: float, end: float) -> tuple[int, int]:
        """Make room for all links until a time [s]; return the first step of a stretch, and the one after its last."""
        most = max(min(MOST_STEPS, MOST_NUMBERS // len(self._rows)), 1)
        while max(self._n_steps, ceil(end / self.step_s), int(begin / self.step_s) + 1) > most:
            self._double()
        first = int(begin / self.step_s)
        last = max(ceil(end / self.step_s), first + 1)
        self._n_steps = max(self._n_steps, last)
        rows, steps = self._bytes.shape
        if rows < len(self._rows) or steps < last:
            more = np.zeros((max(rows, 2 * len(self._rows)), max(steps, min(2 * last, most))))
            more[:rows, :steps] = self._bytes
            self._bytes = more
        return first, last

    def _double(self) -> None:
        """Make one step of two."""
        rows, steps = self._bytes.shape
        even = np.zeros((rows, steps + steps % 2))
        even[:, :steps] = self._bytes
        self._bytes = even[:, ::2] + even[:, 1::2]
        self.step_s *= 2
        self._n_steps = ceil(self._n_steps / 2)
