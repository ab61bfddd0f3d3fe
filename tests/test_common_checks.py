"""Every registered scheduler passes the common checks; a policy that breaks the contract fails the right one."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from broken_policies import (
    AssumesFeasible,
    BeyondTheLast,
    ByPosition,
    ChangesPlatform,
    Converts,
    Counts,
    DecidesByDriver,
    Dozes,
    DrawsElsewhere,
    FreesNodes,
    HoldsALock,
    IgnoresPower,
    ImportsSimGrid,
    Leaves,
    LooksAhead,
    Nameless,
    Natural,
    NeedsAParameter,
    NeverForgets,
    Overspends,
    PlansInThePast,
    PlansOnce,
    Remembers,
    Repeats,
    ReservesBusyNodes,
    Secretive,
    Sound,
    SoundParallel,
    TakesOneNodeMore,
    Tunes,
    Undocumented,
    WithoutSource,
    Writes,
    WritesReadOnly,
)

from gridsched.errors import InputError
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.testing import (
    CHECKS,
    TINY_CASES,
    CheckFailed,
    StyleWarning,
    applicable_checks,
    check_scheduler,
    parametrize_with_checks,
    play,
    trace_differences,
)
from gridsched.testing.cases import DEPENDENT_CASES, cases_for
from gridsched.testing.decision_checks import below_bounds, early_starts
from gridsched.testing.parallel_cases import SHARED_CASES

# Every registered scheduler passes the common checks.

VARIANTS = (
    ("wqr", {"pick": "random"}),
    ("wqr", {"max_replicas": 3}),
    ("wqr", {"max_replicas": 1}),
    ("sufferage", {"variant": "pass"}),
    ("sufferage", {"reschedule": False}),
    ("xsufferage", {"variant": "pass"}),
    ("min_min", {"reschedule": False}),
    ("max_min", {"reschedule": False}),
    ("lecsa", {"share_rule": "levels", "leftover": "first"}),
    ("lecsa", {"share_rule": "range", "switch_off": "unused"}),
    ("lecsa", {"share_rule": "count", "switch_off": "none", "few_tasks_share": 0.5}),
    ("slowest_pstates", {"scheduler": "min_min", "within": 1.5}),
    ("idle_off", {"scheduler": "wqr", "timeout_s": 2.0}),
    ("wait_for_green", {"scheduler": "follow_sites", "max_delay_s": 30.0, "forecast": "persistence", "site": "best"}),
    ("fcfs", {"order": "f3", "depth": 2}),
    ("easy_backfilling", {"order": "wfp3", "estimate": "last_two_of_user"}),
    ("easy_backfilling", {"order": "multifactor(PriorityWeightFairshare=1000, PriorityWeightAge=1000)"}),
    ("conservative_backfilling", {"order": "unicef", "estimate": "last_two_of_user", "depth": 3}),
    ("easy_backfilling", {"backfill_order": "shortest", "estimate": "last_two_of_user(last='submitted', looks=True)"}),
    ("conservative_backfilling", {"backfill_order": "smallest", "order": "f1"}),
    ("easy_energy_budget", {"energy_reservation": "none", "budget_share": 0.7, "begin_s": 5.0, "end_s": 50.0}),
    ("easy_energy_budget", {"overtaking": "power", "budget_share": 0.7, "begin_s": 5.0, "end_s": 50.0}),
    ("easy_energy_budget", {"begin_s": 5.0, "end_s": 50.0, "contiguous": False, "switches_off": True}),
    ("easy_energy_budget", {"overtaking": "saved", "budget_share": 0.7, "begin_s": 5.0, "end_s": 50.0}),
    ("easy_energy_budget", {"energy_reservation": "all", "budget_share": 0.7, "begin_s": 5.0, "end_s": 50.0}),
    ("easy_energy_budget", {"energy_reservation": "all", "begin_s": 5.0, "end_s": 50.0, "switches_off": True}),
)
#: those that are programs of their own are in systems/batsim
OWN = [entry.id for entry in entries() if not scheduler_class(entry.id).traits.external]
ALL = OWN + [make_scheduler(id, given) for id, given in VARIANTS]


@parametrize_with_checks(ALL)
def test_common_checks(scheduler, check):
    """The scheduler passes the check."""
    check(scheduler)


# A policy that breaks the contract fails the right check, with words that help to mend it.

BROKEN = [
    (NeedsAParameter, "default_construction", "Give every parameter of __init__ a default"),
    (Converts, "init_only_stores", "must store the parameter 'depth' as self.depth"),
    (Counts, "init_only_stores", "sets self.count_, which is not a parameter; set it in prepare"),
    (HoldsALock(threading.Lock()), "pickle", "cannot be pickled"),
    (Nameless, "repr", "it must show 'Nameless'"),
    (Undocumented, "docstring", "must describe 'depth' in a numpydoc section 'Parameters'"),
    (WithoutSource, "docstring", "needs a numpydoc section 'References'"),
    (Tunes, "memory", "changes its parameter 'depth' during a run"),
    (Remembers, "memory", "remembers self.last from a run; give it a name that ends in '_'"),
    (Leaves, "final_states", "Every task needs an Assign, a place in a Plan, or a Drop"),
    (Dozes, "final_states", "assign them, or drop them, instead of waking up again"),
    (Repeats, "legal_places", "Assign of a running task needs the trait 'replicates'"),
    (BeyondTheLast, "legal_places", "there are hosts 0 to"),
    (IgnoresPower, "all_hosts_off", "Where no host is on"),
    (AssumesFeasible, "legal_places", "the task cannot run on this host"),
    (Overspends, "budget", "would draw .* until the period's end .* remain"),
    (Writes, "state_untouched", "schedule.. changes state.(core_)?ready_time"),
    (WritesReadOnly, "state_untouched", "Arrays of the state cannot be written to"),
    (ChangesPlatform, "state_untouched", "changes platform.cores"),
    (LooksAhead, "sees_no_future", "Use nothing of tasks that have not arrived"),
    (DrawsElsewhere, "same_seed", "Draw from the rng that prepare"),
    (Secretive, "seed_irrelevant", r"set Traits\(uses_rng=True\)"),
    (NeverForgets, "reuse", "Set everything it remembers again in prepare"),
    (ByPosition, "host_order", r"set Traits\(platform_order_matters=True\)"),
    (ImportsSimGrid, "without_simgrid", "A policy decides from the state it is given"),
    (DecidesByDriver, "drivers_agree", "reference driver and SimGrid .* differ"),
    (ReservesBusyNodes, "legal_places", r"host 0 is reserved from .* by task 0"),
    (PlansInThePast, "legal_places", "Plan.starts holds .* it must lie at or after now"),
    (PlansOnce, "final_states", "a place in a Plan, or a Drop. Place-holders"),
    (TakesOneNodeMore, "legal_places", "the task takes 3 nodes, not 4"),
    (FreesNodes, "state_untouched", "Arrays of the state cannot be written to"),
]


def case_id(value) -> str:
    """Return the class or check a case is about."""
    if isinstance(value, str):
        return value if value.isidentifier() else ""
    return value.__name__ if isinstance(value, type) else type(value).__name__


@pytest.mark.parametrize(("broken", "name", "message"), BROKEN, ids=case_id)
def test_a_broken_policy_fails_the_right_check(broken, name, message):
    """The check fails, and its message names what to mend; style is a warning (here an error)."""
    check = next(check for check in applicable_checks(broken) if check.name == name)
    with pytest.raises((CheckFailed, StyleWarning), match=message):
        check(broken)


def test_a_sound_policy_passes_and_says_what_was_checked():
    """`check_scheduler` returns the names of the checks."""
    results = check_scheduler(Sound)
    names = [result.name for result in results]
    assert names == [check.name for check in applicable_checks(Sound)]
    assert [result.skipped for result in results] == [""] * len(results)


def test_a_policy_that_reads_the_state_between_decisions_passes():
    """All checks, on both drivers: as one that keeps its own books it uses every host."""
    assert len(check_scheduler(Natural)) == len(check_scheduler(Sound))
    case = next(case for case in TINY_CASES if case.name == "identical hosts")
    assert set(play(case, Natural()).executions["host"].tolist()) == {0, 1, 2}


def test_a_sound_policy_of_parallel_jobs_passes():
    """On cases of its own."""
    check_scheduler(SoundParallel)


def test_check_scheduler_tells_all_failures_at_once():
    """One line for each check that failed."""
    with pytest.raises(CheckFailed) as caught:
        check_scheduler(Tunes)
    failed = [line.split(":")[0] for line in str(caught.value).splitlines()]
    assert "memory" in failed
    assert "docstring" not in failed


def test_style_warns_and_passes():
    """A docstring that lacks a section is reported in a warning; the behavior is what counts."""
    with pytest.warns(StyleWarning, match=r"docstring.*'depth'"):
        results = check_scheduler(Undocumented)
    assert [result.name for result in results] == [check.name for check in applicable_checks(Undocumented)]


@pytest.mark.systems("utility")
def test_traits_decide_which_checks_apply():
    """A policy with the trait is not checked for its absence."""
    names = {check.name for check in applicable_checks("wqr")}
    assert "seed_irrelevant" not in names
    assert "host_order" not in names
    assert "all_hosts_off" not in {check.name for check in applicable_checks("lecsa")}
    assert len(applicable_checks("mct")) == len(CHECKS)
    assert "budget" in {check.name for check in applicable_checks("max_max_upe")}


def test_traits_must_be_traits():
    """A class without traits is refused for that, first of all."""

    class Traitless(Sound):
        """Has no traits."""

        traits = "event"

    with pytest.raises(CheckFailed, match="Traits"):
        check_scheduler(Traitless)


def test_a_trace_below_its_bounds_is_found():
    """Executions that are too short show in both bounds."""
    trace = play(TINY_CASES[1], Sound())
    assert below_bounds(trace, Sound.traits) == []
    short = trace.executions.copy()
    short["end"] = 0.5
    problems = below_bounds(replace(trace, executions=short, horizon_s=0.5), Sound.traits)
    assert len(problems) == 2
    assert problems[0].startswith("makespan 0.5 s is less than the least possible, 7 s")


def test_differences_of_traces_are_found():
    """Times, places, outcomes, states and joules are all compared."""
    trace = play(TINY_CASES[2], Sound())
    assert trace_differences(trace, trace) == []
    for column, by in (("start", 1e-6), ("end", 1e-6), ("host", 1), ("pstate", 0), ("outcome", 1)):
        other = trace.executions.copy()
        other[column][1] += by
        found = trace_differences(trace, replace(trace, executions=other))
        assert bool(found) == bool(by), column
    fewer = replace(trace, executions=trace.executions[1:])
    assert trace_differences(trace, fewer) == ["5 and 4 executions"]
    states = replace(trace, final_state=trace.final_state + 1)
    assert "final states" in trace_differences(trace, states)[0]


# Policies are played on all kinds of tasks that their traits allow, some of which wait for others.


@pytest.mark.systems("profit", "robust", "utility")
@pytest.mark.parametrize(
    ("scheduler", "kinds"),
    [
        ("mct", {"serial", "whole", "shared"}),
        ("fcfs", {"serial", "whole", "shared"}),
        ("lp_rolling", {"serial"}),
        ("max_max_upe", {"serial"}),
        ("shortest_queue", {"serial"}),
        ("max_upe", {"whole"}),
        ("lp_max_profit", set()),
    ],
)
def test_dependent_tasks_of_all_kinds_are_played(scheduler, kinds):
    """Those of a policy that plans once wait for nothing."""
    dependent = [case.tasks for case in cases_for(make_scheduler(scheduler)) if case.tasks.dependencies is not None]
    found = {"serial" if each.are_serial else "whole" if each.take_whole_nodes else "shared" for each in dependent}
    assert found == kinds


def test_a_start_before_what_it_waits_for_is_found():
    """Of a chain of three the second one starts behind the end of the first, the third 3 s behind that start."""
    trace = play(DEPENDENT_CASES[0], make_scheduler("mct"))
    assert early_starts(trace) == []
    for task in (1, 2):
        early = trace.executions.copy()
        early["start"][early["task"] == task] = 0.0
        found = early_starts(replace(trace, executions=early))
        assert found[0].startswith(f"task {task + 1} starts at")


@pytest.mark.systems("profit")
def test_a_policy_that_plans_once_refuses_tasks_that_are_free_later():
    """One line reports this, as for tasks that arrive later."""
    with pytest.raises(CheckFailed, match=r"plans once.*wait for others") as caught:
        play(DEPENDENT_CASES[0], make_scheduler("lp_max_profit"))
    assert isinstance(caught.value.__cause__, InputError)


@pytest.mark.systems("utility")
def test_permanent_reservations_of_serial_tasks():
    """A task of one core is a job of one node to a policy that gives whole nodes."""
    trace = play(SHARED_CASES[1], make_scheduler("easy_backfilling", {"reservations": "permanent"}))
    assert (trace.final_state == trace.final_state[0]).all()
    assert early_starts(trace) == []
