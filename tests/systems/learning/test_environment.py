"""Environments for learning agents, and agents as schedulers."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Scenario, Store, Study, compare, learning, run
from gridsched.campaign.campaign import run_campaign
from gridsched.energy import trace_energy
from gridsched.errors import InputError, MissingDependency
from gridsched.learning import AgentScheduler
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.model.utility import UtilityFunctions
from gridsched.testing import parametrize_with_checks
from gridsched.testing.parallel_cases import EXAMPLE, make_parallel_case
from gridsched.testing.repetition import same_run, with_other_future

# Runs as a Gymnasium environment: its interface, its rewards, and that it is the run itself.

gymnasium = pytest.importorskip("gymnasium", reason="the extra 'learning' is not installed")
from gymnasium.utils.env_checker import check_env  # noqa: E402

EXAMPLES = Path(__file__).parents[3] / "examples"
PLATFORMS = Path(__file__).parents[3] / "platforms"


def platform(seed: int, n_hosts: int = 4) -> Platform:
    """Hosts of other speeds and powers, each in two P-states."""
    rng = np.random.default_rng(seed)
    hosts = []
    for k, (speed, watts) in enumerate(rng.uniform((50.0, 80.0), (150.0, 300.0), (n_hosts, 2)).tolist()):
        hosts.append(Host(f"h{k}", (PState(speed, 20, 30, watts), PState(speed / 2, 10, 15, watts / 3))))
    return Platform(tuple(hosts), name="P")


def bag(seed: int, n: int = 30) -> Scenario:
    """Tasks that arrive one after the other."""
    rng = np.random.default_rng(seed)
    tasks = make_tasks(rng.uniform(100.0, 2000.0, n), np.sort(rng.uniform(0.0, 60.0, n)), name="bag")
    return Scenario(platform(7), tasks, driver="reference")


def jobs(seed: int, n: int = 30) -> Scenario:
    """Rigid jobs on six nodes, which take less time than they asked for."""
    rng = np.random.default_rng(seed)
    submit, run_s = np.sort(rng.integers(0, 200, n)), rng.integers(1, 60, n)
    rows = list(zip(submit.tolist(), run_s.tolist(), rng.integers(1, 7, n).tolist(), strict=True))
    case = make_parallel_case("drawn", 6, [(s, r, w, r + 5) for s, r, w in rows])
    return case.scenario("fcfs", driver="reference")


SCENARIOS = {"host": bag, "pstate": bag, "job": jobs}


def least(observation, legal) -> int:
    """Return the allowed option with the least first column."""
    return int(np.argmin(np.where(legal, observation[:, 0], np.inf)))


def sampled(observation, legal) -> int:
    """Return an allowed option that depends on all that is seen."""
    return int(np.random.default_rng(int(1e6 * observation.sum()) % 2**32).choice(np.flatnonzero(legal)))


def play(env, agent, seed=None) -> float:
    """Play an episode to its end; return the sum of its rewards."""
    observation, _ = env.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        observation, reward, is_over, _, info = env.step(agent(observation, env.action_masks()))
        assert not info["illegal"]
        total += reward
    return total


# ---------------------------------------------------------------------- Gymnasium's interface


@pytest.mark.parametrize("observation", ["estimates", "scaled"])
@pytest.mark.parametrize("action", SCENARIOS)
def test_gymnasium_accepts_it(action, observation):
    """Spaces, seeds, determinism, what is returned: Gymnasium's own check, warnings are errors."""
    env = learning.make(SCENARIOS[action], action=action, observation=observation, jobs=5)
    check_env(env, skip_render_check=True)


