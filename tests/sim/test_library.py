"""SimGrid's library, and faults of the environment it runs in."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from sim_cases import SIZES, acting, ex_a, on_simgrid

from gridsched.drivers.simgrid_library import load_c_library, load_simgrid, version
from gridsched.errors import EnvironmentFault, SimulationError, blames_environment
from gridsched.sim.client import SimulationServer, server

# SimGrid is found wherever its package has put it.

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
        "from gridsched.drivers.simgrid_library import version as module_version\n"
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


# What the machine cannot do is not a result of a run: an error class of its own.


def leave_no_room(state) -> None:
    """Let this process have no more memory than it has: no thread's stack fits."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (4 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def leave_no_processes(state) -> None:
    """Become a user, if need be, and let it have no more processes and threads."""
    if os.getuid() == 0:
        os.setuid(54321)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


@pytest.mark.parametrize("leave_nothing", [leave_no_room, leave_no_processes])
def test_a_leading_actor_that_cannot_be_made(leave_nothing):
    """SimGrid's actors are threads; where the leading one cannot be made, the run is not to blame."""

    def prepare_without_room(scheduler, system, rng):
        leave_nothing(None)

    policy = acting(lambda state: None, replicates=True)
    type(policy).prepare = prepare_without_room
    with pytest.raises(EnvironmentFault, match="temporarily unavailable") as caught:
        on_simgrid(ex_a(), SIZES, policy)
    assert "\n" not in str(caught.value)
    assert on_simgrid(ex_a(), SIZES).summary()["tasks_finished"] == len(SIZES)


def test_a_policy_that_cannot_start_a_thread():
    """A thread of the policy's own is the machine's to give, too."""

    def start_thread(state):
        import threading

        leave_no_room(state)
        threading.Thread(target=print).start()

    with pytest.raises(EnvironmentFault, match="can't start new thread"):
        on_simgrid(ex_a(), SIZES, acting(start_thread))


def test_a_process_that_cannot_be_made():
    """The server may make no more processes: it reports this, and serves on once it may."""
    with SimulationServer() as own:
        own.call(os.getpid)
        pid = own._process.pid
        files = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, files[1]))
        with pytest.raises(EnvironmentFault, match="Too many open files"):
            own.call(os.getpid)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, files)
        assert own.call(os.getpid)[0] != os.getpid()


@pytest.mark.parametrize("interpreter", ["/nowhere/python", "/dev/null", "/bin/false"])
def test_a_server_that_does_not_start(monkeypatch, interpreter):
    """No interpreter, one that may not be executed, one that ends at once."""
    monkeypatch.setattr(sys, "executable", interpreter)
    with pytest.raises(EnvironmentFault, match="server"):
        SimulationServer()


def test_a_crash_is_still_a_failed_run():
    """What a policy does to its own process is not a fault of the machine."""
    with pytest.raises(SimulationError) as caught:
        on_simgrid(ex_a(), SIZES, acting(lambda state: os.abort()))
    assert not isinstance(caught.value, EnvironmentFault)
    assert server().is_alive


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BlockingIOError(11, "Resource temporarily unavailable"), True),
        (OSError(28, "No space left on device"), True),
        (RuntimeError("can't start new thread"), True),
        (FileNotFoundError(2, "No such file or directory"), False),
        (RuntimeError("no thread of mine"), False),
        (MemoryError("Unable to allocate 7 TiB"), False),
    ],
)
def test_whom_an_exception_blames(error, expected):
    """Limits of the machine, and nothing else."""
    assert blames_environment(error) is expected


def test_the_stubs_name_what_the_module_has():
    """Each class, method and property of `stubs` is one of SimGrid's, by mypy's stubtest."""
    folder = str(Path(load_simgrid().__file__).parent)
    environment = os.environ | {"MYPYPATH": str(ROOT / "stubs"), "LD_LIBRARY_PATH": folder}
    allowed = ["--allowlist", str(ROOT / "stubs/allowlist.txt")]
    command = [sys.executable, "-m", "mypy.stubtest", "simgrid", "--ignore-missing-stub", *allowed]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
