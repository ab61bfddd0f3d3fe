"""The command line: thin commands over the public interface, errors in one line."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence

import typer
from typer import Exit
from typer.main import get_command

from gridsched import __version__
from gridsched.cli.compare import EPILOG as COMPARE_EPILOG
from gridsched.cli.compare import compare
from gridsched.cli.example import example_app
from gridsched.cli.optimize import optimize_app
from gridsched.cli.output import say
from gridsched.cli.platform import platform_app
from gridsched.cli.plot import plot_app
from gridsched.cli.reproduce import EPILOG as REPRODUCE_EPILOG
from gridsched.cli.reproduce import reproduce
from gridsched.cli.run import EPILOG as RUN_EPILOG
from gridsched.cli.run import run_command
from gridsched.cli.schedulers import EPILOG as SCHEDULERS_EPILOG
from gridsched.cli.schedulers import schedulers
from gridsched.cli.study import study_app
from gridsched.cli.study_report import claims, report
from gridsched.cli.validate import EPILOG as VALIDATE_EPILOG
from gridsched.cli.validate import validate
from gridsched.cli.workload import workload_app
from gridsched.errors import GridschedError, InputError, text_of

INTERRUPTED = 130
_COMPLETION = "_GRIDSCHED_COMPLETE"

app = typer.Typer(
    name="gridsched",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Simulate grids on SimGrid and compare schedulers by energy and makespan.",
    epilog="Start with:\n\n"
    "gridsched example copy\n\n"
    "gridsched compare --platform platforms/ex_a.xml --workload examples/ex_a.csv\n\n"
    "Exit status: 0 fine, 1 a run failed or a difference was found, 2 bad input.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"gridsched {__version__}")
        raise Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", "-v", callback=_show_version, is_eager=True, help="Show the version."
    ),
    show_traceback: bool = typer.Option(
        False, "--traceback", help="Show Python's traceback with an error."
    ),
) -> None:
    """Simulate grids on SimGrid and compare schedulers by energy and makespan."""


app.command("schedulers", epilog=SCHEDULERS_EPILOG)(schedulers)
app.command("run", epilog=RUN_EPILOG)(run_command)
app.command("compare", epilog=COMPARE_EPILOG)(compare)
app.command("validate", epilog=VALIDATE_EPILOG)(validate)
app.add_typer(example_app, name="example")
app.add_typer(platform_app, name="platform")
app.add_typer(workload_app, name="workload")
app.add_typer(plot_app, name="plot")
app.add_typer(optimize_app, name="optimize")
study_app.command("report")(report)
study_app.command("claims")(claims)
app.add_typer(study_app, name="study")
app.command("reproduce", epilog=REPRODUCE_EPILOG)(reproduce)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        0: fine; 1: a run failed or a difference was found; 2: bad input; 130: interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = get_command(app).main(args=words, prog_name="gridsched", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has gone: nothing to tell it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - each becomes one line, a bug too
        if isinstance(error, SystemExit):
            if arguments is None and _COMPLETION in os.environ:
                raise  # the shell has asked for words
            if isinstance(error.__context__, BrokenPipeError):  # click's answer to it
                return 1
        if "--traceback" in words:
            traceback.print_exc()
        return _explain(error, words)
    if status == INTERRUPTED:  # typer's answer to Ctrl-C
        say("interrupted")
    return status if isinstance(status, int) else 0


def _explain(error: BaseException, words: Sequence[str]) -> int:
    """Say in one line what went wrong; return the exit status."""
    if isinstance(error, GridschedError):
        say(text_of(error))
        return 2 if isinstance(error, InputError) else 1
    # usage errors and aborts of click, or of the copy of it that typer brings
    kinds = {cls.__name__ for cls in type(error).__mro__}
    if "Abort" in kinds:
        say("interrupted")
        return INTERRUPTED
    if "NoArgsIsHelpError" in kinds:
        return 2
    if "ClickException" in kinds:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "gridsched"
        message: Callable[[], str] = getattr(error, "format_message", error.__str__)
        text = message().rstrip(".")
        say(f"{text}{_found(error, text, words)}. See '{path} --help'.")
        return 2
    if isinstance(error, OSError) and error.strerror and error.filename:
        say(f"{error.filename}: {error.strerror}.")
        return 2
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        say("too many open files; raise the limit by 'ulimit -n 1024' and try again.")
        return 2
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        say(f"what is to be printed cannot be written: {error.strerror}.")
        return 1
    if isinstance(error, MemoryError):
        say("out of memory; try a smaller platform or workload.")
        return 1
    say(
        f"internal error: {type(error).__name__}: {text_of(error)}. This is a fault of gridsched "
        "or of a scheduler of yours; 'gridsched --traceback COMMAND ...' shows where."
    )
    return 1


def _found(error: BaseException, text: str, words: Sequence[str]) -> str:
    """Return what stands after the option that a usage error is about, if the text lacks it."""
    names = getattr(getattr(error, "param", None), "opts", ())
    for option, value in reversed(list(zip(words, [*words[1:], ""], strict=True))):
        name, equals, rest = option.partition("=")
        if name in names and name.startswith("-") and repr(value) not in text:
            return f"; found {rest if equals else value!r}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
