"""Build a platform from a table of machines."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError, counted, did_you_mean
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.seeds import random_stream
from gridsched.platform_io.host_resources import Resources, UnitPower, parse_unit_power, shown_resources
from gridsched.platform_io.overrides import contain_match
from gridsched.platform_io.recipe import (
    DEFAULT_IDLE_SHARE,
    UNIT_COLUMNS,
    PlatformRecipe,
    PStates,
    parse_pstates,
    parse_ranks,
    units_of_row,
)
from gridsched.platform_io.tables import MachineTable
from gridsched.platform_io.xml_entries import MAX_HOSTS

if TYPE_CHECKING:
    import pandas as pd

MASTER_NAME = "master"
#: The master computes nothing; SimGrid wants a speed all the same [flop/s].
_MASTER_SPEED = 1e9
_CLUSTER_COLUMNS = ("cluster", "site", "computer", "year", "name")


@dataclass(frozen=True)
class _Draft:
    """The hosts before they are built: row of the table, speed [flop/s], efficiency [flop/J]."""

    row: Integers
    speed: Floats
    efficiency: Floats


def platform_from_table(table: MachineTable, recipe: PlatformRecipe) -> Platform:
    """Build the platform that `recipe` asks for.

    Parameters
    ----------
    table : MachineTable
        Machines with speed and efficiency.
    recipe : PlatformRecipe
        All options.

    Returns
    -------
    Platform
        Hosts are called after their row: by the machine's name, where it has none by its rank
        (``rank7``), where several have the same by both; with a number where a row has several
        hosts. Its `warnings` say what was assumed.

    Raises
    ------
    InputError
        If no row is left, an option does not fit the table, a host would draw more power idle
        than busy, or has a speed or power that no platform file may have.

    Notes
    -----
    Busy power is speed / efficiency (paper 004, eq. 1). On one-core hosts SimGrid's epsilon is
    the busy power, on others the idle power.
    """
    chosen = select_rows(table, recipe)
    shuffle, speeds, idles = random_stream(recipe.seed, "platform", recipe.replicate).spawn(3)
    draft = _draft(table, chosen, recipe, shuffle, speeds)
    warnings: list[str] = []
    pstates = _pstates(chosen, recipe)
    idle_w, idle_share = _idle_power(chosen, draft, recipe, idles, warnings)
    names = _names(table, chosen, draft.row)
    cores = _per_row(chosen, "cores", recipe.cores, 1.0, own=table.own_format)
    amounts: dict[str, Any] = {
        field: _per_row(chosen, column, getattr(recipe, column), 0.0, own=table.own_format)
        for field, column in (("off_w", "off_power_w"), ("embodied_kg",) * 2, ("lifetime_years",) * 2)
    }
    units = _units(table, chosen, recipe)
    hosts = tuple(
        replace(
            _host(names[h], draft, h, pstates[row], int(cores[row]), (idle_w[h], idle_share)),
            resources=units[row][0],
            unit_power=units[row][1],
            **{field: amount.item(row) for field, amount in amounts.items()},
        )
        for h, row in enumerate(draft.row)
    )
    for host in hosts:
        _check_limits(table, host)
    master = None
    if recipe.master:
        if MASTER_NAME in names:
            raise InputError(f"{table.path}: a machine is called {MASTER_NAME!r}; rename it.")
        master = Host(MASTER_NAME, (PState(_MASTER_SPEED),))
    clusters = _clusters(table, chosen, draft, recipe)
    return Platform(hosts, clusters, master, name=table.path, warnings=tuple(warnings))


def select_rows(table: MachineTable, recipe: PlatformRecipe) -> pd.DataFrame:
    """Return the usable rows that the recipe chooses, in table order, indexed from 0.

    Raises
    ------
    InputError
        If none is left.
    """
    frame = table.frame
    is_complete = frame[["rmax_flops", "efficiency_flop_per_j"]].notna().all(axis=1)
    if recipe.rows is not None:
        inside = np.zeros(len(frame), dtype=bool)
        for first, last in parse_ranks(recipe.rows):
            inside |= frame["rank"].between(first, last).to_numpy()
        is_complete &= inside
    if recipe.name_pattern is not None:
        named = np.zeros(len(frame), dtype=bool)
        for column in ("name", "computer", "site"):
            named |= contain_match(frame[column], recipe.name_pattern)
        is_complete &= named
    if not is_complete.any():
        raise InputError(
            f"{table.path}: no row with speed and efficiency is left; rows "
            f"{recipe.rows or 'all'}, name pattern {recipe.name_pattern or 'none'}."
        )
    return frame[is_complete].reset_index(drop=True)


def _draft(
    table: MachineTable,
    chosen: pd.DataFrame,
    recipe: PlatformRecipe,
    shuffle: np.random.Generator,
    speeds: np.random.Generator,
) -> _Draft:
    row = _deal(table, chosen, recipe.hosts)
    real_speed = chosen["rmax_flops"].to_numpy()
    real_efficiency = chosen["efficiency_flop_per_j"].to_numpy()
    rule = recipe.efficiency or ("nearest" if recipe.speed_uniform else "scaled")
    if recipe.speed_uniform:
        limits = recipe.speed_uniform
        if limits == "rows":
            limits = (float(real_speed.min()), float(real_speed.max()))
        speed = speeds.uniform(*limits, len(row))
    elif recipe.speed_levels:
        if len(recipe.speed_levels) > len(chosen):
            raise InputError(
                f"{table.path}: {len(recipe.speed_levels)} speed levels need as many rows; {len(chosen)} are chosen."
            )
        row = shuffle.permutation(row)
        level = np.arange(len(chosen)) * len(recipe.speed_levels) // len(chosen)
        speed = np.array(recipe.speed_levels)[level][row]
    else:
        row = shuffle.permutation(row) if recipe.shuffle else row
        speed = real_speed[row]
    if rule in ("nearest", "linear"):
        row = _nearest(table, real_speed, speed)
    efficiency = real_efficiency[row]
    if rule == "linear":
        order = np.argsort(real_speed, kind="stable")
        efficiency = np.interp(speed, real_speed[order], real_efficiency[order])
    if rule == "scaled":
        real = real_speed[row]
        efficiency = np.where(speed == real, efficiency, speed * efficiency / real)
    return _Draft(row, speed, efficiency)


def _deal(table: MachineTable, chosen: pd.DataFrame, hosts: int | None) -> Integers:
    """Return the row of each host."""
    rows = len(chosen)
    if hosts is not None:
        number = np.full(rows, hosts // rows)
        number[: hosts % rows] += 1
    else:
        number = chosen["count"].to_numpy() if table.own_format else np.ones(rows, dtype=int)
        if (total := sum(number.tolist())) > MAX_HOSTS:  # as integers of any size
            raise InputError(f"{table.path}: asks for {counted(total, 'host')}; at most {MAX_HOSTS:,} are allowed.")
    return np.repeat(np.arange(rows), number)


def _nearest(table: MachineTable, levels: Floats, speed: Floats) -> Integers:
    """Return the row whose speed is nearest to each host's; of two the lower (algorithms A7)."""
    if speed.max() < levels.min() / 2 or speed.min() > levels.max() * 2:
        raise InputError(
            f"{table.path}: simulated speeds of {speed.min():g} to {speed.max():g} flop/s are "
            f"far from the table's {levels.min():g} to {levels.max():g}; the efficiency rules "
            "'nearest' and 'linear' make no sense. Use 'scaled'."
        )
    order = np.argsort(levels, kind="stable")
    distance = np.abs(speed[:, None] - levels[order][None, :])
    return order[np.argmin(distance, axis=1)]