def test_vectors_of_environments():
    """Gymnasium's vectorized environments step several at once, and begin again by themselves."""
    env = gymnasium.vector.SyncVectorEnv([partial(learning.make, bag), partial(learning.make, bag)])
    observation, _ = env.reset(seed=3)
    assert observation.shape == (2, 4, 3)
    ends = sum(env.step(np.array([k % 4, 0]))[2].sum() for k in range(100))
    assert ends == 2 * (100 // 31)  # 30 tasks, and a step that begins the next episode
    env.close()


def test_stable_baselines_vectors():
    """Stable-Baselines3 takes it into its vectorized environments."""
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 (with PyTorch) is not installed")
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(learning.make(bag), warn=False)
    env = vec_env.DummyVecEnv([partial(learning.make, bag)] * 2)
    env.reset()
    ends = sum(env.step(np.array([0, 1]))[2].sum() for _ in range(60))
    assert ends == 4
    assert np.stack(env.env_method("action_masks")).shape == (2, 4)
    env.close()


def test_seeds():
    """A seed decides a series of episodes; without one the series goes on."""
    env = learning.make(bag, observation="estimates")
    first, info = env.reset(seed=5)
    second, next_info = env.reset()
    assert info["seed"] != next_info["seed"]
    assert not np.array_equal(first, second)
    again, _ = learning.make(bag, observation="estimates").reset(seed=5)
    assert np.array_equal(first, again)
    assert np.array_equal(env.reset(seed=5)[0], first)


def test_a_scenario_draws_failures_anew():
    """Of one scenario each episode has the failures of its own seed."""
    failing = replace(bag(1), failures="mtbf=40,mttr=10")
    env, ends = learning.make(failing), set()
    for _ in range(4):
        play(env, least)
        ends.add(env.result.trace.horizon_s)
    assert len(ends) == 4


# ---------------------------------------------------------------------- it is the run itself


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_repeating_mct_has_its_joules_to_the_last_digit(seed, fails):
    """The host of the least completion, over 30 tasks that arrive, hosts failing or not."""
    scenario = replace(bag(seed), failures="mtbf=40,mttr=10" if fails else None)
    env = learning.make(scenario, observation="estimates", reward="-energy_model_j")
    play(env, least, seed)
    ours = env.result
    theirs = run(replace(scenario, scheduler="mct", seed=ours.scenario.seed))
    assert same_run(ours.trace, theirs.trace)
    assert trace_energy(ours.trace).total_j.tolist() == trace_energy(theirs.trace).total_j.tolist()


def test_events_from_outside_come_to_an_episode(tmp_path):
    """A host is drained and a task cancelled: the episode is the run of MCT with the same file."""
    file = tmp_path / "events.csv"
    scenario = replace(bag(3), events=file)
    name = scenario.platform.hosts[0].name
    file.write_text(f"time_s,event,what\n5,drain,{name}\n6,cancel,{scenario.tasks.labels[9]}\n60,resume,{name}\n")
    env = learning.make(scenario, observation="estimates", reward="-energy_model_j")
    play(env, least, 3)
    ours = env.result
    assert (ours.trace.final_state == TaskState.KILLED).sum() == 1
    assert same_run(ours.trace, run(replace(scenario, scheduler="mct", seed=ours.scenario.seed)).trace)


@pytest.mark.parametrize("observation", ["estimates", "scaled"])
@pytest.mark.parametrize("action", SCENARIOS)
def test_an_agent_decides_alike_as_a_scheduler(action, observation):
    """Whatever an agent does in the environment, `AgentScheduler` does in a run."""
    for seed in range(3):
        scenario = SCENARIOS[action](seed)
        env = learning.make(scenario, action=action, observation=observation, jobs=4)
        play(env, sampled, seed)
        scheduler = AgentScheduler(sampled, action, observation, 4)
        theirs = run(replace(scenario, scheduler=scheduler, parameters={}, seed=env.result.scenario.seed)).trace
        assert same_run(env.result.trace, theirs)
        assert env.result.trace.mapping_events == theirs.mapping_events


def test_what_arrives_later_is_not_seen():
    """Other tasks from the middle on: all questions before are the same."""
    scenario = bag(3)
    time = float(scenario.tasks.submit_time_s[15])
    other = replace(scenario, tasks=with_other_future(scenario.tasks, time))
    seen = []
    for each in (scenario, other):
        env = learning.make(each, observation="estimates")
        observations = [env.reset(seed=1)[0]]
        observations += [env.step(least(observations[-1], env.action_masks()))[0] for _ in range(14)]
        seen.append(np.stack(observations))
        env.close()
    assert np.array_equal(*seen)


# ---------------------------------------------------------------------- what is chosen


def test_hosts_by_hand():
    """EX-A's first two tasks, of 1000 and 500 flop: 10, 20, 40 s; and once h1 is taken, 15 s there."""
    scenario = Scenario(PLATFORMS / "ex_a.xml", EXAMPLES / "ex_a.csv", driver="reference")
    env = learning.make(scenario, observation="estimates")
    observation, _ = env.reset(seed=0)
    assert observation.tolist() == [[10, 10, 500], [20, 20, 400], [40, 40, 200]]
    observation, *_ = env.step(0)
    assert observation.tolist() == [[15, 5, 250], [10, 10, 200], [20, 20, 100]]


def test_pstates_by_hand():
    """One host of 100 and 50 flop/s, 200 and 60 W: 1000 flop take 10 or 20 s, 2000 or 1200 J."""
    host = Host("h", (PState(100.0, 0, 0, 200.0), PState(50.0, 0, 0, 60.0)))
    scenario = Scenario(Platform((host,)), make_tasks([1000.0, 1000.0]), driver="reference")
    env = learning.make(scenario, action="pstate", observation="estimates")
    observation, _ = env.reset(seed=0)
    assert observation.tolist() == [[10, 10, 2000], [20, 20, 1200]]
    env.step(1)
    _, reward, is_over, _, _ = env.step(0)
    assert is_over
    assert env.result.metrics()["energy_model_j"] == 3200
    assert env.result.metrics()["makespan_s"] == 30
    assert reward == -3200


def test_jobs_by_hand():
    """Section I's example: the second of four jobs waits for all nodes, the third overtakes it or not.

    J1 (10 s, 3 of 4 nodes) starts at 0 s; J2 (5 s, 4 nodes) has come at 1 s: 9 s to go.
    """
    scenario = make_parallel_case("example", 4, EXAMPLE).scenario("fcfs", driver="reference")
    env = learning.make(scenario, action="job", observation="estimates", jobs=2)
    observation, _ = env.reset(seed=0)
    assert observation[0].tolist() == [0, 10, 0.75, 0]
    assert env.action_masks().tolist() == [True, False, True]
    observation, *_ = env.step(0)
    now = scenario.tasks.submit_time_s[2]
    assert observation[0].tolist() == [10 - now, 5, 1.0, now - scenario.tasks.submit_time_s[1]]
    assert observation[1, 0] == 0
    assert env.action_masks().tolist() == [False, True, True]
    assert observation[2].tolist() == [10 - now, 0, 0.25, 0]


def test_cores_that_share_a_pstate_have_no_other():
    """A host of two cores keeps the P-state that it starts in; the next P-state is the other host's."""
    states = (PState(100.0, 0, 0, 200.0), PState(50.0, 0, 0, 60.0))
    platform = Platform((Host("h", states, cores=2), Host("g", states)))
    env = learning.make(
        Scenario(platform, make_tasks([1000.0] * 2), driver="reference"), action="pstate", observation="estimates"
    )
    assert env.reset(seed=0)[0].tolist() == [[10, 10, 1000], [20, 20, 1200]]
    env.step(1)
    assert env.step(1)[4]["illegal"] is False
    assert env.result.trace.executions["host"].tolist() == [1, 1]


def test_what_was_started_in_the_same_instant_counts():
    """J1 has one of two nodes for 10 s, so J2 waits for both; J3 fits, and so does to wait for the end of J1."""
    case = make_parallel_case("two", 2, [(0, 10, 1, 10), (0, 5, 2, 5), (0, 7, 1, 7)])
    env = learning.make(case.scenario("fcfs", driver="reference"), action="job", observation="estimates", jobs=2)
    env.reset(seed=0)
    assert env.action_masks().tolist() == [True, True, False]
    observation, *_ = env.step(0)
    assert observation.tolist() == [[10, 5, 1.0, 0], [0, 7, 0.5, 0], [10, 0, 0.5, 0]]
    assert env.action_masks().tolist() == [False, True, True]
    assert env.step(0)[4]["illegal"]  # J2 does not fit: none starts, though J3 would
    env.step(0)
    env.step(0)
    assert env.result.trace.start_time_s.tolist() == [0, 10, 15]


def test_what_outlives_its_estimate_ends_at_any_time():
    """J1 was to end at 5 s and runs at 7: in 0 s, not in -2, there are nodes for J3, and J2 fits."""
    case = make_parallel_case("late", 2, [(0, 10, 1, 5), (7, 5, 1, 5), (7, 5, 2, 5)])
    env = learning.make(case.scenario("fcfs", driver="reference"), action="job", observation="estimates", jobs=2)
    env.reset(seed=0)
    observation, *_ = env.step(0)
    assert observation.tolist() == [[0, 5, 0.5, 0], [0, 5, 1.0, 0], [0, 0, 0.5, 0]]


def test_completions_are_from_now_on():
    """At 4 s the first task has 6 s to go: the next one, of 5 s, completes in 11 s."""
    host = Host("h", (PState(100.0, 0, 0, 200.0),))
    scenario = Scenario(Platform((host,)), make_tasks([1000.0, 500.0], [0.0, 4.0]), driver="reference")
    env = learning.make(scenario, observation="estimates")
    env.reset(seed=0)
    assert env.step(0)[0].tolist() == [[11, 5, 1000]]


def test_columns_are_scaled_by_what_they_share():
    """Times by the longest of them, joules by theirs; of jobs all times by the longest, shares by the largest."""
    scenario = Scenario(PLATFORMS / "ex_a.xml", EXAMPLES / "ex_a.csv", driver="reference")
    observation, _ = learning.make(scenario).reset(seed=0)
    assert observation == pytest.approx(np.array([[0.25, 0.25, 1], [0.5, 0.5, 0.8], [1, 1, 0.4]]))
    case = make_parallel_case("two", 2, [(0, 10, 1, 10), (0, 5, 1, 5), (0, 7, 2, 7)])
    env = learning.make(case.scenario("fcfs", driver="reference"), action="job", jobs=2)
    env.reset(seed=0)
    observation, *_ = env.step(0)
    assert observation == pytest.approx(np.array([[0, 0.5, 0.5, 0], [1, 0.7, 1, 0], [1, 0, 0.5, 0]]))


def test_who_never_starts_a_job_is_made_to():
    """None is not allowed where nothing runs and nothing comes: every run ends, by whatever actions."""
    for seed in range(3):
        env = learning.make(jobs(seed), action="job", jobs=3)
        env.reset(seed=seed)
        steps, is_over, illegal = 0, False, 0
        while not is_over:
            _, _, is_over, _, info = env.step(3)
            illegal += info["illegal"]
            steps += 1
        assert env.result.metrics()["tasks_finished"] == 30
        assert 0 < illegal < steps


def test_an_action_that_is_not_legal_is_replaced_and_told():
    """A host that is off: the first one that is on takes the task."""
    env = learning.make(replace(bag(1), hosts_off=("h0",)))
    env.reset(seed=1)
    env.action_masks()[:] = True  # it is the caller's
    assert env.action_masks().tolist() == [False, True, True, True]
    is_over = False
    while not is_over:
        _, _, is_over, _, info = env.step(0)
        assert info["illegal"]
    assert set(env.result.trace.executions["host"]) == {1}


# ---------------------------------------------------------------------- rewards


@pytest.mark.parametrize("action", SCENARIOS)
@pytest.mark.parametrize(
    ("reward", "value"),
    [
        ("joules", lambda metrics: -metrics["energy_model_j"]),
        ("-energy_model_j * makespan_s", lambda metrics: -metrics["energy_model_j"] * metrics["makespan_s"]),
        ("-max_slowdown", lambda metrics: -metrics["max_slowdown"]),
    ],
)
def test_rewards_add_up_to_the_metric(action, reward, value):
    """Whenever they come, an episode's rewards are what the run is judged by."""
    env = learning.make(SCENARIOS[action](2), action=action, reward=reward)
    assert play(env, sampled, 4) == pytest.approx(value(env.result.metrics()), rel=1e-9)


@pytest.mark.systems("utility")
def test_slowdown_and_utility_add_up():
    """Of jobs, and of tasks with utility functions."""
    env = learning.make(jobs(2), action="job", reward="bounded_slowdown")
    assert play(env, sampled, 4) == pytest.approx(-env.result.metrics()["mean_bounded_slowdown"])
    env = learning.make(Scenario(None, EXAMPLES / "utility_small.toml"), reward="utility")
    assert play(env, least, 4) == pytest.approx(env.result.metrics()["utility"])


def test_joules_come_step_by_step():
    """Two hosts draw 4 W idle and 50 and 20 W busy; tasks come at 0 s and at 5 s.

    The first, on h1, takes 10 s: until the second comes 5 s of 50 + 4 W are drawn.
    """
    hosts = (Host("h1", (PState(100.0, 4, 50, 50),)), Host("h2", (PState(50.0, 4, 20, 20),)))
    tasks = make_tasks([1000.0, 500.0], [0.0, 5.0])
    env = learning.make(Scenario(Platform(hosts), tasks, driver="reference"))
    for _ in range(2):  # another episode counts from 0
        env.reset(seed=0)
        assert env.step(0)[1] == -270
        assert env.step(1)[1] == -(5 * 70 + 5 * 24)  # until 10 s both, until 15 s h2 alone


def test_slowdowns_come_as_jobs_end():
    """Three jobs on one node: 4 of at least 10 s count 1, as do 9 s for one of 5; 39 s for one of 30 count 1.3."""
    case = make_parallel_case("three", 1, [(0, 4, 1, 4), (0, 5, 1, 5), (0, 30, 1, 30)])
    env = learning.make(case.scenario("fcfs", driver="reference"), action="job", reward="bounded_slowdown")
    env.reset(seed=0)
    rewards = [env.step(0)[1] for _ in range(3)]
    assert rewards == pytest.approx([-1 / 3, -1 / 3, -1.3 / 3], rel=1e-12)


def test_utility_comes_as_tasks_end():
    """Of 60 s each, one after the other, it halves every minute from the submission: 60, 90 and 110 s are over."""
    host = Host("h", (PState(10.0, 1.0, 2.0, 2.0),))
    worth = UtilityFunctions.exponential([8.0, 4.0, 2.0], np.log(2.0), urgency_unit_s=60.0)
    tasks = make_tasks([600.0] * 3, [0.0, 30.0, 70.0], utility=worth)
    env = learning.make(Scenario(Platform((host,)), tasks, driver="reference"), reward="utility")
    env.reset(seed=0)
    rewards = [env.step(0)[1] for _ in range(3)]
    assert rewards == pytest.approx([0.0, 8 / 2, 4 * 2**-1.5 + 2 * 2 ** (-110 / 60)], rel=1e-12)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"action": "hosts"}, ("'hosts'", "'host'")),
        ({"observation": "pixels"}, ("'pixels'", "'scaled'")),
        ({"reward": "-energie_model_j"}, ("energie_model_j", "energy_model_j")),
        ({"reward": "__import__('os').getcwd()"}, ("__import__",)),
        ({"action": "job", "jobs": 0}, ("jobs", "0")),
        ({"action": "job"}, ("one speed", "partition")),
        ({"reward": "utility"}, ("utility",)),
    ],
)
def test_what_cannot_be_is_one_line(options, words):
    """The message names what was given and what is allowed."""
    with pytest.raises(InputError) as caught:
        learning.make(bag(1), **options).reset(seed=1)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)


