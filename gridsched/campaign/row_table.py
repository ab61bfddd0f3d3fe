"""Rows of runs as Arrow tables, Parquet files and data frames; the only module with pyarrow.

The name of a Parquet file holds the digest of its content, so that a damaged file is known as one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from gridsched.campaign.segments import RunRow, cannot_write
from gridsched.errors import InputError, counted
from gridsched.extras import check_installed
from gridsched.files.json_files import canonical_text
from gridsched.files.output_files import as_text
from gridsched.metrics import METRICS, described
from gridsched.metrics.table import RESERVED
from gridsched.model.records import shown_value
from gridsched.renamed import metrics_now
from gridsched.runs.study_inputs import file_digest

if TYPE_CHECKING:
    import pyarrow as pa

FINISHED, FAILED, MISSING = "finished", "failed", "missing"
_TEXTS = ("run_id", "status", "error", "scenario", "provenance")
#: Begins the names of columns that hold a list of numbers for each run.
SERIES_PREFIX = "series."
#: Name of the column of the metrics of groups of jobs, as JSON.
GROUPS = "groups"
#: Keys of a group's row that are texts: what its jobs are grouped by, and its name.
GROUP = ("group_by", "group")
#: Columns of texts in which a row may have none.
_MAY_LACK = ("error", GROUPS)
#: So many rows are held as Python objects at a time.
_CHUNK = 2000
#: Rows of one Parquet file, all of which one damaged bit loses.
FILE_ROWS = 2000
#: A Parquet file, as if it had 64 KiB at least, unpacks to at most so many times its size.
_UNPACKED = 1000
#: Key of a file's metadata that specifies which part of which rows it is.
_PART = "gridsched.part"
_PREFIX = "rows-"


def check_arrow() -> None:
    """Raise `MissingDependency` where pyarrow, in whose files stores keep rows, is not installed."""
    check_installed("pyarrow", "Stores of studies")


def _arrow() -> Any:
    check_arrow()
    import pyarrow  # slow to load
    import pyarrow.compute
    import pyarrow.parquet

    return pyarrow


def flat(row: RunRow) -> dict[str, Any]:
    """Return a row with one column for each metric, each timing and each series, and one for all groups."""
    columns: dict[str, Any] = {"run_id": row["run_id"], "status": row["status"]}
    columns["error"] = None if row["error"] is None else as_text(row["error"])
    columns.update({name: _value(name, each) for name, each in row["metrics"].items()})
    columns["scenario"] = as_text(canonical_text(row["scenario"]))  # JSON reads what it escapes
    columns["provenance"] = as_text(canonical_text(row["provenance"]))
    columns.update({f"timing.{name}": value for name, value in row["timing"].items()})
    for name, values in row.get("series", {}).items():
        columns[SERIES_PREFIX + name] = [_number(value) for value in values]
    if "groups" in row:
        columns[GROUPS] = as_text(canonical_text(row["groups"]))
    return columns


def _value(metric: str, value: Any) -> Any:
    is_word = metric in METRICS and not METRICS[metric].is_number
    return value if is_word else _number(value)


def _number(value: Any) -> Any:
    """Return a number that was written as a text; a word of a metric that is not known stays."""
    return float(value) if value in ("inf", "-inf", "nan") else value


def table_of(rows: Iterable[RunRow], damage: list[str]) -> pa.Table:
    """Return rows as a table; they are taken in portions, so memory stays small.

    `damage` receives, as in `joined`, which values are left out.
    """
    arrow = _arrow()
    rest = iter(rows)
    tables = []
    while portion := [flat(row) for row in islice(rest, _CHUNK)]:
        names = dict.fromkeys(name for row in portion for name in row)
        tables.append(arrow.table({name: _column(name, [row.get(name) for row in portion], damage) for name in names}))
    empty = arrow.table({name: arrow.array([], type=arrow.string()) for name in _TEXTS})
    return joined([empty, *tables], damage)


def _column(name: str, values: list[Any], damage: list[str]) -> pa.Array:
    """Return values as a column, whatever they are."""
    arrow = _arrow()
    try:
        return arrow.array(values, type=arrow.string() if name in (*_TEXTS, GROUPS) else None)
    except (arrow.ArrowException, OverflowError):
        return _of_one_kind(name, values, damage)


def _of_one_kind(name: str, values: list[Any], damage: list[str]) -> pa.Array:
    """Return the lists of numbers among values, else the numbers, else the words."""
    arrow = _arrow()
    kept: list[Any]
    if any(isinstance(value, list) for value in values):
        kept = [list(map(_real, each)) if isinstance(each, list) else None for each in values]
        kind = arrow.list_(arrow.float64())
    elif any(_real(value) is not None for value in values):
        kept, kind = list(map(_real, values)), arrow.float64()
    else:
        kept = [None if value is None else str(value) for value in values]
        kind = arrow.string()
    lost = sum(old is not None and new is None for old, new in zip(values, kept, strict=True))
    if lost:
        damage.append(f"{name}: {lost} of {len(values)} runs have there what is not a {kind}; it is left out")
    return arrow.array(kept, type=kind)


def _real(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return float(value) if is_number else None
    except OverflowError:  # a whole number of hundreds of digits, as a forged row may have
        return None


def joined(tables: Sequence[pa.Table], damage: list[str]) -> pa.Table:
    """Return one table with all rows and all columns.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
    damage : list of str
        Receives which values are left out, because others of their column are of another kind.
    """
    arrow, parts = _arrow(), list(tables)
    kinds: dict[str, set[Any]] = {}
    for table in parts:
        for field in table.schema:
            kinds.setdefault(field.name, set()).add(field.type)
    for name in [name for name, types in kinds.items() if len(types - {arrow.null()}) > 1]:
        having = [k for k, table in enumerate(parts) if name in table.column_names]
        values = [value for k in having for value in parts[k].column(name).to_pylist()]
        column, begin = _of_one_kind(name, values, damage), 0
        for k in having:
            part = column.slice(begin, len(parts[k]))
            parts[k] = parts[k].set_column(parts[k].column_names.index(name), name, part)
            begin += len(part)
    return arrow.concat_tables(parts, promote_options="permissive")


def one_row_each(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Return the table with one row for each run, and what is wrong with the others.

    A finished row takes precedence over a failed one, a later failure over an earlier one.

    Returns
    -------
    table : pyarrow.Table
        Sorted by run id.
    conflicts : list of str
        Runs that are stored twice with different metrics.
    """
    ids, statuses = (table.column(name).to_pylist() for name in ("run_id", "status"))
    best: dict[str, int] = {}
    conflicts: list[str] = []
    metrics = [name for name in table.column_names if not _is_no_result(name)]
    for k, (run_id, status) in enumerate(zip(ids, statuses, strict=True)):
        first = best.setdefault(run_id, k)
        if first == k:
            continue
        if statuses[first] != FINISHED:
            best[run_id] = k
        elif status == FINISHED:
            two = table.select(metrics).take([first, k]).to_pylist()
            if repr(two[0]) != repr(two[1]):
                conflicts.append(f"run {run_id} is stored twice with different metrics")
    kept = [best[run_id] for run_id in sorted(best)]
    return (table if kept == list(range(len(ids))) else table.take(kept)), conflicts


