"""Batsim's workloads: JSON with jobs and the profiles that say what they do."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gridsched.errors import InputError, counted
from gridsched.files.foreign_files import foreign_kind
from gridsched.files.json_files import json_text
from gridsched.files.output_files import write_whole
from gridsched.model.job_profiles import DEEPEST, Delay, ParallelWork, Profile, TooManyMessages
from gridsched.model.job_profiles import Sequence as SequenceOfProfiles
from gridsched.workloads.traces.job_table import NO_TIME, NOT_OF_THE_FORMAT, JobRows, JobTable, plain_number
from gridsched.workloads.traces.log_lines import whole_text
from gridsched.workloads.traces.trace_options import TraceOptions

KNOWN = "delays, parallel tasks, and sequences of them"


def read_with_options(path: str | Path, options: TraceOptions, speed: float) -> JobTable:
    """Read a workload with its profiles, as `read_batsim`, refusing options that do not fit it."""
    options.refuse({"nodes_from"}, path, "in Batsim's JSON 'res' is the number of nodes")
    return _read(path, speed)


def read_batsim(path: str | Path, *, speed: float) -> JobTable:
    """Read a workload of Batsim, plain or compressed by gzip, as what its jobs compute.

    Parameters
    ----------
    path : path
    speed : float
        Speed of a node, which decides how long the flops of a profile take [flop/s].

    Returns
    -------
    JobTable
        In order of submission. Where ids are not whole numbers, all jobs are numbered by their
        places in the file, and keep their ids as names.

    Raises
    ------
    InputError
        If the file cannot be read, or is no such workload.

    Notes
    -----
    Profiles are known by their names in Batsim 5 and before. What they send and store is not
    simulated, and sequences and unequal amounts of work run as one delay; a line reports each of these. A job's
    walltime is the time it asked for. With a platform runs keep the profiles (`read_with_options`).
    """
    return _read(path, speed).without_profiles()


def _read(path: str | Path, speed: float) -> JobTable:
    """Read a workload with its profiles."""
    content = _content(path)
    rows, counts, profiles = JobRows(path), Counter[str](), _Profiles(content["profiles"])
    numbers: dict[str, int] = {}
    fits: dict[tuple[int, float], bool] = {}
    for place, job in enumerate(content["jobs"], start=1):
        try:
            work, width = profiles.work_of(job["profile"]), float(job["res"])
            run_s, walltime_s = work.seconds(width, speed), float(job.get("walltime", -1))
            number = -2 if work.profile is None else numbers.setdefault(job["profile"], len(numbers))
            if work.profile is not None:
                if (number, width) not in fits:
                    fits[number, width] = _fits(work.profile, int(width))
                number = number if fits[number, width] else -3
            if work.moves_bytes and run_s == 0:
                if number < 0 or not walltime_s > 0:
                    rows.drop(place, NO_TIME)
                    continue
                run_s = walltime_s  # in its place: only the network knows
            rows.add(place, str(job["id"]), float(job["subtime"]), run_s, width, walltime_s, profile=number)
            counts["bytes"] += work.moves_bytes
            counts["sequence"] += work.is_sequence
            counts["unequal"] += work.is_unequal
        except _UnknownType as error:
            rows.drop(place, f"profile of type {str(error)[:40]!r}; {KNOWN} are known")
        except (ArithmeticError, AttributeError, InputError, KeyError, TypeError, ValueError):
            rows.drop(place, NOT_OF_THE_FORMAT)
    needs = "most jobs lack id, subtime, res or a profile that is there."
    header = {"MaxProcs": str(content["nb_res"])} if "nb_res" in content else {}
    used = tuple(profile for name in numbers if (profile := profiles.work_of(name).profile) is not None)
    table = rows.table(needs, header=header, has_lines=False, profiles=used)
    if not used:
        return replace(table, notes=_notes(counts))
    return replace(table, notes_of_profiles=_notes(counts))


def _fits(profile: Profile, parts: int) -> bool:
    """Whether so many parts send no more messages than are simulated; `InputError` if it is made for others."""
    try:
        profile.check_width(parts)
    except TooManyMessages:
        return False
    return True


def _content(path: str | Path) -> dict[str, Any]:
    text = whole_text(Path(path))
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {foreign_kind(text) or f'no valid JSON: {error}.'}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: no workload of Batsim: it must be an object.")
    for key, kind, word in (("jobs", list, "a list"), ("profiles", dict, "an object")):
        if not isinstance(content.get(key), kind):
            said = foreign_kind(text) or f"no workload of Batsim: it needs {key!r}, {word}."
            raise InputError(f"{path}: {said}")
    return content


class _UnknownType(Exception):
    """A profile of a type that is not simulated."""


@dataclass(frozen=True)
class _Work:
    """What a profile does on the nodes of a job.

    Attributes
    ----------
    delay_s : float
        Time that no speed changes [s].
    flops, shared_flops : float
        Work of the busiest node, and work that all nodes share evenly [flop].
    n_nodes : frozenset of int
        Numbers of nodes that it is made for; empty: any.
    moves_bytes, is_sequence, is_unequal : bool
    profile : Profile or None
        All of that; None where a storage has a part in it.
    """

    delay_s: float = 0.0
    flops: float = 0.0
    shared_flops: float = 0.0
    n_nodes: frozenset[int] = frozenset()
    moves_bytes: bool = False
    is_sequence: bool = False
    is_unequal: bool = False
    profile: Profile | None = None

    def seconds(self, width: float, speed: float) -> float:
        """Return how long it takes on `width` nodes of a speed [s]; `ValueError` if it is made for others."""
        if not self.n_nodes <= {width}:
            raise ValueError
        return self.delay_s + (self.flops + self.shared_flops / max(width, 1)) / speed

    @classmethod
    def sequence(cls, parts: Sequence[_Work], times: int) -> _Work:
        """Return the work of profiles one after the other, so many times over."""
        return cls(
            times * sum(part.delay_s for part in parts),
            times * sum(part.flops for part in parts),
            times * sum(part.shared_flops for part in parts),
            frozenset().union(*(part.n_nodes for part in parts)),
            moves_bytes=any(part.moves_bytes for part in parts),
            is_sequence=True,
            is_unequal=any(part.is_unequal for part in parts),
            profile=_in_sequence([part.profile for part in parts], times),
        )


class _Profiles:
    """The profiles of a workload; what each does is worked out once."""

    def __init__(self, by_name: Mapping[str, Any]) -> None:
        self._by_name = by_name
        self._work: dict[str, _Work] = {}
        self._depth = 0

    def work_of(self, name: str) -> _Work:
        """Return what a profile does; `ValueError` if sequences nest too deeply, or hold themselves."""
        if name not in self._work:
            profile = self._by_name[name]
            kind = profile["type"]
            if kind not in _READERS:
                raise _UnknownType(kind)
            if self._depth > DEEPEST:
                raise ValueError
            self._depth += 1
            try:
                self._work[name] = _READERS[kind](self, profile)
            finally:
                self._depth -= 1
        return self._work[name]

    def delay(self, profile: Mapping[str, Any]) -> _Work:
        delay_s = float(profile["delay"])
        return _Work(delay_s=delay_s, profile=Delay(delay_s) if delay_s >= 0 else None)

    def homogeneous(self, profile: Mapping[str, Any]) -> _Work:
        amount, size = float(profile.get("cpu", 0)), float(profile.get("com") or 0)
        if profile.get("generation_strategy") in _SPREAD:
            whole = ParallelWork(total_flops=amount, pattern="all_to_all", total_bytes=size)
            return _Work(shared_flops=amount, moves_bytes=size > 0, profile=whole)
        each = ParallelWork(flops=(amount,), pattern="all_to_all", message_bytes=size)
        return _Work(flops=amount, moves_bytes=size > 0, profile=each)

    def homogeneous_total(self, profile: Mapping[str, Any]) -> _Work:
        amount, size = float(profile.get("cpu", 0)), float(profile.get("com") or 0)
        whole = ParallelWork(total_flops=amount, pattern="all_to_all", shared_bytes=size)
        return _Work(shared_flops=amount, moves_bytes=size > 0, profile=whole)

    def parallel(self, profile: Mapping[str, Any]) -> _Work:
        amounts = [float(each) for each in profile.get("cpu") or ()]
        sizes = [float(each) for each in profile.get("com") or ()]
        return _Work(
            flops=max(amounts, default=0.0),
            n_nodes=frozenset({len(amounts)} if amounts else ()),
            moves_bytes=any(sizes),
            is_unequal=len(set(amounts)) > 1,
            profile=ParallelWork(flops=tuple(amounts), matrix=tuple(sizes)),
        )

    def storage(self, profile: Mapping[str, Any]) -> _Work:
        return _Work(moves_bytes=True)

    def sequence(self, profile: Mapping[str, Any]) -> _Work:
        times = int(profile.get("repeat", profile.get("nb", 1)))
        return _Work.sequence([self.work_of(name) for name in profile["seq"]], times)


def _in_sequence(profiles: Sequence[Profile | None], times: int) -> Profile | None:
    """Return profiles one after the other; None where one is not simulated."""
    known = tuple(each for each in profiles if each is not None)
    return SequenceOfProfiles(known, times) if len(known) == len(profiles) else None


#: How the amounts of a profile are meant for all nodes together, in Batsim 5 and before.
_SPREAD = ("DefinedAmountsSpreadUniformly", "defined_amount_spread_uniformly")
_READERS: dict[str, Callable[[_Profiles, Mapping[str, Any]], _Work]] = {
    "DelayProfile": _Profiles.delay,
    "ParallelTaskHomogeneousProfile": _Profiles.homogeneous,
    "ParallelTaskProfile": _Profiles.parallel,
    "SequentialCompositionProfile": _Profiles.sequence,
    "ParallelTaskOnStorageHomogeneousProfile": _Profiles.storage,
    "ParallelTaskDataStagingBetweenStoragesProfile": _Profiles.storage,
}
#: Names of older versions -> name in Batsim 5.
_OLD_NAMES = {
    "delay": "DelayProfile",
    "parallel_homogeneous": "ParallelTaskHomogeneousProfile",
    "ptask_homogeneous": "ParallelTaskHomogeneousProfile",
    "msg_par_hg": "ParallelTaskHomogeneousProfile",
    "parallel": "ParallelTaskProfile",
    "ptask": "ParallelTaskProfile",
    "msg_par": "ParallelTaskProfile",
    "composed": "SequentialCompositionProfile",
    "sequential_composition": "SequentialCompositionProfile",
    "parallel_homogeneous_pfs": "ParallelTaskOnStorageHomogeneousProfile",
    "ptask_on_storage_homogeneous": "ParallelTaskOnStorageHomogeneousProfile",
    "msg_par_hg_pfs0": "ParallelTaskOnStorageHomogeneousProfile",
    "msg_par_hg_pfs_tiers": "ParallelTaskOnStorageHomogeneousProfile",
    "data_staging": "ParallelTaskDataStagingBetweenStoragesProfile",
    "ptask_data_staging_between_storages": "ParallelTaskDataStagingBetweenStoragesProfile",
}
_READERS |= {old: _READERS[name] for old, name in _OLD_NAMES.items()}
_READERS |= dict.fromkeys(("parallel_homogeneous_total", "msg_par_hg_tot"), _Profiles.homogeneous_total)


#: The lines about jobs that are simulated in part, by what is counted.
_REPORTED = {
    "bytes": "what jobs send or store is not simulated",
    "sequence": "a sequence of profiles runs as one delay of its whole length",
    "unequal": "unequal work of nodes runs as a delay of the longest, on all nodes",
}


def _notes(told: Counter[str]) -> tuple[str, ...]:
    return tuple(f"{words} ({counted(told[each], 'job')})" for each, words in _REPORTED.items() if told[each])


def write_batsim(jobs: JobTable, path: str | Path, *, n_nodes: int | None = None, force: bool = False) -> None:
    """Write jobs as a workload of Batsim, each with a profile of its run time (``delay``).

    Parameters
    ----------
    jobs : JobTable
    path : path
    n_nodes : int, optional
        Size of the machine; default the header's, or else the widest job.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If the file exists already, or cannot be written.
    """
    profiles, written = {}, []
    columns = (jobs.ids, jobs.submit_time_s, jobs.run_time_s, jobs.width, jobs.with_limits().requested_time_s)
    for job, submit, run, width, requested in zip(*(column.tolist() for column in columns), strict=True):
        name = f"delay_{plain_number(run)}"
        profiles[name] = {"type": "delay", "delay": plain_number(run)}
        entry = {"id": str(job), "subtime": plain_number(submit), "res": width, "profile": name}
        if not math.isnan(requested):
            entry["walltime"] = plain_number(requested)
        written.append(entry)
    size = n_nodes or jobs.nodes_of_header or int(jobs.width.max(initial=1))
    content = {"nb_res": size, "jobs": written, "profiles": profiles}
    write_whole(path, json_text(content), force=force)
