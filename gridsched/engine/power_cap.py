"""Whether the hosts draw more than the rule `power_cap_w` allows."""

from __future__ import annotations

from collections.abc import Iterable

from gridsched.engine.execution import Command, Execution
from gridsched.engine.host_powers import HostPowers
from gridsched.engine.legality import Refusal
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.policy.base import Scheduler
from gridsched.policy.state import PowerState


class PowerCap:
    """Holds a run to a limit on the power of all its hosts together.

    Parameters
    ----------
    cap_w : float
        [W].
    powers : HostPowers
        What the hosts draw; only read.
    platform : Platform

    Raises
    ------
    InputError
        If the hosts draw more than the cap before anything runs.
    """

    def __init__(self, cap_w: float, powers: HostPowers, platform: Platform) -> None:
        self._cap_w = cap_w
        self._powers = powers
        if self._is_exceeded():
            raise InputError(
                f"power_cap_w is {cap_w:g} W, but the hosts of {platform.name} draw "
                f"{powers.total_w:g} W before anything runs. Raise the cap, or switch hosts off "
                "(--hosts-off)."
            )

    def refusal(self, commands: Iterable[Command], scheduler: Scheduler) -> Refusal | None:
        """Say why what happened in an instant draws too much.

        Parameters
        ----------
        commands : iterable of Command
            What began in it; the message names the last execution.
        scheduler : Scheduler
        """
        if not self._is_exceeded():
            return None
        self._powers.sum_anew()
        if not self._is_exceeded():
            return None
        why = (
            f"the hosts would draw {self._powers.total_w:.6g} W, and the cap (power_cap_w) is "
            f"{self._cap_w:.6g} W"
        )
        if not scheduler.traits.heeds_power_cap:
            why += "; this scheduler heeds no cap, power_capped_mct does"
        begun = [each for each in commands if isinstance(each, Execution)]
        return (why, begun[-1].task, begun[-1].host) if begun else (why, None, None)

    def _is_exceeded(self) -> bool:
        return not PowerState(self._powers.total_w, self._cap_w).allows(0.0).item()
