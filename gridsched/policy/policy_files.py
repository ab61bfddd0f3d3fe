"""Python files with schedulers of the user's own."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from gridsched.errors import InputError, did_you_mean, error_of_policy, shorten, text_of
from gridsched.policy.base import Scheduler
from gridsched.policy.registry import entries, register

#: How a file is named in the place of a scheduler's id.
_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<name>\w+))?")
#: What Python states of a module, or of a name of one, that is not there.
_NOT_THERE = re.compile(
    r"No module named '(?P<module>[\w.]+)'|cannot import name '(?P<name>\w+)' from '(?P<of>[\w.]+)'"
)
#: Attribute of the modules of such files: itself and the files beside it that it imports.
_FILES = "__gridsched_policy__"
SOURCE = "a file of the user's own"


def load_policies(paths: Sequence[Path]) -> dict[str, ModuleType]:
    """Import files with schedulers, metrics or figures of the user's own.

    Schedulers that they do not `register` themselves get the name of their class as id. Files are
    sent to the simulating processes by value, so that these need not find them.

    Parameters
    ----------
    paths : sequence of Path
        A file may import those before it by name.

    Raises
    ------
    InputError
        If one cannot be imported.
    """
    modules: dict[str, ModuleType] = {}
    for path in paths:
        modules[path.name] = _module_of(path)
        scheduler_ids(modules[path.name])
    return modules


def resolve_scheduler(text: str) -> str:
    """Return the id of a scheduler that is named by its file.

    Parameters
    ----------
    text : str
        ``path.py``, ``path.py:Class``, or an id, which is returned as it is. The file may import
        others beside it.

    Raises
    ------
    InputError
        If the file cannot be imported, or has no such scheduler, or several.
    """
    named = named_file(text)
    if named is None:
        return text
    path = Path(named[0])
    return scheduler_of(path, load_with_siblings(path), named[1])


def named_file(text: str) -> tuple[str, str | None] | None:
    """Return file and class of ``path.py[:Class]``; None where the text is an id."""
    match = _FILE.fullmatch(text)
    return (match["file"], match["name"]) if match else None


def scheduler_of(path: Path, module: ModuleType, name: str | None) -> str:
    """Return the id of a scheduler of a module.

    Parameters
    ----------
    path : Path
        The module's file, for messages.
    module : ModuleType
    name : str or None
        Its class; None where there is only one.

    Raises
    ------
    InputError
        If the module has no such scheduler, or several.
    """
    ids = scheduler_ids(module)
    if not ids:
        raise InputError(f"{path}: holds no class that is derived from gridsched's Scheduler.")
    if name is None and len(ids) > 1:
        targets = ", ".join(f"{path}:{each}" for each in ids)
        raise InputError(f"{path}: holds {len(ids)} schedulers; name one of them: {targets}.")
    if name is not None and name not in ids:
        raise InputError(f"{path}: holds no scheduler {name!r}. {did_you_mean(name, ids)}It has: {', '.join(ids)}.")
    return ids[name or next(iter(ids))]


def load_with_siblings(path: Path) -> ModuleType:
    """Import a file, which may import others beside it.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be imported.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; give a Python file with a scheduler.")
    with _found_beside(path):
        return _module_of(path.resolve())


def scheduler_ids(module: ModuleType) -> dict[str, str]:
    """Return the ids of the schedulers that a module defines, by class name.

    A class that is not registered yet is registered under its own name, or ``module.Class`` where
    that is taken. Abstract classes, and those whose name begins with ``_``, are left out.
    """
    id_of_target = {entry.target: entry.id for entry in entries()}
    taken = set(id_of_target.values())
    ids = {}
    for name, cls in vars(module).items():
        if not (inspect.isclass(cls) and issubclass(cls, Scheduler)):
            continue
        if cls.__module__ != module.__name__ or inspect.isabstract(cls) or name.startswith("_"):
            continue
        target = f"{module.__name__}:{name}"
        if target not in id_of_target:
            id = name if name not in taken else f"{module.__name__}.{name}"
            # it names no workload that it takes: `auto_bag` does not try it unasked
            register(id, target, accepts=(), source=SOURCE)
            id_of_target[target] = id
        ids[name] = id_of_target[target]
    return ids


