"""How fast data flow that share links, as SimGrid's models of networks have it.

The models CM02 (Casanova and Marchal 2002) and LV08 (Velho and Legrand 2009), SimGrid's usual one, send data as flows.
The latency of a route comes first, times latency-factor, while a flow takes nothing. Then it takes its rate of every
link of its route, and with crosstraffic 0.05 of its rate of every link of the way back. SimGrid's solver ``maxmin``
gives each flow as much as it can. Flows on a link get shares in proportion to 1 / penalty:

- penalty [s] = latency of the route + sum over its links of weight-S / bandwidth; 1 if no latency comes first;
- a flow has at most TCP-gamma / (2 latency), and at most the bandwidth of each link of its route;
- a link of type ``FATPIPE`` gives the flow with the least penalty all of its bandwidth, and each other flow as much
  less as its penalty is greater;
- data flow at bandwidth-factor times that.

What else SimGrid 4.1 does is kept, since rates would differ (``NetworkCm02Model``, ``MaxMin``, ``System``):

- A link of which less than 1e-5 is left is full, and no longer limits any flow. One that has nothing so far has what
  its other links give; with none left SimGrid ends the process, and here it waits.
- What is due within 1e-9 s of another event happens with it.
- Rates are computed again only where something has changed (``network/optim``: Lazy). Several flows may begin to flow
  in one instant. SimGrid looks at the first link of each, and from there at the flows on it and their links; but it
  looks at a link once. The other links of a flow that comes to it later limit nothing until the next change there.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from gridsched.errors import InputError
from gridsched.model.routes import GAMMA_BYTES, RouteLinks

#: Factors of latency and of bandwidth and weight-S [byte] by model.
_MODELS = {"CM02": (1.0, 1.0, 0.0), "LV08": (13.01, 0.97, 20537.0)}
#: What acknowledgements take of the links of the way back, of a flow's rate.
_ACKNOWLEDGEMENTS = 0.05
#: ``precision/work-amount``: of a link's bandwidth, of a penalty's reciprocal, and [byte] of a bound times a penalty.
_WORK_PRECISION = 1e-5
#: ``precision/timing`` [s].
_TIME_PRECISION_S = 1e-9
#: Less than this is left of nothing [byte].
_NO_BYTES = _WORK_PRECISION * _TIME_PRECISION_S
_YES = frozenset({"yes", "on", "true", "1"})
#: Options of SimGrid that change its shares, with their default values, which are the only ones known here.
_FIXED_OPTIONS = {
    "network/solver": "maxmin",
    "network/optim": "Lazy",
    "maxmin/concurrency-limit": "-1",
    "precision/work-amount": "1e-5",
    "maxmin/precision": "1e-5",
    "precision/timing": "1e-9",
    "surf/precision": "1e-9",
}


class FlowLimits(NamedTuple):
    """What limits a flow.

    Attributes
    ----------
    uses : mapping of str to float
        What it takes of each link for each byte/s of its rate before bandwidth-factor.
    penalty : float
        Flows have shares in proportion to its reciprocal.
    bound : float
        Greatest rate before bandwidth-factor [byte/s].
    """

    uses: Mapping[str, float]
    penalty: float = 1.0
    bound: float = inf


@dataclass(frozen=True)
class LinkModel:
    """A model of links.

    Attributes
    ----------
    latency_factor, bandwidth_factor : float
    gamma_bytes : float
        Most that is under way unacknowledged [byte]; 0: any.
    has_crosstraffic : bool
        Whether acknowledgements take bandwidth on the way back.
    weight_bytes : float
        What makes a flow's share of narrow links smaller (``network/weight-S``) [byte].
    """

    latency_factor: float = 13.01
    bandwidth_factor: float = 0.97
    gamma_bytes: float = GAMMA_BYTES
    has_crosstraffic: bool = True
    weight_bytes: float = 20537.0

    @classmethod
    def of_options(cls, platform: str, options: Mapping[str, str]) -> LinkModel:
        """Return the model by SimGrid's options.

        Parameters
        ----------
        platform : str
            Name of the file that has the options, for messages.
        options : mapping of str to str

        Raises
        ------
        InputError
            If SimGrid has no such formula for the model, an option is not a number, or one changes how links are
            shared.
        """
        name = options.get("network/model", "LV08")
        if name not in _MODELS or options.get("host/model", "default") not in ("default", "compound"):
            raise InputError(
                f"{platform}: how long data of tasks take is known of the network models "
                f"{' and '.join(_MODELS)}, and this one is {options.get('network/model', options.get('host/model'))}. "
                "Take another one (--cfg network/model:LV08), or send no data (--network none)."
            )
        for option, value in _FIXED_OPTIONS.items():
            if not _same(options.get(option, value), value):
                raise InputError(
                    f"{platform}: the option {option} is {options[option]!r}; how links are shared is known of "
                    f"{value} alone. Take it out, or send no data (--network none)."
                )
        latency, bandwidth, weight = _MODELS[name]
        return cls(
            number_of_option(platform, options, "network/latency-factor", latency),
            number_of_option(platform, options, "network/bandwidth-factor", bandwidth),
            number_of_option(platform, options, "network/TCP-gamma", GAMMA_BYTES),
            options.get("network/crosstraffic", "yes").lower() in _YES,
            number_of_option(platform, options, "network/weight-S", weight),
        )

    def limits(
        self, route: RouteLinks, back: RouteLinks, bandwidth: Mapping[str, float], unshared: Collection[str]
    ) -> FlowLimits:
        """Return what limits a flow.

        Parameters
        ----------
        route, back : RouteLinks
            There, and for acknowledgements.
        bandwidth : mapping of str to float
            Of each link [byte/s].
        unshared : collection of str
            Links of which whoever sends has all (``FATPIPE``).
        """
        if not route.links:
            return FlowLimits({})
        uses: dict[str, float] = {}
        ways = [(route, 1.0), (back, _ACKNOWLEDGEMENTS)] if self.has_crosstraffic else [(route, 1.0)]
        for way, weight in ways:
            for link in way.links:
                before = uses.get(link, 0.0)
                uses[link] = max(before, weight) if link in unshared else before + weight
        penalty = 1.0
        if route.latency_s * self.latency_factor > 0:
            penalty = route.latency_s
            if self.weight_bytes > 0:
                for link in route.links:
                    penalty += self.weight_bytes / bandwidth[link]
        bound = min(bandwidth[link] for link in route.links)
        if route.latency_s > 0 and self.gamma_bytes > 0:
            bound = min(bound, self.gamma_bytes / (2.0 * route.latency_s))
        return FlowLimits(uses, penalty, bound)

    def lone_rate(
        self, route: RouteLinks, back: RouteLinks, bandwidth: Mapping[str, float], unshared: Collection[str]
    ) -> float:
        """Return how fast data flow that share no link [byte/s]; infinite without links. See `limits`."""
        uses, _, bound = self.limits(route, back, bandwidth, unshared)
        return self.bandwidth_factor * min(
            bound, min((bandwidth[link] / each for link, each in uses.items()), default=inf)
        )


def _same(found: str, known: str) -> bool:
    """Whether an option has a value, which may be a number."""
    try:
        return float(found) == float(known)
    except ValueError:
        return found == known


def number_of_option(platform: str, options: Mapping[str, str], name: str, default: float) -> float:
    """Return the number that an option of SimGrid is.

    Parameters
    ----------
    platform : str
        Name of the file that has the options, for messages.
    options : mapping of str to str
    name : str
    default : float

    Raises
    ------
    InputError
        If it is not one finite number >= 0.
    """
    try:
        value = float(options.get(name, default))
    except ValueError:
        value = -1.0
    if not 0 <= value < inf:
        raise InputError(
            f"{platform}: the option {name} is {options[name]!r}; how long data of tasks take is known for "
            "one number >= 0. Set one such number, or send no data (--network none)."
        )
    return value


def link_rates(
    flows: Sequence[FlowLimits], bandwidth: Mapping[str, float], unshared: Collection[str] = frozenset()
) -> list[float]:
    """Return the rate of each of several flows, before bandwidth-factor [byte/s].

    Parameters
    ----------
    flows : sequence of FlowLimits
    bandwidth : mapping of str to float
        Of each link [byte/s].
    unshared : collection of str
        Links of which whoever sends has all (``FATPIPE``).

    Returns
    -------
    list of float
        0 where links were full, by SimGrid's precision, before a flow had anything; the bound without links.
    """
    shares = _Shares(flows, bandwidth, unshared)
    while shares.has:
        shares.fill()
    return shares.rates


class _Shares:
    """The rates of flows, which links that become full fix one after the other.

    A link is full if all its flows that have no rate so far get as much as it has left. The one that has least for
    them, by what they weigh, is next. Where bounds of some of these flows are lower, those with the lowest get theirs,
    and no other does before what is left is looked at again.
    """

    def __init__(self, flows: Sequence[FlowLimits], bandwidth: Mapping[str, float], unshared: Collection[str]) -> None:
        self.rates = [0.0 if flow.uses else flow.bound for flow in flows]
        self._flows, self._bandwidth, self._unshared = flows, bandwidth, unshared
        self._is_fixed = [False] * len(flows)
        #: in the unit of what links have
        self._limit = [flow.bound * flow.penalty for flow in flows]
        self._lowest = min(self._limit, default=inf)
        self._users: dict[str, list[int]] = {}
        #: how much those weigh that are not fixed
        self._usage: dict[str, float] = {}
        users, usage = self._users, self._usage
        for number, (uses, penalty, _) in enumerate(flows):
            for link, weight in uses.items():
                if link not in users:
                    users[link], usage[link] = [number], weight / penalty
                else:
                    users[link].append(number)
                    usage[link] = (
                        max(usage[link], weight / penalty) if link in unshared else usage[link] + weight / penalty
                    )
        self._left = {link: bandwidth[link] for link in users}
        #: how much a link that is not full has for the weight of 1
        self.has = {link: left / usage[link] for link, left in self._left.items()}

    def fill(self) -> None:
        """Fix the flows of the links that are full first."""
        has, limits, rates, is_fixed = self.has, self._limit, self.rates, self._is_fixed
        least = min(has.values())
        full = [link for link, each in has.items() if each == least]
        numbers = [number for link in full for number in self._users[link] if not is_fixed[number]]
        if len(full) > 1:
            numbers = list(dict.fromkeys(numbers))
        low = min([limits[number] for number in numbers], default=inf) if self._lowest < least else inf
        if low < least:
            numbers = [number for number in numbers if abs(low - limits[number]) < _WORK_PRECISION]
        for number in numbers:
            rates[number] = self._flows[number].bound if low < least else least / self._flows[number].penalty
            is_fixed[number] = True
        if not numbers:  # rounding has left it something, and no flow to take it
            for link in full:
                del has[link]
        self._take(numbers)

    def _take(self, numbers: Iterable[int]) -> None:
        """Take the rates of flows from their links that are not full."""
        left, usage, has, flows, rates = self._left, self._usage, self.has, self._flows, self.rates
        changed: set[str] = set()
        for number in numbers:
            uses, penalty, _ = flows[number]
            rate = rates[number]
            for link, weight in uses.items():
                if link in has:
                    changed.add(link)
                    left[link] -= weight * rate
                    usage[link] -= weight / penalty
        for link in changed:
            width = self._bandwidth[link]
            if link in self._unshared:
                left[link], usage[link] = width, self._greatest(link)
            if usage[link] > _WORK_PRECISION and left[link] > width * _WORK_PRECISION:
                has[link] = left[link] / usage[link]
            else:
                del has[link]

    def _greatest(self, link: str) -> float:
        """Return how much the flow weighs that weighs most of a link, of those that are not fixed."""
        free = (self._flows[number] for number in self._users[link] if not self._is_fixed[number])
        return max((flow.uses[link] / flow.penalty for flow in free), default=0.0)


def _is_due(date: float, time: float) -> bool:
    """Whether what is due at a date happens at a time [s]; a sum with the precision would be lost in late ones."""
    return date - time < _TIME_PRECISION_S


class _Flow:
    """A transfer: what limits it, what it has left [byte] at `since` [s], its rate [byte/s], and when it ends [s]."""

    __slots__ = ("end", "key", "left", "limits", "number", "rate", "since")

    def __init__(self, key: Hashable, number: int, limits: FlowLimits, size_bytes: float, now: float) -> None:
        self.key, self.number, self.limits = key, number, limits
        self.left, self.rate, self.since, self.end = size_bytes, 0.0, now, inf

    def state(self) -> tuple[float, float, float, float]:
        """Return what changes of it."""
        return self.left, self.rate, self.since, self.end

    def set_state(self, state: tuple[float, float, float, float]) -> None:
        """Go back to an earlier one."""
        self.left, self.rate, self.since, self.end = state


class _Ahead(NamedTuple):
    """What was looked ahead at: at a time [s] flows begin to flow; the states that these and others have before."""

    time: float
    begun: list[tuple[float, int, _Flow]]
    before: dict[_Flow, tuple[float, float, float, float]]


class Flows:
    """Transfers under way: first the latency, then the bytes at rates that change with who flows.

    Rates are computed again only when a flow begins to flow or ends, and only of the flows that share links with it,
    directly or by others between them.

    Parameters
    ----------
    model : LinkModel
    bandwidth : mapping of str to float
        Of each link [byte/s].
    unshared : collection of str
        Links of which whoever sends has all (``FATPIPE``).
    """

    def __init__(self, model: LinkModel, bandwidth: Mapping[str, float], unshared: Collection[str] = ()) -> None:
        self._model, self._bandwidth, self._unshared = model, bandwidth, frozenset(unshared)
        self._time, self._n_begun = 0.0, 0
        self._all: dict[Hashable, _Flow] = {}
        #: in their latency: until when [s]
        self._waits: list[tuple[float, int, _Flow]] = []
        self._flowing: dict[_Flow, None] = {}
        self._users: dict[str, dict[_Flow, None]] = {}
        #: links of which rates are to be computed again, and the flows by which they were found
        self._noted: dict[str, None] = {}
        self._seen: set[_Flow] = set()
        self._ahead: list[_Ahead] = []
        #: the end of the first to end, once it is known [s]
        self._next: float | None = None

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, key: object) -> bool:
        return key in self._all

    def begin(self, key: Hashable, route: RouteLinks, route_back: RouteLinks, size_bytes: float, now: float) -> None:
        """Send data.

        Parameters
        ----------
        key : hashable
            What the transfer is called.
        route, route_back : RouteLinks
            There, and for acknowledgements.
        size_bytes : float
            [byte]
        now : float
            Not before the last `advance`, and not after what ends next [s].

        Raises
        ------
        ValueError
            If a transfer of this key is under way, the size is negative or not a number, or it is another time.
        """
        if key in self._all:
            raise ValueError(f"A transfer {key!r} is under way.")
        if not size_bytes >= 0:
            raise ValueError(f"Transfer {key!r} has {size_bytes} bytes, and at least 0 are allowed.")
        if now != self._time:
            if now < self._time or _is_due(self.next_end(), now):
                raise ValueError(
                    f"Transfer {key!r} begins at {now} s, and Flows are at {self._time} s, the next end at "
                    f"{self.next_end()} s. Advance to its begin first."
                )
            self.advance(now)
        limits = self._model.limits(route, route_back, self._bandwidth, self._unshared)
        self._n_begun += 1
        flow = self._all[key] = _Flow(key, self._n_begun, limits, size_bytes, now)
        latency_s = self._model.latency_factor * route.latency_s
        flows_at = now + latency_s
        self._take_back()
        if not route.links:  # so it is without links: the data are there with the first byte
            flow.end = flows_at
            self._flowing[flow] = None
        elif latency_s > 0:
            heapq.heappush(self._waits, (flows_at, flow.number, flow))
        else:
            self._join(flow, now)
        for link in limits.uses:
            self._note_change(link)

    def cancel(self, key: Hashable) -> None:
        """Send nothing more of a transfer, from the time of the last `begin` or `advance` on.

        Parameters
        ----------
        key : hashable

        Raises
        ------
        KeyError
            If no transfer of this key is under way.
        """
        flow = self._all[key]
        self._take_back()
        del self._all[key]
        if flow in self._flowing:
            self._leave(flow)
        else:
            self._waits = [each for each in self._waits if each[2] is not flow]
            heapq.heapify(self._waits)

    def remaining(self, key: Hashable) -> float:
        """Return what is left of a transfer at the time of the last `begin` or `advance` [byte].

        Parameters
        ----------
        key : hashable

        Raises
        ------
        KeyError
            If no transfer of this key is under way.
        """
        flow = self._all[key]
        states = (each.before[flow] for each in self._ahead if flow in each.before)
        left, rate, since, _ = next(states, flow.state())
        return max(0.0, left - rate * (self._time - since)) if rate else left

    def next_end(self) -> float:
        """Return when the first of them ends, if no other begins before [s]; inf where none does."""
        if self._next is None:
            self._next = self._look_ahead()
        return self._next

    def advance(self, time: float) -> list[Hashable]:
        """Go on to a time.

        Parameters
        ----------
        time : float
            [s]

        Returns
        -------
        list of hashable
            The keys of those that have ended by then, in order of their ends, then of their begins.

        Raises
        ------
        ValueError
            If the time is before the one of the last `begin` or `advance`.
        """
        if time < self._time:
            raise ValueError(f"Flows are at {self._time} s and cannot go back to {time} s.")
        ended: list[Hashable] = []
        while _is_due(event := self.next_end(), time):
            ended += self._end(min(event, time))
            if event >= time:  # what begins at the time is yet to come before rates are computed
                return ended
        while self._ahead and not _is_due(time, self._ahead[0].time):
            del self._ahead[0]
        self._time = time
        if self._ahead and _is_due(self._ahead[0].time, time):  # together with what begins at the time
            self._take_back()
            self._begin_to_flow(time)
        return ended

    def _end(self, time: float) -> list[Hashable]:
        """End what ends at a time, and begin what begins to flow with it; return the keys."""
        self._ahead, self._next, self._time = [], None, time
        ended = sorted(
            (flow for flow in self._flowing if _is_due(flow.end, time)), key=lambda each: (each.end, each.number)
        )
        self._begin_to_flow(time)
        for flow in ended:
            del self._all[flow.key]
            self._leave(flow)
        return [flow.key for flow in ended]

    def _begin_to_flow(self, time: float) -> None:
        """Let those flow whose latency is over by a time [s]."""
        for _, _, flow in self._pop_waits(time):
            self._join(flow, time)

    def _pop_waits(self, time: float) -> list[tuple[float, int, _Flow]]:
        """Return those whose latency is over by a time [s], and no longer keep them."""
        waits, popped = self._waits, []
        while waits and _is_due(waits[0][0], time):
            popped.append(heapq.heappop(waits))
        return popped

    def _join(self, flow: _Flow, since: float) -> None:
        """Let data flow; SimGrid notes a change of the first link."""
        self._flowing[flow], flow.since = None, since
        for link in flow.limits.uses:
            self._users.setdefault(link, {})[flow] = None
        for link in flow.limits.uses:
            self._note_change(link)
            break

    def _leave(self, flow: _Flow) -> None:
        for link in flow.limits.uses:
            self._note_change(link)
            break
        self._remove(flow)

    def _remove(self, flow: _Flow) -> None:
        del self._flowing[flow]
        for link in flow.limits.uses:
            del self._users[link][flow]

    def _note_change(self, link: str) -> None:
        """Note that rates on a link are to be computed again, and on all that flows connect with it.

        A link that was noted in this instant is looked at no more, although other flows may be on it now.
        """
        noted, seen, users = self._noted, self._seen, self._users
        if link in noted:
            return
        noted[link] = None
        links = [link]
        for each in links:  # which grows
            for flow in users.get(each, ()):
                if flow not in seen:
                    seen.add(flow)
                    for other in flow.limits.uses:
                        if other not in noted:
                            noted[other] = None
                            links.append(other)

    def _look_ahead(self) -> float:
        """Return when the first ends; until then flows begin to flow, which is kept to be taken back."""
        self._share(self._time)
        while True:
            end = min((flow.end for flow in self._flowing), default=inf)
            start = self._waits[0][0] if self._waits else inf
            if start == inf or _is_due(end, start):
                return min(start, end)
            ahead = _Ahead(start, self._pop_waits(start), {})
            self._ahead.append(ahead)
            for _, _, flow in ahead.begun:
                ahead.before[flow] = flow.state()
                self._join(flow, start)
            self._share(start, ahead.before)

    def _take_back(self) -> None:
        """Forget what lies after the present."""
        self._next = None
        while self._ahead:
            _, begun, before = self._ahead.pop()
            for flow, state in before.items():
                flow.set_state(state)
            for wait in begun:
                heapq.heappush(self._waits, wait)
                self._remove(wait[2])

    def _share(self, time: float, before: dict[_Flow, tuple[float, float, float, float]] | None = None) -> None:
        """Compute rates and ends again where something has changed; keep the states before."""
        noted, users = self._noted, self._users
        if not noted:
            return
        concerned = list(dict.fromkeys(flow for link in noted for flow in users.get(link, ())))
        limits = [flow.limits for flow in concerned]
        if not self._seen.issuperset(concerned):  # some began after their first link was noted
            limits = [
                FlowLimits({link: each for link, each in uses.items() if link in noted}, *others)
                for uses, *others in limits
            ]
        rates = link_rates(limits, self._bandwidth, self._unshared)
        noted.clear()
        self._seen.clear()
        factor = self._model.bandwidth_factor
        for flow, rate in zip(concerned, rates, strict=True):
            if before is not None and flow not in before:
                before[flow] = flow.state()
            flow.left -= flow.rate * (time - flow.since)
            if flow.left < _NO_BYTES:
                flow.left = 0.0
            flow.rate, flow.since = factor * rate, time
            flow.end = time if not flow.left else time + flow.left / flow.rate if flow.rate else inf
