"""The lines of a log, plain or compressed by gzip."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from gridsched.errors import InputError
from gridsched.files.input_files import MAX_TEXT_BYTES, check_size

#: Larger logs are refused, as they are and unpacked [byte].
MAX_BYTES = 4 << 30
LONGEST_LINE = 1 << 20


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of the lines of a log; it is read as it comes, never whole.

    Raises
    ------
    InputError
        If the file cannot be read, is not an archive where it begins as one, or a line or all of it is
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
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read: {reason}.") from None
