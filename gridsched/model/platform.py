"""What computes: hosts with cores and P-states, the clusters that hold them, the master."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError, counted, did_you_mean
from gridsched.model.host_profiles import HostProfiles
from gridsched.model.resource_types import is_type, typed_amounts, whole_of

#: A year of service [s]: 365 days, as the Impact Framework of the Green Software Foundation counts lifespans.
YEAR_S = 365 * 86400.0


@dataclass(frozen=True, slots=True)
class PState:
    """One performance state of a host.

    Attributes
    ----------
    speed : float
        Speed of one core [flop/s].
    idle_w, epsilon_w, busy_w : float
        Power of the whole host [W] with no load, with the least possible load, and with all
        cores busy: SimGrid's ``Idle:Epsilon:AllCores``.
    """

    speed: float
    idle_w: float = 0.0
    epsilon_w: float = 0.0
    busy_w: float = 0.0

    @property
    def unused_w(self) -> float:
        """Power of the whole host on which nothing runs [W].

        With speed 0 it is `busy_w`: SimGrid takes the host as fully loaded then.
        """
        return self.idle_w if self.speed > 0 else self.busy_w


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that executes tasks, one per core.

    Attributes
    ----------
    name : str
        SimGrid's host name.
    pstates : tuple of PState
        P-state 0 is the default of a run; by convention the fastest.
    cores : int
        Number of cores; each runs one serial task at the core's full speed.
    off_w : float
        Power while switched off [W].
    boot_time_s, shutdown_time_s : float
        Time from `PowerOn` until the host takes tasks, and from `PowerOff` until it is off [s].
    switch_pstates : tuple of PState
        P-states of speed 0, in which nothing computes. They follow `pstates` in the platform
        file, and no scheduler and no task uses them.
    boot_pstate, shutdown_pstate : int or None
        The one of them that the host is in while it boots or shuts down, numbered on from
        `pstates`; None where it draws its idle power then.
    has_energy : bool
        False where the platform file gives no wattage: the host then counts with 0 W.
    pstate : int
        P-state in which it starts, unless a run sets another one.
    resources : tuple of (str, int)
        What else it has that jobs take: ``memory_mb`` [MB, 2**20 byte], ``gpu``, any name; of a resource that has
        types all units, and those of each type as ``gpu:a100`` (`gridsched.model.resource_types`).
    features : tuple of str
        What jobs may ask a node to be, as Slurm's ``Feature``: names of any meaning.
    weight : int
        Of nodes that serve equally well, `slurm` takes those of lower weight first.
    switches : tuple of str
        Names of the switches that it lies under, the lowest first; a switch that joins all is left out.
    unit_power : tuple of (str, float, float)
        Of some of its `resources`: power of a unit that no job has, and of one that a job has [W], of memory by
        2**30 byte (`gridsched.metrics.resource_energy`).
    embodied_kg : float
        Carbon that making and disposing of the machine emits [kg CO2e]; 0 where it is not known.
    lifetime_years : float
        Time in service over which that is spread [years of 365 days]; above 0 where there is any.

    Raises
    ------
    InputError
        Where a P-state for booting is none of the host's, embodied carbon has no lifetime, power is of a resource
        that it does not have, or it has more units of types than of their resource.
    """

    name: str
    pstates: tuple[PState, ...]
    cores: int = 1
    off_w: float = 0.0
    boot_time_s: float = 0.0
    has_energy: bool = True
    pstate: int = 0
    switch_pstates: tuple[PState, ...] = ()
    boot_pstate: int | None = None
    shutdown_time_s: float = 0.0
    shutdown_pstate: int | None = None
    resources: tuple[tuple[str, int], ...] = ()
    features: tuple[str, ...] = ()
    weight: int = 1
    embodied_kg: float = 0.0
    lifetime_years: float = 0.0
    unit_power: tuple[tuple[str, float, float], ...] = ()
    switches: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.embodied_kg and not self.lifetime_years > 0:
            raise InputError(
                f"host {self.name!r}: embodied_kg is {self.embodied_kg:g}, and lifetime_years is "
                f"{self.lifetime_years:g}; a lifetime above 0 years is needed to spread it."
            )
        has = dict(self.resources)
        for whole, in_types in typed_amounts(has).items():
            if has.get(whole, 0) < in_types:
                raise InputError(
                    f"host {self.name!r}: resources have {has.get(whole, 0)} of {whole!r} and {in_types} of its types; "
                    "a resource counts the units of its types, too (gridsched.model.resource_types.with_wholes)."
                )
        powered = {name for name, *_ in self.unit_power}
        for name, *watts in self.unit_power:
            if is_type(name) and whole_of(name) in powered:
                raise InputError(
                    f"host {self.name!r}: unit_power gives {name!r} a power, and all {whole_of(name)!r}, too. Give "
                    "each type one, or all together."
                )
            if name not in has or not all(0 <= each < float("inf") for each in watts):
                raise InputError(
                    f"host {self.name!r}: unit_power gives {name!r} {watts} W; powers of 0 W or more of resources that "
                    f"it has ({', '.join(has) or 'none'}) are allowed."
                )
        first, behind = len(self.pstates), len(self.all_pstates)
        for name in ("boot_pstate", "shutdown_pstate"):
            number = getattr(self, name)
            if number is not None and not first <= number < behind:
                legal = "it has no switch_pstates"
                if self.switch_pstates:
                    legal = f"its switch_pstates are {first} to {behind - 1}"
                raise InputError(f"host {self.name!r}: {name} is {number}; {legal}.")

    @property
    def all_pstates(self) -> tuple[PState, ...]:
        """All P-states as the platform file has them, those of speed 0 last."""
        return self.pstates + self.switch_pstates

    @property
    def boot_w(self) -> float | None:
        """Power while it boots [W]; None: its idle power."""
        return self._power_in(self.boot_pstate)

    @property
    def shutdown_w(self) -> float | None:
        """Power while it shuts down [W]; None: its idle power."""
        return self._power_in(self.shutdown_pstate)

    def _power_in(self, pstate: int | None) -> float | None:
        return None if pstate is None else self.all_pstates[pstate].unused_w

    @property
    def embodied_g_per_s(self) -> float:
        """Embodied carbon of a second of its time in service [g/s]; 0 where it is not known."""
        return self.embodied_kg * 1000.0 / (self.lifetime_years * YEAR_S) if self.embodied_kg else 0.0

    @property
    def computes(self) -> bool:
        """Whether it has any speed."""
        return any(state.speed > 0 for state in self.pstates)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Hosts that share an uplink and a store of input files (XSufferage's clusters).

    Attributes
    ----------
    name : str
        Name of the netzone.
    hosts : tuple of int
        Ids of its computing hosts.
    bandwidth : float
        Bandwidth of the uplink [byte/s]; infinite where the platform declares none.
    latency_s : float
        Latency of the uplink [s].
    """

    name: str
    hosts: tuple[int, ...]
    bandwidth: float = float("inf")
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Partition:
    """Nodes that jobs are submitted to together; nodes may belong to several.

    Attributes
    ----------
    name : str
    hosts : tuple of int
        Ids of its nodes, ascending.
    max_time_s : float
        The longest time that a job may ask for [s].
    max_nodes, max_cores : int or None
        The most that a job may take; None: as many as there are.
    priority : int
        Jobs of a partition of higher priority come first in the queue.
    constraint : str
        Where it is the part of the partition of its name whose nodes have certain features: what
        its jobs ask for (`gridsched.model.constraints`). Empty: the whole partition.
    job_factor : int
        Slurm's ``PriorityJobFactor``.
    """

    name: str
    hosts: tuple[int, ...]
    max_time_s: float = float("inf")
    max_nodes: int | None = None
    max_cores: int | None = None
    priority: int = 0
    constraint: str = ""
    job_factor: int = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Where all hosts of a platform file are, also those that compute nothing in a run.

    Attributes
    ----------
    order : tuple of str
        Names of all hosts, in the order in which they are numbered if they compute.
    zones : tuple of (Cluster, tuple of str)
        Clusters, without hosts, and the names of all hosts in each.
    """

    order: tuple[str, ...]
    zones: tuple[tuple[Cluster, tuple[str, ...]], ...]


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, made read-only: schedulers see it."""
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Platform:
    """The computing hosts in platform order, their clusters, and the hosts that compute nothing.

    Attributes
    ----------
    hosts : tuple of Host
        Computing hosts; a host's id is its position here.
    clusters : tuple of Cluster
        A partition of the host ids.
    master : Host or None
        The host with the property ``role=master``: it computes nothing and is left out of totals.
    bystanders : tuple of Host
        Further hosts that compute nothing: those of speed 0, and what a deployment leaves out.
    name : str
        Where the platform comes from; used in messages and provenance.
    warnings : tuple of str
        What was found odd while loading, in words.
    profiles : HostProfiles
        What changes with time; hidden from schedulers.
    carbon_intensity : tuple of (str, float)
        Names of hosts and the carbon intensity of their power [g/kWh], if the file has it.
    partitions : tuple of Partition
        Where jobs share nodes: what jobs are submitted to, and the parts of these that jobs ask
        for by constraints: each is a set of hosts that some jobs may use. Empty where each has
        whole nodes.
    queue_settings : tuple of (str, str)
        Entries on the queue in the configuration of the machine's own scheduler, unchanged:
        names and values of ``slurm.conf``. Anyone who submits jobs may know them.
    link_wattage : tuple of float, or None
        Power of each link that carries nothing, and that carries all it can [W], where it has none of its own.
    layout : Layout or None
        Order and clusters of all hosts of the file that it was read from, so that hosts keep them if others compute
        (`restricted_to`, `with_master`); None: computing hosts are numbered first, the others come last, each in a
        cluster of its own.
    """

    hosts: tuple[Host, ...]
    clusters: tuple[Cluster, ...] = ()
    master: Host | None = None
    bystanders: tuple[Host, ...] = ()
    name: str = "platform"
    warnings: tuple[str, ...] = field(default=(), compare=False)
    profiles: HostProfiles = field(default_factory=HostProfiles)
    carbon_intensity: tuple[tuple[str, float], ...] = ()
    partitions: tuple[Partition, ...] = ()
    queue_settings: tuple[tuple[str, str], ...] = ()
    link_wattage: tuple[float, float] | None = None
    layout: Layout | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.clusters:
            alone = tuple(Cluster(host.name, (k,)) for k, host in enumerate(self.hosts))
            object.__setattr__(self, "clusters", alone)
        members = sorted(h for cluster in self.clusters for h in cluster.hosts)
        if members != list(range(len(self.hosts))):
            raise InputError(
                f"{self.name}: clusters must hold every computing host exactly once; "
                f"found host ids {members[:10]} for {counted(len(self.hosts), 'host')}."
            )
        self._check_switches()

    def _check_switches(self) -> None:
        """Raise `InputError` if a switch is under two others, or at two levels."""
        above: dict[str, tuple[str, ...]] = {}
        for host in self.hosts:
            for level, switch in enumerate(host.switches):
                higher = host.switches[level + 1 :]
                if above.setdefault(switch, higher) != higher:
                    raise InputError(
                        f"{self.name}: switch {switch!r} of host {host.name!r} lies under {list(higher)}, and of "
                        f"another host under {list(above[switch])}; each switch has one place in the tree."
                    )

    def __len__(self) -> int:
        return len(self.hosts)

    @property
    def pools(self) -> tuple[Partition, ...]:
        """Where parts of jobs may lie that share nodes: the partitions; without any, all hosts are one."""
        return self.partitions or (Partition("all", tuple(range(len(self.hosts)))),)

    @property
    def has_energy(self) -> bool:
        """Whether the power of any computing host is known."""
        return any(host.has_energy for host in self.hosts)

    @cached_property
    def cores(self) -> Integers:
        """Cores of each host, shape (hosts,)."""
        return _frozen(np.array([host.cores for host in self.hosts], dtype=np.int64))

    @cached_property
    def n_pstates(self) -> Integers:
        """Number of P-states of each host, shape (hosts,)."""
        return _frozen(np.array([len(host.pstates) for host in self.hosts], dtype=np.int64))

    def _table(self, attribute: str) -> Floats:
        width = int(self.n_pstates.max(initial=1))
        table = np.full((len(self.hosts), width), np.nan)
        for h, host in enumerate(self.hosts):
            table[h, : len(host.pstates)] = [getattr(p, attribute) for p in host.pstates]
        return _frozen(table)

    @cached_property
    def speed(self) -> Floats:
        """Core speed [flop/s], shape (hosts, P-states), nan where a host has fewer P-states."""
        return self._table("speed")

    @cached_property
    def busy_w(self) -> Floats:
        """Power with all cores busy [W], shape (hosts, P-states)."""
        return self._table("busy_w")

    @cached_property
    def idle_w(self) -> Floats:
        """Power without load [W], shape (hosts, P-states)."""
        return self._table("idle_w")

    @cached_property
    def most_idle_w(self) -> Floats:
        """The greatest idle power of each host's P-states [W], shape (hosts,)."""
        return _frozen(np.nanmax(self.idle_w, axis=1, initial=0.0))

    @cached_property
    def epsilon_w(self) -> Floats:
        """Power with the least possible load [W], shape (hosts, P-states)."""
        return self._table("epsilon_w")

    @cached_property
    def unready_w(self) -> Floats:
        """Power of each host while it is off, boots and shuts down [W]; nan where it is its idle power."""
        powers = [(host.off_w, host.boot_w, host.shutdown_w) for host in self.hosts]
        return _frozen(np.array(powers, dtype=np.float64).reshape(-1, 3))

    @cached_property
    def cluster_of(self) -> Integers:
        """Cluster id of each host, shape (hosts,)."""
        ids = np.empty(len(self.hosts), dtype=np.int64)
        for c, cluster in enumerate(self.clusters):
            ids[list(cluster.hosts)] = c
        return _frozen(ids)

    @cached_property
    def switch_of(self) -> Integers:
        """Number of the switch of each host at each level, the lowest first, shape (levels, hosts).

        Switches of a level are numbered in order of their first hosts. Hosts that have none at a level have one there
        with those of their last switch, or of their cluster where they have none at all.
        """
        levels = max((len(host.switches) for host in self.hosts), default=0)
        cluster = {h: each.name for each in self.clusters for h in each.hosts}
        numbers = np.empty((levels, len(self.hosts)), dtype=np.int64)
        for level in range(levels):
            known: dict[tuple[str, ...], int] = {}
            for h, host in enumerate(self.hosts):
                switch = host.switches[level:] or ("", *host.switches[-1:], cluster[h])
                numbers[level, h] = known.setdefault(switch, len(known))
        return _frozen(numbers)

    def efficiency(self, pstates: Integers | int = 0) -> Floats:
        """Efficiency of each fully loaded host [flop/J], shape (hosts,), in its P-state.

        The ``energyEfficiency`` of paper 004, eq. 1: speed of all cores over their power.
        A host without power figures has infinite efficiency.
        """
        hosts = np.arange(len(self))
        power = self.busy_w[hosts, pstates]
        with np.errstate(divide="ignore"):
            return self.cores * self.speed[hosts, pstates] / power

    @cached_property
    def idle_hosts_named(self) -> tuple[tuple[str, Host], ...]:
        """(role, host) of every host that computes nothing."""
        masters = (("master", self.master),) if self.master else ()
        return masters + tuple(("unused", host) for host in self.bystanders)

    @cached_property
    def everyone(self) -> tuple[Host, ...]:
        """Every host: the computing ones, the master, the bystanders."""
        return (*self.hosts, *(host for _, host in self.idle_hosts_named))

    def restricted_to(self, names: Iterable[str]) -> Platform:
        """Return the platform in which only the hosts called `names` compute; the others become bystanders.

        Partitions keep their numbers, and of their hosts those that compute.

        Raises
        ------
        InputError
            If no host of a partition is left.
        """
        kept_names = set(names)
        kept = self._in_order(host for host in self.everyone if host.name in kept_names)
        new_id = {host.name: k for k, host in enumerate(kept)}
        clusters = []
        for cluster, members in self._zones():
            ids = tuple(new_id[name] for name in members if name in new_id)
            if ids:
                clusters.append(replace(cluster, hosts=ids))
        placed = {h for cluster in clusters for h in cluster.hosts}
        clusters += [Cluster(kept[h].name, (h,)) for h in range(len(kept)) if h not in placed]
        master = self.master if self.master and self.master.name not in kept_names else None
        others = tuple(host for host in self.everyone if host.name not in kept_names and host is not master)
        return replace(
            self,
            hosts=kept,
            clusters=tuple(clusters),
            master=master,
            bystanders=others,
            partitions=tuple(self._of_hosts(each, new_id) for each in self.partitions),
        )

    def _in_order(self, hosts: Iterable[Host]) -> tuple[Host, ...]:
        """Return hosts in the order in which they are numbered; what the layout lacks comes last."""
        place = {name: k for k, name in enumerate(self.layout.order)} if self.layout else {}
        return tuple(sorted(hosts, key=lambda host: place.get(host.name, len(place))))

    def _zones(self) -> Iterable[tuple[Cluster, Iterable[str]]]:
        """Return clusters and the names of the hosts that each has if they compute."""
        if self.layout is not None:
            return self.layout.zones
        return [(each, [self.hosts[h].name for h in each.hosts]) for each in self.clusters]

    def _of_hosts(self, partition: Partition, new_id: Mapping[str, int]) -> Partition:
        """Return a partition with the new ids of its hosts; `InputError` where none is left."""
        members = [self.hosts[h].name for h in partition.hosts]
        ids = sorted(new_id[name] for name in members if name in new_id)
        if members and not ids:
            raise InputError(
                f"{self.name}: no host of partition {partition.name!r} is left that computes ({', '.join(members[:3])} "
                f"{'does' if len(members) == 1 else 'do'} not). Let another host be the master, or leave out jobs of "
                "this partition."
            )
        return replace(partition, hosts=tuple(ids))

    def with_master(self, name: str) -> Platform:
        """Return the platform in which the host called `name` is the master.

        A master that it had before computes if it has any speed: where its file has it, else behind the others, in a
        cluster of its own.

        Raises
        ------
        InputError
            If there is no such host, or no other.
        """
        if self.master is not None and self.master.name == name:
            return self
        computing = [host.name for host in self.hosts if host.name != name]
        if self.master is not None and self.master.computes:
            computing.append(self.master.name)
        others = self.restricted_to(computing)
        idle = [host for _, host in others.idle_hosts_named]
        names = [*computing, *(host.name for host in idle)]
        if name not in names:
            hint = did_you_mean(name, names)
            raise InputError(f"{self.name}: no host is called {name!r} (--master). {hint}".rstrip())
        if not computing:
            raise InputError(f"{self.name}: no host but {name!r} computes, and a master computes nothing.")
        master = next(host for host in idle if host.name == name)
        bystanders = tuple(host for host in idle if host is not master)
        return replace(others, master=master, bystanders=bystanders)

    def concealed(self) -> Platform:
        """Return the platform as a scheduler sees it, without its future changes."""
        return replace(self, profiles=HostProfiles()) if self.profiles.of_hosts else self

    def check_pstates(self, pstates: Integers | int) -> None:
        """Raise `InputError` unless each computing host has its P-state of `pstates`."""
        pstate_of_host = np.broadcast_to(pstates, len(self))
        lacking = np.flatnonzero((pstate_of_host < 0) | (pstate_of_host >= self.n_pstates))
        if len(lacking):
            h = lacking.item(0)
            raise InputError(
                f"{self.name}: host {self.hosts[h].name!r} has P-states 0 to "
                f"{self.n_pstates[h] - 1}; P-state {pstate_of_host[h]} was asked for. Choose one that it "
                "has, or for one host alone: --pstate NAME=K."
            )


def homogeneous_cluster(
    n_nodes: int, *, idle_w: float, busy_w: float, speed: float = 1e9, name: str = "cluster"
) -> Platform:
    """Return one cluster of equal nodes of one core, ``n0``, ``n1``, ...

    Parameters
    ----------
    n_nodes : int
    idle_w, busy_w : float
        Power of a node on which nothing runs, and of one that computes [W].
    speed : float
        Speed of a node [flop/s].
    name : str
        Of the platform, in messages.
    """
    pstates = (PState(speed, idle_w, idle_w, busy_w),)
    hosts = tuple(Host(f"n{k}", pstates) for k in range(n_nodes))
    return Platform(hosts, (Cluster("nodes", tuple(range(n_nodes))),), name=name)
