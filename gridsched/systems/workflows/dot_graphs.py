"""Workflows in Graphviz' DOT as SimGrid reads them: nodes are tasks, edges are data, ``size`` is flop or byte.

Read is what describes a plain directed graph: nodes and edges with attributes, and defaults of these. Subgraphs,
ports and HTML are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from gridsched.errors import InputError
from gridsched.files.input_files import read_text
from gridsched.systems.workflows.recorded_tasks import Recorded, number

_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*(?s:.*?)\*/|^\#[^\n]*)"
    r'|(?P<quoted>"(?:[^"\\]|\\(?s:.))*")'
    r"|(?P<plain>-?(?:\.\d+|\d+(?:\.\d*)?)(?![^\W\d])|[^\W\d]\w*)"
    r"|(?P<mark>->|[{}\[\];,=])",
    re.MULTILINE,
)
_WORDS = ("node", "edge", "graph")
#: Nodes that SimGrid adds before the first tasks and behind the last ones where a file has none.
_ENDS = ("root", "end")


class _Token(NamedTuple):
    """A name, or a mark of the language, and its line."""

    text: str
    is_name: bool
    line: int


def read_dot(path: Path, most: int) -> tuple[list[Recorded], list[str]]:
    """Read a directed graph; return its tasks, and what is left out of it in words.

    The nodes ``root`` and ``end`` are left out where they are of size 0 and have no data: SimGrid adds them where
    they are missing.

    Raises
    ------
    InputError
        Naming file, line and task.
    """
    graph = _Graph(path, _tokens(path, read_text(path, most)))
    graph.read()
    return graph.tasks()


def _tokens(path: Path, text: str) -> Iterator[_Token]:
    line, at = 1, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InputError(
                f"{path}, line {line}: {text[at : at + 20].splitlines()[0]!r} cannot be read; a workflow is a directed "
                "graph with names, '->' and attributes in brackets."
            )
        if match.lastgroup == "quoted":
            yield _Token(re.sub(r'\\(["\\])', r"\1", match[0][1:-1].replace("\\\n", "")), True, line)
        elif match.lastgroup != "skip":
            yield _Token(match[0], match.lastgroup == "plain", line)
        line += match[0].count("\n")
        at = match.end()


class _Graph:
    """Nodes and edges as they are read.

    Parameters
    ----------
    path : Path
    tokens : iterator of _Token
    """

    def __init__(self, path: Path, tokens: Iterator[_Token]) -> None:
        self._path, self._tokens = path, tokens
        self._end = _Token("", False, 1)
        self._next = self._end
        self._take()
        self._sizes: dict[str, tuple[str, int]] = {}  # of nodes, with the line
        self._first: dict[str, int] = {}  # line of the first mention
        self._edges: dict[tuple[str, str], float] = {}
        self._default: dict[str, dict[str, str]] = {word: {} for word in _WORDS}

    def _take(self) -> _Token:
        """Return the token that is next, and go on to the one behind it."""
        token = self._next
        self._next = next(self._tokens, self._end._replace(line=token.line))
        return token

    def _refuse(self, token: _Token, wanted: str) -> InputError:
        found = repr(token.text[:80]) if token.text or token.is_name else "the end of the file"
        return InputError(f"{self._path}, line {token.line}: found {found}; {wanted} is needed here.")

    def _expect(self, mark: str) -> None:
        token = self._take()
        if token.text != mark or token.is_name:
            raise self._refuse(token, f"'{mark}'")

    def _name(self, wanted: str) -> _Token:
        token = self._take()
        if not token.is_name:
            raise self._refuse(token, wanted)
        return token

    def _is_mark(self, mark: str) -> bool:
        return self._next.text == mark and not self._next.is_name

    def read(self) -> None:
        """Read all statements."""
        token = self._take()
        if token.text.lower() == "strict":
            token = self._take()
        if token.text.lower() != "digraph":
            raise self._refuse(token, "'digraph'")
        if self._next.is_name:
            self._take()
        self._expect("{")
        while not self._is_mark("}"):
            if self._is_mark(";"):
                self._take()
            else:
                self._statement()
        self._take()
        if self._next is not self._end and self._next.text:
            raise self._refuse(self._next, "the end of the file")

    def _statement(self) -> None:
        first = self._name("a node, 'node', 'edge' or 'graph'")
        word = first.text.lower()
        if word == "subgraph":
            raise InputError(
                f"{self._path}, line {first.line}: subgraphs cannot be read; write their nodes and edges without them."
            )
        if word in _WORDS and self._is_mark("["):
            self._default[word] |= self._attributes()
            return
        if self._is_mark("="):  # of the graph
            self._take()
            self._name("a value")
            return
        nodes = [first]
        while self._is_mark("->"):
            self._take()
            nodes.append(self._name("a node"))
        given = self._attributes()
        for node in nodes:
            self._first.setdefault(node.text, node.line)
        if len(nodes) == 1:
            self._add_node(first, {**self._default["node"], **given})
        size = {**self._default["edge"], **given}.get("size", "0")
        for tail, head in pairwise(nodes):
            where, what = f"{self._path}, line {head.line}", f"size of {tail.text[:80]} -> {head.text[:80]}"
            pair = tail.text, head.text
            self._edges[pair] = self._edges.get(pair, 0.0) + number(size, where, what)

    def _add_node(self, node: _Token, attributes: dict[str, str]) -> None:
        if node.text in self._sizes:
            raise InputError(f"{self._path}, line {node.line}: there is a task {node.text!r} already.")
        if "size" in attributes:
            self._sizes[node.text] = attributes["size"], node.line

    def _attributes(self) -> dict[str, str]:
        """Return the attributes of all brackets that follow."""
        found: dict[str, str] = {}
        while self._is_mark("["):
            self._take()
            while not self._is_mark("]"):
                key = self._name("an attribute or ']'").text
                self._expect("=")
                found[key] = self._name("a value").text
                if self._is_mark(",") or self._is_mark(";"):
                    self._take()
            self._take()
        return found

    def tasks(self) -> tuple[list[Recorded], list[str]]:
        """Return the tasks, and what is left out in words."""
        left_out, notes = self._left_out()
        tasks: dict[str, Recorded] = {}
        for name, line in self._first.items():
            if name in left_out:
                continue
            where = f"{self._path}, line {self._sizes.get(name, ('', line))[1]}"
            if name not in self._sizes:
                raise InputError(f"{where}: task {name[:80]!r} has no size; its work in flop is needed.")
            flops = number(self._sizes[name][0], where, f"size of task {name[:80]!r}")
            tasks[name] = Recorded(where, name, flops=flops)
        for (tail, head), size in self._edges.items():
            if tail not in left_out and head not in left_out:
                tasks[head].parents[tail] = size
            elif tail == "root" and head not in left_out and size:
                tasks[head].reads[f"root->{head}"] = size
        return list(tasks.values()), notes

    def _left_out(self) -> tuple[set[str], list[str]]:
        """Return the ends that represent no work, and what that leaves out in words."""
        ends = {each for each in _ENDS if each in self._first and not self._size(each)}
        ends -= {"root"} & {head for _, head in self._edges}  # they are at the ends
        ends -= {"end"} & {tail for tail, _ in self._edges}
        results = sum(size for (_, head), size in self._edges.items() if head == "end" and head in ends)
        notes = [f"results of {results:,.0f} bytes for the node end are not sent"] if results else []
        return ends, notes

    def _size(self, name: str) -> float:
        size, line = self._sizes.get(name, ("0", 1))
        return number(size, f"{self._path}, line {line}", f"size of task {name!r}")
