"""Systems and workloads of papers 002 and 003."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from gridsched import Scenario
from gridsched.cli.app import main
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.runs.run import run
from gridsched.runs.scenario_maker import load
from gridsched.sim.library import is_installed
from gridsched.testing.agreement import metered_differences, trace_differences
from gridsched.workloads.load import read_system_workload
from gridsched.workloads.profit_system import (
    ProfitBag,
    draw_or_read_profit_system,
    draw_profit_system,
    draw_task_counts,
    generate_profit_bag,
)
from gridsched.workloads.robust_trial import RobustTrial, draw_robust_system, draw_robust_tasks, generate_robust_trial

# Paper 003's system, and bags generated for it.

# Systems of paper 003: sizes, moments, idle power, independent draws.


def test_the_paper_s_size():
    """30 task types, 9 machine types of 40 machines, 11,000 tasks, no idle power."""
    spec = ProfitBag()
    system = draw_profit_system(spec)
    counts = draw_task_counts(spec, system)
    assert system.etc.shape == system.apc.shape == (30, 9)
    assert system.machines.tolist() == [40] * 9
    assert counts.sum() == 11_000
    assert not system.idle_w.any()
    assert system.frequency.sum() == pytest.approx(1)


def test_moments_of_the_matrices():
    """Mean, and the cov over all entries of a CVB matrix: sqrt((1 + a^2)(1 + b^2) - 1)."""
    system = draw_profit_system(ProfitBag(task_types=3000, machine_types=60))
    for matrix, mean, task, machine in ((system.etc, 100, 0.5, 0.35), (system.apc, 200, 0.1, 0.25)):
        cov = np.sqrt((1 + task**2) * (1 + machine**2) - 1)
        assert matrix.mean() == pytest.approx(mean, rel=0.03)
        assert matrix.std() / matrix.mean() == pytest.approx(cov, rel=0.05)


def test_idle_power_is_a_share_of_the_machine_type_s_mean():
    """5 % of the mean of each column; nothing else changes with it."""
    still, idle = (draw_profit_system(ProfitBag(idle_share=share)) for share in (0.0, 0.05))
    assert idle.idle_w.tolist() == pytest.approx((0.05 * idle.apc.sum(axis=0) / 30).tolist())
    assert np.array_equal(still.etc, idle.etc)
    assert np.array_equal(still.frequency, idle.frequency)


def test_without_variation_all_types_are_alike():
    """All covs 0 give the means themselves."""
    flat = ProfitBag(time_task_cov=0, time_machine_cov=0, power_task_cov=0, power_machine_cov=0)
    system = draw_profit_system(flat)
    assert np.all(system.etc == 100)
    assert np.all(system.apc == 200)


def test_replicates_share_the_system_and_differ_in_tasks():
    """Same seed same bag; another replicate or size draws other tasks for the same machines."""
    spec = ProfitBag(tasks=1800)
    system = draw_profit_system(spec)
    first, again = draw_task_counts(spec, system), draw_task_counts(spec, system)
    other = spec.model_copy(update={"replicate": 1})
    assert np.array_equal(first, again)
    assert not np.array_equal(first, draw_task_counts(other, system))
    assert np.array_equal(draw_profit_system(other).etc, system.etc)
    elsewhere = draw_profit_system(spec.model_copy(update={"system_seed": 6}))
    assert not np.array_equal(elsewhere.etc, system.etc)


def test_replicates_follow_the_frequencies():
    """The mean share of 400 bags is near each type's frequency: five standard errors."""
    spec = ProfitBag(tasks=100, task_types=4)
    system = draw_profit_system(spec)
    bags = [draw_task_counts(spec.model_copy(update={"replicate": k}), system) for k in range(400)]
    error = np.sqrt(system.frequency * (1 - system.frequency) / (400 * 100))
    assert np.all(np.abs(np.mean(bags, axis=0) / 100 - system.frequency) < 5 * error)


@pytest.mark.parametrize("fields", [{"tasks": 0}, {"idle_share": 1.5}, {"time_mean_s": -1}, {"machines": 3}])
def test_refused(fields):
    """Numbers out of range and unknown names."""
    with pytest.raises(ValidationError):
        ProfitBag(**fields)


# The generator kind `profit`: single tasks on machines with idle power, drawn or from files.

