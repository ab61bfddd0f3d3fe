"""The figures of a study's report: those that the study declares or the usual ones, and others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gridsched.analysis.study_results import StudyResults
from gridsched.errors import InputError
from gridsched.figures.study_layout import Layout
from gridsched.figures.table import Drawn, figures

_DECLARED = "The study's figures"
_NAME = re.compile(r"[A-Za-z][\w.-]*")


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
