"""``--only EXPR``: which runs of a study are meant, as an expression over its axes."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

from gridsched.errors import InputError
from gridsched.spec.study_axes import full_name

Evaluate = Callable[[Mapping[str, Any]], Any]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_HOW = "Write comparisons of axes with values, as \"scheduler == 'lecsa' and replicate < 5\"."
#: Longer expressions are refused.
MAX_LENGTH = 10_000


def run_filter(
    text: str, axes: Collection[str], name: str = "--only"
) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that says whether a run with these axis values is meant.

    Parameters
    ----------
    text : str
        Comparisons (``==, !=, <, <=, >, >=, in, not in``) of axes and values, joined by ``and``,
        ``or``, ``not``.
    axes : collection of str
        Names of the axes.
    name : str
        What the expression is called in messages.

    Raises
    ------
    InputError
        If it cannot be understood; the returned function, where types cannot be compared.
    """
    if len(text) > MAX_LENGTH:
        raise InputError(f"{name}: {len(text)} characters; at most {MAX_LENGTH} are read.")
    try:
        tree = ast.parse(text.replace("\n", " ").strip(), mode="eval").body
        evaluate = _Compiler(axes).compile(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"{name} {text!r}: cannot be read. {_HOW}") from None
    except InputError as error:
        raise InputError(f"{name} {text!r}: {error}") from None

    def is_meant(values: Mapping[str, Any]) -> bool:
        try:
            return bool(evaluate(values))
        except TypeError as error:
            raise InputError(f"{name} {text!r}: cannot be compared: {error}.") from None

    return is_meant


class _Compiler:
    def __init__(self, axes: Collection[str]) -> None:
        self._axes = axes

    def compile(self, node: ast.expr) -> Evaluate:
        match node:
            case ast.BoolOp():
                parts = [self.compile(value) for value in node.values]
                decide = all if isinstance(node.op, ast.And) else any
                return lambda values: decide(part(values) for part in parts)
            case ast.UnaryOp(op=ast.Not()):
                inner = self.compile(node.operand)
                return lambda values: not inner(values)
            case ast.Compare():
                return self._comparison(node)
            case ast.Name() | ast.Attribute():
                name = full_name(self._name(node), self._axes)
                return lambda values: values[name]
            case ast.Constant() | ast.List() | ast.Tuple() | ast.UnaryOp(op=ast.USub()):
                constant = ast.literal_eval(node)
                return lambda values: constant
        raise InputError(f"{ast.unparse(node)!r} is not understood. {_HOW}")

    def _comparison(self, node: ast.Compare) -> Evaluate:
        sides = [self.compile(side) for side in (node.left, *node.comparators)]
        for op in node.ops:
            if type(op) not in _COMPARE:
                raise InputError(f"{ast.unparse(node)!r} is not understood. {_HOW}")
        steps = [(_COMPARE[type(op)], k) for k, op in enumerate(node.ops)]
        return lambda values: all(
            compare(sides[k](values), sides[k + 1](values)) for compare, k in steps
        )

    def _name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self._name(node.value)}.{node.attr}"
        if isinstance(node, ast.Name):
            return node.id
        raise InputError(f"{ast.unparse(node)!r} is not understood. {_HOW}")