def _pstates(chosen: pd.DataFrame, recipe: PlatformRecipe) -> list[PStates]:
    if recipe.pstates is not None:
        return [recipe.pstates] * len(chosen)
    texts = chosen["pstates"] if "pstates" in chosen else [""] * len(chosen)
    return [parse_pstates(text or "1:1") for text in texts]


def _per_row(chosen: pd.DataFrame, column: str, given: float | None, default: float, *, own: bool) -> Floats:
    """Return an option, else our own format's column, else the default, for each row."""
    if given is not None:
        return np.full(len(chosen), float(given))
    if not own:  # the cores of a TOP500 list are those of the real machine
        return np.full(len(chosen), default)
    return chosen[column].fillna(default).to_numpy()


def _units(table: MachineTable, chosen: pd.DataFrame, recipe: PlatformRecipe) -> list[tuple[Resources, UnitPower]]:
    """Return what the hosts of each row have beside cores, and the power of that; an option replaces a column."""

    def texts(name: str) -> list[str]:
        given = getattr(recipe, name)
        return list(chosen[name]) if given is None and name in chosen else [given or ""] * len(chosen)

    *has_texts, own_powers = (texts(name) for name in UNIT_COLUMNS)
    if recipe.unit_power is not None:
        own_powers = [""] * len(chosen)  # it is of hosts that have the units, and of the others not refused
    try:
        units = [units_of_row(*row) for row in zip(*has_texts, own_powers, strict=True)]
    except ValueError as error:  # an option took away units that have power in their row
        raise InputError(f"{table.path}: {error}.") from None
    if recipe.unit_power is None:
        return units
    powers = parse_unit_power(recipe.unit_power)
    found = {name for has, _ in units for name, _ in has}
    if lacking := [name for name, *_ in powers if name not in found]:
        raise InputError(
            f"{table.path}: unit_power is of {shown_resources(lacking)}, and no host has that; hosts have "
            f"{shown_resources(sorted(found))}. Give memory or resources, too."
        )
    return [(has, tuple(each for each in powers if each[0] in dict(has))) for has, _ in units]


