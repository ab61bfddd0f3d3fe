"""Batsim: schedulers that are other programs, by its protocol, and its workloads in JSON."""

from gridsched.plugins import JobFormat, Plugin, SchedulerEntry

plugin = Plugin(
    "batsim",
    schedulers=(
        SchedulerEntry(
            "batsim",
            "gridsched.schedulers.batsim.scheduler:Batsim",
            ("parallel",),
            "the protocol of Batsim 4; docs/batsim.md",
            "address",
        ),
    ),
    formats=(
        JobFormat(
            "batsim",
            (".json",),
            "gridsched.workloads.traces.batsim:read_with_options",
            "gridsched.workloads.traces.batsim:write_batsim",
        ),
    ),
)
