"""Build SimGrid's module for the Python that runs this file, and check that this Python loads a built one.

``python scripts/simgrid_module.py toolchain`` prints CMake's variables for this Python, a file for the environment
variable CMAKE_TOOLCHAIN_FILE. SimGrid's CMake asks for any Python 3 and takes the name of the module from one and the
header files from another where several are installed; CMake 3.25 finds no 3.13 at all.

``python scripts/simgrid_module.py check [WHEEL]`` prints what keeps this Python from loading the SimGrid of a wheel,
or the installed one, and then ends with status 1.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path


def toolchain() -> str:
    """Return a CMake toolchain file whose find_package(Python3) takes this Python and nothing else."""
    library = Path(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("LDLIBRARY") or "")
    variables = {"Python3_EXECUTABLE": sys.executable, "Python3_INCLUDE_DIR": sysconfig.get_config_var("INCLUDEPY")}
    if library.is_file():  # asked for, but the module is not linked with it
        variables["Python3_LIBRARY"] = str(library)
    return "".join(f'set({name} "{value}" CACHE FILEPATH "")\n' for name, value in variables.items())


def fault_in(folder: Path) -> str | None:
    """Return what keeps this Python from loading the SimGrid module of a folder; None where it loads."""
    wanted = [f"simgrid{suffix}" for suffix in EXTENSION_SUFFIXES]
    if not any((folder / name).is_file() for name in wanted):
        found = ", ".join(path.name for path in sorted(folder.glob("simgrid*.so"))) or "none"
        return f"Python {sys.version.split()[0]} loads {wanted[0]}, and the module there is {found}"
    # SimGrid's own build gives the module no path to the library beside it.
    libraries = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    environment = {**os.environ, "PYTHONPATH": str(folder), "LD_LIBRARY_PATH": libraries}
    call = [sys.executable, "-c", "import simgrid"]
    done = subprocess.run(call, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
    return f"Python {sys.version.split()[0]} does not load its module: {lines[-1]}"


def fault_of_wheel(wheel: Path) -> str | None:
    """Return what keeps this Python from loading the SimGrid of a wheel; None where it loads."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(wheel) as archive:
                # the module asks for the library by its full name; this is a second copy of 98 MB
                archive.extractall(folder, [name for name in archive.namelist() if name != "libsimgrid.so"])
        except zipfile.BadZipFile as error:
            return f"it cannot be unpacked: {error}"
        return fault_in(Path(folder))


def fault_of_installed() -> str | None:
    """Return what keeps this Python from loading the installed SimGrid; None where it loads."""
    spec = importlib.util.find_spec("simgrid")
    if spec is None or spec.origin is None:
        return "no SimGrid module is installed for this Python"
    return fault_in(Path(spec.origin).parent)


def main(words: list[str]) -> int:
    """Do what the words ask for; return the exit status."""
    match words:
        case ["toolchain"]:
            sys.stdout.write(toolchain())
            return 0
        case ["check"]:
            fault = fault_of_installed()
        case ["check", wheel]:
            fault = fault_of_wheel(Path(wheel))
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    if fault is not None:
        sys.stdout.write(f"{fault}\n")
    return int(fault is not None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
