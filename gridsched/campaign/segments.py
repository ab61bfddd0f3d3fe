"""Append-only files of checksummed JSON lines, one for each process that writes to a store.

A line is ``{"crc32":"9a3b01ff","row":{...}}``; the checksum is that of the row's text. A writer
holds a lock on its segment as long as it lives, so that others can tell a finished segment from
one that still grows.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import secrets
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsched.errors import InputError

_HEAD = b'{"crc32":"'
_MIDDLE = b'","row":'
_ROW_AT = len(_HEAD) + 8 + len(_MIDDLE)
#: A row's text begins so; the id and the status are found without reading the rest.
_ID = b'{"run_id":"'
_ID_LENGTH = 32
_STATUS = b'","status":"'


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

    def row(self) -> dict[str, Any]:
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


def encoded(row: Mapping[str, Any]) -> bytes:
    """Return a row as a line; ``run_id`` and ``status`` must come first.

    Numbers that JSON lacks are written as null (nan) and as the texts ``inf`` and ``-inf``.
    """
    text = json.dumps(_plain(row), separators=(",", ":"), ensure_ascii=False).encode()
    return b"%s%08x%s%s}\n" % (_HEAD, zlib.crc32(text), _MIDDLE, text)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


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
    )
    return Line(text) if is_whole else None


def read_segment(path: Path, begin: int = 0) -> Iterator[tuple[Line | Damage, int]]:
    """Yield the lines of a segment, each with the offset of its end.

    Parameters
    ----------
    path : Path
    begin : int
        Offset to begin at.
    """
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
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{os.getpid()}-{secrets.token_hex(8)}.jsonl"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._file = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        with contextlib.suppress(OSError):  # where there are no locks nothing is compacted
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._size = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row; it outlives this process from here on.

        Raises
        ------
        InputError
            If it cannot be written, for want of space say; the segment is then as before.
        """
        data = encoded(row)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):  # a part of a line would be found as damage
                os.ftruncate(self._file, self._size)
            raise cannot_write(self.path, error) from None
        self._size += len(data)

    def close(self) -> None:
        """Put everything on the disk and give up the lock; an empty segment is removed.

        Raises
        ------
        InputError
            If the disk refuses.
        """
        try:
            if not self._size:
                self.path.unlink(missing_ok=True)
            os.fsync(self._file)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        finally:
            os.close(self._file)


def cannot_write(path: Path, error: OSError) -> InputError:
    """Return the error about a file of the store that cannot be written."""
    return InputError(
        f"{path}: cannot be written: {error.strerror}. Runs stored so far are safe; the same "
        "command continues once this is mended."
    )


def is_growing(path: Path) -> bool:
    """Whether a living process still writes to a segment (or locks cannot tell)."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
