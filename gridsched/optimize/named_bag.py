"""Bags by type with their names, as the commands take them: from generators, CSV or a platform."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from gridsched.arrays import Integers
from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.platform import Platform
from gridsched.model.task_types import SystemWorkload, TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.optimize.grouped_bag import grouped_bag
from gridsched.optimize.typed_bag import TypedBag, typed_bag
from gridsched.workloads.generator_keys import GeneratorKeys, SystemKeys
from gridsched.workloads.generators import generator_of
from gridsched.workloads.typed_csv import (
    read_machine_type_names,
    read_machines_and_idle_power,
    read_task_counts,
    read_task_types,
)

#: Pairs of a task size and a kind of machine that a bag may have; more take minutes.
MOST_PAIRS = 100_000


def bag_of_parameters(parameters: GeneratorKeys, name: str, pstate: int = 0) -> TypedBag:
    """Return the bag that a generator's checked keys ask for, if it brings its machines.

    Parameters
    ----------
    parameters : GeneratorKeys
        Of a kind with task types, such as ``profit`` or ``utility``. A `SystemKeys.counted_bag` is
        taken as it is, however many its tasks are.
    name : str
        What the bag is called.
    pstate : int
        All executions are in this one.

    Raises
    ------
    InputError
        If the generator makes no machines, or has no such P-state.
    """
    counted = parameters.counted_bag() if isinstance(parameters, SystemKeys) else None
    if counted is not None:
        _check_pstate(name, pstate, 1)
        bag = typed_bag(counted.etc, counted.apc, counted.tasks, counted.machines, counted.idle_w)
        return _named(bag, name, counted.task_type_names, counted.machine_type_names)
    whole = generator_of(parameters).generate(parameters)
    if not isinstance(whole, SystemWorkload):
        raise InputError(f"{name}: a bag of this kind has no machines of its own; add --platform.")
    if whole.types is None:
        raise InputError(f"{name}: its tasks have no types; only bags by types can be planned.")
    return bag_of_types(name, whole.tasks, whole.types, pstate)


def bag_of_types(name: str, tasks: Tasks, types: TaskTypes, pstate: int = 0) -> TypedBag:
    """Return tasks that have types as a bag; see `bag_of_parameters`. Parallel ones are refused."""
    if not tasks.are_serial:
        raise InputError(f"{name}: the tasks are parallel; the linear programs divide only bags of serial tasks.")
    _check_pstate(name, pstate, types.etc.shape[2])
    assert tasks.task_type is not None  # by the check of `types`
    counts = np.bincount(tasks.task_type, minlength=len(types.etc))
    machines = np.bincount(types.host_type, minlength=types.etc.shape[1])
    bag = typed_bag(types.etc[:, :, pstate], types.apc[:, :, pstate], counts, machines, types.idle_w)
    return _named(bag, name, types.task_type_names, types.host_type_names, _arrival_note(tasks))


def bag_of_csv(
    etc: str | Path, apc: str | Path, counts: str | Path, machines: str | Path | None = None, pstate: int = 0
) -> TypedBag:
    """Return a bag from measured matrices.

    Parameters
    ----------
    etc, apc : path
        CSV ``task_type,machine_type,pstate,etc_s`` and ``...,apc_w``; a pair without a line cannot
        run.
    counts : path
        CSV ``task_type,tasks``.
    machines : path, optional
        CSV ``machine_type,count[,idle_w]``; by default one machine of each type in `etc`, which
        draws nothing when idle.
    pstate : int
        All executions are in this one.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    if machines is None:
        numbers = dict.fromkeys(read_machine_type_names(etc), 1)
        idle_w = np.zeros(len(numbers))
    else:
        numbers, idle_w = read_machines_and_idle_power(machines)
    types = read_task_types(etc, apc, numbers, machines or etc)
    _check_pstate(str(etc), pstate, types.etc.shape[2])
    bag = typed_bag(
        types.etc[:, :, pstate],
        types.apc[:, :, pstate],
        read_task_counts(counts, types.task_type_names),
        list(numbers.values()),
        idle_w,
    )
    return _named(bag, str(counts), types.task_type_names, types.host_type_names)


