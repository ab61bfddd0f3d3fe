"""Checks of the object itself: construction, copies, memory, documentation, imports."""

from __future__ import annotations

import atexit
import functools
import pickle
import re
import sys

import cloudpickle

from gridsched.errors import GridschedError
from gridsched.policy.base import Scheduler, Traits
from gridsched.sim.processes import AnsweringProcess, Channel
from gridsched.testing.cases import cases_for
from gridsched.testing.playing import Case, CheckFailed, play

_SECTION = r"^[ \t]*{name}[ \t]*\n[ \t]*-{{3,}}[ \t]*\n(?P<body>.*?)(?=^[ \t]*\w+[ \t]*\n[ \t]*-{{3,}}|\Z)"


def check_default_construction(scheduler: Scheduler) -> None:
    """``Class()`` works, and the class has traits."""
    cls = type(scheduler)
    if not isinstance(make_default(cls), Scheduler):
        raise CheckFailed(f"{cls.__name__} must be derived from gridsched's Scheduler.")
    traits = getattr(cls, "traits", None)
    if not isinstance(traits, Traits):
        raise CheckFailed(f"{cls.__name__}.traits is {traits!r}; set it to Traits(trigger=...).")


def make_default(cls: type[Scheduler]) -> Scheduler:
    """Return ``cls()``, or say what to mend."""
    try:
        return cls()
    except TypeError as error:
        raise CheckFailed(f"{cls.__name__}() raises: {error}. Give every parameter of __init__ a default.") from error


def check_init_only_stores(scheduler: Scheduler) -> None:
    """``__init__`` stores its parameters under their names, unchanged, and does nothing else."""
    cls = type(scheduler)
    defaults = cls.parameter_defaults()
    stored = vars(cls(**defaults))
    for name, value in defaults.items():
        if name not in stored or stored[name] is not value:
            raise CheckFailed(
                f"{cls.__name__}.__init__ must store the parameter {name!r} as self.{name}, as it "
                "was given; check and convert it in prepare()."
            )
    for name in stored:
        if name not in defaults:
            raise CheckFailed(
                f"{cls.__name__}.__init__ sets self.{name}, which is not a parameter; set it in "
                "prepare(), under a name that ends in '_'."
            )


def check_repr(scheduler: Scheduler) -> None:
    """``repr`` shows class and parameters: error messages quote it."""
    text = repr(scheduler)
    parts = [type(scheduler).__name__]
    parts += [f"{name}={value!r}" for name, value in scheduler.parameters.items()]
    for part in parts:
        if part not in text:
            raise CheckFailed(f"repr is {text!r}; it must show {part!r}. Inherit Scheduler's.")


def check_pickle(scheduler: Scheduler) -> None:
    """The scheduler can be sent to the simulating process."""
    try:
        copy = pickle.loads(cloudpickle.dumps(scheduler))
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise CheckFailed(
            f"{scheduler!r} cannot be pickled: {error}. Open files, locks and the like do not "
            "belong into its parameters."
        ) from error
    if repr(copy) != repr(scheduler):
        raise CheckFailed(f"{scheduler!r} comes back from pickling as {copy!r}.")


def check_clone(scheduler: Scheduler) -> None:
    """``clone`` gives a new, unprepared instance with the same parameters."""
    copy = scheduler.clone()
    if copy is scheduler or type(copy) is not type(scheduler):
        raise CheckFailed(f"clone() of {scheduler!r} must return a new instance of its class.")
    if repr(copy) != repr(scheduler):
        raise CheckFailed(f"clone() of {scheduler!r} is {copy!r}; it must have its parameters.")
    play(cases_for(scheduler)[2], copy)
    again = copy.clone()
    for name in vars(again):
        if name.endswith("_"):
            raise CheckFailed(f"clone() of {scheduler!r} keeps {name!r}, the memory of a run.")


def check_memory(scheduler: Scheduler) -> None:
    """A run leaves the parameters alone; what it remembers is named with a final ``_``."""
    copy = scheduler.clone()
    before = {name: repr(value) for name, value in copy.parameters.items()}
    play(cases_for(scheduler)[2], copy)
    for name, value in vars(copy).items():
        if name in before:
            if repr(value) != before[name]:
                raise CheckFailed(
                    f"{scheduler!r} changes its parameter {name!r} during a run, from "
                    f"{before[name]} to {value!r}; keep what changes in {name}_."
                )
        elif not name.endswith("_"):
            raise CheckFailed(
                f"{scheduler!r} remembers self.{name} from a run; give it a name that ends in '_' "
                "and set it in prepare()."
            )


def check_docstring(scheduler: Scheduler) -> None:
    """The class docstring has a summary, describes every parameter and cites its source."""
    cls = type(scheduler)
    text = cls.__doc__ or ""
    summary = text.strip().split("\n")[0].strip()
    if not summary.endswith("."):
        raise CheckFailed(
            f"The docstring of {cls.__name__} begins with {summary!r}; begin with one line that "
            "describes the policy, and ends with a period."
        )
    described = _section(text, "Parameters")
    for name in cls.parameter_defaults():
        if not re.search(rf"^[ \t]*(\w+, )*{name}(, \w+)* :", described, re.MULTILINE):
            raise CheckFailed(
                f"The docstring of {cls.__name__} must describe {name!r} in a numpydoc section "
                f"'Parameters', such as '{name} : type'."
            )
    if ".. [1]" not in _section(text, "References"):
        raise CheckFailed(
            f"The docstring of {cls.__name__} needs a numpydoc section 'References' with at least "
            "one entry '.. [1] ...': the paper, or where the rule comes from."
        )


def _section(docstring: str, name: str) -> str:
    """Return the body of a numpydoc section, or an empty string."""
    pattern = _SECTION.format(name=name)
    match = re.search(pattern, docstring, re.MULTILINE | re.DOTALL)
    return match["body"] if match else ""


def check_without_simgrid(scheduler: Scheduler) -> None:
    """The policy runs where SimGrid cannot be imported."""
    problem = blocked_interpreter().play(scheduler, cases_for(scheduler)[2])
    if problem:
        raise CheckFailed(
            f"{scheduler!r} does not run without SimGrid: {problem} A policy decides from the "
            "state it is given and imports no simulator."
        )


class BlockedInterpreter(AnsweringProcess):
    """A running interpreter in which ``import simgrid`` fails, to play schedulers in.

    It is started when first needed and serves all schedulers of a process, because importing numpy
    and numba takes longer than all the rest.
    """

    def __init__(self) -> None:
        super().__init__(__name__, "An interpreter without SimGrid")
        atexit.register(self.end)

    def play(self, scheduler: Scheduler, case: Case) -> str:
        """Return what went wrong in playing the case there, or an empty string."""
        answer: str | None = self.ask(cloudpickle.dumps((scheduler, case)))
        if answer is None:
            blocked_interpreter.cache_clear()
            self.end()
            return "The interpreter died."
        return answer


@functools.cache
def blocked_interpreter() -> BlockedInterpreter:
    """Return this process's interpreter without SimGrid."""
    return BlockedInterpreter()


def _problem(message: bytes) -> str:
    try:
        scheduler, case = cloudpickle.loads(message)
        play(case, scheduler)
    except (CheckFailed, GridschedError, ImportError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Play what is asked."""
    channel = Channel()
    sys.modules["simgrid"] = None  # type: ignore[assignment]
    channel.receive()
    channel.send(True)
    while (message := channel.receive()) is not None:
        channel.send(_problem(message))
