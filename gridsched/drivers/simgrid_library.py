"""Find and load SimGrid, and call its energy plugins: the one module that imports it.

The Python module has no call for a host's energy (simgrid/simgrid#404); the functions are in the
shared library that is loaded anyway. They give full precision, also during the run.

A link with the property ``wattage_range = Idle:Busy`` draws ``Idle + load (Busy - Idle)`` watts,
where load is its traffic over its bandwidth. The plugin looks at a link when a message that crosses
it starts or ends, and charges the whole time since it looked last with the load of that moment. So

- idle power counts for the whole run, whether the link is used or not;
- a message's latency is charged as if data flowed already;
- a message that slows down or speeds up because of traffic elsewhere is charged at its last rate;
- ``wattage_off`` of a link is not read, and Wi-Fi links are left out (they have a plugin of their
  own).
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from ctypes import c_char_p, c_double, c_void_p
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gridsched.errors import InputError, MissingDependency

if TYPE_CHECKING:
    import simgrid

HOW_TO_INSTALL = (
    "SimGrid is not installed. Run 'make demo' in a checkout, or write 'pybind11<3' into a file F "
    "and run: PIP_CONSTRAINT=F PIP_BUILD_CONSTRAINT=F pip install 'simgrid>=4.1' "
    "(about 6 minutes). The reference driver (--driver reference) works without it."
)
#: SimGrid's message about a file without a document type, and what would mend it.
_NO_DOCTYPE = "Unexpected character `<' in prolog"
_NEEDS_DOCTYPE = (
    'it needs the line <!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"> before <platform>, and finds none'
)
_NO_NS3 = "Unable to find network model 'ns-3'"
_NEEDS_NS3 = (
    "its network/model is ns-3, with which SimGrid of PyPI is not built; take another one by --cfg network/model:CM02"
)


def is_installed() -> bool:
    """Whether SimGrid's Python module can be found (it is not loaded)."""
    return importlib.util.find_spec("simgrid") is not None


@contextlib.contextmanager
def _stderr_held_back() -> Iterator[list[str]]:
    """Collect what is written to file descriptor 2; SimGrid greets on every import."""
    held: list[str] = []
    sys.stderr.flush()
    saved = os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    try:
        yield held
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        with os.fdopen(reader, "r", errors="replace") as stream:
            held.extend(stream.read().splitlines())


@cache
def _load() -> tuple[ModuleType, ctypes.CDLL]:
    spec = importlib.util.find_spec("simgrid")
    if spec is None:
        raise MissingDependency(HOW_TO_INSTALL)
    # The wheel's extension has no RUNPATH: load the library that lies beside it first. A SimGrid
    # of a distribution, or one with a mended RUNPATH, finds its library by itself.
    folder = Path(spec.origin).parent if spec.origin else Path()
    if spec.submodule_search_locations:
        folder = folder.parent
    beside = sorted(folder.glob("libsimgrid.so.*"), key=lambda path: len(path.name))
    try:
        with _stderr_held_back() as lines:
            if beside:
                ctypes.CDLL(str(beside[0]), mode=ctypes.RTLD_GLOBAL)
            module = importlib.import_module("simgrid")
            library = ctypes.CDLL(_loaded_library(), mode=ctypes.RTLD_GLOBAL)
    except (ImportError, OSError) as error:
        raise MissingDependency(f"SimGrid is installed but does not load: {error}. {HOW_TO_INSTALL}") from None
    for line in lines:
        if "Configuration change" not in line:
            sys.stderr.write(f"{line}\n")
    return module, library


def _loaded_library() -> str:
    """Return the path of the library that the module has loaded.

    It may be anywhere, and a distribution's package holds it under its full name only.
    """
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line[line.find("/") :]
        if "/" in line and Path(path).name.startswith("libsimgrid.so"):
            return path
    raise OSError("the module has not loaded libsimgrid.so")


def version() -> str | None:
    """Return SimGrid's version as the module reports it; None if it is not installed.

    The package of a distribution may have no metadata that could be asked.
    """
    return str(load_simgrid().simgrid_version) if is_installed() else None


def load_simgrid() -> ModuleType:
    """Return SimGrid's Python module.

    Raises
    ------
    MissingDependency
        If it is missing or does not load; the message explains how to install it.
    """
    return _load()[0]


def load_c_library() -> ctypes.CDLL:
    """Return the shared library behind the module, for calls the module lacks."""
    return _load()[1]


def c_function(name: str, *argument_types: type, result: type | None = None) -> Callable[..., Any]:
    """Return a function of the shared library with its argument and result types declared."""
    function = getattr(load_c_library(), name)
    function.argtypes, function.restype = list(argument_types), result
    return function