def is_loaded(path: Path) -> bool:
    """Whether a file was imported already."""
    module = sys.modules.get(path.stem)
    return path.resolve() in [Path(each).resolve() for each in getattr(module, _FILES, ())]


def comes_from_file(scheduler: Scheduler) -> bool:
    """Whether a scheduler is of a file of the user's own, or a parameter names one that is."""
    if _is_of_file(type(scheduler).__module__):
        return True
    targets = {entry.id: entry.target.partition(":") for entry in entries()}
    own = {word for id, (module, _, name) in targets.items() if _is_of_file(module) for word in (id, name)}
    return bool(own) and not own.isdisjoint(re.findall(r"\w+", repr(scheduler)))


def needs_own_process(scheduler: Scheduler) -> bool:
    """Whether a scheduler may end its process, change it, or start others."""
    return scheduler.traits.external or comes_from_file(scheduler)


def _is_of_file(module: str) -> bool:
    return hasattr(sys.modules.get(module), _FILES)


def policy_digests(scheduler: Scheduler) -> dict[str, str]:
    """Return the files of a user's own that a scheduler comes from, with their SHA-256."""
    module = sys.modules.get(type(scheduler).__module__)
    files: Sequence[str] = getattr(module, _FILES, ())
    return {file: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files}


def _module_of(path: Path) -> ModuleType:
    """Return the module of a file, imported if it is not yet."""
    name = path.stem
    present = sys.modules.get(name)
    if present is not None and getattr(present, "__file__", None) != str(path):
        if not hasattr(present, _FILES):
            raise InputError(f"{path}: a module {name!r} exists already; rename the file.")
        present = None
    return _import_file(path, name) if present is None else present


class _SourceLoader(SourceFileLoader):
    """Loads the source of a Python file: bytecode beside it is neither written nor believed."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the file."""
        return self.source_to_code(self.get_data(self.path), self.path)


def _import_file(path: Path, name: str) -> ModuleType:
    if path.suffix != ".py":
        raise InputError(f"{path}: a policy is a Python file (.py).")
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    setattr(module, _FILES, [str(path)])
    before = set(sys.modules)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        del sys.modules[name]
        raise
    except BaseException as error:  # noqa: BLE001 - a user's file may raise anything
        sys.modules.pop(name, None)
        raise InputError(f"{path}: cannot be imported: {_reason(path, error)}") from None
    import cloudpickle  # only where there is such a file

    cloudpickle.register_pickle_by_value(module)
    for sibling in _siblings(path.parent, before):
        getattr(module, _FILES).append(str(sibling.__file__))
        cloudpickle.register_pickle_by_value(sibling)
    return module


def _reason(path: Path, error: BaseException) -> str:
    """Return why a file cannot be imported; what Python's import itself raises is in words of ours."""
    if isinstance(error, SyntaxError) and isinstance(error.filename, str) and isinstance(error.msg, str):
        line = "" if error.lineno is None else f", line {error.lineno}"
        return f"{os.path.basename(error.filename)}{line} is no valid Python: {shorten(error.msg)}."
    text = text_of(error_of_policy(error))
    found = _NOT_THERE.search(text) if isinstance(error, ImportError) else None
    if found is None:
        return text
    module, name, place = found["module"] or found["of"], found["name"], text[text.rfind(" (") :].rstrip(".")
    if name is None:
        is_beside = (path.parent / f"{module}.py").is_file()
        what = f"Name {module}.py in 'policies', too, before {path.name}" if is_beside else "Install it"
        return f"there is no module {module!r}{place}. {what}."
    public = getattr(sys.modules.get(module), "__all__", ())
    return f"{module} has no {name!r}{place}. {did_you_mean(name, public)}".rstrip()


def _siblings(folder: Path, before: set[str]) -> Iterator[ModuleType]:
    """Yield the modules of files in a folder that were imported since."""
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        file = getattr(module, "__file__", None)
        if file and Path(file).parent == folder and not hasattr(module, _FILES):
            setattr(module, _FILES, [file])
            yield module


@contextmanager
def _found_beside(path: Path) -> Iterator[None]:
    """Let the file import others of its folder, where nothing is written."""
    folder, writes_none = str(path.resolve().parent), sys.dont_write_bytecode
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes_none
        sys.path.remove(folder)
