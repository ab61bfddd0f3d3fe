"""Jobs of a log, whatever its format, and checking them row by row."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from sys import intern

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats, Integers, Labels
from gridsched.errors import InputError, counted
from gridsched.files.csv_files import interval_set
from gridsched.model.calendar import Calendar
from gridsched.model.job_profiles import MOST_MESSAGES, Profile
from gridsched.model.limits import LARGEST
from gridsched.workloads.traces.dependencies import NO_PAIRS, DependencyRows, LineBlock
from gridsched.workloads.traces.logged_holds import HoldRows, LoggedHolds

#: Longer numbers do not fit 64 bits.
MOST_DIGITS = 18
#: Longer ids of jobs that are not numbers are refused.
LONGEST_ID = 100
#: Why jobs are left out whose profiles are not simulated, or are.
NO_TIME = "profile that only moves bytes, whose time is the network's"
NO_REQUEST = "profile that moves bytes, and no requested time, which schedulers need"
NO_STORAGE = "profile that has to do with a storage of Batsim, which is not simulated"
NO_MESSAGES = f"profile that sends more than {MOST_MESSAGES:,} messages at once, which are not simulated"
#: How long a job may run that neither its request nor its partition limits [s]: Slurm plans a year for it, too.
WITHOUT_LIMIT_S = 365 * 86_400.0
#: The largest number of lines that are named for each reason to drop jobs.
MAX_LINES_NAMED = 5


def plain_number(value: float) -> float | int:
    """Return a number as logs are written: whole ones without a decimal point."""
    return int(value) if value == math.floor(value) else value


@dataclass(frozen=True)
class Dropped:
    """Jobs that were left out for one reason.

    Attributes
    ----------
    reason : str
    count : int
    lines : tuple of int
        Line numbers of all of them; empty where the jobs come from no file of lines.
    """

    reason: str
    count: int
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        where = ""
        if self.lines:
            line_list = ", ".join(map(str, self.lines[:MAX_LINES_NAMED]))
            more = ", ..." if self.count > MAX_LINES_NAMED else ""
            where = f" (line{'s' if self.count > 1 else ''} {line_list}{more})"
        return f"{counted(self.count, 'job')} left out: {self.reason}{where}"

    def as_json(self) -> dict[str, str | int]:
        """Return reason, count and all lines, as an interval set: ``3-5 9``."""
        lines = interval_set(np.array(self.lines, dtype=np.int64)) if self.lines else ""
        return {"reason": self.reason, "count": self.count, "lines": lines}


def reasons(dropped: Iterable[Dropped]) -> str:
    """Return why jobs were left out, in brackets behind a blank; empty where none were."""
    why = "; ".join(str(each) for each in dropped)
    return f" ({why})" if why else ""


@dataclass(frozen=True)
class JobTable:
    """Rigid jobs in order of submission, then of their numbers.

    Attributes
    ----------
    job : ndarray of int64, shape (jobs,)
        Numbers in the log; of lines (or places) where any id is not a whole number.
    submit_time_s : ndarray of float64, shape (jobs,)
        Since the begin of the log [s].
    run_time_s : ndarray of float64, shape (jobs,)
        True run times [s].
    width : ndarray of int64, shape (jobs,)
        Nodes (or processors) that each job needs at once.
    requested_time_s : ndarray of float64, shape (jobs,)
        What the user asked for [s]; nan where the log does not state it, infinite where it states that the job
        has no limit but that of its partition.
    name : str
        Where the jobs come from.
    header : mapping
        The log's description of its machine: ``MaxProcs``, ``Computer``, ...
    dropped : tuple of Dropped
    notes : tuple of str
        What the log contains beside these columns, in words.
    lines : ndarray of int64, shape (jobs,)
        Line of each job in the log; empty where there is none.
    attributes : mapping of str to ndarray of str, shape (jobs,)
        User, partition and the like as the log names them; empty where it does not.
    power_w : ndarray of float64, shape (jobs,)
        Mean power of all nodes of each job together, as measured [W]; nan if it is unknown, and
        empty if it is known for none.
    after : ndarray of `gridsched.workloads.traces.dependencies.PAIR`
        Who waits for whom, by lines.
    after_arrays : tuple of `gridsched.workloads.traces.dependencies.LineBlock`
        Likewise, where many jobs wait for many tasks of an array.
    profile : ndarray of int64, shape (jobs,)
        Which of `profiles` each job has, -1 for none, -2 for one with a storage and -3 for one of too many messages,
        which are not simulated; empty where none has any. Of jobs that only move bytes `run_time_s` is what they
        ask for, since only the network knows.
    profiles : tuple of Profile
    notes_of_profiles : tuple of str
        What the other columns do not contain if profiles are not simulated.
    calendar : Calendar or None
        Which date second 0 of the submissions is, where the log has dates.
    names : ndarray of str, shape (jobs,)
        Ids in the log where any is not a whole number, as those of an array's tasks (``17_3``); else empty.
    holds : LoggedHolds or None
        Times before which jobs could not start, and limits of arrays, where the log has any.
    """

    job: Integers
    submit_time_s: Floats
    run_time_s: Floats
    width: Integers
    requested_time_s: Floats
    name: str = "jobs"
    header: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()
    lines: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    attributes: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    power_w: Floats = field(default_factory=lambda: np.zeros(0))
    after: NDArray[np.void] = field(default_factory=NO_PAIRS.copy)
    after_arrays: tuple[LineBlock, ...] = ()
    names: NDArray[np.str_] = field(default_factory=lambda: np.zeros(0, dtype=np.str_))
    profile: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    profiles: tuple[Profile, ...] = ()
    notes_of_profiles: tuple[str, ...] = ()
    calendar: Calendar | None = None
    holds: LoggedHolds | None = None

    def __len__(self) -> int:
        return len(self.job)

    @property
    def ids(self) -> Labels:
        """What records and messages call the jobs: numbers, or `names` where there are any."""
        return self.names if len(self.names) else self.job

    @property
    def estimate_s(self) -> Floats:
        """What a scheduler may know of the run times [s] (algorithms I).

        The requested time, or the run time where that is longer or the log states no request. Infinite where
        a job has no limit (`with_limits`).
        """
        return np.fmax(self.requested_time_s, self.run_time_s)

    @property
    def asked_s(self) -> Floats:
        """What limits of a partition are held against [s].

        The requested time, however long the job ran then; its run time where the log states no request.
        """
        return np.where(np.isnan(self.requested_time_s), self.run_time_s, self.requested_time_s)

    @property
    def without_limit(self) -> Booleans:
        """Which jobs have no limit of their own, but that of their partition, shape (jobs,)."""
        return np.isposinf(self.requested_time_s)

    def with_limits(self, of_partition_s: Floats | float = math.inf) -> JobTable:
        """Return the jobs with a finite request for those that have no limit of their own; a note counts these.

        Parameters
        ----------
        of_partition_s : ndarray of float64, shape (jobs,), or float
            The longest time of the partition of each [s]. Where it has none, they may run for `WITHOUT_LIMIT_S`.
        """
        free = self.without_limit
        if not free.any():
            return self
        most_s = np.broadcast_to(of_partition_s, len(self))
        endless = free & (most_s >= LARGEST)
        n_endless, n = int(np.count_nonzero(endless)), int(np.count_nonzero(free))
        parts = [f"{n - n_endless:,} may run as long as their partition allows"] if n > n_endless else []
        if n_endless:
            parts.append(f"{n_endless:,} whose partition has no known limit are planned as if they took a year")
        note = f"{counted(n, 'job has', 'jobs have')} no time limit (Partition_Limit, UNLIMITED): {'; '.join(parts)}"
        limits_s = np.where(endless, WITHOUT_LIMIT_S, most_s)
        requested_s = np.where(free, limits_s, self.requested_time_s)
        return replace(self, requested_time_s=requested_s, notes=(*self.notes, note))

    @property
    def waiting_lines(self) -> NDArray[np.int64]:
        """Lines of the jobs that wait for others."""
        return np.unique(np.concatenate([self.after["line"], *(each.line for each in self.after_arrays)]))

    @property
    def node_power_w(self) -> Floats:
        """Mean power of a node of each job, as measured [W]; nan if it is unknown."""
        return self.power_w / self.width if len(self.power_w) else np.full(len(self), np.nan)

    def size_of_machine(self, *keys: str) -> int | None:
        """Return how large the machine is by the log's header.

        Parameters
        ----------
        *keys : str
            Keys of the header; the first with a number counts. By default ``MaxProcs``, then
            ``MaxNodes``.
        """
        for key in keys or ("MaxProcs", "MaxNodes"):
            text = self.header.get(key, "").split()
            if text and text[0].isdecimal() and len(text[0]) <= MOST_DIGITS and int(text[0]) > 0:
                return int(text[0])
        return None

    @property
    def nodes_of_header(self) -> int | None:
        """Size of the machine by the log's header: ``MaxProcs``, else ``MaxNodes``."""
        return self.size_of_machine()

    def _that(self, holds: Callable[[Profile, int], bool]) -> Booleans:
        """Return of which jobs something holds that is asked of profile and width, shape (jobs,)."""
        kinds, kind = np.unique(np.stack([self.profile, self.width], axis=1), axis=0, return_inverse=True)
        answers = [number >= 0 and holds(self.profiles[number], width) for number, width in kinds.tolist()]
        return np.array(answers, dtype=bool)[kind.reshape(-1)]

    @property
    def send_bytes(self) -> bool:
        """Whether parts of any job send bytes, as its profile has it."""
        return bool(len(self.profile)) and bool(self._that(lambda profile, width: profile.moves_bytes(width)).any())

    def without_profiles(self) -> JobTable:
        """Return the jobs as what they compute, which is all that is known of them then; others are dropped."""
        if not len(self.profile):
            return self
        rows = self._that(lambda profile, width: not profile.computing_s(width, 1.0))
        table = replace(self.without(rows, NO_TIME), notes=(*self.notes, *self.notes_of_profiles))
        return replace(table, profile=np.zeros(0, dtype=np.int64), profiles=(), notes_of_profiles=())

    def with_profiles(self) -> JobTable:
        """Return the jobs that can be run by their profiles; the others are dropped."""
        unknown = np.isnan(self.requested_time_s)
        rows = self._that(lambda profile, width: profile.moves_bytes(width)) & unknown
        table = self.without(rows, NO_REQUEST)
        for number, reason in ((-2, NO_STORAGE), (-3, NO_MESSAGES)):
            table = table.without(table.profile == number, reason)
        return replace(table, notes_of_profiles=())

    def that_fit(self, n_nodes: int) -> JobTable:
        """Return the jobs that a machine of `n_nodes` can run at all; the others are dropped."""
        return self.without(self.width > n_nodes, f"wider than the machine's {counted(n_nodes, 'node')}")

    def runnable(self) -> JobTable:
        """Return the jobs that ran for some time on some nodes; the others are dropped."""
        table = self.without(~(self.run_time_s > 0), "no run time greater than 0 s")
        return table.without(table.width <= 0, "no number of nodes greater than 0")

    def distinct(self) -> JobTable:
        """Return the first job of each id; later ones are dropped."""
        _, first = np.unique(self.ids, return_index=True)
        again = np.ones(len(self), dtype=bool)
        again[first] = False
        return self.without(again, "a job number that an earlier one has")

    def from_zero(self) -> JobTable:
        """Return the jobs with the first submission at 0 s."""
        begin = float(self.submit_time_s.min(initial=np.inf))
        if not len(self):
            return self
        calendar = None if self.calendar is None else self.calendar.later(begin)
        holds = None if self.holds is None else self.holds.since(begin)
        return replace(self, submit_time_s=self.submit_time_s - begin, calendar=calendar, holds=holds)

    def on_nodes(self, procs_per_node: int, n_nodes: int | None) -> JobTable:
        """Return the jobs with widths in nodes of so many processors, whole nodes each.

        Parameters
        ----------
        procs_per_node : int
        n_nodes : int or None
            Size of the machine, which the header then states; None: it states none.
        """
        keys = ("MaxNodes", "MaxProcs")
        header = {key: text for key, text in self.header.items() if key not in keys}
        if n_nodes is not None:
            header |= dict.fromkeys(keys, str(n_nodes))
        width = self.width if procs_per_node == 1 else -(-self.width // procs_per_node)
        return replace(self, width=width, header=header)

    def in_order(self) -> JobTable:
        """Return the jobs in order of submission, then of their numbers."""
        order = np.lexsort((self.job, self.submit_time_s))
        return self._taken(order)

    def without(self, rows: Booleans, reason: str) -> JobTable:
        """Return the table without some rows, and why they went in `dropped`."""
        if not rows.any():
            return self
        named = np.sort(self.lines[rows]).tolist() if len(self.lines) else []
        gone = Dropped(reason, int(rows.sum()), tuple(named))
        return replace(self._taken(np.flatnonzero(~rows)), dropped=(*self.dropped, gone))

    def _taken(self, rows: NDArray[np.intp]) -> JobTable:
        return replace(
            self,
            job=self.job[rows],
            submit_time_s=self.submit_time_s[rows],
            run_time_s=self.run_time_s[rows],
            width=self.width[rows],
            requested_time_s=self.requested_time_s[rows],
            lines=self.lines[rows] if len(self.lines) else self.lines,
            attributes={name: texts[rows] for name, texts in self.attributes.items()},
            power_w=self.power_w[rows] if len(self.power_w) else self.power_w,
            names=self.names[rows] if len(self.names) else self.names,
            profile=self.profile[rows] if len(self.profile) else self.profile,
            holds=None if self.holds is None else self.holds.taken(rows),
        )


#: A file is not a log if more of its rows than this are not of the format.
MAX_BAD_SHARE = 0.5
NOT_OF_THE_FORMAT = "not of the format"
EARLIER = "an earlier record of a job that was started again; the last one counts"
#: Largest number that a log may hold [s or nodes].
LARGEST_FIELD = 1e12


class JobRows:
    """Columns of a job table that grow.

    Parameters
    ----------
    path : path
        The log, for messages.
    attributes : sequence of str
        What is known of each job in texts.

    Attributes
    ----------
    dependencies : DependencyRows
    holds : HoldRows
    """

    def __init__(self, path: str | Path, attributes: Sequence[str] = ()) -> None:
        self._path = path
        self.dependencies, self.holds = DependencyRows(), HoldRows()
        self._texts: dict[str, list[str]] = {name: [] for name in attributes}
        self._job, self._line = array("q"), array("q")
        self._times = array("d"), array("d"), array("d")
        self._width, self._power = array("d"), array("d")
        self._dropped: dict[str, list[int]] = {}
        self._profile = array("q")
        self._count = 0
        self._names: dict[int, str] = {}
        self._earlier: Collection[int] = ()

    def __len__(self) -> int:
        return self._count

    def add(
        self,
        line: int,
        job: str,
        submit_s: float,
        run_s: float,
        width: float,
        requested_s: float,
        texts: Sequence[str] = (),
        power_w: float = math.nan,
        profile: int = -1,
    ) -> None:
        """Add a job; times in seconds, nan or negative where unknown; a text for each attribute.

        The requested time is infinite where a job has no limit but that of its partition.
        Its mean power is that of all its nodes [W]; nan or not positive where unknown. `profile` is as in
        `JobTable`.

        If the id of any job is not a whole number, all are numbered by their lines, and `JobTable.names` are
        their ids.

        Raises
        ------
        ValueError
            If a number is not a number of seconds or nodes, or an id is longer than `LONGEST_ID` or not printable.
        """
        for value in (submit_s, run_s, width, 0.0 if requested_s == math.inf else requested_s):
            if abs(value) > LARGEST_FIELD:
                raise ValueError
        if width != width // 1:
            raise ValueError
        if not (job.isdecimal() and len(job) <= MOST_DIGITS):
            if len(job) > LONGEST_ID or not job.isprintable():
                raise ValueError
            self._names[len(self._job)], job = job or f"#{line}", "0"
        self._job.append(int(job))
        self._line.append(line)
        for column, value in zip(self._times, (submit_s, run_s, requested_s), strict=True):
            column.append(value)
        self._width.append(width)
        self._power.append(power_w)
        self._profile.append(profile)
        for attribute, text in zip(self._texts.values(), texts, strict=False):
            attribute.append(intern(text))
        self._count += 1

    def extend(
        self,
        lines: Sequence[int],
        jobs: Sequence[int],
        submit_s: Floats,
        run_s: Floats,
        width: Floats,
        requested_s: Floats,
        texts: Sequence[Sequence[str]] = (),
    ) -> None:
        """Add many jobs whose ids are whole numbers, as `add` does each; all of them, or none.

        Raises
        ------
        ValueError
            If one cannot be added.
        """
        for values in (submit_s, run_s, width, requested_s):
            if (np.abs(values) > LARGEST_FIELD).any():
                raise ValueError
        if (width != np.floor(width)).any() or not all(0 <= job < 10**MOST_DIGITS for job in jobs):
            raise ValueError
        self._job.extend(jobs)
        self._line.extend(lines)
        for column, values in zip((*self._times, self._width), (submit_s, run_s, requested_s, width), strict=True):
            column.frombytes(np.asarray(values, dtype=np.float64).tobytes())
        self._power.extend([math.nan] * len(jobs))
        self._profile.extend([-1] * len(jobs))
        for attribute, column_of_texts in zip(self._texts.values(), texts, strict=False):
            attribute.extend(map(intern, column_of_texts))
        self._count += len(jobs)

    def drop(self, line: int, reason: str) -> None:
        """Leave out the row of a line."""
        self._dropped.setdefault(reason, []).append(line)
        self._count += 1

    def supersede(self, lines: Collection[int]) -> None:
        """Leave out the records of these lines, which later ones of their jobs replace."""
        self._earlier = lines
        self.dependencies.forget(lines)

    def table(
        self,
        needs: str,
        *,
        header: Mapping[str, str],
        notes: tuple[str, ...] = (),
        has_lines: bool = True,
        profiles: tuple[Profile, ...] = (),
    ) -> JobTable:
        """Return the jobs that ran, in order of submission.

        Parameters
        ----------
        needs : str
            What a row of this format needs, for the message where most have not.
        header : mapping
        notes : tuple of str
        has_lines : bool
            Whether the numbers of rows are lines of the file.
        profiles : tuple of Profile
            Those that the rows name.

        Raises
        ------
        InputError
            If the file is no such log.
        """
        wrong = self._dropped.get(NOT_OF_THE_FORMAT, [])
        if len(wrong) > MAX_BAD_SHARE * len(self):
            where = f"{self._path}, line {wrong[0]}" if has_lines else str(self._path)
            raise InputError(f"{where}: {needs}")
        submit, run, requested = (np.array(each, dtype=np.float64) for each in self._times)
        table = JobTable(
            np.array(self._line if self._names else self._job, dtype=np.int64),
            submit,
            run,
            np.array(self._width, dtype=np.float64).astype(np.int64),
            np.where(requested > 0, requested, np.nan),
            name=str(self._path),
            header=header,
            dropped=tuple(
                Dropped(reason, len(lines), tuple(lines) if has_lines else ())
                for reason, lines in self._dropped.items()
            ),
            lines=np.array(self._line if has_lines else (), dtype=np.int64),
            attributes={name: np.array(texts, dtype=object) for name, texts in self._texts.items() if any(texts)},
            names=np.array(
                [self._names.get(k, job) for k, job in enumerate(map(str, self._job))] if self._names else [],
                dtype=np.str_,
            ),
            profile=np.array(self._profile if profiles else (), dtype=np.int64),
            profiles=profiles,
        )
        power_w = np.array(self._power, dtype=np.float64)
        power_w[~((power_w > 0) & (power_w <= LARGEST_FIELD))] = np.nan
        if not np.isnan(power_w).all():
            table = replace(table, power_w=power_w)
        if self._earlier:
            table = table.without(np.isin(table.lines, list(self._earlier)), EARLIER)
        table = table.without(~(table.submit_time_s >= 0), "no submission time")
        table = table.runnable().in_order()
        numbers = (each for each in zip(map(str, self._job), self._line, strict=True) if each[1] not in self._earlier)
        kept = table.lines.tolist()
        after, after_arrays = self.dependencies.pairs(numbers, kept)
        holds = self.holds.columns(kept, self.dependencies.lines_of_others)
        notes = (*notes, *self.dependencies.notes(), *self.holds.notes())
        return replace(table, after=after, after_arrays=after_arrays, holds=holds, notes=notes)
