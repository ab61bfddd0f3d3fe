"""The command line: thin commands over the public interface, errors in one line."""

from __future__ import annotations

import errno
import gc
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer import Exit
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command, get_group

from gridsched import compiled, long_work, plugins
from gridsched.errors import GridschedError, InputError, error_of_policy, text_of, visible
from gridsched.renamed import option_now
from gridsched.version import __version__

INTERRUPTED = 130
_COMPLETION = "_GRIDSCHED_COMPLETE"

#: The module of this room that each command lives in, and the first line of its help.
_CORE = {
    "schedulers": ("schedulers", "List the schedulers with their rules, accepted workloads, parameters and sources."),
    "run": ("run", "Run one scheduler on a platform and a workload."),
    "compare": ("compare", "Compare schedulers on one platform and workload by energy and makespan, or by utility."),
    "beside": (
        "beside",
        ("Compare a machine's own schedule, from Slurm's accounting, with those of other schedulers."),
    ),
    "validate": ("validate", "Check the model's joules against SimGrid's energy plugin, host by host."),
    "reproduce": ("study_report", "Run a study, write its report, and compare its paper's claims with our runs."),
    "example": ("example", "Platforms, workloads and studies that come with gridsched."),
    "platform": ("platform", "Make SimGrid platforms from tables of machines, and check platform files."),
    "workload": ("workload", "Make and describe workloads."),
    "plot": ("plot", "Draw figures from an export (`gridsched run ... --export DIR`)."),
    "view": ("plot", "Write an interactive page of a run, or of several on one time axis; needs gridsched[view]."),
    "study": ("study", "Run campaigns of many runs from one study file; interrupted ones continue."),
    "kernels": ("kernels", "Compile the loops of schedulers ahead of their first use."),
}
_COMMANDS: plugins.Table[str, plugins.Command] = plugins.Table(
    "command",
    lambda plugin: ((each.name, each) for each in plugin.commands),
    {name: plugins.Command(name, f"gridsched.cli.{module}", line) for name, (module, line) in _CORE.items()},
)


class _PlainFlags:
    """A command whose help does not mention the type of flags, such as ``--help``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
            if isinstance(each, TyperOption) and "process_value" not in vars(each):
                vars(each)["process_value"] = partial(_processed, each, each.process_value)
        return params


def _processed(option: Any, process: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """Return the value of an option as typer does, which makes an adapter of pydantic's for it even where it fits."""
    kind = getattr(getattr(option, "type_descriptor", None), "annotation", None)  # older versions have none
    if value is None and not option.required:
        value = () if option.multiple else None
    elif kind == list[str] and isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        value = list(value)
    elif kind is Path and isinstance(value, str) and _is_readable(value, option.type_descriptor.parameter_info):
        value = Path(value)
    elif kind not in (str, int, float) or type(value) is not kind:
        return process(context, value)
    return value if option.callback is None else option.callback(context, option, value)


def _is_readable(path: str, asked: Any) -> bool:
    """Whether a file is there as an option of typer's asks by default."""
    default = (asked.exists, asked.writable, asked.resolve_path) == (False, False, False) and asked.path_type is None
    return default and asked.file_okay and asked.dir_okay and os.access(path, os.R_OK)


class Command(_PlainFlags, TyperCommand):
    """A command."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error about a file begins with the option or argument that names the file."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            if given_by := _parameter_of(text_of(error), ctx):
                error.args = (f"{given_by} {text_of(error)}",)
            raise


def _parameter_of(text: str, context: Any) -> str:
    """Return the option or argument whose value an error's text begins with; empty if there is not just one."""
    found = []
    for each in context.command.params:
        value = context.params.get(each.name)
        values = map(str, value) if isinstance(value, list | tuple) else (str(value),) if value else ()
        if any(one and text.startswith((f"{one}: ", f"{one}, line ")) for one in values):
            found.append(max(each.opts, key=len) if each.opts[0].startswith("-") else each.metavar.strip("[]."))
    return found[0] if len(found) == 1 else ""


class Group(_PlainFlags, TyperGroup):
    """A group of commands."""


class Application(typer.Typer):
    """A group of commands that is being declared; their docstrings are their help.

    Their examples are below the options.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": Group, "rich_markup_mode": "markdown", **settings})

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Return a decorator that makes a command of a function."""

        def declared(function: Callable[..., None]) -> Callable[..., None]:
            text, _, examples = (inspect.getdoc(function) or "").partition("\n\nExamples\n--------\n")
            details = {"help": text, "epilog": examples and f"Examples:\n\n{examples}", "cls": Command, **settings}
            return super(Application, self).command(name, **details)(function)

        return declared


