"""Batsim: schedulers that are other programs, by its protocol, and its workloads in JSON."""

from gridsched.plugins import JobFormat, Plugin, SchedulerEntry

plugin = Plugin(
    "batsim",
    schedulers=(
        SchedulerEntry(
            "batsim",
            "gridsched.systems.batsim.scheduler:Batsim",
            ("parallel",),
            "the protocol of Batsim 4; docs/batsim.md",
            "address",
        ),
    ),
    formats=(
        JobFormat(
            "batsim",
            (".json",),
            "gridsched.systems.batsim.workload_json:read_with_options",
            "gridsched.systems.batsim.workload_json:write_batsim",
        ),
    ),
)
