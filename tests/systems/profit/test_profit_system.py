"""Systems of paper 003, and bags generated for them."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from gridsched import Scenario
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.runs.scenario_maker import load
from gridsched.systems.profit.profit_system import (
    ProfitBag,
    draw_or_read_profit_system,
    draw_profit_system,
    draw_task_counts,
    generate_profit_bag,
)
from gridsched.workloads.load import read_system_workload

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
    """Measured machines, and as many tasks as the key sets."""
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
    """Runs list tasks; the linear programs look at counts."""
    spec = ProfitBag(tasks=10**9)
    assert draw_task_counts(spec, draw_or_read_profit_system(spec)).sum() == 10**9
    with pytest.raises(InputError, match="1,000,000,000"):
        generate_profit_bag(spec)


def test_what_tells_of_utility_refuses_a_bag_without(write, capsys):
    """`workload describe` and `generate` have nothing to say of it."""
    assert main(["workload", "describe", str(write())]) == 2
    assert "gridsched optimize" in capsys.readouterr().err


def test_bags_follow_each_other():
    """The first bag is that of a single one; each is drawn again, their gaps are exponential."""
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

# The system and the trials of paper 002: the paper's description, and their seeds.


# The generator kind robust: hosts, rules and hidden run times of paper 002.
