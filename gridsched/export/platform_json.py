"""A platform as ``platform.json`` and back."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from gridsched.files.json_files import Fields, is_number, is_text, read_json
from gridsched.model.platform import Cluster, Host, Platform, PState


def platform_values(platform: Platform) -> dict[str, Any]:
    """Return a platform as a JSON object; a P-state is [speed, idle, epsilon, busy power]."""

    def host_values(host: Host) -> dict[str, Any]:
        return {
            "name": host.name, "cores": host.cores, "off_w": host.off_w,
            "boot_time_s": host.boot_time_s, "has_energy": host.has_energy,
            "pstates": [[p.speed, p.idle_w, p.epsilon_w, p.busy_w] for p in host.pstates],
        }  # fmt: skip

    return {
        "name": platform.name,
        "warnings": list(platform.warnings),
        "master": host_values(platform.master) if platform.master else None,
        "bystanders": [host_values(host) for host in platform.bystanders],
        "clusters": [
            {"name": c.name, "hosts": list(c.hosts), "latency_s": c.latency_s,
             "bandwidth": c.bandwidth if math.isfinite(c.bandwidth) else None}
            for c in platform.clusters
        ],
        "hosts": [host_values(host) for host in platform.hosts],
    }  # fmt: skip


def _host(fields: Fields) -> Host:
    def is_pstate(item: object) -> bool:
        return (
            isinstance(item, list) and len(item) == 4 and all(map(is_number, item))
            and min(item) >= 0
        )  # fmt: skip

    pstates = fields.values("pstates", is_pstate, "four numbers >= 0 for each P-state")
    if not pstates:
        fields.refuse(f"{fields.where}.pstates", pstates, "at least one P-state")
    return Host(
        fields.text("name"), tuple(PState(*map(float, p)) for p in pstates),
        fields.whole("cores", 1), fields.number("off_w"), fields.number("boot_time_s"),
        fields.flag("has_energy"),
    )  # fmt: skip


def read_platform(path: Path) -> Platform:
    """Return the platform of a ``platform.json``; `InputError` names the field at fault."""
    fields = Fields(path, read_json(path))
    clusters = []
    for cluster in fields.objects("clusters"):
        members = cluster.values("hosts", lambda v: type(v) is int, "host ids")
        bandwidth = cluster.optional("bandwidth", cluster.number)
        clusters.append(Cluster(
            cluster.text("name"), tuple(members),
            math.inf if bandwidth is None else bandwidth, cluster.number("latency_s"),
        ))  # fmt: skip
    return Platform(
        hosts=tuple(map(_host, fields.objects("hosts"))),
        clusters=tuple(clusters),
        master=fields.optional("master", lambda name: _host(fields.object(name))),
        bystanders=tuple(map(_host, fields.objects("bystanders"))),
        name=fields.text("name"),
        warnings=tuple(fields.values("warnings", is_text, "texts")),
    )