def test_the_platform_of_an_agent_keeps_its_size():
    """Options are the hosts: a seed with other hosts has other options."""
    env = learning.make(lambda seed: replace(bag(1), platform=platform(1, 4 if seed == 0 else 3)))
    with pytest.raises(InputError, match="3 options"):
        env.reset(seed=1)


@pytest.mark.parametrize(
    "action", [float("nan"), float("inf"), "x", "1", None, 1.5, [0, 1], np.zeros(2, int), [], {}, object(), [[1], []]]
)
def test_what_is_no_number_of_an_option_is_refused(action):
    """In one line that shows what is allowed; the episode goes on."""
    env = learning.make(partial(bag, n=4))
    env.reset(seed=1)
    with pytest.raises(InputError, match="0 to 3"):
        env.step(action)
    assert env.step(0)[2] is False


def test_numbers_of_options_in_other_types_are_taken():
    """Whole numbers of numpy and Python, and arrays that hold one."""
    rewards = []
    for action in (2, 2.0, np.int64(2), np.float32(2), np.array(2), np.array([2])):
        env = learning.make(partial(bag, n=4))
        env.reset(seed=1)
        env.step(0)
        rewards.append(env.step(action)[1])
        assert env.step(np.int64(99))[4]["illegal"] is True
    assert len(set(rewards)) == 1


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps, cloudpickle.dumps])
def test_an_environment_is_not_copied(again):
    """It holds a run: the line names what to do, before an episode and in one."""
    env = learning.make(partial(bag, n=4))
    for _ in range(2):
        with pytest.raises(InputError, match="SchedulingEnvironment"):
            again(env)
        env.reset(seed=1)


