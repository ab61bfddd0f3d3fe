"""All schedulers by id. Entries are ``"module:Class"`` strings, so listing imports nothing."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gridsched.errors import InputError, did_you_mean
from gridsched.policy.base import Scheduler


@dataclass(frozen=True)
class Entry:
    """What the registry knows of a scheduler without importing it.

    Attributes
    ----------
    id : str
        Name on the command line and in study files.
    target : str
        ``"module:Class"``.
    accepts : tuple of str
        Workloads it takes: ``bag``, ``arrivals``, ``typed`` (a bag of tasks with types,
        or without), ``utility``, ``stochastic``, ``parallel``.
    source : str
        Publication or definition it follows.
    """

    id: str
    target: str
    accepts: tuple[str, ...]
    source: str


_BAG = ("bag", "arrivals")
_ENTRIES: dict[str, Entry] = {}


def register(id: str, target: str, *, accepts: tuple[str, ...] = _BAG, source: str = "") -> None:
    """Make a scheduler known under `id`.

    Parameters
    ----------
    id : str
        New id; must be free.
    target : str
        ``"package.module:Class"``; imported when first used.
    accepts : tuple of str
        Kinds of workload it takes.
    source : str
        Where the algorithm is defined.

    Raises
    ------
    InputError
        If the id is taken by another class or the target is malformed.
    """
    if ":" not in target:
        raise InputError(f"Scheduler {id!r}: target {target!r} must read 'module:Class'.")
    known = _ENTRIES.get(id)
    if known is not None and known.target != target:
        raise InputError(f"Scheduler id {id!r} is already taken by {known.target}.")
    _ENTRIES[id] = Entry(id, target, accepts, source)


def entries() -> list[Entry]:
    """Return all entries, sorted by id."""
    return [_ENTRIES[id] for id in sorted(_ENTRIES)]


def find(id: str) -> Entry:
    """Return the entry called `id`.

    Raises
    ------
    InputError
        If there is none; the message proposes the nearest id.
    """
    if id not in _ENTRIES:
        raise InputError(
            f"No scheduler {id!r}. {did_you_mean(id, _ENTRIES)}See 'gridsched schedulers'."
        )
    return _ENTRIES[id]


def scheduler_class(id: str) -> type[Scheduler]:
    """Import and return the class registered as `id`.

    Raises
    ------
    InputError
        If the id is unknown or the class cannot be imported.
    """
    module, _, name = find(id).target.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"Scheduler {id!r}: cannot import {find(id).target!r}: {error}.") from None


def make_scheduler(id: str, parameters: Mapping[str, Any] | None = None) -> Scheduler:
    """Return a scheduler with the given parameters.

    Parameters
    ----------
    id : str
        Id of the registry.
    parameters : mapping, optional
        Keyword parameters of the class; default its own defaults.

    Raises
    ------
    InputError
        If the id or a parameter is unknown.

    Examples
    --------
    >>> make_scheduler("wqr", {"max_replicas": 3})
    WQR(max_replicas=3, pick='oldest')
    """
    cls = scheduler_class(id)
    legal = cls.parameter_defaults()
    for name in parameters or {}:
        if name not in legal:
            shown = ", ".join(legal) or "none"
            raise InputError(
                f"Scheduler {id!r} has no parameter {name!r}. {did_you_mean(name, legal)}"
                f"Its parameters: {shown}."
            )
    return cls(**(parameters or {}))


for _id, _class, _source in (
    ("wq", "work_queue:WorkQueue", "Paranhos, Cirne, Brasileiro 2003"),
    ("wqr", "work_queue:WQR", "Paranhos, Cirne, Brasileiro 2003"),
    ("sufferage", "sufferage:Sufferage", "Maheswaran et al. 1999, Casanova et al. 2000"),
    ("xsufferage", "sufferage:XSufferage", "Casanova, Legrand, Zagorodnov, Berman 2000"),
    ("dynamic_fpltf", "dynamic_fpltf:DynamicFPLTF", "Paranhos et al. 2003"),
    ("lecsa", "lecsa:LECSA", "LECSA paper (004), section 3.3"),
    ("round_robin", "baselines:RoundRobin", "textbook baseline"),
    ("olb", "baselines:OLB", "Braun et al. 2001"),
    ("mct", "baselines:MCT", "Maheswaran et al. 1999"),
    ("min_min", "min_min:MinMin", "Ibarra and Kim 1977; Maheswaran et al. 1999"),
    ("max_min", "min_min:MaxMin", "Maheswaran et al. 1999"),
):  # fmt: skip
    register(_id, f"gridsched.schedulers.bag.{_class}", source=_source)
for _id, _class in (
    ("max_max_upe", "MaxMaxUtilityPerEnergy"),
    ("max_max_upt", "MaxMaxUtilityPerTime"),
    ("max_max_util", "MaxMaxUtility"),
    ("min_min_completion_time", "MinMinCompletionTime"),
    ("random_mapping", "RandomMapping"),
):
    register(
        _id, f"gridsched.schedulers.utility.heuristics:{_class}", accepts=("utility",),
        source="paper 000, section III-B",
    )  # fmt: skip
for _id, _class, _section in (
    ("lp_max_profit", "LPMaxProfit", "IV"),
    ("lp_pareto", "LPPareto", "III"),
    ("lp_pareto_profit", "LPParetoProfit", "IV"),
):
    register(
        _id, f"gridsched.schedulers.static.linear_programmes:{_class}", accepts=("typed",),
        source=f"paper 003, section {_section}",
    )  # fmt: skip
register(
    "lp_rolling", "gridsched.schedulers.static.lp_rolling:LPRolling",
    accepts=("typed", "arrivals"), source="paper 003, section IV, for varying prices: our own",
)  # fmt: skip
for _id, _class in (
    ("shortest_queue", "ShortestQueue"),
    ("minimum_expected_completion_time", "MinimumExpectedCompletionTime"),
    ("lightest_load", "LightestLoad"),
    ("random_immediate", "RandomImmediate"),
):
    register(
        _id, f"gridsched.schedulers.deadline.heuristics:{_class}", accepts=("stochastic",),
        source="paper 002, section V",
    )  # fmt: skip
for _id, _class in (
    ("fcfs", "FCFS"),
    ("easy_backfilling", "EasyBackfilling"),
    ("conservative_backfilling", "ConservativeBackfilling"),
):
    register(
        _id, f"gridsched.schedulers.parallel.backfilling:{_class}", accepts=("parallel",),
        source="textbook; algorithms I",
    )  # fmt: skip
register(
    "auto_bag", "gridsched.schedulers.auto_bag:AutoBag",
    source="the best of all bag schedulers, by trial runs; docs/auto_bag.md",
)  # fmt: skip
