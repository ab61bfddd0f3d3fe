"""The door: what systems of ours and packages of others add, declared in strings that are loaded late.

A plugin is a `Plugin`, whose fields name modules, classes and functions: what it adds is listed without being
imported. Each folder of ``gridsched/systems`` holds one, as ``plugin``; others' come by entry points of the
group `GROUP`. The tables of the core (schedulers, kinds of workloads, metrics, figures, formats, studies,
commands) ask here for what they do not know, ours first, and name no plugin.

One that cannot be loaded is reported in a line and left out; of two things of one name the first stays: the
core's, then a system's, then others' by the names of their plugins.
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from gridsched.errors import InputError, error_of_policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Entry points of this group name plugins: ``name = "module:plugin"``.
GROUP = "gridsched.plugins"
_SYSTEMS = Path(__file__).parent / "systems"


class PluginWarning(UserWarning):
    """Something of a plugin is left out."""


class SchedulerEntry(NamedTuple):
    """What is known of a scheduler without importing it.

    Attributes
    ----------
    id : str
        Name on the command line and in study files.
    target : str
        ``"module:Class"``.
    accepts : tuple of str
        Workloads it takes, first the kind that it is made for: ``bag``, ``arrivals``, ``typed`` (a
        bag of tasks with types, or without), ``utility``, ``stochastic``, ``parallel`` (rigid
        jobs), ``parallel_utility`` (parallel tasks with utility functions, on clusters), ``workflow`` (serial
        tasks that make data for each other).
    source : str
        Publication or definition it follows.
    parameter : str
        Its parameter that may follow the id after a colon, as in ``batsim:tcp://HOST:PORT``; empty:
        none.
    """

    id: str
    target: str
    accepts: tuple[str, ...] = ("bag", "arrivals")
    source: str = ""
    parameter: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it comes with gridsched."""
        return self.target.partition(".")[0] == "gridsched"


def of_class(module: str, accepts: tuple[str, ...]) -> Callable[[str, str, str], SchedulerEntry]:
    """Return what makes the entry of a scheduler in a module from its id, its class and its source."""
    return lambda id, name, source: SchedulerEntry(id, f"{module}:{name}", accepts, source)


class WorkloadKind(NamedTuple):
    """A kind of workload that is generated.

    Attributes
    ----------
    name : str
        ``kind`` in files of generators, ``generator`` in studies.
    keys : str
        ``"module:Model"`` of its keys, a `gridsched.workloads.generator_keys.GeneratorKeys`. Those that
        end with ``_csv`` or ``_swf`` name files; ``seed`` and ``replicate`` decide what is drawn.
    function : str
        ``"module:function"`` that draws from the checked keys.
    makes_system : bool
        Whether it draws tasks with their platform and rules, a `SystemWorkload`; its keys are then
        `SystemKeys`. Otherwise it draws `Tasks`, a bag.
    has_utility : bool
        Whether the tasks have utility functions. This and `is_parallel` decide which metrics a
        study of such runs may name: those of a bag of tasks, those of utility, those of parallel
        jobs.
    is_parallel : bool
        Whether the tasks are parallel.
    document : str
        Where the keys are listed, if they are too many for a message.
    """

    name: str
    keys: str
    function: str
    makes_system: bool = False
    has_utility: bool = False
    is_parallel: bool = False
    document: str = ""


class JobFormat(NamedTuple):
    """A format of files with parallel jobs.

    Attributes
    ----------
    name : str
    endings : tuple of str
        What the names of such files end with; ``.gz`` may follow.
    read : str
        ``"module:function"`` that returns a `JobTable`; called with the path, the `TraceOptions` and
        the speed of a node [flop/s].
    write : str
        ``"module:function"`` that writes jobs under a name with the first of the endings; called
        with the `JobTable`, the path and ``force``. Empty: such files are only read.
    """

    name: str
    endings: tuple[str, ...]
    read: str
    write: str = ""


class Command(NamedTuple):
    """A command of the top level.

    Attributes
    ----------
    name : str
    module : str
        Holds ``NAME_app``, an `Application`, or a function of typer's called ``NAME_command`` or ``NAME``.
    help : str
        First line of its help.
    """

    name: str
    module: str
    help: str


class Variant(NamedTuple):
    """What a parameter of one of the core's schedulers may name beside the core's own choices.

    Attributes
    ----------
    of : str
        The parameter: ``reservations`` of backfilling.
    name : str
        The choice.
    target : str
        ``"module:name"`` of what is called in its place: for ``reservations`` with the scheduler's id, the
        `System`, the dropping threshold and the choice of clusters.
    """

    of: str
    name: str
    target: str


