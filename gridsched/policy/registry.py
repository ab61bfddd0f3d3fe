"""All schedulers by id. Entries are ``"module:Class"`` strings, so listing imports nothing."""

from __future__ import annotations

import importlib
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from gridsched.errors import InputError, did_you_mean, policy_at_work
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
        Workloads it takes, first the kind that it is made for: ``bag``, ``arrivals``, ``typed`` (a
        bag of tasks with types, or without), ``utility``, ``stochastic``, ``parallel`` (rigid
        jobs), ``parallel_utility`` (parallel tasks with utility functions, on clusters).
    source : str
        Publication or definition it follows.
    parameter : str
        Its parameter that may follow the id after a colon, as in ``batsim:tcp://HOST:PORT``; empty:
        none.
    """

    id: str
    target: str
    accepts: tuple[str, ...]
    source: str
    parameter: str = ""


_BAG = ("bag", "arrivals")
#: Kinds of workload, the most particular first.
_KINDS = ("parallel_utility", "parallel", "utility", "stochastic", "typed", *_BAG)
#: The schedulers that paper 004 compares.
PAPER_004 = ("wq", "wqr", "sufferage", "xsufferage", "dynamic_fpltf", "lecsa")
#: Id of the scheduler that is another program.
BATSIM = "batsim"
_ENTRIES: dict[str, Entry] = {}


def register(id: str, target: str, *, accepts: tuple[str, ...] = _BAG, source: str = "", parameter: str = "") -> None:
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
    parameter : str
        The parameter that may follow the id after a colon.

    Raises
    ------
    InputError
        If the id is taken by another class or the target is malformed.
    """
    if ":" not in target:
        raise InputError(f"Scheduler {id!r}: target {target!r} must read 'module:Class'.")
    entry = _ENTRIES.get(id)
    if entry is not None and entry.target != target:
        raise InputError(f"Scheduler id {id!r} is already taken by {entry.target}.")
    _ENTRIES[id] = Entry(id, target, accepts, source, parameter)


def entries() -> list[Entry]:
    """Return all entries, sorted by id."""
    return [_ENTRIES[id] for id in sorted(_ENTRIES)]


def usual_ids(kinds: Container[str]) -> tuple[str, ...]:
    """Return the schedulers that a comparison is of where nobody names any.

    Parameters
    ----------
    kinds : container of str
        What the workload is; the most particular kind counts.

    Returns
    -------
    tuple of str
        Of a bag or of serial tasks that arrive those of paper 004; else all that are made for the
        kind: they name it first.
    """
    kind = next(each for each in _KINDS if each in kinds)
    return PAPER_004 if kind in _BAG else tuple(each.id for each in _ENTRIES.values() if kind in each.accepts[:1])


def find(id: str) -> Entry:
    """Return the entry called `id`, which may have a parameter after a colon.

    Raises
    ------
    InputError
        If there is none; the message proposes the nearest id.
    """
    if id in _ENTRIES:
        return _ENTRIES[id]
    entry = _ENTRIES.get(id.partition(":")[0])
    if entry is None or not entry.parameter:
        raise InputError(f"No scheduler {id!r}. {_proposal(id)}See 'gridsched schedulers'.")
    return entry


def _proposal(id: str) -> str:
    """Return which ids may be meant: those of a paper, by its number, or the nearest one."""
    if id.isdecimal():
        names = f"paper {id}", f"paper ({id})"
        of_paper = [each.id for each in entries() if any(name in each.source for name in names)]
        if of_paper:
            return f"Those of paper {id}: {', '.join(of_paper)}. "
    return did_you_mean(id, _ENTRIES)


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
    if id not in _ENTRIES:
        first, _, value = id.partition(":")
        parameters = {_ENTRIES[first].parameter: value, **(parameters or {})}
    legal = cls.parameter_defaults()
    for name in parameters or {}:
        if name not in legal:
            legal_text = ", ".join(legal) or "none"
            raise InputError(
                f"Scheduler {id!r} has no parameter {name!r}. {did_you_mean(name, legal)}Its parameters: {legal_text}."
            )
    with policy_at_work():
        return cls(**(parameters or {}))


