"""The metrics of every run, in the order of a report: energy, times, tasks; then of outages, of jobs, of the meter."""

from __future__ import annotations

from functools import partial
from typing import Any

from gridsched.arrays import distinct
from gridsched.metrics import run_metrics
from gridsched.metrics.group_metrics import user_fairness
from gridsched.metrics.table import Condition, Metric, metric
from gridsched.model.trace import ExecutionEnd, TaskState

DRIVEN = Condition("", lambda run: run.driver is not None)
METERED = Condition("SimGrid's driver", lambda run: run.plugin_j is not None)
LINKS = Condition("links with power", lambda run: run.links_j is not None, default=False)
DEADLINES = Condition("deadlines", lambda run: run.trace.tasks.deadline_s is not None, default=False)
OUTAGES = Condition("hosts that go down", lambda run: bool(run.trace.platform.profiles.states), default=False)
PARALLEL = Condition("parallel tasks", lambda run: run.is_parallel, "parallel")
PROFILES = Condition("jobs with profiles", lambda run: bool(len(run.trace.computed)), default=False)
CORE_CROSSED = Condition("jobs that send under switches", lambda run: len(run.trace.sent_bytes) > 1, default=False)
LINKS_CROSSED = Condition("jobs that send", lambda run: bool(run.trace.link_bytes), default=False)
UNIT_POWER = Condition(
    "hosts whose resources have power (`unit_power`)",
    lambda run: any(host.unit_power for host in run.trace.platform.hosts),
    default=False,
)
USERS = Condition(
    "parallel tasks whose log names users",
    lambda run: run.is_parallel and "user" in run.trace.tasks.attributes,
    "parallel",
    default=False,
)

less, more = partial(metric, better="less"), partial(metric, better="more")
of_outages = partial(less, condition=OUTAGES, hides_zero=True)


def _energy(part: str, sentence: str, words: str, **shown: Any) -> Metric:
    """Return the entry of a part of the energy."""
    part_j = f"{part}_j"
    return less(
        f"energy_{part_j}", sentence, lambda run: run.energy.grid_total(part_j), words=words, is_part=True, **shown
    )


def _tasks(state: TaskState, sentence: str, **shown: Any) -> Metric:
    """Return the entry of tasks that ended in a state."""
    return metric(
        f"tasks_{state.name.lower()}", sentence, lambda run: run_metrics.count_in_state(run.trace, state), **shown
    )


_fewer = partial(_tasks, better="less", hides_zero=True)


def _mean(name: str, sentence: str, values: str, **shown: Any) -> Metric:
    """Return the entry of the mean of finished tasks; `values` is an attribute of `RunFacts`."""
    return less(f"mean_{name}", sentence, lambda run: run_metrics.mean_of_finished(getattr(run, values)), **shown)


def _largest(name: str, sentence: str, values: str, words: str, **shown: Any) -> Metric:
    """Return the entry of the largest value of finished tasks."""
    return less(
        f"max_{name}",
        sentence,
        lambda run: run_metrics.max_of_finished(getattr(run, values)),
        words=words,
        is_detail=True,
        **shown,
    )


