"""The kinds of figures that a study may declare. Entries name what draws them: listing is quick."""

from __future__ import annotations

from dataclasses import dataclass

from gridsched.errors import InputError


@dataclass(frozen=True)
class DeclaredKind:
    """A kind of ``[[figures]]``.

    Attributes
    ----------
    name : str
    target : str
        ``"module:function"`` that draws it from a study's results and one of its figures.
    sentence : str
        What it draws.
    needs : tuple of str
        The keys without which a figure is refused.
    is_of_variants : bool
        Whether `schedulers` may name single variants of a family.
    """

    name: str
    target: str
    sentence: str
    needs: tuple[str, ...] = ("metric", "along")
    is_of_variants: bool = False


#: By name; a kind is registered here alone, those of users by `register_kind`.
DECLARED_KINDS: dict[str, DeclaredKind] = {}


def register_kind(kind: DeclaredKind) -> None:
    """Make a kind known.

    Raises
    ------
    InputError
        If something else draws figures of this name.
    """
    known = DECLARED_KINDS.setdefault(kind.name, kind)
    if known.target != kind.target:
        raise InputError(
            f"Figure {kind.name!r} of a study is drawn by {known.target} already; give that of "
            f"{kind.target} another name."
        )


_CHARTS, _SERIES = "gridsched.figures.declared_charts:", "gridsched.figures.declared_series:"
for _kind in (
    DeclaredKind("best", f"{_CHARTS}best", "Bars of each family's best and last variant."),
    DeclaredKind("sweep", f"{_CHARTS}levels", "Bars of a metric at each level, a panel for each family."),
    DeclaredKind("traces", f"{_SERIES}series", "Mean series of some levels, a panel for each family."),
    DeclaredKind(
        "box",
        f"{_CHARTS}boxes",
        "A box for each variant: median, quartiles, whiskers.",
        ("metric",),
        is_of_variants=True,
    ),
    DeclaredKind(
        "calibration",
        f"{_SERIES}calibration",
        "Predicted chance to be in time against the observed frequency.",
        (),
        is_of_variants=True,
    ),
    DeclaredKind("lines", f"{_CHARTS}lines", "A metric along what varies, a line for each family."),
    DeclaredKind(
        "violins", f"{_CHARTS}violins", "The distribution over replicates, along what varies.", is_of_variants=True
    ),
    DeclaredKind(
        "plans", "gridsched.figures.declared_plans:plans", "Makespan over energy of plans, with what they earn as bars."
    ),
    DeclaredKind(
        "landscapes", "gridsched.figures.front_figure:landscapes", "The feasible region with profit contours, by level."
    ),
    DeclaredKind(
        "points", f"{_CHARTS}points", "Means on a logarithmic axis, a row for each level.", is_of_variants=True
    ),
):
    register_kind(_kind)
