"""Train small agents by the cross-entropy method, and compare them on seeds they have not seen.

An agent has a weight for each column of an observation, and takes the allowed option of the least
weighted sum. One chooses hosts for tasks of a bag and is rewarded for joules, the other chooses
which waiting job starts and is rewarded for bounded slowdown.
"""

from dataclasses import replace

import numpy as np

from gridsched import Cluster, Host, LoggedRunTimes, Platform, PState, Scenario, learning, make_tasks, run

ITERATIONS, CANDIDATES, BEST, EPISODES = 8, 12, 3, 2
UNSEEN = range(1000, 1020)


def bag(seed: int) -> Scenario:
    """60 tasks that arrive at ten hosts, the fast ones less efficient."""
    rng = np.random.default_rng(seed)
    hosts = [Host(f"h{k}", (PState(100.0 + 20 * k, 20.0, 40.0, 60.0 + 8.0 * k * k),)) for k in range(10)]
    tasks = make_tasks(rng.uniform(500, 4000, 60), np.sort(rng.uniform(0, 120, 60)), name="60 tasks")
    return Scenario(Platform(tuple(hosts), name="ten hosts"), tasks, driver="reference")


def jobs(seed: int) -> Scenario:
    """80 rigid jobs on 16 nodes, which end after half of the time they ask for, or later."""
    rng = np.random.default_rng(seed)
    nodes = tuple(Host(f"n{k}", (PState(1.0, 50.0, 60.0, 150.0),)) for k in range(16))
    run_s, width = rng.uniform(10, 300, 80), 2 ** rng.integers(0, 5, 80)
    tasks = make_tasks(
        run_s,
        np.sort(rng.uniform(0, 3500, 80)),
        width=width,
        requested_time_s=run_s * rng.uniform(1.0, 2.0, 80),
        name="80 jobs",
    )
    platform = Platform(nodes, (Cluster("c", tuple(range(16))),), name="16 nodes")
    return Scenario(platform, tasks, driver="reference", run_times=LoggedRunTimes(platform, run_s))


def agent(weights):
    """Return the agent with these weights."""
    return lambda options, legal: int(np.argmin(np.where(legal, options @ weights, np.inf)))


def rewards_of(env, weights, seed: int) -> float:
    """Return the sum of an episode's rewards."""
    act, (options, _), total, is_over = agent(weights), env.reset(seed=seed), 0.0, False
    while not is_over:
        options, reward, is_over, _, _ = env.step(act(options, env.action_masks()))
        total += reward
    return total


def train(env) -> np.ndarray:
    """Return the weights to which the best of drawn ones lead, iteration after iteration."""
    rng = np.random.default_rng(1)
    mean, spread = np.zeros(env.observation_space.shape[1]), 1.0
    for iteration in range(ITERATIONS):
        sampled = mean + spread * rng.standard_normal((CANDIDATES, len(mean)))
        seeds = range(iteration * EPISODES, (iteration + 1) * EPISODES)
        scores = [sum(rewards_of(env, weights, seed) for seed in seeds) for weights in sampled]
        best = sampled[np.argsort(scores)[-BEST:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.02
    return mean


def show(scenario, action: str, metric: str, others: list[str], options: dict) -> None:
    """Train an agent and print the mean of a metric beside that of other schedulers."""
    weights = train(learning.make(scenario, action=action, **options))
    trained = learning.AgentScheduler(agent(weights), action, "scaled")
    print(f"{metric}, mean of {len(UNSEEN)} unseen seeds")
    for name, scheduler in [("agent", trained), *((other, other) for other in others)]:
        values = [run(replace(scenario(seed), scheduler=scheduler)).metrics()[metric] for seed in UNSEEN]
        print(f"{name:18}{np.mean(values):12,.2f}")


if __name__ == "__main__":
    show(bag, "host", "energy_model_j", ["mct", "lecsa"], {"reward": "joules"})
    show(jobs, "job", "mean_bounded_slowdown", ["easy_backfilling", "fcfs"], {"reward": "bounded_slowdown"})
