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
_Driver = Literal["simgrid", "reference"]
#: Heading of the options that only SimGrid's driver knows.
_SIMGRID = {"group": "SimGrid"}


def _key(description: str, example: str | None = None, *, of: dict[str, Any] | None = None, **limits: float) -> Any:
    """Return what is said of a key: its meaning, an example, the heading that it is `of`, limits."""
    return Field(description=description, examples=example and [example], json_schema_extra=of, **limits)  # type: ignore[call-overload]


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

    driver: Annotated[_Driver, _key("simgrid, or reference: no SimGrid, no network.")] = "simgrid"
    network: Annotated[
        Literal["platform", "none"] | None,
        _key("platform: bytes cross its links; or none. Default: platform if a task has bytes.", of=_SIMGRID),
    ] = None
    deployment: Annotated[
        str | Path | None, _key("SimGrid deployment (.xml): which actor runs where.", "FILE", of=OF_HOSTS)
    ] = None
    pstate: Annotated[
        int | str | None,
        _key(
            "P-state of hosts, instead of the platform file's (0 where it says none): "
            "K, or NAME_PATTERN=K; repeatable.",
            "[PATTERN=]K",
            of={"repeatable": True, **OF_HOSTS},
        ),
    ] = None
    hosts_off: Annotated[
        tuple[str, ...], _key("Host that is switched off at the start; repeatable.", "HOST", of=OF_HOSTS)
    ] = ()
    power: Annotated[
        tuple[str, ...],
        _key(
            "Power of hosts in W, beside or instead of the platform's: "
            "IDLE:EPSILON:BUSY, NAME_PATTERN=IDLE:EPSILON:BUSY, or none: no energy; measured: jobs of a log "
            "draw what was measured (measured:clamped: within the range of a node); repeatable.",
            "[PATTERN=]W:W:W",
        ),
    ] = ()
    master: Annotated[
        str | None,
        _key(
            "Host that hands out tasks and computes nothing; default the one with the property role=master.",
            "HOST",
            of=OF_HOSTS,
        ),
    ] = None
    failures: Annotated[
        str | None,
        _key(
            "Hosts fail and are repaired, with these means in seconds: mtbf=S,mttr=S[,distribution=weibull,shape=X].",
            "mtbf=S,mttr=S",
            of=OF_HOSTS,
        ),
    ] = None
    way: Annotated[
        Literal["auto", "maestro", "actors"], _key("maestro (fast, no messages), actors, or auto.", of=_SIMGRID)
    ] = "auto"
    cfg: Annotated[tuple[str, ...], _key("SimGrid's --cfg; repeatable.", "KEY:VALUE", of=_SIMGRID)] = ()
    log: Annotated[
        tuple[str, ...],
        _key("SimGrid's --log; repeatable. What it says goes to stderr.", "CATEGORY.KEY:VALUE", of=_SIMGRID),
    ] = ()
    share_idle: Annotated[
        Literal["cores", "node"],
        _key(
            "Idle power of a busy host: charged to what runs there by cores, or left to the node "
            "(the energy of tasks).",
            of=OF_SHARED_NODES,
        ),
    ] = "cores"
    tariff: Annotated[
        Tariff | None,
        _key(
            "What the bag pays, and what operating the hosts costs.",
            of={"group": "Money (with --price a run has a profit)"},
        ),
    ] = None
    carbon: Annotated[
        Carbon | None,
        _key("Carbon intensity of power by time and site.", of={"group": "Carbon (with --carbon a run has grams)"}),
    ] = None
    timeout_s: Annotated[
        float | None, _key("End a run, or the reading before it, after this wall time.", gt=0, le=MAX_TIMEOUT_S)
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
