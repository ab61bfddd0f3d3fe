"""What schedulers share that let another scheduler decide, and change or add decisions."""

from __future__ import annotations

import ast
import contextlib
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from gridsched.errors import InputError, InvalidDecision
from gridsched.model.records import expression_tree
from gridsched.model.system import System
from gridsched.policy.base import Delegate, Scheduler, Traits
from gridsched.policy.decisions import Decision
from gridsched.policy.registry import make_scheduler
from gridsched.policy.state import State

#: An id, alone or with parameters as a call in Python has them.
_CALL = re.compile(r"(?P<id>\w+)\s*(?P<parameters>\(.*\))?", re.DOTALL)


def wrapped_scheduler(owner: str, scheduler: object) -> Scheduler:
    """Return a fresh instance of the scheduler that a parameter names.

    Parameters
    ----------
    owner : str
        Id of the scheduler that has the parameter, for messages.
    scheduler : str or Scheduler
        An instance, an id, or an id with parameters: ``"wqr(max_replicas=3)"``.

    Raises
    ------
    InputError
        If it names none, or is written otherwise.

    Examples
    --------
    >>> wrapped_scheduler("idle_off", "wqr(max_replicas=3)")
    WQR(max_replicas=3, pick='oldest')
    """
    if isinstance(scheduler, Scheduler):
        return scheduler.clone()
    return make_scheduler(*read_call(owner, "scheduler", scheduler, "wqr(max_replicas=3)"))


def read_call(owner: str, parameter: str, text: object, example: str) -> tuple[str, dict[str, Any]]:
    """Return the id and the parameters that a text such as ``"wqr(max_replicas=3)"`` names.

    Parameters
    ----------
    owner, parameter : str
        Id of the scheduler and its parameter, for messages.
    text : object
    example : str
        Of such a text, for messages.

    Raises
    ------
    InputError
        If it is no such text.
    """
    match = _CALL.fullmatch(text.strip()) if isinstance(text, str) else None
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):  # it is then no call
        call = expression_tree(f"f{match['parameters'] or '()'}") if match else None
        if match and isinstance(call, ast.Call) and not call.args and all(k.arg for k in call.keywords):
            return match["id"], {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    raise InputError(
        f"Parameter {parameter!r} of {owner} is {text!r}; it must be an id, as "
        f"{example.partition('(')[0]!r}, or an id with parameters, as {example!r}."
    )


class TraitsOfWrapped:
    """Traits of a `Wrapper`: those of the scheduler that it wraps, with some in their place.

    Parameters
    ----------
    **more
        Traits by name.
    """

    def __init__(self, **more: bool) -> None:
        self._more = more

    def __get__(self, policy: Wrapper | None, owner: type[Wrapper]) -> Traits:
        """Return the traits of an instance, or those of the class with its defaults."""
        wrapped = (owner() if policy is None else policy).wrapped
        return replace(wrapped.traits, **self._more)  # type: ignore[arg-type]


class UntilDecided:
    """A state that is not read any more once something of an answer has been decided.

    A wrapper takes an answer as a whole, and the state cannot follow what is yielded.

    Parameters
    ----------
    state : State
    wrapper : Wrapper
    """

    def __init__(self, state: State, wrapper: Wrapper) -> None:
        self._state = state
        self._wrapper = wrapper
        self._is_decided = False

    def __getattr__(self, name: str) -> Any:
        if self._is_decided and name not in _STAYS:
            raise InvalidDecision(
                f"{self._wrapper!r} at t = {self._state.now:g} s: the wrapped scheduler reads state.{name} after it "
                "has yielded a decision, and the state does not follow where another scheduler takes the whole answer. "
                "Let it read all before it yields."
            )
        return getattr(self._state, name)

    def taken(self, answer: Iterable[Decision]) -> Iterator[Decision]:
        """Yield an answer to it."""
        for decision in answer:
            self._is_decided = True
            yield decision


#: What no decision changes of a state.
_STAYS = frozenset(("now", "estimates", "tasks", "tasks_to_arrive", "background_load"))


class Wrapper(Scheduler):
    """Base of schedulers that let the scheduler decide which their parameter `scheduler` names."""

    scheduler: str | Scheduler
    _id: ClassVar[str]

    def __getstate__(self) -> dict[str, Any]:
        """Take the wrapped scheduler along: another process may not know a user's own."""
        return {**vars(self), "wrapped_": self.wrapped}

    @property
    def wrapped(self) -> Scheduler:
        """The wrapped scheduler: the one of this run, or outside of a run a fresh one."""
        scheduler: Scheduler | None = vars(self).get("wrapped_")
        return wrapped_scheduler(self._id, self.scheduler) if scheduler is None else scheduler

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Prepare the wrapped scheduler."""
        self.wrapped_ = self.wrapped.clone()
        self.wrapped_.prepare(system, rng)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Ask the wrapped scheduler; whom it delegates to is wrapped as well."""
        shown = UntilDecided(state, self)
        answer = self.wrapped_.schedule(cast(State, shown))
        return answer if answer is None else list(self._changed(list(shown.taken(answer)), state))

    def on_event(self, state: State) -> Iterable[Decision]:
        """Ask the wrapped scheduler, if it observes events."""
        return self.wrapped_.on_event(state)

    def finish(self, state: State) -> None:
        """Let the wrapped scheduler take leave."""
        self.wrapped_.finish(state)

    def _changed(self, answer: list[Decision], state: State) -> Iterator[Decision]:
        """Yield what is decided in the place of the wrapped scheduler's answer."""
        rest = []
        for decision in answer:
            if isinstance(decision, Delegate):
                yield Delegate(self._around(decision.scheduler))
            else:
                rest.append(decision)
        yield from self._decided(rest, state)

    def _around(self, scheduler: Scheduler) -> Self:
        """Return a wrapper with the same parameters around another scheduler."""
        return type(self)(**{**self.parameters, "scheduler": scheduler})

    @abstractmethod
    def _decided(self, answer: list[Decision], state: State) -> Iterable[Decision]:
        """Return what is decided in the place of the wrapped scheduler's answer."""
