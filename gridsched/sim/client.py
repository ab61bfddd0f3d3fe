"""Ask the fork server for a run; every way a run can go wrong becomes one clear error."""

from __future__ import annotations

import atexit
import os
import pickle
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched import errors
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, first_line, is_installed
from gridsched.drivers.simulated_platform import IS_SET_UP, refusal, without_route
from gridsched.errors import (
    InputError,
    MissingDependency,
    ProcessLost,
    SimulationError,
    policy_at_work,
    shorten,
    text_of,
)
from gridsched.sim.processes import AnsweringProcess, Outcome

if TYPE_CHECKING:
    from gridsched.model.trace import Trace
    from gridsched.policy.base import Scheduler
    from gridsched.scenario import LoadedScenario
    from gridsched.sim.outcome import SimulationOutcome

#: numpy's and numba's threads would make forking unsafe; one simulation uses one CPU anyway.
_SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
_PACKAGE = __name__.partition(".")[0]
#: What every run imports; numpy alone would load its generators again in each run's own process.
_OF_RUNS = ("numpy.random", "gridsched.sim.child", "gridsched.drivers.maestro")
#: With fewer tasks, of all its runs together, a scheduler does without compiled loops, or nearly so.
_FEW_TASKS = 100
#: A slow package that the server loads better where it loads compiled loops.
_LOADED_WITH_LOOPS = "numba"
#: A server that is closed may take so long to end [s].
_CLOSING_S = 5.0
_NOISE = re.compile(r"Configuration change: Set |No core dump was generated")
_NO_TROUBLE = re.compile(r"/(INFO|VERBOSE)\]")
_TROUBLE = re.compile(r"CRITICAL|ERROR|exception|Deadlock|terminate|Error")
_STAMP = re.compile(r"^\[[^]]*\] (?:\S+:\d+: )?(?:\[[^]]*\] )?")


