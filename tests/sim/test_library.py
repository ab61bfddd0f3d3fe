"""SimGrid is found wherever its package has put it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from gridsched.sim.library import load_c_library, load_simgrid, version

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_the_modules():
    """Three numbers, the first two of which are supported."""
    assert version() == load_simgrid().simgrid_version
    assert version().split(".")[:2] in (["4", "0"], ["4", "1"])


def test_the_library_is_the_one_the_module_uses():
    """Both see one engine: the C interface asks the library that the module has loaded."""
    assert Path(load_c_library()._name).name.startswith("libsimgrid.so")


def _link(source: Path, target: Path) -> None:
    """Make the file appear under another path; it has 100 MB, so copy only where it must be."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy(source, target)


@pytest.fixture
def distribution(tmp_path: Path) -> dict[str, str]:
    """SimGrid laid out as a distribution's package does, everything else as it is here.

    The module lies among the system's Python packages without metadata; its library lies in a
    folder of the loader's (here by LD_LIBRARY_PATH) under its full name only.
    """
    packages, libraries = tmp_path / "dist-packages", tmp_path / "lib"
    packages.mkdir()
    libraries.mkdir()
    for item in Path(sysconfig.get_path("purelib")).iterdir():
        if item.name.startswith("libsimgrid.so."):
            _link(item, libraries / item.name)
        elif item.name.startswith("simgrid.cpython"):
            shutil.copy(item, packages)
        elif not item.name.startswith(("simgrid", "libs")) and item.suffix != ".pth":
            (packages / item.name).symlink_to(item)
    if not any(libraries.iterdir()):
        pytest.skip("SimGrid is a distribution's here already")
    return {
        "LD_LIBRARY_PATH": str(libraries),
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PYTHONPATH": f"{ROOT}:{packages}",
        "PYTHONNOUSERSITE": "1",
    }


def test_a_distributions_package_is_enough(distribution, tmp_path):
    """No name ``libsimgrid.so``, no metadata: a run on SimGrid gives its joules all the same."""
    code = (
        "from importlib.metadata import packages_distributions, PackageNotFoundError, version\n"
        "from gridsched import Scenario, run\n"
        "from gridsched.sim.library import version as module_version\n"
        "try:\n    version('simgrid')\nexcept PackageNotFoundError:\n    print('no metadata')\n"
        "print(module_version())\n"
        "result = run(Scenario('platforms/ex_a.xml', 'examples/ex_a.csv', 'lecsa'))\n"
        "print(result.summary()['makespan_s'], result.energy_plugin_j)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=distribution, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    metadata, found, outcome = done.stdout.splitlines()
    assert metadata == "no metadata"
    assert found == version()
    makespan, joules = map(float, outcome.split())
    assert makespan == 100.0
    assert joules > 0
