"""A study file as it is written: its keys, their types, and the line each stands on."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import BaseModel, Field, ValidationError

from gridsched.errors import InputError, did_you_mean
from gridsched.files.input_files import read_text
from gridsched.spec.run_spec import Section, Settings, with_tuples
from gridsched.spec.toml_lines import Path as KeyPath
from gridsched.spec.toml_lines import key_lines, line_of

#: Longer values are cut in messages.
_MAX_SHOWN = 80
_NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"


class Claim(Section):
    """What a paper says, and how our number is made to set beside it.

    Attributes
    ----------
    id : str
        Name of the claim; unique in the study.
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
    unit : str
    tolerance : float, (float, float), "order", "order_or_tie" or None
        Largest distance, legal range, or only the ranking (which a tie may leave open).
    tolerance_set : {"before", "after"}
        Whether the tolerance was fixed before our own runs had been seen.
    explanation : str
        Why the claim is missed, if it is.
    run_ids : tuple of str
        Runs that support the explanation: ids, or expressions as for ``--only``.
    columns, rows : tuple
        A table of claims that share the rest: each row is one claim; its columns are axes or
        fields of a claim.
    """

    id: str = Field(pattern=r"^\S+$")
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
    unit: str = ""
    tolerance: float | tuple[float, float] | Literal["order", "order_or_tie"] | None = None
    tolerance_set: Literal["before", "after"]
    explanation: str = ""
    run_ids: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


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


class DeclaredFigure(Section):
    """A figure that the report draws instead of its usual ones.

    Attributes
    ----------
    name : str
        Of its files.
    kind : {"best", "sweep", "traces"}
        Bars of each family's best and last variant; bars of a metric for each level, a panel for
        each family; mean series of some levels, likewise.
    metric : str
    along : str
        The parameter or axis that varies.
    schedulers : tuple of str
        Families (labels without parameters) in order; default: all that vary along it, and for
        ``best`` the others, too.
    levels : tuple
        The levels that are drawn; default: all.
    limit : str or None
        A metric drawn as a dashed line: the budget, say.
    infinite : str
        How an infinite level is called.
    caption : str
    """

    name: str = Field(pattern=_NAME)
    kind: Literal["best", "sweep", "traces"]
    metric: str
    along: str
    schedulers: tuple[str, ...] = ()
    levels: tuple[Any, ...] = ()
    limit: str | None = None
    infinite: str = "inf"
    caption: str = ""


class Content(Section):
    """The keys of a study file beside those of `Settings`."""

    name: str = Field(pattern=_NAME)
    title: str = ""
    source: str = ""
    seed: int = Field(default=0, ge=0, lt=2**63)
    replicates: int = Field(default=1, ge=1, le=1_000_000)
    policies: tuple[str, ...] = ()
    platform: Any = Field(default_factory=dict)
    workload: Any = Field(default_factory=dict)
    schedulers: Any
    group: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    exclude: tuple[dict[str, Any], ...] = ()
    only: str | None = None
    metrics: tuple[str, ...] = ()
    baseline: str | None = None
    timeout_s: float | None = Field(default=None, gt=0, le=1e8)
    claims: tuple[Claim, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    readings: Readings | None = None
    report: Report = Report()
    figures: tuple[DeclaredFigure, ...] = ()


@dataclass(frozen=True)
class StudyDocument:
    """A parsed study file.

    Attributes
    ----------
    path : str
        The file, for messages.
    text : str
        Its text.
    content : Content
    settings : dict
        The keys of `Settings`, unchecked: lists may be axes.
    """

    path: str
    text: str
    content: Content
    settings: dict[str, Any]
    _lines: dict[KeyPath, int] = field(repr=False)

    def refuse(self, path: KeyPath, complaint: str) -> NoReturn:
        """Raise the `InputError` about the key at `path`, with its line."""
        raise InputError(_message(self.path, self._lines, path, complaint))

    def check(self, model: type[BaseModel], values: Mapping[str, Any], source: Any) -> BaseModel:
        """Return `values` as a `model`.

        Parameters
        ----------
        model : type
        values : mapping
        source : callable
            ``source(key)`` returns the path in the file that a key's value comes from.
        """
        try:
            return model.model_validate(values)
        except ValidationError as error:
            first = _gravest(error)
            location = first["loc"] or ("",)
            path = (*source(str(location[0])), *location[1:])
            self.refuse(path, _complaint(first, model))


def parse_document(text: str, path: str) -> StudyDocument:
    """Parse the text of a study file.

    Raises
    ------
    InputError
        Naming line and key.
    """
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: no valid TOML: {error}.") from None
    lines = key_lines(text.replace("\r\n", "\n"))
    raw = with_tuples(raw)
    settings = {key: raw.pop(key) for key in list(raw) if key in Settings.model_fields}
    try:
        content = Content.model_validate(raw)
    except ValidationError as error:
        first = _gravest(error)
        complaint = _complaint(first, Content, extra=tuple(Settings.model_fields))
        raise InputError(_message(path, lines, first["loc"], complaint)) from None
    return StudyDocument(path, text, content, settings, lines)


def read_document(path: Path) -> StudyDocument:
    """Read a study file; see `parse_document`."""
    return parse_document(read_text(path), str(path))


def key_name(path: KeyPath) -> str:
    """Return a path as ``claims[2].paper``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the file"


def shown_value(value: Any) -> str:
    """Return a value for a message, cut where it is long."""
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _message(path: str, lines: dict[KeyPath, int], key: KeyPath, complaint: str) -> str:
    return f"{path}, line {line_of(lines, key)}: {key_name(key)} {complaint}"


def _gravest(error: ValidationError) -> dict[str, Any]:
    """Return the complaint to show first: a mistyped key explains a missing one."""
    found = error.errors()
    return next((each for each in found if each["type"] == "extra_forbidden"), found[0])


def _complaint(
    error: Mapping[str, Any], model: type[BaseModel], extra: tuple[str, ...] = ()
) -> str:
    if error["type"] == "missing":
        return "is missing."
    if error["type"] == "extra_forbidden":
        inner = {
            "claims": Claim, "explanations": Explanation, "readings": Readings, "report": Report,
            "figures": DeclaredFigure,
        }  # fmt: skip
        fields = inner.get(str(error["loc"][0]), model).model_fields
        legal = (*fields, *(extra if fields is model.model_fields else ()))
        hint = did_you_mean(str(error["loc"][-1]), legal)
        return f"is no known key. {hint}Legal: {', '.join(legal)}."
    legal = error["msg"].replace("Input should", "it should")
    return f"is {shown_value(error['input'])}; {legal}."
