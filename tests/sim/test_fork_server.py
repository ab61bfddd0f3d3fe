"""However a run goes wrong, it becomes one clear error, and the server serves the next run."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sim_cases import SIZES, acting, deciding, ex_a, on_simgrid

from gridsched.compiled import report_compiling, watched_compiling
from gridsched.drivers.reference import CHECK_INVARIANTS
from gridsched.errors import GridschedError, IncompleteRun, InputError, SimulationError
from gridsched.files.output_files import is_alive
from gridsched.loop_library import KERNELS, has_library
from gridsched.model.tasks import make_tasks
from gridsched.policy.decisions import Assign
from gridsched.policy.registry import make_scheduler
from gridsched.runs.preparation import prepare
from gridsched.runs.run import run
from gridsched.runs.run_many import run_many
from gridsched.scenario import MAX_TIMEOUT_S, Scenario
from gridsched.sim import processes
from gridsched.sim.child import simulate_reference
from gridsched.sim.client import SimulationServer, modules_of, server
from gridsched.testing.cases import cases_for

PLATFORMS = Path(__file__).resolve().parents[3] / "shared" / "data" / "platforms"


def loaded_packages() -> set[str]:
    """Return the names of all modules that this process has."""
    return set(sys.modules)


def raise_value_error(state) -> None:
    """Fail as a faulty policy does, with a message of two lines."""
    raise ValueError(f"{len(state.mappable)} tasks are too many\nfor me")


def raise_own_error(state) -> None:
    """Fail with an error class that only the user has."""

    class MyError(InputError):
        """A user's own class."""

    raise MyError("the policy wants another platform.")


def loop(state) -> None:
    """Never come back."""
    while True:
        time.sleep(0.01)


DISASTERS = [
    (lambda state: os.abort(), SimulationError, "ended by signal 6 \\(SIGABRT\\)"),
    (lambda state: os.kill(os.getpid(), signal.SIGKILL), SimulationError, "signal 9 \\(SIGKILL\\)"),
    (lambda state: os.kill(os.getpid(), signal.SIGTERM), SimulationError, "15 \\(SIGTERM\\)"),
    (lambda state: os.kill(os.getpid(), signal.SIGSEGV), SimulationError, "11 \\(SIGSEGV\\)"),
    (lambda state: os._exit(3), SimulationError, "ended by exit status 3"),
    (lambda state: sys.exit("bye"), SimulationError, r"^SystemExit: bye \(test_fork_server"),
    (raise_value_error, SimulationError, r"^ValueError: 5 tasks are too many for me \(test_fork"),
    (raise_own_error, InputError, r"^the policy wants another platform \(test_fork_server.py:\d+ in"),
    (lambda state: state.mappable.fill(0), SimulationError, "ValueError: .*read-only"),
    (loop, SimulationError, r"ended after the time-out of 0\.4 s"),
]


def leave_a_child(state) -> list:
    """Start a process that would hold the run's pipes for minutes, then fail."""
    child = os.fork()
    if child == 0:
        time.sleep(300)
        os._exit(0)
    raise ValueError(f"left {child}")


def leave_a_daemon(state) -> list:
    """Start a process in a session of its own, which prints for ever, then fail."""
    child = os.fork()
    if child == 0:
        os.setsid()
        while True:
            with contextlib.suppress(OSError):  # no one reads any more
                os.write(2, b"x" * 60_000)
    raise ValueError(f"left {child}")


def print_endlessly(state) -> list:
    """Say far more than anybody reads, in one line, then crash."""
    for _ in range(8):
        sys.stderr.write("x" * 1_000_000)
    sys.stderr.flush()
    os.abort()


def spoil_the_books(state) -> None:
    """Count a task more, as a fault of the engine might."""
    state._run.open_tasks += 1


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_each_step_is_validated_where_the_environment_asks(driver):
    """As in all tests of this folder: what is kept in two places is compared, in SimGrid's process, too."""
    with pytest.raises(SimulationError, match=r"open tasks at t = 0\.0 s: 6, not 5"):
        run(Scenario(ex_a(), make_tasks(SIZES), acting(spoil_the_books), driver=driver))


