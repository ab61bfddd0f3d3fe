"""What crosses links without SimGrid, and shares them as flows do: messages, and data between tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from gridsched.drivers.link_shares import Flows, LinkModel
from gridsched.engine.execution import Activity, ParallelStep, Transfer
from gridsched.errors import SimulationError
from gridsched.model.routes import Routes


class SharedLinks:
    """Transfers and messages that are under way.

    Parameters
    ----------
    model : LinkModel
    routes : Routes
        Between all hosts, and from and to the master.
    names : sequence of str
        Of the platform's hosts.
    """

    def __init__(self, model: LinkModel, routes: Routes, names: Sequence[str]) -> None:
        self._routes, self._names = routes, names
        self._flows = Flows(model, routes.bandwidth, routes.unshared)

    def __bool__(self) -> bool:
        return bool(len(self._flows))

    def begin(self, activity: Activity, now: float) -> None:
        """Send data now [s].

        Raises
        ------
        SimulationError
            If an activity does more than to send one message: only the model of parallel tasks knows of that.
        """
        if isinstance(activity, Transfer):
            source, target, size = self._names[activity.source], self._names[activity.target], activity.size_bytes
        elif isinstance(activity, ParallelStep) and activity.placed.step.is_message:
            step, named = activity.placed.step, activity.hosts_named
            source, target = named[step.source.item(0)], named[step.target.item(0)]
            size = step.size_bytes.item(0)
        else:
            raise SimulationError(f"{activity!r} is no message, and only messages share links as flows do.")
        route = self._routes.route
        self._flows.begin(activity, route(source, target), route(target, source), size, now)

    def cancel(self, activity: Activity) -> None:
        """Send nothing more."""
        self._flows.cancel(activity)

    def remaining(self, activity: Activity) -> float:
        """Return which share is left as it was at the last look; 0 where it has ended."""
        if activity not in self._flows:
            return 0.0
        size = activity.size_bytes if isinstance(activity, Transfer) else 0.0
        if isinstance(activity, ParallelStep):
            size = activity.placed.step.size_bytes.item(0)
        return self._flows.remaining(activity) / size

    @property
    def next_time(self) -> float:
        """When the first of them ends, if none begins before [s]."""
        return self._flows.next_end()

    def reach(self, time: float) -> list[Activity]:
        """Go on until a time [s]; return what has ended then."""
        return cast("list[Activity]", self._flows.advance(time))
