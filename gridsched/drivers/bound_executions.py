"""Jobs that draw a share of their nodes' range of power: executions that are bound below full speed.

SimGrid's load is what a host computes over what it could. An execution on several hosts takes all
of each, and knows no bound; so a job is one bound execution on each of its nodes, all as long. The
Python module cannot set bounds: they are set through SimGrid's C interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_char_p, c_double, c_void_p

from gridsched.drivers.simgrid_library import c_function


class BoundExecutions:
    """One execution on a core of each of some hosts, of the same flops and speed; a host may be listed again.

    Parameters
    ----------
    hosts : sequence of str
        Names of SimGrid's hosts.
    flops : float
        [flop].
    speed : float
        [flop/s].
    """

    def __init__(self, hosts: Sequence[str], flops: float, speed: float) -> None:
        self._hosts, self._flops, self._speed = hosts, flops, speed
        self._started: list[int] = []

    def start(self) -> BoundExecutions:
        """Start them all; to be called by an actor."""
        by_name = c_function("sg_host_by_name", c_char_p, result=c_void_p)
        make = c_function("sg_actor_exec_init", c_double, result=c_void_p)
        set_host = c_function("sg_exec_set_host", c_void_p, c_void_p)
        set_bound = c_function("sg_exec_set_bound", c_void_p, c_double)
        start = c_function("sg_exec_start", c_void_p)
        for host in self._hosts:
            execution = make(self._flops)
            set_host(execution, by_name(host.encode()))
            set_bound(execution, self._speed)
            start(execution)
            self._started.append(execution)
        return self

    def wait(self) -> None:
        """Wait until they have ended, in one instant."""
        wait = c_function("sg_exec_wait", c_void_p)
        for execution in self._started:
            wait(execution)

    def cancel(self) -> None:
        """End them now."""
        cancel = c_function("sg_exec_cancel", c_void_p)
        for execution in self._started:
            cancel(execution)
