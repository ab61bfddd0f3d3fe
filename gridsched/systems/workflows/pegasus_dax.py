"""Pegasus DAX: jobs with what they use, and children with their parents."""

from __future__ import annotations

from pathlib import Path

from gridsched.errors import InputError
from gridsched.files.input_files import read_bytes
from gridsched.platform_io.xml_document import Element, parse_xml
from gridsched.systems.workflows.recorded_tasks import Recorded, number


def read_dax(path: Path, most: int) -> list[Recorded]:
    """Read a workflow in DAX.

    Raises
    ------
    InputError
        Naming file, line and task.
    """
    root = parse_xml(path, read_bytes(path, most, "a workflow in DAX"), with_text=(), names_others=False)
    if root.tag.rpartition(":")[2] != "adag":
        raise InputError(f"{path}: a workflow in DAX starts with <adag>; found <{root.tag}>.")
    tasks: dict[str, Recorded] = {}
    for job in root.children:
        if job.tag != "job":
            continue
        task = _job(path, job)
        if task.name in tasks:
            raise InputError(f"{task.where}: there is a task {task.name!r} already.")
        tasks[task.name] = task
    for child in root.children:
        if child.tag == "child":
            ref = child.attributes.get("ref", "")
            if ref not in tasks:
                raise InputError(f"{path}, line {child.line}: {ref!r} waits for others, but is not a task.")
            for each in child.children:
                if each.tag == "parent":
                    tasks[ref].parents[each.attributes.get("ref", "")] = 0.0
    return list(tasks.values())


def _job(path: Path, job: Element) -> Recorded:
    """Return a job with the files that it reads and makes."""
    name, where = job.attributes.get("id", ""), f"{path}, line {job.line}"
    task = Recorded(where, name, number(job.attributes.get("runtime"), where, f"runtime of task {name!r}"))
    for uses in job.children:
        if uses.tag != "uses":
            continue
        file = uses.attributes.get("file", uses.attributes.get("name", ""))
        line = f"{path}, line {uses.line}"
        size = number(uses.attributes.get("size", "0"), line, f"size of {file!r} of task {name!r}")
        link = uses.attributes.get("link")
        for links, files in ((("input", "inout"), task.reads), (("output", "inout"), task.makes)):
            if link in links and files.setdefault(file, size) != size:
                raise InputError(
                    f"{line}: task {name!r} uses file {file!r} with two sizes, {files[file]:g} and {size:g}."
                )
    return task