def _is_no_result(name: str) -> bool:
    return name in _TEXTS or name.startswith("timing.")


def row_of(table: pa.Table, k: int) -> RunRow:
    """Return row `k` as it was written, with nested metrics, scenario and provenance."""
    values = table.slice(k, 1).to_pylist()[0]
    groups = values.pop(GROUPS, None)
    results = {name: each for name, each in values.items() if not _is_no_result(name)}
    series = {
        name.removeprefix(SERIES_PREFIX): each
        for name, each in results.items()
        if name.startswith(SERIES_PREFIX) and each is not None
    }
    row: RunRow = {
        "run_id": values["run_id"],
        "status": values["status"],
        "error": values["error"],
        "metrics": {k: v for k, v in results.items() if not k.startswith(SERIES_PREFIX)},
        "scenario": json.loads(values["scenario"]),
        "provenance": json.loads(values["provenance"]),
        "timing": {n[7:]: each for n, each in values.items() if n.startswith("timing.")},
    }
    if series:
        row["series"] = series
    if groups is not None:
        row["groups"] = read_groups(groups)
    return row


def read_groups(text: str) -> list[dict[str, Any]]:
    """Return the metrics of groups that a cell of the column `GROUPS` contains.

    Raises
    ------
    InputError
        If it contains something else, as one of a forged file may.
    """
    rows = None
    with contextlib.suppress(ValueError, RecursionError):
        rows = json.loads(text)
    if not are_groups(rows):
        raise InputError(f"the groups of jobs are {shown_value(text)}; a table of metrics by name is expected.")
    return [metrics_now({key: value if key in GROUP else _number(value) for key, value in row.items()}) for row in rows]


def are_groups(rows: Any) -> TypeGuard[list[dict[str, Any]]]:
    """Whether a stored value has the form of metrics of groups: names, and numbers that fit 64 bits."""
    return isinstance(rows, list) and all(isinstance(row, dict) and _is_group(row) for row in rows)


def _is_group(row: dict[str, Any]) -> bool:
    numbers = [_number(value) for key, value in row.items() if key not in GROUP]
    return (
        all(isinstance(row.get(key), str) for key in GROUP)
        and all(key.isidentifier() and key not in RESERVED for key in row)
        and all(value is None or (_real(value) is not None and abs(value) < 2**63) for value in numbers)
    )


def parquet_files(root: Path) -> list[Path]:
    """Return the Parquet files of rows in a store."""
    return sorted(root.glob(f"{_PREFIX}*.parquet"))


def is_whole(path: Path) -> bool:
    """Whether the content of a Parquet file is the one that its name specifies."""
    try:
        digest = file_digest(path)
    except InputError:
        path.stat()  # raises FileNotFoundError where a compaction has just removed it
        raise
    return digest[:32] == path.stem.removeprefix(_PREFIX)


