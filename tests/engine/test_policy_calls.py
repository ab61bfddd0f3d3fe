"""Input and output of a policy: notes, refused decisions, nothing of the future."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from scripted import ANYTHING, Scripted, at, controller_of, hosts, idle_hosts, nodes, plan, play, play_on_nodes, rows

from gridsched.drivers import reference
from gridsched.engine.live_state import LiveState
from gridsched.errors import InputError, InvalidDecision
from gridsched.model.estimates import FlopsEstimates, RequestedTimes
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.platform import Platform
from gridsched.model.rules import EnergyBudget
from gridsched.model.task_types import TypedEstimates
from gridsched.model.tasks import ArrivedTasks, make_tasks
from gridsched.model.trace import TaskState
from gridsched.model.utility import UtilityFunctions
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate, Assign, Cancel, Drop, Note, Plan, Postpone, PowerOff, PowerOn, WakeAt
from gridsched.policy.registry import make_scheduler
from gridsched.policy.state import State
from gridsched.testing.cases import STOCHASTIC_CASES
from gridsched.testing.playing import play as play_case
from gridsched.testing.repetition import public_values

# What a policy notes beside tasks goes into the trace, and changes nothing in the run.


def test_the_last_note_counts():
    """Task 0 is noted twice, task 1 never, task 2 by a numpy number; a column may stay empty."""

    def answer(state):
        yield from (Assign(task, 0) for task in state.waiting())
        if state.now == 0.0:
            yield from (Note(0, "guess", 1), Note(0, "guess", 2.5), Note(2, "guess", np.float32(3)))

    traits = Traits(trigger="event", notes=("guess", "other"))
    noted = play(hosts(1.0), [2.0, 2.0, 2.0], answer, traits)[0]
    assert noted.notes["guess"] == pytest.approx([2.5, np.nan, 3.0], nan_ok=True)
    assert np.isnan(noted.notes["other"]).all()
    plain = play(hosts(1.0), [2.0] * 3, lambda state: [Assign(t, 0) for t in state.waiting()])[0]
    assert plain.notes == {}
    assert plain.executions.tolist() == noted.executions.tolist()


@pytest.mark.parametrize("name", ["", "A", "2nd", "with space", "a-b"])
def test_names_of_columns(name):
    """A column's name is one that a header can have."""
    with pytest.raises(InputError, match="lower-case"):
        Traits(trigger="event", notes=(name,))


def test_who_delegates_names_the_columns_of_its_successor():
    """Columns are declared before the run, those of a successor too."""
    lead = Traits(trigger="event", delegates=True, notes=("a", "b"))
    assert lead.covers(Traits(trigger="event", notes=("b",)))
    assert not lead.covers(Traits(trigger="event", notes=("c",)))


@pytest.mark.systems("robust")
@pytest.mark.parametrize(
    "id", ["shortest_queue", "minimum_expected_completion_time", "lightest_load", "random_immediate"]
)
def test_deadline_heuristics_note_the_chance_of_their_choice(id):
    """Every task that was mapped has a chance from 0 to 1, at its own start if nothing ran before.

    The first task of the case starts at once on an empty core: its chance is its own distribution.
    """
    case = next(case for case in STOCHASTIC_CASES if case.name == "equal cores")
    trace = play_case(case, make_scheduler(id))
    chances = trace.notes["predicted_chance"]
    assert ((chances >= 0) & (chances <= 1)).all()
    first = trace.executions[trace.executions["task"] == 0][0]
    pmf = case.types.estimates(case.tasks).pmf(0, int(first["host"]), int(first["pstate"]))
    in_time = pmf.masses[pmf.times <= case.tasks.deadline_s[0]].sum()
    assert chances[0] == pytest.approx(in_time, abs=1e-12)


# Every decision the contract forbids is refused, and the message gives the place and the reason.

PLAIN = Traits(trigger="event")
MAY_CANCEL = Traits(trigger="event", may_cancel=True)
NOTES = Traits(trigger="event", notes=("a",))

