"""Clusters and types of parallel tasks of paper 001, drawn (section 4.2; algorithms C1, C2)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.model.seeds import random_stream
from gridsched.model.utility import UtilityFunctions
from gridsched.systems.utility.parallel_day import ParallelDay
from gridsched.systems.utility.sampled_utility import draw_priorities
from gridsched.workloads.etc_matrices import gamma
from gridsched.workloads.speedup import downey_time


@dataclass(frozen=True)
class Clusters:
    """Clusters of equal nodes.

    Attributes
    ----------
    names : tuple of str
    nodes : ndarray of int64, shape (clusters,)
    cores_per_node : ndarray of int64, shape (clusters,)
    """

    names: tuple[str, ...]
    nodes: Integers
    cores_per_node: Integers

    @property
    def cores(self) -> Integers:
        """Cores of each cluster, shape (clusters,)."""
        return self.nodes * self.cores_per_node

    def nodes_for(self, cores: Integers) -> Integers:
        """Return the nodes that hold some cores in each cluster, shape (tasks, clusters)."""
        return -(-cores[:, None] // self.cores_per_node)


@dataclass(frozen=True)
class Demand:
    """What tasks ask for, in order of their submission.

    Attributes
    ----------
    submit_time_s : ndarray of float64, shape (tasks,)
    task_type : ndarray of int64, shape (tasks,)
    cores : ndarray of int64, shape (tasks,)
    labels : ndarray of int64, or None
        Ids shown to people.
    utility : UtilityFunctions or None
        Where it comes with the tasks.
    name : str
        Where they come from, if from a file.
    notes : tuple of str
        What people should know of where they come from.
    """

    submit_time_s: Floats
    task_type: Integers
    cores: Integers
    labels: Integers | None = None
    utility: UtilityFunctions | None = None
    name: str = ""
    notes: tuple[str, ...] = ()


class TimesOfTypes(Protocol):
    """How long tasks of each type take on each cluster, by their number of nodes."""

    def time_s(self, task_type: Integers, nodes: Integers) -> Floats:
        """Return run times [s], shape (tasks, clusters, P-states).

        Parameters
        ----------
        task_type : ndarray of int64, shape (tasks,)
        nodes : ndarray of int64, shape (tasks, clusters)

        Returns
        -------
        ndarray of float64
            Infinite where a task cannot run.

        Raises
        ------
        InputError
            If a number of nodes is beyond what is known.
        """


@dataclass(frozen=True)
class DowneyTimes:
    """Run times by Downey's model (paper 001, 4.2.6).

    Attributes
    ----------
    reference_s : ndarray of float64, shape (task types, clusters)
        Time on one node in nominal speed [s]; infinite where a type cannot run.
    time_factor : ndarray of float64, shape (task types, clusters, P-states)
    parallelism : ndarray of float64, shape (task types, clusters)
        A: mean nodes that the type's tasks ask for.
    sigma : ndarray of float64, shape (task types,)
    n_nodes : ndarray of int64, shape (clusters,)
        Nodes of each cluster; more cannot be taken.
    """

    reference_s: Floats
    time_factor: Floats
    parallelism: Floats
    sigma: Floats
    n_nodes: Integers

    def time_s(self, task_type: Integers, nodes: Integers) -> Floats:
        """Return run times [s], shape (tasks, clusters, P-states); see `TimesOfTypes`."""
        a, sigma = self.parallelism[task_type], self.sigma[task_type, None]
        share = downey_time(np.maximum(nodes, 1), a, sigma) / downey_time(1, a, sigma)
        nominal = np.where(nodes <= self.n_nodes, self.reference_s[task_type] * share, np.inf)
        return np.asarray(nominal[..., None] * self.time_factor[task_type])


@dataclass(frozen=True, kw_only=True)
class TypesOnClusters:
    """Types of tasks, the clusters that run them, and what is always known of both.

    Attributes
    ----------
    clusters : Clusters
    type_names : tuple of str
    node_power_w : ndarray of float64, shape (task types, clusters, P-states)
        Power of one node that runs a task of the type [W]; infinite where the cluster does not.
    priority, urgency : ndarray of float64, shape (task types,)
    """

    clusters: Clusters
    type_names: tuple[str, ...]
    node_power_w: Floats
    priority: Floats
    urgency: Floats

    @property
    def known(self) -> dict[str, Any]:
        """These attributes by name, for another record of the same types."""
        return {field.name: getattr(self, field.name) for field in fields(TypesOnClusters)}


@dataclass(frozen=True, kw_only=True)
class ParallelSystem(TypesOnClusters):
    """Types of tasks with the cores that they ask for and their times.

    Attributes
    ----------
    cores : ndarray of int64, shape (task types, 2)
        Fewest and most cores of the type's tasks.
    times : TimesOfTypes
    """

    cores: Integers
    times: TimesOfTypes

    @property
    def typical_cores(self) -> Integers:
        """Mean of the cores that the tasks of each type ask for, shape (task types,)."""
        return self.cores.sum(axis=1) // 2

    def typical(self) -> Typical:
        """Return what is known of the types, at the mean of the cores that they ask for."""
        nodes = self.clusters.nodes_for(self.typical_cores)
        time_s = self.times.time_s(np.arange(len(nodes)), nodes)
        return Typical(**self.known, time_s=time_s, nodes=nodes)


@dataclass(frozen=True, kw_only=True)
class Typical(TypesOnClusters):
    """What is known of task types before any task arrives.

    Attributes
    ----------
    time_s : ndarray of float64, shape (task types, clusters, P-states)
        At the type's mean width [s].
    nodes : ndarray of int64, shape (task types, clusters)
        At the type's mean width.
    """

    time_s: Floats
    nodes: Integers


@dataclass(frozen=True, kw_only=True)
class SampledTypes(TypesOnClusters):
    """What is drawn of task types before it is known how many cores their tasks ask for.

    Attributes
    ----------
    reference_s : ndarray of float64, shape (task types, clusters)
        Time on one node in nominal speed [s]; infinite where the type's kind cannot run.
    time_factor : ndarray of float64, shape (task types, clusters, P-states)
        By what a P-state multiplies the time.
    """

    reference_s: Floats
    time_factor: Floats


def stream_of_types(spec: ParallelDay) -> np.random.Generator:
    """Return the random stream of what task types are worth, how wide and how parallel they are."""
    return random_stream(spec.seed, "task_types", spec.replicate)


def make_clusters(spec: ParallelDay) -> Clusters:
    """Return the clusters of a specification, GP ones first, scaled to `total_cores`."""
    sizes = np.array((*spec.general_clusters, *spec.special_clusters), dtype=np.int64)
    nodes, cores = sizes.reshape(-1, 2).T
    if spec.total_cores is not None:
        # exact: a product of float factors could fall below a whole number
        nodes = np.maximum(nodes * spec.total_cores // int((nodes * cores).sum()), 1)
    names = [f"GP{c + 1}" for c in range(len(spec.general_clusters))]
    names += [f"SP{c + 1}" for c in range(len(spec.special_clusters))]
    return Clusters(tuple(names), nodes, cores)


def draw_types(spec: ParallelDay, of_types: np.random.Generator) -> SampledTypes:
    """Draw priorities, reference times, powers and P-states of the types (algorithms C2.2 to 7).

    The reference time grows with the starting utility. It and the power belong to the first
    cluster that a type runs on; those of the others vary around them.

    Parameters
    ----------
    spec : ParallelDay
    of_types : numpy.random.Generator
        `stream_of_types`; draws the priorities, and whatever else the types have.
    """
    clusters = make_clusters(spec)
    n, n_general = spec.n_task_types, len(spec.general_clusters)
    priority, urgency = draw_priorities(of_types, n, spec.priority_ranges, spec.urgencies, spec.joint_percent)
    rng = random_stream(spec.seed, "platform", spec.replicate)
    of_readings = random_stream(spec.seed, "pstate_factors", spec.replicate)
    shape = (n, len(clusters.names), len(spec.power_factors))
    reference, power, factor = np.full(shape[:2], np.inf), np.full(shape, np.inf), np.ones(shape)
    start_s = _first_times(spec, priority, rng)
    start_w = gamma(rng, spec.node_power_mean_w, spec.node_power_cov, n)
    for rows, columns in _blocks(spec):
        special = columns.start >= n_general
        reference[rows, columns] = _varied(rng, start_s[rows], spec.time_cluster_cov, columns.stop - columns.start)
        nominal_w = _varied(rng, start_w[rows], spec.node_power_cluster_cov, columns.stop - columns.start)
        varied = _random_factors(
            spec, rng, of_readings, nominal_w.shape, spec.special_pstate_type_cov if special else spec.pstate_type_cov
        )
        slower, lower = _pstate_factors(
            rng, varied, spec.power_factors, spec.special_pstate_cov if special else spec.pstate_cov
        )
        factor[rows, columns] = slower
        power[rows, columns] = nominal_w[..., None] * lower
    return SampledTypes(
        clusters=clusters,
        type_names=_type_names(spec),
        node_power_w=power,
        priority=priority,
        urgency=urgency,
        reference_s=reference,
        time_factor=factor,
    )


def _first_times(spec: ParallelDay, priority: Floats, rng: np.random.Generator) -> Floats:
    """Draw the time on one node of each type's first cluster [s] (paper 001, 4.2.4)."""
    least, most = spec.reference_time_s
    low, high = spec.lowest_priority, spec.highest_priority
    share = (priority - low) / (high - low) if high > low else np.zeros(len(priority))
    mean = least + share * (most - least)
    time_s = rng.normal(mean, spec.reference_time_cov * mean)
    return spec.load_factor * np.maximum(time_s, spec.least_reference_time_s)