def test_a_step_needs_an_episode():
    """Before the first reset, and after the end."""
    env = learning.make(bag(1))
    with pytest.raises(InputError, match="reset"):
        env.step(0)
    play(env, least, 1)
    with pytest.raises(InputError, match="reset"):
        env.step(0)


def test_jobs_need_one_cluster():
    """As the textbook's schedulers of rigid jobs do."""
    scenario = jobs(1)
    nodes = scenario.platform.hosts
    halves = Platform(nodes, (Cluster("a", (0, 1, 2)), Cluster("b", (3, 4, 5))), name="halves")
    with pytest.raises(InputError, match="halves has 2"):
        learning.make(replace(scenario, platform=halves), action="job")


def test_a_missing_extra_is_one_line(monkeypatch):
    """Without Gymnasium `make` names what to install; agents as schedulers do without it."""
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "gridsched.systems.learning.environment", raising=False)
    with pytest.raises(MissingDependency, match=r"pip install 'gridsched\[learning\]'"):
        learning.make(bag(1))
    assert run(replace(bag(1), scheduler=AgentScheduler())).metrics()["tasks_finished"] == 30


def test_what_is_given_up_is_gone():
    """An environment that is dropped in the middle of an episode keeps nothing alive."""
    env = learning.make(bag(1))
    env.reset(seed=1)
    env.step(0)
    ref = weakref.ref(env._loaded)
    env.close()
    del env
    gc.collect()
    assert ref() is None


