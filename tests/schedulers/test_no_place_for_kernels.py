"""Where nothing is writable numba finds no place for its cache; everything runs all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gridsched

PACKAGE = Path(gridsched.__file__).parent


def test_a_read_only_package_without_a_home(tmp_path):
    """A compiled policy on the reference driver, an interpreted one on both.

    Files stand where numba would make its folders, which not even root can do then.
    """
    copy = tmp_path / "packages" / "gridsched"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "schedulers" / "kernels" / "__pycache__").touch()
    no_folder = tmp_path / "file"
    no_folder.touch()
    code = (
        "import gridsched\n"
        "from gridsched import Host, Platform, PState, Scenario, make_tasks, run\n"
        "from gridsched.schedulers.kernels.compiled import all_are_cached\n"
        "from gridsched.schedulers.kernels.batch import occupy\n"
        "from gridsched.sim.library import is_installed\n"
        "platform = Platform((Host('h', (PState(10.0, 1.0, 2.0, 3.0),)),))\n"
        "for driver in ['reference', 'simgrid'][: 1 + is_installed()]:\n"
        "    result = run(Scenario(platform, make_tasks([100.0]), 'wq', driver=driver))\n"
        "    print(result.summary()['makespan_s'])\n"
        "import numpy as np\n"
        "ready = np.zeros((1, 2))\n"
        "occupy(ready, 0, 5.0)\n"
        "print(gridsched.__file__, all_are_cached(), ready.tolist())\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(no_folder),
        "XDG_CACHE_HOME": str(no_folder),
        "NUMBA_CACHE_DIR": str(no_folder / "numba"),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    *makespans, state = done.stdout.splitlines()
    assert set(makespans) == {"10.0"}
    assert state == f"{copy / '__init__.py'} False [[0.0, 5.0]]"