class Plugin(NamedTuple):
    """What a system, or a package of somebody else's, adds.

    A scheduler that wraps another is a scheduler, whose class is a
    `gridsched.schedulers.wrapping.Wrapper`.

    Attributes
    ----------
    name : str
        Unique among plugins.
    schedulers : tuple of SchedulerEntry
    workloads : tuple of WorkloadKind
    formats : tuple of JobFormat
    metrics : tuple of str
        Modules whose import registers metrics by `gridsched.register_metric`; imported with the
        table of metrics.
    figures : tuple of str
        Modules whose functions draw figures; what their decorators
        `gridsched.figures.figure_file.register_figure` say is read, not imported.
    studies : str
        Package whose folder holds study files, found by their names without ``.toml``, and their claims in
        files ``.py`` beside them; empty: none.
    commands : tuple of Command
    kernels : tuple of str
        Modules of compiled loops that `gridsched.schedulers.kernels.called_once` declares.
    variants : tuple of Variant
    """

    name: str
    schedulers: tuple[SchedulerEntry, ...] = ()
    workloads: tuple[WorkloadKind, ...] = ()
    formats: tuple[JobFormat, ...] = ()
    metrics: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    studies: str = ""
    commands: tuple[Command, ...] = ()
    kernels: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()


#: More entries of a field are not taken: an endless list is one of them.
_MOST_ENTRIES = 1000
_MODULE = re.compile(r"[\w.]+")
_NAME, _TARGET = re.compile(r"[\w.+-]+"), re.compile(r"[\w.]+:[\w.]+")
#: What texts of entries may be; how they are written elsewhere follows from it (lists of ids have commas, say).
_PATTERNS = {
    "id": _NAME,
    "name": _NAME,
    "of": _NAME,
    "target": _TARGET,
    "keys": _TARGET,
    "function": _TARGET,
    "read": _TARGET,
    "write": re.compile(rf"({_TARGET.pattern})?"),
    "module": _MODULE,
}


def _warn(text: str) -> None:
    warnings.warn(text, PluginWarning, stacklevel=3)


#: Each is called with a line about what is left out of a plugin.
reporters: list[Callable[[str], None]] = [_warn]


def report(text: str) -> None:
    """Say that something of a plugin is left out, and why."""
    for each in reporters:
        each(text)


@cache
def systems() -> tuple[Plugin, ...]:
    """Return the plugins of gridsched's own systems, by name."""
    names = sorted(path.parent.name for path in _SYSTEMS.glob("*/__init__.py"))
    return _unique(((name, partial(_system, name)) for name in names), ())


def _system(name: str) -> Any:
    return import_module(f"gridsched.systems.{name}").plugin


@cache
def installed() -> tuple[Plugin, ...]:
    """Return the plugins of packages that are installed beside gridsched, by name."""
    if not _are_any_installed():
        return ()
    points = sorted(_entry_points(), key=lambda point: (point.name, point.value))
    return tuple(map(_whole, _unique(((point.name, point.load) for point in points), systems())))


def _entry_points() -> list[EntryPoint]:
    """Return the entry points of plugins; packages whose list of them cannot be read are reported."""
    from importlib.metadata import distributions, entry_points  # takes as long to load as the rest of a short command

    with contextlib.suppress(Exception):
        return list(entry_points(group=GROUP))
    points: list[EntryPoint] = []
    for distribution in distributions():
        with harmless(str(getattr(distribution, "_path", distribution)), "has no readable entry points"):
            points += distribution.entry_points.select(group=GROUP)
    return points


def _are_any_installed() -> bool:
    """Whether any package states that it has plugins, by the files that `entry_points` would parse."""
    for folder in sys.path:
        for file in Path(folder).glob("*-info/entry_points.txt"):
            with contextlib.suppress(OSError):  # what cannot be read states nothing
                if GROUP.encode() in file.read_bytes():
                    return True
    return False


def all_plugins() -> tuple[Plugin, ...]:
    """Return all plugins, our own systems first."""
    return (*systems(), *installed())


def _unique(named: Iterable[tuple[str, Callable[[], Any]]], before: Iterable[Plugin]) -> tuple[Plugin, ...]:
    """Load plugins; leave out those that cannot be loaded, and of two of one name the second."""
    plugins = {each.name: each for each in before}
    first = len(plugins)
    for name, load in named:
        with harmless(name, "cannot be loaded"):
            plugin = load()
            if not isinstance(plugin, Plugin):
                raise InputError(f"it is a {type(plugin).__name__}, and must be a gridsched.plugins.Plugin")
            if not isinstance(plugin.name, str) or not plugin.name.strip():
                raise InputError(f"its name is {plugin.name!r}, and must be a text")
            if plugin.name in plugins:
                raise InputError(f"there is a plugin {plugin.name!r} already")
            plugins[plugin.name] = plugin
    return tuple(plugins.values())[first:]


