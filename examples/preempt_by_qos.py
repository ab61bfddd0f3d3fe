"""Preemption: a job of quality of service "high" takes the nodes of others, which start again later."""

from dataclasses import replace

from gridsched import Cancel, EasyBackfilling


class PreemptByQos(EasyBackfilling):
    """EASY backfilling; if the first urgent job does not fit, the youngest others make room.

    Parameters
    ----------
    order, depth, estimate, reservations, dropping_threshold, cluster_choice
        As in `EasyBackfilling`; urgent jobs come first.
    requeue : bool
        Whether jobs that made room start again; else they are killed.

    References
    ----------
    .. [1] An example of gridsched's documents; SchedMD, "Preemption", https://slurm.schedmd.com/preempt.html.
    """

    traits = replace(EasyBackfilling.traits, may_cancel=True, shares=False)  # it counts whole nodes

    def __init__(self, order="multifactor(PriorityWeightQOS=1000, qos={'high': 1})", requeue=True):
        super().__init__(order=order)
        self.requeue = requeue

    def schedule(self, state):
        decisions = list(super().schedule(state))
        qos = state.tasks.attributes.get("qos")
        if decisions or qos is None or "high" not in qos.names:
            return decisions
        is_urgent = qos.codes == qos.names.index("high")
        urgent = [task for task in state.waiting() if is_urgent[task]]
        if not urgent:
            return []
        missing = state.tasks.width[urgent[0]] - state.nodes.n_free
        others = [job for job in state.running.tolist() if not is_urgent[job[0]]]
        for task, _, _, _, _, width in reversed(others):  # the last that started first
            if missing <= 0:
                break
            decisions.append(Cancel(task, requeue=self.requeue))
            missing -= width
        return decisions if missing <= 0 else []
