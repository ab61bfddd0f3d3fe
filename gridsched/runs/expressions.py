"""Expressions that people write in files and options, evaluated without running their text.

They choose runs (``--only``), or are metrics over other metrics: ``ed2p = "energy_j * makespan_s ** 2"``.

A text is parsed as Python; what its use does not name is refused, so that nothing can be called or
looked into.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gridsched.errors import InputError
from gridsched.model.records import expression_tree, shown_value

Evaluate = Callable[[Mapping[str, Any]], Any]

#: Longer expressions are refused.
MAX_LENGTH = 10_000
#: And those that nest deeper, or add up more terms: each level is a call in the evaluation.
MAX_DEPTH = 200
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_COMPUTE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
#: What decides: comparisons, joined by ``and``, ``or``, ``not``; lists and texts are constants.
DECISIONS: tuple[type[ast.expr], ...] = (ast.BoolOp, ast.Compare, ast.List, ast.Tuple)
#: What computes: ``+ - * / **``, functions.
COMPUTATIONS: tuple[type[ast.expr], ...] = (ast.BinOp, ast.Call)


@dataclass(frozen=True)
class Language:
    """What an expression may say.

    Attributes
    ----------
    takes : tuple of type
        `DECISIONS`, `COMPUTATIONS` or both; names, constants and signs are allowed in any.
    name : callable
        Called with a name as it is written, returns the key of its value, or raises `InputError`.
    how : str
        What to write, for messages.
    constant : callable
        Called with a constant, returns the value to compute with.
    functions : mapping
        Name -> function.
    """

    takes: tuple[type[ast.expr], ...]
    name: Callable[[str], str]
    how: str
    constant: Callable[[Any], Any] = lambda value: value
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def compiled(self, text: str, called: str) -> Evaluate:
        """Return the function that an expression describes, of a mapping of values.

        Parameters
        ----------
        text : str
        called : str
            What the expression is called in messages.

        Raises
        ------
        InputError
            If it cannot be understood.
        """
        if len(text) > MAX_LENGTH:
            raise InputError(f"{called}: {len(text)} characters; at most {MAX_LENGTH} are read.")
        try:
            tree = expression_tree(text.replace("\n", " ").strip())
            if _depth(tree) > MAX_DEPTH:
                raise InputError(f"it nests deeper than {MAX_DEPTH}, or has more terms in a row.")
            return self._compile(tree)
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
            raise InputError(f"{called} {shown_value(text)}: cannot be read. {self.how}") from None
        except InputError as error:
            raise InputError(f"{called} {shown_value(text)}: {error}") from None

    def _compile(self, node: ast.expr) -> Evaluate:
        match node:
            case ast.Name() | ast.Attribute():
                key = self.name(self._dotted(node))
                return lambda values: values[key]
            case ast.UnaryOp(op=ast.USub()):
                inner = self._compile(node.operand)
                return lambda values: -inner(values)
            case ast.Constant():
                constant = self.constant(node.value)
                return lambda values: constant
            case ast.UnaryOp(op=ast.Not()) if ast.BoolOp in self.takes:
                inner = self._compile(node.operand)
                return lambda values: not inner(values)
        if not isinstance(node, self.takes):
            raise self._refusal(node)
        match node:
            case ast.BoolOp():
                parts = [self._compile(value) for value in node.values]
                decide = all if isinstance(node.op, ast.And) else any
                return lambda values: decide(part(values) for part in parts)
            case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
                sides = [self._compile(side) for side in (node.left, *node.comparators)]
                steps = [(_COMPARE[type(op)], k) for k, op in enumerate(node.ops)]
                return lambda values: all(compare(sides[k](values), sides[k + 1](values)) for compare, k in steps)
            case ast.List() | ast.Tuple():
                constant = ast.literal_eval(node)
                return lambda values: constant
            case ast.BinOp() if type(node.op) in _COMPUTE:
                compute = _COMPUTE[type(node.op)]
                left, right = self._compile(node.left), self._compile(node.right)
                return lambda values: compute(left(values), right(values))
            case ast.Call(func=ast.Name(id=id)) if id in self.functions and not node.keywords:
                function = self.functions[id]
                arguments = [self._compile(each) for each in node.args]
                return lambda values: function(*(each(values) for each in arguments))
        raise self._refusal(node)

    def _refusal(self, node: ast.expr) -> InputError:
        return InputError(f"{shown_value(ast.unparse(node))} is not understood. {self.how}")

    def _dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value)}.{node.attr}"
        if isinstance(node, ast.Name):
            return node.id
        raise self._refusal(node)


def _depth(node: ast.AST) -> int:
    """Return how deep an expression nests, without recursion."""
    depth, level = 0, [node]
    while level:
        depth, level = depth + 1, [each for one in level for each in ast.iter_child_nodes(one)]
    return depth
