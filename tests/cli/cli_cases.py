"""Small files that the tests of the commands share, right ones and wrong ones."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: EX-A (algorithms A0): speeds 100, 50, 25 flop/s; busy power 50, 20, 5 W; idle power 4 W.
EX_A_TASKS = "id,flops\n1,1000\n2,500\n3,2000\n4,1500\n5,250\n"
HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'


def platform_text(body: str, version: str = "4.1") -> str:
    """Return a SimGrid platform file with the given content."""
    return f'{HEAD}<platform version="{version}">\n{body}\n</platform>\n'


def zone_xml(body: str) -> str:
    """Return a platform file with one zone, which starts in line 4."""
    return platform_text(f'<zone id="z" routing="Full">\n{body}\n</zone>')


def host_xml(
    name: str = "h1", speed: str = "100f", watts: str | None = "4:50:50", extra: str = "", properties: str = ""
) -> str:
    """Return one host."""
    energy = "" if watts is None else f'<prop id="wattage_per_state" value="{watts}"/>'
    return f'<host id="{name}" speed="{speed}"{extra}>{energy}{properties}</host>'


def star_xml(hosts: int = 3, master: bool = True) -> str:
    """Return a platform whose hosts reach the master by links of 10 byte/s and 0.5 s."""
    names = [f"h{k}" for k in range(1, hosts + 1)]
    lines = [
        '<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>',
        '<zone id="z" routing="Full">',
    ]
    role = '<prop id="role" value="master"/>' if master else ""
    lines.append(host_xml("m", watts="0:0:0", properties=role))
    lines += [host_xml(name) for name in names]
    lines += [f'<link id="l{n}" bandwidth="10Bps" latency="500ms"/>' for n in names]
    lines += [f'<route src="m" dst="{n}"><link_ctn id="l{n}"/></route>' for n in names]
    lines += [
        f'<route src="{a}" dst="{b}"><link_ctn id="l{a}"/><link_ctn id="l{b}"/></route>'
        for k, a in enumerate(names)
        for b in names[k + 1 :]
    ]
    return platform_text("\n".join([*lines, "</zone>"]))


def deployment_xml(master: str, workers: list[str]) -> str:
    """Return a deployment file."""
    lines = [f'<actor host="{master}" function="master"/>']
    lines += [f'<actor host="{name}" function="worker"><argument value="{master}"/></actor>' for name in workers]
    return platform_text("\n".join(lines))