FILES = {
    "machines.csv": "machine_type,count,idle_w\nfast,1,1\nslow,2,0.25\n",
    "etc.csv": "task_type,machine_type,pstate,etc_s\na,fast,0,2\na,slow,0,4\nb,slow,0,3\n",
    "apc.csv": "task_type,machine_type,pstate,apc_w\na,fast,0,10\na,slow,0,2.5\nb,slow,0,5\n",
    "counts.csv": "task_type,tasks\na,12\n",
    "g.toml": 'kind = "profit"\nmachines_csv = "machines.csv"\netc_csv = "etc.csv"\n'
    'apc_csv = "apc.csv"\ncounts_csv = "counts.csv"\n',
}


@pytest.fixture
def write(tmp_path):
    """Write the files, some of them changed; return the path of the generator's."""

    def written(**changed: str):
        for name, text in FILES.items():
            new = changed.get(name.partition(".")[0], text)
            (tmp_path / name).write_text(new, encoding="utf-8")
        return tmp_path / "g.toml"

    return written


def test_tasks_follow_the_counts_in_random_order():
    """Each type as often as the bag has it; another replicate, another bag on the same machines."""
    spec = ProfitBag(tasks=500, task_types=5, machine_types=3, machines_per_type=2, idle_share=0.05)
    made, again = generate_profit_bag(spec), generate_profit_bag(spec)
    counts = draw_task_counts(spec, draw_profit_system(spec))
    assert np.bincount(made.tasks.task_type, minlength=5).tolist() == counts.tolist()
    assert np.array_equal(made.tasks.task_type, again.tasks.task_type)
    assert (np.diff(made.tasks.task_type) < 0).any()
    other = generate_profit_bag(spec.model_copy(update={"replicate": 1}))
    assert np.array_equal(other.types.etc, made.types.etc)
    assert not np.array_equal(other.tasks.task_type, made.tasks.task_type)
    assert len(made.platform) == 6
    idle = 0.05 * made.types.apc[:, :, 0].mean(axis=0)
    assert np.allclose(made.platform.idle_w[:, 0], np.repeat(idle, 2), rtol=1e-12)


def test_files_take_the_place_of_what_is_drawn(write):
    """Times, powers, machines, idle power and counts as written; no line: cannot run there."""
    whole = read_system_workload(write())
    assert whole.tasks.task_type.tolist() == [0] * 12
    assert whole.types.etc[:, :, 0].tolist() == [[2.0, 4.0], [np.inf, 3.0]]
    assert [host.name for host in whole.platform.hosts] == ["fast-1", "slow-1", "slow-2"]
    assert whole.platform.idle_w[:, 0].tolist() == [1.0, 0.25, 0.25]


def test_a_scenario_names_every_file_it_was_read_from(write):
    """The generator's file and the four it names."""
    loaded = load(Scenario(None, write(), "mct"))
    assert len(loaded.inputs) == 5


def test_idle_power_may_be_left_out(write):
    """Then idle machines draw nothing."""
    toml = write(machines="machine_type,count\nfast,1\nslow,2\n")
    assert read_system_workload(toml).types.idle_w.tolist() == [0.0, 0.0]


def test_frequencies_are_drawn_where_counts_are_not_given(tmp_path, write):
    """Measured machines, and as many tasks as the key says."""
    toml = write(g=FILES["g.toml"].replace('counts_csv = "counts.csv"', "tasks = 40"))
    assert len(read_system_workload(toml).tasks) == 40


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"g": 'kind = "profit"\netc_csv = "etc.csv"\n'}, "machines_csv is missing"),
        ({"g": 'kind = "profit"\ncounts_csv = "counts.csv"\n'}, "no effect without etc_csv"),
        ({"g": FILES["g.toml"] + "machine_types = 4\n"}, "machine_types has no effect beside"),
        ({"g": 'kind = "profit"\ntask_types = 90000\nmachine_types = 90000\n'}, "8,100,000,000 ent"),
        ({"g": 'kind = "profit"\ntask_types = 90000\nbags = 90000\n'}, "8,100,000,000 entries"),
        ({"g": 'kind = "profit"\nmachines_per_type = 1000000\n'}, "9,000,000 machines; a run"),
        ({"g": FILES["g.toml"] + "tasks = 4\n"}, "tasks has no effect beside counts_csv"),
        ({"counts": "task_type,tasks\nc,1\n"}, "counts.csv, line 2"),
        ({"counts": "task_type,tasks\na,0\n"}, "no tasks; at least one"),
        ({"counts": "task_type,tasks\na,1\na,2\n"}, "line 3"),
        ({"machines": "machine_type,count,idle_w\nfast,1,-1\nslow,2,0\n"}, "line 2.*idle_w"),
        ({"etc": FILES["etc.csv"] + "a,fast,1,3\n", "apc": FILES["apc.csv"] + "a,fast,1,3\n"}, "P-states 0 to 1"),
    ],
)
def test_contradictions_are_refused(write, changed, message):
    """Naming the key, or file and line."""
    with pytest.raises(InputError, match=message):
        read_system_workload(write(**changed))


