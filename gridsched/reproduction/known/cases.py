"""Cases with known results: what is printed where, how it is done again, and how near the two must be.

A further case is one entry of a list (`gridsched.reproduction.known.table.CASES` joins them): its inputs, which are
read where the user has them, the command, what measures it, and a row for each printed number.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from gridsched.analysis.statistics import Interval
from gridsched.model.records import check_choices
from gridsched.runs.run import RunResult, run
from gridsched.scenario import Scenario
from gridsched.workloads.traces.trace_options import TraceOptions

Values = Mapping[str, float | Interval]
#: Verdicts.
AGREES, MISSES, SKIPPED = "agrees", "misses", "skipped"


@dataclass(frozen=True)
class Input:
    """A file of others, which is not a part of gridsched.

    Attributes
    ----------
    file : str
        Its name; it is in the folder of inputs, or in a folder of that.
    source : str
        Where it is to be had, in words.
    """

    file: str
    source: str

    def find(self, folder: Path | None) -> Path | None:
        """Return its path in a folder, or in a folder of that; None if it is not there."""
        if folder is None:
            return None
        places = (folder, *sorted(each for each in folder.iterdir() if each.is_dir()))
        return next((each / self.file for each in places if (each / self.file).is_file()), None)


@dataclass(frozen=True)
class Row:
    """A number that others print.

    Attributes
    ----------
    key : str
        Which of the values of the case it is.
    what : str
        In words.
    printed : str
        As it is printed, digit by digit; or by theory.
    unit : str
    near : {"digits", "share", "interval", "sign"}
        Ours agrees to all printed digits; or within a share of it; or it lies inside our interval; or has its sign.
    share : float
    why : str
        Why it misses where that is known, and by what experiment.
    """

    key: str
    what: str
    printed: str
    unit: str = ""
    near: Literal["digits", "share", "interval", "sign"] = "digits"
    share: float = 0.0
    why: str = ""

    def __post_init__(self) -> None:
        check_choices(self)

    def agrees(self, ours: float | Interval) -> bool:
        """Whether a value of ours is as near as it must be."""
        printed = float(self.printed)
        if isinstance(ours, Interval):
            return ours.low <= printed <= ours.high
        if self.near == "sign":
            return ours * printed > 0.0
        if self.near == "share":
            return abs(ours - printed) <= self.share * abs(printed)
        decimals = len(self.printed.partition("e")[0].partition(".")[2]) - int(self.printed.partition("e")[2] or 0)
        return bool(abs(ours - printed) <= 0.5 * 10.0**-decimals * (1 + 1e-6))


@dataclass(frozen=True)
class Case:
    """Something that others did, and the same with gridsched.

    Attributes
    ----------
    id : str
    source : str
        Who, where, when.
    command : str
        What does it again.
    measure : callable
        ``measure(paths)``: values by their keys, of the paths of the inputs.
    rows : tuple of Row
    inputs : tuple of Input
    """

    id: str
    source: str
    command: str
    measure: Callable[[tuple[Path, ...]], Values]
    rows: tuple[Row, ...]
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of a row.

    Attributes
    ----------
    case : Case
    row : Row
    ours : float, Interval or None
        None where an input is absent.
    absent : str
        Which input, and where it is to be had.
    """

    case: Case
    row: Row
    ours: float | Interval | None = None
    absent: str = ""

    @property
    def verdict(self) -> str:
        """Its result: `AGREES`, `MISSES` or `SKIPPED`."""
        if self.ours is None:
            return SKIPPED
        return AGREES if self.row.agrees(self.ours) else MISSES

    @property
    def is_open(self) -> bool:
        """Whether it misses, without a known reason."""
        return self.verdict == MISSES and not self.row.why

    def record(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        ours, printed = self.ours, float(self.row.printed)
        mean = ours.mean if isinstance(ours, Interval) else ours
        return {
            "case": self.case.id,
            "source": self.case.source,
            "what": self.row.what,
            "unit": self.row.unit,
            "printed": self.row.printed,
            "ours": mean,
            "low": ours.low if isinstance(ours, Interval) else None,
            "high": ours.high if isinstance(ours, Interval) else None,
            "off": None if mean is None or not printed or self.row.near == "sign" else mean / printed - 1.0,
            "verdict": self.verdict,
            "why": self.absent or (self.row.why if self.verdict == MISSES else ""),
            "command": self.case.command,
        }


def outcomes(cases: Iterable[Case], folder: Path | None) -> Iterator[Outcome]:
    """Measure cases one after the other, and yield what becomes of their rows.

    Parameters
    ----------
    cases : iterable of Case
    folder : path, optional
        Where inputs of others lie. Cases whose inputs are absent are skipped.
    """
    for case in cases:
        found = [each.find(folder) for each in case.inputs]
        paths = tuple(path for path in found if path is not None)
        if len(paths) < len(found):
            missing = "; ".join(f"{i.file}: {i.source}" for i, p in zip(case.inputs, found, strict=True) if p is None)
            yield from (Outcome(case, row, absent=missing) for row in case.rows)
            continue
        values = case.measure(paths)
        yield from (Outcome(case, row, values[row.key]) for row in case.rows)


# ---------------------------------------------------------------------- cases that are one run of a log


@dataclass(frozen=True)
class LogRun:
    """A run of a log on the reference driver, as a command and as it is done.

    Attributes
    ----------
    log : Input
    scheduler : str
    parameters, trace, settings : tuple of (str, str)
        Of the scheduler, of how the log is read, of the run; by their keys.
    """

    log: Input
    scheduler: str
    parameters: tuple[tuple[str, str], ...] = ()
    trace: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def command(self) -> str:
        """The command line that does it."""
        words = ["gridsched", "run", "--workload", self.log.file, "--driver", "reference"]
        for key, value in (*self.trace, *self.settings):
            words += [f"--{key.replace('_', '-')}", value]
        words += ["--scheduler", self.scheduler]
        for key, value in self.parameters:
            words += ["--set", f"{key}={value}"]
        return shlex.join(words)

    def result(self, path: Path) -> RunResult:
        """Run it on the log at a path; the last results are kept."""
        return _result(self, path)

    def case(
        self, id: str, source: str, rows: tuple[Row, ...], values: Callable[[RunResult], Values] | None = None
    ) -> Case:
        """Return the case whose values are the metrics of the run, or what is computed of it."""

        def measure(paths: tuple[Path, ...]) -> Values:
            result = self.result(paths[0])
            if values is not None:
                return values(result)
            metrics = result.metrics()
            return {row.key: float(metrics[row.key]) for row in rows}  # type: ignore[arg-type]

        return Case(id, source, self.command, measure, rows, (self.log,))


@lru_cache(maxsize=2)
def _result(which: LogRun, path: Path) -> RunResult:
    scenario = Scenario(
        None,
        str(path),
        which.scheduler,
        dict(which.parameters),
        trace=TraceOptions(**dict(which.trace)),  # type: ignore[arg-type]
        driver="reference",
        **dict(which.settings),  # type: ignore[arg-type]
    )
    return run(scenario)
