"""An agent as a scheduler in a file: what it has learned are its parameters."""

import numpy as np

from gridsched.learning import AgentScheduler


class WeightedAgent(AgentScheduler):
    """Take the host of the least weighted sum of completion time [s] and energy [J].

    Parameters
    ----------
    seconds, joules : float
        Weights.
    """

    action = "host"
    observation = "estimates"

    def __init__(self, seconds: float = 1.0, joules: float = 0.1) -> None:
        self.seconds = seconds
        self.joules = joules

    def act(self, observation, legal):
        """Return the host."""
        costs = observation @ [self.seconds, 0.0, self.joules]
        return int(np.argmin(np.where(legal, costs, np.inf)))