def bag_of_platform(platform: Platform, tasks: Tasks, pstates: Integers | int = 0) -> TypedBag:
    """Return a bag without types on the hosts of a platform, gathered into types.

    Parameters
    ----------
    platform : Platform
        Hosts of equal speed and power are machines of one type, each core a machine.
    tasks : Tasks
        Tasks of one size are one type.
    pstates : ndarray of int64, shape (hosts,), or int
        P-state of all executions on each host.

    Raises
    ------
    InputError
        If there are no tasks, parallel ones, too many sizes, or a host lacks the P-state.
    """
    name = f"{tasks.name} on {platform.name}"
    platform.check_pstates(pstates)
    if not tasks.are_serial:
        raise InputError(f"{tasks.name}: its jobs are parallel; only serial tasks can be planned.")
    if not len(tasks):
        raise InputError(f"{tasks.name}: there are no tasks to divide among machines.")
    sizes = np.unique(tasks.flops)
    every_pstate = np.broadcast_to(pstates, len(platform)).tolist()
    kinds = {(host.pstates[k], host.cores) for host, k in zip(platform.hosts, every_pstate, strict=True)}
    if len(sizes) * len(kinds) > MOST_PAIRS:
        raise InputError(
            f"{name}: {len(sizes):,} sizes of tasks and {len(kinds):,} kinds of machines make "
            f"{len(sizes) * len(kinds):,} pairs; the linear programs accept at most {MOST_PAIRS:,}. Round "
            f"the sizes, so that fewer differ."
        )
    estimates = FlopsEstimates(platform, tasks)
    every = np.arange(len(tasks)), np.arange(len(platform.hosts))
    grouped = grouped_bag(platform, estimates, tasks, *every, pstates=pstates)
    return _named(
        grouped.bag,
        name,
        tuple(f"{size:,.10g} flop" for size in sizes.tolist()),
        tuple(map(partial(_machine_name, platform), grouped.machines, grouped.cores)),
        (*_arrival_note(tasks), *_partial_load_note(platform, every_pstate)),
    )


def _named(
    bag: TypedBag, name: str, task_types: tuple[str, ...], machine_types: tuple[str, ...], notes: tuple[str, ...] = ()
) -> TypedBag:
    return replace(bag, name=name, task_types=task_types, machine_types=machine_types, notes=notes)


def _partial_load_note(platform: Platform, pstates: list[int]) -> tuple[str, ...]:
    for host, k in zip(platform.hosts, pstates, strict=True):
        state = host.pstates[k]
        if min(state.epsilon_w if host.cores > 1 else np.inf, state.busy_w) < state.idle_w or (
            host.cores > 1 and state.epsilon_w > state.idle_w
        ):
            return (
                f"host {host.name!r} does not draw evenly more with its load (epsilon is not its "
                "idle power); bounds hold, but whole tasks may cost more than is shown.",
            )
    return ()


def _machine_name(platform: Platform, hosts: Integers, cores: Integers) -> str:
    others = len(np.unique(hosts)) - 1
    first = platform.hosts[hosts[0]]
    name = f"{first.name} and {others} like it" if others else first.name
    if len(hosts) == (others + 1) * first.cores:
        return name
    return f"{name}, {'further' if cores[0] else 'first'} cores"


def _arrival_note(tasks: Tasks) -> tuple[str, ...]:
    if len(tasks) and tasks.submit_time_s.max() > tasks.submit_time_s.min():
        return ("the tasks arrive over time; the linear programs take all of them as one bag.",)
    if tasks.dependencies is not None:
        return ("some tasks wait for others; the linear programs take all of them as one bag, free from the start.",)
    return ()


def _check_pstate(name: str, pstate: int, number: int) -> None:
    if not 0 <= pstate < number:
        raise InputError(f"{name}: P-state {pstate} is requested; allowed: 0 to {number - 1}.")
