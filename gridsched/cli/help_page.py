"""How ``--help`` shows options: a flag has no type beside it."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _PlainFlags:
    """A command whose help says nothing of the type of flags, ``--help`` among them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A group of commands."""


class Application(typer.Typer):
    """A group of commands that is being declared."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": Group, "rich_markup_mode": "markdown", **settings})

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Return a decorator that makes a command of a function."""
        return super().command(name, **{"cls": Command, **settings})
