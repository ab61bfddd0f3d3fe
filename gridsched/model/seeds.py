"""Independent random streams: one for each purpose, so that changing one shifts no other."""

from __future__ import annotations

import numpy as np

#: Purposes in the order of their spawn keys; new ones are appended.
STREAMS = (
    "platform",
    "tasks",
    "arrivals",
    "utility",
    "runtime",
    "scheduler",
    "utility_classes",
    "task_types",
    "failures",
    "profiles",
    "pstate_factors",
)


def random_stream(seed: int, purpose: str, replicate: int = 0, *members: int) -> np.random.Generator:
    """Return the generator of one purpose.

    Parameters
    ----------
    seed : int
        The scenario's seed, at least 0.
    purpose : str
        One of `STREAMS`.
    replicate : int
        Which repetition; all schedulers of a replicate meet the same platform and workload.
    members : int
        Of whom, where each host has a stream of its own.

    Returns
    -------
    numpy.random.Generator
        PCG64 on ``SeedSequence(seed, spawn_key=(replicate, index of purpose, members))``.
    """
    key = (replicate, STREAMS.index(purpose), *members)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
