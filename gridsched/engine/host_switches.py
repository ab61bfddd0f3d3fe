"""Switching hosts on and off, whoever does it: a policy, or what happens to the host."""

from __future__ import annotations

from gridsched.engine.dispatch import Dispatch
from gridsched.engine.execution import Timer, TurnOff, TurnOn
from gridsched.engine.ledger import Ledger
from gridsched.engine.timers import Timers
from gridsched.model.platform import Platform


class HostSwitches:
    """Switches hosts, and notes it where it has to be known.

    Parameters
    ----------
    platform : Platform
    ledger : Ledger
    dispatch : Dispatch
        Takes the commands.
    timers : Timers
    """

    def __init__(
        self, platform: Platform, ledger: Ledger, dispatch: Dispatch, timers: Timers
    ) -> None:
        self._boot_time_s = [host.boot_time_s for host in platform.hosts]
        self._ledger = ledger
        self._dispatch = dispatch
        self._timers = timers

    def switch_off(self, host: int, now: float) -> None:
        """Switch off a host on which nothing runs or is fixed."""
        ledger = self._ledger
        ledger.is_on[host] = False
        ledger.set_idle(host, idle=False)
        self._changed(host, now)
        self._dispatch.commands.append(TurnOff(host))

    def switch_on(self, host: int, now: float) -> None:
        """Switch on a host, which boots."""
        ledger, boot_time = self._ledger, self._boot_time_s[host]
        ledger.is_on[host] = True
        ledger.boots(host, now + boot_time)
        self._changed(host, now)
        self._dispatch.commands.append(TurnOn(host))
        if boot_time:
            self._timers.set(ledger.boot_end[host], Timer.BOOTED, host)
        else:
            ledger.set_idle(host, idle=True)

    def _changed(self, host: int, now: float) -> None:
        self._ledger.host_changed(now, host)
        self._dispatch.power_changed(host)