#: decisions at t = 0, traits, what the message must say; hosts h1, h2 (off), three tasks 7, 8, 9.
REFUSED = [
    ([Assign(3, 0)], PLAIN, "task 3, host 'h1': there are tasks 0 to 2"),
    ([Assign(-1, 0)], PLAIN, "task -1, host 'h1': there are tasks 0 to 2"),
    ([Assign(0, 2)], PLAIN, "task 7, host 2: there are hosts 0 to 1"),
    ([Assign(0, -1)], PLAIN, "task 7, host -1: there are hosts 0 to 1"),
    ([Assign(1.0, 0)], PLAIN, "task is 1.0; it must be a whole number"),
    ([Assign(0, None)], PLAIN, "host is None; it must be a whole number"),
    ([Assign(0, 0, 0.5)], PLAIN, "pstate is 0.5; it must be a whole number"),
    ([Assign(0, 0, 1)], PLAIN, "task 7, host 'h1': the host has P-states 0 to 0, not 1"),
    ([Assign(0, 1)], PLAIN, "task 7, host 'h2': the host is off; PowerOn it first"),
    ([Assign(0, 0), Assign(0, 0)], PLAIN, "Assign of a running task needs the trait 'replicates'"),
    ([Assign(0, 0), Assign(1, 0), Assign(1, 0)], ANYTHING, "task 8, host 'h1': the task is queued"),
    ([Drop(0), Assign(0, 0)], ANYTHING, "task 7, host 'h1': the task is dropped"),
    ([plan((0, 0), (0, 0))], PLAIN, "task 7, host 'h1': Plan holds a task twice, or one that is"),
    ([Assign(0, 0), plan((0, 0))], PLAIN, "task 7, host 'h1': .* one that is running"),
    ([plan((0, 5))], PLAIN, "task 7, host 5: there are hosts 0 to 1"),
    ([plan((0, 1))], PLAIN, "task 7, host 'h2': the host is off"),
    ([Plan([0, 1], [0])], PLAIN, "Plan has 2 tasks, 1 host"),
    ([Plan([0.7], [0])], PLAIN, r"Plan.tasks is \[0.7\]; it must be an array of whole numbers"),
    ([Plan([0], [[0]])], PLAIN, r"Plan.hosts is \[\[0\]\]; it must be an array of whole numbers"),
    ([Plan([0], [0], ["a"])], PLAIN, r"Plan.pstates is \['a'\]; it must be an array"),
    ([Assign(0, 0), Assign(1, 0), Cancel(1)], PLAIN, "a queued task needs the trait 'may_cancel'"),
    ([Assign(0, 0), Cancel(0)], PLAIN, "a running copy .* needs the trait 'may_cancel'"),
    ([Cancel(0)], ANYTHING, "task 7: no queued or running copy is there; the task is waiting"),
    ([Assign(0, 0), Cancel(0, 1)], ANYTHING, "task 7, host 'h2': no queued or running"),
    ([Assign(0, 0), Cancel(0, 2)], ANYTHING, "task 7, host 2: there are hosts 0 to 1"),
    ([Assign(0, 0), Cancel(0, -1)], ANYTHING, "task 7, host -1: there are hosts 0 to 1"),
    ([Cancel(9)], ANYTHING, "task 9: there are tasks 0 to 2"),
    ([Note(0, "b", 1.0)], NOTES, "task 7: Note in column 'b'; Traits.notes has a"),
    ([Note(0, "a", np.nan)], NOTES, "task 7: Note of nan in column 'a'; it must be a finite"),
    ([Note(0, "a", "much")], NOTES, "task 7: Note of 'much' in column 'a'"),
    ([Note(9, "a", 1.0)], NOTES, "task 9: there are tasks 0 to 2"),
    ([Drop(0)], PLAIN, "Drop needs the trait 'may_drop'"),
    ([Drop(9)], ANYTHING, "task 9: there are tasks 0 to 2"),
    ([Assign(0, 0), Drop(0)], ANYTHING, "only a mappable task can be dropped; it is running"),
    ([Postpone(0)], PLAIN, "Postpone needs the trait 'may_drop'"),
    ([Postpone(0)], ANYTHING, "task 7: Postpone waits for the next budget period"),
    ([PowerOff(0)], PLAIN, "PowerOff needs the trait 'powers_hosts'"),
    ([PowerOff(4)], ANYTHING, "host 4: there are hosts 0 to 1"),
    ([PowerOff(1)], ANYTHING, "host 'h2': PowerOff of a host that is off"),
    ([Assign(0, 0), PowerOff(0)], ANYTHING, "host 'h1': PowerOff while something runs, is fixed"),
    ([PowerOn(1), PowerOff(1), Assign(0, 1)], ANYTHING, "task 7, host 'h2': the host is off"),
    ([PowerOn(0)], PLAIN, "PowerOn needs the trait 'powers_hosts'"),
    ([PowerOn(0)], ANYTHING, "host 'h1': PowerOn of a host that is on"),
    ([WakeAt(0.0)], PLAIN, r"WakeAt\(0.0\) must lie in the future"),
    ([WakeAt(float("nan"))], PLAIN, r"WakeAt\(nan\) must lie in the future"),
    ([WakeAt(float("inf"))], PLAIN, r"WakeAt\(inf\) must lie in the future"),
    (["wq"], PLAIN, "'wq' is not a decision; see gridsched.policy.decisions"),
    (None, PLAIN, r"schedule\(\) returned None; return a list of decisions"),
]


