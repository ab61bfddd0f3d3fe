"""Read files that are not trusted."""

from __future__ import annotations

import gzip
import io
import re
import stat
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from gridsched.errors import InputError

#: Larger texts are refused, unless a caller knows better.
MAX_TEXT_BYTES = 1 << 30
#: What a file begins with that gzip has compressed.
_GZIP = b"\x1f\x8b"
#: No text of more than the first [byte] is so many times as large as its archive: an archive that is was made to harm.
_LARGE, _MOST_TIMES = 16 << 20, 500
#: Bytes that are unpacked at a time.
_PIECE = 1 << 18
#: Rows that are read together.
_TOGETHER = 500
Row = TypeVar("Row")


class _Unpacked(io.RawIOBase):
    """What gzip has compressed, all members one after the other, unpacked as it is read.

    Parameters
    ----------
    path : str or Path
        For messages.
    packed : BinaryIO
    most : int
        Reading more than so many bytes is refused.
    """

    def __init__(self, path: str | Path, packed: BinaryIO, most: int) -> None:
        self._path, self._packed, self._most = path, packed, most
        self._members = gzip.GzipFile(fileobj=packed)
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self._members.read1(min(len(buffer), _PIECE))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"{self._path}: cannot be read: a damaged archive of gzip: {str(error).rstrip('.')}."
            ) from None
        self._size += len(piece)
        if self._size > self._most:
            raise InputError(f"{self._path}: holds more than {_size(self._most)}; no more is read.")
        if self._size > max(_LARGE, _MOST_TIMES * self._packed.tell()):
            raise InputError(
                f"{self._path}: an archive of gzip that unpacks to more than {_MOST_TIMES} times its size, as no text "
                "does; unpack it, and give what it holds if that is right."
            )
        buffer[: len(piece)] = piece
        return len(piece)


def _size(n_bytes: int) -> str:
    return f"{n_bytes // 2**20:,} MB" if n_bytes >= 2**20 else f"{n_bytes:,} bytes"


@contextmanager
def opened(path: str | Path, most: int) -> Iterator[io.BufferedReader]:
    """Open a regular file, plain or compressed by gzip (of one member or several), to read its content.

    Parameters
    ----------
    path : str or Path
    most : int
        Larger files are refused at once, and larger contents when so much has been read [byte].

    Raises
    ------
    InputError
        If the file cannot be read or is too large, or is a damaged archive; in the block, too.
    """
    check_size(path, most)
    try:
        with open(path, "rb") as stream:
            is_packed = stream.peek(len(_GZIP)).startswith(_GZIP)
            yield io.BufferedReader(_Unpacked(path, stream, most), _PIECE) if is_packed else stream
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None


def read_content(path: str | Path, most: int) -> bytes | bytearray:
    """Return what a file holds, plain or compressed by gzip; too large a content is refused before it is in memory.

    Parameters
    ----------
    path : str or Path
    most : int
        Larger files are refused, as they are and unpacked [byte].

    Raises
    ------
    InputError
        As `opened`.
    """
    with opened(path, most) as stream:
        if not isinstance(stream.raw, _Unpacked):
            return stream.read()
        size = sum(map(len, iter(partial(stream.read, _PIECE), b"")))
    content = bytearray(size)
    with opened(path, most) as stream:
        del content[stream.readinto(content) :]
    return content


def read_text(path: str | Path, most: int = MAX_TEXT_BYTES, errors: str = "strict") -> str:
    """Return the text of a UTF-8 file, plain or compressed by gzip; a byte order mark is skipped.

    Parameters
    ----------
    path : str or Path
    most : int
        Larger files are refused, as they are and unpacked [byte].
    errors : str
        How bytes are decoded that are not UTF-8, see `bytes.decode`.

    Raises
    ------
    InputError
        If the file cannot be read or is not a text.
    """
    try:
        text = read_content(path, most).decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not a text in UTF-8 (byte {error.start}).") from None
    if "\0" in text:
        raise InputError(f"{path}: no text: it holds NUL characters.")
    return text


def check_size(path: str | Path, most: int) -> None:
    """Refuse what is not a regular file of at most `most` bytes: its reading might never end.

    Raises
    ------
    InputError
        If it is missing, a folder, device or pipe, or too large.
    """
    try:
        status = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: cannot be read: it is a folder.")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: cannot be read: it is a device or pipe.")
    if status.st_size > most:
        raise InputError(f"{path}: has {status.st_size / 2**20:,.0f} MB; at most {most // 2**20:,} MB are read.")


def read_bytes(path: str | Path, most: int, expected: str | None = None) -> bytes:
    """Return the content of a regular file.

    Parameters
    ----------
    path : str or Path
    most : int
        Larger files are refused [byte].
    expected : str, optional
        What the file should be; if it is given, an empty file is refused.

    Raises
    ------
    InputError
        If the file is missing, unreadable, too large, or a folder or device; or empty.
    """
    try:
        check_size(path, most)
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    if expected is not None and not data.strip():
        raise InputError(f"{path}: the file is empty; {expected} is expected.")
    return data


#: A key of more parts is refused before it is parsed, which would take the square of their number.
MAX_PARTS = 100
_LONG_KEY = re.compile(rf"^[ \t]*\[{{0,2}}(?:[^\s.,\[\]=#]+[ \t]*\.[ \t]*){{{MAX_PARTS}}}", re.MULTILINE)


def parse_toml(text: str, path: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Parameters
    ----------
    text : str
    path : str
        The file, for messages.

    Raises
    ------
    InputError
        If it is not TOML, nests too deeply, or has a number or key of enormous length.
    """
    key = _LONG_KEY.search(text)
    if key:
        line = text.count("\n", 0, key.start()) + 1
        raise InputError(f"{path}, line {line}: a key of more than {MAX_PARTS} parts.")
    try:
        content = tomllib.loads(text)
        _check_depth(content)
    except RecursionError:
        raise InputError(f"{path}: no valid TOML: its tables or lists nest too deeply.") from None
    except ValueError as error:  # an integer of thousands of digits is not a TOMLDecodeError
        reason = str(error).partition(";")[0].rstrip(".")
        raise InputError(f"{path}: no valid TOML: {reason}.") from None
    return content


def _check_depth(value: Any, depth: int = 0) -> None:
    if depth > MAX_PARTS:
        raise RecursionError
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, depth + 1)


def in_blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows by the hundred, to be read by columns; those before one that is wrong come before its error."""
    block: list[Row] = []
    try:
        for row in rows:
            block.append(row)
            if len(block) == _TOGETHER:
                yield block
                block = []
    except InputError:
        yield from [block] if block else ()
        raise
    yield from [block] if block else ()
