"""How a run is done, declared once: the rules and what the driver is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from gridsched.model.carbon import Carbon
from gridsched.model.records import check_record, keys_of
from gridsched.model.rules import OF_HOSTS, OF_SHARED_NODES, Rules
from gridsched.model.tariff import Tariff
from gridsched.platform_io.overrides import read_pstates

#: Longest wall time of a run that can be asked for [s]: three years.
MAX_TIMEOUT_S = 1e8
#: Heading of the options that only SimGrid's driver knows.
_SIMGRID = {"group": "SimGrid"}


@dataclass(frozen=True, kw_only=True)
class RunSettings(Rules):
    """Rules and driver of a run; options, study keys and provenance follow from the fields.

    Attributes
    ----------
    driver : {"simgrid", "reference"}
    network : {"platform", "none"} or None
        Whether inputs and results cross the platform's network; None: if any task has bytes.
    deployment : path, optional
        SimGrid deployment file: which actor runs on which host (SimGrid driver).
    pstate : int or str, optional
        P-state of all hosts, or of some by their names (``"old-*=1,new-*=0"``), in the place of
        what the platform file says; see `gridsched.platform_io.overrides`.
    hosts_off : tuple of str
        Hosts switched off at the start.
    power : tuple of str
        Power of hosts in the place of what the platform file says; see
        `gridsched.platform_io.overrides`.
    master : str, optional
        Host that computes nothing, in the place of the one with the property ``role=master``.
    failures : str, optional
        Failures of hosts that are drawn; see `gridsched.model.failures`.
    way : {"auto", "maestro", "actors"}
        How the SimGrid driver runs a scenario without network (see docs, "which way runs when").
    cfg, log : tuple of str
        SimGrid's ``--cfg`` and ``--log`` items.
    share_idle : {"cores", "node"}
        Where several executions run on a host: whether its idle power is charged to them, by the
        cores that they have, or left to the host.
    tariff : Tariff, optional
        What the bag pays and what operating the hosts costs; with it a run has a profit.
    carbon : Carbon, optional
        Carbon intensity of power by time and site; with it a run has grams.
    timeout_s : float, optional
        Wall time after which a run is ended with an error [s].

    Raises
    ------
    InputError
        Where a value is out of range.
    """

    driver: Annotated[
        Literal["simgrid", "reference"], Field(description="simgrid, or reference: no SimGrid, no network.")
    ] = "simgrid"
    network: Annotated[
        Literal["platform", "none"] | None,
        Field(
            description="platform: bytes cross its links; or none. Default: platform if a task has bytes.",
            json_schema_extra=_SIMGRID,
        ),
    ] = None
    deployment: Annotated[
        str | Path | None,
        Field(
            description="SimGrid deployment (.xml): which actor runs where.",
            examples=["FILE"],
            json_schema_extra=OF_HOSTS,
        ),
    ] = None
    pstate: Annotated[
        int | str | None,
        Field(
            description="P-state of hosts, instead of the platform file's (0 where it says none): "
            "K, or NAME_PATTERN=K; repeatable.",
            examples=["[PATTERN=]K"],
            json_schema_extra={"repeatable": True, **OF_HOSTS},
        ),
    ] = None
    hosts_off: Annotated[
        tuple[str, ...],
        Field(
            description="Host that is switched off at the start; repeatable.",
            examples=["HOST"],
            json_schema_extra=OF_HOSTS,
        ),
    ] = ()
    power: Annotated[
        tuple[str, ...],
        Field(
            description="Power of hosts in W, beside or instead of the platform's: "
            "IDLE:EPSILON:BUSY, NAME_PATTERN=IDLE:EPSILON:BUSY, or none: no energy; measured: jobs of a log "
            "draw what was measured (measured:clamped: within the range of a node); repeatable.",
            examples=["[PATTERN=]W:W:W"],
        ),
    ] = ()
    master: Annotated[
        str | None,
        Field(
            description="Host that hands out tasks and computes nothing; default the one with the "
            "property role=master.",
            examples=["HOST"],
            json_schema_extra=OF_HOSTS,
        ),
    ] = None
    failures: Annotated[
        str | None,
        Field(
            description="Hosts fail and are repaired, with these means in seconds: "
            "mtbf=S,mttr=S[,distribution=weibull,shape=X].",
            examples=["mtbf=S,mttr=S"],
            json_schema_extra=OF_HOSTS,
        ),
    ] = None
    way: Annotated[
        Literal["auto", "maestro", "actors"],
        Field(description="maestro (fast, no messages), actors, or auto.", json_schema_extra=_SIMGRID),
    ] = "auto"
    cfg: Annotated[
        tuple[str, ...],
        Field(description="SimGrid's --cfg; repeatable.", examples=["KEY:VALUE"], json_schema_extra=_SIMGRID),
    ] = ()
    log: Annotated[
        tuple[str, ...],
        Field(
            description="SimGrid's --log; repeatable. What it says goes to stderr.",
            examples=["CATEGORY.KEY:VALUE"],
            json_schema_extra=_SIMGRID,
        ),
    ] = ()
    share_idle: Annotated[
        Literal["cores", "node"],
        Field(
            description="Idle power of a busy host: charged to what runs there by cores, or left to the node "
            "(the energy of tasks).",
            json_schema_extra=OF_SHARED_NODES,
        ),
    ] = "cores"
    tariff: Annotated[
        Tariff | None,
        Field(
            description="What the bag pays, and what operating the hosts costs.",
            json_schema_extra={"group": "Money (with --price a run has a profit)"},
        ),
    ] = None
    carbon: Annotated[
        Carbon | None,
        Field(
            description="Carbon intensity of power by time and site.",
            json_schema_extra={"group": "Carbon (with --carbon a run has grams)"},
        ),
    ] = None
    timeout_s: Annotated[
        float | None,
        Field(gt=0, le=MAX_TIMEOUT_S, description="End a run, or the reading before it, after this wall time."),
    ] = None

    def __post_init__(self) -> None:
        check_record(self, RunSettings)
        read_pstates(self.pstate)


def given_keys(record: RunSettings) -> dict[str, Any]:
    """Return the keys of `RunSettings` that are set in a record; with them `with_keys` makes it."""
    given = {}
    for name, key in keys_of(RunSettings).items():
        value = getattr(record, key.path[0])
        if len(key.path) > 1:
            value = None if value is None else getattr(value, key.path[1])
        if value != key.info.default:
            given[name] = value
    return given
