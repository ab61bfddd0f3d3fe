"""What a page of a run shows, as columns: bars by host, power, energy and queues over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.analysis.graph_layout import RunGraph, run_graph
from gridsched.arrays import Floats, Integers
from gridsched.energy import grid_energy_between, trace_energy
from gridsched.errors import counted
from gridsched.model.signals import J_PER_KWH, Signal
from gridsched.model.timeline import bars_of
from gridsched.model.trace import Trace
from gridsched.power import TracePower, grid_power, trace_power

#: More bars than this are not drawn, nor more instants of a curve; steps are in their place.
MOST_BARS, MOST_SWITCHED, MOST_INSTANTS, STEPS = 150_000, 5_000, 20_000, 4_000
#: More data between hosts are not drawn, nor graphs of more edges.
MOST_SENT, MOST_EDGES = 3_000, 6_000
Columns = dict[str, NDArray[Any]]


@dataclass
class ShownRun:
    """A run as a page shows it.

    Attributes
    ----------
    title : str
        Who ran what.
    trace : Trace
    notes : list of str
        What is left out of the page, or shown in another way.
    """

    title: str
    trace: Trace
    notes: list[str] = field(default_factory=list)

    @cached_property
    def _power(self) -> TracePower:
        return trace_power(self.trace)

    @cached_property
    def row_of(self) -> Integers:
        """Row of each host, shape (hosts,): zone after zone."""
        hosts = [host for cluster in self.trace.platform.clusters for host in cluster.hosts]
        rows = np.empty(len(hosts), dtype=np.int64)
        rows[hosts] = np.arange(len(hosts))
        return rows

    @property
    def host_names(self) -> list[str]:
        """Names of the hosts by row."""
        hosts = self.trace.platform.hosts
        return [hosts[h].name for h in np.argsort(self.row_of).tolist()]

    @property
    def job_names(self) -> list[str]:
        """Ids of the jobs, where these are not numbers; then the bars have their places here."""
        labels = self.trace.tasks.labels
        return labels.tolist() if labels.dtype.kind == "U" else []

    @property
    def users(self) -> tuple[str, ...]:
        """The users of the jobs, if a log names them."""
        user = self.trace.tasks.attributes.get("user")
        return () if user is None else user.names

    # ------------------------------------------------------------------ bars

    def bars(self) -> Columns:
        """Return a column for each field of a bar, those of most host time first.

        ``left, right`` [s], ``top, bottom`` [rows], ``row``, ``last`` (its first and last row), ``job``,
        ``user`` (its place in `users`, or -1), ``pstate``, ``joules``, ``wait`` [s], ``outcome``.
        """
        trace, runs = self.trace, self.trace.executions
        bars = bars_of(trace, self.row_of)
        host_s = (runs["end"] - runs["start"])[bars.execution] * bars.rows * bars.cores
        keep = self._longest(host_s, MOST_BARS, "bars")
        each, first, rows = bars.execution[keep], bars.top[keep], bars.rows[keep]
        core, n_cores = bars.core[keep], bars.cores[keep]
        of_bar, cores = runs[each], trace.platform.cores[np.argsort(self.row_of)][first]
        task = of_bar["task"]
        height = np.where(rows > 1, rows - 0.1, n_cores * (0.9 / cores))
        top = first - 0.45 + core * (0.9 / cores)
        user = trace.tasks.attributes.get("user")
        return {
            "left": of_bar["start"],
            "right": of_bar["end"],
            "top": top,
            "bottom": top + height,
            "row": first,
            "last": first + rows - 1,
            "job": task if self.job_names else trace.tasks.labels[task],
            "user": np.full(len(task), -1) if user is None else user.codes[task],
            "pstate": of_bar["pstate"],
            "joules": trace_energy(trace, self._power).execution_j[each],
            "wait": of_bar["start"] - trace.tasks.submit_time_s[task],
            "outcome": of_bar["outcome"],
        }

    def switched(self) -> Columns:
        """Return when hosts are off, boot or shut down: ``left, right`` [s], ``top, bottom`` [rows]."""
        timeline = self._power.timeline
        rows = timeline.is_off | timeline.is_booting | timeline.is_shutting_down
        places = np.flatnonzero(rows & (timeline.duration_s > 0))
        places = places[self._longest(timeline.duration_s[places], MOST_SWITCHED, "times in which a host is off")]
        row = self.row_of[timeline.host[places]]
        return {"left": timeline.time[places], "right": timeline.end[places], "top": row - 0.45, "bottom": row + 0.45}

    def _longest(self, host_s: Floats, most: int, what: str) -> Integers:
        """Return which are drawn of what takes so much host time each [s], those of most time first."""
        order = np.argsort(-host_s, kind="stable")
        kept = order[:most]
        if len(kept) < len(order):
            share = host_s[kept].sum() / host_s.sum()
            self.notes.append(f"The page has the {most:,} longest of {len(order):,} {what}: {share:.2%} of their time.")
        return kept

    # ------------------------------------------------------------------ what tasks make for each other

    def sent(self) -> Columns:
        """Return data on their way between hosts: ``begin, end`` [s], ``source, target`` (rows), ``bytes``, tasks.

        ``maker`` and ``taker`` are labels of the tasks, the second that of the first that wanted them.
        """
        sent = self.trace.transfers[self.trace.transfers["source"] != self.trace.transfers["target"]]
        if len(sent) > MOST_SENT:
            self.notes.append(f"The page has the {MOST_SENT:,} largest of {len(sent):,} transfers between hosts.")
            sent = sent[np.argsort(-sent["size_bytes"], kind="stable")[:MOST_SENT]]
        columns: Columns = {name: sent[name] for name in ("begin", "end")}
        columns |= {name: self.row_of[sent[name]] for name in ("source", "target")}
        pairs, staged = self.trace.tasks.dependencies, self.trace.tasks.staged
        labels = self.trace.tasks.labels.astype(str)
        makers = [] if pairs is None else labels[pairs.by_task().on].tolist()
        takers = [] if pairs is None else labels[pairs.by_task().task].tolist()
        if staged is not None:  # files that no task makes
            makers += ["none"] * len(staged)
            takers += labels[staged.task].tolist()
        columns |= {"maker": np.array(makers)[sent["pair"]], "taker": np.array(takers)[sent["pair"]]}
        return columns | {"bytes": sent["size_bytes"]}

    @cached_property
    def graph(self) -> RunGraph | None:
        """The graph of the tasks; None where none waits for another, or there are too many edges to draw."""
        pairs = self.trace.tasks.dependencies
        if pairs is None or not pairs.n_pairs:
            return None
        if pairs.blocks or len(pairs) > MOST_EDGES:
            self.notes.append(f"The graph of the tasks has {pairs.n_pairs:,} edges; up to {MOST_EDGES:,} are drawn.")
            return None
        return run_graph(self.trace)

    # ------------------------------------------------------------------ curves

    def curves(self) -> Columns:
        """Return what holds from each ``time`` [s] on, to the end of the run.

        ``power`` [W] and, up to then, ``energy`` [J]; ``waiting`` and ``running`` jobs.
        """
        trace, end = self.trace, float(self.trace.horizon_s)
        times = self._instants(end)
        start, submit = trace.start_time_s, trace.tasks.submit_time_s
        started = ~np.isnan(start)
        if not started.all():
            self.notes.append(
                f"{counted(int(np.count_nonzero(~started)), 'job never starts', 'jobs never start')} (not counted as "
                "waiting)."
            )
        runs = trace.executions
        columns = {
            "time": times,
            "waiting": _count(submit[started], times) - _count(start[started], times),
            "running": _count(runs["start"], times) - _count(runs["end"], times),
        }
        if self.trace.platform.has_energy:
            joules = grid_energy_between(trace, times, self._power)
            lasts = np.diff(times)
            watts = np.divide(joules, lasts, out=np.zeros(len(joules)), where=lasts > 0)
            columns["power"] = np.append(watts, watts[-1:] if len(watts) else 0.0)
            columns["energy"] = np.append(0.0, np.cumsum(joules))
        return columns

    def _instants(self, end: float) -> Floats:
        """Return when something changes [s], or steps in place of too many such times."""
        runs = self.trace.executions
        times = np.concatenate([[0.0, end], runs["start"], runs["end"], self.trace.tasks.submit_time_s])
        if self.trace.platform.has_energy:
            times = np.concatenate([times, grid_power(self.trace, self._power).time])
        times = np.unique(times[times <= end])
        if len(times) <= MOST_INSTANTS:
            return times
        self.notes.append(
            f"Curves are in {STEPS:,} equal steps: mean power, exact energy, and jobs at the begin of each step."
        )
        return np.linspace(0.0, end, STEPS + 1)

    def traffic(self) -> Columns:
        """Return rates over links from each ``time`` [s] on: ``links`` together, and the ``busiest`` one [byte/s].

        Nothing where the run has no record of them.
        """
        sent, step_s = self.trace.traffic_bytes, self.trace.traffic_step_s
        if not sent.size:
            return {}
        several = -(-sent.shape[1] // STEPS)
        first = np.arange(0, sent.shape[1], several)
        edges = np.minimum(
            step_s * np.append(first, sent.shape[1]), max(self.trace.horizon_s, step_s * (first[-1] + 1))
        )
        busiest = int(np.argmax(sent.sum(axis=1)))
        columns = {"time": edges}
        for name, each in (("links", sent.sum(axis=0)), ("busiest", sent[busiest])):
            rates = np.add.reduceat(each, first) / np.diff(edges)
            columns[name] = np.append(rates, rates[-1])
        return columns

    def signals(self) -> dict[str, list[Columns]]:
        """Return by its unit what joules weigh at each site: ``time`` [s], ``value``."""
        signals: dict[str, Signal] = {}
        if self.trace.carbon is not None:
            signals["carbon [g/kWh]"] = self.trace.carbon
        if not self.trace.energy_weights.is_even and self.trace.energy_weights.per_j is not None:
            signals["budget's price [1/kWh]"] = self.trace.energy_weights
        return {unit: [self._stretches(site) for site in each.sites or (each,)] for unit, each in signals.items()}

    def _stretches(self, signal: Signal) -> Columns:
        edges, weights = signal.stretches(0.0, self.trace.horizon_s)
        per_kwh = np.array([signal.amount(each) for each in weights.tolist()]) * J_PER_KWH
        return {"time": edges, "value": np.append(per_kwh, per_kwh[-1:])}


def _count(events: Floats, times: Floats) -> Integers:
    """Return how many events there were up to and at each time."""
    return np.searchsorted(np.sort(events), times, side="right")
