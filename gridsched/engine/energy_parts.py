"""What counts and limits power and energy in a run, as far as its rules ask for it."""

from __future__ import annotations

from dataclasses import dataclass

from gridsched.engine.budget_guard import BudgetGuard
from gridsched.engine.commitments import Commitments, CountedEnergies
from gridsched.engine.energy_account import EnergyAccount
from gridsched.engine.host_powers import HostPowers, host_powers
from gridsched.engine.ledger import Ledger
from gridsched.engine.power_cap import PowerCap
from gridsched.engine.speed_changes import SpeedChanges
from gridsched.model.system import System


@dataclass(frozen=True)
class EnergyParts:
    """Parts of the engine that a run without budget and cap does without.

    Attributes
    ----------
    powers : HostPowers or None
        What the hosts draw: where a budget is kept by the speeds that they have, else by their
        full speeds.
    shown_powers : HostPowers or None
        The same where a policy may see it: it knows of full speeds alone.
    cap : PowerCap or None
    account : EnergyAccount or None
    guard : BudgetGuard or None
    """

    powers: HostPowers | None = None
    shown_powers: HostPowers | None = None
    cap: PowerCap | None = None
    account: EnergyAccount | None = None
    guard: BudgetGuard | None = None


def energy_parts(
    system: System, ledger: Ledger, commitments: Commitments,
    counted: CountedEnergies,
) -> EnergyParts:  # fmt: skip
    """Return the parts that the rules of a system ask for.

    Raises
    ------
    InputError
        If the hosts draw more than a cap allows before anything runs.
    """
    budget, cap_w, platform = system.rules.budget, system.rules.power_cap_w, system.platform
    if budget is None and cap_w is None:
        return EnergyParts()
    powers = shown_powers = host_powers(platform, ledger)
    cap = None if cap_w is None else PowerCap(cap_w, powers, platform)
    if budget is None:
        return EnergyParts(powers, shown_powers, cap)
    speeds = None
    if platform.profiles.speeds:
        speeds = SpeedChanges(platform, powers)
    account = EnergyAccount(system, budget, ledger, commitments, powers, counted, speeds)
    guard = BudgetGuard(system, budget, ledger, account, commitments, counted)
    return EnergyParts(powers, powers if speeds is None else None, cap, account, guard)
