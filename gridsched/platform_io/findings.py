"""What is wrong, doubtful or worth knowing in a platform file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gridsched.errors import InputError


@dataclass
class Findings:
    """Problems (the file is wrong), gaps (doubtful energy figures) and remarks (worth knowing).

    Attributes
    ----------
    path : str or Path
        The file, for messages.
    strict : bool
        Raise at the first problem instead of collecting them.
    problems : list of str
        Complete messages.
    gaps, remarks : dict of str to list of str
        Names of the hosts that lack energy figures or have doubtful ones, or are odd in a harmless
        way, by kind.
    unitless : list of str
        Values without a unit.
    old_options : list of str
        Options of SimGrid that it has under other names, or not at all.
    """

    path: str | Path
    strict: bool
    problems: list[str] = field(default_factory=list)
    gaps: dict[str, list[str]] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    unitless: list[str] = field(default_factory=list)
    old_options: list[str] = field(default_factory=list)

    def problem(self, text: str, line: int | None = None) -> None:
        """Raise `InputError` with the message, or keep it."""
        place = f"{self.path}, line {line}" if line else f"{self.path}"
        if self.strict:
            raise InputError(f"{place}: {text}")
        self.problems.append(f"{place}: {text}")

    def gap(self, what: str, host: str) -> None:
        """Note that `host` lacks energy figures or has doubtful ones; see `remark` for `what`."""
        self.gaps.setdefault(what, []).append(host)

    def remark(self, what: str, host: str) -> None:
        """Note something harmless about `host`; `what` completes '3 hosts ...'."""
        self.remarks.setdefault(what, []).append(host)

    def gap_lines(self) -> list[str]:
        """Return one line for each kind of gap."""
        return [_line(what, hosts) for what, hosts in self.gaps.items()]

    def note_lines(self) -> list[str]:
        """Return one line for each kind of remark."""
        lines = [_line(what, hosts) for what, hosts in self.remarks.items()]
        if self.unitless:
            lines.append(f"{len(self.unitless)} value(s) without a unit, which SimGrid deprecates: {self.unitless[0]}")
        if self.old_options:
            lines.append(
                "options in <config>, renamed for SimGrid 4.1 or left out without effect here: "
                f"{', '.join(self.old_options)}"
            )
        return lines


def _line(what: str, hosts: list[str]) -> str:
    names = ", ".join(repr(name) for name in hosts[:3])
    more = ", ..." if len(hosts) > 3 else ""
    return f"{len(hosts)} host(s) ({names}{more}) {what}"
