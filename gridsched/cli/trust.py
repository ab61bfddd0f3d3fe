"""``--trust``: whether Python files that a store holds may be run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from gridsched.cli.output import one_line
from gridsched.errors import NotTrusted

if TYPE_CHECKING:
    from gridsched.campaign.store import Store

T = TypeVar("T")

TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust", metavar="", help="Run the Python files that the store holds, without asking."
    ),
]


def may_run(what: str) -> bool:
    """Ask on a terminal whether Python files of a store may be run; elsewhere they may not."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return typer.confirm(f"gridsched: {one_line(what)} Run it?", default=False, err=True)


def with_store(path: Path, trust: bool, act: Callable[[Store], T]) -> T:
    """Do something with a store; if Python files of it have to be run, ask first.

    Raises
    ------
    NotTrusted
        If they have to, and nobody says that they may.
    """
    from gridsched.campaign.store import Store

    try:
        return act(Store.open(path, trust=trust))
    except NotTrusted as error:
        if trust or not may_run(str(error)):
            raise
    return act(Store.open(path, trust=True))