def _whole(plugin: Plugin) -> Plugin:
    """Return a plugin without what does not fit its fields, each of which is reported."""
    fitting: dict[str, Any] = {}
    for field, kind in _field_types(Plugin).items():
        value = getattr(plugin, field)
        if kind is str:
            fitting[field] = value if isinstance(value, str) else ""
            if fitting[field] != value:
                report(f"Plugin {plugin.name!r}: {field} is a {type(value).__name__}, and must be a text: left out.")
            continue
        entry = get_args(kind)[0]
        entries = list(islice(value, _MOST_ENTRIES + 1)) if isinstance(value, tuple | list) else None
        if entries is None or len(entries) > _MOST_ENTRIES:
            what = "has no end in sight" if entries else f"is a {type(value).__name__}"
            report(
                f"Plugin {plugin.name!r}: {field} {what}, and must be a tuple of at most {_MOST_ENTRIES:,}: left out."
            )
        fitting[field] = []
        for each in entries or () if len(entries or ()) <= _MOST_ENTRIES else ():
            if fault := _misfit(each, entry):
                report(f"Plugin {plugin.name!r}: an entry of {field} is left out: {fault}.")
            else:
                fitting[field].append(each)
        fitting[field] = tuple(fitting[field])
    return Plugin(**fitting)


@cache
def _field_types(kind: type) -> Mapping[str, Any]:
    """Return the types of the fields of a named tuple."""
    return get_type_hints(kind)


def _misfit(entry: Any, kind: Any) -> str | None:
    """Return why an entry of a plugin is none; None if it is one."""
    if not isinstance(entry, kind):
        return f"it is a {type(entry).__name__}, and must be a {kind.__name__}"
    if kind is str:
        return None if _MODULE.fullmatch(entry) else f"{entry[:80]!r} is the name of no module"
    for field, wanted in _field_types(kind).items():
        value: Any = getattr(entry, field)
        texts = get_origin(wanted) is tuple
        fits = isinstance(value, tuple if texts else wanted)
        if not fits or (texts and not all(isinstance(each, str) for each in value)):
            what = "a tuple of texts" if texts else f"a {wanted.__name__}"
            return f"{field} is a {type(value).__name__}, and must be {what}"
        pattern = _PATTERNS.get(field)
        if pattern is not None and not pattern.fullmatch(str(value)):
            return f"{field} is {value[:80]!r}, which is not allowed"
    return None


@contextmanager
def harmless(plugin: str, what: str) -> Iterator[None]:
    """Report whatever is raised in the block, where a plugin is at work; Ctrl-C is the user's."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - somebody else's code may raise anything
        report(f"Plugin {plugin!r} {what}: {error_of_policy(error)}")


Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")


class Table(MutableMapping[Key, Entry]):
    """Entries by name: the core's, and once a name is not among them or all are wanted, those of plugins.

    Parameters
    ----------
    what : str
        What an entry is, for messages.
    parts : callable
        Called with a `Plugin`; returns what it adds by name.
    entries : mapping
        The core's.
    """

    def __init__(
        self, what: str, parts: Callable[[Plugin], Iterable[tuple[Key, Entry]]], entries: Mapping[Key, Entry]
    ) -> None:
        self._what, self._parts = what, parts
        self._entries = dict(entries)
        self._waiting = [systems, installed]
        self._is_taking = False

    def __getitem__(self, key: Key) -> Entry:
        while key not in self._entries and self._take_next():
            pass
        return self._entries[key]

    def __iter__(self) -> Iterator[Key]:
        while self._take_next():
            pass
        return iter(self._entries)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __setitem__(self, key: Key, entry: Entry) -> None:
        self._entries[key] = entry

    def __delitem__(self, key: Key) -> None:
        del self._entries[key]

    def _take_next(self) -> bool:
        """Take what the next plugins add, unless there are none, or one of them asks while it is taken."""
        if not self._waiting or self._is_taking:
            return False
        self._is_taking = True
        try:
            for plugin in self._waiting.pop(0)():
                with harmless(plugin.name, f"adds no {self._what}"):
                    self._take(plugin)
        finally:
            self._is_taking = False
        return True

    def _take(self, plugin: Plugin) -> None:
        for key, entry in self._parts(plugin):
            if self._entries.setdefault(key, entry) is not entry:
                report(f"Plugin {plugin.name!r}: there is a {self._what} {key!r} already, which stays.")


def _variants(plugin: Plugin) -> Iterator[tuple[tuple[str, str], str]]:
    yield from (((each.of, each.name), each.target) for each in plugin.variants)


_VARIANTS: Table[tuple[str, str], str] = Table("variant", _variants, {})


def variant(of: str, name: str, owner: str) -> Any:
    """Return what a plugin adds as the choice `name` of a parameter; see `Variant`.

    Raises
    ------
    InputError
        Naming the `owner` of the parameter, if there is none.
    """
    target = _VARIANTS.get((of, name))
    if target is None:
        raise InputError(f"{owner} is {name!r}, and no installed plugin adds it.")
    return loaded(target, owner)


def loaded(target: str, owner: str) -> Any:
    """Import and return what ``"module:name"`` names.

    Raises
    ------
    InputError
        Naming the `owner`, if there is no such module or name, or its import raises.
    """
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        reason = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - somebody else's module may raise anything
        reason = str(error_of_policy(error)).rstrip(".")
    raise InputError(f"{owner}: cannot import {target!r}: {reason}.")


def source_of(module: str) -> Path:
    """Return the file of a module without importing it, though its package is.

    Raises
    ------
    InputError
        If there is no such file.
    """
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise InputError(f"there is no module {module!r}")
    return Path(spec.origin)