def refusals(module: ModuleType) -> tuple[type[Exception], ...]:
    """Return the exceptions by which SimGrid refuses a file; 4.0 aborts in some places of 4.1."""
    own = (module.AssertionError,) if hasattr(module, "AssertionError") else ()
    return (*own, IndexError, RuntimeError, ValueError)


def text_path(path: Path | str) -> str:
    """Return a path for SimGrid, which takes texts alone.

    Raises
    ------
    InputError
        If it holds bytes that are no text.
    """
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path}: SimGrid reads no file whose path holds bytes that are not UTF-8; rename it."
        ) from None
    return text


def first_line(text: str) -> str:
    """Return the first line of SimGrid's message, which may be followed by all allowed values."""
    if _NO_DOCTYPE in text:
        return _NEEDS_DOCTYPE
    if _NO_NS3 in text:
        return _NEEDS_NS3
    return next(iter(text.strip().splitlines()), "").rstrip(".")


#: The link property that holds its power; SimGrid still takes the old name with a warning.
PROPERTY_NAMES = ("wattage_range", "watt_range")
#: The link from each host to itself, which SimGrid adds.
LOOPBACK = "__loopback__"


class EnergyPlugin:
    """A plugin of SimGrid, loaded when it is first used.

    Parameters
    ----------
    kind : {"host", "link"}
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def start(self) -> None:
        """Activate it before the platform is loaded.

        That of links needs the engine: it would make one of its own, and SimGrid allows one a
        process.
        """
        c_function(f"sg_{self._kind}_energy_plugin_init")()

    def consumed_j(self, names: Iterable[str]) -> dict[str, float]:
        """Return the energy that each host or link has consumed up to the present time [J].

        Call it from an actor, from a completion callback or after the run; hosts must have
        ``wattage_per_state``. For links call it once, at the end of the run: each call charges the
        time since the last one with the present load, so calls in between change the result.
        """
        by_name, consumed = self._functions
        return {name: consumed(by_name(name.encode())) for name in names}

    def update_all(self) -> None:
        """Charge all hosts up to the present time at their loads of this instant, as yet; of hosts alone.

        Call it from an actor. It costs 0.1 to 0.2 us a host.
        """
        self._update()

    @cached_property
    def _update(self) -> Callable[[], None]:
        return c_function(f"sg_{self._kind}_energy_update_all")

    @cached_property
    def _functions(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return (
            c_function(f"sg_{self._kind}_by_name", c_char_p, result=c_void_p),
            c_function(f"sg_{self._kind}_get_consumed_energy", c_void_p, result=c_double),
        )


HOSTS, LINKS = EnergyPlugin("host"), EnergyPlugin("link")


def has_links_with_power(platform_file: Path) -> bool:
    """Whether the file mentions the property; without it the plugin need not be started."""
    text = platform_file.read_bytes()
    return any(name.encode() in text for name in PROPERTY_NAMES)


def links_with_power(engine: simgrid.Engine, wifi: simgrid.Link.SharingPolicy, where: str) -> tuple[str, ...]:
    """Return the names of the links that have a power range, in SimGrid's order.

    Parameters
    ----------
    engine : simgrid.Engine
        With the platform loaded.
    wifi : simgrid.Link.SharingPolicy
        The policy of links that the plugin leaves out.
    where : str
        The platform's name, for messages.

    Raises
    ------
    InputError
        If a range cannot be read; SimGrid would end the process over it.
    """
    names = []
    for link in engine.all_links:
        text = range_of(link)
        if text is not None and link.get_sharing_policy() != wifi:
            _power_range(text, link.name, where)
            names.append(link.name)
    return tuple(names)


def range_of(link: Any) -> str | None:
    """Return what a link of SimGrid has as its range of power, unchecked."""
    return next((text for text in map(link.get_property, PROPERTY_NAMES) if text is not None), None)


def link_wattages(
    ranges: Mapping[str, str | None], default: tuple[float, float] | None, where: str
) -> dict[str, tuple[float, float]]:
    """Return the power of links that carry nothing, and that carry all they can [W].

    Parameters
    ----------
    ranges : mapping of str to str or None
        What each link has as its own range.
    default : (float, float) or None
        Power of links that have none of their own; None: they are left out.
    where : str
        The platform's name, for messages.

    Raises
    ------
    InputError
        If a range cannot be read.
    """
    own = {name: default if text is None else _power_range(text, name, where) for name, text in ranges.items()}
    return {name: watts for name, watts in own.items() if watts is not None and name != LOOPBACK}


def _power_range(text: str, link: str, where: str) -> tuple[float, float]:
    try:
        watts = [float(part) for part in text.split(":")]
    except ValueError:
        watts = []
    if len(watts) != 2 or not all(math.isfinite(watt) and watt >= 0 for watt in watts):
        raise InputError(
            f"{where}: link {link!r} has wattage_range {text!r}; it must read Idle:Busy, two powers of 0 W or more."
        )
    return watts[0], watts[1]
