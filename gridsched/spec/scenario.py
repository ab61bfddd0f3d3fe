"""One run, declared: platform, workload, scheduler, seed, driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from gridsched.errors import InputError
from gridsched.model.budget import EnergyBudget
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.platform import Platform
from gridsched.model.rules import Rules
from gridsched.model.system import System
from gridsched.model.task_types import SystemWorkload, TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.platform_io.deployment import read_deployment
from gridsched.platform_io.xml_reader import read_platform
from gridsched.policy.base import Scheduler
from gridsched.policy.registry import make_scheduler
from gridsched.workloads import read_workload
from gridsched.workloads.load import read_system_workload

#: Longest wall time of a run that can be asked for [s]: three years.
MAX_TIMEOUT_S = 1e8


@dataclass(frozen=True)
class Scenario:
    """Everything that determines a run.

    Attributes
    ----------
    platform : Platform or path, or None
        A path names a SimGrid platform file; None where the workload's generator makes its system.
    tasks : Tasks or path
        A path names a workload file.
    scheduler : str or Scheduler
        An id of the registry, or an instance (it is cloned, so it can be used again).
    parameters : mapping
        Keyword parameters where `scheduler` is an id.
    seed : int
        Seed of the scheduler's random stream.
    replicate : int
        Which repetition of the seed.
    driver : {"simgrid", "reference"}
    network : {"platform", "none"} or None
        Whether inputs and results cross the platform's network; None: if any task has bytes.
    deployment : path, optional
        SimGrid deployment file: which actor runs on which host (SimGrid driver).
    files : path, optional
        Input files (``file,size_bytes,location``) where `tasks` is a path.
    pstate : int
        P-state of all hosts, unless the scheduler chooses.
    mapping_interval_s : float, optional
        Distance of mapping events [s].
    types : TaskTypes, optional
        ETC and APC where the tasks have types.
    pending_slots : int
        Tasks a host fixes behind the executing one (1 in paper 000).
    budget : EnergyBudget, optional
        Joules that each period may draw.
    horizon_s : float, optional
        No task starts at or after it [s].
    window_s : tuple of float, optional
        Begin and end of the time that the ``window_`` metrics cover [s].
    charge_mapping_time : bool
        Mapping events wait for the computation of the last one, by the wall clock.
    hosts_off : tuple of str
        Hosts switched off at the start.
    way : {"auto", "maestro", "actors"}
        How the SimGrid driver runs a scenario without network (see docs, "which way runs when").
    cfg, log : tuple of str
        SimGrid's ``--cfg`` and ``--log`` items.
    timeout_s : float, optional
        Wall time after which a SimGrid run is ended with an error [s].
    platform_file : path, optional
        The SimGrid file that a `platform` object was read from: SimGrid then loads that file,
        network and all. Without it, SimGrid loads one written from the object.
    """

    platform: Platform | str | Path | None
    tasks: Tasks | str | Path
    scheduler: str | Scheduler = "wq"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    replicate: int = 0
    driver: Literal["simgrid", "reference"] = "simgrid"
    network: Literal["platform", "none"] | None = None
    deployment: str | Path | None = None
    files: str | Path | None = None
    pstate: int = 0
    mapping_interval_s: float | None = None
    types: TaskTypes | None = None
    pending_slots: int = 0
    budget: EnergyBudget | None = None
    horizon_s: float | None = None
    window_s: tuple[float, float] | None = None
    charge_mapping_time: bool = False
    hosts_off: tuple[str, ...] = ()
    way: Literal["auto", "maestro", "actors"] = "auto"
    cfg: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    timeout_s: float | None = None
    platform_file: str | Path | None = None

    def loaded(self) -> Scenario:
        """Return the scenario with its files read; it can be run as often as needed.

        Raises
        ------
        InputError
            If a file cannot be read, or the scenario has no platform or two of them.
        """
        changes: dict[str, Any] = {}
        if not isinstance(self.tasks, Tasks):
            whole = read_system_workload(self.tasks)
            if whole is not None:
                return self.with_system(whole)
        if self.platform is None:
            raise InputError("The scenario has no platform, and its workload makes none.")
        if not isinstance(self.platform, Platform):
            changes["platform"] = read_platform(self.platform)
            changes["platform_file"] = self.platform
        if not isinstance(self.tasks, Tasks):
            changes["tasks"] = read_workload(self.tasks, files=self.files)
        return replace(self, **changes) if changes else self

    def with_system(self, whole: SystemWorkload) -> Scenario:
        """Return the scenario on a generated system; what is set here already goes first.

        Raises
        ------
        InputError
            If the scenario has a platform or input files of its own.
        """
        for name in ("platform", "files", "deployment"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"{whole.tasks.name}: this workload makes its own system; leave out "
                    f"--{name} {getattr(self, name)}."
                )
        changes: dict[str, Any] = {
            "platform": whole.platform, "tasks": whole.tasks, "types": whole.types,
            "pending_slots": self.pending_slots or whole.pending_slots,
            "charge_mapping_time": self.charge_mapping_time or whole.charge_mapping_time,
        }  # fmt: skip
        for name in ("mapping_interval_s", "budget", "horizon_s", "window_s"):
            if getattr(self, name) is None:
                changes[name] = getattr(whole, name)
        return replace(self, **changes)

    def deployed(self) -> Scenario:
        """Return the loaded scenario with only the hosts computing that a deployment gives work.

        Raises
        ------
        InputError
            If the deployment file cannot be read or does not fit the platform.
        """
        if self.deployment is None:
            return self
        workers = read_deployment(self.deployment, self.platform).workers
        return replace(self, platform=self.platform.restricted_to(workers))

    def make_scheduler(self) -> Scheduler:
        """Return a fresh scheduler."""
        if isinstance(self.scheduler, Scheduler):
            return self.scheduler.clone()
        return make_scheduler(self.scheduler, self.parameters)

    @property
    def scheduler_name(self) -> str:
        """The id, or the class name of an instance."""
        if isinstance(self.scheduler, Scheduler):
            return type(self.scheduler).__name__
        return self.scheduler


def check_scenario(scenario: Scenario) -> None:
    """Raise `InputError` where options are out of range or contradict each other."""
    if scenario.driver not in ("simgrid", "reference"):
        raise InputError(f"Driver {scenario.driver!r}: legal are 'simgrid' and 'reference'.")
    if scenario.network not in (None, "platform", "none"):
        raise InputError(f"Network {scenario.network!r}: legal are 'platform' and 'none'.")
    if scenario.way not in ("auto", "maestro", "actors"):
        raise InputError(f"Way {scenario.way!r}: legal are 'auto', 'maestro' and 'actors'.")
    if scenario.seed < 0 or scenario.replicate < 0:
        raise InputError(f"Seed {scenario.seed} and replicate must be at least 0.")
    interval = scenario.mapping_interval_s
    if interval is not None and not SMALLEST <= interval <= LARGEST:
        raise InputError(
            f"mapping_interval_s is {interval:g}; it must be greater than 0 s and at most "
            f"{LARGEST:g} s."
        )
    if scenario.pending_slots < 0:
        raise InputError(f"pending_slots is {scenario.pending_slots}; it must be at least 0.")
    if scenario.horizon_s is not None and not 0 < scenario.horizon_s <= LARGEST:
        raise InputError(f"horizon_s is {scenario.horizon_s:g}; it must be greater than 0 s.")
    if scenario.window_s is not None and not 0 <= scenario.window_s[0] < scenario.window_s[1]:
        raise InputError(
            f"window_s is {scenario.window_s}; its end must lie after its begin, both at least 0 s."
        )
    if scenario.charge_mapping_time and interval is None and scenario.types is None:
        raise InputError("charge_mapping_time needs mapping events: give --mapping-interval-s.")
    if scenario.timeout_s is not None and not 0 < scenario.timeout_s <= MAX_TIMEOUT_S:
        raise InputError(
            f"timeout_s is {scenario.timeout_s:g}; it must be greater than 0 s and at most "
            f"{MAX_TIMEOUT_S:g} s."
        )
    for item in scenario.cfg:
        if not re.fullmatch(r"[^:\s]+:.*", item):
            raise InputError(f"--cfg={item}: SimGrid's options read KEY:VALUE.")
    for item in scenario.log:
        if not re.fullmatch(r"no_loc|[^:\s]+:.+", item):
            raise InputError(
                f"--log={item}: SimGrid's log settings read CATEGORY.KEY:VALUE, as "
                "root.thresh:info."
            )
    if scenario.files is not None and getattr(scenario.tasks, "files", scenario) is None:
        raise InputError(f"{scenario.files}: input files go with a workload that is a file.")
    if scenario.driver == "reference":
        if scenario.network == "platform":
            raise InputError("The reference driver has no network; use --driver simgrid.")
        if scenario.deployment is not None:
            raise InputError("A deployment file needs SimGrid; use --driver simgrid.")
        if scenario.cfg or scenario.log:
            raise InputError("--cfg and --log are SimGrid's; use --driver simgrid.")


def make_system(scenario: Scenario) -> System:
    """Return what the scheduler is prepared for; the scenario must be loaded."""
    scenario.platform.check_pstate(scenario.pstate)
    tasks = scenario.tasks
    if scenario.types is not None:
        estimates = scenario.types.estimates(tasks)
    else:
        estimates = FlopsEstimates(scenario.platform, tasks)
    return System(
        platform=scenario.platform,
        estimates=estimates,
        pstate=scenario.pstate,
        files=tasks.files,
        rules=Rules(
            mapping_interval_s=scenario.mapping_interval_s,
            pending_slots=scenario.pending_slots,
            budget=scenario.budget,
            horizon_s=scenario.horizon_s,
            charge_mapping_time=scenario.charge_mapping_time,
        ),
    )
