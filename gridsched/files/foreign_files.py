"""Files that people have at hand and gridsched does not read: what they are, and what to give instead."""

from __future__ import annotations

import re
from pathlib import Path

from gridsched.errors import InputError
from gridsched.files.input_files import opened

#: The beginning of a file determines what it is [byte].
_HEAD = 1 << 16
_MOST = 4 << 30
_WORKFLOW = "'gridsched workflow import' makes tables of it, which are run"
_MACHINE = (
    "describes the machine of a log: give it by --slurm-conf, or make a platform and a table of partitions of it by "
    "'gridsched platform from-slurm'"
)
_LOG = "is not read. Make a log of ended jobs by 'sacct -P -X' (.sacct)"
#: The same of files that lie beside a slurm.conf and hold nothing that is read.
_BESIDE_SLURM_CONF = tuple(
    (re.compile(pattern, re.MULTILINE), f"is {what}; {advice}")
    for pattern, what, advice in (
        (
            r"^[ \t]*(?i:SwitchName|BlockName)\s*=|\A(?s:.{0,4000}?)^- *topology:",
            "a topology.conf of Slurm",
            "switches are read from the property switches of hosts or zones of a platform",
        ),
        (
            r"^[ \t]*(?i:NodeName\s*=\s*\S+\s+)?"
            r"(?i:Name\s*=\s*\S+(?=[^\n]*\b(?:File|Count|Type|Cores|MultipleFiles)\s*=)|AutoDetect\s*=)",
            "a gres.conf of Slurm",
            "resources of nodes are read from Gres= in slurm.conf",
        ),
        (
            r"^(?:Cluster|Parent|Account|User) - |\A(?![^\n]*JobID)(?:Cluster|Account|User|Name|QOS)\|",
            "a dump or table of sacctmgr",
            "priorities of QOS and shares of accounts are given by order=multifactor(...), limits are not read",
        ),
    )
)
#: What the head of a file holds -> what the file is, and what to do.
_KINDS = tuple((pattern, f"{said}.") for pattern, said in _BESIDE_SLURM_CONF) + tuple(
    (re.compile(pattern, re.MULTILINE), f"is {what}; {advice}.")
    for pattern, what, advice in (
        (r'\A\s*\{(?s:.*?)"(?:schemaVersion"\s*:|workflow"\s*:\s*\{)', "a workflow in WfFormat", _WORKFLOW),
        (r'\A\s*\{\s*"(?:meta|jobs)"(?s:.*?)"[Ss]lurm"\s*:', "JSON of a command of Slurm", f"it {_LOG}"),
        (r"\A(?s:.*?)<adag\b", "a workflow in DAX", _WORKFLOW),
        (r"\A\s*(?:strict\s+)?digraph\b", "a workflow in DOT", _WORKFLOW),
        (r"^JobId=\d+ ", "the output of 'scontrol show job'", f"it {_LOG}"),
        (r"^NodeName=(?s:.{0,4000}?)\bCPUAlloc=", "the output of 'scontrol show node'", f"it {_MACHINE}"),
        (
            r"^PartitionName=\S+(?: ?\n +| )AllowGroups=(?s:.{0,4000}?)(?:\bAllocNodes=|\bTotalCPUs=)",
            "the output of 'scontrol show partition'",
            f"it {_MACHINE}",
        ),
        (r"\AConfiguration data as of ", "the output of 'scontrol show config'", f"it {_MACHINE}"),
        (
            r"^[ \t]*(?i:SlurmctldHost|ControlMachine|SelectType|SchedulerType|NodeName|PartitionName)\s*=",
            "a configuration of Slurm (slurm.conf)",
            f"it {_MACHINE}",
        ),
        (
            r"\A\s*(?:<!(?i:doctype)\s+(?i:html)|<(?i:html|head|meta|body|div|table)\b)",
            "a page in HTML",
            "save it as CSV or XLSX",
        ),
    )
)


def beside_slurm_conf(path: str | Path) -> str | None:
    """Return what a file of Slurm is that holds nothing of nodes and partitions, and what to do; None of others."""
    head = (head_of(path) or b"").decode(errors="replace").lstrip("\ufeff")
    return next((said for pattern, said in _BESIDE_SLURM_CONF if pattern.search(head)), None)


def foreign_kind(content: str | bytes) -> str | None:
    """Return what the content of a file is, and what to give instead, behind 'FILE:'; None if that is unknown.

    It is for contents that a reader has refused already.
    """
    head = content[:_HEAD] if isinstance(content, str) else content[:_HEAD].decode(errors="replace")
    head = head.lstrip("\ufeff")
    return next((said for pattern, said in _KINDS if pattern.search(head)), None)


def foreign_file(path: str | Path) -> str | None:
    """Return the same of a file, plain or compressed by gzip; None, too, if it cannot be read."""
    head = head_of(path)
    return None if head is None else foreign_kind(head)


def head_of(path: str | Path) -> bytes | None:
    """Return the first 64 KiB of a file, plain or compressed by gzip; None if it cannot be read."""
    try:
        with opened(path, _MOST) as stream:
            return stream.read(_HEAD)
    except InputError:
        return None  # the reader of the file reports it
