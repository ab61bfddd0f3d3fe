"""The rules of a run, declared once: every option, study key and record of them follows from here.

A new rule is one field here and the code that obeys it. Options of the command line, keys of
study files, provenance and documents read the fields of `Rules`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from pydantic import Field

from gridsched.model.budget import EnergyBudget
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.records import check_record


@dataclass(frozen=True, kw_only=True)
class Rules:
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
    parked_pstate : int or None
        P-state of every host that is on while nothing runs there (paper 002's idle cores); None
        leaves hosts in the P-state of their last task.
    power_cap_w : float or None
        What all computing hosts together may draw at any time [W], by the model; a run that would
        draw more ends with an error.
    on_failure : {"restart", "failed"}
        What becomes of a task whose host goes down while it runs: it waits again and starts from
        the begin, or it has failed.

    Raises
    ------
    InputError
        Where a value is out of range.
    """

    mapping_interval_s: Annotated[
        float | None,
        Field(
            ge=SMALLEST,
            le=LARGEST,
            description="Ask schedulers every S seconds only, not at each event.",
        ),
    ] = None
    pending_slots: Annotated[
        int, Field(ge=0, description="Tasks that a host fixes behind the executing one.")
    ] = 0
    budget: Annotated[
        EnergyBudget | None,
        Field(
            description="Joules that each period may draw.",
            json_schema_extra={
                "group": "Energy budget (each option goes before what a generator's file says)"
            },
        ),
    ] = None
    horizon_s: Annotated[
        float | None,
        Field(gt=0, le=LARGEST, description="No task starts at or after this time."),
    ] = None
    charge_mapping_time: Annotated[
        bool,
        Field(
            description="Mapping events wait for the computation of the last one, by the wall "
            "clock."
        ),
    ] = False
    parked_pstate: Annotated[
        int | None,
        Field(ge=0, description="P-state of hosts while nothing runs on them."),
    ] = None
    power_cap_w: Annotated[
        float | None,
        Field(gt=0, le=LARGEST, description="The most that all hosts together may draw."),
    ] = None
    on_failure: Annotated[
        Literal["restart", "failed"],
        Field(
            description="What becomes of a task whose host goes down: it starts again (restart), "
            "or has failed."
        ),
    ] = "restart"

    def __post_init__(self) -> None:
        check_record(self, Rules)

    @property
    def rules(self) -> Rules:
        """The rules alone, of whatever else says how a run is done."""
        return Rules(**{field.name: getattr(self, field.name) for field in fields(Rules)})
