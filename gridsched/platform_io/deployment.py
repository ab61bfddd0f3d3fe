"""SimGrid deployment files: which of our actors runs on which host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gridsched.errors import InputError, did_you_mean
from gridsched.files.output_files import write_whole
from gridsched.model.platform import Platform
from gridsched.platform_io.xml_document import Element, read_document
from gridsched.platform_io.xml_values import quote_value
from gridsched.platform_io.xml_writer import XML_HEAD

FUNCTIONS = ("master", "worker")
#: Attributes of SimGrid's actors that gridsched does not follow, and the values without effect.
_WITHOUT_EFFECT = {"start_time": (0.0, -1.0), "kill_time": (-1.0,), "on_failure": ("DIE",)}


@dataclass(frozen=True)
class Deployment:
    """Hosts by role.

    Attributes
    ----------
    master : str
        Host of the one master actor.
    workers : tuple of str
        Hosts with a worker actor, in the order of the file.
    """

    master: str
    workers: tuple[str, ...]


def read_deployment(path: str | Path, platform: Platform) -> Deployment:
    """Read a deployment file and check it against the platform.

    ``<actor host="..." function="master"/>`` exactly once, ``function="worker"`` (one argument:
    the master's host) at most once for each host.

    Raises
    ------
    InputError
        Naming file, line, host and function.
    """
    hosts = platform.everyone
    known = [host.name for host in hosts]
    names = frozenset(known)
    still = {host.name for host in hosts if not host.computes}
    masters: list[str] = []
    workers: dict[str, Element] = {}
    root = read_document(path)
    for element in root.walk():
        if element.tag not in ("actor", "process"):
            continue
        where = f"{path}, line {element.line}"
        host = element.attributes.get("host", "")
        function = element.attributes.get("function", "")
        if host not in names:
            raise InputError(f"{where}: no host {host!r} in {platform.name}. {did_you_mean(host, known)}".strip())
        if function not in FUNCTIONS:
            raise InputError(f"{where}: no actor function {function!r}; gridsched has 'master' and 'worker'.")
        _refuse_attributes(element, where)
        if function == "master":
            masters.append(host)
        elif host in workers:
            raise InputError(
                f"{where}: host {host!r} has a worker already (line {workers[host].line}); one "
                "worker serves all cores of a host."
            )
        elif host in still:
            raise InputError(
                f"{where}: host {host!r} has speed 0 and computes nothing; a worker needs a host that does."
            )
        else:
            workers[host] = element
    if not masters and not workers and any(e.tag in ("zone", "AS", "host") for e in root.children):
        raise InputError(f"{path}: is a platform file (it holds hosts and no actors); give a deployment file.")
    if len(masters) != 1 or not workers:
        raise InputError(
            f"{path}: found {len(masters)} master and {len(workers)} worker actors; exactly one "
            "master and at least one worker are needed."
        )
    for worker in workers.values():
        arguments = [c.attributes.get("value", "") for c in worker.children if c.tag == "argument"]
        if arguments not in ([], masters):
            raise InputError(
                f"{path}, line {worker.line}: this worker's arguments are {arguments}; its one "
                f"argument is the master's host, {masters[0]!r}."
            )
    return Deployment(masters[0], tuple(workers))


def _refuse_attributes(element: Element, where: str) -> None:
    """Refuse what would make an actor begin later, end early or begin again."""
    for name, default in _WITHOUT_EFFECT.items():
        text = element.attributes.get(name)
        if text is None or text.strip() in default:
            continue
        try:
            is_default = float(text) in default
        except ValueError:
            is_default = False
        if not is_default:
            raise InputError(
                f"{where}: the actor on {element.attributes.get('host')!r} has {name}={text!r}; "
                "gridsched's actors are there from the beginning to the end of a run. Take it out, or "
                "switch the host off (--hosts-off)."
            )


def write_deployment(deployment: Deployment, path: str | Path, *, force: bool = False) -> None:
    """Write a deployment file that `read_deployment` and SimGrid read.

    Parameters
    ----------
    deployment : Deployment
    path : path
    force : bool
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        If the file exists and `force` is not set, or cannot be written.
    """
    master = quote_value(deployment.master)
    lines = ['<platform version="4.1">', f'  <actor host={master} function="master"/>']
    for worker in deployment.workers:
        argument = f"<argument value={master}/>"
        lines.append(f'  <actor host={quote_value(worker)} function="worker">{argument}</actor>')
    write_whole(path, XML_HEAD + "\n".join([*lines, "</platform>", ""]), force=force)
