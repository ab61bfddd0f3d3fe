"""Read logs, plain or compressed by gzip, and gather their jobs row by row."""

from __future__ import annotations

import gzip
import zlib
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from gridsched.errors import InputError
from gridsched.files.input_files import MAX_TEXT_BYTES, check_size
from gridsched.workloads.traces.job_table import MOST_DIGITS, Dropped, JobTable

#: Larger logs are refused, as they are and unpacked [byte].
MAX_BYTES = 4 << 30
LONGEST_LINE = 1 << 20


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of the lines of a log; it is read as it comes, never whole.

    Raises
    ------
    InputError
        If the file cannot be read, is no archive where it begins as one, or a line or all of it is
        longer than any log's; an archive of a few MB may hold as many GB.
    """
    total = number = 0
    with _opened(path) as stream:
        while text := stream.readline(LONGEST_LINE + 1):
            total, number = total + len(text), number + 1
            if len(text) > LONGEST_LINE:
                raise InputError(f"{path}, line {number}: more than {LONGEST_LINE:,} characters.")
            if total > MAX_BYTES:
                raise InputError(f"{path}: holds more than {MAX_BYTES:,} characters.")
            yield number, text.strip()


def whole_text(path: Path) -> str:
    """Return the text of a log.

    Raises
    ------
    InputError
        If the file cannot be read, or is too large.
    """
    with _opened(path) as stream:
        text = stream.read(MAX_TEXT_BYTES + 1)
    if len(text) > MAX_TEXT_BYTES:
        raise InputError(f"{path}: holds more than {MAX_TEXT_BYTES // 2**20:,} MB.")
    return text


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        check_size(path, MAX_BYTES)
        with path.open("rb") as stream:
            is_gzip = stream.read(2) == b"\x1f\x8b"
        # comments of old logs are in any encoding; numbers are ASCII in all of them
        opened = gzip.open if is_gzip else open
        with opened(path, "rt", encoding="utf-8", errors="replace") as text:
            yield text
    except (OSError, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read: {said}.") from None


#: A file is no log if more of its rows than this are not of the format.
MAX_BAD_SHARE = 0.5
NOT_OF_THE_FORMAT = "not of the format"
#: Largest number that a log may hold [s or nodes].
LARGEST_FIELD = 1e12


class JobRows:
    """Columns of a job table that grow.

    Parameters
    ----------
    path : path
        The log, for messages.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._job, self._line = array("q"), array("q")
        self._times = array("d"), array("d"), array("d")
        self._width = array("d")
        self._dropped: dict[str, list[int]] = {}
        self._count = 0
        self._by_line = False

    def __len__(self) -> int:
        return self._count

    def add(
        self, line: int, job: str, submit_s: float, run_s: float, width: float, requested_s: float
    ) -> None:
        """Add a job; times in seconds, nan or negative where unknown.

        If the number of any job is no whole number, all are numbered by their lines.

        Raises
        ------
        ValueError
            If a number is no number of seconds or nodes.
        """
        for value in (submit_s, run_s, width, requested_s):
            if abs(value) > LARGEST_FIELD:
                raise ValueError
        if width != width // 1:
            raise ValueError
        if not (job.isdecimal() and len(job) <= MOST_DIGITS):
            self._by_line, job = True, "0"
        self._job.append(int(job))
        self._line.append(line)
        for column, value in zip(self._times, (submit_s, run_s, requested_s), strict=True):
            column.append(value)
        self._width.append(width)
        self._count += 1

    def drop(self, line: int, reason: str) -> None:
        """Leave out the row of a line."""
        self._dropped.setdefault(reason, []).append(line)
        self._count += 1

    def table(
        self, needs: str, *, header: Mapping[str, str], notes: tuple[str, ...] = (),
        has_lines: bool = True,
    ) -> JobTable:  # fmt: skip
        """Return the jobs that ran, in order of submission.

        Parameters
        ----------
        needs : str
            What a row of this format needs, for the message where most have not.
        header : mapping
        notes : tuple of str
        has_lines : bool
            Whether the numbers of rows are lines of the file.

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
            np.array(self._line if self._by_line else self._job, dtype=np.int64), submit, run,
            np.array(self._width, dtype=np.float64).astype(np.int64),
            np.where(requested > 0, requested, np.nan), name=str(self._path), header=header,
            dropped=tuple(
                Dropped(reason, len(lines), tuple(lines) if has_lines else ())
                for reason, lines in self._dropped.items()
            ),
            notes=notes,
            lines=np.array(self._line if has_lines else (), dtype=np.int64),
        )  # fmt: skip
        table = table.without(~(submit >= 0), "no submission time")
        return table.runnable().in_order()