def _idle_power(
    chosen: pd.DataFrame, draft: _Draft, recipe: PlatformRecipe, stream: np.random.Generator, warnings: list[str]
) -> tuple[list[float], float]:
    """Return the idle power of each host [W], and where it is not a number, its share of each P-state's busy power."""
    n = len(draft.row)
    if recipe.idle_power_w is not None:
        return stream.uniform(*recipe.idle_power_w, n).tolist(), 0.0
    if recipe.idle_share is not None:
        return [math.nan] * n, recipe.idle_share
    watts = chosen["idle_power_w"].to_numpy()[draft.row] if "idle_power_w" in chosen else np.full(n, np.nan)
    if np.isnan(watts).any():
        warnings.append(
            f"{counted(int(np.isnan(watts).sum()), 'host has', 'hosts have')} no idle power in the table: "
            f"{DEFAULT_IDLE_SHARE:.0%} of the busy power is assumed."
        )
    return watts.tolist(), DEFAULT_IDLE_SHARE


def _host(name: str, draft: _Draft, h: int, pstates: PStates, cores: int, idle: tuple[float, float]) -> Host:
    fixed_idle_w, idle_share = idle
    speed = float(draft.speed[h])
    busy = speed / float(draft.efficiency[h])
    states = []
    for speed_factor, power_factor in pstates:
        busy_w = busy * power_factor
        idle_w = idle_share * busy_w if math.isnan(fixed_idle_w) else fixed_idle_w
        if idle_w > busy_w:
            raise InputError(
                f"Host {name!r} would draw {idle_w:g} W idle but {busy_w:g} W busy; give a lower "
                "idle power or an idle share."
            )
        epsilon_w = busy_w if cores == 1 else idle_w
        states.append(PState(speed * speed_factor / cores, idle_w, epsilon_w, busy_w))
    return Host(name, tuple(states), cores)


def _check_limits(table: MachineTable, host: Host) -> None:
    """Refuse what a reader of the written platform would refuse."""
    for state in host.pstates:
        if not SMALLEST <= state.speed <= LARGEST or state.busy_w > LARGEST:
            raise InputError(
                f"{table.path}: host {host.name!r} would have {state.speed:g} flop/s and draw "
                f"{state.busy_w:g} W; allowed: {SMALLEST:g} to {LARGEST:g} flop/s and up to "
                f"{LARGEST:g} W."
            )


