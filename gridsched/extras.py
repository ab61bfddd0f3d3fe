"""Packages that only some uses need, and the extra of gridsched that brings each.

They are imported where they are used, and not before: most of them are slow to load.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from gridsched.errors import MissingDependency

#: Module -> the extra of pyproject.toml that installs its package.
EXTRA_OF = {
    "bokeh": "view",
    "dask_jobqueue": "cluster",
    "distributed": "cluster",
    "gymnasium": "learning",
    "jinja2": "studies",
    "llvmlite": "compile",
    "numba": "compile",
    "pyarrow": "studies",
    "python_calamine": "tables",
    "scipy": "lp",
    "zmq": "batsim",
}


def how_to_install(module: str) -> str:
    """Return the command that installs what brings a module of an extra."""
    return f"pip install 'gridsched[{EXTRA_OF[module]}]'"


def lack_of(module: str, use: str) -> MissingDependency:
    """Return the error for a use whose module is not installed.

    Parameters
    ----------
    module : str
        A key of `EXTRA_OF`.
    use : str
        What needs it, in the plural: the beginning of a sentence.
    """
    return MissingDependency(f"{use} need {module}, which is not installed: {how_to_install(module)}.")


def check_installed(module: str, use: str) -> None:
    """Raise `MissingDependency` where a module of an extra is not installed; it is not loaded.

    Parameters
    ----------
    module, use : str
        See `lack_of`.

    Raises
    ------
    MissingDependency
        With the command that installs it.
    """
    if find_spec(module) is None:
        raise lack_of(module, use)


def load(name: str, use: str) -> Any:
    """Import a module of an extra.

    Parameters
    ----------
    name : str
        Of the module, perhaps one inside a package: ``scipy.special``.
    use : str
        See `lack_of`.

    Raises
    ------
    MissingDependency
        Where its package is not installed, with the command that installs it.
    """
    package = name.partition(".")[0]
    check_installed(package, use)
    return import_module(name)