def _blocks(spec: ParallelDay) -> list[tuple[slice, slice]]:
    """Return the rows and columns of general types on general clusters, then of special ones."""
    blocks = [(slice(0, spec.general_task_types), slice(0, len(spec.general_clusters)))]
    row = spec.general_task_types
    for k, count in enumerate(spec.special_task_types):
        column = len(spec.general_clusters) + k
        blocks.append((slice(row, row + count), slice(column, column + 1)))
        row += count
    return blocks


def _varied(rng: np.random.Generator, first: Floats, cov: float, columns: int) -> Floats:
    """Return the first cluster's values, and others that vary around them."""
    others = gamma(rng, first[:, None], cov, (len(first), max(columns - 1, 0)))
    return np.column_stack([first, others])[:, :columns]


def _random_factors(
    spec: ParallelDay, rng: np.random.Generator, of_readings: np.random.Generator, shape: tuple[int, ...], cov: float
) -> Floats:
    """Draw the "randomness factors" of power and time (paper 001, 4.2.7), shape (2, types, clusters, P-states).

    Every reading draws the first factor, that of the power in P-state 0, from `rng`, and the others from a stream of
    their own: what has no factor of its own is the same in all readings.
    """
    first = gamma(rng, 1.0, cov, shape)
    factors = gamma(of_readings, 1.0, cov, (2, *shape, len(spec.power_factors)))
    factors[0, ..., 0] = first
    quantities = factors if "quantity" in spec.pstate_factor_of else factors[:1]
    own = quantities if "pstate" in spec.pstate_factor_of else quantities[..., :1]
    return np.broadcast_to(own, factors.shape)


