"""How long types of tasks take: random matrices, Downey's model of speed-up, and measured times and powers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats
from gridsched.errors import InputError, did_you_mean
from gridsched.files.csv_files import Format, Number, Table, Text, Whole
from gridsched.model.limits import SI_PREFIXES
from gridsched.model.pmf import from_samples
from gridsched.model.stochastic import ListedTimes
from gridsched.model.task_types import TaskTypes

# ----------------------
# How long types of tasks take: random ETC and APC matrices, and Downey's model of speed-up


#: Draws of the factors of a slower P-state before what is left is clamped.
MAX_REDRAWS = 50
#: Smaller ones are none: their squares would leave the range of floats.
_SMALLEST_COV = 1e-9


def gamma(rng: np.random.Generator, mean: ArrayLike, cov: float, shape: int | tuple[int, ...]) -> Floats:
    """Draw from gamma distributions given by mean and coefficient of variation.

    Parameters
    ----------
    rng : numpy.random.Generator
    mean : array_like
        Broadcasts to `shape`.
    cov : float
        Standard deviation / mean; less than 1e-9 gives the means themselves.
    shape : int or tuple of int
    """
    mean = np.broadcast_to(np.asarray(mean, dtype=np.float64), shape)
    if cov < _SMALLEST_COV:
        return mean.copy()
    return mean * rng.gamma(1.0 / cov**2, cov**2, shape)


def cvb(rng: np.random.Generator, mean: float, task_cov: float, machine_cov: float, rows: int, columns: int) -> Floats:
    """Draw a matrix by the coefficient-of-variation method.

    Parameters
    ----------
    rng : numpy.random.Generator
    mean : float
    task_cov : float
        Of the rows' means.
    machine_cov : float
        Of the entries of a row around its mean.
    rows, columns : int

    Returns
    -------
    ndarray of float64, shape (rows, columns)

    References
    ----------
    Ali, Siegel, Maheswaran, Hensgen, Ali: Representing task and machine heterogeneities for
    heterogeneous computing systems. Tamkang J. of Science and Engineering 3(3), 2000.
    """
    row_mean = gamma(rng, mean, task_cov, rows)
    return gamma(rng, row_mean[:, None], machine_cov, (rows, columns))


def pstate_factors(
    rng: np.random.Generator,
    rows: int,
    columns: int,
    power_factors: Sequence[float],
    *,
    type_cov: float,
    power_cov: float,
    time_cov: float,
) -> tuple[Floats, Floats]:
    """Draw by what each P-state multiplies time and dynamic power.

    Parameters
    ----------
    rng : numpy.random.Generator
    rows, columns : int
        Task types and machine types.
    power_factors : sequence of float
        Nominal factor f of the dynamic power of each P-state; that of P-state 0 is 1.
    type_cov : float
        Of q, one for each task type: how much it gains from speed.
    power_cov, time_cov : float
        Around the nominal factors.

    Returns
    -------
    time, power : ndarray of float64, shape (task types, machine types, P-states)
        ``1 / Gamma(sqrt(q f), time_cov)``, at least 1, and ``Gamma(f, power_cov)``; 1 in P-state 0.

    Notes
    -----
    P-state 0 must be the fastest: a task type with a time factor below 1 gets a new q and new
    factors, up to `MAX_REDRAWS` times; what is then still below 1 is set to 1.
    """
    f = np.asarray(power_factors, dtype=np.float64)
    shape = (rows, columns, len(f))
    power = gamma(rng, f, power_cov, shape)
    power[..., 0] = 1.0
    time = np.zeros(shape)
    again = np.arange(rows)
    for _ in range(1 + MAX_REDRAWS):
        q = gamma(rng, 1.0, type_cov, len(again))
        speed = np.sqrt(q[:, None, None] * f)
        time[again] = 1.0 / gamma(rng, speed, time_cov, (len(again), columns, len(f)))
        time[..., 0] = 1.0
        again = np.flatnonzero((time < 1.0).any(axis=(1, 2)))
        if not len(again):
            break
    return np.maximum(time, 1.0), power


def downey_time(nodes: ArrayLike, parallelism: ArrayLike, sigma: ArrayLike) -> Floats:
    """Return the run time T(n) in units of the parallel part's shortest time.

    Parameters
    ----------
    nodes : array_like
        n, at least 1.
    parallelism : array_like
        A, the mean parallelism, at least 1.
    sigma : array_like
        Length of the sequential part, which is also the spread of the parallelism; at least 1.

    Returns
    -------
    ndarray of float64
        Of the shape to which the arguments broadcast.

    Notes
    -----
    ``T(n) = sigma + n_max / n`` up to ``n_max = A + A sigma - sigma`` nodes, ``sigma + 1`` beyond;
    ``T(1) = A (1 + sigma)``.

    References
    ----------
    A. B. Downey: A model for speedup of parallel programs. Technical report UCB/CSD-97-933,
    University of California, Berkeley, 1997.
    """
    n, a = np.asarray(nodes, dtype=np.float64), np.asarray(parallelism, dtype=np.float64)
    sequential = np.asarray(sigma, dtype=np.float64)
    most = a + a * sequential - sequential
    return sequential + np.maximum(most / n, 1.0)


def downey_speedup(nodes: ArrayLike, parallelism: ArrayLike, sigma: ArrayLike) -> Floats:
    """Return how much faster n nodes are than one: ``T(1) / T(n)``, at most A.

    Parameters
    ----------
    nodes, parallelism, sigma : array_like
        As for `downey_time`.
    """
    return downey_time(1, parallelism, sigma) / downey_time(nodes, parallelism, sigma)


# ----------------------
# Measured run times and powers: as ETC and APC, and as distributions


MEASUREMENTS = Format(
    {
        "machine": Text(is_name=True),
        "program": Text(is_name=True),
        "cores": Whole(1),
        "freq": Text(),
        "time_s": Number(above=True),
        "avg_power_W": Number(),
    },
    rows="measurements",
)
_FREQUENCY = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kMGT]?)Hz\Z")


def read_measurements(path: str | Path, machines: Mapping[str, int] | None = None) -> TaskTypes:
    """Read a table of measurements, one line for each program, machine and setting.

    Parameters
    ----------
    path : path
        CSV ``machine,program,cores,freq,time_s,avg_power_W``; the frequency with its unit, as
        ``2.10GHz``.
    machines : mapping of str to int, optional
        Number of machines of each type; others of the file are left out. Default: one of each.

    Returns
    -------
    TaskTypes
        Programs are task types and machines host types, both in the file's order (host types in
        that of `machines`, if given).

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.

    Notes
    -----
    A task has a whole machine to itself, with as many cores as the machine was ever measured with;
    lines with fewer are passed over. P-state k of a machine is its k-th highest frequency at that
    number of cores; where a program was not measured at it, it is infeasible.
    """
    table = MEASUREMENTS.read(path)
    import pandas as pd  # slow to load, and many processes start that do not need it

    rows = pd.DataFrame({name: table[name] for name in MEASUREMENTS.columns})
    rows["freq"] = [_frequency(table, row) for row in range(len(table))]
    counts = dict.fromkeys(rows["machine"], 1) if machines is None else dict(machines)
    for name in counts:
        if name not in set(rows["machine"]):
            hint = did_you_mean(name, rows["machine"].unique().tolist())
            raise InputError(f"{path}: no measurements of machine {name!r}. {hint}".rstrip())
    most = rows.groupby("machine")["cores"].transform("max")
    rows = rows[rows["machine"].isin(counts) & (rows["cores"] == most)]
    again = rows.duplicated(["machine", "program", "freq"])
    if again.any():
        raise table.fail(int(again.idxmax()), "freq", "an earlier line has the same machine, program, cores and freq")
    types, columns = rows["program"].unique().tolist(), list(counts)
    level = rows.groupby("machine")["freq"].rank("dense", ascending=False).astype(int) - 1
    place = (rows["program"].map(types.index), rows["machine"].map(columns.index), level)
    etc = np.full((len(types), len(columns), 1 + level.max()), np.inf)
    apc = np.zeros(etc.shape)
    etc[place], apc[place] = rows["time_s"], rows["avg_power_W"]
    host_type = np.repeat(np.arange(len(columns)), list(counts.values()))
    return TaskTypes(etc, apc, host_type, tuple(types), tuple(columns))


def _frequency(table: Table, row: int) -> float:
    """Return the frequency of a line [Hz]."""
    match = _FREQUENCY.match(table["freq"][row])
    if match is None:
        raise table.fail(row, "freq", "it must be a frequency with its unit, as 2.10GHz")
    return float(match[1]) * SI_PREFIXES[match[2]]


RUN_TIMES = Format(
    {
        "task_type": Text(is_name=True),
        "host_type": Text(is_name=True),
        "pstate": Whole(0),
        "time_s": Number(above=True),
    },
    rows="measurements",
)


@dataclass(frozen=True)
class MeasuredTimes:
    """Measured run times of a system's task types.

    Attributes
    ----------
    task_types : tuple of str
        In the order in which they are first measured.
    times : ListedTimes
        The measurements as they are [s].
    mean_s : ndarray of float64, shape (task types, host types, P-states)
        Their means [s], infinite where there is none.
    """

    task_types: tuple[str, ...]
    times: ListedTimes
    mean_s: Floats


def read_run_times(path: str | Path, host_types: Sequence[str], pstates: int) -> MeasuredTimes:
    """Read all measured run times of a system; its task types are those that were measured.

    Parameters
    ----------
    path : path
        CSV ``task_type,host_type,pstate,time_s``.
    host_types : sequence of str
    pstates : int
        How many the hosts have.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value, or the file if it is empty.
    """
    table = RUN_TIMES.read(path)
    names = tuple(dict.fromkeys(table["task_type"]))
    for row, pstate in enumerate(table["pstate"]):
        if pstate >= pstates:
            raise table.fail(row, "pstate", f"the hosts have 0 to {pstates - 1}")
    times = _listed_times(table, names, host_types)
    return MeasuredTimes(names, times, times.means((len(names), len(host_types), pstates)))


def _listed_times(table: Table, task_types: Sequence[str], host_types: Sequence[str]) -> ListedTimes:
    """Gather the measurements of each task type on each host type, as they are."""
    rows = table.places("task_type", task_types, table.path)
    columns = table.places("host_type", host_types, "the ETC matrix")
    samples = defaultdict(list)
    for *key, time_s in zip(rows, columns, table["pstate"], table["time_s"], strict=True):
        samples[tuple(key)].append(time_s)
    return ListedTimes({key: from_samples(times) for key, times in samples.items()})
