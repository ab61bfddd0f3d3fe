"""Append-only files of checksummed JSON lines, one for each process that writes to a store.

A line is ``{"crc32":"9a3b01ff","row":{...}}``; the checksum is that of the row's text. The name of
a segment contains its machine and process, so that others can distinguish a finished segment from one that
still grows; of another machine, it counts as finished when it has been quiet for an hour. Locks
would say no more: on some shared file systems they end at the machine, and between making a file
and locking it there is a gap. A writer whose segment was compacted all the same notices it and
writes its last rows to a new one.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import socket
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from gridsched.errors import InputError
from gridsched.files.json_files import stored_text
from gridsched.files.output_files import as_bytes, is_alive
from gridsched.metrics.table import MetricValue

_HEAD = b'{"crc32":"'
_MIDDLE = b'","row":'
_ROW_AT = len(_HEAD) + 8 + len(_MIDDLE)
#: A row's text begins so; the id and the status are found without reading the rest.
_ID = b'{"run_id":"'
_ID_LENGTH = 32
_STATUS = b'","status":"'
#: After a crash of the whole machine the rows of at most so long a time are missing [s].
SYNC_S = 5.0
#: The writer of a segment that has not grown for so long is taken for gone [s].
QUIET_S = 3600.0
_NAME = re.compile(r"(?P<machine>.+)-(?P<pid>\d+)-[0-9a-f]{16}\.jsonl")
#: Names of the segments that this process writes to.
_growing_here: set[str] = set()


class RunRow(TypedDict):
    """A run as it is stored.

    Attributes
    ----------
    run_id, status : str
    error : str or None
    metrics : dict
        By id; they repeat exactly.
    scenario : mapping
        The run's description.
    provenance : dict
        Versions, and what there is to report.
    timing : dict
        Wall times [s], the machine's name and when the run ended.
    series : dict of str to list of float
    groups : list of dict
        What groups of its jobs received: `gridsched.metrics.group_metrics.in_one_table`.
    """

    run_id: str
    status: str
    error: str | None
    metrics: dict[str, MetricValue]
    scenario: Mapping[str, Any]
    provenance: dict[str, Any]
    timing: dict[str, float | str]
    series: NotRequired[dict[str, list[float]]]
    groups: NotRequired[list[dict[str, Any]]]


@dataclass(frozen=True)
class Line:
    """A line of a segment that is whole."""

    text: bytes

    @property
    def run_id(self) -> str:
        """The row's id."""
        return self.text[len(_ID) : len(_ID) + _ID_LENGTH].decode("ascii")

    @property
    def status(self) -> str:
        """The row's status."""
        begin = len(_ID) + _ID_LENGTH + len(_STATUS)
        return self.text[begin : self.text.index(b'"', begin)].decode("ascii")

    def row(self) -> Any:
        """The whole row."""
        return json.loads(self.text)


@dataclass(frozen=True)
class Damage:
    """A line that is not whole: file, line number (from 1), and what is left of it."""

    path: Path
    line: int
    text: bytes

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: damaged ({len(self.text)} bytes)"


def encoded(row: RunRow) -> bytes:
    """Return a row as a line; ``run_id`` and ``status`` must come first.

    Numbers that JSON lacks are written as null (nan) and as the texts ``inf`` and ``-inf``.
    """
    text = as_bytes(stored_text(row))
    return b"%s%08x%s%s}\n" % (_HEAD, zlib.crc32(text), _MIDDLE, text)