def test_a_bag_too_large_to_list_is_refused_and_its_counts_are_not():
    """Runs list tasks; the linear programmes look at counts."""
    spec = ProfitBag(tasks=10**9)
    assert draw_task_counts(spec, draw_or_read_profit_system(spec)).sum() == 10**9
    with pytest.raises(InputError, match="1,000,000,000"):
        generate_profit_bag(spec)


def test_what_tells_of_utility_refuses_a_bag_without(write, capsys):
    """`workload describe` and `generate` have nothing to say of it."""
    assert main(["workload", "describe", str(write())]) == 2
    assert "gridsched optimize" in capsys.readouterr().err


def test_bags_follow_each_other():
    """The first bag is that of a single one; each is drawn anew, their gaps are exponential."""
    spec = ProfitBag(tasks=50, task_types=3, machine_types=2, machines_per_type=1)
    single = generate_profit_bag(spec).tasks
    many = generate_profit_bag(spec.model_copy(update={"bags": 400, "bag_interval_s": 60.0})).tasks
    times, sizes = np.unique(many.submit_time_s, return_counts=True)
    assert (len(times), set(sizes.tolist()), times[0]) == (400, {50}, 0.0)
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(60.0, rel=0.2)  # four standard errors
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.2)
    types = many.task_type.reshape(400, 50)
    assert types[0].tolist() == single.task_type.tolist()
    counts = [np.bincount(each, minlength=3).tolist() for each in types]
    assert counts[0] != counts[1] != counts[2]


def test_bags_of_counted_tasks_are_equal(write):
    """A file of counts is every bag's."""
    toml = write(g=FILES["g.toml"] + "bags = 3\n")
    tasks = read_system_workload(toml).tasks
    assert np.unique(tasks.submit_time_s, return_counts=True)[1].tolist() == [12, 12, 12]


# Paper 002's system and trials.

# The system and the trials of paper 002: what the paper says of them, and their seeds.


def systems(count: int) -> list:
    """Systems of so many seeds."""
    return [draw_robust_system(RobustTrial(system_seed=seed)) for seed in range(count)]


def test_every_system_has_the_papers_cores_and_ranges():
    """48 +- 1 cores on 8 nodes of 1 to 4 processors with 1 to 4 cores each."""
    for system in systems(40):
        assert len(system.cores) == 8
        assert 47 <= system.cores.sum() <= 49
        assert ((system.cores >= 1) & (system.cores <= 16)).all()
        assert ((system.supply_efficiency >= 0.90) & (system.supply_efficiency <= 0.98)).all()
        assert ((system.power_w[:, 0] >= 125) & (system.power_w[:, 0] <= 135)).all()
        assert (np.diff(system.power_w, axis=1) < 0).all()
        assert (np.diff(system.slowdown, axis=1) > 0).all()


def test_means_are_those_that_the_paper_prints():
    """Claim F-002 10: t_avg about 1353, P4/P0 about a quarter, least frequency at least 40 %."""
    found = systems(200)
    t_avg = np.mean([system.t_avg_s for system in found])
    ratio = np.mean([(s.power_w[:, -1] / s.power_w[:, 0]).mean() for s in found])
    frequency = min((s.slowdown[:, 0] / s.slowdown[:, -1]).min() for s in found)
    assert t_avg == pytest.approx(1353, rel=0.03)
    assert 0.22 <= ratio <= 0.29
    assert frequency >= 0.40
    assert np.mean([s.p_avg_w for s in found]) == pytest.approx(74.4, rel=0.01)


