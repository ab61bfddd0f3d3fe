"""Names that were others: what each is called now.

A former name of an option, a key or a parameter is refused, and the message gives the new one. What a store holds
under a former name is read: rows are continued under it, because a hash of their keys identifies a run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

#: Keys of runs, which are options too; rows are stored and hashed under the former names.
_KEYS: dict[str, str] = {
    "jobs_take": "allocation",
    "max_barren_asks": "max_idle_wakeups",
    "on_exhaustion": "budget_enforcement",
    "place": "placement",
    "share_idle": "idle_attribution",
    "way": "execution_mode",
}
#: Other options, parameters, traits of policies and public names.
_OTHERS: dict[str, str] = {
    "Drawn": "PlottedFigure",
    "asked": "trigger",
    "attends": "observes_events",
    "by": "group_by",
    "heeds_budget": "respects_budget",
    "heeds_power_cap": "respects_power_cap",
    "usual": "default",
}
#: Metrics and columns of groups of jobs.
_METRICS: dict[str, str] = {"mean_waiting_s": "mean_waiting_time_s"}
_ALL = _KEYS | _OTHERS | _METRICS
_STORED = {new: old for old, new in _KEYS.items()}
_UNKNOWN = re.compile(r"(?:unexpected keyword argument|has no attribute|cannot import name) '(\w+)'")


def now_called(name: str) -> str | None:
    """Return the present name of what had another one; None for a name that is not a former one."""
    return _ALL.get(name)


def option_now(option: str, options: Collection[str]) -> str | None:
    """Return the present name of an option, as ``--x-y``, if it is one of these; else None."""
    new = now_called(option.removeprefix("--").replace("-", "_"))
    name = f"--{(new or '').replace('_', '-')}"
    return name if name in options else None


def named_now(reason: str) -> str:
    """Return the text of an exception, with the present name where it is about a former one."""
    found = _UNKNOWN.search(reason)
    new = now_called(found[1]) if found else None
    return reason if new is None else f"{reason}; it is now {new!r}"


def with_new_names(value: Any, *, all_names: bool = False) -> Any:
    """Return a parsed TOML or JSON value whose keys have their present names.

    Parameters
    ----------
    value : object
    all_names : bool
        Whether traits and parameters are renamed as well as keys of runs.
    """
    names = _ALL if all_names else _KEYS
    if isinstance(value, Mapping):
        return {names.get(key, key): with_new_names(each, all_names=all_names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(with_new_names(each, all_names=all_names) for each in value)
    return value


def metrics_now(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored metrics, of a run or of a group of its jobs, under their present names."""
    return {_METRICS.get(name, name): value for name, value in metrics.items()}


def as_stored(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a run's section under the names by which rows hold them."""
    return {_STORED.get(key, key): value for key, value in keys.items()}
