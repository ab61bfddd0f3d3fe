"""Weeks of logs under an energy budget, of the study of CCGrid 2017: joules as its notebook prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from gridsched.energy import grid_energy_between
from gridsched.model.platform import Platform, PState, homogeneous_cluster
from gridsched.reproduction.known.cases import Case, Input, Row, Values
from gridsched.runs.run import run
from gridsched.sim.scenario import Scenario
from gridsched.workloads.traces.trace_options import TraceOptions

SOURCE = (
    "P.-F. Dutot, Y. Georgiou, D. Glesser, L. Lefevre, M. Poquet, I. Rais, 'Towards energy budget control in HPC', "
    "CCGrid 2017, hal-01533417; its repository's notebook"
)
WEEK_S = 604_800.0
#: The window of the budget: the third day to the fifth [s].
BEGIN_S, END_S = 172_800.0, 432_000.0
#: Shares of the energy of a busy machine; 49 % is what the scheduler's idle watts are of its busy ones.
CLOSED_SHARE = 100.0 / 203.12


def machine(n_nodes: int) -> Platform:
    """Return nodes as the study has them, which boot and shut down.

    Parameters
    ----------
    n_nodes : int
    """
    platform = homogeneous_cluster(n_nodes, idle_w=95.0, busy_w=190.738, name=f"{n_nodes:,} nodes")
    boot, shutdown = (PState(0.0, watts, watts, watts) for watts in (125.17, 101.0))
    hosts = tuple(
        replace(
            host,
            off_w=9.75,
            boot_time_s=151.52,
            shutdown_time_s=6.1,
            switch_pstates=(boot, shutdown),
            boot_pstate=1,
            shutdown_pstate=2,
        )
        for host in platform.hosts
    )
    return replace(platform, hosts=hosts)


def _case(
    id: str,
    log: str,
    nodes: int,
    rows: tuple[Row, ...],
    scheduler: str = "easy_energy_budget",
    parameters: Mapping[str, float | str | bool] = MappingProxyType({}),
) -> Case:
    def measure(paths: tuple[Path, ...]) -> Values:
        scenario = Scenario(
            machine(nodes),
            str(paths[0]),
            scheduler,
            dict(parameters),
            driver="reference",
            walltime="kill",
            trace=TraceOptions(requests="twice"),
        )
        trace = run(scenario).trace
        joules = grid_energy_between(trace, np.array([0.0, BEGIN_S, END_S, WEEK_S]))
        return {
            "budget_j": float(joules[1]),
            "week_j": float(joules.sum()),
            "end_s": float(np.nanmax(trace.finish_time_s)),
        }

    where = Input(log, "glesserd/energybudget-expe (traces), made of logs of the Parallel Workloads Archive")
    return Case(
        f"ccgrid2017-{id}",
        SOURCE,
        f"gridsched reproduce known --inputs DIR --only ccgrid2017-{id}",
        measure,
        rows,
        (where,),
    )


_OPEN = (
    "which of the 100 jobs of the week's begin, submitted together, is first decides: in a plain loop of the study's "
    "rules 12 orders of them give 3.3e10 to 4.4e10 J in the budget's days (mean 4.12e10) and 1.05e11 to 1.15e11 J in "
    "the week (mean 1.122e11), on both sides of what is printed. Ours are 3.61e10 and 1.078e11 J where those that "
    "overtake leave idle nodes what they draw (spares_idle)"
)
_NEIGHBOURS = (
    "jobs of the study take neighbouring nodes, so that some wait longer: a plain loop that chooses them as its "
    "programs do ends at 2,846,196 s, as printed"
)
CASES = (
    _case(
        "pc-idle",
        "sdscblue_1w_43207292.swf",
        1152,
        (Row("budget_j", "PC_IDLE, 49 %: energy of the budget's days (1152 x 95 W x 259,200 s)", "2.836685e10", "J"),),
        parameters={"budget_share": CLOSED_SHARE, "energy_reservation": "none"},
    ),
    _case(
        "energybud-shut",
        "sdscblue_1w_30499265.swf",
        1152,
        (
            Row(
                "budget_j",
                "energyBud_SHUT, 70 %: energy of the budget's days",
                "4.087962e10",
                "J",
                "share",
                0.01,
                _OPEN,
            ),
            Row("week_j", "energyBud_SHUT, 70 %: energy of the week", "1.125269e11", "J", "share", 0.01, _OPEN),
        ),
        parameters={"budget_share": 0.7, "energy_reservation": "head", "switches_off": True, "spares_idle": False},
    ),
    _case(
        "energybud-idle",
        "metacentrum_1w_1362700000.swf.gz",
        3356,
        (
            Row(
                "budget_j",
                "energyBud_IDLE, 100 %, by EASY (the budget never binds): energy of the budget's days",
                "1.607149e11",
                "J",
                "share",
                0.01,
                _NEIGHBOURS,
            ),
            Row("week_j", "the same: energy of the week", "3.721657e11", "J", "share", 0.01, _NEIGHBOURS),
            Row("end_s", "the same: last end", "2846196", "s", "share", 0.01, _NEIGHBOURS),
        ),
        scheduler="easy_backfilling",
    ),
)