def test_a_trial_by_its_definition():
    """1,000 tasks in three phases; deadlines follow from arrival, type and system."""
    spec = RobustTrial(seed=3)
    system = draw_robust_system(spec)
    tasks = draw_robust_tasks(spec, system)
    assert len(tasks.submit_time_s) == len(tasks.luck) == spec.n_tasks == 1000
    assert (np.diff(tasks.submit_time_s) > 0).all()
    assert np.diff(tasks.submit_time_s[:200]).mean() == pytest.approx(8, rel=0.25)
    assert np.diff(tasks.submit_time_s[200:800]).mean() == pytest.approx(48, rel=0.15)
    k = 17
    mean = system.mean_time_s[tasks.task_type[k]].mean()
    expected = tasks.submit_time_s[k] + mean + system.t_avg_s
    assert tasks.deadline_s[k] == pytest.approx(expected, rel=1e-15)
    assert ((tasks.luck >= 0) & (tasks.luck < 1)).all()


def test_the_system_stays_and_the_trials_differ():
    """Seeds for system and trials are apart."""
    first, second = RobustTrial(seed=1, replicate=0), RobustTrial(seed=1, replicate=1)
    one, other = draw_robust_system(first), draw_robust_system(second)
    assert np.array_equal(one.mean_time_s, other.mean_time_s)
    tasks = [draw_robust_tasks(spec, one) for spec in (first, second, first)]
    assert np.array_equal(tasks[0].luck, tasks[2].luck)
    assert not np.array_equal(tasks[0].luck, tasks[1].luck)
    assert not np.array_equal(tasks[0].submit_time_s, tasks[1].submit_time_s)
    third = draw_robust_system(RobustTrial(system_seed=5))
    assert not np.array_equal(one.cores, third.cores)


def test_rates_can_follow_the_system():
    """Twice the cores take twice the arrivals."""
    spec = RobustTrial(total_cores=100, nodes=16, scaled_to_system=True)
    system = draw_robust_system(spec)
    scaled = draw_robust_tasks(spec, system)
    plain = draw_robust_tasks(spec.model_copy(update={"scaled_to_system": False}), system)
    factor = (system.cores.sum() / 48.3) * (1353 / system.t_avg_s)
    assert plain.submit_time_s == pytest.approx(scaled.submit_time_s * factor, rel=1e-12)


def test_nodes_can_differ_in_their_means():
    """With a spread of nodes the means are inconsistent; without one they follow the slowdown."""
    same = draw_robust_system(RobustTrial())
    ratio = same.mean_time_s / same.slowdown[None]
    assert ratio.std(axis=(1, 2)) == pytest.approx(np.zeros(100), abs=1e-9)
    apart = draw_robust_system(RobustTrial(time_node_cov=0.25))
    spread = apart.mean_time_s[:, :, 0] / apart.slowdown[None, :, 0]
    assert (spread.std(axis=1) / spread.mean(axis=1)).mean() == pytest.approx(0.25, rel=0.2)


def test_cores_that_cannot_be_met_are_refused():
    """Eight nodes of at most 16 cores have no 200."""
    with pytest.raises(InputError, match=r"total_cores.*200"):
        draw_robust_system(RobustTrial(total_cores=200))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task_types": 100_000, "nodes": 100_000, "total_cores": None}, "task_types, nodes and"),
        ({"phases": [(100_000, 1.0)] * 101}, "phases give 10,100,000"),
        ({"processors": (1, 100_000), "total_cores": None}, "a run lists each"),
        ({"processors": (100_000, 100_000)}, "a run lists each"),
        ({"nodes": 100, "total_cores": 48}, "100 nodes .* have 100 to 1600"),
        ({"grid_s": 1e-30}, "Choose a coarser grid"),
        ({"time_mean_s": 1e30}, "Choose a coarser grid"),
        ({"pstate_slowdown": (1e30, 1e30), "pstates": 100}, "Choose a coarser grid"),
    ],
)
def test_systems_too_large_to_draw_are_refused(changes, message):
    """Before anything is drawn, or a distribution is spelled out."""
    with np.errstate(all="raise"), pytest.raises(InputError, match=message):
        draw_robust_system(RobustTrial(**changes))


# The generator kind robust: hosts, rules and hidden run times of paper 002.


def small(**keys) -> RobustTrial:
    """A trial of 40 tasks on a few cores."""
    return RobustTrial(
        nodes=2, total_cores=5, task_types=6, phases=((30, 60.0), (10, 200.0)), budget_tasks=30.0, **keys
    )


