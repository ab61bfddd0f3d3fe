"""On which line each key of a TOML document stands; ``tomllib`` does not say."""

from __future__ import annotations

import re
from collections.abc import Iterator

Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r"(?P<newline>\n)|(?P<blank>[ \t\r]+)|(?P<comment>\#[^\n]*)"
    r"|(?P<long>\"\"\"(?:[^\\]|\\.)*?\"\"\"\"{0,2}|'''.*?''''{0,2})"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')"
    r"|(?P<mark>[\[\]{}=,.])|(?P<bare>[^\s\[\]{}=,.#\"']+)",
    re.DOTALL,
)


def key_lines(text: str) -> dict[Path, int]:
    """Return the line of every key, array item and table header of a valid document.

    Parameters
    ----------
    text : str
        A document that ``tomllib`` has accepted.

    Returns
    -------
    dict
        Path of keys and indices -> line, from 1.
    """
    return _Scanner(text).lines


def line_of(lines: dict[Path, int], path: Path) -> int:
    """Return the line of a path, or of its nearest ancestor that has one; else 1."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


class _Scanner:
    """A walk over the tokens of a document; what is no key is skipped."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._tokens = list(self._tokenise(text))
        self._at = 0
        self._counts: dict[Path, int] = {}
        table: Path = ()
        while self._peek() is not None:
            if self._peek() == "\n":
                self._at += 1
            elif self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)

    @staticmethod
    def _tokenise(text: str) -> Iterator[tuple[str, int, str]]:
        line = 1
        for match in _TOKEN.finditer(text):
            kind, found = match.lastgroup or "", match[0]
            if kind not in ("blank", "comment"):
                yield found, line, kind
            line += found.count("\n")

    def _peek(self) -> str | None:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else None

    @property
    def _line(self) -> int:
        return self._tokens[min(self._at, len(self._tokens) - 1)][1]

    def _skip_newlines(self) -> None:
        while self._peek() == "\n":
            self._at += 1

    def _key(self) -> Path:
        """Read a dotted key."""
        parts: list[str] = []
        while self._at < len(self._tokens):
            found, _, kind = self._tokens[self._at]
            self._at += 1
            parts.append(found[1:-1] if kind == "text" else found)
            if self._peek() != ".":
                break
            self._at += 1
        return tuple(parts)

    def _header(self) -> Path:
        line = self._line
        is_array = self._at + 1 < len(self._tokens) and self._tokens[self._at + 1][0] == "["
        self._at += 2 if is_array else 1
        path: Path = ()
        for part in self._key():
            path = (*path, part)
            if path in self._counts:  # a table of an array: its latest one is meant
                path = (*path, self._counts[path])
        self._at += 2 if is_array else 1
        if is_array:
            base = path[:-1] if isinstance(path[-1], int) else path
            self._counts[base] = self._counts.get(base, -1) + 1
            path = (*base, self._counts[base])
        self._note(path, line)
        return path

    def _note(self, path: Path, line: int) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _pair(self, table: Path) -> None:
        line = self._line
        path = (*table, *self._key())
        self._note(path, line)
        self._at += 1  # the equals sign
        self._value(path)

    def _value(self, path: Path) -> None:
        opening = self._peek()
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        else:  # a number with a point is several tokens
            while self._peek() not in (None, "\n", ",", "]", "}"):
                self._at += 1

    def _array(self, path: Path) -> None:
        self._at += 1
        index = 0
        while True:
            self._skip_newlines()
            if self._peek() in (None, "]"):
                break
            if self._peek() == ",":
                self._at += 1
                continue
            self._note((*path, index), self._line)
            self._value((*path, index))
            index += 1
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while True:
            self._skip_newlines()
            if self._peek() in (None, "}"):
                break
            if self._peek() == ",":
                self._at += 1
            else:
                self._pair(path)
        self._at += 1
