"""Tables of partitions (TOML), and the clusters of a platform as partitions where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import BaseModel, ConfigDict, Field

from gridsched.errors import InputError
from gridsched.files.foreign_files import foreign_kind
from gridsched.files.input_files import parse_toml, read_text
from gridsched.model.limits import LARGEST, Positive
from gridsched.model.platform import Partition, Platform
from gridsched.model.records import checked
from gridsched.platform_io.hostlists import expand_hostlist, fold_hostlist, split_hostlist
from gridsched.platform_io.overrides import check_patterns
from gridsched.platform_io.slurm_conf import ConfPartition, SlurmConf

#: More partitions than this are refused.
MOST_PARTITIONS = 1000
Texts = Annotated[list[str], Field(min_length=1)]


class PartitionKeys(BaseModel):
    """A ``[[partition]]`` of a table.

    Attributes
    ----------
    name : str
    nodes : list of str
        Names of its nodes, host lists as Slurm writes them, and patterns with ``*`` and ``?``.
    log_names : list of str
        What the log calls it, besides its name: another name, or of SWF the number of the partition,
        or that of the queue as ``"queue 3"``.
    max_time_s : float
        The longest time that a job may ask for [s].
    max_nodes, max_cores : int
        The most that a job may take.
    priority : int
        Jobs of higher priority come first in the queue.
    default : bool
        Whether it is the first that is asked for jobs that name none.
    job_factor : int
        Slurm's ``PriorityJobFactor``.
    """

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    nodes: Texts
    log_names: list[str] = []
    max_time_s: Positive = LARGEST
    max_nodes: Annotated[int | None, Field(ge=1)] = None
    max_cores: Annotated[int | None, Field(ge=1)] = None
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    default: bool = False
    job_factor: Annotated[int, Field(ge=0, le=65_533)] = 1


@dataclass(frozen=True)
class NamedPartition:
    """A partition, all its names in the log, whether a table contains it, and which of its nodes compute nothing."""

    partition: Partition
    names: frozenset[str]
    is_of_table: bool
    idle: tuple[str, ...] = ()


def partitions_of(platform: Platform, path: str | Path | None) -> list[NamedPartition]:
    """Return the partitions of a table, the default one first; without one the platform's clusters.

    Parameters
    ----------
    platform : Platform
    path : path or None

    Raises
    ------
    InputError
        If the file cannot be read, or a key of it is wrong.
    """
    if path is None:
        clusters = [Partition(each.name, tuple(sorted(each.hosts))) for each in platform.clusters]
        return [NamedPartition(each, frozenset([each.name]), is_of_table=False) for each in clusters]
    text = read_text(path)
    try:
        content = parse_toml(text, str(path))
    except InputError:
        if said := foreign_kind(text):
            raise InputError(f"{path}: {said}") from None
        raise
    tables = content.pop("partition", None)
    if content or not isinstance(tables, list) or not 0 < len(tables) <= MOST_PARTITIONS:
        other = f"; found {next(iter(content))!r}" if content else ""
        raise InputError(f"{path}: a table of partitions holds 1 to {MOST_PARTITIONS} [[partition]]{other}.")
    keys = [_keys(table, f"{path}: partition {k}: ") for k, table in enumerate(tables, start=1)]
    _check_together(keys, path)
    return [_named(each, platform, str(path)) for each in sorted(keys, key=lambda each: not each.default)]


def partitions_of_conf(conf: SlurmConf, platform: Platform) -> list[NamedPartition]:
    """Return the partitions of a ``slurm.conf`` on a platform that has its nodes."""
    id_of, named = {host.name: h for h, host in enumerate(platform.hosts)}, []
    for each in conf.partitions:
        computing, idle = _apart(each.nodes, id_of, f"{conf.path}: partition {each.name!r}", platform)
        partition = Partition(
            each.name, computing, each.max_time_s, each.max_nodes, priority=each.tier, job_factor=each.job_factor
        )
        named.append(NamedPartition(partition, frozenset([each.name]), is_of_table=True, idle=idle))
    return named


def partition_table(conf: SlurmConf) -> str:
    """Return the partitions of a ``slurm.conf`` as the TOML table that `partitions_of` reads.

    Raises
    ------
    InputError
        If a table does not take a value of one.
    """
    return tomli_w.dumps({"partition": [_as_table(each, conf.path) for each in conf.partitions]})


def _as_table(each: ConfPartition, path: str) -> dict[str, Any]:
    """Return the keys of a partition that are not as by default."""
    values = {
        "name": each.name,
        "nodes": split_hostlist(fold_hostlist(each.nodes)),
        "max_time_s": each.max_time_s,
        "max_nodes": each.max_nodes,
        "priority": each.tier,
        "default": each.is_default,
        "job_factor": each.job_factor,
    }
    keys = checked(PartitionKeys, values, f"{path}: partition {each.name[:40]!r}: ")
    return keys.model_dump(exclude_defaults=True, exclude_none=True)


def _keys(table: object, owner: str) -> PartitionKeys:
    if not isinstance(table, dict):
        raise InputError(f"{owner}it must be a table that begins with [[partition]].")
    unknown = sorted(set(table) - set(PartitionKeys.model_fields))
    missing = [name for name in ("name", "nodes") if name not in table]
    if unknown or missing:
        what = f"no key is called {unknown[0]!r}" if unknown else f"it lacks {missing[0]!r}"
        raise InputError(f"{owner}{what}; its keys are {', '.join(PartitionKeys.model_fields)}.")
    return checked(PartitionKeys, table, owner)


def _check_together(keys: Iterable[PartitionKeys], path: str | Path) -> None:
    """Raise `InputError` where two partitions have one name, or are both the default one."""
    names = [name for each in keys for name in {each.name, *each.log_names}]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{path}: two partitions are called {twice[0]!r}; names in the log are of one partition.")
    if sum(each.default for each in keys) > 1:
        raise InputError(f"{path}: two partitions are the default one; one at most is allowed.")


def _named(keys: PartitionKeys, platform: Platform, path: str) -> NamedPartition:
    """Return a partition of a table; `InputError` where one of its nodes is no host, or none of them computes."""
    known, id_of = [host.name for host in platform.everyone], {host.name: h for h, host in enumerate(platform.hosts)}
    names, listed, option = set(known), dict[str, None](), f"{path}: nodes"
    for text in keys.nodes:
        try:
            items = expand_hostlist(text)
        except InputError as error:
            raise InputError(f"{option}: {error}") from None
        for item in items:
            if item in names:
                listed[item] = None
                continue
            check_patterns(option if item == text else f"{option} {text!r}:", [(item, None)], known, platform.name)
            # a pattern means the hosts that compute
            listed |= dict.fromkeys(name for name in id_of if fnmatchcase(name, item))
    computing, idle = _apart(listed, id_of, f"{path}: partition {keys.name!r}", platform)
    partition = Partition(
        keys.name, computing, keys.max_time_s, keys.max_nodes, keys.max_cores, keys.priority, job_factor=keys.job_factor
    )
    return NamedPartition(partition, frozenset([keys.name, *keys.log_names]), is_of_table=True, idle=idle)


def _apart(
    names: Iterable[str], id_of: Mapping[str, int], owner: str, platform: Platform
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the ids of hosts that compute, ascending, and the names of the others; `InputError` if none does."""
    names = tuple(names)
    idle = tuple(name for name in names if name not in id_of)
    ids = tuple(sorted(id_of[name] for name in names if name in id_of))
    if not ids:
        which = f" ({', '.join(idle[:3])})" if idle else ""
        raise InputError(
            f"{owner} has no node that computes on {platform.name}{which}: a master computes nothing, nor do hosts of "
            "speed 0 and those without a worker in the deployment. Give it another node, or leave it out."
        )
    return ids, idle
