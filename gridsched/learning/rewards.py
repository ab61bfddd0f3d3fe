"""What an agent is rewarded for: expressions of a run's metrics, some as the run goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from gridsched.engine import Controller, Execution
from gridsched.errors import InputError
from gridsched.metrics import RunFacts
from gridsched.metrics.run_metrics import SLOWDOWN_BOUND_S
from gridsched.metrics.table import METRICS
from gridsched.model.tasks import Tasks
from gridsched.runs.formulas import formula


class Meter(ABC):
    """What a reward has come to so far.

    Attributes
    ----------
    value : float
    """

    value = 0.0

    @abstractmethod
    def watch(self, now: float, finished: Sequence[Execution]) -> None:
        """Count what has happened up to an instant [s], and what ends in it."""


class _Joules(Meter):
    """What all hosts have drawn [J], with a minus."""

    def __init__(self, controller: Controller, tasks: Tasks) -> None:
        self._controller = controller
        self._time = 0.0

    def watch(self, now: float, finished: Sequence[Execution]) -> None:
        """Count the power since the instant before."""
        self.value -= self._controller.power_w * (now - self._time)
        self._time = now


class _Slowdown(Meter):
    """Bounded slowdowns of what has finished, over all tasks, with a minus."""

    def __init__(self, controller: Controller, tasks: Tasks) -> None:
        self._submitted: list[float] = tasks.submit_time_s.tolist()

    def watch(self, now: float, finished: Sequence[Execution]) -> None:
        """Count what ends."""
        for execution in finished:
            flow_s = execution.end - self._submitted[execution.task]
            run_s = max(execution.end - execution.start, SLOWDOWN_BOUND_S)
            self.value -= max(flow_s / run_s, 1.0) / len(self._submitted)


class _Utility(Meter):
    """Utility that has been earned."""

    def __init__(self, controller: Controller, tasks: Tasks) -> None:
        if tasks.utility is None:
            raise InputError(f"{tasks.name}: reward 'utility' needs tasks with utility functions; it has none.")
        self._utility = tasks.utility
        self._submit_s = tasks.submit_time_s

    def watch(self, now: float, finished: Sequence[Execution]) -> None:
        """Count what ends."""
        if finished:
            ids = [execution.task for execution in finished]
            elapsed = [execution.end - self._submit_s[execution.task] for execution in finished]
            self.value += float(self._utility.value(ids, elapsed).sum())


class _AtTheEnd(Meter):
    """Nothing before the end, where alone metrics are known."""

    def __init__(self, controller: Controller, tasks: Tasks) -> None:
        pass

    def watch(self, now: float, finished: Sequence[Execution]) -> None:
        """Count nothing."""


#: Rewards that come as the run goes on: what they add up to, and what counts it.
_NAMED: dict[str, tuple[str, type[_Joules | _Slowdown | _Utility | _AtTheEnd]]] = {
    "joules": ("-energy_model_j", _Joules),
    "bounded_slowdown": ("-mean_bounded_slowdown", _Slowdown),
    "utility": ("utility", _Utility),
}


class Reward:
    """What the rewards of an episode add up to.

    Parameters
    ----------
    text : str
        ``joules``, ``bounded_slowdown`` or ``utility``, whose rewards come step by step, or an
        expression of metrics, greater is better, which is given at the end.

    Raises
    ------
    InputError
        If the expression cannot be understood.
    """

    def __init__(self, text: str) -> None:
        self._text, self._meter = _NAMED.get(text, (text, _AtTheEnd))
        names = ", ".join(map(repr, _NAMED))
        known = [metric.id for metric in METRICS.values() if metric.of == "run" and metric.is_number]
        self._formula = formula("reward", self._text, known, called=f"reward ({names}, or an expression of metrics)")

    def meter(self, controller: Controller, tasks: Tasks) -> Meter:
        """Return what counts the reward of a run that begins."""
        return self._meter(controller, tasks)

    def total(self, facts: RunFacts) -> float:
        """Return what the rewards of a run add up to.

        Raises
        ------
        InputError
            If a metric has no value in this run.
        """
        metrics = {id: float(METRICS[id].function(facts)) for id in sorted(self._formula.needs)}
        value = self._formula.metric.function(metrics)
        if value is None:
            raise InputError(
                f"reward {self._text!r} has no finite value in this run, with {metrics}; without SimGrid "
                "the energy is energy_model_j."
            )
        return float(value)
