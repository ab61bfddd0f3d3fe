"""Read files that are not trusted."""

from __future__ import annotations

import re
import stat
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from gridsched.errors import InputError

#: Larger texts are refused, unless a caller knows better.
MAX_TEXT_BYTES = 1 << 30
#: What a file begins with that gzip has compressed.
_GZIP = b"\x1f\x8b"
#: Rows that are read together.
_TOGETHER = 500
Row = TypeVar("Row")


def read_text(path: str | Path, most: int = MAX_TEXT_BYTES) -> str:
    """Return the text of a UTF-8 file, plain or compressed by gzip; a byte order mark is skipped.

    Parameters
    ----------
    path : str or Path
    most : int
        Larger files are refused, as they are and unpacked [byte].

    Raises
    ------
    InputError
        If the file cannot be read or is not a text.
    """
    try:
        text = _unpacked(path, read_bytes(path, most), most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not a text in UTF-8 (byte {error.start}).") from None
    if "\0" in text:
        raise InputError(f"{path}: no text: it holds NUL characters.")
    return text


def _unpacked(path: str | Path, data: bytes, most: int) -> bytes:
    """Return what gzip has compressed, of at most `most` bytes; other data as it is."""
    if not data.startswith(_GZIP):
        return data
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # 16: with gzip's header
    try:
        content = unpacking.decompress(data, most + 1)
    except zlib.error as error:
        raise InputError(f"{path}: a damaged archive of gzip: {error}.") from None
    if len(content) > most:
        raise InputError(f"{path}: holds more than {most // 2**20:,} MB; no more is read.")
    if not unpacking.eof:
        raise InputError(f"{path}: an archive of gzip that ends too early.")
    return content


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
