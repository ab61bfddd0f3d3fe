"""When tasks arrive: Poisson processes whose rates follow waves or bursts (algorithms B2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.model.rules import DAY_S


@dataclass(frozen=True)
class Waves:
    """Arrival rates ``rate * (1 + amplitude * sin(2 pi waves t / day - phase))``.

    Attributes
    ----------
    rate : ndarray of float64, shape (task types,)
        Mean [1/s].
    amplitude : ndarray of float64
        0 to 1.
    waves : ndarray of int64
        Full waves in a day.
    phase : ndarray of float64
        [rad].
    """

    rate: Floats
    amplitude: Floats
    waves: Integers
    phase: Floats

    def relative_rate(self, process: Integers, time_s: Floats) -> Floats:
        """Return the rates of some processes at some times [s], divided by their means."""
        angle = 2 * np.pi * self.waves[process] * time_s / DAY_S - self.phase[process]
        return 1.0 + self.amplitude[process] * np.sin(angle)


def draw_waves(
    rng: np.random.Generator, rate: Floats, waves_per_day: tuple[int, int], amplitude: tuple[float, float]
) -> Waves:
    """Draw number of waves, amplitude and phase of each rate, all uniform.

    Parameters
    ----------
    rng : numpy.random.Generator
    rate : ndarray of float64, shape (task types,)
        Mean rates [1/s].
    waves_per_day : (int, int)
        Fewest and most.
    amplitude : (float, float)
        Smallest and largest, within [0, 1].
    """
    n = len(rate)
    return Waves(
        rate, rng.uniform(*amplitude, n), rng.integers(*waves_per_day, n, endpoint=True), rng.uniform(0.0, 2 * np.pi, n)
    )


def wave_arrivals(rng: np.random.Generator, waves: Waves, horizon_s: float) -> tuple[Floats, Integers]:
    """Draw the arrivals of all processes by exact thinning.

    Candidates come at each process's largest rate and stay with probability rate / largest rate.

    Parameters
    ----------
    rng : numpy.random.Generator
    waves : Waves
    horizon_s : float
        Arrivals lie in [0, horizon) [s].

    Returns
    -------
    time_s : ndarray of float64, shape (arrivals,)
        Not sorted.
    process : ndarray of int64, shape (arrivals,)
        Index into the rates.
    """
    largest = 1.0 + waves.amplitude
    candidates = rng.poisson(waves.rate * largest * horizon_s)
    process = np.repeat(np.arange(len(candidates)), candidates)
    time_s = rng.uniform(0.0, horizon_s, len(process))
    kept = rng.uniform(0.0, largest[process]) < waves.relative_rate(process, time_s)
    return time_s[kept], process[kept]


def profile_arrivals(rng: np.random.Generator, rate: Floats, edges: Floats, factor: Floats) -> tuple[Floats, Integers]:
    """Draw arrivals whose rates all follow one profile, Poisson within each of its intervals.

    Parameters
    ----------
    rng : numpy.random.Generator
    rate : ndarray of float64, shape (processes,)
        Mean rates [1/s].
    edges : ndarray of float64, shape (intervals + 1,)
        Ascending times [s].
    factor : ndarray of float64, shape (intervals,)
        Rate within each interval over the mean rate.

    Returns
    -------
    time_s : ndarray of float64, shape (arrivals,)
        Not sorted.
    process : ndarray of int64, shape (arrivals,)
        Index into the rates.
    """
    counts = rng.poisson(rate[:, None] * factor * np.diff(edges))
    process, interval = np.indices(counts.shape).reshape(2, -1).repeat(counts.ravel(), axis=1)
    return rng.uniform(edges[interval], edges[interval + 1]), process


def busy_hours_profile(
    busy_s: tuple[float, float], factor: float, begin_s: float, horizon_s: float
) -> tuple[Floats, Floats]:
    """Return a rate that is higher during some hours of each day, and lower at others.

    The mean over a day is 1 (paper 001, 4.2.5).

    Parameters
    ----------
    busy_s : (float, float)
        Begin and end of the busy hours since midnight [s].
    factor : float
        Rate in the busy hours over the mean rate.
    begin_s : float
        Time of day at time 0 [s].
    horizon_s : float
        [s].

    Returns
    -------
    edges : ndarray of float64, shape (intervals + 1,)
        Ascending times from 0 to the horizon [s].
    factor : ndarray of float64, shape (intervals,)
        Rate over the mean rate.
    """
    first, last = busy_s
    share = (last - first) / DAY_S
    quiet = (1 - factor * share) / (1 - share) if share < 1 else 0.0
    days = np.arange(-1, int(horizon_s / DAY_S) + 2)
    bounds = (days[:, None] * DAY_S + [first, last]).ravel() - begin_s
    inside = bounds[(bounds > 0) & (bounds < horizon_s)]
    edges = np.concatenate([[0.0], inside, [horizon_s]])
    of_day = ((edges[1:] + edges[:-1]) / 2 + begin_s) % DAY_S
    return edges, np.where((of_day >= first) & (of_day < last), factor, quiet)


@dataclass(frozen=True)
class Bursts:
    """How a bursty rate alternates; each pair is the smallest and largest of a uniform draw.

    Attributes
    ----------
    baseline_duration_s, burst_duration_s : (float, float)
        [s].
    baseline_factor, burst_factor : (float, float)
        Rate of an interval divided by the mean rate.
    """

    baseline_duration_s: tuple[float, float]
    burst_duration_s: tuple[float, float]
    baseline_factor: tuple[float, float]
    burst_factor: tuple[float, float]


def draw_intervals(rng: np.random.Generator, bursts: Bursts, horizon_s: float) -> tuple[Floats, Floats, Booleans]:
    """Draw the intervals of one bursty rate; a fair coin decides which kind comes first.

    Parameters
    ----------
    rng : numpy.random.Generator
    bursts : Bursts
    horizon_s : float
        The last interval is cut there [s].

    Returns
    -------
    edges : ndarray of float64, shape (intervals + 1,)
        [s].
    factor : ndarray of float64, shape (intervals,)
    is_burst : ndarray of bool, shape (intervals,)
    """
    edges, factors, kinds = [0.0], [], []
    is_burst = bool(rng.integers(2))
    while edges[-1] < horizon_s:
        duration = bursts.burst_duration_s if is_burst else bursts.baseline_duration_s
        factor = bursts.burst_factor if is_burst else bursts.baseline_factor
        edges.append(min(edges[-1] + rng.uniform(*duration), horizon_s))
        factors.append(rng.uniform(*factor))
        kinds.append(is_burst)
        is_burst = not is_burst
    return np.array(edges), np.array(factors), np.array(kinds, dtype=bool)


def burst_arrivals(rng: np.random.Generator, rate: Floats, bursts: Bursts, horizon_s: float) -> tuple[Floats, Integers]:
    """Draw the arrivals of bursty processes, Poisson within each interval.

    Parameters
    ----------
    rng : numpy.random.Generator
    rate : ndarray of float64, shape (task types,)
        Mean rates [1/s].
    bursts : Bursts
    horizon_s : float
        Arrivals lie in [0, horizon) [s].

    Returns
    -------
    time_s : ndarray of float64, shape (arrivals,)
        Not sorted.
    process : ndarray of int64, shape (arrivals,)
    """
    times, processes = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    for process, mean in enumerate(rate.tolist()):
        edges, factor, _ = draw_intervals(rng, bursts, horizon_s)
        counts = rng.poisson(mean * factor * np.diff(edges))
        start, end = np.repeat(edges[:-1], counts), np.repeat(edges[1:], counts)
        times.append(rng.uniform(start, end))
        processes.append(np.full(len(start), process))
    return np.concatenate(times), np.concatenate(processes)
