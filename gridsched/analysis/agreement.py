"""How well SimGrid and the reference driver agree on the runs of a study that both have done."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import TextTable, axis_name, axis_value
from gridsched.arrays import Floats
from gridsched.campaign.row_table import SERIES_PREFIX
from gridsched.energy import relative_difference

DRIVERS = ("reference", "simgrid")
#: What is compared, as far as both drivers' runs have it.
COMPARED = (
    "energy_model_j",
    "window_energy_j",
    "makespan_s",
    "busy_time_s",
    "utility",
    "window_utility",
    "executions",
    "tasks_finished",
    "tasks_dropped",
    "tasks_killed",
    "tasks_postponed",
    "tasks_unfinished",
    "tasks_late",
    "tasks_missed",
    "mapping_events",
    "budget_excess_j",
)
_COLUMNS = ["quantity", "compared", "runs", "largest_relative_difference", "run_id", "where"]


def agreement_frame(results: StudyResults) -> pd.DataFrame:
    """Return the largest relative differences between drivers.

    Returns
    -------
    DataFrame
        A row for each quantity: what is compared with what, the number of pairs of runs, the
        largest relative difference, and the SimGrid run that has it; empty unless the study has
        the axis ``driver`` and both drivers have done some run.
    """
    pairs = _pairs(results)
    if pairs is None or not len(pairs):
        return pd.DataFrame(columns=_COLUMNS)
    rows = [
        _row(results, pairs, name, "SimGrid's run, reference run", _differences(pairs, name))
        for name in COMPARED
        if f"{name}_simgrid" in pairs
    ]
    series = [name.removesuffix("_simgrid") for name in pairs if name.endswith("_simgrid")]
    rows += [
        _row(results, pairs, name, "SimGrid's run, reference run", _of_series(pairs, name))
        for name in series
        if name.startswith(SERIES_PREFIX) and name != f"{SERIES_PREFIX}time_s"
    ]
    for name, what in (
        ("energy_relative_difference", "energy_j"),
        ("energy_worst_host_difference", "energy_j of each host"),
    ):
        values = pairs.get(f"{name}_simgrid")
        if values is not None and values.notna().any():
            differences = values.fillna(0.0).abs().to_numpy()
            rows.append(_row(results, pairs, what, "plugin, model of the same run", differences))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _pairs(results: StudyResults) -> pd.DataFrame | None:
    """Return the runs that both drivers have finished, side by side."""
    if not set(DRIVERS) <= set(results.finished.get("driver", [])):
        return None
    keys = [name for name in results.study.axis_names if name != "driver"]
    reference, simgrid = (results.finished[results.finished["driver"] == driver] for driver in DRIVERS)
    known = {name: [_hashable(each) for each in reference[name]] for name in keys}
    others = {name: [_hashable(each) for each in simgrid[name]] for name in keys}
    return simgrid.assign(**others).merge(reference.assign(**known), on=keys, suffixes=("_simgrid", "_reference"))


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list | np.ndarray) else value


def _differences(pairs: pd.DataFrame, name: str) -> Floats:
    one, other = (pairs[f"{name}_{driver}"].astype(np.float64) for driver in DRIVERS)
    both_lack = (one.isna() & other.isna()).to_numpy()
    return np.where(both_lack, 0.0, relative_difference(one.to_numpy(), other.to_numpy()))


def _of_series(pairs: pd.DataFrame, name: str) -> Floats:
    """Return the largest difference within each pair of series, relative to the series' end."""
    shares = []
    for one, other in zip(*(pairs[f"{name}_{driver}"] for driver in DRIVERS), strict=True):
        left, right = (np.asarray(each, dtype=np.float64) for each in (one, other))
        largest = max(np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0))
        shares.append(np.abs(left - right).max(initial=0.0) / largest if largest else 0.0)
    return np.array(shares)


def _row(results: StudyResults, pairs: pd.DataFrame, name: str, compared: str, differences: Floats) -> list[object]:
    worst = int(np.argmax(np.nan_to_num(differences, nan=np.inf)))
    axes = [axis for axis in results.varying_axes if axis != "driver"]
    where = ", ".join(
        f"{axis_name(axis)} {axis_value(axis, pairs[axis].iloc[worst])}" for axis in (*axes, "scheduler", "replicate")
    )
    is_known = differences[worst] != 0
    run_id = pairs["run_id_simgrid"].iloc[worst] if is_known else ""
    return [name, compared, len(pairs), float(differences[worst]), run_id, where if is_known else ""]


def agreement_table(frame: pd.DataFrame) -> TextTable:
    """Return `agreement_frame` for people."""
    rows = [
        [
            row.quantity.removeprefix(SERIES_PREFIX) + (" (series)" if SERIES_PREFIX in row.quantity else ""),
            row.compared,
            str(row.runs),
            f"{row.largest_relative_difference:.2g}",
            row.where,
        ]
        for row in frame.itertuples()
    ]
    return TextTable(
        "Agreement of the drivers",
        ["quantity", "of", "pairs", "largest relative difference", "in"],
        rows,
        2,
        "Each run that both drivers have done; SimGrid's energy plugin meters, the model predicts.",
    )