@pytest.mark.parametrize(("decisions", "traits", "message"), REFUSED)
def test_refused(decisions, traits, message):
    """The message names scheduler, time, task (by its label), host and reason, in one line."""
    tasks = make_tasks([10.0, 10.0, 10.0], labels=[7, 8, 9])
    with pytest.raises(InvalidDecision, match=message) as refused:
        play(hosts(10, 10), tasks, lambda state: decisions, traits, hosts_off=(1,))
    text = str(refused.value)
    assert text.startswith("Scripted() at t = 0 s")
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.parametrize("method", ["schedule", "on_event"])
def test_an_answer_that_never_ends_is_refused(method):
    """Three tasks and two hosts: 10,000 decisions and 100 for each of the five; as many are allowed."""

    def notes(count):
        return (Note(0, "a", float(k)) for k in range(count))

    class Asked(Scheduler):
        traits = Traits(trigger="event", observes_events=True, notes=("a",))

        def __init__(self, count: int = 0) -> None:
            self.count = count

        def on_event(self, state):
            return notes(self.count if method == "on_event" else 0)

        def schedule(self, state):
            yield from notes(self.count if method == "schedule" and state.now == 0 else 0)
            yield from (Assign(task, 0) for task in state.mappable.tolist())

    def controller(count):
        return controller_of(hosts(10, 10), [10.0, 10.0, 10.0], Asked(count))

    assert reference.simulate(controller(10_497)).final_state.tolist() == [TaskState.FINISHED] * 3
    with pytest.raises(InvalidDecision, match=r"Asked\(count=1000000\) at t = 0 s.* 10,500 decisions"):
        reference.simulate(controller(1_000_000))


def test_a_wake_up_is_refused_with_a_mapping_interval():
    """With an interval the policy is asked at its multiples and at no other time."""
    with pytest.raises(InvalidDecision, match="WakeAt"):
        play(hosts(10), [10.0], lambda state: [WakeAt(1.0)], PLAIN, interval=5.0)


def test_a_task_cannot_go_where_it_cannot_run():
    """A host on which the estimate is infinite is not a place for the task."""
    tasks = make_tasks([1.0], task_type=[0])
    estimates = TypedEstimates([[[np.inf], [2.0]]], [[[1.0], [1.0]]], [0], [0, 1])
    with pytest.raises(InvalidDecision, match="task 1, host 'h1'"):
        play(hosts(10, 10), tasks, at((0.0, [Assign(0, 0)])), PLAIN, estimates=estimates)