def test_no_step_is_validated_where_nobody_asks(monkeypatch):
    """Then the fault shows at the end: the one task more is never done."""
    monkeypatch.setenv(CHECK_INVARIANTS, "0")
    with pytest.raises(GridschedError) as caught:
        run(Scenario(ex_a(), make_tasks(SIZES), acting(spoil_the_books), driver="reference"))
    assert "open tasks at" not in str(caught.value)


@pytest.mark.parametrize("act", [leave_a_child, leave_a_daemon])
def test_what_a_policy_starts_ends_with_its_run(act):
    """The run does not wait for it, and it is gone."""
    with pytest.raises(SimulationError, match="left") as caught:
        on_simgrid(ex_a(), SIZES, acting(act), timeout_s=200)
    child = int(str(caught.value).split("left ")[1].split()[0])
    deadline = time.monotonic() + 60  # its signal is on its way
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_a_policy_prints_is_cut():
    """Megabytes in one line become an error that fits a screen."""
    with pytest.raises(SimulationError, match="SIGABRT") as caught:
        on_simgrid(ex_a(), SIZES, acting(print_endlessly))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("execution_mode", ["maestro", "actors"])
@pytest.mark.parametrize(("act", "kind", "message"), DISASTERS)
def test_a_disaster_is_one_clear_error(act, kind, message, execution_mode):
    """Crash, signal, exit, exception or endless loop: one line, and the server lives on."""
    ours = server()
    with pytest.raises(kind, match=message) as caught:
        on_simgrid(ex_a(), SIZES, acting(act), execution_mode=execution_mode, timeout_s=0.4 if act is loop else 30.0)
    assert "\n" not in str(caught.value)
    assert server() is ours
    assert on_simgrid(ex_a(), SIZES).trace.horizon_s == 80.0


def catch_all_and_go_on(state) -> None:
    """Never come back, whatever is raised."""
    while True:
        try:
            time.sleep(10)
        except BaseException:  # noqa: BLE001 - the test is about this
            continue


def loop_in_c(state) -> None:
    """Stay in C, where Python's signal handlers do not run."""
    pow(3, 10**9)


@pytest.mark.parametrize("act", [loop, catch_all_and_go_on, loop_in_c])
def test_the_reference_driver_heeds_a_time_out(act):
    """It does not hang on the policy's good will: the process is ended."""
    began = time.monotonic()
    with pytest.raises(SimulationError, match=r"reference driver.*0\.4 s"):
        on_simgrid(ex_a(), SIZES, acting(act), driver="reference", timeout_s=0.4)
    assert time.monotonic() - began < 20.0
    assert on_simgrid(ex_a(), SIZES, driver="reference", timeout_s=30.0).trace.horizon_s == 80.0


@pytest.mark.parametrize("execution_mode", ["maestro", "actors"])
def test_what_the_controller_refuses_is_the_same_error_as_without_simgrid(execution_mode):
    """InvalidDecision and IncompleteRun come out of the child word for word."""
    for answer in (lambda state: [], lambda state: [Assign(0, 7)]):
        texts = set()
        for driver in ("reference", "simgrid"):
            with pytest.raises(GridschedError) as caught:
                on_simgrid(ex_a(), SIZES, deciding(answer), driver=driver, execution_mode=execution_mode)
            texts.add((type(caught.value), str(caught.value)))
        assert len(texts) == 1


def test_a_policy_that_stops_in_the_middle_is_incomplete():
    """What it left is named, after the simulation has run as far as it could."""
    answer = deciding(lambda state: [Assign(0, 0)] if state.now == 0 else [])
    with pytest.raises(IncompleteRun, match=r"4 of 5.*t = 10 s.* 2, 3, 4, 5"):
        on_simgrid(ex_a(), SIZES, answer)


def test_a_policy_that_cannot_be_sent_is_refused():
    """A lock cannot be pickled; the message states this, and nothing has been started."""
    policy = acting(threading.Lock().acquire)
    with pytest.raises(InputError, match="cannot pickle"):
        on_simgrid(ex_a(), SIZES, policy)