def test_hosts_and_rules_are_those_of_the_drawn_system():
    """One one-core host for each core, P:P with the supply inside, parked in the last P-state."""
    spec = small()
    system, made = draw_robust_system(spec), generate_robust_trial(spec)
    platform = made.platform
    assert len(platform.hosts) == system.cores.sum()
    assert (platform.cores == 1).all()
    node = made.types.host_type
    assert platform.busy_w == pytest.approx(system.wall_power_w[node])
    assert platform.idle_w == pytest.approx(system.wall_power_w[node])
    assert made.rules.parked_pstate == 4
    assert made.rules.budget.period_s == math.inf
    assert made.rules.budget.energy_j == system.budget_j(30.0)
    # work over speed is the mean run time
    expected = made.types.etc[made.tasks.task_type][:, node]
    found = made.tasks.flops[:, None, None] / platform.speed[None]
    assert found == pytest.approx(expected)


def test_trials_share_their_system_and_a_task_its_luck():
    """Another seed draws other tasks on the same hosts; luck is one quantile on every host."""
    one, other = generate_robust_trial(small(seed=1)), generate_robust_trial(small(seed=2))
    assert one.platform == other.platform
    assert not np.array_equal(one.tasks.submit_time_s, other.tasks.submit_time_s)
    estimates = one.types.estimates(one.tasks)
    shares = [
        one.run_times.run_time(3, host, pstate) / estimates.run_time(3, host, pstate)
        for host in range(5)
        for pstate in range(5)
    ]
    assert shares == pytest.approx([shares[0]] * 25)
    pmf = estimates.pmf(3, 0, 2)
    assert pmf.mean == pytest.approx(estimates.run_time(3, 0, 2), rel=1e-4)
    variance = (pmf.times - pmf.mean) ** 2 @ pmf.masses
    assert math.sqrt(variance) / pmf.mean == pytest.approx(0.25, rel=1e-2)


def test_deadlines_are_stretched_by_their_factor():
    """Twice the factor is twice the time to the deadline; arrivals and budget stay."""
    one, other = generate_robust_trial(small()), generate_robust_trial(small(deadline_factor=2.0))
    assert np.array_equal(one.tasks.submit_time_s, other.tasks.submit_time_s)
    assert one.rules.budget == other.rules.budget
    slack_s = one.tasks.deadline_s - one.tasks.submit_time_s
    assert other.tasks.deadline_s - other.tasks.submit_time_s == pytest.approx(2 * slack_s)


BOTH_FILTERS = {"energy_fair_share": True, "robustness": 0.5}


@pytest.mark.skipif(not is_installed(), reason="SimGrid is not installed")
@pytest.mark.parametrize(
    ("scheduler", "parameters"),
    [
        ("shortest_queue", {}),
        ("minimum_expected_completion_time", {}),
        ("lightest_load", BOTH_FILTERS),
        ("random_immediate", {"robustness": 0.5}),
        ("mct", {}),
        ("shortest_queue", {"remap": True}),
    ],
)
def test_drivers_agree(scheduler, parameters):
    """Uncertain run times, parked hosts and a budget that ends the run; joules to 1e-9."""
    made = generate_robust_trial(small(seed=4))
    scenario = Scenario(None, made.tasks, scheduler, parameters).with_system(made)
    one = run(replace(scenario, driver="reference"))
    other = run(replace(scenario, driver="simgrid"))
    assert trace_differences(one.trace, other.trace) == []
    assert metered_differences(other) == []
    consumed = trace_energy(one.trace).grid_total()
    assert consumed == pytest.approx(made.rules.budget.energy_j, rel=1e-9)
    assert TaskState.KILLED in one.trace.final_state  # the budget ended it, nothing else
    # five cores are parked at once; others after them
    assert np.array_equal(one.trace.host_changes, other.trace.host_changes)
    assert len(one.trace.host_changes) >= 10
    estimates = made.types.estimates(made.tasks)
    executed = one.trace.of_outcome(ExecutionEnd.FINISHED)
    expected = [estimates.run_time(*key) for key in executed[["task", "host", "pstate"]].tolist()]
    assert not np.isclose(executed["end"] - executed["start"], expected, rtol=1e-3).any()
