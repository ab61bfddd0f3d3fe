"""The whole contract of a scheduling policy: state in, decisions out.

A policy imports no simulator, reads no clock, opens no file and prints nothing. ``__init__``
takes keyword parameters with defaults and only stores them; what a policy remembers during a run
lives in attributes ending in ``_``, all set by `Scheduler.prepare`.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from gridsched.errors import InputError, did_you_mean
from gridsched.model.records import check_choices
from gridsched.model.system import System
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State


@dataclass(frozen=True)
class Traits:
    """What a policy needs and may do; drivers and common checks read it.

    Attributes
    ----------
    trigger : {"start", "arrival", "event"}
        Once at the first submission instant; once for each submitted task; or at every mapping
        event (without a mapping interval: at every instant at which something happened).
    replicates : bool
        May `Assign` a running task again and `Cancel` running copies.
    may_cancel, may_drop, powers_hosts : bool
        May use `Cancel` on queued tasks; `Drop` and `Postpone`; `PowerOn` and `PowerOff`.
    uses_dvfs, uses_rng : bool
        Chooses P-states; draws random numbers.
    platform_order_matters : bool
        Another order of the hosts in the platform may change the result even without ties.
    delegates : bool
        May `Delegate` the run to another policy, whose traits `covers` finds among these.
    needs_utility : bool
        Needs tasks with utility functions and task types (paper 000).
    by_types : bool
        Uses types of tasks and hosts; the common checks also run it on tasks with types.
    needs_distributions : bool
        Needs run times that are known as distributions (paper 002).
    parallel : bool
        Places rigid parallel tasks by `Allocate`, and those alone.
    shares : bool
        Lays the parts of parallel tasks on nodes that they share, too (`State.nodes`).
    one_core : bool
        Places tasks of one core alone; workloads with others are refused.
    reserves : bool
        Gives parallel tasks starts to come, which hold only as long as nodes keep their speed.
    respects_budget : bool
        Never asks for more than `State.energy` leaves: where a budget refuses, it is an error if
        it does. What a policy without it asks for too much is postponed by the controller.
    respects_power_cap : bool
        Lets the hosts never draw more than `State.power` allows. Under a cap other policies run,
        too, until they exceed it.
    observes_events : bool
        Besides, `on_event` is asked at time 0 and at every event, before `schedule`, however that is
        asked.
    external : bool
        Another program decides, which the run may start: it has a process of its own, which ends
        what it has started, and what a store holds of it is not run unasked.
    needs_carbon : bool
        Needs the carbon intensity of power (`System.carbon`).
    notes : tuple of str
        Columns that it fills, task by task, with `Note`: lower-case names.

    Raises
    ------
    InputError
        If `trigger` is none of these, or a column has no allowed name.
    """

    trigger: Literal["start", "arrival", "event"]
    replicates: bool = False
    may_cancel: bool = False
    may_drop: bool = False
    powers_hosts: bool = False
    uses_dvfs: bool = False
    uses_rng: bool = False
    platform_order_matters: bool = False
    delegates: bool = False
    needs_utility: bool = False
    by_types: bool = False
    needs_distributions: bool = False
    parallel: bool = False
    shares: bool = False
    one_core: bool = False
    reserves: bool = False
    respects_budget: bool = False
    respects_power_cap: bool = False
    observes_events: bool = False
    needs_carbon: bool = False
    external: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choices(self)
        for name in self.notes:
            if not re.fullmatch("[a-z][a-z0-9_]*", name):
                raise InputError(
                    f"Traits.notes has {name!r}; a column's name has lower-case letters, digits "
                    "and '_', and begins with a letter."
                )

    @property
    def plans_once(self) -> bool:
        """Whether its one plan is all: it serves no task that arrives later, or comes to be free of others later."""
        return self.trigger == "start" and not self.delegates

    def covers(self, other: Traits) -> bool:
        """Whether a policy with these traits may delegate to one with the `other` traits."""
        flags = {name: v for name, v in vars(other).items() if name not in ("trigger", "notes")}
        return (
            not other.delegates
            and self.parallel == other.parallel
            and set(other.notes) <= set(self.notes)
            and all(getattr(self, name) or not value for name, value in flags.items())
        )


class TraitsWith:
    """Traits of a class of policies, with more where a parameter has a value.

    Parameters
    ----------
    default : Traits
        Those of the class, and of instances whose parameter has another value.
    parameter : str
    value : object
    **more
        Traits in the place of the usual ones where the parameter is `value`.
    """

    def __init__(self, default: Traits, parameter: str, value: object = True, **more: Any) -> None:
        self._default = default
        self._parameter = parameter
        self._value = value
        self._with = replace(default, **more)

    def __get__(self, policy: Scheduler | None, owner: type[Scheduler]) -> Traits:
        """Return the traits of an instance, or those of the class."""
        if policy is None or not self._is_with(policy):
            return self._default
        return self._with

    def _is_with(self, policy: Scheduler) -> bool:
        value = getattr(policy, self._parameter)
        return type(value) is type(self._value) and value == self._value


class Scheduler(ABC):
    """Base class of every policy."""

    traits: ClassVar[Traits]

    def prepare(self, system: System, rng: np.random.Generator) -> None:  # noqa: B027
        """Forget the last run and get ready for `system`; called once before the first ask."""

    @abstractmethod
    def schedule(self, state: State) -> Iterable[Decision]:
        """Return the decisions for the present instant, in the order they shall apply.

        Where they are yielded, or come from another iterator, each applies before the next is
        made, and the state follows: what is read of it after a ``yield`` shows what that did.
        A list or tuple applies as a whole afterwards.
        """

    def on_event(self, state: State) -> Iterable[Decision]:
        """Return what to do before `schedule` is asked, if it is (`Traits.observes_events`)."""
        return ()

    def finish(self, state: State) -> None:  # noqa: B027
        """Take leave of a run that has come to its end; asked of `Traits.external` alone."""

    @property
    def limited_by_budget(self) -> bool:
        """Whether a greater energy budget might have changed a decision of the run so far.

        True unless a policy can prove that it would not: one that looks at the budget only to see whether
        something still fits, and found that everything did. Runs of it under greater budgets are then
        not made in a campaign (`gridsched.campaign.greater_budgets`).
        """
        return True

    def remark_on(self, system: System) -> str:
        """Return what users should know of its decisions on a system, as words behind its id; empty: nothing.

        Where it decides as another scheduler does, for example. `run` and `compare` print it, and the provenance has it
        as ``remark``.
        """
        return ""

    def awaited(self) -> str:
        """Return in words for whom a run would wait; empty: for no one. Asked of `Traits.external` alone.

        The parameters are those that `prepare` accepts.
        """
        return ""

    def answer_limit_s(self) -> float:
        """Return the longest wall time that a run waits for an answer [s]. Asked of `Traits.external` alone."""
        return math.inf

    @classmethod
    def parameter_defaults(cls) -> dict[str, Any]:
        """Return the keyword parameters of ``__init__`` with their defaults."""
        return dict(_defaults_of(cls.__init__))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters this instance was made with."""
        return {name: getattr(self, name) for name in self.parameter_defaults()}

    def clone(self) -> Scheduler:
        """Return a fresh instance with the same parameters."""
        return type(self)(**self.parameters)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({arguments})"


