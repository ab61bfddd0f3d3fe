"""The set-up takes only a SimGrid that the environment's Python loads, and builds it for that Python."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULE = ROOT / "scripts" / "simgrid_module.py"
CPYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
WHEEL = f"simgrid-4.1-{CPYTHON}-{CPYTHON}-linux_{os.uname().machine}.whl"
OTHER_MODULE = "simgrid.cpython-399-x86_64-linux-gnu.so"
#: A CMake project that asks for Python as SimGrid's does, and prints what it got.
CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.12)
project(asks LANGUAGES CXX)
find_package(Python3 COMPONENTS Interpreter)
find_package(Python3 COMPONENTS Development)
message("found: ${Python3_EXECUTABLE} ${Python3_INCLUDE_DIRS}")
"""


def made_wheel(folder: Path, *modules: str, name: str = WHEEL) -> Path:
    """Write a wheel whose modules are empty files."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for module in modules:
            archive.writestr(module, "")
    return folder / name


def checked(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, MODULE, "check", *words], capture_output=True, text=True)


def in_set_up(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code with the functions of set_up.sh, for this Python in place of .venv's."""
    lines = f". scripts/set_up.sh; VENV_PYTHON={sys.executable}; {code}"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHON"} | environment
    return subprocess.run(["bash", "-c", lines], cwd=ROOT, env=variables, capture_output=True, text=True)


def installed_simgrid() -> Path:
    """Return the folder of an installed SimGrid with its library beside it."""
    spec = importlib.util.find_spec("simgrid")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path("nowhere")
    if not list(folder.glob("libsimgrid.so.*")):
        pytest.skip("SimGrid is not installed from a wheel")
    return folder


@pytest.mark.parametrize("module", [OTHER_MODULE, "simgrid.py"])
def test_a_wheel_with_the_module_of_another_python_is_refused(module: str, tmp_path):
    """The wheel's own name fits, as it did when CMake took another Python; the module there is named."""
    done = checked(made_wheel(tmp_path, module))
    assert done.returncode == 1
    assert f"simgrid{EXTENSION_SUFFIXES[0]}" in done.stdout
    assert (module in done.stdout) == module.endswith(".so")


def test_a_wheel_whose_module_does_not_load_is_refused(tmp_path):
    """A right name is not enough: header files of another Python give one, too."""
    done = checked(made_wheel(tmp_path, f"simgrid{EXTENSION_SUFFIXES[0]}"))
    assert (done.returncode, "ImportError" in done.stdout) == (1, True)


def test_a_damaged_wheel_is_refused(tmp_path):
    """A file that is not an archive is reported as useless."""
    (tmp_path / WHEEL).write_text("no archive")
    done = checked(tmp_path / WHEEL)
    assert (done.returncode, done.stdout != "") == (1, True)


def test_the_installed_simgrid_is_accepted():
    """The SimGrid that these tests run on passes the check."""
    installed_simgrid()
    assert (checked().returncode, checked().stdout) == (0, "")


def test_pips_cache_loses_wrong_wheels_only(tmp_path):
    """What this Python cannot load goes; its right wheel, and those of other Pythons, stay."""
    pytest.importorskip("pip")
    simgrid = installed_simgrid()
    wheels = tmp_path / "wheels"
    wrong = made_wheel(wheels / "aa" / "wrong", OTHER_MODULE)
    foreign = made_wheel(wheels / "bb" / "foreign", OTHER_MODULE, name=WHEEL.replace(CPYTHON, "cp399"))
    right = made_wheel(wheels / "cc" / "right")
    with zipfile.ZipFile(right, "w") as archive:
        for path in (*simgrid.glob("simgrid*.so"), *simgrid.glob("libsimgrid.so.*")):
            archive.write(path, path.name)
    done = in_set_up("forget_wrong_wheels", PIP_CACHE_DIR=str(tmp_path))
    assert (done.returncode, str(wrong) in done.stdout) == (0, True)
    assert [path.exists() for path in (wrong, foreign, right)] == [False, True, True]


def test_a_cache_that_is_off_holds_nothing_wrong():
    """pip then refuses to list it."""
    pytest.importorskip("pip")
    done = in_set_up("forget_wrong_wheels; echo went on", PIP_NO_CACHE_DIR="1")
    assert (done.returncode, done.stdout) == (0, "went on\n")


def test_a_ready_wheel_of_another_python_stops_the_set_up(tmp_path):
    """It is named, and nothing is installed."""
    wheel = made_wheel(tmp_path, OTHER_MODULE)
    done = in_set_up(f"wheel_folders() {{ echo '{tmp_path}'; }}; install() {{ echo installed; }}; install_simgrid")
    assert (done.returncode, done.stdout) == (1, "")
    assert str(wheel) in done.stderr


def test_another_python_asks_for_another_environment(tmp_path):
    """An environment of this Python is that of this Python, and not of another one."""
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho /elsewhere 3.99\n")
    other.chmod(0o755)
    answers = [
        in_set_up("is_of_wanted_python", **wanted).returncode
        for wanted in ({}, {"PYTHON": sys.executable}, {"PYTHON": str(other)})
    ]
    assert answers == [0, 0, 1]


def test_cmake_takes_the_environments_python(tmp_path):
    """Whatever else is installed, interpreter and header files are this Python's."""
    if shutil.which("cmake") is None or shutil.which("g++") is None:
        pytest.skip("cmake or g++ is not installed")
    version = json.loads(subprocess.check_output(["cmake", "-E", "capabilities"]))["version"]
    if (version["major"], version["minor"]) < (3, 21):
        pytest.skip("CMake before 3.21 does not read CMAKE_TOOLCHAIN_FILE of the environment")
    headers = sysconfig.get_config_var("INCLUDEPY")
    if not Path(headers, "Python.h").exists():
        pytest.skip("this Python has no header files")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_LISTS)
    toolchain = tmp_path / "python.cmake"
    toolchain.write_text(subprocess.check_output([sys.executable, MODULE, "toolchain"], text=True))
    done = subprocess.run(
        ["cmake", "-S", tmp_path, "-B", tmp_path / "build"],
        env={**os.environ, "CMAKE_TOOLCHAIN_FILE": str(toolchain)},
        capture_output=True,
        text=True,
    )
    assert f"found: {sys.executable} {headers}\n" in done.stderr
