"""Write a file or a folder whole or not at all; folders for temporary files."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gridsched.errors import InputError
from gridsched.files.input_files import read_text

_HAS_EFFECTIVE_IDS = os.access in os.supports_effective_ids
_SCRATCH = "gridsched-scratch-"
#: What the clock may have been set by since [s].
_CLOCK_STEP_S = 2.0


def check_writable(path: str | Path, *, force: bool = False) -> None:
    """Raise `InputError` unless a file can be put at `path`; call it before long work.

    Parameters
    ----------
    path : str or Path
    force : bool
        Whether an existing file may be replaced. Devices, pipes and links never are.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise InputError(f"{path}: is a folder; give the name of a file.")
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            raise InputError(
                f"{path}: is not a regular file but {_kind(mode)}, which is never replaced; give another name."
            )
        if mode is not None and not force:
            raise InputError(f"{path}: exists already; give another name or --force to replace it.")
        if not target.parent.is_dir():
            raise InputError(f"{path}: cannot be written: the folder {str(target.parent)!r} is missing.")
        if not os.access(target.parent, os.W_OK | os.X_OK, effective_ids=_HAS_EFFECTIVE_IDS):
            raise InputError(f"{path}: cannot be written: the folder {str(target.parent)!r} is not writable.")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}.") from None


def _mode(path: Path) -> int | None:
    """Return the mode of a file or of the link itself, None where there is nothing."""
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"


def is_file_name(name: str) -> bool:
    """Whether a text names a file in any folder it is put into, and none elsewhere."""
    return name not in ("", ".", "..") and not {"/", "\0"}.intersection(name)


def as_bytes(content: str | bytes) -> bytes:
    """Return a text as UTF-8; what has no place in it (a file name of other bytes) is escaped."""
    return content.encode(errors="backslashreplace") if isinstance(content, str) else content


def as_text(content: str) -> str:
    """Return a text that UTF-8 can hold, with the rest escaped as `as_bytes` does."""
    return as_bytes(content).decode()


def write_whole(path: str | Path, content: str | bytes, *, force: bool = False) -> None:
    """Write `content` to a temporary file beside `path` and rename it.

    Parameters
    ----------
    path : str or Path
        Target; its folder must exist.
    content : str or bytes
        As `as_bytes` writes it.
    force : bool
        Replace an existing regular file.

    Raises
    ------
    InputError
        If the target is not a regular file, exists and `force` is not given, or cannot be written.
    """
    check_writable(path, force=force)
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as stream:
            stream.write(as_bytes(content))
        os.replace(temporary, target)
    except OSError as error:
        with contextlib.suppress(OSError):  # the first fault is to be reported
            temporary.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}.") from None


#: First line of a marker that lists the files of its folder, one a line.
LISTED = "# Files that gridsched wrote; a folder that holds others is not replaced."


@dataclass(frozen=True)
class FolderKind:
    """A kind of folder that we write, and how one is known again before it is replaced.

    Attributes
    ----------
    what : str
        The kind with its article, for messages: "an export".
    marker : str
        The file without which a folder that is not empty is somebody else's.
    names : frozenset of str
        Names that may lie in such a folder; empty where the marker lists them (`LISTED`).
    """

    what: str
    marker: str
    names: frozenset[str] = frozenset()

    def check(self, folder: Path, *, force: bool = False) -> None:
        """Raise `InputError` unless `folder` may be written; call it before long work.

        Parameters
        ----------
        folder : Path
        force : bool
            Replace an existing folder that holds nothing but files of ours.
        """
        if not folder.is_dir():
            if os.path.lexists(folder):
                raise InputError(f"{folder}: is a file; give the name of a folder.")
            return
        if not force:
            raise InputError(f"{folder}: exists already; give another name or --force.")
        try:
            with os.scandir(folder) as entries:
                regular = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
        except OSError as error:
            raise InputError(f"{folder}: cannot be read: {error.strerror}.") from None
        if not regular:
            return
        refused = f"{folder}: is not replaced, because it"
        ours = self.names
        if not ours:
            listed = self._listed(folder) if regular.get(self.marker) else None
            if listed is None:
                raise InputError(
                    f"{refused} has no {self.marker!r} that lists the files of {self.what}; give "
                    "another name, or move it away."
                )
            ours = listed
        foreign = sorted(name for name, is_file in regular.items() if not is_file or name not in ours)
        if foreign:
            raise InputError(
                f"{refused} holds {foreign[0]!r}, which is not a file of {self.what}; "
                "give another name, or move it away."
            )
        if self.marker not in regular:
            raise InputError(
                f"{refused} has no {self.marker!r} and so is not a {self.what.split()[-1]}; give another name."
            )

    def _listed(self, folder: Path) -> frozenset[str] | None:
        """Return the names that the marker lists, and its own; None where it is not ours."""
        first, *names = read_text(folder / self.marker).splitlines() or [""]
        return frozenset({self.marker, *names}) if first == LISTED else None

    def write(self, folder: Path, contents: Mapping[str, str | bytes], *, force: bool = False) -> None:
        """Write files into a new folder beside `folder` and rename it; an old one goes last.

        Parameters
        ----------
        folder : Path
            Target; missing parents are made.
        contents : mapping of str to str or bytes
            Content of each file.
        force : bool
            Replace an existing folder that holds nothing but files of ours.

        Raises
        ------
        InputError
            If the folder exists and may not be replaced, or cannot be written, or a file would
            lie elsewhere.
        """
        for name in contents:
            if not is_file_name(name):
                raise InputError(f"{folder}: {name!r} is not the name of a file in it.")
        target = Path(os.path.realpath(folder))
        self.check(target, force=force)
        if not self.names:
            lines = [LISTED, *sorted(contents), ""]
            contents = {**contents, self.marker: "\n".join(lines)}
        made = None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
            for name, content in contents.items():
                (made / name).write_bytes(as_bytes(content))
            made.chmod(0o777 & ~_umask())
            _put_in_place(made, target)
        except OSError as error:
            raise InputError(f"{folder}: cannot be written: {error.strerror}.") from None
        finally:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _put_in_place(made: Path, target: Path) -> None:
    """Rename `made` to `target`; the old target is deleted only after that."""
    if not target.exists():
        made.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    old = aside / target.name
    try:
        target.rename(old)
        try:
            made.rename(target)
        except BaseException:
            old.rename(target)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder for temporary files; it goes with the block.

    Folders of processes that were killed go, too.
    """
    base = Path(tempfile.gettempdir())
    for old in base.glob(f"{_SCRATCH}*"):
        if _is_abandoned(old):
            shutil.rmtree(old, ignore_errors=True)
    prefix = f"{_SCRATCH}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        lock = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield Path(name)
        finally:
            os.close(lock)


def _is_abandoned(folder: Path) -> bool:
    """Whether the process that made a folder has gone; its lock shows this if ids do not."""
    made_by = re.match(rf"{_SCRATCH}(\d+)-", folder.name)
    try:
        if made_by is None or is_alive(int(made_by[1]), folder.stat().st_mtime):
            return False
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def is_alive(pid: int, since: float = math.inf) -> bool:
    """Whether a process of this machine has not ended.

    Parameters
    ----------
    pid : int
    since : float
        A time at which it was there [s since 1970]; a later one that has its number is another.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    state, *others = status.rpartition(")")[2].split()
    began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    began += int(others[18]) / os.sysconf("SC_CLK_TCK")
    return state not in ("Z", "X") and began <= since + _CLOCK_STEP_S
