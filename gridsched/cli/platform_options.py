"""The options of ``gridsched platform from-table`` and what they mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import typer

from gridsched.errors import InputError
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.xml_units import parse_quantity
from gridsched.platform_io.xml_writer import NetworkLinks


@dataclass
class PlatformOptions:
    """How a platform is made from a table of machines, as options of the command line."""

    join: Annotated[
        str | None, typer.Option(help="TOP500 list of the same date: brings cores and Rmax.")
    ] = None
    year: Annotated[
        int | None, typer.Option(help="Year of the list, where Rmax names no unit.")
    ] = None
    hosts: Annotated[
        int | None, typer.Option(help="Number of hosts, dealt to the rows; default one for each.")
    ] = None
    rows: Annotated[str | None, typer.Option(help="Ranks to use, as '1-50,60'.")] = None
    name: Annotated[
        str | None, typer.Option(help="Regular expression on name, computer or site.")
    ] = None
    speed_levels: Annotated[
        str | None, typer.Option(help="Simulated speeds in flop/s, dealt to the rows in order.")
    ] = None
    speed_uniform: Annotated[
        str | None, typer.Option(help="Simulated speeds drawn from LO:HI, in flop/s.")
    ] = None
    efficiency: Annotated[
        str | None, typer.Option(help="scaled (s_sim*eps_real/s_real), real or nearest.")
    ] = None
    idle_share: Annotated[
        float | None, typer.Option(help="Idle power as a share of busy power, 0 to 1.")
    ] = None
    idle_power_w: Annotated[
        str | None, typer.Option(help="Idle power in W, or drawn from LO:HI.")
    ] = None
    off_power_w: Annotated[float | None, typer.Option(help="Power while off, in W.")] = None
    pstates: Annotated[
        str | None, typer.Option(help="Speed and power factors, as '1:1;0.8:0.6'.")
    ] = None
    cores: Annotated[int | None, typer.Option(help="Cores of each host; default 1.")] = None
    clusters: Annotated[
        str | None,
        typer.Option(
            help="A number, or what clusters share: host, speed, row, cluster, site, computer, "
            "year, name."
        ),
    ] = None
    cluster_bandwidth: Annotated[
        str | None, typer.Option(help="Of the uplinks, as 1GBps or one for each: 1GBps,10Gbps.")
    ] = None
    cluster_latency: Annotated[
        str | None, typer.Option(help="Of the uplinks, as 50us or one for each.")
    ] = None
    host_bandwidth: Annotated[
        str | None, typer.Option(help="Between host and cluster router; default unlimited.")
    ] = None
    host_latency: Annotated[str | None, typer.Option(help="Likewise; default 0s.")] = None
    master: Annotated[bool, typer.Option("--master", help="Add a host that computes nothing.")] = (
        False
    )
    master_bandwidth: Annotated[
        str | None, typer.Option(help="Between master and uplinks; default unlimited.")
    ] = None
    master_latency: Annotated[str | None, typer.Option(help="Likewise; default 0s.")] = None
    seed: Annotated[int, typer.Option(help="Seed of all that is drawn.")] = 0

    def recipe(self) -> PlatformRecipe:
        """Return what is to be made of the table.

        Raises
        ------
        InputError
            If an option is no quantity of its kind.
        """
        return PlatformRecipe(
            hosts=self.hosts,
            rows=self.rows,
            name_pattern=self.name,
            speed_levels=_quantities("--speed-levels", self.speed_levels, "speed", ","),
            speed_uniform=_range("--speed-uniform", self.speed_uniform, "speed"),
            efficiency=self.efficiency,
            idle_share=self.idle_share,
            idle_power_w=_range("--idle-power-w", self.idle_power_w, "watts"),
            off_power_w=self.off_power_w,
            pstates=_pstates(self.pstates),
            cores=self.cores,
            clusters=_number_or_text(self.clusters),
            cluster_bandwidth=_quantities(
                "--cluster-bandwidth", self.cluster_bandwidth, "bandwidth", ","
            ),
            cluster_latency_s=_quantities("--cluster-latency", self.cluster_latency, "time", ","),
            master=self.master,
            seed=self.seed,
        )

    def network(self) -> NetworkLinks:
        """Return the links inside the clusters and to the master.

        Raises
        ------
        InputError
            If an option is no bandwidth or latency.
        """
        return NetworkLinks(
            _link_value("--host-bandwidth", self.host_bandwidth, "bandwidth", math.inf),
            _link_value("--host-latency", self.host_latency, "time", 0.0),
            _link_value("--master-bandwidth", self.master_bandwidth, "bandwidth", math.inf),
            _link_value("--master-latency", self.master_latency, "time", 0.0),
        )


def _number_or_text(text: str | None) -> int | str | None:
    return int(text) if text and text.isdecimal() else text


def _quantity(option: str, text: str, kind: str) -> float:
    """Return one value; speeds may lack their unit, which the option's help names."""
    try:
        if kind == "watts":
            return float(text)
        value, has_unit = parse_quantity(text.strip(), kind)
    except ValueError as error:
        raise InputError(f"{option}: {error}.") from None
    if not has_unit and kind != "speed":
        example = "125MBps" if kind == "bandwidth" else "50us"
        raise InputError(f"{option} is {text!r}; it needs a unit, as {example}.")
    if not value >= 0 or (kind == "bandwidth" and value == 0):
        raise InputError(f"{option} is {text!r}; a positive value is legal.")
    return value


def _quantities(option: str, text: str | None, kind: str, separator: str) -> tuple[float, ...]:
    if text is None:
        return ()
    return tuple(_quantity(option, part, kind) for part in text.split(separator))


def _range(option: str, text: str | None, kind: str) -> tuple[float, float] | None:
    values = _quantities(option, text, kind, ":")
    if not values:
        return None
    if len(values) > 2 or (len(values) == 1 and kind != "watts"):
        raise InputError(f"{option} is {text!r}; LO:HI is legal.")
    return values[0], values[-1]


def _link_value(option: str, text: str | None, kind: str, default: float) -> float:
    return default if text is None else _quantity(option, text, kind)


def _pstates(text: str | None) -> tuple[tuple[float, float], ...] | None:
    if text is None:
        return None
    from gridsched.platform_io.own_table import parse_pstates

    try:
        return parse_pstates(text)
    except ValueError as error:
        raise InputError(f"--pstates: {error}.") from None
