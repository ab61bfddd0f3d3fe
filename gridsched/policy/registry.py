"""All schedulers by id. Entries are ``"module:Class"`` strings, so listing imports nothing; plugins add theirs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from gridsched.errors import GridschedError, InputError, did_you_mean, policy_at_work
from gridsched.plugins import SchedulerEntry, Table, loaded, report
from gridsched.policy.base import Scheduler

_BAG = ("bag", "arrivals")
#: Kinds of workload, the most particular first.
_KINDS = ("parallel_utility", "parallel", "utility", "stochastic", "typed", "workflow", *_BAG)
#: The schedulers of a comparison on rigid jobs that names none.
QUEUES = ("fcfs", "easy_backfilling", "conservative_backfilling")
#: The schedulers that paper 004 compares.
PAPER_004 = ("wq", "wqr", "sufferage", "xsufferage", "dynamic_fpltf", "lecsa")


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
    _ENTRIES[id] = SchedulerEntry(id, target, accepts, source, parameter)


def entries() -> list[SchedulerEntry]:
    """Return all entries, sorted by id."""
    return [_ENTRIES[id] for id in sorted(_ENTRIES)]


def default_ids(kinds: Container[str]) -> tuple[str, ...]:
    """Return the schedulers of a comparison that names none.

    Parameters
    ----------
    kinds : container of str
        What the workload is; the most particular kind counts.

    Returns
    -------
    tuple of str
        Of a bag or of serial tasks that arrive those of paper 004, of rigid jobs the textbook's; else all that are
        made for the kind: they name it first.
    """
    for kind in (each for each in _KINDS if each in kinds and each not in _BAG):
        if kind == "parallel":
            return QUEUES
        if ids := tuple(each.id for each in _ENTRIES.values() if kind in each.accepts[:1]):
            return ids
    return PAPER_004


def find(id: str) -> SchedulerEntry:
    """Return the entry called `id`, which may have a parameter after a colon.

    Raises
    ------
    InputError
        If there is none; the message proposes the nearest id.
    """
    first, colon, _ = id.partition(":")
    entry = _ENTRIES.get(first)
    if entry is None or (colon and not entry.parameter):
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
        If the id is unknown or the class cannot be imported, or is no scheduler.
    """
    target = find(id).target
    cls: Any = loaded(target, f"Scheduler {id!r}")
    if not (isinstance(cls, type) and issubclass(cls, Scheduler)):
        raise InputError(f"Scheduler {id!r}: {target!r} is no class derived from gridsched.Scheduler.")
    return cls


def usable(ids: Iterable[str]) -> Iterator[str]:
    """Yield those of some ids whose classes can be imported and read, and report those of plugins that cannot.

    Raises
    ------
    InputError
        If one of gridsched's own cannot.
    """
    for id in ids:
        try:
            with policy_at_work():
                repr(scheduler_class(id).parameter_defaults())
        except GridschedError as error:
            if find(id).is_ours:
                raise
            named = "" if repr(id) in str(error) else f"Scheduler {id!r}: "
            report(f"{named}{error} It is left out.")
        else:
            yield id


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
    first, colon, value = id.partition(":")
    if colon:
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


#: Of the families that no system adds: the module, what its schedulers accept, and (id, class, source) of each.
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
        "parallel.backfilling",
        ("parallel",),
        (
            ("fcfs", "FCFS", "textbook; algorithms I"),
            ("easy_backfilling", "EasyBackfilling", "textbook; algorithms I"),
            ("conservative_backfilling", "ConservativeBackfilling", "textbook; algorithms I"),
        ),
    ),
    ("parallel.slurm", ("parallel",), (("slurm", "Slurm", "Slurm 22.05: SchedMD's documentation of its scheduling"),)),
    (
        "parallel.energy_window",
        ("parallel",),
        (("easy_energy_budget", "EasyEnergyBudget", "CCGrid 2017, energyBud and PC"),),
    ),
)

_ENTRIES: Table[str, SchedulerEntry] = Table(
    "scheduler",
    lambda plugin: ((each.id, each) for each in plugin.schedulers),
    {
        id: SchedulerEntry(id, f"gridsched.schedulers.{module}:{name}", accepts, source)
        for module, accepts, schedulers in _FAMILIES
        for id, name, source in schedulers
    },
)