class SimulationServer(AnsweringProcess):
    """A running fork server; use it as a context manager, or through `simulate`."""

    def __init__(self) -> None:
        super().__init__("gridsched.sim.server", "The simulation server", variables=_SINGLE_THREADED)
        self.owner = os.getpid()
        #: module of schedulers -> tasks of the runs that have used it
        self._tasks_by_module: Counter[str] = Counter()
        #: slow packages that runs had to load
        self._loaded: set[str] = set()

    def __enter__(self) -> SimulationServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server."""
        self.end(_CLOSING_S)

    def simulate(self, scenario: LoadedScenario, scheduler: Scheduler, platform_file: Path) -> SimulationOutcome:
        """Run a scenario in a fresh process; see `gridsched.sim.child.simulate`.

        Raises
        ------
        GridschedError
            What the run raised, or a `SimulationError` for a crash, dead-lock or time-out.
        """
        from gridsched.model.trace import Trace
        from gridsched.sim import child
        from gridsched.sim.outcome import SimulationOutcome

        if not is_installed():
            raise MissingDependency(HOW_TO_INSTALL)
        where = f"SimGrid on {platform_file.name}"
        run = partial(child.simulate, scenario, scheduler, platform_file)
        records, log = self.run(run, scenario, scheduler, where, IS_SET_UP)
        trace = Trace(platform=scenario.platform, tasks=scenario.tasks, **records.fields)
        return SimulationOutcome(trace, records.plugin_j, log, records.links_j, records.grams, records.unshared)

    def run(
        self,
        function: Callable[[], Any],
        scenario: LoadedScenario,
        scheduler: Scheduler,
        where: str,
        set_up_line: str | None = None,
    ) -> tuple[Any, str]:
        """Call a function, as `call` does, that runs a scheduler once.

        What the run had to load that is slow to load, the server loads before the next one.
        """
        modules = (*_OF_RUNS, *self.modules_for_all(scheduler, len(scenario.tasks)))
        outcome = self.outcome(function, scenario.timeout_s, where, modules, modules_of(scheduler))
        result, log, loaded = _understand(outcome, scenario.timeout_s, where, set_up_line)
        if loaded:
            self._tasks_by_module.update(dict.fromkeys(modules_of(scheduler), _FEW_TASKS))
            self._loaded.update(loaded)
        return result, log

    def modules_for_all(self, scheduler: Scheduler, n_tasks: int) -> Sequence[str]:
        """Return what the server is to import, and to compile: nothing for runs that are small even together."""
        modules = modules_of(scheduler)
        self._tasks_by_module.update(dict.fromkeys(modules, n_tasks))
        ready = [each for each in modules if self._tasks_by_module[each] >= _FEW_TASKS]
        return [*ready, *sorted(self._loaded - {_LOADED_WITH_LOOPS})]

    def call(
        self,
        function: Callable[[], Any],
        timeout_s: float | None = None,
        where: str = "The simulation",
        set_up_line: str | None = None,
        modules: Iterable[str] = (),
    ) -> tuple[Any, str]:
        """Call a function in a fresh process that may make one SimGrid engine.

        Parameters
        ----------
        function : callable
            Without arguments; it and what it returns are pickled.
        timeout_s : float, optional
            Wall time after which the process is ended [s].
        where : str
            Begin of the error messages.
        set_up_line : str, optional
            Line of the log before which an abort means that the input is wrong.
        modules : iterable of str
            What the function will import, beside what every run does. The server imports it first,
            once for all functions.

        Returns
        -------
        result
            What the function returned.
        log : str
            What was written on stderr.

        Raises
        ------
        GridschedError
            What the function raised, or a `SimulationError` for a crash or time-out.
        """
        outcome = self.outcome(function, timeout_s, where, (*_OF_RUNS, *modules))
        result, log, _ = _understand(outcome, timeout_s, where, set_up_line)
        return result, log

    def outcome(
        self,
        function: Callable[[], Any],
        timeout_s: float | None,
        where: str,
        modules: Iterable[str] = (),
        if_compiled: Iterable[str] = (),
    ) -> Outcome:
        """Call a function as `call` does, with no module but the named; return how it ended.

        Modules that are named `if_compiled` are imported where all loops were compiled ahead of time.

        Raises
        ------
        GridschedError
            If the function cannot be sent, or the server does not answer.
        """
        message = timeout_s, os.getcwd(), tuple(modules), tuple(if_compiled), _packed(function, where)
        try:
            outcome: Outcome | None = self.ask(message)
        except TimeoutError as late:  # the run has stopped the server, too
            raise (
                SimulationError(f"{where}: ended after {late}.") if str(late) else _timed_out(where, timeout_s)
            ) from None
        except OSError:
            outcome = None
        if outcome is None:
            self.kill()
            raise ProcessLost(f"{where}: the simulation server has ended; was it killed?")
        return outcome


def _packed(function: Callable[[], Any], where: str) -> bytes:
    """Return a function as it is sent; refuse one that cannot be."""
    import cloudpickle  # the reference driver sends nothing

    try:
        return cloudpickle.dumps(function)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a user's own policy may raise anything
        raise InputError(
            f"{where}: the scheduler (or what it holds) cannot be sent to the simulating "
            f"process: {text_of(error)}. Keep only what can be pickled in it."
        ) from None


def _understand(
    outcome: Outcome, timeout_s: float | None, where: str, set_up_line: str | None
) -> tuple[Any, str, list[str]]:
    """Return (result, log, slow packages that it had to load), or raise the error that an outcome means."""
    logged = outcome.log.splitlines()
    lines = [line for line in logged if line != set_up_line and not _NOISE.search(line)]
    if outcome.timed_out:
        raise _timed_out(where, timeout_s)
    if outcome.payload is None or outcome.signal:
        is_refusal = outcome.signal == signal.SIGABRT or outcome.status > 0
        if set_up_line and set_up_line not in logged and is_refusal:
            raise InputError(f"{refusal(where)}: {first_line(_problem(lines))}.")
        if (lost := without_route(where, _problem(lines))) is not None:
            raise lost
        how = f"exit status {outcome.status}"
        if outcome.signal:
            how = f"signal {outcome.signal} ({signal.Signals(outcome.signal).name})"
        kind = ProcessLost if outcome.signal == signal.SIGKILL else SimulationError
        raise kind(f"{where} ended by {how}: {_problem(lines)}")
    try:
        kind, *rest = pickle.loads(outcome.payload)
    except Exception:  # noqa: BLE001 - whatever is there
        raise SimulationError(
            f"{where}: its process has sent no result that can be read. Does the policy write to "
            "files that it has not opened?"
        ) from None
    if kind == "raised":
        raise SimulationError(rest[0])
    if kind == "error":
        name, text = rest
        if name == "SimulationError" and (reason := _problem(lines, default="")):
            text = f"{text} SimGrid printed: {reason}"
        raise getattr(errors, name)(text)
    return rest[0], "\n".join(lines), rest[1]


def _timed_out(where: str, timeout_s: float | None) -> SimulationError:
    return SimulationError(f"{where}: ended after the time-out of {timeout_s:g} s.")


def _problem(lines: list[str], default: str = "it printed nothing.") -> str:
    """Return the line of SimGrid's log that reports what went wrong."""
    lines = [line for line in lines if line.strip() and not _NO_TROUBLE.search(line)]
    problems = [line for line in lines if _TROUBLE.search(line)] or lines[:1]
    return shorten(_STAMP.sub("", problems[0]).strip()) if problems else default


