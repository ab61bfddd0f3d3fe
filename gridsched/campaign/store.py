"""A store: a folder in which every finished run of a campaign is kept, once.

::

    store.json              format and version; also the lock of the store
    ro-crate-metadata.json  what the finished store holds, for repositories of research data
    segments/*.jsonl        rows as they are written, one file a writing process
    rows-<digest>.parquet   the rows of finished campaigns, at most 2,000 in a file
    inputs/<sha256>/name    the files that the runs read
    studies/*.json          the studies that were run
    records/*.parquet       task and host records of single runs, on request
    damaged/                what was found damaged; its runs are repeated
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.campaign import row_table
from gridsched.campaign.kept_studies import KeptStudies, KeptStudy, damaged_inputs
from gridsched.campaign.segments import RunRow, SegmentWriter, cannot_write, is_growing
from gridsched.campaign.stored_rows import StoredRows
from gridsched.errors import GridschedError, InputError, counted
from gridsched.files.input_files import check_size
from gridsched.files.output_files import write_whole
from gridsched.files.ro_crate import CRATE, Origin, crate_text
from gridsched.runs.study import Study
from gridsched.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_MARKER = "store.json"
_MOST_BYTES = 1 << 20
FORMAT = "gridsched store"
FORMAT_VERSION = 2


class Store:
    """A folder of runs; use `open` or `create`.

    Attributes
    ----------
    root : Path
    damage : list of str
        What the last reading found damaged or contradictory, in words.
    damaged_studies : list of str
        The same of the studies that it keeps, and of the files that these read.
    trust : bool
        Whether Python files that it holds may be run: its studies' policies.
    is_used : bool
        Whether a campaign of this process has begun its runs.
    """

    def __init__(self, root: Path, *, trust: bool = False) -> None:
        self.root = root
        self.trust = trust
        self.is_used = False
        self.damage: list[str] = []
        self.damaged_studies: list[str] = []
        self._rows = StoredRows(root)
        self._kept = KeptStudies(root)

    @classmethod
    def open(cls, path: str | Path, *, trust: bool = False) -> Store:
        """Open a store; nothing is written.

        Parameters
        ----------
        path : str or Path
        trust : bool
            Whether Python files that it holds, and programs that its runs call, may be run.
            Reading runs none: what a study's policies bring is kept as data. Repeating their runs
            does, and so do metrics of rows and figures of their own.

        Raises
        ------
        InputError
            If there is none, or it has another format.
        """
        root = Path(path)
        marker = root / _MARKER
        try:
            if marker.exists():
                check_size(marker, _MOST_BYTES)
            content = json.loads(marker.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(
                f"{path}: is not a store: it has no file store.json. 'gridsched study run STUDY "
                "--store DIR' makes one in a new or empty folder."
            ) from None
        except OSError as error:
            raise InputError(f"{marker}: cannot be read: {error.strerror}.") from None
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f"{marker}: is damaged, or of no gridsched store.")
        version = content.get("format_version")
        if version != FORMAT_VERSION:
            raise InputError(
                f"{path}: is a store of format version {version}, written by gridsched "
                f"{content.get('gridsched')}; this gridsched ({__version__}) reads version "
                f"{FORMAT_VERSION}. Use that gridsched, or another folder."
            )
        return cls(root, trust=trust)

    @classmethod
    def create(cls, path: str | Path, *, trust: bool = False) -> Store:
        """Open a store, or make one where there is nothing; `trust` is as for `open`.

        Raises
        ------
        InputError
            If the folder holds other things, cannot be written, or `open` refuses it.
        """
        row_table.check_arrow()
        root = Path(path)
        marker = root / _MARKER
        try:
            if not marker.exists():
                if root.exists() and not root.is_dir():
                    raise InputError(f"{path}: is not a folder.")
                if root.is_dir() and any(not _is_ours(each.name) for each in root.iterdir()):
                    raise InputError(f"{path}: is not a store, and not empty. Give a new or an empty folder.")
                root.mkdir(parents=True, exist_ok=True)
                temporary = _new_marker(root)
                with contextlib.suppress(FileExistsError):  # of two processes at once, one wins
                    os.link(temporary, marker)
                temporary.unlink(missing_ok=True)
            store = cls.open(root, trust=trust)
            for name in ("segments", "inputs", "studies"):
                (root / name).mkdir(exist_ok=True)
            store.check_writable()
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}.") from None
        return store

    @classmethod
    @contextlib.contextmanager
    def for_campaign(cls, path: str | Path, *, trust: bool = False) -> Iterator[Store]:
        """Give a store as `create` does; one that was made for a campaign which is refused goes with it.

        Raises
        ------
        InputError
            As `create` does.
        """
        root = Path(path)
        made = [each for each in (root, *root.parents) if not each.exists()]
        is_new = not (root / _MARKER).exists()
        store = cls.create(root, trust=trust)
        try:
            yield store
        except GridschedError:
            if is_new and not store.is_used:
                store._remove_unused(made)
            raise

    def _remove_unused(self, folders: list[Path]) -> None:
        """Remove what the store has made, and these folders, unless it holds rows or others write to it."""
        with contextlib.suppress(OSError):
            (self.root / "segments").rmdir()  # refused where there is a row, or another campaign
            for name in ("studies", "inputs"):
                for path in sorted((self.root / name).rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()
                (self.root / name).rmdir()
            (self.root / _MARKER).unlink()
            for folder in folders:
                folder.rmdir()

    def check_writable(self) -> None:
        """Raise `InputError` unless rows can be added."""
        self.writer().close()

    # ------------------------------------------------------------------ rows

    def stored(self) -> dict[str, str]:
        """Return run id -> status of all that is stored; quick also for 100,000 runs."""
        with self._lock(fcntl.LOCK_SH):
            statuses = self._rows.statuses()
        self.damage = list(self._rows.damage)
        return statuses

    def rows(self, study: Study | None = None) -> pd.DataFrame:
        """Return the stored runs, one row each.

        Parameters
        ----------
        study : Study, optional
            Only its runs, in its order and with a column for each axis; a run that is not stored
            has the status ``missing``.

        Returns
        -------
        pandas.DataFrame
            ``run_id``, ``status`` (``finished``, ``failed``), ``error``, the metrics, the scenario
            and the provenance as JSON, the ``series.*`` columns (arrays of numbers) where a study
            keeps series or a scheduler notes chances, ``groups`` (JSON) where it groups jobs, and
            the ``timing.*`` columns, which do not repeat. Damaged rows are not in it; `damage` lists them.
        """
        frame = self._table().to_pandas(use_threads=False)
        if study is None:
            return frame
        import pandas as pd

        ids: list[str] = []
        axes: dict[str, list[Any]] = {name: [] for name in study.axis_names}
        for run in study.scenarios():
            ids.append(run.run_id)
            for name, value in run.axes.items():
                axes[name].append(value)
        planned = pd.DataFrame({"run_id": ids, **axes})
        merged = planned.merge(frame, on="run_id", how="left")
        merged["status"] = merged["status"].fillna(row_table.MISSING)
        return merged

    def row(self, run_id: str) -> RunRow:
        """Return one row whole.

        Parameters
        ----------
        run_id : str
            Or its beginning, where that is unique.

        Raises
        ------
        InputError
            If there is no such run, or several.
        """
        table = self._table()
        ids = table.column("run_id").to_pylist()
        rows = [k for k, each in enumerate(ids) if run_id and each.startswith(run_id)]
        if len(rows) != 1:
            several = (
                f"{counted(len(rows), 'run begins', 'runs begin')} so; give more of it" if rows else "is not stored"
            )
            raise InputError(f"{self.root}: run {run_id!r}: {several}.")
        return row_table.row_of(table, rows[0])

    def writer(self) -> SegmentWriter:
        """Return a segment of this process to write rows to."""
        return SegmentWriter(self.root / "segments")

    def segments(self) -> list[Path]:
        """Return the segments, those of living processes too."""
        return self._rows.segments()

    def set_aside(self) -> str:
        """Return in words what earlier compactions have found damaged; empty if nothing."""
        number = len(list((self.root / "damaged").glob("*")))
        return f"{self.root}/damaged: {counted(number, 'file was', 'files were')} damaged" if number else ""

    def compact(self) -> None:
        """Put all rows of finished segments into Parquet files of limited size.

        Killed at any moment, it loses nothing: rows that are found twice count once. Nor does
        another compaction at the same time, where locks do not keep them apart: each removes only
        what it has read, and no file that it has written itself. What is damaged is moved to
        ``damaged/``.

        Raises
        ------
        InputError
            If there is no space; everything is then as before.
        """
        with self._lock(fcntl.LOCK_EX):
            now = self._clock()
            sizes = {path: _size(path) for path in self.segments() if not is_growing(path, now)}
            if not sizes and self._rows.is_compact():
                return
            table, old = self._table_of(list(sizes))
            try:
                self._rows.set_damage_aside(list(sizes))
                written = row_table.write_parquet(table, self.root)
                for path in set(old).difference(written):
                    path.unlink(missing_ok=True)
                for path, size in sizes.items():
                    if _size(path) == size:  # else its writer lives after all
                        path.unlink(missing_ok=True)
                self._describe(len(table))
            except OSError as error:
                raise cannot_write(self.root, error) from None

    def _describe(self, runs: int) -> None:
        """Write what the store holds as an RO-Crate."""
        studies, _ = self._kept.read()
        files = {_MARKER: "format and version of the store"}
        files |= {path.name: "runs: settings, metrics, provenance" for path in sorted(self.root.glob("rows-*.parquet"))}
        files |= {f"studies/{each.file.name}": f"study {each.name}, as it was run" for each in studies}
        inputs = []
        for digest, path in sorted(self.inputs().items()):
            files[path.relative_to(self.root).as_posix()] = "an input of runs"
            inputs.append((path.name, digest))
        names = ", ".join(sorted(each.name for each in studies)) or "a study"
        origin = Origin(f"Simulations of {names}", {"gridsched": __version__}, inputs)
        held = f"{counted(runs, 'simulated run')} of gridsched ({names}); its rows hold what describes each in full."
        write_whole(self.root / CRATE, crate_text(f"Runs of {names}", held, files, origin), force=True)

    def _clock(self) -> float:
        """Return the time by the clock that dates the store's files [s]."""
        marker = self.root / _MARKER
        try:
            os.utime(marker)
            return marker.stat().st_mtime
        except OSError as error:
            raise cannot_write(marker, error) from None

    def _table(self) -> pa.Table:
        with self._lock(fcntl.LOCK_SH):
            return self._table_of(self.segments())[0]

    def _table_of(self, segments: list[Path]) -> tuple[pa.Table, list[Path]]:
        """Return the rows of segments and Parquet files, and which of the latter there were."""
        whole, files = self._rows.table(segments)
        table, conflicts = row_table.one_row_each(whole)
        self.damage = self._rows.damage + [f"{self.root}: {conflict}" for conflict in conflicts]
        return table, files

    @contextlib.contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        """Keep compaction and reading apart; where there are no locks, go on without."""
        access = os.O_RDWR if kind == fcntl.LOCK_EX else os.O_RDONLY  # NFS insists on it
        marker = self.root / _MARKER
        try:
            file = os.open(marker, access | os.O_CLOEXEC)
        except OSError as error:
            raise cannot_write(marker, error) from None
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(file, kind)
            yield
        finally:
            os.close(file)

    # ------------------------------------------------------------------ studies and their files

    def add(self, study: Study) -> None:
        """Keep a study and copies of the files it reads.

        Raises
        ------
        InputError
            If they cannot be written, or a file has changed since the study was read.
        """
        self._kept.add(study)

    def inputs(self) -> dict[str, Path]:
        """Return SHA-256 -> file for the copies of the files that runs read."""
        return self._kept.inputs()

    def kept_studies(self) -> list[KeptStudy]:
        """Return what is kept of the studies that were run into this store, the latest first.

        Damaged ones are not among them; `damaged_studies` lists them.
        """
        studies, self.damaged_studies = self._kept.read()
        return studies

    def study(self, name: str | None = None) -> Study:
        """Return the study of that name, or the one that was run last.

        Its policies are imported only if the store is trusted. Copies of its files that are
        damaged are listed in `damaged_studies`.

        Raises
        ------
        NotTrusted
            If it is not kept what its policies bring, so that they would have to be imported.
        InputError
            If there is none, or one is damaged that may have been run last.
        """
        kept = self.kept_studies()
        if self.damaged_studies and name is None:
            raise InputError(
                f"{self.damaged_studies[0].rstrip('.')}. Which study was run last is not known: "
                "give one by --study, or move that file away."
            )
        for each in kept:
            if name in (None, each.name):
                study = each.study(trust=self.trust)
                self.damaged_studies += damaged_inputs(study)
                return study
        raise InputError(f"{self.root}: holds no study{'' if name is None else f' {name!r}'}.")


def _size(path: Path) -> int:
    """Return the size of a file; -1 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _is_ours(name: str) -> bool:
    """Whether a creation that was interrupted may have left a file of this name."""
    return name.startswith(f".{_MARKER}.")


def _new_marker(root: Path) -> Path:
    """Write what goes into a store's marker beside it; return the file."""
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, "gridsched": __version__}
    temporary = root / f".{_MARKER}.{os.getpid()}.tmp"
    temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
    return temporary
