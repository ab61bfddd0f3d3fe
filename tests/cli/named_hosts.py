"""Which host, by name, runs each job of a log, and what each draws: read from the files alone.

It imports nothing of gridsched: platform, log, partitions and deployment are read here once more, as
docs/platform_files.md and docs/shared_nodes.md word it, and the first come is served first, laid on the first nodes
that have room. `draw` makes such files of a seed.
"""

from __future__ import annotations

import csv
import random
import re
import tomllib
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path


@dataclass
class Machine:
    """A host as the platform file has it."""

    name: str
    zone: str
    speed: float
    cores: int
    watts: tuple[float, float, float]
    off_w: float
    is_marked: bool


@dataclass
class Case:
    """Files of a run, and its options."""

    folder: Path
    allocation: str = "cores"
    has_table: bool = False
    master: str | None = None
    has_deployment: bool = False
    off: list[str] = field(default_factory=list)

    def words(self, driver: str) -> list[str]:
        """Return the options of the command."""
        words = ["--platform", self.folder / "p.xml", "--workload", self.folder / "log.sacct"]
        words += ["--allocation", self.allocation, "--scheduler", "fcfs", "--driver", driver]
        words += ["--partitions", self.folder / "p.toml"] if self.has_table else []
        words += ["--master", self.master] if self.master else []
        words += ["--deployment", self.folder / "d.xml"] if self.has_deployment else []
        return [str(word) for word in [*words, *(each for name in self.off for each in ("--hosts-off", name))]]


# Contents of the files.


def machines(path: Path) -> list[Machine]:
    """Return all hosts in the order of the file, those of clusters spelled out."""
    found: list[Machine] = []

    def walk(element, zone: str) -> None:
        for child in element:
            if child.tag == "zone":
                walk(child, child.get("id"))
            elif child.tag == "host":
                found.append(machine(child, child.get("id"), zone))
            elif child.tag == "cluster":
                first, last = map(int, child.get("radical").split("-"))
                for number in range(first, last + 1):
                    found.append(machine(child, f"{child.get('prefix')}{number}{child.get('suffix')}", child.get("id")))

    walk(ET.parse(path).getroot(), "")
    return found


def machine(element, name: str, zone: str) -> Machine:
    properties = {each.get("id"): each.get("value") for each in element.findall("prop")}
    watts = tuple(float(each) for each in properties["wattage_per_state"].split(":"))
    return Machine(
        name,
        zone,
        float(element.get("speed").removesuffix("Gf")),
        int(element.get("core", "1")),
        watts,
        float(properties.get("wattage_off", "0")),
        properties.get("role") == "master",
    )


def computing(case: Case) -> list[Machine]:
    """Return the hosts that compute in the run, in the order of the file."""
    everyone = machines(case.folder / "p.xml")
    if case.has_deployment:
        actors = ET.parse(case.folder / "d.xml").getroot().findall("actor")
        workers = {each.get("host") for each in actors if each.get("function") == "worker"}
        return [each for each in everyone if each.name in workers]
    marked = next((each.name for each in everyone if each.is_marked), None)
    return [each for each in everyone if each.speed > 0 and each.name != (case.master or marked)]


def partitions(case: Case) -> list[tuple[str, list[Machine], int]]:
    """Return names, hosts that compute, and priorities: of the table, its default one first, or of the zones."""
    hosts = computing(case)
    if not case.has_table:
        zones = dict.fromkeys(each.zone for each in machines(case.folder / "p.xml"))
        parts = [(zone, [each for each in hosts if each.zone == zone], 0) for zone in zones]
        return [part for part in parts if part[1]]
    tables = tomllib.loads((case.folder / "p.toml").read_text())["partition"]
    parts = []
    for table in sorted(tables, key=lambda each: not each.get("default", False)):
        patterns = [name for text in table["nodes"] for name in spelled_out(text)]
        own = [each for each in hosts if any(fnmatchcase(each.name, pattern) for pattern in patterns)]
        parts.append((table["name"], own, table.get("priority", 0)))
    return parts


def spelled_out(text: str) -> list[str]:
    """Return the names of ``a[1-3,5]``, one pair of brackets."""
    match = re.fullmatch(r"(.*)\[(.*)\](.*)", text)
    if match is None:
        return text.split(",")
    names = []
    for part in match[2].split(","):
        first, _, last = part.partition("-")
        names += [f"{match[1]}{number}{match[3]}" for number in range(int(first), int(last or first) + 1)]
    return names


@dataclass
class Job:
    """A row of the log, and the place where it ran."""

    id: str
    submit: float
    run: float
    nodes: int
    cpus: int
    partition: str
    part: int = -1
    hosts: list[str] = field(default_factory=list)
    start: float = 0.0
    end: float = 0.0


