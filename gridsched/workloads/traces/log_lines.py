"""The lines of a log, plain or compressed by gzip."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from gridsched.errors import InputError
from gridsched.files.input_files import opened, read_text

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
    number = 0
    with opened(path, MAX_BYTES) as content:
        # comments of old logs are in any encoding; numbers are ASCII in all of them
        stream = io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace")
        while text := stream.readline(LONGEST_LINE + 1):
            number += 1
            if len(text) > LONGEST_LINE:
                raise InputError(f"{path}, line {number}: more than {LONGEST_LINE:,} characters.")
            yield number, text.strip()


def whole_text(path: Path) -> str:
    """Return the text of a log.

    Raises
    ------
    InputError
        If the file cannot be read, or is too large.
    """
    return read_text(path, errors="replace")