def test_the_message_names_the_time():
    """A refusal later in the run names its time."""
    answer = at((0.0, [Assign(0, 0)]), (2.5, [Assign(1, 3)]))
    with pytest.raises(InvalidDecision, match=r"t = 2\.5 s, task 2, host 3"):
        play(hosts(10), [25.0, 1.0], answer, PLAIN)


def test_numpy_numbers_are_whole_numbers():
    """Ids taken from arrays need no conversion."""
    answer = at((0.0, [Assign(np.int64(0), np.int32(0), np.uint8(0))]))
    trace, _ = play(hosts(10), [10.0], answer, PLAIN)
    assert trace.finish_time_s.tolist() == [1.0]


def natural(state):
    """Give each waiting task to the first idle core, as long as there is one."""
    for task in state.waiting():
        if not state.idle_cores():
            return
        yield Assign(task, state.idle_cores()[0])


def while_any(state):
    """Do the same, and find the next task again."""
    while state.idle_cores() and state.next_waiting(1):
        yield Assign(state.next_waiting(1)[0], state.idle_cores()[0])


@pytest.mark.parametrize("answer", [natural, while_any])
def test_the_state_follows_what_is_yielded(answer):
    """Five tasks on four cores: four start at once, on each core one, as by a list of all of them."""
    platform = Platform((*hosts(10, 10).hosts, replace(hosts(10, cores=2).hosts[0], name="dual")))
    trace, _ = play(platform, [10.0] * 5, answer, PLAIN)
    assert rows(trace) == rows(play(platform, [10.0] * 5, idle_hosts, PLAIN)[0])
    assert trace.start_time_s.tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(("asked", "iterated"), [("event", [0, 1]), ("arrival", [0])])
def test_all_that_a_state_shows_follows(asked, iterated):
    """After task 0 has got the one host, and after a list of it, which applies as a whole."""
    seen = []

    def look(state):
        seen.append((state.mappable.tolist(), state.next_waiting(2), list(state.waiting()), state.ready_time.tolist()))

    def answer(state):
        if state.now == 0 and not seen:
            look(state)
            yield Assign(0, 0)
            look(state)
        yield from (Assign(task, 0) for task in state.next_waiting(1))

    play(hosts(10), [10.0, 10.0], answer, Traits(trigger=asked))
    left = iterated[1:]
    assert seen == [(iterated, iterated, iterated, [0]), (left, left, left, [1])]


def test_nodes_and_energy_follow():
    """Three jobs of one node each take what is free after the one before; the budget's rest shrinks."""
    left_j = []

    def answer(state):
        while state.next_waiting(1) and state.nodes.n_free:
            left_j.append(state.energy.remaining_j)
            yield Allocate(state.next_waiting(1)[0], np.flatnonzero(state.nodes.free)[:1])

    jobs = [(0, 1, 10)] * 3
    trace, _ = play_on_nodes(nodes(2), jobs, answer, budget=EnergyBudget(1e6, period_s=1e3))
    assert trace.start_time_s.tolist() == [0, 0, 10]
    assert left_j[1] < left_j[0]


def test_a_wrapper_refuses_what_relies_on_that():
    """It takes the whole answer first; a policy that reads the state between decisions would read what was."""

    class Natural(Scripted):
        def clone(self):
            return Natural(self.answer, self.traits)

    wrapped = make_scheduler("idle_off", {"scheduler": Natural(natural, PLAIN)})
    controller = controller_of(hosts(10, 10), [10.0] * 3, wrapped)
    with pytest.raises(InvalidDecision, match="idle_cores"):
        reference.simulate(controller)


def test_decisions_may_come_from_a_generator():
    """Each is applied before the next is made: task 0 starts, task 1 waits on the host when task 2 comes."""
    queue_lengths = []

    def answer(state):
        for task in state.waiting():
            queue_lengths.append(int(state.queue_length[0]))
            yield Assign(task, 0)

    trace, _ = play(hosts(10), [10.0, 10.0, 10.0], answer, PLAIN)
    assert trace.finish_time_s.tolist() == [1.0, 2.0, 3.0]
    assert queue_lengths == [0, 0, 1]


