"""The claims of the study `parallel_curie_oversubscribed`: those of `parallel_curie` on the other system."""

from __future__ import annotations

from dataclasses import replace

from gridsched.runs.claims_schema import Explanation, Ground
from gridsched.systems.utility.studies import parallel_curie

PRINTED = Ground("before", "that of the system drawn by the printed numbers, before any run of this one")
CLAIMS = [replace(claim, ground=PRINTED) for claim in parallel_curie.CLAIMS]
EXPLANATIONS = [
    Explanation(
        ("F18-1", "F18-3", "F18-4"),
        (
            "A difference of 0.3 %: nothing is scarce without a constraint on half of the cores, and Max Util, "
            "which looks at nothing but utility, loses least of it where utility decays from the first minute."
        ),
        (
            (
                "scheduler in ['UPR', 'Util', 'Event-Based', 'Task-Based'] and energy_budget_j > 26e9 and total_cores "
                "== 46080"
            ),
        ),
    ),
    Explanation(
        (
            "F19-1",
            "F19-2",
            "F19-3",
            "F19-4",
            "F19-5",
            "F19-next-1",
            "F19-next-2",
            "F19-next-3",
            "F19-next-4",
            "F19-next-5",
            "F19-next-6",
            "F19-comparison-1",
            "F19-comparison-2",
            "F19-comparison-3",
        ),
        (
            "The load of a log is its own: no time is multiplied here, and with utilities that decay by a unit of "
            "ten minutes long jobs are dropped as worth too little. 8 GJ limit no scheduler: every scheduler but "
            "Event-Based and Task-Based earns and uses with 8 GJ exactly what it does with 26 (Max UPR 97.9 %, 2.9 "
            "GJ on average, 4.5 on the heaviest of the eight days). So heuristics that save energy only lose: Max "
            "UPE uses 1.8 GJ and earns 94.7 %. The system that figure 8 implies does not describe Curie's figures."
        ),
        (
            (
                "scheduler in ['UPE', 'UPR', 'UPT', 'Util', 'Event-Based', 'Task-Based', 'Conservative', 'EASY', "
                "'Multiple queues'] and energy_budget_j in [8e9, 26e9] and total_cores == 73728"
            ),
        ),
    ),
]
