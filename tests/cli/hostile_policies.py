"""Schedulers that do harm, one kind each, before they go on as a work queue.

The tests write this file elsewhere and name it on the command line and in studies; nothing of it
is run in the process of the tests.
"""

import atexit
import builtins
import contextlib
import copy
import ctypes
import gc
import os
import shutil
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

from gridsched.engine.controller import Controller
from gridsched.policy.base import Delegate
from gridsched.policy.decisions import Assign, Cancel, Drop, PowerOff, WakeAt
from gridsched.schedulers.bag.baselines import WorkQueue
from gridsched.sim import child, processes, server


class Unprintable(Exception):
    """Has no text."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class OddTask:
    """A number of a task that cannot be used as one."""

    def __index__(self):
        raise Unprintable

    __eq__ = __hash__ = __lt__ = __int__ = __repr__ = __index__


def throw(error):
    """Raise an exception, in an expression."""
    raise error


def recurse(policy, state):
    """Call itself without end."""
    return recurse(policy, state)


def endless(state):
    """Yield decisions without end."""
    decision = WakeAt(state.now + 1.0)
    while True:
        yield decision


def loop(*_):
    """Never come back, whatever is raised."""
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


def write_to_all(*_):
    """Write into every file that is open, but for the standard streams."""
    for number in range(3, 256):
        with contextlib.suppress(OSError):
            os.write(number, b"x" * 100)


def leave_daemon(policy, _):
    """Start a process outside of the group, whose parent has gone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            Path(policy.folder, "new").write_text(str(os.getpid()))
            Path(policy.folder, "new").rename(Path(policy.folder, "daemon"))
            time.sleep(3600)
        os._exit(0)
    while not Path(policy.folder, "daemon").exists():
        time.sleep(0.01)


def leave_threads(*_):
    """Start threads that end never."""
    for _ in range(8):
        threading.Thread(target=time.sleep, args=(3600,)).start()


def print_much(*_):
    """Say megabytes on both streams."""
    for stream in (1, 2):
        for _ in range(50):
            os.write(stream, b"y" * 60_000 + b"\n")


def patch_numpy(*_):
    """Put nonsense in the place of numpy's functions."""
    for name in ("array", "asarray", "zeros", "flatnonzero", "argmin", "concatenate"):
        setattr(np, name, lambda *_, **__: throw(ZeroDivisionError("numpy")))


def patch_gridsched(*_):
    """Let the engine, and what sends its results, do nothing."""
    Controller.step = lambda *_: []
    child.gc = processes.write = server.os = None


def patch_builtins(*_):
    """Take away what every module uses."""
    for name in ("len", "isinstance", "list", "dict", "print", "open", "Exception"):
        setattr(builtins, name, None)


def trace(*_):
    """Raise at every call that follows."""
    sys.settrace(lambda *_: throw(KeyError("traced")))


def use_signals(*_):
    """Let an alarm end the process."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(60)


def note_at_exit(policy, _):
    """Ask to be called at the end."""
    atexit.register(lambda: Path(policy.folder, "atexit").touch())
    atexit.register(throw, ValueError("at the end"))


def write_to_state(_, state):
    """Change what it is shown, after allowing itself to."""
    state.mappable.setflags(write=True)
    state.mappable[:] = 0


def forget_oneself(policy, _):
    """Take away its own class's attributes and module."""
    sys.modules.pop(type(policy).__module__, None)
    del Hostile.traits


