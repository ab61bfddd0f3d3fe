"""The kinds of figures, as the decorators of the functions that draw them declare; these are read, not loaded."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gridsched.errors import InputError
from gridsched.plugins import Plugin, Table, harmless, loaded, source_of

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
    is_default : bool
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
    is_default: bool = False
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
    return Table("figure", _kinds_of_plugin, dict(_kinds_in(modules)))


def _kinds_of_plugin(plugin: Plugin) -> Iterator[tuple[tuple[str, str], FigureKind]]:
    """Yield what the modules of a plugin draw; one that cannot be read is reported."""
    for module in plugin.figures:
        with harmless(plugin.name, f"adds no figure of {module!r}"):
            yield from list(_kinds_in([module]))


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
