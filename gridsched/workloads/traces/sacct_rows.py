"""The table with bars that ``sacct -P`` prints: texts in it may hold bars and line breaks, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gridsched.workloads.traces.log_lines import LONGEST_LINE, numbered_lines

#: Columns with the number of a job, the first that a file has counts.
JOB = ("JobIDRaw", "JobID")
#: Columns that hold what people write, with bars, and those of them that may hold line breaks.
_FREE = (
    "JobName",
    "SubmitLine",
    "Constraints",
    "Comment",
    "AdminComment",
    "SystemComment",
    "WorkDir",
    "WCKey",
    "Extra",
    "StdIn",
    "StdOut",
    "StdErr",
)
#: Where a line has more bars too many than this, they all are in the last such column.
_MOST_BARS = 100
_BROKEN = tuple(name for name in _FREE if name != "Constraints")
_JOB = r"\d{1,18}(?:_(?:\d{1,9}|\[[^|\n]{0,9999}))?(?:\+\d{1,9})?(?:\.[^|\n]{0,99})?"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[^\s|]*|\d*|Unknown|None|N/A")
_COUNT = re.compile(r"\d*(?:\.\d*)?[KMG]?")
_NO_BLANK = re.compile(r"[^\s|]*")
#: What other columns hold: texts are assigned to columns so that these fit.
_FORMS = {
    **dict.fromkeys(JOB, re.compile(_JOB)),
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), _TIME),
    **dict.fromkeys(("ElapsedRaw", "CPUTimeRAW", "AllocNodes", "NNodes", "AllocCPUS", "NCPUS", "ReqCPUS"), _COUNT),
    **dict.fromkeys(("ConsumedEnergyRaw", "UID", "GID", "Priority", "DBIndex"), _COUNT),
    **dict.fromkeys(("Elapsed", "CPUTime", "Suspended"), re.compile(r"[\d:.-]*")),
    **dict.fromkeys(("Timelimit", "TimelimitRaw"), re.compile(r"[\d:.-]*|[A-Za-z_]+")),
    **dict.fromkeys(("User", "Account", "Partition", "QOS", "Cluster", "Group"), _NO_BLANK),
    **dict.fromkeys(("AllocTRES", "ReqTRES", "ReqMem", "ReqGRES", "Dependency", "ConsumedEnergy"), _NO_BLANK),
    "NodeList": re.compile(r"[^\s|]*|None assigned"),
    "State": re.compile(r"(?:[A-Z_]+(?: by [^\s|]+)?\+?)?"),
    "ExitCode": re.compile(r"(?:\d+:\d+)?"),
    "Constraints": re.compile(r"\S*"),
    "SubmitLine": re.compile(r"(?:(?:\S*/)?s(?:batch|run|alloc)\b.*)?", re.S),
    "": re.compile(""),
}

Cells = Mapping[str, str]


def table_rows(path: str | Path) -> tuple[Sequence[str], Iterator[tuple[int, Cells]]]:
    """Return the columns of a table with bars, and its rows: the line that each begins in, and its texts.

    A row that does not have as many texts as there are columns has none.

    Parameters
    ----------
    path : path

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    lines = numbered_lines(Path(path))
    names = next(lines, (1, ""))[1].lstrip("\ufeff").split("|")
    return names, ((number, _cells(text.split("|"), names)) for number, text in _records(lines, names))


def _records(lines: Iterator[tuple[int, str]], names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the number of the first line of each row and its text; other lines continue the row before."""
    first, parts, size, bars = 0, list[str](), 0, 0
    n_formed = _n_formed(names)
    has_job = not {*names[:n_formed]}.isdisjoint(JOB)
    forms = (f"(?:{_FORMS[name].pattern})" if name in _FORMS else "[^|]*" for name in names[:n_formed])
    begin = re.compile(r"\|".join(forms) + (r"\|" if n_formed < len(names) else r"\Z"))  # of most rows, at once
    for number, text in lines:
        if not text:
            continue
        is_open = bars < len(names) - 1 or names[-1] in _BROKEN
        begins = has_job and begin.match(text)
        if parts and is_open and size <= LONGEST_LINE and not begins and not _begins_row(text, names):
            parts.append(text)
        else:
            if parts:
                yield first, "\n".join(parts)
            first, parts, size, bars = number, [text], 0, 0
        size, bars = size + len(text), bars + text.count("|")
    if parts:
        yield first, "\n".join(parts)


def _begins_row(text: str, names: Sequence[str]) -> bool:
    """Whether a line begins a row, and so does not continue a text of the row before.

    A number of a job begins one, if what the line has in front of the first text that people write has the forms of
    its columns, and is all of that or a date of submission at least. A line that is a row but for the number of its
    job is one, too.
    """
    values, n_formed = text.split("|"), _n_formed(names)
    job = next((k for k, name in enumerate(names) if name in JOB), 0)
    if len(values) > job >= n_formed:
        return _fits(names[job : job + 1], values[job:])
    if job < n_formed and _fits(names[:n_formed], values):
        is_cut = len(values) < n_formed + (n_formed < len(names))
        if not is_cut or dict(zip(names, values, strict=False)).get("Submit"):
            return True
    others = [name if name not in JOB else "id" for name in names]
    return len(values) == len(names) and _fits(others, values)


def _n_formed(names: Sequence[str]) -> int:
    """Return how many columns are in front of the first text that people write."""
    return next((k for k, name in enumerate(names) if name in _FREE), len(names))


def _fits(names: Sequence[str], values: Sequence[str]) -> bool:
    """Whether texts have the forms of their columns, as far as there are both."""
    pairs = zip(names, values, strict=False)
    return all(_FORMS[name].fullmatch(value) is not None for name, value in pairs if name in _FORMS)


def _cells(values: list[str], names: Sequence[str]) -> Cells:
    if len(values) > len(names) and not {*names}.isdisjoint(_FREE):
        values = _joined(values, names)
    return dict(zip(names, values, strict=True)) if len(values) == len(names) else {}


def _joined(values: list[str], names: Sequence[str]) -> list[str]:
    """Return a text for each column, where bars within texts made more of them.

    Texts that people write take the further ones, such that the others have their forms; the last such column
    takes them all where that is not possible.
    """
    more = len(values) - len(names)
    lenient = {name: form for name, form in _FORMS.items() if name != "SubmitLine"}
    for forms in () if more > _MOST_BARS else (_FORMS, lenient):
        # which column each of so many further texts may have gone to before: column by column
        before: list[dict[int, int]] = []
        reached = {0}
        for k, name in enumerate(names):
            steps: dict[int, int] = {}
            for used in sorted(reached):
                for taken in range(more - used + 1 if name in _FREE else 1):
                    text = "|".join(values[k + used : k + used + taken + 1])
                    if used + taken not in steps and (name not in forms or forms[name].fullmatch(text)):
                        steps[used + taken] = taken
            before.append(steps)
            reached = set(steps)
        if more in reached:
            return _split(values, before, more)
    last = max(k for k, name in enumerate(names) if name in _FREE)
    return [*values[:last], "|".join(values[last : last + more + 1]), *values[last + more + 1 :]]


def _split(values: Sequence[str], before: Sequence[Mapping[int, int]], more: int) -> list[str]:
    """Return the texts of the columns, from the last one back: how many further ones each took."""
    texts, used = list[str](), more
    for k in range(len(before) - 1, -1, -1):
        taken = before[k][used]
        used -= taken
        texts.append("|".join(values[k + used : k + used + taken + 1]))
    return texts[::-1]