def jobs_of(path: Path) -> list[Job]:
    with path.open() as stream:
        rows = list(csv.DictReader(stream, delimiter="|"))
    first = min(float(row["Submit"]) for row in rows)
    return [
        Job(
            row["JobIDRaw"],
            float(row["Submit"]) - first,
            float(row["ElapsedRaw"]),
            int(row["NNodes"]),
            int(row["AllocCPUS"]),
            row["Partition"],
        )
        for row in rows
    ]


# What follows.


def taken_of(case: Case, job: Job, host: Machine) -> int:
    """Return the cores that a part of a job takes of a host."""
    return host.cores if case.allocation == "nodes" else -(-job.cpus // job.nodes)


def schedule(case: Case) -> list[Job]:
    """Serve the first come first; a job that waits closes the nodes of its partition to those behind it."""
    hosts, parts, jobs = computing(case), partitions(case), jobs_of(case.folder / "log.sacct")
    fastest = max(each.speed for each in hosts)
    for job in jobs:
        fitting = [
            k
            for k, (name, own, _) in enumerate(parts)
            if job.partition in ("", name) and sum(taken_of(case, job, each) <= each.cores for each in own) >= job.nodes
        ]
        job.part = fitting[0]
    free = {each.name: 0 if each.name in case.off else each.cores for each in hosts}
    to_come, waiting, running, done = list(jobs), [], [], []
    while to_come or waiting or running:
        now = min([job.end for job in running] + [job.submit for job in to_come[:1]])
        for job in [each for each in running if each.end <= now]:
            running.remove(job)
            done.append(job)
            for host in hosts:
                free[host.name] += taken_of(case, job, host) if host.name in job.hosts else 0
        while to_come and to_come[0].submit <= now:
            waiting.append(to_come.pop(0))
        closed: set[str] = set()
        for job in sorted(waiting, key=lambda each: -parts[each.part][2]):
            own = parts[job.part][1]
            room = [h for h in own if h.name not in closed and 0 < taken_of(case, job, h) <= free[h.name]]
            if len(room) < job.nodes:
                closed.update(each.name for each in own)
                continue
            job.hosts, job.start = [each.name for each in room[: job.nodes]], now
            job.end = now + job.run * fastest / room[0].speed
            for host in room[: job.nodes]:
                free[host.name] -= taken_of(case, job, host)
            waiting.remove(job)
            running.append(job)
    return sorted(done, key=lambda job: int(job.id))


def joules(case: Case, jobs: list[Job]) -> dict[str, float]:
    """Return what each host draws up to the end of the last job, also those that compute nothing."""
    horizon, found = max(job.end for job in jobs), {}
    working = {each.name for each in computing(case)}
    for host in machines(case.folder / "p.xml"):
        idle_w, least_w, most_w = host.watts
        if host.speed == 0:
            found[host.name] = most_w * horizon  # SimGrid takes it as fully loaded
            continue
        if host.name in case.off:
            found[host.name] = host.off_w * horizon
            continue
        own = [job for job in jobs if host.name in job.hosts and host.name in working]
        times = sorted({0.0, horizon, *(job.start for job in own), *(job.end for job in own)})
        total = 0.0
        for begin, end in pairwise(times):
            busy = sum(taken_of(case, job, host) for job in own if job.start <= begin < job.end)
            total += (end - begin) * (least_w + (most_w - least_w) * busy / host.cores if busy else idle_w)
        found[host.name] = total
    return found


# Results of a run, in its exported files.


def exported(folder: Path) -> tuple[dict[str, tuple[list[str], float, float]], dict[str, dict[str, str]]]:
    """Return hosts, start and end of each job, and the rows of energy by names of hosts."""

    def rows(name: str) -> list[dict[str, str]]:
        with (folder / name).open() as stream:
            return list(csv.DictReader(stream))

    names = {int(row["id"]): row["name"] for row in rows("hosts.csv")}
    placed = {}
    for row in rows("jobs.csv"):
        hosts = []
        for part in row["allocated_resources"].split():
            first, _, last = part.partition("-")
            hosts += [names[h] for h in range(int(first), int(last or first) + 1)]
        placed[row["job_id"]] = hosts, float(row["starting_time"]), float(row["finish_time"])
    return placed, {row["host"]: row for row in rows("host_energy.csv")}


# Files of a seed.

HEAD = '<?xml version=\'1.0\'?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
LOG = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|State|Partition"


def draw(seed: int, folder: Path, *, deploys: bool) -> Case:
    """Write the files of a run of a seed; with `deploys` it may have a deployment."""
    rng, able = random.Random(seed), []
    while len(able) < 3:
        case = Case(folder, rng.choice(["cores", "cores", "nodes"]))
        write_platform(case, rng)
        everyone = machines(folder / "p.xml")
        able = [each.name for each in everyone if each.speed > 0]
    if deploys and rng.random() < 0.6:
        workers = rng.sample(able, rng.randint(2, len(able)))
        actors = [f'<actor host="{name}" function="worker"/>' for name in workers]
        actors.insert(0, f'<actor host="{rng.choice(everyone).name}" function="master"/>')
        (folder / "d.xml").write_text(f"{HEAD}{''.join(actors)}</platform>")
        case.has_deployment = True
    elif rng.random() < 0.75:
        case.master = rng.choice(everyone).name
    case.has_table = rng.random() < 0.6
    if case.has_table:
        write_partitions(case, rng)
    write_log(case, rng)
    return case


def write_platform(case: Case, rng: random.Random) -> None:
    """Write one to three zones, the hosts of each of one speed; one host may be marked as the master."""
    cores, zones, hosts = rng.randint(2, 4), [], []
    for z in range(rng.randint(1, 3)):
        speed = rng.choice([1, 2, 4])
        watts = sorted(rng.randint(1, 1000) for _ in range(3))
        if rng.random() < 0.3:
            size = rng.randint(2, 4)
            zones.append(
                f'<cluster id="z{z}" prefix="z{z}c" suffix="" radical="0-{size - 1}" speed="{speed}Gf" '
                f'core="{cores}" bw="1GBps" lat="1us">'
                f'<prop id="wattage_per_state" value="{":".join(map(str, watts))}"/>'
                f'<prop id="wattage_off" value="{rng.randint(0, 9)}"/></cluster>'
            )
            continue
        own = []
        for n in range(rng.randint(1, 5)):
            watts = sorted(rng.randint(1, 1000) for _ in range(3))
            hosts.append(f"z{z}n{n}")
            kind = f'speed="{0 if n and rng.random() < 0.1 else speed}Gf" '
            kind += f'core="{cores if case.allocation == "nodes" else rng.randint(1, 4)}"'
            own.append(
                f'<host id="{hosts[-1]}" {kind}><prop id="wattage_per_state" value="{":".join(map(str, watts))}"/>'
                f'<prop id="wattage_off" value="{rng.randint(0, 9)}"/></host>'
            )
        rng.shuffle(own)
        zones.append(f'<zone id="z{z}" routing="Full">{"".join(own)}</zone>')
    if len(hosts) > 1 and rng.random() < 0.4:
        chosen = f'<host id="{rng.choice(hosts)}"'
        head = re.compile(re.escape(chosen) + "[^>]*>")
        zones = [head.sub(lambda match: f'{match[0]}<prop id="role" value="master"/>', zone) for zone in zones]
    text = f'<zone id="all" routing="Full">{"".join(zones)}</zone>'
    (case.folder / "p.xml").write_text(f"{HEAD}{text}</platform>")


def write_partitions(case: Case, rng: random.Random) -> None:
    """Write a table of partitions, each of hosts of one speed: names, host lists and patterns, which may overlap."""
    by_speed: dict[float, list[Machine]] = defaultdict(list)
    for each in computing(case):
        by_speed[each.speed].append(each)
    everyone = machines(case.folder / "p.xml")
    tables, default = [], rng.randrange(4)
    for k in range(rng.randint(1, 3)):
        hosts = rng.choice(list(by_speed.values()))
        kind, chosen = rng.choice(["names", "list", "pattern"]), rng.choice(hosts)
        if kind == "pattern":
            nodes = [f"{chosen.zone}?*"]
        elif kind == "list":  # also hosts that compute nothing
            last = max(int(each.name[3:]) for each in everyone if each.zone == chosen.zone)
            nodes = [f"{chosen.name[:3]}[0-{last}]"]
        else:
            nodes = [each.name for each in rng.sample(hosts, rng.randint(1, len(hosts)))]
            nodes += [each.name for each in everyone if each not in computing(case) and rng.random() < 0.2]
        tables.append(
            f'[[partition]]\nname = "p{k}"\nnodes = {nodes!r}\npriority = {rng.randint(0, 1)}\n'
            + ("default = true\n" if k == default else "")
        )
    (case.folder / "p.toml").write_text("\n".join(tables))


def write_log(case: Case, rng: random.Random) -> None:
    """Write jobs that fit on the hosts of their partition that are on; some hosts are off from the start."""
    parts = partitions(case)
    hosts = [each.name for each in computing(case)]
    case.off = [name for name in hosts if rng.random() < 0.15]
    if any(all(each.name in case.off for each in own) for _, own, _ in parts):
        case.off = []
    rows, submit = [LOG], 0
    for k in range(1, rng.randint(4, 10)):
        name, own, _ = rng.choice(parts)
        there = [each for each in own if each.name not in case.off]
        nodes = rng.randint(1, len(there))
        most = sorted((each.cores for each in there), reverse=True)[nodes - 1]
        named = name if case.off or rng.random() < 0.85 else ""
        submit += rng.choice([0, 1, 5, 30])
        rows.append(
            f"{k}|{submit}|{rng.randint(1, 15) * 4}|60|{nodes}|{nodes * rng.randint(1, most)}|COMPLETED|{named}"
        )
    (case.folder / "log.sacct").write_text("\n".join(rows) + "\n")
