"""All figures in one table: what each draws, of what, and the function that draws it.

A module of this folder whose name ends in ``_figure`` registers what it draws by
`register_figure`; what a study may declare is registered in `gridsched.runs.figure_kinds`. A user's
own module may do the same: a study's ``policies`` file, say, with a figure for the study's report.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gridsched.errors import InputError
from gridsched.runs.figure_kinds import DECLARED_KINDS, DeclaredKind, register_kind

if TYPE_CHECKING:  # matplotlib takes longer to load than the rest
    import pandas as pd
    from matplotlib.figure import Figure, SubFigure

    from gridsched.analysis.study_results import StudyResults
    from gridsched.figures.study_layout import Layout

#: What is drawn: a `Trace`; rows as of `compare`; `Tasks`; a `JobTable`; a `SystemWorkload`; a
#: study's results and their `Layout`; a study's results and one of its ``[[figures]]``; a
#: `Landscape` of energies and makespans that are possible.
Subject = Literal["run", "comparison", "tasks", "jobs", "system", "study", "declared", "landscape"]


@dataclass(frozen=True)
class Drawn:
    """A drawn figure, and the data that it shows.

    Attributes
    ----------
    figure : Figure or SubFigure
    data : DataFrame or mapping of str to columns
        What is drawn, units in the names.
    name : str
        Of its files in a study's report.
    caption : str
        What it shows, in a study's report.
    """

    figure: Figure | SubFigure
    data: pd.DataFrame | Mapping[str, Iterable[Any]]
    name: str = ""
    caption: str = ""


@dataclass(frozen=True)
class FigureKind:
    """An entry of the table; see `register_figure`."""

    name: str
    of: Subject
    sentence: str
    draw: Callable[..., Any]
    heading: str
    place: int
    is_usual: bool


_DECLARED = "The study's figures"
_NAME = re.compile(r"[A-Za-z][\w.-]*")
_TABLE: dict[tuple[Subject, str], FigureKind] = {}


def register_figure(
    name: str,
    of: Subject,
    sentence: str,
    *,
    heading: str = "",
    place: int = 100,
    is_usual: bool = False,
    needs: tuple[str, ...] = ("metric", "along"),
    is_of_variants: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that puts a function into the table of figures.

    Parameters
    ----------
    name : str
        Unique among the figures of the same subject; a study's ``[[figures]]`` name it as `kind`.
    of : str
        The `Subject`. The function is called with it, and returns a `Drawn`; one of a study is
        called with the results and their `Layout`, and yields as many as it likes.
    sentence : str
        What it draws.
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

    Raises
    ------
    InputError
        If another function draws a figure of this name and subject.
    """

    def register(draw: Callable[..., Any]) -> Callable[..., Any]:
        if of == "declared":
            target = f"{draw.__module__}:{draw.__qualname__}"
            register_kind(DeclaredKind(name, target, sentence, needs, is_of_variants))
        known = _TABLE.get((of, name))
        if known is not None and _where(known.draw) != _where(draw):
            raise InputError(
                f"Figure {name!r} of a {of} is drawn by {_where(known.draw)} already; give that of "
                f"{_where(draw)} another name."
            )
        _TABLE[of, name] = FigureKind(name, of, sentence, draw, heading or sentence.rstrip("."), place, is_usual)
        return draw

    return register


def _where(draw: Callable[..., Any]) -> str:
    return f"{draw.__module__}.{draw.__qualname__}"


def figures(of: Subject) -> dict[str, FigureKind]:
    """Return the figures of a subject by name, in the order of a report."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name.endswith("_figure"):
            importlib.import_module(f"gridsched.figures.{module.name}")
    for each in DECLARED_KINDS.values():
        if ("declared", each.name) not in _TABLE:
            place, _, function = each.target.partition(":")
            draw = getattr(importlib.import_module(place), function)
            register_figure(each.name, "declared", each.sentence)(draw)
    kinds = sorted(_TABLE.values(), key=lambda kind: (kind.place, kind.name))
    return {kind.name: kind for kind in kinds if kind.of == of}


def study_figures(results: StudyResults, layout: Layout) -> Iterator[tuple[str, Drawn]]:
    """Yield each figure with its heading, one at a time; draw and save each within `style`.

    Raises
    ------
    InputError
        If a declared figure asks for a level or series that the study has not, or a figure has
        a name that is none for a file, or another figure's.
    """
    names: set[str] = set()
    for heading, drawn in _all(results, layout):
        if not _NAME.fullmatch(drawn.name) or drawn.name in names:
            raise InputError(
                f"{heading}: a figure is called {drawn.name!r}; its name must begin with a letter, "
                "hold letters, digits, '_', '-' and '.', and be that of no other figure."
            )
        names.add(drawn.name)
        yield heading, drawn


def _all(results: StudyResults, layout: Layout) -> Iterator[tuple[str, Drawn]]:
    kinds = figures("declared")
    for declared in results.study.figures:
        yield _DECLARED, kinds[declared.kind].draw(results, declared)
    for kind in figures("study").values():
        if not (kind.is_usual and results.study.figures):
            for drawn in kind.draw(results, layout):
                yield kind.heading, drawn