def test_a_killed_server_is_replaced():
    """Killed between two runs, it is started again by the next one."""
    on_simgrid(ex_a(), SIZES)
    first = server()
    first._process.kill()
    first._process.wait()
    assert on_simgrid(ex_a(), SIZES).trace.horizon_s == 80.0
    assert server() is not first


def test_a_server_that_dies_during_a_run_is_an_error_and_is_replaced():
    """A policy that kills its parent gets a clear error; the next run has a new server."""
    policy = acting(lambda state: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(5)))
    with pytest.raises(SimulationError, match=r"server.*killed"):
        on_simgrid(ex_a(), SIZES, policy)
    assert on_simgrid(ex_a(), SIZES).trace.horizon_s == 80.0


def test_a_dead_server_of_ones_own_is_a_clear_error():
    """A server used as a context manager is not replaced silently.

    A fresh one has loaded what each run needs: numpy loads its random numbers late, by itself.
    """
    with SimulationServer() as own:
        assert own.call(lambda: "numpy.random" in sys.modules)[0]
        assert own.call(os.getpid)[0] != os.getpid()
        own._process.kill()
        own._process.wait()
        with pytest.raises(SimulationError, match="server"):
            own.call(os.getpid)


def test_each_run_has_a_process_of_its_own_on_one_cpu():
    """Processes differ from run to run, and each is pinned to a single CPU."""

    def where():
        return os.getpid(), os.sched_getaffinity(0)

    (first, cpus), _ = server().call(where)
    (second, _), _ = server().call(where)
    assert len({first, second, os.getpid()}) == 3
    assert len(cpus) == 1
    assert cpus <= os.sched_getaffinity(0)


def test_what_a_policy_prints_does_not_disturb_the_protocol():
    """Standard output of the child ends in the log."""

    def shout(state):
        os.write(1, b"written to standard output\n")

    result = on_simgrid(ex_a(), SIZES, acting(shout))
    assert result.trace.horizon_s == 80.0
    assert "written to standard output" in result.log


def test_simgrids_options_are_passed_through(tmp_path):
    """With tracing on, SimGrid writes its trace file."""
    trace = tmp_path / "run.trace"
    result = on_simgrid(ex_a(), SIZES, cfg=("tracing:yes", f"tracing/filename:{trace}"))
    assert result.trace.horizon_s == 80.0
    assert "%EventDef" in trace.read_text()


def test_simgrids_log_settings_are_passed_through():
    """A lower threshold makes SimGrid print more."""
    quiet = on_simgrid(ex_a(), SIZES, log=("root.thresh:error",))
    told = on_simgrid(ex_a(), SIZES, log=("root.thresh:verbose",))
    assert len(told.log) > len(quiet.log) + 1000


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"cfg": ("nonsense/option:1",)}, InputError, "refuses --cfg=nonsense/option:1: Bad config"),
        ({"cfg": ("precision/timing:soon",)}, InputError, "--cfg=precision/timing:soon: invalid"),
        ({"cfg": ("nonsense",)}, InputError, "--cfg=nonsense: "),
        ({"log": ("root.thresh:loud",)}, InputError, "--log=root.thresh:loud: Unknown priority"),
        ({"cfg": ("host/model:nonsense",)}, InputError, "Unable to find host model 'nonsense'"),
        ({"log": ("root.thresh:debug",)}, InputError, "Priority 'debug' .* is above allowed"),
        ({"cfg": ("tracing:yes",), "execution_mode": "maestro"}, InputError, "use execution_mode='auto'"),
    ],
)
def test_bad_options_are_a_clear_error(options, kind, message):
    """An option that SimGrid refuses, or aborts on, is named in one line."""
    with pytest.raises(kind, match=message) as caught:
        on_simgrid(ex_a(), SIZES, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_host_model_in_the_platform_that_simgrid_refuses(tmp_path):
    """SimGrid 4.1 has no host model 'CLM03' and aborts; its words come through."""
    path = tmp_path / "CLM03.xml"
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><config><prop id="host/model" value="CLM03"/></config>\n'
        '<zone id="z" routing="None"><host id="h" speed="1f">'
        '<prop id="wattage_per_state" value="1:2"/></host></zone></platform>\n'
    )
    with pytest.raises(InputError, match=r"CLM03\.xml.*'CLM03'"):
        on_simgrid(path, [1.0])
    assert on_simgrid(ex_a(), SIZES).trace.horizon_s == 80.0


