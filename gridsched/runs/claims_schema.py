"""What a study file says of results: expressions, claims, readings, report, figures and their kinds."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler

from gridsched.errors import InputError
from gridsched.plugins import Table, loaded, source_of
from gridsched.runs.run_spec import NAME, Section

# ----------------------
# The kinds of figures, as the functions that draw them say; they are read, not loaded


_FIGURES = Path(__file__).parents[1] / "figures"


@dataclass(frozen=True)
class FigureKind:
    """What a function draws.

    Attributes
    ----------
    name : str
        Unique among the figures of the same subject; a study's ``[[figures]]`` name it as `kind`.
    of : str
        The subject, one of `gridsched.figures.figure_file.Subject`.
    sentence : str
        What it draws.
    target : str
        ``"module:function"`` that draws it.
    function : callable or None
        That function, where it is loaded.
    heading : str
        Of a study's figures: the heading above them in the report; default the sentence.
    place : int
        Of a study's figures: the lower, the earlier in the report.
    is_usual : bool
        Of a study's figures: left out where the study declares figures.
    needs : tuple of str
        Of declared figures: the keys of ``[[figures]]`` without which the study is refused.
    is_of_variants : bool
        Of declared figures: whether `schedulers` may name single variants of a family.
    """

    name: str
    of: str
    sentence: str
    target: str
    function: Callable[..., Any] | None = None
    heading: str = ""
    place: int = 100
    is_usual: bool = False
    needs: tuple[str, ...] = ("metric", "along")
    is_of_variants: bool = False

    @property
    def draw(self) -> Callable[..., Any]:
        """The function that draws it, which may take long to load."""
        return self.function or loaded(self.target, f"Figure {self.name!r}")


def figure_kinds(of: str) -> dict[str, FigureKind]:
    """Return the kinds of figures of a subject by name, in the order of a report."""
    kinds = sorted(_table().values(), key=lambda kind: kind.place)
    return {kind.name: kind for kind in kinds if kind.of == of}


def register_kind(kind: FigureKind) -> None:
    """Make a kind known.

    Raises
    ------
    InputError
        If something else draws figures of this name and subject.
    """
    first = _table().get((kind.of, kind.name), kind)
    if first.target != kind.target:
        raise InputError(
            f"Figure {kind.name!r} of a {kind.of} is drawn by {first.target} already; give that of "
            f"{kind.target} another name."
        )
    _table()[kind.of, kind.name] = kind


@cache
def _table() -> Table[tuple[str, str], FigureKind]:
    """Return all kinds by subject and name: those of gridsched, to which users' own are added."""
    modules = (f"gridsched.figures.{path.stem}" for path in sorted(_FIGURES.glob("*_figure.py")))
    return Table("figure", lambda plugin: _kinds_in(plugin.figures), dict(_kinds_in(modules)))


def _kinds_in(modules: Iterable[str]) -> Iterator[tuple[tuple[str, str], FigureKind]]:
    """Yield what the decorators ``@register_figure(...)`` in modules say."""
    for module in modules:
        text = source_of(module).read_text("utf-8")
        yield from (((kind.of, kind.name), kind) for kind in _kinds_of(module, text))


def _kinds_of(module: str, text: str) -> Iterator[FigureKind]:
    functions = (each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef))
    for function in functions:
        for call in function.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "register_figure":
                name, of, sentence = map(ast.literal_eval, call.args)
                details = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
                yield FigureKind(name, of, sentence, f"{module}:{function.name}", **details)


# ----------------------
# What a study file says of results: expressions, claims, readings, report, figures


Kind = Literal["number", "order", "shape", "theorem", "driver"]


