"""Print how many lines of code the core and each system have: without blank lines, comments and docstrings.

Run ``python docs/code_lines.py``; `architecture.md` holds what it printed last.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "gridsched"
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """Return the lines of a module that hold a statement which is not a docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for token in tokens if token.type not in _NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def by_part() -> Counter[str]:
    """Return the code lines of the core and of each system."""
    counts: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        room, *rest = path.relative_to(PACKAGE).parts
        part = f"systems/{rest[0]}" if room == "systems" and len(rest) > 1 else "the core"
        counts[part] += code_lines(path.read_text(encoding="utf-8"))
    return counts


if __name__ == "__main__":
    found = by_part()
    for part, lines in sorted(found.items(), key=lambda item: -item[1]):
        print(f"| {part} | {lines:,} |")
    print(f"| all | {found.total():,} |")