def with_infinities(value: Any) -> Any:
    """Return a scenario as it was before `encoded` wrote its infinite numbers as texts."""
    if isinstance(value, Mapping):
        return {key: with_infinities(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_infinities(item) for item in value]
    return float(value) if value in ("inf", "-inf") else value


def decoded(line: bytes) -> Line | None:
    """Return a line without its end of line; None where it is damaged."""
    text = line[_ROW_AT:-1]
    is_whole = (
        line[: len(_HEAD)] == _HEAD
        and line[_ROW_AT - len(_MIDDLE) : _ROW_AT] == _MIDDLE
        and line[-1:] == b"}"
        and line[len(_HEAD) : len(_HEAD) + 8] == b"%08x" % zlib.crc32(text)
        and text.startswith(_ID)
        and text[: len(_ID) + _ID_LENGTH].isascii()
        and text.startswith(_STATUS, len(_ID) + _ID_LENGTH)
    )
    return Line(text) if is_whole else None


def read_segment(path: Path, begin: int = 0) -> Iterator[tuple[Line | Damage, int]]:
    """Yield the lines of a segment, each with the offset of its end.

    Parameters
    ----------
    path : Path
    begin : int
        Offset to begin at.

    Raises
    ------
    InputError
        If it is not a regular file.
    """
    if path.exists() and not path.is_file():  # a pipe would be read for ever
        raise InputError(f"{path}: is not a regular file; move it out of the store.")
    try:
        with open(path, "rb") as stream:
            stream.seek(begin)
            end = begin
            for number, raw in enumerate(stream, start=1):
                end += len(raw)
                whole = decoded(raw[:-1]) if raw.endswith(b"\n") else None
                yield whole or Damage(path, number, raw), end
    except FileNotFoundError:  # compacted in this moment
        return


class SegmentWriter:
    """The segment of this process.

    Parameters
    ----------
    folder : Path
        The store's folder of segments.

    Raises
    ------
    InputError
        If nothing can be written there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unsynced: list[bytes] = []  # written, but perhaps not on the disk yet
        self._open()

    def _open(self) -> None:
        name = f"{this_machine()}-{os.getpid()}-{secrets.token_hex(8)}.jsonl"
        self.path = self._folder / name
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._file = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        _growing_here.add(name)
        self._size = 0
        self._synced_at = time.monotonic()

    def write(self, row: RunRow) -> None:
        """Append a row; it outlives this process from here on.

        Raises
        ------
        InputError
            If it cannot be written, for want of space say; the segment is then as before.
        """
        self._unsynced.append(encoded(row))
        try:
            self._append(self._unsynced[-1])
        except OSError as error:
            if not self._is_removed():
                self._unsynced.pop()
                raise cannot_write(self.path, error) from None
        if self._is_removed() or time.monotonic() - self._synced_at >= SYNC_S:
            self._sync()

    def _append(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            with contextlib.suppress(OSError):  # a part of a line would be found as damage
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def _is_removed(self) -> bool:
        """Whether another machine's compaction has taken the segment for finished."""
        try:
            return os.fstat(self._file).st_nlink == 0
        except OSError as error:
            return error.errno == errno.ESTALE

    def _sync(self) -> None:
        """Put all rows on the disk, those that a compaction may not have seen in a new segment."""
        try:
            while not self._is_on_disk():
                self._give_up()
                self._open()
                for data in self._unsynced:  # rows that are found twice count once
                    self._append(data)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._unsynced.clear()
        self._synced_at = time.monotonic()

    def _is_on_disk(self) -> bool:
        try:
            os.fsync(self._file)
        except OSError:
            if not self._is_removed():
                raise
        return not self._is_removed()

    def _give_up(self) -> None:
        os.close(self._file)
        _growing_here.discard(self.path.name)

    def close(self) -> None:
        """Put everything on the disk; an empty segment is removed.

        Raises
        ------
        InputError
            If the disk refuses.
        """
        try:
            if self._size:
                self._sync()
            else:
                self.path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        finally:
            self._give_up()


def cannot_write(path: Path, error: OSError) -> InputError:
    """Return the error about a file of the store that cannot be written."""
    return InputError(
        f"{path}: cannot be written: {error.strerror}. Runs stored so far are safe; the same "
        "command continues once this is mended."
    )


@cache
def this_machine() -> str:
    """Return what distinguishes this machine, since its last start, from all others."""
    host = re.sub(r"[^\w.-]", "_", socket.gethostname())
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    except OSError:
        return host
    return f"{host}-{start}"


def is_growing(path: Path, now: float | None = None) -> bool:
    """Whether a living process may still write to a segment.

    Parameters
    ----------
    path : Path
    now : float, optional
        Time by the clock that dates the files [s]; by default this machine's.
    """
    if path.name in _growing_here:
        return True
    name = _NAME.fullmatch(path.name)
    if name and name["machine"] == this_machine():
        pid = int(name["pid"])
        if pid == os.getpid() or not is_alive(pid):
            return False
    try:
        return (time.time() if now is None else now) - path.stat().st_mtime < QUIET_S
    except FileNotFoundError:
        return False
