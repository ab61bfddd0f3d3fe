"""The hot path of a common queue decides and shows what the long way does, on random runs."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import Truth, controller_of

from gridsched.engine import reference
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Plan


class Improvises(Scheduler):
    """Queues some tasks, copies some that run, plans the rest in common; notes all it is shown."""

    def __init__(self, seed: int, replicates: bool) -> None:
        self.seed = seed
        self.traits = Traits(asked="event", replicates=replicates)

    def __repr__(self) -> str:
        return f"Improvises({self.seed})"

    def prepare(self, system, rng) -> None:
        self.random_ = np.random.default_rng(self.seed)
        platform = system.platform  # cores of one host share a P-state
        self.n_pstates_ = np.where(platform.cores == 1, platform.n_pstates, 1)
        self.shown_ = []

    def schedule(self, state):
        waiting, running = state.mappable.tolist(), state.running
        self.shown_.append(
            (
                state.now,
                waiting,
                running.tolist(),
                state.core_ready_time.tolist(),
                state.idle_cores(),
                state.pstate.tolist(),
                state.free_cores.tolist(),
                state.idle_since.tolist(),
                state.queue_tasks.tolist(),
                state.energy,
                [state.copies_of(task) for task in range(len(state.tasks))],
            )
        )
        draw, decisions = self.random_.random, []
        if self.traits.replicates:
            decisions += [self.somewhere(task) for task in running["task"].tolist() if draw() < 0.6]
        # what is planned in common goes another way afterwards
        return [
            *decisions,
            Plan(self.random_.permutation(waiting), None),
            *[self.somewhere(task) for task in waiting if draw() < 0.15],
        ]

    def somewhere(self, task: int) -> Assign:
        """Queue the task on a random host, in a random P-state."""
        host = self.random_.integers(len(self.n_pstates_))
        return Assign(task, int(host), int(self.random_.integers(self.n_pstates_[host])))


def played(seed: int, replicates: bool, passes_on: bool):
    """Play a random run; return its records, what the policy was shown, and the short cuts."""
    random = np.random.default_rng(seed)
    platform = Platform(
        tuple(
            Host(
                f"h{k}",
                (PState(10.0 * 2 ** int(random.integers(3)), 1, 2, 3), PState(5.0, 1, 2, 2)),
                cores=2 if random.random() < 0.05 else 1,
            )
            for k in range(random.integers(1, 5))
        )
    )
    n = int(random.integers(5, 25))
    submitted = np.sort(random.integers(0, 30, n) * (random.random(n) < 0.6))
    tasks = make_tasks(random.integers(1, 9, n) * 10.0, submitted)
    policy = Improvises(seed, replicates)
    budget = EnergyBudget(1e6, 20.0, on_exhaustion="stop") if random.random() < 0.2 else None
    controller = controller_of(platform, tasks, policy, interval=None if random.random() < 0.8 else 8.0, budget=budget)
    taken, commands, step = [], [], controller.step

    def noted(now, finished):
        made = step(now, finished)
        commands.append((now, [(repr(each), getattr(each, "has_begun", None)) for each in made]))
        return made

    controller.step = noted
    if passes_on:
        short_cut = controller._dispatch.pass_on

        def counted(execution, now):
            follower = short_cut(execution, now)
            taken.append(follower is not None)
            return follower

        controller._dispatch.pass_on = counted
    else:
        controller._passes_on = False
    luck = random.choice([0.5, 1.0, 1.5], n)  # many things happen at once
    speed = platform.speed
    truth = Truth(lambda task, host, k: float(luck[task] * tasks.flops[task] / speed[host, k]))
    trace = reference.simulate(controller, truth)
    records = trace.executions.tolist(), trace.host_changes.tolist(), trace.final_state.tolist()
    return (records, trace.horizon_s, policy.shown_, commands), taken


@pytest.mark.parametrize("replicates", [False, True])
def test_the_short_cut_changes_nothing(replicates):
    """Records and what a policy sees are the same without it; it is taken, and refused."""
    taken = []
    for seed in range(80):
        found, ways = played(seed, replicates, passes_on=True)
        assert found == played(seed, replicates, passes_on=False)[0], seed
        taken += ways
    assert any(taken)
    assert not all(taken)