#: What is done at the first ask; what it returns, if anything, are the decisions. Second: words of
#: the one line that must be printed, or "finishes" as a work queue does, or "either".
ASKED = {
    "sys_exit": (lambda *_: sys.exit(), "SystemExit"),
    "sys_exit_0": (lambda *_: sys.exit(0), "SystemExit: 0 ("),
    "sys_exit_text": (lambda *_: sys.exit("bye"), "SystemExit: bye ("),
    "base_exception": (lambda *_: throw(BaseException("base")), "BaseException: base ("),
    "generator_exit": (lambda *_: throw(GeneratorExit()), "GeneratorExit"),
    "interrupt": (lambda *_: throw(KeyboardInterrupt()), "KeyboardInterrupt"),
    "unprintable": (lambda *_: throw(Unprintable()), "Unprintable"),
    "stop_iteration": (lambda *_: throw(StopIteration(7)), "StopIteration: 7 ("),
    "group": (lambda *_: throw(ExceptionGroup("two", [KeyError(1), OSError(2)])), "ExceptionGroup"),
    "two_lines": (lambda *_: throw(ValueError("one\n\x1b[2Jtwo")), "ValueError: one"),
    "long_text": (lambda *_: throw(ValueError("x" * 10**7)), "ValueError: xxx"),
    "recursion": (recurse, "RecursionError"),
    "no_memory": (lambda *_: np.ones(10**17), "Unable to allocate"),
    "os_exit_0": (lambda *_: os._exit(0), "exit status 0"),
    "os_exit_3": (lambda *_: os._exit(3), "exit status 3"),
    "abort": (lambda *_: os.abort(), "SIGABRT"),
    "sigkill": (lambda *_: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
    "sigterm": (lambda *_: os.kill(os.getpid(), signal.SIGTERM), "SIGTERM"),
    "sigsegv": (lambda *_: ctypes.string_at(0), "SIGSEGV"),
    "alarm": (use_signals, "SIGALRM"),
    "kill_parent": (lambda *_: os.kill(os.getppid(), signal.SIGKILL), "killed"),
    "loop": (loop, "time-out"),
    "loop_in_c": (lambda *_: sum(range(10**15)), "time-out"),
    "endless_generator": (lambda _, state: endless(state), "10,800 decisions"),
    "sigstop": (lambda *_: os.kill(os.getpid(), signal.SIGSTOP), "time-out"),
    "stop_parent": (lambda *_: os.kill(os.getppid(), signal.SIGSTOP) or loop(), "time-out"),
    "write_to_all": (write_to_all, "no result that can be read"),
    "close_all": (lambda *_: os.closerange(0, 256), "exit status 1"),
    "close_streams": (lambda *_: os.closerange(0, 3), "finishes"),
    "print_much": (print_much, "finishes"),
    "no_streams": (lambda *_: vars(sys).update(stdout=None, stderr=None), "finishes"),
    "leave_daemon": (leave_daemon, "finishes"),
    "leave_threads": (leave_threads, "finishes"),
    "go_on_twice": (lambda *_: os.fork() and None, "either"),
    "remove_scratch": (lambda self, _: shutil.rmtree(self.folder), "finishes"),
    "chdir": (lambda *_: os.chdir("/"), "finishes"),
    "clear_environment": (lambda *_: os.environ.clear(), "finishes"),
    "clear_path": (lambda *_: sys.path.clear(), "finishes"),
    "forget_oneself": (forget_oneself, "either"),
    "patch_numpy": (patch_numpy, "either"),
    "patch_gridsched": (patch_gridsched, "either"),
    "patch_builtins": (patch_builtins, "either"),
    "patch_exit": (lambda *_: setattr(os, "_exit", lambda *_: None), "finishes"),
    "warnings": (lambda *_: warnings.simplefilter("error"), "finishes"),
    "trace": (trace, "KeyError"),
    "no_gc": (lambda *_: gc.disable() or gc.freeze(), "finishes"),
    "at_exit": (note_at_exit, "finishes"),
    "excepthook": (lambda *_: setattr(sys, "excepthook", None), "finishes"),
    "deep_copy": (lambda _, state: copy.deepcopy(state) and None, "either"),
    "write_to_state": (write_to_state, "either"),
    "none": (lambda *_: NotImplemented, "NotImplementedType"),
    "no_decisions": (lambda *_: [None, 42, "assign"], ""),
    "not_iterable": (lambda *_: 42, "TypeError"),
    "negative": (lambda *_: [Assign(-1, 0)], "there are"),
    "huge_task": (lambda *_: [Assign(10**40, 0)], ""),
    "huge_host": (lambda *_: [Assign(0, 10**40)], ""),
    "nan_task": (lambda *_: [Assign(float("nan"), 0)], ""),
    "fraction": (lambda *_: [Assign(0, 0.5)], ""),
    "word": (lambda *_: [Assign("0", "h1")], ""),
    "odd_task": (lambda *_: [Assign(OddTask(), 0)], ""),
    "an_array": (lambda *_: [Assign(np.arange(3), np.arange(3))], ""),
    "twice": (lambda *_: [Assign(0, 0), Assign(0, 0)], "replicates"),
    "wake_never": (lambda *_: [WakeAt(float("nan"))], ""),
    "wake_in_the_past": (lambda *_: [WakeAt(-1e300)], ""),
    "wake_word": (lambda *_: [WakeAt("soon")], ""),
    "drop": (lambda *_: [Drop(0)], "may_drop"),
    "cancel": (lambda *_: [Cancel(0, 0)], ""),
    "power_off": (lambda *_: [PowerOff(0)], "powers_hosts"),
    "delegate": (lambda self, _: [Delegate(self)], "delegates"),
}
#: Kinds that take seconds whatever the machine is: they wait for a server that is stopped.
SLOW = {"stop_parent"}
#: Acts elsewhere than where it is asked, and the words of the message.
ELSEWHERE = {
    "prepare_exits": "SystemExit",
    "prepare_ends": "exit status 0",
    "prepare_loops": "time-out",
    "init_exits": "SystemExit",
    "init_raises": "Unprintable",
    "repr_raises": "Unprintable",
    "getstate_raises": "cannot be sent",
    "getstate_exits": "cannot be sent",
    "reduce_ends": "exit status 0",
    "parameters_raise": "Unprintable",
}


class Hostile(WorkQueue):
    """A work queue that does harm first."""

    def __init__(self, kind="", folder=""):
        self.kind, self.folder = kind, folder
        if kind == "init_exits":
            sys.exit()
        if kind == "init_raises":
            raise Unprintable

    def prepare(self, system, rng):
        """Do harm before anything is asked."""
        super().prepare(system, rng)
        self.is_asked_ = False
        if self.kind == "prepare_exits":
            sys.exit()
        if self.kind == "prepare_ends":
            os._exit(0)
        if self.kind == "prepare_loops":
            loop()

    def schedule(self, state):
        """Do harm when asked for the first time."""
        if self.is_asked_:
            return super().schedule(state)
        self.is_asked_ = True
        if self.kind == "repr_raises":
            return [Assign(-1, 0)]
        act, _ = ASKED.get(self.kind, (lambda *_: None, ""))
        answer = act(self, state)
        return super().schedule(state) if answer is None else answer

    def __repr__(self):
        if self.kind == "repr_raises":
            raise Unprintable
        return super().__repr__()

    @property
    def parameters(self):
        """What it was made with."""
        if self.kind == "parameters_raise":
            raise Unprintable
        return super().parameters

    def __getstate__(self):
        if self.kind == "getstate_raises":
            raise Unprintable
        if self.kind == "getstate_exits":
            sys.exit()
        return vars(self)

    def __reduce_ex__(self, protocol):
        if self.kind == "reduce_ends":
            return os._exit, (0,)
        return super().__reduce_ex__(protocol)


#: Put before a file that is sound: what its import does, and the words of the message.
IMPORTED = {
    "exits": ("import sys; sys.exit()", "SystemExit"),
    "base_exception": ("raise BaseException('base')", "BaseException: base ("),
    "generator_exit": ("raise GeneratorExit", "GeneratorExit"),
    "fails": ("1 / 0", "ZeroDivisionError: division by zero ("),
    "unprintable": ("class Bad(Exception):\n    def __str__(self): raise self\nraise Bad", "Bad"),
    "ends": ("import os; os._exit(0)", "exit status 0"),
    "kills": ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
    "loops": ("while True: pass", "time-out"),
    "syntax": ("def", "line 1 is no valid Python"),
    "zero_byte": ("\0", "null bytes"),
    "recursion": ("def f(): f()\nf()", "RecursionError"),
    "forgets_itself": ("import sys; del sys.modules[__name__]", ""),
    "removes_itself": ("import os; os.remove(__file__)", ""),
}
