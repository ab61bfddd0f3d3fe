"""Weeks of logs under an energy budget, of the study of CCGrid 2017: joules as its notebook prints them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gridsched.energy import grid_energy_between
from gridsched.model.platform import Platform, PState, homogeneous_cluster
from gridsched.reproduction.known.cases import Case, Input, Row, Values
from gridsched.runs.run import run
from gridsched.sim.scenario import Scenario

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


def _case(id: str, log: str, nodes: int, parameters: dict[str, float | str | bool], rows: tuple[Row, ...]) -> Case:
    def measure(paths: tuple[Path, ...]) -> Values:
        scenario = Scenario(
            machine(nodes), str(paths[0]), "easy_energy_budget", parameters, driver="reference", walltime="kill"
        )
        result = run(scenario)
        joules = grid_energy_between(result.trace, np.array([0.0, BEGIN_S, END_S, WEEK_S]))
        return {"budget_j": float(joules[1]), "week_j": float(joules.sum())}

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
    "what overtakes the head decides: where it leaves idle nodes what they draw (spares_idle) the budget's days have "
    "3.41e10 J and the week 1.06e11 J; as the authors' programs count it (one idle node, and what runs beyond the "
    "window) 4.04e10 and 1.151e11 J; the rest is their choice among neighbouring nodes, which is not done again"
)
CASES = (
    _case(
        "pc-idle",
        "sdscblue_1w_43207292.swf",
        1152,
        {"budget_share": CLOSED_SHARE, "energy_reservation": "none"},
        (Row("budget_j", "PC_IDLE, 49 %: energy of the budget's days (1152 x 95 W x 259,200 s)", "2.836685e10", "J"),),
    ),
    _case(
        "energybud-shut",
        "sdscblue_1w_30499265.swf",
        1152,
        {"budget_share": 0.7, "energy_reservation": "head", "switches_off": True, "spares_idle": False},
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
    ),
)
