"""Every example of --help runs, in a folder with the files that come with gridsched."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from typer.main import get_command

from gridsched.cli.app import app, load_command

_IN_HELP = re.compile(r"Example: `?(gridsched [^`\n]*)")
#: Campaigns take their time; the documents run commands of these kinds.
CAMPAIGNS = ("gridsched reproduce", "gridsched study")


def commands(command: click.Command, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command below one, and itself, by the words that call it."""
    yield " ".join(words), command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, *words, name)


def examples(command: click.Command) -> list[str]:
    """Return the command lines in a help: paragraphs of their own, or after ``Example:``."""
    paragraphs = [" ".join(each.split()) for each in (command.epilog or "").split("\n\n")]
    found = [each for each in paragraphs if each.startswith("gridsched ")]
    return found + _IN_HELP.findall(f"{command.help} {command.epilog}")


GRIDSCHED = get_command(app)
GRIDSCHED.commands = {name: load_command(name) for name in GRIDSCHED.commands}
ALL = {words: examples(each) for words, each in commands(GRIDSCHED)}
#: What is tried, by the command whose help has it.
FOUND = {words: lines for words, lines in ALL.items() if any(not each.startswith(CAMPAIGNS) for each in lines)}


def test_most_commands_have_examples():
    """A change of the way they are written would be noticed."""
    assert len(FOUND) >= 20
    assert sum(map(len, FOUND.values())) >= 40


@pytest.mark.parametrize("words", FOUND)
def test_examples_run(simgrid, gridsched, tmp_path, monkeypatch, words):
    """One after the other, where nothing but 'gridsched example copy' was called before."""
    monkeypatch.chdir(tmp_path)
    lines = [each for each in FOUND[words] if not each.startswith(CAMPAIGNS)]
    if "gridsched example copy" not in lines:
        lines.insert(0, "gridsched example copy")
    for line in lines:
        outcome = gridsched(*shlex.split(line)[1:])
        assert (outcome.status, outcome.complaints) == (0, []), line