def _pstate_factors(
    rng: np.random.Generator, varied: Floats, power_factors: tuple[float, ...], cov: float
) -> tuple[Floats, Floats]:
    """Draw by what each P-state multiplies time and power (paper 001, 4.2.7).

    Unlike paper 000's, P-state 0 varies as the others do.
    """
    power_mean, speed_square = np.asarray(power_factors) * varied
    power = gamma(rng, power_mean, cov, power_mean.shape)
    return 1.0 / gamma(rng, np.sqrt(speed_square), cov, speed_square.shape), power


def _type_names(spec: ParallelDay) -> tuple[str, ...]:
    special = [f"SP{c + 1}_{k + 1}" for c, n in enumerate(spec.special_task_types) for k in range(n)]
    return (*(f"GP_{k + 1}" for k in range(spec.general_task_types)), *special)


def draw_system(spec: ParallelDay) -> ParallelSystem:
    """Draw clusters and types whose tasks ask for cores in bands (algorithms C2.1 to 7)."""
    rng = stream_of_types(spec)
    sampled = draw_types(spec, rng)
    clusters = sampled.clusters
    largest = np.where(np.isfinite(sampled.reference_s), clusters.cores, 0).max(axis=1)
    cores = _draw_bands(spec, largest, rng)
    sigma = rng.uniform(*spec.speedup_sigma, len(largest))
    times = DowneyTimes(sampled.reference_s, sampled.time_factor, _mean_nodes(clusters, cores), sigma, clusters.nodes)
    return ParallelSystem(**sampled.known, cores=cores, times=times)


def _draw_bands(spec: ParallelDay, largest: Integers, rng: np.random.Generator) -> Integers:
    """Deal the bands to the types in their exact shares, in random order, shape (types, 2).

    Parameters
    ----------
    spec : ParallelDay
    largest : ndarray of int64, shape (task types,)
        Cores of the largest cluster that each type runs on; a bound of a band that is 0 or less
        counts from there.
    rng : numpy.random.Generator
    """
    share = np.array([band[0] for band in spec.core_bands], dtype=np.float64)
    counts = _whole_shares(share, len(largest))
    bounds = np.array([band[1:] for band in spec.core_bands], dtype=np.int64)
    dealt = rng.permutation(np.repeat(np.arange(len(bounds)), counts))
    cores = bounds[dealt]
    cores = np.where(cores > 0, cores, largest[:, None] + cores)
    cores = np.clip(cores, 1, largest[:, None])
    # on a small cluster a most that counts from its size may lie below a least that does not
    return np.minimum(cores, cores[:, 1:])


def _whole_shares(share: Floats, total: int) -> Integers:
    """Return whole numbers of a total nearest to the shares (largest remainders)."""
    exact = total * share / share.sum()
    counts = np.floor(exact).astype(np.int64)
    most = np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]
    counts[most] += 1
    return counts


def _mean_nodes(clusters: Clusters, cores: Integers) -> Floats:
    """Return the mean nodes that a type's tasks take on each cluster, shape (types, clusters).

    Over those of the band's numbers of cores that the cluster has; at least 1.
    """
    bands, of_type = np.unique(cores, axis=0, return_inverse=True)
    means = np.ones((len(bands), len(clusters.names)))
    for k, (least, most) in enumerate(bands.tolist()):
        nodes = clusters.nodes_for(np.arange(least, most + 1))
        fits = nodes <= clusters.nodes
        some = fits.any(axis=0)
        total = np.where(fits, nodes, 0).sum(axis=0)
        means[k, some] = total[some] / fits.sum(axis=0)[some]
    return means[of_type.reshape(-1)]
