"""Lines of Slurm's configuration, also those of files that ``Include`` names, and records that ``scontrol`` prints.

A configuration may come from anybody, so an ``Include`` reads nothing outside of the folder of its configuration, and
all files together are as large as one may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gridsched.errors import InputError
from gridsched.files.input_files import read_text

#: More bytes, of all files of a configuration together, are refused.
MAX_CONF_BYTES = 16 << 20
#: More files are refused.
MOST_FILES = 1000
#: What ``scontrol`` prints of each node or partition, and no ``slurm.conf`` has.
_OF_SCONTROL = re.compile(r"(?:^|\s)(?:CPUAlloc|CPUTot|TotalNodes)=\d")
#: Of lines without blanks around them: to allow blanks at the end here would take quadratic time.
_INCLUDE = re.compile(r"include\s+(.+)", re.I)
_CLUSTER = re.compile(r"clustername\s*=\s*(\S+)", re.I)


class ConfLine(NamedTuple):
    """A line of a configuration, joined with those that continue it, or a record of ``scontrol``."""

    path: str
    number: int
    text: str
    is_printed: bool


class ConfLines:
    """Reads the lines of a configuration.

    Attributes
    ----------
    included : list of str
        Paths of the files that were read because an ``Include`` names them.
    not_read : list of str
        What ``Include`` names and was not read, in words.
    """

    def __init__(self) -> None:
        self.included: list[str] = []
        self.not_read: list[str] = []
        self._bytes_left, self._n_files = MAX_CONF_BYTES, 0
        self._cluster = ""

    def read(self, path: str | Path) -> Iterator[ConfLine]:
        """Yield the lines of a file, and in their places those of the files that it includes.

        Raises
        ------
        InputError
            If a file cannot be read, includes itself, or all together are too many or too large.
        """
        return self._lines(Path(path), str(path), Path(path).parent, ())

    def _lines(self, path: Path, shown: str, root: Path, above: tuple[Path, ...]) -> Iterator[ConfLine]:
        self._n_files += 1
        if self._n_files > MOST_FILES:
            raise InputError(f"{shown}: more than {MOST_FILES:,} files by Include; at most so many are read.")
        text = read_text(path, MAX_CONF_BYTES)
        self._bytes_left -= len(text)
        if self._bytes_left < 0:
            raise InputError(
                f"{shown}: with what is included, the configuration has more than {MAX_CONF_BYTES >> 20} MB; at most "
                "so much is read."
            )
        is_printed = _OF_SCONTROL.search(text) is not None
        chain = (*above, path.resolve())
        for number, line in _records(text) if is_printed else _joined(text):
            if match := _CLUSTER.match(line.strip()):
                self._cluster = match[1]
            match = None if is_printed else _INCLUDE.fullmatch(line.strip())
            if match is None:
                yield ConfLine(shown, number, line, is_printed)
                continue
            name = match[1].strip("\"'").replace("%c", self._cluster)
            found = _found(name, path.parent, root)
            if found is None:
                self.not_read.append(
                    f"{shown}, line {number}: Include {name[:100]!r} is not read, since the folder of "
                    "the configuration has no such file: the nodes, partitions and settings in it are missing"
                )
                continue
            if found.resolve() in chain:
                raise InputError(f"{shown}, line {number}: Include {name[:100]!r} includes itself. Take the line out.")
            self.included.append(str(found))
            yield from self._lines(found, str(found), root, chain)


def included_files(path: str | Path) -> tuple[str, ...]:
    """Return the files that are read with a configuration because an ``Include`` names them.

    Raises
    ------
    InputError
        As `ConfLines.read` does.
    """
    lines = ConfLines()
    for _ in lines.read(path):
        pass
    return tuple(lines.included)


def include_lines(path: str | Path) -> tuple[str, ...]:
    """Return the names of files in the ``Include`` lines of one file.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    matches = (_INCLUDE.fullmatch(line.strip()) for _, line in _joined(read_text(path, MAX_CONF_BYTES)))
    return tuple(match[1] for match in matches if match is not None)


def _found(name: str, folder: Path, root: Path) -> Path | None:
    """Return the file that an ``Include`` means: beside the file that names it, else beside the first one.

    Of a path from the root of another machine the name is enough. Links that lead out of the first file's folder are
    not followed.
    """
    try:
        within = root.resolve()
        for each in (folder / name, root / name, root / Path(name).name):
            if each.resolve().is_relative_to(within) and each.exists():
                return each
    except (OSError, RuntimeError):  # a name that is too long, or a loop of links
        return None
    return None


def _records(text: str) -> Iterator[tuple[int, str]]:
    """Yield what ``scontrol`` prints of each node or partition as one line, with the number of its first."""
    begun, first = list[str](), 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not line[:1].isspace():
            if begun:
                yield first, " ".join(begun)
            begun, first = [], number
        if words := line.strip():
            begun.append(words)
    if begun:
        yield first, " ".join(begun)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments, those that end in a backslash joined, with the number of their first."""
    begun, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(?<!\\)#.*", "", raw).rstrip()
        first = first if begun else number
        if line.endswith("\\"):
            begun += f"{line[:-1]} "
            continue
        if (begun + line).strip():
            yield first, begun + line
        begun = ""
    if begun.strip():
        yield first, begun
