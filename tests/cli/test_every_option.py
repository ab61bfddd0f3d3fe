"""No option of any command is taken and ignored: with it something differs, or it is refused."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_cases import ROOT
from every_option import BASES, FILES, GENERIC, MADE, OF_RUNS, OWN, SHIPPED, WRITING, Probe

from gridsched.analysis.study_results import read_results
from gridsched.cli.app import _COMMANDS, load_command, main

pytestmark = pytest.mark.systems

#: The effect of these shows on stderr.
ON_STDERR = ("--log", "--trust")
RUNNING = ("run", "compare", "beside", "validate")


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the name of each command of a group, and the command."""
    for word, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{name} {word}")
    if not getattr(command, "commands", None):
        yield name, command


def every_option() -> list[tuple[str, str]]:
    """Return each option of each command, as its first long spelling."""
    found = []
    for top in _COMMANDS:
        for name, command in commands(load_command(top), top):
            for each in command.params:
                if each.param_type_name == "option":
                    found.append((name, next(text for text in each.opts if text.startswith("--"))))
    return found


ALL = every_option()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with all input files."""
    where = tmp_path_factory.mktemp("options")
    for name, text in FILES.items():
        (where / name).write_text(text)
    for name, shipped in SHIPPED.items():
        shutil.copy(ROOT / shipped, where / name)
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.chdir(where)
    for words in MADE:
        assert main(shlex.split(words)) in (0, 1), words
    monkeypatch.undo()
    return where


def probes(command: str, option: str) -> tuple[Probe, ...]:
    """Return what an option is tried with; nothing where `OWN` states why nothing can show."""
    own = OWN.get(command, {}).get(option)
    if isinstance(own, str):
        return ()
    if own is not None:
        return (own,)
    if option in GENERIC:
        return (Probe(WRITING[command], option),)
    return OF_RUNS[option]


def words_of(command: str, probe: Probe) -> str:
    """Return the words that both calls have."""
    base = f"{BASES.get(probe.base, probe.base)} {probe.also}"
    if command == "run":
        return base.replace("--schedulers", "--scheduler")
    base = base if command == "compare" else re.sub(r"--group-by \w+", "", base)
    return base.replace("--driver reference", "") if command == "validate" else base


def run_id(store: Path) -> str:
    """Return the id of a run of a stored study."""
    return str(read_results(str(store)).runs["run_id"].iloc[0])


class Calls:
    """Calls of commands in a folder, from which what they write is taken again.

    Parameters
    ----------
    folder : Path
        It is the working folder.
    gridsched : callable
    """

    def __init__(self, folder: Path, gridsched: Any) -> None:
        self.folder, self._gridsched = folder, gridsched
        self._kept = {path.name for path in folder.iterdir()}

    def __call__(self, command: str, words: str, *, twice: bool = False) -> tuple[Any, str]:
        """Return what a call leaves to be seen, and its stderr; `twice`: of the second of two."""
        for _ in range(1 + twice):
            outcome = self._gridsched(*command.split(), *shlex.split(words))
        files = {}
        for path in sorted(self.folder.iterdir()):
            if path.name not in self._kept:
                files |= {str(each.relative_to(self.folder)): seen(each) for each in [path, *path.rglob("*")]}
        self.clean()
        return (outcome.status, shown(outcome.out), files), outcome.err

    def clean(self) -> None:
        """Remove what was written."""
        for path in self.folder.iterdir():
            if path.name not in self._kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def seen(path: Path) -> str:
    """Return what of a file depends on its options, and not on when and by which words it was written."""
    if path.suffix not in (".csv", ".json", ".toml", ".xml", ".swf"):
        return ""
    text = re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL)
    return shown("\n".join(line for line in text.splitlines() if not line.startswith(("#", ";"))))


def shown(text: str) -> str:
    """Return a text without provenance and wall times."""
    try:
        return json.dumps(_plain(json.loads(text)))
    except ValueError:
        return text


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key not in ("provenance", "timing")}
    return [_plain(each) for each in value] if isinstance(value, list) else value


@pytest.fixture
def calls(folder, gridsched, monkeypatch) -> Calls:
    """Call commands in the folder."""
    monkeypatch.chdir(folder)
    return Calls(folder, gridsched)


def test_every_option_is_tried():
    """Each one of each command, and none that there is not."""
    tried = {(command, option) for command, options in OWN.items() for option in options}
    tried |= {(command, option) for command in RUNNING for option in OF_RUNS}
    tried |= {pair for pair in ALL if pair[1] in GENERIC and pair[0] in WRITING}
    assert tried == set(ALL)


def found_apart(calls: Calls, command: str, option: str, probe: Probe) -> tuple[bool, object]:
    """Return whether an option shows or is refused by its name, and what the two calls gave."""
    words = words_of(command, probe)
    for name, store in (("TRUSTED", "trusted"), ("RUN", "store")):
        if name in words.split():
            words = words.replace(name, run_id(calls.folder / store))
    if is_generic(command, option) and option == "--force":
        without, noted = calls(command, words, twice=True)
        after, err = calls(command, f"{words} --force", twice=True)
        return (without[0], after[0]) in ((2, 0), (2, 1)), (noted, err)
    words += " --json" * (command in RUNNING and not is_generic(command, option))
    without, noted = calls(command, words)
    after, err = calls(command, f"{words} {probe.words}")
    if (without[0], after[0]) == (0, 2):
        name = re.sub("[-_]", "", option.removesuffix("-s"))
        return name in re.sub("[-_]", "", err), (noted, err)
    return after != without or (option in ON_STDERR and err != noted), (without[0], noted, err)


def is_generic(command: str, option: str) -> bool:
    """Whether an option is tried with the words of `WRITING`."""
    return option in GENERIC and option not in OWN.get(command, {})


#: These start processes or write pages, and take long.
LONG = ("reproduce", "study", "kernels")
CASES = [
    pytest.param(*pair, id=" ".join(pair), marks=[pytest.mark.long] * (pair[0].split()[0] in LONG)) for pair in ALL
]


@pytest.mark.usefixtures("simgrid")
@pytest.mark.parametrize(("command", "option"), CASES)
def test_an_option_shows_or_is_refused(calls, command, option):
    """Two calls that differ in it differ in what they print or write, or the second is refused by its name."""
    tries = probes(command, option)
    seen_of_each = []
    for probe in tries:
        shows, what = found_apart(calls, command, option, probe)
        if shows:
            return
        seen_of_each.append(what)
    assert not tries, seen_of_each
