"""Switching hosts on and off, whoever does it: a policy, or what happens to the host."""

from __future__ import annotations

from gridsched.engine.dispatch import Dispatch
from gridsched.engine.execution import SetPState, Timer, TurnOff, TurnOn
from gridsched.engine.ledger import Ledger
from gridsched.engine.timers import Timers
from gridsched.model.platform import Platform


class HostSwitches:
    """Switches hosts, and notes it where it has to be known.

    A host that is switched off takes no task from then on, and is off when it has shut down. One
    that is switched on again before that boots when it is off.

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
        self._hosts = platform.hosts
        self._ledger = ledger
        self._dispatch = dispatch
        self._timers = timers
        #: when each host that shuts down is off [s]
        self._off_at: dict[int, float] = {}

    def switch_off(self, host: int, now: float) -> None:
        """Switch off a host on which nothing runs or is fixed."""
        ledger, each = self._ledger, self._hosts[host]
        ledger.switch(host, on=False)
        ledger.set_idle(host, idle=False)
        if host in self._off_at:  # it was to boot after that
            return
        ledger.switching_w.pop(host, None)
        ledger.host_changed(now, host)
        if not each.shutdown_time_s:
            self._turn_off(host)
            return
        self._off_at[host] = now + each.shutdown_time_s
        watts = each.shutdown_w
        if watts is None:
            watts = each.pstates[ledger.pstate[host]].idle_w
        ledger.switching_w[host] = watts
        self._set_pstate(host, each.shutdown_pstate)
        self._dispatch.power_changed(host)
        self._timers.set(self._off_at[host], Timer.SWITCHED, host)

    def cut_off(self, host: int, now: float) -> None:
        """Let a host go down at once, without shutting down; nothing runs or is fixed there."""
        ledger = self._ledger
        shuts_down = self._off_at.pop(host, None) is not None
        if not ledger.is_on[host] and not shuts_down:
            return
        ledger.switch(host, on=False)
        ledger.set_idle(host, idle=False)
        ledger.switching_w.pop(host, None)
        ledger.host_changed(now, host)
        if self._hosts[host].shutdown_time_s and not shuts_down:
            ledger.host_changed(now, host)  # the second change says that it is off already
        self._turn_off(host)

    def switch_on(self, host: int, now: float) -> None:
        """Switch on a host, which boots, or will do so when it has shut down."""
        ledger, off_at = self._ledger, self._off_at.get(host)
        ledger.switch(host, on=True)
        if off_at is None:
            self._boot(host, now)
        else:
            ledger.boots(host, off_at + self._hosts[host].boot_time_s)

    def go_on(self, host: int, now: float) -> bool:
        """Take the next step of a host that is due; return whether it takes tasks from now on.

        Nothing is due where the host was switched since then.
        """
        ledger = self._ledger
        if host in self._off_at:
            if self._off_at[host] > now:
                return False
            del self._off_at[host], ledger.switching_w[host]
            self._turn_off(host)
            if not ledger.is_on[host]:
                return False
            self._boot(host, now)
        if not ledger.is_on[host] or ledger.boot_end[host] > now:
            return False
        if ledger.switching_w.pop(host, None) is not None:
            self._set_pstate(host, ledger.pstate[host])
            self._dispatch.power_changed(host)
            ledger.touch(host)
        ledger.set_idle(host, idle=True)
        self._dispatch.serve_fixed(host, now)
        self._dispatch.vacant.append(host)
        return True

    def _turn_off(self, host: int) -> None:
        """Let a host be off."""
        self._dispatch.power_changed(host)
        self._dispatch.commands.append(TurnOff(host))

    def _boot(self, host: int, now: float) -> None:
        """Let a host boot that is off and switched on."""
        ledger, each = self._ledger, self._hosts[host]
        ledger.boots(host, now + each.boot_time_s)
        ledger.host_changed(now, host)
        boot_w = each.boot_w if each.boot_time_s else None
        if boot_w is not None:
            ledger.switching_w[host] = boot_w
        if each.switch_pstates:
            self._set_pstate(host, ledger.pstate[host] if boot_w is None else each.boot_pstate)
        self._dispatch.power_changed(host)
        self._dispatch.commands.append(TurnOn(host))
        if each.boot_time_s:
            self._timers.set(ledger.boot_end[host], Timer.SWITCHED, host)
        else:
            ledger.set_idle(host, idle=True)

    def _set_pstate(self, host: int, pstate: int | None) -> None:
        """Tell the driver of the P-state that a host is in, if it is another one."""
        if pstate is not None:
            self._dispatch.commands.append(SetPState(host, pstate))
