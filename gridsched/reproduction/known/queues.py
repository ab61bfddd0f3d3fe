"""Queues whose means theory knows, and the same queues in a simulation: closed forms beside replicates.

Arrivals are a Poisson stream of rate `lambda`, `mu` is the rate of service of a host, `rho` the load of
each, `S` a service time. Times in s; waiting times are from submission to start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gridsched.analysis.statistics import Interval, t_interval
from gridsched.arrays import Floats
from gridsched.drivers.simgrid_library import is_installed
from gridsched.energy import ENERGY_TOLERANCE, relative_difference
from gridsched.errors import SimulationError
from gridsched.metrics.run_metrics import waiting_time_s
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.seeds import random_stream
from gridsched.model.tasks import make_tasks
from gridsched.reproduction.known.cases import Case, Row
from gridsched.runs.run import RunResult, run
from gridsched.scenario import Scenario

#: Confidence of the intervals that theory is held against.
CONFIDENCE = 0.99
#: Share of the first tasks, which find an empty system, that is left out of mean waiting times.
WARM_UP = 0.1
SEED = 2026
MEAN_SERVICE_S = 100.0
#: Power of a host that idles, computes, is off, boots [W].
IDLE_W, BUSY_W, OFF_W, BOOT_W = 95.0, 190.738, 9.75, 125.17
#: How long a host boots, and is idle before it is switched off [s]; being off for so long pays.
BOOT_S, TIMEOUT_S = 50.0, 100.0


def erlang_c(servers: int, offered: float) -> float:
    """Return the probability that an arrival waits in M/M/c.

    Parameters
    ----------
    servers : int
    offered : float
        ``lambda / mu``, less than `servers`.

    References
    ----------
    .. [1] L. Kleinrock, "Queueing Systems, volume 1: theory", Wiley 1975, section 3.5 (not read).
    """
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sum(terms) + last)


def mmc_wait_s(servers: int, rate: float, service_s: float) -> float:
    """Return the mean waiting time of M/M/c [s]; ``rho / (mu - lambda)`` of one server.

    Parameters
    ----------
    servers : int
    rate : float
        ``lambda`` [1/s].
    service_s : float
        ``1 / mu`` [s].
    """
    return erlang_c(servers, rate * service_s) / (servers / service_s - rate)


def mg1_wait_s(rate: float, service_s: float, second_moment: float) -> float:
    """Return the mean waiting time of M/G/1 by Pollaczek and Khinchine [s].

    Parameters
    ----------
    rate, service_s : float
        [1/s], [s].
    second_moment : float
        ``E[S^2]`` [s^2].
    """
    return rate * second_moment / (2.0 * (1.0 - rate * service_s))


def cobham_waits_s(rates: tuple[float, float], service_s: float, second_moment: float) -> tuple[float, float]:
    """Return the mean waiting times of two priorities without preemption, the higher first [s].

    Parameters
    ----------
    rates : tuple of float
        Of the higher and the lower priority [1/s].
    service_s, second_moment : float
        Of both, [s] and [s^2].

    References
    ----------
    .. [1] A. Cobham, "Priority assignment in waiting line problems", Operations Research 2(1), 1954,
       doi:10.1287/opre.2.1.70 (not read).
    """
    residual_s = sum(rates) * second_moment / 2.0
    high, both = rates[0] * service_s, sum(rates) * service_s
    return residual_s / (1.0 - high), residual_s / ((1.0 - high) * (1.0 - both))


def set_up_wait_s(rate: float, service_s: float, second_moment: float, boot_s: float, timeout_s: float) -> float:
    """Return the mean waiting time of M/G/1 whose idle server is switched off after a time-out [s].

    The first of a busy period waits for the boot with the probability that none came before the time-out; it
    is M/G/1 with an exceptional first service.

    Parameters
    ----------
    rate, service_s, second_moment : float
        As in `mg1_wait_s`.
    boot_s, timeout_s : float
        [s].

    References
    ----------
    .. [1] P. D. Welch, "On a generalized M/G/1 queuing process in which the first customer of each busy
       period receives exceptional service", Operations Research 12(5), 1964, doi:10.1287/opre.12.5.736
       (not read).
    """
    boots = math.exp(-rate * timeout_s)
    extra = boots * (2.0 * boot_s + rate * boot_s**2) / (2.0 * (1.0 + rate * boots * boot_s))
    return mg1_wait_s(rate, service_s, second_moment) + extra


def mean_power_w(servers: int, rate: float, service_s: float) -> float:
    """Return what servers that stay on draw on average [W]."""
    return servers * IDLE_W + rate * service_s * (BUSY_W - IDLE_W)


def set_up_power_w(rate: float, service_s: float, boot_s: float, timeout_s: float) -> float:
    """Return what the server of `set_up_wait_s` draws on average [W], by its cycles of being idle and busy.

    Parameters
    ----------
    rate, service_s, boot_s, timeout_s : float
        As there.
    """
    boots = math.exp(-rate * timeout_s)
    idle_s, off_s, booting_s = (1.0 - boots) / rate, boots / rate, boots * boot_s
    share = (1.0 - rate * service_s) / (idle_s + off_s + booting_s)
    return share * (idle_s * IDLE_W + off_s * OFF_W + booting_s * BOOT_W) + rate * service_s * BUSY_W


def _exponential(rng: np.random.Generator, n: int) -> Floats:
    return rng.exponential(MEAN_SERVICE_S, n)


def _two_lengths(rng: np.random.Generator, n: int) -> Floats:
    """Nine of ten half as long as the mean, the tenth 5.5 times."""
    return np.where(rng.random(n) < 0.9, 0.5, 5.5) * MEAN_SERVICE_S


def _constant(rng: np.random.Generator, n: int) -> Floats:
    return np.full(n, MEAN_SERVICE_S)


@dataclass(frozen=True)
class Queue:
    """A queue that theory knows.

    Attributes
    ----------
    id : str
    service : callable
        ``service(rng, n)``: service times [s] of the mean `MEAN_SERVICE_S`.
    second_moment : float
        ``E[S^2]`` [s^2].
    theory : callable
        ``theory(rate, second_moment)`` of arrivals [1/s]: values by the names of `measured`.
    scheduler : str
    parameters : mapping
    servers : int
    classes : bool
        Whether tasks have one of two priorities, as their quality of service.
    """

    id: str
    service: Callable[[np.random.Generator, int], Floats]
    second_moment: float
    theory: Callable[[float, float], dict[str, float]]
    scheduler: str = "wq"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    servers: int = 1
    classes: bool = False

    def expected(self, load: float) -> dict[str, float]:
        """Return the results of theory at a load: waiting times [s] and power [W]."""
        return self.theory(load * self.servers / MEAN_SERVICE_S, self.second_moment)

    def scenario(self, load: float, tasks: int, replicate: int, driver: str) -> Scenario:
        """Return one replicate: Poisson arrivals at a load, until so many tasks have come."""
        arrivals = random_stream(SEED, "arrivals", replicate)
        rng = random_stream(SEED, "tasks", replicate)
        gaps_s = arrivals.exponential(MEAN_SERVICE_S / (load * self.servers), tasks)
        columns: dict[str, Any] = {}
        if self.classes:
            is_high = random_stream(SEED, "task_types", replicate).random(tasks) < 0.5
            columns["attributes"] = {"qos": np.where(is_high, "high", "low").tolist()}
        service_s = self.service(rng, tasks)
        made = make_tasks(service_s, np.cumsum(gaps_s), name=f"{self.id} at load {load:g}", **columns)
        return Scenario(self.platform, made, self.scheduler, dict(self.parameters), driver=driver)  # type: ignore[arg-type]

    @cached_property
    def platform(self) -> Platform:
        """Equal hosts of 1 flop/s, so that flops are seconds; they can be switched off."""
        states = (PState(1.0, IDLE_W, IDLE_W, BUSY_W),)
        booting = (PState(0.0, BOOT_W, BOOT_W, BOOT_W),)
        hosts = tuple(
            Host(f"n{k}", states, off_w=OFF_W, boot_time_s=BOOT_S, switch_pstates=booting, boot_pstate=1)
            for k in range(self.servers)
        )
        return Platform(hosts, (Cluster("nodes", tuple(range(self.servers))),), name=self.id)

    def measured(self, result: RunResult) -> dict[str, float]:
        """Return the same of a run, without its first tasks for waiting times."""
        wait_s, first = waiting_time_s(result.trace), int(WARM_UP * len(result.trace.tasks))
        wait_s, values = wait_s[first:], {}
        if self.classes:
            qos = result.trace.tasks.attributes["qos"]
            for code, name in enumerate(qos.names):
                values[f"wait_{name}_s"] = float(wait_s[qos.codes[first:] == code].mean())
        else:
            values["wait_s"] = float(wait_s.mean())
        energy_j = result.energy.grid_total() if result.plugin_j is None else result.energy_plugin_j
        return {**values, "power_w": energy_j / result.trace.horizon_s}


_EXPONENTIAL2 = 2.0 * MEAN_SERVICE_S**2


def _plain(servers: int, wait_s: Callable[[float, float], float]) -> Callable[[float, float], dict[str, float]]:
    """Return the theory of servers that stay on."""
    return lambda rate, moment: {"wait_s": wait_s(rate, moment), "power_w": mean_power_w(servers, rate, MEAN_SERVICE_S)}


def _of_classes(rate: float, moment: float) -> dict[str, float]:
    high, low = cobham_waits_s((rate / 2, rate / 2), MEAN_SERVICE_S, moment)
    return {"wait_high_s": high, "wait_low_s": low, "power_w": mean_power_w(1, rate, MEAN_SERVICE_S)}


def _of_set_up(rate: float, moment: float) -> dict[str, float]:
    return {
        "wait_s": set_up_wait_s(rate, MEAN_SERVICE_S, moment, BOOT_S, TIMEOUT_S),
        "power_w": set_up_power_w(rate, MEAN_SERVICE_S, BOOT_S, TIMEOUT_S),
    }


def _pk(rate: float, moment: float) -> float:
    return mg1_wait_s(rate, MEAN_SERVICE_S, moment)


QUEUES = {
    each.id: each
    for each in (
        Queue("M/M/1", _exponential, _EXPONENTIAL2, _plain(1, lambda rate, _: mmc_wait_s(1, rate, MEAN_SERVICE_S))),
        Queue(
            "M/M/4",
            _exponential,
            _EXPONENTIAL2,
            _plain(4, lambda rate, _: mmc_wait_s(4, rate, MEAN_SERVICE_S)),
            servers=4,
        ),
        Queue("M/G/1", _two_lengths, (0.9 * 0.5**2 + 0.1 * 5.5**2) * MEAN_SERVICE_S**2, _plain(1, _pk), "fcfs"),
        Queue("M/D/1", _constant, MEAN_SERVICE_S**2, _plain(1, _pk), "fcfs"),
        Queue(
            "M/M/1 with two priorities",
            _exponential,
            _EXPONENTIAL2,
            _of_classes,
            "fcfs",
            {"order": "multifactor(PriorityWeightQOS=1000, qos={'high': 2, 'low': 1})"},
            classes=True,
        ),
        Queue(
            "M/M/1 with set-up",
            _exponential,
            _EXPONENTIAL2,
            _of_set_up,
            "idle_off",
            {"scheduler": "wq", "timeout_s": TIMEOUT_S},
        ),
    )
}
LOADS = (0.5, 0.8)
_WORDS = {
    "wait_s": "mean wait",
    "wait_high_s": "mean wait of the higher priority",
    "wait_low_s": "mean wait of the lower priority",
    "power_w": "mean power",
}


@dataclass(frozen=True)
class Comparison:
    """A mean by theory, and by replicates.

    Attributes
    ----------
    queue : str
    load : float
    value : str
        ``wait_s``, ``wait_high_s``, ``wait_low_s`` [s] or ``power_w`` [W].
    theory : float
    found : Interval
        Mean over replicates, with the interval of `CONFIDENCE`.
    """

    queue: str
    load: float
    value: str
    theory: float
    found: Interval

    @property
    def holds(self) -> bool:
        """Whether theory lies inside the interval."""
        return self.found.low <= self.theory <= self.found.high


def case_of(queue: Queue, load: float, *, tasks: int = 2000, replicates: int = 20) -> Case:
    """Return a queue at a load as a case with known results, on both drivers where SimGrid is installed.

    Parameters
    ----------
    queue : Queue
    load : float
    tasks, replicates : int
        As in `compare`.

    Raises
    ------
    SimulationError
        When it is measured, if the drivers differ.
    """
    rows = tuple(
        Row(
            name,
            f"{queue.id}, load {load:g}: {_WORDS[name]}",
            repr(theory),
            "W" if name == "power_w" else "s",
            "interval",
        )
        for name, theory in queue.expected(load).items()
    )
    drivers: list[Literal["simgrid", "reference"]] = ["reference", *(["simgrid"] if is_installed() else [])]  # type: ignore[list-item]

    def measure(_: tuple[Path, ...]) -> dict[str, float | Interval]:
        found = [compare(queue, load, tasks=tasks, replicates=replicates, driver=each) for each in drivers]
        for each in zip(*found, strict=True):
            means = [one.found.mean for one in each]
            if relative_difference(min(means), max(means)) > ENERGY_TOLERANCE:
                raise SimulationError(f"{queue.id} at load {load:g}: {each[0].value} is {means} on {drivers}.")
        return {each.value: each.found for each in found[-1]}

    id = f"queue-{queue.id.lower().replace(' ', '-').replace('/', '')}-{load:g}"
    return Case(
        id, f"queueing theory, {tasks:,} tasks x {replicates}", f"gridsched reproduce known --only {id}", measure, rows
    )


def compare(
    queue: Queue,
    load: float,
    *,
    tasks: int,
    replicates: int = 20,
    driver: Literal["simgrid", "reference"] = "reference",
) -> list[Comparison]:
    """Simulate a queue at a load, and set its means beside theory.

    Parameters
    ----------
    queue : Queue
    load : float
        ``rho``, less than 1.
    tasks : int
        Of each replicate.
    replicates : int
    driver : {"simgrid", "reference"}
    """
    found = [queue.measured(run(queue.scenario(load, tasks, k, driver))) for k in range(replicates)]
    return [
        Comparison(queue.id, load, name, theory, t_interval([each[name] for each in found], CONFIDENCE))
        for name, theory in queue.expected(load).items()
    ]


CASES = tuple(case_of(queue, load) for queue in QUEUES.values() for load in LOADS)