class Claim(Section):
    """What a paper says, and how our number is made to set beside it.

    Attributes
    ----------
    id : str
        Name of the claim; unique in the study.
    kind : {"number", "order", "shape", "theorem", "driver"}
        What is claimed: a number that the paper prints; who has more; how a curve runs, or that it
        does not; what holds by construction, whatever is drawn; or something of our own (how a
        driver or scheduler of ours does), which no paper says. They are counted apart.
    text : str
        The claim in words.
    source : str
        Where the paper says it: section, table, figure.
    metric : str
        Column of the results.
    statistic : str
        How our number is computed; the report lists what it knows.
    scheduler, against : str or None
        Label of the scheduler, and of the one it is compared with (or ``best_other``); where a
        statistic looks along a parameter, or with `variant`, a family: a label without parameters.
    variant : str
        Which of a family's variants is meant: ``largest METRIC`` or ``least METRIC`` (its mean).
    along : str or None
        The axis or parameter along which a statistic compares, where it does.
    levels : (float, float) or None
        Only the levels of `along` from the first to the second of these.
    where : mapping
        Axis -> value or list of values: the runs that count.
    against_metric : str or None
        Metric of what is compared with; default `metric`.
    against_where : mapping
        Where the runs of what is compared with differ from `where`.
    hours, against_hours : (float, float) or None
        Begin and end of a part of the time that a series covers, from its begin [h].
    share : float
        The share of the budget whose use is waited for.
    scale : float
        Our number is multiplied by it.
    paper : float or None
        The paper's number.
    paper_range : (float, float) or None
        The range in which the paper says that the number lies, where it prints one. No tolerance
        may be wider.
    unit : str
    tolerance : float, (float, float), "order", "order_or_tie" or None
        Largest distance, legal range, or only the ranking (which a tie may leave open).
    tolerance_set : {"before", "after"}
        Whether the tolerance was fixed before our own runs had been seen.
    tolerance_ground : str
        What shows that, or what the tolerance was taken from.
    explanation : str
        Why the claim is missed, if it is.
    run_ids : tuple of str
        Runs that support the explanation: ids, or expressions as for ``--only``.
    columns, rows : tuple
        A table of claims that share the rest: each row is one claim; its columns are axes or
        fields of a claim.
    """

    id: str = Field(pattern=r"^\S+$")
    kind: Kind
    text: str = ""
    source: str
    metric: str
    statistic: str = "mean"
    scheduler: str | None = None
    against: str | None = None
    variant: str = Field(default="", pattern=r"^((largest|least) \w+)?$")
    along: str | None = None
    levels: tuple[float, float] | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    against_metric: str | None = None
    against_where: dict[str, Any] = Field(default_factory=dict)
    hours: tuple[float, float] | None = None
    against_hours: tuple[float, float] | None = None
    share: float = Field(default=0.999, gt=0, le=1)
    scale: float = 1.0
    paper: float | None = None
    paper_range: tuple[float, float] | None = None
    unit: str = ""
    tolerance: float | tuple[float, float] | Literal["order", "order_or_tie"] | None = None
    tolerance_set: Literal["before", "after"]
    tolerance_ground: str = Field(pattern=r"\S")
    explanation: str = ""
    run_ids: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()

    @property
    def tolerated_range(self) -> tuple[float, float]:
        """From where to where the tolerance reaches; nan where it asks for an order or for nothing."""
        if isinstance(self.tolerance, tuple):
            return self.tolerance
        if self.tolerance is None or isinstance(self.tolerance, str) or self.paper is None:
            return math.nan, math.nan
        return self.paper - self.tolerance, self.paper + self.tolerance


class Explanation(Section):
    """Why claims are missed, and the runs that show it.

    Attributes
    ----------
    claims : tuple of str
        Ids of the claims.
    text : str
    run_ids : tuple of str
        As in `Claim`.
    """

    claims: tuple[str, ...] = Field(min_length=1)
    text: str = Field(min_length=1)
    run_ids: tuple[str, ...] = Field(min_length=1)


class Readings(Section):
    """Axes that stand for readings of a paper, to be fitted on one part and tested on another.

    Attributes
    ----------
    axes : tuple of str
        Axes whose combinations are the readings; ``scheduler`` stands for the variants of the
        scheduler that the claims name.
    split : str
        The axis each value of which is a part.
    """

    axes: tuple[str, ...] = Field(min_length=1)
    split: str


class Report(Section):
    """Which runs the report's tables and figures, and the claims, are of.

    Attributes
    ----------
    where : mapping
        Axis -> value or list of values; a claim's own `where` goes before it.
    """

    where: dict[str, Any] = Field(default_factory=dict)


class Expression(Section):
    """A metric of the study's own.

    Attributes
    ----------
    formula : str
        The expression over other metrics.
    unit : str
        As it stands in tables; empty if it is a pure number.
    better : {"less", "more"} or None
        Which is better, if one is.
    meaning : str
        What it is, in a few words.
    """

    formula: str
    unit: str = ""
    better: Literal["less", "more"] | None = None
    meaning: str = ""


#: An expression, or its formula alone.
ExpressionOrText = Annotated[
    Expression,
    BeforeValidator(
        lambda given: {"formula": given} if isinstance(given, str) else given, json_schema_input_type=str | Expression
    ),
]


class _KindNames:
    """Lists the kinds in the JSON Schema."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "enum": list(figure_kinds("declared"))}


class DeclaredFigure(Section):
    """A figure that the report draws instead of its usual ones.

    Attributes
    ----------
    name : str
        Of its files.
    kind : str
        One of `figure_kinds` of what is declared, which say what they draw and need.
    metric : str
    along : str
        The parameter or axis that varies.
    schedulers : tuple of str
        Families (labels without parameters) in order; default: all that vary along it, and for
        kinds of single variants the others, too. Along an axis, and for kinds of single variants,
        also labels.
    where : mapping
        Axis -> value or list of values of the runs that are drawn; it goes before the report's.
    names : tuple of str
        How what is drawn is called, in order; default: the labels.
    levels : tuple
        The levels that are drawn; default: all.
    limit : str or None
        A metric drawn as a dashed line: the budget, say.
    infinite : str
        How an infinite level is called.
    caption : str
    """

    name: str = Field(pattern=NAME)
    kind: Annotated[str, _KindNames()]
    metric: str = ""
    along: str = ""
    schedulers: tuple[str, ...] = ()
    where: dict[str, Any] = Field(default_factory=dict)
    names: tuple[str, ...] = ()
    levels: tuple[Any, ...] = ()
    limit: str | None = None
    infinite: str = "inf"
    caption: str = ""
