"""Expressions that people write in files and options, evaluated without running their text.

They choose runs (``--only``), or are metrics over other metrics: ``ed2p = "energy_j * makespan_s ** 2"``.

A text is parsed as Python; what its use does not name is refused, so that nothing can be called or
looked into.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gridsched.errors import InputError, did_you_mean
from gridsched.metrics.table import FORMULA, METRICS, Metric, declare_metric
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

_HOW_TO_COMPUTE = (
    "Write metrics and numbers with + - * / ** and parentheses, and abs, sqrt, exp, log, min, max, "
    'as "energy_j * makespan_s ** 2".'
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "min": lambda *values: np.min(values),
    "max": lambda *values: np.max(values),
}
_HOW_TO_CHOOSE = "Write comparisons of axes with values, as \"scheduler == 'lecsa' and replicate < 5\"."


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


# ---------------------------------------------------------------------- which runs


def full_name(name: str, names: Collection[str]) -> str:
    """Return the axis that a name means: its own, or its last part where that is unique.

    Raises
    ------
    InputError
        If there is none, or several.
    """
    if name in names:
        return name
    candidates = [each for each in names if each.rpartition(".")[2] == name]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise InputError(f"{name!r} may mean {' or '.join(candidates)}; write it in full.")
    raise InputError(f"{name!r} is not an axis of this study. {did_you_mean(name, names)}Axes: {', '.join(names)}.")


def run_filter(text: str, axes: Collection[str], name: str = "--only") -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that decides whether a run with these axis values is meant.

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
    evaluate = Language(DECISIONS, lambda axis: full_name(axis, axes), _HOW_TO_CHOOSE).compiled(text, name)

    def is_meant(values: Mapping[str, Any]) -> bool:
        try:
            return bool(evaluate(values))
        except TypeError as error:
            raise InputError(f"{name} {text!r}: cannot be compared: {error}.") from None

    return is_meant


# ---------------------------------------------------------------------- metrics


@dataclass(frozen=True)
class Formula:
    """A metric that is computed from others.

    Attributes
    ----------
    metric : Metric
        Its entry; of rows.
    needs : frozenset of str
        The metrics that it is computed from, formulas among them.
    """

    metric: Metric
    needs: frozenset[str]


def formula(
    id: str,
    text: str,
    known: Collection[str],
    *,
    unit: str = "",
    better: Literal["less", "more"] | None = None,
    meaning: str = "",
    called: str = "",
) -> Formula:
    """Return the metric that an expression describes.

    Parameters
    ----------
    id : str
        Its name.
    text : str
        The expression.
    known : collection of str
        The metrics that it may name.
    unit, better, meaning : str
        Of the metric's entry.
    called : str
        What the expression is called in messages; default `id`.

    Raises
    ------
    InputError
        If the id is none, or taken, or the expression cannot be understood.
    """
    called = called or id
    if not id.isidentifier():
        raise InputError(f"{called}: is not a name of letters, digits and underscores.")
    taken = METRICS.get(id)
    if taken is not None and taken.condition is not FORMULA:
        raise InputError(f"{called}: is a metric already ({taken.sentence}). Choose another name.")
    needs: set[str] = set()

    def name(word: str) -> str:
        if word not in known:
            near = did_you_mean(word, known)
            raise InputError(f"{word!r} is not a metric to compute with. {near}".rstrip())
        needs.add(word)
        return word

    compute = Language(COMPUTATIONS, name, _HOW_TO_COMPUTE, _number, _FUNCTIONS).compiled(text, called)
    try:
        _value(compute, dict.fromkeys(needs, 1.0), needs)
    except (TypeError, ValueError):
        raise InputError(f"{called} {text!r}: a function has too few or many values.") from None
    said = f"{meaning}: `{text}`" if meaning else f"`{text}`"
    metric = Metric(id, unit, said, lambda row: _value(compute, row, needs), "row", FORMULA, better)
    return Formula(metric, frozenset(needs))


def declare(formulas: Iterable[Formula]) -> None:
    """Put formulas into the table of metrics, so that they have names and units in tables."""
    for each in formulas:
        declare_metric(each.metric)


def _number(value: object) -> np.float64:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{value!r} is not a number.")
    return np.float64(value)


def _value(compute: Evaluate, row: Mapping[str, Any], needs: Collection[str]) -> float | None:
    """Return the value for a row; None where a metric that it needs has none, or it is infinite."""
    operands = {id: row.get(id) for id in needs}
    if any(value is None for value in operands.values()):
        return None
    with np.errstate(all="ignore"):
        value = float(compute({id: np.float64(value) for id, value in operands.items()}))
    return value if np.isfinite(value) else None
