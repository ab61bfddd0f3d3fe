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
_MACHINE = "is not read. Give the machine by --nodes or --platform, its partitions by --partitions"
_LOG = "is not read. Make a log of ended jobs by 'sacct -P -X' (.sacct)"
#: What the head of a file holds -> what the file is, and what to do.
_KINDS = tuple(
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
