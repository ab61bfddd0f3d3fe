"""The rules of a run, declared once: every option, study key and record of them follows from here.

A new rule is one field here and the code that obeys it. Options of the command line, keys of
study files, provenance and documents read the fields of `Rules`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from gridsched.model.budget import EnergyBudget
from gridsched.model.limits import LARGEST, SMALLEST


class Rules(BaseModel):
    """What the controller holds a run to.

    Attributes
    ----------
    mapping_interval_s : float or None
        Distance of mapping events [s]; None asks at every instant at which something happened.
    pending_slots : int
        Tasks a host fixes behind the executing one as soon as there is room (1 in paper 000).
    budget : EnergyBudget or None
        Joules that each period may draw.
    horizon_s : float or None
        No task starts at or after it [s]; what then waits ends as unfinished.
    charge_mapping_time : bool
        A mapping event begins only when the last one's computation has ended, by the wall clock
        (paper 000, III-A); such runs do not repeat exactly.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mapping_interval_s: float | None = Field(
        default=None, ge=SMALLEST, le=LARGEST, allow_inf_nan=False,
        description="Ask schedulers every S seconds only, not at each event.",
    )  # fmt: skip
    pending_slots: int = Field(
        default=0, ge=0, description="Tasks that a host fixes behind the executing one.",
    )  # fmt: skip
    budget: EnergyBudget | None = Field(
        default=None, description="Joules that each period may draw.",
    )  # fmt: skip
    horizon_s: float | None = Field(
        default=None, gt=0, le=LARGEST, description="No task starts at or after this time.",
    )  # fmt: skip
    charge_mapping_time: bool = Field(
        default=False,
        description="Mapping events wait for the computation of the last one, by the wall clock.",
    )