@pytest.mark.parametrize("name", ["batsim_graphene", "batsim_energy_platform"])
def test_real_platforms_that_cannot_be_run(name):
    """Platforms that SimGrid, or its energy plugin, aborts on are one clear error."""
    path = PLATFORMS / f"{name}.xml"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the checkout")
    with pytest.raises(GridschedError, match=name) as caught:
        on_simgrid(path, SIZES)
    assert "\n" not in str(caught.value)


def test_a_platform_simgrid_sees_otherwise_is_refused(tmp_path):
    """A file that changes between our reading and SimGrid's is not simulated by mistake."""
    from gridsched.drivers.simulated_platform import SimulatedPlatform
    from gridsched.platform_io.xml_reader import read_platform
    from gridsched.platform_io.xml_writer import write_platform

    path = tmp_path / "platform.xml"
    write_platform(ex_a(), path, command="a test")
    platform = read_platform(path)
    path.write_text(path.read_text().replace('speed="50.0f"', 'speed="51.0f"'))
    with pytest.raises(SimulationError, match=r"'h2'.*51\.0"):
        server().call(lambda: SimulatedPlatform(platform, path).clock())


def test_tasks_below_simgrids_precision_are_refused():
    """A task shorter than 1e-9 s is refused in one line that names the remedy."""
    with pytest.raises(InputError, match="1e-09 s") as caught:
        on_simgrid(ex_a(), [1e-8, 5e-9])
    assert "--driver reference" in str(caught.value)


def test_relative_paths_in_cfg_are_the_askers(tmp_path, monkeypatch):
    """A relative file name in --cfg counts from where the asking process is now."""
    on_simgrid(ex_a(), SIZES)  # the server is running, with another working folder
    monkeypatch.chdir(tmp_path)
    on_simgrid(ex_a(), SIZES, cfg=("tracing:yes", "tracing/filename:here.trace"))
    assert (tmp_path / "here.trace").stat().st_size > 0


def test_the_server_imports_what_a_run_needs_before_it_forks():
    """What one run names is loaded for all later runs; before that it was not."""
    ours, module = server(), "colorsys"  # which nothing else here imports

    def loaded() -> bool:
        return module in sys.modules

    assert [ours.call(loaded)[0], ours.call(loaded, modules=[module])[0], ours.call(loaded)[0]] == [False, True, True]


@pytest.mark.systems("profit")
def test_only_modules_of_this_package_are_imported_before_the_fork():
    """A scheduler's own module, and those of schedulers that it holds; never a user's."""
    rolling, queue, own = (make_scheduler(id) for id in ("lp_rolling", "wq", "wq"))
    assert _modules(rolling) == ["gridsched.systems.profit.lp_rolling"]
    queue.inner = rolling
    assert _modules(queue) == ["gridsched.schedulers.bag.baselines", "gridsched.systems.profit.lp_rolling"]
    own.inner = acting(len)
    assert _modules(own) == ["gridsched.schedulers.bag.baselines"]


def _modules(scheduler) -> list[str]:
    return modules_of(scheduler)


