"""Paper 002: serial tasks with uncertain run times and deadlines, under one energy budget."""

from gridsched.plugins import Plugin, WorkloadKind, of_class

_of = of_class("gridsched.systems.robust.deadline", ("stochastic",))

plugin = Plugin(
    "robust",
    schedulers=(
        _of("shortest_queue", "ShortestQueue", "paper 002, section V"),
        _of("minimum_expected_completion_time", "MinimumExpectedCompletionTime", "paper 002, section V"),
        _of("lightest_load", "LightestLoad", "paper 002, section V"),
        _of("random_immediate", "RandomImmediate", "paper 002, section V"),
        _of("cheapest_in_time", "CheapestInTime", "beyond paper 002: our own"),
    ),
    workloads=(
        WorkloadKind(
            "robust",
            "gridsched.systems.robust.robust_trial:RobustTrial",
            "gridsched.systems.robust.robust_trial:generate_robust_trial",
            makes_system=True,
            document="docs/robust_workloads.md",
        ),
    ),
    studies="gridsched.systems.robust.studies",
    kernels=("gridsched.systems.robust.deadline",),
)
