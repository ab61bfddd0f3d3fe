"""The least energy of tasks that wait for each other, within a makespan, by a linear program over P-states.

Let task i of work w_i spend the share x_io of it in option o: a P-state of a kind of hosts, of core speed v_o. Let
the run take T. Above the least power of all hosts an option draws q_o W a core (the less of one busy core and of all
of them: SimGrid's power is a line between). Then a schedule of at most the makespan M is a solution of ::

    min   base T + sum_io w_i q_o / v_o x_io
    s.t.  sum_o x_io = 1,    d_i = sum_o w_i / v_o x_io
          C_j >= C_i + delay + d_j  where j waits for i,   C_i >= r_i + d_i,   C_i <= T
          sum_{i, o of kind k} w_i / v_o x_io <= cores_k T,    T_least <= T <= M

with ends C_i and submissions r_i, both from the first submission on. Tasks may be divided among hosts, but their
pieces follow each other; data take no time.

**The bound is not a solver's value.** HiGHS keeps constraints up to a tolerance. What counts is Lagrange's function at
its prices: f_ij of the edges, s_i of the submissions, m_k of the cores. Prices of edges are made a flow first: what
comes into a task, s_i included, leaves it in the solver's proportions. A flow is a sum of paths, and no path is longer
than T; so with L = sum_i s_i and l_i, what flows through task i, every schedule needs at least ::

    sum_i min_o w_i / v_o (q_o + l_i + m_k(o)) + sum_i s_i r_i + sum_ij f_ij delay_ij
        + min_T T (base - L - sum_k m_k cores_k)

whatever the prices are. Where the program would be too large, cores get no price, which leaves of all options the few
corners of their lower hull; where that is too large, too, or SciPy is not installed, the flow goes along one longest
path alone, and the best L is found among the corners.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.extras import load
from gridsched.long_work import SOLVING, long_work
from gridsched.model.tasks import Tasks
from gridsched.optimize.bag_bounds import UsableHost, host_power_curve
from gridsched.optimize.task_paths import ends_of, task_paths

#: A program of more shares than the first leaves the cores out; of more shares and edges than the second it is not
#: solved, and the longest path alone counts. Each takes about a second.
MOST_SHARES, MOST_TERMS = 3_000, 6_000
_PROGRAMME = "The bound of energy of tasks that wait for each other"


@dataclass(frozen=True)
class Options:
    """What a task may run on.

    Attributes
    ----------
    speed, extra_w : ndarray of float64, shape (options,)
        Of a core [flop/s]; what it draws at least above its host's least power [W].
    kind : ndarray of int64, shape (options,)
        Its kind of hosts.
    cores : ndarray of float64, shape (kinds,)
        Cores of all hosts of a kind; empty where they are not counted.
    """

    speed: Floats
    extra_w: Floats
    kind: Integers
    cores: Floats

    def without_cores(self) -> Options:
        """Return those that are the cheapest at some price of time, as if there were cores enough."""
        order = np.lexsort((self.extra_w, -self.speed))
        kept: list[int] = []
        for k in order.tolist():
            if kept and self._joules(k) >= self._joules(kept[-1]):
                continue
            while len(kept) > 1 and self._price(kept[-2], kept[-1]) <= self._price(kept[-1], k):
                kept.pop()
            kept.append(k)
        rows = np.array(kept)
        return Options(self.speed[rows], self.extra_w[rows], np.zeros(len(rows), dtype=np.int64), np.zeros(0))

    def _joules(self, k: int) -> float:
        return float(self.extra_w[k] / self.speed[k])

    def _price(self, faster: int, slower: int) -> float:
        """Return the price of time at which two options cost the same [W]: above it the faster one is cheaper."""
        time = 1 / self.speed[slower] - 1 / self.speed[faster]
        return (self._joules(faster) - self._joules(slower)) / float(time) if time > 0 else math.inf

    @property
    def prices(self) -> list[float]:
        """Prices of time at which another option becomes the cheapest [W], where there are cores enough."""
        return [self._price(k, k + 1) for k in range(len(self.speed) - 1)]


def options_of(hosts: Sequence[UsableHost]) -> Options:
    """Return the P-states of each kind of hosts; those that are slower and dearer than another are left out."""
    kinds: dict[Any, int] = {}
    for host in hosts:
        key = (host.cores, host.states, host.off_w)
        kinds[key] = kinds.get(key, 0) + 1
    rows = []
    for kind, (cores, states, off_w) in enumerate(kinds):
        least_w = host_power_curve(cores, states, off_w)[0][1]
        of_kind = []
        for state in states:
            one_w = state.epsilon_w + (state.busy_w - state.epsilon_w) / cores
            of_kind.append((state.speed, min(one_w - least_w, (state.busy_w - least_w) / cores)))
        best = np.inf
        for speed, watts in sorted(of_kind, key=lambda each: (-each[0], each[1])):
            if watts / speed < best:
                best = watts / speed
                rows.append((speed, watts, kind))
    speed, watts, of = zip(*rows, strict=True)
    cores_of = [cores * count for (cores, _, _), count in kinds.items()]
    return Options(np.array(speed), np.array(watts), np.array(of, dtype=np.int64), np.array(cores_of, dtype=np.float64))


@dataclass(frozen=True)
class Prices:
    """Prices of time: whatever they are, `PathEnergy.value` is a bound.

    Attributes
    ----------
    start : ndarray of float64, shape (tasks,)
        What flows into the paths that begin with each task [W].
    edge : ndarray of float64, shape (edges,)
        What flows along each edge [W].
    kind : ndarray of float64, shape (kinds,)
        Of a second of a core [W].
    """

    start: Floats
    edge: Floats
    kind: Floats


@dataclass
class PathEnergy:
    """What tasks that wait for each other consume at least, within a makespan.

    Parameters
    ----------
    tasks : Tasks
    hosts : sequence of UsableHost
    base_w : float
        Least power of all hosts [W].
    makespan_s : float
        That no schedule is below [s].
    """

    tasks: Tasks
    hosts: Sequence[UsableHost]
    base_w: float
    makespan_s: float
    _known: dict[float, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._waits, self._on, self._delay_s = ends_of(self.tasks.dependencies)
        self._submit_s = self.tasks.submit_time_s - self.tasks.submit_time_s[0]
        options = options_of(self.hosts)
        self._corners = options.without_cores()
        is_small = len(self.tasks) * len(options.speed) <= MOST_SHARES
        self._options = options if is_small else self._corners
        self._time_s = self.tasks.flops[:, None] / self._options.speed

    @property
    def is_whole(self) -> bool:
        """Whether a program of all paths is solved, not one path alone."""
        return self._time_s.size + len(self._waits) <= MOST_TERMS and find_spec("scipy") is not None

    def least_j(self, makespan_s: float) -> float:
        """Return the energy from the first submission on that no schedule of at most this makespan is below [J].

        Parameters
        ----------
        makespan_s : float
            May be infinite; if only rounding makes it less than the bound, the bound counts.
        """
        most_s = max(makespan_s, self.makespan_s)
        if most_s not in self._known:
            found = self._along_one_path(most_s)
            if self.is_whole:
                found = max(found, self.value(self._solved(most_s), most_s))
            self._known[most_s] = found
        return self._known[most_s]

    def value(self, prices: Prices, most_s: float) -> float:
        """Return Lagrange's function at some prices, which no schedule of at most `most_s` is below [J]."""
        through, along = self._flow(prices)
        options, core_w = self._options, np.maximum(prices.kind, 0.0)
        extra_w = options.extra_w + core_w[options.kind] if len(core_w) else options.extra_w
        each = self._time_s * (extra_w + through[:, None])
        start = np.maximum(prices.start, 0.0)
        last = self._length_j(float(start.sum() + (core_w * options.cores).sum()), most_s)
        return float(each.min(axis=1).sum() + (start * self._submit_s).sum() + (along * self._delay_s).sum()) + last

    def _length_j(self, price_w: float, most_s: float) -> float:
        """Return what the length of the run adds at least if a second of it has a price [J]."""
        slope = self.base_w - price_w
        return slope * (self.makespan_s if slope >= 0 else most_s)

    def _flow(self, prices: Prices) -> tuple[Floats, Floats]:
        """Return what flows through each task and along each edge, if nothing is lost on the way [W]."""
        through = np.maximum(prices.start, 0.0).tolist()
        wanted = np.maximum(prices.edge, 0.0)
        leaves = np.bincount(self._on, wanted, minlength=len(through))
        share = np.divide(wanted, leaves[self._on], out=np.zeros(len(wanted)), where=leaves[self._on] > 0).tolist()
        along = [0.0] * len(share)
        for row, (task, on) in enumerate(zip(self._waits.tolist(), self._on.tolist(), strict=True)):
            along[row] = through[on] * share[row]
            through[task] += along[row]
        return np.array(through), np.array(along)

    @cached_property
    def _path(self) -> tuple[float, float]:
        """Return the work on a longest path [flop], and how long it waits for a submission or by delays [s]."""
        fastest = float(self._corners.speed[0])
        paths = task_paths(self.tasks, self.tasks.flops / fastest)
        path = paths.critical(self.tasks.dependencies)
        work = float(self.tasks.flops[path].sum())
        return work, max(paths.length_s * (1 - 1e-12) - work / fastest, 0.0)

    def _along_one_path(self, most_s: float) -> float:
        """Return Lagrange's function at the best prices of which all flow goes along a longest path [J].

        It is concave in the flow, with corners where another option becomes the cheapest, and at the base.
        """
        options, (work, waits_s) = self._corners, self._path
        other_j = (float(self.tasks.flops.sum()) - work) * float((options.extra_w / options.speed).min())
        flows = [each for each in (0.0, self.base_w, *options.prices) if np.isfinite(most_s) or each <= self.base_w]
        return other_j + max(
            work * float(((options.extra_w + flow) / options.speed).min())
            + flow * waits_s
            + self._length_j(flow, most_s)
            for flow in flows
        )

    def _solved(self, most_s: float) -> Prices:
        """Return the prices that HiGHS finds."""
        sparse, optimize = load("scipy.sparse", _PROGRAMME), load("scipy.optimize", _PROGRAMME)
        options, (n, n_options) = self._options, self._time_s.shape
        scale_s = self.makespan_s or 1.0
        x = np.arange(n * n_options)
        task, option = np.divmod(x, n_options)
        share_s = self._time_s.ravel() / scale_s
        cost = self._time_s.ravel() * options.extra_w[option]
        scale_j = max(float(cost.max()), self.base_w * scale_s) or 1.0
        # columns: shares, then ends, then the length
        end, length, columns = n * n_options, n * n_options + n, n * n_options + n + 1
        lasts = sparse.csr_array((share_s, (task, x)), shape=(n, columns))
        ends = sparse.csr_array((np.ones(n), (np.arange(n), end + np.arange(n))), shape=(n, columns))
        waits, on = self._waits, self._on
        begins = np.flatnonzero(~np.isin(np.arange(n), waits) | (self._submit_s > 0))
        lasts_of_all = np.flatnonzero(~np.isin(np.arange(n), on))
        limit = sparse.csr_array(
            (np.ones(len(lasts_of_all)), (np.arange(len(lasts_of_all)), np.full(len(lasts_of_all), length))),
            shape=(len(lasts_of_all), columns),
        )
        rows = [ends[on] - ends[waits] + lasts[waits], (lasts - ends)[begins], ends[lasts_of_all] - limit]
        n_kinds = len(options.cores)
        if n_kinds:
            of_kind = sparse.csr_array((share_s, (options.kind[option], x)), shape=(n_kinds, columns))
            used = sparse.csr_array((options.cores, (np.arange(n_kinds), np.full(n_kinds, length))), of_kind.shape)
            rows.append(of_kind - used)
        limits = sparse.vstack(rows, format="csr")
        right = np.zeros(limits.shape[0])
        right[: len(waits)] = -self._delay_s / scale_s
        right[len(waits) : len(waits) + len(begins)] = -self._submit_s[begins] / scale_s
        whole = sparse.csr_array((np.ones(len(x)), (task, x)), shape=(n, columns))
        objective = np.concatenate([cost, np.zeros(n), [self.base_w * scale_s]]) / scale_j
        bounds = np.tile((0.0, np.inf), (columns, 1))
        bounds[length] = self.makespan_s / scale_s, most_s / scale_s
        with long_work(SOLVING):
            answer = optimize.linprog(objective, limits, right, whole, np.ones(n), bounds=bounds, method="highs-ds")
        start, kind = np.zeros(n), np.zeros(n_kinds)
        if answer.status:  # no prices, which is a bound too
            return Prices(start, np.zeros(len(waits)), kind)
        watts = np.maximum(-answer.ineqlin.marginals, 0.0) * (scale_j / scale_s)
        edge, kind = watts[: len(waits)], watts[len(watts) - n_kinds :]
        start[begins] = watts[len(waits) : len(waits) + len(begins)]
        if not np.isfinite(most_s):  # without an end all prices together are at most the base
            total = float(start.sum() + (kind * options.cores).sum())
            shrink = min(1.0, self.base_w * (1 - 1e-12) / total) if total else 0.0
            edge, start, kind = edge * shrink, start * shrink, kind * shrink
        return Prices(start, edge, kind)
