"""The errors gridsched raises on purpose.

Each names the object, the values allowed, the value found and the remedy. The command line
prints them as one line; :class:`InputError` ends it with status 2, all others with status 1.
"""

from __future__ import annotations

import difflib
import errno
import itertools
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from gridsched.renamed import named_now, now_called


class GridschedError(Exception):
    """Base class of every error gridsched raises on purpose."""


class InputError(GridschedError):
    """A file, option or argument that gridsched cannot accept."""


class NotTrusted(InputError):
    """Python that comes with data would have to be run, without the user's consent."""


class MissingDependency(InputError):
    """An optional package is needed and not installed."""


class InvalidDecision(GridschedError):
    """A scheduler asked for something the contract forbids."""


class IncompleteRun(GridschedError):
    """A run ended although some tasks never reached a final state."""


class SimulationError(GridschedError):
    """SimGrid refused, crashed, dead-locked, timed out or disagrees with the controller."""


class ProcessLost(SimulationError):
    """The simulating process was killed from outside; the run itself may be fine."""


class EnvironmentFault(GridschedError):
    """The machine, not the run, is at fault: a process or thread cannot be made, say."""


#: What begins the names of files of ours.
_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
#: Errors about the machine -> what they are where a policy raises them.
_OF_MACHINE: dict[type[GridschedError], type[GridschedError]] = {
    MissingDependency: InputError,
    EnvironmentFault: SimulationError,
    ProcessLost: SimulationError,
}
#: A line is shown up to here [character], of which so many are its end.
_MOST_SHOWN, _END_SHOWN = 500, 150
#: Error codes of the system for exhausted processes, threads, memory, open files or disk space.
_EXHAUSTED = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT}


def blames_environment(error: BaseException) -> bool:
    """Whether an exception concerns the machine's limits rather than what was run on it."""
    if isinstance(error, OSError):
        return error.errno in _EXHAUSTED
    no_thread = ("can't start new thread", os.strerror(errno.EAGAIN))
    return isinstance(error, RuntimeError) and text_of(error).startswith(no_thread)


def text_of(error: BaseException) -> str:
    """Return the text of an exception; a class of a user's own may make anything of it."""
    try:
        return str(error).strip()
    except BaseException as another:  # noqa: BLE001
        return f"its text cannot be read, {type(another).__name__}"


def visible(text: str, *, breaks: bool = True) -> str:
    r"""Return a text without characters that a terminal obeys or that reorder what is read.

    They are written as escapes, ``\x1b`` or ``\u202e``; blanks of other kinds are plain blanks. All that is printed
    comes through here: names in logs, studies and platforms may hold anything.

    Parameters
    ----------
    text : str
    breaks : bool
        Whether line breaks remain; else they are blanks.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or (breaks and each == "\n") else _escape(each) for each in text)


def _escape(character: str) -> str:
    return " " if character.isspace() else character.encode("unicode_escape").decode()


def shorten(line: str) -> str:
    """Return a line, without its middle if it does not fit a screen."""
    if len(line) <= _MOST_SHOWN:
        return line
    return f"{line[: _MOST_SHOWN - _END_SHOWN]} ... {line[-_END_SHOWN:]}"


def error_of_policy(error: BaseException) -> GridschedError:
    """Return whatever a policy has raised as one line that names exception, file and line.

    An error of ours names the place only if a file of the user's own has raised it; a remark on
    the machine then refers to this policy alone.
    """
    place, is_ours = _place(error)
    if isinstance(error, GridschedError):
        kind = next(cls for cls in type(error).__mro__ if cls.__module__ == __name__)
        if is_ours:
            return error if type(error) is kind else kind(text_of(error))
        return _OF_MACHINE.get(kind, kind)(f"{text_of(error).rstrip('.')}{place}.")
    reason = named_now(shorten(" ".join(text_of(error).split())))
    line = f"{type(error).__name__}: {reason}{place}."
    if blames_environment(error):
        return EnvironmentFault(f"The machine is at its limit. {line}")
    return SimulationError(line)


def _place(error: BaseException) -> tuple[str, bool]:
    """Return where an exception was raised, in brackets behind a blank, and whether that is a file of ours."""
    trace, place, is_ours = error.__traceback__, "", True
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith("<frozen "):  # Python's own, of an import
            trace = trace.tb_next
            continue
        place = f" ({os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name})"
        is_ours = code.co_filename.startswith(_PACKAGE)
        trace = trace.tb_next
    return place, is_ours


@contextmanager
def policy_at_work() -> Iterator[None]:
    """Raise whatever a policy raises in the block as an error of ours; Ctrl-C is the user's.

    Raises
    ------
    GridschedError
        See `error_of_policy`.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        ours = error_of_policy(error)
        if ours is error:
            raise
        raise ours from error


#: More names are not listed in a message.
_MOST_LISTED = 20
#: Comparing takes the square of the length: longer words are not compared, nor more than so many.
_LONGEST_WORD, _MOST_WORDS = 100, 10_000


#: What other tools call a key of ours.
_MEANT = {"seeds": "replicates", "repetitions": "replicates", "repeats": "replicates", "trials": "replicates"}


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun: "1 host", "2 hosts", "1,200 hosts".

    Parameters
    ----------
    number : int
        How many there are.
    one : str
        The words behind 1, with a verb where one follows: "row has".
    several : str, optional
        The words behind any other number: "rows have"; `one` with an s by default.
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"Did you mean 'x'? "`` for the known word nearest to `word`, or an empty string.

    What had another name is named by its new one, ``"It is now 'x'. "``.
    Upper and lower case are one; where no word is near, the first that begins with it is proposed.
    """
    if len(word) > _LONGEST_WORD:
        return ""
    short = [each for each in itertools.islice(known, _MOST_WORDS) if len(each) <= _LONGEST_WORD]
    if (now := now_called(word)) in short:
        return f"It is now {now!r}. "
    if (meant := _MEANT.get(word.lower())) in short:
        return f"Did you mean {meant!r}? "
    by_lower = {each.lower(): each for each in short}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1)
    near = near or [each for each in by_lower if word and each.startswith(word.lower())]
    return f"Did you mean {by_lower[near[0]]!r}? " if near else ""


def which_instead(word: str, known: Collection[str], document: str = "", *, called: str = "Allowed") -> str:
    """Return the sentences behind an unknown name: the nearest one, and all there are unless they are many.

    Parameters
    ----------
    word : str
    known : collection of str
    document : str
        Where they are listed, if there may be too many for a message.
    called : str
        What the list begins with.
    """
    hint = did_you_mean(word, known)
    if len(known) <= _MOST_LISTED:
        return f"{hint}{called}: {', '.join(known)}." if known else hint.rstrip()
    if hint:
        return hint.rstrip()
    return f"{document} lists the allowed ones." if document else f"{called}: {len(known):,} names."
