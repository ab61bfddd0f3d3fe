"""A scheduler of your own, checked and compared."""

import numpy as np

from gridsched import Assign, Scenario, Scheduler, Traits, run
from gridsched.testing import check_scheduler


class EnergyDelay(Scheduler):
    """A submitted task goes to the host where energy times completion time is smallest.

    References
    ----------
    .. [1] An example of gridsched's documents.
    """

    traits = Traits(trigger="arrival")

    def prepare(self, system, rng):
        self.places_ = np.arange(system.n_hosts), system.pstates

    def schedule(self, state):
        for task in state.waiting():
            delay = state.ready_time - state.now + state.estimates.etc([task], *self.places_)[0]
            cost = delay * state.estimates.eec([task], *self.places_)[0]
            if cost.min() < np.inf:  # a host that is off is never ready
                yield Assign(task, int(cost.argmin()))


if __name__ == "__main__":
    passed = check_scheduler(EnergyDelay)
    print(f"{len(passed)} checks passed")
    for scheduler in ("mct", EnergyDelay(), "lecsa"):
        found = run(Scenario("platforms/ex_a.xml", "examples/ex_a.csv", scheduler)).summary()
        print(f"{found['scheduler']:12} {found['makespan_s']:5.0f} s {found['energy_j']:6.0f} J")
