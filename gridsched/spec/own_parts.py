"""What a study's policies bring, kept as data: it is read again without importing them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict

from gridsched.metrics.table import METRICS, Condition, Metric, declare_metric, is_own
from gridsched.policy.base import Traits
from gridsched.spec.run_spec import with_tuples
from gridsched.spec.study_schedulers import StudyScheduler

#: What a policy that may draw a figure of its own has in its text.
_DRAWS = b"register_figure"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _object_text(text: str) -> str:
    if not isinstance(json.loads(text), dict):
        raise ValueError("it should be a JSON object")
    return text


#: A JSON object as text, whose infinities Python alone reads.
_ObjectText = Annotated[str, AfterValidator(_object_text)]


class _OwnScheduler(_Part):
    """A `StudyScheduler`."""

    label: str
    id: str
    parameters: _ObjectText
    policy: str | None
    path: tuple[str | int, ...]
    family: str
    varied: _ObjectText
    traits: Traits

    @classmethod
    def of(cls, scheduler: StudyScheduler) -> Self:
        """Return a scheduler as it is kept."""
        return cls(
            label=scheduler.label,
            id=scheduler.id,
            parameters=json.dumps(dict(scheduler.parameters)),
            policy=scheduler.policy,
            path=scheduler.path,
            family=scheduler.family,
            varied=json.dumps(dict(scheduler.varied)),
            traits=scheduler.traits,
        )

    def scheduler(self) -> StudyScheduler:
        """Return it as the study has it."""
        return StudyScheduler(
            self.label, self.id, _mapping(self.parameters), self.policy, self.path, self.family,
            _mapping(self.varied), self.traits,
        )  # fmt: skip


def _mapping(text: str) -> Mapping[str, Any]:
    return with_tuples(json.loads(text))


class _OwnMetric(_Part):
    """A `Metric` without its functions."""

    id: str
    unit: str
    sentence: str
    of: Literal["run", "plan", "row", "comparison"]
    better: Literal["less", "more"] | None
    words: str
    header: str
    form: Literal["number", "rounded", "percent", "share", "text"]
    scale: str
    is_detail: bool
    condition: str
    workload: Literal["any", "bag", "system", "parallel"]
    usual: bool

    @classmethod
    def of_metric(cls, metric: Metric) -> Self:
        """Return a metric as it is kept."""
        when = metric.condition
        names = cls.model_fields.keys() - {"condition", "workload", "usual"}
        return cls(
            **{name: getattr(metric, name) for name in names},
            condition=when.words,
            workload=when.workload,
            usual=when.usual,
        )

    def metric(self) -> Metric:
        """Return it as the table of metrics has it; no run of this process computes it."""
        when = Condition(self.condition, lambda run: False, self.workload, self.usual)
        names = type(self).model_fields.keys() - {"condition", "workload", "usual"}
        values = {name: getattr(self, name) for name in names}
        return Metric(function=_not_imported, condition=when, **values)


def _not_imported(_facts: Any) -> None:
    """Stand for the function of a metric whose file is not imported."""


class OwnParts(_Part):
    """What the policies of a study bring.

    Attributes
    ----------
    schedulers : tuple
        All of the study, each with all its parameters.
    metrics : tuple
        Those that no file of gridsched registers.
    may_draw : bool
        Whether a policy may draw figures of its own.
    """

    schedulers: tuple[_OwnScheduler, ...]
    metrics: tuple[_OwnMetric, ...]
    may_draw: bool

    @classmethod
    def of(cls, schedulers: Sequence[StudyScheduler], policies: Sequence[Path]) -> Self:
        """Return what policies that are imported bring."""
        return cls(
            schedulers=tuple(map(_OwnScheduler.of, schedulers)),
            metrics=tuple(_OwnMetric.of_metric(each) for each in METRICS.values() if is_own(each)),
            may_draw=any(_DRAWS in path.read_bytes() for path in policies),
        )

    def study_schedulers(self) -> tuple[StudyScheduler, ...]:
        """Return the schedulers of the study."""
        return tuple(each.scheduler() for each in self.schedulers)

    def declare_metrics(self) -> None:
        """Put the metrics into the table, so that stored values have their names and units."""
        for each in self.metrics:
            declare_metric(each.metric())

    @property
    def computed_from_rows(self) -> set[str]:
        """The metrics that only the policies can compute from stored rows."""
        return {each.id for each in self.metrics if each.of == "row"}
