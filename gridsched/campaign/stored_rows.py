"""The files with rows in a store's folder, read as far as they are whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from gridsched.campaign import row_table
from gridsched.campaign.segments import Damage, Line, RunRow, is_growing, read_segment
from gridsched.errors import InputError
from gridsched.metrics import METRICS
from gridsched.metrics.table import RESERVED

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")


class StoredRows:
    """What segments and Parquet files hold.

    Segments are read first: rows go from them to Parquet files, so none is overlooked that a
    compaction on another machine moves meanwhile.

    Parameters
    ----------
    root : Path
        Of the store.

    Attributes
    ----------
    damage : list of str
        What the last reading found damaged, in words.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.damage: list[str] = []
        self._misshapen: list[Damage] = []

    def segments(self) -> list[Path]:
        """Return the segments, those of living processes too."""
        return sorted((self._root / "segments").glob("*.jsonl"))

    def statuses(self) -> dict[str, str]:
        """Return run id -> status; a row with status finished takes precedence over others."""
        self.damage = []
        lines = [(line.run_id, line.status) for line in self._segment_lines(self.segments())]
        statuses: dict[str, str] = {}
        for pairs in (*self._of_parquet(_ids_and_statuses).values(), lines):
            for run_id, status in pairs:
                if statuses.get(run_id) != row_table.FINISHED:
                    statuses[run_id] = status
        return statuses

    def table(self, segments: Sequence[Path]) -> tuple[pa.Table, list[Path]]:
        """Return the rows of segments and Parquet files, and which of the latter there were."""
        self.damage = []
        damage: list[str] = []
        from_segments = row_table.table_of(self._segment_rows(segments), damage)
        tables = self._of_parquet(row_table.read_rows)
        whole = row_table.joined([*tables.values(), from_segments], damage)
        self.damage += [f"{self._root}: {each}" for each in damage]
        return whole, list(tables)

    def is_compact(self) -> bool:
        """Whether the Parquet files are whole and those of one compaction."""
        files = row_table.parquet_files(self._root)
        parts = self._of_parquet(row_table.part_of)
        return len(parts) == len(files) and _are_all_parts(list(parts.values()))

    def set_damage_aside(self, segments: Sequence[Path]) -> None:
        """Move what is damaged to the folder ``damaged``.

        Parameters
        ----------
        segments : sequence of Path
            The segments that `table` received last.
        """
        folder = self._root / "damaged"
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        for path in row_table.parquet_files(self._root):
            if not row_table.is_whole(path):
                folder.mkdir(exist_ok=True)
                os.replace(path, folder / f"{stamp}-{path.name}")
        for path in segments:
            damaged = [line for line, _ in read_segment(path) if isinstance(line, Damage)]
            damaged += [line for line in self._misshapen if line.path == path]
            if damaged:
                folder.mkdir(exist_ok=True)
                with open(folder / f"{stamp}-{path.name}", "wb") as stream:
                    stream.write(b"\n".join(line.text.rstrip(b"\n") for line in damaged) + b"\n")

    def _of_parquet(self, read: Callable[[Path], T]) -> dict[Path, T]:
        """Return what is read from each Parquet file that is whole, and no forgery."""
        while True:
            contents, damage = {}, []
            try:
                for path in row_table.parquet_files(self._root):
                    if row_table.is_whole(path):
                        try:
                            contents[path] = read(path)
                        except InputError as error:
                            damage.append(str(error))
                    else:
                        damage.append(f"{path}: damaged ({row_table.lost_rows(path)})")
            except FileNotFoundError:  # compacted in this moment, on another machine
                continue
            self.damage += damage
            return contents

    def _segment_lines(self, segments: Sequence[Path]) -> Iterator[Line]:
        for path in segments:
            for line, _ in read_segment(path):
                if isinstance(line, Line):
                    yield line
                elif line.text.endswith(b"\n") or not is_growing(path):
                    self.damage.append(str(line))

    def _segment_rows(self, segments: Sequence[Path]) -> Iterator[RunRow]:
        """Yield the rows of segments that have the form of one; report the others."""
        self._misshapen = []
        for path in segments:
            for number, (line, _) in enumerate(read_segment(path), start=1):
                row = None
                if isinstance(line, Line):
                    with contextlib.suppress(ValueError, RecursionError):
                        row = line.row()
                    if _is_row(row):
                        yield row
                        continue
                    line = Damage(path, number, line.text)
                    self._misshapen.append(line)
                if row is not None or line.text.endswith(b"\n") or not is_growing(path):
                    self.damage.append(str(line))


def _is_row(row: Any) -> TypeGuard[RunRow]:
    """Whether a line, whose checksum may be right all the same, has the form of a row."""
    if not isinstance(row, dict) or not isinstance(row.get("error"), str | None):
        return False
    parts = [row.get(name) for name in ("metrics", "timing", "scenario", "provenance")]
    series = row.get("series", {})
    if not all(isinstance(part, dict) for part in (*parts, series)):
        return False
    values = [*row["metrics"].items(), *row["timing"].items()]
    values += [("", each) for item in series.values() for each in _listed(item)]
    names = row["metrics"]
    return (
        row.get("status") in (row_table.FINISHED, row_table.FAILED)
        and all(name.isidentifier() and name not in RESERVED for name in names)
        and all(_is_value(*each) for each in values)
        and row_table.are_groups(row.get("groups", []))
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value, {}]  # the table is not a number


def _is_value(name: str, value: Any) -> bool:
    """Whether a stored value is a number that fits 64 bits, a word where that is allowed, or none."""
    if isinstance(value, bool | str) and name in METRICS and METRICS[name].is_number:
        return value in ("inf", "-inf")
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return abs(value) < 2**63 if is_whole else isinstance(value, float | str | bool | None)


def _are_all_parts(parts: Sequence[str]) -> bool:
    """Whether files are all of one compaction, according to `part_of`; or there is none."""
    if not parts:
        return True
    number, rows = len(parts), parts[0].partition(" ")[2]
    return bool(rows) and set(parts) == {f"{k}/{number} {rows}" for k in range(1, number + 1)}


def _ids_and_statuses(path: Path) -> list[tuple[str, str]]:
    """Return id and status of every row of a Parquet file."""
    table = row_table.read_rows(path)
    return list(zip(*(table.column(k).to_pylist() for k in range(2)), strict=True))