# An agent as a scheduler: common checks, both drivers, comparisons and studies.

ROOT = Path(__file__).parents[3]
EX_A = (ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv")


def cheapest(observation, legal) -> int:
    """Return the allowed host that needs the least energy."""
    return int(np.argmin(np.where(legal, observation[:, 2], np.inf)))


@parametrize_with_checks([AgentScheduler(), AgentScheduler(action="pstate"), AgentScheduler(action="job", jobs=3)])
def test_common_checks(scheduler, check):
    """Contract, allowed places, bounds, no look-ahead, both drivers agree: as for every scheduler."""
    check(scheduler)


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_by_default_it_is_mct(driver):
    """On both drivers, to the last digit; SimGrid's plugin agrees."""
    ours, theirs = (run(Scenario(*EX_A, scheduler, driver=driver)) for scheduler in (AgentScheduler(), "mct"))
    assert ours.metrics()["energy_model_j"] == theirs.metrics()["energy_model_j"]
    assert np.array_equal(ours.energy_plugin_j, theirs.energy_plugin_j, equal_nan=True)


def test_in_a_comparison():
    """The cheapest host takes all of EX-A's tasks: h3, at 5 flop/J, 1050 J and the others idle."""
    comparison = compare(*EX_A, ["mct", AgentScheduler(cheapest)], driver="reference", workers=1)
    energy = comparison.frame["energy_model_j"].to_dict()
    assert energy["AgentScheduler"] == 5250 / 5 + 2 * 4 * 210
    assert energy["mct"] == 2510


AGENT = '''
"""An agent with what it has learned as a parameter."""
import numpy as np
from gridsched.learning import AgentScheduler


class Weighted(AgentScheduler):
    """Host of the least weighted sum."""

    observation = "estimates"

    def __init__(self, joules: float = 0.0) -> None:
        self.joules = joules

    def act(self, observation, legal):
        return int(np.argmin(np.where(legal, observation @ [1.0, 0.0, self.joules], np.inf)))
'''


def test_in_a_study(tmp_path):
    """A file with a subclass, and its parameter as an axis; joules alone put all on h3."""
    (tmp_path / "weighted.py").write_text(AGENT)
    (tmp_path / "s.toml").write_text(
        f'name = "agents"\ndriver = "reference"\n'
        f'[platform]\nfile = "{EX_A[0]}"\n[workload]\nfile = "{EX_A[1]}"\n'
        '[[schedulers]]\nid = "weighted.py"\njoules = [0.0, 1e6]\n'
    )
    study, store = Study.from_file(tmp_path / "s.toml", trust=True), Store.create(tmp_path / "store")
    run_campaign(study, store)
    assert sorted(store.rows(study)["energy_model_j"]) == [2510.0, 2730.0]
