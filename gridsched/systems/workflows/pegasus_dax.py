"""Pegasus DAX: jobs with what they use, and children with their parents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from gridsched.errors import InputError, counted
from gridsched.files.input_files import read_bytes
from gridsched.platform_io.xml_document import Element, parse_xml
from gridsched.systems.workflows.recorded_tasks import Recorded, number

#: What describes files, programs and runs, but is no part of the graph.
_DESCRIPTIONS = ("executable", "file", "filename", "invoke", "metadata", "profile", "transformation")
#: What becomes of a file that is used so: it is read, made, or neither.
_READS, _MAKES, _NEITHER = ("input", "inout"), ("output", "inout"), ("none",)


def read_dax(path: Path, most: int) -> tuple[list[Recorded], list[str]]:
    """Read a workflow in DAX; return its tasks, and what has been left out.

    Raises
    ------
    InputError
        Naming file, line and task.
    """
    root = parse_xml(path, read_bytes(path, most, "a workflow in DAX"), with_text=(), names_others=False)
    if root.tag.rpartition(":")[2] != "adag":
        raise InputError(f"{path}: a workflow in DAX starts with <adag>; found <{root.tag}>.")
    tasks: dict[str, Recorded] = {}
    left_out: dict[str, Element] = {}
    notes: list[str] = []
    for each in root.children:
        if each.tag == "job":
            task = _job(path, each, notes)
            if task.name in tasks:
                raise InputError(f"{task.where}: there is a task {task.name!r} already.")
            tasks[task.name] = task
        elif each.tag not in (*_DESCRIPTIONS, "child"):
            left_out[each.attributes.get("id", f"<{each.tag}> in line {each.line}")] = each
    _add_parents(path, root, tasks, left_out)
    return list(tasks.values()), [*_left_out_notes(left_out), *_first_of(notes)]


def _add_parents(path: Path, root: Element, tasks: dict[str, Recorded], left_out: dict[str, Element]) -> None:
    """Note which tasks each one waits for: for what has been left out those that it waits for, too."""
    waits: dict[str, list[str]] = {}
    for child in root.children:
        if child.tag != "child":
            continue
        ref = child.attributes.get("ref", "")
        if ref not in tasks and ref not in left_out:
            raise InputError(f"{path}, line {child.line}: {ref!r} waits for others, but is not a task.")
        parents = [each.attributes.get("ref", "") for each in child.children if each.tag == "parent"]
        waits.setdefault(ref, []).extend(parents)
    for name, task in tasks.items():
        task.parents = dict.fromkeys(_through(name, waits, left_out), 0.0)


def _through(name: str, waits: dict[str, list[str]], left_out: dict[str, Element]) -> Iterator[str]:
    """Yield what a task waits for, in order; in the place of what has been left out what that waits for."""
    seen: set[str] = set()
    ahead = waits.get(name, [])[::-1]
    while ahead:
        parent = ahead.pop()
        if parent not in left_out:
            yield parent
        elif parent not in seen:
            seen.add(parent)
            ahead += waits.get(parent, [])[::-1]


def _left_out_notes(left_out: dict[str, Element]) -> list[str]:
    """Return which sub-workflows and other elements are left out, in words."""
    notes = []
    for tag in sorted({each.tag for each in left_out.values()}):
        names = [name for name, each in left_out.items() if each.tag == tag]
        what = counted(len(names), "sub-workflow" if tag in ("dax", "dag") else "element")
        shown = ", ".join(repr(name[:80]) for name in names[:5]) + ", ..." * (len(names) > 5)
        notes.append(f"{what} <{tag}> left out ({shown}): who waits for one waits for its parents")
    return notes


def _first_of(notes: list[str]) -> list[str]:
    """Return the first of equal notes, and how many more there are."""
    return notes[:1] + [f"{counted(len(notes) - 1, 'further use')} of files left out so"] * (len(notes) > 1)


def _job(path: Path, job: Element, notes: list[str]) -> Recorded:
    """Return a job with the files that it reads and makes; note uses that are neither."""
    name, where = job.attributes.get("id", ""), f"{path}, line {job.line}"
    task = Recorded(where, name, number(job.attributes.get("runtime"), where, f"runtime of task {name!r}"))
    for uses in job.children:
        if uses.tag != "uses":
            continue
        file = uses.attributes.get("file", uses.attributes.get("name", ""))
        line = f"{path}, line {uses.line}"
        size = math.nan
        if "size" in uses.attributes:
            size = number(uses.attributes["size"], line, f"size of {file!r} of task {name!r}")
        link = uses.attributes.get("link", "")
        if link not in (*_READS, *_MAKES, *_NEITHER):
            notes.append(
                f"file {file[:80]!r} of task {name[:80]!r} left out (line {uses.line}): its link is {link[:80]!r}, not "
                "input, output or inout"
            )
        for links, files in ((_READS, task.reads), (_MAKES, task.makes)):
            if link not in links:
                continue
            before = files.setdefault(file, size)
            if math.isnan(before):
                files[file] = size
            elif not math.isnan(size) and before != size:
                raise InputError(f"{line}: task {name!r} uses file {file!r} with two sizes, {before:g} and {size:g}.")
    return task