@functools.lru_cache(maxsize=1024)
def _defaults_of(init: Callable[..., None]) -> Mapping[str, Any]:
    """Return the keyword parameters of an ``__init__`` with their defaults."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(init).parameters.items()
        if name != "self"
        and parameter.kind is not inspect.Parameter.VAR_KEYWORD
        and parameter.kind is not inspect.Parameter.VAR_POSITIONAL
    }


def check_choice(owner: str, name: str, value: object, legal: Iterable[object]) -> None:
    """Raise `InputError` unless parameter `name` of scheduler `owner` is one of `legal`.

    For use in ``prepare``; `value` is what was found.
    """
    legal = list(legal)
    if value not in legal:
        hint = did_you_mean(str(value), [str(choice) for choice in legal])
        choices = ", ".join(repr(choice) for choice in legal)
        raise InputError(f"Parameter {name!r} of {owner} is {value!r}. {hint}Allowed: {choices}.")


def check_number(owner: str, name: str, value: object, is_legal: Callable[[float], bool], legal: str) -> float:
    """Raise `InputError` unless parameter `name` of scheduler `owner` is an allowed number.

    For use in ``prepare``; `value` is what was found, `legal` the words for what `is_legal`
    accepts, after "it must be". Returns the number.
    """
    number = math.nan  # which no range holds
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        with suppress(OverflowError):  # a whole number of hundreds of digits
            number = float(value)
    if not is_legal(number):
        raise InputError(f"Parameter {name!r} of {owner} is {value!r}; it must be {legal}.")
    return number


def check_whole_number(owner: str, name: str, value: object, least: int) -> None:
    """Raise `InputError` unless parameter `name` of scheduler `owner` is a whole number.

    For use in ``prepare``; `value` is what was found, at least `least` is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"Parameter {name!r} of {owner} is {value!r}; it must be a whole number >= {least}.")


@dataclass(slots=True)
class Delegate(Decision):
    """Let another policy decide from now on, beginning in this instant (`delegates`).

    It is prepared with the run's random stream and asked as its own traits specify; tasks that wait
    count as newly submitted. Its traits must be among those of the policy that delegates.
    """

    scheduler: Scheduler
