"""Jobs of a log on nodes that they share: what they take, and the partition that takes each."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError, counted
from gridsched.model.constraints import understood
from gridsched.model.platform import Partition, Platform
from gridsched.model.resource_types import TYPE_MARK, is_type, typed_amounts, whole_of, with_wholes
from gridsched.model.room_on_nodes import most_parts, node_amounts, rooms
from gridsched.model.tasks import CORES, MEMORY, MOST_AMOUNT, MOST_IN_ALL
from gridsched.platform_io.host_resources import NAME, TYPE, parse_count, parse_memory_mb
from gridsched.platform_io.hostlists import fold_hostlist
from gridsched.platform_io.slurm_conf import SlurmConf
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.partitions import MOST_PARTITIONS, NamedPartition, partitions_of, partitions_of_conf
from gridsched.workloads.traces.trace_options import TraceOptions

#: Texts of a log that say what a job takes: cores in all, trackable resources as Slurm lists them,
#: allocated and asked for, memory as Slurm writes it, KB for each processor, and generic resources of
#: each node as Slurm wrote them before 21.08.
TAKEN = ("cpus", "tres", "asked_tres", "memory", "processor_kb", "gres")
#: The partition of a job that none takes.
_NONE = -1
#: Amount of memory that is all of a node, and how Slurm writes it: ``0``, ``0n``, ``0Mc``.
_ALL = -1
_NO_AMOUNT = re.compile(r"0+(?:\.0*)?[KMGTP]?[nc]?", re.I)
#: Partitions that a reason names.
_MOST_NAMED = 3
_MEMORY = re.compile(r"(.*?)([nc]?)")
#: One of them: ``gpu``, ``gpu:2``, ``gpu:a100:2``, ``gres:gpu:2``, ``gres/gpu:2(S:0-1)``.
_GRES = re.compile(rf"(?:gres[:/])?({NAME}(?::{TYPE})?)(?::(\d{{1,16}}[KMGTP]?))?(?:\(.*\))?", re.I)
#: Resources and types beside cores and memory that are counted at most.
MOST_RESOURCES = 64


@dataclass(frozen=True)
class SharedJobTable:
    """Jobs of a log that fit, on a machine whose nodes they share.

    Attributes
    ----------
    jobs : JobTable
    platform : Platform
        With partitions.
    columns : mapping
        What `make_tasks` takes of them: ``width``, ``demand``, ``anywhere``, ``partition``,
        ``resources``.
    """

    jobs: JobTable
    platform: Platform
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class _Wants:
    """What parts of jobs take, and how many there are; one entry for each job."""

    width: Integers
    anywhere: Booleans
    demand: Integers
    resources: tuple[str, ...]
    all_memory: Booleans
    notes: tuple[str, ...] = ()


def share_nodes(
    jobs: JobTable, platform: Platform, options: TraceOptions, placement: str, conf: SlurmConf | None = None
) -> SharedJobTable:
    """Return the jobs of a log that share the nodes of a platform.

    Parameters
    ----------
    jobs : JobTable
        With texts of `TAKEN`, if the log contains them.
    platform : Platform
    options : TraceOptions
    placement : str
        How they are laid on nodes, see `gridsched.model.room_on_nodes.PLACES`.
    conf : SlurmConf, optional
        Whose partitions count, and no table's.

    Returns
    -------
    SharedJobTable
        Jobs that no partition takes are left out.

    Raises
    ------
    InputError
        If the table of partitions is wrong, or whole nodes are asked for and differ.
    """
    wants = _cores_wanted(jobs) if options.allocation == "cores" else _nodes_wanted(jobs, platform)
    whole = partitions_of(platform, options.partitions) if conf is None else partitions_of_conf(conf, platform)
    named, constraint, notes = _parts_of_partitions(whole, jobs, platform)
    if idle := list(dict.fromkeys(name for each in whole for name in each.idle)):
        notes.append(f"{counted(len(idle), 'node')} of partitions ({fold_hostlist(idle)[:60]}) compute nothing here")
    wants, missing = _counted_here(wants, platform)
    notes += [*wants.notes, *missing]
    asks, unknown = _asked(jobs, named, constraint)
    takes = [
        _takes(jobs.asked_s, wants, platform, each.partition, placement) & asks[:, k] for k, each in enumerate(named)
    ]
    chosen = np.where(np.any(takes, axis=0), np.argmax(takes, axis=0), _NONE)
    parts = named
    named, chosen = _used(named, chosen)
    platform = replace(platform, partitions=tuple(each.partition for each in named))
    if unknown.any() and not named[0].is_of_table:  # those of the platform have other names and were not meant
        notes.append(
            f"{counted(int(unknown.sum()), 'job names', 'jobs name')} partitions that are not clusters: "
            "the first that accepts a job gets it"
        )
    kept = chosen != _NONE
    wants, of_memory = _with_all_memory(wants, chosen, platform)
    notes += of_memory
    texts = {name: each for name, each in jobs.attributes.items() if name not in TAKEN}
    wide, reason = _only_too_wide(wants, platform, options)
    wide &= ~kept
    left = replace(jobs, attributes=texts, notes=(*jobs.notes, *notes))
    gone = np.zeros(len(jobs), dtype=np.bool_)
    for rows, said in [(wide, reason), *_reasons(jobs, ~kept & ~wide, parts, asks, unknown, options, placement)]:
        left = left.without(rows[~gone], said)
        gone |= rows
    longest_s = np.array([each.max_time_s for each in platform.partitions])
    left = left.with_limits(longest_s[chosen[kept]])
    columns = {
        "width": wants.width[kept],
        "anywhere": wants.anywhere[kept],
        "demand": wants.demand[kept],
        "partition": chosen[kept],
        "resources": wants.resources,
    }
    return SharedJobTable(left, platform, columns)


def _nodes_wanted(jobs: JobTable, platform: Platform) -> _Wants:
    """Return whole nodes: all cores of each."""
    cores = sorted(set(platform.cores.tolist()))
    if len(cores) > 1:
        raise InputError(
            f"{jobs.name}: jobs take whole nodes, and those of {platform.name} have {cores[0]} to {cores[-1]} cores. "
            "Let jobs take cores (--allocation cores)."
        )
    demand = np.full((len(jobs), 1), cores[0], dtype=np.int64)
    no = np.zeros(len(jobs), dtype=np.bool_)
    return _Wants(jobs.width, no, demand, (CORES,), no)


def _cores_wanted(jobs: JobTable) -> _Wants:
    """Return what jobs request of each node, or, if the log counts processors alone, of cores anywhere."""
    texts = [jobs.attributes.get(name) for name in TAKEN]
    rows, texts_of, unread = [], {}, dict[tuple[int, tuple[str, ...]], list[str]]()
    n_unread = 0
    for k, width in enumerate(jobs.width.tolist()):
        key = tuple("" if each is None else str(each[k]) for each in texts)
        if (width, key) not in texts_of:
            texts_of[width, key] = _parts(width, *key, unread=unread.setdefault((width, key), []))
        n_unread += bool(unread[width, key])
        rows.append(texts_of[width, key])
    names = sorted({name for _, _, needs in texts_of.values() for name in needs} - {CORES, MEMORY})
    if len(names) > MOST_RESOURCES:
        raise InputError(
            f"{jobs.name}: jobs ask for {len(names)} kinds of resources; at most {MOST_RESOURCES} are read."
        )
    resources = (CORES, MEMORY, *names)
    demand = np.array([[needs.get(name, 0) for name in resources] for _, _, needs in rows], dtype=np.int64)
    demand = demand.reshape(len(rows), len(resources))
    all_memory = demand[:, 1] == _ALL
    demand[all_memory, 1] = 1
    width, anywhere = (np.array([row[i] for row in rows]) for i in (0, 1))
    notes: tuple[str, ...] = ()
    if n_unread:
        text = next(filter(None, unread.values()))[0]
        notes = (
            f"{counted(n_unread, 'job asks', 'jobs ask')} for amounts that cannot be read, as {text[:40]!r}: "
            "these are not counted",
        )
    return _Wants(width.astype(np.int64), anywhere.astype(np.bool_), demand, resources, all_memory, notes)


def _parts(
    width: int, cpus: str, tres: str, asked_tres: str, memory: str, processor_kb: str, gres: str, *, unread: list[str]
) -> tuple[int, bool, dict[str, int]]:
    """Return how many parts a job has, whether they may lie anywhere, and what each takes.

    Amounts of the whole job are divided by its nodes, and rounded up. Units of a type are units of their resource, too,
    and those that were allocated of a type to a job that asked for none may be of any. Amounts that cannot be read come
    into `unread`; `_ALL` is all memory of a node, which Slurm writes as 0.
    """

    def read(text: str, parse: Callable[[str], int], what: str = "") -> int:
        try:
            return min(parse(text), MOST_AMOUNT) if text else 0
        except ValueError:
            unread.append(f"{what}{text}")
            return 0

    listed = listed_resources(tres or asked_tres)
    for name, amount in listed.items():
        if name.startswith("gres/"):
            read(amount, parse_count, f"{name}=")
    n_cpus = read(listed.get("cpu", cpus), _whole)
    if not n_cpus:
        return width, True, {CORES: 1, MEMORY: math.ceil(_number(processor_kb) / 1024)}
    needs = {CORES: -(-n_cpus // width)}
    if "mem" in listed:
        needs[MEMORY] = -(-read(listed["mem"], parse_memory_mb, "mem=") // width)
    elif _NO_AMOUNT.fullmatch(memory):
        needs[MEMORY] = _ALL
    elif memory:
        amount, of_what = _MEMORY.fullmatch(memory).groups()  # type: ignore[union-attr]
        in_all = {"n": 1, "c": needs[CORES], "": 1 / width}[of_what]
        needs[MEMORY] = math.ceil(read(amount, parse_memory_mb) * in_all)
    if found := _generic(listed):
        asked = _generic(listed_resources(asked_tres))
        of_no_type = {whole_of(name) for name in asked} - {whole_of(name) for name in asked if is_type(name)}
        units = {
            name: -(-n // width) for name, n in found.items() if not is_type(name) or whole_of(name) not in of_no_type
        }
        for whole, in_types in typed_amounts(units).items():
            units[whole] = max(units.get(whole, 0), in_types)
        needs |= units
    elif gres:
        matches = [(_GRES.fullmatch(item), item) for item in gres.split(",")]
        unread += [item for match, item in matches if match is None]
        needs |= with_wholes(
            (match[1], _units(match[2] or "1")) for match, _ in matches if match and match[1] not in (CORES, MEMORY)
        )
    return width, False, {name: min(amount, MOST_AMOUNT, MOST_IN_ALL // width) for name, amount in needs.items()}


def listed_resources(tres: str) -> dict[str, str]:
    """Return the amounts of trackable resources as Slurm lists them."""
    return dict(item.split("=", 1) for item in tres.split(",") if "=" in item)


def _generic(listed: Mapping[str, str]) -> dict[str, int]:
    """Return the units of generic resources, and of their types as ``gpu:a100``, in all."""
    pairs = ((name.partition("/"), amount) for name, amount in listed.items())
    return {rest: _units(amount) for (kind, _, rest), amount in pairs if kind == "gres" and rest.count(TYPE_MARK) < 2}


def _units(text: str) -> int:
    """Return a number of units of a log, 0 if it has none."""
    try:
        return parse_count(text)
    except ValueError:
        return 0


def _whole(text: str) -> int:
    """Return a whole number; `ValueError` if it is none."""
    if not text.isdecimal() or len(text) > 15:
        raise ValueError
    return int(text)


def _number(text: str) -> int:
    """Return a count of a log, 0 if it has none."""
    return min(int(text), MOST_AMOUNT) if text.isdecimal() and len(text) < 16 else 0


def _counted_here(wants: _Wants, platform: Platform) -> tuple[_Wants, list[str]]:
    """Leave out resources that no node of the platform has, and report this; types count where others are known."""
    named = wants.demand.copy()
    named[wants.all_memory, wants.resources.index(MEMORY) if wants.all_memory.any() else 0] = 0
    has, asked = node_amounts(platform, wants.resources).max(axis=0) > 0, named.max(axis=0, initial=0) > 0
    typed = {whole_of(name) for host in platform.hosts for name, _ in host.resources if is_type(name)}
    has |= np.array([is_type(name) and whole_of(name) in typed for name in wants.resources])
    notes = [
        f"{name} of {counted(int(np.count_nonzero(named[:, k])), 'job')} is not counted: no node lists it"
        for k, name in enumerate(wants.resources)
        if asked[k] and not has[k]
    ]
    asked |= wants.demand.max(axis=0, initial=0) > 0
    kept = np.flatnonzero(has & asked) if len(wants.demand) else np.zeros(1, dtype=np.int64)
    names = tuple(wants.resources[k] for k in kept.tolist())
    return replace(wants, demand=np.ascontiguousarray(wants.demand[:, kept]), resources=names), notes


def _with_all_memory(wants: _Wants, chosen: Integers, platform: Platform) -> tuple[_Wants, list[str]]:
    """Return jobs that ask for all memory of their nodes with that of the nodes of their partition, and notes.

    Where these differ, the least counts that any of them has.
    """
    rows = np.flatnonzero(wants.all_memory & (chosen != _NONE)) if MEMORY in wants.resources else np.zeros(0, np.int64)
    if not len(rows):
        return wants, []
    memory, demand = wants.resources.index(MEMORY), wants.demand.copy()
    amounts, differ = node_amounts(platform, wants.resources)[:, memory], False
    for partition in np.unique(chosen[rows]).tolist():
        here = amounts[np.array(platform.partitions[partition].hosts)]
        demand[rows[chosen[rows] == partition], memory] = here[here > 0].min()
        differ |= bool((here[here > 0] != here.max()).any())
    least = ", the least of any node of their partition" if differ else ""
    note = f"{counted(len(rows), 'job takes', 'jobs take')} all memory of each node (ReqMem 0){least}"
    return replace(wants, demand=demand), [note]


def _parts_of_partitions(
    named: list[NamedPartition], jobs: JobTable, platform: Platform
) -> tuple[list[NamedPartition], list[str], list[str]]:
    """Return partitions with their parts that jobs ask for, what counts of each job's constraint, and notes.

    The parts come behind all whole partitions.
    """
    asked = Counter(jobs.attributes["constraint"].tolist() if "constraint" in jobs.attributes else [""] * len(jobs))
    asked.pop("", None)
    known = understood(asked) if any(host.features for host in platform.hosts) else {}
    notes = []
    if not asked and (features := sorted({name for host in platform.hosts for name in host.features})):
        some = ", ".join(features[:3]) + ", ..." * (len(features) > 3)
        notes.append(
            f"nodes have features ({some}), and no job of the log has a "
            "constraint (column Constraints of sacct): jobs may use any node of their partition"
        )
    if missed := {text: n for text, n in asked.items() if text not in known}:
        why = "is not understood" if known or any(host.features for host in platform.hosts) else "names no feature here"
        notes = [
            f"{counted(sum(missed.values()), 'job has', 'jobs have')} a constraint that {why}, as "
            f"{next(iter(missed))[:40]!r}: they may use "
            "any node of their partition"
        ]
    if len(named) * (1 + len(known)) > MOST_PARTITIONS:
        raise InputError(
            f"{jobs.name}: {len(known):,} constraints of jobs on {len(named):,} partitions; at most "
            f"{MOST_PARTITIONS:,} parts of partitions are read."
        )
    parts = list(named)
    for text, constraint in known.items():
        fits = {h for h, host in enumerate(platform.hosts) if constraint.met_by(host.features)}
        for each in named:
            if hosts := tuple(h for h in each.partition.hosts if h in fits):
                parts.append(replace(each, partition=replace(each.partition, hosts=hosts, constraint=text)))
    if not asked:
        return parts, [""] * len(jobs), notes
    return parts, [text if text in known else "" for text in jobs.attributes["constraint"].tolist()], notes


def _used(named: Sequence[NamedPartition], chosen: Integers) -> tuple[list[NamedPartition], Integers]:
    """Leave out the parts of partitions that no job uses."""
    used = np.array([not each.partition.constraint for each in named])
    used[chosen[chosen != _NONE]] = True
    place = np.append(np.cumsum(used) - 1, _NONE)
    return [each for each, is_used in zip(named, used.tolist(), strict=True) if is_used], place[chosen]


def _asked(jobs: JobTable, named: Sequence[NamedPartition], constraint: Sequence[str]) -> tuple[Booleans, Booleans]:
    """Return which partitions each job may use, by its names and constraint, and which jobs name one that is not there.

    Shapes (jobs, partitions) and (jobs,).
    """
    asks = np.ones((len(jobs), len(named)), dtype=np.bool_)
    unknown = np.zeros(len(jobs), dtype=np.bool_)
    nothing = [""] * len(jobs)
    texts = list(zip(*(jobs.attributes.get(name, nothing) for name in ("partition", "queue")), strict=True))
    for text, queue in set(texts):
        rows = np.array([each == (text, queue) for each in texts])
        names = text.split(",") if text else []
        meant = np.array([not each.names.isdisjoint([*names, f"queue {queue}"]) for each in named])
        if meant.any():
            asks[rows] = meant
        elif names:
            unknown |= rows
            asks[rows] = not named[0].is_of_table
    constraints = np.array(constraint, dtype=object)
    for k, each in enumerate(named):
        asks[:, k] &= constraints == each.partition.constraint
    return asks, unknown


def _reasons(
    jobs: JobTable,
    left: Booleans,
    named: Sequence[NamedPartition],
    asks: Booleans,
    unknown: Booleans,
    options: TraceOptions,
    placement: str,
) -> list[tuple[Booleans, str]]:
    """Return which of the jobs that are `left` no partition takes for each reason, which names their partitions."""
    longest_s = np.array([each.partition.max_time_s for each in named])
    is_short = (jobs.asked_s[:, None] <= longest_s) | jobs.without_limit[:, None]
    fits_none, has_time = ~asks.any(axis=1), (is_short & asks).any(axis=1)
    unknown = unknown & named[0].is_of_table
    texts = jobs.attributes.get("partition", np.full(len(jobs), "", dtype=object))
    limit_s = {name: each.partition.max_time_s for each in named for name in each.names}

    def counts(rows: Booleans, *, has_limits: bool = False) -> str:
        found, shown = Counter(texts[rows].tolist()), []
        for name, n in found.most_common(_MOST_NAMED):
            limit = f" of at most {limit_s[name]:g} s" if has_limits and name in limit_s else ""
            shown.append(f"{n:,} of {name[:40]!r}{limit}" if name else f"{n:,} of no partition")
        return ", ".join(shown) + ", ..." * (len(found) > _MOST_NAMED)

    neighbours = ", or no neighbors hold it (--placement contiguous)" if placement == "contiguous" else ""
    hint = "; log_names of a partition are its other names in the log" if options.partitions is not None else ""
    absent, bare = left & unknown, left & ~unknown & fits_none
    long = left & ~unknown & ~fits_none & ~has_time
    large = left & ~unknown & has_time
    return [
        (absent, f"partition not in {options.partitions or options.slurm_conf}: {counts(absent)}{hint}"),
        (bare, f"no node of the partition has the features asked for: {counts(bare)}"),
        (long, f"more time asked for than the partition allows: {counts(long, has_limits=True)}"),
        (large, f"too large for the partition, even if that is empty{neighbours}: {counts(large)}"),
    ]


def _only_too_wide(wants: _Wants, platform: Platform, options: TraceOptions) -> tuple[Booleans, str]:
    """Return which jobs are wider than the nodes of every partition, but not than its cores, and what to do.

    Logs that count processors have such jobs where a platform of several cores takes whole nodes.
    """
    hosts = [list(each.hosts) for each in platform.partitions]
    most_nodes = max(map(len, hosts), default=0)
    most_cores = max((int(platform.cores[each].sum()) for each in hosts), default=0)
    wide = (wants.width > most_nodes) & (wants.width <= most_cores) & (options.allocation == "nodes")
    return wide, (
        f"wider than the {counted(most_nodes, 'node')} of any partition, of which jobs take whole ones; "
        f"--allocation cores lets a job take up to {counted(most_cores, 'core')}"
    )


def _takes(asked_s: Floats, wants: _Wants, platform: Platform, partition: Partition, placement: str) -> Booleans:
    """Return which jobs a partition takes: within its limits, and with room on its nodes."""
    cores = wants.width * wants.demand[:, 0]
    most_cores = math.inf if partition.max_cores is None else partition.max_cores
    within = ((asked_s <= partition.max_time_s) | np.isposinf(asked_s)) & (cores <= most_cores)
    hosts = np.array(partition.hosts, dtype=np.int64)
    amounts = node_amounts(platform, wants.resources)[hosts]
    kinds, kind = np.unique(np.column_stack([wants.anywhere, wants.demand]), axis=0, return_inverse=True)
    room = np.zeros(len(kinds), dtype=np.int64)
    for k, (anywhere, *need) in enumerate(kinds.tolist()):
        on_each = rooms(amounts, np.array(need))
        on_each = on_each if anywhere else np.minimum(on_each, 1)
        room[k] = most_parts(on_each, hosts, placement, partition.max_nodes)
    return np.asarray(within & (wants.width <= room[kind.reshape(-1)]))