def test_a_pstate_that_a_host_lacks_is_refused_before_the_run():
    """The scenario's P-state must exist on every host."""
    policy = Scripted(lambda state: [])
    with pytest.raises(InputError, match=r"'h1'.*0 to 0.*P-state 1"):
        controller_of(hosts(10), [1.0], policy, pstate=1)


# A policy sees what has been submitted, and of later tasks nothing but their number.

LATER = make_tasks([30.0, 10.0, 20.0, 40.0], [0.0, 0.0, 5.0, 100.0])


def test_tasks_end_at_the_last_one_submitted():
    """Two tasks at 0, three from 5 s on, four from 100 s on; the same object in between."""
    seen = []

    def answer(state):
        seen.append((state.now, state.tasks.flops.tolist(), state.tasks_to_arrive))
        assert state.tasks is state.tasks
        assert len(state.tasks.submit_time_s) == len(state.tasks.labels) == len(state.tasks)
        return idle_hosts(state)

    play(hosts(10), LATER, answer)
    flops = [30.0, 10.0, 20.0, 40.0]
    expected = [(0.0, 2), (3.0, 2), (4.0, 2), (5.0, 3), (7.0, 3), (100.0, 4), (104.0, 4)]
    assert seen[: len(expected)] == [(time, flops[:n], 4 - n) for time, n in expected][: len(seen)]
    assert [time for time, *_ in seen][:4] == [0.0, 3.0, 4.0, 5.0]


def test_parts_are_one_object_whose_rows_arrive():
    """Two jobs at 0, one at 5 and one at 100 s: rows of later ones are 0, and the arrays stay the same."""
    demand, width = [[1], [2], [3], [4]], [2, 1, 2, 1]
    tasks = make_tasks([30.0, 10.0, 20.0, 40.0], [0.0, 0.0, 5.0, 100.0], demand=demand, width=width)
    seen, arrays = [], []

    def answer(state):
        parts = state.parts
        arrays.append(parts.width)
        seen.append((state.now, parts.demand[:, 0].tolist(), parts.width.tolist()))
        assert not any(column.flags.writeable for column in parts)
        return []

    play(hosts(10, 10, cores=4), tasks, answer, replace(ANYTHING, parallel=True, shares=True), horizon_s=200)
    expected = [(0.0, [1, 2, 0, 0], [2, 1, 0, 0]), (5.0, [1, 2, 3, 0], [2, 1, 2, 0]), (100.0, [1, 2, 3, 4], width)]
    assert [each for each in seen if each[0] <= 100.0] == expected
    assert all(each is arrays[0] for each in arrays)


def test_heterogeneity_is_that_of_the_submitted_tasks():
    """(30 - 10) / 20 = 1 first; equal tasks have none, though others come later."""
    seen = {}

    def answer(state):
        seen[state.now] = state.tasks.heterogeneity
        return idle_hosts(state)

    play(hosts(10), make_tasks([10.0, 10.0, 30.0], [0.0, 0.0, 50.0]), answer)
    assert seen[0.0] == 0.0
    assert seen[50.0] == 1.0  # 20 / (50 / 3) is more than 1


def test_estimates_refuse_tasks_to_come():
    """Flops or types of later tasks are not there: every way of asking ends in an IndexError."""
    types = np.zeros(4, dtype=np.int64)
    typed = TypedEstimates([[[2.0]]], [[[1.0]]], types, [0])
    for estimates in (None, typed):
        refused = []

        def answer(state, refused=refused):
            n = len(state.tasks)
            assert state.estimates.etc(range(n), [0]).shape == (n, 1)
            assert state.estimates.run_time(n - 1, 0, 0) > 0
            for ask in (
                lambda: state.estimates.run_time(n, 0, 0),
                lambda: state.estimates.etc([n], [0]),
                lambda: state.estimates.eec([0, n], [0]),
            ):
                if state.tasks_to_arrive:
                    with pytest.raises(IndexError):
                        ask()
                    refused.append(n)
            return idle_hosts(state)

        play(hosts(10), LATER, answer, estimates=estimates)
        assert {2, 3} == set(refused)


