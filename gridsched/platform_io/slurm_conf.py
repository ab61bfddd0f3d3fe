"""Slurm's configuration: nodes, partitions, and how the queue is scheduled.

It is read from ``slurm.conf``, with the files of its folder that it includes, or from what ``scontrol show node``,
``show partition`` and ``show config`` print. Lines that would change a schedule and are not simulated are named, and
others counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gridsched.errors import InputError, counted
from gridsched.files.foreign_files import beside_slurm_conf
from gridsched.model.constraints import is_feature
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Host, Platform, homogeneous_cluster
from gridsched.model.resource_types import whole_of
from gridsched.model.tasks import MEMORY
from gridsched.platform_io.host_resources import NAME, TYPE, amounts_of, parse_count
from gridsched.platform_io.hostlists import expand_hostlist, split_hostlist
from gridsched.platform_io.slurm_effects import (
    OF_NODES,
    OF_PARTITIONS,
    effects_of_machine,
    effects_of_parts,
    shown_parts,
)
from gridsched.platform_io.slurm_lines import ConfLine, ConfLines

#: More nodes, and more partitions, are refused.
MOST_NODES, MOST_PARTITIONS = 1_000_000, 1000
#: Names in all lists of nodes together, which may name a node in each partition.
_MOST_LISTED = 4_000_000
#: Slurm counts the CPUs of a node with 16 bits, of which two values have a meaning of their own.
MOST_CPUS = 2**16 - 3
#: What is kept of the other lines, for schedulers (`Platform.queue_settings`).
SETTINGS = (
    "AccountingStorageEnforce",
    "FairShareDampeningFactor",
    "MaxNodeCount",
    "PriorityCalcPeriod",
    "PriorityDecayHalfLife",
    "PriorityFavorSmall",
    "PriorityFlags",
    "PriorityMaxAge",
    "PriorityType",
    "PriorityWeightAge",
    "PriorityWeightFairshare",
    "PriorityWeightJobSize",
    "PriorityWeightPartition",
    "PriorityWeightQOS",
    "ResumeTimeout",
    "SchedulerParameters",
    "SchedulerType",
    "SelectType",
    "SelectTypeParameters",
    "SuspendTime",
)
#: What the machine's clock shows at 0 s of a run [s], by its log: among the settings, too.
CLOCK = "clock_s"
#: Parameters of SchedulerParameters that scheduler `slurm` knows.
SCHEDULER_PARAMETERS = (
    "bf_continue",
    "bf_interval",
    "bf_max_job_test",
    "bf_max_job_user",
    "bf_resolution",
    "bf_window",
    "default_queue_depth",
    "max_job_bf",
    "sched_interval",
)
#: Parameters that change when Slurm works, and not what it decides where deciding takes no time.
_OF_COST = ("bf_max_time", "bf_yield_interval", "bf_yield_sleep", "max_sched_time", "sched_max_job_start",
            "sched_min_interval")  # fmt: skip
#: Flags of PriorityFlags that count.
PRIORITY_FLAGS = ("ACCRUE_ALWAYS", "FAIR_TREE", "NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME")
#: Values of AccountingStorageEnforce of which each has users charged for the ends of jobs, since limits need them.
CHARGING_ENDS = ("all", "limits", "safe")
_NODE_KEYS = ("cpus", "procs", "sockets", "boards", "socketsperboard", "corespersocket", "threadspercore", "realmemory",
              "gres", "feature", "features", "weight", "state")  # fmt: skip
#: Keys of nodes that change nothing here: where they are, and what they have beside.
_NODE_REST = ("nodehostname", "nodeaddr", "bcastaddr", "port", "tmpdisk", "reason", *OF_NODES)
_PARTITION_KEYS = ("nodes", "default", "maxtime", "maxnodes", "prioritytier", "priorityjobfactor", "priority", "state")
#: Keys of partitions that accounting has applied to jobs already.
_PARTITION_REST = ("defaulttime", "defmempercpu", "defmempernode", "shared", "oversubscribe", *OF_PARTITIONS)
#: States of nodes and partitions that run nothing.
_NOT_THERE = ("DOWN", "DRAIN", "FAIL", "FAILING", "FUTURE", "UNAVAIL", "INACTIVE")
#: Marks that ``scontrol`` puts behind a state: it does not respond, is powered down, will boot, ...
_MARKS = "*~#!%$@^-+"
#: A key begins behind a blank: to look for one within a long word takes quadratic time.
_PAIR = re.compile(r"""(?<![^\s=#])([^\s=#]+)\s*=\s*("[^"]*"|'[^']*'|\S*)""")
_GRES = re.compile(
    rf"(?P<name>{NAME}(?::(?!no_consume\b){TYPE})?)(?P<kept>:no_consume)?(?::(?P<count>\d{{1,16}}[KMGTP]?))?", re.I
)
#: Which of its devices those of a generic resource are; they have no part in this.
_DEVICES = re.compile(r"\([^()]*\)")
_TIME = re.compile(r"(?:(?P<days>\d{1,6})-)?(?P<clock>\d{1,9}(?::\d{1,9}){0,2})")


def slurm_time_s(owner: str, name: str, text: object) -> float:
    """Return a time as ``slurm.conf`` writes it [s]: minutes, ``h:m:s``, ``d-h``, ``d-h:m:s``.

    Raises
    ------
    InputError
        If it is no such time.
    """
    match = _TIME.fullmatch(str(text)) if isinstance(text, str | int) else None
    if match is None or isinstance(text, bool):
        raise InputError(
            f"Parameter {name!r} of {owner} is {text!r}; a time of slurm.conf is allowed: minutes, "
            "'minutes:seconds', 'hours:minutes:seconds', 'days-hours' or 'days-hours:minutes:seconds'."
        )
    parts = [int(part) for part in match["clock"].split(":")]
    if match["days"]:
        units: tuple[int, ...] = (3600, 60, 1)
    else:
        units = {1: (60,), 2: (60, 1), 3: (3600, 60, 1)}[len(parts)]
    return 86_400.0 * int(match["days"] or 0) + sum(p * u for p, u in zip(parts, units, strict=False))


def power_saving_s(settings: Mapping[str, str], name: str) -> float | None:
    """Return SuspendTime or ResumeTimeout of a configuration [s]; infinite where it is never, None without it.

    Raises
    ------
    InputError
        If it is no number of seconds.
    """
    text = settings.get(name)
    if text is None:
        return None
    if text.upper() in ("INFINITE", "UNLIMITED", "-1"):
        return math.inf
    if not (text.isdecimal() and len(text) < 10):
        raise InputError(
            f"{name} of the configuration is {text[:40]!r}; a whole number of seconds, INFINITE or -1 is allowed."
        )
    return float(text)


@dataclass(frozen=True)
class ConfNode:
    """A node: cores are its CPUs, as Slurm counts them; memory in MB of 2**20 byte."""

    name: str
    cores: int
    resources: tuple[tuple[str, int], ...]
    features: tuple[str, ...]
    weight: int


@dataclass(frozen=True)
class ConfPartition:
    """A partition with the names of its nodes; its time limit in seconds."""

    name: str
    nodes: tuple[str, ...]
    max_time_s: float
    max_nodes: int | None
    tier: int
    job_factor: int
    is_default: bool


@dataclass(frozen=True)
class SlurmConf:
    """What counts of a ``slurm.conf``.

    Attributes
    ----------
    path : str
    nodes : tuple of ConfNode
        In order of their weights, then of their names as Slurm sorts them: letters, then numbers.
    partitions : tuple of ConfPartition
        The default one first.
    settings : mapping of str to str
        Of `SETTINGS` those that it has.
    notes : tuple of str
        What was passed over, in words.
    """

    path: str
    nodes: tuple[ConfNode, ...]
    partitions: tuple[ConfPartition, ...]
    settings: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def shares_nodes(self) -> bool:
        """Whether jobs share nodes: ``SelectType`` is not ``select/linear``, Slurm's default before 23.02."""
        return self.settings.get("SelectType", "select/linear").lower() != "select/linear"

    @property
    def _boot_s(self) -> float:
        """How long nodes boot that Slurm had suspended: at most ResumeTimeout [s]; 0 where it suspends none."""
        suspends = power_saving_s(self.settings, "SuspendTime") not in (None, math.inf)
        boot_s = power_saving_s(self.settings, "ResumeTimeout") if suspends else None
        return 0.0 if boot_s is None or boot_s == math.inf else boot_s

    def platform(self, *, idle_w: float, busy_w: float, speed: float) -> Platform:
        """Return the nodes as one cluster of hosts.

        Parameters
        ----------
        idle_w, busy_w : float
            Power of each node [W].
        speed : float
            Of a core [flop/s].
        """
        base = homogeneous_cluster(len(self.nodes), idle_w=idle_w, busy_w=busy_w, speed=speed, name=self.path)
        hosts = tuple(
            replace(host, name=node.name, cores=node.cores) for host, node in zip(base.hosts, self.nodes, strict=True)
        )
        return self.described(replace(base, hosts=hosts))

    def described(self, platform: Platform) -> Platform:
        """Return a platform whose hosts are the nodes, with what the file specifies beside their cores.

        Raises
        ------
        InputError
            If it lacks a node, or has another number of cores for one.
        """
        nodes = {node.name: node for node in self.nodes}
        if missing := sorted(nodes.keys() - {host.name for host in platform.everyone}):
            raise InputError(
                f"{self.path}: node {missing[0]!r} is not a host of {platform.name} ({len(missing):,} of "
                f"{len(nodes):,} are missing there). Give a platform with hosts of these names, such as 'gridsched "
                "platform from-slurm' makes, or leave out --platform."
            )
        hosts = []
        for host in platform.hosts:
            node = nodes.get(host.name)
            if node is not None and node.cores != host.cores:
                raise InputError(
                    f"{self.path}: node {node.name!r} has {node.cores} CPUs; in {platform.name} it has {host.cores} "
                    "cores. Make them the same."
                )
            hosts.append(host if node is None else _described(host, node, self._boot_s))
        return replace(platform, hosts=tuple(hosts), queue_settings=tuple(self.settings.items()))


def _described(host: Host, node: ConfNode, boot_s: float) -> Host:
    of_conf = {whole_of(name) for name, _ in node.resources}
    own = [each for each in host.resources if whole_of(each[0]) not in of_conf]
    return replace(
        host,
        boot_time_s=host.boot_time_s or boot_s,
        resources=(*own, *node.resources),
        features=node.features,
        weight=node.weight,
    )


def read_slurm_conf(*paths: str | Path) -> SlurmConf:
    """Read a ``slurm.conf``, or several files that together are one.

    Parameters
    ----------
    *paths : path
        Files that Slurm reads, or that hold what ``scontrol show node``, ``show partition`` and ``show config``
        print. Of a configuration without ``SelectType`` that comes from ``scontrol`` it is assumed, with a note, that
        jobs share nodes by cores and memory.

    Raises
    ------
    InputError
        If it cannot be read, has no nodes or partitions, or a value of one is wrong.

    References
    ----------
    .. [1] SchedMD, https://slurm.schedmd.com/slurm.conf.html
    """
    reader, lines = _Reader(", ".join(map(str, paths))), ConfLines()
    for path in paths:
        n_taken = reader.n_taken
        for line in lines.read(path):
            reader.take(line)
        if reader.n_taken == n_taken:
            said = beside_slurm_conf(path) or "no NodeName, PartitionName or setting of Slurm's scheduling is in it"
            raise InputError(f"{path}: {said}. Leave it out; slurm.conf, or what scontrol prints, is read.")
    return reader.conf(lines.not_read)


def _as_configured(values: Mapping[str, str]) -> dict[str, str]:
    """Return what ``scontrol`` prints of a node or partition under the keys of ``slurm.conf``."""
    names = {"cputot": "cpus", "availablefeatures": "feature"}
    known = (*_NODE_KEYS, *OF_NODES, *_PARTITION_KEYS, *OF_PARTITIONS, "oversubscribe")
    return {names.get(key, key): value for key, value in values.items() if key in names or key in known}


class _Reader:
    """What has been read of a file so far."""

    def __init__(self, path: str) -> None:
        self._path, self._where = path, path
        self._nodes: dict[str, ConfNode] = {}
        self._defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
        self._partitions: dict[str, tuple[str, dict[str, str]]] = {}
        self._sets: dict[str, tuple[str, dict[str, str]]] = {}
        self._settings: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self._n_other_lines = 0
        self._keys: dict[str, None] = {}
        #: lines of nodes, partitions and settings
        self.n_taken = 0
        #: keys that would change a schedule, with the partitions and nodes that have them
        self._effects: dict[str, dict[str, list[str]]] = {"partition": {}, "node": {}}
        self._down, self._undefined = set[str](), dict[str, None]()
        self._closed, self._empty = list[str](), list[str]()
        self._not_consumed: dict[str, None] = {}
        self._n_names = 0
        self._is_printed = self._is_assumed = False

    def take(self, line: ConfLine) -> None:
        """Take a line of a file, or of what ``scontrol`` prints."""
        self._where = f"{line.path}, line {line.number}"
        self._is_printed |= line.is_printed
        pairs = [(key, value.strip("\"'")) for key, value in _PAIR.findall(line.text)]
        first = pairs[0][0] if pairs else line.text.split()[0]
        kind = first.lower()
        known = {each.lower(): each for each in SETTINGS}
        self.n_taken += kind in self._defaults or kind in known or kind == "nodeset"
        if kind in self._defaults or kind == "nodeset":
            name, values = pairs[0][1], {key.lower(): value for key, value in pairs[1:] if value != "(null)"}
            if line.is_printed:
                values = _as_configured(values)
            if kind == "nodeset":
                self._sets[name] = self._where, values
            elif name.upper() == "DEFAULT":
                self._defaults[kind] |= values
            elif kind == "nodename":
                self._take_nodes(name, self._defaults[kind] | values)
            else:
                self._partitions[name] = self._where, self._defaults[kind] | values
            return
        if kind in known and pairs:
            self._settings[known[kind]] = pairs[0][1]
            return
        self._n_other_lines += 1
        if pairs:
            self._others[first[:40]] = pairs[0][1]

    def _take_nodes(self, text: str, values: Mapping[str, str]) -> None:
        if "name" in values:
            raise InputError(
                f"{self._where}: a line of gres.conf, not of slurm.conf: it has the key Name. Leave this file "
                "out; Gres= of the nodes counts."
            )
        if any(state.strip(_MARKS) in _NOT_THERE for state in values.get("state", "").upper().split("+")):
            self._down.update(self._names(text))
            return
        self._note_keys(values, (*_NODE_KEYS, *_NODE_REST))
        for key in effects_of_parts(values, OF_NODES):
            self._effects["node"].setdefault(key, []).append(text[:40])
        cores = self._number(values, "cpus", "procs")
        if cores is None:
            boards, per_board = self._number(values, "boards"), self._number(values, "socketsperboard")
            sockets = self._number(values, "sockets") or (boards or 1) * (per_board or 1)
            per_socket, threads = self._number(values, "corespersocket"), self._number(values, "threadspercore")
            cores = sockets * (per_socket or 1) * (threads or 1)
        if cores > MOST_CPUS:
            raise InputError(f"{self._where}: a node of {cores:,} CPUs; at most {MOST_CPUS:,} are read, as by Slurm.")
        features = [each.strip() for each in (values.get("feature") or values.get("features") or "").split(",")]
        for each in filter(None, features):
            if not is_feature(each):
                raise InputError(f"{self._where}: {each[:40]!r} is not a name of a feature.")
        resources = self._gres(values.get("gres", ""))
        if (memory := self._number(values, "realmemory")) is not None:
            resources = {MEMORY: memory, **resources}
        node = ConfNode(
            "",
            max(cores, 1),
            tuple(resources.items()),
            tuple(dict.fromkeys(filter(None, features))),
            self._number(values, "weight") or 1,
        )
        for name in self._names(text):
            self._nodes[name] = replace(node, name=name)
        if len(self._nodes) > MOST_NODES:
            raise InputError(f"{self._path}: more than {MOST_NODES:,} nodes; at most so many are read.")

    def _names(self, text: str) -> list[str]:
        """Return the names in a host list, of which a file may have so many."""
        names = expand_hostlist(text)
        self._count(len(names))
        return names

    def _count(self, n_names: int) -> None:
        """Count the names in lists; `InputError` if they are too many."""
        self._n_names += n_names
        if self._n_names > _MOST_LISTED:
            raise InputError(
                f"{self._where}: lists of nodes up to here hold {self._n_names:,} names; "
                f"at most {_MOST_LISTED:,} are read."
            )

    def _note_keys(self, values: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._keys |= dict.fromkeys(key for key in values if key not in known)

    def _number(self, values: Mapping[str, str], *names: str) -> int | None:
        """Return the first of some keys that is set; None where none is, or has no limit."""
        text = next((values[name] for name in names if name in values), "")
        if not text or text.upper() in ("UNLIMITED", "INFINITE"):
            return None
        if not (text.isdecimal() and len(text) < 13):
            raise InputError(f"{self._where}: {names[0]} is {text[:40]!r}; it must be a whole number.")
        return int(text)

    def _gres(self, text: str) -> dict[str, int]:
        """Return generic resources by name, and by type where they have types."""
        found: list[tuple[str, int]] = []
        for item in filter(None, _DEVICES.sub("", text).split(",")):
            match = _GRES.fullmatch(item.strip())
            try:
                if match is None:
                    raise ValueError(f"{item.strip()[:40]!r} is none")
                count = parse_count(match["count"] or "1")
            except ValueError as error:
                raise InputError(
                    f"{self._where}: gres holds {item.strip()[:40]!r}; NAME[:TYPE]:NUMBER is allowed, as gpu:4, "
                    f"gpu:a100:4 or tmp:844G ({error})."
                ) from None
            if match["kept"]:
                self._not_consumed[match["name"]] = None
            else:
                found.append((match["name"], count))
        try:
            return amounts_of(found)
        except ValueError as error:
            raise InputError(f"{self._where}: gres: {error}.") from None

    def conf(self, not_read: Iterable[str]) -> SlurmConf:
        """Return what was read; `not_read` are lines about what is missing.

        Raises
        ------
        InputError
            If it has no nodes or partitions.
        """
        if not self._nodes or not self._partitions:
            what = "nodes (NodeName=...)" if not self._nodes else "partitions (PartitionName=...)"
            raise InputError(f"{self._path}: no {what}; a slurm.conf with both is needed.")
        if len(self._partitions) > MOST_PARTITIONS:
            raise InputError(f"{self._path}: more than {MOST_PARTITIONS:,} partitions; at most so many are read.")
        if self._is_printed and "SelectType" not in self._settings:
            self._settings |= {"SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core_Memory"}
            self._is_assumed = True
        nodes = sorted(self._nodes.values(), key=lambda node: (node.weight, _as_sorted(node.name)))
        if self._settings.get("SelectTypeParameters", "").upper().find("MEMORY") < 0:
            # memory is not a consumable resource then
            rest = [tuple(pair for pair in node.resources if pair[0] != MEMORY) for node in nodes]
            nodes = [replace(node, resources=some) for node, some in zip(nodes, rest, strict=True)]
        partitions = [self._partition(name, *each) for name, each in self._partitions.items()]
        there = [each for each in partitions if each is not None]
        if not there:
            raise InputError(f"{self._path}: no partition is up and has nodes.")
        there.sort(key=lambda each: not each.is_default)
        return SlurmConf(self._path, tuple(nodes), tuple(there), self._settings, tuple(self._notes(not_read)))

    def _partition(self, name: str, where: str, values: Mapping[str, str]) -> ConfPartition | None:
        self._where = where
        self._note_keys(values, (*_PARTITION_KEYS, *_PARTITION_REST))
        if values.get("state", "UP").upper() in _NOT_THERE:
            self._closed.append(name)
            return None
        names = self._members(values.get("nodes", ""))
        nodes = tuple(each for each in names if each in self._nodes)
        self._undefined |= dict.fromkeys(each for each in names if each not in self._nodes and each not in self._down)
        if not nodes:
            self._empty.append(name)
            return None
        for key in effects_of_parts(values, OF_PARTITIONS):
            self._effects["partition"].setdefault(key, []).append(name)
        limit, tier = values.get("maxtime", "INFINITE"), self._number(values, "prioritytier", "priority")
        factor = self._number(values, "priorityjobfactor", "priority")
        is_endless = limit.upper() in ("INFINITE", "UNLIMITED", "-1")
        return ConfPartition(
            name,
            nodes,
            LARGEST if is_endless else max(slurm_time_s(where, "MaxTime", limit), 1.0),
            self._number(values, "maxnodes") or None,
            1 if tier is None else tier,
            1 if factor is None else factor,
            values.get("default", "NO").upper() in ("YES", "TRUE", "Y", "1"),
        )

    def _members(self, text: str) -> list[str]:
        """Return the names in the nodes of a partition, of which some may be node sets, each once."""
        names: dict[str, None] = {}
        for item in map(str.strip, split_hostlist(text) if text else ()):
            names |= dict.fromkeys(self._of_set(item) if item in self._sets else self._all_or(item))
        return list(names)

    def _all_or(self, text: str) -> list[str]:
        return list(self._nodes) if text.upper() == "ALL" else self._names(text)

    def _of_set(self, name: str) -> list[str]:
        """Return the names of the nodes of a node set: those that it lists, and those with its feature."""
        where, values = self._sets[name]
        before, self._where = self._where, where
        listed = (
            [each for item in split_hostlist(values["nodes"]) for each in self._all_or(item)]
            if "nodes" in values
            else []
        )
        if feature := values.get("feature"):
            listed += [each.name for each in self._nodes.values() if feature in each.features]
        self._count(len(listed))
        self._where = before
        return listed

    def _notes(self, not_read: Iterable[str]) -> Iterator[str]:
        """Say what is missing, what would change a schedule and is not simulated, and how much else was passed over."""
        yield from not_read
        of_machine = list(effects_of_machine({**self._others, **self._settings}))
        n_other_lines = self._n_other_lines - sum(each.split("=")[0] in self._others for each in of_machine)
        if effects := [*of_machine, *self._parts_with_effects()]:
            yield f"{self._path}: not simulated, though they would change the schedule, are {', '.join(effects)}"
        given = (item.split("=", 1)[0] for item in self._settings.get("SchedulerParameters", "").split(",") if item)
        unknown = [name for name in given if name not in (*SCHEDULER_PARAMETERS, *_OF_COST)]
        flags = [each for each in self._settings.get("PriorityFlags", "").upper().split(",") if each]
        unknown += [each for each in flags if each not in PRIORITY_FLAGS]
        counts = (
            (unknown, "parameter or flag of scheduling", "parameters and flags of scheduling"),
            (list(self._not_consumed), "resource that jobs do not consume", "resources that jobs do not consume"),
            (self._empty, "partition without nodes that are up", "partitions without nodes that are up"),
            (self._closed, "partition that is down or drained", "partitions that are down or drained"),
            (list(self._undefined), "node of partitions without a NodeName", "nodes of partitions without a NodeName"),
            (list(self._keys), "key of nodes and partitions", "keys of nodes and partitions"),
        )
        parts = [f"{counted(len(names), *words)} ({_first(names)})" for names, *words in counts if names]
        if self._down:
            parts.append(f"{counted(len(self._down), 'node that is', 'nodes that are')} down or to come")
        if n_other_lines:
            parts.append(f"{counted(n_other_lines, 'line')} of other things")
        if self._is_assumed:
            yield (
                f"{self._path}: no SelectType (scontrol show config): jobs are assumed to share nodes by cores and "
                "memory"
            )
        if parts:
            yield f"{self._path}: passed over: {'; '.join(parts)}"

    def _parts_with_effects(self) -> Iterator[str]:
        yield from shown_parts(self._effects["partition"], "partition")
        yield from shown_parts(self._effects["node"], "node list")


def _first(names: list[str]) -> str:
    """Return the first of some names, for messages."""
    return ", ".join(name[:40] for name in names[:5]) + ", ..." * (len(names) > 5)


def _as_sorted(name: str) -> tuple[tuple[str, int, str], ...]:
    """Return what names of nodes are sorted by: letters as letters, numbers as numbers."""
    return tuple((letters, int(digits or -1), digits) for letters, digits in re.findall(r"(\D*)(\d{0,18})", name))