def check_policies(paths: Sequence[Path], timeout_s: float | None) -> None:
    """Import files of policies in a process of their own first: what they do there does no harm.

    Parameters
    ----------
    paths : sequence of Path
        Each may import files beside it.
    timeout_s : float or None
        Wall time that their import may take [s].

    Raises
    ------
    InputError
        If they cannot be imported, end their process, or take longer.
    """
    from gridsched.policy.policy_files import is_loaded

    if not all(map(is_loaded, paths)):
        where = f"The import of {', '.join(map(str, paths))}"
        try:
            load = partial(_import, paths)
            server().call(load, timeout_s, where, modules=["gridsched.policy.policy_files"])
        except SimulationError as error:
            raise InputError(str(error)) from None


def _import(paths: Sequence[Path]) -> None:
    from gridsched.policy.policy_files import load_with_siblings

    for path in paths:
        load_with_siblings(path)


def modules_of(scheduler: Scheduler) -> list[str]:
    """Return the modules of a scheduler, and of schedulers that it holds.

    Only those of this package: a user's may have changed since the run before, or do anything.
    """
    from gridsched.policy.base import Scheduler

    held = (scheduler, *vars(scheduler).values())
    names = {type(each).__module__ for each in held if isinstance(each, Scheduler)}
    return sorted(name for name in names if name.startswith(f"{_PACKAGE}."))


_own = threading.local()


def server() -> SimulationServer:
    """Return this thread's own server, which is started when first needed."""
    own: SimulationServer | None = getattr(_own, "server", None)
    if own is None or own.owner != os.getpid() or not own.is_alive:
        own = _own.server = SimulationServer()
        atexit.register(own.close)
    return own


def use_server(own: SimulationServer) -> None:
    """Let this thread ask the server of another one, which does not ask it meanwhile."""
    _own.server = own


def simulate(scenario: LoadedScenario, scheduler: Scheduler, platform_file: Path) -> SimulationOutcome:
    """Run a scenario on this thread's own server; see `gridsched.sim.child.simulate`."""
    return server().simulate(scenario, scheduler, platform_file)


def simulate_reference(scenario: LoadedScenario, scheduler: Scheduler, *, is_apart: bool = False) -> Trace:
    """Run a scenario with the reference driver; in this process where nothing speaks against it.

    Under a time-out it needs a process that can be ended: a policy that loops in C or catches
    every exception cannot be ended otherwise. So does a policy from a file, which may end its
    process or change it for the runs that follow, and one that starts a program. `is_apart` asks
    for such a process in any case.

    Raises
    ------
    GridschedError
        What the run raised, or a `SimulationError` for a crash or time-out.
    """
    from gridsched.policy.policy_files import needs_own_process
    from gridsched.sim import child

    if scenario.timeout_s is None and not is_apart and not needs_own_process(scheduler):
        with policy_at_work():
            return child.simulate_reference(scenario, scheduler)
    run = partial(child.simulate_reference, scenario, scheduler)
    trace: Trace
    trace, _ = server().run(run, scenario, scheduler, "The reference driver")
    return replace(trace, platform=scenario.platform, tasks=scenario.tasks)