_ENERGY = (
    less(
        "energy_j",
        "energy of the computing hosts over the run; `energy_source` names the meter",
        lambda run: run.energy_j,
        condition=DRIVEN,
        words="energy by plugin",
        header="energy,\nplugin\n[{unit}]",
        scale="total",
        planned=lambda plan: plan.energy_j,
    ),
    metric(
        "energy_source",
        "source of `energy_j`: SimGrid's energy `plugin`, the `model` with the reference driver, or the "
        "`plan` with the driver `optimize`",
        lambda run: "model" if run.plugin_j is None else "plugin",
        condition=DRIVEN,
        header="energy\nby",
        form="text",
        planned=lambda plan: "plan",
    ),
    less(
        "energy_links_j",
        "energy of the links, not counted in `energy_j`: by SimGrid's plugin, or where jobs have profiles by the bytes "
        "over each",
        lambda run: float(sum(run.links_j.values())),
        condition=LINKS,
        header="links\n[{unit}]",
    ),
    less(
        "energy_resources_j",
        "energy of GPUs, memory and other counted resources of the computing hosts whose power the platform states "
        "(`unit_power`), by the model on both drivers, not counted in `energy_j`",
        lambda run: float(run.resources().total_j.sum()),
        condition=UNIT_POWER,
        words="energy of GPUs, memory, ...",
        header="GPUs,\nmemory\n[{unit}]",
    ),
    less(
        "energy_resources_busy_j",
        "of `energy_resources_j`, what units that jobs have draw above their idle power",
        lambda run: float(run.resources().busy_j.sum()),
        condition=UNIT_POWER,
        words="for jobs, above idle",
        is_part=True,
    ),
)
_RUN = (
    less(
        "makespan_s",
        "last finish minus first submission. Batsim 5 means the same; Batsim 4 used the last finish",
        lambda run: run_metrics.makespan_s(run.trace),
        header="makespan\n[{unit}]",
        planned=lambda plan: plan.makespan_s,
    ),
    metric(
        "busy_time_s",
        "time that cores spent executing, including wasted copies",
        lambda run: run_metrics.busy_time_s(run.trace),
        header="busy\ntime [{unit}]",
        planned=lambda plan: plan.busy_time_s,
        is_detail=True,
    ),
    less(
        "energy_model_j",
        "energy of the computing hosts over the run by the model",
        lambda run: run.energy.grid_total(),
        words="energy by model",
        header="energy,\nmodel\n[{unit}]",
        scale="total",
        is_detail=True,
    ),
    _energy("busy", "part of it used by hosts with a busy core", "of it while busy", is_detail=True),
    _energy(
        "idle", "part of it used by hosts that are on and have no busy core", "while idle", header="idle\n[{unit}]"
    ),
    *(
        _energy(part, f"part of it drawn by hosts that {do}", words, is_detail=True, hides_zero=True)
        for part, do, words in (
            ("boot", "boot", "while booting"),
            ("shutdown", "shut down", "while shutting down"),
            ("off", "are off, and have shut down", "while off"),
        )
    ),
    less(
        "peak_power_w",
        "largest power of the computing hosts together, by the model",
        lambda run: run.grid_power.peak_w,
        words="largest power",
        is_detail=True,
    ),
    _energy(
        "wasted",
        "share of `energy_busy_j` that went into copies which did not finish their task",
        "wasted on cancelled copies",
        header="wasted\n[{unit}]",
        hides_zero=True,
    ),
    less(
        "wasted_flops",
        "work of copies that did not finish their task",
        lambda run: run_metrics.wasted_flops(run.trace),
        words="work wasted",
        is_detail=True,
        hides_zero=True,
    ),
    less(
        "waste_ratio",
        "wasted work over all executed work",
        lambda run: run_metrics.waste_ratio(run.trace),
        words="share of the work wasted",
        hides_zero=True,
    ),
    metric(
        "hosts_used",
        "hosts that executed anything",
        lambda run: run_metrics.hosts_used(run.trace),
        header="hosts\nused",
    ),
    metric("executions", "copies of tasks that were started", lambda run: len(run.trace.executions), is_detail=True),
    metric(
        "tasks",
        "tasks that were submitted",
        lambda run: len(run.trace.tasks),
        planned=lambda plan: plan.tasks,
        is_detail=True,
    ),
    _tasks(
        TaskState.FINISHED,
        "tasks that finished",
        better="more",
        header="finished",
        planned=lambda plan: plan.tasks if plan.runs else 0,
    ),
    _fewer(TaskState.DROPPED, "tasks that the scheduler dropped", header="dropped"),
    _fewer(TaskState.REJECTED, "tasks that fit on no host"),
    _fewer(
        TaskState.KILLED,
        "tasks that were killed: by the end of the budget, by the scheduler, or at their requested time "
        "(`--walltime kill`; these count in the times below)",
        words="tasks killed",
    ),
    _fewer(TaskState.FAILED, "tasks whose host failed"),
    _fewer(TaskState.UNFINISHED, "tasks that the horizon left undone"),
    less(
        "tasks_late",
        "tasks that finished after their deadline",
        lambda run: int(run_metrics.is_late(run.trace).sum()),
        condition=DEADLINES,
        header="late",
    ),
    less(
        "tasks_missed",
        "tasks that did not finish by their deadline: late, dropped, rejected, killed, failed or unfinished",
        lambda run: int(run_metrics.is_missed(run.trace).sum()),
        condition=DEADLINES,
        header="missed",
    ),
    metric(
        "mean_time_to_deadline_s",
        "mean time from submission to deadline of tasks that have one",
        lambda run: run_metrics.mean_time_to_deadline_s(run.trace),
        condition=DEADLINES,
    ),
    _mean(
        "waiting_time_s",
        "mean time from submission to start of finished tasks",
        "waiting_s",
        header="mean\nwait [{unit}]",
        form="rounded",
    ),
    _mean("flow_time_s", "mean time from submission to finish of finished tasks", "flow_s"),
    _mean("slowdown", "mean of flow time over execution time of finished tasks", "slowdown"),
    _largest(
        "waiting_time_s", "longest time from submission to start of finished tasks", "waiting_s", "longest waiting time"
    ),
    _largest("flow_time_s", "longest time from submission to finish of finished tasks", "flow_s", "longest flow time"),
    _largest("slowdown", "largest flow time over execution time of finished tasks", "slowdown", "largest slowdown"),
    metric(
        "horizon_s",
        "end of the run; energy is counted from 0 to here",
        lambda run: float(run.trace.horizon_s),
        is_detail=True,
    ),
    metric(
        "mapping_events",
        "instants at which the scheduler was asked",
        lambda run: run.trace.mapping_events,
        is_detail=True,
    ),
)
_OUTAGES = (
    of_outages(
        "executions_failed",
        "executions that ended because their host went down",
        lambda run: len(run.trace.of_outcome(ExecutionEnd.FAILED)),
        words="executions that failed",
        header="failed\nruns",
    ),
    of_outages(
        "lost_work_s",
        "time cores (or nodes) spent on executions that failed",
        lambda run: run_metrics.lost_work_s(run.trace),
        words="work lost",
        header="lost\nwork [{unit}]",
    ),
    of_outages(
        "energy_lost_j",
        "part of `energy_wasted_j` that went into executions which failed",
        lambda run: run.energy_lost_j,
        words="of that on copies that failed",
        header="lost\n[{unit}]",
        is_part=True,
    ),
)
_PARALLEL = (
    _mean(
        "bounded_slowdown",
        "mean of flow time over execution time of finished tasks, "
        f"with executions shorter than {run_metrics.SLOWDOWN_BOUND_S:g} s counted as that long, "
        "and at least 1",
        "bounded_slowdown",
        condition=PARALLEL,
        header="mean\nbounded\nslowdown",
        form="rounded",
    ),
    _largest(
        "bounded_slowdown",
        "largest bounded slowdown of finished tasks",
        "bounded_slowdown",
        "largest bounded slowdown",
        condition=PARALLEL,
    ),
    more(
        "utilisation",
        "node-seconds executed over the nodes of the platform times the makespan",
        lambda run: run_metrics.utilisation(run.trace),
        condition=PARALLEL,
        header="utili-\nsation",
    ),
    less(
        "requeues",
        "starts of jobs that had been started before: cancelled and queued again, or ended with their host",
        lambda run: len(run.trace.executions) - len(distinct(run.trace.executions["task"])),
        condition=PARALLEL,
        is_detail=True,
        hides_zero=True,
    ),
    more(
        "user_fairness",
        "Jain's index of the users' mean bounded slowdowns: 1 if all have the same",
        lambda run: user_fairness(run.trace),
        condition=USERS,
        words="fairness among users",
        is_detail=True,
    ),
)
_PROFILES = (
    less(
        "not_computing_time_s",
        "node-seconds of jobs with profiles beyond what their nodes needed to compute at full speed: they sent, waited "
        "for messages or other nodes, or were in a delay",
        lambda run: run_metrics.not_computing_time_s(run.trace),
        condition=PROFILES,
        words="time not computing",
    ),
    less(
        "sent_bytes",
        "bytes that parts of jobs sent from one node to another",
        lambda run: run.trace.sent_bytes[0],
        condition=LINKS_CROSSED,
        words="bytes sent",
        is_detail=True,
    ),
    less(
        "sent_over_core_bytes",
        "of these, bytes between nodes under different switches of the highest level: over the core of a fat tree, or "
        "between groups of a dragonfly",
        lambda run: run.trace.sent_bytes[-1],
        condition=CORE_CROSSED,
        words="bytes over the core",
        is_detail=True,
    ),
    less(
        "sent_over_busiest_link_bytes",
        "bytes over the link that carried most of what parts of jobs sent each other",
        lambda run: max(run.trace.link_bytes.values()),
        condition=LINKS_CROSSED,
        words="bytes over the busiest link",
        is_detail=True,
    ),
    metric(
        "busiest_link",
        "the link that carried most",
        lambda run: max(run.trace.link_bytes, key=run.trace.link_bytes.__getitem__),
        condition=LINKS_CROSSED,
        form="text",
        is_detail=True,
    ),
)
_METERED = (
    less(
        "energy_relative_difference",
        "difference of plugin and model in total, relative to the larger",
        lambda run: run.differences[-1],
        condition=METERED,
        is_detail=True,
    ),
    less(
        "energy_worst_host_difference",
        "the same for the host with the largest difference",
        lambda run: max(run.differences[:-1], default=run.differences[-1]),
        condition=METERED,
        is_detail=True,
    ),
)
RUN_ENTRIES = (*_ENERGY, *_RUN, *_OUTAGES, *_PARALLEL, *_PROFILES, *_METERED)