def test_a_server_sleeps_while_a_run_compiles():
    """Without a time-out no clock is stopped for it, and the server waits all the same."""

    def compile_and_wait() -> None:
        report_compiling(True)
        time.sleep(1.0)

    def cpu_s() -> float:
        times = Path(f"/proc/{own._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    with SimulationServer() as own:
        own.call(os.getpid)
        before = cpu_s()
        own.call(compile_and_wait)
        assert cpu_s() - before < 0.2


@pytest.mark.systems("robust")
def test_what_a_server_compiles_before_it_forks_is_said(tmp_path, monkeypatch):
    """On a fresh install a run waits for it; once it is kept, nothing is reported."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(KERNELS, "numba")
    modules, told = ["gridsched.systems.robust.deadline"], []  # few loops
    for said in ([True, False], []):
        told.clear()
        with SimulationServer() as own, watched_compiling(told.append):
            own.call(os.getpid, timeout_s=10.0, modules=modules)
        assert told == said


def test_few_tasks_let_nothing_be_compiled_before_a_fork():
    """A server imports and compiles for a scheduler once its runs so far have many tasks together."""
    scheduler = make_scheduler("wq")
    with SimulationServer() as own:
        imported = [bool(own.modules_for_all(scheduler, 5)) for _ in range(25)]
    assert not any(imported[:6])
    assert imported[-1]


@pytest.mark.parametrize(
    ("name", "package"),
    [
        pytest.param("heft", "numpy.ma", marks=pytest.mark.systems("workflows")),
        pytest.param("lightest_load", "numba", marks=pytest.mark.systems("robust")),
        pytest.param("lp_max_profit", "scipy.optimize", marks=pytest.mark.systems("profit")),
    ],
)
def test_what_a_run_had_to_load_is_loaded_before_the_next(monkeypatch, name, package):
    """A small run of a scheduler that needs a slow package pays for it; those after it do not."""
    monkeypatch.setenv(KERNELS, "numba")
    scheduler = make_scheduler(name)
    case = next(case for case in cases_for(scheduler) if len(case.tasks) > 2)
    scenario = prepare(case.scenario(scheduler))
    with SimulationServer() as own:
        assert list(own.modules_for_all(scheduler, 0)) == []
        for _ in range(2):
            own.run(partial(simulate_reference, scenario, scheduler), scenario, scheduler, "A run")
        imported = own.modules_for_all(scheduler, 0)
        there, _ = own.call(loaded_packages, modules=imported)
    assert type(scheduler).__module__ in imported
    assert package in there


def test_a_server_imports_a_scheduler_where_that_compiles_nothing():
    """Each run's own process would import it again; with numba it might be compiled for."""
    scheduler = make_scheduler("min_min")
    case = next(case for case in cases_for(scheduler) if len(case.tasks))
    scenario = prepare(case.scenario(scheduler))
    with SimulationServer() as own:
        own.run(partial(simulate_reference, scenario, scheduler), scenario, scheduler, "A run")
        there, _ = own.call(loaded_packages)
    assert (type(scheduler).__module__ in there) == has_library()


def test_runs_at_once_use_and_leave_this_threads_server():
    """The next comparison finds it, with all that it has imported."""
    own, scenario = server(), Scenario(ex_a(), make_tasks(SIZES), "wq")
    for _ in range(2):
        first, second = run_many([scenario, replace(scenario, scheduler="mct")], workers=2)
        assert first.trace.final_state.tolist() == second.trace.final_state.tolist()
        assert server() is own
        assert own.is_alive


def test_a_message_has_a_mark_and_a_deadline():
    """What is not a message is refused at once, half of one is not waited for."""
    reader, writer = os.pipe()
    processes.send(writer, b"whole")
    assert processes.receive(reader) == b"whole"
    os.write(writer, b"x" * 100)
    with pytest.raises(processes.Garbled):
        processes.receive(reader)
    os.read(reader, 100)
    os.write(writer, processes._HEADER.pack(processes._MARK, 2**60))
    with pytest.raises(TimeoutError):
        processes.receive(reader, time.monotonic() + 0.05)
    os.close(writer)
    assert processes.receive(reader) is None
    os.close(reader)


def test_a_deadline_of_years_is_waited_for():
    """The longest time-out that is allowed is more than the system waits for at once."""
    taker, giver = os.pipe()
    try:
        processes.send(giver, b"here")
        assert processes.receive(taker, time.monotonic() + MAX_TIMEOUT_S) == b"here"
        with pytest.raises(TimeoutError):
            processes.receive(taker, time.monotonic())
    finally:
        os.close(taker)
        os.close(giver)