class Commands(Group):
    """The commands by name; each is imported when it is called, and not to be listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command that represents the one of this name in lists; None if there is none."""
        entry = _COMMANDS.get(cmd_name)
        return None if entry is None else Command(cmd_name, help=entry.help)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command that the words call, the command, and the other words."""
        if args and args[0] not in _COMMANDS:
            self.commands = {name: self.get_command(ctx, name) for name in _COMMANDS}  # to propose the nearest
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_command(name), rest


@cache
def load_command(name: str) -> Any:
    """Import a command of the top level, once for all calls of `main` in this process.

    Returns
    -------
    click.Command
        Of typer's copy of click.

    Raises
    ------
    InputError
        If a plugin's module cannot be imported, or holds no such command.
    """
    entry = _COMMANDS[name]
    gc.disable()  # what is imported stays, and would be scanned again and again
    try:
        module = vars(import_module(entry.module))
        gc.freeze()
    except (Exception, SystemExit) as error:
        if entry.module.partition(".")[0] == "gridsched":
            raise
        raise InputError(f"Command {name!r}: cannot import {entry.module!r}: {error_of_policy(error)}") from error
    finally:
        gc.enable()
    if f"{name}_app" in module:
        group = get_group(module[f"{name}_app"])
        group.help = entry.help
        return group
    function = module.get(f"{name}_command") or module.get(name)
    if not callable(function):
        raise InputError(f"Command {name!r}: {entry.module!r} holds no {name}_app, {name}_command or {name}.")
    alone = Application(add_completion=False)
    alone.command(name)(function)
    return get_command(alone)


app = Application(
    name="gridsched",
    cls=Commands,
    no_args_is_help=True,
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
        sys.stdout.write(f"gridsched {__version__}\n")
        raise Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", "-v", callback=_show_version, is_eager=True, help="Show the version."
    ),
    show_traceback: bool = typer.Option(False, "--traceback", help="Show Python's traceback with an error."),
) -> None:
    """Simulate grids on SimGrid and compare schedulers by energy and makespan."""


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
    long_work.reporters[:] = [] if "--quiet" in words else [_say]
    compiled.watchers[:] = [_watch_of_compiling()]
    plugins.reporters[:] = [_say]
    try:
        status = get_command(app).main(args=words, prog_name="gridsched", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has gone: nothing to report to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BaseException as error:
        if isinstance(error, SystemExit):
            if arguments is None and _COMPLETION in os.environ:
                raise  # the shell has asked for words
            if isinstance(error.__context__, BrokenPipeError):  # click's answer to it
                return 1
        if "--traceback" in words:
            sys.stderr.write(visible(traceback.format_exc()))
        text, status = _explain(error, words)
        if text:
            _say(text)
        return status
    if status == INTERRUPTED:  # typer's answer to Ctrl-C
        _say("interrupted")
    return status if isinstance(status, int) else 0


def _watch_of_compiling() -> Callable[[bool], None]:
    """Return what is called when something begins to compile, and when it has."""
    work = long_work.LongWork(
        "compiling the loops of a scheduler; this takes up to a minute, once "
        "('gridsched kernels compile' does it for all)"
    )
    return lambda begins: work.begin() if begins else work.end()


def _say(text: str) -> None:
    from gridsched.cli.output import say  # loads numpy: not to say nothing

    say(text)


def _explain(error: BaseException, words: Sequence[str]) -> tuple[str, int]:
    """Return what went wrong in one line, empty where it is shown already, and the exit status."""
    if isinstance(error, GridschedError):
        return text_of(error), 2 if isinstance(error, InputError) else 1
    # usage errors and aborts of click, or of the copy of it that typer brings
    kinds = {cls.__name__ for cls in type(error).__mro__}
    if "Abort" in kinds:
        return "interrupted", INTERRUPTED
    if "NoArgsIsHelpError" in kinds:
        return "", 2
    if "ClickException" in kinds:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "gridsched"
        message: Callable[[], str] = getattr(error, "format_message", error.__str__)
        text = message().rstrip(".")
        if "NoSuchOption" in kinds and (now := option_now(getattr(error, "option_name", ""), _options_of(context))):
            text = f"{getattr(error, 'message', text)}; it is now {now}"
        if "unexpected extra argument" in text and {"--schedulers", "--scheduler", "--metrics"} & set(words):
            text += "; separate the items of an option's list by commas without blanks, as wq,mct"
        return f"{text}{_found(error, text, words)}. See '{path} --help'.", 2
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}.", 2
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many open files; raise the limit by 'ulimit -n 1024' and try again.", 2
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        return f"what is to be printed cannot be written: {error.strerror}.", 1
    if isinstance(error, ModuleNotFoundError) and (package := _package_of(error)):
        return f"this needs {package}, which is not installed: pip install '{package}'.", 2
    if isinstance(error, MemoryError):
        return "out of memory; try a smaller platform or workload.", 1
    return (
        f"internal error: {type(error).__name__}: {text_of(error)}. This is a fault of gridsched "
        "or of a scheduler of yours; 'gridsched --traceback COMMAND ...' shows where.",
        1,
    )


def _options_of(context: Any) -> list[str]:
    """Return the options of the command that a usage error is about."""
    return [name for each in getattr(getattr(context, "command", None), "params", ()) for name in each.opts]


def _package_of(error: ModuleNotFoundError) -> str:
    """Return which of gridsched's own requirements is missing; empty if it is none."""
    from importlib.metadata import PackageNotFoundError, requires

    module = (error.name or "").partition(".")[0].replace("_", "-")
    try:
        lines = requires("gridsched") or ()
    except PackageNotFoundError:  # a checkout on PYTHONPATH
        return ""
    needs = (line.partition(";")[0].strip() for line in lines)
    return next((each for each in needs if module and re.match(rf"{re.escape(module)}\b", each)), "")


def _found(error: BaseException, text: str, words: Sequence[str]) -> str:
    """Return what follows the option that a usage error is about, if the text lacks it."""
    names = getattr(getattr(error, "param", None), "opts", ())
    for option, value in reversed(list(zip(words, [*words[1:], ""], strict=True))):
        name, equals, rest = option.partition("=")
        if name in names and name.startswith("-") and repr(value) not in text:
            return f"; found {rest if equals else value!r}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