def described_table(table: pa.Table) -> pa.Table:
    """Return the table with unit, meaning and direction of each metric in its column's metadata."""
    fields = [field.with_metadata(described(field.name) or None) for field in table.schema]
    return table.cast(_arrow().schema(fields))


def write_parquet(table: pa.Table, root: Path) -> list[Path]:
    """Write a table into files of at most `FILE_ROWS` rows, each whole or not at all.

    One damaged bit loses the rows of its file alone. Each file names the rows of which it is a part,
    so that those of one compaction are known.

    Returns
    -------
    list of Path
        The files; none of an empty table.

    Raises
    ------
    InputError
        If one cannot be written.
    """
    said = described_table(table)
    pairs = (table.column(name).to_pylist() for name in ("run_id", "status"))
    rows = hashlib.sha256(repr(list(zip(*pairs, strict=True))).encode()).hexdigest()[:32]
    number = -(-len(table) // FILE_ROWS)
    return [
        _write_part(
            said.slice(k * FILE_ROWS, FILE_ROWS).replace_schema_metadata({_PART: f"{k + 1}/{number} {rows}"}), root
        )
        for k in range(number)
    ]


def _write_part(table: pa.Table, root: Path) -> Path:
    temporary = root / f".rows.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as stream:  # pyarrow takes no path that is not a text
            _arrow().parquet.write_table(table, stream, compression="zstd")
        target = root / f"{_PREFIX}{file_digest(temporary)[:32]}.parquet"
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise cannot_write(root / "rows.parquet", error) from None
    return target


def part_of(path: Path) -> str:
    """Return which part of which rows a Parquet file is; empty where it does not say so.

    Parameters
    ----------
    path : Path
        A file that `is_whole`.

    Raises
    ------
    InputError
        If it is not a Parquet file.
    """
    with open(path, "rb") as stream, _refusing(path):
        metadata = _arrow().parquet.read_schema(stream).metadata or {}
        return metadata.get(_PART.encode(), b"").decode()


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Raise `InputError` where Arrow cannot read a file."""
    try:
        yield
    except FileNotFoundError:  # compacted in this moment
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from None


def lost_rows(path: Path) -> str:
    """Return in words how many rows a damaged Parquet file had, if this can still be read."""
    with contextlib.suppress(OSError, ValueError, MemoryError):
        with open(path, "rb") as stream:
            number = _arrow().parquet.read_metadata(stream).num_rows
        return f"{counted(number, 'row')} lost"
    return f"{path.stat().st_size:,} bytes; how many rows is not known"


def read_parquet(path: Path) -> pa.Table:
    """Read a Parquet file in this thread alone.

    A thread of Arrow's pools that lets go of a Python file last needs Python, and aborts the
    process where Python has ended meanwhile; so none is started.

    Raises
    ------
    InputError
        If it unpacks to more than `_UNPACKED` times its size.
    ValueError
        If it is not a Parquet file.
    """
    parquet = _arrow().parquet
    with open(path, "rb") as stream:
        file = parquet.ParquetFile(stream, pre_buffer=False)
        most = _UNPACKED * max(path.stat().st_size, 2**16)
        metadata = file.metadata
        texts = [leaf.path for leaf in file.schema if leaf.physical_type == "BYTE_ARRAY"]
        groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
        values = sum(each.column(k).num_values for each in groups for k in range(each.num_columns))
        _check_unpacked(path, sum(each.total_byte_size for each in groups) + 8 * values, most)
        # each text is unpacked once, until it is known how often it occurs
        packed = parquet.ParquetFile(stream, metadata=metadata, pre_buffer=False, read_dictionary=texts).read(
            use_threads=False
        )
        _check_unpacked(path, sum(map(_text_bytes, packed.columns)), most)
        return packed.cast(file.schema_arrow)


def _check_unpacked(path: Path, found: int, most: int) -> None:
    if found > most:
        raise InputError(f"{path}: unpacks to more than {most // 2**20:,} MB; it is not read.")


def _text_bytes(column: pa.ChunkedArray) -> int:
    """Return the bytes of texts of a dictionary, each as often as it occurs."""
    arrow = _arrow()
    compute, total = arrow.compute, 0
    for chunk in column.chunks:
        values = compute.list_flatten(chunk) if arrow.types.is_list(chunk.type) else chunk
        if arrow.types.is_dictionary(values.type):
            lengths = compute.binary_length(values.dictionary).take(values.indices)
            total += compute.sum(lengths).as_py() or 0
    return total


def read_rows(path: Path) -> pa.Table:
    """Read a Parquet file of rows that `is_whole`; others may have forged it.

    Raises
    ------
    InputError
        If it is none, or unpacks to too much.
    """
    with _refusing(path):
        table = read_parquet(path)
    for name in (*_TEXTS, GROUPS):
        legal = (_arrow().string(), *([_arrow().null()] if name in _MAY_LACK else []))
        if name == GROUPS and name not in table.column_names:
            continue
        if (
            name not in table.column_names
            or table.schema.field(name).type not in legal
            or (name not in _MAY_LACK and table.column(name).null_count)
        ):
            raise InputError(f"{path}: holds no rows of runs; it is not read.")
    return table
