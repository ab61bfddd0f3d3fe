"""Your own scheduler of workflows: of the hosts that end a task nearly first, the one of least energy gets it."""

import numpy as np

from gridsched import Assign, Scenario, Scheduler, Traits, run


class FrugalReady(Scheduler):
    """Each ready task goes where it needs least energy, of hosts that take at most half as long again to end it.

    References
    ----------
    .. [1] An example of gridsched's documents.
    """

    traits = Traits(trigger="event")

    def prepare(self, system, rng):
        self.places_ = np.arange(system.n_hosts), system.pstates

    def schedule(self, state):
        free_s = state.core_ready_time.copy()  # of each host's cores, ascending
        for task in state.mappable.tolist():
            run_s = state.estimates.etc([task], *self.places_)[0]
            end_s = np.maximum(free_s[:, 0], state.data_ready(task)) + run_s
            if end_s.min() < np.inf:  # else no host is on
                is_soon = end_s - state.now <= 1.5 * (end_s.min() - state.now)
                joules = state.estimates.eec([task], *self.places_)[0]
                host = int(np.where(is_soon, joules, np.inf).argmin())
                free_s[host, 0] = end_s[host]
                free_s[host].sort()
                yield Assign(task, host)


if __name__ == "__main__":
    for scheduler in ("heft", "ready_mct", FrugalReady()):
        found = run(Scenario("examples/campus.xml", "sequences.toml", scheduler)).summary()
        print(f"{found['scheduler']:12} {found['makespan_s']:6.1f} s {found['energy_j'] / 1e3:6.1f} kJ")