def _names(table: MachineTable, chosen: pd.DataFrame, row: Integers) -> list[str]:
    if table.own_format:
        names = _numbered(list(chosen["name"]), row)
    else:
        ranks = chosen["rank"]
        has_ranks = ranks.notna().all() and not ranks.duplicated().any()
        rows = [f"rank{int(r)}" for r in ranks] if has_ranks else [f"row{k + 1}" for k in chosen.index]
        machines = _named_machines(list(chosen["name"]), rows)
        names = _numbered(machines, row)
        if len(set(names)) < len(names) or MASTER_NAME in names:
            both = [m if m == r else f"{m}-{r}" for m, r in zip(machines, rows, strict=True)]
            names = _numbered(both, row)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"{table.path}: two hosts would be called {twice[0]!r}; rename a machine.")
    return names


def _numbered(bases: list[str], row: Integers) -> list[str]:
    """Return the name of each host: that of its row, with a number where the row has several."""
    number = Counter(row.tolist())
    used: Counter[int] = Counter()
    names = []
    for r in row.tolist():
        used[r] += 1
        names.append(bases[r] if number[r] == 1 else f"{bases[r]}-{used[r]}")
    return names


def _named_machines(names: list[str], rows: list[str]) -> list[str]:
    """Return the machines' names in letters that suit a host; beside or instead of them the row."""
    plain = [re.sub(r"[^\w.+]+", "-", name).strip("-") for name in names]
    times = Counter(name.lower() for name in plain)
    return [
        row if not name else name if times[name.lower()] == 1 else f"{name}-{row}"
        for name, row in zip(plain, rows, strict=True)
    ]


def _clusters(table: MachineTable, chosen: pd.DataFrame, draft: _Draft, recipe: PlatformRecipe) -> tuple[Cluster, ...]:
    groups = _groups(table, chosen, draft, recipe)
    links = []
    for what, values, ideal in (
        ("bandwidths", recipe.cluster_bandwidth, float("inf")),
        ("latencies", recipe.cluster_latency_s, 0.0),
    ):
        if len(values) not in (0, 1, len(groups)):
            raise InputError(
                f"{len(values)} cluster {what} for {len(groups)} clusters; give one for all or one for each."
            )
        links.append(values * len(groups) if len(values) == 1 else values or (ideal,) * len(groups))
    return tuple(
        Cluster(name, tuple(members), bandwidth, latency)
        for (name, members), bandwidth, latency in zip(groups.items(), *links, strict=True)
    )


def _groups(table: MachineTable, chosen: pd.DataFrame, draft: _Draft, recipe: PlatformRecipe) -> dict[str, list[int]]:
    """Return the hosts of each cluster by its name, in the clusters' order."""
    n = len(draft.row)
    by = recipe.clusters
    if by is None:
        by = "cluster" if "cluster" in chosen and (chosen["cluster"] != "").all() else 1
    if isinstance(by, int):
        if by > n:
            raise InputError(f"{by} clusters are too many for {counted(n, 'host')}.")
        return {f"c{c + 1}": list(range(n * c // by, n * (c + 1) // by)) for c in range(by)}
    if by == "host":
        return {name: [h] for h, name in enumerate(_names(table, chosen, draft.row))}
    if by == "speed":
        level = chosen["rmax_flops"].to_numpy()[draft.row] if recipe.speed_uniform else draft.speed
        return {f"speed-{s:.17g}": np.flatnonzero(level == s).tolist() for s in np.unique(level)}
    keys = _row_keys(table, chosen, by)
    groups: dict[str, list[int]] = {keys[row]: [] for row in sorted(set(draft.row.tolist()))}
    for h, row in enumerate(draft.row.tolist()):
        groups[keys[row]].append(h)
    return groups


def _row_keys(table: MachineTable, chosen: pd.DataFrame, by: str) -> list[str]:
    if by == "row":
        return _names(table, chosen, np.arange(len(chosen)))
    legal = [name for name in _CLUSTER_COLUMNS if name in chosen]
    if by not in legal:
        words = ["host", "speed", "row", *legal]
        raise InputError(
            f"Clusters by {by!r}: a number or one of {', '.join(words)} is allowed. {did_you_mean(by, words)}".rstrip()
        )
    if by == "year":
        return ["unknown" if np.isnan(year) else str(int(year)) for year in chosen["year"]]
    return [text or "unknown" for text in chosen[by]]
