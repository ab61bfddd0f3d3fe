"""The policy that asks a program which speaks Batsim's protocol."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import ClassVar

import numpy as np

from gridsched.errors import InputError, SimulationError
from gridsched.files.csv_files import interval_set
from gridsched.model.limits import time_tolerance
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, TraitsWith, check_number
from gridsched.policy.decisions import Allocate, Cancel, Decision, Drop, Note, WakeAt
from gridsched.policy.state import State
from gridsched.schedulers.parallel.backfilling import check_one_cluster
from gridsched.systems.batsim.host_states import HostStates
from gridsched.systems.batsim.job_book import JobBook
from gridsched.systems.batsim.protocol import (
    BEGIN,
    HOW_TO_START,
    Event,
    Peer,
    ProtocolError,
    Request,
    beginning,
    event,
    is_heard,
    load_zmq,
    time_of,
)

#: Column of the waiting times that the scheduler expects [s].
EXPECTED = "expected_wait_s"
_ADDRESS = re.compile(r"tcp://[\w.:*\[\]-]+:\d{1,5}|ipc://.+")
#: The largest number of messages to it in one instant.
_MOST_ROUNDS = 10_000
#: What it may say without an effect here.
_NO_EFFECT = ("SET_JOB_METADATA", "NOTIFY")


class Batsim(Scheduler):
    """A scheduler that is another program and speaks the JSON protocol of Batsim 4.

    Parameters
    ----------
    address : str
        Where it listens: ``tcp://HOST:PORT`` or ``ipc://PATH``. Port 0 means a free one, which
        only a program that `start` starts can know.
    start : str
        The command that starts it, in which ``{address}`` represents the address; it is ended with
        the run. Empty: it runs already.
    answer_timeout_s : float
        It may take so long to answer [s].
    asks_waiting_time : bool
        It is asked of each job how long it will wait (Batsim's query ``estimate_waiting_time``);
        its answers are in the column ``expected_wait_s``.

    Notes
    -----
    One message contains everything that happens in one instant. What it asks for happens at the times
    that it names, and until the ``now`` of its answer it thinks: events in between are sent
    then, as Batsim does.

    References
    ----------
    .. [1] P.-F. Dutot, M. Mercier, M. Poquet, O. Richard, "Batsim: a realistic language-independent
       resources and jobs management systems simulator", JSSPP 2016 (not read); the protocol is that
       of Batsim's documents, docs/protocol.rst.
    """

    traits = TraitsWith(
        Traits(
            trigger="event",
            may_cancel=True,
            may_drop=True,
            powers_hosts=True,
            uses_dvfs=True,
            platform_order_matters=True,
            parallel=True,
            observes_events=True,
            external=True,
        ),
        "asks_waiting_time",
        notes=(EXPECTED,),
    )

    def __init__(
        self,
        address: str = "tcp://127.0.0.1:28000",
        start: str = "",
        answer_timeout_s: float = 60.0,
        asks_waiting_time: bool = False,
    ) -> None:
        self.address = address
        self.start = start
        self.answer_timeout_s = answer_timeout_s
        self.asks_waiting_time = asks_waiting_time

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and the system; nothing is started yet.

        Raises
        ------
        InputError
            If a parameter is not allowed, or the rules are none that Batsim knows.
        MissingDependency
            If pyzmq is not installed.
        """
        if not isinstance(self.address, str) or not _ADDRESS.fullmatch(self.address):
            raise InputError(
                f"Parameter 'address' of batsim is {self.address!r}; it must read tcp://HOST:PORT or ipc://PATH."
            )
        if not isinstance(self.start, str) or (not self.start and self.address.endswith(":0")):
            raise InputError(
                f"Parameter 'start' of batsim is {self.start!r}; it must be the command that starts the "
                "scheduler, which port 0 needs, or empty."
            )
        check_number("batsim", "answer_timeout_s", self.answer_timeout_s, lambda s: 0 < s < math.inf, "above 0")
        check_one_cluster(self, system)
        rules = system.rules
        budget = rules.budget
        if rules.mapping_interval_s or (budget is not None and budget.enforcement == "refuse"):
            raise InputError(
                f"{self!r} knows neither mapping intervals nor budgets that refuse; leave them out, or let the "
                "budget stop the run."
            )
        load_zmq()
        self.system_ = system
        self.peer_: Peer | None = None

    def awaited(self) -> str:
        """Return in words for which program a run would wait, and how long; empty if it waits for none."""
        if self.start or is_heard(self.address):
            return ""
        return (
            f"nothing listens at {self.address} yet: the run waits up to {self.answer_timeout_s:g} s for a scheduler "
            f"there. {HOW_TO_START}"
        )

    def answer_limit_s(self) -> float:
        """Return the parameter `answer_timeout_s`."""
        return self.answer_timeout_s

    def _open(self, state: State) -> Peer:
        """Reach or start the scheduler; its first message is that the simulation begins."""
        is_on = state.is_on.tolist()
        self.jobs_ = JobBook(self.asks_waiting_time)
        self.hosts_ = HostStates(self.system_, is_on)
        self.news_: list[Event] = [beginning(self.system_, is_on)]
        self.later_: list[tuple[float, int, Request]] = []
        self.calls_: list[float] = []
        self.count_, self.busy_until_, self.is_last_told_ = count(), 0.0, False
        self.wakes_: set[float] = set()
        return Peer(self.address, self.start, self.answer_timeout_s)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Tell what has happened and return what it asks for.

        Raises
        ------
        SimulationError
            If it ends, is silent, or answers what the protocol does not know.
        """
        if self.peer_ is None:
            self.peer_ = self._open(state)
        peer = self.peer_
        try:
            return self._decided(peer, state)
        except ProtocolError as error:
            peer.kill()
            raise peer.simulation_error(error) from None
        except BaseException:
            peer.kill()
            raise

    def finish(self, state: State) -> None:
        """Tell the last events and the end; it may then take some seconds to end itself."""
        if (peer := self.peer_) is None:
            return
        self.peer_ = None
        try:
            events = [*self.news_, *self.jobs_.ended(state), event(state.now, "SIMULATION_ENDS")]
            peer.ask(state.now, events)
        finally:
            peer.end()

    # ------------------------------------------------------------------ one instant

    def _decided(self, peer: Peer, state: State) -> list[Decision]:
        now = state.now
        limit = now + time_tolerance(now)
        self.news_ += self._happened(state, limit)
        decisions = [*self._due(state, limit)]
        rounds = 0
        while self.news_ and self.busy_until_ <= limit:
            rounds += 1
            if rounds > _MOST_ROUNDS:
                raise SimulationError(f"{peer} wants to be called {_MOST_ROUNDS:,} times at t = {now:g} s.")
            # the begin alone: only after it pybatsim makes its schedulers ready
            n = 1 if self.news_[0]["type"] == BEGIN else len(self.news_)
            events, self.news_ = self.news_[:n], self.news_[n:]
            self.busy_until_, requests = peer.ask(now, events)
            for request in requests:
                heapq.heappush(self.later_, (request.time, next(self.count_), request))
            decisions += self._due(state, limit)
        return decisions + list(self._wakes(now))

    def _happened(self, state: State, limit: float) -> Iterator[Event]:
        """Yield what has happened since the last instant, in the order in which it is applied."""
        now = state.now
        yield from self.jobs_.ended(state)
        for kind, hosts in self.hosts_.failed(state):
            yield event(now, "NOTIFY", type=f"event_machine_{kind}", resources=interval_set(np.array(hosts)))
        yield from self.hosts_.done(state)
        yield from self.jobs_.submitted(state, self.system_.pstate)
        if not state.tasks_to_arrive and not self.is_last_told_:
            self.is_last_told_ = True
            yield event(now, "NOTIFY", type="no_more_static_job_to_submit")
        while self.calls_ and self.calls_[0] <= limit:
            heapq.heappop(self.calls_)
            yield event(now, "REQUESTED_CALL")

    def _due(self, state: State, limit: float) -> Iterator[Decision]:
        """Yield the decisions about what was asked for by now; answers become news."""
        while self.later_ and self.later_[0][0] <= limit:
            request = heapq.heappop(self.later_)[2]
            if request.kind in _NO_EFFECT:
                continue
            handler = self._HANDLERS.get(request.kind)
            if handler is None:
                raise request.protocol_error(f"is none of {', '.join([*self._HANDLERS, *_NO_EFFECT])}")
            yield from handler(self, request, state)
            self.news_ += self.hosts_.done(state)

    def _wakes(self, now: float) -> Iterator[Decision]:
        """Yield when there will be something to do."""
        times = [self.hosts_.next_time]
        times += [heap[0] for heap in (self.calls_,) if heap] + [entry[0] for entry in self.later_[:1]]
        if self.news_:
            times.append(self.busy_until_)
        for time in times:
            if now < time < math.inf and time not in self.wakes_:
                self.wakes_.add(time)
                yield WakeAt(time)

    # ------------------------------------------------------------------ what it asks for

    def _execute(self, request: Request, state: State) -> Iterator[Decision]:
        task = self.jobs_.task(request)
        hosts = request.hosts("alloc", self.system_.n_hosts)
        pstates = {self.hosts_.pstate[host] for host in hosts}
        if len(pstates) > 1:
            raise request.protocol_error(f"alloc has hosts in P-states {sorted(pstates)}; a job needs one for all")
        if request.data.get("additional_io_job"):
            raise request.protocol_error("additional_io_job: nothing is sent here, so it cannot be simulated")
        array = np.array(hosts, dtype=np.int64)
        self.jobs_.start(task, array, state.now)
        yield Allocate(task, array, pstates.pop())

    def _reject(self, request: Request, state: State) -> Iterator[Decision]:
        yield Drop(self.jobs_.task(request))

    def _kill(self, request: Request, state: State) -> Iterator[Decision]:
        tasks = [task for task in self.jobs_.tasks(request) if task in self.jobs_.running]
        for task in tasks:
            self.news_.append(self.jobs_.completed(task, state.now, "COMPLETED_KILLED"))
            yield Cancel(task)
        self.news_.append(self.jobs_.killed(request, tasks, state.now))

    def _call_later(self, request: Request, state: State) -> Iterable[Decision]:
        time = time_of(request)
        if time <= state.now + time_tolerance(state.now):
            self.news_.append(event(state.now, "REQUESTED_CALL"))
        else:
            heapq.heappush(self.calls_, time)
        return ()

    def _set_state(self, request: Request, state: State) -> Iterable[Decision]:
        return self.hosts_.set(request, state.now)

    def _query(self, request: Request, state: State) -> Iterable[Decision]:
        queries = request.data.get("requests")
        if not isinstance(queries, dict) or list(queries) != ["consumed_energy"]:
            raise request.protocol_error("only consumed_energy is known")
        consumed_j = state.consumed_j()
        if math.isnan(consumed_j):
            raise request.protocol_error(f"{self.system_.platform.name} has no power, so consumed_energy is unknown")
        self.news_.append(event(state.now, "ANSWER", consumed_energy=consumed_j))
        return ()

    def _answer(self, request: Request, state: State) -> Iterable[Decision]:
        task, wait_s = self.jobs_.expected_wait(request)
        return [Note(task, EXPECTED, wait_s)]

    _HANDLERS: ClassVar[dict[str, Callable[[Batsim, Request, State], Iterable[Decision]]]] = {
        "EXECUTE_JOB": _execute,
        "REJECT_JOB": _reject,
        "KILL_JOB": _kill,
        "CALL_ME_LATER": _call_later,
        "SET_RESOURCE_STATE": _set_state,
        "QUERY": _query,
        "ANSWER": _answer,
    }