def scene(late: float, *, width=None, requested=None):
    """Return two tasks at 0 and two at 50 s, with every column; `late` varies the later ones."""
    when = np.array([0.0, 0.0, 50.0, 50.0])
    mark = np.where(when > 0, late, 3.0)
    return make_tasks(
        mark,
        when,
        input_bytes=mark,
        output_bytes=mark,
        deadline_s=mark + when,
        labels=mark.astype(int) + np.arange(4),
        task_type=np.where(when > 0, late > 9, 0),
        utility=UtilityFunctions.exponential(mark, mark),
        input_files=[(0,)] * 2 + [(0,) * int(late)] * 2,
        width=None if width is None else np.where(when > 0, 2 if late > 9 else 1, width),
        requested_time_s=None if requested is None else mark,
    )


TWO_NODES = node_platform(np.ones((1, 1, 1)), np.ones((1, 1, 1)), [2])
KINDS = {
    "flops": (hosts(10, 10), {}, FlopsEstimates),
    "parallel flops": (TWO_NODES, {"width": 1}, FlopsEstimates),
    "requested times": (hosts(10, 10), {"requested": True}, RequestedTimes),
    "types": (
        hosts(10, 10),
        {},
        lambda _, tasks: TypedEstimates([[[2.0]], [[3.0]]], np.ones((2, 1, 1)), tasks.task_type, [0, 0]),
    ),
    "parallel types": (
        TWO_NODES,
        {"width": 1},
        lambda platform, tasks: ParallelEstimates(
            platform, tasks.flops[:, None, None], tasks.width[:, None], np.ones((1, 1, 1)), [0] * 4
        ),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_public_shows_tasks_to_come(kind):
    """State, system and estimates hold the same, whatever comes later; no method changes that."""
    platform, columns, estimates_of = KINDS[kind]
    pictures = []
    for late in (7.0, 11.0):
        tasks, seen = scene(late, **columns), []

        def answer(state, seen=seen):
            if state.now < 50:
                for owner in (state, state.estimates):
                    for name in dir(owner):
                        for numbers in ((10**6,), (state.now, 4)):
                            with suppress(TypeError, IndexError, AttributeError, InputError):
                                getattr(owner, name)(*numbers) if name[0] != "_" else None
                seen.append(public_values({"state": state, "estimates": state.estimates}))
            return [] if "parallel" in kind else idle_hosts(state)

        traits = replace(ANYTHING, parallel="parallel" in kind)
        play(platform, tasks, answer, traits, estimates=estimates_of(platform, tasks), horizon_s=60)
        pictures.append(seen)
    assert "state.tasks.flops.base" in pictures[0][0]
    assert "estimates.always_feasible" in pictures[0][0]
    for first, second in zip(*pictures, strict=True):
        assert [name for name in first | second if first.get(name) != second.get(name)] == []


def test_a_state_has_the_names_of_its_contract_alone():
    """What the controller does with the state is not a method of it."""
    assert [name for name in dir(LiveState) if name[0] != "_" and not hasattr(State, name)] == []


def test_utility_functions_and_types_are_cut_as_the_tasks_are():
    """The columns of tasks that have arrived are copies, the files' needs are cut with them."""
    utility = UtilityFunctions.exponential([4.0, 3.0, 2.0, 1.0], 0.1)
    tasks = make_tasks(
        [1.0] * 4, [0.0, 1.0, 2.0, 3.0], task_type=[3, 2, 1, 0], utility=utility, input_files=[(0,), (), (1,), ()]
    )
    arrived = ArrivedTasks(tasks)
    first = arrived.first(2)
    assert first.task_type.tolist() == [3, 2]
    assert first.utility.priority.tolist() == [4.0, 3.0]
    assert first.input_files == ((0,), ())
    assert not np.shares_memory(first.flops, tasks.flops)
    assert not first.flops.flags.writeable
    assert arrived.first(4).utility.priority.tolist() == [4.0, 3.0, 2.0, 1.0]
    assert len(first) == 2
