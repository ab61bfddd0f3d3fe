"""Results as a study declares them: claims; and in its file expressions, readings, report and figures."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Annotated, Any, Concatenate, Literal, ParamSpec

from pydantic import BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, InstanceOf
from pydantic.dataclasses import dataclass as checked_dataclass

from gridsched.errors import InputError
from gridsched.model.records import NAME
from gridsched.runs.figure_kinds import figure_kinds
from gridsched.runs.run_spec import Section

Kind = Literal["number", "order", "shape", "theorem", "driver"]
#: As a claim's scheduler `against`: in each cell the scheduler with the least mean besides the claim's.
BEST_OTHER = "best_other"
_P = ParamSpec("_P")
_CHECKED = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True)
class Ours:
    """How our number for a claim is computed: a `statistic`, called with a study's results and these arguments.

    Attributes
    ----------
    function : callable
    arguments : mapping
        Name of the parameter -> value. What is called `metric`, `scheduler` or `where`, or `against`
        and so, names metrics, labels and runs of the study, and is looked for there.
    is_difference : bool
        Whether its sign shows who has more.
    takes_families : bool
        Whether schedulers may be families: labels without parameters.
    variant : str
        ``largest METRIC`` or ``least METRIC``: which of a family's variants represents it, by its mean.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    is_difference: bool = False
    takes_families: bool = False
    variant: str = ""

    @property
    def name(self) -> str:
        """Name of the statistic."""
        return self.function.__name__

    @property
    def metric(self) -> str:
        """Metric that it is of; empty where it is of none."""
        return self.arguments.get("metric") or ""

    @property
    def where(self) -> Mapping[str, Any]:
        """Axis -> value or values of the runs that count."""
        return self.arguments.get("where") or {}

    @property
    def metrics(self) -> set[str]:
        """All metrics that it is computed from."""
        named = (self.metric, self.arguments.get("against_metric"), self.variant.partition(" ")[2])
        return {name for name in named if name}

    @property
    def schedulers(self) -> dict[str, str]:
        """Parameter -> label or family, of those that it names."""
        return {key: self.arguments[key] for key in ("scheduler", "against") if self.arguments.get(key)}

    def of_variant(self, variant: str) -> Ours:
        """Return the same of a family's variant; see the attribute."""
        return replace(self, variant=variant)


def statistic(
    *, is_difference: bool = False, takes_families: bool = False
) -> Callable[[Callable[Concatenate[Any, _P], Any]], Callable[_P, Ours]]:
    """Make a function of a study's results a statistic: called without these, it returns how `Ours` is computed.

    Parameters
    ----------
    is_difference, takes_families : bool
        As in `Ours`.
    """

    def made(function: Callable[Concatenate[Any, _P], Any]) -> Callable[_P, Ours]:
        signature = inspect.signature(function)

        @wraps(function)
        def ours(*args: _P.args, **kwargs: _P.kwargs) -> Ours:
            bound = signature.bind(None, *args, **kwargs)
            bound.apply_defaults()
            arguments = dict(list(bound.arguments.items())[1:])
            return Ours(function, arguments, is_difference, takes_families)

        return ours

    return made


@checked_dataclass(frozen=True, config=_CHECKED)
class Ground:
    """What a tolerance is based on.

    Attributes
    ----------
    set : {"before", "after"}
        Whether it was fixed before our own runs had been seen.
    text : str
        What shows that, or what the tolerance was taken from.
    """

    set: Literal["before", "after"]
    text: Annotated[str, Field(pattern=r"\S")]


@checked_dataclass(frozen=True, config=_CHECKED)
class Claim:
    """A statement of a paper, and the computation of our number for it.

    Attributes
    ----------
    id : str
        Name of the claim; unique in the study.
    kind : {"number", "order", "shape", "theorem", "driver"}
        What is claimed: a number that the paper prints; who has more; how a curve runs, or that it
        does not; what holds by construction, whatever is drawn; or something of our own (how a
        driver or scheduler of ours does), which no paper states. They are counted separately.
    text : str
        The claim in words.
    source : str
        Its place in the paper: section, table, figure.
    ours : Ours
        How our number is computed.
    tolerance : float, (float, float), "order", "order_or_tie" or None
        Largest distance, allowed range, or only the ranking (which a tie may leave open).
    ground : Ground
        What the tolerance is based on.
    paper : float or None
        The paper's number.
    paper_range : (float, float) or None
        The range of the number that the paper prints, if it prints one. No tolerance
        may be wider.
    unit : str
    scale : float
        Our number is multiplied by it.
    explanation : str
        Why the claim is missed, if it is.
    run_ids : tuple of str
        Runs that support the explanation: ids, or expressions as for ``--only``.
    """

    id: Annotated[str, Field(pattern=r"^\S+$")]
    kind: Kind
    text: str
    source: str
    ours: InstanceOf[Ours]
    tolerance: float | tuple[float, float] | Literal["order", "order_or_tie"] | None
    ground: Ground
    paper: float | None = None
    paper_range: tuple[float, float] | None = None
    unit: str = ""
    scale: float = 1.0
    explanation: str = ""
    run_ids: tuple[str, ...] = ()

    @property
    def tolerated_range(self) -> tuple[float, float]:
        """From where to where the tolerance reaches; nan where it asks for an order or for nothing."""
        if isinstance(self.tolerance, tuple):
            return self.tolerance
        if self.tolerance is None or isinstance(self.tolerance, str) or self.paper is None:
            return math.nan, math.nan
        return self.paper - self.tolerance, self.paper + self.tolerance

    def __post_init__(self) -> None:
        if self.kind == "number" and self.paper is None:
            raise InputError(f"Claim {self.id!r}: kind is 'number', and 'paper' contains no number.")
        low, high = self.tolerated_range
        if self.paper_range is None or math.isnan(low):
            return
        least, most = self.paper_range
        if low < least or high > most:
            raise InputError(
                f"Claim {self.id!r}: its tolerance holds {low:g} to {high:g}, its 'paper_range' is {least:g} to "
                f"{most:g}; no tolerance may be wider than the paper's own range."
            )


@checked_dataclass(frozen=True, config=_CHECKED)
class Explanation:
    """Why claims are missed, and the runs that show it.

    Attributes
    ----------
    claims : tuple of str
        Ids of the claims.
    text : str
    run_ids : tuple of str
        As in `Claim`.
    """

    claims: Annotated[tuple[str, ...], Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)]
    run_ids: Annotated[tuple[str, ...], Field(min_length=1)]


def numbered(*rows: Any) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a table of claims with their numbers from 1 on."""
    return iter(enumerate(rows, start=1))


class Readings(Section):
    """Axes that represent readings of a paper, to be fitted on one part and tested on another.

    Attributes
    ----------
    axes : tuple of str
        Axes whose combinations are the readings; ``scheduler`` means the variants of the
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
        Axis -> value or list of values; a claim's own `where` takes precedence.
    """

    where: dict[str, Any] = Field(default_factory=dict)


class Expression(Section):
    """A metric of the study's own.

    Attributes
    ----------
    formula : str
        The expression over other metrics.
    unit : str
        As tables show it; empty if it is a pure number.
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
        Axis -> value or list of values of the runs that are drawn; it takes precedence over the report's.
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