#: Module of each family, what its schedulers accept, and (id, class, source) of each.
_FAMILIES: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, str, str], ...]], ...] = (
    (
        "bag.baselines",
        _BAG,
        (("wq", "WorkQueue", "Paranhos, Cirne, Brasileiro 2003"), ("wqr", "WQR", "Paranhos, Cirne, Brasileiro 2003")),
    ),
    (
        "bag.batch",
        _BAG,
        (
            ("sufferage", "Sufferage", "Maheswaran et al. 1999, Casanova et al. 2000"),
            ("xsufferage", "XSufferage", "Casanova, Legrand, Zagorodnov, Berman 2000"),
            ("dynamic_fpltf", "DynamicFPLTF", "Paranhos et al. 2003"),
            ("min_min", "MinMin", "Ibarra and Kim 1977; Maheswaran et al. 1999"),
            ("max_min", "MaxMin", "Maheswaran et al. 1999"),
        ),
    ),
    ("bag.lecsa", _BAG, (("lecsa", "LECSA", "LECSA paper (004), section 3.3"),)),
    (
        "bag.baselines",
        _BAG,
        (
            ("round_robin", "RoundRobin", "textbook baseline"),
            ("olb", "OLB", "Braun et al. 2001"),
            ("mct", "MCT", "Maheswaran et al. 1999"),
        ),
    ),
    ("bag.power_capped", _BAG, (("power_capped_mct", "PowerCappedMCT", "MCT within a power cap: our own"),)),
    ("slowest_pstates", _BAG, (("slowest_pstates", "SlowestPStates", "slack reclamation; Kim, Buyya, Kim 2007"),)),
    ("idle_off", (*_BAG, "parallel"), (("idle_off", "IdleOff", "the timeout policy; Slurm power saving guide"),)),
    (
        "green",
        _BAG,
        (
            ("wait_for_green", "WaitForGreen", "temporal shifting; Wiesner et al. 2021"),
            ("follow_sites", "FollowSites", "list scheduling by sites: our own"),
        ),
    ),
    ("auto_bag", _BAG, (("auto_bag", "AutoBag", "the best of all bag schedulers, by trial runs; our own"),)),
    (
        "utility",
        ("utility",),
        (
            ("max_max_upe", "MaxMaxUtilityPerEnergy", "paper 000, section III-B"),
            ("max_max_upt", "MaxMaxUtilityPerTime", "paper 000, section III-B"),
            ("max_max_util", "MaxMaxUtility", "paper 000, section III-B"),
            ("min_min_completion_time", "MinMinCompletionTime", "paper 000, section III-B"),
            ("random_mapping", "RandomMapping", "paper 000, section III-B"),
        ),
    ),
    (
        "linear_programmes",
        ("typed",),
        (
            ("lp_max_profit", "LPMaxProfit", "paper 003, section IV"),
            ("lp_pareto", "LPPareto", "paper 003, section III"),
            ("lp_pareto_profit", "LPParetoProfit", "paper 003, section IV"),
        ),
    ),
    (
        "lp_rolling",
        ("typed", "arrivals"),
        (("lp_rolling", "LPRolling", "paper 003, section IV, for varying prices: our own"),),
    ),
    (
        "deadline",
        ("stochastic",),
        (
            ("shortest_queue", "ShortestQueue", "paper 002, section V"),
            ("minimum_expected_completion_time", "MinimumExpectedCompletionTime", "paper 002, section V"),
            ("lightest_load", "LightestLoad", "paper 002, section V"),
            ("random_immediate", "RandomImmediate", "paper 002, section V"),
            ("cheapest_in_time", "CheapestInTime", "beyond paper 002: our own"),
        ),
    ),
    (
        "parallel.backfilling",
        ("parallel",),
        (
            ("fcfs", "FCFS", "textbook; algorithms I"),
            ("easy_backfilling", "EasyBackfilling", "textbook; algorithms I"),
            ("conservative_backfilling", "ConservativeBackfilling", "textbook; algorithms I"),
        ),
    ),
    (
        "parallel.energy_window",
        ("parallel",),
        (("easy_energy_budget", "EasyEnergyBudget", "CCGrid 2017, energyBud and PC"),),
    ),
    (
        "parallel.heuristics",
        ("parallel_utility",),
        (
            ("max_util", "MaxUtility", "paper 001, section 3.5"),
            ("max_upt", "MaxUtilityPerTime", "paper 001, section 3.5"),
            ("max_upr", "MaxUtilityPerResource", "paper 001, section 3.5"),
            ("max_upe", "MaxUtilityPerEnergy", "paper 001, section 3.5"),
            ("event_based", "EventBased", "paper 001, section 3.6"),
            ("task_based", "TaskBased", "paper 001, section 3.6"),
        ),
    ),
    (
        "parallel.arrival_aware",
        ("parallel_utility",),
        (("arrival_aware", "ArrivalAware", "paper 001, section 3.6, and beyond it: our own"),),
    ),
    (
        "parallel.permanent",
        ("parallel_utility",),
        (
            ("fcfs_multiple_queues", "MultipleQueues", "paper 001, section 3.4"),
            ("random_parallel", "RandomParallel", "paper 001, section 3.4"),
        ),
    ),
)

register(
    BATSIM,
    "gridsched.schedulers.batsim.scheduler:Batsim",
    accepts=("parallel",),
    source="the protocol of Batsim 4; docs/batsim.md",
    parameter="address",
)
for _module, _accepts, _schedulers in _FAMILIES:
    for _id, _class, _source in _schedulers:
        register(_id, f"gridsched.schedulers.{_module}:{_class}", accepts=_accepts, source=_source)
